"""Joining and splitting tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ops import structure
from functrans.torch import dtypes
from functrans.torch.errors import TensorError, TensorIndexError, TensorTypeError, TensorValueError
from functrans.torch.registry import export, lift
from functrans.torch.tensor import Tensor, cast, check_dim, lower, named, wrap


def _joint(tensors: Any, name: str) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TensorTypeError(f"{name}(): argument 'tensors' must be tuple of Tensors, not Tensor")
    parts = list(tensors)
    if not parts:
        kind = TensorValueError if name == "cat" else TensorError
        raise kind(f"torch.{name}(): expected a non-empty list of Tensors")
    for k, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TensorTypeError(
                f"expected Tensor as element {k} in argument 0, but got {type(part).__name__}"
            )
    wanted = parts[0].dtype
    for part in parts[1:]:
        wanted = dtypes.promote_types(wanted, part.dtype)
    return [cast(part, wanted.numpy) for part in parts]


@export("cat", "concat", "concatenate", method=False)
def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Concatenate tensors along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cat([torch.zeros(1), torch.ones(2)])
    tensor([0., 1., 1.])
    """
    parts = [p for p in _joint(tensors, "cat") if p.value.shape != (0,)] or list(tensors)
    shapes = [tuple(part.value.shape) for part in parts]
    ndim = len(shapes[0])
    if not ndim:
        raise TensorError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = check_dim(dim, ndim)
    for k, shape in enumerate(shapes):
        if len(shape) != ndim:
            raise TensorError(
                f"Tensors must have same number of dimensions: got {ndim} and {len(shape)}"
            )
        for place, (m, n) in enumerate(zip(shapes[0], shape, strict=True)):
            if place != axis and m != n:
                raise TensorError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {m} but "
                    f"got size {n} for tensor number {k} in the list."
                )
    return wrap(structure.concatenate(*[lift(part) for part in parts], axis=axis))


@export(method=False)
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Stack tensors of the same shape along a new dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.stack([torch.tensor(1.0), torch.tensor(2.0)])
    tensor([1., 2.])
    """
    parts = _joint(tensors, "stack")
    for k, part in enumerate(parts):
        if part.value.shape != parts[0].value.shape:
            raise TensorError(
                f"stack expects each tensor to be equal size, but got {list(parts[0].value.shape)} at "
                f"entry 0 and {list(part.value.shape)} at entry {k}"
            )
    axis = check_dim(dim, parts[0].value.ndim + 1)
    return named(
        lower(np.stack([part.lift() for part in parts], axis=axis)), "StackBackward0", parts
    )


def _stacker(name: str, function: Any) -> None:
    def stacked(tensors: Any) -> Tensor:
        return named(
            lower(function([part.lift() for part in _joint(tensors, name)])), "CatBackward0"
        )

    export(name, method=False)(stacked)


_stacker("hstack", np.hstack)
_stacker("vstack", np.vstack)
_stacker("row_stack", np.vstack)
_stacker("dstack", np.dstack)
_stacker("column_stack", np.column_stack)


@export()
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The part of a tensor that begins at `start` along a dimension and is `length` long.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.narrow(torch.tensor([1, 2, 3]), 0, 1, 2)
    tensor([2, 3])
    """
    axis = check_dim(dim, input.value.ndim)
    start = int(start) + (input.value.shape[axis] if start < 0 else 0)
    if start + length > input.value.shape[axis]:
        raise TensorError(
            f"start ({start}) + length ({length}) exceeds dimension size ({input.value.shape[axis]})."
        )
    return input[(slice(None),) * axis + (slice(start, start + length),)]


@export()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at one index along a dimension; the dimension is removed.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.select(torch.tensor([1, 2, 3]), 0, 1)
    tensor(2)
    """
    if not input.value.ndim:
        raise TensorIndexError("select() cannot be applied to a 0-dim tensor.")
    axis = check_dim(dim, input.value.ndim)
    return input[(slice(None),) * axis + (int(index),)]


@export()
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension into pieces of one size, or of the given sizes.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.split(torch.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    axis = check_dim(dim, tensor.value.ndim)
    total = tensor.value.shape[axis]
    name = "SplitBackward0"
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        sizes = [min(step, total - k) for k in range(0, total, step)] or [0]
    else:
        sizes, name = list(split_size_or_sections), "SplitWithSizesBackward0"
        if sum(sizes) != total:
            raise TensorError(
                f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size "
                f"at dimension {axis}), but got split_sizes={sizes}"
            )
    pieces, start = [], 0
    for size in sizes:
        pieces.append(named(narrow(tensor, axis, start, size), name))
        start += size
    return tuple(pieces)


@export()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor into at most `chunks` pieces of equal size, except for the last.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.chunk(torch.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    axis = check_dim(dim, input.value.ndim)
    return split(input, max(1, -(-input.value.shape[axis] // chunks)), axis)


@export()
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor at the given indices, or into a given number of pieces.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor_split(torch.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    axis = check_dim(dim, input.value.ndim)
    places = np.array_split(np.arange(input.value.shape[axis]), indices_or_sections)
    pieces = split(input, [len(place) for place in places], axis)
    return tuple(named(piece, "SliceBackward0") for piece in pieces)


@export()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, as a tuple.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.unbind(torch.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    axis = check_dim(dim, input.value.ndim)
    count = input.value.shape[axis]
    return tuple(named(select(input, axis, k), "UnbindBackward0") for k in range(count))
