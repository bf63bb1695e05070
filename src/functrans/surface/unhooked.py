"""NumPy's functions as `functrans.numpy` offers them: with a look at all arguments for traced values.

NumPy asks the arguments that a function calls arrays for a rule of their own, but not what stands in
a list, nor every option: np.sum([x, y]), np.take(plain, x) and np.pad(plain, 1, constant_values=x)
never reach the tables. The functions here look first, and go to NumPy if nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from functrans.core.dispatch import running_interpreters
from functrans.core.evaluate import open_array
from functrans.core.tracer import FUNCTIONS, ArrayTracer
from functrans.surface.table import as_array, holds_tracer

_DISPATCHER = type(np.sum)
_NOTHING: Mapping[str, Any] = MappingProxyType({})
# Types of arguments in which nothing traced can be, to find this out quickly.
_PLAIN = frozenset(
    {np.ndarray, int, float, complex, bool, str, type(None), np.float64, type, slice}
)


def any_traced(values: Iterable[Any]) -> bool:
    """Whether a traced value is among these arguments, or somewhere in a list of them."""
    return any(type(value) not in _PLAIN and holds_tracer(value) for value in values)


def reach(value: Any) -> Any:
    """A NumPy function that finds traced values anywhere among its arguments; others as they are."""
    if isinstance(value, np.ufunc):
        return Ufunc(value)
    if isinstance(value, _DISPATCHER) or (isinstance(value, FunctionType) and value in FUNCTIONS):
        return _reaching(value)
    return value


def _reaching(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def reaching(*args: Any, **kwargs: Any) -> Any:
        for value in args:  # any_traced, without the call
            if type(value) not in _PLAIN and holds_tracer(value):
                return ArrayTracer.__array_function__(_NOBODY, function, (), args, kwargs)
        if kwargs and any_traced(kwargs.values()):
            return ArrayTracer.__array_function__(_NOBODY, function, (), args, kwargs)
        return function(*args, **kwargs)

    # Users, and pickle, find it under this name. NumPy's examples lose their prompts: a doctest of
    # this package is not one of NumPy.
    module = function.__module__
    part = module.removeprefix("numpy") if module in ("numpy.linalg", "numpy.fft") else ""
    reaching.__module__ = f"functrans.numpy{part}"
    reaching.__doc__ = (function.__doc__ or "").replace(">>> ", "")
    return reaching


_NOBODY: Any = None  # the tables are asked on nobody's behalf


class Ufunc:
    """A ufunc that accepts lists of traced values; all else is the ufunc's own."""

    __slots__ = ("ufunc",)
    __module__ = "functrans.numpy"

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for value in args:
            kind = type(value)
            if (kind is list or kind is tuple) and holds_tracer(value):
                return self.ufunc(*map(_without_lists, args), **kwargs)
        return self.ufunc(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.ufunc, name)
        if name not in _METHODS:
            return value
        return lambda *args, **kwargs: value(*map(_without_lists, args), **kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance(np.sin, np.ufunc)
        return np.ufunc

    def __repr__(self) -> str:
        return repr(self.ufunc)

    def __eq__(self, other: Any) -> bool:
        return self.ufunc is (other.ufunc if type(other) is Ufunc else other)

    def __hash__(self) -> int:
        return hash(self.ufunc)

    def __reduce__(self) -> str:  # a name in functrans.numpy
        return self.ufunc.__name__


_METHODS = frozenset({"reduce", "accumulate", "reduceat", "outer", "at"})


def _without_lists(value: Any) -> Any:
    traced = isinstance(value, (list, tuple)) and holds_tracer(value)
    return as_array(value) if traced else value


def fresh(function: Any) -> Any:
    """A function that makes arrays, which inside a transform may be assigned traced values."""
    ask = reach(function)

    @wraps(ask)
    def constructor(*args: Any, **kwargs: Any) -> Any:
        made = ask(*args, **kwargs)
        if not running_interpreters():
            return made
        return open_all(made, args)

    return constructor


def open_all(made: Any, sources: Any) -> Any:
    """The new arrays among results, open to traced values; an array of the user's stays what it is."""
    if isinstance(made, tuple):
        return tuple(open_all(each, sources) for each in made)
    if type(made) is np.ndarray and not any(
        isinstance(source, np.ndarray) and np.may_share_memory(made, source) for source in sources
    ):
        return open_array(made)
    return made


def lookup(
    name: str, numpy: ModuleType, namespace: dict[str, Any], newer: Mapping[str, Any] = _NOTHING
) -> Any:
    """Find a name in a module of NumPy, and keep it in the namespace that was asked for it."""
    special = name.startswith("__")  # what Python asks of modules is not for NumPy to answer
    if special or not (hasattr(numpy, name) or name in newer):
        raise AttributeError(
            f"module {namespace['__name__']!r} has no attribute {name!r}", name=name
        )
    value = reach(getattr(numpy, name)) if hasattr(numpy, name) else newer[name]
    namespace[name] = value
    return value
