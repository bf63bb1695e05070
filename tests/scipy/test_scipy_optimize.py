"""scipy.optimize for traced values: solutions are SciPy's, and their derivatives those of the equations."""

import inspect

import numpy as np
import pytest
import scipy.optimize as so

import functrans as ft
from functrans.scipy import optimize
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes

F = np.float64
EIGHT = (F(8.0), F(0.5))
BRACKETING = ["brentq", "brenth", "bisect", "ridder", "toms748"]


def test_every_name_is_scipys_with_its_signature():
    for name in optimize.__all__:
        theirs = getattr(so, name)
        if name == "linear_sum_assignment":
            continue  # it is compiled, without a signature
        ours = inspect.signature(getattr(optimize, name)).parameters
        theirs = inspect.signature(theirs).parameters
        later = {"seed", "workers", "callback"}  # of some versions of SciPy
        assert [key for key in ours if key not in later] == [k for k in theirs if k not in later], (
            name
        )
    assert set(optimize.__all__) >= optimize.CLOSES_OVER


# Roots.


@pytest.mark.parametrize("name", BRACKETING)
def test_roots_in_an_interval(name):
    solver = getattr(optimize, name)

    def root(a, b):
        return solver(lambda x, c: x**3 + b * x - c, 0.0, 10.0, args=(a,))

    assert root(*EIGHT) == getattr(so, name)(lambda x: x**3 + 0.5 * x - 8, 0.0, 10.0)
    check_derivatives(root, EIGHT)
    check_lanes(root, EIGHT)
    found, report = ft.jvp(
        lambda a: solver(lambda x: x**3 - a, 0.0, 10.0, full_output=True)[0], (8.0,), (1.0,)
    )
    np.testing.assert_allclose([found, report], [2.0, 1 / 12])
    report = solver(lambda x: x - 1, 0.0, 10.0, full_output=True)[1]
    assert report.converged and report.root == pytest.approx(1.0)


def test_derivatives_of_any_order():
    root = lambda a: optimize.brentq(lambda x: x * x - a, 0.0, 9.0)
    closed, found = np.sqrt, root
    for _ in range(5):
        closed, found = ft.grad(closed), ft.grad(found)
        np.testing.assert_allclose(found(4.0), closed(4.0), rtol=1e-10)


def test_a_root_does_not_depend_on_the_interval():
    root = lambda a, low: optimize.brentq(lambda x: x * x - a, low, 9.0 * a)
    assert_trees_close(ft.grad(root, (0, 1))(4.0, 0.5), (F(0.25), F(0.0)))


def test_newton_for_numbers_and_arrays():
    for start in (1.0, np.array([1.0, 2.0])):
        for options in ({}, {"fprime": lambda x, a: 2 * x}):
            root = lambda a: optimize.newton(lambda x, a: x * x - a, start, args=(a,), **options)  # noqa: B023
            point = F(4.0) if np.ndim(start) == 0 else np.array([4.0, 9.0])
            check_derivatives(root, (point,))
            check_lanes(root, (point,))
    halley = optimize.newton(
        lambda x: x * x - 4, 1.0, lambda x: 2 * x, fprime2=lambda x: 2.0, full_output=True
    )
    assert halley[1].converged
    root, converged, _ = ft.jvp(
        lambda a: optimize.newton(lambda x: x * x - a, np.ones(2), full_output=True),
        (np.array([4.0, 9.0]),),
        (np.ones(2),),
    )[0]
    np.testing.assert_allclose(root, [2, 3])
    assert converged.all()


def test_a_complex_root():
    def root(a):
        z = optimize.newton(lambda z: z * z + a, 1j, args=())
        return np.stack([z.real, z.imag])

    np.testing.assert_allclose(ft.jacfwd(root)(4.0), [0, 0.25], atol=1e-12)


@pytest.mark.parametrize("method", ["brentq", "newton", "halley", "secant", "toms748"])
def test_root_scalar(method):
    options = {
        "newton": {"fprime": lambda x, a: 3 * x**2},
        "halley": {"fprime": lambda x, a: 3 * x**2, "fprime2": lambda x, a: 6 * x},
    }.get(method, {})
    where = {"bracket": (0, 10)} if method in BRACKETING else {"x0": 1.5, "x1": 2.5}

    def root(a):
        cube = lambda x, a: x**3 - a
        return optimize.root_scalar(cube, (a,), method=method, **where, **options).root

    check_derivatives(root, (F(8.0),), rtol=1e-5, atol=1e-6)
    with_derivatives = lambda a: optimize.root_scalar(
        lambda x: (x**3 - a, 3 * x**2), fprime=True, x0=1.5, method="newton"
    )
    np.testing.assert_allclose(ft.grad(lambda a: with_derivatives(a).root)(8.0), 1 / 12)


