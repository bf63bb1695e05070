"""Functions inside graphs: those that are simply called are inlined into the graph around them.

Others, such as the body of a loop, are compiled like that graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.compiler.passes import optimize, rebuilt
from functrans.control.calling import call
from functrans.control.procedures import Procedure
from functrans.core.dispatch import Tracer
from functrans.core.primitive import HigherOrder
from functrans.custom.checkpointing import kept_call
from functrans.custom.custom_primitive import custom
from functrans.graph.graph import Equation, Graph, Variable

Compiler = Callable[[Graph], Callable[..., Any]]  # from a graph to a function of flat values

_PLAIN = frozenset({np.ndarray, np.float64, np.float32, np.int64, np.bool_, float, int, bool})


class Subroutine(Procedure):
    """A procedure that runs as compiled code, compiled on its first call."""

    def __init__(self, graph: Graph, compiler: Compiler) -> None:
        super().__init__(graph)
        self.compiler = compiler
        self.function: Callable[..., Any] | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.function is None:
            graph = optimize(self.graph)
            graph.arrays = None  # numbers or arrays: only other steps see them
            self.function = self.compiler(graph)
        # A loop may have dozens of leaves in each step, so their types are checked all at once.
        plain = _PLAIN.issuperset(map(type, leaves))
        if not plain and any(isinstance(leaf, Tracer) for leaf in leaves):
            return super().__call__(*leaves)
        return list(self.function(*leaves))


def inlined(graph: Graph) -> Graph:
    """The graph with the functions that it calls inlined: custom rules, and checkpoints.

    It is for running only, not for derivatives. No pass runs after it: common subexpression elimination
    would undo checkpoints.
    """
    if not any(_called(equation) for equation in graph.equations):
        return graph
    constants, equations = dict(graph.constants), list[Equation]()
    replaced: dict[Variable, Variable] = {}
    for equation in graph.equations:
        inputs = tuple(replaced.get(v, v) for v in equation.inputs)
        procedure = _called(equation)
        inner = None if procedure is None else inlined(optimize(procedure.graph))
        if inner is None or not _fits(inner, inputs, equation):
            equations.append(
                Equation(equation.primitive, inputs, equation.params, equation.outputs)
            )
            continue
        own = dict(zip(inner.inputs, inputs, strict=True))
        constants |= inner.constants
        for each in inner.equations:
            given = tuple(own.get(v, v) for v in each.inputs)
            outputs = tuple(Variable(v.spec) for v in each.outputs)
            own |= zip(each.outputs, outputs, strict=True)
            equations.append(Equation(each.primitive, given, each.params, outputs))
        results = (own.get(v, v) for v in inner.outputs)
        replaced |= zip(equation.outputs, results, strict=True)
    return rebuilt(graph, equations, constants, [replaced.get(v, v) for v in graph.outputs])


def _called(equation: Equation) -> Procedure | None:
    """The function of an equation that only calls it."""
    function = None
    if equation.primitive in (call, kept_call):
        function = equation.params["function"]
    elif equation.primitive is custom:
        function = equation.params["rules"].function
    return function if isinstance(function, Procedure) else None


def _fits(inner: Graph, inputs: tuple[Variable, ...], equation: Equation) -> bool:
    given = [v.spec for v in (*inputs, *equation.outputs)]
    return given == [v.spec for v in (*inner.inputs, *inner.outputs)]


def with_subroutines(graph: Graph, compiler: Compiler, excepted: list[bool] | None = None) -> Graph:
    """The graph with the procedures in the parameters of its equations as subroutines.

    The equations in `excepted` stay as they are.
    """

    def compiled(value: Any) -> Any:
        if type(value) is Procedure:
            return Subroutine(value.graph, compiler)
        return tuple(map(compiled, value)) if type(value) is tuple else value

    if not any(isinstance(equation.primitive, HigherOrder) for equation in graph.equations):
        return graph
    equations = [
        Equation(e.primitive, e.inputs, {k: compiled(v) for k, v in e.params.items()}, e.outputs)
        if isinstance(e.primitive, HigherOrder) and not stays
        else e
        for e, stays in zip(
            graph.equations, excepted or [False] * len(graph.equations), strict=True
        )
    ]
    return rebuilt(graph, equations)
