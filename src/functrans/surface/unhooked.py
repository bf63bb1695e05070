"""NumPy's functions in `functrans.numpy`, which check all arguments for traced values.

NumPy's protocols consider a function's array arguments, but not entries of lists, nor every option:
np.sum([x, y]), np.take(plain, x) and np.pad(plain, 1, constant_values=x) never reach the tables. The
functions here check first, and call NumPy if nothing is traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import wraps
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain, running_interpreters
from functrans.core.evaluate import open_array
from functrans.core.tracer import FUNCTIONS, ArrayTracer
from functrans.surface.table import PLAIN, as_array, holds_tracer

_DISPATCHER = type(np.sum)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def any_traced(values: Iterable[Any]) -> bool:
    """Whether these arguments contain a traced value, possibly in lists."""
    return any(type(value) not in PLAIN and holds_tracer(value) for value in values)


def reach(value: Any) -> Any:
    """A NumPy function that finds traced values anywhere in its arguments; other objects unchanged."""
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


# The name np.block may be hooked when this is read.
_BLOCK = np.block
_NOBODY: Any = None  # the call does not come from NumPy
_SEQUENCES_OF_ARRAYS = frozenset(
    {
        *(np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.select),
        *(np.choose, np.lexsort, np.ravel_multi_index, np.piecewise, np.linalg.multi_dot),
        *(np.histogramdd, np.histogram2d),
    }
)


def _ask_tables(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if function is not _BLOCK:  # for which the levels of a list have different meanings
        read = _items_without_lists if function in _SEQUENCES_OF_ARRAYS else _without_lists
        args = tuple(map(read, args))
        kwargs = {key: read(value) for key, value in kwargs.items()}
    return ArrayTracer.__array_function__(_NOBODY, function, (), args, kwargs)


def _reaching_ufunc(ufunc: Any) -> Any:
    """NumPy checks every argument of a ufunc, so only lists need a check."""

    @wraps(ufunc)
    def reaching(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            kind = type(value)
            if (kind is list or kind is tuple) and holds_tracer(value):
                return ufunc(*[_without_lists(arg) for arg in args], **kwargs)
        return ufunc(*args, **kwargs)

    for name in dir(ufunc):
        if not name.startswith("_"):
            part = getattr(ufunc, name)
            setattr(reaching, name, _method(part) if name in _METHODS else part)
    return _named(reaching, ufunc)


def _named(reaching: Any, function: Any) -> Any:
    """Set the module, the name and the docstring of a function, as users and pickle find it."""
    module = getattr(function, "__module__", None)
    part = module.removeprefix("numpy") if module in ("numpy.linalg", "numpy.fft") else ""
    reaching.__module__ = f"functrans.numpy{part}"
    # Remove the prompts from NumPy's examples: the doctests of this package do not test NumPy.
    reaching.__doc__ = (function.__doc__ or "").replace(">>> ", "")
    return reaching


_METHODS = frozenset({"reduce", "accumulate", "reduceat", "outer", "at"})


def _method(method: Any) -> Any:
    """np.add.reduce and similar methods, for lists of traced values too."""
    return lambda *args, **kwargs: method(*[_without_lists(arg) for arg in args], **kwargs)


def _without_lists(value: Any) -> Any:
    if not isinstance(value, (list, tuple)) or not holds_tracer(value):
        return value
    try:
        made = as_array(value)
    except ValueError:  # values of different shapes, which the function takes one by one
        return value
    # Integers may be a shape, which the function reads itself.
    return value if made.ndim == 1 and made.dtype.kind in "iu" else made


def _items_without_lists(value: Any) -> Any:
    return list(map(_without_lists, value)) if isinstance(value, (list, tuple)) else value


def fresh(function: Any) -> Any:
    """A function that creates arrays; inside a transform, they accept assignments of traced values."""
    ask = reach(function)

    @wraps(ask)
    def constructor(*args: Any, **kwargs: Any) -> Any:
        made = ask(*args, **kwargs)
        if not running_interpreters():
            return made
        return open_all(made, args)

    return _named(constructor, function)


def open_all(made: Any, sources: Any) -> Any:
    """Let new arrays among results accept traced values; the user's arrays stay unchanged."""
    if isinstance(made, tuple):
        return tuple(open_all(each, sources) for each in made)
    if type(made) is np.ndarray and not any(
        is_plain(source, np.ndarray) and np.may_share_memory(made, source) for source in sources
    ):
        return open_array(made)
    return made


def lookup(
    name: str, numpy: ModuleType, namespace: dict[str, Any], newer: Mapping[str, Any] = _NOTHING
) -> Any:
    """Find a name in a NumPy module, and store it in the namespace."""
    special = name.startswith("__")  # special names of modules are not NumPy's
    if special or not (hasattr(numpy, name) or name in newer):
        raise AttributeError(
            f"module {namespace['__name__']!r} has no attribute {name!r}", name=name
        )
    value = reach(getattr(numpy, name)) if hasattr(numpy, name) else newer[name]
    namespace[name] = value
    return value
