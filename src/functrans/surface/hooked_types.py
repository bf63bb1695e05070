"""Hooks for types and for questions about them: float, np.float64, np.broadcast, type(x), hasattr(x, "T")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np

from functrans.core import hooks
from functrans.core.conversions import warn_of_lost_derivative
from functrans.core.dispatch import Tracer, concrete, running_interpreters
from functrans.core.likeness import class_of, is_weak
from functrans.core.shapes import shape_of
from functrans.core.tracer import in_python
from functrans.core.views import is_mutable
from functrans.surface.table import PLAIN, as_array, holds_tracer

NUMBERS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")
_BROADCAST = np.broadcast  # a name that may be hooked later


# Types of numbers: np.float64(x) keeps a traced x traced. Everything else about the type is as before.


_COMPLEX_NUMBERS = (complex, np.complexfloating)


class _NumberType(type):
    original: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and holds_tracer(args):  # complex(real, imag)
            return args[0] + 1j * args[1]
        if args and type(args[0]) not in PLAIN and (number := _converted(cls, args[0])) is not None:
            return number
        if args and holds_tracer(args[0]):
            number = as_array(args[0])
            is_python = cls.original in (float, complex)
            cuts = number.dtype.kind == "c" and not issubclass(cls.original, _COMPLEX_NUMBERS)
            is_refused = is_weak(number) or (is_python and is_mutable(number) and not number.shape)
            if cuts and is_refused:
                cls.original(1j)  # raises
            if is_python and number.shape:
                cls.original(np.zeros(number.shape))  # raises, unless this NumPy takes one entry
            number = number.astype(cls.original)
            return in_python(number.reshape(())[()]) if is_python else number[()]
        if args and type(args[0]) is str and (number := _written_as(args[0])) is not None:
            return number
        return cls.original(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.original)

    def __subclasscheck__(cls, other: Any) -> bool:
        return other is cls or issubclass(other, cls.original)

    def __eq__(cls, other: object) -> Any:
        return True if other is cls or other is cls.original else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __getattribute__(cls, name: str) -> Any:
        if name in ("original", "dtype", "__class__"):
            return super().__getattribute__(name)
        return getattr(cls.original, name)  # float.__new__ and others that a class inherits, too

    def __mro_entries__(cls, bases: Any) -> tuple[type, ...]:
        return (cls.original,)

    def __repr__(cls) -> str:
        return repr(cls.original)


def _converted(cls: Any, value: Any) -> Any:
    """What the method __float__ of an object of the user's gives, which may be traced; None without one."""
    convert = getattr(type(value), f"__{cls.original.__name__}__", None)
    if isinstance(value, Tracer) or not isinstance(convert, FunctionType):
        return None
    return cls(convert(value))


def _written_as(text: str) -> Any:
    """The traced number that was formatted as this text with all of its digits; None if there is none."""
    running = running_interpreters()
    plan = running[0].plan if running else None
    traced = None if plan is None else plan.texts.get(text)
    if traced is None:
        return None
    if len(text) >= _DIGITS and float(text) == concrete(traced):
        return in_python(traced)
    warn_of_lost_derivative("float() of the text", depth=3)
    return None


_DIGITS = 17  # that tell a float from all others


def number_type(original: Any) -> Any:
    """A type that takes the place of a NumPy or Python type of numbers."""
    attributes = {"original": original, "dtype": np.dtype(original)}
    return _NumberType(original.__name__, (), attributes)


class _HookedType:
    """`type`, for which a traced value is of the type that it stands for."""

    __slots__ = ()

    __class__ = property(lambda self: type)  # isinstance(type, type) is true

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Tracer) and not kwargs:
            return class_of(args[0])
        return type(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(self, other: Any) -> bool:
        return issubclass(other, type)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (type,)

    def __eq__(self, other: object) -> bool:
        return other is self or other is type

    def __hash__(self) -> int:
        return hash(type)

    def __or__(self, other: Any) -> Any:
        return type | other

    __ror__ = __or__

    def __getitem__(self, parameters: Any) -> Any:
        return type[parameters]

    def __getattr__(self, name: str) -> Any:
        return getattr(type, name)

    def __repr__(self) -> str:
        return repr(type)


hooks.BUILTINS |= {"float": number_type(float), "complex": number_type(complex)}


@wraps(hasattr)
def _has_attribute(obj: Any, name: str, /) -> bool:
    return hasattr(class_of(obj) if isinstance(obj, Tracer) else obj, name)


# Tests such as `type(x) is float` do not fail, so that nothing could be learned from them.
hooks.MENTIONED_BUILTINS |= {"type": _HookedType(), "hasattr": _has_attribute}


class Broadcast:
    """np.broadcast, whose arrays may be traced."""

    def __new__(cls, *args: Any) -> Any:
        return super().__new__(cls) if holds_tracer(args) else _BROADCAST(*args)

    def __init__(self, *args: Any) -> None:
        self._arrays = [as_array(arg) for arg in args]
        self.numiter = len(args)
        self.shape = np.broadcast_shapes(*map(shape_of, self._arrays))
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))

    __class__ = property(lambda self: _BROADCAST)

    @property
    def iters(self) -> tuple[Any, ...]:
        return tuple(np.broadcast_to(array, self.shape).reshape(-1) for array in self._arrays)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.iters, strict=True)
