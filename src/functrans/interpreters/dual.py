"""Forward mode: every value carries its tangent beside it."""

from __future__ import annotations

from typing import Any

from functrans.core.dispatch import DETAIL, Interpreter
from functrans.core.evaluate import OpenArray, as_constant, compute, open_array
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import conform, dtype_of
from functrans.core.tracer import ConcreteTracer


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
    """Runs primitives on dual numbers by their jvp rules."""

    __slots__ = ()

    transform = "jvp"
    differentiates = True

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        values, tangents = [], []
        for arg in args:
            if type(arg) is DualTracer and arg.interpreter is self:
                values.append(arg.value)
                tangents.append(arg.tangent)
            else:
                values.append(as_constant(arg))
                tangents.append(None)
        if type(primitive) is HigherOrder:
            return tuple(map(self._result, *primitive.push(tuple(values), tuple(tangents), params)))
        out = compute(primitive, *values, **params)
        if primitive.jvp is None:
            return open_array(out)  # open to assignments of traced values
        tangent = primitive.jvp(out, tuple(values), tuple(tangents), params)
        if primitive.outputs:
            return tuple(map(self._result, out, tangent))
        return self._result(out, tangent)

    def process1(self, primitive: Any, x: Any) -> Any:
        if self.closed:
            self.escaped()
        value = x.value
        if self.bottom:
            out = primitive.impl(value)
        elif type(out := primitive(value)) is OpenArray:
            out = out.value
        if primitive.jvp is None:
            return open_array(out)
        return self._result(out, primitive.jvp(out, (value,), (x.tangent,), {}))

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        if not primitive.broadcasts or self.closed:
            return self.process(primitive, (x, y), {})
        x_tangent = y_tangent = None
        if type(x) is DualTracer and x.interpreter is self:
            x, x_tangent = x.value, x.tangent
        if type(y) is DualTracer and y.interpreter is self:
            y, y_tangent = y.value, y.tangent
        out = primitive.call2(x, y)
        if type(out) is OpenArray:
            out = out.value
        if primitive.jvp is None:
            return open_array(out)
        return self._result(out, primitive.jvp(out, (x, y), (x_tangent, y_tangent), {}))

    def _result(self, out: Any, tangent: Any) -> Any:
        if tangent is None or dtype_of(out).kind not in "fc":
            return open_array(out)
        if type(tangent) is OpenArray:
            tangent = tangent.value
        return DualTracer(self, out, conform(tangent, out))

    def concrete(self, tracer: Any) -> Any:
        return tracer.value if not self.closed else self.escaped()
