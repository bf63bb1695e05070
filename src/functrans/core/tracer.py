"""What every stand-in for an array can do: operators, NumPy's protocols, Python's conversions.

The operators and methods themselves are installed from the vocabulary (`functrans.ops`) and from
the NumPy surface (`functrans.numpy`), because the core does not know their primitives.
"""

from __future__ import annotations

import dis
import importlib
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete
from functrans.core.primitive import Primitive
from functrans.core.shapes import PYTHON_SCALARS, dtype_of, shape_of, spec_of

# What `np.f(tracer)` means. A value is a primitive or a function that calls primitives.
UFUNCS: dict[Any, Any] = {}
FUNCTIONS: dict[Any, Any] = {}
# Rules that are loaded when they are first needed: the module that holds the ufuncs, and the module
# that fills UFUNCS for them.
LAZY: dict[str, str] = {}

_NUMBERS = frozenset(
    {np.ndarray, bool, int, float, complex, np.float64, np.float32, np.float16, np.int64, np.int32}
    | {np.complex128, np.complex64, np.bool_}
)
_STORE = dis.opmap["STORE_SUBSCR"]


class ArrayTracer(Tracer):
    """A stand-in for an array; interpreters derive their own kind from it."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]  # as for np.ndarray: == works entry by entry
    __array_priority__ = 1000.0

    # What it looks like. Interpreters define `shape` and `dtype`.

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for length in self.shape:
            total *= length
        return total

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))  # type: ignore[index]

    def describe_value(self) -> str:
        """What this tracer holds, for `repr`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        transform = self.interpreter.transform
        return f"<{self.dtype}{list(self.shape)} traced by {transform}: {self.describe_value()}>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec) if not spec else format(concrete(self), spec)

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            primitive = UFUNCS.get(ufunc)
            if isinstance(primitive, Primitive):
                if len(inputs) == 1:
                    x = _strong(self) if _is_weak(self) else self
                    return self.interpreter.process1(primitive, x)
                if len(inputs) == 2:
                    x, y = inputs
                    other = y if x is self else x
                    interpreter = self.interpreter
                    if isinstance(other, Tracer):
                        if other.interpreter.level > interpreter.level:
                            interpreter = other.interpreter
                    elif type(other) not in _NUMBERS:
                        other = as_operand(other)
                        x, y = (x, other) if x is self else (other, y)
                    # A ufunc of Python scalars alone follows NumPy's arithmetic, not Python's.
                    if type(other) is not np.ndarray and _is_weak(self) and _is_weak(other):
                        x, y = _strong(x), _strong(y)
                    return interpreter.process2(primitive, x, y)
            if primitive is not None:
                return primitive(*map(_strong, inputs) if all(map(_is_weak, inputs)) else inputs)
        return call_ufunc_method(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handler = FUNCTIONS.get(function)
        if handler is None:
            raise missing_rule(function)
        return handler(*args, **kwargs)

    def __array__(self, *_: Any, **__: Any) -> Any:
        _refuse_assignment()
        raise errors.ArrayConversionError(
            f"a traced value cannot become a plain array, at {errors.user_location()}. np.array "
            "and np.asarray would cut it off from its derivative. To build an array from traced "
            "values use functrans.numpy.array([...]) or np.stack([...]); to fill one in part, "
            "np.where(mask, x, np.zeros_like(x)); to index a plain array with a traced one, "
            "functrans.numpy.take(array, x); for array.dot(x), array @ x."
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise errors.AssignmentError(
            f"a traced array cannot be assigned to, at {errors.user_location()}. Build the new "
            "array instead: np.where(mask, value, x), np.concatenate([...]) or np.stack([...])."
        )

    def _in_place(self, *_: Any, **__: Any) -> Any:
        raise errors.AssignmentError(
            f"a method that changes a traced array in place was called, at "
            f"{errors.user_location()}. Make a new array instead: np.sort(x), np.full_like(x, v), "
            "np.where(mask, v, x)."
        )

    sort = fill = put = partition = resize = _in_place

    # Python's conversions: control flow sees concrete values.

    def __bool__(self) -> bool:
        _refuse_assignment()
        if self.dtype.kind != "b" and not self.shape:
            nonzero: Any = np.not_equal(self, 0)
            return bool(concrete(nonzero))  # lanes need to agree on the truth, not on the value
        return bool(concrete(self))

    def __index__(self) -> int:
        return operator.index(concrete(self))

    def __int__(self) -> int:
        _refuse_assignment()
        return int(concrete(self))

    def __float__(self) -> float:
        _refuse_assignment()
        _warn_of_lost_derivative(self, "float()")
        return float(concrete(self))

    def __complex__(self) -> complex:
        _refuse_assignment()
        _warn_of_lost_derivative(self, "complex()")
        return complex(concrete(self))

    def item(self, *index: int) -> Any:
        _warn_of_lost_derivative(self, ".item()")
        return concrete(self).item(*index) if self.shape else _as_python(concrete(self))

    def tolist(self) -> Any:
        _warn_of_lost_derivative(self, ".tolist()")
        return concrete(self).tolist() if self.shape else _as_python(concrete(self))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class ConcreteTracer(ArrayTracer):
    """A tracer that holds the very value it stands for, which may be a tracer of a lower level."""

    __slots__ = ("value",)

    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.value)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.value)

    @property
    def spec(self) -> Any:
        return spec_of(self.value)

    def describe_value(self) -> str:
        return repr(self.value)


