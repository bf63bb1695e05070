"""Linear systems: general, triangular, banded, Toeplitz and circulant ones, and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import factorization, singular
from functrans.ops.factorization import H, from_triangle
from functrans.ops.structure import stop_gradient
from functrans.ops.triangular import triangular_solve
from functrans.scipy import matrices
from functrans.scipy.bands import banded_solve, from_bands, transposed_bands
from functrans.scipy.delegation import delegates
from functrans.scipy.linalg.arguments import matrix_of, structured, with_columns
from functrans.scipy.matrices import sl
from functrans.surface.table import as_array, decided, known


@delegates(sl.solve)
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Solve a x = b, or a^T x = b if `transposed`.

    If `assume_a` says that `a` is symmetric, Hermitian, positive definite, triangular, tridiagonal or
    diagonal, only one triangle or band of it is read, and so do the derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve
    >>> a = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> grad(lambda b: np.sum(solve(a, b, assume_a="pos")))(np.ones(2))
    array([0.4, 0.2])
    """
    matrix = structured(matrix_of(a, "solve"), assume_a, lower, "solve")
    columns, vector = with_columns(b, shape_of(matrix)[-1], "solve")
    if transposed:
        matrix = np.swapaxes(matrix, -1, -2)
    out = factorization.solve(matrix, columns)
    return out[..., 0] if vector else out


@delegates(sl.solve_triangular)
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
    matrix = matrix_of(a, "solve_triangular")
    if transpose == 2 and dtype_of(matrix).kind == "c":
        matrix = np.conj(matrix)
    columns, vector = with_columns(b, shape_of(matrix)[-1], "solve_triangular")
    out = triangular_solve(
        matrix,
        columns,
        lower=bool(lower),
        transposed=transpose != 0,
        unit_diagonal=bool(unit_diagonal),
    )
    return out[..., 0] if vector else out


@delegates(sl.inv)
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """The inverse of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import inv
    >>> grad(lambda a: inv(a)[0, 0])(2.0 * np.eye(2)) + 0.0
    array([[-0.25,  0.  ],
           [ 0.  ,  0.  ]])
    """
    return factorization.inverse(structured(matrix_of(a, "inv"), assume_a, lower, "inv"))


@delegates(sl.det)
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant of a square matrix; its derivatives are right even where it is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import det
    >>> grad(det)(np.array([[2.0, 1.0], [1.0, 3.0]])).round(6)
    array([[ 3., -1.],
           [-1.,  2.]])
    """
    return np.linalg.det(matrix_of(a, "det"))


# Banded matrices: row u + i - j of `ab` holds a[i, j] in column j.


@delegates(sl.solve_banded)
def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve a x = b for a banded matrix, given by its diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_banded
    >>> ab = np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
    >>> grad(lambda b: solve_banded((1, 1), ab, b)[0])(np.ones(2))
    array([ 0.66666667, -0.33333333])
    """
    below, above = (int(each) for each in l_and_u)
    bands = matrix_of(ab, "solve_banded", square=False)
    rows, size = shape_of(bands)[-2:]
    if rows != below + above + 1:
        raise ValueError(
            f"solve_banded: l + u + 1 = {below + above + 1} diagonals are expected, got {rows}"
        )
    columns, vector = with_columns(b, size, "solve_banded")
    out = banded_solve(bands, columns, below=below, above=above, definite=False)
    return out[..., 0] if vector else out


