"""Eigenvalues, singular values, and what follows from them: bases of spaces, and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import spectral
from functrans.ops.factorization import H, from_triangle
from functrans.ops.structure import stop_gradient
from functrans.scipy import eigenvectors, matrices
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.linalg.arguments import matrix_of
from functrans.scipy.linalg.systems import solve_triangular
from functrans.scipy.matrices import sl
from functrans.surface.table import as_array, ndim_of


@delegates(sl.eigh)
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, or of a v = w b v.

    Only one triangle of `a` and `b` is read. Where eigenvalues coincide, derivatives of eigenvectors are nan.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eigh
    >>> grad(lambda a: eigh(a, subset_by_index=[0, 0])[0][0])(np.diag([1.0, 2.0]))
    array([[1., 0.],
           [0., 0.]])
    """
    uplo = "L" if lower else "U"
    matrix = matrix_of(a, "eigh")
    metric = None if b is None else matrix_of(b, "eigh")
    factor = None
    if metric is not None:
        if type not in (1, 2, 3):
            raise ValueError(f"type keyword only accepts 1, 2, and 3, got {type}")
        # With b = l l^H, the vectors are l^-H or l times those of l⁻¹ a l^-H or l^H a l.
        dtype = np.result_type(dtype_of(matrix), dtype_of(metric))
        metric, full = metric.astype(dtype), from_triangle(matrix.astype(dtype), uplo)
        factor = matrices.cholesky(from_triangle(metric, uplo))
        if type == 1:
            inner = solve_triangular(factor, full, lower=True)
            reduced = H(solve_triangular(factor, H(inner), lower=True))
        else:
            reduced = H(factor) @ full @ factor
        reduced, uplo = (reduced + H(reduced)) / 2, "L"
    else:
        reduced = matrix
    if eigvals_only:
        return _subset(spectral.eigvalsh(reduced, uplo=uplo), subset_by_index, subset_by_value)[0]
    w, v = eigenvectors.eigh(reduced, uplo=uplo)
    if factor is not None:
        v = factor @ v if type == 3 else solve_triangular(factor, v, trans="C", lower=True)
    w, chosen = _subset(w, subset_by_index, subset_by_value)
    v = v[..., chosen]
    if factor is not None or driver is not None or shape_of(w)[-1] != shape_of(matrix)[-1]:
        # LAPACK's signs depend on the routine
        options = {"lower": bool(lower), "kind": int(type), "driver": driver}
        first, count = chosen.start or 0, shape_of(w)[-1]
        given = (matrix,) if metric is None else (matrix.astype(dtype), metric)
        constants = [stop_gradient(each) for each in given]
        like = eigenvectors.of_scipy(*constants, **options, first=first, count=count)
        v = v * _phases(v, like)
    return w, v


def _subset(w: Any, by_index: Any, by_value: Any) -> tuple[Any, slice]:
    """The chosen eigenvalues, and which these are."""
    if by_index is not None:
        first, last = (int(concrete(each)) for each in by_index)
        chosen = slice(first, last + 1)
    elif by_value is not None:
        low, high = (concrete(each) for each in by_value)
        inside = concrete((w > low) & (w <= high))
        places = np.flatnonzero(inside)
        chosen = slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
    else:
        chosen = slice(0, shape_of(w)[-1])
    return w[..., chosen], chosen


def _phases(v: Any, like: Any) -> Any:
    """The factors of size 1 that turn the columns of v into those of `like`."""
    overlap = np.sum(np.conj(stop_gradient(v)) * like, axis=-2, keepdims=True)
    size = np.abs(overlap)
    return np.where(size > 0, overlap / np.where(size > 0, size, 1), 1).astype(dtype_of(v))


