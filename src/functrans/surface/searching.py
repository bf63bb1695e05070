"""Choosing, searching and partial sorting, and sets of values.

Where the number of results depends on the values, these are read: lanes of `vmap` split, and a staged
function raises an error. Results are taken from the arrays, so they have derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import searching, structure
from functrans.surface.shaping import (
    argsort,
    concatenate,
    ravel,
    sort,
    take,
    take_along_axis,
)
from functrans.surface.table import (
    as_array,
    axis_index,
    implements,
    into,
    known,
    ndim_of,
    newer,
    returns_arrays,
    returns_numbers,
    without_lists,
)


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    """Positions, as plain integers: lanes of `vmap` must agree on them, not on the values."""
    x = as_array(a)
    if not ndim_of(x):
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(x).")
    return np.asarray(concrete(x != 0)).nonzero()


_MISSING: Any = object()


@implements(np.where)
def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING, /) -> Any:
    if x is _MISSING and y is _MISSING:
        return nonzero(condition)
    if y is _MISSING:
        raise ValueError("either both or neither of x and y should be given")
    operands = [
        v if isinstance(v, (bool, int, float, complex)) else as_array(v) for v in (condition, x, y)
    ]
    return structure.where(*operands)


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return nonzero(ravel(a))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    x = as_array(a)
    return np.argwhere(np.asarray(concrete(x != 0)))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return take(ravel(arr), flatnonzero(condition))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    if out is not None:
        return into(out, compress(condition, a, axis))
    chosen = as_array(condition)
    if ndim_of(chosen) != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, nonzero(chosen)[0], axis)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if out is not None:
        return into(out, choose(a, choices, None, mode))
    choices = [without_lists(choice) for choice in choices]
    index, *options = np.broadcast_arrays(as_array(a), *map(as_array, choices))
    if mode == "wrap":
        index = index % len(options)
    elif mode == "clip":
        index = np.clip(index, 0, len(options) - 1)
    elif known(np.any((index < 0) | (index >= len(options)))):
        raise ValueError("invalid entry in choice array")
    table = np.stack(options).astype(np.result_type(*choices))
    return take_along_axis(table, index[None], 0)[0]


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    array = as_array(a)
    if sorter is not None:
        array = take(array, sorter)
    if ndim_of(array) != 1:
        raise ValueError("object too deep for desired array")
    return searching.searchsorted(array, as_array(v), side=side)


@implements(np.digitize)
@returns_numbers
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    if dtype_of(as_array(x)).kind == "c":
        raise TypeError("x may not be complex")
    edges, side = as_array(bins), "left" if right else "right"
    rising = searchsorted(edges, x, side)
    if not shape_of(edges)[0]:
        return rising
    falling = shape_of(edges)[0] - searchsorted(edges[::-1], x, side)
    return np.where(edges[0] <= edges[-1], rising, falling)


@implements(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), -1
    places = np.atleast_1d(concrete(kth))
    return searching.argpartition(x, kth=tuple(places.tolist()), axis=axis_index(axis, ndim_of(x)))


@implements(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    x = as_array(a)
    if axis is None:
        x, axis = ravel(x), -1
    return take_along_axis(x, argpartition(x, kth, axis), axis)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Sort by the first key, then stably by the next, and so on."""
    first, *others = [as_array(key) for key in keys]
    if not ndim_of(first):
        return np.intp(0)
    axis = axis_index(axis, ndim_of(first))
    order = argsort(first, axis, stable=True)
    for key in others:
        again = argsort(take_along_axis(key, order, axis), axis, stable=True)
        order = take_along_axis(order, again, axis)
    return order


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    ordered = sort(a)
    dtype = dtype_of(ordered)
    if dtype.kind == "c":
        return ordered
    small = dtype.char in "bhBH"
    return ordered.astype(np.complex64 if small else np.complex128)


@implements(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    x, axis = (ravel(a), 0) if axis is None else (as_array(a), axis)
    return searching.packbits(x, axis=axis_index(axis, ndim_of(x)), bitorder=bitorder)


@implements(np.unpackbits)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    x, axis = (ravel(a), 0) if axis is None else (as_array(a), axis)
    axis = axis_index(axis, ndim_of(x))
    return searching.unpackbits(x, axis=axis, count=count, bitorder=bitorder)


# Sets.


@implements(np.isin)
@returns_arrays
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    x, members = as_array(element), ravel(test_elements)
    count = shape_of(members)[0]
    if not count:
        return np.full(shape_of(x), invert)
    ordered = sort(members)
    place = searching.searchsorted(ordered, x, side="left")
    found = take(ordered, np.minimum(place, count - 1)) == x
    return ~found if invert else found


@implements(*newer("in1d"))  # until NumPy 2.3
def in1d(ar1: Any, ar2: Any, *args: Any, **options: Any) -> Any:
    return isin(ravel(ar1), ar2, *args, **options)


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct values, each taken from its first occurrence."""
    x = as_array(ar)
    _, index, inverse, counts = np.unique(
        np.asarray(concrete(x)), True, True, True, axis, equal_nan=equal_nan
    )
    values = take(x, index, axis)
    wanted = [
        each
        for each, asked in (
            (index, return_index),
            (inverse, return_inverse),
            (counts, return_counts),
        )
        if asked
    ]
    return (values, *wanted) if wanted else values


def _unique_record(numpy_function: Any) -> Any:
    """np.unique_all and similar functions, which return named tuples."""

    def found(x: Any) -> Any:
        array = as_array(x)
        plain = numpy_function(np.asarray(concrete(array)))
        return plain._replace(values=unique(array, equal_nan=False))

    return implements(numpy_function)(found)


unique_all = _unique_record(np.unique_all)
unique_counts = _unique_record(np.unique_counts)
unique_inverse = _unique_record(np.unique_inverse)


@implements(np.unique_values)
def unique_values(x: Any) -> Any:
    array = as_array(x)
    # NumPy's order is not always sorted: match the sorted values to it.
    order = np.argsort(np.argsort(np.unique_values(np.asarray(concrete(array)))))
    return take(unique(array, equal_nan=False), order)


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(concatenate([ravel(ar1), ravel(ar2)]))


@implements(np.intersect1d)
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    x, y = ravel(ar1), ravel(ar2)
    _, in_x, in_y = np.intersect1d(concrete(x), concrete(y), assume_unique, return_indices=True)
    common = take(x, in_x).astype(np.result_type(dtype_of(x), dtype_of(y)))
    return (common, in_x, in_y) if return_indices else common


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x = ravel(ar1) if assume_unique else unique(ar1)
    return extract(isin(x, ar2, invert=True), x)


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y = (ravel(a) if assume_unique else unique(a) for a in (ar1, ar2))
    parts = [extract(isin(x, y, invert=True), x), extract(isin(y, x, invert=True), y)]
    return sort(concatenate(parts))