def _is_weak(value: Any) -> bool:
    """Whether a value is a Python scalar, traced or not."""
    held = getattr(value, "value", value)
    if type(held) is np.ndarray or type(held) is np.float64:  # most are
        return False
    while isinstance(value, Tracer):
        if getattr(value, "value", None) is None:
            spec = getattr(value, "spec", None)
            return spec is not None and bool(spec.weak)
        value = value.value  # type: ignore[attr-defined]
    return type(value) in PYTHON_SCALARS


def _strong(value: Any) -> Any:
    """A Python scalar, if it is traced, as a NumPy scalar."""
    return value.astype(value.dtype) if isinstance(value, Tracer) else value  # type: ignore[attr-defined]


def _as_python(scalar: Any) -> Any:
    return scalar.item() if isinstance(scalar, (np.generic, np.ndarray)) else scalar


def as_operand(other: Any) -> Any:
    """Accept what NumPy accepts as the other operand: lists and array-likes become arrays."""
    if isinstance(other, (np.ndarray, np.generic)):
        return other
    array = np.asarray(other)
    if array.dtype.kind not in "biufc":
        raise errors.InputTypeError(
            f"an operand of type {type(other).__name__} is not a number or an array of numbers, at "
            f"{errors.user_location()}. Convert it to a numeric array first."
        )
    return array


def _refuse_assignment() -> None:
    """NumPy's `array[i] = tracer` asks for float(tracer): refuse, since it drops the derivative."""
    frame = errors.user_frame()
    if frame is not None and frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _STORE:
        raise errors.AssignmentError(
            f"a traced value cannot be assigned into a plain array, at {errors.user_location()}. "
            "The plain array cannot hold the derivative. Collect the values in a list and call "
            "np.stack(list) or functrans.numpy.array(list), or choose entries with "
            "np.where(mask, x, np.zeros_like(x))."
        )


def _warn_of_lost_derivative(tracer: Tracer, conversion: str) -> None:
    value: Any = tracer
    while isinstance(value, Tracer):
        if value.interpreter.differentiates and value.dtype.kind in "fc":  # type: ignore[attr-defined]
            warnings.warn(
                f"{conversion} of a value that is being differentiated gives a plain number, at "
                f"{errors.user_location()}: no derivative flows through it. Use NumPy's functions "
                "(np.sin, not math.sin), or functrans.stop_gradient(x) to say that it is meant.",
                errors.DerivativeWarning,
                stacklevel=3,
            )
            return
        value = getattr(value, "value", None)


