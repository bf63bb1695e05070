"""scipy.linalg for traced values: triangular systems, factorizations, and functions of matrices.

All functions take stacks of matrices in the last two axes. Where SciPy reads only one triangle of an
argument, so do the derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.factorization import H, from_triangle
from functrans.ops.structure import astype
from functrans.scipy import matrices
from functrans.scipy.matrices import triangle
from functrans.surface.table import as_array, ndim_of

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "expm",
    "lu",
    "lu_factor",
    "lu_solve",
    "polar",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "toeplitz",
]


def __dir__() -> list[str]:
    return __all__


def _matrix(a: Any, name: str, square: bool = True) -> Any:
    x = as_array(a)
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    shape = shape_of(x)
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        wanted = "square matrices" if square else "matrices"
        raise ValueError(f"{name}: expected {wanted} in the last two axes, got shape {shape}")
    return x


def _with_columns(b: Any, size: int, name: str) -> tuple[Any, bool]:
    """The right-hand side as matrices, and whether it was one vector."""
    x = as_array(b)
    vector = ndim_of(x) == 1
    shape = shape_of(x)
    if not shape or shape[-1 if vector else -2] != size:
        raise ValueError(
            f"{name}: the matrix has {size} rows, but the right-hand side has shape {shape}"
        )
    return (x[:, None] if vector else x), vector


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve a x = b for a triangular matrix a, of which only one triangle is read.

    The arguments are SciPy's: `trans` 1 or "T" solves with the transpose, 2 or "C" with the conjugate
    transpose. `overwrite_b` and `check_finite` are accepted and have no effect.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_triangular
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> grad(lambda b: np.sum(solve_triangular(a, b, lower=True)))(np.ones(2))
    array([0.375, 0.25 ])
    """
    transpose = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}.get(trans)
    if transpose is None:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    matrix = _matrix(a, "solve_triangular")
    if transpose == 2 and dtype_of(matrix).kind == "c":
        matrix = np.conj(matrix)
    columns, vector = _with_columns(b, shape_of(matrix)[-1], "solve_triangular")
    out = matrices.triangular_solve(
        matrix,
        columns,
        lower=bool(lower),
        transposed=transpose != 0,
        unit_diagonal=bool(unit_diagonal),
    )
    return out[..., 0] if vector else out


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
    x = _matrix(a, "cholesky")
    factor = matrices.cholesky(from_triangle(x, "L" if lower else "U"))
    return factor if lower else H(factor)


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
    return cholesky(a, lower), bool(lower)


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
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else "C", lower=lower)
    return solve_triangular(factor, first, trans="C" if lower else 0, lower=lower)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The LU factors of a matrix with pivoting, packed in one matrix, and the row exchanges.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 4.0]))
    array([1., 1.])
    """
    packed, exchanges = matrices.lu(_matrix(a, "lu_factor", square=False))
    return packed, exchanges


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
    factors = _matrix(packed, "lu_solve")
    columns, vector = _with_columns(b, shape_of(factors)[-1], "lu_solve")
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
    x = _matrix(a, "lu", square=False)
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


def expm(A: Any) -> Any:
    """The exponential of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> from functrans.scipy.linalg import expm
    >>> generator = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> _, velocity = jvp(lambda angle: expm(angle * generator), (0.0,), (1.0,))
    >>> velocity
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    return matrices.expm(_matrix(A, "expm"))


def sqrtm(A: Any) -> Any:
    """The principal square root of a square matrix; complex if a real matrix has no real one.

    Where values are not known, as under `jit`, the root of a real matrix is assumed to be real, and an error
    is raised if it is not; pass a complex matrix in that case. The derivative at a singular matrix is nan.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import sqrtm
    >>> float(grad(lambda s: np.trace(sqrtm(s * np.eye(2))))(4.0))
    0.5
    >>> float(grad(lambda s: np.trace(sqrtm(s * np.eye(2))).imag)(-4.0))
    -0.5
    """
    matrix = _matrix(A, "sqrtm")
    if not isinstance(matrix, Tracer):
        return matrices.sl.sqrtm(matrix)
    try:
        return matrices.sqrtm(matrix)
    except errors.StagingError:  # a complex root, of values that are known
        complexes = np.result_type(dtype_of(matrix), np.complex64)
    return matrices.sqrtm(astype(matrix, dtype=complexes))


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
    x = _matrix(a, "polar", square=False)
    rows, columns = shape_of(x)[-2:]
    u = matrices.polar(x) if rows >= columns else H(matrices.polar(H(x)))
    p = H(u) @ x if side == "right" else x @ H(u)
    return u, (p + H(p)) / 2


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve a x + x b = q.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_sylvester
    >>> identity, q = np.eye(2), np.ones((2, 2))
    >>> float(grad(lambda s: np.sum(solve_sylvester(s * identity, identity, q)))(1.0))
    -1.0
    """
    left, right = _matrix(a, "solve_sylvester"), _matrix(b, "solve_sylvester")
    given = _matrix(q, "solve_sylvester", square=False)
    if shape_of(given)[-2:] != (shape_of(left)[-1], shape_of(right)[-1]):
        raise ValueError(
            f"solve_sylvester: the shapes {shape_of(left)}, {shape_of(right)} and "
            f"{shape_of(given)} do not match"
        )
    return matrices.sylvester(left, right, given)


def block_diag(*arrs: Any) -> Any:
    """A matrix with the given matrices along its diagonal, and zeros elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import block_diag
    >>> grad(lambda x: np.sum(block_diag(x, x) @ np.arange(4.0)))(np.ones((1, 2)))
    array([[2., 4.]])
    """
    blocks = [np.atleast_2d(as_array(block)) for block in arrs or ([],)]
    for block in blocks:
        if ndim_of(block) > 2:
            raise ValueError(f"block_diag: the shape {shape_of(block)} is not that of a matrix")
    width = sum(shape_of(block)[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        height, columns = shape_of(block)
        left = np.zeros((height, before))
        right = np.zeros((height, width - before - columns))
        dtype = dtype_of(block)
        rows.append(np.concatenate([left.astype(dtype), block, right.astype(dtype)], axis=1))
        before += columns
    return np.concatenate(rows, axis=0)


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals, from its first column and first row.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import toeplitz
    >>> grad(lambda c: np.sum(toeplitz(c)))(np.ones(3))
    array([3., 4., 2.])
    """
    column = np.atleast_1d(as_array(c))
    row = np.conj(column) if r is None else np.atleast_1d(as_array(r))
    height, width = shape_of(column)[-1], shape_of(row)[-1]
    diagonals = np.concatenate([np.flip(column, -1), row[..., 1:]], axis=-1)
    return diagonals[..., np.arange(height)[::-1, None] + np.arange(width)]
