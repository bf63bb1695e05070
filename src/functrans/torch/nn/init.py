"""torch.nn.init: initial values of parameters. Functions fill a tensor in place and return it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.ops.normal import normal_quantile
from functrans.torch.autograd.modes import no_grad
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.random import source
from functrans.torch.tensor import Tensor, make


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor with uniform random numbers from a to b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> bool(torch.nn.init.uniform_(torch.empty(9)).max() <= 1)
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor with normal random numbers.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.normal_(torch.empty(2)).shape
    torch.Size([2])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Any:
    """Fill a tensor with normal random numbers, truncated to the range from a to b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> bool(torch.nn.init.trunc_normal_(torch.empty(9)).abs().max() <= 2)
    True
    """
    if a > b:
        raise TensorError(f"trunc_normal_ needs a <= b, but found a={a} > b={b}")
    # Sample with the inverse distribution function: rejection would be slow far out in the tails.
    low, high = ((1 + math.erf((bound - mean) / std / math.sqrt(2))) / 2 for bound in (a, b))
    shares = source(None).uniform(low, high, tensor.value.shape)
    values = mean + std * normal_quantile(shares)
    values = np.where(np.isfinite(values), np.clip(values, a, b), min(max(mean, a), b))
    return tensor.copy_(make(values.astype(tensor.value.dtype)))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Any:
    """Fill a tensor with one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.constant_(torch.empty(2), 3.0)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Any:
    """Fill a tensor with ones.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Any:
    """Fill a tensor with zeros.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Any:
    """Fill a matrix with the identity.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.eye_(torch.empty(2, 2)).sum()
    tensor(2.)
    """
    return tensor.copy_(make(np.eye(*tensor.shape, dtype=tensor.value.dtype)))


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise TensorValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity, which makes up for how much it shrinks its input.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    known = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity in known:
        return known[nonlinearity]
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    raise TensorValueError(f"Unsupported nonlinearity {nonlinearity}")


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Any:
    """Fill a tensor with uniform random numbers of variance 2 / (fan_in + fan_out).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> bool(torch.nn.init.xavier_uniform_(torch.empty(3, 3)).abs().max() <= 1)
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Any:
    """Fill a tensor with normal random numbers of variance 2 / (fan_in + fan_out).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.xavier_normal_(torch.empty(2, 3)).shape
    torch.Size([2, 3])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise TensorValueError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    """Fill a tensor with uniform random numbers of variance gain^2 / fan.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.kaiming_uniform_(torch.empty(2, 3)).shape
    torch.Size([2, 3])
    """
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Any:
    """Fill a tensor with normal random numbers of variance gain^2 / fan.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.kaiming_normal_(torch.empty(2, 3)).shape
    torch.Size([2, 3])
    """
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Any:
    """Fill a matrix with orthonormal rows or columns.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.init.orthogonal_(torch.empty(3, 2)).shape
    torch.Size([3, 2])
    """
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    flat = source(None).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(flat)
    q = q * np.sign(np.diagonal(r))
    q = q.T if rows < columns else q
    return tensor.copy_(make((gain * q).reshape(tensor.value.shape).astype(tensor.value.dtype)))
