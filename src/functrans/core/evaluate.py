"""The plainest meaning: compute.

Primitives on plain arrays need no interpreter: `Primitive.__call__` calls the NumPy implementation.
`Evaluate` is for arrays that are plain so far but may be assigned traced values later, such as
np.zeros_like(x) of a traced x, and for those that may be indexed by traced values, such as the
arguments that a `vmap` does not map. An `OpenArray` holds a plain array, and turns into a tracer of
another kind when a traced value is assigned into it. Its level is below all others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, views
from functrans.core.dispatch import Interpreter, Tracer, running_interpreters
from functrans.core.tracer import ConcreteTracer


class OpenArray(ConcreteTracer):
    """A plain array that may be assigned traced values."""

    __slots__ = ()

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.interpreter = EVALUATE
        self.value = value

    def copy_to(self, other: Any) -> None:
        other.__class__ = OpenArray
        other.interpreter = EVALUATE
        other.value = self.value

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # A copy always: assignments to this array must not show in one that cannot see them.
        return np.array(self.value, dtype=dtype)

    # It has no derivative to lose: one without axes may be assigned into a plain array.

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)


class Evaluate(Interpreter):
    """Computes; arrays that come out may be assigned traced values, too."""

    __slots__ = ()

    transform = "no transform"

    def __init__(self) -> None:
        super().__init__()
        self.level = 0

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        out = primitive.impl(*map(as_constant, args), **params)
        return tuple(map(open_array, out)) if primitive.outputs else open_array(out)

    def concrete(self, tracer: Any) -> Any:
        return tracer.value


EVALUATE = Evaluate()
views.install(as_tracer=lambda value: OpenArray(np.asarray(value)))


def open_array(value: Any) -> Any:
    """A plain array as one that may be assigned traced values; anything else as it is."""
    return OpenArray(value) if type(value) is np.ndarray else value


def opened(results: list[Any], given: Iterable[Any]) -> list[Any]:
    """Derivatives at arguments of which some are traced by another transform around.

    A gradient that is the same for all values comes out as a plain array. Like all that is made of traced
    arguments, it may be indexed by traced values, and assigned them.
    """
    if running_interpreters() and any(isinstance(value, Tracer) for value in given):
        return [open_array(result) for result in results]
    return results


def as_constant(value: Any) -> Any:
    """What an interpreter computes with in place of a value that is not its own."""
    return value.value if type(value) is OpenArray else value


def compute(primitive: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive one level down, for an interpreter that holds the result itself."""
    out = primitive(*args, **params)
    return tuple(map(as_constant, out)) if primitive.outputs else as_constant(out)


def captured(value: Any) -> Any:
    """The same for a value that is held on to: a later assignment does not show in it."""
    if isinstance(value, Tracer):
        return value.value if type(value) is OpenArray else value.snapshot()
    return value


COPIED_BYTES = 1 << 16


def kept(value: Any) -> Any:
    """The same for a value that the backward sweep will look at, when the user may have changed it.

    Large plain arrays are not copied: it would cost more than most operations on them. They are
    watched instead, and the sweep refuses if they have changed.
    """
    if type(value) is float or type(value) is int:  # most constants are
        return value
    if not isinstance(value, np.ndarray):
        return captured(value)
    if value.nbytes <= COPIED_BYTES:
        # What owns its memory and is read-only is safe, such as arguments that a transform hands on.
        return value if value.base is None and not value.flags.writeable else np.array(value)
    if value.flags.writeable:
        _watched.arrays.append((value, _fingerprint(value)))
    return value


class _Watched(threading.local):
    """Large arrays that records of this thread refer to, with a fingerprint of each."""

    def __init__(self) -> None:
        self.arrays: list[tuple[Any, Any]] = []


_watched = _Watched()


def _fingerprint(array: np.ndarray[Any, Any]) -> tuple[int, bytes]:
    """The sum of all bits, which sees an entry changed, and some 500 entries, which see them moved."""
    flat: Any = array.reshape(-1)  # a copy, if it is not in one piece
    words = flat.view(np.uint8 if flat.nbytes % 8 else np.uint64)
    step = array.size // 509 + 1
    return int(np.add.reduce(words, dtype=np.uint64)), flat[::step].tobytes()


def watched_since(mark: int) -> list[tuple[Any, Any]]:
    """The arrays that were kept since there were `mark` of them; forgotten if they are all."""
    arrays = _watched.arrays[mark:]
    if not mark:
        _watched.arrays.clear()
    return arrays


def watched_count() -> int:
    """How many arrays are kept for the tapes around."""
    arrays = _watched.arrays
    if arrays and not running_interpreters():
        arrays.clear()  # an interruption has left them
    return len(arrays)


def check_unchanged(arrays: list[tuple[Any, Any]]) -> None:
    """Refuse to go on with arrays that have changed."""
    for array, fingerprint in arrays:
        if _fingerprint(array) != fingerprint:
            raise errors.AssignmentError(
                f"a plain array ({array.dtype}{list(array.shape)}) was changed in place after it was "
                f"used with traced values, at {errors.user_location()}. The derivative needs what it "
                "was: use a copy (array.copy()) where it meets traced values, or fill a new array. "
                "(Arrays of up to 64 KB are copied for you.)"
            )


def run_equations(
    equations: Sequence[Any], environment: dict[Any, Any], outputs: Iterable[Any] | None = None
) -> None:
    """Run equations in order; `environment` maps variables to values and is filled in place.

    With `outputs`, all other values are let go of after their last use.
    """
    last_uses: list[set[Any]] = []
    if outputs is not None:
        needed = set(outputs)
        for equation in reversed(equations):
            last = {*equation.inputs, *equation.outputs} - needed
            needed |= last
            last_uses.append(last)
    for equation in equations:
        args = [environment[variable] for variable in equation.inputs]
        result = equation.primitive(*args, **equation.params)
        if equation.primitive.outputs:
            environment.update(zip(equation.outputs, result, strict=True))
        else:
            environment[equation.outputs[0]] = result
        if outputs is not None:
            for variable in last_uses.pop():
                del environment[variable]
