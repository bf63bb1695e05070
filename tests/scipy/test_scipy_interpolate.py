"""functrans.scipy.interpolate: all names against SciPy, finite differences, loops over lanes, and graphs."""

import numpy as np
import pytest
import scipy.interpolate

import functrans as ft
from functrans.core.dispatch import Tracer
from functrans.scipy import interpolate
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(5)
X = np.array([0.0, 0.7, 1.5, 2.1, 3.2, 4.0, 4.6])
Y = RNG.normal(size=7)
Y2 = RNG.normal(size=(7, 2))
INSIDE = np.array([0.3, 1.17, 1.9, 3.85])
BEYOND = np.array([-0.4, 0.2, 2.5, 5.3])
MONOTONE = np.array([0.0, 0.4, 1.5, 1.9, 1.2, 1.0, 3.0])
KNOTS = np.array([0.0, 0, 0, 0, 1, 1.7, 3, 3, 3, 3])
COEFFICIENTS = RNG.normal(size=6)
POINTS = RNG.uniform(-1, 1, (12, 2))
GX, GY = np.array([0.0, 1.0, 2.2, 3.0, 4.5, 5.0]), np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 3.5])
GRID = RNG.normal(size=(6, 6))
XI = np.array([[0.3, 0.2], [2.5, 1.9], [4.4, -0.9]])


def case(call, *args):
    """A function of a module and arrays: the module is ours, or SciPy's."""
    return lambda *a: call(interpolate, *a), lambda *a: call(scipy.interpolate, *a), args


# The periodic data end as they begin.
def closed(y):
    return np.concatenate([y[:-1], y[:1]])


