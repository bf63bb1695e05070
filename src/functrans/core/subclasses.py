"""Which subclasses of NumPy's array count as arrays: those that compute as it does.

A rule is about plain arrays. The mask of a np.ma.MaskedArray, the products of a np.matrix or the units of
a quantity would be lost in it, and the result would be wrong without a word. A np.memmap, or a class that
only carries more with it, is an array like any other.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

# What a subclass may have of its own: how it is made, shown and stored.
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
    """Whether arrays of this class compute as plain ones do."""
    known = _known.get(cls)
    if known is None:
        known = _known[cls] = all(
            getattr(cls, name) in (getattr(np.ndarray, name), getattr(np.memmap, name))
            for name in _MEANING
        )
    return known


def no_plain_array(value: np.ndarray[Any, Any]) -> str:
    """What a message says of an array of a class that does not."""
    name = type(value).__name__
    return (
        f"an array of the class {name}, which computes in its own way. A derivative knows plain arrays "
        "only: pass np.asarray(x), or x.filled(...) of a masked array."
    )
