"""Plain arrays from outside of a traced function, as arrays that accept traced values.

`y = W.copy(); y[0] = x` and `self.A.dot(x)` call methods of plain arrays, which nothing can replace. If a run
fails for such an array, the next one finds *stand-ins* under the same names: open arrays with the same
values, in globals and closures, in the attributes of objects and classes, and in dicts and lists there. What
the run changes in them is written to the arrays they stand for, as far as it is plain.

The stand-ins of functions in such places, as in `self.solve = np.linalg.solve`, are their hooks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import lru_cache, wraps
from inspect import getattr_static
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from functrans.core import errors, views
from functrans.core.dispatch import running_interpreters
from functrans.core.evaluate import OpenArray
from functrans.core.hooks import HookPlan, hook_of, original_of
from functrans.core.places import is_outside

_ndarray = np.ndarray
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_CACHED: Any = type(lru_cache(lambda: None))
_MOST_ITEMS = 1000  # of a dict or list that are looked at


class StandIns:
    """The names whose values need stand-ins, and the stand-ins of the current run."""

    def __init__(self) -> None:
        # The dicts, lists, classes and cells that hold them, by their ids and the names in them.
        self.names: dict[tuple[int, Any], Any] = {}
        self.attributes: dict[tuple[type, str], _Attribute] = {}
        # The code that mentions them. A run may make objects anew, which must not be a
        # reason to run again for ever.
        self.reasons: set[tuple[int, bool]] = set()
        self.opens_arrays = False  # whether arrays have stand-ins, too, and not only functions
        self.made: dict[int, tuple[Any, Any]] = {}  # by the ids of the values
        self.placed: list[tuple[Any, Any, Any]] = []
        self.places: dict[int, str] = {}  # where a stand-in received a traced value, by its id
        self.users: set[int] = set()  # the levels of the transforms, in all threads, that need them

    @property
    def size(self) -> int:
        return len(self.reasons) + len(self.attributes) + self.opens_arrays

    def of(self, value: Any) -> Any:
        """The stand-in of a value in this run; the value itself if it needs none."""
        found = self.made.get(id(value))
        if found is not None:
            return found[1]
        if type(value) is _ndarray:
            stand_in: Any = OpenArray(value) if self.opens_arrays else value
        elif type(value) is _CACHED:
            stand_in = self._opening(value) if self.opens_arrays else value
        else:
            hook = _hook_for(value)
            stand_in = value if hook is None else hook.function
        if stand_in is not value:
            self.made[id(value)] = (value, stand_in)
        return stand_in

    def _opening(self, cached: Any) -> Any:
        """A function with a cache, which keeps plain arrays; the caller gets their stand-ins."""

        @wraps(cached)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = cached(*args, **kwargs)
            if not running_interpreters():
                return result
            return tuple(map(self.of, result)) if type(result) is tuple else self.of(result)

        return call

    def install(self, level: int, function: Any) -> None:
        """Put stand-ins under all names, and into the closure and the defaults of the traced function."""
        self.users.add(level)
        for name, holder in (*((n, h) for (_, n), h in self.names.items()), *_own_names(function)):
            value = _read(holder, name)
            stand_in = self.of(value)
            if stand_in is not value:
                self.placed.append((holder, name, stand_in))
                _write(holder, name, stand_in)
        for (kind, name), attribute in self.attributes.items():
            if name not in vars(kind):
                setattr(kind, name, attribute)

    def uninstall(self, level: int) -> Exception | None:
        """Put the values back, with what was assigned to them; returns an error to raise, if any."""
        self.users.discard(level)
        if self.users:
            return None
        for (kind, name), attribute in self.attributes.items():
            if vars(kind).get(name) is attribute:
                delattr(kind, name)
        plain = {id(stand_in): value for value, stand_in in self.made.values()}
        for holder, name, stand_in in self.placed:
            if _read(holder, name) is stand_in:
                _write(holder, name, plain[id(stand_in)])
        made, self.made = self.made, {}
        places, self.places = self.places, {}
        self.placed.clear()
        problem = None
        for array, stand_in in made.values():
            if type(array) is not _ndarray:
                continue
            if type(stand_in) is not OpenArray:
                problem = errors.AssignmentError(
                    "a traced value was assigned into an array from outside of the traced function, at "
                    f"{places.get(id(stand_in)) or errors.user_location()}, which would outlive the "
                    "transform. Assign into a copy: y = np.copy(array)."
                )
            elif stand_in.value is not array and not np.array_equal(stand_in.value, array, True):
                array[...] = stand_in.value
        return problem


def _note_place(array: Any) -> None:
    """Remember the line that assigns a traced value to a stand-in."""
    running = running_interpreters()
    stand_ins = running[0].plan.stand_ins if running and running[0].plan is not None else None
    if stand_ins is not None and any(stand_in is array for _, stand_in in stand_ins.made.values()):
        stand_ins.places.setdefault(id(array), errors.user_location())


views.install(watch=_note_place)


class _Attribute:
    """An attribute of the objects of a class, whose plain values are seen as their stand-ins."""

    def __init__(self, name: str, stand_ins: StandIns) -> None:
        self.name = name
        self.stand_ins = stand_ins

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            raise AttributeError(self.name)
        try:
            value = instance.__dict__[self.name]
        except KeyError:
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute {self.name!r}"
            ) from None
        return self.stand_ins.of(value) if running_interpreters() else value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        del instance.__dict__[self.name]


def _read(holder: Any, name: Any) -> Any:
    kind = type(holder)
    if kind is dict:
        return holder.get(name)
    if kind is list:
        return holder[name] if name < len(holder) else None
    if kind is FunctionType:
        return holder.__defaults__[name] if holder.__defaults__ else None
    if isinstance(holder, type):
        return vars(holder).get(name)
    try:
        return holder.cell_contents
    except ValueError:
        return None


def _write(holder: Any, name: Any, value: Any) -> None:
    if type(holder) in (dict, list):
        holder[name] = value
    elif type(holder) is FunctionType:
        defaults = holder.__defaults__ or ()
        holder.__defaults__ = (*defaults[:name], value, *defaults[name + 1 :])
    elif isinstance(holder, type):
        setattr(holder, name, value)
    else:
        holder.cell_contents = value


def _own_names(function: Any) -> list[tuple[Any, Any]]:
    """The closures of a function and of those that it closes over, and the numbers of their defaults.

    What our own functions hold is left alone: a hook that found itself in place of its original would call
    itself for ever.
    """
    found: list[tuple[Any, Any]] = []
    waiting, seen = [function], set()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        cells = list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if is_outside(function.__code__):
            found += [*cells, *((k, function) for k in range(len(function.__defaults__ or ())))]
        waiting += [_read(cell, name) for name, cell in cells]
    return found


def add_stand_ins(plan: HookPlan, frames: list[FrameType], arrays: bool = True) -> None:
    """Add the arrays and functions that code on the stack mentions in globals, attributes and containers."""
    if plan.stand_ins is None:
        plan.stand_ins = StandIns()
        plan.size += 1
    stand_ins: StandIns = plan.stand_ins
    before = stand_ins.size
    stand_ins.opens_arrays |= arrays
    for frame in frames:
        if not is_outside(frame.f_code):
            continue
        known = len(stand_ins.names)
        names = frame.f_code.co_names
        for name in names:
            value = frame.f_globals.get(name)
            # Functions in globals have hooks under their names.
            if type(value) in (_ndarray, _CACHED) and arrays:
                stand_ins.names[id(frame.f_globals), name] = frame.f_globals
            else:
                _add_within(stand_ins, value, names, arrays)
        for value in list(frame.f_locals.values()):
            _add_within(stand_ins, value, names, arrays)
        for name, holder in _held_by_functions(frame):
            if _has_stand_in(_read(holder, name), arrays):
                stand_ins.names[id(holder), name] = holder
        if len(stand_ins.names) > known:
            stand_ins.reasons.add((id(frame.f_code), arrays))
    plan.size += stand_ins.size - before


def _held_by_functions(frame: FrameType) -> list[tuple[Any, Any]]:
    """The closures and defaults of all functions with a frame's code: it does not tell which one it runs."""
    code = frame.f_code
    # The garbage collector finds them anywhere, except those that `gc.freeze` has set apart.
    values = [*gc.get_referrers(code), *frame.f_globals.values()]
    for kind in [each for each in values if isinstance(each, type)]:
        values += [getattr_static(each, "__func__", each) for each in vars(kind).values()]
    functions = {
        id(each): each for each in values if type(each) is FunctionType and each.__code__ is code
    }
    return [item for function in functions.values() for item in _own_names(function)]


