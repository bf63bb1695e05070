"""Hooks for NumPy's functions that offer no protocol: see functrans.core.hooks.

np.array([x, y]) and similar functions are those of `functrans.numpy` if an argument is traced. Functions that
make new arrays return plain ones, except at calls whose arrays are known to receive traced values.
"""

from __future__ import annotations

import sys
from functools import wraps
from types import FrameType
from typing import Any

import numpy as np

from functrans.core import hooks
from functrans.core.dispatch import running_interpreters
from functrans.core.hooks import Hook
from functrans.core.learning import is_open, note_made
from functrans.core.places import is_outside
from functrans.core.tracer import in_python
from functrans.surface import functional
from functrans.surface.constructors import CONSTRUCTORS
from functrans.surface.table import as_array, holds_tracer
from functrans.surface.unhooked import any_traced, open_all, reach

_VECTORIZE, _NDENUMERATE = np.vectorize, np.ndenumerate  # names that may be hooked later
_NUMBERS = frozenset(np.dtype(code).type.__name__ for code in "efdFD")
_OBJECTS = frozenset({"r_", "c_", "mgrid", "ogrid"})


def find(module: str, name: str, original: Any) -> Hook | None:
    if isinstance(original, type):
        if original is _VECTORIZE:
            return Hook(_vectorizing, True)
        if original is _NDENUMERATE:
            return Hook(CONSTRUCTORS["ndenumerate"], True)
        is_number = issubclass(original, np.inexact) and original.__name__ in _NUMBERS
        return Hook(_number_type(original), False) if is_number else None
    if module == "numpy" and name in _OBJECTS:
        return Hook(_HookedObject(original, CONSTRUCTORS[name]), True)
    if module == "numpy" and name in CONSTRUCTORS:
        ours = CONSTRUCTORS[name]
        return Hook(_making(original, ours), True, direct=ours)
    if module == "numpy" and name == "require":
        return Hook(_making(original, _required), True)
    if module not in ("numpy", "numpy.linalg", "numpy.fft"):
        return None
    reaching = reach(original)
    if reaching is original:
        return None
    if not isinstance(original, np.ufunc):
        reaching = _making(original, reaching)  # its results may be assigned to
    return Hook(as_named(reaching, original), False)


def _required(a: Any, dtype: Any = None, requirements: Any = None, **options: Any) -> Any:
    """np.require: a traced array has no memory that could be required to be of some kind."""
    return CONSTRUCTORS["asanyarray"](a, dtype)


def as_named(hook: Any, original: Any) -> Any:
    """A hook with the name and the docstring of the function that it replaces."""
    hook.__module__ = getattr(original, "__module__", None)
    hook.__doc__ = original.__doc__
    return hook


def _making(original: Any, ours: Any) -> Any:
    """A function that makes arrays."""

    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            # NumPy's code, and ours, mean NumPy's function, which refuses traced values.
            meant = ours if is_outside(sys._getframe(1).f_code) else original
            return meant(*args, **kwargs)
        made = original(*args, **kwargs)
        if type(made) is np.ndarray or type(made) is tuple:
            return _noted(made, args, sys._getframe(1))
        return made

    return make


def _noted(made: Any, sources: Any, frame: FrameType) -> Any:
    """New arrays: open ones at calls whose arrays receive traced values."""
    if not is_outside(frame.f_code):
        return made
    if is_open(frame):
        return open_all(made, sources) if running_interpreters() else made
    for array in made if type(made) is tuple else (made,):
        note_made(array, frame)
    return made


class _HookedObject:
    """np.r_ and similar objects."""

    __slots__ = ("original", "ours")

    def __init__(self, original: Any, ours: Any) -> None:
        self.original, self.ours = original, ours

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        limits = [(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts]
        if holds_tracer(limits):
            return self.ours[key]
        return _noted(self.original[key], (), sys._getframe(1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __len__(self) -> int:
        return 0


# Types of numbers: np.float64(x) keeps a traced x traced. Everything else about the type is as before.


_COMPLEX_NUMBERS = (complex, np.complexfloating)


class _NumberType(type):
    original: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and holds_tracer(args):  # complex(real, imag)
            return args[0] + 1j * args[1]
        if args and holds_tracer(args[0]):
            number = as_array(args[0])
            if number.dtype.kind == "c" and not issubclass(cls.original, _COMPLEX_NUMBERS):
                raise TypeError(f"cannot convert complex to {cls.original.__name__}")
            number = number.astype(cls.original)
            is_python = cls.original in (float, complex)
            return in_python(number.reshape(())[()]) if is_python else number[()]
        return cls.original(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.original)

    def __subclasscheck__(cls, other: Any) -> bool:
        return other is cls or issubclass(other, cls.original)

    def __eq__(cls, other: object) -> Any:
        return True if other is cls or other is cls.original else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __repr__(cls) -> str:
        return repr(cls.original)


def _number_type(original: Any) -> Any:
    """A type that takes the place of a NumPy or Python type of numbers."""
    attributes = {"original": original, "dtype": np.dtype(original), "__doc__": original.__doc__}
    made: Any = _NumberType(original.__name__, (), attributes)
    made.__module__ = original.__module__
    return made


hooks.BUILTINS |= {"float": _number_type(float), "complex": _number_type(complex)}


# np.vectorize(f), and objects that it has made before.


@wraps(np.vectorize, updated=())
def _vectorizing(*args: Any, **kwargs: Any) -> Any:
    return functional.vectorize(*args, **kwargs)


_call_vectorized: Any = np.vectorize.__call__


@wraps(_call_vectorized)
def _vectorized(self: Any, *args: Any, **kwargs: Any) -> Any:
    if not running_interpreters():
        return _call_vectorized(self, *args, **kwargs)
    options = {"excluded": self.excluded, "signature": self.signature, "otypes": self.otypes}
    return functional.vectorize(self.pyfunc, **options)(*args, **kwargs)


hooks.METHODS[_call_vectorized.__code__] = (np.vectorize, "__call__", _vectorized)
