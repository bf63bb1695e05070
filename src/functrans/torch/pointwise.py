"""Functions that work entry by entry, on one tensor or on several that broadcast."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.core.tracer import UFUNCS
from functrans.ops import elementwise, gamma, normal, structure
from functrans.torch import arithmetic, dtypes
from functrans.torch.arithmetic import as_operand, binary, unary
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.registry import FUNCTIONS, attach, composed, export
from functrans.torch.tape import MODE, record2
from functrans.torch.tensor import Tensor, apply, cast, lower, make, named, wrap

# Primitives that are PyTorch's functions under other names.

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
    """A function that is constant between steps: its gradient is zero, if it has floats as results."""

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
    ("sign", "sgn"): stepwise(np.sign, "SignBackward0"),
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


def _refusing(function: Any) -> Any:
    """An operator by its name: what it cannot take is an error, since there is no other to ask."""

    @functools.wraps(function)
    def refusing(input: Any, other: Any) -> Any:
        result = function(input, other)
        if result is NotImplemented:
            kinds = f"{type(input).__name__} and {type(other).__name__}"
            raise TensorTypeError(f"{function.__name__}(): arguments must be Tensors, not {kinds}")
        return result

    return refusing


for _names, _function in _functions.items():
    export(*_names)(_refusing(_function) if _function.__code__.co_argcount == 2 else _function)


def _operands(*values: Any) -> Any:
    """Tensors where there are none yet, for functions whose first argument may be a number."""
    for value in values:
        if as_operand(value) is NotImplemented:
            raise TensorTypeError(f"argument must be Tensor or Number, not {type(value).__name__}")
    return values


@export()
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other."""
    _operands(input, other)
    return arithmetic.add(input, other if alpha == 1 else other * alpha)


@export("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other."""
    _operands(input, other)
    return arithmetic.sub(input, other if alpha == 1 else other * alpha)


@export()
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * input."""
    return named(sub(other, input, alpha=alpha), "RsubBackward1")


@export("mul", "multiply")
def mul(input: Any, other: Any) -> Any:
    """input * other."""
    _operands(input, other)
    return arithmetic.mul(input, other)


@export("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other; `rounding_mode` may be "floor" or "trunc"."""
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
    """input ** exponent."""
    _operands(input, exponent)
    return arithmetic.power(input, exponent)


@export()
def float_power(input: Any, exponent: Any) -> Any:
    """input ** exponent in double precision."""
    return arithmetic.power(_double(input), _double(exponent))


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) else value


@export()
def square(input: Tensor) -> Any:
    """input ** 2."""
    return arithmetic.power(input, 2)


@export()
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy; gradients flow through it."""
    result = apply(structure.copy, input)
    if isinstance(result.value, np.ndarray) and not result.value.ndim:
        result.value = result.value[()]
    return result


@export(function=False)
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor, copied if it does not lie in memory row by row."""
    return input if input.is_contiguous() else clone(input)


@export("detach", method=False)
def detach(input: Tensor) -> Tensor:
    """The same memory without a record."""
    return input.detach()


@export()
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest whole numbers, halves to even."""
    if not decimals:
        return _round_to_whole(input) if input.dtype.category > 1 else input
    return _round(input, decimals)  # type: ignore[no-any-return]


@composed("RoundBackward1")
def _round(x: Any, decimals: int) -> Any:
    return np.round(x, decimals)


@export()
@composed("FracBackward0")
def frac(x: Any) -> Any:
    """What is behind the decimal point."""
    return x - np.trunc(x)


@export()
@composed("RsqrtBackward0")
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(_floating(x))


def _floating(x: Any) -> Any:
    return x if dtype_of(x).kind in "fc" else x.astype(dtypes.default.numpy)


@export("sigmoid", "special_expit")
@composed("SigmoidBackward0")
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    # 1 / (1 + exp(-x)), by a form whose derivative never is 0 * inf
    return np.exp(-np.logaddexp(0, -_floating(x)))


@export("logit")
@composed("LogitBackward0")
def logit(x: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x))."""
    x = x if eps is None else _clamped(x, eps, 1 - eps)
    return np.log(x / (1 - x))


@export("erf")
@composed("ErfBackward0")
def erf(x: Any) -> Any:
    """The error function."""
    return scipy_special("erf", x, lambda x: 2 * normal.normal_cdf(x * math.sqrt(2)) - 1)


@export("erfc")
@composed("ErfcBackward0")
def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return scipy_special("erfc", x, lambda x: 2 * normal.normal_cdf(-x * math.sqrt(2)))


@export("erfinv")
@composed("ErfinvBackward0")
def erfinv(x: Any) -> Any:
    """The inverse of `erf`."""
    return scipy_special("erfinv", x, lambda x: normal.normal_quantile((x + 1) / 2) / math.sqrt(2))


@export("lgamma")
@composed("LgammaBackward0")
def lgamma(x: Any) -> Any:
    """The logarithm of the gamma function."""
    return scipy_special("gammaln", x)


