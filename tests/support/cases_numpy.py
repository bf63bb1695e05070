"""The rest of NumPy's functions, with the shapes and domains on which each is smooth.

A function is here once or twice, with the options that change what it computes. See cases.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.support import cases
from tests.support.cases import BILINEAR, Booleans, Case, Integers, Reals

NUMPY_CASES: list[Case] = []
add = partial(cases.add, table=NUMPY_CASES)
MASK = np.array([[True, False, True], [False, True, True]])


def with_nan(function):
    """A function of an array in which one entry is nan, whatever its value was."""
    return lambda x: function(np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, x))


# --- methods of ufuncs ----------------------------------------------------------------------------

POSITIVE = Reals(0.4, 2.0)
FOLDS = {
    "subtract": (np.subtract, {"linear": True}),
    "divide": (np.divide, {"analytic": True, "complexes": True}),
    "logaddexp": (np.logaddexp, {}),
    "hypot": (np.hypot, {}),
    "power": (np.power, {}),
    "fmax": (np.fmax, {}),
}
for name, (ufunc, facts) in FOLDS.items():
    add(f"{name}.reduce", lambda x, f=ufunc: f.reduce(x), ((3, 2),), POSITIVE, **facts)
    add(f"{name}.accumulate", lambda x, f=ufunc: f.accumulate(x, 1), ((2, 3),), POSITIVE, **facts)
add("arctan2.outer", lambda x, y: np.arctan2.outer(x, y), ((2,), (3, 1)), POSITIVE, POSITIVE)
add("multiply.outer", lambda x, y: np.multiply.outer(x, y), ((2,), (3,)), **BILINEAR)
add(
    "hypot.reduce where initial keepdims",
    lambda x: np.hypot.reduce(x, axis=(0, 1), where=MASK, initial=0.5, keepdims=True),
    ((2, 3),),
)
add(
    "divide.reduce where initial",
    lambda x: np.divide.reduce(x, axis=1, where=MASK, initial=2.0),
    ((2, 3),),
    POSITIVE,
    analytic=True,
)
add(
    "minimum.reduce where initial",
    lambda x: np.minimum.reduce(x, axis=0, where=MASK, initial=9.0),
    ((2, 3),),
)
add("add.reduceat", lambda x: np.add.reduceat(x, [0, 2, 1], axis=1), ((2, 4),), linear=True)
add("maximum.reduceat", lambda x: np.maximum.reduceat(x, [3, 0, 2]), ((4, 2),))
add("maximum.accumulate", np.maximum.accumulate, ((5, 2),))
add("minimum.accumulate", lambda x: np.minimum.accumulate(x, axis=1), ((2, 4),))
add(
    "logical_xor.reduce",
    lambda x: np.logical_xor.reduce(x > 0, axis=1),
    ((3, 4),),
    differentiable=False,
)
add(
    "bitwise_or.accumulate",
    lambda n: np.bitwise_or.accumulate(n, axis=1),
    ((2, 4),),
    Integers(0, 31),
    differentiable=False,
)

# --- reductions that pass over nan ----------------------------------------------------------------

for name, (function, facts) in {
    "nansum": (np.nansum, {"complexes": True}),
    "nanmean": (np.nanmean, {"complexes": True}),
    "nanprod": (np.nanprod, {"complexes": True}),
    "nanmax": (np.nanmax, {}),
    "nanmin": (np.nanmin, {}),
    "nanvar": (np.nanvar, {"complexes": True}),
    "nanstd": (np.nanstd, {}),
    "nanmedian": (np.nanmedian, {}),
    "nancumsum": (np.nancumsum, {}),
    "nancumprod": (np.nancumprod, {}),
    "nanargmax": (np.nanargmax, {"differentiable": False}),
    "nanargmin": (np.nanargmin, {"differentiable": False}),
}.items():
    add(f"{name} axis=1", with_nan(lambda x, f=function: f(x, axis=1)), ((2, 4),), **facts)
add("nanmean all", with_nan(np.nanmean), ((2, 4),))
add("nanvar ddof", with_nan(lambda x: np.nanvar(x, ddof=1, keepdims=True)), ((2, 4),))
add(
    "nanquantile",
    with_nan(lambda x: np.nanquantile(x, [0.2, 0.7], axis=1, method="hazen")),
    ((2, 4),),
)
add("nanpercentile", with_nan(lambda x: np.nanpercentile(x, 40.0)), ((2, 4),))

# --- quantiles ------------------------------------------------------------------------------------

METHODS = "linear midpoint averaged_inverted_cdf interpolated_inverted_cdf hazen weibull"
METHODS += " median_unbiased normal_unbiased inverted_cdf closest_observation lower higher nearest"
for method in METHODS.split():
    add(
        f"quantile {method}",
        lambda x, m=method: np.quantile(x, [0.15, 0.8], axis=0, method=m),
        ((5, 2),),
    )
add("quantile in q", lambda x, q: np.quantile(x, q), ((5,), (2,)), Reals(), Reals(0.27, 0.47))
add("percentile", lambda x: np.percentile(x, 30.0, axis=(0, 2), keepdims=True), ((2, 2, 3),))
add(
    "quantile weights",
    lambda x: np.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=[1.0, 2, 3, 1]),
    ((2, 4),),
)
add("median odd", lambda x: np.median(x, axis=1), ((2, 3),))
add("median even", lambda x: np.median(x, axis=(0, -1), keepdims=True), ((2, 3, 2),))

# --- options of reductions ------------------------------------------------------------------------

add(
    "cumulative_sum",
    lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    ((2, 3),),
    linear=True,
)
add("cumulative_prod", np.cumulative_prod, ((4,),), analytic=True, complexes=True)
add("ptp", lambda x: np.ptp(x, axis=1, keepdims=True), ((2, 3),))
add("mean dtype", lambda x: np.mean(x, axis=0, dtype=np.float64), ((2, 3),))
add("var where", lambda x: np.var(x, axis=1, where=MASK, ddof=0.5), ((2, 3),))
add("std where keepdims", lambda x: np.std(x, axis=1, where=MASK, keepdims=True), ((2, 3),))
add("prod where", lambda x: np.prod(x, axis=0, where=MASK, initial=3.0), ((2, 3),), analytic=True)
add("max where initial", lambda x: np.max(x, where=MASK, initial=-9.0, keepdims=True), ((2, 3),))
add(
    "any where",
    lambda b: np.any(b, axis=0, where=MASK),
    ((2, 3),),
    Booleans(),
    differentiable=False,
)
add(
    "count_nonzero",
    lambda b: np.count_nonzero(b, axis=1, keepdims=True),
    ((2, 3),),
    Booleans(),
    differentiable=False,
)

# --- averages, covariances, histograms ------------------------------------------------------------

WEIGHTS = Reals(0.5, 2.0)
add("average", lambda x: np.average(x, axis=0, keepdims=True), ((2, 3),), linear=True)
add(
    "average weights",
    lambda x, w: np.average(x, axis=1, weights=w, returned=True),
    ((2, 3), (3,)),
    Reals(),
    WEIGHTS,
    analytic=True,
)
add(
    "average all weights", lambda x, w: np.average(x, weights=w), ((2, 3), (2, 3)), Reals(), WEIGHTS
)
add("cov", np.cov, ((2, 4),), complexes=True)
add("cov of columns", lambda x: np.cov(x, rowvar=False, bias=True), ((4, 2),))
add("cov of two", lambda x, y: np.cov(x, y, ddof=0), ((4,), (2, 4)))
add("cov of a vector", np.cov, ((4,),))
add(
    "cov weights",
    lambda x, w: np.cov(x, aweights=w, fweights=[1, 2, 1, 3]),
    ((2, 4), (4,)),
    Reals(),
    WEIGHTS,
)
add("corrcoef", np.corrcoef, ((3, 4),))
add("corrcoef of two", lambda x, y: np.corrcoef(x, y), ((5,), (5,)))
BINS = np.array([0, 2, 1, 2])
add("bincount", lambda w: np.bincount(BINS, w, minlength=5), ((4,),))
add(
    "bincount of integers",
    lambda n: np.bincount(n, minlength=4),
    ((5,),),
    Integers(0, 4),
    differentiable=False,
    needs_values=True,
)
add(
    "histogram weights",
    lambda x, w: np.histogram(x, bins=3, range=(-2.0, 2.0), weights=w),
    ((2, 3), (2, 3)),
)
add(
    "histogram density",
    lambda x: np.histogram(x, bins=[-2.0, -1.0, 0.5, 1.0, 2.1], density=True),
    ((5,),),
)
add(
    "histogram of edges",
    lambda x: np.histogram(np.linspace(-2, 2, 9), bins=x[:1] * [0, 0.4, 1.01], density=True)[0],
    ((1,),),
    WEIGHTS,
)
add("histogram_bin_edges", lambda x: np.histogram_bin_edges(x, bins=4), ((5,),), needs_values=True)
add(
    "histogram2d",
    lambda x, y, w: np.histogram2d(x, y, bins=(2, 3), range=[(-2, 2), (-3, 3)], weights=w),
    ((4,), (4,), (4,)),
)
add(
    "histogramdd density",
    lambda x, w: np.histogramdd(x, bins=2, range=[(-2, 2)] * 3, weights=w, density=True)[0],
    ((4, 3), (4,)),
    Reals(),
    WEIGHTS,
)

# --- differences, integrals, interpolation --------------------------------------------------------

add("diff", lambda x: np.diff(x, n=2, axis=0), ((4, 2),), linear=True)
add(
    "diff prepend append",
    lambda x, y: np.diff(x, prepend=y, append=y * 2),
    ((2, 3), (2, 1)),
    linear=True,
)
add(
    "diff prepend a number",
    lambda x: np.diff(x, prepend=0, append=1.5, axis=0),
    ((2, 3),),
    analytic=True,
)
add("diff of booleans", lambda b: np.diff(b), ((4,),), Booleans(), differentiable=False)
add("ediff1d", lambda x, y: np.ediff1d(x, to_end=y, to_begin=2 * y), ((2, 2), (2,)), linear=True)
add("trapezoid", lambda y: np.trapezoid(y, dx=0.5, axis=0), ((4, 2),), linear=True)
add("trapezoid points", lambda y, x: np.trapezoid(y, x), ((2, 4), (4,)), **BILINEAR)
add(
    "trapezoid points of rows",
    lambda y, x: np.trapezoid(y, x, axis=0),
    ((3, 2), (3, 2)),
    **BILINEAR,
)
add("gradient", np.gradient, ((3, 4),), linear=True)
add(
    "gradient step",
    lambda x, h: np.gradient(x, h, axis=1),
    ((2, 4), ()),
    Reals(),
    WEIGHTS,
    analytic=True,
)
add(
    "gradient edge_order=2",
    lambda x: np.gradient(x, 0.5, axis=-1, edge_order=2),
    ((2, 4),),
    linear=True,
)
for order in (1, 2):
    add(
        f"gradient points edge_order={order}",
        lambda x, h, o=order: np.gradient(x, np.cumsum(h), 2.0, axis=(1, 0), edge_order=o),
        ((3, 4), (4,)),
        Reals(),
        WEIGHTS,
        analytic=True,
    )
KNOTS = np.array([-1.5, -0.7, 0.35, 1.2])
add("interp", lambda x, y: np.interp(x, KNOTS, y), ((2, 3), (4,)))
add("interp left right", lambda x, y: np.interp(x, KNOTS, y, left=3.0, right=-1.0), ((5,), (4,)))
add("interp period", lambda x, y: np.interp(x, [0.3, 2.1, 1.0], y, period=3.0), ((5,), (3,)))
add(
    "interp in all",
    lambda x, h, y: np.interp(x, np.cumsum(h), y),
    ((3,), (4,), (4,)),
    Reals(0.3, 6.0),
    Reals(0.7, 1.3),
    Reals(),
)
add("interp of one point", lambda x, y: np.interp(x, [0.5], y), ((3,), (1,)))
for mode in ("full", "same", "valid"):
    add(f"convolve {mode}", lambda x, y, m=mode: np.convolve(x, y, m), ((4,), (3,)), **BILINEAR)
    add(
        f"correlate {mode}",
        lambda x, y, m=mode: np.correlate(x, y, m),
        ((3,), (4,)),
        complexes=True,
    )
add("unwrap", lambda x: np.unwrap(np.pi * x, axis=0), ((5, 2),))
add("unwrap period", lambda x: np.unwrap(2 * x, discont=0.6, period=1.0), ((5,),))

# --- sequences, grids, windows, blocks ------------------------------------------------------------

add("linspace", lambda x, y: np.linspace(x, y, 5), ((), ()), linear=True)
add(
    "linspace of arrays",
    lambda x, y: np.linspace(x, y, 3, endpoint=False, axis=-1),
    ((2,), (3, 1)),
    linear=True,
)
add("linspace retstep", lambda x: np.linspace(0.0, x, 4, retstep=True), ((2,),), linear=True)
add(
    "logspace",
    lambda x, b: np.logspace(0.0, x, 4, base=b),
    ((), ()),
    Reals(),
    WEIGHTS,
    analytic=True,
)
add(
    "logspace of arrays",
    lambda x, b: np.logspace(x, 2.0, 3, base=b, axis=1),
    ((2,), (2,)),
    Reals(),
    WEIGHTS,
)
add("geomspace", lambda x, y: np.geomspace(x, y, 4), ((2,), ()), WEIGHTS, WEIGHTS, analytic=True)
add(
    "geomspace negative",
    lambda x: np.geomspace(-x, -9.0, 3, endpoint=False, axis=1),
    ((2,),),
    WEIGHTS,
)
for options in ({}, {"indexing": "ij"}, {"sparse": True}):
    add(
        f"meshgrid {options}",
        lambda x, y, o=options: np.meshgrid(x, y, **o),
        ((3,), (2,)),
        linear=True,
    )
add(
    "sliding_window_view",
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3),
    ((5,),),
    linear=True,
)
add(
    "sliding_window_view axes",
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 0)),
    ((3, 2, 4),),
    linear=True,
)
add("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, [0, 2]), ((2, 3, 2),), linear=True)
add("block", lambda x, y: np.block([[x, y], [x * x, 2 * y]]), ((3, 2), (3, 3)))
add("block of vectors", lambda x, y: np.block([x, 2.0, y]), ((2,), (3,)))
add("block of matrices", lambda x, y: np.block([[x], [y]]), ((2, 3), (3,)), linear=True)
add("append", lambda x, y: np.append(x, y), ((2, 2), (3,)), linear=True)
add("append axis", lambda x, y: np.append(x, y, axis=1), ((2, 2), (2, 1)), linear=True)
add("insert", lambda x, y: np.insert(x, 1, y), ((3,), ()), linear=True)
add("insert many", lambda x, y: np.insert(x, [0, 3, 1], y, axis=1), ((2, 3), (2, 3)), linear=True)
add("insert a block", lambda x, y: np.insert(x, 1, y, axis=1), ((2, 3), (2, 2)), linear=True)
add("insert at a slice", lambda x: np.insert(x, slice(0, 2), [7.0, 8.0]), ((3,),))
add("delete", lambda x: np.delete(x, [0, -1], axis=1), ((2, 4),), linear=True)
add("delete a slice", lambda x: np.delete(x, slice(1, 3)), ((2, 3),), linear=True)
add("resize", lambda x: np.resize(x, (2, 5)), ((3,),), linear=True)
add("trim_zeros", lambda x: np.trim_zeros(np.pad(x, (1, 2))), ((3,),), needs_values=True)
add("ix_", lambda x: np.ix_(x, x * 2), ((3,),), linear=True)
add(
    "unravel_index",
    lambda n: np.unravel_index(n, (3, 4)),
    ((5,),),
    Integers(0, 12),
    differentiable=False,
)
add(
    "unravel_index F",
    lambda n: np.unravel_index(n, (3, 4), "F"),
    ((5,),),
    Integers(0, 12),
    differentiable=False,
)
for mode in ("wrap", "clip"):
    add(
        f"ravel_multi_index {mode}",
        lambda i, j, m=mode: np.ravel_multi_index((i, j), (3, 4), mode=m, order="F"),
        ((4,), (4,)),
        Integers(0, 9),
        Integers(-9, 9),
        differentiable=False,
    )

# --- searching, partial sorting, sets -------------------------------------------------------------

add("nonzero", lambda x: x[np.nonzero(x > -1.9)] ** 2, ((4,),), Reals(-1.8, 2.0), needs_values=True)
add("extract", lambda x: np.extract(MASK, x), ((2, 3),), linear=True)
add("compress", lambda x: np.compress([True, False, True], x, axis=1), ((2, 3),), linear=True)
add(
    "choose",
    lambda n, x, y: np.choose(n, [x, y, 2.0]),
    ((2, 3), (3,), (2, 1)),
    Integers(0, 3),
    Reals(),
    Reals(),
)
add(
    "choose wrap",
    lambda n, x, y: np.choose(n, [x, y], mode="wrap"),
    ((3,), (3,), ()),
    Integers(-4, 4),
    Reals(),
    Reals(),
    linear=True,
)
SEARCHES = {
    "searchsorted": lambda x, y: np.searchsorted(np.sort(x), y),
    "searchsorted right": lambda x, y: np.searchsorted(np.sort(x), y, side="right"),
    "searchsorted sorter": lambda x, y: np.searchsorted(x, y, sorter=np.argsort(x)),
    "digitize": lambda x, y: np.digitize(y, np.sort(x)),
    "digitize falling": lambda x, y: np.digitize(y, -np.sort(x), right=True),
    "isin": lambda x, y: np.isin(y, np.round(x)),
    "isin invert": lambda x, y: np.isin(np.round(y), np.round(x), invert=True),
    "lexsort": lambda x, y: np.lexsort((x, np.round(np.resize(y, 5)))),
}
for name, function in SEARCHES.items():
    add(name, function, ((5,), (2, 3)), Reals(), Reals(), differentiable=False)
add(
    "digitize in plain bins",
    lambda x: np.digitize(x, [1.0, 0.5, -1.0]),
    ((2, 3),),
    differentiable=False,
)
add(
    "argpartition",
    lambda x: np.sort(np.argpartition(x, 2, axis=0)[:3], axis=0),
    ((5, 2),),
    differentiable=False,
)
add("partition", lambda x: np.sort(np.partition(x, [1, 3])[..., :2]), ((2, 5),))
add("sort_complex", lambda x: np.sort_complex(x).real, ((4,),))
add("packbits", lambda b: np.packbits(b, axis=1), ((2, 9),), Booleans(), differentiable=False)
add(
    "unpackbits",
    lambda n: np.unpackbits(n.astype(np.uint8), axis=0, count=3),
    ((2, 3),),
    Integers(0, 256),
    differentiable=False,
)
add("unique", lambda x: np.unique(np.append(x, x[:2])) ** 2, ((4,),), needs_values=True)
add("union1d", lambda x, y: np.union1d(x, y) ** 2, ((3,), (2,)), needs_values=True)
add(
    "setdiff1d", lambda x, y: np.setdiff1d(np.append(x, y), y) ** 2, ((3,), (2,)), needs_values=True
)
add("setxor1d", lambda x, y: np.setxor1d(np.append(x, y), y) ** 2, ((3,), (2,)), needs_values=True)
add("intersect1d", lambda x: np.intersect1d(x, x[1:]) ** 2, ((3,),), needs_values=True)

# --- polynomials ----------------------------------------------------------------------------------

add("polyval", lambda p, x: np.polyval(p, x), ((4,), (2, 3)), analytic=True, complexes=True)
add("polyadd", lambda p, q: np.polyadd(p, q), ((4,), (2,)), linear=True)
add("polysub", lambda p, q: np.polysub(p, q), ((2,), (4,)), linear=True)
add("polymul", lambda p, q: np.polymul(p, q), ((3,), (2,)), analytic=True, needs_values=True)
add(
    "polydiv",
    lambda p, q: (np.polydiv(p, q)[0], np.polydiv(p, q)[1][-1]),
    ((4,), (2,)),
    Reals(),
    WEIGHTS,
    analytic=True,
    needs_values=True,
)
add("polyder", lambda p: np.polyder(p, 2), ((5,),), linear=True)
add("polyint", lambda p: np.polyint(p, 2, p[:2]), ((3,),), linear=True)
add("poly", np.poly, ((4,),), analytic=True)
add("vander", np.vander, ((3,),), analytic=True, complexes=True)
add("vander increasing", lambda x: np.vander(x, 4, increasing=True), ((3,),), analytic=True)

# --- elementwise ----------------------------------------------------------------------------------

add("sinc", np.sinc, ((2, 3),), analytic=True, complexes=True)
add("sinc near zero", lambda x: np.sinc(x / 64), ((2, 3),), analytic=True)
add("i0", np.i0, ((2, 3),))
add("nan_to_num", with_nan(np.nan_to_num), ((2, 3),))
add("cross", lambda x, y: np.cross(x, y), ((2, 3), (3,)), **BILINEAR)
add("cross axes", lambda x, y: np.cross(x, y, axisa=0, axisc=0), ((3, 2), (2, 3)), **BILINEAR)
add("emath.sqrt", lambda x: np.emath.sqrt(x).imag, ((3,),), Reals(-2.0, -0.1), needs_values=True)
add("emath.log", np.emath.log, ((3,),), POSITIVE, needs_values=True)
add("emath.arcsin", lambda x: np.emath.arcsin(x).imag, ((3,),), Reals(1.1, 2.0), needs_values=True)
add("emath.logn", lambda x: np.emath.logn(2, -x).imag, ((3,),), POSITIVE, needs_values=True)
add("emath.power", lambda x: np.emath.power(x, -2), ((3,),), POSITIVE, needs_values=True)
for name, function in {
    "isreal": np.isreal,
    "iscomplex": lambda x: np.iscomplex(x + 1j * (x > 0)),
    "isposinf": lambda x: np.isposinf(np.where(x > 0, np.inf, x)),
    "isneginf": lambda x: np.isneginf(np.where(x > 0, -np.inf, x)),
}.items():
    add(name, function, ((2, 3),), differentiable=False)
add("bitwise_count", np.bitwise_count, ((2, 3),), Integers(-64, 64), differentiable=False)

# --- functions of functions -----------------------------------------------------------------------

add(
    "apply_along_axis",
    lambda x: np.apply_along_axis(lambda row, k: np.outer(row, row[:k]), 1, x, 2),
    ((2, 3, 2),),
    analytic=True,
)
add("apply_along_axis scalar", lambda x: np.apply_along_axis(np.sum, 0, x), ((2, 3),), linear=True)
add(
    "piecewise",
    lambda x: np.piecewise(x, [x < -0.5, x > 1], [lambda v: np.sqrt(-v), lambda v: np.log(v), 3.0]),
    ((2, 3),),
    needs_values=True,
)
add(
    "piecewise of a scalar",
    lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: v**2, lambda v: np.sin(v)]),
    ((),),
    needs_values=True,
)

# --- methods --------------------------------------------------------------------------------------

add("x.flat", lambda x: x.flat[1:4] * 2, ((2, 3),), linear=True)
add("x.compress", lambda x: x.compress([False, True], axis=0), ((2, 3),), linear=True)
add("x.view", lambda x: x.view(), ((2, 3),), linear=True)
add("x.searchsorted", lambda x: np.sort(x).searchsorted(0.1), ((4,),), differentiable=False)
add("x.choose", lambda n: n.choose([3, 5, 7]), ((4,),), Integers(0, 3), differentiable=False)
