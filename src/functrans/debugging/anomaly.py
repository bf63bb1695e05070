"""detect_anomaly: the first nan or inf raises, with the line of the operation that made it.

While it is on, every interpreter that starts in the thread gets a watched class, whose `process` checks
results and wraps the pullbacks of new records. When it is off, nothing is checked. An operation is checked
where the user's code calls it, at the highest level, with everything in its result: values, tangents, lanes.
Operations inside rules are not checked: a rule may make an inf and not use it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast, overload

import numpy as np

from functrans.core import tree
from functrans.core.dispatch import (
    Interpreter,
    Tracer,
    Watcher,
    is_plain,
    running_interpreters,
    watcher,
)
from functrans.core.errors import AnomalyError, is_outside, location_of, user_frame
from functrans.core.primitive import HigherOrder
from functrans.debugging.ranges import HeldArray, held_arrays
from functrans.debugging.ranges import transforms as describe_transforms
from functrans.interpreters.batch import Batch
from functrans.interpreters.dual import Dual
from functrans.interpreters.tape import Tape
from functrans.interpreters.watch import Watch
from functrans.solvers.implicit import implicit

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def detect_anomaly(nan: bool = True, inf: bool = True) -> _AnomalyWatcher: ...
@overload
def detect_anomaly(nan: _Function) -> _Function: ...
def detect_anomaly(nan: Any = True, inf: bool = True) -> Any:
    """A context in which the first nan or inf, forward or backward, raises an `AnomalyError`.

    The error names the operation, the user's line of its forward call (even for a nan that first appears in
    the backward pass), the ranges of its inputs, and the running transforms. Operations on traced values are
    checked, that is, those under a transform and in functions made by `jit`, which run uncompiled here. It
    also works as a decorator, and applies to the thread that enters it.

    Parameters
    ----------
    nan : bool
        Whether a nan raises an error.
    inf : bool
        Whether an inf that an operation computes from finite inputs raises an error. An explicit inf, as in
        np.where(mask, x, -np.inf), does not.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import detect_anomaly, grad
    >>> with detect_anomaly():
    ...     grad(lambda x: np.sum(np.log(x)))(np.array([1.0, 0.0]))
    Traceback (most recent call last):
        ...
    functrans.errors.AnomalyError: log made an inf, forward, at ...
    """
    if callable(nan):  # @detect_anomaly
        return _AnomalyWatcher(True, inf)(nan)
    return _AnomalyWatcher(nan, inf)


class _AnomalyWatcher(Watcher):
    """What to look for, and how to report it."""

    def __init__(self, nan: bool, inf: bool) -> None:
        super().__init__()
        self.nan = nan
        self.inf = inf

    def __call__(self, function: _Function) -> _Function:
        """The same function, watched whenever it runs."""

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with _AnomalyWatcher(self.nan, self.inf):
                return function(*args, **kwargs)

        return cast(_Function, watched)

    def attach(self, interpreter: Interpreter) -> None:
        if isinstance(interpreter, (Tape, Dual, Batch, Watch)):
            kind: Any = type(interpreter)
            interpreter.__class__ = _watched_kind(kind)

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        if any(isinstance(leaf, Tracer) for leaf in tree.leaves((args, kwargs))):
            return function(*args, **kwargs)  # an outer transform sees its operations
        results = _Jit(function).run(function, args, kwargs)
        # The results of a compiled function share no memory with its arguments.
        return tree.map(lambda x: x.copy() if is_plain(x, np.ndarray) else x, results)

    def look_on(self, function: Any, args: Any) -> Any:
        return _Search(function).run(function, args, {})

    def found(self, parts: list[HeldArray]) -> str:
        """The anomaly that was found: "a nan", "an inf" or nothing."""
        if all(part.is_finite() for part in parts):
            return ""
        if self.nan and any(part.nans for part in parts):
            return "a nan"
        return "an inf" if self.inf and any(part.infs for part in parts) else ""


class _Jit(Watch):
    """Stands for a compiled function that is called on plain values."""

    __slots__ = ()

    transform = "jit"


class _Search(Watch):
    """A running solver, whose steps no transform would see."""

    __slots__ = ()

    transform = "a search"


class _OnceMore(Watch):
    """Runs a function inside a primitive again, to see its operations."""

    __slots__ = ()

    transform = "a function with custom rules"


class _CheckedInterpreter(Interpreter):
    """Comes before an interpreter's own class, and checks the results of its `process`."""

    __slots__ = ()

    def process(self, primitive: Any, args: Any, params: Any) -> Any:
        return _look(self, primitive, args, params, super().process, (primitive, args, params))

    def process1(self, primitive: Any, x: Any) -> Any:
        return _look(self, primitive, (x,), {}, super().process1, (primitive, x))

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        return _look(self, primitive, (x, y), {}, super().process2, (primitive, x, y))


@cache
def _watched_kind(kind: Any) -> Any:
    if issubclass(kind, _CheckedInterpreter):
        return kind
    return type(f"Watched{kind.__name__}", (_CheckedInterpreter, kind), {"__slots__": ()})


