"""scipy.integrate for traced values: integrals of functions and samples, and boundary value problems."""

import inspect
import math

import numpy as np
import pytest
import scipy.integrate as si

import functrans as ft
from functrans.scipy import integrate
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

F = np.float64


def test_every_name_is_scipys_with_its_signature():
    for name in integrate.__all__:
        ours = inspect.signature(getattr(integrate, name)).parameters
        theirs = inspect.signature(getattr(si, name)).parameters
        assert list(ours) == list(theirs) or name == "quad_vec", name
    assert set(integrate.__all__) >= integrate.CLOSES_OVER


def quad(*args, **options):
    return integrate.quad(*args, **options)[0]


# Each case: the integral as a function of real numbers, and the point.
INTEGRALS = {
    "smooth": (
        lambda k, a, b: quad(lambda x: np.exp(-k * x * x) * np.cos(x), a, b),
        (0.7, -0.3, 1.5),
    ),
    "backward": (lambda k, a, b: quad(lambda x: np.exp(-k * x * x), a, b), (0.7, 1.3, 0.5)),
    "arguments": (lambda k, b: quad(lambda x, k: np.sin(k * x), 0, b, args=(k,)), (0.7, 1.3)),
    "to infinity": (lambda k, a: quad(lambda x: np.exp(-k * x * x), a, np.inf), (0.7, 0.5)),
    "from infinity": (lambda k, b: quad(lambda x: np.exp(-k * x * x), -np.inf, b), (0.7, 0.5)),
    "back from infinity": (lambda k, b: quad(lambda x: np.exp(-k * x * x), np.inf, b), (0.7, 0.5)),
    "everywhere": (lambda k: quad(lambda x: np.exp(-k * x * x + x), -np.inf, np.inf), (0.7,)),
    "a slow tail": (lambda k: quad(lambda x: 1 / (k + x * x) ** 1.5, 0, np.inf), (0.7,)),
    "a pole of the derivative": (lambda k, b: quad(lambda x: x**k, 0, b), (2.0, 1.5)),
    "a kink": (lambda k: quad(lambda x: abs(x - 0.3) ** k, 0, 1, points=[0.3]), (0.7,)),
    "a branch": (lambda k: quad(lambda x: k * x if x < 0.5 else k * k, 0, 1, points=[0.5]), (0.5,)),
    "a function of numbers": (lambda k: quad(lambda x: k * math.sin(x), 0, 1), (0.5,)),
    "cos": (
        lambda k, w, b: quad(lambda x: np.exp(-k * x), 0, b, weight="cos", wvar=w),
        (0.7, 20.0, 3.0),
    ),
    "sin": (
        lambda k, w, a: quad(lambda x: np.exp(-k * x), a, 3.0, weight="sin", wvar=w),
        (0.7, 2.0, 0.1),
    ),
}


@pytest.mark.parametrize("case", INTEGRALS)
def test_derivatives_of_integrals(case):
    integral, point = INTEGRALS[case]
    check_derivatives(integral, tuple(map(F, point)))


INACCURATE = {  # by differences of SciPy's values
    "a pole": (lambda k, b: quad(lambda x: x**k, 0, b), (-0.5, 1.5)),
    "a peak": (lambda k: quad(lambda x: 1 / (k**2 + (x - 0.3) ** 2), 0, 1), (0.05,)),
    "alg": (
        lambda p, q, a, b, k: quad(lambda x: np.exp(-k * x), a, b, weight="alg", wvar=(p, q)),
        (-0.5, 0.3, 0.1, 2.0, 1.0),
    ),
    "alg-loga": (
        lambda p, q, a, k: quad(lambda x: np.exp(-k * x), a, 2.0, weight="alg-loga", wvar=(p, q)),
        (-0.5, 0.3, 0.1, 1.0),
    ),
    "alg-logb": (
        lambda p, q, a, k: quad(lambda x: np.exp(-k * x), a, 2.0, weight="alg-logb", wvar=(p, q)),
        (-0.5, 0.3, 0.1, 1.0),
    ),
    "alg-log": (
        lambda p, q, a, k: quad(lambda x: np.exp(-k * x), a, 2.0, weight="alg-log", wvar=(p, q)),
        (-0.5, 0.3, 0.1, 1.0),
    ),
    "cauchy": (
        lambda c, a, b, k: quad(lambda x: np.exp(-k * x), a, b, weight="cauchy", wvar=c),
        (0.5, 0.1, 2.0, 1.0),
    ),
}


@pytest.mark.parametrize("case", INACCURATE)
def test_derivatives_of_singular_integrals(case):
    integral, point = INACCURATE[case]
    check_derivatives(integral, tuple(map(F, point)), rtol=1e-5, atol=1e-6, step=2e-3)


def test_waves_that_go_on():
    def integral(k, w, a):
        return quad(lambda x: 1 / (k + x), a, np.inf, weight="cos", wvar=w)

    check_derivatives(integral, (F(0.7), F(2.0), F(0.3)), rtol=1e-4, atol=1e-6, step=1e-2)
    down = lambda w: quad(lambda x: np.exp(x), -np.inf, 0.0, weight="sin", wvar=w)
    np.testing.assert_allclose(down(2.0), -0.4, rtol=1e-8)
    np.testing.assert_allclose(ft.grad(down)(2.0), 0.12, rtol=1e-8)  # of -w / (1 + w²)


