"""SciPy under its own names, where code calls it in ways that cannot be read from the function."""

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.spatial.distance
import scipy.stats
from scipy import ndimage

import functrans as ft

SOLVERS = {}  # functions that nothing refers to by name


def solver(function):
    SOLVERS[function.__name__] = function
    return function


@solver
def golden(t):
    return scipy.optimize.golden(lambda q: (q - t * t) ** 2)


@solver
def brute(t):
    return scipy.optimize.brute(lambda q: (q[0] - t * t) ** 2, ((0.0, 1.0),), Ns=4)[0]


@solver
def broyden1(t):
    return scipy.optimize.broyden1(lambda q: q - t * t, np.zeros(1), f_tol=1e-12)[0]


@solver
def minimize(t):
    return scipy.optimize.minimize(lambda q: np.sum((q - t * t) ** 2), np.zeros(1), tol=1e-12).x[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_search_that_is_called_by_another_name_has_a_derivative(name):
    """Without its hook, a search in Python runs to its end on traced values, and its result is constant."""

    def call(t, key):
        return SOLVERS[key](t)

    assert ft.grad(call)(0.6, name) == pytest.approx(1.2, rel=1e-5)
    assert ft.jvp(lambda t: call(t, name), (0.6,), (1.0,))[1] == pytest.approx(1.2, rel=1e-5)


def test_arrays_that_were_opened_stay_plain_where_scipy_runs_on_plain_values():
    """An array made in SciPy's code accepted traced values once; SciPy's compiled code cannot take such."""

    def by_steps(t):  # runs SciPy's own code on traced values
        solver = scipy.integrate.RK45(lambda _, q: -t * q, 0.0, np.ones(2), 1.0)
        solver.step()
        return np.sum(solver.y)

    def whole(t):
        return scipy.integrate.solve_ivp(lambda _, q: -t * q, (0.0, 1.0), np.ones(2)).y[0, -1]

    assert np.isfinite(ft.grad(by_steps)(0.5))
    for _ in range(2):
        assert ft.grad(whole)(0.5) == pytest.approx(-np.exp(-0.5), rel=1e-3)


@pytest.mark.parametrize("kind", ["RK23", "RK45", "DOP853", "Radau", "BDF"])
def test_the_solvers_behind_solve_ivp_can_be_stepped(kind):
    def after_one_step(t):
        start = np.array([1.0, 2.0])
        solver = getattr(scipy.integrate, kind)(
            lambda _, q: -t * q, 0.0, start, 1.0, first_step=0.1
        )
        solver.step()
        return np.sum(solver.y)

    difference = (after_one_step(0.5001) - after_one_step(0.4999)) / 2e-4
    assert ft.grad(after_one_step)(0.5) == pytest.approx(difference, rel=1e-5)


def test_lsoda_refuses_traced_values_because_its_compiled_code_crashes():
    def stepped(y0):
        solver = scipy.integrate.LSODA(lambda _, q: -q, 0.0, y0, 1.0)
        solver.step()
        return np.sum(solver.y)

    with pytest.raises(ft.errors.MissingRuleError, match="solve_ivp"):
        ft.grad(stepped)(np.ones(2))


@pytest.mark.parametrize(
    "kind",
    [
        *("CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "KroghInterpolator"),
        *("BarycentricInterpolator", "make_interp_spline", "interp1d", "UnivariateSpline"),
    ],
)
def test_splines_through_plain_points_take_traced_arguments(kind):
    """They inherit their methods, and some of these say nothing about the type that they do not take."""
    x = np.arange(6.0)
    make = getattr(scipy.interpolate, kind)
    outside = make(x, np.sin(x))
    for f in (lambda u: make(x, np.sin(x))(u), lambda u: outside(u)):
        points = np.array([0.3, 2.4])
        difference = (f(points + 1e-6) - f(points - 1e-6)) / 2e-6
        np.testing.assert_allclose(ft.jvp(f, (points,), (np.ones(2),))[1], difference, rtol=1e-6)


def test_bounds_and_constraints_of_traced_values():
    def bounded(t):
        bounds = scipy.optimize.Bounds(np.zeros(2), np.array([t, 2 * t]))
        return scipy.optimize.minimize(lambda q: np.sum((q - 3) ** 2), np.zeros(2), bounds=bounds).x

    np.testing.assert_allclose(ft.jacfwd(bounded)(0.5), [1.0, 2.0], rtol=1e-6)

    def on_a_line(t):
        line = scipy.optimize.LinearConstraint(np.ones((1, 2)), t, t)
        return scipy.optimize.minimize(lambda q: q @ q, np.zeros(2), constraints=line).x

    np.testing.assert_allclose(ft.jacfwd(on_a_line)(0.5), [0.5, 0.5], rtol=1e-6)


def test_an_error_that_scipy_catches_is_not_a_result():
    """Under jit, SciPy's check cannot read the matrix. It would catch the error, and say no."""

    def is_valid(points):
        distances = scipy.spatial.distance.pdist(points)
        return scipy.spatial.distance.is_valid_dm(scipy.spatial.distance.squareform(distances))

    points = np.arange(6.0).reshape(3, 2) ** 2
    assert is_valid(points)
    with pytest.raises(ft.errors.StagingError):
        ft.jit(is_valid)(points)


def test_medians_of_labelled_parts_of_many_images():
    labels = np.arange(12).reshape(4, 3) % 2
    images = np.random.default_rng(0).normal(size=(3, 4, 3))
    medians = ft.vmap(lambda image: ndimage.median(image, labels, [0, 1]))(images)
    np.testing.assert_allclose(medians, [ndimage.median(i, labels, [0, 1]) for i in images])


def test_an_infinite_limit_of_an_integral_does_not_move():
    def moment(t):
        return scipy.integrate.quad(lambda q: np.exp(-t * q * q), t * -np.inf, np.inf)[0]

    assert ft.grad(moment)(0.7) == pytest.approx(-np.sqrt(np.pi) / 2 * 0.7**-1.5, rel=1e-6)


def test_functions_of_statistics_that_scipy_calls_inside():
    x = np.random.default_rng(0).normal(size=20)
    statistic = lambda x: scipy.stats.jarque_bera(x).statistic
    difference = (statistic(x + 1e-6 * x**2) - statistic(x - 1e-6 * x**2)) / 2e-6
    assert ft.jvp(statistic, (x,), (x**2,))[1] == pytest.approx(difference, rel=1e-6)


def test_expectations_of_distributions():
    """The ends of the support are at infinity, whatever the scale is."""
    square = lambda loc, scale: scipy.stats.norm.expect(lambda q: q**2, loc=loc, scale=scale)
    np.testing.assert_allclose(ft.grad(square, (0, 1))(0.7, 1.1), (1.4, 2.2), rtol=1e-6)
    shape = lambda a: scipy.stats.gamma.expect(args=(a,), scale=2.0)
    assert ft.grad(shape)(1.5) == pytest.approx(2.0, rel=1e-5)
    power = lambda c: scipy.stats.norm.expect(lambda q: c * q**2, loc=1.0)
    assert ft.grad(power)(3.0) == pytest.approx(2.0, rel=1e-6)
    other = lambda c: scipy.stats.gompertz.expect(lambda q: c * q, args=(0.9,))
    assert ft.grad(other)(3.0) == pytest.approx(scipy.stats.gompertz.mean(0.9), rel=1e-6)
    above = lambda b: scipy.stats.expon.expect(lb=b, conditional=True)  # b + 1
    assert ft.value_and_grad(above)(0.5) == pytest.approx((1.5, 1.0), rel=1e-6)
    assert ft.jvp(above, (0.5,), (1.0,))[1] == pytest.approx(1.0, rel=1e-6)