CASES = {
    **{
        f"CubicSpline {bc}": case(
            lambda m, x, y, t, bc=bc: m.CubicSpline(x, y, bc_type=bc)(t), X, Y, BEYOND
        )
        for bc in ("not-a-knot", "natural", "clamped")
    },
    "CubicSpline ends": case(
        lambda m, x, y, t, a, b: m.CubicSpline(x, y, bc_type=((1, a), (2, b)))(t),
        *(X, Y, INSIDE, 0.4, -0.7),
    ),
    "CubicSpline periodic": case(
        lambda m, x, y, t: m.CubicSpline(x, closed(y), bc_type="periodic")(t), X, Y, BEYOND
    ),
    "CubicSpline periodic 3": case(
        lambda m, x, y, t: m.CubicSpline(x, closed(y), bc_type="periodic")(t), X[:3], Y[:3], INSIDE
    ),
    **{
        f"CubicSpline of {n}": case(
            lambda m, x, y, t: m.CubicSpline(x, y)(t), X[:n], Y[:n], INSIDE[:2]
        )
        for n in (2, 3, 4)
    },
    "CubicSpline natural 2": case(
        lambda m, x, y, t: m.CubicSpline(x, y, bc_type="natural")(t), X[:2], Y[:2], INSIDE[:2]
    ),
    "CubicSpline axis": case(
        lambda m, y, t: m.CubicSpline(X, y, axis=2)(t),
        np.stack([Y2.T, Y2.T + 1]),
        INSIDE.reshape(2, 2),
    ),
    **{
        f"CubicSpline nu {nu}": case(
            lambda m, x, y, t, nu=nu: m.CubicSpline(x, y)(t, nu), X, Y2, BEYOND
        )
        for nu in (1, 2, 3)
    },
    "CubicSpline derivative": case(
        lambda m, x, y, t: m.CubicSpline(x, y).derivative()(t), X, Y, BEYOND
    ),
    "CubicSpline antiderivative": case(
        lambda m, x, y, t: m.CubicSpline(x, y).antiderivative(2)(t), X, Y, BEYOND
    ),
    "CubicSpline integrate": case(
        lambda m, x, y, a, b: m.CubicSpline(x, y).integrate(a, b), X, Y2, 3.3, -0.2
    ),
    "CubicSpline integrate periodic": case(
        lambda m, y, a, b: m.CubicSpline(X, closed(y), bc_type="periodic").integrate(a, b),
        *(Y, -5.0, 12.3),
    ),
    "CubicSpline inside": case(
        lambda m, x, y, t: m.CubicSpline(x, y, extrapolate=False)(t), X, Y, INSIDE
    ),
    "PchipInterpolator": case(lambda m, x, y, t: m.PchipInterpolator(x, y)(t), X, MONOTONE, BEYOND),
    "PchipInterpolator 2": case(
        lambda m, x, y, t: m.PchipInterpolator(x, y)(t), X[:2], Y[:2], INSIDE[:2]
    ),
    "pchip_interpolate": case(lambda m, x, y, t: m.pchip_interpolate(x, y, t, 1), X, Y2, INSIDE),
    **{
        f"Akima1DInterpolator {method}": case(
            lambda m, x, y, t, o=method: m.Akima1DInterpolator(x, y, method=o)(t), X, Y, INSIDE
        )
        for method in ("akima", "makima")
    },
    "CubicHermiteSpline": case(
        lambda m, x, y, s, t: m.CubicHermiteSpline(x, y, s)(t), X, Y2, Y2 * 0.3, BEYOND
    ),
    "PPoly": case(lambda m, c, x, t: m.PPoly(c, x)(t), RNG.normal(size=(4, 6)), X, BEYOND),
    "PPoly descending": case(
        lambda m, c, x, t: m.PPoly(c, x)(t), RNG.normal(size=(3, 6)), X[::-1].copy(), INSIDE
    ),
    "PPoly axis": case(
        lambda m, c, t: m.PPoly(c, X, axis=1)(t), RNG.normal(size=(2, 3, 6)), INSIDE
    ),
    "PPoly periodic": case(
        lambda m, c, x, t: m.PPoly(c, x, extrapolate="periodic")(1.1 * t),
        RNG.normal(size=(2, 6)),
        X,
        BEYOND,
    ),
    "BPoly": case(lambda m, c, x, t: m.BPoly(c, x)(t), RNG.normal(size=(4, 6)), X, BEYOND),
    "BPoly nu": case(lambda m, c, x, t: m.BPoly(c, x)(t, 2), RNG.normal(size=(4, 6)), X, INSIDE),
    "BPoly derivative": case(
        lambda m, c, x, t: m.BPoly(c, x).derivative()(t), RNG.normal(size=(3, 6)), X, INSIDE
    ),
    "BPoly antiderivative": case(
        lambda m, c, x, t: m.BPoly(c, x).antiderivative()(t), RNG.normal(size=(3, 6)), X, INSIDE
    ),
    "BPoly integrate": case(
        lambda m, c, x, b: m.BPoly(c, x).integrate(0.3, b), RNG.normal(size=(3, 6)), X, 2.9
    ),
    "BSpline": case(
        lambda m, t, c, x: m.BSpline(t, c, 3)(x), np.arange(10.0) ** 1.2, COEFFICIENTS, INSIDE + 4
    ),
    "BSpline ends": case(lambda m, c, x: m.BSpline(KNOTS, c, 3)(x), COEFFICIENTS, BEYOND),
    "BSpline nu": case(
        lambda m, t, c, x: m.BSpline(t, c, 3)(x, 2),
        np.arange(10.0) ** 1.2,
        COEFFICIENTS,
        INSIDE + 4,
    ),
    "BSpline 0": case(lambda m, c, x: m.BSpline(np.arange(7.0), c, 0)(x), COEFFICIENTS, INSIDE),
    "BSpline columns": case(
        lambda m, c, x: m.BSpline(KNOTS, c, 3, axis=1)(x), RNG.normal(size=(2, 6)), INSIDE[:3]
    ),
    "BSpline derivative": case(
        lambda m, t, c, x: m.BSpline(t, c, 3).derivative()(x),
        *(np.arange(10.0) ** 1.2, COEFFICIENTS, INSIDE + 4),
    ),
    "BSpline antiderivative": case(
        lambda m, t, c, x: m.BSpline(t, c, 3).antiderivative()(x),
        *(np.arange(10.0) ** 1.2, COEFFICIENTS, INSIDE + 4),
    ),
    "BSpline integrate": case(
        lambda m, c, a, b: m.BSpline(KNOTS, c, 3).integrate(a, b), COEFFICIENTS, 0.3, 2.4
    ),
    "BSpline integrate beyond": case(
        lambda m, c, a, b: m.BSpline(KNOTS, c, 3).integrate(a, b, False), COEFFICIENTS, -0.3, 2.4
    ),
    **{
        f"make_interp_spline {k}": case(
            lambda m, x, y, t, k=k: m.make_interp_spline(x, y, k)(t), X, Y, INSIDE
        )
        for k in (1, 2, 3, 5)
    },
    "make_interp_spline natural": case(
        lambda m, x, y, t: m.make_interp_spline(x, y, bc_type="natural")(t), X, Y2, INSIDE
    ),
    "make_interp_spline ends": case(
        lambda m, x, y, a, t: m.make_interp_spline(x, y, bc_type=([(1, a)], [(2, 0.3)]))(t),
        *(X, Y, 0.7, INSIDE),
    ),
    "make_interp_spline periodic": case(
        lambda m, x, y, t: m.make_interp_spline(x, closed(y), bc_type="periodic")(t), X, Y, BEYOND
    ),
    "make_lsq_spline": case(
        lambda m, y, w, t: m.make_lsq_spline(X, y, [0, 0, 0, 2.2, 4.6, 4.6, 4.6], 2, w)(t),
        *(Y, 1 + Y**2, INSIDE),
    ),
    **{
        f"splev {k} {der}": case(
            lambda m, x, y, t, k=k, d=der: m.splev(t, m.splrep(x, y, k=k), d), X, Y, INSIDE
        )
        for k, der in ((3, 0), (3, 1), (2, 0), (5, 2), (1, 0))
    },
    **{
        f"splev ext {ext}": case(
            lambda m, y, t, e=ext: m.splev(t, m.splrep(X, y), ext=e), Y, BEYOND
        )
        for ext in (0, 1, 3)
    },
    "splrep knots": case(lambda m, y, w: m.splrep(X, y, w=w, t=[1.6, 2.9], k=2)[1], Y, 1 + Y**2),
    "splint": case(lambda m, x, y, a, b: m.splint(a, b, m.splrep(x, y)), X, Y, 0.2, 5.3),
    "splder": case(lambda m, x, y, t: m.splev(t, m.splder(m.splrep(x, y), 2)), X, Y, INSIDE),
    "splantider": case(lambda m, x, y, t: m.splev(t, m.splantider(m.splrep(x, y))), X, Y, INSIDE),
    "UnivariateSpline": case(lambda m, x, y, t: m.UnivariateSpline(x, y, s=0)(t), X, Y, BEYOND),
    "InterpolatedUnivariateSpline": case(
        lambda m, x, y, t: m.InterpolatedUnivariateSpline(x, y, k=2)(t, 1), X, Y, BEYOND
    ),
    "UnivariateSpline parts": case(
        lambda m, y, t, b: (
            m.UnivariateSpline(X, y, s=0).derivative()(t),
            m.UnivariateSpline(X, y, s=0).antiderivative()(t),
            m.UnivariateSpline(X, y, s=0).integral(0.3, b),
            m.UnivariateSpline(X, y, s=0).derivatives(b),
            m.UnivariateSpline(X, y, s=0).get_coeffs(),
        ),
        *(Y, INSIDE, 2.6),
    ),
    "RectBivariateSpline": case(
        lambda m, x, z, s, t: m.RectBivariateSpline(x, GY, z)(s, t), GX, GRID, INSIDE, INSIDE - 1
    ),
    "RectBivariateSpline ev": case(
        lambda m, z, s, t: m.RectBivariateSpline(GX, GY, z, kx=2).ev(s, t, dx=1),
        *(GRID, INSIDE, INSIDE - 1),
    ),
    **{
        f"interp1d {kind}": case(lambda m, x, y, t, k=kind: m.interp1d(x, y, k)(t), X, Y, INSIDE)
        for kind in ("linear", "slinear", "quadratic", "cubic", 5)
    },
    **{
        f"interp1d {kind}": case(lambda m, y, t, k=kind: m.interp1d(X, y, k)(t), Y, INSIDE)
        for kind in ("nearest", "nearest-up", "zero", "previous", "next")
    },
    "interp1d axis": case(lambda m, y, t: m.interp1d(X, y, axis=0)(t), Y2, INSIDE.reshape(2, 2)),
    "interp1d last": case(lambda m, y, t: m.interp1d(X, y)(t), Y2.T, INSIDE),
    "interp1d fill": case(
        lambda m, y, t: m.interp1d(X, y, bounds_error=False, fill_value=(7.0, 8.0))(t), Y, BEYOND
    ),
    "interp1d extrapolate": case(
        lambda m, x, y, t: m.interp1d(x, y, fill_value="extrapolate")(t), X, Y, BEYOND
    ),
    "interp1d cubic fill": case(
        lambda m, y, t: m.interp1d(X, y, "cubic", bounds_error=False, fill_value=1.5)(t),
        Y2.T,
        BEYOND,
    ),
    "interp1d unsorted": case(
        lambda m, x, y, t: m.interp1d(x, y)(t), X[[2, 0, 1, 5, 3, 4, 6]], Y, INSIDE
    ),
    "RegularGridInterpolator": case(
        lambda m, x, y, z, p: m.RegularGridInterpolator((x, y), z)(p), GX, GY, GRID, XI
    ),
    "RegularGridInterpolator nearest": case(
        lambda m, z, p: m.RegularGridInterpolator((GX, GY), z, "nearest")(p), GRID, XI
    ),
    "RegularGridInterpolator fill": case(
        lambda m, z, p: m.RegularGridInterpolator((GX, GY), z, bounds_error=False, fill_value=2.5)(
            p
        ),
        *(GRID, XI * 1.5),
    ),
    "RegularGridInterpolator extrapolate": case(
        lambda m, z, p: m.RegularGridInterpolator(
            (GX[::-1], GY), z, bounds_error=False, fill_value=None
        )(p),
        *(RNG.normal(size=(6, 6, 2)), XI * 1.5),
    ),
    "interpn": case(lambda m, z, p: m.interpn((GX, GY), z, p), GRID, XI),
    "interpn tuple": case(
        lambda m, z, s, t: m.interpn((GX, GY), z, (s, t)), GRID, INSIDE, INSIDE[:, None] - 1
    ),
    "barycentric_interpolate": case(
        lambda m, x, y, t: m.barycentric_interpolate(x, y, t), X, Y2, np.append(INSIDE, X[2])
    ),
    "krogh_interpolate": case(
        lambda m, x, y, t: m.krogh_interpolate(x, y, t), X[:5], Y[:5], INSIDE
    ),
    "lagrange": case(lambda m, x, y, t: m.lagrange(x, y)(t), X[:4], Y[:4], INSIDE),
    "BarycentricInterpolator": case(
        lambda m, x, y, t: m.BarycentricInterpolator(x, y).derivative(t), X[:5], Y[:5], INSIDE
    ),
    "KroghInterpolator": case(
        lambda m, x, y, t: m.KroghInterpolator(x, y).derivatives(t, 3), X[:5], Y[:5], INSIDE
    ),
    "LinearNDInterpolator": case(
        lambda m, p, v, t: m.LinearNDInterpolator(p, v)(t), POINTS, RNG.normal(size=12), XI / 9
    ),
    "griddata": case(
        lambda m, p, v, s, t: m.griddata(p, v, (s, t), fill_value=0.5),
        *(POINTS, RNG.normal(size=(12, 2)), INSIDE / 4, INSIDE[::-1] / 9),
    ),
    "griddata nearest": case(
        lambda m, v: m.griddata(POINTS, v, XI / 9, "nearest"), RNG.normal(size=12)
    ),
    "griddata line": case(lambda m, x, v, t: m.griddata(x, v, t), X[::-1].copy(), Y, INSIDE),
    "NearestNDInterpolator": case(
        lambda m, v: m.NearestNDInterpolator(POINTS, v)(XI / 9), RNG.normal(size=(12, 2))
    ),
    **{
        f"RBFInterpolator {kernel}": case(
            lambda m, p, v, t, s, e, k=kernel: m.RBFInterpolator(
                p, v, smoothing=s, kernel=k, epsilon=e
            )(t),
            *(POINTS[:7], RNG.normal(size=7), XI / 9, 0.1, 1.3),
        )
        for kernel in (
            *("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric"),
            *("inverse_multiquadric", "inverse_quadratic", "gaussian"),
        )
    },
    "RBFInterpolator degree": case(
        lambda m, p, v, t: m.RBFInterpolator(p, v, degree=2)(t),
        *(POINTS, RNG.normal(size=(12, 2)), XI / 9),
    ),
}
NEEDS_VALUES = ("LinearND", "NearestND", "griddata", "PPoly descending", "extrapolate", "parts")
for_each = pytest.mark.parametrize("function,reference,args", CASES.values(), ids=CASES)


