"""The ufuncs of scipy.special that are not in the table of test_scipy_special.py."""

import numpy as np
import pytest
import scipy.special as sc

import functrans as ft
from tests.scipy.test_scipy_special import PACE, TABLE
from tests.support.oracles import central_difference_jvp

NAMESAKES = {"digamma", "jn"}  # of psi and jv
CONSTANT = {"gammasgn", "round"}
WITHOUT = [
    name
    for name in dir(sc)
    if isinstance(getattr(sc, name), np.ufunc)
    and name not in {row[0] for row in TABLE} | NAMESAKES | CONSTANT
]


@pytest.mark.parametrize("name", WITHOUT)
def test_every_other_ufunc_refuses_to_be_differentiated(name):
    ufunc = getattr(sc, name)
    point = (2.0,) * ufunc.nin
    first = lambda *args: ufunc(*args)[0] if ufunc.nout > 1 else ufunc(*args)
    for differentiate in (ft.grad(first), lambda *args: ft.jvp(first, args, args)):
        with pytest.raises(
            ft.errors.MissingRuleError, match=f"{name} has no derivative with respect to its"
        ):
            differentiate(*point)


def test_constant_ufuncs_have_a_derivative_of_zero():
    x = np.array([-0.4, 0.7, 2.6])
    for ufunc in (sc.gammasgn, sc.round):
        np.testing.assert_array_equal(ft.grad(lambda x, f=ufunc: np.sum(x * f(x)))(x), ufunc(x))
        np.testing.assert_array_equal(ft.vmap(ufunc)(x), ufunc(x))


def test_lambertw_and_zeta_entry_by_entry():
    x, weights = np.array([0.3, 0.7, 2.2]), np.array([0.5, -1.1, 1.4])
    w = sc.lambertw(x).real
    function = lambda x: np.real(sc.lambertw(x))
    expected = w / (x * (1 + w))
    np.testing.assert_allclose(ft.jvp(function, (x,), (PACE,))[1], PACE * expected)
    np.testing.assert_allclose(ft.vjp(function, x)[1](weights)[0], weights * expected)
    np.testing.assert_allclose(ft.vmap(function)(x), w)
    differences = central_difference_jvp(function, (x,), (PACE,), 1e-3)
    np.testing.assert_allclose(PACE * expected, differences, rtol=1e-7)
    s = np.array([1.6, 2.0, 4.5])
    pushed = ft.jvp(sc.zeta, (s,), (PACE,))[1]
    np.testing.assert_allclose(pushed, central_difference_jvp(sc.zeta, (s,), (PACE,), 1e-3), 1e-7)
    terms = np.arange(2.0, 1e6)[:, None]  # ζ'(s) = -Σ log n / n^s, with the rest as an integral
    end = 1e6 - 0.5
    series = -(np.log(terms) * terms ** -s[1:]).sum(axis=0)
    rest = -(end ** (1 - s[1:])) * (np.log(end) / (s[1:] - 1) + (s[1:] - 1) ** -2.0)
    np.testing.assert_allclose(pushed[1:], PACE[1:] * (series + rest), rtol=1e-9)
    np.testing.assert_allclose(ft.vjp(sc.zeta, s)[1](weights)[0] * PACE, weights * pushed)


@pytest.mark.parametrize("name", [name for name in WITHOUT if name.startswith(("obl_", "pro_"))])
def test_spheroidal_functions_are_batched(name):
    ufunc = getattr(sc, name)
    ends = (0.3, 0.9) if "ang" in name else (1.3, 1.9)
    held = (1.0, 2.0, 0.5, 3.0)[: ufunc.nin - 1]
    x = np.array(ends)
    expected = ufunc(*held, x)
    looped = [ufunc(*held, each) for each in ends]
    found = ft.vmap(lambda x: ufunc(*held, x))(x)
    if ufunc.nout == 1:
        expected, looped, found = (expected,), [(each,) for each in looped], (found,)
    for ours, theirs, lanes in zip(found, expected, zip(*looped, strict=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_allclose(ours, lanes, rtol=1e-13)
