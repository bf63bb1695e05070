"""Reverse mode: every operation is recorded, and a sweep walks the records backward.

A record is a tuple (key, pull, saved, fits, *parents): `pull(cotangent, saved)` gives the cotangents
of the parents, which are the records of the operation's differentiated arguments; `fits` says how to
undo a broadcast or a promotion, and is None when there is nothing to undo. A leaf is (key,). Keys
grow in the order of recording. Records keep what their rules need and nothing else; they refer to
older records only, so they are freed by reference counting, without a cycle and without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from functrans.core.accumulate import Accumulator, Deposit, accumulate
from functrans.core.dispatch import Interpreter, escape_error
from functrans.core.shapes import dtype_of, fit, shape_of, spec_of
from functrans.core.tracer import ArrayTracer

Record = tuple[Any, ...]

_next_key = count().__next__
_float64 = np.float64
_ndarray = np.ndarray


class TapeTracer(ArrayTracer):
    """A value and the record of how it was made."""

    __slots__ = ("record", "value")

    def __init__(self, interpreter: Tape, value: Any, record: Record) -> None:
        self.interpreter = interpreter
        self.value = value
        self.record = record

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.value)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.value)

    @property
    def spec(self) -> Any:
        return spec_of(self.value)

    def describe_value(self) -> str:
        return repr(self.value)


class Tape(Interpreter):
    """Runs primitives and records them for `sweep`."""

    __slots__ = ("append", "records")

    transform = "grad"
    differentiates = True

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(function)
        self.records: list[Record] = []
        # On exit this becomes the function that raises: finding an escaped tracer costs nothing.
        self.append: Callable[[Record], Any] = self.records.append

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        self.append = _Closed(self.transform, self.function)

    def leaf(self, value: Any) -> TapeTracer:
        """A tracer for an input."""
        return TapeTracer(self, value, (_next_key(),))

    def process1(self, primitive: Any, x: Any) -> Any:
        value = x.value
        out = primitive.impl(value) if self.level == 1 else primitive(value)
        rule = primitive.rules[1]
        if rule is None:
            return out
        save, pull = rule
        record = (_next_key(), pull, save(out, value), _fit_of(value, out, True), x.record)
        self.append(record)
        return TapeTracer(self, out, record)

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        # x and y are of this level or lower; at least one is ours.
        if type(x) is TapeTracer and x.interpreter is self:
            x_value = x.value
            if type(y) is TapeTracer and y.interpreter is self:
                y_value = y.value
                mask = 3
            else:
                y_value = y
                mask = 1
        else:
            x_value = x
            y_value = y.value
            mask = 2
        if self.level == 1:
            out = primitive.impl(x_value, y_value)
        else:
            out = primitive(x_value, y_value)
        rule = primitive.rules[mask]
        if rule is None:
            return out
        save, pull = rule
        saved = save(out, x_value, y_value)
        if mask == 3:
            x_fit, y_fit = _fit_of(x_value, out, True), _fit_of(y_value, out, True)
            fits = None if x_fit is None and y_fit is None else (x_fit, y_fit)
            record: Record = (_next_key(), pull, saved, fits, x.record, y.record)
        elif mask == 1:
            record = (_next_key(), pull, saved, _fit_of(x_value, out, True), x.record)
        else:
            record = (_next_key(), pull, saved, _fit_of(y_value, out, True), y.record)
        self.append(record)
        return TapeTracer(self, out, record)

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values, parents, ours, mask = [], [], [], 0
        for k, arg in enumerate(args):
            if type(arg) is TapeTracer and arg.interpreter is self:
                values.append(arg.value)
                ours.append(arg.value)
                parents.append(arg.record)
                mask |= 1 << k
            else:
                values.append(arg)
        out = primitive(*values, **params)
        if primitive.vjp is None:
            return out
        rule = primitive.vjp(mask, out, tuple(values), params)
        if rule is None:
            return out
        pull, saved = rule
        broadcasts = hasattr(primitive, "rules")
        if primitive.outputs:
            fits: Any = tuple(spec_of(value) for value in ours)
        else:
            fits = tuple(_fit_of(value, out, broadcasts) for value in ours)
            if all(each is None for each in fits):
                fits = None
        if fits is not None and len(fits) == 1:
            fits = fits[0]
        record = (_next_key(), pull, saved, fits, *parents)
        self.append(record)
        if primitive.outputs:
            return tuple(self._output(record, out, k) for k in range(len(out)))
        return TapeTracer(self, out, record) if dtype_of(out).kind in "fc" else out

    def _output(self, operation: Record, out: tuple[Any, ...], k: int) -> Any:
        """One result of an operation with several: a record that hands its cotangent on."""
        if dtype_of(out[k]).kind not in "fc":
            return out[k]
        record = (_next_key(), _Share, (k, len(out)), None, operation)
        self.append(record)
        return TapeTracer(self, out[k], record)

    def concrete(self, tracer: Any) -> Any:
        return tracer.value


class _Closed:
    """What a finished tape appends with: it raises. It does not refer to the tape: no cycle."""

    __slots__ = ("function", "transform")

    def __init__(self, transform: str, function: Any) -> None:
        self.transform = transform
        self.function = function

    def __call__(self, record: Record) -> Any:
        raise escape_error(self.transform, self.function)


class _Share(Deposit):
    """The cotangent of the k-th of n results; the operation receives all n together."""

    __slots__ = ("saved",)

    def __init__(self, value: Any, saved: tuple[int, int]) -> None:
        self.value = value
        self.saved = saved


def _fit_of(value: Any, out: Any, broadcasts: bool) -> Any:
    """How to turn a cotangent like `out` into one like `value`: None if they are alike."""
    kind = type(value)
    if kind is _ndarray:
        if (
            type(out) is _ndarray
            and value.dtype is out.dtype
            and (not broadcasts or value.shape == out.shape)
        ):
            return None
    elif kind is _float64 or kind is float:
        if type(out) is _float64 or type(out) is float:
            return None
    elif (
        kind is type(out)
        and kind is not complex
        and value.dtype is out.dtype
        and (not broadcasts or value.shape == out.shape)
    ):
        return None
    return spec_of(value)


def sweep(records: list[Record], cotangents: dict[int, Any]) -> None:
    """Walk the records backward, and leave in `cotangents` those of the leaves.

    `cotangents` maps keys to cotangents and starts with those of the outputs. The list is emptied
    on the way, so that what has been used is freed.
    """
    take = cotangents.pop
    get = cotangents.get
    while records:
        record = records.pop()
        g = take(record[0], None)
        if g is None:
            continue
        if type(g) is Accumulator:
            g = g.settle()
        if len(record) == 5:
            _, pull, saved, fits, parent = record
            cotangent = pull(g, saved)
            if cotangent is None:
                continue
            if fits is not None and not isinstance(cotangent, Deposit):
                cotangent = fit(cotangent, fits.shape, fits.dtype)
            key = parent[0]
            slot = get(key)
            if type(cotangent) is _Share:
                place, length = saved
                if slot is None:
                    slot = [None] * length
                    cotangents[key] = slot
                slot[place] = g
            elif slot is None and not isinstance(cotangent, Deposit):
                cotangents[key] = cotangent
            else:
                cotangents[key] = accumulate(slot, cotangent)
            continue
        _, pull, saved, fits, *parents = record
        for k, cotangent in enumerate(pull(g, saved)):
            if cotangent is None:
                continue
            if fits is not None and fits[k] is not None:
                cotangent = fit(cotangent, fits[k].shape, fits[k].dtype)
            key = parents[k][0]
            slot = get(key)
            cotangents[key] = cotangent if slot is None else accumulate(slot, cotangent)
