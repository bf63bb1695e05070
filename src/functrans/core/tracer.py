"""The common behavior of all tracers: operators, NumPy's protocols, Python's conversions.

The operators and methods themselves are installed by the primitives (`functrans.ops`) and the NumPy
surface (`functrans.surface`), because the core does not know their primitives.
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
    learn_assignment,
    learn_decision,
    note_text,
    plain_number,
    plain_value,
    refuse_assignment,
    stays_traced,
)
from functrans.core.dispatch import Tracer, concrete, is_plain, running_interpreters
from functrans.core.likeness import (
    ArrayMethod,
    Conversion,
    NumPyMethod,
    TracerType,
    class_of,
    deny_to_user,
    is_weak,
    number_methods,
)
from functrans.core.primitive import Primitive
from functrans.core.shapes import PYTHON_SCALARS, dtype_of, shape_of, spec_of
from functrans.core.subclasses import computes_plainly, in_plain, no_plain_array, plain_array
from functrans.core.views import is_mutable, overwrite

# What `np.f(tracer)` means. A value is a primitive or a function that calls primitives.
UFUNCS: dict[Any, Any] = {}
FUNCTIONS: dict[Any, Any] = {}
# Rules that are loaded on first use: the module that holds the ufuncs, and the module that fills
# UFUNCS for them.
LAZY: dict[str, str] = {}

_ndarray, _float64 = np.ndarray, np.float64
_NUMBERS = frozenset(
    {np.ndarray, bool, int, float, complex, np.float64, np.float32, np.float16, np.int64, np.int32}
    | {np.complex128, np.complex64, np.bool_}
)


# Functions that end in a call of a ufunc, whose results are broadcast into `out`.
_BROADCASTING = frozenset(
    {np.clip, np.fix, np.outer, np.isposinf, np.isneginf}
    | {np.quantile, np.percentile, np.nanquantile, np.nanpercentile}
)


def _setting(name: str) -> Callable[[Any, Any], None]:
    def change(x: Any, value: Any) -> None:
        getattr(x, f"_set_{name}")(value)  # installed by the surface

    return change


def _length(tracer: Any) -> int:
    shape: tuple[int, ...] = tracer.shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def _entries(tracer: Any) -> Iterator[Any]:
    if not tracer.shape:
        raise TypeError("iteration over a 0-d array")
    return (tracer[i] for i in range(tracer.shape[0]))


# An assignment can turn a tracer into a tracer of another kind: `tracer.__class__ = kind`.
_become: Any = object.__dict__["__class__"].__set__


class ArrayTracer(Tracer, metaclass=TracerType):
    """A stand-in for an array; interpreters derive their own kind from it."""

    __slots__ = ()

    # `isinstance(x, C)` reads the class: to the user, a tracer is the value it stands for.
    __class__ = property(class_of, _become)
    __array_priority__ = 1000.0

    def __init_subclass__(cls) -> None:
        # The name that Python's own messages have: unsupported operand type(s) for +: 'TracedArray' ...
        cls.__name__ = cls.__qualname__ = "TracedArray"
        for name in ("shape", "dtype"):  # which each kind reads in its own way, and all set in one
            read = cls.__dict__.get(name)
            if isinstance(read, property):
                setattr(cls, name, read.setter(_setting(name)))

    def __hash__(self) -> int:
        # As for np.ndarray, == works elementwise. A number is refused as well: a cache with numbers as
        # keys would return one traced value's result for another.
        raise errors.InputTypeError(
            "unhashable type: a traced value cannot be a key of a dict, an element of a set or an "
            f"argument of a cached function, at {errors.user_location()}. Use a plain key, such as a "
            "name or a position."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise errors.InputTypeError(
            f"a traced value cannot be pickled, at {errors.user_location()}: it has no value outside "
            "its transform. Return it from the function, with has_aux=True if it is an extra result."
        )

    # What it looks like. Interpreters define `shape` and `dtype`.

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        if is_weak(self):
            deny_to_user()
        return len(self.shape)

    @property
    def size(self) -> int:
        if is_weak(self):
            deny_to_user()
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

    __len__ = ArrayMethod(_length, "object of type '{}' has no len()")
    __iter__ = ArrayMethod(_entries, "'{}' object is not iterable")

    def describe_value(self) -> str:
        """The value of this tracer, for `repr`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        transform = self.interpreter.transform
        return f"<{self.dtype}{list(self.shape)} traced by {transform}: {self.describe_value()}>"

    def __format__(self, spec: str) -> str:
        if not spec:
            return format(repr(self), spec)
        text = format(concrete(self), spec)
        note_text(self, text)
        return text

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            primitive = UFUNCS.get(ufunc)
            if isinstance(primitive, Primitive):
                interpreter = self.interpreter
                if len(inputs) == 1:
                    held = type(getattr(self, "value", None))
                    if held is _ndarray or held is _float64 or not is_weak(self):
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
                    if is_weak(self) and is_weak(other):
                        x, y = _strong(x), _strong(y)
                    return interpreter.process2(primitive, x, y)
            if primitive is not None:
                return primitive(*map(_strong, inputs) if all(map(is_weak, inputs)) else inputs)
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

    @NumPyMethod
    def __array__(self, *_: Any, **__: Any) -> Any:
        refuse_assignment(self)
        raise conversion_error(self)

    # Python's conversions: control flow sees concrete values.

    def __bool__(self) -> bool:
        refuse_assignment(self)
        learn_decision()
        if self.dtype.kind != "b" and not self.shape:
            nonzero: Any = np.not_equal(self, 0)
            return bool(concrete(nonzero))  # lanes need to agree on the truth, not on the value
        return bool(concrete(self))

    @Conversion
    def __index__(self) -> int:
        learn_decision()
        return operator.index(concrete(self))

    @Conversion
    def __int__(self) -> int:
        return int(plain_number(self, int))

    @Conversion
    def __float__(self) -> float:
        return float(plain_number(self, float))

    @Conversion
    def __complex__(self) -> complex:
        return complex(plain_number(self, complex))

    @NumPyMethod
    def item(self, *index: int) -> Any:
        if stays_traced(self):
            return self._entry(*index)
        value = plain_value(self, "item")
        return value.item(*index) if self.shape else _as_python(value)

    def _entry(self, *index: int) -> Any:
        """x.item(i), traced."""
        x: Any = self
        if len(index) > 1 or not all(isinstance(i, int) for i in index):
            return in_python(x[index] if len(index) > 1 else x[index[0]])
        if not index and x.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return in_python(x.reshape(-1)[index[0] if index else 0])

    @NumPyMethod
    def tolist(self) -> Any:
        if stays_traced(self):
            return [each.tolist() for each in self] if self.shape else in_python(self)
        value = plain_value(self, "tolist")
        return value.tolist() if self.shape else _as_python(value)

    def __copy__(self) -> Any:
        return self.snapshot()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.snapshot()


