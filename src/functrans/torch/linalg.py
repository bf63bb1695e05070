"""torch.linalg: NumPy's linear algebra under PyTorch's names.

Functions of Hermitian matrices read one triangle, as NumPy's do, but their gradients are PyTorch's: they are
taken within the Hermitian matrices, and are Hermitian themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ops.factorization import taken_as_hermitian
from functrans.torch.arithmetic import matmul as matmul
from functrans.torch.errors import LinAlgError, TensorError
from functrans.torch.products import cross as cross
from functrans.torch.reducing import axes, results
from functrans.torch.reducing import vector_norm as _vector_norm
from functrans.torch.registry import composed, export
from functrans.torch.tensor import Tensor, lower, named, wrap

_linalg: Any = np.linalg  # typed Any: its annotations do not allow tracers


def _check_square(A: Tensor, name: str) -> None:
    if A.value.ndim < 2:
        raise TensorError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if A.value.shape[-1] != A.value.shape[-2]:
        m, n = A.value.shape[-2:]
        raise TensorError(
            f"linalg.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )


def _run(name: str, function: Any, *args: Any, **options: Any) -> Any:
    try:
        return lower(function(*[a.lift() if isinstance(a, Tensor) else a for a in args], **options))
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{name}: {error}") from None


def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.inv(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    _check_square(A, "inv")
    return named(_run("inv", np.linalg.inv, A), "LinalgInvExBackward0")


def det(A: Tensor) -> Tensor:
    """The determinant.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    _check_square(A, "det")
    return named(_run("det", np.linalg.det, A), "LinalgDetBackward0")


def slogdet(A: Tensor) -> Any:
    """The sign of the determinant, and the logarithm of its absolute value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.slogdet(torch.eye(2)).logabsdet
    tensor(0.)
    """
    _check_square(A, "slogdet")
    return _parts("slogdet", ("sign", "logabsdet"), A, np.linalg.slogdet(A.lift()))


def _parts(kind: str, fields: tuple[str, ...], A: Tensor, values: Any, node: str = "") -> Any:
    """Several named results of one matrix."""
    name = f"Linalg{(node or kind).capitalize()}Backward0"
    tensors = [named(lower(value), name, A) for value in values]
    return results(f"linalg_{kind}", dict(zip(fields, tensors, strict=True)))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Solve A X = B, or X A = B, for X.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.solve(torch.tensor([[2.0]]), torch.tensor([4.0]))
    tensor([2.])
    """
    _check_square(A, "solve")
    if not left:
        return solve(A.mT, B.mT).mT  # type: ignore[no-any-return]
    return named(_run("solve", np.linalg.solve, A, B), "LinalgSolveExBackward0")


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The Cholesky factor: the lower triangular L with L L^H = A.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cholesky(torch.tensor([[4.0]]))
    tensor([[2.]])
    """
    _check_square(A, "cholesky")

    def factor(a: Any) -> Any:
        return _linalg.cholesky(taken_as_hermitian(a), upper=upper)

    return named(_run("cholesky", factor, A), "LinalgCholeskyExBackward0")


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """The QR decomposition: Q and R with Q R = A.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.qr(torch.ones(3, 2))[1].shape
    torch.Size([2, 2])
    """
    return _parts("qr", ("Q", "R"), A, _linalg.qr(A.lift(), mode))


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """The singular value decomposition: U, S and V^H with U diag(S) V^H = A.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    parts = np.linalg.svd(A.lift(), full_matrices=full_matrices)
    return _parts("svd", ("U", "S", "Vh"), A, parts)


def svdvals(A: Tensor) -> Tensor:
    """The singular values.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([3., 2.])
    """
    return named(lower(np.linalg.svdvals(A.lift())), "LinalgSvdBackward0")


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2., 3.])
    """
    _check_square(A, "eigh")
    parts = _linalg.eigh(taken_as_hermitian(A.lift()), UPLO)
    return _parts("eigh", ("eigenvalues", "eigenvectors"), A, parts)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([2., 3.])
    """
    _check_square(A, "eigvalsh")
    values = _linalg.eigvalsh(taken_as_hermitian(A.lift()), UPLO)
    return named(lower(values), "LinalgEighBackward0")


def eig(A: Tensor) -> Any:
    """The eigenvalues and eigenvectors of square matrices, always complex.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.eig(torch.eye(2)).eigenvalues
    tensor([1.+0.j, 1.+0.j])
    """
    _check_square(A, "eig")
    wide = A if A.is_complex() else A.to(_complex(A))
    return _parts("eig", ("eigenvalues", "eigenvectors"), A, np.linalg.eig(wide.lift()))


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, always complex.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.eigvals(torch.eye(2))
    tensor([1.+0.j, 1.+0.j])
    """
    return eig(A).eigenvalues  # type: ignore[no-any-return]


