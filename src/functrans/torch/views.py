"""Views: tensors that share memory, and in-place operations on them.

The memory is shared, so a change is visible everywhere. The records have to be updated: after a write to a
view, its base is also the result of an operation, and so are the other views of the base.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.torch import changes
from functrans.torch.errors import TensorError
from functrans.torch.tape import MODE, lowered


class Origin:
    """How a tensor is a view: `read` makes it from the NumPy face of its base; `write` writes it back."""

    __slots__ = ("base", "read", "write")

    def __init__(self, base: Any, read: Callable[..., Any], write: Callable[..., Any]) -> None:
        self.base = base
        self.read = read
        self.write = write


def link_tensor(view: Any, base: Any, read: Callable[..., Any], write: Callable[..., Any]) -> Any:
    """Note that a tensor is a view of another; returns it."""
    view.origin = Origin(base, read, write)
    viewers = base.viewers
    if viewers is None:
        base.viewers = [weakref.ref(view)]
    else:
        if len(viewers) & (len(viewers) - 1) == 0:  # from time to time, drop those that are gone
            viewers[:] = [viewer for viewer in viewers if viewer() is not None]
        viewers.append(weakref.ref(view))
    return view


def memory(tensor: Any) -> Any:
    """The array of a tensor; a number becomes an array that can be shared and written to."""
    value = tensor.value
    if is_plain(value, np.generic):
        value = tensor.value = np.array(value)
    return value


def check_in_place(tensor: Any) -> None:
    """Raise an error if a tensor must not be written to now."""
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
    """Note that the operation with this record (None if not recorded) wrote to a tensor's memory."""
    if not MODE.inference:
        changes.note_change(tensor.value)
    if record is not None:
        last = _follow(tensor, record)
        if last is not None and not MODE.inference:
            changes.note_writer(tensor.value, last)
    return tensor


def _follow(tensor: Any, record: Any) -> Any:
    """Give a new record to a tensor and then to its bases, and each time to all their views.

    Returns the record of the last base, which owns the memory.
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
    """Give new records to the views of a tensor that still exist."""
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


def assign_tensor(tensor: Any, value: Any) -> None:
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