@export("digamma")
@composed("DigammaBackward0")
def digamma(x: Any) -> Any:
    """The derivative of `lgamma`."""
    return scipy_special("digamma", x, gamma.polygamma(0))


def scipy_special(name: str, x: Any, otherwise: Any = None) -> Any:
    """A function of scipy.special, or a slower one of ours where SciPy is not installed."""
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


@export("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The entries moved into the range from min to max.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise TensorError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    arrays = [input.value, *(b.value for b in bounds if isinstance(b, Tensor))]
    wanted = dtypes.joint_dtype(arrays, [b for b in bounds if not isinstance(b, Tensor)])
    return _clamp(cast(input, wanted), min, max)  # type: ignore[no-any-return]


@composed("ClampBackward1")
def _clamp(x: Any, low: Any, high: Any) -> Any:
    return _clamped(x, low, high)


def _clamped(x: Any, low: Any, high: Any) -> Any:
    # The derivative is 1 on the border, where np.clip has 0.
    dtype = dtype_of(x).type
    if low is not None:
        x = np.where(x < low, low if hasattr(low, "dtype") else dtype(low), x)
    if high is not None:
        x = np.where(x > high, high if hasattr(high, "dtype") else dtype(high), x)
    return x


@export("clamp_min", "clip_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """The entries, but not below a bound."""
    return clamp(input, min)


@export("clamp_max", "clip_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """The entries, but not above a bound."""
    return clamp(input, None, max)


@export()
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight * (end - input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.lerp(torch.tensor([0.0]), torch.tensor([10.0]), 0.3)
    tensor([3.])
    """
    return named(input + weight * (end - input), "LerpBackward0")


@export()
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2."""
    return named(input + value * (tensor1 * tensor2), "AddcmulBackward0")


@export()
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2."""
    return named(input + value * (tensor1 / tensor2), "AddcdivBackward0")


@export("where", method=False)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Entries of `input` where the condition holds, and of `other` elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    if condition.dtype is not dtypes.bool_:
        raise TensorError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.legacy}"
        )
    arrays = [each.value for each in (input, other) if isinstance(each, Tensor)]
    numbers = [each for each in (input, other) if not isinstance(each, Tensor)]
    wanted = dtypes.joint_dtype(arrays, numbers)
    x, y = (
        cast(each, wanted).lift() if isinstance(each, Tensor) else wanted.type(each)
        for each in (input, other)
    )
    try:
        return named(lower(structure.where(condition.lift(), x, y)), "WhereBackward0")
    except ValueError:
        raise arithmetic.shape_error(x, y) from None


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    return where(condition, self, other)


attach(where=_where_method)


@export()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The tensor with a number in the places where the mask holds."""
    if mask.dtype is not dtypes.bool_:
        raise TensorError(
            "masked_fill only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.legacy.lower()}"
        )
    filled = value.to(input.dtype) if isinstance(value, Tensor) else value
    return named(where(mask, filled, input).to(input.dtype), "MaskedFillBackward0")


@export()
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether entries agree up to atol + rtol * |other|."""
    return make(np.isclose(input.detach().value, other.detach().value, rtol, atol, equal_nan))


@export()
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all entries agree up to atol + rtol * |other|.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-9)
    True
    """
    return bool(np.all(isclose(input, other, rtol, atol, equal_nan).value))


@export()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and entries."""
    return input.shape == other.shape and bool(np.all(input.detach().value == other.detach().value))


@export("nan_to_num")
@composed("NanToNumBackward0")
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in the place of nan and infinities."""
    info = np.finfo(dtype_of(x))
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    kind = dtype_of(x).type
    x = np.where(np.isnan(x), kind(nan), x)
    x = np.where(x == np.inf, kind(high), x)
    return np.where(x == -np.inf, kind(low), x)


# Complex numbers.


@export("conj", "conj_physical")
@composed("ConjBackward0")
def conj(x: Any) -> Any:
    """The complex conjugate."""
    return np.conj(x) if dtype_of(x).kind == "c" else x


@composed("ViewAsRealBackward0")
def _real(x: Any) -> Any:
    return np.real(x)


@composed("ViewAsRealBackward0")
def _imag(x: Any) -> Any:
    return np.imag(x)


@export("angle")
@composed("AngleBackward0")
def angle(x: Any) -> Any:
    """The angle of complex numbers."""
    return np.angle(x)


def _real_part(self: Tensor) -> Tensor:
    return _real(self) if self.is_complex() else self


def _imaginary_part(self: Tensor) -> Tensor:
    if not self.is_complex():
        raise TensorError("imag is not implemented for tensors with non-complex dtypes.")
    return _imag(self)  # type: ignore[no-any-return]


FUNCTIONS["real"], FUNCTIONS["imag"] = _real_part, _imaginary_part
attach(real=property(_real_part), imag=property(_imaginary_part))
