"""Staging: nothing is computed; every primitive is written down as an equation of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import DETAIL, Interpreter, Tracer, running_interpreters
from functrans.core.evaluate import as_constant
from functrans.core.shapes import ArraySpec, no_objects, spec_of
from functrans.core.tracer import ArrayTracer
from functrans.graph.graph import Equation, Graph, Variable
from functrans.graph.scopes import CallStack


class StageTracer(ArrayTracer):
    """A variable of the graph that is being written; its value is not known."""

    __slots__ = ()

    variable: Any = DETAIL

    def __init__(self, interpreter: Stage, variable: Variable) -> None:
        self.interpreter = interpreter
        self.variable = variable

    def copy_to(self, other: Any) -> None:
        other.__class__ = StageTracer
        other.interpreter = self.interpreter
        other.variable = self.variable
        other.value = None

    @property
    def spec(self) -> ArraySpec:
        return self.variable.spec  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variable.spec.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.variable.spec.dtype  # type: ignore[no-any-return]

    def describe_value(self) -> str:
        return "known when the graph runs"


def _unchanged(value: Any, kept: Any) -> bool:
    if isinstance(value, Tracer):
        return all(getattr(value, s, None) is getattr(kept, s, None) for s in _STATE)
    if not isinstance(value, np.ndarray):
        return True
    if _is_spread(value) and _is_spread(kept):
        value, kept = np.array(value.flat[0]), np.array(kept.flat[0])
    return np.array_equal(value, kept, equal_nan=value.dtype.kind in "fc")


def _is_spread(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is one number seen many times, as the cotangent of a sum is."""
    return array.size > 0 and not any(array.strides)


def _copied(array: np.ndarray[Any, Any]) -> Any:
    """A copy; one number seen many times stays that."""
    if array.ndim and _is_spread(array):
        return np.broadcast_to(np.array(array.flat[0]), array.shape)
    return np.array(array)


_STATE = ("interpreter", "value", "detail")


class Stage(Interpreter):
    """Writes primitives down as equations."""

    __slots__ = ("calls", "constants", "equations", "inputs", "known")

    transform = "make_graph"

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(function)
        self.inputs: list[Variable] = []
        self.constants: dict[Variable, Any] = {}
        self.equations: list[Equation] = []
        # One variable per constant object, which is kept alive, so that ids stay unique.
        self.known: dict[int, tuple[Variable, Any]] = {}
        self.calls: CallStack | None = None  # if equations shall know where they come from

    def leave(self, *exc_info: Any) -> None:
        if self.calls is not None:
            self.calls.forget()
        super().leave(*exc_info)

    def input(self, spec: ArraySpec) -> StageTracer:
        """A tracer for an input of the graph."""
        variable = Variable(spec)
        self.inputs.append(variable)
        return StageTracer(self, variable)

    def variable_of(self, value: Any) -> Variable:
        """The variable that stands for a value: ours, or a constant."""
        if type(value) is StageTracer and value.interpreter is self:
            return value.variable  # type: ignore[no-any-return]
        if isinstance(value, Tracer) and value.interpreter.closed:
            value.interpreter.escaped()
        value = as_constant(value)
        known = self.known.get(id(value))
        if known is not None and _unchanged(value, self.constants[known[0]]):
            return known[0]
        variable = Variable(spec_of(value))
        # A copy: the user may go on to change the array in place.
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                raise no_objects()
            self.constants[variable] = _copied(value)
        else:
            self.constants[variable] = value.snapshot() if isinstance(value, Tracer) else value
        self.known[id(value)] = variable, value
        return variable

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        inputs = tuple(self.variable_of(arg) for arg in args)
        specs = primitive.shape(tuple(variable.spec for variable in inputs), params)
        outputs = tuple(map(Variable, specs)) if primitive.outputs else (Variable(specs),)
        scope = () if self.calls is None else self.calls.at(sys._getframe(1))
        self.equations.append(Equation(primitive, inputs, params, outputs, scope))
        tracers = tuple(StageTracer(self, variable) for variable in outputs)
        return tracers if primitive.outputs else tracers[0]

    def concrete(self, tracer: Any) -> Any:
        if self.closed:
            self.escaped()
        raise errors.StagingError(
            f"the value of a traced array ({tracer.spec}) is not known while a function is staged "
            f"to a graph, at {errors.user_location()}. A Python `if` or `while`, float(x), int(x), "
            "x.item(), range(n) and boolean masks need it. Use np.where (or np.select, np.clip) or "
            "functrans.cond in place of the branch, functrans.while_loop or functrans.scan in place of "
            "the loop, or pass the value from outside by closing over it."
        )

    def finish(self, outputs: list[Any], **names: Any) -> Graph:
        """The graph, with these values as outputs."""
        variables = [self.variable_of(value) for value in outputs]
        return Graph(self.inputs, self.constants, self.equations, variables, **names)


class CatchingStage(Stage):
    """Writes down all that a function does, also to values of interpreters around it alone.

    Those values become constants, and what is done to them is done where the graph runs, or not at all.
    For that the interpreters that are running have another class as long as this one is.
    """

    __slots__ = ("caught",)

    def __enter__(self) -> Any:
        self.caught: list[tuple[Any, Any]] = [(x, type(x)) for x in running_interpreters()]
        super().__enter__()  # first: what has begun is certain to be ended by `leave`
        for interpreter, kind in self.caught:
            interpreter.__class__ = _yielding(kind)
        return self

    def leave(self, *exc_info: Any) -> None:
        for interpreter, kind in self.caught:
            interpreter.__class__ = kind
        super().leave(*exc_info)


class _Yielding(Interpreter):
    """Comes before an interpreter's own class, and leaves its work to the stage that catches it."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        for interpreter in reversed(running_interpreters()):
            if isinstance(interpreter, CatchingStage):
                return Stage.process(interpreter, primitive, args, params)
        return super().process(primitive, args, params)  # another thread's work

    def process1(self, primitive: Any, x: Any) -> Any:
        return self.process(primitive, (x,), {})

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        return self.process(primitive, (x, y), {})


@cache
def _yielding(kind: Any) -> Any:
    if issubclass(kind, _Yielding):
        return kind
    return type(f"Yielding{kind.__name__}", (_Yielding, kind), {"__slots__": ()})


class TangentStage(Stage):
    """Writes down what happens to tangents only, beside primal values that are known."""

    __slots__ = ()