def _look(
    interpreter: Any, primitive: Any, args: Any, params: Any, process: Any, call: tuple[Any, ...]
) -> Any:
    """One operation of a watched interpreter."""
    tool = watcher()
    if not isinstance(tool, _AnomalyWatcher):
        return process(*call)
    name, given = _named(primitive, args, params)
    # Before it runs: an assignment may change an argument.
    inputs = [(f"input {k}", _held(arg)) for k, arg in enumerate(given)]
    records = interpreter.records if isinstance(interpreter, Tape) else None
    start = 0 if records is None else len(records)
    out = _run(process, call)
    place = _Place(sys._getframe())
    if records is not None:
        for k in range(start, len(records)):
            key, pull, saved, *rest = records[k]
            if callable(pull) and not isinstance(pull, (_Pull, type)):
                pull = _Pull(pull, name, place.code, place.line, inputs, interpreter)
                records[k] = (key, pull, saved, *rest)
    if place.inside_a_rule:
        return out
    results = list(held_arrays(out, "the result"))
    if what := tool.found(results):
        parts = _parts(inputs)
        if what == "a nan" and any(part.nans for part in parts):
            raise _error(name, f"was given {what}", place, results, parts)
        if what == "a nan" or not any(part.infs for part in parts):
            if type(primitive) is HigherOrder and not isinstance(interpreter, Batch):
                _find_inside(primitive, args, params)
            raise _error(name, f"made {what}", place, results, parts)
    return out


def _named(primitive: Any, args: Any, params: Any) -> tuple[str, Any]:
    """The name and inputs of an operation, without the solution that follows its operands."""
    if primitive is not implicit:
        return primitive.name, args
    return params["rules"].name, args[: params["count"]]


def _run(process: Any, call: tuple[Any, ...]) -> Any:
    """Operations that are called from here, and not by the user's code, are called by a rule."""
    return process(*call)


def _held(value: Any) -> Any:
    return value.snapshot() if isinstance(value, Tracer) else value


def _parts(inputs: list[tuple[str, Any]]) -> list[HeldArray]:
    return [part for name, value in inputs for part in held_arrays(value, name)]


def _find_inside(primitive: HigherOrder, args: Any, params: Any) -> None:
    """Run a user's function once more, operation by operation, to find the line in it."""
    values = [value.value if isinstance(value, Tracer) else value for value in args]
    if not primitive.plain and not any(isinstance(value, Tracer) for value in values):
        _OnceMore().run(primitive.impl, values, params)


class _Place:
    """Where an operation is called: the user's line, or the record that is being pulled."""

    __slots__ = ("code", "inside_a_rule", "line", "pulls")

    def __init__(self, frame: Any) -> None:
        self.code: Any = None
        self.line = 0
        self.inside_a_rule = False
        self.pulls: list[_Pull] = []  # innermost first
        frame = frame.f_back
        while frame is not None:
            code = frame.f_code
            if code is _PULL:
                pull = frame.f_locals["self"]
                if self.code is None:
                    self.inside_a_rule = True
                    self.code, self.line = pull.code, pull.line
                self.pulls.append(pull)
            elif self.code is None:
                if code is _RUN:
                    self.inside_a_rule = True
                elif is_outside(code):
                    user = user_frame(frame)  # this frame may be in a library that the user called
                    self.code, self.line = user.f_code, user.f_lineno
            frame = frame.f_back

    def __str__(self) -> str:
        return "an unknown place" if self.code is None else location_of(self.code, self.line)


class _Pull:
    """The pullback of a record, with the forward operation that it belongs to."""

    __slots__ = ("code", "inputs", "line", "name", "owns", "pull", "tape")

    def __init__(self, pull: Any, name: str, code: Any, line: int, inputs: Any, tape: Any) -> None:
        self.pull = pull
        self.name = name  # of the forward operation
        self.code = code  # and the line in it that called the operation
        self.line = line
        self.inputs = inputs
        self.tape = tape
        self.owns = getattr(pull, "owns", False)

    def __call__(self, cotangent: Any, saved: Any) -> Any:
        tool = watcher()
        if not isinstance(tool, _AnomalyWatcher):
            return self.pull(cotangent, saved)
        # First, since the pullback may change the sums of the backward pass in place.
        arriving = list(held_arrays(cotangent, "the cotangent of the result"))
        if what := tool.found(arriving):
            raise self._error(f"was given {what}", [], arriving)
        out = self.pull(cotangent, saved)
        results = list(held_arrays(out, "the cotangent of the inputs"))
        if what := tool.found(results):
            raise self._error(f"made {what}", results, arriving)
        return out

    def _error(
        self, what: str, results: list[HeldArray], arriving: list[HeldArray]
    ) -> AnomalyError:
        place = _Place(sys._getframe(1))
        place.code, place.line, place.inside_a_rule = self.code, self.line, True
        place.pulls.insert(0, self)
        return _error(self.name, what, place, results, arriving + _parts(self.inputs))


_RUN = _run.__code__
_PULL = _Pull.__call__.__code__


def _error(
    name: str, what: str, place: _Place, results: list[HeldArray], inputs: list[HeldArray]
) -> AnomalyError:
    if not place.pulls:
        phase = f"{what}, forward, at {place}"
    elif place.inside_a_rule:
        phase = f"{what}, backward. Its forward line is {place}"
    else:
        outer = place.pulls[0]
        phase = f"{what}, backward, at {place}, for {location_of(outer.code, outer.line)}"
    running = {*running_interpreters(), *(pull.tape for pull in place.pulls)}
    lines = [f"{name} {phase}"]
    lines += [f"  {part}" for part in (*results, *inputs)]
    lines.append(f"  transforms: {describe_transforms(running)}")
    lines.append(_advice(what, bool(place.pulls)))
    return AnomalyError("\n".join(lines))


def _advice(what: str, backward: bool) -> str:
    if what.startswith("was given"):
        if backward:
            return (
                "It is a cotangent that was passed to a pullback, or several add up to it: check the sizes "
                "of the terms."
            )
        return "It came in with an argument, or with an array that the function closes over."
    if backward:
        return (
            "The derivative is not finite there. Keep the input of the operation away from such "
            "points, np.sqrt(np.where(x > 0, x, 1.0)); np.where on the result alone does not help."
        )
    return (
        "Keep its inputs away from such points (np.where, np.maximum, a small number added), or use "
        "a form that does not overflow, such as np.logaddexp or np.log1p."
    )
