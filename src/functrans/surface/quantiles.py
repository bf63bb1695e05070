"""Medians, percentiles and quantiles, with and without nan.

A quantile lies between two entries of the sorted array. Which two depends on ranks, through which no
derivative flows; the position between them may depend on q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.running import ranked
from functrans.surface.table import (
    as_array,
    as_number,
    axis_tuple,
    given,
    implements,
    known,
    merge_axes,
    ndim_of,
    refuse,
    returns_numbers,
)

# Hyndman and Fan, Sample Quantiles in Statistical Packages (1996): a continuous method puts the
# quantile at the place n q + (alpha + q (1 - alpha - beta)) - 1, counted from 0.
_ALPHA_BETA = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_DISCRETE = {
    "inverted_cdf": lambda n, q: np.ceil(n * q) - 1,
    "closest_observation": lambda n, q: _nearest_even(n * q - 1.5),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.rint((n - 1) * q),
}
_METHODS = ("linear", "midpoint", "averaged_inverted_cdf", *_ALPHA_BETA, *_DISCRETE)


def _nearest_even(place: Any) -> Any:
    """The rank above, unless the position is an odd integer: then the 1-based rank is already even."""
    below = np.floor(place)
    return np.where((place == below) & (below % 2 == 1), below, below + 1)


def _neighbors(method: str, count: Any, q: Any) -> tuple[Any, Any, Any]:
    """The ranks on both sides of a quantile, and its position between them."""
    last = np.maximum(count - 1, 0)
    n = count if type(count) is int or dtype_of(q).kind in "iu" else count.astype(dtype_of(q))
    if method in _DISCRETE or (method == "linear" and dtype_of(q).kind in "iu"):
        rank = _DISCRETE[method](n, q) if method in _DISCRETE else (n - 1) * q
        rank = np.clip(rank.astype(np.intp), 0, last)
        return rank, rank, None
    if method in _ALPHA_BETA:
        alpha, beta = _ALPHA_BETA[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    else:
        place = n * q - 1 if method == "averaged_inverted_cdf" else (n - 1) * q
    below = np.floor(place)
    way = place - below
    if method == "midpoint":
        way = np.where(way == 0, 0.0, 0.5).astype(dtype_of(q))
    elif method == "averaged_inverted_cdf":
        way = np.where(way == 0, 0.5, 1.0).astype(dtype_of(q))
    rank = below.astype(np.intp)
    return np.clip(rank, 0, last), np.clip(rank + 1, 0, last), way


def _restore(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: Any) -> Any:
    """Give the result, whose first axes are those of q, the lengths 1 of keepdims."""
    if not given(keepdims, False):
        return result
    lead = shape_of(result)[: ndim_of(result) - len(shape) + len(axes)]
    return np.reshape(result, lead + tuple(1 if k in axes else n for k, n in enumerate(shape)))


def _reduce(x: Any, q: Any, axis: Any, keepdims: Any, weights: Any, method: str, nan: bool) -> Any:
    axes = axis_tuple(axis, ndim_of(x))
    lined_up = merge_axes(x, axes)
    levels = np.reshape(q, (-1,) + (1,) * (ndim_of(lined_up) - 1))
    missing = np.isnan(lined_up) if dtype_of(x).kind == "f" else np.zeros((), bool)
    count: Any = shape_of(lined_up)[-1]
    if nan and not count:
        dtype = dtype_of(x) if dtype_of(x).kind == "f" else np.dtype(np.float64)
        empty = np.full(shape_of(q) + shape_of(lined_up)[:-1], np.nan, dtype)
        return _restore(empty, shape_of(x), axes, keepdims)
    if nan and dtype_of(x).kind == "f":
        count = count - missing.sum(axis=-1)
    if weights is None:
        low, high, way = _neighbors(method, count, levels)
    else:
        shared = merge_axes(spread_weights(weights, x, axes), axes)
        low = high = _weighted_ranks(lined_up, shared, levels, missing if nan else None)
        way = None
    result = ranked(lined_up, low)
    if way is not None:
        above = ranked(lined_up, high)
        # From the nearer end, as in NumPy.
        rise = above - result
        result = np.where(way < 0.5, result + rise * way, above - rise * (1 - way))
    if dtype_of(x).kind == "f":
        undefined = count == 0 if nan else np.any(missing, axis=-1)
        result = np.where(undefined, np.nan, result)
    result = np.reshape(result, shape_of(q) + shape_of(result)[1:])
    return _restore(result, shape_of(x), axes, keepdims)


def spread_weights(weights: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Weights of the array's shape, from those of one axis."""
    w = as_array(weights)
    if shape_of(w) == shape_of(x):
        return w
    if shape_of(w) != tuple(shape_of(x)[k] for k in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    w = np.transpose(w, np.argsort(axes))
    shape = tuple(n if k in axes else 1 for k, n in enumerate(shape_of(x)))
    return np.broadcast_to(w.reshape(shape), shape_of(x))


def _weighted_ranks(x: Any, weights: Any, q: Any, missing: Any) -> Any:
    """The first rank at which the cumulative weight reaches the fraction q of the total."""
    if known(np.any(weights < 0)):
        raise ValueError("Weights must be non-negative.")
    if missing is not None:
        weights = np.where(missing, 0, weights)
    order = np.argsort(x, axis=-1)
    heard = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1, dtype=np.float64)
    heard = (heard / heard[..., -1:]).astype(dtype_of(q) if dtype_of(q).kind == "f" else np.float64)
    # Leading entries without weight do not count for q = 0.
    heard = np.where(heard == 0, -1, heard)
    ranks = np.sum(heard < q[..., None], axis=-1)
    return np.clip(ranks, 0, shape_of(x)[-1] - 1)