def crossing(x, a, b):
    return np.stack([x[0] ** 2 + x[1] * b - a, x[1] ** 3 - x[0]])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov", "df-sane"])
def test_root(method):
    def root(a, b):
        found = optimize.root(crossing, np.ones(2), (a, b), method=method, tol=1e-12)
        return found.x, found.fun

    point = (F(3.0), F(0.5))
    plain = so.root(crossing, np.ones(2), point, method=method, tol=1e-12)
    np.testing.assert_allclose(root(*point)[0], plain.x, rtol=1e-12)
    check_derivatives(lambda a, b: root(a, b)[0], point)
    np.testing.assert_allclose(ft.jacfwd(lambda a: root(a, 0.5)[1])(3.0), 0, atol=1e-12)


def test_fsolve_and_its_options():
    def root(a, b):
        jacobian = lambda x, a, b: np.stack(
            [np.stack([2 * x[0], b]), np.stack([-1, 3 * x[1] ** 2])]
        )
        found, info, ok, _ = optimize.fsolve(
            crossing, [1.0, 1.0], (a, b), fprime=jacobian, full_output=True
        )
        assert ok == 1 and "nfev" in info
        return found

    check_derivatives(root, (F(3.0), F(0.5)))
    check_lanes(root, (F(3.0), F(0.5)))
    assert optimize.fsolve(lambda x: x - 2, 1.0).shape == (1,)


@pytest.mark.parametrize("method", ["del2", "iteration"])
def test_fixed_point(method):
    def point(a):
        contraction = lambda x, a: np.stack([np.cos(x[1]) * a, np.sin(x[0])])
        return optimize.fixed_point(contraction, np.ones(2), (a,), 1e-12, method=method)

    check_derivatives(point, (F(0.6),), rtol=1e-5)
    assert optimize.fixed_point(np.cos, 1.0) == so.fixed_point(np.cos, 1.0)


def test_roots_without_a_derivative():
    twice = lambda x, a: np.stack([x[0] + x[1] - a, x[0] + x[1] - a])
    with pytest.raises(ft.errors.SingularError, match="Jacobian"):
        ft.grad(lambda a: optimize.root(twice, np.ones(2), (a,), method="lm").x[0])(1.0)
    with pytest.raises(ft.errors.SingularError, match="derivative of the function"):
        ft.grad(lambda a: optimize.newton(lambda x: x**3 + 0 * a, 0.5, tol=1e-3))(1.0)


def test_functions_that_are_not_traced_stay_scipys():
    def f(x):
        out = ft.grad(lambda a: a * optimize.brentq(lambda y: y**2 - 4.0, 0, 9))(x)
        return out + optimize.minimize(lambda v: np.sum((v - 1) ** 2), [0.0]).x[0]

    np.testing.assert_allclose(f(1.0), 3.0, rtol=1e-7)
    black_box = lambda x: float(x[0] - 2) ** 2  # it ends derivatives: SciPy uses differences
    shifted = lambda a: a * optimize.minimize(black_box, [0.0], method="BFGS").x[0]
    np.testing.assert_allclose(ft.grad(shifted)(1.0), 2.0, rtol=1e-5)


# Minima.


def bowl(x, a, b):
    return np.cosh(x[0] - a) + (x[1] - b * x[0]) ** 2 + x[1] ** 4 / 4


POINT = (F(0.6), F(0.5))
METHODS = [
    "Nelder-Mead",
    "Powell",
    "CG",
    "BFGS",
    "Newton-CG",
    "L-BFGS-B",
    "TNC",
    "COBYLA",
    "COBYQA",
]
METHODS += ["SLSQP", "trust-constr", "trust-ncg", "trust-exact", "trust-krylov", "dogleg"]


def lowest(a, b):
    return so.minimize(bowl, np.zeros(2), (a, b), tol=1e-14, method="Nelder-Mead").x


