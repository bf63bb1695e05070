"""Elementwise functions of one tensor, or of several that broadcast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.core.shapes import dtype_of
from functrans.core.tracer import UFUNCS
from functrans.ops import elementwise, gamma, normal, structure
from functrans.torch import arithmetic, dtypes
from functrans.torch.arithmetic import as_tensor_operand, binary, unary
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.registry import FUNCTIONS, composed, export
from functrans.torch.tape import MODE, record2
from functrans.torch.tensor import Tensor, apply, make, named, wrap

# PyTorch's names for primitives that compute the same function.

for _names, _primitive in {
    ("sin",): elementwise.sin,
    ("cos",): elementwise.cos,
    ("tan",): elementwise.tan,
    ("asin", "arcsin"): elementwise.arcsin,
    ("acos", "arccos"): elementwise.arccos,
    ("atan", "arctan"): elementwise.arctan,
    ("sinh",): elementwise.sinh,
    ("cosh",): elementwise.cosh,
    ("tanh",): elementwise.tanh,
    ("asinh", "arcsinh"): elementwise.arcsinh,
    ("acosh", "arccosh"): elementwise.arccosh,
    ("atanh", "arctanh"): elementwise.arctanh,
    ("exp",): elementwise.exp,
    ("exp2",): elementwise.exp2,
    ("expm1",): elementwise.expm1,
    ("log",): elementwise.log,
    ("log2",): elementwise.log2,
    ("log10",): elementwise.log10,
    ("log1p",): elementwise.log1p,
    ("sqrt",): elementwise.sqrt,
    ("reciprocal",): elementwise.reciprocal,
    ("deg2rad",): elementwise.deg2rad,
    ("rad2deg",): elementwise.rad2deg,
}.items():
    export(*_names)(unary(_primitive))

export("relu")(unary(elementwise.relu, integers=True))


def stepwise(ufunc: Any, name: str | None = None) -> Any:
    """A piecewise constant function, whose gradient is zero if its results are floats."""

    def function(input: Tensor) -> Tensor:
        value = input.value
        out = ufunc(value)
        if name is None or input.record is None or not MODE.enabled:
            return wrap(out)
        record = record2(elementwise.multiply, value, 0.0, out, input.record, None)
        return named(make(out, record), name)

    function.__name__ = ufunc.__name__
    return function


_round_to_whole = stepwise(np.rint, "RoundBackward0")
for _names, _function in {
    ("floor",): stepwise(np.floor, "FloorBackward0"),
    ("ceil",): stepwise(np.ceil, "CeilBackward0"),
    ("trunc", "fix"): stepwise(np.trunc, "TruncBackward0"),
    ("sign",): stepwise(np.sign, "SignBackward0"),
    ("sgn",): stepwise(np.sign, "SgnBackward0"),
    ("isnan",): stepwise(np.isnan),
    ("isinf",): stepwise(np.isinf),
    ("isfinite",): stepwise(np.isfinite),
    ("signbit",): stepwise(np.signbit),
    ("logical_not",): stepwise(np.logical_not),
}.items():
    export(*_names)(_function)

relu: Any = FUNCTIONS["relu"]
exp: Any = FUNCTIONS["exp"]
_functions: dict[tuple[str, ...], Any] = {
    ("neg", "negative"): arithmetic.neg,
    ("abs", "absolute"): arithmetic.absolute,
    ("bitwise_not",): arithmetic.invert,
    ("remainder",): arithmetic.remainder,
    ("floor_divide",): arithmetic.floor_divide,
    ("bitwise_and",): arithmetic.bitwise_and,
    ("bitwise_or",): arithmetic.bitwise_or,
    ("bitwise_xor",): arithmetic.bitwise_xor,
    ("gt", "greater"): arithmetic.gt,
    ("ge", "greater_equal"): arithmetic.ge,
    ("lt", "less"): arithmetic.lt,
    ("le", "less_equal"): arithmetic.le,
    ("eq",): arithmetic.eq,
    ("ne", "not_equal"): arithmetic.ne,
    ("matmul",): arithmetic.matmul,
    ("maximum",): binary(elementwise.maximum),
    ("minimum",): binary(elementwise.minimum),
    ("fmax",): binary(elementwise.fmax),
    ("fmin",): binary(elementwise.fmin),
    ("fmod",): binary(elementwise.fmod),
    ("atan2", "arctan2"): binary(elementwise.arctan2, floats=True),
    ("hypot",): binary(elementwise.hypot),
    ("copysign",): binary(elementwise.copysign, floats=True),
    ("logaddexp",): binary(elementwise.logaddexp),
    ("logaddexp2",): binary(elementwise.logaddexp2),
    ("logical_and",): binary(UFUNCS[np.logical_and]),
    ("logical_or",): binary(UFUNCS[np.logical_or]),
    ("logical_xor",): binary(UFUNCS[np.logical_xor]),
    ("gcd",): binary(UFUNCS[np.gcd]),
    ("lcm",): binary(UFUNCS[np.lcm]),
    ("heaviside",): binary(elementwise.heaviside),
}
for _names, _function in _functions.items():
    export(*_names)(_function)


def _operands(*values: Any) -> Any:
    """Check the operands of functions whose first argument may be a number."""
    for value in values:
        if as_tensor_operand(value) is NotImplemented:
            raise TensorTypeError(f"argument must be Tensor or Number, not {type(value).__name__}")
    return values


@export()
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), alpha=10)
    tensor([31., 42.])
    """
    _operands(input, other)
    return arithmetic.add(input, other if alpha == 1 else other * alpha)


