"""Descriptions of a value at all levels, for messages: shape, dtype, range, nan and inf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from functrans.core.accumulate import Accumulator, Deposit
from functrans.core.dispatch import Interpreter, Tracer, is_plain
from functrans.core.errors import describe, is_outside
from functrans.core.shapes import dtype_of
from functrans.interpreters.batch import BatchTracer
from functrans.interpreters.dual import DualTracer
from functrans.interpreters.stage import StageTracer


class HeldArray:
    """One of the plain arrays that a value holds; its first axes may be lanes."""

    __slots__ = ("lanes", "name", "value")

    def __init__(self, name: str, value: Any, lanes: tuple[Any, ...]) -> None:
        self.name = name
        self.value = np.asarray(value)
        self.lanes = lanes  # the numbers of the lanes along each of the first axes

    def is_finite(self) -> bool:
        return self.value.dtype.kind not in "fc" or bool(np.isfinite(self.value).all())

    @property
    def nans(self) -> int:
        return 0 if self.is_finite() else int(np.isnan(self.value).sum())

    @property
    def infs(self) -> int:
        return 0 if self.is_finite() else int(np.isinf(self.value).sum())

    def __str__(self) -> str:
        value, count = self.value, len(self.lanes)
        shape = ",".join(map(str, value.shape[count:]))
        text = f"{self.name}: {value.dtype}[{shape}]"
        if count:
            text += f" in {' x '.join(str(len(numbers)) for numbers in self.lanes)} lanes"
        if value.dtype.kind not in "fc":
            return text + (f" from {value.min()} to {value.max()}" if value.size else "")
        finite = np.abs(value) if value.dtype.kind == "c" else value
        finite = finite[np.isfinite(finite)]
        if finite.size:
            what = "absolute values " if value.dtype.kind == "c" else ""
            text += f", {what}from {finite.min():.6g} to {finite.max():.6g}"
        for name, how_many in (("nan", self.nans), ("inf", self.infs)):
            if how_many:
                text += f", {how_many} {name}"
        return text + self._first_place()

    def _first_place(self) -> str:
        if self.is_finite() or not self.value.ndim:
            return ""
        index = [int(k) for k in np.argwhere(~np.isfinite(self.value))[0]]
        count = len(self.lanes)
        lanes = [str(numbers[k]) for numbers, k in zip(self.lanes, index[:count], strict=True)]
        text = ", the first"
        if index[count:]:
            text += f" at index {index[count:]}"
        return f"{text} in lane {', '.join(lanes)}" if lanes else text


def held_arrays(value: Any, name: str, lanes: tuple[Any, ...] = ()) -> Iterator[HeldArray]:
    """The plain arrays that a value holds: those behind tracers, including tangents, and sums."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from held_arrays(each, name, lanes)
    elif isinstance(value, Accumulator):
        for each in (value.wide, value.buffer, value.total, *value.deposits):
            yield from held_arrays(each, name, lanes)
    elif isinstance(value, Deposit):
        yield from held_arrays(value.value, name, lanes)
    elif isinstance(value, BatchTracer):
        batch = value.interpreter
        numbers = batch.lanes if value.epoch == batch.epoch else range(len(value.value))
        yield from held_arrays(value.value, name, (numbers, *lanes))
    elif isinstance(value, DualTracer):
        yield from held_arrays(value.value, name, lanes)
        yield from held_arrays(value.tangent, f"the tangent of {name}", lanes)
    elif isinstance(value, Tracer) and not isinstance(value, StageTracer):
        yield from held_arrays(value.value, name, lanes)
    elif is_plain(value, (np.ndarray, np.generic, float, complex)):
        yield HeldArray(name, value, lanes)
    elif is_plain(value, (bool, int)):
        yield HeldArray(name, np.asarray(value, dtype_of(value)), lanes)


def transforms(interpreters: Iterable[Interpreter]) -> str:
    """The running transforms, outermost first: grad of `loss` (model.py, line 3) > vmap of `f` (...)."""
    names = []
    for interpreter in sorted(interpreters, key=lambda each: each.level):
        function: Any = interpreter.function
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        code = getattr(function, "__code__", None)
        known = function is not None and (code is None or is_outside(code))
        names.append(interpreter.transform + (f" of {describe(function)}" if known else ""))
    return " > ".join(names) or "none"