for _name, _method in number_methods().items():
    setattr(ArrayTracer, _name, _method)


class ConcreteTracer(ArrayTracer):
    """A tracer that holds the value it stands for, which may be a tracer of a lower level."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        value = self.value
        kind = type(value)
        if kind is _ndarray or kind is _float64:
            return value.shape  # type: ignore[no-any-return]
        if is_weak(self):
            deny_to_user()
        return shape_of(value)

    @property
    def dtype(self) -> np.dtype[Any]:
        value = self.value
        kind = type(value)
        if kind is _ndarray or kind is _float64:
            return value.dtype  # type: ignore[no-any-return]
        if is_weak(self):
            deny_to_user()
        return dtype_of(value)

    @property
    def spec(self) -> Any:
        return spec_of(self.value)

    def describe_value(self) -> str:
        return repr(self.value)


class HiddenTracer(ArrayTracer):
    """A tracer that does not hold the very value it stands for: it holds all lanes of it, or none."""

    __slots__ = ()

    def __pow__(self, other: Any) -> Any:
        # By this exponent alone, NumPy takes an array of booleans to int8, and a single boolean to int64.
        if type(other) is int and other == 2 and self.dtype.kind == "b":
            traced: Any = self
            return np.square(traced) if is_mutable(self) else traced.astype(np.int64) ** 2
        return super().__pow__(other)  # type: ignore[misc]


def _top(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """The interpreter for two tracers of different ones, and what it computes with."""
    if y.interpreter.level > x.interpreter.level:
        return y.interpreter, x if x.interpreter.level else x.value, y
    return x.interpreter, x, y if y.interpreter.level else y.value


def _strong(value: Any) -> Any:
    """A Python scalar, if it is traced, as a NumPy scalar."""
    return value.interpreter.strong(value) if isinstance(value, Tracer) else value


def in_numpy(value: Any) -> Any:
    """A traced Python scalar as a NumPy scalar, whose arithmetic gives inf or nan and does not raise."""
    return _strong(value) if isinstance(value, Tracer) and is_weak(value) else value


def in_python(value: Any) -> Any:
    """A traced number as one of Python's, whose dtype adapts to other operands, where its value is known."""
    if isinstance(value, ConcreteTracer):
        number: Any = value
        number = number[()].snapshot()
        number.value = in_python(number.value)
        return number
    return _as_python(value)


