"""Plain arrays from outside of a traced function, as arrays that accept traced values.

`y = W.copy(); y[0] = x` and `self.A.dot(x)` call methods of plain arrays, which nothing can replace. If a run
fails for such an array, the next one finds *stand-ins* under the same names: open arrays with the same
values, in globals and closures, and in the attributes of objects. What the run changes in them is written to
the arrays they stand for, as far as it is plain.
"""

from __future__ import annotations

from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import running_interpreters
from functrans.core.evaluate import OpenArray
from functrans.core.hooks import HookPlan
from functrans.core.places import is_outside

_ndarray = np.ndarray


class StandIns:
    """The names whose arrays need stand-ins, and the stand-ins of the current run."""

    def __init__(self) -> None:
        self.names: dict[tuple[int, str], Any] = {}  # with the dicts and cells that hold them
        self.attributes: dict[tuple[type, str], _Attribute] = {}
        self.made: dict[int, tuple[Any, OpenArray]] = {}  # by the ids of the arrays
        self.placed: list[tuple[Any, str, OpenArray]] = []
        self.users: set[int] = set()  # the levels of the transforms, in all threads, that need them

    @property
    def size(self) -> int:
        return len(self.names) + len(self.attributes)

    def of(self, array: Any) -> OpenArray:
        """The stand-in of an array in this run."""
        found = self.made.get(id(array))
        if found is None:
            found = self.made[id(array)] = (array, OpenArray(array))
        return found[1]

    def install(self, level: int, function: Any) -> None:
        """Put stand-ins under all names, and into the closure and the defaults of the traced function."""
        self.users.add(level)
        for name, holder in (*((n, h) for (_, n), h in self.names.items()), *_own_names(function)):
            array = _read(holder, name)
            if type(array) is _ndarray:
                stand_in = self.of(array)
                self.placed.append((holder, name, stand_in))
                _write(holder, name, stand_in)
        for (kind, name), attribute in self.attributes.items():
            if name not in vars(kind):
                setattr(kind, name, attribute)

    def uninstall(self, level: int) -> Exception | None:
        """Put the arrays back, with what was assigned to them; returns an error to raise, if any."""
        self.users.discard(level)
        if self.users:
            return None
        for (kind, name), attribute in self.attributes.items():
            if vars(kind).get(name) is attribute:
                delattr(kind, name)
        plain = {id(stand_in): array for array, stand_in in self.made.values()}
        for holder, name, stand_in in self.placed:
            if _read(holder, name) is stand_in:
                _write(holder, name, plain[id(stand_in)])
        made, self.made = self.made, {}
        self.placed.clear()
        problem = None
        for array, stand_in in made.values():
            if type(stand_in) is not OpenArray:
                problem = errors.AssignmentError(
                    "a traced value was assigned into an array from outside of the traced function, at "
                    f"{errors.user_location()}, which would outlive the transform. Assign into a copy: "
                    "y = np.copy(array)."
                )
            elif stand_in.value is not array and not np.array_equal(stand_in.value, array, True):
                array[...] = stand_in.value
        return problem


class _Attribute:
    """An attribute of the objects of a class, whose plain arrays are seen as their stand-ins."""

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
        if type(value) is _ndarray and running_interpreters():
            return self.stand_ins.of(value)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        del instance.__dict__[self.name]


def _read(holder: Any, name: str) -> Any:
    if type(holder) is dict:
        return holder.get(name)
    if type(holder) is FunctionType:
        return holder.__defaults__[int(name)] if holder.__defaults__ else None
    try:
        return holder.cell_contents
    except ValueError:
        return None


def _write(holder: Any, name: str, value: Any) -> None:
    if type(holder) is dict:
        holder[name] = value
    elif type(holder) is FunctionType:
        defaults = holder.__defaults__ or ()
        holder.__defaults__ = (*defaults[: int(name)], value, *defaults[int(name) + 1 :])
    else:
        holder.cell_contents = value


def _own_names(function: Any) -> list[tuple[str, Any]]:
    """The closures of a function and of those that it closes over, and the numbers of their defaults."""
    found: list[tuple[str, Any]] = []
    waiting, seen = [function], set()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        cells = list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        found += [*cells, *((str(k), function) for k in range(len(function.__defaults__ or ())))]
        waiting += [_read(cell, name) for name, cell in cells]
    return found


def add_stand_ins(plan: HookPlan, frames: list[FrameType]) -> None:
    """Add the arrays that code on the stack mentions in globals and attributes."""
    if plan.stand_ins is None:
        plan.stand_ins = StandIns()
        plan.size += 1
    stand_ins: StandIns = plan.stand_ins
    before = stand_ins.size
    for frame in frames:
        if not is_outside(frame.f_code):
            continue
        names = frame.f_code.co_names
        for name in names:
            value = frame.f_globals.get(name)
            if type(value) is _ndarray:
                stand_ins.names[id(frame.f_globals), name] = frame.f_globals
            else:
                _add_attributes(stand_ins, value, names)
        for value in list(frame.f_locals.values()):
            _add_attributes(stand_ins, value, names)
    plan.size += stand_ins.size - before


def _add_attributes(stand_ins: StandIns, value: Any, names: tuple[str, ...]) -> None:
    """Add the arrays among the attributes of an object that code mentions."""
    if isinstance(value, (ModuleType, FunctionType, CellType, type)):
        return
    attributes = getattr(value, "__dict__", None)
    kind = type(value)
    if type(attributes) is not dict or kind.__module__ in ("builtins", "functrans"):
        return
    for name in names:
        if type(attributes.get(name)) is _ndarray and not any(
            name in vars(k) for k in kind.__mro__
        ):
            key = (kind, name)
            if key not in stand_ins.attributes:
                stand_ins.attributes[key] = _Attribute(name, stand_ins)
