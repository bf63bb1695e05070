"""NumPy's functions on shape and order: reshape, concatenate, take, sort, and similar functions."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete
from functrans.core.likeness import is_weak
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.views import link
from functrans.ops import access, indexing, sorting, structure
from functrans.surface import creation
from functrans.surface.table import (
    as_array,
    axis_index,
    axis_tuple,
    implements,
    in_array,
    into,
    ndim_of,
    newer,
    reduced_axes,
    refuse,
    static_ints,
)

# Shape.


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    x = as_array(a)
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    order = order.upper()
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if order not in ("C", "F"):
        order = "F" if _order_in_memory(x, order) == tuple(range(ndim_of(x)))[::-1] else "C"
    wanted = static_ints(shape if isinstance(shape, (tuple, list)) else (shape,))
    old = shape_of(x)
    if -1 in wanted:
        known = prod([n for n in wanted if n != -1])
        size = prod(old)
        if wanted.count(-1) > 1 or (known == 0 and size) or (known and size % known):
            raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
        wanted = tuple((size // known if known else 0) if n == -1 else n for n in wanted)
    if prod(wanted) != prod(old):
        raise ValueError(f"cannot reshape array of shape {old} into shape {wanted}")
    if order == "F":
        return transpose(reshape(transpose(x), wanted[::-1], copy=copy))
    if wanted == old:
        return x.copy() if copy else x
    out = structure.reshape(x, shape=wanted)
    if copy:
        return out
    if access.is_view(out, x):
        return link(out, access.ReshapeView(wanted), x)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return out


def _order_in_memory(x: Any, order: Any) -> tuple[int, ...]:
    """The order of the axes for order='A' and order='K', slowest first."""
    if order not in ("A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    axes = tuple(range(ndim_of(x)))
    if sum(n != 1 for n in shape_of(x)) < 2:
        return axes
    if not access.has_known_layout(x):
        raise errors.StagingError(
            f"order={order!r} depends on the memory layout of an array, which is not known while a "
            f"function is traced, at {errors.user_location()}. Use order='C' or order='F'."
        )
    like = access.layout(x) if isinstance(x, Tracer) else x
    if like is None or like.flags.c_contiguous:
        return axes
    if order == "K":
        return access.memory_order(like)
    return axes[::-1] if like.flags.f_contiguous else axes


@implements(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    x = as_array(a)
    if order in ("K", "k"):
        x, order = transpose(x, _order_in_memory(x, "K")), "C"
    flat = reshape(x, (-1,), order=order)
    # Unlike reshape, ravel copies an array that is not contiguous.
    return flat if access.is_contiguous(flat) else flat.copy()


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    x = as_array(a)
    ndim = ndim_of(x)
    if axes is None:
        order = tuple(range(ndim))[::-1]
    else:
        order = axis_tuple(axes, ndim)
        if len(order) != ndim:
            raise ValueError("axes don't match array")
    if order == tuple(range(ndim)):
        return in_array(x) if is_weak(x) else x
    return link(structure.transpose(x, axes=order), access.TransposeView(order), x)


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    if ndim_of(x) < 2:
        raise ValueError("matrix_transpose needs an array of at least two dimensions")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(ndim_of(a)))
    i, j = axis_index(axis1, len(order)), axis_index(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    ndim = ndim_of(a)
    sources, destinations = axis_tuple(source, ndim), axis_tuple(destination, ndim)
    if len(sources) != len(destinations):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return transpose(a, order)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis, start = axis_index(axis, ndim_of(a)), start + ndim_of(a) * (start < 0)
    return moveaxis(a, axis, start - (axis < start))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    x = as_array(array)
    wanted = static_ints(shape if isinstance(shape, (tuple, list)) else (shape,))
    old = shape_of(x)
    if old == wanted:
        return in_array(x)
    if len(old) > len(wanted) or np.broadcast_shapes(old, wanted) != wanted:
        raise ValueError(f"cannot broadcast an array of shape {old} to shape {wanted}")
    spread = partial(structure.broadcast_to, shape=wanted)
    return link(spread(x), access.ReadOnlyView(spread), x)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    arrays = [as_array(arg) for arg in args]
    shape = np.broadcast_shapes(*map(shape_of, arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    if axis is None:
        return reshape(a, tuple(n for n in shape if n != 1))
    axes = reduced_axes(axis, len(shape))
    if any(shape[k] != 1 for k in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return reshape(a, tuple(n for k, n in enumerate(shape) if k not in axes))


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    shape = shape_of(a)
    axes = (axis,) if not isinstance(axis, (tuple, list)) else tuple(axis)
    where = axis_tuple(axes, len(shape) + len(axes))
    lengths = iter(shape)
    return reshape(
        a, tuple(1 if k in where else next(lengths) for k in range(len(shape) + len(axes)))
    )


@implements(np.atleast_1d)
def atleast_1d(*arrays: Any) -> Any:
    wide = tuple(reshape(a, (1,)) if ndim_of(a) == 0 else a for a in map(as_array, arrays))
    return wide[0] if len(wide) == 1 else wide


@implements(np.atleast_2d)
def atleast_2d(*arrays: Any) -> Any:
    wide = tuple(
        reshape(a, (1,) * (2 - ndim_of(a)) + shape_of(a)) if ndim_of(a) < 2 else a
        for a in map(as_array, arrays)
    )
    return wide[0] if len(wide) == 1 else wide


@implements(np.atleast_3d)
def atleast_3d(*arrays: Any) -> Any:
    def widen(a: Any) -> Any:
        shape = shape_of(a)
        new = ((1, 1, 1), (1, *shape, 1), (*shape, 1), shape)[min(len(shape), 3)]
        return reshape(a, new)

    wide = tuple(widen(a) for a in map(as_array, arrays))
    return wide[0] if len(wide) == 1 else wide


# Joining and splitting.


@implements(np.concatenate, np.concat)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    refuse("concatenate", out=out)
    parts = [as_array(a) for a in arrays]
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if not shape_of(parts[0]):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    ndims = {ndim_of(part) for part in parts}
    if len(ndims) > 1:
        raise ValueError("all the input array dimensions must match exactly")
    joined = structure.concatenate(*parts, axis=axis_index(axis, ndims.pop()))
    return joined if dtype is None else joined.astype(dtype)


@implements(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    refuse("stack", out=out)
    parts = [as_array(a) for a in arrays]
    if len({shape_of(part) for part in parts}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(part, axis) for part in parts], axis, dtype=dtype)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [atleast_1d(a) for a in tup]
    return concatenate(parts, 0 if ndim_of(parts[0]) == 1 else 1, dtype=dtype)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    return concatenate([atleast_3d(a) for a in tup], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    parts = [as_array(a) for a in tup]
    return concatenate([reshape(a, (-1, 1)) if ndim_of(a) < 2 else a for a in parts], 1)


def _splitter(numpy_split: Any) -> Any:
    def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        x = as_array(ary)
        axis = axis_index(axis, ndim_of(x))
        # NumPy computes where to split.
        pieces = numpy_split(np.arange(shape_of(x)[axis]), concrete(indices_or_sections))
        return [_cut(x, axis, piece) for piece in pieces]

    return implements(numpy_split)(split)


split = _splitter(np.split)
array_split = _splitter(np.array_split)


def _cut(x: Any, axis: int, piece: Any) -> Any:
    start, stop = (int(piece[0]), int(piece[-1]) + 1) if len(piece) else (0, 0)
    return x[(slice(None),) * axis + (slice(start, stop),)]


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ndim_of(ary) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 0 if ndim_of(ary) == 1 else 1)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ndim_of(ary) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@implements(*newer("unstack"))
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    return tuple(moveaxis(x, axis, 0))


# Repeating and reordering.


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    x = as_array(A)
    counts = static_ints(reps if isinstance(reps, (tuple, list)) else (reps,))
    counts = (1,) * (ndim_of(x) - len(counts)) + counts
    shape = (1,) * (len(counts) - ndim_of(x)) + shape_of(x)
    spread = tuple(n for k, m in zip(counts, shape, strict=True) for n in (1, m))
    full = tuple(n for k, m in zip(counts, shape, strict=True) for n in (k, m))
    repeated = creation.copy(broadcast_to(reshape(x, spread), full), "C")
    return reshape(repeated, tuple(k * m for k, m in zip(counts, shape, strict=True)))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = as_array(a)
    if axis is None and ndim_of(x) == 1:
        axis = 0
    elif axis is None or not ndim_of(x):
        x, axis = ravel(x), 0 if axis is None else axis
    axis, counts, shape = axis_index(axis, ndim_of(x)), concrete(repeats), shape_of(x)
    if (
        type(counts) is int and counts > 1
    ):  # spread along a new axis, over which the gradient adds up
        before, n, after = shape[:axis], shape[axis], shape[axis + 1 :]
        column = structure.reshape(x, shape=(*before, n, 1, *after))
        spread = structure.broadcast_to(column, shape=(*before, n, counts, *after))
        return structure.reshape(structure.copy(spread), shape=(*before, n * counts, *after))
    return take(x, np.repeat(np.arange(shape[axis]), counts), axis)


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    x = as_array(m)
    axes = axis_tuple(axis, ndim_of(x))
    backward = slice(None, None, -1)
    return x[tuple(backward if k in axes else slice(None) for k in range(ndim_of(x)))]


@implements(np.flipud)
def flipud(m: Any) -> Any:
    return flip(m, 0)


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    return flip(m, 1)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = creation.copy(as_array(a))
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), shape_of(x))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = static_ints(shift)
    for by, along in np.broadcast(shifts, axes):
        along = axis_index(along, ndim_of(x))
        n = shape_of(x)[along]
        if n and by % n:
            before = (slice(None),) * along
            cut = n - int(by) % n
            parts = [x[(*before, slice(cut, None))], x[(*before, slice(None, cut))]]
            x = concatenate(parts, along)
    return x


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    i, j = axis_tuple(tuple(axes), ndim_of(m))
    turns = int(k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(flip(m, i), j)
    turned = swapaxes(flip(m, j), i, j) if turns == 1 else flip(swapaxes(m, i, j), j)
    return turned


# Triangles and diagonals.


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    x = as_array(m)
    mask = np.tri(*_matrix_shape(x), k=k - 1, dtype=bool)
    return structure.where(mask, np.zeros((), dtype_of(x)), x)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    x = as_array(m)
    mask = np.tri(*_matrix_shape(x), k=k, dtype=bool)
    return structure.where(mask, x, np.zeros((), dtype_of(x)))


def _matrix_shape(x: Any) -> tuple[int, int]:
    shape = shape_of(x)
    return (shape[0], shape[0]) if len(shape) == 1 else (shape[-2], shape[-1])


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    x = as_array(a)
    take = partial(_diagonal, offset=offset, axis1=axis1, axis2=axis2)
    return link(take(x), access.ReadOnlyView(take), x)


def _diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Any:
    if type(a) is np.ndarray:
        return np.diagonal(a, offset, axis1, axis2)
    last = ndim_of(a) - 2, ndim_of(a) - 1
    x = a if (axis1, axis2) == last and last[0] >= 0 else moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = shape_of(x)[-2:]
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    along = np.arange(length)
    places = (along - offset, along) if offset < 0 else (along, along + offset if offset else along)
    template = (*(slice(None),) * (ndim_of(x) - 2), indexing.ARRAY, indexing.ARRAY)
    return indexing.index(x, *places, template=template)


@implements(np.linalg.diagonal)
def diagonal_of_matrices(x: Any, /, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    x = as_array(v)
    if ndim_of(x) == 2:
        return diagonal(x, k)
    if ndim_of(x) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = shape_of(x)[0]
    along = np.arange(n)
    rows, columns = along + max(-k, 0), along + max(k, 0)
    return indexing.scatter(
        x, rows, columns, shape=(n + abs(k),) * 2, template=(indexing.ARRAY, indexing.ARRAY)
    )


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(v), k)


@implements(np.trace)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    return _diagonal(as_array(a), offset, axis1, axis2).sum(axis=-1, dtype=dtype, out=out)


# Taking and sorting.


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """Take elements of an array along an axis; the indices may be traced, even if the array is plain.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans
    >>> import functrans.numpy
    >>> table = np.array([10.0, 20.0, 30.0])
    >>> functrans.vmap(lambda i: functrans.numpy.take(table, i))(np.array([[0, 2], [1, 1]]))
    array([[10., 30.],
           [20., 20.]])
    """
    if out is not None:
        return into(out, take(a, indices, axis, None, mode))
    x, chosen = as_array(a), as_array(indices)
    if dtype_of(chosen).kind == "b":  # the integers 0 and 1 here, not a mask
        chosen = chosen.astype(np.intp)
    if axis is None or not ndim_of(x):  # a number counts as an array of one element
        x, axis = ravel(x), axis or 0
    axis = axis_index(axis, ndim_of(x))
    outer, length, inner = shape_of(x)[:axis], shape_of(x)[axis], shape_of(x)[axis + 1 :]
    shape = (*outer, *shape_of(chosen), *inner)
    if 0 in outer:  # there is nothing to take, and NumPy does not check the indices
        return np.zeros(shape, dtype_of(x))
    if not length and 0 not in shape:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "wrap" and length:
        chosen = chosen % length
    elif mode == "clip" and length:
        chosen = np.clip(chosen, 0, length - 1)
    return access.getitem(x, (*[slice(None)] * axis, chosen))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, chosen = as_array(arr), as_array(indices)
    if axis is None:
        x, axis = ravel(x), 0
    return access.getitem(x, along_axis(x, chosen, axis_index(axis, ndim_of(x))))


def along_axis(x: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    """The key that selects `indices` along an axis, and every position along the others."""
    ndim = ndim_of(x)
    if ndim_of(indices) != ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    key = []
    for k in range(ndim):
        along = np.arange(shape_of(x)[k]).reshape((-1,) + (1,) * (ndim - 1 - k))
        # An axis of length 1 in x broadcasts against the indices.
        key.append(indices if k == axis else along)
    return tuple(key)


@implements(np.argsort)
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), -1
    if not shape_of(x):
        x = reshape(x, (1,))
    return sorting.argsort(
        x, axis=axis_index(axis, ndim_of(x)), kind="stable" if stable else kind or "quicksort"
    )


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), -1
    axis = axis_index(axis, ndim_of(x))
    return take_along_axis(x, argsort(x, axis, kind, stable=stable), axis)
