"""Functions of matrices that LAPACK computes: the family, linear systems, Cholesky and QR.

Eigenvalues and singular values are in spectral.py, determinants in determinant.py.

All work on stacks: the last two axes are the matrix. `factorization` states how the results move
with the matrix (`push`), and what flows back (`pull`), for the inner product Re Σ conj(x) y, in
which the mathematics is usually written: the adjoint of dA -> X dA Y is G -> X^H G Y^H. H(x) is the
conjugate transpose. The sweep's inner product has no conjugate, so `factorization` conjugates what
goes into `pull` and what comes out.

Conventions. Functions of Hermitian matrices (cholesky, eigh) are differentiated among Hermitian
matrices: they see the Hermitian part of a tangent, and their cotangent is Hermitian, whichever
triangle NumPy reads.

Eigenvectors and singular vectors are determined up to phases, and up to rotations where values
coincide. Their tangents have no component along this freedom, so that functions which do not depend
on it have their derivative: sums of the values, projectors on whole eigenspaces, U V^H. Values
closer than rounding count as equal, so that rounding is never divided by rounding. One thing is
beyond reach: how equal values part, and what the vectors then do. V f(w) V^H, and second
derivatives by w, need this between two equal eigenvalues, and lose that part there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, dtype_of, shape_of, sum_to_shape
from functrans.ops.families import align_batched, result_spec


def factorization(name: str, impl: Rule, push: Rule, pull: Rule, *results: str) -> Primitive:
    """A function of one stack of matrices, from the linear maps between tangents and cotangents.

    push(tangent, out, a, **params) is the tangent of `out`, and pull(cotangent, out, a, **params)
    the cotangent of the matrix `a`. With several results, these are tuples, whose entries may be
    None for zero. Each of `results` is a shape and a kind of number: "mk real", "n same". The
    lengths are m and n, those of the matrix, k, the smaller of them, and p and q, what m and n
    exceed it by.
    """
    outputs = len(results) if len(results) > 1 else 0

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        return push(tangents[0], out, args[0], **params)

    def pull_back(g: Any, saved: Any) -> Any:
        out, a, params = saved
        g = tuple(x if x is None else np.conj(x) for x in g) if outputs else np.conj(g)
        return np.conj(pull(g, out, a, **params))

    def shape(specs: tuple[ArraySpec, ...], params: Any) -> Any:
        *lead, m, n = specs[0].shape
        k = min(m, n)
        lengths = {"m": m, "n": n, "k": k, "p": m - k, "q": n - k}
        dtypes = dtypes_for(specs[0].dtype)
        found = tuple(
            ArraySpec((*lead, *(lengths[letter] for letter in letters)), dtypes[kind])
            for letters, _, kind in (result.rpartition(" ") for result in results)
        )
        return found if outputs else found[0]

    return Primitive(
        name,
        impl,
        jvp=jvp,
        vjp=lambda mask, out, args, params: (pull_back, (out, args[0], params)),
        batch=lambda primitive, args, batched, size, params: primitive(*args, **params),
        shape=shape,
        outputs=outputs,
    )


@cache
def dtypes_for(dtype: np.dtype[Any]) -> dict[str, np.dtype[Any]]:
    """The dtypes that NumPy's linear algebra gives for a matrix of this one."""
    same = np.linalg.inv(np.ones((1, 1), dtype))
    return {
        "same": same.dtype,
        "real": same.real.dtype,
        "complex": np.result_type(same.dtype, np.complex64),
    }


# The notation of the rules.


def H(x: Any) -> Any:
    """The conjugate transpose."""
    return np.conj(x.mT) if dtype_of(x).kind == "c" else x.mT


def hermitian(x: Any) -> Any:
    return (x + H(x)) / 2


def diagonal(x: Any) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


def diagonal_matrix(x: Any) -> Any:
    return x[..., None] * np.eye(x.shape[-1], dtype=dtype_of(x))


def _half_triangle(x: Any) -> Any:
    """x below the diagonal and half of x on it."""
    n, dtype = x.shape[-1], x.real.dtype
    return x * (np.tri(n, dtype=dtype) - np.eye(n, dtype=dtype) / 2)


# solve: x = A^-1 b for matrices b, with broadcasting of stacks.
# A dx = db - dA x; and A^-T g flows to b, -(A^-T g) x^T to A.


def _solve_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    a, (a_tangent, b_tangent) = args[0], tangents
    if a_tangent is None:
        return solve(a, b_tangent)
    moved = a_tangent @ out
    return solve(a, -moved if b_tangent is None else b_tangent - moved)


def _solve_pull(g: Any, saved: Any) -> Any:
    mask, out, a, a_shape, b_shape = saved
    to_b = solve(a.mT, g)
    parts = []
    if mask & 1:
        parts.append(sum_to_shape(-to_b @ out.mT, a_shape))
    if mask & 2:
        parts.append(sum_to_shape(to_b, b_shape))
    return parts[0] if len(parts) == 1 else tuple(parts)


