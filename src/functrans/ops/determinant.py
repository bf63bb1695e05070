"""Determinants, and their derivatives for singular matrices too."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.factorization import H, conjugate, factorization, inverse
from functrans.ops.gaps import rounding
from functrans.ops.singular import svd
from functrans.ops.structure import stop_gradient


def _inverse_for_slogdet(sign: Any, a: Any) -> Any:
    """A^-1, and nan for singular matrices, where log |det A| has no derivative."""
    singular = np.expand_dims(sign == 0, (-2, -1))
    safe = inverse(np.where(singular, np.eye(a.shape[-1], dtype=dtype_of(a)), a))
    return np.where(singular, np.nan, safe)


def _slogdet_push(tangent: Any, out: Any, a: Any) -> Any:
    # d log det A = tr(A^-1 dA); its imaginary part turns the sign
    sign, _ = out
    change = np.trace(_inverse_for_slogdet(sign, a) @ tangent, axis1=-2, axis2=-1)
    return (sign * 1j * change.imag if dtype_of(a).kind == "c" else None), change.real


def _slogdet_pull(g: Any, out: Any, a: Any) -> Any:
    (to_sign, to_log), (sign, _) = g, out
    weight = 0 if to_log is None else to_log
    if to_sign is not None and dtype_of(a).kind == "c":
        weight = weight + 1j * (np.conj(to_sign) * 1j * sign).real
    return np.expand_dims(weight, (-2, -1)) * H(_inverse_for_slogdet(sign, a))


slogdet = factorization(
    "slogdet", lambda a: tuple(np.linalg.slogdet(a)), _slogdet_push, _slogdet_pull, " same", " real"
)


def _cofactors(determinant: Any, a: Any) -> Any:
    """The matrix of cofactors: the derivative of det A with respect to A, even where A is singular.

    With K = M^-1 of the bordered matrix M = [[A, U], [V^H, W]], Jacobi's identity for complementary
    minors says det A = det M det K_22 for all borders. So, with constant borders,
    adj A = det M (det(K_22) K_11 - K_12 adj(K_22) K_21).
    The borders are the last two singular vectors, in the scale of A, and W = 0: then M is regular
    if the rank of A is at least n - 2, and this is right to all orders. If it is lower, as far as
    rounding tells, they are U = V = 0 and W = 1, which makes this det(A) A^-1, or 0 if there is no
    inverse: for such a rank all cofactors and their derivatives are 0. (Third derivatives need not
    be, and are the only ones that are lost.)
    """
    n, dtype = a.shape[-1], dtype_of(a)
    if n < 2:
        return np.ones(a.shape, dtype)
    if n == 2:
        return _adjugate_of_two(a).mT
    from_inverse = _cofactors_of_regular(determinant, a)
    if from_inverse is not None:
        return from_inverse
    finite = np.all(np.isfinite(a), axis=(-2, -1), keepdims=True)
    a = np.where(finite, a, 0)
    u, s, vh = svd(stop_gradient(a))
    low_rank = (s[..., -3:-2] <= rounding(dtype_of(s), n) * s[..., :1])[..., None]
    scale = np.where(low_rank, 0, s[..., :1, None])
    corner = np.where(low_rank, np.eye(2, dtype=dtype), 0)
    above = np.concatenate([a, scale * u[..., -2:]], axis=-1)
    below = np.concatenate([scale * vh[..., -2:, :], corner], axis=-1)
    bordered = np.concatenate([above, below], axis=-2)
    hopeless = np.expand_dims(slogdet(stop_gradient(bordered))[0] == 0, (-2, -1))
    bordered = np.where(hopeless, np.eye(n + 2, dtype=dtype), bordered)
    k = inverse(bordered)
    sign, log = slogdet(bordered)
    k_22 = k[..., n:, n:]
    det_22 = k_22[..., 0, 0] * k_22[..., 1, 1] - k_22[..., 0, 1] * k_22[..., 1, 0]
    adjugate = np.expand_dims(sign * np.exp(log), (-2, -1)) * (
        np.expand_dims(det_22, (-2, -1)) * k[..., :n, :n]
        - k[..., :n, n:] @ _adjugate_of_two(k_22) @ k[..., n:, :n]
    )
    return np.where(finite, np.where(hopeless, 0, adjugate).mT, np.nan)


def _cofactors_of_regular(determinant: Any, a: Any) -> Any:
    """det(A) A^-T, which is several times as fast, or None if it might be less precise, or A is not known.

    It loses a factor of the condition number in precision, as the determinant itself does. Each further
    derivative is a difference of products of inverses, and loses more: hence the lower limit for them.
    """
    (plain, orders), (value, _) = _known(a), _known(determinant)
    if type(plain) is not np.ndarray or not plain.size:
        return None
    numbers = np.finfo(plain.dtype)
    with np.errstate(all="ignore"):
        try:
            inverted = np.linalg.inv(plain)
        except np.linalg.LinAlgError:
            return None
        condition, size = _frobenius(plain) * _frobenius(inverted), np.abs(value)
        limit = numbers.eps ** (-0.5 / (orders + 1))
        regular = (condition <= limit) & (numbers.tiny <= size) & (size <= numbers.max)
        if not regular.all():
            return None
    if orders:
        inverted = inverse(a)
    return _for_matrices(determinant) * inverted.mT


def _for_matrices(x: Any) -> Any:
    """One number per matrix, in a shape that broadcasts against the matrices."""
    return np.expand_dims(x, (-2, -1)) if shape_of(x) else x


def _known(value: Any) -> tuple[Any, int]:
    """The value without its derivatives, plain if no other interpreter holds it, and how many they are."""
    orders = 0
    while isinstance(value, Tracer) and value.interpreter.differentiates:
        value, orders = value.interpreter.concrete(value), orders + 1
    return as_constant(value), orders


def _frobenius(a: Any) -> Any:
    if a.ndim == 2 and a.dtype.kind == "f":
        flat = a.ravel(order="K")
        return np.sqrt(flat.dot(flat))
    return np.linalg.norm(a, axis=(-2, -1))


def _adjugate_of_two(a: Any) -> Any:
    """[[d, -b], [-c, a]] for [[a, b], [c, d]]."""
    signs = np.array([[1, -1], [-1, 1]], dtype_of(a))
    return a[..., ::-1, ::-1].mT * signs


det = factorization(
    "det",
    np.linalg.det,
    lambda tangent, out, a: (_cofactors(out, a) * tangent).sum(axis=(-2, -1)),
    lambda g, out, a: _for_matrices(g) * conjugate(_cofactors(out, a)),
    " same",
)