def _complex(A: Tensor) -> Any:
    from functrans.torch import dtypes

    return dtypes.promote_types(A.dtype, dtypes.complex64)


def pinv(A: Tensor, *, rcond: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.pinverse(torch.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    matrix = taken_as_hermitian(A.lift()) if hermitian else A.lift()
    return named(wrap(np.linalg.pinv(matrix, rcond, hermitian)), "LinalgPinvBackward0", A)


def lstsq(A: Tensor, B: Tensor) -> Any:
    """The least squares solution of A X = B.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [3.0]])).solution
    tensor([[2.]])
    """
    x, residuals, rank, values = np.linalg.lstsq(A.lift(), B.lift())
    return results(
        "linalg_lstsq",
        {
            "solution": lower(x),
            "residuals": lower(residuals),
            "rank": lower(rank),
            "singular_values": lower(values),
        },
    )


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power of a square matrix.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.matrix_power(torch.tensor([[2.0]]), 3)
    tensor([[8.]])
    """
    _check_square(A, "matrix_power")
    return wrap(np.linalg.matrix_power(A.lift(), n))


def matrix_rank(A: Tensor, *, tol: Any = None) -> Tensor:
    """The rank: the number of nonzero singular values.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.matrix_rank(torch.ones(2, 2))
    tensor(1)
    """
    return wrap(np.linalg.matrix_rank(A.detach().lift(), tol))


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.cond(torch.eye(2))
    tensor(1.)
    """
    return wrap(np.linalg.cond(A.lift(), p))


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the cheapest order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4)]).shape
    torch.Size([2, 4])
    """
    return wrap(np.linalg.multi_dot([each.lift() for each in tensors]))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """A norm of vectors or matrices; without `ord`, the 2-norm of all entries as one vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if ord is None or (dim is None and A.value.ndim == 1) or isinstance(dim, int):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim)
    return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of vectors along some dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return _vector_norm(x, ord, axes(dim, x.value.ndim), keepdim)  # type: ignore[no-any-return]


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The norm of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.matrix_norm(torch.ones(2, 2))
    tensor(2.)
    """
    out = wrap(np.linalg.norm(A.lift(), ord, tuple(dim), keepdim))
    return named(out, "LinalgVectorNormBackward0", A) if ord == "fro" else out


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return (x.conj() * y).sum(dim)  # type: ignore[no-any-return]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)  # type: ignore[no-any-return]


@composed("SolveTriangularBackward0")
def _triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    part = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    if unit:
        part = part + np.eye(part.shape[-1], dtype=part.dtype)
    return np.linalg.solve(part, b)


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution of a triangular system.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.0]]), torch.tensor([[4.0]]), upper=True)
    tensor([[2.]])
    """
    if not left:
        flipped = solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular)
        return flipped.mT  # type: ignore[no-any-return]
    return _triangular(A, B, upper, unitriangular)  # type: ignore[no-any-return]


def logdet(A: Tensor) -> Tensor:
    """The logarithm of the determinant.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    return slogdet(A).logabsdet  # type: ignore[no-any-return]


@export(method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the cheapest order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    return multi_dot(matrices)


_functions: dict[str, Any] = {
    "inverse": inv,
    "det": det,
    "slogdet": slogdet,
    "cholesky": cholesky,
    "pinverse": pinv,
    "matrix_power": matrix_power,
    "logdet": logdet,
    "qr": qr,
}
for _name, _function in _functions.items():
    export(_name)(_function)