def _solve_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (a, b), (a_mapped, b_mapped) = args, batched
    if not a_mapped and b_mapped and len(shape_of(a)) == 2 and len(shape_of(b)) == 3:
        # One factorization: the right sides of all lanes are columns of one matrix.
        lanes, n, k = shape_of(b)
        columns = np.moveaxis(b, 0, 1).reshape((n, lanes * k))
        return np.moveaxis(solve(a, columns).reshape((shape_of(a)[0], lanes, k)), 1, 0)
    return solve(*align_batched(args, batched))


def _solve_spec(specs: tuple[ArraySpec, ...], params: Any) -> Any:
    a, b = specs
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"solve: a matrix of shape {a.shape[-2:]} does not fit a right side with {b.shape[-2]} rows"
        )
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    small = [ArraySpec((1, 1), a.dtype), ArraySpec((1, 1), b.dtype)]
    return result_spec(np.linalg.solve, small, {}, shape)


solve = Primitive(
    "solve",
    np.linalg.solve,
    jvp=_solve_jvp,
    vjp=lambda mask, out, args, params: (
        _solve_pull,
        (mask, out, args[0], shape_of(args[0]), shape_of(args[1])),
    ),
    batch=_solve_batch,
    shape=_solve_spec,
)


def inverse(a: Any) -> Any:
    return solve(a, np.eye(a.shape[-1], dtype=dtype_of(a)))


# Cholesky: A = L L^H. With Φ the lower triangle and half of the diagonal, dL = L Φ(L^-1 dA L^-H).


def _cholesky_push(tangent: Any, out: Any, a: Any) -> Any:
    left = solve(out, hermitian(tangent))
    return out @ _half_triangle(H(solve(out, H(left))))


def _cholesky_pull(g: Any, out: Any, a: Any) -> Any:
    middle = solve(H(out), _half_triangle(H(out) @ g))
    return hermitian(H(solve(H(out), H(middle))))


cholesky = factorization("cholesky", np.linalg.cholesky, _cholesky_push, _cholesky_pull, "nn same")


# QR of matrices that are not wide. With C = Q^H dA R^-1, the skew part Ω = Q^H dQ agrees with C
# below the diagonal, and in the imaginary part of the diagonal, since R has a real one.


def _qr_push(tangent: Any, out: Any, a: Any) -> Any:
    q, r = out[:2]
    moved = solve(r.mT, tangent.mT).mT
    c = H(q) @ moved
    below = np.tril(c, -1)
    omega = below - H(below)
    if dtype_of(a).kind == "c":
        omega = omega + diagonal_matrix(1j * diagonal(c).imag)
    return q @ omega + (moved - q @ c), (c - omega) @ r


def _qr_pull(g: Any, out: Any, a: Any) -> Any:
    (to_q, to_r), (q, r) = g[:2], out[:2]
    x = 0 if to_q is None else H(q) @ to_q
    if to_r is not None:
        x = x - to_r @ H(r)
    moved = q @ (_half_triangle(x - H(x)) - x)
    if to_q is not None:
        moved = moved + to_q
    return H(solve(r, H(moved)))


def _qr_complete(a: Any) -> Any:
    q, r = np.linalg.qr(a, "complete")
    n = a.shape[-1]
    return q[..., :n], r[..., :n, :], q[..., n:]


qr = factorization("qr", lambda a: tuple(np.linalg.qr(a)), _qr_push, _qr_pull, "mn same", "nn same")
# The third result completes Q to a square matrix; `complement` says how that moves.
qr_complete = factorization(
    "qr_complete",
    _qr_complete,
    lambda *args: (*_qr_push(*args), None),
    _qr_pull,
    "mn same",
    "nn same",
    "mp same",
)


# Orthonormal columns C that complete others, Q, to a basis: Q^H C = 0, so Q^H dC = -dQ^H C. What C
# turns within itself is free, and taken as 0. The completion itself is given.


def _complement_pull(g: Any, saved: Any) -> Any:
    mask, q, out = saved
    to_q = np.conj(-out @ g.mT @ q)  # the adjoint is -C G^H Q, with G = conj(g)
    return to_q if mask == 1 else (to_q, None)


complement = Primitive(
    "complement",
    lambda q, completion: completion,
    jvp=lambda out, args, tangents, params: (
        None if tangents[0] is None else -args[0] @ (H(tangents[0]) @ out)
    ),
    vjp=lambda mask, out, args, params: (
        (_complement_pull, (mask, args[0], out)) if mask & 1 else None
    ),
    batch=lambda primitive, args, batched, size, params: primitive(
        *(
            arg if mapped else np.broadcast_to(arg, (size, *shape_of(arg)))
            for arg, mapped in zip(args, batched, strict=True)
        )
    ),
    shape=lambda specs, params: specs[1],
)
