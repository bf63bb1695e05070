"""Diagonals, triangles, windows and grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.ops import indexing
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.registry import composed, export, lift
from functrans.torch.shaping import linked_view, refuse_overlap
from functrans.torch.tensor import Tensor, check_dim, lower, named, wrap


@export("tril")
@composed("TrilBackward0")
def tril(x: Any, diagonal: int = 0) -> Any:
    """The lower triangle of a matrix, with zeros above a diagonal.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tril(torch.ones(2, 2)).sum()
    tensor(3.)
    """
    return np.tril(x, diagonal)


@export("triu")
@composed("TriuBackward0")
def triu(x: Any, diagonal: int = 0) -> Any:
    """The upper triangle of a matrix, with zeros below a diagonal.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.triu(torch.ones(2, 2)).sum()
    tensor(3.)
    """
    return np.triu(x, diagonal)


@export("diag")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with a vector as its diagonal.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if input.value.ndim == 1:
        return diag_embed(input, diagonal)  # type: ignore[no-any-return]
    if input.value.ndim != 2:
        raise TensorError(f"diag(): Supports 1D or 2D tensors. Got {input.value.ndim}D")
    return named(_diagonal(input, diagonal).clone(), "DiagonalBackward0", input)


@export("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of matrices, as a view.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return _diagonal(input, offset, dim1, dim2)


def _diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    ndim = input.value.ndim
    pair = check_dim(dim1, ndim), check_dim(dim2, ndim)
    if pair[0] == pair[1]:
        raise TensorError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    last = (-2, -1)

    def read(face: Any) -> Any:
        return np.diagonal(face, offset, *pair)

    def write(base: Any, view: Any) -> Any:
        rows = np.arange(shape_of(view)[-1])
        template = (slice(None),) * (ndim - 2) + (indexing.ARRAY, indexing.ARRAY)
        places = (rows + max(-offset, 0), rows + max(offset, 0))
        turned = indexing.update(np.moveaxis(base, pair, last), view, *places, template=template)
        return np.moveaxis(turned, last, pair)

    def memory(array: Any) -> Any:
        shown = np.diagonal(array, offset, *pair)
        shown.flags.writeable = array.flags.writeable
        return shown

    return linked_view(input, memory, read, write, "DiagonalBackward0")


@export("diag_embed")
@composed("DiagEmbedBackward0")
def diag_embed(x: Any, offset: int = 0) -> Any:
    """Matrices with the given diagonals.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.diag_embed(torch.tensor([1, 2])).shape
    torch.Size([2, 2])
    """
    n = shape_of(x)[-1] + abs(offset)
    rows = np.arange(shape_of(x)[-1])
    template = (slice(None),) * (x.ndim - 1) + (indexing.ARRAY, indexing.ARRAY)
    places = (rows + max(-offset, 0), rows + max(offset, 0))
    shape = (*shape_of(x)[:-1], n, n)
    return indexing.scatter(x, *places, shape=shape, template=template)


@export("trace")
@composed("TraceBackward0")
def trace(x: Any) -> Any:
    """The trace of a matrix: the sum of its diagonal.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    return np.trace(x)


_meshgrid: Any = np.meshgrid


@export(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor for each dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3]), indexing="ij")[0].shape
    torch.Size([2, 1])
    """
    parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for k, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TensorTypeError(f"expected Tensor as element {k}, but got {type(part).__name__}")
    grids = _meshgrid(*[lift(part) for part in parts], indexing=indexing)
    return tuple(named(lower(each), "ExpandBackward0") for each in grids)


@export(function=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Sliding windows along a dimension, as a new last dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1, 2, 3, 4]).unfold(0, 2, 2).shape
    torch.Size([2, 2])
    """
    axis = check_dim(dimension, self.value.ndim)
    if size > self.value.shape[axis]:
        raise TensorError(
            f"maximum size for tensor at dimension {axis} is {self.value.shape[axis]} but size is "
            f"{size}"
        )
    count = (self.value.shape[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    template = (slice(None),) * axis + (indexing.ARRAY,)
    steps = (slice(None),) * axis + (slice(None, None, step),)

    def read(face: Any) -> Any:
        return np.moveaxis(np.take(face, places, axis=axis), axis + 1, -1)

    def write(base: Any, view: Any) -> Any:
        if step < size:
            refuse_overlap(view)
        return indexing.update(base, np.moveaxis(view, -1, axis + 1), places, template=template)

    def memory(array: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(
            array, size, axis=axis, writeable=step >= size
        )
        return windows[steps]

    return linked_view(self, memory, read, write, "UnfoldBackward0")


@export(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """A block diagonal matrix of the given matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.block_diag(torch.ones(1, 2), torch.ones(2, 1)).shape
    torch.Size([3, 3])
    """
    width = sum(each.shape[-1] for each in tensors)
    rows, start = [], 0
    for each in tensors:
        after = width - start - each.shape[-1]
        rows.append(np.pad(each.lift(), ((0, 0), (start, after))))
        start += each.shape[-1]
    return named(wrap(np.concatenate(rows)), "BlockDiagBackward0", tensors)
