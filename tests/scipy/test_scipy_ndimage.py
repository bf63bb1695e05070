"""functrans.scipy.ndimage, held against SciPy and against the laws."""

import itertools

import numpy as np
import pytest
import scipy.ndimage

import functrans as ft
from functrans.scipy import ndimage
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(0)
IMAGE, LINE = RNG.normal(size=(5, 4)), RNG.normal(size=7)
MODES = [
    "reflect",
    "constant",
    "nearest",
    "mirror",
    "wrap",
    "grid-mirror",
    "grid-constant",
    "grid-wrap",
]


def traced(function, *args):
    return ft.jvp(function, args, tuple(np.zeros_like(arg) for arg in args))[0]


def check(name, args, options, second=False, tolerance=1e-11):
    """Values, shapes and dtypes are SciPy's, and the derivatives are right."""
    ours = lambda *args: getattr(ndimage, name)(*args, **options)
    expected = getattr(scipy.ndimage, name)(*args, **options)
    got = traced(ours, *args)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    check_derivatives(ours, args, second=second)
    return ours


FILTERS = {
    "correlate1d": ("correlate1d", (IMAGE, RNG.normal(size=3)), [{}, {"axis": 0}, {"origin": 1}]),
    "correlate1d even": ("correlate1d", (IMAGE, RNG.normal(size=4)), [{}, {"origin": -1}]),
    "correlate1d long": ("correlate1d", (LINE, RNG.normal(size=17)), [{}]),
    "convolve1d": ("convolve1d", (IMAGE, RNG.normal(size=3)), [{}, {"axis": 0}, {"origin": -1}]),
    "convolve1d even": ("convolve1d", (IMAGE, RNG.normal(size=4)), [{}, {"origin": 1}]),
    "correlate": ("correlate", (IMAGE, RNG.normal(size=(3, 2))), [{}, {"origin": (1, -1)}]),
    "convolve": ("convolve", (IMAGE, RNG.normal(size=(2, 3))), [{}, {"origin": (0, 1)}]),
    "convolve axes": ("convolve", (IMAGE, RNG.normal(size=3)), [{"axes": (1,)}]),
    "uniform_filter1d": ("uniform_filter1d", (IMAGE,), [{"size": 3}, {"size": 4, "axis": 0}]),
    "uniform_filter": ("uniform_filter", (IMAGE,), [{}, {"size": (2, 3)}, {"size": 1}]),
    "gaussian_filter1d": (
        "gaussian_filter1d",
        (IMAGE, np.float64(1.3)),
        [{"order": order} for order in range(4)] + [{"axis": 0, "truncate": 2.0}, {"radius": 2}],
    ),
    "gaussian_filter": (
        "gaussian_filter",
        (IMAGE, np.array([1.3, 0.6])),
        [{}, {"order": (1, 2)}, {"order": 2, "truncate": 3.0}, {"radius": (1, 2)}],
    ),
    "sobel": ("sobel", (IMAGE,), [{}, {"axis": 0}]),
    "prewitt": ("prewitt", (IMAGE,), [{}, {"axis": 0}]),
    "laplace": ("laplace", (IMAGE,), [{}, {"axes": (0,)}]),
    "gaussian_laplace": ("gaussian_laplace", (IMAGE, np.float64(1.3)), [{}, {"truncate": 2.0}]),
    "gaussian_gradient_magnitude": (
        "gaussian_gradient_magnitude",
        (IMAGE, np.float64(1.3)),
        [{}, {"truncate": 2.0}],
    ),
    "maximum_filter": (
        "maximum_filter",
        (IMAGE,),
        [{"size": 3}, {"size": (2, 3), "origin": (0, 1)}, {"footprint": [[0, 1, 0], [1, 1, 0]]}],
    ),
    "minimum_filter": ("minimum_filter", (IMAGE,), [{"size": 2}, {"footprint": [[1, 0, 1]]}]),
    "median_filter": ("median_filter", (IMAGE,), [{"size": 3}, {"size": 2}, {"size": (1, 3)}]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", FILTERS)
def test_filters(case, mode):
    name, args, variants = FILTERS[case]
    for options in variants:
        check(name, args, {**options, "mode": mode, "cval": 0.7}, second=mode == "reflect")


@pytest.mark.parametrize("case", FILTERS)
def test_lanes_and_graphs_of_filters(case):
    name, args, variants = FILTERS[case]
    for options in variants:
        ours = lambda *args, o=options: getattr(ndimage, name)(*args, **o)
        check_lanes(ours, args)
        if "gaussian" in name:  # the length of the filter depends on sigma
            check_staging(lambda x, o=options: getattr(ndimage, name)(x, *args[1:], **o), args[:1])
        elif "median" not in name:
            check_staging(ours, args)


def test_modes_may_differ_by_axis_and_dtypes_stay():
    for name in ("sobel", "laplace", "uniform_filter"):
        check(name, (IMAGE,), {"mode": ["wrap", "nearest"]})
    single = IMAGE.astype(np.float32)
    for name, extra in (("sobel", ()), ("gaussian_filter", (1.0,)), ("median_filter", (3,))):
        got = traced(lambda x, n=name, e=extra: getattr(ndimage, n)(x, *e), single)
        expected = getattr(scipy.ndimage, name)(single, *extra)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    wide = traced(lambda x: ndimage.sobel(x, output=np.float64), single)
    assert wide.dtype == np.float64
    whole = RNG.integers(0, 9, size=(2, 5))
    got = ft.vmap(lambda x: ndimage.gaussian_filter1d(x, 1.0))(whole)
    expected = np.stack([scipy.ndimage.gaussian_filter1d(x, 1.0) for x in whole])
    np.testing.assert_array_equal(got, expected)


def test_the_border_value_and_lists_may_be_traced():
    border = lambda c: ndimage.correlate1d(LINE, [1.0, 2.0, 3.0], mode="constant", cval=c)
    np.testing.assert_allclose(ft.jacfwd(border)(0.7), [1, 0, 0, 0, 0, 0, 3.0])
    middle = lambda w: ndimage.convolve1d(LINE, [1.0, w, 3.0])
    np.testing.assert_allclose(ft.jacfwd(middle)(2.0), LINE)


def test_filters_refuse_what_scipy_refuses():
    with pytest.raises(ft.errors.MissingRuleError, match="output="):
        ft.grad(lambda x: np.sum(ndimage.sobel(x, output=np.zeros((5, 4)))))(IMAGE)
    for call in (
        lambda x: ndimage.sobel(x, mode="nothing"),
        lambda x: ndimage.correlate(x, np.ones(3)),
        lambda x: ndimage.correlate1d(x, np.ones(3), origin=2),
        lambda x: ndimage.maximum_filter(x),
        lambda x: ndimage.uniform_filter(x, (1, 2, 3)),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            call(IMAGE)
        with pytest.raises((RuntimeError, ValueError)):
            ft.grad(lambda x, c=call: np.sum(c(x)))(IMAGE)


# Between points.

INSIDE = np.stack([RNG.uniform(0.1, 3.9, size=6), RNG.uniform(0.1, 2.9, size=6)])
BEYOND = np.array(
    [[-7.3, -2.2, -0.6, -0.2, 1.3, 4.3, 4.7, 9.4], [1.2, 1.8, 0.4, 2.2, 8.9, 1.3, 3.3, -4.6]]
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_map_coordinates(order, mode):
    for points, prefilter in itertools.product((INSIDE, BEYOND), (True, False)):
        options = {"order": order, "mode": mode, "cval": 0.7, "prefilter": prefilter}
        ours = lambda x, c, o=options: ndimage.map_coordinates(x, c, **o)
        expected = scipy.ndimage.map_coordinates(IMAGE, points, **options)
        np.testing.assert_allclose(traced(ours, IMAGE, points), expected, rtol=1e-9, atol=1e-10)
        check_derivatives(ours, (IMAGE, points), second=order > 2, rtol=1e-5, atol=1e-6)
    check_lanes(ours, (IMAGE, INSIDE))
    check_staging(ours, (IMAGE, INSIDE))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_shifts_and_zooms(order, mode):
    options = {"order": order, "mode": mode, "cval": 0.7}
    for steps in (np.array([0.3, -1.2]), np.array([6.2, -7.7])):
        check("shift", (IMAGE, steps), options, tolerance=1e-9)
    check("shift", (IMAGE,), {**options, "shift": 0.4}, tolerance=1e-9)
    check("shift", (IMAGE,), {**options, "shift": (1, -2)}, tolerance=1e-9)
    for factor in (1.5, (2, 0.7), 0.5):
        for grid in (False, True):
            if grid and mode in ("constant", "mirror", "nearest", "reflect", "wrap"):
                continue  # SciPy warns
            chosen = {**options, "zoom": factor, "grid_mode": grid}
            check("zoom", (IMAGE,), chosen, tolerance=1e-9)
    matrix, offset = np.array([[0.93, 0.21], [-0.13, 1.07]]), np.array([0.313, 0.227])
    check("affine_transform", (IMAGE, matrix, offset), options, tolerance=1e-9)
    check(
        "affine_transform",
        (IMAGE, np.array([0.93, 1.07]), np.array([0.313, 0.227])),
        options,
        tolerance=1e-9,
    )


def test_other_forms_of_affine_transforms():
    matrix, offset = np.array([[0.93, 0.21], [-0.13, 1.07]]), np.array([0.313, 0.227])
    tall = np.column_stack([matrix, offset])
    options = {"order": 1, "mode": "nearest", "output_shape": (3, 6)}
    check("affine_transform", (IMAGE, tall), options)
    square = np.vstack([tall, [0, 0, 1]])
    np.testing.assert_allclose(
        traced(lambda m: ndimage.affine_transform(IMAGE, m, **options), square),
        scipy.ndimage.affine_transform(IMAGE, square, **options),
        rtol=1e-12,
    )
    ours = lambda x, m, o: ndimage.affine_transform(x, m, o, order=3, mode="mirror")
    check_lanes(ours, (IMAGE, matrix, offset))
    check_staging(ours, (IMAGE, matrix, offset))


def test_points_that_are_nowhere_and_whole_images():
    points = np.array([[np.nan, 1.0], [1.0, 2.0]])
    ours = traced(lambda c: ndimage.map_coordinates(IMAGE, c, order=1, cval=0.7), points)
    np.testing.assert_allclose(ours, [0.7, IMAGE[1, 2]])
    whole = RNG.integers(0, 9, size=(5, 4))
    got = traced(lambda c: ndimage.map_coordinates(whole, c, order=1), INSIDE)
    np.testing.assert_array_equal(got, scipy.ndimage.map_coordinates(whole, INSIDE, order=1))
    single = traced(lambda x: ndimage.shift(x, 0.3), IMAGE.astype(np.float32))
    assert single.dtype == np.float32
    for wrong in (
        lambda c: ndimage.map_coordinates(IMAGE, c[:1]),
        lambda c: ndimage.shift(c, 1, order=7),
    ):
        with pytest.raises(RuntimeError):
            ft.jvp(wrong, (INSIDE,), (INSIDE,))


def test_a_cubic_polynomial_is_its_own_spline_away_from_the_edges():
    cubes = np.arange(40.0) ** 3
    slope = ft.grad(lambda x: ndimage.map_coordinates(cubes, x[None], order=3)[0], 0)
    value = lambda x: ndimage.map_coordinates(cubes, [x], order=3)
    np.testing.assert_allclose(ft.grad(value)(20.3), 3 * 20.3**2, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(ft.grad(value))(20.3), 6 * 20.3, rtol=1e-5)
    np.testing.assert_allclose(slope(np.array([20.3])), [3 * 20.3**2], rtol=1e-6)
