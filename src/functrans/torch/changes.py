"""Versions: when the memory of tensors was changed in place.

An in-place operation notes its time, as a key like those of records. The sweep refuses a record that saved
a value whose memory was changed later. Recording an operation costs nothing extra, and a sweep looks up
versions only if something was changed after the oldest of its records.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from typing import Any

import numpy as np

from functrans.core.custody import ONE_SLOT, memory_owner, references_in_slot
from functrans.core.dispatch import is_plain
from functrans.interpreters.tape import next_key

_KEPT = 1000  # how many times are kept for each array; older changes are only counted


class _Changes:
    __slots__ = ("earlier", "memory", "times", "writer")

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.earlier = 0
        self.times: list[int] = []
        self.writer: Any = None  # a weak reference to the record of the last change, if it has one

    def before(self, key: int) -> int:
        return self.earlier + bisect_left(self.times, key)


_arrays: dict[int, _Changes] = {}  # by the id of the array that owns the memory
_numbers: dict[int, _Changes] = {}  # by the id of a NumPy scalar, which a record may have saved


class _Last:
    change = -1


LAST = _Last()


def note_change(array: np.ndarray[Any, Any]) -> None:
    """An array was written to."""
    array = memory_owner(array)
    address = id(array)
    changes = _arrays.get(address)
    if changes is None:
        changes = _Changes(weakref.ref(array, lambda _: _arrays.pop(address, None)))
        _arrays[address] = changes
    LAST.change = next_key()
    _add(changes)


def note_writer(array: np.ndarray[Any, Any], record: Any) -> None:
    """The last change of an array was recorded."""
    _arrays[id(memory_owner(array))].writer = weakref.ref(record)


def writer(value: Any) -> Any:
    """The record of the last change of an array that owns its memory; None if it has none."""
    changes = _arrays.get(id(value))
    return changes.writer() if changes is not None and changes.writer is not None else None


def note_replaced(tensor: Any) -> None:
    """The number of a tensor without axes is about to be replaced; a record may have saved it."""
    if references_in_slot(tensor, "value") > ONE_SLOT:
        if len(_numbers) > _KEPT:
            for address, changes in list(_numbers.items()):
                if references_in_slot(changes, "memory") <= ONE_SLOT:  # nobody holds it any more
                    del _numbers[address]
        number = tensor.value
        changes = _numbers.setdefault(id(number), _Changes(number))
        LAST.change = next_key()
        _add(changes)


def _add(changes: _Changes) -> None:
    changes.times.append(LAST.change)
    if len(changes.times) > _KEPT:
        half = _KEPT // 2
        changes.earlier += half
        del changes.times[:half]


def version(value: Any, key: int | None = None) -> int:
    """How often the memory of a value has been written to, up to the time `key` if it is given."""
    if is_plain(value, np.ndarray):
        changes = _arrays.get(id(memory_owner(value)))
    else:
        changes = _numbers.get(id(value))
    if changes is None:
        return 0
    if key is None:
        return changes.earlier + len(changes.times)
    return changes.before(key)


def changed_since(saved: Any, key: int) -> Any:
    """The first value among those saved that was written to after `key`; None if there is none."""
    if is_plain(saved, (np.ndarray, np.generic)):
        return saved if version(saved) != version(saved, key) else None
    if isinstance(saved, (tuple, list)):
        for each in saved:
            found = changed_since(each, key)
            if found is not None:
                return found
    return None
