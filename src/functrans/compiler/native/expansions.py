"""Operations in terms of others that kernels know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from functrans.compiler.passes import Rewriter
from functrans.core.primitive import Rules
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import elementwise as ew
from functrans.ops import reduction, structure

Expansion = Callable[[Rewriter, Equation], Variable | None]

expands: Rules[Expansion] = Rules()


def expanded(graph: Graph) -> Graph:
    """The graph with such operations expanded."""
    if all(expands.of(equation.primitive) is None for equation in graph.equations):
        return graph

    def rule(walk: Rewriter, equation: Equation) -> Variable | None:
        expansion = expands.of(equation.primitive)
        return None if expansion is None else expansion(walk, equation)

    return Rewriter(graph).run(rule)


@expands(reduction.argmax, reduction.argmin)
def _place_of_extreme(walk: Rewriter, equation: Equation) -> Variable | None:
    """The least index at which the extreme value is; a nan is more extreme than any number."""
    (x,), params = equation.inputs, equation.params
    axis, keepdims = params["axis"], params["keepdims"]
    if not isinstance(axis, int) or not x.spec.size:
        return None
    kind, axis = x.spec.dtype.kind, axis % x.spec.ndim
    if kind not in "bif":
        return None
    largest = equation.primitive is reduction.argmax
    if kind == "b":
        hits = x if largest else walk.emit(ew.logical_not, x)
        most = walk.emit(reduction.any, hits, axis=(axis,), keepdims=True)
        hits = walk.emit(ew.equal, hits, most)
    else:
        extreme = reduction.max if largest else reduction.min
        most = walk.emit(extreme, x, axis=(axis,), keepdims=True)
        hits = walk.emit(ew.equal, x, most)
        if kind == "f":
            hits = walk.emit(ew.logical_or, hits, walk.emit(ew.isnan, x))
    length = x.spec.shape[axis]
    shape = [1] * x.spec.ndim
    shape[axis] = length
    places = walk.constant(np.arange(length).reshape(shape))
    none = walk.constant(np.asarray(length))
    found = walk.emit(structure.where, hits, places, none)
    return walk.emit(reduction.min, found, axis=(axis,), keepdims=keepdims)
