"""Batching: every value has a hidden first axis, one lane for each example.

Python branches work. When a branch reads a value and the lanes disagree, the largest group of lanes that
agree continues; the others are put aside, and the transform runs them again later (`pending`). From then
on the run has fewer lanes: values made earlier are narrowed when they are next used. So every distinct
path through the user's function runs once, and never more often than in a loop over lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import DETAIL, Interpreter, concrete
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import (
    AS_ARRAY,
    AS_FIRST,
    Collective,
    HigherOrder,
    InAllLanes,
    always_number,
)
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import HiddenTracer
from functrans.core.views import is_array_not_number, mark_as_array


class BatchTracer(HiddenTracer):
    """A value with a hidden first axis, for the lanes that were left at `epoch`."""

    __slots__ = ()

    epoch: Any = DETAIL  # the lanes that `value` is for

    def __init__(self, interpreter: Batch, value: Any) -> None:
        self.interpreter = interpreter
        self.value = value
        self.epoch = interpreter.epoch

    def copy_to(self, other: Any) -> None:
        other.__class__ = BatchTracer
        other.interpreter = self.interpreter
        other.value = self.value
        other.epoch = self.epoch

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[1:]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.value)

    def describe_value(self) -> str:
        return f"{self.value.shape[0]} lanes of {self.value!r}"


class Batch(Interpreter):
    """Runs primitives on all lanes at once, using their batching rules."""

    __slots__ = ("axis_name", "epoch", "lanes", "pending", "selections", "size", "total")

    transform = "vmap"

    def __init__(
        self,
        lanes: np.ndarray[Any, Any],
        total: int,
        axis_name: Any = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(function)
        self.lanes = lanes  # the lanes that take part in this run
        self.size = len(lanes)
        self.total = total
        self.axis_name = axis_name
        self.epoch = 0
        self.selections: list[np.ndarray[Any, Any]] = []  # one for each narrowing
        self.pending: list[np.ndarray[Any, Any]] = []

    def hidden(self, tracer: BatchTracer) -> Any:
        """The value of a tracer for the lanes that remain."""
        if tracer.epoch != self.epoch:
            chosen = self.selections[tracer.epoch]
            for selection in self.selections[tracer.epoch + 1 :]:
                chosen = chosen[selection]
            tracer.value = tracer.value[chosen]
            tracer.epoch = self.epoch
        return tracer.value

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        values, batched = [], []
        for arg in args:
            if type(arg) is BatchTracer and arg.interpreter is self:
                values.append(self.hidden(arg))
                batched.append(True)
            else:
                values.append(as_constant(arg))
                batched.append(False)
        if type(primitive) is Collective and params["axis_name"] == self.axis_name:
            self.require_all_lanes(primitive.name)
            return primitive.collect(values[0])
        if type(primitive) is HigherOrder:
            out = primitive.batch(tuple(values), tuple(batched), self, params)
        else:
            out = primitive.batch(primitive, tuple(values), tuple(batched), self.size, params)
        if primitive.outputs:
            results = tuple(map(self._result, out))
            if type(primitive) is HigherOrder:
                for k in primitive.form(params):
                    if type(results[k]) is BatchTracer:
                        mark_as_array(results[k])
            return results
        return _formed(BatchTracer(self, as_constant(out)), primitive, args, params)

    # Whether results that are the same in all lanes stay without an axis for them (`InAllLanes`). The user's
    # code may assign to results, so there they are as traced as others.
    shares_results = False

    def _result(self, out: Any) -> Any:
        if type(out) is InAllLanes:
            return as_constant(out.value)
        return BatchTracer(self, as_constant(out))

    def process1(self, primitive: Any, x: Any) -> Any:
        if not primitive.broadcasts or self.closed:
            return self.process(primitive, (x,), {})
        value = self.hidden(x)
        out = primitive.impl(value) if self.bottom else compute(primitive, value)
        return _formed(BatchTracer(self, out), primitive, (x,), {})

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        # The common case needs no alignment of axes: equal ranks, or a batch and a value of lower rank.
        if primitive.broadcasts and not self.closed:
            call = primitive.impl if self.bottom else partial(compute, primitive)
            if type(x) is BatchTracer and x.interpreter is self:
                x_value = self.hidden(x)
                if type(y) is BatchTracer and y.interpreter is self:
                    y_value = self.hidden(y)
                    if x_value.ndim == y_value.ndim:
                        return BatchTracer(self, call(x_value, y_value))
                elif len(shape_of(y)) < x_value.ndim:
                    return BatchTracer(self, call(x_value, as_constant(y)))
            elif len(shape_of(x)) < (y_value := self.hidden(y)).ndim:
                return BatchTracer(self, call(as_constant(x), y_value))
        return self.process(primitive, (x, y), {})

    def concrete(self, tracer: Any) -> Any:
        if self.closed:
            self.escaped()
        values = np.asarray(concrete(self.hidden(tracer)))
        lanes = len(values)
        # Compare bytes, so that nan agrees with nan.
        keys = np.ascontiguousarray(values).reshape(lanes, -1).view(np.uint8).reshape(lanes, -1)
        if lanes > 1 and (keys != keys[0]).any():
            _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            group = group.reshape(-1)
            largest = int(np.bincount(group).argmax())
            self.pending += [self.lanes[group == k] for k in range(len(first)) if k != largest]
            self._narrow(np.flatnonzero(group == largest))
            return values[first[largest]]
        return values[0]

    @property
    def axis_key(self) -> Any:
        return self.axis_name, self.total, self.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether all lanes are in this run, so that collectives can be computed."""
        return self.size == self.total

    def lane_numbers(self) -> BatchTracer:
        """The number of each lane, mapped."""
        return BatchTracer(self, self.lanes)

    def _narrow(self, selection: np.ndarray[Any, Any]) -> None:
        self.selections.append(selection)
        self.epoch += 1
        self.lanes = self.lanes[selection]
        self.size = len(self.lanes)

    def require_all_lanes(self, what: str) -> None:
        """Refuse a collective if some of the lanes took another branch."""
        if not self.is_whole:
            raise errors.LaneError(
                f"{what} over axis {self.axis_name!r} needs all {self.total} lanes, but only "
                f"{self.size} are in this run, at {errors.user_location()}. The others took another "
                "branch of an `if`, or are in another chunk. Use np.where instead of `if` before a "
                "collective, and leave chunk_size out."
            )


def _formed(result: BatchTracer, primitive: Any, args: tuple[Any, ...], params: Any) -> BatchTracer:
    """A result; if a lane of it has no axes, with a mark that says whether it is an array or a number."""
    if result.value.ndim == 1 and primitive.form is not always_number:
        form = primitive.form(params)
        if form == AS_ARRAY or (form == AS_FIRST and is_array_not_number(args[0])):
            mark_as_array(result)
    return result