def _has_stand_in(value: Any, arrays: bool) -> bool:
    if type(value) in (_ndarray, _CACHED):
        return arrays
    return _hook_for(value) is not None


def _hook_for(value: Any) -> Any:
    """The hook for a function; None for anything else, such as a hook."""
    if not isinstance(value, _FUNCTIONS) or original_of(value) is not value:
        return None
    return hook_of(value)


def _add_within(stand_ins: StandIns, value: Any, names: tuple[str, ...], arrays: bool) -> None:
    """Add what a value of the user's holds: attributes that code mentions, and items of containers."""
    for holder, name in _items(value):
        if _has_stand_in(_read(holder, name), arrays):
            stand_ins.names[id(holder), name] = holder
    if isinstance(value, type):
        _add_of_class(stand_ins, value, names, arrays)
        return
    if type(value) is ModuleType:
        _add_of_module(stand_ins, value, names, arrays)
        return
    if isinstance(value, (FunctionType, CellType)):
        return
    kind = type(value)
    attributes = getattr_static(value, "__dict__", None) and vars(value)
    if type(attributes) is not dict or kind.__module__ in ("builtins", "functrans"):
        return
    _add_of_class(stand_ins, kind, names, arrays)
    for name in names:
        held = attributes.get(name)
        for holder, key in _items(held):
            if _has_stand_in(_read(holder, key), arrays):
                stand_ins.names[id(holder), key] = holder
        if _has_stand_in(held, arrays) and not any(name in vars(k) for k in kind.__mro__):
            key = (kind, name)
            if key not in stand_ins.attributes:
                stand_ins.attributes[key] = _Attribute(name, stand_ins)