@pytest.mark.parametrize("method", METHODS)
def test_minima_by_every_method(method):
    start = np.array([0.5, 0.2])
    find = lambda a, b: optimize.minimize(bowl, start, (a, b), method=method)
    jacobian = ft.jacfwd(lambda a: find(a, 0.5).x)(0.6)
    expected = central_difference_jvp(lambda a: lowest(a, 0.5), (F(0.6),), (F(1.0),), 0.1)
    np.testing.assert_allclose(jacobian, expected, atol=1e-5)
    # Of the value, the derivative is that of the function alone.
    x = find(*POINT).x
    slope = ft.grad(lambda a: find(a, 0.5).fun)(0.6)
    np.testing.assert_allclose(slope, ft.grad(bowl, 1)(x, *POINT), atol=2e-3)


def test_derivatives_of_minima():
    find = lambda a, b: optimize.minimize(bowl, np.zeros(2), (a, b), tol=1e-12).x
    check_derivatives(find, POINT, rtol=1e-5, atol=1e-6, step=1e-2)
    check_lanes(find, POINT, rtol=1e-6)


def test_a_minimum_in_a_tree_and_with_derivatives_from_the_user():
    def find(a):
        loss = lambda p: (p["x"] - a) ** 2 + np.sum((p["y"] - a**2) ** 2)
        return optimize.minimize(loss, {"x": 0.0, "y": np.zeros(2)}).x

    jacobian = ft.jacfwd(find)(1.5)
    np.testing.assert_allclose(jacobian["x"], 1.0, rtol=1e-9)
    np.testing.assert_allclose(jacobian["y"], [3.0, 3.0], rtol=1e-9)
    square = lambda x, a: np.sum((x - a**2) ** 2)
    slope = lambda x, a: 2 * (x - a**2)
    both = lambda x, a: (square(x, a), slope(x, a))
    for function, jac in ((square, slope), (both, True), (square, "3-point")):
        find = lambda a: optimize.minimize(function, [0.0], (a,), jac=jac).x[0]  # noqa: B023
        np.testing.assert_allclose(ft.grad(find)(1.5), 3.0, rtol=1e-6)
    curvature = {"hess": lambda x, a: 2 * np.eye(1), "jac": slope}
    find = lambda a: optimize.minimize(square, [0.0], (a,), "trust-exact", **curvature).x[0]
    np.testing.assert_allclose(ft.grad(find)(1.5), 3.0, rtol=1e-9)


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "Nelder-Mead", "trust-constr"])
def test_bounds_hold_what_they_hold(method):
    def find(a, low):
        function = lambda x: (x[0] - a) ** 2 + (x[1] - a * x[0]) ** 2 + x[0] * x[1]
        bounds = [(low, None), (None, 5.0)]
        return optimize.minimize(function, np.ones(2), bounds=bounds, method=method).x

    # x[0] is at its bound, and x[1] minimizes the rest: x[1] = (a - 1/2) x[0].
    by_a, by_low = ft.jacrev(find, (0, 1))(0.3, 0.8)
    np.testing.assert_allclose(by_a, [0.0, 0.8], atol=1e-9)
    np.testing.assert_allclose(by_low, [1.0, -0.2], atol=1e-9)
    np.testing.assert_allclose(ft.hessian(lambda low: find(0.3, low)[1] ** 2)(0.8), 0.08, atol=1e-9)


@pytest.mark.parametrize("method", ["SLSQP", "COBYLA", "trust-constr"])
def test_constraints(method):
    def nearest(r, m):  # the point of a disk that is nearest to (2, m)
        inside = {"type": "ineq", "fun": lambda x: r - x @ x}
        far = {"type": "ineq", "fun": lambda x, k: x[0] + k, "args": (5.0,)}
        distance = lambda x: (x[0] - 2) ** 2 + (x[1] - m) ** 2
        given = [inside, far]
        return optimize.minimize(distance, [0.1, 0.1], method=method, constraints=given).x

    def closed(r, m):
        return np.sqrt(r / (4 + m * m)) * np.stack([2.0, m])

    for k in (0, 1):
        expected = ft.jacfwd(closed, k)(1.0, 1.0)
        np.testing.assert_allclose(ft.jacfwd(nearest, k)(1.0, 1.0), expected, atol=1e-7)
    expected = ft.hessian(lambda r: closed(r, 1.0)[0])(1.0)
    np.testing.assert_allclose(ft.hessian(lambda r: nearest(r, 1.0)[0])(1.0), expected, atol=1e-7)


