"""Which subclasses of NumPy's array count as arrays: those that compute like plain arrays.

Rules are written for plain arrays. They would ignore the mask of a np.ma.MaskedArray, the products of a
np.matrix or the units of a quantity, and the result would be silently wrong. A np.memmap, or a class that
only adds data, is an array like any other.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

# What a subclass may define itself: how it is created, shown and stored.
_MAKING = {"__new__", "__init__", "__init_subclass__", "__array_finalize__", "__array_wrap__"}
_SHOWING = {"__repr__", "__str__", "__format__", "__doc__", "__dir__", "__sizeof__"}
_STORING = {
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "dump",
    "dumps",
    "tofile",
}
_COPYING = {"__copy__", "__deepcopy__", "__hash__", "__array_priority__", "__array_prepare__"}
_ATTRIBUTES = {"__class__", "__class_getitem__", "__subclasshook__"} | {
    f"__{verb}__" for verb in ("getattribute", "setattr", "delattr")
}
_FREE = _MAKING | _SHOWING | _STORING | _COPYING | _ATTRIBUTES
_MEANING = [name for name in dir(np.ndarray) if name not in _FREE]


_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def computes_plainly(cls: Any) -> bool:
    """Whether arrays of this class compute like plain arrays."""
    known = _known.get(cls)
    if known is None:
        known = _known[cls] = all(
            getattr(cls, name) in (getattr(np.ndarray, name), getattr(np.memmap, name))
            for name in _MEANING
        )
    return known


def plain_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of such a class as a plain array that shares its memory."""
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def no_plain_array(value: np.ndarray[Any, Any]) -> str:
    """How a message describes an array of a class that does not."""
    return f"an array of the class {type(value).__name__}, which computes in its own way"


def in_plain(value: np.ndarray[Any, Any]) -> str:
    """The remedy for such an array."""
    if isinstance(value, np.ma.MaskedArray):
        return "Pass a plain array: x.filled(0.0), with a number for the masked entries."
    return "Pass a plain array: np.asarray(x)."
