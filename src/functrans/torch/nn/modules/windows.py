"""Modules with a sliding window: convolutions and pooling."""

from __future__ import annotations

import math
from typing import Any

from functrans.torch.errors import TensorValueError
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import empty_parameter
from functrans.torch.nn.windows import as_tuple
from functrans.torch.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "MaxPool1d",
    "MaxPool2d",
]


class _Convolution(Module):
    count = 1
    transposed = False
    function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise TensorValueError("in_channels and out_channels must be divisible by groups")
        modes = ("zeros",) if self.transposed else ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise TensorValueError(
                f"padding_mode must be one of {set(modes)}, but got padding_mode={padding_mode!r}"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = as_tuple(kernel_size, self.count)
        self.stride, self.dilation = as_tuple(stride, self.count), as_tuple(dilation, self.count)
        self.padding: Any = padding if isinstance(padding, str) else as_tuple(padding, self.count)
        self.groups, self.padding_mode = groups, padding_mode
        first, second = (
            (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        )
        options = {"device": device, "dtype": dtype}
        self.weight = empty_parameter(first, second // groups, *self.kernel_size, **options)
        self.register_parameter("bias", empty_parameter(out_channels, **options) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Conv1d(1, 1, 3).reset_parameters()
        """
        bound = 1 / math.sqrt(self.weight[0].numel())
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def _widths(self) -> list[int]:
        """The padding on both sides of each dimension, last dimension first."""
        if self.padding == "valid":
            return [0] * (2 * self.count)
        widths: list[int] = []
        for k in reversed(range(self.count)):
            if self.padding == "same":
                total = self.dilation[k] * (self.kernel_size[k] - 1)
                widths += [total // 2, total - total // 2]
            else:
                widths += [self.padding[k]] * 2
        return widths

    def forward(self, input: Tensor) -> Tensor:
        convolve, padding = type(self).function, self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._widths(), mode=self.padding_mode), 0
        return convolve(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * self.count:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.count:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class Conv1d(_Convolution):
    """Convolution of sequences.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Conv1d(2, 3, kernel_size=3)(torch.ones(1, 2, 8)).shape
    torch.Size([1, 3, 6])
    """

    count = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """Convolution of images.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Conv2d(1, 4, kernel_size=3, padding="same")(torch.ones(1, 1, 8, 8)).shape
    torch.Size([1, 4, 8, 8])
    """

    count = 2
    function = staticmethod(F.conv2d)


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
        )
        self.output_padding = as_tuple(output_padding, self.count)

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(  # type: ignore[no-any-return]
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

    def extra_repr(self) -> str:
        text = super().extra_repr()
        if any(self.output_padding):
            head, comma, tail = text.partition(", groups") if self.groups != 1 else (text, "", "")
            text = f"{head}, output_padding={self.output_padding}{comma}{tail}"
        return text


class ConvTranspose1d(_Transposed):
    """The transposed convolution of sequences, which makes them longer.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ConvTranspose1d(2, 3, kernel_size=2, stride=2)(torch.ones(1, 2, 4)).shape
    torch.Size([1, 3, 8])
    """

    count = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The transposed convolution of images, which makes them larger.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ConvTranspose2d(2, 3, kernel_size=2, stride=2)(torch.ones(1, 2, 4, 4)).shape
    torch.Size([1, 3, 8, 8])
    """

    count = 2
    function = staticmethod(F.conv_transpose2d)


class _MaxPool(Module):
    function: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest entry in each window of a sequence.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest entry in each window of an image.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    function = staticmethod(F.max_pool2d)


class AvgPool1d(Module):
    """The mean of each window of a sequence.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = as_tuple(kernel_size, 1), as_tuple(padding, 1)
        self.stride = self.kernel_size if stride is None else as_tuple(stride, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(  # type: ignore[no-any-return]
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of an image.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AvgPool2d(2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(  # type: ignore[no-any-return]
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Adaptive(Module):
    function: Any = None

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Divides a sequence into a given number of parts, and takes the mean of each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """Divides an image into a given number of parts, and takes the mean of each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AdaptiveAvgPool2d((1, 1))(torch.ones(1, 4, 4))
    tensor([[[1.]]])
    """

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveMaxPool1d(_Adaptive):
    """Divides a sequence into a given number of parts, and takes the maximum of each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_Adaptive):
    """Divides an image into a given number of parts, and takes the maximum of each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.AdaptiveMaxPool2d(1)(torch.arange(4.0).view(1, 2, 2))
    tensor([[[3.]]])
    """

    function = staticmethod(F.adaptive_max_pool2d)
