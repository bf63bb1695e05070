"""Functions inside graphs, such as the body of a loop, compiled like the graph around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.compiler.passes import optimize, rebuilt
from functrans.core.dispatch import Tracer
from functrans.core.primitive import HigherOrder
from functrans.graph.graph import Equation, Graph
from functrans.transforms.procedures import Procedure

Compiler = Callable[[Graph], Callable[..., Any]]  # from a graph to a function of flat values

_PLAIN = frozenset({np.ndarray, np.float64, np.float32, np.int64, np.bool_, float, int, bool})


class Subroutine(Procedure):
    """A procedure that runs as compiled code, which is made when it is first called."""

    def __init__(self, graph: Graph, compiler: Compiler) -> None:
        super().__init__(graph)
        self.compiler = compiler
        self.function: Callable[..., Any] | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.function is None:
            self.function = self.compiler(optimize(self.graph))
        # A loop has dozens of leaves, and asks for each of its steps: a set of types is asked at once.
        plain = _PLAIN.issuperset(map(type, leaves))
        if not plain and any(isinstance(leaf, Tracer) for leaf in leaves):
            return super().__call__(*leaves)
        return list(self.function(*leaves))


def with_subroutines(graph: Graph, compiler: Compiler) -> Graph:
    """The graph with all procedures in the parameters of its equations as subroutines."""

    def compiled(value: Any) -> Any:
        if type(value) is Procedure:
            return Subroutine(value.graph, compiler)
        return tuple(map(compiled, value)) if type(value) is tuple else value

    if not any(isinstance(equation.primitive, HigherOrder) for equation in graph.equations):
        return graph
    equations = [
        Equation(e.primitive, e.inputs, {k: compiled(v) for k, v in e.params.items()}, e.outputs)
        if isinstance(e.primitive, HigherOrder)
        else e
        for e in graph.equations
    ]
    return rebuilt(graph, equations)
