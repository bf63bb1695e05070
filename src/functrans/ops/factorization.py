"""Functions of matrices that LAPACK computes: the family, linear systems, Cholesky and QR.

Eigenvalues are in spectral.py, singular values and the pseudoinverse in singular.py, determinants in
determinant.py.

All work on stacks: the last two axes are the matrix. `factorization` is given the tangents of the results
(`push`) and the cotangent of the matrix (`pull`), for the inner product Re Σ conj(x) y, which is usual in
mathematics: the adjoint of dA -> X dA Y is G -> X^H G Y^H. H(x) is the conjugate transpose. The inner product
of the backward pass has no conjugate, so `factorization` conjugates the inputs and outputs of `pull`.

Functions of Hermitian matrices (cholesky, eigh) read one triangle, and so do their derivatives:
`from_triangle` is the Hermitian matrix that a triangle stands for, and `to_triangle` its adjoint. The
cotangent of the other triangle is zero.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule, bare, of_mask
from functrans.core.shapes import ArraySpec, checked_choice, dtype_of, shape_of, sum_to_shape
from functrans.ops.families import align_batched, batch_spreading, result_spec
from functrans.ops.gaps import smallest_gap
from functrans.ops.structure import stop_gradient
from functrans.ops.triangular import triangular_solve


def factorization(
    name: str, impl: Rule, push: Rule, pull: Rule, *results: str, tall: bool = False
) -> Primitive:
    """A function of one stack of matrices, from the linear maps between tangents and cotangents.

    push(tangent, out, a, **params) is the tangent of `out`, and pull(cotangent, out, a, **params)
    the cotangent of the matrix `a`. With several results, these are tuples, whose entries may be
    None for zero. Each of `results` is a shape and a kind of number: "mk real", "n same". The
    lengths are m and n, those of the matrix, k, the smaller of them, p = m - k and q = n - k. If
    all are n, the matrices must be square, and if `tall`, m must not be below n.
    """
    outputs = len(results) if len(results) > 1 else 0
    letters_used = {letter for result in results for letter in result.rpartition(" ")[0]}
    square = letters_used <= {"n"}

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        return push(tangents[0], out, args[0], **params)

    def pull_back(g: Any, saved: Any) -> Any:
        out, a, params = saved
        g = tuple(map(conjugate, g)) if outputs else conjugate(g)
        return conjugate(pull(g, out, a, **params))

    def shape(specs: tuple[ArraySpec, ...], params: Any) -> Any:
        *lead, m, n = specs[0].shape
        k = min(m, n)
        if square and m != n:
            raise ValueError(f"{name}: a matrix of shape {(m, n)} is not square")
        if tall and m < n:
            raise ValueError(f"{name}: a matrix of shape {(m, n)} has too few rows")
        if "uplo" in params:
            checked_choice(params["uplo"], ("L", "U"))
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
        kind="linear algebra",
    )


@cache
def dtypes_for(dtype: np.dtype[Any]) -> dict[str, np.dtype[Any]]:
    """The dtypes that NumPy's linear algebra returns for a matrix of this dtype."""
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


def conjugate(x: Any) -> Any:
    """The conjugate, without the copy that np.conj makes of real numbers; None stays."""
    return np.conj(x) if x is not None and dtype_of(x).kind == "c" else x


def hermitian(x: Any) -> Any:
    return (x + H(x)) / 2


def from_triangle(x: Any, uplo: str) -> Any:
    """The Hermitian matrix of which one triangle is given, the lower one ("L") or the upper ("U")."""
    n = x.shape[-1]
    mirrored = np.where(_read(n, uplo), x, H(x))
    if dtype_of(x).kind == "c":  # LAPACK assumes a real diagonal
        mirrored = np.where(np.eye(n, dtype=bool), mirrored.real, mirrored)
    return mirrored


