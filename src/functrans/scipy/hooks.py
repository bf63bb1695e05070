"""SciPy's own names on traced values: hooks that call the functions of `functrans.scipy`.

A module of `functrans.scipy` states what it knows: functions with SciPy's names in `__all__`; those that take
functions, which may close over traced values, in CLOSES_OVER; and methods of SciPy's objects in METHODS.
"""

from __future__ import annotations

import sys
from functools import partial, wraps
from importlib import import_module
from typing import Any

import numpy as np

from functrans.core import hooks
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
        stored = vars(kind).get(method)
        original = getattr(stored, "__func__", stored)
        code = getattr(original, "__code__", None)
        if code is not None and code not in hooks.METHODS:
            always = f"{kind.__name__}.{method}" in _closing_over(ours)
            static = isinstance(stored, (staticmethod, classmethod))
            called = original if isinstance(stored, staticmethod) else getattr(kind, method)
            hook = _calling(called if static else original, function, always, skipped=not static)
            hooks.METHODS[code] = (kind, method, staticmethod(hook) if static else hook)
    return ours


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
        return ours(*args, **kwargs) if is_needed(args, kwargs) else original(*args, **kwargs)

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
