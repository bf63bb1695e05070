"""Eigenvalues and eigenvectors, of Hermitian matrices and of others.

The family `factorization` and its notation are in factorization.py; gaps.py handles eigenvalues
that are close to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, of_mask
from functrans.core.shapes import ArraySpec, checked_choice, checked_kinds, dtype_of
from functrans.ops.factorization import (
    H,
    diagonal,
    diagonal_matrix,
    dtypes_for,
    factorization,
    from_triangle,
    hermitian,
    solve,
    to_triangle,
)
from functrans.ops.families import batch_spreading
from functrans.ops.gaps import (
    accuracy,
    divide_tangent,
    largest,
    rounding,
    settled,
    smallest_gap,
)
from functrans.ops.structure import stop_gradient

# Hermitian matrices. With M = V^H dA V, dw = diag(M) and dV = V Ω, where Ω_ij = M_ij / (w_j - w_i), and
# Ω_ii = 0: phases are arbitrary, and have derivative 0.


def gaps(w: Any) -> Any:
    """w_j - w_i, with 1 on the diagonal, where the numerators are 0."""
    n = w.shape[-1]
    return w[..., None, :] - w[..., :, None] + np.eye(n, dtype=dtype_of(w).type(0).real.dtype)


def off_diagonal(x: Any) -> Any:
    return np.where(np.eye(x.shape[-1], dtype=bool), 0, x)


def column_sizes(x: Any) -> Any:
    """The lengths of the columns, as constants, in units of a typical entry."""
    x = stop_gradient(x)
    return np.sqrt(np.sum((x * np.conj(x)).real, axis=-2) / max(x.shape[-2], 1))


def pairs(x: Any) -> Any:
    """x_i + x_j"""
    return x[..., None, :] + x[..., :, None]


def eigh_push(tangent: Any, out: Any, a: Any, uplo: str) -> Any:
    w, v = out
    moved = H(v) @ from_triangle(tangent, uplo) @ v
    norm = largest(w[..., None])
    turn = divide_tangent(off_diagonal(moved), gaps(w), norm, largest(moved))
    return diagonal(moved).real, v @ turn


def eigh_pull(g: Any, out: Any, a: Any, uplo: str) -> Any:
    (to_w, to_v), (w, v) = g, out
    if to_v is None:
        return to_triangle(eigenvalues_back(a, to_w, stop_gradient(v), uplo=uplo), uplo)
    x = H(v) @ to_v
    m, gap = off_diagonal((x - H(x)) / 2), gaps(w)
    scale = pairs(column_sizes(to_v))
    lost = coinciding(gap, w, scale > 0, to_w is not None)
    beside = np.zeros_like(m) if to_w is None else diagonal_matrix(to_w)
    middle = settled(m, gap, lost, scale, largest(w[..., None]), beside)
    return to_triangle(v @ (middle + beside) @ H(v), uplo)


def coinciding(gap: Any, values: Any, used: Any, values_used: bool) -> Any:
    """Which pairs of values are too close to determine their cotangents.

    Where vectors are not used (their cotangents are zero), nothing flows back. But the cotangents of
    V f(w) V^H also vanish where f(w) does; for both vectors of a pair, this happens only if its values are
    equal.
    """
    size = np.abs(stop_gradient(values))
    closeness = np.abs(stop_gradient(gap))
    local = np.maximum(size[..., None, :], size[..., :, None])
    close = used & (closeness <= smallest_gap(dtype_of(size)) * local)
    return close | (closeness == 0) if values_used else close


eigh = factorization(
    "eigh",
    lambda a, uplo: tuple(np.linalg.eigh(a, uplo)),
    eigh_push,
    eigh_pull,
    "n real",
    "nn same",
)


# Eigenvalues alone. Their tangents, diag(V^H T V), and the cotangents of the matrix, V diag(g) V^H, are
# primitives, each the adjoint of the other, so that second derivatives divide by a gap only once: the
# derivative of <V diag(g) V^H, T> is V S V^H with S_ij = (g_j - g_i) / (w_j - w_i) (V^H T V)_ij. V is passed
# to them so that it need not be computed again; A determines it.


def _eigvalsh_push(tangent: Any, out: Any, a: Any, uplo: str) -> Any:
    _, v = eigh(stop_gradient(a), uplo=uplo)
    return eigenvalues_along(a, from_triangle(tangent, uplo), v, uplo=uplo)


def _eigvalsh_pull(g: Any, out: Any, a: Any, uplo: str) -> Any:
    _, v = eigh(stop_gradient(a), uplo=uplo)
    return to_triangle(eigenvalues_back(a, g, v, uplo=uplo), uplo)


eigvalsh = factorization(
    "eigvalsh",
    lambda a, uplo: np.linalg.eigvalsh(a, uplo),
    _eigvalsh_push,
    _eigvalsh_pull,
    "n real",
)


def _spread(a: Any, g: Any, t: Any, uplo: str, g_moves: Any, beside: Any = None) -> Any:
    """V S V^H. Where eigenvalues coincide, g_j - g_i is zero for every g that depends on them."""
    w, v = eigh(a, uplo=uplo)
    inner, gap, norm = H(v) @ t @ v, gaps(w), largest(w[..., None])
    m = (g[..., None, :] - g[..., :, None]) * inner
    scale, lost = np.abs(stop_gradient(m)), np.zeros(m.shape, bool)
    if g_moves:
        size = np.abs(stop_gradient(inner))
        turned = size > rounding(dtype_of(w), w.shape[-1]) * largest(inner)
        lost = (stop_gradient(gap) == 0) & turned
        scale = off_diagonal(pairs(np.abs(stop_gradient(g))) * size)
    beside = np.zeros_like(m) if beside is None else diagonal_matrix(beside)
    return v @ settled(m, gap, lost, scale, norm, beside) @ H(v)


def _along_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, t, v), (a_tangent, t_tangent, _), uplo = args, tangents, params["uplo"]
    total = None if t_tangent is None else eigenvalues_along(a, t_tangent, v, uplo=uplo)
    if a_tangent is None:
        return total
    # d diag(V^H T V)_j = 2 Re Σ_i (V^H T V)_ji M_ij / (w_j - w_i)
    w, v = eigh(a, uplo=uplo)
    inner, moved = H(v) @ t @ v, H(v) @ from_triangle(a_tangent, uplo) @ v
    m = off_diagonal(2 * (np.conj(inner) * moved).real)
    norm, size = largest(w[..., None]), largest(inner) * largest(moved)
    turned = np.sum(divide_tangent(m, gaps(w), norm, size), axis=-2)
    return turned if total is None else total + turned


def _along_pull(g: Any, saved: Any) -> Any:
    mask, (a, t, v), uplo = saved
    to_a = to_t = None
    if mask & 1:
        to_a = np.conj(to_triangle(_spread(a, g, hermitian(t), uplo, True), uplo))
    if mask & 2:
        to_t = np.conj(eigenvalues_back(a, g, v, uplo=uplo))
    return of_mask(mask, to_a, to_t)


def _along_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    a, t, v = specs
    _check_matrices(params, a, t, v)
    real = dtypes_for(np.result_type(t.dtype, v.dtype))["real"]
    return ArraySpec(t.shape[:-1], real)


def _check_matrices(params: dict[str, Any], *specs: ArraySpec) -> None:
    """Raise ValueError unless these are square matrices of the same shape."""
    checked_kinds("fc", *specs)
    if "uplo" in params:
        checked_choice(params["uplo"], ("L", "U"))
    if len({spec.shape for spec in specs}) > 1 or specs[0].shape[-1] != specs[0].shape[-2]:
        raise ValueError("expected square matrices of the same shape")


eigenvalues_along = Primitive(
    "eigenvalues_along",
    lambda a, t, v, uplo: diagonal(H(v) @ t @ v).real,
    jvp=_along_jvp,
    vjp=lambda mask, out, args, params: (_along_pull, (mask, args, params["uplo"])),
    batch=batch_spreading,
    shape=_along_spec,
    kind="linear algebra",
)


def _back_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, g, v), (a_tangent, g_tangent, _), uplo = args, tangents, params["uplo"]
    total = None if g_tangent is None else eigenvalues_back(a, g_tangent, v, uplo=uplo)
    if a_tangent is None:
        return total
    t = from_triangle(a_tangent, uplo)
    spread = _spread(a, g, t, uplo, g_tangent is not None, g_tangent)
    return spread if total is None else total + spread


def _back_pull(cotangent: Any, saved: Any) -> Any:
    mask, (a, g, v), uplo = saved
    t = hermitian(np.conj(cotangent))
    to_a = to_g = None
    if mask & 1:
        to_a = np.conj(to_triangle(_spread(a, g, t, uplo, mask & 2), uplo))
    if mask & 2:
        to_g = eigenvalues_along(a, t, v, uplo=uplo)
    return of_mask(mask, to_a, to_g)


def _back_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    a, g, v = specs
    _check_matrices(params, a, v)
    if g.shape != v.shape[:-1]:
        raise ValueError("expected one cotangent per eigenvalue")
    return ArraySpec(v.shape, np.result_type(g.dtype, v.dtype))


eigenvalues_back = Primitive(
    "eigenvalues_back",
    lambda a, g, v, uplo: (v * g[..., None, :]) @ H(v),
    jvp=_back_jvp,
    vjp=lambda mask, out, args, params: (_back_pull, (mask, args, params["uplo"])),
    batch=batch_spreading,
    shape=_back_spec,
    kind="linear algebra",
)


# General matrices. The same with M = V^-1 dA V. The results are always complex here, and the tangent of an
# eigenvector has no component along it; surface/linalg.py normalizes it.
#
# Eigenvalue i has an error of about eps κ_i |A|, where κ_i is the length of row i of V^-1 (the columns of V
# have length 1). Its derivative, of size κ_i, has a relative error of about eps κ_i², which is 1 or more
# where eigenvalues branch, at defective matrices. There they have no derivative.


def _condition(v: Any) -> Any:
    """κ_i for each column, and infinity where V is singular."""
    try:
        inverse = np.linalg.inv(v)
    except np.linalg.LinAlgError:
        if v.ndim == 2:
            return np.full(v.shape[:-1], np.inf, v.real.dtype)
        return np.stack([_condition(each) for each in v])
    with np.errstate(over="ignore"):
        kappa = np.sqrt(np.sum(np.abs(inverse) ** 2, axis=-1))
    return np.where(np.isnan(kappa), np.inf, kappa).astype(v.real.dtype, copy=False)


def _condition_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (v,) = specs
    _check_matrices(params, v)
    return ArraySpec(v.shape[:-1], dtypes_for(v.dtype)["real"])


condition = Primitive(
    "condition",
    _condition,
    batch=lambda primitive, args, batched, size, params: primitive(*args),
    shape=_condition_spec,
    kind="linear algebra",
)


def _eig(a: Any) -> Any:
    kind = dtypes_for(a.dtype)["complex"]
    return tuple(x.astype(kind, copy=False) for x in np.linalg.eig(a))


def _frame(w: Any, v: Any, a: Any) -> Any:
    """V, or 1 where V has no inverse; where eigenvalues branch; the gaps, and the norm they compare with."""
    kappa = condition(stop_gradient(v))
    eps, n = float(np.finfo(dtype_of(kappa)).eps), w.shape[-1]
    branching = eps * kappa * kappa > accuracy(dtype_of(kappa))
    hopeless = np.expand_dims(np.any(np.isinf(kappa), axis=-1), (-2, -1))
    safe = np.where(hopeless, np.eye(n, dtype=dtype_of(v)), v)
    norm = np.sqrt(pairs(kappa * kappa) / 2) * largest(a)
    return safe, branching, gaps(w), norm


def _eig_push(tangent: Any, out: Any, a: Any) -> Any:
    w, v = out
    safe, branching, gap, norm = _frame(w, v, a)
    moved = solve(safe, tangent @ v)
    turn = divide_tangent(off_diagonal(moved), gap, norm, largest(moved))
    lost = np.where(branching, np.nan, 1)
    return diagonal(moved) * lost, v @ (turn * lost[..., None, :])


def _eig_pull(g: Any, out: Any, a: Any) -> Any:
    (to_w, to_v), (w, v) = g, out
    safe, branching, gap, norm = _frame(w, v, a)
    used = np.zeros(w.shape, bool)
    middle: Any = 0
    if to_w is not None:
        # Where they coincide, cotangents may vanish even for vectors that are used.
        used = (stop_gradient(to_w) != 0) | np.any(stop_gradient(gap) == 0, axis=-1)
        middle = diagonal_matrix(to_w)
    if to_v is not None:
        m, lengths = off_diagonal(H(v) @ to_v), column_sizes(to_v)
        scale = pairs(lengths)
        used = used | (lengths > 0)
        lost = coinciding(gap, w, scale > 0, to_w is not None)
        beside = np.zeros_like(m) if to_w is None else middle
        middle = beside + settled(m, np.conj(gap), lost, scale, norm, beside)
    lost = np.where(np.any(branching & used, axis=-1), np.nan, 1)
    return solve(H(safe), np.expand_dims(lost, (-2, -1)) * middle @ H(v))


eig = factorization("eig", _eig, _eig_push, _eig_pull, "n complex", "nn complex")
