"""NumPy's products of arrays: dot, tensordot, einsum, outer, kron, and their kin."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.core.views import link
from functrans.numpy.table import as_array, axis_tuple, implements, ndim_of, refuse
from functrans.ops import access, contraction


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    refuse("dot", out=out)
    x, y = as_array(a), as_array(b)
    if ndim_of(x) == 0 or ndim_of(y) == 0:
        return x * y
    if ndim_of(y) <= 2:
        return contraction.matmul(x, y)
    return tensordot(x, y, (-1, -2))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    x, y = as_array(a), as_array(b)
    if ndim_of(x) == 0 or ndim_of(y) == 0:
        return x * y
    return tensordot(x, y, (-1, -1))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    refuse("outer", out=out)
    return as_array(a).reshape((-1, 1)) * as_array(b).reshape((1, -1))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return contraction.matmul(np.conj(as_array(a)).reshape(-1), as_array(b).reshape(-1))


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
    x_matrix = np.transpose(x, (*x_rest, *left)).reshape((rows, summed))
    y_matrix = np.transpose(y, (*right, *y_rest)).reshape((summed, columns))
    return contraction.matmul(x_matrix, y_matrix).reshape(shape)


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    refuse("einsum", out=out, dtype=options.get("dtype"))
    subscripts, arrays = contraction.canonical_subscripts(operands)
    out = contraction.einsum(*map(as_array, arrays), subscripts=subscripts)
    letters, kept = subscripts.split("->")
    if len(arrays) == 1 and set(letters) == set(kept):  # nothing is added up: NumPy gives a view
        places = np.arange(np.size(arrays[0])).reshape(shape_of(arrays[0]))
        pick = partial(contraction.einsum, subscripts=subscripts)
        link(out, access.FlatPlaces(pick, pick(places)), arrays[0])
    return out


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = as_array(a), as_array(b)
    ndim = max(ndim_of(x), ndim_of(y))
    x_shape = (1,) * (ndim - ndim_of(x)) + shape_of(x)
    y_shape = (1,) * (ndim - ndim_of(y)) + shape_of(y)
    x_wide = x.reshape(tuple(n for length in x_shape for n in (length, 1)))
    y_wide = y.reshape(tuple(n for length in y_shape for n in (1, length)))
    return (x_wide * y_wide).reshape(tuple(m * n for m, n in zip(x_shape, y_shape, strict=True)))
