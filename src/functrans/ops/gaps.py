"""Division by the gaps between eigenvalues or singular values, and when not to trust it.

Vectors rotate by m_ij / (w_j - w_i). Where two values coincide, this is 0 / 0 for every differentiable
function, and the right value depends on that function, which no rule can see; where they almost coincide,
rounding errors are divided by almost zero. So a quotient is nan unless one of these holds:

- its gap is large enough for the required accuracy, or
- its numerator is known to be zero: the direction does not affect the pair, or the vectors are not used.

Every further derivative divides by the gap once more, so `quotient` then requires a larger gap.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from functrans.core.primitive import Primitive, of_mask
from functrans.core.shapes import (
    ArraySpec,
    broadcasts_to,
    checked_flags,
    checked_kinds,
    checked_length,
    dtype_of,
)
from functrans.ops.families import batch_spreading
from functrans.ops.structure import stop_gradient


@cache
def eps_of(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).eps)


@cache
def accuracy(dtype: np.dtype[Any]) -> float:
    """The relative error that a derivative may have: 1.2e-7 for float64, 2.8e-3 for float32."""
    return 8 * math.sqrt(eps_of(dtype))


@cache
def smallest_gap(dtype: np.dtype[Any], order: int = 1) -> float:
    """The gap, in units of the values, from which derivatives of this order are accurate enough."""
    return math.pow(eps_of(dtype) / accuracy(dtype), 1 / order) if order else 0.0


def rounding(dtype: np.dtype[Any], n: int) -> float:
    """The uncertainty of LAPACK's results for matrices of order n, in units of the largest.

    It finds equal eigenvalues up to a modest multiple of eps times the norm: over many matrices, up to 7
    for n = 3, 11 for n = 8 and 23 for n = 128.
    """
    return (10 + n) * eps_of(dtype)


def largest(x: Any) -> Any:
    """The largest size among the entries of each matrix, as a constant."""
    return np.max(np.abs(stop_gradient(x)), axis=(-2, -1), keepdims=True, initial=0)


# quotient(m, gap, norm, size, order, exact): m / gap. `norm` is what gaps are compared with, and `size` what
# numerators are; both are constants. With the order 0 only gaps of 0 are too small, and with `exact` only
# numerators of 0 vanish: a cotangent of rounding says no more than one of 0 does.


def _quotient(m: Any, gap: Any, norm: Any, size: Any, order: int, exact: bool) -> Any:
    dtype = gap.real.dtype
    small = np.abs(gap) <= smallest_gap(dtype, order) * norm
    vanishes = m == 0 if exact else np.abs(m) <= rounding(dtype, m.shape[-1]) * size
    with np.errstate(over="ignore"):
        divided = m / np.where(small, 1, gap)
    return np.where(small, np.where(vanishes, dtype.type(0), dtype.type(np.nan)), divided)


def _quotient_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    checked_kinds("fc", specs[1])
    checked_kinds("f", *specs[2:])
    if params:
        checked_length(params["order"])
        checked_flags(params["exact"])
    shape = np.broadcast_shapes(specs[0].shape, specs[1].shape)
    if not specs[0].ndim or not all(broadcasts_to(spec.shape, shape) for spec in specs):
        raise ValueError("the scales do not match the quotients")
    return ArraySpec(shape, np.result_type(specs[0].dtype, specs[1].dtype))


def _next_order(order: int) -> int:
    return max(order, 1) + 1


def _quotient_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (_, gap, norm, _), (m_tangent, gap_tangent, *_) = args, tangents
    return _change(out, gap, norm, m_tangent, gap_tangent, **params)


def _change(
    out: Any, gap: Any, norm: Any, m_tangent: Any, gap_tangent: Any, order: int, exact: bool
) -> Any:
    # q gap = m, so dq gap = dm - q dgap
    change = m_tangent
    if gap_tangent is not None:
        order = _next_order(order)
        moved = -out * gap_tangent
        change = moved if change is None else change + moved
    return quotient(change, gap, norm, largest(change), order=order, exact=exact)


def _quotient_pull(g: Any, saved: Any) -> Any:
    mask, out, gap, norm, order = saved
    order = _next_order(order) if mask & 2 else order
    to_m = quotient(g, gap, norm, norm, order=order, exact=True)
    if mask == 1:
        return to_m
    to_gap = -out * to_m
    if dtype_of(gap).kind != "c" and dtype_of(to_gap).kind == "c":
        to_gap = to_gap.real
    return of_mask(mask, to_m, to_gap)


quotient = Primitive(
    "quotient",
    _quotient,
    jvp=_quotient_jvp,
    vjp=lambda mask, out, args, params: (
        _quotient_pull,
        (mask, out, args[1], args[2], params["order"]),
    ),
    batch=batch_spreading,
    shape=_quotient_spec,
    kind="linear algebra",
)


def divide_tangent(m: Any, gap: Any, norm: Any, size: Any) -> Any:
    """m / gap where m belongs to a tangent, of this size."""
    return quotient(m, gap, norm, size, order=1, exact=False)


# settled(m, gap, lost, scale, norm, beside): m / gap where m belongs to a cotangent, and nan where it is
# `lost`; all but m and gap are constants. The numerators are differences of numbers of the size `scale`, so
# the quotients q are uncertain by eps scale / gap. The directions of vectors are, by eps norm / gap, which
# matters as far as q is not small compared to scale / gap. If these errors are too large compared to the
# quotients, the numbers `beside` them, and the quotients with `norm` as gaps, all are nan.


def _settled(m: Any, gap: Any, lost: Any, scale: Any, norm: Any, beside: Any) -> Any:
    dtype = scale.dtype
    tiny = np.finfo(dtype).tiny
    with np.errstate(all="ignore"):
        size = np.abs(gap)
        q = m / np.where(size == 0, 1, gap)
        errors = scale / (size + tiny) + norm * np.abs(q) ** 2 / (scale + tiny)
        total = _sum_of_squares(q) + _sum_of_squares(beside) + _sum_of_squares(scale / norm)
        most = (accuracy(dtype) / eps_of(dtype)) ** 2 * total
        lost = lost | ((size == 0) & (m != 0)) | (_sum_of_squares(errors) > most)
        return np.where(lost, dtype.type(np.nan), q)


def _sum_of_squares(x: Any) -> Any:
    x = np.abs(x)
    return (x * x).sum(axis=(-2, -1), keepdims=True)


def _settled_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (_, gap, _, _, norm, _), (m_tangent, gap_tangent, *_) = args, tangents
    return _change(out, gap, norm, m_tangent, gap_tangent, order=0, exact=True)


def _settled_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    m, gap, lost, scale, norm, beside = specs
    out = _quotient_spec((m, gap), params)
    checked_kinds("biu", lost)
    checked_kinds("f", scale, norm)
    total = np.broadcast_shapes(out.shape, lost.shape, scale.shape, norm.shape)
    lead = beside.shape[:-2]
    if total != out.shape or out.ndim < 2 or not broadcasts_to(lead, out.shape[:-2]):
        raise ValueError("the scales do not match the quotients")
    return out


settled = Primitive(
    "settled",
    _settled,
    jvp=_settled_jvp,
    vjp=lambda mask, out, args, params: (_quotient_pull, (mask, out, args[1], args[4], 0)),
    batch=batch_spreading,
    shape=_settled_spec,
    kind="linear algebra",
)


class SettledPart(NamedTuple):
    """Arguments of `settled` that differ for parts of a result that are judged together."""

    m: Any
    gap: Any
    lost: Any
    scale: Any


def settle_parts(parts: list[SettledPart], norm: Any, beside: Any) -> list[Any]:
    """The quotients of several parts, as rows of one matrix."""
    columns = [np.concatenate(each, axis=-2) for each in zip(*parts, strict=True)]
    found = settled(*columns, norm, beside)
    ends = np.cumsum([part.m.shape[-2] for part in parts]).tolist()
    return [found[..., a:b, :] for a, b in zip([0, *ends], ends, strict=False)]
