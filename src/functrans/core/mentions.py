"""The lines of functions that use a generator, found in their code."""

from __future__ import annotations

import builtins
import inspect
import random
import sys
from contextlib import suppress
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.bytecode import steps
from functrans.core.reachable import Reachable, attributes_of, codes_in

_UNKNOWN = object()
_METHODS = frozenset({MethodType, BuiltinFunctionType})


def mentions_of(generator: Any, reachable: Reachable) -> list[tuple[str, str]]:
    """The places where functions mention a method of a generator, or the generator, or such a method."""
    handles = _handles(generator, reachable)
    reader = _Reader(handles, _attributes(handles, reachable))
    for function in reachable.functions:
        for code in codes_in(function.__code__):
            if errors.is_outside(code):
                reader.read(code, _values(code, function))
    found = reader.methods or reader.handles or reader.similar
    return list(dict.fromkeys(found))


def _handles(generator: Any, reachable: Reachable) -> list[Any]:
    """The objects by which code may use a generator."""
    handles = [generator, *(one for one in reachable.generators if _shares(one, generator))]
    if generator is np.random.mtrand._rand:
        handles.append(np.random)
    if generator is random._inst:
        handles.append(random)
    return handles


def _shares(one: Any, other: Any) -> bool:
    """Whether two of NumPy's generators have the same state."""
    bits = [
        getattr(g, "bit_generator", None) or getattr(g, "_bit_generator", g) for g in (one, other)
    ]
    return bits[0] is bits[1]


def _is(value: Any, handles: list[Any]) -> bool:
    return any(value is handle for handle in handles)


def _attributes(handles: list[Any], reachable: Reachable) -> set[str]:
    """The names of attributes and keys under which objects have a generator."""
    names = set()
    for value in reachable.objects:
        entries = value if type(value) is dict else attributes_of(value)
        names |= {k for k, v in list(entries.items()) if type(k) is str and _is(v, handles)}
    return names


class _Reader:
    """Follows names and attributes through the instructions of functions.

    `names` are those of attributes and keys under which the generator is found where the object that has
    it is not known.
    """

    def __init__(self, handles: list[Any], names: set[str]) -> None:
        self.generators = handles
        self.names = names
        self.likely = {n for handle in handles for n in dir(handle) if not n.startswith("_")}
        # Names that are mentioned, each with its place.
        self.methods: list[tuple[str, str]] = []
        self.handles: list[tuple[str, str]] = []
        self.similar: list[tuple[str, str]] = []

    def read(self, code: CodeType, known: dict[str, Any]) -> None:
        value: Any = _UNKNOWN
        constant: Any = None
        line = code.co_firstlineno
        for step in steps(code):
            if step.line is not None:
                line = step.line
            kind, name = step.name, step.argument
            if kind.startswith(("LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")):
                value = known.get(name, _UNKNOWN) if isinstance(name, str) else _UNKNOWN
            elif kind in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
                place = errors.location_of(code, line)
                value = self._attribute(value, name, place)
            elif kind == "IMPORT_NAME":
                value = sys.modules.get(name, _UNKNOWN)
            elif kind == "LOAD_CONST":
                constant = name
                continue
            elif kind.startswith("BINARY_SUBSCR") or (kind == "BINARY_OP" and step.text == "[]"):
                is_ours = isinstance(constant, str) and constant in self.names
                value = self.generators[0] if is_ours else _UNKNOWN
            elif kind.startswith("STORE_FAST") and isinstance(name, str):
                known[name] = value
                continue
            else:
                continue
            if type(value) in _METHODS and _is(value.__self__, self.generators):
                self.methods.append((value.__name__, errors.location_of(code, line)))
                value = _UNKNOWN
            elif _is(value, self.generators) and not isinstance(value, ModuleType):
                self.handles.append((str(name), errors.location_of(code, line)))

    def _attribute(self, owner: Any, name: str, place: str) -> Any:
        """The value of an attribute; methods of the generator are recorded."""
        if _is(owner, self.generators):
            self.methods.append((name, place))
            return _UNKNOWN
        value = _attribute(owner, name)
        if value is _UNKNOWN and name in self.names:
            return self.generators[0]
        if owner is _UNKNOWN and name in self.likely:
            self.similar.append((name, place))
        return value


def _values(code: CodeType, function: FunctionType) -> dict[str, Any]:
    """What names mean in the code of a function, or in that of a function inside of it."""
    known = {**vars(builtins), **function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        with suppress(ValueError):  # it is empty
            known[name] = cell.cell_contents
    if code is function.__code__:
        known |= dict.fromkeys(code.co_varnames, _UNKNOWN)
        known |= function.__kwdefaults__ or {}
        defaults = function.__defaults__ or ()
        positional = code.co_varnames[: code.co_argcount]
        known |= dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    return known


def _attribute(owner: Any, name: str) -> Any:
    """An attribute, read without running user code."""
    if owner is _UNKNOWN:
        return _UNKNOWN
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, _UNKNOWN)
    return inspect.getattr_static(owner, name, _UNKNOWN)
