"""Integrals of samples: trapezoid, simpson, romb and the cumulative ones of scipy.integrate."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import holds_traced, plain
from functrans.surface.table import as_array, axis_index

si = load("scipy.integrate")


def _last(y: Any, axis: int) -> tuple[Any, int]:
    """Samples with the axis of integration last."""
    y = as_array(y)
    axis = axis_index(axis, len(shape_of(y)))
    return np.moveaxis(y, axis, -1), axis


def _steps(x: Any, dx: Any, axis: int, y: Any) -> Any:
    """The distances between samples, which broadcast against y with the axis of integration last."""
    if x is None:
        return np.asarray(dx) if not holds_traced(dx) else dx
    x = as_array(x)
    if len(shape_of(x)) > 1:
        x = np.moveaxis(x, axis, -1)
    elif shape_of(x)[0] != shape_of(y)[-1]:
        raise ValueError("If given, length of `x` along `axis` must be the same as `y`.")
    return x[..., 1:] - x[..., :-1]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule; SciPy's `trapezoid`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import trapezoid
    >>> grad(trapezoid)(np.array([1.0, 4.0, 9.0]))
    array([0.5, 1. , 0.5])
    """
    if not holds_traced(y, x, dx):
        return si.trapezoid(y, x, dx, axis)
    y, axis = _last(y, axis)
    return np.sum(_steps(x, dx, axis, y) * (y[..., 1:] + y[..., :-1]) / 2, axis=-1)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """The integrals from the first sample to each later one, by the trapezoidal rule.

    SciPy's `cumulative_trapezoid`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.integrate import cumulative_trapezoid
    >>> jacfwd(cumulative_trapezoid)(np.array([1.0, 4.0, 9.0]))
    array([[0.5, 0.5, 0. ],
           [0.5, 1. , 0.5]])
    """
    if not holds_traced(y, x, dx, initial):
        return si.cumulative_trapezoid(y, x, dx, axis, initial)
    y, axis = _last(y, axis)
    parts = _steps(x, dx, axis, y) * (y[..., 1:] + y[..., :-1]) / 2
    total = np.cumsum(parts, axis=-1)
    if initial is not None:
        if plain(initial) != 0:
            raise ValueError("`initial` must be `None` or `0`.")
        total = np.concatenate([np.zeros((*shape_of(total)[:-1], 1), dtype_of(total)), total], -1)
    return np.moveaxis(total, -1, axis)


def _first_part(y0: Any, y1: Any, y2: Any, h0: Any, h1: Any) -> Any:
    """∫ from x0 to x1 of the parabola through three samples, with h0 = x1 - x0 and h1 = x2 - x1."""
    # In Newton's form: y0 + d (x - x0) + c (x - x0)(x - x1), and ∫ (x - x0)(x - x1) = -h0³/6.
    slope0, slope1 = (y1 - y0) / h0, (y2 - y1) / h1
    curvature = (slope1 - slope0) / (h0 + h1)
    return h0 * (y0 + y1) / 2 - curvature * h0**3 / 6


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule; SciPy's `simpson`.

    If the number of intervals is odd, the last one is under the parabola through the last three samples.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import simpson
    >>> grad(simpson)(np.array([1.0, 4.0, 9.0])).round(6)
    array([0.333333, 1.333333, 0.333333])
    """
    if not holds_traced(y, x, dx):
        return si.simpson(y, x, dx=dx, axis=axis)
    y, axis = _last(y, axis)
    count = shape_of(y)[-1]
    h = _steps(x, dx, axis, y)
    h = np.broadcast_to(h, (*np.broadcast_shapes(shape_of(h)[:-1], shape_of(y)[:-1]), count - 1))
    if count <= 2:
        return np.sum(h * (y[..., 1:] + y[..., :-1]) / 2, axis=-1)
    end = count if count % 2 else count - 1
    y0, y1, y2 = y[..., 0 : end - 2 : 2], y[..., 1 : end - 1 : 2], y[..., 2:end:2]
    h0, h1 = h[..., 0 : end - 2 : 2], h[..., 1 : end - 1 : 2]
    pairs = _first_part(y0, y1, y2, h0, h1) + _first_part(y2, y1, y0, h1, h0)
    total = np.sum(pairs, axis=-1)
    if end < count:
        total = total + _first_part(y[..., -1], y[..., -2], y[..., -3], h[..., -1], h[..., -2])
    return total


def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """The integrals from the first sample to each later one, by parabolas; SciPy's `cumulative_simpson`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.integrate import cumulative_simpson
    >>> jacfwd(cumulative_simpson)(np.array([1.0, 4.0, 9.0])).round(3)
    array([[ 0.417,  0.667, -0.083],
           [ 0.333,  1.333,  0.333]])
    """
    if not holds_traced(y, x, dx, initial):
        return si.cumulative_simpson(y, x=x, dx=dx, axis=axis, initial=initial)
    y, axis = _last(y, axis)
    count = shape_of(y)[-1]
    if count < 3:
        steps = _steps(x, dx, axis, y)
        parts = steps * (y[..., 1:] + y[..., :-1]) / 2
    else:
        h = _steps(x, dx, axis, y)
        h = np.broadcast_to(
            h, (*np.broadcast_shapes(shape_of(h)[:-1], shape_of(y)[:-1]), count - 1)
        )
        y0, y1, y2, h0, h1 = y[..., :-2], y[..., 1:-1], y[..., 2:], h[..., :-1], h[..., 1:]
        first = _first_part(y0, y1, y2, h0, h1)  # of intervals 0, 1, ..., with the one after
        second = _first_part(y2, y1, y0, h1, h0)  # of intervals 1, 2, ..., with the one before
        # Intervals 0, 2, 4, ... look ahead and 1, 3, 5, ... back; the last one always looks back.
        ahead = np.concatenate([first, second[..., -1:]], -1)
        back = np.concatenate([first[..., :1], second], -1)
        parts = np.where(np.arange(count - 1) % 2 == 0, ahead, back)
    total = np.cumsum(parts, axis=-1)
    if initial is not None:
        start = np.moveaxis(as_array(initial), axis, -1) if shape_of(initial) else as_array(initial)
        start = np.broadcast_to(start, (*shape_of(total)[:-1], 1))
        total = np.concatenate([start, start + total], -1)
    return np.moveaxis(total, -1, axis)


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """The integral of 2^k + 1 samples by Romberg's method; SciPy's `romb`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import romb
    >>> grad(romb)(np.array([1.0, 4.0, 9.0])).round(6)
    array([0.333333, 1.333333, 0.333333])
    """
    if not holds_traced(y, dx):
        return si.romb(y, dx, axis, show)
    y, axis = _last(y, axis)
    count = shape_of(y)[-1] - 1
    levels = count.bit_length() - 1
    if count < 1 or 1 << levels != count:
        raise ValueError("Number of samples must be one plus a non-negative power of 2.")
    row: list[Any] = []
    for level in range(levels + 1):
        step = count >> level
        points = y[..., ::step]
        weights = np.ones(shape_of(points)[-1])
        weights[0] = weights[-1] = 0.5
        fresh = [np.sum(points * weights, axis=-1) * (step * dx)]
        for k, coarser in enumerate(row):
            fresh.append(fresh[-1] + (fresh[-1] - coarser) / (4 ** (k + 1) - 1))
        row = fresh
    return row[-1]
