"""Eigenvalues, singular values, and their vectors; the pseudoinverse.

The family `factorization`, its notation and its conventions are in factorization.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.ops.factorization import (
    H,
    diagonal,
    diagonal_matrix,
    dtypes_for,
    factorization,
    hermitian,
    solve,
)


def _inverse_or_zero(x: Any, negligible: Any) -> Any:
    """1 / x, and 0 where x is negligible."""
    return np.where(negligible, 0, 1 / np.where(negligible, 1, x))


def rounding(values: Any) -> Any:
    """What separates eigenvalues or singular values only by rounding.

    LAPACK finds equal ones up to a modest multiple of eps times the norm: over many matrices, up to
    7 for n = 3, 11 for n = 8 and 23 for n = 128.
    """
    largest = np.max(np.abs(values), axis=-1, keepdims=True)
    return (10 + values.shape[-1]) * np.finfo(dtype_of(values)).eps * largest


def _inverse_gaps(values: Any) -> Any:
    """F_ij = 1 / (w_j - w_i), and 0 where they are equal."""
    if not values.shape[-1]:
        return np.zeros((*values.shape, 0), dtype_of(values))
    gaps = values[..., None, :] - values[..., :, None]
    return _inverse_or_zero(gaps, np.abs(gaps) <= rounding(values)[..., None])


# Hermitian eigenvalue problems: with M = V^H dA V, dw = diag(M), dV = V (F * M).


def _eigvalsh_push(tangent: Any, out: Any, a: Any, uplo: str) -> Any:
    _, v = eigh(a, uplo=uplo)
    return diagonal(H(v) @ hermitian(tangent) @ v).real


def _eigvalsh_pull(g: Any, out: Any, a: Any, uplo: str) -> Any:
    _, v = eigh(a, uplo=uplo)
    return hermitian((v * g[..., None, :]) @ H(v))


def _eigh_push(tangent: Any, out: Any, a: Any, uplo: str) -> Any:
    w, v = out
    moved = H(v) @ hermitian(tangent) @ v
    return diagonal(moved).real, v @ (_inverse_gaps(w) * moved)


def _eigh_pull(g: Any, out: Any, a: Any, uplo: str) -> Any:
    (to_w, to_v), (w, v) = g, out
    middle = 0 if to_w is None else diagonal_matrix(to_w)
    if to_v is not None:
        middle = middle + _inverse_gaps(w) * (H(v) @ to_v)
    return hermitian(v @ middle @ H(v))


eigvalsh = factorization(
    "eigvalsh",
    lambda a, uplo: np.linalg.eigvalsh(a, uplo),
    _eigvalsh_push,
    _eigvalsh_pull,
    "n real",
)
eigh = factorization(
    "eigh",
    lambda a, uplo: tuple(np.linalg.eigh(a, uplo)),
    _eigh_push,
    _eigh_pull,
    "n real",
    "nn same",
)


# General eigenvalue problems: the same with M = V^-1 dA V. The results are always complex here, and
# the tangent of an eigenvector has no component along it; NumPy's surface sees to its length.


def _eig(a: Any) -> Any:
    kind = dtypes_for(a.dtype)["complex"]
    return tuple(x.astype(kind, copy=False) for x in np.linalg.eig(a))


def _eig_push(tangent: Any, out: Any, a: Any) -> Any:
    w, v = out
    moved = solve(v, tangent @ v)
    return diagonal(moved), v @ (_inverse_gaps(w) * moved)


def _eig_pull(g: Any, out: Any, a: Any) -> Any:
    (to_w, to_v), (w, v) = g, out
    middle = 0 if to_w is None else diagonal_matrix(to_w)
    if to_v is not None:
        middle = middle + np.conj(_inverse_gaps(w)) * (H(v) @ to_v)
    return solve(H(v), middle @ H(v))


eig = factorization("eig", _eig, _eig_push, _eig_pull, "n complex", "nn complex")


# Singular values: A = U S V^H, and with P = U^H dA V, dS = Re diag(P). A singular value of 0 is at
# the kink of an absolute value, and has the derivative 0 like it.


def _svdvals_push(tangent: Any, out: Any, a: Any) -> Any:
    u, s, vh = svd(a)
    return np.sign(s) * diagonal(H(u) @ tangent @ H(vh)).real


def _svdvals_pull(g: Any, out: Any, a: Any) -> Any:
    u, s, vh = svd(a)
    return (u * (np.sign(s) * g)[..., None, :]) @ vh


# For the vectors, with P = S_h + S_k in its Hermitian and skew parts,
#     U^H dU = E * S_h + D * S_k,  V^H dV = E * S_h - D * S_k,
# where E_ij = 1 / (s_j - s_i) and D_ij = 1 / (s_i + s_j). What dU has outside the space of U is
# (1 - U U^H) dA V S^-1, and likewise for V. In U V^H, say, E cancels: singular values may coincide.


def _inverse_sums(s: Any) -> Any:
    sums = s[..., None, :] + s[..., :, None]
    return _inverse_or_zero(sums, sums == 0)


def _svd_push(tangent: Any, out: Any, a: Any) -> Any:
    u, s, vh = out[:3]
    v, (m, n), k = H(vh), a.shape[-2:], s.shape[-1]
    p = H(u) @ tangent @ v
    together = _inverse_gaps(s) * hermitian(p)
    apart = _inverse_sums(s) * (p - H(p)) / 2
    du, dv = u @ (together + apart), v @ (together - apart)
    inverse_s = _inverse_or_zero(s, s == 0)[..., None, :]
    if m > k:
        outside = tangent @ v * inverse_s
        du = du + outside - u @ (H(u) @ outside)
    if n > k:
        outside = H(tangent) @ u * inverse_s
        dv = dv + outside - v @ (vh @ outside)
    return du, np.sign(s) * diagonal(p).real, H(dv)


def _svd_pull(g: Any, out: Any, a: Any) -> Any:
    (to_u, to_s, to_vh), (u, s, vh) = g[:3], out[:3]
    v, (m, n), k = H(vh), a.shape[-2:], s.shape[-1]
    inverse_s = _inverse_or_zero(s, s == 0)[..., None, :]
    middle = 0 if to_s is None else diagonal_matrix(np.sign(s) * to_s)
    gaps, sums = _inverse_gaps(s), _inverse_sums(s)
    outside: Any = 0
    if to_u is not None:
        x = H(u) @ to_u
        middle = middle + (gaps + sums) * (x - H(x)) / 2
        if m > k:
            outside = outside + ((to_u - u @ x) * inverse_s) @ vh
    if to_vh is not None:
        to_v = H(to_vh)
        y = vh @ to_v
        middle = middle + (gaps - sums) * (y - H(y)) / 2
        if n > k:
            outside = outside + u @ H((to_v - v @ y) * inverse_s)
    return u @ middle @ vh + outside


def _svd_full(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    k = s.shape[-1]
    return u[..., :k], s, vh[..., :k, :], u[..., k:], vh[..., k:, :]


svdvals = factorization("svdvals", np.linalg.svdvals, _svdvals_push, _svdvals_pull, "k real")
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


# The pseudoinverse P, where the rank does not change (Golub and Pereyra 1973):
# dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P


def _pinv_push(tangent: Any, out: Any, a: Any, **options: Any) -> Any:
    p, t = out, hermitian(tangent) if options["hermitian"] else tangent
    left, right = p @ H(p) @ H(t), H(t) @ H(p) @ p
    return -p @ t @ p + left - left @ a @ p + right - p @ (a @ right)


def _pinv_pull(g: Any, out: Any, a: Any, **options: Any) -> Any:
    p, hp = out, H(out)
    left, right = H(g) @ p @ hp, hp @ p @ H(g)
    back = -hp @ g @ hp + left - a @ (p @ left) + right - right @ p @ a
    return hermitian(back) if options["hermitian"] else back


pinv = factorization(
    "pinv",
    lambda a, **options: np.linalg.pinv(a, **options),
    _pinv_push,
    _pinv_pull,
    "nm same",
)