def _add_of_class(stand_ins: StandIns, kind: Any, names: tuple[str, ...], arrays: bool) -> None:
    """Add the arrays and cached methods of a class and of its bases. Other functions there are methods."""
    for base in kind.__mro__ if arrays else ():
        for name in names:
            if type(vars(base).get(name)) in (_ndarray, _CACHED):
                stand_ins.names[id(base), name] = base


def _add_of_module(stand_ins: StandIns, module: Any, names: tuple[str, ...], arrays: bool) -> None:
    """Add the arrays of a module: constants.MATRIX.dot(x)."""
    for name in names if arrays else ():
        if type(vars(module).get(name)) is _ndarray:
            stand_ins.names[id(vars(module)), name] = vars(module)


def _items(container: Any) -> Iterator[tuple[Any, Any]]:
    """The places in a dict or list, and in those that it holds."""
    if type(container) is dict and len(container) <= _MOST_ITEMS:
        places: list[tuple[Any, Any]] = [(container, key) for key in container]
    elif type(container) is list and len(container) <= _MOST_ITEMS:
        places = [(container, k) for k in range(len(container))]
    else:
        return
    for holder, key in places:
        yield holder, key
        inner = holder[key]
        if type(inner) in (dict, list) and inner is not container:
            yield from (
                (inner, each) for each in (inner if type(inner) is dict else range(len(inner)))
            )
