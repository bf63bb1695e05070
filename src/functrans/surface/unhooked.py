"""NumPy's functions as `functrans.numpy` offers them: with a look at all arguments for traced values.

NumPy asks the arguments that a function calls arrays for a rule of their own, but not what stands in
a list, nor every option: np.sum([x, y]), np.take(plain, x) and np.pad(plain, 1, constant_values=x)
never reach the tables. The functions here look first, and go to NumPy if nothing is traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import wraps
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from functrans.core.dispatch import running_interpreters
from functrans.core.evaluate import open_array
from functrans.core.tracer import FUNCTIONS, ArrayTracer
from functrans.surface.table import PLAIN, as_array, holds_tracer

_DISPATCHER = type(np.sum)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def any_traced(values: Iterable[Any]) -> bool:
    """Whether a traced value is among these arguments, or somewhere in a list of them."""
    return any(type(value) not in PLAIN and holds_tracer(value) for value in values)


def reach(value: Any) -> Any:
    """A NumPy function that finds traced values anywhere among its arguments; others as they are."""
    if isinstance(value, np.ufunc):
        return _reaching_ufunc(value)
    if isinstance(value, _DISPATCHER) or (isinstance(value, FunctionType) and value in FUNCTIONS):
        return _reaching(value)
    return value


def _reaching(function: Any) -> Any:
    @wraps(function)
    def reaching(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) not in PLAIN and holds_tracer(value):
                return _ask_tables(function, args, kwargs)
        if not kwargs:
            return function(*args)
        for value in kwargs.values():
            if type(value) not in PLAIN and holds_tracer(value):
                return _ask_tables(function, args, kwargs)
        return function(*args, **kwargs)

    return _named(reaching, function)


_NOBODY: Any = None  # the tables are asked on nobody's behalf
_SEQUENCES_OF_ARRAYS = frozenset(
    {
        *(np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.select),
        *(np.choose, np.lexsort, np.ravel_multi_index, np.piecewise, np.linalg.multi_dot),
        *(np.histogramdd, np.histogram2d),
    }
)


def _ask_tables(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if function is not np.block:  # to which every level of a list means something else
        read = _items_without_lists if function in _SEQUENCES_OF_ARRAYS else _without_lists
        args = tuple(map(read, args))
        kwargs = {key: read(value) for key, value in kwargs.items()}
    return ArrayTracer.__array_function__(_NOBODY, function, (), args, kwargs)


def _reaching_ufunc(ufunc: Any) -> Any:
    """NumPy asks every argument of a ufunc, so only lists need a look."""

    @wraps(ufunc)
    def reaching(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            kind = type(value)
            if (kind is list or kind is tuple) and holds_tracer(value):
                return ufunc(*map(_without_lists, args), **kwargs)
        return ufunc(*args, **kwargs)

    for name in dir(ufunc):
        if not name.startswith("_"):
            part = getattr(ufunc, name)
            setattr(reaching, name, _method(part) if name in _METHODS else part)
    return _named(reaching, ufunc)


def _named(reaching: Any, function: Any) -> Any:
    """Where users, and pickle, find a function, and what it says of itself."""
    module = getattr(function, "__module__", None)
    part = module.removeprefix("numpy") if module in ("numpy.linalg", "numpy.fft") else ""
    reaching.__module__ = f"functrans.numpy{part}"
    # NumPy's examples lose their prompts: a doctest of this package is not one of NumPy.
    reaching.__doc__ = (function.__doc__ or "").replace(">>> ", "")
    return reaching


_METHODS = frozenset({"reduce", "accumulate", "reduceat", "outer", "at"})


def _method(method: Any) -> Any:
    """np.add.reduce and its kin, for lists of traced values too."""
    return lambda *args, **kwargs: method(*map(_without_lists, args), **kwargs)


def _without_lists(value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or not holds_tracer(value):
        return value
    made = as_array(value)
    # Whole numbers may be a shape, which the function reads itself.
    return value if made.ndim == 1 and made.dtype.kind in "iu" else made


def _items_without_lists(value: Any) -> Any:
    return list(map(_without_lists, value)) if isinstance(value, (list, tuple)) else value


def fresh(function: Any) -> Any:
    """A function that makes arrays, which inside a transform may be assigned traced values."""
    ask = reach(function)

    @wraps(ask)
    def constructor(*args: Any, **kwargs: Any) -> Any:
        made = ask(*args, **kwargs)
        if not running_interpreters():
            return made
        return open_all(made, args)

    return _named(constructor, function)


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
