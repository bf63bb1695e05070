"""Type tests of tracers: they answer like the array, NumPy scalar or Python number they stand for.

Code tests the types of its values: `isinstance(x, np.ndarray)`, `np.isscalar(x)`, `hasattr(x, "__len__")`.
A tracer answers as its value would, so that a transform takes the branch that the plain call takes. The
engine itself must tell tracers from values: it uses `is_plain(value, np.ndarray)`, or `type(value)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.calls import called_at
from functrans.core.conversions import learn, plain_value
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.shapes import PYTHON_SCALARS
from functrans.core.views import is_mutable

_ndarray, _float64 = np.ndarray, np.float64
_PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}
_VALUES = (np.ndarray, np.generic, bool, int, float, complex)


class _Hidden:
    """Stands for the base classes of all tracers, which say nothing about a value."""

    __hash__ = None  # type: ignore[assignment]


class TracerType(type):
    """The type of the classes of tracers, which are not the classes of the values they stand for."""

    @property
    def __mro__(cls) -> tuple[type, ...]:
        # The abstract classes of collections.abc look for methods in these classes, and find an `__iter__`
        # even for scalars. They also check `__class__`, which gives the right answer.
        return (cls, _Hidden)

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if not isinstance(other, type) or not issubclass(other, (Tracer, *_VALUES)):
            return False
        if errors.is_outside(sys._getframe(1).f_code):  # NumPy has other tests, too
            learn()
            name = "type(y)" if issubclass(other, Tracer) else other.__name__
            raise errors.TypeTestError(
                f"type(x) == {name} cannot be answered for a traced value, "
                f"at {errors.user_location()}: its type is not that of the value it stands for. Write "
                f"isinstance(x, {name})."
            )
        return False

    __hash__ = type.__hash__


def class_of(tracer: Any) -> type:
    """The class of the value that a tracer stands for."""
    held: Any = getattr(tracer, "value", None)
    if type(held) is _ndarray and tracer.shape:
        return _ndarray
    if is_mutable(tracer):
        subclass = is_plain(held, _ndarray) and held.shape == tracer.shape
        return type(held) if subclass else _ndarray
    dtype = tracer.dtype
    return _PYTHON_TYPES[dtype.kind] if is_weak(tracer) else dtype.type


def is_weak(value: Any) -> bool:
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


def deny_to_user() -> None:
    """Python numbers have no `shape` and no `dtype`: say so where the user's code calls `hasattr`."""
    frame = sys._getframe(2)
    if errors.is_outside(frame.f_code) and called_at(frame)[1] in (hasattr, getattr):
        raise AttributeError


class NumPyMethod:
    """A method that arrays and NumPy scalars have, and Python numbers do not."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, tracer: Any, owner: Any = None) -> Any:
        if tracer is None:
            return self
        if is_weak(tracer):
            deny_to_user()
        return MethodType(self.method, tracer)


class ArrayMethod:
    """A special method that arrays have and scalars do not."""

    def __init__(self, method: Callable[..., Any], complaint: str) -> None:
        self.method = method
        self.complaint = complaint

    def __get__(self, tracer: Any, owner: Any = None) -> Any:
        if tracer is None:
            return self
        if tracer.shape or is_mutable(tracer):
            return MethodType(self.method, tracer)
        if called_at(sys._getframe(1))[1] in (hasattr, getattr):
            raise AttributeError
        # Not an AttributeError: iter(x) would then try x[0], x[1] and so on.
        cls = class_of(tracer)
        module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
        return partial(self._complain, module + cls.__name__)

    def _complain(self, name: str) -> Any:
        raise TypeError(self.complaint.format(name))


class Conversion:
    """A special method by which Python converts numbers. Numbers of some kinds do not have it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, tracer: Any, owner: Any = None) -> Any:
        if tracer is None:
            return self
        lacking = not hasattr(class_of(tracer), self.method.__name__)
        # Python's own calls go on, to the error of the conversion.
        if lacking and called_at(sys._getframe(1))[1] in (hasattr, getattr):
            raise AttributeError
        return MethodType(self.method, tracer)


class NumberMethod:
    """A method that numbers of some kinds have, and arrays do not: it needs the value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tracer: Any, owner: Any = None) -> Any:
        if tracer is None:
            return self
        cls = class_of(tracer)
        if not hasattr(cls, self.name):
            raise AttributeError(f"'{cls.__name__}' object has no attribute '{self.name}'")
        method = getattr(cls, self.name)
        if not callable(method):  # numerator and denominator
            return tracer if self.name == "numerator" else 1
        if getattr(method, "__self__", None) is cls:  # a method of the class
            return method
        return partial(self._of_value, cls, tracer)

    def _of_value(self, cls: Any, tracer: Any, *args: Any, **kwargs: Any) -> Any:
        value = cls(plain_value(tracer, self.name))
        return getattr(value, self.name)(*args, **kwargs)


def number_methods() -> dict[str, NumberMethod]:
    """The methods of numbers that arrays do not have, by name."""
    kinds = (*PYTHON_SCALARS, *(np.dtype(code).type for code in "?bhilqBHILQefdFD"))
    names = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    return {name: NumberMethod(name) for name in names - set(dir(np.ndarray))}
