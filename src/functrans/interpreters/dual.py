"""Forward mode: every value carries its tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import DETAIL, Interpreter, Tracer
from functrans.core.evaluate import OpenArray, as_constant, compute, open_array
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import conform, dtype_of, no_objects
from functrans.core.tracer import ConcreteTracer

_ndarray = np.ndarray


class DualTracer(ConcreteTracer):
    """A value and its tangent, which has the value's shape and dtype."""

    __slots__ = ()

    tangent: Any = DETAIL

    def __init__(self, interpreter: Dual, value: Any, tangent: Any) -> None:
        self.interpreter = interpreter
        self.value = value
        self.tangent = tangent

    def copy_to(self, other: Any) -> None:
        other.__class__ = DualTracer
        other.interpreter = self.interpreter
        other.value = self.value
        other.tangent = self.tangent


class Dual(Interpreter):
    """Runs primitives on dual numbers, using their jvp rules."""

    __slots__ = ()

    transform = "jvp"
    differentiates = True

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        if len(args) == 1 and not primitive.outputs:  # the one array of most primitives
            (x,) = args
            value = x.value
            out = (
                primitive.impl(value, **params)
                if self.bottom
                else compute(primitive, value, **params)
            )
            if primitive.jvp is None:
                return open_array(out)
            return self._result(out, primitive.jvp(out, (value,), (x.tangent,), params))
        values, tangents = [], []
        for arg in args:
            if type(arg) is DualTracer and arg.interpreter is self:
                values.append(arg.value)
                tangents.append(arg.tangent)
            else:
                values.append(as_constant(arg))
                tangents.append(None)
        if type(primitive) is HigherOrder:
            return tuple(map(self._result, *self._push(primitive, values, tangents, params)))
        out = compute(primitive, *values, **params)
        if primitive.jvp is None:
            return open_array(out)  # open to assignments of traced values
        tangent = primitive.jvp(out, tuple(values), tuple(tangents), params)
        if primitive.outputs:
            return tuple(map(self._result, out, tangent))
        return self._result(out, tangent)

    def process1(self, primitive: Any, x: Any) -> Any:
        if not primitive.broadcasts or self.closed:
            return self.process(primitive, (x,), {})
        value = x.value
        if self.bottom:
            out = primitive.impl(value)
        elif type(out := primitive.call1(value)) is OpenArray:
            out = out.value
        push = primitive.pushes[1]
        return open_array(out) if push is None else self._result(out, push(out, value, x.tangent))

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        if not primitive.broadcasts or self.closed:
            return self.process(primitive, (x, y), {})
        mask = 0
        x_tangent = y_tangent = None
        if type(x) is DualTracer and x.interpreter is self:
            x, x_tangent, mask = x.value, x.tangent, 1
        if type(y) is DualTracer and y.interpreter is self:
            y, y_tangent, mask = y.value, y.tangent, mask | 2
        if type(out := primitive.call2(x, y)) is OpenArray:
            out = out.value
        push = primitive.pushes[mask]
        if push is None:
            return open_array(out)
        return self._result(out, push(out, x, y, x_tangent, y_tangent))

    def _push(self, primitive: Any, values: Any, tangents: Any, params: Any) -> Any:
        """The results of a primitive that holds functions, and their tangents."""
        return primitive.push(tuple(values), tuple(tangents), params)

    def _result(self, out: Any, tangent: Any) -> Any:
        if type(out) is type(tangent) is _ndarray:
            dtype = out.dtype
            if tangent.dtype is dtype and tangent.shape == out.shape and dtype.kind in "fc":
                return DualTracer(self, out, tangent)  # the common case, without the calls
        elif tangent is None:
            return open_array(out)
        elif type(tangent) is OpenArray:
            tangent = tangent.value
        kind = dtype_of(out).kind
        if kind in "fc":
            return DualTracer(self, out, conform(tangent, out))
        if kind == "O":
            raise no_objects()
        return open_array(out)


class LinearizingDual(Dual):
    """Dual numbers whose values are computed, and whose tangents are staged by `stage`."""

    __slots__ = ("stage",)

    def __init__(self, function: Any, stage: Interpreter) -> None:
        super().__init__(function)
        self.stage = stage

    def _push(self, primitive: Any, values: Any, tangents: Any, params: Any) -> Any:
        outs, pushed = super()._push(primitive, values, tangents, params)
        # An operation that was staged as a whole, such as a loop, added its values to the graph as well.
        if any(isinstance(out, Tracer) and out.interpreter is self.stage for out in outs):
            outs = compute(primitive, *values, **params)
        return outs, pushed