def _as_python(scalar: Any) -> Any:
    return scalar.item() if is_plain(scalar, (np.generic, np.ndarray)) else scalar


def as_operand(other: Any) -> Any:
    """Accept what NumPy accepts as the other operand: lists and array-likes become arrays."""
    if type(other) is np.ndarray or isinstance(other, (np.generic, Tracer)):
        return other
    if _is_fraction(other):
        return float(other)
    return numeric(as_any_array(other), other)


def as_any_array(value: Any) -> Any:
    """The same for a value that may not be numeric, such as None."""
    if isinstance(value, (np.ndarray, np.generic, Tracer)):
        return value
    if isinstance(value, (list, tuple)) and value:
        parts = [as_any_array(part) for part in value]
        if any(isinstance(part, Tracer) for part in parts):
            return np.stack(list(map(numeric, parts, value)))
    refuse_endless(value)
    return np.asarray(value)


_ARRAY_PROTOCOLS = ("__iter__", "__array__", "__array_interface__", "__array_struct__")


def refuse_endless(value: Any) -> None:
    """Refuse what NumPy would read for ever: np.c_ has an item for every index, though its length is 0."""
    kind = type(value)
    if (
        hasattr(kind, "__getitem__")
        and hasattr(kind, "__len__")
        and not any(hasattr(kind, name) for name in _ARRAY_PROTOCOLS)
        and not len(value)
    ):
        raise _no_numbers(value, "Pass an array")


def _no_numbers(given: Any, remedy: str) -> errors.InputTypeError:
    return errors.InputTypeError(
        f"an operand of type {type(given).__name__} is not a number or an array of numbers, at "
        f"{errors.user_location()}. {remedy}."
    )


def numeric(array: Any, given: Any) -> Any:
    """An operand that was converted to an array; refused if the array is not numeric."""
    if is_plain(array, np.ndarray) and not computes_plainly(type(array)):
        raise errors.InputTypeError(
            f"an operand is {no_plain_array(array)}, at {errors.user_location()}. {in_plain(array)}"
        )
    if array.dtype.kind not in "biufc":
        raise _no_numbers(given, "Convert it: np.array(operand, dtype=float)")
    return plain_array(array) if is_plain(array, np.ndarray) else array


