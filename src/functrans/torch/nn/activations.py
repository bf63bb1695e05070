"""Activations as functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.torch.errors import TensorError
from functrans.torch.in_place import in_place
from functrans.torch.pointwise import relu as _relu
from functrans.torch.pointwise import scipy_special
from functrans.torch.pointwise import sigmoid as sigmoid
from functrans.torch.reducing import log_softmax as _log_softmax
from functrans.torch.reducing import softmax as _softmax
from functrans.torch.registry import FUNCTIONS, composed
from functrans.torch.tensor import Tensor, named

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]

tanh: Any = FUNCTIONS["tanh"]


def _placed(function: Callable[..., Any], inplace: bool, input: Tensor, *options: Any) -> Any:
    """Apply a function to a tensor, in place if `inplace` is set."""
    return in_place(function)(input, *options) if inplace else function(input, *options)


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The softmax along a dimension: exp(x) / sum exp(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.softmax(torch.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return _softmax(input, _implicit(input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _log_softmax(input, _implicit(input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The softmax of -x along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.softmin(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(-input, dim, dtype)


def _implicit(input: Tensor, dim: int | None) -> int:
    """PyTorch's default dimension."""
    return dim if dim is not None else (0 if input.value.ndim in (0, 1, 3) else 1)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Differentiable samples of classes, as weights; with `hard`, one-hot in the forward pass.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True).sum().item()
    1.0
    """
    noise = -(-(FUNCTIONS["rand_like"](logits).clamp_min(1e-20).log())).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = FUNCTIONS["zeros_like"](logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft  # type: ignore[no-any-return]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """x where it is positive, and 0 elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else _relu(input)  # type: ignore[no-any-return]


@composed("LeakyReluBackward0")
def _leaky_relu(x: Any, slope: float) -> Any:
    return np.where(x > 0, x, x * slope)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, and `negative_slope` times x elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return _placed(_leaky_relu, inplace, input, negative_slope)  # type: ignore[no-any-return]


@composed("EluBackward0")
def _elu(x: Any, alpha: float, scale: float, inner: float) -> Any:
    below = np.where(x > 0, dtype_of(x).type(0), x)
    return scale * np.where(x > 0, x, alpha * np.expm1(below / inner))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, and alpha (exp(x) - 1) elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _placed(_elu, inplace, input, alpha, 1.0, 1.0)  # type: ignore[no-any-return]


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalizing exponential linear unit (Klambauer et al. 2017).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return _placed(_elu, inplace, input, alpha, scale, 1.0)  # type: ignore[no-any-return]


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, and alpha (exp(x / alpha) - 1) elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    out = _placed(_elu, inplace, input, alpha, 1.0, alpha)
    return named(out, "CeluBackward0", input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _placed(_silu, inplace, input)  # type: ignore[no-any-return]


def _silu(input: Tensor) -> Tensor:
    return named(input * sigmoid(input), "SiluBackward0", input)


@composed("GeluBackward0")
def gelu(x: Any, approximate: str = "none") -> Any:
    """x times the cumulative distribution function of the normal distribution.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + np.tanh(inner))
    if approximate != "none":
        raise TensorError("approximate argument must be either none or tanh.")
    from functrans.ops.normal import normal_cdf

    return x * scipy_special("ndtr", x, normal_cdf)


@composed("SoftplusBackward0")
def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    inside = np.where(x * beta > threshold, dtype_of(x).type(0), x)
    return np.where(x * beta > threshold, x, np.logaddexp(0, inside * beta) / beta)


@composed("LogSigmoidBackward0")
def logsigmoid(x: Any) -> Any:
    """The logarithm of the sigmoid.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor(0.0))
    tensor(-0.6931)
    """
    return -np.logaddexp(0, -x)


@composed("HardtanhBackward0")
def _hardtanh(x: Any, low: float, high: float) -> Any:
    return np.clip(x, dtype_of(x).type(low), dtype_of(x).type(high))


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x clamped between two bounds.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    return _placed(_hardtanh, inplace, input, min_val, max_val)  # type: ignore[no-any-return]


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x clamped between 0 and 6.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def _ramp(x: Any) -> Any:
    kind = dtype_of(x).type
    return np.clip(x + 3, kind(0), kind(6)) / 6


_hardsigmoid = composed("HardsigmoidBackward0")(_ramp)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """0 below -3, 1 above 3, and linear in between.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0]))
    tensor([0.0000, 0.5000])
    """
    return _placed(_hardsigmoid, inplace, input)  # type: ignore[no-any-return]


@composed("HardswishBackward0")
def _hardswish(x: Any) -> Any:
    return x * _ramp(x)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times `hardsigmoid` of x.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0]))
    tensor([-0.0000,  0.6667])
    """
    return _placed(_hardswish, inplace, input)  # type: ignore[no-any-return]


@composed("HardshrinkBackward0")
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """x where |x| is larger than a bound, and 0 elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-0.4, 2.0]))
    tensor([0., 2.])
    """
    return np.where(np.abs(x) > lambd, x, dtype_of(x).type(0))


@composed("SoftshrinkBackward0")
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """x moved toward 0 by `lambd`, but not past it.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-0.4, 2.0]))
    tensor([0.0000, 1.5000])
    """
    kind = dtype_of(x).type
    return np.where(x > lambd, x - kind(lambd), np.where(x < -lambd, x + kind(lambd), kind(0)))


@composed("ThresholdBackward0")
def _threshold(x: Any, bound: float, value: float) -> Any:
    return np.where(x > bound, x, dtype_of(x).type(value))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is larger than a bound, and a given number elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.0, 2.0]), 1.0, -5.0)
    tensor([-5.,  2.])
    """
    return _placed(_threshold, inplace, input, threshold, value)  # type: ignore[no-any-return]


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _placed(_mish, inplace, input)  # type: ignore[no-any-return]


def _mish(input: Tensor) -> Tensor:
    return named(input * tanh(softplus(input)), "MishBackward0", input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 1.0]))
    tensor([-0.5000,  0.5000])
    """
    return input / (1 + input.abs())  # type: ignore[no-any-return]


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor(1.0))
    tensor(0.2384)
    """
    return input - tanh(input)  # type: ignore[no-any-return]


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of x times the sigmoid of the second half.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.glu(torch.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    if input.shape[dim] % 2:
        raise TensorError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}"
        )
    first, second = input.chunk(2, dim)
    return named(first * sigmoid(second), "GluBackward0", input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a learned slope, either one for all channels or one for each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    if weight.numel() > 1 and input.value.ndim > 1:
        weight = weight.reshape(-1, *(1,) * (input.value.ndim - 2))
    bent = FUNCTIONS["where"](input > 0, input, input * weight)
    return named(bent, "PreluKernelBackward0", input, weight)
