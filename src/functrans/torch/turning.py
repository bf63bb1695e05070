"""Reordering of entries: flips, rolls and rotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch.registry import composed, export
from functrans.torch.tensor import Tensor, check_dim, lower, named


@export("flip")
def flip(input: Tensor, *dims: Any) -> Tensor:
    """Reverse the order of entries along some dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.flip(torch.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    axes = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    places = tuple(check_dim(axis, input.value.ndim) for axis in axes)
    return named(lower(np.flip(input.lift(), places)).contiguous(), "FlipBackward0", input)


@export("fliplr")
@composed("FlipBackward0")
def fliplr(x: Any) -> Any:
    """Reverse the order of columns.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    return np.fliplr(x)


@export("flipud")
@composed("FlipBackward0")
def flipud(x: Any) -> Any:
    """Reverse the order of rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.flipud(torch.tensor([1, 2]))
    tensor([2, 1])
    """
    return np.flipud(x)


@export("roll")
@composed("RollBackward0")
def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    """Shift entries along dimensions, cyclically.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    return np.roll(x, shifts, dims)


@export("rot90")
@composed("Rot90Backward0")
def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Rotate a matrix by multiples of 90 degrees.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.rot90(torch.tensor([[1, 2]])).shape
    torch.Size([2, 1])
    """
    return np.rot90(x, k, tuple(dims))