@for_each
def test_values_are_those_of_scipy(function, reference, args):
    expected = reference(*args)
    assert_trees_close(function(*args), expected, 1e-13, 1e-13)
    traced = ft.jvp(function, tuple(args), tuple(np.zeros_like(arg) for arg in args))[0]
    assert_trees_close(traced, expected, 1e-9, 1e-10, dtypes=True)
    if isinstance(expected, np.ndarray):
        assert isinstance(traced, np.ndarray)


@for_each
def test_derivatives(function, reference, args):
    check_derivatives(function, tuple(args), rtol=3e-6, atol=1e-7, step=2e-4)


@for_each
def test_lanes(function, reference, args):
    check_lanes(function, tuple(args), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in CASES if not any(e in name for e in NEEDS_VALUES)]
)
def test_graphs(name):
    function, _, args = CASES[name]
    as_numbers = lambda out: tuple(map(np.asarray, out)) if isinstance(out, tuple) else out
    check_staging(lambda *args: as_numbers(function(*args)), tuple(map(np.asarray, args)))


def test_every_name_has_a_case():
    assert set(interpolate.__all__) == {name.split()[0] for name in CASES} | {"splrep"}


# The methods of SciPy's own objects, for traced points.

OBJECTS = {
    "CubicSpline": (scipy.interpolate.CubicSpline(X, Y2), "__call__", (BEYOND,)),
    "CubicSpline nu": (scipy.interpolate.CubicSpline(X, Y), "__call__", (BEYOND, 1)),
    "CubicSpline integrate": (scipy.interpolate.CubicSpline(X, Y), "integrate", (0.3, 4.1)),
    "CubicSpline solve": (scipy.interpolate.CubicSpline(X, X**3 + X), "solve", (2.0,)),
    "derivative": (scipy.interpolate.CubicSpline(X, Y).derivative(), "__call__", (BEYOND,)),
    "PchipInterpolator": (scipy.interpolate.PchipInterpolator(X, Y), "__call__", (BEYOND,)),
    "Akima1DInterpolator": (scipy.interpolate.Akima1DInterpolator(X, Y), "__call__", (INSIDE,)),
    "BPoly": (scipy.interpolate.BPoly(Y[:6].reshape(2, 3), X[:4]), "__call__", (INSIDE[:3],)),
    "BSpline": (scipy.interpolate.make_interp_spline(X, Y2), "__call__", (BEYOND,)),
    "BSpline integrate": (scipy.interpolate.make_interp_spline(X, Y2), "integrate", (0.2, 1.7)),
    "UnivariateSpline": (scipy.interpolate.UnivariateSpline(X, Y, s=1.0), "__call__", (BEYOND,)),
    "UnivariateSpline const": (
        scipy.interpolate.UnivariateSpline(X, Y, s=0, ext=3),
        *("__call__", (BEYOND,)),
    ),
    "UnivariateSpline integral": (
        scipy.interpolate.UnivariateSpline(X, Y, s=0),
        *("integral", (0.2, 1.7)),
    ),
    "RectBivariateSpline": (
        scipy.interpolate.RectBivariateSpline(GX, GY, GRID),
        *("__call__", (INSIDE, INSIDE - 1)),
    ),
    "RectBivariateSpline ev": (
        scipy.interpolate.RectBivariateSpline(GX, GY, GRID),
        *("ev", (BEYOND, BEYOND)),
    ),
    **{
        f"interp1d {kind}": (scipy.interpolate.interp1d(X, Y2.T, kind), "__call__", (INSIDE,))
        for kind in ("linear", "nearest", "nearest-up", "zero", "previous", "next", "cubic", 2)
    },
    "interp1d axis": (
        scipy.interpolate.interp1d(X, Y2, "cubic", 0, fill_value="extrapolate"),
        *("__call__", (BEYOND,)),
    ),
    "interp1d fill": (
        scipy.interpolate.interp1d(X, Y2, axis=0, bounds_error=False, fill_value=(1.0, 2.0)),
        *("__call__", (BEYOND,)),
    ),
    "RegularGridInterpolator": (
        scipy.interpolate.RegularGridInterpolator((GX, GY), GRID),
        *("__call__", (XI,)),
    ),
    "BarycentricInterpolator": (
        scipy.interpolate.BarycentricInterpolator(X, Y2),
        *("__call__", (INSIDE,)),
    ),
    "BarycentricInterpolator derivative": (
        scipy.interpolate.BarycentricInterpolator(X, Y2.T, 1),
        *("derivative", (INSIDE,)),
    ),
    "KroghInterpolator": (
        scipy.interpolate.KroghInterpolator(np.array([0.0, 0.0, 1.0, 2.0]), Y2[:4]),
        *("__call__", (INSIDE,)),
    ),
    "KroghInterpolator derivative": (
        scipy.interpolate.KroghInterpolator(X[:4], Y2[:4]),
        *("derivative", (INSIDE,)),
    ),
    "LinearNDInterpolator": (
        scipy.interpolate.LinearNDInterpolator(POINTS, POINTS**2, rescale=True),
        *("__call__", (XI / 9,)),
    ),
    "RBFInterpolator": (
        scipy.interpolate.RBFInterpolator(POINTS, POINTS**2),
        "__call__",
        (XI / 9,),
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_methods_of_scipys_objects(name):
    made, method, args = OBJECTS[name]
    entry = interpolate.METHODS[type(made), method]
    floats = tuple(arg for arg in args if not isinstance(arg, int))
    whole = tuple(arg for arg in args if isinstance(arg, int))
    traced = lambda *a: entry(made, *a, *whole)
    expected = getattr(made, method)(*args)
    found, tangent = ft.jvp(traced, floats, tuple(np.ones_like(arg) for arg in floats))
    assert_trees_close(found, expected, 1e-9, 1e-10)
    plain = lambda *a: getattr(made, method)(*a, *whole)
    step = central_difference_jvp(plain, floats, tuple(np.ones_like(arg) for arg in floats))
    assert_trees_close(tangent, step, 1e-6, 1e-7)
    check_derivatives(traced, floats, atol=1e-7)
    check_lanes(traced, floats)


def test_splines_of_high_degree_on_grids():
    f = lambda m, z, p, **o: m.RegularGridInterpolator((GX, GY), z, "cubic")(p, **o)
    found = ft.jvp(lambda z: f(interpolate, z, XI), (GRID,), (GRID,))[0]
    assert_trees_close(found, f(scipy.interpolate, GRID, XI), 1e-5, 1e-5)
    tangent = ft.jvp(lambda z, p: f(interpolate, z, p), (GRID, XI), (GRID, XI))[1]
    step = central_difference_jvp(lambda z, p: f(scipy.interpolate, z, p), (GRID, XI), (GRID, XI))
    assert_trees_close(tangent, step, 1e-3, 1e-3)  # SciPy solves for coefficients to about 1e-6
    one = ft.jvp(lambda z: f(interpolate, z, XI, nu=(1, 0)), (GRID,), (GRID,))[0]
    slopes = ft.jacfwd(lambda p: f(interpolate, ft.numpy.array(GRID) * 1.0 + 0 * p[0, 0], p))(XI)
    assert_trees_close(one, np.array([slopes[k, k, 0] for k in range(3)]), 1e-6, 1e-7)


# Objects.


def test_objects_pass_for_scipys():
    seen = []

    def f(y):
        spline = interpolate.CubicSpline(X, y)
        assert isinstance(spline, scipy.interpolate.CubicSpline)
        assert (
            isinstance(spline, scipy.interpolate.PPoly) and type(spline) is interpolate.CubicSpline
        )
        assert isinstance(spline.c, Tracer) and spline.c.shape == (4, 6) and spline.axis == 0
        assert isinstance(interpolate.make_interp_spline(X, y), scipy.interpolate.BSpline)
        seen.append(1)
        return spline(1.0)

    ft.grad(f)(Y)
    assert seen
    plain = interpolate.CubicSpline(X, Y)
    assert type(plain) is scipy.interpolate.CubicSpline
    assert type(interpolate.splrep(X, Y)) is tuple


def test_roots_of_splines():
    def crossing(y, level):
        return interpolate.CubicSpline(X, y).solve(level, extrapolate=False)

    plain = lambda y, level: scipy.interpolate.CubicSpline(X, y).solve(level, extrapolate=False)
    args = (X**2, 5.0)
    check_derivatives(crossing, args)
    assert_trees_close(ft.jvp(crossing, args, args)[0], plain(*args), 1e-10)
    step = central_difference_jvp(plain, args, (np.sin(X), 1.0))
    assert_trees_close(ft.jvp(crossing, args, (np.sin(X), 1.0))[1], step, 1e-6)
    assert ft.grad(lambda y: np.sum(interpolate.CubicSpline(X, y).roots()))(
        np.sin(2 * X)
    ).shape == (7,)


def test_outside_is_nan_and_nan_stays_nan():
    points = np.array([-1.0, 1.0, np.nan, 9.0])
    for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        make = lambda y, kind=kind: getattr(interpolate, kind)(X, y, extrapolate=False)(points)
        out, tangent = ft.jvp(make, (Y,), (Y,))
        assert np.isnan(out).tolist() == [True, False, True, True]
        assert np.isfinite(tangent[1])
    out = ft.jvp(lambda y: interpolate.CubicSpline(X, y)(np.nan, 4), (Y,), (Y,))[0]
    assert np.isnan(out)


def test_errors_are_scipys():
    with pytest.raises(ValueError, match="increasing"):
        ft.grad(lambda y: interpolate.CubicSpline(X[::-1], y)(1.0))(Y)
    with pytest.raises(ValueError, match="above the interpolation range"):
        ft.grad(lambda y: interpolate.interp1d(X, y)(9.0))(Y)
    with pytest.raises(ValueError, match="below the interpolation range"):
        ft.grad(
            lambda t: interpolate.METHODS[scipy.interpolate.interp1d, "__call__"](
                scipy.interpolate.interp1d(X, Y), t
            )
        )(-1.0)
    with pytest.raises(ValueError, match="out of bounds"):
        ft.grad(lambda z: interpolate.interpn((GX, GY), z, [[9.0, 0.0]])[0])(GRID)
    with pytest.raises(ft.errors.MissingRuleError, match="s=0"):
        ft.grad(lambda y: interpolate.UnivariateSpline(X, y)(1.0))(Y)
    with pytest.raises(ft.errors.MissingRuleError, match="s=0"):
        ft.grad(lambda y: interpolate.splev(1.0, interpolate.splrep(X, y, s=0.5)))(Y)
    with pytest.raises(ft.errors.MissingRuleError, match="neighbors=3"):
        ft.grad(lambda d: interpolate.RBFInterpolator(POINTS, d, neighbors=3)(XI)[0])(POINTS[:, 0])
    with pytest.raises(ft.errors.MissingRuleError, match="method='cubic'"):
        ft.grad(lambda v: interpolate.griddata(POINTS, v, XI, "cubic")[0])(POINTS[:, 0])
    with pytest.raises(ValueError, match="identical"):
        ft.grad(lambda y: interpolate.CubicSpline(X, y, bc_type="periodic")(1.0))(Y)


def test_complex_data():
    z = Y + 1j * Y[::-1]
    for f in (
        lambda m, y: m.CubicSpline(X, y)(INSIDE),
        lambda m, y: m.make_interp_spline(X, y)(INSIDE),
        lambda m, y: m.interp1d(X, y)(INSIDE),
        lambda m, y: m.barycentric_interpolate(X, y, INSIDE),
    ):
        found = ft.jvp(lambda y, f=f: f(interpolate, y), (z,), (z,))
        assert_trees_close(found[0], f(scipy.interpolate, z), 1e-10, dtypes=True)
        assert_trees_close(found[1], f(scipy.interpolate, z), 1e-10)  # it is linear


def test_entries_of_lists_may_be_traced():
    f = lambda a: interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [a, a**2, 1.0, a])([0.5, 1.5])
    check_derivatives(f, (2.0,))
    check_lanes(f, (2.0,))
    assert_trees_close(ft.jit(f)(2.0), f(2.0), 1e-12)


def test_polynomials_of_lower_degree_keep_their_derivatives():
    line = lambda y: interpolate.lagrange(X[:4], y)(2.9)
    y = 2 * X[:4]  # the leading coefficients are zero
    expected = scipy.interpolate.barycentric_interpolate(X[:4], np.eye(4), 2.9)
    assert_trees_close(ft.grad(line)(y), expected, 1e-10)