@delegates(sl.solveh_banded)
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve a x = b for a banded positive definite matrix, given by half of its diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solveh_banded
    >>> ab = np.array([[0.0, 1.0], [2.0, 2.0]])
    >>> grad(lambda b: solveh_banded(ab, b)[0])(np.ones(2))
    array([ 0.66666667, -0.33333333])
    """
    half = matrix_of(ab, "solveh_banded", square=False)
    columns, vector = with_columns(b, shape_of(half)[-1], "solveh_banded")
    bands, width = _both_sides(half, lower), shape_of(half)[-2] - 1
    out = banded_solve(bands, columns, below=width, above=width, definite=True)
    return out[..., 0] if vector else out


def _both_sides(half: Any, lower: bool) -> Any:
    """All diagonals of a Hermitian matrix, from the main one and those on one side."""
    width = shape_of(half)[-2] - 1
    if dtype_of(half).kind == "c":  # LAPACK assumes a real diagonal
        main = (np.arange(width + 1) == (0 if lower else width))[:, None]
        half = np.where(main, half.real, half)
    if lower:
        other = np.conj(transposed_bands(half, width, 0))
        return np.concatenate([other[..., :-1, :], half], axis=-2)
    other = np.conj(transposed_bands(half, 0, width))
    return np.concatenate([half, other[..., 1:, :]], axis=-2)


@delegates(sl.cholesky_banded)
def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a banded positive definite matrix, in the same form.

    Traced matrices are factored as full ones, in time that grows with the cube of their size.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import cholesky_banded
    >>> ab = np.array([[0.0, 1.0], [2.0, 2.0]])
    >>> float(grad(lambda ab: cholesky_banded(ab)[1, 0])(ab)[1, 0].round(6))
    0.353553
    """
    half = matrix_of(ab, "cholesky_banded", square=False)
    width, n = shape_of(half)[-2] - 1, shape_of(half)[-1]
    below, above = (width, 0) if lower else (0, width)
    full = from_triangle(from_bands(half, below, above), "L" if lower else "U")
    factor = matrices.cholesky(full)
    factor = factor if lower else H(factor)
    rows = np.arange(width + 1)[:, None] + np.arange(n) - above
    inside = (rows >= 0) & (rows < n)
    found = factor[..., np.clip(rows, 0, n - 1), np.arange(n)]
    return np.where(inside, found, half)  # SciPy leaves the corners as they are


