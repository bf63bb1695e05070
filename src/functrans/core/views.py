"""Assignment: what it means that one traced array is a view of another.

Underneath, nothing is ever overwritten. An assignment computes a new value by a primitive, and then
lets the tracer that the user holds mean the new value. A view keeps its parent and the way it was
made from it. When a view is assigned to, its parent gets the new value in its place, and so on up;
when an array is assigned to, the views of it that are still alive are made anew.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer


class View:
    """How one array is a view of another, its `parent`."""

    __slots__ = ("parent",)

    parent: Any

    def read(self, parent: Any) -> Any:
        """The view, made anew by primitives."""
        raise NotImplementedError

    def misses(self, other: View) -> bool:
        """Whether this view surely has no entry in common with another of the same parent."""
        return False

    def write(self, parent: Any, value: Any) -> Any:
        """The parent with `value` in the place of the view, by primitives."""
        raise ValueError("assignment destination is read-only")


def link(array: Any, view: View, parent: Any, scalars: bool = True) -> Any:
    """Note that `array` is a view of `parent`, which may be a scalar; returns the array."""
    if isinstance(array, Tracer) and isinstance(parent, Tracer):
        view.parent = parent
        if scalars and not is_mutable(parent):  # a scalar: what is made of it is a copy
            if type(view).write is View.write:  # that cannot be written to
                array.origin = view
            return array
        array.origin = view
        try:
            viewers = parent.viewers
        except AttributeError:
            parent.viewers = [weakref.ref(array)]
            return array
        if len(viewers) & (len(viewers) - 1) == 0:  # now and then, forget those that are gone
            viewers[:] = [viewer for viewer in viewers if viewer() is not None]
        viewers.append(weakref.ref(array))
    return array


def view_of(array: Any) -> View | None:
    """How an array is a view, or None."""
    return getattr(array, "origin", None)


def is_mutable(array: Any) -> bool:
    """Whether a tracer stands for an array, which can be assigned to, not for a NumPy scalar."""
    if array.shape or hasattr(array, "viewers") or view_of(array) is not None:
        return True
    value = held(array)
    return type(value) is np.ndarray and value.ndim == 0


def held(x: Any) -> Any:
    """The plain value behind a tracer, lanes in front; None if it is not known."""
    while isinstance(x, Tracer):
        x = getattr(x, "value", None)
    return x


def _missing(value: Any) -> Any:
    raise NotImplementedError


_as_tracer: Any = _missing
_layout_of: Any = _missing


def install(as_tracer: Any = None, layout_of: Any = None) -> None:
    """Say how a plain array is held by a tracer, and how an array lies in memory."""
    global _as_tracer, _layout_of
    _as_tracer = as_tracer or _as_tracer
    _layout_of = layout_of or _layout_of


def mark_as_array(array: Any) -> None:
    """Say of an array without axes that it is one; its value does not always show it."""
    if not hasattr(array, "viewers"):
        array.viewers = []


def overwrite(target: Any, new: Any) -> None:
    """Let a traced array mean `new` from now on, with all that are views of it or it is a view of."""
    # All new values first: one of the arrays may refuse to be written to.
    changes = [(target, _held_by_tracer(new))]
    while (view := view_of(target)) is not None:
        target = view.parent
        changes.append((target, _held_by_tracer(view.write(target, changes[-1][1]))))
    if not hasattr(target, "layout"):
        target.layout = _layout_of(target)  # assignments do not change how an array lies in memory
    child = None
    for array, value in changes:
        if not array.shape:
            mark_as_array(array)
        value.copy_to(array)
        _refresh(array, child)
        child = array


def _held_by_tracer(value: Any) -> Any:
    return value if isinstance(value, Tracer) else _as_tracer(value)


def _refresh(parent: Any, but: Any) -> None:
    """Make the views of an array anew, except the one that the change came from."""
    changed = None if but is None else but.origin
    waiting = [parent]
    while waiting:
        parent = waiting.pop()
        for viewer in getattr(parent, "viewers", ()):
            array = viewer()
            if array is None or array is but:
                continue
            if changed is not None and array.origin.misses(changed):
                continue
            array.origin.read(parent).copy_to(array)
            waiting.append(array)
        changed = None  # below, everything is new
