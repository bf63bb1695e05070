"""The attributes of a tensor: shape, dtype and memory layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.custody import memory_owner
from functrans.core.dispatch import concrete, is_plain
from functrans.torch import dtypes, views
from functrans.torch.devices import Size, device
from functrans.torch.dtypes import dtype as DType
from functrans.torch.errors import TensorIndexError, TensorTypeError

_ndarray = np.ndarray


def check_dim(dim: Any, ndim: int) -> int:
    """A dimension as a nonnegative number."""
    if isinstance(dim, Described):
        dim = dim.item()
    limit = max(ndim, 1)
    if not isinstance(dim, (int, np.integer)):
        raise TensorTypeError(f"a dimension must be an int, not {type(dim).__name__}")
    if not -limit <= dim < limit:
        raise TensorIndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got "
            f"{dim})"
        )
    return int(dim) % limit


class Described:
    """The attributes and queries of `Tensor`, which change nothing."""

    __slots__ = ()

    value: Any
    inference: bool

    if TYPE_CHECKING:

        def item(self) -> Any: ...
        def to(self, *args: Any) -> Any: ...

    @property
    def shape(self) -> Size:
        """The size of each dimension.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).shape
        torch.Size([2, 3])
        """
        return Size(self.value.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size along one dimension.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).size(1)
        3
        """
        return self.shape if dim is None else self.shape[check_dim(dim, self.value.ndim)]

    def dim(self) -> int:
        """The number of dimensions.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).dim()
        2
        """
        return self.value.ndim  # type: ignore[no-any-return]

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).ndim
        2
        """
        return self.value.ndim  # type: ignore[no-any-return]

    def numel(self) -> int:
        """The number of entries.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.numel(torch.ones(2, 3))
        6
        """
        return self.shape.numel()

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The dtype of the entries.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).dtype
        torch.float32
        """
        return dtypes.of_numpy(self.value.dtype)

    @property
    def device(self) -> device:
        """The device of the tensor: always the CPU.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).device
        device(type='cpu')
        """
        return device()

    @property
    def layout(self) -> str:
        """The memory layout: always strided.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).layout
        'torch.strided'
        """
        return "torch.strided"

    is_cuda = is_sparse = is_quantized = is_meta = False

    def element_size(self) -> int:
        """The number of bytes per entry.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).element_size()
        4
        """
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The number of bytes per entry.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).itemsize
        4
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The total number of bytes of the entries.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2).nbytes
        8
        """
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        """Whether the entries are real floating point numbers.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.is_floating_point(torch.ones(1))
        True
        """
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the entries are complex numbers.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.is_complex(torch.ones(1))
        False
        """
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the entries can be negative.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).is_signed()
        True
        """
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).is_inference()
        False
        """
        return self.inference

    def is_contiguous(self) -> bool:
        """Whether the entries are contiguous in memory, in row-major order.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).T.is_contiguous()
        False
        """
        value = concrete(self.value)
        return not is_plain(value, _ndarray) or value.flags.c_contiguous

    def stride(self, dim: int | None = None) -> Any:
        """The strides: the distance in memory between neighbors along each dimension, in entries.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).stride()
        (3, 1)
        """
        value = np.asarray(concrete(self.value))
        strides = tuple(step // value.itemsize for step in value.strides)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """The offset of the first entry from the start of the memory, in entries.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(4)[2:].storage_offset()
        2
        """
        value = np.asarray(concrete(self.value))
        start = memory_owner(value).__array_interface__["data"][0]
        return (value.__array_interface__["data"][0] - start) // value.itemsize  # type: ignore[no-any-return]

    def data_ptr(self) -> int:
        """The memory address of the first entry.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1).data_ptr() > 0
        True
        """
        return views.memory(self).__array_interface__["data"][0]  # type: ignore[no-any-return]

    def type(self, dtype: Any = None) -> Any:
        """The name of the legacy tensor type, or the tensor converted to another dtype.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor([1.0]).type()
        'torch.FloatTensor'
        """
        if dtype is None:
            return f"torch.{self.dtype.legacy}Tensor"
        return self.to(dtype)
