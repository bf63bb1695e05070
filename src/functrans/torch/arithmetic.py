"""The operators of tensors, and how a primitive becomes a function of one or two tensors.

Dtypes are promoted as in PyTorch. Anything beyond the common case is in separate functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.shapes import PYTHON_SCALARS
from functrans.core.tracer import UFUNCS
from functrans.ops import contraction, elementwise
from functrans.torch import dtypes
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.tape import MODE, record1, record2
from functrans.torch.tensor import Tensor, cast, check_unmasked, face_of, lower, make, named, wrap

_FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64", "complex64", "complex128")))


def unary(primitive: Any, *, integers: bool = False) -> Callable[[Any], Tensor]:
    """A function of one tensor; integers become floats first, unless `integers` is set."""
    impl = primitive.impl

    def function(input: Any) -> Tensor:
        if not isinstance(input, Tensor):
            input = _array_operand(input, function)
        value = input.value
        if not integers and value.dtype not in _FLOATS:
            value = value.astype(dtypes.default.numpy)
        out = impl(value)
        if input.record is not None and MODE.enabled:
            return make(out, record1(primitive, value, out, input.record))
        if isinstance(out, Tracer):
            return wrap(out)
        return make(out)

    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = f"{primitive.name}, elementwise."
    function.checks_itself = True  # type: ignore[attr-defined]
    return function


def _array_operand(value: Any, function: Any) -> Tensor:
    """An array, or a tracer of one, as a tensor."""
    if not isinstance(value, (np.ndarray, Tracer)):
        raise TensorTypeError(
            f"{function.__name__}(): argument 'input' (position 1) must be Tensor, not "
            f"{type(value).__name__}"
        )
    check_unmasked(value)
    return wrap(value)


def binary(primitive: Any, *, floats: bool = False) -> Callable[[Any, Any], Any]:
    """A function of two operands, at least one of them a tensor; `floats`: never of integers."""
    impl = primitive.impl

    def function(input: Any, other: Any) -> Any:
        if isinstance(input, Tensor):
            x = input.value
            x_record = input.record
            if isinstance(other, Tensor):
                y = other.value
                y_record = other.record
                dtype = x.dtype
                if dtype is not y.dtype or (floats and dtype not in _FLOATS):
                    return general(input, other)
            elif (type(other) is float or type(other) is int) and x.dtype in _FLOATS:
                y = other
                y_record = None
            else:
                return general(input, other)
        elif (type(input) is float or type(input) is int) and other.value.dtype in _FLOATS:
            x = input
            x_record = None
            y = other.value
            y_record = other.record
        else:
            return general(input, other)
        try:
            out = impl(x, y)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            return recovered(error, x, y)
        if (x_record is None and y_record is None) or not MODE.enabled:
            return lower(out) if isinstance(out, Tracer) else make(out)
        if isinstance(x, Tracer) or isinstance(y, Tracer):
            return lower(primitive.call2(face_of(input), face_of(other)))
        record = record2(primitive, x, y, out, x_record, y_record)
        if x_record is None or y_record is None:
            constant = input if x_record is None else other
            if isinstance(constant, Tensor) and constant.inference:
                refuse_inference(record, constant.value)
        return make(out, record)

    def general(input: Any, other: Any) -> Any:
        """Operands of different dtypes, numbers on the left, and values that are not tensors yet."""
        operands = [as_tensor_operand(input), as_tensor_operand(other)]
        if any(each is NotImplemented for each in operands):
            return NotImplemented
        arrays = [each.value for each in operands if isinstance(each, Tensor)]
        numbers = [each for each in operands if not isinstance(each, Tensor)]
        wanted = dtypes.joint_dtype(arrays, numbers)
        if floats and wanted.kind not in "fc":
            wanted = dtypes.default.numpy
        x, y = (cast(e, wanted) if isinstance(e, Tensor) else _scalar(e, wanted) for e in operands)
        left = x if isinstance(x, Tensor) else make(x)
        right = y if isinstance(y, Tensor) else make(y)
        return function(left, right)

    def recovered(error: Exception, x: Any, y: Any) -> Any:
        if "negative integer powers" in str(error):
            raise TensorError(str(error)) from None
        if isinstance(error, ValueError):
            raise shape_error(x, y) from None
        return function(make(np.asarray(x)), make(np.asarray(y, np.asarray(x).dtype)))

    function.__name__ = primitive.name
    function.__doc__ = f"{primitive.name} of two tensors, or of a tensor and a number."
    return function


def _scalar(number: Any, wanted: np.dtype[Any]) -> Any:
    """A number converted to a dtype; integers that are too large for it wrap around."""
    try:
        return wanted.type(number)
    except OverflowError:
        return np.asarray(number).astype(wanted)[()]


def refuse_inference(record: Any, value: Any) -> None:
    """Raise an error if an inference tensor would be saved for a backward pass."""
    saved = record[2] if record is not None else None
    if saved is value or (type(saved) is tuple and any(each is value for each in saved)):
        raise TensorError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make a "
            "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
            "`torch.inference_mode()`."
        )


def shape_error(x: Any, y: Any) -> RuntimeError:
    """The error for shapes that do not broadcast."""
    for k in range(1, min(np.ndim(x), np.ndim(y)) + 1):
        m, n = np.shape(x)[-k], np.shape(y)[-k]
        if m != n and m != 1 and n != 1:
            return TensorError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton "
                f"dimension {max(np.ndim(x), np.ndim(y)) - k}"
            )
    return TensorError(f"the shapes {np.shape(x)} and {np.shape(y)} cannot be broadcast")


def as_tensor_operand(value: Any) -> Any:
    """A tensor or a Python number, or NotImplemented for what is neither."""
    if isinstance(value, Tensor) or type(value) in PYTHON_SCALARS:
        return value
    if is_plain(value, np.generic):
        return value.item()
    if isinstance(value, (np.ndarray, Tracer)):
        check_unmasked(value)
        return lower(value)
    return NotImplemented


add = binary(elementwise.add)
sub = binary(elementwise.subtract)
mul = binary(elementwise.multiply)
true_divide = binary(elementwise.divide, floats=True)
_power = binary(elementwise.power)


def _refusing_zero(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap a division to raise an error for integers divided by zero, where NumPy only warns."""

    def divide(input: Any, other: Any) -> Any:
        result = function(input, other)
        if isinstance(result, Tensor) and result.dtype.category < 2:
            divisor = other.value if isinstance(other, Tensor) else other
            if not isinstance(divisor, Tracer) and np.any(divisor == 0):
                raise TensorError("ZeroDivisionError")
        return result

    divide.__name__, divide.__doc__ = function.__name__, function.__doc__
    return divide


