"""The methods of ufuncs on traced values: reduce, accumulate, outer and reduceat.

Sums, products, extremes and logic are reductions with their own rules. Any other ufunc is folded
along the axis: in halves if it is associative, which takes log n steps, otherwise from left to
right.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import FUNCTIONS, UFUNCS
from functrans.ops import running
from functrans.surface import elementwise as elementwise  # fills UFUNCS
from functrans.surface import nanfunctions, reductions
from functrans.surface.table import (
    as_array,
    axis_index,
    given,
    merge_axes,
    ndim_of,
    reduced_axes,
    refuse,
)

_ASSOCIATIVE: frozenset[Any] = frozenset(
    {np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.hypot, np.gcd, np.lcm}
    | {np.logaddexp, np.logaddexp2, np.logical_and, np.logical_or, np.logical_xor}
    | {np.bitwise_and, np.bitwise_or, np.bitwise_xor}
)
# Their identity, -inf, would take part of the derivative from other infinities.
_LOG_SUMS = (np.logaddexp, np.logaddexp2)
_REDUCTIONS: dict[Any, Any] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.reduce_max,
    np.minimum: reductions.reduce_min,
    np.fmax: nanfunctions.reduce_fmax,
    np.fmin: nanfunctions.reduce_fmin,
    np.logical_or: reductions.reduce_any,
    np.logical_and: reductions.reduce_all,
}
_RUNNING: dict[Any, Any] = {
    np.add: reductions.cumsum,
    np.multiply: reductions.cumprod,
    np.maximum: reductions.running(running.running_max, "maximum.accumulate"),
    np.minimum: reductions.running(running.running_min, "minimum.accumulate"),
}


def reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Combine the elements along axes with a ufunc."""
    refuse(f"{ufunc.__name__}.reduce", out=out)
    x, start = as_array(array), given(initial)
    known = _REDUCTIONS.get(ufunc)
    if known is not None:
        return known(x, axis, dtype, None, keepdims, initial, where)
    # NumPy checks the options and determines the dtype, on a single element.
    options: dict[str, Any] = {} if where is True else {"where": np.ones((), bool)}
    if start is not None:
        options["initial"] = np.ones((), dtype_of(as_array(start)))
    one = np.ones((1,) * ndim_of(x), dtype_of(x))
    computed = ufunc.reduce(one, axis=axis, dtype=dtype, **options).dtype
    axes = reduced_axes(axis, ndim_of(x))
    if where is not True:
        where = as_array(where)
        shape = np.broadcast_shapes(shape_of(x), shape_of(where))
        x, where = np.broadcast_to(x, shape), _in_front(np.broadcast_to(where, shape), axes)
    shape = shape_of(x)
    lined_up = _in_front(x.astype(computed), axes)
    if start is None and (ufunc not in _LOG_SUMS or where is not True or 0 in shape):
        start = ufunc.identity
    if start is not None:
        start = as_array(start).astype(computed)
    elif not shape_of(lined_up)[0]:
        raise ValueError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
    if ufunc in _ASSOCIATIVE:
        result = _fold_by_halves(ufunc, lined_up, start, where)
    else:
        result = _fold(ufunc, lined_up, start, where)
    if given(keepdims, False):
        kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
        return np.reshape(result, kept)
    return result


def _in_front(x: Any, axes: tuple[int, ...]) -> Any:
    """The axes to combine as one first axis."""
    return np.moveaxis(merge_axes(x, axes), -1, 0)


def _fold(ufunc: Any, x: Any, start: Any, where: Any) -> Any:
    begun = start is None
    result = x[0] if begun else np.broadcast_to(start, shape_of(x)[1:])
    for k in range(begun, shape_of(x)[0]):
        combined = ufunc(result, x[k])
        result = combined if where is True else np.where(where[k], combined, result)
    return result


def _fold_by_halves(ufunc: Any, x: Any, start: Any, where: Any) -> Any:
    if where is not True:  # without an identity, `start` itself does not change the result
        neutral = start if ufunc.identity is None else ufunc.identity
        x = np.where(where, x, as_array(neutral).astype(dtype_of(x)))
    while shape_of(x)[0] > 1:
        half, odd = divmod(shape_of(x)[0], 2)
        pairs = ufunc(x[: 2 * half : 2], x[1 : 2 * half : 2])
        x = np.concatenate([pairs, x[2 * half :]]) if odd else pairs
    if not shape_of(x)[0]:
        return np.broadcast_to(start, shape_of(x)[1:])
    return x[0] if start is None else ufunc(start, x[0])


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """All the partial results of `reduce` along an axis."""
    refuse(f"{ufunc.__name__}.accumulate", out=out)
    known = _RUNNING.get(ufunc)
    x = as_array(array)
    one = np.ones((1,) * ndim_of(x), dtype_of(x))
    computed = ufunc.accumulate(one, axis=axis, dtype=dtype).dtype
    if known is not None:
        return known(x, axis, computed)
    x = np.moveaxis(x.astype(computed), axis, 0)
    length = shape_of(x)[0]
    if ufunc in _ASSOCIATIVE:
        by = 1
        while by < length:  # after each step, every position combines the last 2 * by elements
            x = np.concatenate([x[:by], ufunc(x[:-by], x[by:])])
            by *= 2
    elif length:
        results = [x[0]]
        for k in range(1, length):
            results.append(ufunc(results[-1], x[k]))
        x = np.stack(results)
    return np.moveaxis(x, 0, axis)


def outer(ufunc: Any, a: Any, b: Any, **options: Any) -> Any:
    """A ufunc of every pair of elements."""
    x, y = as_array(a), as_array(b)
    return ufunc(x.reshape(shape_of(x) + (1,) * ndim_of(y)), y, **options)


def reduceat(
    ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`reduce` over the slices between one index and the next, or the element itself for an empty slice."""
    refuse(f"{ufunc.__name__}.reduceat", out=out)
    x = as_array(array)
    axis = axis_index(axis, ndim_of(x))
    starts = np.asarray(concrete(indices))
    # NumPy checks the indices, and determines the dtype.
    length = shape_of(x)[axis]
    computed = ufunc.reduceat(np.ones(length, dtype_of(x)), starts, dtype=dtype).dtype
    stops = [*starts[1:].tolist(), length]
    before = (slice(None),) * axis
    parts = []
    for start, stop in zip(starts.tolist(), stops, strict=True):
        part = x[(*before, slice(start, max(stop, start + 1)))]
        # A single element stays unchanged; `reduce` would begin with the identity: hypot(0, x) is |x|.
        alone = stop <= start + 1
        parts.append(
            part.astype(computed) if alone else reduce(ufunc, part, axis, computed, None, True)
        )
    if not parts:
        return x[(*before, slice(0, 0))].astype(computed)
    return np.concatenate(parts, axis=axis)


for _ufunc in UFUNCS:
    if isinstance(_ufunc, np.ufunc) and _ufunc.nin == 2 and _ufunc.signature is None:
        FUNCTIONS[_ufunc, "outer"] = partial(outer, _ufunc)
        if _ufunc.nout == 1:
            FUNCTIONS[_ufunc, "reduce"] = partial(reduce, _ufunc)
            FUNCTIONS[_ufunc, "accumulate"] = partial(accumulate, _ufunc)
            FUNCTIONS[_ufunc, "reduceat"] = partial(reduceat, _ufunc)
