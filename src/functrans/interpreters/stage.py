"""Staging: nothing is computed; every primitive is recorded as an equation of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.conversions import is_asked_by_package, noted
from functrans.core.dispatch import DETAIL, Interpreter, Tracer, is_plain, running_interpreters
from functrans.core.evaluate import as_constant
from functrans.core.likeness import deny_to_user
from functrans.core.places import is_outside
from functrans.core.primitive import AS_ARRAY, AS_FIRST, HigherOrder
from functrans.core.shapes import ArraySpec, no_objects, spec_of
from functrans.core.tracer import HiddenTracer
from functrans.core.views import is_array_not_number, mark_as_array
from functrans.graph.graph import Equation, Graph, Variable
from functrans.graph.scopes import CallStack


class StageTracer(HiddenTracer):
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
        spec = self.variable.spec
        if spec.weak:
            deny_to_user()
        return spec.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        spec = self.variable.spec
        if spec.weak:
            deny_to_user()
        return spec.dtype  # type: ignore[no-any-return]

    def describe_value(self) -> str:
        return "known when the graph runs"


def marked_like(tracer: StageTracer, value: Any) -> StageTracer:
    """The tracer of an input, marked as an array if the value is one without axes, and not a scalar."""
    if not tracer.shape and is_array_not_number(value):
        mark_as_array(tracer)
    return tracer


def _unchanged(value: Any, kept: Any) -> bool:
    if isinstance(value, Tracer):
        return all(getattr(value, s, None) is getattr(kept, s, None) for s in _STATE)
    if not is_plain(value, np.ndarray):
        return True
    if _is_spread(value) and _is_spread(kept):
        value, kept = np.array(value.flat[0]), np.array(kept.flat[0])
    # Compare bits: 0.0 and -0.0 are equal, and nan is not equal to itself.
    return bool(value.shape == kept.shape and value.tobytes() == kept.tobytes())


def _is_spread(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is one number repeated with zero strides, like the cotangent of a sum."""
    return array.size > 0 and not any(array.strides)


def _copied(array: np.ndarray[Any, Any]) -> Any:
    """A copy; a repeated number keeps its zero strides."""
    if array.ndim and _is_spread(array):
        return np.broadcast_to(np.array(array.flat[0]), array.shape)
    return np.array(array)


_STATE = ("interpreter", "value", "detail")


class Unknown:
    """The message of a StagingError. It is written when it is read, because many errors are caught before."""

    def __init__(self, stage: Stage, tracer: StageTracer) -> None:
        # A loop or a branch that stages its functions knows better which transform and function to name.
        self.transform = getattr(stage.function, "what", stage.transform)
        self.function = getattr(stage.function, "user", stage.function)
        self.spec = tracer.spec
        self.place = errors.user_place()
        # The number of the input, if it is one, from which `jit` knows how to make it static.
        self.input = next(
            (k for k, variable in enumerate(stage.inputs) if variable is tracer.variable), None
        )
        self.static: str | None = None

    def __str__(self) -> str:
        from functrans.core.asking import asking

        asks = asking(self.place, self.spec.dtype, self.spec.ndim, self.static)
        traced = errors.describe_users(self.function)
        array = str(self.spec).rstrip("*")
        return (
            f"{asks.what} the value of a traced array ({array}), which is not known while "
            f"{self.transform} traces {traced}, at {self.place or 'an unknown place'}. {asks.remedy}"
        )

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> Any:
        return str, (str(self),)

    def is_hidden_by(self, error: BaseException, traceback: Any) -> bool:
        """Whether NumPy or Python has raised another error in place of this one."""
        here = None  # the innermost line that is not ours or NumPy's
        while traceback is not None:
            if is_outside(traceback.tb_frame.f_code):
                here = traceback.tb_frame.f_code, traceback.tb_lineno
            traceback = traceback.tb_next
        asked = None if self.place is None else (self.place.code, self.place.line)
        return type(error) in (TypeError, ValueError) and here is not None and here == asked


