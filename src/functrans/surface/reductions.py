"""NumPy's reductions: sums, means, extremes, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import reduction
from functrans.ops.elementwise import root_of_squares
from functrans.surface.table import (
    as_array,
    axis_index,
    axis_tuple,
    given,
    implements,
    into,
    ndim_of,
    newer,
    reduced_axes,
)


def _reduce(primitive: Any, name: str, identity: Any, combine: Any) -> Any:
    """A reduction with NumPy's signature; `where` replaces hidden entries by the identity."""

    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x = as_array(a)
        if dtype is out is initial is None and where is True and type(keepdims) is bool:
            ndim = ndim_of(x)
            if ndim:
                return primitive(x, axis=axis_tuple(axis, ndim), keepdims=keepdims)
            return primitive(_scalar(x), axis=reduced_axes(axis, ndim), keepdims=keepdims)
        if out is not None:
            return into(out, reduce(a, axis, dtype, None, keepdims, initial, where))
        if not ndim_of(x):
            x = _scalar(x)
        if dtype is not None:
            x = x.astype(np.dtype(dtype))
        where, initial = given(where, True), given(initial)
        if where is not True:
            fill = initial if identity is None else identity
            if fill is None:
                raise ValueError(f"np.{name} with where= needs initial=")
            x = np.where(where, x, as_array(fill).astype(dtype_of(x)))
        axes = reduced_axes(axis, ndim_of(x))
        keep = bool(given(keepdims, False))
        if initial is not None and identity is None and not _count(shape_of(x), axes):
            # Nothing to compare: the result is `initial` itself.
            lengths = [(1 if k in axes else n, k) for k, n in enumerate(shape_of(x))]
            shape = tuple(n for n, k in lengths if keep or k not in axes)
            return np.broadcast_to(as_array(initial).astype(dtype_of(x)), shape)
        result = primitive(x, axis=axes, keepdims=keep)
        if dtype is not None:  # by default NumPy sums short integers as long ones
            result = result.astype(np.dtype(dtype), copy=False)
        if initial is None:
            return result
        return combine(result, as_array(initial).astype(dtype_of(result)))

    return reduce


def _scalar(x: Any) -> Any:
    """A Python number, traced or not, as a NumPy number, which has a shape and a dtype."""
    return x.astype(dtype_of(x))


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    total = 1
    for axis in axes:
        total *= shape[axis]
    return total


def _terms(x: Any, axis: Any, keepdims: Any, where: Any) -> Any:
    """How many elements a reduction combines: a number, or an array if `where` is an array."""
    if where is True:
        return _count(shape_of(x), axis_tuple(axis, ndim_of(x)))
    return sum(np.broadcast_to(where, shape_of(x)), axis, keepdims=keepdims)


sum = _reduce(reduction.sum, "sum", 0, np.add)
prod = _reduce(reduction.prod, "prod", 1, np.multiply)
reduce_max = _reduce(reduction.max, "max", None, np.maximum)
reduce_min = _reduce(reduction.min, "min", None, np.minimum)
reduce_any = _reduce(reduction.any, "any", False, np.logical_or)
reduce_all = _reduce(reduction.all, "all", True, np.logical_and)
implements(np.sum)(sum)
implements(np.prod)(prod)


