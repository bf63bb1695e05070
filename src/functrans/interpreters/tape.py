"""Reverse mode: every operation is recorded, and the backward pass walks the records in reverse.

A record is a tuple (key, pull, saved, fits, *parents): `pull(cotangent, saved)` gives the cotangents
of the parents, which are the records of the operation's differentiated arguments; `fits` says how to
undo a broadcast or a promotion, and is None when there is nothing to undo. A leaf is (key,). Keys
grow in the order of recording. Records keep only what their rules need; they refer to older records
only, so they are freed by reference counting, without cycles and without recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from functrans.core.accumulate import Accumulator, Deposit, accumulate, settled
from functrans.core.custody import kept, kept_in_tracer, watched_count, watched_since
from functrans.core.dispatch import DETAIL, Interpreter, escape_error
from functrans.core.evaluate import (
    OpenArray,
    as_constant,
    compute,
    open_array,
)
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import dtype_of, fit, shape_of
from functrans.core.tracer import ConcreteTracer

Record = tuple[Any, ...]

next_key = count().__next__
_float64 = np.float64
_FLOAT64 = np.dtype(float)
_ndarray = np.ndarray


class TapeTracer(ConcreteTracer):
    """A value and the record of how it was made."""

    __slots__ = ()

    record: Any = DETAIL

    def __init__(self, interpreter: Tape, value: Any, record: Record) -> None:
        self.interpreter = interpreter
        self.value = value
        self.record = record

    def copy_to(self, other: Any) -> None:
        other.__class__ = TapeTracer
        other.interpreter = self.interpreter
        other.value = self.value
        other.record = self.record


class Tape(Interpreter):
    """Runs primitives and records them for `sweep`."""

    __slots__ = ("append", "mark", "records")

    transform = "grad"
    differentiates = True

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(function)
        self.records: list[Record] = []
        # On exit this becomes the function that raises: finding an escaped tracer costs nothing.
        self.append: Callable[[Record], Any] = self.records.append
        self.mark = watched_count()

    def strong(self, x: Any) -> Any:
        # To derivatives, a Python float and the np.float64 of its value are the same: one record serves both.
        if type(x.value) is float:
            return TapeTracer(self, np.float64(x.value), x.record)
        return super().strong(x)

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        self.append = partial(_refuse, self.transform, self.function)
        if error is not None:
            watched_since(self.mark)
        super().leave(kind, error, traceback)

    def leaf(self, value: Any) -> TapeTracer:
        """A tracer for an input."""
        return TapeTracer(
            self, value if type(value) is _ndarray else kept_in_tracer(value), (next_key(),)
        )

    def process1(self, primitive: Any, x: Any) -> Any:
        value = x.value
        if self.bottom:
            out = primitive.impl(value)
        elif type(out := primitive.call1(value)) is OpenArray:
            out = out.value
        rule = primitive.rules[1]
        if rule is None:
            return self._constant(out)
        save, pull = rule
        saved = None if save is None else save(out, value)
        if type(value) is _ndarray and type(out) is _ndarray and value.dtype is out.dtype:
            fits = None
        else:
            fits = fit_of(value, out, primitive.broadcasts)
        record = (next_key(), pull, saved, fits, x.record)
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
        if self.bottom:
            out = primitive.impl(x_value, y_value)
        else:
            out = primitive.call2(x_value, y_value)
            if type(out) is OpenArray:
                out = out.value
        rule = primitive.rules[mask]
        if rule is None:
            return self._constant(out)
        save, pull = rule
        saved = None if save is None else save(out, x_value, y_value)
        broadcasts = primitive.broadcasts
        if mask == 3:
            if (
                type(out) is type(x_value) is type(y_value) is _ndarray
                and out.dtype is x_value.dtype is y_value.dtype
                and (not broadcasts or x_value.shape == y_value.shape)
            ):
                fits = None  # the common case, without the calls
            else:
                x_fit = fit_of(x_value, out, broadcasts)
                y_fit = fit_of(y_value, out, broadcasts)
                fits = None if x_fit is None and y_fit is None else (x_fit, y_fit)
            record: Record = (next_key(), pull, saved, fits, x.record, y.record)
        elif mask == 1:
            fits = fit_of(x_value, out, broadcasts)
            record = (next_key(), pull, saved, fits, x.record)
        else:
            fits = fit_of(y_value, out, broadcasts)
            record = (next_key(), pull, saved, fits, y.record)
        self.append(record)
        return TapeTracer(self, out, record)

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if len(args) == 1 and not primitive.outputs:
            return self._process_one(primitive, args[0], params)
        parents, ours, mask, bit = [], [], 0, 1
        values = list(args)
        for k, arg in enumerate(args):
            if type(arg) is TapeTracer and arg.interpreter is self:
                values[k] = value = arg.value
                ours.append(value)
                parents.append(arg.record)
                mask |= bit
            else:
                values[k] = kept(arg)
            bit <<= 1
        if type(primitive) is HigherOrder:
            out, pull, saved = primitive.trace(mask, tuple(values), params)
            if pull is None:
                return tuple(map(self._constant, out))
            return self._outputs(out, pull, saved, ours, parents)
        # At the bottom of the stack nothing else is traced.
        if self.bottom:
            out = primitive.impl(*values, **params)
        else:
            out = compute(primitive, *values, **params)
        if primitive.vjp is None or (not primitive.outputs and dtype_of(out).kind not in "fc"):
            return self._constant(out)
        rule = primitive.vjp(mask, out, tuple(values), params)
        if rule is None:
            return self._constant(out)
        pull, saved = rule
        if primitive.outputs:
            return self._outputs(out, pull, saved, ours, parents)
        broadcasts = primitive.broadcasts
        if len(ours) == 1:
            fits = fit_of(ours[0], out, broadcasts)
        else:
            fits = [fit_of(value, out, broadcasts) for value in ours]
            if fits.count(None) == len(fits):
                fits = None
        record = (next_key(), pull, saved, fits, *parents)
        self.append(record)
        return TapeTracer(self, out, record)

    def _process_one(self, primitive: Any, x: Any, params: dict[str, Any]) -> Any:
        """The same for the one array of most primitives, without the loop."""
        value = x.value
        if self.bottom:
            out = primitive.impl(value, **params)
        else:
            out = primitive(value, **params)
            if type(out) is OpenArray:
                out = out.value
            elif primitive.outputs:
                out = tuple(map(as_constant, out))
        if primitive.vjp is None or (not primitive.outputs and dtype_of(out).kind not in "fc"):
            return self._constant(out)
        rule = primitive.vjp(1, out, (value,), params)
        if rule is None:
            return self._constant(out)
        pull, saved = rule
        record = (next_key(), pull, saved, fit_of(value, out, primitive.broadcasts), x.record)
        self.append(record)
        return TapeTracer(self, out, record)

    def _outputs(self, out: Any, pull: Any, saved: Any, ours: list[Any], parents: Any) -> Any:
        """The results of an operation with several: each passes its cotangent on to the operation."""
        fits: Any = [(shape_of(value), dtype_of(value)) for value in ours]
        operation = (next_key(), pull, saved, fits if len(fits) > 1 else fits[0], *parents)
        self.append(operation)
        results = []
        for k, value in enumerate(out):
            if dtype_of(value).kind in "fc":
                record = (next_key(), Share, (k, len(out)), None, operation)
                self.append(record)
                value = TapeTracer(self, value, record)
            results.append(value)
        return tuple(results)

    def _constant(self, out: Any) -> Any:
        """The result of an operation through which no derivative flows."""
        if self.closed:
            self.escaped()
        # Arrays stay open to assignments of traced values: np.floor(x)[0] = x[0].
        return open_array(out)


def _refuse(transform: str, function: Any, record: Record) -> Any:
    """The append function of a finished tape. It does not refer to the tape, to avoid a cycle."""
    raise escape_error(transform, function)


class Share:
    """In place of `pull` in the record of one result of an operation that has several."""


def fit_of(value: Any, out: Any, broadcasts: bool) -> Any:
    """How to turn a cotangent like `out` into one like `value`: None, or (shape, dtype)."""
    kind = type(value)
    if kind is _ndarray:
        shape, dtype = value.shape, value.dtype
        if type(out) is _ndarray:
            if dtype is out.dtype and (not broadcasts or shape == out.shape):
                return None
        elif type(out) is _float64 and dtype is _FLOAT64 and not broadcasts:
            return None
        return shape, dtype
    if kind is _float64 or kind is float:
        if type(out) is _float64 or type(out) is float:
            return None
    elif (
        kind is type(out)
        and kind is not complex
        and value.dtype is out.dtype
        and (not broadcasts or value.shape == out.shape)
    ):
        return None
    return shape_of(value), dtype_of(value)


def sweep(records: list[Record], cotangents: dict[int, Any]) -> None:
    """Walk the records backward, and leave in `cotangents` those of the leaves.

    `cotangents` maps keys to cotangents and starts with those of the outputs. The list is emptied along
    the way, so that used records are freed.
    """
    take = cotangents.pop
    get = cotangents.get
    while records:
        record = records.pop()
        g = take(record[0], None)
        if g is None:
            continue
        if type(g) is Accumulator and not getattr(record[1], "owns", False):
            g = g.settle()
        if len(record) == 5:
            _, pull, saved, fits, parent = record
            if pull is Share:
                _share(cotangents, parent[0], g, *saved)
                continue
            cotangent = pull(g, saved)
            key = parent[0]
            slot = get(key)
            if type(cotangent) is not _ndarray:
                if cotangent is None:
                    continue
                if issubclass(type(cotangent), Deposit):  # isinstance is slow for tracers
                    cotangents[key] = accumulate(slot, cotangent)
                    continue
            if fits is not None:
                cotangent = fit(settled(cotangent), *fits)
            cotangents[key] = cotangent if slot is None else accumulate(slot, cotangent)
            continue
        fits = record[3]
        place = 4
        for cotangent in record[1](g, record[2]):
            if cotangent is not None:
                if fits is not None and fits[place - 4] is not None:
                    cotangent = fit(settled(cotangent), *fits[place - 4])
                key = record[place][0]
                slot = get(key)
                cotangents[key] = cotangent if slot is None else accumulate(slot, cotangent)
            place += 1


def _share(cotangents: dict[int, Any], key: int, g: Any, place: int, length: int) -> None:
    """Give an operation with several results the cotangent of one; it gets them as a list."""
    slot = cotangents.setdefault(key, [None] * length)
    # A tape of tensors may hold two records of one result: that of the tensor, and a saved one.
    slot[place] = g if slot[place] is None else slot[place] + g