def missing_rule(function: Any) -> errors.MissingRuleError:
    """The error for a NumPy function that has no entry in the tables."""
    name = f"{getattr(function, '__module__', 'numpy')}.{function.__name__}"
    return errors.MissingRuleError(
        f"{name} has no rule for traced values, at {errors.user_location()}. Write it with NumPy "
        "functions that have one, or define it: functrans.core.tracer.FUNCTIONS"
        f"[{name}] = a function of the same signature that calls functions with rules."
    )


def call_ufunc_method(
    ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Answer a ufunc call that is not a plain call: a method such as reduce, or keywords."""
    handler = FUNCTIONS.get((ufunc, method))
    if handler is not None:
        return handler(*inputs, **kwargs)
    if ufunc not in UFUNCS and _load_rules(ufunc):
        return getattr(ufunc, method)(*inputs, **kwargs)
    name = f"numpy.{ufunc.__name__}"
    out = kwargs.get("out")
    if out is not None:
        raise errors.AssignmentError(
            f"a traced result of {name} cannot be written into a plain array (`array += x`, or "
            f"out=array), at {errors.user_location()}. The plain array cannot hold the derivative: "
            "write `array = array + x`, which makes a new one."
        )
    if method == "__call__" and kwargs:
        given = ", ".join(f"{key}=" for key in kwargs)
        raise errors.MissingRuleError(
            f"{name} with {given} has no rule for traced values, at {errors.user_location()}. Call "
            f"{name}(...) without it, and use np.where or .astype on the result."
        )
    if method != "__call__":
        name = f"{name}.{method}"
    raise errors.MissingRuleError(
        f"{name} has no rule for traced values, at {errors.user_location()}. Write it with NumPy "
        "functions that have one, or define it: functrans.core.tracer.UFUNCS"
        f"[{name}] = a function of the same signature that calls functions with rules."
    )


def _load_rules(ufunc: Any) -> bool:
    """Whether rules for this ufunc were waiting to be loaded, and now are."""
    for owner, rules in LAZY.items():
        if getattr(sys.modules.get(owner), ufunc.__name__, None) is ufunc:
            importlib.import_module(rules)
            return ufunc in UFUNCS
    return False


def install_unary(name: str, primitive: Primitive) -> None:
    """Make an operator of one operand (`-x`) mean a primitive."""

    def method(self: Any) -> Any:
        return self.interpreter.process1(primitive, self)

    setattr(ArrayTracer, f"__{name}__", method)


def install_binary(name: str, primitive: Primitive, *, reflected: bool = True) -> None:
    """Make an operator of two operands (`x * y`, and y * x) mean a primitive."""

    def forward(self: Any, other: Any) -> Any:
        interpreter = self.interpreter
        if type(other) not in _NUMBERS:
            if type(other) is type(self) and other.interpreter is interpreter:
                pass
            elif isinstance(other, Tracer):
                if other.interpreter.level > interpreter.level:
                    interpreter = other.interpreter
            elif isinstance(other, _ARRAY_LIKE):
                other = as_operand(other)
            else:
                return NotImplemented
        return interpreter.process2(primitive, self, other)

    def backward(self: Any, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            if not isinstance(other, _ARRAY_LIKE):
                return NotImplemented
            other = as_operand(other)
        return self.interpreter.process2(primitive, other, self)

    def in_place(self: Any, other: Any) -> Any:
        """x += y makes a new array, with the shape and dtype that NumPy would have kept."""
        result = forward(self, other)
        if result is NotImplemented or not self.shape:
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the "
                f"broadcast shape {result.shape}"
            )
        return (
            result if result.dtype == self.dtype else result.astype(self.dtype, casting="same_kind")
        )

    setattr(ArrayTracer, f"__{name}__", forward)
    setattr(ArrayTracer, f"__i{name}__", in_place)
    if reflected:
        setattr(ArrayTracer, f"__r{name}__", backward)


_ARRAY_LIKE = (np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def install_method(name: str, function: Callable[..., Any]) -> None:
    """Make `x.name(...)` mean function(x, ...)."""
    setattr(ArrayTracer, name, function)
