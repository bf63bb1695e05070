"""SciPy's own names on traced values: hooks that call the functions of `functrans.scipy`.

A module of `functrans.scipy` states what it knows: functions with SciPy's names in `__all__`; those that take
functions, which may close over traced values, in CLOSES_OVER; methods of SciPy's objects in METHODS; and
names that must not get traced values, with the remedy, in REFUSES.
"""

from __future__ import annotations

import sys
from functools import partial, wraps
from importlib import import_module
from typing import Any

import numpy as np

from functrans.core import errors, hooks
from functrans.core.conversions import COUNTERPARTS
from functrans.core.dispatch import Tracer, running_interpreters
from functrans.core.hooks import Hook
from functrans.core.places import is_ours

# The functions of scipy.fftpack that scipy.fft has with the same meaning of their arguments.
_SAME_IN_FFTPACK = frozenset(
    {"dct", "idct", "dst", "idst", "fft", "ifft", "fftfreq", "fftshift", "ifftshift"}
)


def find(module: str, name: str, original: Any) -> Hook | None:
    """The hook for a function or a class of SciPy's."""
    if isinstance(original, np.ufunc):
        return None  # which has a protocol
    if module == "scipy.fftpack" and name in _SAME_IN_FFTPACK:
        module = "scipy.fft"
    ours = counterpart(module)
    if ours is not None and name in getattr(ours, "REFUSES", ()):
        return Hook(_calling(original, _refusing(module, name, ours.REFUSES[name]), False), True)
    if ours is None or name not in ours.__all__ or isinstance(original, type(sys)):
        return None
    function = getattr(ours, name)
    hook = _calling(original, function, name in _closing_over(ours))
    # A wrapper, because the function itself may be used by its own name.
    return Hook(hook, True, direct=wraps(original, updated=())(partial(function)))


def counterpart(module: str) -> Any:
    """Our module for one of SciPy's, with the hooks for its methods in place; None if there is none."""
    name = COUNTERPARTS.get(module)
    if name is None:
        return None
    ours = import_module(name)
    for (kind, method), function in getattr(ours, "METHODS", {}).items():
        owner = next((base for base in kind.__mro__ if method in vars(base)), kind)
        stored = vars(owner).get(method)
        original = getattr(stored, "__func__", stored)
        code = getattr(original, "__code__", None)
        if code is None:
            continue
        always = f"{kind.__name__}.{method}" in _closing_over(ours)
        if not isinstance(stored, (staticmethod, classmethod)):
            _of_kinds.setdefault(code, {})[kind] = function
            if code not in hooks.METHODS:
                hook = _calling(original, _by_kind(original, code), always, skipped=1)
                hooks.METHODS[code] = (owner, method, hook)
        elif code not in hooks.METHODS:
            called = original if isinstance(stored, staticmethod) else getattr(kind, method)
            hook = _calling(called, function, always)
            hooks.METHODS[code] = (owner, method, staticmethod(hook))
    return ours


def _refusing(module: str, name: str, remedy: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise errors.MissingRuleError(
            f"{module}.{name} has no rule for traced values, at {errors.user_location()}. {remedy}"
        )

    return refuse


# Our functions for methods that classes inherit, by the code of the method and the class of the object.
_of_kinds: dict[Any, dict[type, Any]] = {}


def _by_kind(original: Any, code: Any) -> Any:
    """Our method for the class of an object; SciPy's if it is another subclass that inherits it."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        functions = _of_kinds[code]
        kinds = (kind for kind in type(self).__mro__ if kind in functions)
        kind = next(kinds, None)
        return (original if kind is None else functions[kind])(self, *args, **kwargs)

    return call


def _closing_over(ours: Any) -> frozenset[str]:
    return getattr(ours, "CLOSES_OVER", frozenset())


def _calling(original: Any, ours: Any, always: bool, skipped: int = 0) -> Any:
    """SciPy's function, or ours if it is needed; arguments that are skipped are not looked at."""

    def is_needed(args: Any, kwargs: Any) -> bool:
        if always and running_interpreters():
            needed = True
        else:
            needed = _holds_tracer((*args[skipped:], *kwargs.values()))
        return needed and not is_ours(
            sys._getframe(2).f_code
        )  # our own code means SciPy's function

    if isinstance(original, type):
        return _class_hook(original, ours, is_needed)

    @wraps(original, updated=())
    def hook(*args: Any, **kwargs: Any) -> Any:
        if not is_needed(args, kwargs):
            return original(*args, **kwargs)
        kwargs.pop("_no_deco", None)  # by which scipy.stats calls itself without its checks
        return ours(*args, **kwargs)

    return hook


class _ClassHook(type):
    """Takes the place of a class: calls make our objects where they are needed."""

    original: Any
    ours: Any
    is_needed: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made_by = cls.ours if cls.is_needed(args, kwargs) else cls.original
        return made_by(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (cls.original, cls.ours))

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, (cls.original, cls.ours))

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __eq__(cls, other: object) -> Any:
        return True if other is cls or other is cls.original else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.original)


def _class_hook(original: Any, ours: Any, is_needed: Any) -> Any:
    attributes = {"original": original, "ours": ours, "is_needed": staticmethod(is_needed)}
    return _ClassHook(original.__name__, (), attributes | {"__doc__": original.__doc__})


def _holds_tracer(value: Any) -> bool:
    """Whether a value is traced, or holds a traced one in lists, tuples, dicts, or as an attribute."""
    if isinstance(value, Tracer):
        return True
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tracer, value))
    if isinstance(value, dict):
        return any(map(_holds_tracer, value.values()))
    return type(value).__module__.startswith("functrans.scipy")  # an object made of traced values