def call_plain(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function that has no rule, which works on plain arrays."""

    def plain(value: Any) -> Any:
        if isinstance(value, Tracer):
            if value.interpreter.level:
                raise missing_rule(function)
            return value.value
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        return value

    return function(
        *[plain(arg) for arg in args], **{key: plain(value) for key, value in kwargs.items()}
    )


def missing_rule(function: Any, what: str = "") -> errors.MissingRuleError:
    """The error for a NumPy function that has no entry in the tables."""
    name = f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}{what}"
    if function.__name__.startswith("save"):
        remedy = "Return x, with has_aux=True if it is an extra result, and save it there."
    elif any(interpreter.differentiates for interpreter in running_interpreters()):
        remedy = "Define one: functrans.define_primitive(name, function, jvp=...)."
    else:
        remedy = "Call it with plain arrays: functrans.pure_callback(function, result_shape, x)."
    return errors.MissingRuleError(
        f"{name} has no rule for traced values, at {errors.user_location()}. {remedy}"
    )


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Handle a ufunc call that is not a plain call: a method such as reduce, or keywords."""
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
    elif method in FUNCTIONS:  # a method implemented once for all ufuncs
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
    if not isinstance(result, tuple):
        return written[0]
    # A result without a target has the shape that all of them are broadcast to.
    shape = next(
        (shape_of(target) for target in targets if target is not None), shape_of(result[0])
    )
    return tuple(
        value if shape_of(value) == shape else np.broadcast_to(value, shape).copy()
        for value in written
    )


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
    # Where `where` is false, entries keep the target's values; without a target they are undefined.
    befores = (None,) * len(results) if targets is None else targets
    chosen = tuple(
        np.where(where, value, dtype_of(value).type(0) if before is None else before)
        for value, before in zip(results, befores, strict=True)
    )
    return chosen if isinstance(result, tuple) else chosen[0]


_HARMLESS = {np.arcsin: 0.5, np.arccos: 0.5, np.arctanh: 0.5, np.arccosh: 2}


def check_targets(targets: tuple[Any, ...], name: str) -> None:
    """Refuse to write a traced result into a plain array."""
    for target in targets:
        if target is not None and not isinstance(target, Tracer):
            learn_assignment(target)
            raise errors.AssignmentError(
                f"a traced result of {name} cannot be written into a plain array (`array += x`, or "
                f"out=array), at {errors.user_location()}: a plain array cannot hold a derivative. Make "
                "one that can, with functrans.numpy.zeros(shape) or functrans.numpy.array(array)."
            )


def check_fits(target: Any, value: Any, name: str) -> None:
    """The result of a reduction, or of any function that is not a ufunc, has the shape of its `out`."""
    if shape_of(target) != shape_of(value):
        raise ValueError(
            f"{name}: the result has shape {shape_of(value)}, but out has shape {shape_of(target)}, "
            f"at {errors.user_location()}. They must be equal."
        )


def deliver(target: Any, value: Any, name: str, casting: Any = "same_kind") -> Any:
    """Write a result into its `out=`, and return `out`."""
    if isinstance(target, Tracer):
        return assign(target, value, casting)
    if isinstance(value, Tracer):
        if value.interpreter.level:
            check_targets((target,), name)
        value = value.value
    np.copyto(target, value, casting)
    return target


def assign(target: Any, value: Any, casting: Any) -> Any:
    """Write a value into a traced array; installed by `functrans.ops`."""
    raise NotImplementedError


def install_assign(function: Any) -> None:
    """Set how a result is written into a traced array."""
    global assign
    assign = function


def _load_rules(ufunc: Any) -> None:
    """Load the rules for this ufunc, if there are any to load."""
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
    repeats = name == "mul"

    def forward(self: Any, other: Any) -> Any:
        interpreter = self.interpreter
        if type(other) not in _NUMBERS:
            if type(other) is type(self) and other.interpreter is interpreter:
                pass
            elif isinstance(other, Tracer):
                interpreter, self, other = _top(self, other)
            elif isinstance(other, _ARRAY_LIKE) or _is_fraction(other):
                if repeats and _repeats(self, other):
                    return _again(other, self)
                other = as_operand(other)
            else:
                return NotImplemented
        return interpreter.process2(primitive, self, other)

    def backward(self: Any, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            if not (isinstance(other, _ARRAY_LIKE) or _is_fraction(other)):
                return NotImplemented
            if repeats and _repeats(self, other):
                return _again(other, self)
            other = as_operand(other)
        return self.interpreter.process2(primitive, other, self)

    def in_place(self: Any, other: Any) -> Any:
        """x += y; a scalar is not changed: its name is rebound to the result."""
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

    def comparing(self: Any, other: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "")[:6] == "scipy.":
            learn_decision()  # its result is a plain boolean if the value is known
        return forward(self, other)

    setattr(ArrayTracer, f"__{name}__", comparing if name in _COMPARISONS else forward)
    setattr(ArrayTracer, f"__i{name}__", in_place)
    if reflected:
        setattr(ArrayTracer, f"__r{name}__", backward)


_COMPARISONS = ("lt", "le", "gt", "ge")


def _again(values: Any, count: Any) -> Any:
    return values * operator.index(count)


def _repeats(x: Any, other: Any) -> bool:
    """Whether x * other repeats a list x times, as it does for integers of Python and NumPy."""
    is_number = x.dtype.kind in "iu" and not x.shape and not is_mutable(x)
    return is_number and type(other) in (list, tuple)


_ARRAY_LIKE = (np.ndarray, np.generic, bool, int, float, complex, list, tuple, range)


def _is_fraction(value: Any) -> bool:
    """Whether a value is a fraction: if so, their module, which is slow to import, has been imported."""
    module = sys.modules.get("fractions")
    return module is not None and isinstance(value, module.Fraction)


def install_method(name: str, function: Callable[..., Any]) -> None:
    """Make `x.name(...)` mean function(x, ...)."""
    setattr(ArrayTracer, name, function)
