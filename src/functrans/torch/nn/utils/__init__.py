"""torch.nn.utils: functions of all parameters of a model at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from functrans.torch.autograd.modes import no_grad
from functrans.torch.errors import TensorError
from functrans.torch.joining import cat
from functrans.torch.nn.utils import rnn as rnn
from functrans.torch.tensor import Tensor, make

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def _gradients(parameters: Any) -> list[Tensor]:
    chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [each._grad for each in chosen if each._grad is not None]


@no_grad()
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients so that their total norm is at most `max_norm`; return the norm before scaling.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(10.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return make(np.float32(0.0))
    dtype = gradients[0].value.dtype
    sizes = [float(g.norm(norm_type)) for g in gradients]
    if math.isinf(norm_type):
        total = max(sizes)
    else:
        total = float(sum(size**norm_type for size in sizes)) ** (1.0 / norm_type)
    if error_if_nonfinite and not math.isfinite(total):
        raise TensorError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    factor = min(1.0, max_norm / (total + 1e-6))
    for gradient in gradients:
        gradient.mul_(factor)
    return make(dtype.type(total))


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Clamp all entries of the gradients between -clip_value and clip_value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.zeros(1, requires_grad=True)
    >>> (x * 5).backward()
    >>> torch.nn.utils.clip_grad_value_([x], 2.0)
    >>> x.grad
    tensor([2.])
    """
    for gradient in _gradients(parameters):
        gradient.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all parameters into one vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(2, 1).parameters()).shape
    torch.Size([3])
    """
    return cat([each.reshape(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the parts of a vector into the parameters.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> model = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), model.parameters())
    >>> model.bias.detach()
    tensor([3.])
    """
    start = 0
    for each in parameters:
        count = each.numel()
        each.data.copy_(vec.detach()[start : start + count].reshape(*each.shape))
        start += count