def to_triangle(x: Any, uplo: str) -> Any:
    """The adjoint of `from_triangle`: cotangents of both triangles go to the one that is read."""
    n, dtype = x.shape[-1], x.real.dtype
    return np.where(_read(n, uplo), (x + H(x)) * (1 - np.eye(n, dtype=dtype) / 2), 0)


def _read(n: int, uplo: str) -> Any:
    lower = np.tri(n, dtype=bool)
    return lower if uplo == "L" else lower.T


# The identity, with tangents and cotangents replaced by their Hermitian parts.
taken_as_hermitian = Primitive(
    "taken_as_hermitian",
    lambda x: x,
    jvp=lambda out, args, tangents, params: hermitian(tangents[0]),
    vjp=lambda mask, out, args, params: (lambda g, saved: hermitian(g), None),
    batch=lambda primitive, args, batched, size, params: primitive(*args),
    shape=lambda specs, params: specs[0],
    kind="linear algebra",
    views=True,
)


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
    return bare(parts)


def _solve_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (a, b), (a_mapped, b_mapped) = args, batched
    if not a_mapped and b_mapped and len(shape_of(a)) == 2 and len(shape_of(b)) == 3:
        # One factorization: the right-hand sides of all lanes are columns of one matrix.
        lanes, n, k = shape_of(b)
        columns = np.moveaxis(b, 0, 1).reshape((n, lanes * k))
        return np.moveaxis(solve(a, columns).reshape((shape_of(a)[0], lanes, k)), 1, 0)
    return solve(*align_batched(args, batched))


def _solve_spec(specs: tuple[ArraySpec, ...], params: Any) -> Any:
    a, b = specs
    if a.shape[-2] != a.shape[-1]:
        raise ValueError(f"solve: a matrix of shape {a.shape[-2:]} is not square")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"solve: a matrix of shape {a.shape[-2:]} does not match a right-hand side with {b.shape[-2]} "
            "rows"
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
    kind="linear algebra",
)


def inverse(a: Any) -> Any:
    return solve(a, np.eye(a.shape[-1], dtype=dtype_of(a)))


# Cholesky: A = L L^H, from the lower triangle of A. With Φ the lower triangle and half of the diagonal,
# dL = L Φ(L^-1 dA L^-H).


_FEW_ROWS = 16  # up to this many, native code and NumPy are as fast with the general solver


def _divided(b: Any, factor: Any, adjoint: bool = False) -> Any:
    """L^-1 b, or L^-H b."""
    if factor.shape[-1] <= _FEW_ROWS:
        return solve(H(factor) if adjoint else factor, b)
    if adjoint:
        factor = conjugate(factor)
    return triangular_solve(factor, b, lower=True, transposed=adjoint, unit_diagonal=False)


def _cholesky_push(tangent: Any, out: Any, a: Any) -> Any:
    left = _divided(from_triangle(tangent, "L"), out)
    return out @ _half_triangle(H(_divided(H(left), out)))


def _cholesky_pull(g: Any, out: Any, a: Any) -> Any:
    middle = _divided(_half_triangle(H(out) @ g), out, adjoint=True)
    return to_triangle(H(_divided(H(middle), out, adjoint=True)), "L")


cholesky = factorization("cholesky", np.linalg.cholesky, _cholesky_push, _cholesky_pull, "nn same")


# QR of matrices that are not wide. With C = Q^H dA R^-1, the skew part Ω = Q^H dQ agrees with C
# below the diagonal, and in the imaginary part of the diagonal, since R has a real one.
#
# A column that depends on those before it leaves nothing to normalize: from there on, Q and the rows of R
# are rounding errors. Their derivatives are nan, and R^-1 is the inverse of the part before. The last column
# of a square Q is perpendicular to all others, and needs no normalization.


