"""Factorizations: Cholesky, LU, QR, and polar ones. Eigenvalues and singular values are in spectra.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.factorization import H, from_triangle
from functrans.scipy import matrices
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.linalg.arguments import matrix_of, with_columns
from functrans.scipy.linalg.systems import solve_triangular
from functrans.scipy.matrices import sl, triangle
from functrans.surface.table import as_array


@delegates(sl.cholesky)
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a positive definite matrix: a = u^H u, or a = l l^H if `lower`.

    Only the upper, or the lower, triangle of `a` is read.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import cholesky
    >>> grad(lambda a: cholesky(a)[1, 1])(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[ 0.125, -0.5  ],
           [ 0.   ,  0.5  ]])
    """
    x = matrix_of(a, "cholesky")
    factor = matrices.cholesky(from_triangle(x, "L" if lower else "U"))
    return factor if lower else H(factor)


@delegates(sl.cho_factor)
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor of a matrix in the form that `cho_solve` takes; its other triangle is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor(np.array([[4.0, 2.0], [2.0, 2.0]])), np.array([2.0, 0.0]))
    array([ 1., -1.])
    """
    factor = cholesky(a, lower)
    return factor, bool(lower)


@delegates(sl.cho_solve)
def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve a x = b, given the result of `cho_factor(a)`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import cho_factor, cho_solve
    >>> b = np.array([2.0, 0.0])
    >>> grad(lambda a: b @ cho_solve(cho_factor(a * np.eye(2)), b))(4.0)
    np.float64(-0.25)
    """
    factor, given = c_and_lower
    lower = bool(np.all(given))  # SciPy has one flag per matrix of a stack
    first = solve_triangular(factor, b, trans=0 if lower else "C", lower=lower)
    return solve_triangular(factor, first, trans="C" if lower else 0, lower=lower)