@delegates(sl.cho_solve_banded)
def cho_solve_banded(
    cb_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve a x = b, given the result of `cholesky_banded(a)` and whether it is the lower factor.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import cho_solve_banded, cholesky_banded
    >>> factor = cholesky_banded(np.array([[0.0, 1.0], [2.0, 2.0]]))
    >>> grad(lambda b: cho_solve_banded((factor, False), b)[0])(np.ones(2))
    array([ 0.66666667, -0.33333333])
    """
    cb, lower = cb_and_lower
    factor = matrix_of(cb, "cho_solve_banded", square=False)
    width = shape_of(factor)[-2] - 1
    columns, vector = with_columns(b, shape_of(factor)[-1], "cho_solve_banded")
    below, above = (width, 0) if lower else (0, width)
    other = np.conj(transposed_bands(factor, below, above))
    steps = [(factor, below, above), (other, above, below)]
    for bands, down, up in steps if lower else steps[::-1]:
        columns = banded_solve(bands, columns, below=down, above=up, definite=False)
    return columns[..., 0] if vector else columns


# Toeplitz and circulant matrices.


def _column_and_row(c_or_cr: Any) -> tuple[Any, Any]:
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    column = np.atleast_1d(as_array(c))
    return column, np.conj(column) if r is None else np.atleast_1d(as_array(r))


def _toeplitz(column: Any, row: Any) -> Any:
    height, width = shape_of(column)[-1], shape_of(row)[-1]
    lead = np.broadcast_shapes(shape_of(column)[:-1], shape_of(row)[:-1])
    column = np.broadcast_to(column, (*lead, height))
    row = np.broadcast_to(row, (*lead, width))
    diagonals = np.concatenate([np.flip(column, -1), row[..., 1:]], axis=-1)
    return diagonals[..., np.arange(height)[::-1, None] + np.arange(width)]


@delegates(sl.toeplitz)
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
    return _toeplitz(*_column_and_row((c, r)))


@delegates(sl.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """Solve t x = b for the Toeplitz matrix t with this first column, or (first column, first row).

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_toeplitz
    >>> grad(lambda b: solve_toeplitz(np.array([2.0, 1.0]), b)[0])(np.ones(2))
    array([ 0.66666667, -0.33333333])
    """
    return solve(_toeplitz(*_column_and_row(c_or_cr)), b)


@delegates(sl.matmul_toeplitz)
def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None
) -> Any:
    """The product of a Toeplitz matrix with x.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import matmul_toeplitz
    >>> grad(lambda c: matmul_toeplitz((c, c), np.array([1.0, 2.0]))[0])(np.ones(2))
    array([1., 2.])
    """
    return _toeplitz(*_column_and_row(c_or_cr)) @ as_array(x)


@delegates(sl.solve_circulant)
def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Any:
    """Solve circulant(c) x = b with Fourier transforms.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_circulant
    >>> grad(lambda b: solve_circulant(np.array([2.0, 1.0]), b)[0])(np.ones(2))
    array([ 0.66666667, -0.33333333])
    """
    c, b = np.atleast_1d(as_array(c)), np.atleast_1d(as_array(b))
    if shape_of(c)[caxis] != shape_of(b)[baxis]:
        raise ValueError(f"solve_circulant: shapes {shape_of(c)} and {shape_of(b)} do not match")
    frequencies = np.fft.fft(np.moveaxis(c, caxis, -1))
    sizes = np.abs(frequencies)
    if tol is None:
        least: Any = np.max(sizes, axis=-1) * shape_of(c)[caxis] * np.finfo(float).eps
        least = least[..., None]
    else:
        least = tol
    lost = sizes <= least
    if singular != "lstsq" and known(np.any(lost)):
        raise np.linalg.LinAlgError("near singular circulant matrix.")
    target = np.fft.fft(np.moveaxis(b, baxis, -1))
    out: Any = np.fft.ifft(np.where(lost, 0, target / np.where(lost, 1, frequencies)))
    if dtype_of(c).kind != "c" and dtype_of(b).kind != "c":
        out = out.real
    return np.moveaxis(out, -1, outaxis)


# Least squares.


@delegates(sl.lstsq)
def lstsq(
    a: Any,
    b: Any,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The least-squares solution of a x = b, the residuals, the rank and the singular values.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import lstsq
    >>> a = np.array([[1.0], [1.0]])
    >>> grad(lambda b: lstsq(a, b)[0][0])(np.array([1.0, 3.0]))
    array([0.5, 0.5])
    """
    matrix = matrix_of(a, "lstsq", square=False)
    rows, size = shape_of(matrix)[-2:]
    columns, vector = with_columns(b, rows, "lstsq")
    dtype = np.result_type(dtype_of(matrix), dtype_of(columns))
    matrix, columns = matrix.astype(dtype), columns.astype(dtype)
    cutoff = float(np.finfo(dtype).eps if cond is None else cond)
    values = singular.svdvals(matrix)
    rank = np.sum(values > cutoff * np.max(values, axis=-1, initial=0, keepdims=True), axis=-1)
    solution = singular.pinv(matrix, rcond=cutoff, hermitian=False) @ columns
    what = "scipy.linalg.lstsq gives residuals or none"
    remedy = "Write scipy.linalg.pinv(a) @ b for the solution."
    full = lapack_driver != "gelsy" and rows > size
    if full and decided(np.all(rank == size), what, remedy):
        missed = columns - matrix @ solution
        residuals = np.sum((missed * np.conj(missed)).real, axis=-2).astype(dtype)
        residuals = residuals[..., 0] if vector else residuals
    else:
        residuals = np.empty((*shape_of(solution)[:-2], 0), dtype)
    out = solution[..., 0] if vector else solution
    return out, residuals, rank, None if lapack_driver == "gelsy" else values


@delegates(sl.pinv)
def pinv(
    a: Any,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a matrix, with singular values up to atol + rtol max(s) taken as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import pinv
    >>> float(grad(lambda a: pinv(a)[0, 0])(np.array([[1.0], [1.0]]))[1, 0].round(6))
    -0.5
    """
    matrix = matrix_of(a, "pinv", square=False)
    return _pseudoinverse(matrix, atol, rtol, return_rank, False)


@delegates(sl.pinvh)
def pinvh(
    a: Any,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a Hermitian matrix, of which one triangle is read.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import pinvh
    >>> float(grad(lambda s: pinvh(s * np.eye(2))[0, 0])(2.0))
    -0.25
    """
    matrix = from_triangle(matrix_of(a, "pinvh"), "L" if lower else "U")
    return _pseudoinverse(matrix, atol, rtol, return_rank, True)


def _pseudoinverse(a: Any, atol: Any, rtol: Any, return_rank: bool, hermitian: bool) -> Any:
    cutoff = max(shape_of(a)[-2:]) * np.finfo(dtype_of(a)).eps if rtol is None else rtol
    values = singular.svdvals(a) if atol or return_rank else None
    if values is not None:
        largest = np.max(values, axis=-1, initial=0, keepdims=True)
    if atol:
        # a relative cutoff at the same place; stacks have one for all their matrices
        spread = stop_gradient(values)
        place = np.max(spread, axis=-1, initial=0)
        what = "scipy.linalg.pinv with atol= cuts singular values off"
        if not decided(np.all(place == np.max(place, initial=0)), what, "Use rtol= instead."):
            stacked = [
                _pseudoinverse(a[k], atol, rtol, False, hermitian) for k in range(shape_of(a)[0])
            ]
            out = np.stack(stacked)
        else:
            relative = float(concrete(atol / np.max(place, initial=0) + cutoff))
            out = singular.pinv(a, rcond=relative, hermitian=hermitian)
    else:
        out = singular.pinv(a, rcond=float(cutoff), hermitian=hermitian)
    if return_rank:
        return out, np.sum(values > (atol or 0) + cutoff * largest, axis=-1)
    return out
