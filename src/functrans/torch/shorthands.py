"""Small functions that PyTorch has under separate names."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.torch import dtypes
from functrans.torch.errors import TensorError
from functrans.torch.joining import tensor_split
from functrans.torch.registry import FUNCTIONS, attach, composed, export
from functrans.torch.sorting import nonzero
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, make

# Shapes.


def _at_least(count: int) -> Any:
    def function(*tensors: Any) -> Any:
        parts = (
            tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        )
        wide = tuple(_widened(each, count) for each in parts)
        return wide[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else wide

    function.__doc__ = f"Tensors with at least {count} dimensions."
    return function


def _widened(tensor: Tensor, count: int) -> Tensor:
    while tensor.dim() < count:
        tensor = tensor.unsqueeze(-1 if tensor.dim() == 2 else 0)
    return tensor


for _count in (1, 2, 3):
    export(f"atleast_{_count}d", method=False)(_at_least(_count))


@export()
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split a tensor horizontally, into groups of columns.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.hsplit(torch.tensor([1, 2]), 2)
    (tensor([1]), tensor([2]))
    """
    return _split(input, indices_or_sections, 0 if input.dim() == 1 else 1, 1, "hsplit")


@export()
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Split a tensor vertically, into groups of rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.vsplit(torch.ones(2, 3), 2)[0].shape
    torch.Size([1, 3])
    """
    return _split(input, indices_or_sections, 0, 2, "vsplit")


def _split(input: Tensor, places: Any, dim: int, least: int, name: str) -> tuple[Tensor, ...]:
    if input.dim() < least:
        raise TensorError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{input.dim()} dimensions!"
        )
    if isinstance(places, int) and input.shape[dim] % places:
        raise TensorError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{input.shape[dim]} is not divisible by the split_size {places}!"
        )
    return tensor_split(input, places, dim)


@export()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the entries of the flattened tensor along its diagonal.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.diagflat(torch.tensor([1, 2])).shape
    torch.Size([2, 2])
    """
    return FUNCTIONS["diag_embed"](input.reshape(-1), offset)  # type: ignore[no-any-return]


@export()
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transposes of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.adjoint(torch.tensor([[1j, 2j]])).shape
    torch.Size([2, 1])
    """
    return input.mH if input.is_complex() else input.mT  # type: ignore[no-any-return]


# Searching.


@export()
def argwhere(input: Tensor) -> Tensor:
    """The indices of nonzero entries, one per row.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.argwhere(torch.tensor([0, 5]))
    tensor([[1]])
    """
    return nonzero(input)  # type: ignore[no-any-return]


@export()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The entries without consecutive repetitions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    flat = np.asarray(concrete(input.detach().value)).reshape(-1)
    fresh = np.concatenate([np.ones(min(len(flat), 1), bool), flat[1:] != flat[:-1]])
    found: list[Any] = [make(flat[fresh])]
    if return_inverse:
        found.append(make((np.cumsum(fresh) - 1).reshape(input.shape)))
    if return_counts:
        ends = np.append(np.flatnonzero(fresh), len(flat))
        found.append(make(np.diff(ends)))
    return found[0] if len(found) == 1 else tuple(found)


@export()
def isposinf(input: Tensor) -> Tensor:
    """Whether entries are positive infinity.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.isposinf(torch.tensor([1.0, torch.inf]))
    tensor([False,  True])
    """
    return input == float("inf")


@export()
def isneginf(input: Tensor) -> Tensor:
    """Whether entries are negative infinity.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.isneginf(torch.tensor([1.0, -torch.inf]))
    tensor([False,  True])
    """
    return input == float("-inf")


@export()
def isreal(input: Tensor) -> Tensor:
    """Whether entries have no imaginary part.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    if input.is_complex():
        return input.imag == 0  # type: ignore[no-any-return]
    return FUNCTIONS["ones_like"](input, dtype=dtypes.bool_)  # type: ignore[no-any-return]


@export(method=False)
def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_tensor(1.0)
    False
    """
    return isinstance(obj, Tensor)


@export()
def is_nonzero(input: Tensor) -> bool:
    """Whether the single entry of a tensor is nonzero.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_nonzero(torch.tensor(2.0))
    True
    """
    if input.numel() != 1:
        raise TensorError(f"Boolean value of Tensor with {input.numel()} values is ambiguous")
    return bool(input)


# Complex numbers as pairs.


@export(method=False)
@composed("ViewAsRealBackward0")
def view_as_real(x: Any) -> Any:
    """Real and imaginary parts along a new last dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return np.stack([np.real(x), np.imag(x)], axis=-1)


@export(method=False)
@composed("ViewAsComplexBackward0")
def view_as_complex(x: Any) -> Any:
    """Complex numbers from pairs along the last dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    return x[..., 0] + 1j * x[..., 1]


@export(method=False)
@composed("PolarBackward0")
def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers from absolute values and angles.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.polar(torch.tensor(2.0), torch.tensor(0.0))
    tensor(2.+0.j)
    """
    return abs * np.cos(angle) + 1j * (abs * np.sin(angle))


# Windows of signals.


def _window(name: str, offset: float) -> None:
    def window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
        last = window_length if periodic else window_length - 1
        angles = 2 * np.pi * np.arange(window_length) / max(last, 1)
        wanted = dtypes.default.numpy if dtype is None else dtypes.to_numpy(dtype)
        return make((offset - (1 - offset) * np.cos(angles)).astype(wanted))

    window.__doc__ = f"{offset} - {1 - offset:g} cos(2 pi k / n): a window for a signal."
    export(name, method=False)(window)


_window("hann_window", 0.5)
_window("hamming_window", 0.54)


# Functions that do little or nothing on the CPU.


class _Threads:
    count = 1


@export(method=False)
def get_num_threads() -> int:
    """The number passed to `set_num_threads`. NumPy decides how many threads it uses.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.get_num_threads() > 0
    True
    """
    return _Threads.count


@export(method=False)
def set_num_threads(num: int) -> None:
    """Keep a number for `get_num_threads`. NumPy decides how many threads it uses.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.set_num_threads(1) is None
    True
    """
    if num <= 0:
        raise TensorError("set_num_threads expects a positive integer")
    _Threads.count = int(num)


@export(method=False)
def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether autocast is on in this thread.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_autocast_enabled()
    False
    """
    return device_type == "cpu" and MODE.autocast is not None


@export(function=False)
def get_device(self: Tensor) -> int:
    """The index of the device: -1 for the CPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).get_device()
    -1
    """
    return -1


@export(function=False)
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2).is_same_size(torch.zeros(2))
    True
    """
    return self.shape == other.shape


@export("resolve_conj", "resolve_neg", "positive")
def positive(input: Tensor) -> Tensor:
    """Return the tensor itself.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.positive(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


def _is_cpu(self: Tensor) -> bool:
    """Whether the tensor is on the CPU: always True.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).is_cpu
    True
    """
    return True


attach(is_cpu=property(_is_cpu))
