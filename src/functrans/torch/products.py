"""Products of matrices and vectors, other than `matmul`."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch.amp.state import narrowed
from functrans.torch.arithmetic import matmul, product_error
from functrans.torch.errors import TensorError
from functrans.torch.registry import composed, export
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, lower, named, wrap


def _check(name: str, tensor: Tensor, ndim: int) -> None:
    if tensor.value.ndim != ndim:
        kinds = {1: "vector", 2: "matrix", 3: "3D tensor"}
        raise TensorError(f"{name} must be a {kinds[ndim]}")


@export()
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.mm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    _check("self", input, 2)
    _check("mat2", mat2, 2)
    return matmul(input, mat2)  # type: ignore[no-any-return]


@export()
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The matrix products of two batches of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 4)).shape
    torch.Size([2, 1, 4])
    """
    _check("batch1", input, 3)
    _check("batch2", mat2, 3)
    if input.value.shape[0] != mat2.value.shape[0]:
        raise TensorError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    return named(matmul(input, mat2), "BmmBackward0")


@export()
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.mv(torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    _check("input", input, 2)
    _check("vec", vec, 1)
    return matmul(input, vec)  # type: ignore[no-any-return]


@export("dot", "inner")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The dot product of two vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if input.value.ndim != 1 or tensor.value.ndim != 1:
        return wrap(np.inner(input.lift(), tensor.lift()))
    if input.value.shape != tensor.value.shape:
        raise product_error(input.value, tensor.value)
    return matmul(input, tensor)  # type: ignore[no-any-return]


@export("vdot")
@composed("VdotBackward0")
def vdot(x: Any, y: Any) -> Any:
    """The dot product of two vectors, with the first one conjugated.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)
    """
    return np.vdot(x, y)


@export("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The outer product of two vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.outer(torch.ones(2), torch.ones(3)).shape
    torch.Size([2, 3])
    """
    return named(input.unsqueeze(1) * vec2.unsqueeze(0), "MulBackward0")


@export("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.addmm(torch.ones(2), torch.eye(2), torch.eye(2)).sum()
    tensor(6.)
    """
    return _added("AddmmBackward0", mm, input, mat1, mat2, beta, alpha)


@export("addmv")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat @ vec.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.addmv(torch.ones(2), torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    return _added("AddmvBackward0", mv, input, mat, vec, beta, alpha)


@export("baddbmm")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta * input + alpha * batch1 @ batch2.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.baddbmm(torch.ones(2), torch.ones(2, 1, 3), torch.ones(2, 3, 2)).shape
    torch.Size([2, 1, 2])
    """
    return _added("BaddbmmBackward0", bmm, input, batch1, batch2, beta, alpha)


def _added(name: str, product: Any, input: Tensor, a: Any, b: Any, beta: Any, alpha: Any) -> Tensor:
    added = product(a, b) if alpha == 1 else alpha * product(a, b)
    return named((input if beta == 1 else beta * input) + added, name, input, a, b)


@export(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products in Einstein's index notation.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.einsum("ij,j->i", torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if MODE.autocast is not None:
        operands = tuple(narrowed(each) for each in operands)
    try:
        out = wrap(np.einsum(equation, *(each.lift() for each in operands)))
    except ValueError as error:
        raise TensorError(f"einsum(): {error}") from None
    if len(operands) > 1:
        return named(out, "ViewBackward0")
    summed = out.numel() != operands[0].numel()
    return named(out, "SumBackward1" if summed else "PermuteBackward0", operands)


@export("tensordot", method=False)
@composed("ViewBackward0")
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Sums of products over some dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), 1).shape
    torch.Size([2, 4])
    """
    return np.tensordot(a, b, dims)


@export("kron")
@composed("UnsafeViewBackward0")
def kron(x: Any, y: Any) -> Any:
    """The Kronecker product.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    return np.kron(x, y)


@export()
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross product of vectors of length 3.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    return named(
        lower(np.linalg.cross(input.lift(), other.lift(), axis=dim)),
        "LinalgCrossBackward0",
        input,
        other,
    )


@export("cdist", method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The distances between all rows of one matrix and all rows of another.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    from functrans.torch.reducing import vector_norm

    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return named(vector_norm(apart, p, (-1,), False), "CdistBackward0", x1, x2)
