"""NumPy's reductions that ignore nan; those on quantiles are in quantiles.py.

An entry that is nan is replaced by the identity of the reduction (0 in a sum, 1 in a product), so that no
derivative reaches it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.elementwise import root_of_squares
from functrans.surface import reductions
from functrans.surface.table import as_array, given, implements, known, refuse, returns_numbers


def _replaced(a: Any, value: float) -> tuple[Any, Any]:
    """The array with `value` in place of nan, and where nan was."""
    x = as_array(a)
    if dtype_of(x).kind not in "fc":
        return x, np.zeros((), bool)
    missing = np.isnan(x)
    return np.where(missing, value, x), missing


def _with_replacement(numpy_function: Any, function: Any, value: float) -> Any:
    """A function with NumPy's signature that first replaces nan by a value."""

    def replacing(a: Any, *args: Any, **options: Any) -> Any:
        return function(_replaced(a, value)[0], *args, **options)

    return implements(numpy_function)(replacing)


nansum = _with_replacement(np.nansum, reductions.sum, 0.0)
nanprod = _with_replacement(np.nanprod, reductions.prod, 1.0)
nancumsum = _with_replacement(np.nancumsum, reductions.cumsum, 0.0)
nancumprod = _with_replacement(np.nancumprod, reductions.cumprod, 1.0)


def _extreme(reduce: Any, lowest: float) -> Any:
    """np.fmax.reduce or np.fmin.reduce: nan only where everything is nan."""

    @returns_numbers
    def extreme(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x, missing = _replaced(a, lowest)
        found = reduce(x, axis, dtype, out, keepdims, initial, where)
        if dtype_of(x).kind not in "fc" or given(initial) is not None:
            return found
        empty = reductions.reduce_all(missing, axis, None, None, keepdims, None, where)
        return np.where(empty, np.nan, found)

    return extreme


reduce_fmax = _extreme(reductions.reduce_max, -np.inf)
reduce_fmin = _extreme(reductions.reduce_min, np.inf)


@implements(np.nanmax)
def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    return reduce_fmax(a, axis, None, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    return reduce_fmin(a, axis, None, out, keepdims, initial, where)


def _index_of_extreme(find: Any, lowest: float) -> Any:
    def index(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x, missing = _replaced(a, lowest)
        if known(np.any(reductions.all(np.broadcast_to(missing, x.shape), axis))):
            raise ValueError("All-NaN slice encountered")
        return find(x, axis, out, keepdims=keepdims)

    return index


nanargmax = implements(np.nanargmax)(_index_of_extreme(reductions.argmax, -np.inf))
nanargmin = implements(np.nanargmin)(_index_of_extreme(reductions.argmin, np.inf))


def _count(missing: Any, x: Any, axis: Any, keepdims: Any, where: Any) -> Any:
    present = ~np.broadcast_to(missing, x.shape)
    return reductions.sum(present, axis, keepdims=keepdims, where=where)


@implements(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    x, missing = _replaced(a, 0.0)
    if dtype_of(x).kind not in "fc":
        return reductions.mean(x, axis, dtype, out, keepdims, where=where)
    total = reductions.sum(x, axis, dtype, out, keepdims, None, where)
    count = _count(missing, x, axis, keepdims, where)
    return total / count.astype(dtype_of(total))


@returns_numbers
def _variance(
    x: Any, missing: Any, axis: Any, dtype: Any, lost: Any, keepdims: Any, where: Any, mean: Any
) -> Any:
    """The variance as a real number, with `lost` degrees of freedom, before it is given the dtype."""
    if dtype is not None:
        x = x.astype(np.dtype(dtype))
    count = _count(missing, x, axis, True, where)
    center = given(mean)
    if center is None:
        total = reductions.sum(x, axis, keepdims=True, where=where)
        center = total / count.astype(dtype_of(total))
    deviation = np.where(missing, 0.0, x - center)
    squares = (deviation * np.conj(deviation)).real
    left = count - lost
    total = reductions.sum(squares, axis, keepdims=keepdims, where=where)
    left = np.reshape(left, shape_of(total)).astype(dtype_of(total))
    return np.where(left <= 0, np.nan, total / np.where(left <= 0, 1, left))


def _spread(name: str, without_nan: Any, finish: Any) -> Any:
    """np.nanvar or np.nanstd: `finish` of the variance."""

    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        refuse(name, out=out)
        lost = ddof if given(correction) is None else correction
        x, missing = _replaced(a, 0.0)
        if dtype_of(x).kind not in "fc":
            return without_nan(x, axis, dtype, None, lost, keepdims, where=where, mean=mean)
        variance = _variance(x, missing, axis, dtype, lost, keepdims, where, mean)
        return reductions.in_dtype(finish(variance), dtype)

    return spread


nanvar = implements(np.nanvar)(_spread("nanvar", reductions.var, lambda variance: variance))
nanstd = implements(np.nanstd)(_spread("nanstd", reductions.std, root_of_squares))
