"""Assignment, and traced arrays that are views of others.

Underneath, nothing is ever overwritten. An assignment computes a new value with a primitive, and makes
the user's tracer stand for the new value. A view keeps its parent and how it was made from it. An
assignment to a view also writes the new value into its parent, and so on up; an assignment to an array
also updates the views of it that are still alive.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer, is_plain


class View:
    """How one array is a view of another, its `parent`."""

    __slots__ = ("parent",)

    parent: Any

    def read(self, parent: Any) -> Any:
        """The view, recomputed with primitives."""
        raise NotImplementedError

    def misses(self, other: View) -> bool:
        """Whether this view certainly shares no entry with another of the same parent."""
        return False

    def write(self, parent: Any, value: Any) -> Any:
        """The parent with `value` in place of the view, computed with primitives."""
        raise errors.AssignmentError(
            "assignment destination is read-only, as views by np.broadcast_to and np.diagonal are, at "
            f"{errors.user_location()}. Assign to a copy: x = x.copy()."
        )


def link(array: Any, view: View, parent: Any, scalars: bool = True) -> Any:
    """Record that `array` is a view of `parent`, which may be a scalar; return the array."""
    if isinstance(array, Tracer) and isinstance(parent, Tracer):
        view.parent = parent
        if scalars and not is_mutable(parent):  # a scalar: its result is a copy
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
    value = getattr(array, "value", None)
    if isinstance(value, Tracer):
        return not value.shape and is_mutable(value)  # type: ignore[attr-defined]
    return type(value) is np.ndarray and value.ndim == 0


def is_array_not_number(value: Any) -> bool:
    """Whether a value is an array, traced or not, and not a number."""
    return is_mutable(value) if isinstance(value, Tracer) else is_plain(value, np.ndarray)


def in_form(value: Any, as_array: bool) -> Any:
    """A value without axes as an array, or as a number."""
    if is_array_not_number(value) == as_array:
        return value
    return np.copy(value) if as_array else value[()]


def held(x: Any) -> Any:
    """The plain value behind a tracer, with lanes first; None if it is not known."""
    while isinstance(x, Tracer):
        x = getattr(x, "value", None)
    return x


def _missing(value: Any) -> Any:
    raise NotImplementedError


_as_tracer: Any = _missing
_layout_of: Any = _missing
_watch: Any = None


def install(as_tracer: Any = None, layout_of: Any = None, watch: Any = None) -> None:
    """Set how a tracer holds a plain array, how an array lies in memory, and who watches assignments.

    The watcher is called with each array of plain values that is about to receive traced ones.
    """
    global _as_tracer, _layout_of, _watch
    _as_tracer = as_tracer or _as_tracer
    _layout_of = layout_of or _layout_of
    _watch = watch or _watch


def mark_as_array(array: Any) -> None:
    """Mark an array without axes as an array; its value does not always show it."""
    if not hasattr(array, "viewers"):
        array.viewers = []


def detached(array: Any, order: str = "K") -> Any:
    """A traced copy, like array.copy(order) of a plain array: not a view, and without gaps in memory."""
    copy = array.snapshot()
    if not array.shape:
        if is_mutable(array):
            mark_as_array(copy)
    elif order == "C":
        copy.layout = None
    elif len(array.shape) > 1:  # a vector has one layout only
        like = _layout_of(array)
        copy.layout = None if like is None else np.empty_like(like)
    return copy


def overwrite(target: Any, new: Any) -> None:
    """Make a traced array stand for `new`, and update its views and the arrays it is a view of."""
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
            value = in_form(value, as_array=True)
        if _watch is not None and value.interpreter.level and not array.interpreter.level:
            _watch(array)
        value.copy_to(array)
        _refresh(array, child)
        child = array


def _held_by_tracer(value: Any) -> Any:
    return value if isinstance(value, Tracer) else _as_tracer(value)


def _refresh(parent: Any, but: Any) -> None:
    """Update the views of an array, except the one that the change came from."""
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
