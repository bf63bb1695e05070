"""Plain arrays that all lanes of a `vmap` share, and that may be indexed by mapped values.

NumPy gives no hook on `array[tracer]` or `array.dot(tracer)` when the array is plain, so `vmap` hands
the arguments that it does not map to the user's function as this subclass. It is an ordinary array
in every other way, and turns back into one as soon as a tracer is computed with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer


class SharedArray(np.ndarray[Any, Any]):
    """A plain array whose reads may be indexed by tracers."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        entries = key if type(key) is tuple else (key,)
        for entry in entries:
            if isinstance(entry, Tracer):
                return _traced_getitem(self.view(np.ndarray), key)
        return super().__getitem__(key)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        if isinstance(indices, Tracer):
            return _traced_take(self.view(np.ndarray), indices, axis, out, mode)
        return super().take(indices, axis, out, mode)

    def dot(self, other: Any, out: Any = None) -> Any:
        dot: Any = np.dot if isinstance(other, Tracer) else np.ndarray.dot
        return dot(self.view(np.ndarray), other, out)


def _missing(*_: Any) -> Any:
    raise NotImplementedError


# Installed by the vocabulary and the NumPy surface, which the core does not know.
_traced_getitem: Any = _missing
_traced_take: Any = _missing


def install(getitem: Any = None, take: Any = None) -> None:
    """Say what reading by traced indices means."""
    global _traced_getitem, _traced_take
    _traced_getitem = getitem or _traced_getitem
    _traced_take = take or _traced_take