def test_constraints_as_objects_and_equations():
    def find(s):
        line = so.LinearConstraint([[1.0, 1.0]], [2.0], [2.0])
        circle = so.NonlinearConstraint(lambda x: x @ x, -np.inf, 100.0)
        loss = lambda x: x[0] ** 2 + s * x[1] ** 2
        return optimize.minimize(loss, [1.0, 0.5], method="SLSQP", constraints=[line, circle]).x

    # x[0] = s x[1] on x[0] + x[1] = 2
    np.testing.assert_allclose(ft.jacfwd(find)(1.0), [0.5, -0.5], atol=1e-9)


@pytest.mark.parametrize("method", ["brent", "golden", "bounded"])
def test_minimize_scalar(method):
    bounds = (0.0, 9.0) if method == "bounded" else None
    find = lambda a: optimize.minimize_scalar(
        lambda x, a: x**4 / 4 - a * x, bounds=bounds, args=(a,), method=method
    )
    np.testing.assert_allclose(ft.grad(lambda a: find(a).x)(8.0), 1 / 12, rtol=1e-9)
    np.testing.assert_allclose(ft.grad(lambda a: find(a).fun)(8.0), -2.0, rtol=1e-4)
    np.testing.assert_allclose(
        ft.hessian(lambda a: find(a).x)(8.0), -(8 ** (-5 / 3)) * 2 / 9, rtol=1e-7
    )


def test_a_bound_of_a_number():
    find = lambda a: (
        optimize.minimize_scalar(lambda x: (x - a) ** 2, bounds=(0.0, a / 2), method="bounded").x
    )
    np.testing.assert_allclose(ft.grad(find)(1.0), 0.5)
    assert optimize.fminbound(np.cos, 0, 4) == so.fminbound(np.cos, 0, 4)
    least = lambda a: optimize.fminbound(lambda x: (x - a) ** 2, 0.0, 5.0, full_output=True)
    np.testing.assert_allclose(ft.grad(lambda a: least(a)[0])(1.0), 1.0)
    np.testing.assert_allclose(ft.grad(lambda a: least(a)[1])(1.0), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["brent", "golden"])
def test_line_searches(name):
    search = getattr(optimize, name)
    quartic = lambda x, a: x**4 / 4 - a * x
    np.testing.assert_allclose(ft.grad(lambda a: search(quartic, (a,)))(8.0), 1 / 12, rtol=1e-9)
    full = lambda a: search(quartic, (a,), full_output=True)[:2]
    np.testing.assert_allclose(ft.jvp(full, (8.0,), (1.0,))[1], [1 / 12, -2.0], rtol=1e-4)
    assert search(np.cosh) == getattr(so, name)(np.cosh)


def quartic(x, c):
    return np.sum((x - c**2) ** 2) + 0.1 * np.sum(x**4)


OLDER = {
    "fmin": {"disp": 0},
    "fmin_powell": {"disp": 0},
    "fmin_bfgs": {"disp": 0},
    "fmin_cg": {"disp": 0},
    "fmin_ncg": {"fprime": lambda x, c: 2 * (x - c**2) + 0.4 * x**3, "disp": 0},
    "fmin_slsqp": {"disp": 0},
    "fmin_l_bfgs_b": {"approx_grad": True},
    "fmin_tnc": {"approx_grad": True, "disp": 0},
    "fmin_cobyla": {"cons": [lambda x, c: 10 - x[0]], "rhoend": 1e-8},
}


@pytest.mark.parametrize("name", OLDER)
def test_functions_from_before_minimize(name):
    def find(c):
        out = getattr(optimize, name)(quartic, x0=[0.5, 0.6], args=(c,), **OLDER[name])
        return out[0] if isinstance(out, tuple) else out

    x = so.brentq(lambda x: 2 * (x - 1.21) + 0.4 * x**3, 0, 2)
    np.testing.assert_allclose(find(1.1), x, atol=1e-3)
    expected = 4.4 / (2 + 1.2 * x**2)
    np.testing.assert_allclose(ft.jacfwd(find)(1.1), expected, rtol=1e-7)
    np.testing.assert_allclose(ft.jacrev(find)(1.1), expected, rtol=1e-7)