def _dependent(r: Any, square: bool) -> tuple[Any, Any]:
    """R with 1 in place of the part without an inverse, and the columns of Q that are lost."""
    n, r_now = r.shape[-1], stop_gradient(r)
    lengths = np.sqrt(np.sum((r_now * np.conj(r_now)).real, axis=-2))
    small = np.abs(diagonal(r_now)) <= smallest_gap(dtype_of(lengths)) * lengths
    after = np.cumsum(small, axis=-1) > 0
    regular = np.where(after[..., None, :] | after[..., :, None], np.eye(n, dtype=dtype_of(r)), r)
    if square and dtype_of(r).kind != "c":  # a complex column has a phase to determine
        after = np.cumsum(small & (np.arange(n) < n - 1), axis=-1) > 0
    return regular, after


def _qr_push(tangent: Any, out: Any, a: Any) -> Any:
    q, r = out[:2]
    tall = a.shape[-2] > a.shape[-1]
    regular, lost = _dependent(r, not tall)
    moved = solve(regular.mT, tangent.mT).mT
    c = H(q) @ moved
    below = np.tril(c, -1)
    omega = below - H(below)
    if dtype_of(a).kind == "c":
        omega = omega + diagonal_matrix(1j * diagonal(c).imag)
    dq = q @ omega + (moved - q @ c if tall else 0)
    dr = np.triu(H(q) @ tangent - omega @ r)
    factor = np.where(lost, np.nan, np.ones(lost.shape, r.real.dtype))
    return dq * factor[..., None, :], np.triu(dr * factor[..., :, None])


def _qr_pull(g: Any, out: Any, a: Any) -> Any:
    (to_q, to_r), (q, r) = g[:2], out[:2]
    tall = a.shape[-2] > a.shape[-1]
    regular, lost = _dependent(r, not tall)
    used: Any = False
    x: Any = 0
    if to_q is not None:
        used = np.any(stop_gradient(to_q) != 0, axis=-2)
        x = H(q) @ to_q
    outside = to_q - q @ x if tall and to_q is not None else 0
    back: Any = 0
    if to_r is not None:
        to_r = np.triu(to_r)
        used = used | np.any(stop_gradient(to_r) != 0, axis=-1)
        x, back = x - to_r @ H(r), q @ to_r
    turned = np.tril(x - H(x), -1)
    if dtype_of(a).kind == "c":
        turned = turned + diagonal_matrix(1j * diagonal(x).imag)
    back = back + H(solve(regular, H(q @ turned + outside)))
    spoiled = np.expand_dims(np.any(lost & used, axis=-1), (-2, -1))
    return np.where(spoiled, np.nan, np.ones(spoiled.shape, r.real.dtype)) * back


def _qr_complete(a: Any) -> Any:
    q, r = np.linalg.qr(a, "complete")
    n = a.shape[-1]
    return q[..., :n], r[..., :n, :], q[..., n:]


qr = factorization(
    "qr", lambda a: tuple(np.linalg.qr(a)), _qr_push, _qr_pull, "mn same", "nn same", tall=True
)
# The third result completes Q to a square matrix; `complement` has its derivative.
qr_complete = factorization(
    "qr_complete",
    _qr_complete,
    lambda *args: (*_qr_push(*args), None),
    _qr_pull,
    "mn same",
    "nn same",
    "mp same",
    tall=True,
)


# Orthonormal columns C that complete others, Q, to a basis: Q^H C = 0, so Q^H dC = -dQ^H C. A
# rotation of C within its span is arbitrary, and defined as 0. The completion itself is an
# argument.


def _complement_pull(g: Any, saved: Any) -> Any:
    mask, q, out = saved
    to_q = np.conj(-out @ g.mT @ q)  # the adjoint is -C G^H Q, with G = conj(g)
    return of_mask(mask, to_q)


complement = Primitive(
    "complement",
    lambda q, completion: completion,
    jvp=lambda out, args, tangents, params: (
        None if tangents[0] is None else -args[0] @ (H(tangents[0]) @ out)
    ),
    vjp=lambda mask, out, args, params: (
        (_complement_pull, (mask, args[0], out)) if mask & 1 else None
    ),
    batch=batch_spreading,
    shape=lambda specs, params: specs[1],
    kind="linear algebra",
    views=True,
)