def _levels(x: Any, q: Any, scale: int) -> Any:
    """q as a fraction of 1, in the dtype that NumPy uses."""
    if type(q) in (int, float) and dtype_of(x).kind == "f":
        q = np.asarray(q, dtype_of(x))
    levels = as_array(q)
    if scale != 1:
        levels = levels / (dtype_of(x).type(scale) if dtype_of(x).kind == "f" else scale)
    if known(np.any((levels < 0) | (levels > 1) | np.isnan(levels))):
        name = "Quantiles" if scale == 1 else "Percentiles"
        raise ValueError(f"{name} must be in the range [0, {scale}]")
    return levels


def _quantile(name: str, scale: int, nan: bool) -> Any:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        refuse(name, out=out)
        x = as_array(a)
        if dtype_of(x).kind == "c":
            raise TypeError("a must be an array of real numbers")
        if method not in _METHODS:
            raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(_METHODS)}")
        if weights is not None and method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        result = _reduce(x, _levels(x, q, scale), axis, keepdims, weights, method, nan)
        return as_number(result) if weights is None else result

    return quantile


quantile = implements(np.quantile)(_quantile("quantile", 1, nan=False))
percentile = implements(np.percentile)(_quantile("percentile", 100, nan=False))
nanquantile = implements(np.nanquantile)(_quantile("nanquantile", 1, nan=True))
nanpercentile = implements(np.nanpercentile)(_quantile("nanpercentile", 100, nan=True))


def _median(name: str, nan: bool) -> Any:
    @returns_numbers
    def median(
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:
        refuse(name, out=out)
        x = as_array(a)
        axes = axis_tuple(axis, ndim_of(x))
        lined_up = merge_axes(x, axes)
        count: Any = shape_of(lined_up)[-1]
        if not count:
            return _restore(np.mean(lined_up, axis=-1), shape_of(x), axes, keepdims)
        undefined = None
        if dtype_of(x).kind in "fc":
            missing = np.isnan(lined_up)
            if nan:
                count = count - missing.sum(axis=-1)
                undefined = count == 0
            else:
                undefined = np.any(missing, axis=-1)
        middle = [np.maximum(count - 1, 0) // 2, np.minimum(count // 2, shape_of(lined_up)[-1] - 1)]
        ranks = np.stack([np.broadcast_to(r, shape_of(lined_up)[:-1]) for r in middle])
        result = np.mean(ranked(lined_up, ranks), axis=0)
        if undefined is not None:
            result = np.where(undefined, np.nan, result)
        return _restore(result, shape_of(x), axes, keepdims)

    return median


median = implements(np.median)(_median("median", nan=False))
nanmedian = implements(np.nanmedian)(_median("nanmedian", nan=True))
