"""Differences, integrals, interpolation and convolution of sampled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import convolution, searching
from functrans.surface.shaping import take
from functrans.surface.table import (
    as_array,
    axis_index,
    axis_tuple,
    given,
    implements,
    known,
    ndim_of,
    returns_numbers,
)


def _along(x: Any, axis: int, part: Any) -> Any:
    """x[part] along one axis."""
    return x[(slice(None),) * axis + (part,)]


@implements(np.diff)
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue
) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    x = as_array(a)
    if not ndim_of(x):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = axis_index(axis, ndim_of(x))
    parts = [x]
    for side, more in ((0, given(prepend)), (1, given(append))):
        if more is not None:
            piece = as_array(more)
            if not ndim_of(piece):
                shape = tuple(1 if k == axis else m for k, m in enumerate(shape_of(x)))
                piece = np.broadcast_to(piece, shape)
            parts.insert(side * len(parts), piece)
    if len(parts) > 1:
        x = np.concatenate(parts, axis=axis)
    subtract: Any = np.not_equal if dtype_of(x).kind == "b" else np.subtract
    for _ in range(n):
        x = subtract(_along(x, axis, slice(1, None)), _along(x, axis, slice(None, -1)))
    return x


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = as_array(ary).reshape(-1)
    parts = [x[1:] - x[:-1]]
    for place, more in ((0, to_begin), (len(parts) + 1, to_end)):
        if more is not None:
            piece = as_array(more)
            if not np.can_cast(dtype_of(piece), dtype_of(x), casting="same_kind"):
                raise TypeError("dtype of `to_begin` and `to_end` must be compatible with `ary`.")
            parts.insert(place, piece.reshape(-1).astype(dtype_of(x)))
    return np.concatenate(parts)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = as_array(y)
    place = axis_index(axis, ndim_of(values))
    if x is None:
        width = dx
    else:
        points = as_array(x)
        if ndim_of(points) == 1:
            width = np.diff(points).reshape((-1,) + (1,) * (ndim_of(values) - place - 1))
        else:
            width = np.diff(points, axis=axis)  # which may have more axes than the values
    pairs = _along(values, place, slice(1, None)) + _along(values, place, slice(None, -1))
    return (width * pairs / 2.0).sum(axis=axis)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = as_array(f)
    ndim = ndim_of(x)
    axes = axis_tuple(axis, ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if dtype_of(x).kind == "b":
        np.subtract(np.True_, np.True_)  # NumPy's own error
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    steps = _spacings(varargs, x, axes)
    if any(shape_of(x)[k] < edge_order + 1 for k in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least "
            "(edge_order + 1) elements are required."
        )
    results = tuple(_slope(x, k, h, edge_order) for k, h in zip(axes, steps, strict=True))
    return results[0] if len(axes) == 1 else results


def _spacings(given: Any, x: Any, axes: tuple[int, ...]) -> list[Any]:
    """For each axis, the step, or the steps from point to point."""
    if len(given) == 0:
        return [1.0] * len(axes)
    if len(given) == 1 and ndim_of(as_array(given[0])) == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    steps: list[Any] = []
    for k, spacing in zip(axes, given, strict=True):
        points = as_array(spacing)
        if ndim_of(points) == 0:
            steps.append(spacing)
            continue
        if ndim_of(points) != 1:
            raise ValueError("distances must be either scalars or 1d")
        if shape_of(points)[0] != shape_of(x)[k]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        if dtype_of(points).kind in "biu":
            points = points.astype(np.float64)
        steps.append(np.diff(points))
    return steps


def _slope(x: Any, axis: int, step: Any, edge_order: int) -> Any:
    """Central differences inside, one-sided ones of `edge_order` at both ends."""

    def at(start: int | None, stop: int | None) -> Any:
        return _along(x, axis, slice(start, stop))

    even = ndim_of(as_array(step)) == 0
    column = (-1,) + (1,) * (ndim_of(x) - axis - 1)

    def steps(start: int | None, stop: int | None) -> Any:
        return step if even else step[start:stop].reshape(column)

    parts = []
    if shape_of(x)[axis] > 2:
        if even:
            inside = (at(2, None) - at(None, -2)) / (2.0 * step)
        else:
            # The slope of the parabola through three points with distances p and q.
            p, q = steps(None, -1), steps(1, None)
            inside = (
                -q / (p * (p + q)) * at(None, -2)
                + (q - p) / (p * q) * at(1, -1)
                + p / (q * (p + q)) * at(2, None)
            )
        parts.append(inside)
    if edge_order == 1:
        first = (at(1, 2) - at(0, 1)) / steps(0, 1)
        last = (at(-1, None) - at(-2, -1)) / steps(-1, None)
    else:
        first = _edge(steps(0, 1), steps(1, 2), at(0, 1), at(1, 2), at(2, 3))
        last = -_edge(steps(-1, None), steps(-2, -1), at(-1, None), at(-2, -1), at(-3, -2))
    return np.concatenate([first, *parts, last], axis=axis).astype(dtype_of(x))


def _edge(p: Any, q: Any, near: Any, middle: Any, far: Any) -> Any:
    """The slope at the end of the parabola through three points; p and q are their distances."""
    return (
        -(2.0 * p + q) / (p * (p + q)) * near + (p + q) / (p * q) * middle - p / (q * (p + q)) * far
    )


@implements(np.interp)
@returns_numbers
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Linear interpolation. At a point of xp, the slope is that of the line after it."""
    at, points, values = as_array(x), as_array(xp), as_array(fp)
    if dtype_of(at).kind == "c" or dtype_of(points).kind == "c":
        raise TypeError("np.interp needs real x and xp")
    at, points = at.astype(np.float64), points.astype(np.float64)
    values = values.astype(np.complex128 if dtype_of(values).kind == "c" else np.float64)
    if ndim_of(points) != 1 or ndim_of(values) != 1:
        raise ValueError("object too deep for desired array")
    if shape_of(points) != shape_of(values):
        raise ValueError("fp and xp are not of the same length.")
    if not shape_of(points)[0]:
        raise ValueError("array of sample points is empty")
    if period is not None:
        if known(period == 0):
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        at, points = at % period, points % period
        order = np.argsort(points)
        points, values = take(points, order), take(values, order)
        points = np.concatenate([points[-1:] - period, points, points[:1] + period])
        values = np.concatenate([values[-1:], values, values[:1]])
        left = right = None
    last = shape_of(points)[0] - 1
    before = values[0] if left is None else left
    after = values[-1] if right is None else right
    if not last:
        result = np.broadcast_to(values[0], shape_of(at)) + 0 * at
    else:
        k = np.clip(searching.searchsorted(points, at, side="right") - 1, 0, last - 1)
        x0, x1, y0, y1 = take(points, k), take(points, k + 1), take(values, k), take(values, k + 1)
        jump = x1 == x0  # several of the last points may coincide
        slope = (y1 - y0) / np.where(jump, 1, x1 - x0)
        result = np.where(jump, y1, slope * (at - x0) + y0)
    return np.where(at < points[0], before, np.where(at > points[-1], after, result))


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, y = _vectors(a, v)
    if not shape_of(x)[0]:
        raise ValueError("a cannot be empty")
    if not shape_of(y)[0]:
        raise ValueError("v cannot be empty")
    long, short = max(shape_of(x)[0], shape_of(y)[0]), min(shape_of(x)[0], shape_of(y)[0])
    return _part(convolution.convolve(x, y), mode, long, short, (short - 1) // 2)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The convolution with v reversed and conjugated."""
    x, y = _vectors(a, v)
    n, m = shape_of(x)[0], shape_of(y)[0]
    if not n or not m:
        raise ValueError("first array argument cannot be empty")
    whole = convolution.convolve(x, y.conj()[::-1])
    # NumPy swaps the arrays if the second is longer, and then reads the result backward.
    return _part(whole, mode, max(n, m), min(n, m), (m - 1) // 2 if n >= m else n // 2)


def _part(whole: Any, mode: str, long: int, short: int, start: int) -> Any:
    """The part of the result that `mode` selects; `start` is where mode "same" begins."""
    if mode == "full":
        return whole
    if mode == "same":
        return whole[start : start + long]
    if mode == "valid":
        return whole[short - 1 : long]
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def _vectors(a: Any, v: Any) -> tuple[Any, Any]:
    x, y = np.atleast_1d(as_array(a)), np.atleast_1d(as_array(v))
    if ndim_of(x) != 1 or ndim_of(y) != 1:
        raise ValueError("object too deep for desired array")
    return x, y


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    x = as_array(p)
    axis = axis_index(axis, ndim_of(x))
    jump = np.diff(x, axis=axis)
    limit = period / 2 if discont is None else discont
    whole = dtype_of(x).kind in "biu" and isinstance(period, int)
    half = period // 2 if whole else period / 2
    odd = bool(whole and period % 2)
    # Each jump is replaced by the equivalent one in [-period/2, period/2).
    inside = np.mod(jump + half, period) - half
    if not odd:  # a rise by exactly half a period stays a rise
        inside = np.where((inside == -half) & (jump > 0), half, inside)
    correction = np.where(abs(jump) < limit, 0, inside - jump)
    first, rest = _along(x, axis, slice(None, 1)), _along(x, axis, slice(1, None))
    unwrapped = np.concatenate([first, rest + np.cumsum(correction, axis=axis)], axis=axis)
    return unwrapped.astype(np.result_type(jump, period))
