"""Singular values and singular vectors; the pseudoinverse.

The family `factorization` and its notation are in factorization.py; gaps.py handles singular values
that are close to each other, or to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, of_mask
from functrans.core.shapes import (
    ArraySpec,
    broadcasts_to,
    checked_flags,
    checked_kinds,
    dtype_of,
    spec_of,
)
from functrans.ops.factorization import (
    H,
    diagonal,
    diagonal_matrix,
    dtypes_for,
    factorization,
    from_triangle,
    hermitian,
    to_triangle,
)
from functrans.ops.families import batch_spreading
from functrans.ops.gaps import (
    SettledPart,
    accuracy,
    divide_tangent,
    largest,
    rounding,
    settle_parts,
)
from functrans.ops.spectral import coinciding, column_sizes, gaps, off_diagonal, pairs
from functrans.ops.structure import stop_gradient

# A = U S V^H. With P = U^H dA V = P_h + P_k in its Hermitian and skew parts, dS = Re diag(P), and
#     U^H dU = E * P_h + D * P_k,  V^H dV = E * P_h - D * P_k,
# where E_ij = 1 / (s_j - s_i) and D_ij = 1 / (s_i + s_j). The part of dU outside the space of U is
# (1 - U U^H) dA V S^-1, and likewise for V. A singular value of 0 is at a kink, like that of the absolute
# value, and has derivative 0.


def _skew(x: Any) -> Any:
    return (x - H(x)) / 2


def _svd_push(tangent: Any, out: Any, a: Any) -> Any:
    u, s, vh = out[:3]
    v, (m, n), k = H(vh), a.shape[-2:], s.shape[-1]
    p = H(u) @ tangent @ v
    norm, size = largest(s[..., None]), largest(tangent)
    together = divide_tangent(off_diagonal(hermitian(p)), gaps(s), norm, size)
    apart = divide_tangent(_skew(p), pairs(s), norm, size)
    du, dv = u @ (together + apart), v @ (together - apart)
    if m > k:
        du = du + _over(tangent @ v - u @ p, s, norm, size)
    if n > k:
        dv = dv + _over(H(tangent) @ u - v @ H(p), s, norm, size)
    return du, np.sign(s) * diagonal(p).real, H(dv)


def _over(columns: Any, s: Any, norm: Any, size: Any) -> Any:
    """Columns divided by singular values."""
    below = np.broadcast_to(s[..., None, :], columns.shape)
    return divide_tangent(columns, below, norm, size)


def _svd_pull(g: Any, out: Any, a: Any) -> Any:
    (to_u, to_s, to_vh), (u, s, vh) = g[:3], out[:3]
    v, k = H(vh), s.shape[-1]
    if to_u is None and to_vh is None:
        signed = np.sign(stop_gradient(s)) * to_s
        return singular_values_back(a, signed, stop_gradient(u), stop_gradient(vh))
    to_u = np.zeros_like(u) if to_u is None else to_u
    to_v = np.zeros_like(v) if to_vh is None else H(to_vh)
    x, y = H(u) @ to_u, vh @ to_v
    u_sizes, v_sizes = column_sizes(to_u), column_sizes(to_v)
    scale, values_used = pairs(u_sizes + v_sizes), to_s is not None
    gap, total, norm = gaps(s), pairs(s), largest(s[..., None])
    inside = np.zeros_like(x) if to_s is None else diagonal_matrix(np.sign(s) * to_s)

    lost = (total == 0) & ((scale > 0) | values_used)
    if dtype_of(a).kind != "c":  # no phases
        lost = off_diagonal(lost)
    parts = [
        SettledPart(
            off_diagonal(_skew(x) + _skew(y)),
            gap,
            coinciding(gap, s, scale > 0, values_used),
            scale,
        ),
        SettledPart(_skew(x) - _skew(y), total, lost, scale),
    ]
    for columns, lengths in ((to_u - u @ x, u_sizes), (to_v - v @ y, v_sizes)):
        if columns.shape[-2] > k:
            below, scale = (
                np.broadcast_to(each[..., None, :], columns.shape) for each in (s, lengths)
            )
            lost = (below == 0) & ((scale > 0) | values_used)
            parts.append(SettledPart(columns, below, lost, scale))
    return _assembled(settle_parts(parts, norm, inside), inside, u, vh)


def _assembled(found: list[Any], inside: Any, u: Any, vh: Any) -> Any:
    """U S V^H with S = inside + together + apart, and the parts outside the spaces of U and V."""
    together, apart, *outside = found
    result = u @ (inside + together + apart) @ vh
    for columns in outside:
        tall = columns.shape[-2] == u.shape[-2]
        result = result + (columns @ vh if tall else u @ H(columns))
    return result


def _svd_full(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    k = s.shape[-1]
    return u[..., :k], s, vh[..., :k, :], u[..., k:], vh[..., k:, :]


svd = factorization(
    "svd",
    lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
    _svd_push,
    _svd_pull,
    "mk same",
    "k real",
    "kn same",
)
# The last two results complete U and V^H to square matrices.
svd_full = factorization(
    "svd_full",
    _svd_full,
    lambda *args: (*_svd_push(*args), None, None),
    _svd_pull,
    "mk same",
    "k real",
    "kn same",
    "mp same",
    "qn same",
)


# Singular values alone: as for eigenvalues alone, with U diag(g) V^H in place of V diag(g) V^H. With
# P = U^H T V, the derivative of <U diag(g) V^H, T> is U S V^H and parts outside,
#     S_ij = (g_j - g_i) / (s_j - s_i) P_h,ij + (g_i + g_j) / (s_i + s_j) P_k,ij.


def _svdvals_push(tangent: Any, out: Any, a: Any) -> Any:
    u, s, vh = svd(stop_gradient(a))
    return np.sign(s) * singular_values_along(a, tangent, u, vh)


def _svdvals_pull(g: Any, out: Any, a: Any) -> Any:
    u, s, vh = svd(stop_gradient(a))
    return singular_values_back(a, np.sign(s) * g, u, vh)


svdvals = factorization("svdvals", np.linalg.svdvals, _svdvals_push, _svdvals_pull, "k real")


def _spread(a: Any, g: Any, t: Any, g_moves: Any) -> Any:
    """U S V^H and the parts outside. See `_spread` in spectral.py for where singular values coincide."""
    u, s, vh = svd(a)
    v, k = H(vh), s.shape[-1]
    p = H(u) @ t @ v
    noise = rounding(dtype_of(s), k) * largest(t)

    def part(factors: Any, scales: Any, direction: Any, below: Any) -> SettledPart:
        moved = factors * direction
        scale, lost = np.abs(stop_gradient(moved)), np.zeros(moved.shape, bool)
        if g_moves:
            size = np.abs(stop_gradient(direction))
            lost = (stop_gradient(below) == 0) & (size > noise)
            scale = scales * size
        return SettledPart(moved, below, lost, scale)

    direct, g_sizes = hermitian(p), np.abs(stop_gradient(g))
    inside = np.zeros_like(p)
    if g_moves:
        # Where a singular value is zero, its derivative is defined as zero, and g is zero for every function.
        kink = (s == 0) & (np.abs(stop_gradient(diagonal(direct))) > noise[..., 0])
        inside = diagonal_matrix(np.where(kink, np.nan, np.zeros_like(s)))
    differences = g[..., None, :] - g[..., :, None]
    parts = [
        part(differences, pairs(g_sizes), off_diagonal(direct), gaps(s)),
        part(pairs(g), pairs(g_sizes), _skew(p), pairs(s)),
    ]
    for columns in (t @ v - u @ p, H(t) @ u - v @ H(p)):
        if columns.shape[-2] > k:
            below, factors, scales = (
                np.broadcast_to(each[..., None, :], columns.shape) for each in (s, g, g_sizes)
            )
            parts.append(part(factors, scales, columns, below))
    return _assembled(settle_parts(parts, largest(s[..., None]), inside), inside, u, vh)


def _along_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, t, u, vh), (a_tangent, t_tangent, *_) = args, tangents
    total = None if t_tangent is None else singular_values_along(a, t_tangent, u, vh)
    if a_tangent is None:
        return total
    # d Re diag(U^H T V) = Re diag(dU^H T V + U^H T dV)
    u, s, vh = svd(a)
    du, _, dvh = _svd_push(a_tangent, (u, s, vh), a)
    turned = np.sum((np.conj(du) * (t @ H(vh))).real, axis=-2)
    turned = turned + np.sum((np.conj(dvh) * (H(u) @ t)).real, axis=-1)
    return turned if total is None else total + turned


def _along_pull(g: Any, saved: Any) -> Any:
    mask, (a, t, u, vh) = saved
    to_a = np.conj(_spread(a, g, t, True)) if mask & 1 else None
    to_t = np.conj(singular_values_back(a, g, u, vh)) if mask & 2 else None
    return of_mask(mask, to_a, to_t)


def _along_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    a, t, u, vh = specs
    _check_vectors(a, u, vh)
    _check_vectors(t, u, vh)
    dtype = np.result_type(t.dtype, u.dtype, vh.dtype)
    return ArraySpec((*u.shape[:-2], u.shape[-1]), dtypes_for(dtype)["real"])


def _check_vectors(a: ArraySpec, u: ArraySpec, vh: ArraySpec) -> None:
    """Raise ValueError unless u and vh have the shapes of the singular vectors of a."""
    checked_kinds("fc", a, u, vh)
    *lead, m, n = a.shape
    k = min(m, n)
    if u.shape != (*lead, m, k) or vh.shape != (*lead, k, n):
        raise ValueError("the singular vectors do not match the matrix")


singular_values_along = Primitive(
    "singular_values_along",
    lambda a, t, u, vh: diagonal(H(u) @ t @ H(vh)).real,
    jvp=_along_jvp,
    vjp=lambda mask, out, args, params: (_along_pull, (mask, args)),
    batch=batch_spreading,
    shape=_along_spec,
    kind="linear algebra",
)


def _back_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, g, u, vh), (a_tangent, g_tangent, *_) = args, tangents
    total = None if g_tangent is None else singular_values_back(a, g_tangent, u, vh)
    if a_tangent is None:
        return total
    spread = _spread(a, g, a_tangent, g_tangent is not None)
    return spread if total is None else total + spread


def _back_pull(cotangent: Any, saved: Any) -> Any:
    mask, (a, g, u, vh) = saved
    t = np.conj(cotangent)
    to_a = np.conj(_spread(a, g, t, mask & 2)) if mask & 1 else None
    to_g = singular_values_along(a, t, u, vh) if mask & 2 else None
    return of_mask(mask, to_a, to_g)


def _back_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    a, g, u, vh = specs
    _check_vectors(a, u, vh)
    if g.shape != (*u.shape[:-2], u.shape[-1]):
        raise ValueError("expected one cotangent per singular value")
    return ArraySpec(a.shape, np.result_type(g.dtype, u.dtype, vh.dtype))


singular_values_back = Primitive(
    "singular_values_back",
    lambda a, g, u, vh: (u * g[..., None, :]) @ vh,
    jvp=_back_jvp,
    vjp=lambda mask, out, args, params: (_back_pull, (mask, args)),
    batch=batch_spreading,
    shape=_back_spec,
    kind="linear algebra",
)


# The pseudoinverse P, where the rank does not change (Golub and Pereyra 1973):
# dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
# Along a direction with a nonzero part (1 - A P) dA (1 - P A), the rank increases, and P is unbounded.
# If the rank of an m x n matrix is m, then 1 - A P = 0, and if it is n, then 1 - P A = 0. Computed, they
# would be rounding errors, which each further derivative multiplies by powers of the condition number.


def _pinv_push(tangent: Any, out: Any, a: Any, **options: Any) -> Any:
    p, t = out, tangent
    if options["hermitian"]:
        a, t = from_triangle(a, "L"), from_triangle(t, "L")
    left, right = p @ H(p) @ H(t), H(t) @ H(p) @ p
    (m, n), rank = a.shape[-2:], _rank(p, a)
    moved = -p @ t @ p + np.where(rank < m, left - left @ a @ p, 0)
    moved = moved + np.where(rank < n, right - p @ (a @ right), 0)
    return moved * _where_the_rank_stays(p, a, t)


def _rank(p: Any, a: Any) -> Any:
    """The rank of a matrix, with two axes: the trace of the projection P A."""
    p, a = stop_gradient(p), stop_gradient(a)
    return np.expand_dims(np.round(np.sum((p * a.mT).real, axis=(-2, -1))), (-2, -1))


def _where_the_rank_stays(p: Any, a: Any, t: Any) -> Any:
    p, a, t = stop_gradient(p), stop_gradient(a), stop_gradient(t)
    rank = _rank(p, a)
    rest = t - a @ (p @ t)
    grows = largest(rest - (rest @ p) @ a) > accuracy(dtype_of(rank)) * largest(t)
    lost = (rank < min(a.shape[-2:])) & grows
    return np.where(lost, np.nan, np.ones(lost.shape, dtype_of(rank)))


def _pinv_pull(g: Any, out: Any, a: Any, **options: Any) -> Any:
    p, hp = out, H(out)
    if options["hermitian"]:
        a = from_triangle(a, "L")
    left, right = H(g) @ p @ hp, hp @ p @ H(g)
    (m, n), rank = a.shape[-2:], _rank(p, a)
    back = -hp @ g @ hp + np.where(rank < m, left - a @ (p @ left), 0)
    back = back + np.where(rank < n, right - right @ p @ a, 0)
    return to_triangle(back, "L") if options["hermitian"] else back


pinv = factorization(
    "pinv",
    lambda a, rcond, hermitian: np.linalg.pinv(a, rcond=rcond, hermitian=hermitian),
    _pinv_push,
    _pinv_pull,
    "nm same",
)
_pinv_shape = pinv.shape


def _pinv_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    checked_flags(params["hermitian"])
    cutoff = spec_of(params["rcond"])
    checked_kinds("biuf", cutoff)
    if not broadcasts_to(cutoff.shape, specs[0].shape[:-2]):
        raise ValueError("pinv: expected one rcond per matrix")
    return _pinv_shape(specs, params)


pinv.shape = _pinv_spec
