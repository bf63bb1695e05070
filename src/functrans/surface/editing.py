"""Functions that insert or delete entries, or assemble arrays from blocks."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.surface.shaping import concatenate, ravel, take
from functrans.surface.table import (
    as_array,
    axis_index,
    axis_tuple,
    implements,
    ndim_of,
    static_ints,
)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


def _plain_index(obj: Any) -> Any:
    if isinstance(obj, slice):
        return obj
    index = np.asarray(concrete(obj))
    return index if index.size else index.astype(np.intp)  # np.asarray([]) is of floats


def _flat_or_along(arr: Any, axis: Any) -> tuple[Any, int]:
    x = as_array(arr)
    if axis is None:
        return ravel(x), 0
    return x, axis_index(axis, ndim_of(x))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, axis = _flat_or_along(arr, axis)
    # NumPy determines which positions remain.
    return take(x, np.delete(np.arange(shape_of(x)[axis]), _plain_index(obj)), axis)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, axis = _flat_or_along(arr, axis)
    index = _plain_index(obj)
    length = shape_of(x)[axis]
    new = as_array(values)
    new = new.reshape((1,) * (ndim_of(x) - ndim_of(new)) + shape_of(new)).astype(dtype_of(x))
    if isinstance(index, slice) or np.size(index) != 1:
        places = np.arange(length)[index] if isinstance(index, slice) else index
        count = int(places.sum()) if places.dtype.kind == "b" else places.size
    else:
        if index.ndim == 0:  # the first axis of the values goes along the axis
            new = np.moveaxis(new, 0, axis)
        count = shape_of(new)[axis]
    shape = (*shape_of(x)[:axis], count, *shape_of(x)[axis + 1 :])
    # NumPy determines where the new entries go; they are numbered after the old ones.
    layout = np.insert(np.arange(length), index, np.arange(length, length + count))
    return take(concatenate([x, np.broadcast_to(new, shape)], axis), layout, axis)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    shape = static_ints(new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,))
    if min(shape, default=0) < 0:
        raise ValueError("all elements of `new_shape` must be non-negative")
    x = ravel(a)
    if not shape_of(x)[0]:
        return np.zeros(shape, dtype_of(x))
    return take(x, np.arange(prod(shape)) % shape_of(x)[0], 0).reshape(shape)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = as_array(filt)
    sides = trim.lower()
    if sides not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    if not ndim_of(x):
        return x
    nonzero = np.asarray(concrete(x != 0)).nonzero()
    axes = axis_tuple(axis, ndim_of(x))
    key = [slice(None)] * ndim_of(x)
    for k in axes:
        places = nonzero[k]
        if not len(places):
            key[k] = slice(0, 0)
            continue
        start = int(places.min()) if "f" in sides else None
        key[k] = slice(start, int(places.max()) + 1 if "b" in sides else None)
    return x[tuple(key)]


@implements(np.block)
def block(arrays: Any) -> Any:
    depth = _depth(arrays)
    ndim = max(depth, *(ndim_of(as_array(leaf)) for leaf in _leaves(arrays)))

    def join(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return concatenate([join(each, level + 1) for each in part], level - depth)
        x = as_array(part)
        return x.reshape((1,) * (ndim - ndim_of(x)) + shape_of(x))

    return join(arrays, 0) if depth else as_array(arrays).copy()


def _depth(arrays: Any) -> int:
    """The nesting depth of the lists, which must be the same everywhere."""
    if not isinstance(arrays, list):
        if isinstance(arrays, tuple):
            raise TypeError(
                "Only lists can be used to arrange blocks, and np.block does not allow "
                "implicit conversion from tuple to ndarray."
            )
        return 0
    if not arrays:
        raise ValueError("List at arrays cannot be empty")
    depths = {_depth(each) for each in arrays}
    if len(depths) > 1:
        raise ValueError("List depths are mismatched.")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for each in arrays for leaf in _leaves(each)]