@implements(np.max, np.amax)
def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    return reduce_max(a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    return reduce_min(a, axis, None, out, keepdims, initial, where)


@implements(np.any)
def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    return reduce_any(a, axis, None, out, keepdims, None, where)


@implements(np.all)
def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    return reduce_all(a, axis, None, out, keepdims, None, where)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum(as_array(a) != 0, axis, keepdims=keepdims)


@implements(np.mean)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    if dtype is out is None and where is True and keepdims is False and isinstance(a, Tracer):
        ndim = len(a.shape)  # type: ignore[attr-defined]
        if not ndim:
            a = _scalar(a)
        axes = tuple(range(ndim)) if axis is None else axis_tuple(axis, ndim)
        return a.interpreter.process(reduction.mean, (a,), {"axis": axes, "keepdims": False})
    x = as_array(a)
    if not ndim_of(x):
        x = _scalar(x)
    where = given(where, True)
    if out is not None:
        return into(out, mean(x, axis, dtype, None, keepdims, where=where))
    if dtype is not None and np.dtype(dtype).kind in "biu":
        total = sum(x, axis, dtype, None, keepdims, None, where)
        return (total / _terms(x, axis, keepdims, where)).astype(np.dtype(dtype))
    if dtype is not None:
        x = x.astype(np.dtype(dtype))
    if where is True:
        return reduction.mean(
            x, axis=axis_tuple(axis, ndim_of(x)), keepdims=bool(given(keepdims, False))
        )
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    count = _terms(x, axis, keepdims, where).astype(dtype_of(x))
    return sum(x, axis, None, None, keepdims, None, where) / count


@implements(np.var)
def var(
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
    lost = ddof if given(correction) is None else correction
    spread = in_dtype(_variance(a, axis, dtype, lost, keepdims, where, mean), dtype)
    return spread if out is None else into(out, spread)


def in_dtype(result: Any, dtype: Any) -> Any:
    """A real result in the requested dtype, which may be complex or an integer dtype."""
    return result if dtype is None else result.astype(np.dtype(dtype))


def _variance(
    a: Any, axis: Any, dtype: Any, lost: Any, keepdims: Any, where: Any, mean: Any
) -> Any:
    """The variance as a real number, with `lost` degrees of freedom, before it is given the dtype."""
    x = as_array(a)
    where = given(where, True)
    integral = dtype is not None and np.dtype(dtype).kind in "biu"
    if not integral and (dtype is not None or dtype_of(x).kind in "biu"):
        x = x.astype(np.dtype(dtype or np.float64))
    center = given(mean)
    if center is None:
        center = _mean(x, axis, dtype if integral else None, keepdims=True, where=where)
    deviation = x - center
    squares = (
        (deviation * np.conj(deviation)).real if dtype_of(x).kind == "c" else deviation * deviation
    )
    total = sum(squares, axis, dtype if integral else None, None, keepdims, None, where)
    left = _terms(x, axis, keepdims, where) - lost
    computed = np.dtype(np.float64) if integral else dtype_of(total)
    if where is True:
        # If ddof exceeds the number of elements, NumPy divides by 0.
        return total / computed.type(left if left > 0 else 0)
    return total / np.maximum(left, 0).astype(computed)


_mean = mean


@implements(np.std)
def std(
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
    """The root of the variance; like every length, its subgradient at 0 is 0."""
    lost = ddof if given(correction) is None else correction
    variance = _variance(a, axis, dtype, lost, keepdims, where, mean)
    if dtype is not None and np.dtype(dtype).kind in "biu":
        variance = variance.astype(np.dtype(dtype)).astype(np.float64)
    root = in_dtype(root_of_squares(variance), dtype)
    return root if out is None else into(out, root)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    span = max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)
    return span if out is None else into(out, span)


def _arg(primitive: Any, name: str) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if out is not None:
            return into(out, find(a, axis, keepdims=keepdims))
        x = as_array(a)
        keep = bool(given(keepdims, False))
        if axis is None or (axis in (0, -1) and not ndim_of(x)):
            found = primitive(x.reshape(-1), axis=0, keepdims=False)
            return found.reshape((1,) * ndim_of(x)) if keep else found
        return primitive(x, axis=axis_index(axis, ndim_of(x)), keepdims=keep)

    return find


argmax = implements(np.argmax)(_arg(reduction.argmax, "argmax"))
argmin = implements(np.argmin)(_arg(reduction.argmin, "argmin"))


def running(primitive: Any, name: str) -> Any:
    def run(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if out is not None:
            return into(out, run(a, axis, dtype))
        x = as_array(a)
        if dtype is not None:
            x = x.astype(np.dtype(dtype))
        if axis is None or not ndim_of(x):
            x, axis = x.reshape(-1), 0 if axis is None else axis
        result = primitive(x, axis=axis_index(axis, ndim_of(x)))
        return result if dtype is None else result.astype(np.dtype(dtype), copy=False)

    return run


cumsum = implements(np.cumsum)(running(reduction.cumsum, "cumsum"))
cumprod = implements(np.cumprod)(running(reduction.cumprod, "cumprod"))


def _cumulative(run: Any, first: int) -> Any:
    """The array API's cumulative sum and product, which may include the initial value."""

    def cumulative(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        array = as_array(x)
        if not ndim_of(array):
            array = array.reshape(1)
        if axis is None:
            if ndim_of(array) > 1:
                raise ValueError(
                    "For arrays which have more than one dimension ``axis`` argument is required."
                )
            axis = 0
        axis = axis_index(axis, ndim_of(array))
        result = run(array, axis, dtype, out)
        if not include_initial:
            return result
        shape = tuple(1 if k == axis else n for k, n in enumerate(shape_of(result)))
        return np.concatenate([np.full(shape, first, dtype_of(result)), result], axis=axis)

    return cumulative


cumulative_sum = implements(*newer("cumulative_sum"))(_cumulative(cumsum, 0))
cumulative_prod = implements(*newer("cumulative_prod"))(_cumulative(cumprod, 1))
