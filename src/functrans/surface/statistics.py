"""Averages, covariances and histograms. Quantiles are in quantiles.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import elementwise, indexing, searching
from functrans.surface.grids import linspace
from functrans.surface.quantiles import spread_weights
from functrans.surface.table import as_array, axis_tuple, given, implements, known, ndim_of


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = as_array(a)
    keep = bool(given(keepdims, False))
    if weights is None:
        mean = x.mean(axis=axis, keepdims=keep)
        total = dtype_of(mean).type(_size(x) / max(_size(mean), 1))
    else:
        w = as_array(weights)
        axes = axis_tuple(axis, ndim_of(x))
        if axis is None and shape_of(w) != shape_of(x):
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        dtypes = [dtype_of(x), dtype_of(w)] + [np.dtype(np.float64)] * (dtype_of(x).kind in "biu")
        dtype = np.result_type(*dtypes)
        w = spread_weights(w, x, axes)
        total = w.sum(axis=axis, dtype=dtype, keepdims=keep)
        if known(np.any(total == 0)):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        mean = (x * w).sum(axis=axis, dtype=dtype, keepdims=keep) / total
    return (mean, np.broadcast_to(total, shape_of(mean)).copy()) if returned else mean


def _size(x: Any) -> int:
    return int(np.prod(shape_of(x), dtype=int))


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = _observations(m, rowvar, "m")
    if y is not None:
        x = np.concatenate([x, _observations(y, rowvar, "y")], axis=0)
    x = x.astype(np.result_type(dtype_of(x), np.float64) if dtype is None else np.dtype(dtype))
    lost = (0 if bias else 1) if ddof is None else ddof
    w = None
    if fweights is not None:
        counts = as_array(fweights).astype(np.float64)
        _check_weights("fweights", counts, shape_of(x)[1])
        if known(np.any(counts != np.rint(counts))):
            raise TypeError("fweights must be integer")
        w = counts
    if aweights is not None:
        importance = as_array(aweights).astype(np.float64)
        _check_weights("aweights", importance, shape_of(x)[1])
        w = importance if w is None else w * importance
    mean = average(x, 1, w)
    total: Any = None if w is None else np.sum(w)
    factor: Any
    if w is None:
        factor = max(shape_of(x)[1] - lost, 0.0)
    elif lost == 0:
        factor = total
    elif aweights is None:
        factor = total - lost
    else:
        factor = total - lost * np.sum(w * importance) / total
    if w is not None:
        factor = np.maximum(factor, 0.0)
    x = x - mean[:, None]
    product = np.matmul(x, np.conj(np.transpose(x if w is None else x * w)))
    return np.squeeze(product / factor)


def _observations(m: Any, rowvar: bool, name: str) -> Any:
    x = as_array(m)
    if ndim_of(x) > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    x = np.atleast_2d(x)
    return x if rowvar or shape_of(x)[0] == 1 else np.transpose(x)


def _check_weights(name: str, weights: Any, count: int) -> None:
    if ndim_of(weights) != 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape_of(weights)[0] != count:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if known(np.any(weights < 0)):
        raise ValueError(f"{name} cannot be negative")


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return c / c
    deviation = np.sqrt(np.diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if dtype_of(c).kind == "c":
        return elementwise.from_parts(np.clip(c.real, -1, 1), np.clip(c.imag, -1, 1))
    # Cut round-off, but not the derivative at a correlation of exactly 1, as np.clip would.
    return np.where(abs(c) > 1, c / abs(c), c)


# Counting: the bin of an element has no derivative; its weight and the edges have one.


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    bins = as_array(x)
    if not shape_of(bins)[:1] or not shape_of(bins)[0]:
        bins = bins.astype(np.intp)  # np.asarray([]) is of floats
    if ndim_of(bins) != 1:
        raise ValueError("object too deep for desired array")
    if dtype_of(bins).kind not in "biu":
        raise TypeError(f"Cannot cast array data from {dtype_of(bins)} to int64")
    if shape_of(bins)[0]:
        if concrete(np.min(bins)) < 0:
            raise ValueError("'list' argument must have no negative elements")
        minlength = max(int(minlength), int(concrete(np.max(bins))) + 1)
    if weights is None:
        values: Any = np.ones(shape_of(bins), np.intp)
    else:
        values = as_array(weights).astype(np.float64)
        if shape_of(values) != shape_of(bins):
            raise ValueError("The weights and list don't have the same length.")
    return _add_up(values, bins.astype(np.intp), minlength)


def _add_up(values: Any, bins: Any, count: int) -> Any:
    return indexing.scatter(values, bins, shape=(count,), template=(indexing.ARRAY,))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    x = as_array(a).reshape(-1)
    return _edges(x, bins, range, lambda low, high: np.result_type(low, high, x))


def _edges(x: Any, bins: Any, range: Any, dtype_of_edges: Any) -> Any:
    if isinstance(bins, str):  # the rule depends on the values
        bins = len(np.histogram_bin_edges(concrete(x), bins, range)) - 1
    if ndim_of(as_array(bins)) == 1:
        return _check_edges(as_array(bins))
    count = int(concrete(bins))
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is not None:
        low, high = range
        if known(np.asarray(low > high)):
            raise ValueError("max must be larger than min in range parameter.")
    elif not _size(x):
        low, high = 0.0, 1.0
    else:
        low, high = np.min(x), np.max(x)
    if known(~np.isfinite(low) | ~np.isfinite(high)):
        raise ValueError(f"range of [{low}, {high}] is not finite")
    flat = low == high
    half = np.where(flat, 0.5, 0.0)
    dtype = dtype_of_edges(low, high)
    if dtype.kind in "biu":
        dtype = np.result_type(dtype, np.float64)
    return linspace(low - half, high + half, count + 1, dtype=dtype)


def _check_edges(edges: Any) -> Any:
    if known(np.any(edges[:-1] > edges[1:])):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def _bin_of(x: Any, edges: Any) -> tuple[Any, Any]:
    """The bin of each element, and whether there is one. The last bin is closed."""
    last = shape_of(edges)[0] - 2
    inside = (x >= edges[0]) & (x <= edges[-1])
    place = searching.searchsorted(edges, x, side="right") - 1
    return np.clip(place, 0, last), inside


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    sample = as_array(a)
    x = sample.reshape(-1)
    edges = histogram_bin_edges(x, bins, range)
    place, inside = _bin_of(x, edges)
    if weights is None:
        values = inside.astype(np.intp)
    else:
        w = as_array(weights)
        if shape_of(w) != shape_of(sample):
            raise ValueError("weights should have the same shape as a.")
        values = np.where(inside, w.reshape(-1), dtype_of(w).type(0))
    heights = _add_up(values, place, shape_of(edges)[0] - 1)
    if density:
        return heights / np.diff(edges).astype(np.float64) / heights.sum(), edges
    return heights, edges


@implements(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    columns = _columns(sample)
    dims = len(columns)
    if isinstance(bins, Tracer) or not hasattr(bins, "__len__"):
        bins = [bins] * dims
    if len(bins) != dims:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * dims if range is None else list(range)
    if len(ranges) != dims:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges(x, b, r, np.result_type) for x, b, r in zip(columns, bins, ranges, strict=True)]
    shape = tuple(shape_of(e)[0] - 1 for e in edges)
    place: Any = 0
    inside: Any = True
    for x, e, n in zip(columns, edges, shape, strict=True):
        along, there = _bin_of(x, e)
        place, inside = place * n + along, inside & there
    w = 1.0 if weights is None else as_array(weights).astype(np.float64)
    heights = _add_up(np.where(inside, w, 0.0), place, int(np.prod(shape))).reshape(shape)
    if density:
        total = heights.sum()
        for k, e in enumerate(edges):
            heights = heights / np.diff(e).reshape((-1,) + (1,) * (dims - 1 - k))
        heights = heights / total
    return heights, edges


def _columns(sample: Any) -> list[Any]:
    """One vector per dimension: the columns of an array, or the items of a list."""
    if isinstance(sample, (list, tuple)) and any(map(ndim_of, map(as_array, sample))):
        return [as_array(x) for x in sample]
    x = as_array(sample)
    if ndim_of(x) > 2:
        raise ValueError("the sample must have one row per point")
    x = x if ndim_of(x) == 2 else x.reshape((-1, 1))
    return [x[:, k] for k in range(shape_of(x)[1])]


@implements(np.histogram2d)
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    x, y = as_array(x), as_array(y)
    if ndim_of(x) != 1 or shape_of(x) != shape_of(y):
        raise ValueError("x and y must have the same length.")
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [bins, bins]  # the same edges for both
    heights, edges = histogramdd([x, y], bins, range, density, weights)
    return heights, edges[0], edges[1]