@export("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.sub(torch.tensor([1.0, 2.0]), 1.0)
    tensor([0., 1.])
    """
    _operands(input, other)
    return arithmetic.sub(input, other if alpha == 1 else other * alpha)


@export()
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * input.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.rsub(torch.tensor([1.0, 2.0]), 10.0)
    tensor([9., 8.])
    """
    return named(sub(other, input, alpha=alpha), "RsubBackward1")


@export("mul", "multiply")
def mul(input: Any, other: Any) -> Any:
    """input * other.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.mul(torch.tensor([1.0, 2.0]), 3.0)
    tensor([3., 6.])
    """
    _operands(input, other)
    return arithmetic.mul(input, other)


@export("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other; `rounding_mode` may be "floor" or "trunc".

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.div(torch.tensor([1.0, 2.0]), 2.0)
    tensor([0.5000, 1.0000])
    """
    _operands(input, other)
    if rounding_mode is None:
        return arithmetic.true_divide(input, other)
    if rounding_mode == "floor":
        return arithmetic.floor_divide(input, other)
    if rounding_mode != "trunc":
        raise TensorError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    wanted = arithmetic.add(input, other).dtype
    return FUNCTIONS["trunc"](arithmetic.true_divide(input, other)).to(wanted)


@export()
def pow(input: Any, exponent: Any) -> Any:
    """input ** exponent.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.pow(torch.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    _operands(input, exponent)
    return arithmetic.power(input, exponent)


@export()
def float_power(input: Any, exponent: Any) -> Any:
    """input ** exponent in double precision.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    return arithmetic.power(_double(input), _double(exponent))


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) else value


@export()
def square(input: Tensor) -> Any:
    """input ** 2.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.square(torch.tensor([2.0, 3.0]))
    tensor([4., 9.])
    """
    return arithmetic.power(input, 2)


@export()
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy of the tensor, through which gradients flow.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.clone(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    result = apply(structure.copy, input)
    if is_plain(result.value, np.ndarray) and not result.value.ndim:
        result.value = result.value[()]
    return result


@export(function=False)
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor, copied if it is not contiguous in memory.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2, 3).T.contiguous().is_contiguous()
    True
    """
    return input if input.is_contiguous() else clone(input)


@export("detach", method=False)
def detach(input: Tensor) -> Tensor:
    """A tensor with the same memory, detached from the graph.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.detach(torch.tensor([1.0], requires_grad=True))
    tensor([1.])
    """
    return input.detach()


@export()
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest integers, with halves to even.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.round(torch.tensor([0.5, 1.6]))
    tensor([0., 2.])
    """
    if not decimals:
        return _round_to_whole(input) if input.dtype.category > 1 else input
    return _round(input, decimals)  # type: ignore[no-any-return]


@composed("RoundBackward1")
def _round(x: Any, decimals: int) -> Any:
    return np.round(x, decimals)


@export()
@composed("FracBackward0")
def frac(x: Any) -> Any:
    """The fractional part.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.frac(torch.tensor([1.25]))
    tensor([0.2500])
    """
    return x - np.trunc(x)


@export()
@composed("RsqrtBackward0")
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.rsqrt(torch.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """
    return 1 / np.sqrt(_floating(x))


def _floating(x: Any) -> Any:
    return x if dtype_of(x).kind in "fc" else x.astype(dtypes.default.numpy)


@export("sigmoid", "special_expit")
@composed("SigmoidBackward0")
def sigmoid(x: Any) -> Any:
    """The sigmoid function: 1 / (1 + exp(-x)).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.sigmoid(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """
    # 1 / (1 + exp(-x)), in a form whose derivative is never 0 * inf
    return np.exp(-np.logaddexp(0, -_floating(x)))


@export("logit")
@composed("LogitBackward0")
def logit(x: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid: log(x / (1 - x)).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    x = x if eps is None else clamped(x, eps, 1 - eps)
    return np.log(x / (1 - x))


@export("erf")
@composed("ErfBackward0")
def erf(x: Any) -> Any:
    """The error function.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return scipy_special("erf", x, lambda x: 2 * normal.normal_cdf(x * math.sqrt(2)) - 1)


@export("erfc")
@composed("ErfcBackward0")
def erfc(x: Any) -> Any:
    """The complementary error function: 1 - erf(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.erfc(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    return scipy_special("erfc", x, lambda x: 2 * normal.normal_cdf(-x * math.sqrt(2)))


@export("erfinv")
@composed("ErfinvBackward0")
def erfinv(x: Any) -> Any:
    """The inverse of `erf`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.erfinv(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    return scipy_special("erfinv", x, lambda x: normal.normal_quantile((x + 1) / 2) / math.sqrt(2))


@export("lgamma")
@composed("LgammaBackward0")
def lgamma(x: Any) -> Any:
    """The logarithm of the gamma function.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.lgamma(torch.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """
    return scipy_special("gammaln", x)


@export("digamma")
@composed("DigammaBackward0")
def digamma(x: Any) -> Any:
    """The digamma function, the derivative of `lgamma`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.digamma(torch.tensor([1.0]))
    tensor([-0.5772])
    """
    return scipy_special("digamma", x, gamma.polygamma(0))


def scipy_special(name: str, x: Any, otherwise: Any = None) -> Any:
    """Call a function of scipy.special, or a slower fallback if SciPy is not installed."""
    x = _floating(x)
    try:
        import scipy.special
    except ImportError:
        if otherwise is None:
            raise ImportError(
                f"this function is scipy.special.{name}: install SciPy (pip install functrans[scipy])"
            ) from None
        return otherwise(x).astype(dtype_of(x))
    return getattr(scipy.special, name)(x)


def clamped(x: Any, low: Any, high: Any) -> Any:
    """x clamped between the bounds that are given."""
    # The derivative at a bound is 1, where that of np.clip is 0.
    dtype = dtype_of(x).type
    # A nan bound makes every entry nan, as in PyTorch.
    if low is not None:
        x = np.where((x < low) | (low != low), low if hasattr(low, "dtype") else dtype(low), x)
    if high is not None:
        x = np.where(
            (x > high) | (high != high), high if hasattr(high, "dtype") else dtype(high), x
        )
    return x


@export()
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Linear interpolation: input + weight * (end - input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.lerp(torch.tensor([0.0]), torch.tensor([10.0]), 0.3)
    tensor([3.])
    """
    return named(input + weight * (end - input), "LerpBackward0", input, end)


@export()
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.addcmul(torch.ones(1), torch.tensor([2.0]), torch.tensor([3.0]))
    tensor([7.])
    """
    return named(input + value * (tensor1 * tensor2), "AddcmulBackward0", input, tensor1, tensor2)


@export()
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.addcdiv(torch.ones(1), torch.tensor([6.0]), torch.tensor([3.0]))
    tensor([3.])
    """
    return named(input + value * (tensor1 / tensor2), "AddcdivBackward0", input, tensor1, tensor2)
