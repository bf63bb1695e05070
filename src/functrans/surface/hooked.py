"""Hooks for NumPy's functions that offer no protocol: see functrans.core.hooks.

np.array([x, y]) and similar functions are those of `functrans.numpy` if an argument is traced. Functions that
make new arrays return plain ones, except at calls whose arrays are known to receive traced values.
"""

from __future__ import annotations

import sys
from functools import wraps
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import numpy as np

from functrans.core import hooks
from functrans.core.dispatch import running_interpreters
from functrans.core.hooks import Hook, noting
from functrans.core.learning import is_open, note_made, open_sites
from functrans.core.places import takes_hooks
from functrans.core.tracer import FUNCTIONS
from functrans.surface import functional, hooked_polynomials
from functrans.surface.constructors import CONSTRUCTORS
from functrans.surface.hooked_types import NUMBERS, Broadcast, number_type
from functrans.surface.table import PLAIN, holds_tracer
from functrans.surface.unhooked import open_all, reach

_getframe, _ndarray = sys._getframe, np.ndarray
# Names that may be hooked later.
_VECTORIZE, _NDENUMERATE, _BROADCAST = np.vectorize, np.ndenumerate, np.broadcast
_FROMITER = np.fromiter
_CALLING = frozenset({np.apply_along_axis, np.apply_over_axes, np.piecewise})
_OBJECTS = frozenset({"r_", "c_", "mgrid", "ogrid"})


def find(module: str, name: str, original: Any) -> Hook | None:
    if module.startswith("numpy.polynomial") or name == "poly1d":
        return hooked_polynomials.find(module, name, original)
    if isinstance(original, type):
        if original is _VECTORIZE:
            return Hook(_vectorizing, True)
        if original is _NDENUMERATE:
            return Hook(CONSTRUCTORS["ndenumerate"], True)
        if original is _BROADCAST:
            return Hook(Broadcast, True)
        return Hook(number_type(original), False) if original in NUMBERS else None
    if module == "numpy" and name in _OBJECTS:
        return Hook(_HookedObject(original, CONSTRUCTORS[name]), True)
    if original is _FROMITER:
        return Hook(as_named(_from_iterator, original), True, direct=CONSTRUCTORS["fromiter"])
    if module == "numpy" and name in CONSTRUCTORS:
        ours = CONSTRUCTORS[name]
        return Hook(_making(original, ours), True, direct=ours)
    if module == "numpy" and name == "require":
        return Hook(_making(original, _required), True)
    if module not in ("numpy", "numpy.linalg", "numpy.fft"):
        return None
    reaching = reach(original)
    if reaching is original:
        return None
    if original in _CALLING:
        reaching = _calling(original, FUNCTIONS[original])
    elif not isinstance(original, np.ufunc):
        reaching = _making(original, reaching)  # its results may be assigned to
    return Hook(as_named(reaching, original), False)


def _required(a: Any, dtype: Any = None, requirements: Any = None, **options: Any) -> Any:
    """np.require: a traced array has no memory that could be required to be of some kind."""
    return CONSTRUCTORS["asanyarray"](a, dtype)


def as_named(hook: Any, original: Any) -> Any:
    """A hook with the name and the docstring of the function that it replaces."""
    hook.__module__ = getattr(original, "__module__", None)
    hook.__doc__ = original.__doc__
    return hook


def _making(original: Any, ours: Any) -> Any:
    """A function that makes arrays."""

    # Most calls have no traced values, and most are not to be slowed down by much.
    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) not in PLAIN and holds_tracer(value):
                return meant(_getframe(1).f_code)(*args, **kwargs)
        for value in kwargs.values():
            if type(value) not in PLAIN and holds_tracer(value):
                return meant(_getframe(1).f_code)(*args, **kwargs)
        made = original(*args, **kwargs)
        if (noting or open_sites) and (type(made) is _ndarray or type(made) is tuple):
            return _noted(made, args, _getframe(1))
        return made

    def meant(code: CodeType) -> Any:
        """NumPy's code, and ours, mean NumPy's function, which refuses traced values."""
        return ours if takes_hooks(code) else original

    return make


def _from_iterator(iter: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    """np.fromiter, which sees the values only by reading them."""
    frame = sys._getframe(1)
    if not running_interpreters() or not takes_hooks(frame.f_code):
        return _FROMITER(iter, dtype, count, **options)
    values = list(iter if count < 0 else islice(iter, count))
    if holds_tracer(values):
        return CONSTRUCTORS["fromiter"](values, dtype, count)
    return _noted(_FROMITER(values, dtype, count), (), frame)


def _calling(original: Any, ours: Any) -> Any:
    """A function of a function, which may close over traced values."""

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if not running_interpreters() or not takes_hooks(frame.f_code):
            return original(*args, **kwargs)
        made = ours(*args, **kwargs)
        return _noted(made, args, frame) if type(made) is np.ndarray else made

    return call


def _noted(made: Any, sources: Any, frame: FrameType) -> Any:
    """New arrays: open ones at calls whose arrays receive traced values."""
    if is_open(frame):
        return open_all(made, sources) if running_interpreters() else made
    if type(made) is _ndarray:
        note_made(made, frame)
    else:
        for array in made:
            note_made(array, frame)
    return made


class _HookedObject:
    """np.r_ and similar objects."""

    __slots__ = ("original", "ours")

    def __init__(self, original: Any, ours: Any) -> None:
        self.original, self.ours = original, ours

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        limits = [(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts]
        if holds_tracer(limits):
            return self.ours[key]
        return _noted(self.original[key], (), sys._getframe(1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __len__(self) -> int:
        return 0


# np.vectorize(f), and objects that it has made before.


@wraps(np.vectorize, updated=())
def _vectorizing(*args: Any, **kwargs: Any) -> Any:
    return functional.vectorize(*args, **kwargs)


_call_vectorized: Any = np.vectorize.__call__


@wraps(_call_vectorized)
def _vectorized(self: Any, *args: Any, **kwargs: Any) -> Any:
    if not running_interpreters():
        return _call_vectorized(self, *args, **kwargs)
    options = {"excluded": self.excluded, "signature": self.signature, "otypes": self.otypes}
    return functional.vectorize(self.pyfunc, **options)(*args, **kwargs)


hooks.METHODS[_call_vectorized.__code__] = (np.vectorize, "__call__", _vectorized)