def test_limits_of_functions_from_before_minimize():
    square = lambda x, a: np.sum((x - a) ** 2)
    both = lambda x, a: (square(x, a), 2 * (x - a))
    out = lambda a: optimize.fmin_l_bfgs_b(both, [0.5], args=(a,), bounds=[(0.0, a / 2)])
    np.testing.assert_allclose(ft.jvp(lambda a: out(a)[0], (1.0,), (1.0,))[1], [0.5])
    np.testing.assert_allclose(ft.grad(lambda a: out(a)[1])(1.0), 0.5, rtol=1e-6)
    on_line = lambda a: optimize.fmin_slsqp(
        square, [0.5, 0.5], eqcons=[lambda x, a: x[0] + x[1] - a**2], args=(a,), disp=0
    )
    np.testing.assert_allclose(ft.jacfwd(on_line)(1.0), [1.0, 1.0], atol=1e-7)
    full = lambda a: optimize.fmin_bfgs(square, [0.5], args=(a,), full_output=True, disp=0)[:2]
    np.testing.assert_allclose(ft.jvp(full, (1.0,), (1.0,))[1][0], [1.0])


@pytest.mark.parametrize("name", ["differential_evolution", "dual_annealing", "shgo", "direct"])
def test_global_minima(name):
    options = {"shgo": {}, "direct": {}}.get(name, {"rng": 1, "maxiter": 60})
    find = lambda c: getattr(optimize, name)(quartic, [(0.0, 3.0)] * 2, args=(c,), **options).x
    x = so.brentq(lambda x: 2 * (x - 1.21) + 0.4 * x**3, 0, 2)
    np.testing.assert_allclose(ft.jacfwd(find)(1.1), 4.4 / (2 + 1.2 * x**2), rtol=1e-6)


def test_basinhopping():
    find = lambda c: optimize.basinhopping(lambda x: quartic(x, c), np.zeros(2), niter=2, rng=0)
    x = so.brentq(lambda x: 2 * (x - 1.21) + 0.4 * x**3, 0, 2)
    np.testing.assert_allclose(
        ft.jacfwd(lambda c: find(c).x)(1.1), 4.4 / (2 + 1.2 * x**2), rtol=1e-6
    )


def test_a_flat_minimum_has_no_derivative():
    with pytest.raises(ft.errors.SingularError, match="second derivatives"):
        ft.grad(lambda a: optimize.minimize(lambda x: (x[0] - a) ** 4, [0.0]).x[0])(1.0)


def test_a_start_that_is_traced_does_not_matter():
    find = lambda x, a: optimize.minimize(lambda y: np.sum((y - a) ** 2), x).x[0]
    assert_trees_close(ft.grad(find, (0, 1))(np.zeros(2), 1.0), (np.zeros(2), F(1.0)))


# Least squares.

X = np.linspace(0, 3, 9)
Y = 2 * np.exp(-0.7 * X) + 0.1 * np.random.default_rng(0).normal(size=9)
SHARP = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-14}


def decay(x, a, b):
    return a * np.exp(-b * x)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_least_squares_for_every_loss(loss):
    def fit(y, c):
        residuals = lambda p, c: decay(X, *p) - y * c
        found = optimize.least_squares(
            residuals, np.ones(2), loss=loss, f_scale=0.15, args=(c,), **SHARP
        )
        return found.x, found.fun, found.cost, found.jac, found.grad

    plain = so.least_squares(
        lambda p: decay(X, *p) - Y, np.ones(2), loss=loss, f_scale=0.15, **SHARP
    )
    np.testing.assert_allclose(fit(Y, F(1.0))[0], plain.x, rtol=1e-6)
    check_derivatives(fit, (Y, F(1.0)), second=loss == "linear", rtol=1e-4, atol=1e-5, step=1e-3)


