"""Versions: when memory that tensors share was changed in place.

An in-place operation notes the time, which is a key as records have them. A record that saved a value
before its memory was changed cannot be swept. Nothing is noted, and nothing looked up, where operations
are recorded: a sweep looks only if something was changed after the oldest of its records.
"""

from __future__ import annotations

import sys
import weakref
from bisect import bisect_left
from typing import Any

import numpy as np

from functrans.interpreters.tape import next_key

_KEPT = 1000  # so many times are kept for each memory; of older changes only the number


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


def owner(array: Any) -> Any:
    """The array whose memory this one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def note_change(array: np.ndarray[Any, Any]) -> None:
    """An array was written to."""
    array = owner(array)
    address = id(array)
    changes = _arrays.get(address)
    if changes is None:
        changes = _Changes(weakref.ref(array, lambda _: _arrays.pop(address, None)))
        _arrays[address] = changes
    LAST.change = next_key()
    _add(changes)


def note_writer(array: np.ndarray[Any, Any], record: Any) -> None:
    """The last change of an array was recorded."""
    _arrays[id(owner(array))].writer = weakref.ref(record)


def writer(value: Any) -> Any:
    """The record of the last change of an array that owns its memory; None if it has none."""
    changes = _arrays.get(id(value))
    return changes.writer() if changes is not None and changes.writer is not None else None


def _references(tensor: Any) -> int:
    number = tensor.value
    return sys.getrefcount(number)


class _Alone:
    value = np.float64(0.5)


_ALONE = _references(_Alone)


def note_replaced(tensor: Any) -> None:
    """The number of a tensor without axes is about to be replaced; a record may have saved it."""
    if _references(tensor) > _ALONE:
        if len(_numbers) > _KEPT:
            for address, changes in list(_numbers.items()):
                if sys.getrefcount(changes.memory) == 2:  # nobody holds it any more
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
    """How often the memory of a value has been written to, before the time `key` if it is given."""
    if isinstance(value, np.ndarray):
        changes = _arrays.get(id(owner(value)))
    else:
        changes = _numbers.get(id(value))
    if changes is None:
        return 0
    if key is None:
        return changes.earlier + len(changes.times)
    return changes.before(key)


def changed_since(saved: Any, key: int) -> Any:
    """The first value among those saved that was written to after `key`; None if there is none."""
    if isinstance(saved, (np.ndarray, np.generic)):
        return saved if version(saved) != version(saved, key) else None
    if isinstance(saved, (tuple, list)):
        for each in saved:
            found = changed_since(each, key)
            if found is not None:
                return found
    return None
