"""What a function can reach: the random number generators that it may draw from, and functions it may call.

The search follows closures, globals by the names in the code, default values, attributes and containers. It
looks at no more than a few thousand objects.
"""

from __future__ import annotations

import gc
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_MOST_OBJECTS = 2000  # objects further away are not found
_MOST_ENTRIES = 200  # of one container
_ATOMS = frozenset(
    {str, bytes, int, float, bool, complex, type(None), CodeType, np.ndarray, np.ufunc}
    | {type(np.sum), type(object.__init__), *map(type, (np.float64(0), np.float32(0), np.int64(0)))}
)
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
# Globals of functions in these modules are skipped: the global generators are known.
_OURS = frozenset(
    {"functrans", "numpy", "scipy", "optree", *sys.stdlib_module_names} - {"__main__"}
)
# Objects of these modules, such as functools.partial, are containers of what the user has put there. So are
# transformed functions, which are of a subclass.
_TRANSPARENT = frozenset({"builtins", "collections", "functools", "itertools", "types"})


class Reachable:
    """The generators that a function may draw from, and the functions that it may call."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.generators: list[Any] = []
        self.functions: list[FunctionType] = []
        self.objects: list[Any] = []  # kept, so that ids stay unique
        seen: set[int] = set()
        waiting: deque[Any] = deque(roots)
        while waiting and len(self.objects) < _MOST_OBJECTS:
            value = waiting.popleft()
            kind = type(value)
            if kind in _ATOMS or id(value) in seen:
                continue
            seen.add(id(value))
            self.objects.append(value)
            if kind is FunctionType:
                waiting.extend(self._of_function(value))
            elif issubclass(kind, _GENERATORS):  # isinstance may run user code
                self.generators.append(value)
            else:
                waiting.extend(_INSIDE.get(kind, _of_object)(value))

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        if function.__closure__:
            yield from _contents(function.__closure__)
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        yield from vars(function).values()
        if not _is_ours(function.__globals__.get("__name__")):
            self.functions.append(function)
            yield from _named(function.__code__, function.__globals__)


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _OURS


def _contents(cells: Iterable[CellType]) -> list[Any]:
    found = []
    for cell in cells:
        with suppress(ValueError):  # it is empty
            found.append(cell.cell_contents)
    return found


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from codes_in(constant)


def _named(code: CodeType, scope: dict[str, Any]) -> Iterator[Any]:
    """The values of the names in a function: globals, modules that it imports, and attributes of modules."""
    for part in codes_in(code):
        modules: list[Any] = []
        for name in part.co_names:
            found: list[Any] = [scope.get(name), sys.modules.get(name)]
            found += [vars(module).get(name) for module in modules]
            for value in found:
                if issubclass(type(value), ModuleType):
                    if not _is_ours(value.__name__):
                        modules.append(value)
                elif value is not None:
                    yield value


def _of_class(value: type) -> Iterable[Any]:
    return () if _is_ours(value.__module__) else [*value.__bases__, *vars(value).values()]


def _of_object(value: Any) -> Iterable[Any]:
    kind = type(value)
    if issubclass(kind, type):
        return _of_class(value)
    if issubclass(kind, ModuleType):
        return ()  # its attributes are found by the names in the code
    home: Any = kind.__module__
    if not _is_ours(home) or home in _TRANSPARENT or issubclass(kind, partial):
        return kind, *islice(gc.get_referents(value), _MOST_ENTRIES)
    # A transform or a module of the library keeps the user's objects in its attributes.
    return attributes_of(value).values() if home.startswith("functrans") else ()


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, read without running user code."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _of_sequence(value: Iterable[Any]) -> Iterable[Any]:
    return islice(value, _MOST_ENTRIES) if len(value) > _MOST_ENTRIES else value  # type: ignore[arg-type]


_INSIDE: dict[type, Callable[[Any], Iterable[Any]]] = {
    MethodType: lambda value: (value.__self__, value.__func__),
    BuiltinFunctionType: lambda value: (value.__self__,),
    CellType: lambda value: _contents((value,)),
    type: _of_class,
    dict: lambda value: islice(value.values(), _MOST_ENTRIES),
    list: _of_sequence,
    tuple: _of_sequence,
    set: _of_sequence,
    frozenset: _of_sequence,
}