def test_integrals_of_known_derivatives():
    moments = lambda k: quad(lambda x: x**k, 0, 1)  # 1 / (1 + k)
    for order in range(1, 5):
        slope = moments
        for _ in range(order):
            slope = ft.grad(slope)
        expected = (-1) ** order * math.factorial(order) / 1.5 ** (order + 1)
        np.testing.assert_allclose(slope(0.5), expected, rtol=1e-9)
    # The derivative exists, although the integrand is singular at the end.
    root = lambda a: quad(lambda x: a / np.sqrt(x), 0, 1)
    np.testing.assert_allclose(ft.grad(root)(1.0), 2.0, rtol=1e-10)
    log = lambda a: quad(lambda x: np.log(a * x), 0, 1)
    np.testing.assert_allclose(ft.grad(log)(2.0), 0.5, rtol=1e-10)


def test_lanes_of_integrals():
    integral = INTEGRALS["smooth"][0]
    check_lanes(integral, (F(0.7), F(-0.3), F(1.5)))


def test_complex_integrands():
    def parts(k):
        z = integrate.quad(lambda x: np.exp(1j * k * x), 0, 1, complex_func=True)[0]
        return z.real, z.imag

    check_derivatives(parts, (F(0.5),))
    plain = si.quad(lambda x: np.exp(1j * x), 0, 1, complex_func=True)
    assert integrate.quad(lambda x: np.exp(1j * x), 0, 1, complex_func=True) == plain


def test_plain_integrals_are_scipys():
    assert integrate.quad(np.cos, 0, 1) == si.quad(np.cos, 0, 1)
    assert len(integrate.quad(np.cos, 0, 1, full_output=True)) == 3
    with pytest.warns(si.IntegrationWarning):
        integrate.quad(lambda x: 1 / x, 0, 1)
    value, error, info = ft.jvp(
        lambda k: integrate.quad(lambda x: k * x, 0, 1, full_output=True)[:2] + ({},),
        (2.0,),
        (1.0,),
    )[0]
    np.testing.assert_allclose(value, 1.0)
    assert error < 1e-10 and info == {}


def test_an_integrand_that_jumps_is_reported():
    with pytest.warns(ft.errors.ConvergenceWarning, match="points="):
        ft.grad(lambda k: quad(lambda x: k * (x > 1 / 3) / abs(x - 1 / 3) ** 0.7, 0, 1))(1.0)


def test_integrals_of_arrays():
    def integral(k, a, b):
        return integrate.quad_vec(lambda x: np.stack([np.exp(-k * x * x), x**k]), a, b)[0]

    check_derivatives(integral, (F(0.7), F(0.3), F(1.5)))
    check_lanes(integral, (F(0.7), F(0.3), F(1.5)))

    def infinite(k, a):
        return integrate.quad_vec(
            lambda x: np.stack([np.exp(-k * x * x), 1 / (k + x) ** 3]), a, np.inf
        )[0]

    tangents = (F(0.4), F(-0.6))
    expected = central_difference_jvp(infinite, (F(0.7), F(0.3)), tangents)
    np.testing.assert_allclose(ft.jvp(infinite, (F(0.7), F(0.3)), tangents)[1], expected, rtol=1e-6)
    assert len(integrate.quad_vec(np.cos, 0, 1, full_output=True)) == 3


def test_integrals_of_integrals():
    def triangle(k, b):
        lower, upper = (lambda x: k * x), (lambda x: 1 + x * b)
        return integrate.dblquad(lambda y, x: np.exp(-k * x * y), 0, b, lower, upper)[0]

    check_derivatives(triangle, (F(0.7), F(0.9)))
    plane = lambda k: integrate.dblquad(
        lambda y, x: np.exp(-k * (x * x + y * y)), -np.inf, np.inf, -np.inf, np.inf
    )[0]
    np.testing.assert_allclose(ft.grad(plane)(0.7), -np.pi / 0.49, rtol=1e-7)
    box = lambda a: integrate.tplquad(lambda z, y, x: a * z * x, 0, 1, 0, lambda x: x, 0, a)[0]
    np.testing.assert_allclose(ft.grad(box)(2.0), 2.0, rtol=1e-9)  # of a³/6
    ranges = [lambda y, k: (0.0, k * y), (0.0, 1.0)]
    several = lambda k: integrate.nquad(lambda x, y, k: x * y * k, ranges, (k,), full_output=True)
    value, _, report = several(2.0)
    assert value == pytest.approx(1.0) and report["neval"] > 0
    np.testing.assert_allclose(ft.grad(lambda k: several(k)[0])(2.0), 1.5, rtol=1e-9)  # of k³/8
    np.testing.assert_allclose(ft.vmap(lambda k: several(k)[0])(np.array([1.0, 2.0])), [0.125, 1.0])