remainder = _refusing_zero(binary(elementwise.remainder))
floor_divide = _refusing_zero(binary(UFUNCS[np.floor_divide]))


def _reflected(function: Callable[[Any, Any], Any], name: str | None = None) -> Any:
    def method(self: Any, other: Any) -> Any:
        result = function(other, self)
        return result if name is None or result is NotImplemented else named(result, name)

    return method


def power(self: Any, exponent: Any) -> Any:
    """x ** y."""
    result = _power(self, exponent)
    if result is NotImplemented or result.record is None:
        return result
    if isinstance(exponent, Tensor):
        return named(result, "PowBackward1" if isinstance(self, Tensor) else "PowBackward2")
    return result


def _matmul_name(x: int, y: int) -> str:
    return {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}.get(
        (x, y), "SqueezeBackward4" if x == 1 or y == 1 else "UnsafeViewBackward0"
    )


_product = binary(contraction.matmul)


def matmul(input: Any, other: Any) -> Any:
    """The matrix product of matrices, batches of matrices, or vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.matmul(torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return NotImplemented
    if MODE.autocast is not None:
        input, other = (
            each.to(MODE.autocast) if each.dtype is dtypes.float32 else each
            for each in (input, other)
        )
    x, y = input.value, other.value
    if x.dtype != y.dtype:
        raise TensorError(
            f"expected m1 and m2 to have the same dtype, but got: {_c_name(x)} != {_c_name(y)}"
        )
    m, n = x.ndim, y.ndim
    if not m or not n:
        raise TensorError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D"
        )
    if x.shape[-1] != (y.shape[-2] if n > 1 else y.shape[0]):
        raise product_error(x, y)
    result = _product(input, other)
    if result.record is not None and (m != 2 or n != 2):
        return named(result, _matmul_name(m, n))
    return result


def _c_name(value: Any) -> str:
    name = dtypes.of_numpy(value.dtype).legacy.lower()
    return "long int" if name == "long" else name


def product_error(x: Any, y: Any) -> RuntimeError:
    if x.ndim == y.ndim == 1:
        return TensorError(
            f"inconsistent tensor size, expected tensor [{x.shape[0]}] and src [{y.shape[0]}] to have "
            f"the same number of elements, but got {x.shape[0]} and {y.shape[0]} elements respectively"
        )
    if x.ndim == 2 and y.ndim == 1:
        return TensorError(
            f"size mismatch, got input ({x.shape[0]}), mat ({_by(x)}), vec ({len(y)})"
        )
    return TensorError(f"mat1 and mat2 shapes cannot be multiplied ({_by(x)} and {_by(y)})")


def _by(x: Any) -> str:
    rows = int(np.prod(x.shape[:-1])) if x.ndim != 1 else 1
    return f"{rows}x{x.shape[-1]}"


neg = unary(elementwise.negative, integers=True)
absolute = unary(elementwise.absolute, integers=True)
invert = unary(UFUNCS[np.invert], integers=True)
gt, ge, lt, le, eq, ne = (
    binary(UFUNCS[ufunc])
    for ufunc in (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
)
bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift = (
    binary(UFUNCS[ufunc])
    for ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift)
)


def _equal(self: Any, other: Any) -> Any:
    result = eq(self, other)
    return False if result is NotImplemented else result


def _unequal(self: Any, other: Any) -> Any:
    result = ne(self, other)
    return True if result is NotImplemented else result


for _name, _function in {
    "add": add,
    "sub": sub,
    "mul": mul,
    "truediv": true_divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "pow": power,
    "matmul": matmul,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": left_shift,
    "rshift": right_shift,
    "gt": gt,
    "ge": ge,
    "lt": lt,
    "le": le,
    "eq": _equal,
    "ne": _unequal,
    "neg": neg,
    "pos": lambda self: self,
    "abs": absolute,
    "invert": invert,
    "radd": _reflected(add),
    "rsub": _reflected(sub, "RsubBackward1"),
    "rmul": _reflected(mul),
    "rtruediv": _reflected(true_divide, "MulBackward0"),
    "rfloordiv": _reflected(floor_divide),
    "rmod": _reflected(remainder),
    "rpow": _reflected(power),
    "rmatmul": _reflected(matmul),
    "rand": _reflected(bitwise_and),
    "ror": _reflected(bitwise_or),
    "rxor": _reflected(bitwise_xor),
}.items():
    setattr(Tensor, f"__{_name}__", _function)