@delegates(sl.lu_factor)
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The LU factors of a matrix with pivoting, packed in one matrix, and the row exchanges.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 4.0]))
    array([1., 1.])
    """
    packed, exchanges = matrices.lu(matrix_of(a, "lu_factor", square=False))
    return packed, exchanges


@delegates(sl.lu_solve)
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve a x = b (or with the transpose of a), given the result of `lu_factor(a)`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import lu_factor, lu_solve
    >>> grad(lambda a: np.sum(lu_solve(lu_factor(a * np.eye(2)), np.ones(2))))(2.0)
    np.float64(-0.5)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, not {trans!r}")
    packed, exchanges = lu_and_piv
    factors = matrix_of(packed, "lu_solve")
    columns, vector = with_columns(b, shape_of(factors)[-1], "lu_solve")
    order = matrices.row_order(as_array(exchanges), rows=shape_of(factors)[-1])
    if trans == 0:
        columns = _take_rows(columns, order)
        columns = solve_triangular(factors, columns, lower=True, unit_diagonal=True)
        out = solve_triangular(factors, columns)
    else:  # (P L U)^T = U^T L^T P^T
        columns = solve_triangular(factors, columns, trans=trans)
        columns = solve_triangular(factors, columns, trans=trans, lower=True, unit_diagonal=True)
        out = _take_rows(columns, np.argsort(order, axis=-1))
    return out[..., 0] if vector else out


def _take_rows(columns: Any, order: Any) -> Any:
    lead = np.broadcast_shapes(shape_of(columns)[:-2], shape_of(order)[:-1])
    columns = np.broadcast_to(columns, lead + shape_of(columns)[-2:])
    order = np.broadcast_to(order, lead + shape_of(order)[-1:])
    return np.take_along_axis(columns, order[..., None], axis=-2)


@delegates(sl.lu)
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """The factors (p, l, u) of a = p l u, or (p l, u) if `permute_l`.

    With `p_indices`, p is the array of row indices for which a = l[p] u.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import lu
    >>> p, l, u = lu(np.array([[0.0, 2.0], [4.0, 0.0]]))
    >>> u
    array([[4., 0.],
           [0., 2.]])
    """
    x = matrix_of(a, "lu", square=False)
    rows, columns = shape_of(x)[-2:]
    rank = min(rows, columns)
    packed, exchanges = matrices.lu(x)
    order = matrices.row_order(exchanges, rows=rows)
    lower = triangle(packed[..., :rank], True, -1) + np.eye(rows, rank, dtype=dtype_of(x))
    upper = triangle(packed[..., :rank, :], False)
    inverse = np.argsort(order, axis=-1)
    if permute_l:
        return np.take_along_axis(lower, inverse[..., None], axis=-2), upper
    if p_indices:
        return inverse.astype(np.int32), lower, upper
    exchange = (np.arange(rows) == inverse[..., None]).astype(dtype_of(x).type(0).real.dtype)
    return exchange, lower, upper


@delegates(sl.qr)
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The factors (q, r) of a = q r, or (q, r, p) with a[:, p] = q r if `pivoting`.

    `mode` is "full", "economic" or "r"; "raw" has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import qr
    >>> grad(lambda a: qr(a, mode="r")[0][0, 0] ** 2)(np.array([[3.0], [4.0]]))
    array([[6.],
           [8.]])
    """
    if mode == "raw":
        refuse_option("scipy.linalg.qr", "Use mode='full', 'economic' or 'r'.", mode=mode)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"Mode argument should be one of ['full', 'r', 'economic'], not {mode!r}")
    matrix = matrix_of(a, "qr", square=False)
    order: tuple[Any, ...] = ()
    if pivoting:
        order = (matrices.pivots(matrix),)
        matrix = np.take_along_axis(matrix, order[0][..., None, :], axis=-1)
    rows, columns = shape_of(matrix)[-2:]
    if mode == "r":
        r: Any = np.linalg.qr(matrix, mode="r")
        if rows > columns:
            lead = shape_of(matrix)[:-2]
            missing = np.zeros((*lead, rows - columns, columns), dtype_of(matrix))
            r = np.concatenate([r, missing], axis=-2)
        return (r, *order)
    q, r = np.linalg.qr(matrix, mode="complete" if mode == "full" else "reduced")
    return (q, r, *order)


@delegates(sl.polar)
def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """The factors (u, p) of a = u p, or of a = p u if `side` is "left".

    The columns of u, or its rows if it is wide, are orthonormal, and p is Hermitian positive semidefinite. u
    is the matrix with orthonormal columns nearest to `a`. It has derivatives even where singular values
    coincide, unlike the vectors of an SVD, whose derivatives are nan there. If `a` is rank deficient, the
    derivatives are nan.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> from functrans.scipy.linalg import polar
    >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> jvp(lambda a: polar(a)[0], (np.eye(2),), (turn,))[1]
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', not {side!r}")
    x = matrix_of(a, "polar", square=False)
    rows, columns = shape_of(x)[-2:]
    u = matrices.polar(x) if rows >= columns else H(matrices.polar(H(x)))
    p = H(u) @ x if side == "right" else x @ H(u)
    return u, (p + H(p)) / 2


@delegates(sl.orthogonal_procrustes)
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The orthogonal matrix r for which A r is nearest to B, and the sum of singular values of A^H B.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import orthogonal_procrustes
    >>> float(grad(lambda s: orthogonal_procrustes(s * np.eye(2), np.eye(2))[1])(3.0))
    2.0
    """
    left, right = matrix_of(A, "orthogonal_procrustes", False), as_array(B)
    if shape_of(left)[-2:] != shape_of(right)[-2:]:
        raise ValueError(f"the shapes of A and B differ ({shape_of(left)} vs {shape_of(right)})")
    product = H(left) @ right
    turn = polar(product)[0]
    scale = np.sum(np.conj(turn) * product, axis=(-2, -1))
    return turn, scale.real
