"""NumPy's products of arrays: dot, tensordot, einsum, outer, kron, and similar functions."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.core.views import link
from functrans.ops import access, contraction, indexing, structure
from functrans.surface.table import (
    as_array,
    axis_tuple,
    implements,
    into,
    ndim_of,
    refuse,
)


def _factor(a: Any) -> Any:
    """An operand as an array; a Python scalar does not take the other operand's dtype here."""
    x = as_array(a)
    return x if ndim_of(x) else x.astype(dtype_of(x))


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        return into(out, dot(a, b))
    x, y = _factor(a), _factor(b)
    if ndim_of(x) == 0 or ndim_of(y) == 0:
        return x * y
    if ndim_of(y) <= 2:
        return contraction.matmul(x, y)
    return tensordot(x, y, (-1, -2))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    x, y = _factor(a), _factor(b)
    if ndim_of(x) == 0 or ndim_of(y) == 0:
        return x * y
    if ndim_of(x) == ndim_of(y) == 1:
        return contraction.matmul(x, y)  # a number
    return tensordot(x, y, (-1, -1))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    refuse("outer", out=out)
    x, y = as_array(a), as_array(b)
    column = structure.reshape(x, shape=(prod(shape_of(x)), 1))
    return column * structure.reshape(y, shape=(1, prod(shape_of(y))))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return contraction.matmul(as_array(a).conj().reshape(-1), as_array(b).reshape(-1))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = as_array(a), as_array(b)
    if isinstance(axes, (int, np.integer)):
        left: Any = tuple(range(ndim_of(x) - int(axes), ndim_of(x)))
        right: Any = tuple(range(int(axes)))
    else:
        left, right = axes
    left, right = axis_tuple(left, ndim_of(x)), axis_tuple(right, ndim_of(y))
    lengths = [shape_of(x)[k] for k in left]
    if lengths != [shape_of(y)[k] for k in right]:
        raise ValueError("shape-mismatch for sum")
    x_rest = [k for k in range(ndim_of(x)) if k not in left]
    y_rest = [k for k in range(ndim_of(y)) if k not in right]
    shape = tuple(shape_of(x)[k] for k in x_rest) + tuple(shape_of(y)[k] for k in y_rest)
    summed = prod(lengths)
    rows = prod(shape_of(x)[k] for k in x_rest)
    columns = prod(shape_of(y)[k] for k in y_rest)
    x_matrix = _arranged(x, (*x_rest, *left), (rows, summed))
    y_matrix = _arranged(y, (*right, *y_rest), (summed, columns))
    out = contraction.matmul(x_matrix, y_matrix)
    return out if shape_of(out) == shape else structure.reshape(out, shape=shape)


def _arranged(x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The axes in this order, then the shape; not a view for users, so nothing records that it is one."""
    if axes != tuple(range(len(axes))):
        x = structure.transpose(x, axes=axes)
    return x if shape_of(x) == shape else structure.reshape(x, shape=shape)


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    refuse("einsum", out=out)
    subscripts, arrays = contraction.canonical_subscripts(operands)
    dtype = options.get("dtype")
    if dtype is not None:
        arrays = [array.astype(np.dtype(dtype)) for array in arrays]
    out = contraction.einsum(*arrays, subscripts=subscripts)
    letters, kept = subscripts.split("->")
    if len(arrays) == 1 and set(letters) == set(kept):  # nothing is added up: NumPy gives a view
        places = np.arange(np.size(arrays[0])).reshape(shape_of(arrays[0]))
        pick = partial(contraction.einsum, subscripts=subscripts)
        link(out, access.FlatPlaces(pick, pick(places)), arrays[0])
    return out


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = _factor(a), _factor(b)
    if not ndim_of(x) or not ndim_of(y):
        return np.multiply(x, y)
    ndim = max(ndim_of(x), ndim_of(y))
    x_shape = (1,) * (ndim - ndim_of(x)) + shape_of(x)
    y_shape = (1,) * (ndim - ndim_of(y)) + shape_of(y)
    x_wide = structure.reshape(x, shape=tuple(n for length in x_shape for n in (length, 1)))
    y_wide = structure.reshape(y, shape=tuple(n for length in y_shape for n in (1, length)))
    shape = tuple(m * n for m, n in zip(x_shape, y_shape, strict=True))
    return structure.reshape(x_wide * y_wide, shape=shape)


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    subscripts, arrays = contraction.canonical_subscripts(operands)
    empty = [np.broadcast_to(np.zeros(()), shape_of(array)) for array in arrays]
    return np.einsum_path(subscripts, *empty, optimize=optimize)


@implements(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = np.moveaxis(as_array(a), axisa, -1), np.moveaxis(as_array(b), axisb, -1)
    lengths = {shape_of(x)[-1], shape_of(y)[-1]}
    if not lengths <= {2, 3}:
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    if lengths == {2}:  # the third component alone
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    x, y = _in_space(x), _in_space(y)
    product = _turned(x, _AFTER) * _turned(y, _BEFORE) - _turned(x, _BEFORE) * _turned(y, _AFTER)
    return np.moveaxis(product, -1, axisc)


_AFTER, _BEFORE = np.array([1, 2, 0]), np.array([2, 0, 1])
_AFTER.flags.writeable = _BEFORE.flags.writeable = False


def _turned(x: Any, places: Any) -> Any:
    """x[..., places]"""
    template = (*(slice(None),) * (ndim_of(x) - 1), indexing.ARRAY)
    return indexing.index(x, places, template=template)


def _in_space(x: Any) -> Any:
    """Give a 2-D vector a third component of 0."""
    if shape_of(x)[-1] == 3:
        return x
    return np.concatenate([x, np.zeros((*shape_of(x)[:-1], 1), dtype_of(x))], axis=-1)