def test_fixed_quad():
    def integral(k, b):
        return integrate.fixed_quad(lambda x: np.exp(-k * x), 0.0, b, n=7)[0]

    point = (F(0.7), F(1.5))
    assert_trees_close(integral(*point), si.fixed_quad(lambda x: np.exp(-0.7 * x), 0, 1.5, n=7)[0])
    check_derivatives(integral, point)
    check_lanes(integral, point)


# Samples.

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
@pytest.mark.parametrize(
    "name", ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]
)
def test_samples(name, count):
    ours, theirs = getattr(integrate, name), getattr(si, name)
    y, x = RNG.normal(size=(3, count)), np.cumsum(RNG.uniform(0.5, 1.0, count))
    for options in ({}, {"x": x}, {"dx": 0.3}):
        traced = ft.jvp(lambda y: ours(y, **options), (y,), (y,))[0]  # noqa: B023
        np.testing.assert_allclose(traced, theirs(y, **options), rtol=1e-12, atol=1e-12)
    first = ft.jvp(lambda y: ours(y.T, x=x, axis=0), (y,), (y,))[0]
    np.testing.assert_allclose(first, theirs(y.T, x=x, axis=0), rtol=1e-12, atol=1e-12)
    assert_trees_close(ours(y), theirs(y))
    check_derivatives(lambda y, x: ours(y, x=x), (y, x))
    check_derivatives(lambda y, dx: ours(y, dx=dx), (y, F(0.3)))
    check_lanes(lambda y, x: ours(y, x=x), (y, x))
    check_staging(lambda y, x: ours(y, x=x), (y, x))


def test_initial_values_of_cumulative_integrals():
    y = RNG.normal(size=(2, 5))
    start = np.array([[1.0], [2.0]])
    traced = ft.jvp(lambda y: integrate.cumulative_simpson(y, initial=start), (y,), (y,))[0]
    np.testing.assert_allclose(traced, si.cumulative_simpson(y, initial=start))
    traced = ft.jvp(lambda y: integrate.cumulative_trapezoid(y, initial=0), (y,), (y,))[0]
    np.testing.assert_allclose(traced, si.cumulative_trapezoid(y, initial=0))


def test_romb():
    y = RNG.normal(size=(2, 9))
    assert_trees_close(ft.jvp(integrate.romb, (y, F(0.2)), (y, F(1.0)))[0], si.romb(y, 0.2))
    check_derivatives(integrate.romb, (y, F(0.2)))
    check_lanes(integrate.romb, (y, F(0.2)))
    with pytest.raises(ValueError, match="power of 2"):
        ft.grad(lambda y: integrate.romb(y))(np.ones(4))


# Boundary value problems.


def bratu(k, c, tol=1e-6):
    return integrate.solve_bvp(
        lambda x, y: np.stack([y[1], -k * np.exp(y[0])]),
        lambda a, b: np.stack([a[0] - c, b[0]]),
        np.linspace(0, 1, 5),
        np.zeros((2, 5)),
        tol=tol,
    )


def test_boundary_values():
    at = np.array([0.3, 0.5])
    middle = lambda k, c: bratu(k, c).sol(at)
    tangents = (F(0.4), F(0.3))
    point = (F(1.0), F(0.1))
    expected = central_difference_jvp(lambda *a: bratu(*a, 1e-9).sol(at), point, tangents, 1e-2)
    np.testing.assert_allclose(ft.jvp(middle, point, tangents)[1], expected, rtol=1e-6)
    by_x = ft.grad(lambda x: bratu(x * 0 + 1.0, 0.1).sol(x)[0])(0.3)
    np.testing.assert_allclose(by_x, bratu(1.0, 0.1).sol(0.3)[1], rtol=1e-5)
    spline, plain = ft.jvp(lambda k: bratu(k, 0.1).sol(at, 2), (1.0,), (1.0,))[0], bratu(1.0, 0.1)
    np.testing.assert_allclose(spline, plain.sol(at, 2), rtol=1e-9)


def test_an_eigenvalue():
    def eigenvalue(s):  # y'' = -p² s y, y(0) = y(1) = 0: p = 2π/√s
        return integrate.solve_bvp(
            lambda x, y, p: np.stack([y[1], -(p[0] ** 2) * s * y[0]]),
            lambda a, b, p: np.stack([a[0], b[0], a[1] - p[0]]),
            np.linspace(0, 1, 5),
            np.array([[0, 1, 0, -1, 0], [1.0, 0, -1, 0, 1]]),
            p=[6.0],
            tol=1e-5,
        ).p[0]

    np.testing.assert_allclose(eigenvalue(1.0), 2 * np.pi, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(eigenvalue)(1.0), -np.pi, rtol=1e-6)
    np.testing.assert_allclose(ft.hessian(eigenvalue)(1.0), 1.5 * np.pi, rtol=1e-6)


def test_a_mesh_that_is_traced_is_refused():
    with pytest.raises(ft.errors.MissingRuleError, match="mesh"):
        ft.grad(
            lambda b: integrate.solve_bvp(bratu, bratu, np.stack([0.0, b]), np.zeros((2, 2))).y[
                0, 0
            ]
        )(1.0)
