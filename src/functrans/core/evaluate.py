"""Evaluation: the interpreter that just computes.

Primitives on plain arrays need no interpreter: `Primitive.__call__` calls the NumPy implementation.
`Evaluate` is for plain arrays to which traced values may be assigned later, such as np.zeros_like(x) of a
traced x, and for those that may be indexed by traced values, such as the arguments that a `vmap` does not
map. An `OpenArray` holds a plain array, and turns into a tracer of another kind when a traced value is
assigned to it. Its level is below all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from functrans.core import views
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
        # Always a copy: an assignment to this array must not change a plain array that shares its memory.
        # Unless the caller asks for a copy, it is read-only, because what is written to it would be lost.
        made = np.array(self.value, dtype=dtype)
        made.flags.writeable = copy is True
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.value.__reduce_ex__(protocol)  # as the plain array that it is

    # It has no derivative to lose: one without axes may be assigned into a plain array.

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)


class Evaluate(Interpreter):
    """Computes; its results accept assignments of traced values, too."""

    __slots__ = ()

    transform = "no transform"

    def __init__(self) -> None:
        super().__init__(level=0)

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        out = primitive.impl(*[as_constant(arg) for arg in args], **params)
        return tuple(map(open_array, out)) if primitive.outputs else open_array(out)

    def concrete(self, tracer: Any) -> Any:
        return tracer.value


EVALUATE = Evaluate()
views.install(as_tracer=lambda value: OpenArray(np.asarray(value)))


def open_array(value: Any) -> Any:
    """A plain array as one that accepts traced values; any other value unchanged."""
    return OpenArray(value) if type(value) is np.ndarray else value


def opened(results: list[Any], given: Iterable[Any]) -> list[Any]:
    """Derivatives at arguments some of which are traced by an outer transform.

    A gradient that does not depend on the values is a plain array. Like everything computed from traced
    arguments, it can be indexed by traced values, and accepts assignments of them.
    """
    if running_interpreters() and any(isinstance(value, Tracer) for value in given):
        return [open_array(result) for result in results]
    return results


def as_constant(value: Any) -> Any:
    """The value that an interpreter computes with in place of one that is not its own."""
    return value.value if type(value) is OpenArray else value


def compute(primitive: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive one level down, for an interpreter that holds the result itself."""
    out = primitive(*args, **params)
    return tuple(map(as_constant, out)) if primitive.outputs else as_constant(out)


def run_equations(
    equations: Sequence[Any], environment: dict[Any, Any], outputs: Iterable[Any] | None = None
) -> None:
    """Run equations in order; `environment` maps variables to values and is filled in place.

    With `outputs`, all other values are freed after their last use.
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
