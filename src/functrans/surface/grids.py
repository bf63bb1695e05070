"""Regular sequences, grids, and arrays of indices."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.views import link
from functrans.ops import access
from functrans.surface.searching import nonzero
from functrans.surface.shaping import take
from functrans.surface.table import (
    as_array,
    axis_index,
    axis_tuple,
    implements,
    known,
    ndim_of,
    static_ints,
    without_lists,
)


def _steps(num: Any, endpoint: bool, ndim: int) -> tuple[Any, int]:
    """0, 1, ... as a column in front of `ndim` axes, and the number of steps to the end."""
    count = int(static_ints(num))
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    return np.arange(count).reshape((-1,) + (1,) * ndim), count - 1 if endpoint else count


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    start, stop = without_lists(start), without_lists(stop)
    computed = np.result_type(start, stop, float(num))
    first, last = np.broadcast_arrays(as_array(start), as_array(stop))
    first, last = first.astype(computed), last.astype(computed)
    numbers, count = _steps(num, endpoint, ndim_of(first))
    step = (last - first) / count if count > 0 else np.full(shape_of(first), np.nan, computed)
    steps = numbers.astype(computed)
    result = first + steps * (step if count > 0 else last - first)
    if endpoint and count > 0:  # the last is the end itself, without rounding
        result = np.concatenate([result[:-1], last[None]])
    result = _finish(result, dtype, axis)
    return (result, step) if retstep else result


def _finish(result: Any, dtype: Any, axis: int) -> Any:
    if axis:
        result = np.moveaxis(result, 0, axis)
    if dtype is None:
        return result
    if np.dtype(dtype).kind in "iu":
        result = np.floor(result)
    return result.astype(np.dtype(dtype))


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    if ndim_of(as_array(base)):
        start, stop, base = np.broadcast_arrays(as_array(start), as_array(stop), as_array(base))
        base = np.expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = np.power(without_lists(base), exponents)
    return powers if dtype is None else powers.astype(np.dtype(dtype))


@implements(np.geomspace)
def geomspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """start (stop / start)^t, for complex numbers with the principal power: a spiral."""
    if known(np.any(as_array(start) == 0) | np.any(as_array(stop) == 0)):
        raise ValueError("Geometric sequence cannot include zero")
    start, stop = without_lists(start), without_lists(stop)
    computed = np.result_type(start, stop, np.float64)
    first, last = np.broadcast_arrays(as_array(start), as_array(stop))
    first, last = first.astype(computed), last.astype(computed)
    numbers, count = _steps(num, endpoint, ndim_of(first))
    if len(numbers):
        parts = [first[None], first * np.power(last / first, numbers[1:] / max(count, 1))]
        if endpoint and count > 0:
            parts = [parts[0], parts[1][:-1], last[None]]
        result = np.concatenate(parts).astype(computed)
    else:
        result = np.zeros((0, *shape_of(first)), computed)
    result = np.moveaxis(result, 0, axis) if axis else result
    return result if dtype is None else result.astype(np.dtype(dtype))


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    vectors = [as_array(x).reshape(-1) for x in xi]
    count = len(vectors)
    axes = list(range(count))
    if indexing == "xy" and count > 1:
        axes[:2] = [1, 0]
    lined_up = tuple(
        x.reshape(tuple(-1 if k == axis else 1 for k in range(count)))
        for x, axis in zip(vectors, axes, strict=True)
    )
    grids = lined_up if sparse else np.broadcast_arrays(*lined_up)
    return tuple(grid.copy() for grid in grids) if copy else tuple(grids)


@implements(np.ix_)
def ix_(*args: Any) -> Any:
    parts = []
    for k, arg in enumerate(args):
        x = as_array(arg)
        if ndim_of(x) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if not shape_of(x)[0] and isinstance(arg, (list, tuple)):
            x = x.astype(np.intp)
        if dtype_of(x).kind == "b":
            (x,) = nonzero(x)
        parts.append(x.reshape((1,) * k + (-1,) + (1,) * (len(args) - k - 1)))
    return tuple(parts)


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices_from(_empty_like(arr), k)


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices_from(_empty_like(arr), k)


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    return np.diag_indices_from(_empty_like(arr))


def _empty_like(x: Any) -> Any:
    """A plain array of this shape that takes no memory, for NumPy to inspect."""
    return np.broadcast_to(np.zeros((), dtype_of(x)), shape_of(x))


def _whole(indices: Any) -> Any:
    x = as_array(indices)
    if dtype_of(x).kind not in "biu":
        raise TypeError("only int indices permitted")
    return x.astype(np.intp)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    dims = static_ints(shape if isinstance(shape, (tuple, list)) else (shape,))
    flat = _whole(indices)
    if known(np.any((flat < 0) | (flat >= prod(dims)))):
        raise ValueError(f"index is out of bounds for array with size {prod(dims)}")
    results = []
    for n in dims if order == "F" else dims[::-1]:
        results.append(flat % n)
        flat = flat // n
    return tuple(results if order == "F" else results[::-1])


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    lengths = static_ints(dims if isinstance(dims, (tuple, list)) else (dims,))
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(lengths)
    parts = []
    for index, n, how in zip(multi_index, lengths, modes, strict=True):
        x = _whole(index)
        if how == "wrap":
            x = x % n
        elif how == "clip":
            x = np.clip(x, 0, n - 1)
        elif known(np.any((x < 0) | (x >= n))):
            raise ValueError("invalid entry in coordinates array")
        parts.append((x, n))
    flat: Any = 0
    for x, n in reversed(parts) if order == "F" else parts:
        flat = flat * n + x
    return flat


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    array = as_array(x)
    ndim = ndim_of(array)
    widths = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    widths = static_ints(widths)
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(axis_index(k, ndim) for k in axes)
    if len(widths) != len(axes):
        raise ValueError("Must provide matching length window_shape and axis")
    windows = partial(_windows, axes=axes, widths=widths)
    out = windows(array)
    if not writeable:
        return link(out, access.ReadOnlyView(windows), x)
    places = windows(np.arange(np.size(array)).reshape(shape_of(array)))
    return link(out, access.FlatPlaces(windows, places), x)


def _windows(array: Any, axes: tuple[int, ...], widths: tuple[int, ...]) -> Any:
    for along, width in zip(axes, widths, strict=True):
        starts = shape_of(array)[along] - width + 1
        if width < 0 or starts < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        places = np.arange(starts)[:, None] + np.arange(width)
        array = np.moveaxis(take(array, places, along), along + 1, -1)
    return array


@implements(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = as_array(a)
    ndim = ndim_of(x)
    for axis in np.atleast_1d(concrete(axes)).tolist():
        result = func(x, axis_tuple(axis, ndim)[0])
        if ndim_of(result) != ndim:
            result = np.expand_dims(result, axis)
            if ndim_of(result) != ndim:
                raise ValueError("function is not returning an array of the correct shape")
        x = result
    return x