def test_least_squares_with_bounds_and_in_a_tree():
    def fit(y, high):
        residuals = lambda p: decay(X, *p) - y
        return optimize.least_squares(residuals, [1.0, 0.5], bounds=([0, 0], [5, high])).x

    expected = central_difference_jvp(fit, (Y, F(0.6)), (0 * Y, F(1.0)), 1e-2)
    np.testing.assert_allclose(ft.jacfwd(fit, 1)(Y, 0.6), expected, atol=1e-4)
    tree = lambda y: optimize.least_squares(
        lambda p: decay(X, p["a"], p["b"]) - y, {"a": 1.0, "b": 1.0}
    ).x["a"]
    array = lambda y: optimize.least_squares(lambda p: decay(X, *p) - y, np.ones(2)).x[0]
    np.testing.assert_allclose(ft.grad(tree)(Y), ft.grad(array)(Y), rtol=1e-6)


def test_leastsq():
    slopes = lambda p, c: c * np.stack([np.exp(-p[1] * X), -p[0] * X * np.exp(-p[1] * X)], 1)

    def fit(y, c):
        residuals = lambda p, c: c * decay(X, *p) - y
        sharp = {"ftol": 1e-15, "xtol": 1e-15, "Dfun": slopes, "full_output": True}
        found = optimize.leastsq(residuals, [1.0, 1.0], (c,), **sharp)
        return found[0], found[1], found[2]["fvec"]

    plain = so.leastsq(lambda p: decay(X, *p) - Y, [1.0, 1.0], full_output=True)
    assert_trees_close(list(fit(Y, F(1.0))[:2]), list(plain[:2]), rtol=1e-4)
    check_derivatives(fit, (Y, F(1.0)), rtol=1e-5, atol=1e-6, step=1e-3)


@pytest.mark.parametrize("absolute", [False, True])
def test_curve_fit_with_respect_to_everything(absolute):
    def fit(x, y, sigma):
        return optimize.curve_fit(decay, x, y, (1.0, 1.0), sigma, absolute, ftol=1e-14, xtol=1e-14)

    point = (X, Y, np.linspace(0.5, 1.0, 9))
    plain = so.curve_fit(decay, X, Y, (1, 1), point[2], absolute)
    assert_trees_close(list(fit(*point)), list(plain), rtol=1e-4)
    check_derivatives(fit, point, rtol=1e-4, atol=1e-5, step=1e-3)
    check_lanes(lambda *data: fit(*data)[0], point, rtol=1e-6)


def test_curve_fit_with_its_options():
    spread = np.diag(np.linspace(0.5, 1.0, 9)) + 0.01
    for options in (
        {"sigma": spread},
        {"bounds": (0.0, [5.0, 0.6])},
        {"method": "trf", "loss": "soft_l1", "f_scale": 0.1},
        {"method": "dogbox"},
    ):
        fit = lambda y: optimize.curve_fit(decay, X, y, **options)[0]  # noqa: B023
        np.testing.assert_allclose(fit(Y), so.curve_fit(decay, X, Y, **options)[0], rtol=1e-6)
        expected = central_difference_jvp(fit, (Y,), (np.cos(X),), 1e-2)
        np.testing.assert_allclose(ft.jvp(fit, (Y,), (np.cos(X),))[1], expected, atol=2e-4)
    holes = np.where(np.arange(9) == 3, np.nan, Y)
    fit = lambda y: optimize.curve_fit(decay, X, y, nan_policy="omit")[0]
    jacobian = ft.jacfwd(fit)(holes)
    np.testing.assert_allclose(jacobian[:, 3], 0)
    assert np.isfinite(jacobian).all()
    closed_over = lambda c: optimize.curve_fit(lambda x, a, b: c * decay(x, a, b), X, Y)[0]
    a, b = closed_over(1.0)
    np.testing.assert_allclose(ft.jacfwd(closed_over)(1.0), [-a, 0], atol=1e-6)
    full = ft.jvp(
        lambda y: optimize.curve_fit(decay, X, y, full_output=True)[2]["fvec"], (Y,), (Y,)
    )
    np.testing.assert_allclose(full[0], decay(X, a, b) - Y, atol=1e-6)


RNG = np.random.default_rng(0)
MATRIX, RIGHT = RNG.normal(size=(6, 3)), RNG.normal(size=6)


def test_nonnegative_least_squares():
    found, norm = optimize.nnls(MATRIX, RIGHT)
    assert (found == 0).any() and (found > 0).any()
    assert_trees_close([found, norm], list(so.nnls(MATRIX, RIGHT)))
    check_derivatives(optimize.nnls, (MATRIX, RIGHT))
    check_lanes(optimize.nnls, (MATRIX, RIGHT))