@delegates(sl.eigvalsh)
def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues of a Hermitian matrix, in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eigvalsh
    >>> grad(lambda a: eigvalsh(a)[1])(np.diag([1.0, 2.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        subset_by_index=subset_by_index,
        subset_by_value=subset_by_value,
    )


@delegates(sl.eigh_tridiagonal)
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix, from its two diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eigh_tridiagonal
    >>> grad(lambda d: eigh_tridiagonal(d, np.zeros(1))[0][1])(np.array([1.0, 2.0]))
    array([0., 1.])
    """
    main, side = as_array(d), as_array(e)
    n = shape_of(main)[-1]
    if shape_of(side)[-1:] != (max(n - 1, 0),):
        raise ValueError(f"d ({n}) must have one more element than e ({shape_of(side)[-1]})")
    full = np.eye(n) * main[..., None]
    if n > 1:
        below = np.concatenate([side, np.zeros((*shape_of(side)[:-1], 1))], axis=-1)
        full = full + np.eye(n, k=-1) * below[..., None, :]
    index, value = None, None
    if select in ("i", "index", 2):
        index = select_range
    elif select in ("v", "value", 1):
        value = select_range
    w, v = eigh(full, subset_by_index=index, subset_by_value=value)
    if eigvals_only:
        return w
    like = eigenvectors.of_tridiagonal(
        stop_gradient(main)[..., None, :], stop_gradient(side)[..., None, :]
    )
    lead = np.broadcast_shapes(shape_of(like)[:-2], shape_of(v)[:-2])
    if shape_of(v)[-1] == n:
        v = v * _phases(v, np.broadcast_to(like, (*lead, n, n)))
    return w, v


@delegates(sl.eigvalsh_tridiagonal)
def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues of a symmetric tridiagonal matrix, from its two diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eigvalsh_tridiagonal
    >>> grad(lambda d: eigvalsh_tridiagonal(d, np.zeros(1))[1])(np.array([1.0, 2.0]))
    array([0., 1.])
    """
    return eigh_tridiagonal(d, e, True, select, select_range)


@delegates(sl.eig)
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues, always complex, and eigenvectors of length 1 of a square matrix.

    With `b`, or with `left`, only the eigenvalues of traced matrices are available.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eig
    >>> grad(lambda a: np.sum(eig(a)[0].real))(np.array([[1.0, 2.0], [0.0, 3.0]])).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    name = "scipy.linalg.eig"
    if homogeneous_eigvals:
        remedy = "Leave it out, and use the eigenvalues themselves."
        refuse_option(name, remedy, homogeneous_eigvals=homogeneous_eigvals)
    if not left and not right:
        return eigvals(a, b)
    if left:
        remedy = "Left eigenvectors are the columns of inv(right eigenvectors)^H."
        refuse_option(name, remedy, left=left)
    if b is not None:
        refuse_option(name, "Pass solve(b, a) as the only matrix, or right=False.", b="...")
    matrix = matrix_of(a, "eig")
    w, v = np.linalg.eig(matrix)
    return w.astype(np.result_type(dtype_of(w), np.complex64)), v


@delegates(sl.eigvals)
def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of a square matrix, or of a v = w b v for a regular matrix b; always complex.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import eigvals
    >>> grad(lambda a: np.sum(eigvals(a).real))(np.array([[1.0, 2.0], [0.0, 3.0]])).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    if homogeneous_eigvals:
        remedy = "Leave it out, and use the eigenvalues themselves."
        refuse_option("scipy.linalg.eigvals", remedy, homogeneous_eigvals=True)
    matrix = matrix_of(a, "eigvals")
    if b is not None:
        matrix = np.linalg.solve(matrix_of(b, "eigvals"), matrix)
    return spectral.eig(matrix)[0]


# Singular values.


@delegates(sl.svd)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition (u, s, vh) of a = u s vh.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import svd
    >>> grad(lambda a: svd(a, compute_uv=False)[0])(np.diag([1.0, 2.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    matrix = matrix_of(a, "svd", False)
    return tuple(np.linalg.svd(matrix, full_matrices)) if compute_uv else np.linalg.svdvals(matrix)


@delegates(sl.svdvals)
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Singular values of a matrix, in descending order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import svdvals
    >>> grad(lambda a: svdvals(a)[0])(np.diag([1.0, 2.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return np.linalg.svdvals(matrix_of(a, "svdvals", False))


def _rank(s: Any, rcond: Any, shape: tuple[int, ...]) -> int:
    """How many singular values count; a shape follows from it, so that values must be known."""
    if rcond is None:
        rcond = np.finfo(dtype_of(s)).eps * max(shape)
    count = np.sum(s > np.max(s, axis=-1, initial=0, keepdims=True) * rcond, axis=-1)
    counts = np.unique(concrete(count))
    if len(counts) > 1:
        raise ValueError(f"the matrices of a stack have different ranks: {counts.tolist()}")
    return int(counts[0])


@delegates(sl.orth)
def orth(A: Any, rcond: Any = None) -> Any:
    """An orthonormal basis of the range of a matrix, from its singular value decomposition.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import orth
    >>> np.abs(orth(np.array([[3.0], [4.0]]))).round(6)
    array([[0.6],
           [0.8]])
    """
    matrix = matrix_of(A, "orth", False)
    u, s, _ = np.linalg.svd(matrix, full_matrices=False)
    return u[..., : _rank(s, rcond, shape_of(matrix)[-2:])]


@delegates(sl.null_space)
def null_space(
    A: Any,
    rcond: Any = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """An orthonormal basis of the null space of a matrix.

    A rotation within the space is arbitrary, and has derivative 0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> from functrans.scipy.linalg import null_space
    >>> a = np.array([[1.0, 0.0]])
    >>> jvp(lambda a: null_space(a).T, (a,), (np.array([[0.0, 1.0]]),))[1] + 0.0
    array([[-1.,  0.]])
    """
    matrix = matrix_of(A, "null_space", False)
    _, s, vh = np.linalg.svd(matrix)
    return H(vh[..., _rank(s, rcond, shape_of(matrix)[-2:]) :, :])


@delegates(sl.subspace_angles)
def subspace_angles(A: Any, B: Any) -> Any:
    """The angles between the ranges of two matrices, in descending order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import subspace_angles
    >>> a = np.array([[1.0], [0.0]])
    >>> turned = lambda t: t * np.array([[0.0], [1.0]]) + a
    >>> float(grad(lambda t: subspace_angles(a, turned(t))[0])(1.0).round(6))
    0.5
    """
    first, second = matrix_of(A, "subspace_angles", False), matrix_of(B, "subspace_angles", False)
    if shape_of(first)[-2] != shape_of(second)[-2]:
        raise ValueError("A and B must have the same number of rows")
    left = np.linalg.qr(first)[0]
    right = np.linalg.qr(second)[0]
    inner = H(left) @ right
    cosines = np.linalg.svdvals(inner)
    if shape_of(left)[-1] >= shape_of(right)[-1]:
        outside = right - left @ inner
    else:
        outside = left - right @ H(inner)
    # Small angles are accurate from their sines, and large ones from their cosines.
    sines = np.flip(np.clip(np.linalg.svdvals(outside), -1, 1), -1)
    near = cosines**2 >= 0.5
    sines = sines[..., : shape_of(cosines)[-1]]
    safe_sines = np.where(near, sines, 0)
    safe_cosines = np.where(near, 0, np.clip(cosines, -1, 1))
    return np.flip(np.where(near, np.arcsin(safe_sines), np.arccos(safe_cosines)), -1)


@delegates(sl.norm)
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """A norm of a vector or a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import norm
    >>> grad(norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return np.linalg.norm(as_array(a), ord, axis, keepdims)


@delegates(sl.diagsvd)
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The matrix of shape (M, N) with singular values on its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import diagsvd
    >>> grad(lambda s: np.sum(diagsvd(s, 2, 3)))(np.ones(2))
    array([1., 1.])
    """
    values = as_array(s)
    if ndim_of(values) < 1 or shape_of(values)[-1] not in (M, N):
        raise ValueError("Length of s must be M or N.")
    length = shape_of(values)[-1]
    square = values[..., None] * np.eye(length, dtype=dtype_of(values))
    lead = shape_of(values)[:-1]
    if length == M:
        missing = np.zeros((*lead, M, N - M), dtype_of(values))
        return np.concatenate([square, missing], axis=-1)
    return np.concatenate([square, np.zeros((*lead, M - N, N), dtype_of(values))], axis=-2)
