"""Normalization layers."""

from __future__ import annotations

from typing import Any

from functrans.torch import creation
from functrans.torch.errors import TensorValueError
from functrans.torch.nn import functional as F
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.nn.windows import as_tuple
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "LayerNorm",
    "RMSNorm",
]


class LayerNorm(Module):
    """Normalizes the last dimensions to mean 0 and variance 1, then scales and shifts them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.LayerNorm(2, eps=0.0)(torch.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], grad_fn=<NativeLayerNormBackward0>)
    """

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
        ones, zeros = (make(*self.normalized_shape) for make in (creation.ones, creation.zeros))
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(zeros) if elementwise_affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions by their root mean square.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.RMSNorm(2, eps=0.0)(torch.tensor([[2.0, -2.0]])).detach()
    tensor([[ 1., -1.]])
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = as_tuple(normalized_shape, 1), eps
        self.elementwise_affine = elementwise_affine
        ones = creation.ones(*self.normalized_shape)
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.elementwise_affine
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class GroupNorm(Module):
    """Normalizes groups of channels to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.GroupNorm(2, 4)(torch.ones(1, 4, 3)).sum().item()
    0.0
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise TensorValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.affine = affine
        ones, zeros = creation.ones(num_channels), creation.zeros(num_channels)
        self.register_parameter("weight", Parameter(ones) if affine else None)
        self.register_parameter("bias", Parameter(zeros) if affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


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
        ones, zeros = creation.ones(num_features), creation.zeros(num_features)
        self.register_parameter("weight", Parameter(ones) if affine else None)
        self.register_parameter("bias", Parameter(zeros) if affine else None)
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
    """Normalizes the channels of vectors or sequences to mean 0 and variance 1 over the batch.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.BatchNorm1d(1, eps=0.0)(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.],
            [ 1.]])
    """

    allowed = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes the channels of images to mean 0 and variance 1 over the batch.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.BatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    allowed = (4,)


class _InstanceNorm(_BatchNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in self.allowed:
            wanted = " or ".join(f"{n}D" for n in self.allowed)
            raise TensorValueError(f"expected {wanted} input (got {input.dim()}D input)")
        if input.dim() == self.allowed[0]:  # a single example
            return self.forward(input.unsqueeze(0)).squeeze(0)  # type: ignore[no-any-return]
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes the channels of each sequence to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.InstanceNorm1d(1, eps=0.0)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.,  1.]]])
    """

    allowed = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes the channels of each image to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    allowed = (3, 4)