def test_linear_least_squares():
    def bounded(a, b, high):
        found = optimize.lsq_linear(a, b, (-0.1, high), tol=1e-14)
        return found.x, found.cost, found.fun

    check_derivatives(bounded, (MATRIX, RIGHT, F(0.1)), rtol=1e-4, atol=1e-5)
    free = lambda a, b: optimize.lsq_linear(a, b).x
    check_derivatives(free, (MATRIX, RIGHT))
    check_lanes(free, (MATRIX, RIGHT))


# Linear programs and small tools.


def test_linear_programs():
    def program(c, a, b, high):
        bounds = [(0, None), (0, None), (0, high)]
        found = optimize.linprog(c, a, b, bounds=bounds)
        return found.x, found.fun, found.slack, found.ineqlin.marginals, found.lower.marginals

    c, b = np.array([-2.0, -1.0, -0.5]), np.array([4.0, 1.0])
    point = (c, np.array([[1.0, 1.0, 0.3], [1, -1, 2]]), b, F(1.0))
    check_derivatives(program, point, atol=1e-6)
    equal = lambda b: optimize.linprog([1.0, 2.0], A_eq=[[1.0, 1.0]], b_eq=np.stack([b])).x
    np.testing.assert_allclose(ft.jacfwd(equal)(3.0), [1.0, 0.0])
    with pytest.raises(ft.errors.SingularError, match=r"3 constraints are active .* 2 unknowns"):
        ft.jacfwd(lambda b: optimize.linprog([1.0, 1.0], [[-1.0, -1.0]], np.stack([-b])).x)(0.0)
    with pytest.raises(ft.errors.MissingRuleError, match="integrality"):
        ft.jacfwd(lambda c: optimize.linprog(c, [[1.0, 1.0]], [1.5], integrality=[1, 1]).x)(c[:2])


def test_assignments_are_plain():
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    total = lambda c: np.sum(c[optimize.linear_sum_assignment(c)])
    rows, columns = so.linear_sum_assignment(cost)
    chosen = np.zeros((3, 3))
    chosen[rows, columns] = 1
    np.testing.assert_array_equal(ft.grad(total)(cost), chosen)
    batch = np.stack([cost, -cost, cost.T])
    np.testing.assert_allclose(ft.vmap(total)(batch), [total(each) for each in batch])
    total = lambda c: np.sum(c[optimize.linear_sum_assignment(c, maximize=True)])
    assert total(cost) == cost[so.linear_sum_assignment(cost, True)].sum()


def test_the_rosenbrock_function_and_its_derivatives():
    x, p = np.array([0.3, -0.4, 1.2, 0.7]), np.array([1.0, -2.0, 0.5, 3.0])
    for name, args in (
        ("rosen", (x,)),
        ("rosen_der", (x,)),
        ("rosen_hess", (x,)),
        ("rosen_hess_prod", (x, p)),
    ):
        function = getattr(optimize, name)
        np.testing.assert_allclose(function(*args), getattr(so, name)(*args))
        check_derivatives(function, args)
        check_lanes(function, args)
    np.testing.assert_allclose(ft.grad(optimize.rosen)(x), optimize.rosen_der(x))
    np.testing.assert_allclose(ft.hessian(optimize.rosen)(x), optimize.rosen_hess(x))


def test_finite_differences():
    x = np.array([0.3, 0.8])
    cube = lambda x, a: a * np.sum(x**3)
    assert_trees_close(
        optimize.approx_fprime(x, cube, 1e-6, 2.0), so.approx_fprime(x, cube, 1e-6, 2.0)
    )
    by_a = ft.jacfwd(lambda a: optimize.approx_fprime(x, cube, 1e-6, a))(2.0)
    np.testing.assert_allclose(by_a, 3 * x**2)
    vector = lambda x: np.stack([x[0] * x[1], x[0] ** 2])
    curved = ft.jacfwd(lambda x: optimize.approx_fprime(x, vector))(x)
    np.testing.assert_allclose(curved, ft.jacfwd(ft.jacfwd(vector))(x))
    wrong = lambda x: 3 * x**2 + 1
    error = lambda x: optimize.check_grad(lambda x: np.sum(x**3), wrong, x)
    np.testing.assert_allclose(ft.jvp(error, (x,), (x,))[0], np.sqrt(2), rtol=1e-6)