class Stage(Interpreter):
    """Records primitives as equations."""

    __slots__ = (
        "axes",
        "calls",
        "constants",
        "equations",
        "inputs",
        "known",
        "refused",
        "transform",
    )

    def __init__(
        self, function: Callable[..., Any] | None = None, transform: str = "make_graph"
    ) -> None:
        super().__init__(function)
        self.transform = transform
        self.refused: Unknown | None = None  # the last value that code tried to read
        self.inputs: list[Variable] = []
        self.constants: dict[Variable, Any] = {}
        self.equations: list[Equation] = []
        # One variable per constant object, which is kept alive, so that ids stay unique.
        self.known: dict[int, tuple[Variable, Any]] = {}
        self.calls: CallStack | None = None  # set if equations record where they come from
        self.axes: dict[Any, int] = {}  # the lanes of named axes that the function has read

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        if self.calls is not None:
            self.calls.forget()
        super().leave(kind, error, traceback)
        refused, self.refused = self.refused, None
        if error is not None and refused is not None and refused.is_hidden_by(error, traceback):
            raise errors.StagingError(refused).with_traceback(error.__traceback__) from None

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
        # A copy: the user may change the array in place later.
        if is_plain(value, np.ndarray):
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
        if primitive.outputs:
            if isinstance(primitive, HigherOrder):
                for k in primitive.form(params):
                    mark_as_array(tracers[k])
            return tracers
        if not specs.shape:
            form = primitive.form(params)
            if form == AS_ARRAY or (form == AS_FIRST and is_array_not_number(args[0])):
                mark_as_array(tracers[0])
        return tracers[0]

    def concrete(self, tracer: Any) -> Any:
        if self.closed:
            self.escaped()
        self.refused = Unknown(self, tracer)
        error = errors.StagingError(self.refused)
        raise noted(error) if is_asked_by_package() else error

    def note_axis(self, axis: Any) -> None:
        self.axes[axis.axis_name] = axis.total

    def finish(self, outputs: list[Any], **names: Any) -> Graph:
        """The graph, with these values as outputs."""
        variables = [self.variable_of(value) for value in outputs]
        arrays = frozenset(
            k
            for k, value in enumerate(outputs)
            if not variables[k].spec.shape and is_array_not_number(value)
        )
        return Graph(
            self.inputs,
            self.constants,
            self.equations,
            variables,
            axes=self.axes,
            arrays=arrays,
            **names,
        )


class CatchingStage(Stage):
    """Records everything a function does, even to values of outer interpreters alone.

    Those values become constants, and operations on them run only when the graph does. To achieve this, the
    running interpreters have another class while this one is active.
    """

    __slots__ = ("caught",)

    def __enter__(self) -> Any:
        self.caught: list[tuple[Any, Any]] = [(x, type(x)) for x in running_interpreters()]
        super().__enter__()  # first, so that `leave` is certain to end it
        for interpreter, kind in self.caught:
            interpreter.__class__ = _yielding(kind)
        return self

    def leave(self, *exc_info: Any) -> None:
        for interpreter, kind in self.caught:
            interpreter.__class__ = kind
        super().leave(*exc_info)


class _Yielding(Interpreter):
    """Comes before an interpreter's own class, and passes its work to the stage that catches it."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        for interpreter in reversed(running_interpreters()):
            if isinstance(interpreter, CatchingStage):
                return Stage.process(interpreter, primitive, args, params)
        return super().process(primitive, args, params)  # another thread's work

    process1 = Interpreter.process1
    process2 = Interpreter.process2


@cache
def _yielding(kind: Any) -> Any:
    if issubclass(kind, _Yielding):
        return kind
    return type(f"Yielding{kind.__name__}", (_Yielding, kind), {"__slots__": ()})


class TangentStage(Stage):
    """Records operations on tangents only; primal values are known."""

    __slots__ = ()
