"""Convolution along the last axis: z_k = sum_i x_i y_{k-i}, for all k where a term exists."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, bare
from functrans.core.shapes import ArraySpec, checked_length, shape_of, sum_to_shape
from functrans.ops.families import align_batched, result_spec


def _convolve(x: Any, y: Any) -> Any:
    """Leading axes broadcast; NumPy convolves one pair of vectors at a time."""
    lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    if not lead:
        return np.convolve(x, y)
    n, m = x.shape[-1], y.shape[-1]
    xs = np.broadcast_to(x, (*lead, n)).reshape(-1, n)
    ys = np.broadcast_to(y, (*lead, m)).reshape(-1, m)
    out = np.empty((len(xs), n + m - 1), np.result_type(x, y))
    for row, a, b in zip(out, xs, ys, strict=True):
        row[:] = np.convolve(a, b)
    return out.reshape((*lead, n + m - 1))


def _back(g: Any, other: Any, shape: tuple[int, ...]) -> Any:
    """sum_k g_k y_{k-i}: the convolution with y reversed, starting at i = 0."""
    whole = convolve(g, other[..., ::-1])
    start = shape_of(other)[-1] - 1
    return sum_to_shape(whole[..., start : start + shape[-1]], shape)


def _jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (x, y), (x_tangent, y_tangent) = args, tangents
    left = None if x_tangent is None else convolve(x_tangent, y)
    right = None if y_tangent is None else convolve(x, y_tangent)
    return left if right is None else right if left is None else left + right


def _pull(g: Any, saved: Any) -> Any:
    mask, x, y, x_shape, y_shape = saved
    parts = []
    if mask & 1:
        parts.append(_back(g, y, x_shape))
    if mask & 2:
        parts.append(_back(g, x, y_shape))
    return bare(parts)


def _vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    x, y = args
    kept = (x if mask & 2 else None, y if mask & 1 else None)
    return _pull, (mask, *kept, shape_of(x), shape_of(y))


def _spec(specs: tuple[ArraySpec, ...], params: Any) -> Any:
    x, y = specs
    checked_length(min(x.shape[-1], y.shape[-1]), least=1)
    lead = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    small = [ArraySpec((1,), x.dtype), ArraySpec((1,), y.dtype)]
    return result_spec(np.convolve, small, {}, (*lead, x.shape[-1] + y.shape[-1] - 1))


convolve = Primitive(
    "convolve",
    _convolve,
    jvp=_jvp,
    vjp=_vjp,
    batch=lambda primitive, args, batched, size, params: primitive(*align_batched(args, batched)),
    shape=_spec,
    kind="linear algebra",
)
