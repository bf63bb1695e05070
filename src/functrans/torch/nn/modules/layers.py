"""Layers: linear maps, embeddings, normalization, dropout, convolutions and pooling."""

from __future__ import annotations

import math
from typing import Any

from functrans.torch import creation
from functrans.torch.errors import TensorValueError
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.nn.windows import as_tuple
from functrans.torch.random import randn
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, check_device

__all__ = [
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "RMSNorm",
    "Unflatten",
]


def _empty(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    check_device(device)
    return Parameter(creation.zeros(*shape, dtype=dtype))


class Identity(Module):
    """Its input, whatever it is made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Module):
    """Some neighboring dimensions as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)  # type: ignore[no-any-return]


class Linear(Module):
    """x W^T + b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Linear(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _empty(out_features, in_features, device=device, dtype=dtype)
        self.bias = _empty(out_features, dtype=dtype) if bias else None
        if not bias:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters  # without the search for a name
        return F.linear(input, own["weight"], own["bias"])

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Bilinear(Module):
    """x1^T A x2 + b."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = _empty(out_features, in1_features, in2_features)
        self.bias = _empty(out_features)
        bound = 1 / math.sqrt(in1_features)
        init.uniform_(self.weight, -bound, bound)
        init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        from functrans.torch.products import einsum

        return einsum("...i,oij,...j->...o", input1, self.weight, input2) + self.bias


class Dropout(Module):
    """Entries set to zero with probability p while training."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Embedding(Module):
    """Vectors by numbers."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        _weight: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        given = randn(num_embeddings, embedding_dim) if _weight is None else _weight
        if padding_idx is not None and _weight is None:
            given[padding_idx] = 0.0
        self.weight = Parameter(given)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding:
        count, width = embeddings.shape
        module = cls(count, width, _weight=embeddings, **options)
        module.weight.requires_grad_(not freeze)
        return module

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


class LayerNorm(Module):
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_tuple(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = (
            Parameter(creation.ones(*self.normalized_shape)) if elementwise_affine else None
        )
        affine = elementwise_affine and bias
        self.bias = Parameter(creation.zeros(*self.normalized_shape)) if affine else None

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions divided by the root of their mean square."""

    def __init__(self, normalized_shape: Any, eps: float | None = None) -> None:
        super().__init__()
        self.normalized_shape, self.eps = as_tuple(normalized_shape, 1), eps
        self.weight = Parameter(creation.ones(*self.normalized_shape))

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Groups of channels brought to mean 0 and variance 1."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter(creation.ones(num_channels))
        self.bias = Parameter(creation.zeros(num_channels))

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm(Module):
    allowed: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(creation.ones(num_features)) if affine else None
        self.bias = Parameter(creation.zeros(num_features)) if affine else None
        tracked = track_running_stats
        self.register_buffer("running_mean", creation.zeros(num_features) if tracked else None)
        self.register_buffer("running_var", creation.ones(num_features) if tracked else None)
        self.register_buffer("num_batches_tracked", creation.tensor(0) if tracked else None)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in self.allowed:
            wanted = " or ".join(f"{n}D" for n in self.allowed)
            raise TensorValueError(f"expected {wanted} input (got {input.dim()}D input)")
        momentum = self.momentum if self.momentum is not None else 0.0
        if self.training and self.track_running_stats:
            before, MODE.enabled = MODE.enabled, False
            self.num_batches_tracked.add_(1)
            MODE.enabled = before
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Channels of vectors or sequences brought to mean 0 and variance 1 over the batch."""

    allowed = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Channels of images brought to mean 0 and variance 1 over the batch."""

    allowed = (4,)


class _Convolution(Module):
    count = 1
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
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise TensorValueError("in_channels and out_channels must be divisible by groups")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = as_tuple(kernel_size, self.count)
        self.stride, self.dilation = as_tuple(stride, self.count), as_tuple(dilation, self.count)
        self.padding = padding if isinstance(padding, str) else as_tuple(padding, self.count)
        self.groups = groups
        self.weight = _empty(out_channels, in_channels // groups, *self.kernel_size)
        self.bias = _empty(out_channels) if bias else None
        if not bias:
            self.register_parameter("bias", None)
        bound = 1 / math.sqrt(in_channels // groups * math.prod(self.kernel_size))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        convolve = type(self).function
        return convolve(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
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
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(_Convolution):
    """Convolution of sequences."""

    count = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """Convolution of images."""

    count = 2
    function = staticmethod(F.conv2d)


class _Pool(Module):
    function: Any = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.kernel_size, self.stride, self.padding)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(_Pool):
    """The largest entry in each window of a sequence."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_Pool):
    """The largest entry in each window of an image."""

    function = staticmethod(F.max_pool2d)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation=1, ceil_mode=False"


class AvgPool1d(_Pool):
    """The mean of each window of a sequence."""

    function = staticmethod(F.avg_pool1d)


class AvgPool2d(_Pool):
    """The mean of each window of an image."""

    function = staticmethod(F.avg_pool2d)


class AdaptiveAvgPool2d(Module):
    """The means of as many parts of an image as asked for."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
