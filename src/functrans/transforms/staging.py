"""From functions to graphs, and to shapes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from functrans.core import errors, tree
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Graph, trace_names
from functrans.graph.scopes import CallStack
from functrans.interpreters.stage import Stage
from functrans.interpreters.tape import sweep
from functrans.transforms.arguments import check_callable, named_like

# The function of ours that pictures name beside the user's own.
_NAMED = {sweep.__code__: "backward sweep"}


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """Write a function down as a `Graph`, for arguments of given shapes and dtypes.

    Arguments may be arrays, numbers, or `ArraySpec`s. Nothing is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, make_graph
    >>> print(make_graph(grad(lambda x: np.sum(x * x)))(np.ones(2)))
    graph(x: float64[2]) -> float64[2]:
        constant0: float64[2]
        a: float64[2] = multiply(x, x)
        b: float64[] = sum(a, axis=(0,), keepdims=False)
        c: float64[2] = multiply(constant0, x)
        d: float64[2] = multiply(constant0, x)
        e: float64[2] = add(c, d)
        return e
    """
    check_callable(f, "make_graph")

    def stage_out(*args: Any, **kwargs: Any) -> Graph:
        leaves, structure = tree.flatten((args, kwargs))
        for leaf in leaves:
            if not isinstance(leaf, ArraySpec):
                tree.check_array(leaf, "make_graph: an argument")
        with Stage(f) as stage:
            stage.calls = CallStack(sys._getframe(), _NAMED)
            tracers = [stage.input(spec_of(leaf)) for leaf in leaves]
            traced_args, traced_kwargs = tree.unflatten(structure, tracers)
            out = f(*traced_args, **traced_kwargs)
            out_leaves, out_structure = tree.flatten(out)
            for leaf in out_leaves:
                tree.check_array(leaf, f"make_graph: an output of {errors.describe(f)}")
            graph: Graph = stage.finish(
                out_leaves,
                in_tree=structure,
                out_tree=out_structure,
                input_names=trace_names(f, args, kwargs),
            )
        return graph

    return named_like(f, "make_graph")(stage_out)


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes that a function would return, without computing it.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ArraySpec, eval_shape
    >>> eval_shape(np.matmul, ArraySpec((1000, 20), float), ArraySpec((20, 3), float))
    float64[1000,3]
    """
    check_callable(f, "eval_shape")
    graph = make_graph(f)(*args, **kwargs)
    return tree.unflatten(graph.out_tree, [variable.spec for variable in graph.outputs])
