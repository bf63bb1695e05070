"""The primitives behind `functrans.scipy.signal`: convolutions along several axes, and recursive filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, bare
from functrans.core.shapes import ArraySpec, checked_length, dtype_of, shape_of, sum_to_shape
from functrans.ops.families import align_batched, result_spec
from functrans.scipy.loading import load

ss = load("scipy.signal")


def _lead(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*shapes)


# z_k = Σ_i x_i y_(k-i) for the last `ndim` axes, for all k where a term exists. Leading axes broadcast.


def _convolve(x: Any, y: Any, ndim: int) -> Any:
    kx, ky = x.ndim - ndim, y.ndim - ndim
    lead = _lead(x.shape[:kx], y.shape[:ky])
    if not lead:
        return ss.convolve(x, y)
    full = tuple(m + n - 1 for m, n in zip(x.shape[kx:], y.shape[ky:], strict=True))
    xs = np.broadcast_to(x, lead + x.shape[kx:]).reshape((-1, *x.shape[kx:]))
    ys = np.broadcast_to(y, lead + y.shape[ky:]).reshape((-1, *y.shape[ky:]))
    out = np.empty((len(xs), *full), np.result_type(x, y))
    for row, a, b in zip(out, xs, ys, strict=True):
        row[...] = ss.convolve(a, b)
    return out.reshape(lead + full)


def _convolve_back(g: Any, other: Any, shape: tuple[int, ...], ndim: int) -> Any:
    """Σ_k g_k y_(k-i): the convolution with y reversed, from the place where i is 0."""
    core = shape_of(other)[len(shape_of(other)) - ndim :]
    axes = tuple(range(-ndim, 0))
    whole = convolve(g, np.flip(other, axes), ndim=ndim)
    own = shape[len(shape) - ndim :]
    place = tuple(slice(n - 1, n - 1 + m) for n, m in zip(core, own, strict=True))
    return sum_to_shape(whole[(..., *place)], shape)


def _convolve_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (x, y), (dx, dy) = args, tangents
    left = None if dx is None else convolve(dx, y, **params)
    right = None if dy is None else convolve(x, dy, **params)
    return left if right is None else right if left is None else left + right


def _convolve_pull(g: Any, saved: Any) -> Any:
    mask, x, y, x_shape, y_shape, ndim = saved
    parts = []
    if mask & 1:
        parts.append(_convolve_back(g, y, x_shape, ndim))
    if mask & 2:
        parts.append(_convolve_back(g, x, y_shape, ndim))
    return bare(parts)


def _convolve_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    x, y = args
    kept = (x if mask & 2 else None, y if mask & 1 else None)
    return _convolve_pull, (mask, *kept, shape_of(x), shape_of(y), params["ndim"])


def _batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(*align_batched(args, batched), **params)


def _convolve_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    x, y = specs
    ndim = checked_length(params["ndim"], least=1)
    if min(x.ndim, y.ndim) < ndim:
        raise ValueError(f"a convolution along {ndim} axes needs that many")
    kx, ky = x.ndim - ndim, y.ndim - ndim
    lead = _lead(x.shape[:kx], y.shape[:ky])
    full = tuple(m + n - 1 for m, n in zip(x.shape[kx:], y.shape[ky:], strict=True))
    small = [ArraySpec((1,) * ndim, x.dtype), ArraySpec((1,) * ndim, y.dtype)]
    return result_spec(_convolve, small, params, lead + full)


convolve: Primitive = Primitive(
    "convolve_along_axes",
    _convolve,
    jvp=_convolve_jvp,
    vjp=_convolve_vjp,
    batch=_batch,
    shape=_convolve_spec,
    kind="linear algebra",
)


# y_t = Σ_k b_k x_(t-k) - Σ_(k>0) a_k y_(t-k) along the last axis, for a_0 = 1 and zeros before the start. As
# polynomials, A Y = B X, so A dY = B dX + dB X - dA Y: every derivative is a filter with the same poles.
# The transpose in x is the filter that runs backwards in time.


def _lfilter(b: Any, a: Any, x: Any) -> Any:
    lead = _lead(b.shape[:-1], a.shape[:-1], x.shape[:-1])
    if x.shape[-1] == 0:
        return np.zeros((*lead, 0), np.result_type(b, a, x))
    if b.ndim == a.ndim == 1:
        return ss.lfilter(b, a, x)
    rows = [
        np.broadcast_to(each, lead + each.shape[-1:]).reshape((-1, each.shape[-1]))
        for each in (b, a, x)
    ]
    out = np.empty((len(rows[0]), x.shape[-1]), np.result_type(b, a, x))
    for row, one_b, one_a, one_x in zip(out, *rows, strict=True):
        row[...] = ss.lfilter(one_b, one_a, one_x)
    return out.reshape((*lead, x.shape[-1]))


def _without_first(a: Any) -> Any:
    """a with a zero in place of a_0, which is constant."""
    return a * (np.arange(shape_of(a)[-1]) > 0).astype(dtype_of(a))


def _lfilter_jvp(y: Any, args: Any, tangents: Any, params: Any) -> Any:
    (b, a, x), (db, da, dx) = args, tangents
    total = None if dx is None else lfilter(b, a, dx)
    if db is not None:
        moved = lfilter(db, a, x)
        total = moved if total is None else total + moved
    if da is not None:
        moved = lfilter(_without_first(da), a, y)
        total = -moved if total is None else total - moved
    return total


def _lags(g: Any, x: Any, count: int) -> Any:
    """Σ_t g_t x_(t-k) for k below `count`."""
    length = shape_of(x)[-1]
    sums = [
        np.sum(g[..., k:] * x[..., : length - k], axis=-1) if k < length else 0 * g[..., 0]
        for k in range(count)
    ]
    return np.stack(sums, axis=-1)


def _lfilter_pull(g: Any, saved: Any) -> Any:
    mask, y, (b, a, x) = saved
    backwards: Any = lambda taps: np.flip(lfilter(taps, a, np.flip(g, -1)), -1)
    parts = []
    if mask & 3:
        seen = backwards(np.ones(1, dtype_of(a)))
    if mask & 1:
        parts.append(sum_to_shape(_lags(seen, x, shape_of(b)[-1]), shape_of(b)))
    if mask & 2:
        lags = -_without_first(_lags(seen, y, shape_of(a)[-1]))
        parts.append(sum_to_shape(lags, shape_of(a)))
    if mask & 4:
        parts.append(sum_to_shape(backwards(b), shape_of(x)))
    return bare(parts)


def _lfilter_spec(specs: tuple[ArraySpec, ...], params: Any) -> Any:
    b, a, x = specs
    checked_length(min(b.shape[-1], a.shape[-1]), least=1)
    lead = _lead(b.shape[:-1], a.shape[:-1], x.shape[:-1])
    small = [ArraySpec((1,), each.dtype) for each in specs]
    return result_spec(_lfilter, small, {}, (*lead, x.shape[-1]))


lfilter: Primitive = Primitive(
    "lfilter",
    _lfilter,
    jvp=_lfilter_jvp,
    vjp=lambda mask, out, args, params: (_lfilter_pull, (mask, out, args)),
    batch=_batch,
    shape=_lfilter_spec,
    kind="linear algebra",
)
