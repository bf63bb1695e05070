"""Conversions of tensors to other dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch import dtypes
from functrans.torch.devices import check_device
from functrans.torch.dtypes import dtype as DType
from functrans.torch.registry import export
from functrans.torch.tensor import Tensor, cast, named


@export(function=False)
def to(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """Convert the tensor to another dtype; the only device is the CPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1.0]).to(torch.int64)
    tensor([1])
    """
    wanted, copy = conversion(*args, **options)
    if wanted is None or wanted == self.value.dtype:
        return self.clone() if copy else self
    return named(cast(self, wanted), "ToCopyBackward0")


@export(function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the tensor to the dtype of another.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1.5]).type_as(torch.tensor([1]))
    tensor([1])
    """
    return to(self, other.dtype)


@export(function=False)
def cpu(self: Tensor) -> Tensor:
    """Return the tensor itself, which is already on the CPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1.0]).cpu()
    tensor([1.])
    """
    return self


@export(function=False)
def cuda(self: Tensor, *_: Any) -> Tensor:
    """Raise an error: there is no GPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).is_cuda
    False
    """
    check_device("cuda")
    return self


def conversion(
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> tuple[np.dtype[Any] | None, bool]:
    """The dtype in the arguments of `to`, if any, and whether to copy."""
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, DType):
            dtype = arg
        elif isinstance(arg, bool):
            pass  # non_blocking
        elif arg is not None:
            device = arg
    check_device(device)
    return (None if dtype is None else dtypes.to_numpy(dtype)), copy


def _converter(dtype: DType) -> Any:
    def convert(self: Tensor) -> Tensor:
        return to(self, dtype)

    convert.__doc__ = f"Convert the tensor to {dtype}."
    return convert


for _name, _dtype in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool_,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
}.items():
    export(_name, function=False)(_converter(_dtype))
