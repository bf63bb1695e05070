"""Running extremes and order statistics. Ties share the derivative evenly, as in max and min."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, checked_axis, checked_kinds, sum_to_shape
from functrans.ops import reduction
from functrans.ops.families import batch_shifting
from functrans.ops.reduction import evenly, recurrence, shifted

# A running maximum is constant along runs. In the run that contains position k, let h_j be 1 where
# x_j is the maximum and 0 elsewhere, and n_k the sum of h_j for j <= k. Then d out_k = sum h_j dx_j
# / n_k. Sums along runs are the recurrence s_k = f_k s_{k-1} + term_k with f_k = 0 where a run
# begins.


def _runs(out: Any, x: Any, axis: int) -> tuple[Any, Any, Any]:
    """Where a run continues, where x is equal to the extreme, and the running count of those elements."""
    before = shifted(out, axis, 1, 0)
    goes_on = ((out == before) | ((out != out) & (before != before))).astype(x.dtype)
    hits = ((x == out) | ((x != x) & (out != out))).astype(x.dtype)
    return goes_on, hits, recurrence(goes_on, hits, axis)


def _running_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (x,), (tangent,), axis = args, tangents, params["axis"]
    goes_on, hits, count = _runs(out, x, axis)
    return recurrence(goes_on, hits * tangent, axis) / count


def _running_pull(g: Any, saved: Any) -> Any:
    out, x, axis = saved
    goes_on, hits, count = _runs(out, x, axis)
    # The transpose runs from the end: position k passes to k - 1 if they are in the same run.
    backward = shifted(np.flip(goes_on, axis), axis, 1, 0)
    return hits * np.flip(recurrence(backward, np.flip(g / count, axis), axis), axis)


def _running_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    checked_axis(params["axis"], specs[0].ndim)
    return specs[0]


def _running(name: str, ufunc: Any) -> Primitive:
    return Primitive(
        name,
        lambda x, axis: ufunc.accumulate(x, axis=axis),
        jvp=_running_jvp,
        vjp=lambda mask, out, args, params: (_running_pull, (out, args[0], params["axis"])),
        batch=batch_shifting("axis"),
        shape=_running_spec,
        kind="reduction",
    )


running_max = _running("running_max", np.maximum)
running_min = _running("running_min", np.minimum)


# Order statistics: ranked(x, ranks)[q] is the element at position ranks[q] after sorting along the
# last axis. x has shape (*lead, n) and ranks (Q, *lead), where lengths may be 1. Elements equal to
# the result share its derivative.


def _ranked(x: Any, ranks: Any) -> Any:
    places = np.unique(ranks)
    few = len(places) < 16  # partitioning is linear in n, but each position costs a pass
    ordered = np.partition(x, places, axis=-1) if few and x.size else np.sort(x, axis=-1)
    shape = np.broadcast_shapes(ranks.shape, (1, *x.shape[:-1]))
    ordered = np.broadcast_to(ordered, (*shape[1:], x.shape[-1]))
    rows = [
        np.take_along_axis(ordered, r[..., None], -1)[..., 0] for r in np.broadcast_to(ranks, shape)
    ]
    return np.stack(rows) if rows else np.empty(shape, x.dtype)


def _shares(out: Any, x: Any) -> Any:
    """Elements equal to `out` share its derivative; nan counts as equal."""
    out = out[..., None]
    return evenly((x == out) | ((x != x) & (out != out)), (x.ndim - 1,), x.dtype)


def _ranked_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    x, tangent = args[0], tangents[0]
    last = (x.ndim - 1,)
    return np.stack(
        [reduction.sum(_shares(row, x) * tangent, axis=last, keepdims=False) for row in out]
    )


def _ranked_pull(g: Any, saved: Any) -> Any:
    out, x = saved
    total = None
    for k in range(out.shape[0]):
        term = sum_to_shape(g[k][..., None] * _shares(out[k], x), x.shape)
        total = term if total is None else total + term
    return np.zeros_like(x) if total is None else total


def _ranked_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (x, ranks), (x_mapped, ranks_mapped) = args, batched
    x = x if x_mapped else x[None]
    ranks = np.swapaxes(ranks, 0, 1) if ranks_mapped else ranks[:, None]
    return np.swapaxes(primitive(x, ranks), 0, 1)


def _ranked_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    x, ranks = specs
    checked_kinds("iu", ranks)
    if x.ndim != ranks.ndim:
        raise ValueError("the ranks do not match the array")
    return ArraySpec(np.broadcast_shapes(ranks.shape, (1, *x.shape[:-1])), x.dtype)


ranked = Primitive(
    "ranked",
    _ranked,
    jvp=_ranked_jvp,
    vjp=lambda mask, out, args, params: (_ranked_pull, (out, args[0])),
    batch=_ranked_batch,
    shape=_ranked_spec,
    kind="reduction",
)
