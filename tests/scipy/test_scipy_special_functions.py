"""Functions of scipy.special that are not ufuncs: combinatorics, Legendre functions, spherical harmonics."""

import numpy as np
import pytest
import scipy.special as sc

import functrans as ft
from functrans.scipy import special
from tests.support.oracles import assert_trees_close
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

F = np.float64
INSIDE = np.array([-0.95, -0.7, 0.0, 0.3, 0.9])
ANGLES = np.array([-2.0, -0.3, 0.4, 1.0, 2.0, 3.5, 6.0])


def traced(function, x):
    """The value of a function of a traced argument."""
    return ft.jvp(function, (x,), (np.ones_like(x),))[0]


CASES = {
    "comb": (lambda s, x: s.comb(x, 2), np.array([3.3, 4.5])),
    "comb of k": (lambda s, x: s.comb(5, x), np.array([1.2, 3.0])),
    "comb with repetition": (lambda s, x: s.comb(x, 2, repetition=True), np.array([1.5, 4.5])),
    "perm": (lambda s, x: s.perm(x, 2), np.array([3.3, 4.5])),
    "factorial": (lambda s, x: s.factorial(x), np.array([0.3, 2.5])),
    "diric, odd": (lambda s, x: s.diric(x, 5), np.array([0.0, 0.1, 2 * np.pi, -4.0])),
    "diric, even": (lambda s, x: s.diric(x, 4), np.array([0.0, 0.1, 2 * np.pi, -4.0])),
    "legendre_p": (lambda s, x: s.legendre_p(4, x), INSIDE * 3),
    "assoc_legendre_p": (lambda s, x: s.assoc_legendre_p(4, 2, x), INSIDE),
    "assoc_legendre_p, odd": (lambda s, x: s.assoc_legendre_p(4, -3, x, norm=True), INSIDE),
    "sph_legendre_p": (lambda s, x: s.sph_legendre_p(4, 3, x), ANGLES),
}


@pytest.mark.parametrize("case", CASES)
def test_values_derivatives_lanes_and_graphs(case):
    function, x = CASES[case]
    ours = lambda x: function(special, x)
    np.testing.assert_allclose(traced(ours, x), function(sc, x), rtol=1e-12, atol=1e-12)
    assert_trees_close(ours(x), function(sc, x))
    check_derivatives(ours, (x,))
    check_lanes(ours, (x,))
    check_staging(ours, (x,))


def test_outside_of_their_domain():
    for function, x in (
        (lambda s, x: s.comb(x, 2), np.array([-1.0, 1.0])),
        (lambda s, x: s.comb(5, x), np.array([-1.0, 7.0])),
        (lambda s, x: s.perm(x, 2), np.array([-1.0, 1.0])),
        (lambda s, x: s.factorial(x), np.array([-1.0, -2.5])),
    ):
        ours = lambda x, function=function: function(special, x)
        value, tangent = ft.jvp(ours, (x,), (np.ones(2),))
        np.testing.assert_array_equal(value, function(sc, x))
        np.testing.assert_array_equal(tangent, 0.0)
    assert np.isnan(traced(lambda x: special.diric(x, -4), INSIDE)).all()


def test_legendre_functions_of_all_degrees_and_orders():
    for n in range(5):
        for m in range(-n - 1, n + 2):
            for norm in (False, True):
                ours = lambda z, n=n, m=m, norm=norm: special.assoc_legendre_p(n, m, z, norm=norm)
                plain = sc.assoc_legendre_p(n, m, INSIDE, norm=norm)
                np.testing.assert_allclose(traced(ours, INSIDE), plain, atol=1e-12)
            ours = lambda t, n=n, m=m: special.sph_legendre_p(n, m, t)
            plain = sc.sph_legendre_p(n, m, ANGLES)
            np.testing.assert_allclose(traced(ours, ANGLES), plain, atol=1e-12)
            ours = lambda t, n=n, m=m: special.sph_harm_y(n, m, t, 0.4)
            plain = sc.sph_harm_y(n, m, ANGLES, 0.4)
            np.testing.assert_allclose(traced(ours, ANGLES), plain, atol=1e-12)


def test_spherical_harmonics():
    def parts(theta, phi):
        y = special.sph_harm_y(3, 2, theta, phi)
        return y.real, y.imag

    check_derivatives(parts, (F(0.7), F(0.4)))
    check_lanes(parts, (F(0.7), F(0.4)))
    degrees = np.array([[1], [2]])
    ours = traced(lambda t: special.sph_harm_y(degrees, 1, t, 0.4), ANGLES)
    np.testing.assert_allclose(ours, sc.sph_harm_y(degrees, 1, ANGLES, 0.4))
    # They solve Laplace's equation on the sphere: ∂²y/∂φ² = -m² y.
    phi = lambda phi: special.sph_harm_y(3, 2, 0.7, phi).real
    np.testing.assert_allclose(ft.hessian(phi)(0.4), -4 * phi(0.4))


def test_what_is_refused():
    with pytest.raises(ft.errors.OptionError, match="exact=True"):
        ft.grad(lambda n: special.comb(n, 2, exact=True))(4.0)
    with pytest.raises(ft.errors.OptionError, match="diff_n="):
        ft.grad(lambda z: special.legendre_p(2, z, diff_n=1)[0])(0.4)
    with pytest.raises(ft.errors.MissingRuleError, match="degree or order"):
        ft.grad(lambda n: special.legendre_p(n, 0.3)[0])(2.0)
    with pytest.raises(ft.errors.MissingRuleError, match="negative degree"):
        ft.grad(lambda z: special.legendre_p(-2, z)[0])(0.4)
    with pytest.raises(ft.errors.MissingRuleError, match="beyond 1"):
        ft.grad(lambda z: special.assoc_legendre_p(2, 1, z)[0])(1.4)
    with pytest.raises(ft.errors.MissingRuleError, match="traced n"):
        ft.grad(lambda n: special.diric(0.3, n))(3.0)


# Functions that work as they are, because they only call ufuncs with rules.
AS_THEY_ARE = {
    "assoc_laguerre": lambda x: sc.assoc_laguerre(x, 2, 0.5),
    "hermite": lambda x: sc.hermite(3)(x),
    "legendre": lambda x: sc.legendre(3)(x),
    "jacobi": lambda x: sc.jacobi(3, 0.5, 0.2)(x),
    "jvp": lambda x: sc.jvp(1, x, 2),
    "kvp": lambda x: sc.kvp(1, x),
    "zeta": lambda x: sc.zeta(2.5, x),
    "softplus": sc.softplus if hasattr(sc, "softplus") else np.sin,
    "jn_zeros": lambda x: x * sc.jn_zeros(1, 3),
    "gammaincinv of a": lambda x: sc.gammaincinv(x, 0.3),
    "gammaincinv of y": lambda x: sc.gammaincinv(0.7, x),
    "betaincinv of a": lambda x: sc.betaincinv(x, 0.5, 0.3),
    "betaincinv of b": lambda x: sc.betaincinv(0.5, x, 0.3),
    "betaincinv of y": lambda x: sc.betaincinv(0.5, 0.4, x),
}


@pytest.mark.parametrize("case", AS_THEY_ARE)
def test_functions_that_need_nothing(case):
    check_derivatives(AS_THEY_ARE[case], (F(0.6),), rtol=1e-5, atol=1e-6)
