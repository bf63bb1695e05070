"""Tensors that share memory, and in-place operations on them.

The memory is one, so a change shows everywhere by itself. What has to follow is the records: after a
view was written to, its base is the result of an operation too, and so are the base's other views.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.torch import changes
from functrans.torch.errors import TensorError
from functrans.torch.tape import MODE, lowered


class Origin:
    """How a tensor is a view: `read` makes it from the face of its base, `write` puts it back."""

    __slots__ = ("base", "read", "write")

    def __init__(self, base: Any, read: Callable[..., Any], write: Callable[..., Any]) -> None:
        self.base = base
        self.read = read
        self.write = write


def link(view: Any, base: Any, read: Callable[..., Any], write: Callable[..., Any]) -> Any:
    """Note that a tensor is a view of another; returns it."""
    view.origin = Origin(base, read, write)
    viewers = base.viewers
    if viewers is None:
        base.viewers = [weakref.ref(view)]
    else:
        if len(viewers) & (len(viewers) - 1) == 0:  # now and then, forget those that are gone
            viewers[:] = [viewer for viewer in viewers if viewer() is not None]
        viewers.append(weakref.ref(view))
    return view


def memory(tensor: Any) -> Any:
    """The array of a tensor; a number becomes an array that can be shared and written to."""
    value = tensor.value
    if isinstance(value, np.generic):
        value = tensor.value = np.array(value)
    return value


def check_in_place(tensor: Any) -> None:
    """Whether a tensor may be written to now."""
    if tensor.inference and not MODE.inference:
        raise TensorError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
            "clone to get a normal tensor before doing inplace update."
        )
    if tensor.record is None or not MODE.enabled:
        return
    if len(tensor.record) == 1:
        raise TensorError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    base = tensor
    while base.origin is not None:
        base = base.origin.base
        if base.record is not None and len(base.record) == 1:
            raise TensorError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
            )


def written(tensor: Any, record: Any) -> Any:
    """A tensor's memory was written to by the operation with this record (None if not recorded)."""
    if not MODE.inference:
        changes.note_change(tensor.value)
    if record is not None:
        last = _follow(tensor, record)
        if last is not None and not MODE.inference:
            changes.note_writer(tensor.value, last)
    return tensor


def _follow(tensor: Any, record: Any) -> Any:
    """Give a tensor a new record, then its bases, and each time all that are views of it.

    Returns the record of the last of the bases, which has the memory.
    """
    tensor.record = record
    _refresh(tensor)
    while tensor.origin is not None:
        origin = tensor.origin
        _, base_record = lowered(origin.write(origin.base.lift(), tensor.lift()))
        if base_record is not None:
            base_record.name = "CopySlices"
        tensor = origin.base
        tensor.record = base_record
        _refresh(tensor)
    return tensor.record


def _refresh(base: Any) -> None:
    """Make the records of the living views of a tensor anew."""
    for viewer in base.viewers or ():
        view = viewer()
        if view is not None:
            _reread(view)
            _refresh(view)


def _reread(view: Any) -> None:
    _, record = lowered(view.origin.read(view.origin.base.lift()))
    if record is not None:
        record.name = "AsStridedBackward0"
    view.record = record


def assign(tensor: Any, value: Any) -> None:
    """Give a tensor inside a transform another meaning, and with it those that share its memory."""
    tensor.value, tensor.record = lowered(value)
    child = tensor
    while child.origin is not None:
        base = child.origin.base
        base.value, base.record = lowered(child.origin.write(base.lift(), child.lift()))
        _revalue(base, child)
        child = base
    _revalue(tensor, None)


def _revalue(base: Any, but: Any) -> None:
    for viewer in base.viewers or ():
        view = viewer()
        if view is not None and view is not but:
            view.value, view.record = lowered(view.origin.read(base.lift()))
            _revalue(view, None)
