"""What every stand-in for an array can do: operators, NumPy's protocols, Python's conversions.

The operators and methods themselves are installed from the vocabulary (`functrans.ops`) and from
the NumPy surface (`functrans.surface`), because the core does not know their primitives.
"""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.conversions import (
    conversion_error,
    refuse_assignment,
    warn_of_lost_derivative,
)
from functrans.core.dispatch import Tracer, concrete
from functrans.core.primitive import Primitive
from functrans.core.shapes import PYTHON_SCALARS, dtype_of, shape_of, spec_of
from functrans.core.subclasses import computes_plainly, no_plain_array
from functrans.core.views import is_mutable, overwrite

# What `np.f(tracer)` means. A value is a primitive or a function that calls primitives.
UFUNCS: dict[Any, Any] = {}
FUNCTIONS: dict[Any, Any] = {}
# Rules that are loaded when they are first needed: the module that holds the ufuncs, and the module
# that fills UFUNCS for them.
LAZY: dict[str, str] = {}

_ndarray, _float64 = np.ndarray, np.float64
_NUMBERS = frozenset(
    {np.ndarray, bool, int, float, complex, np.float64, np.float32, np.float16, np.int64, np.int32}
    | {np.complex128, np.complex64, np.bool_}
)


# What ends in a call of a ufunc, whose results are broadcast into `out`.
_BROADCASTING = frozenset(
    {np.clip, np.fix, np.outer, np.isposinf, np.isneginf}
    | {np.quantile, np.percentile, np.nanquantile, np.nanpercentile}
)


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
                interpreter = self.interpreter
                if len(inputs) == 1:
                    held = type(getattr(self, "value", None))
                    if held is _ndarray or held is _float64 or not _is_weak(self):
                        return interpreter.process1(primitive, self)
                    return interpreter.process1(primitive, _strong(self))
                if len(inputs) == 2:
                    x, y = inputs
                    other = y if x is self else x
                    if type(other) is _ndarray:
                        return interpreter.process2(primitive, x, y)
                    if isinstance(other, Tracer):
                        if other.interpreter is not interpreter:
                            interpreter, x, y = _top(x, y)
                    elif type(other) not in _NUMBERS:
                        other = as_operand(other)
                        x, y = (x, other) if x is self else (other, y)
                    # A ufunc of Python scalars alone follows NumPy's arithmetic, not Python's.
                    if _is_weak(self) and _is_weak(other):
                        x, y = _strong(x), _strong(y)
                    return interpreter.process2(primitive, x, y)
            if primitive is not None:
                return primitive(*map(_strong, inputs) if all(map(_is_weak, inputs)) else inputs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handler = FUNCTIONS.get(function)
        if handler is None:
            return call_plain(function, args, kwargs)
        if kwargs.get("out") is None:
            return handler(*args, **kwargs)
        target = kwargs.pop("out")
        result = handler(*args, **kwargs)
        if function not in _BROADCASTING:
            check_fits(target, result, f"numpy.{function.__name__}")
        return deliver(target, result, f"numpy.{function.__name__}")

    def __array__(self, *_: Any, **__: Any) -> Any:
        refuse_assignment()
        raise conversion_error()

    # Python's conversions: control flow sees concrete values.

    def __bool__(self) -> bool:
        refuse_assignment()
        if self.dtype.kind != "b" and not self.shape:
            nonzero: Any = np.not_equal(self, 0)
            return bool(concrete(nonzero))  # lanes need to agree on the truth, not on the value
        return bool(concrete(self))

    def __index__(self) -> int:
        return operator.index(concrete(self))

    def __int__(self) -> int:
        refuse_assignment()
        return int(concrete(self))

    def __float__(self) -> float:
        refuse_assignment()
        warn_of_lost_derivative(self, "float()")
        return float(concrete(self))

    def __complex__(self) -> complex:
        refuse_assignment()
        warn_of_lost_derivative(self, "complex()")
        return complex(concrete(self))

    def item(self, *index: int) -> Any:
        warn_of_lost_derivative(self, ".item()")
        return concrete(self).item(*index) if self.shape else _as_python(concrete(self))

    def tolist(self) -> Any:
        warn_of_lost_derivative(self, ".tolist()")
        return concrete(self).tolist() if self.shape else _as_python(concrete(self))

    def __copy__(self) -> Any:
        return self.snapshot()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.snapshot()


class ConcreteTracer(ArrayTracer):
    """A tracer that holds the very value it stands for, which may be a tracer of a lower level."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        value = self.value
        return value.shape if type(value) is _ndarray else shape_of(value)

    @property
    def dtype(self) -> np.dtype[Any]:
        value = self.value
        return value.dtype if type(value) is _ndarray else dtype_of(value)

    @property
    def spec(self) -> Any:
        return spec_of(self.value)

    def describe_value(self) -> str:
        return repr(self.value)


def _top(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """The interpreter for two tracers of different ones, and what it computes with."""
    if y.interpreter.level > x.interpreter.level:
        return y.interpreter, x if x.interpreter.level else x.value, y
    return x.interpreter, x, y if y.interpreter.level else y.value


def _is_weak(value: Any) -> bool:
    """Whether a value is a Python scalar, traced or not."""
    held = getattr(value, "value", value)
    if type(held) is _ndarray or type(held) is _float64:  # most are
        return False
    while isinstance(value, Tracer):
        if getattr(value, "value", None) is None:
            spec = getattr(value, "spec", None)
            return spec is not None and bool(spec.weak)
        value = value.value
    return type(value) in PYTHON_SCALARS


def _strong(value: Any) -> Any:
    """A Python scalar, if it is traced, as a NumPy scalar."""
    return value.astype(value.dtype) if isinstance(value, Tracer) else value  # type: ignore[attr-defined]


def in_numpy(value: Any) -> Any:
    """A traced Python scalar as one of NumPy's, whose arithmetic gives inf or nan and does not raise."""
    return _strong(value) if isinstance(value, Tracer) and _is_weak(value) else value


def _as_python(scalar: Any) -> Any:
    return scalar.item() if isinstance(scalar, (np.generic, np.ndarray)) else scalar


def as_operand(other: Any) -> Any:
    """Accept what NumPy accepts as the other operand: lists and array-likes become arrays."""
    if type(other) is np.ndarray or isinstance(other, (np.generic, Tracer)):
        return other
    return numeric(as_any_array(other), other)


def as_any_array(value: Any) -> Any:
    """The same for a value that need not be made of numbers, such as None."""
    if isinstance(value, (np.ndarray, np.generic, Tracer)):
        return value
    if isinstance(value, (list, tuple)) and value:
        parts = [as_any_array(part) for part in value]
        if any(isinstance(part, Tracer) for part in parts):
            return np.stack(list(map(numeric, parts, value)))
    return np.asarray(value)


def numeric(array: Any, given: Any) -> Any:
    """An operand that was made an array, if it is one of numbers."""
    if isinstance(array, np.ndarray) and not computes_plainly(type(array)):
        raise errors.InputTypeError(
            f"an operand is {no_plain_array(array)} This is at {errors.user_location()}."
        )
    if array.dtype.kind not in "biufc":
        raise errors.InputTypeError(
            f"an operand of type {type(given).__name__} is not a number or an array of numbers, at "
            f"{errors.user_location()}. Convert it to a numeric array first."
        )
    return array


def call_plain(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function without a rule, which plain arrays do not need."""

    def plain(value: Any) -> Any:
        if isinstance(value, Tracer):
            if value.interpreter.level:
                raise missing_rule(function)
            return value.value
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        return value

    return function(*map(plain, args), **{key: plain(value) for key, value in kwargs.items()})


def missing_rule(function: Any, what: str = "") -> errors.MissingRuleError:
    """The error for a NumPy function that has no entry in the tables."""
    name = f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}{what}"
    table = "UFUNCS" if isinstance(function, np.ufunc) else "FUNCTIONS"
    return errors.MissingRuleError(
        f"{name} has no rule for traced values, at {errors.user_location()}. Write it with NumPy "
        f"functions that have one, or define it: functrans.core.tracer.{table}"
        f"[{name}] = a function of the same signature that calls functions with rules."
    )


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer a ufunc call that is not a plain call: a method such as reduce, or keywords."""
    targets = kwargs.pop("out", None)
    casting = kwargs.pop("casting", "same_kind")
    if targets is not None:
        targets = targets if isinstance(targets, tuple) else (targets,)
    if ufunc not in UFUNCS:
        _load_rules(ufunc)
    if (ufunc, method) in FUNCTIONS:
        result = FUNCTIONS[ufunc, method](*inputs, **kwargs)
    elif method == "__call__":
        result = _call_with_keywords(ufunc, inputs, targets, **kwargs)
    elif method in FUNCTIONS:  # a method that is written once for all ufuncs
        result = FUNCTIONS[method](ufunc, *inputs, **kwargs)
    else:
        raise missing_rule(ufunc, f".{method}")
    if targets is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    if method != "__call__":
        check_fits(targets[0], result, f"numpy.{ufunc.__name__}.{method}")
    written = tuple(
        value if target is None else deliver(target, value, f"numpy.{ufunc.__name__}", casting)
        for target, value in zip(targets, results, strict=True)
    )
    return written if isinstance(result, tuple) else written[0]


def _call_with_keywords(
    ufunc: Any,
    inputs: tuple[Any, ...],
    targets: Any,
    where: Any = True,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    **kwargs: Any,
) -> Any:
    if kwargs or (ufunc not in UFUNCS and any(isinstance(x, Tracer) for x in inputs)):
        raise missing_rule(ufunc, "".join(f" with {key}=" for key in kwargs))
    if dtype is not None:
        inputs = tuple(as_operand(x).astype(dtype) for x in inputs)
    if where is True:
        return ufunc(*inputs)
    # Nothing is computed where `where` is false, so neither is a derivative: 0 * inf would be nan.
    harmless = _HARMLESS.get(ufunc, 1)
    inputs = tuple(x if type(x) in PYTHON_SCALARS else as_operand(x) for x in inputs)
    inputs = tuple(np.where(where, x, np.asarray(harmless, dtype_of(x))) for x in inputs)
    result = ufunc(*inputs)
    results = result if isinstance(result, tuple) else (result,)
    # Where `where` is false, entries keep what the target has; without a target they are undefined.
    befores = (None,) * len(results) if targets is None else targets
    chosen = tuple(
        np.where(where, value, dtype_of(value).type(0) if before is None else before)
        for value, before in zip(results, befores, strict=True)
    )
    return chosen if isinstance(result, tuple) else chosen[0]


_HARMLESS = {np.arcsin: 0.5, np.arccos: 0.5, np.arctanh: 0.5, np.arccosh: 2}


def check_targets(targets: tuple[Any, ...], name: str) -> None:
    """A traced result cannot go into a plain array."""
    for target in targets:
        if target is not None and not isinstance(target, Tracer):
            raise errors.AssignmentError(
                f"a traced result of {name} cannot be written into a plain array (`array += x`, or "
                f"out=array), at {errors.user_location()}. The plain array cannot hold the "
                "derivative: write `array = array + x`, which makes a new one, or make the array "
                "with np.zeros_like(x, shape=...) of a traced x, or functrans.numpy.zeros(...), which may be "
                "assigned traced values."
            )


def check_fits(target: Any, value: Any, name: str) -> None:
    """The result of a reduction, or of any function that is no ufunc, has the shape of its `out`."""
    if shape_of(target) != shape_of(value):
        raise ValueError(
            f"{name}: the result has shape {shape_of(value)}, and out has shape {shape_of(target)}, "
            f"at {errors.user_location()}. They must be equal."
        )


def deliver(target: Any, value: Any, name: str, casting: Any = "same_kind") -> Any:
    """Write a result into its `out=`; returns that."""
    if isinstance(target, Tracer):
        return assign(target, value, casting)
    if isinstance(value, Tracer):
        if value.interpreter.level:
            check_targets((target,), name)
        value = value.value
    np.copyto(target, value, casting)
    return target


def assign(target: Any, value: Any, casting: Any) -> Any:
    """Write a value into a traced array; installed by the vocabulary."""
    raise NotImplementedError


def install_assign(function: Any) -> None:
    """Say how a result is written into a traced array."""
    global assign
    assign = function


def _load_rules(ufunc: Any) -> None:
    """Load the rules for this ufunc, if some are waiting."""
    for owner, rules in LAZY.items():
        if getattr(sys.modules.get(owner), ufunc.__name__, None) is ufunc:
            importlib.import_module(rules)


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
                interpreter, self, other = _top(self, other)
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
        """x += y; a scalar is not changed: its name is given to the result."""
        result = forward(self, other)
        if result is NotImplemented or not is_mutable(self):
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the "
                f"broadcast shape {result.shape}"
            )
        if result.dtype != self.dtype:
            if not np.can_cast(result.dtype, self.dtype, "same_kind"):
                raise TypeError(
                    f"Cannot cast ufunc {name!r} output from {result.dtype} to {self.dtype} with "
                    "casting rule 'same_kind'"
                )
            result = result.astype(self.dtype)
        overwrite(self, result)
        return self

    setattr(ArrayTracer, f"__{name}__", forward)
    setattr(ArrayTracer, f"__i{name}__", in_place)
    if reflected:
        setattr(ArrayTracer, f"__r{name}__", backward)


_ARRAY_LIKE = (np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def install_method(name: str, function: Callable[..., Any]) -> None:
    """Make `x.name(...)` mean function(x, ...)."""
    setattr(ArrayTracer, name, function)
