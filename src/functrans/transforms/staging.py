"""From functions to graphs, and to shapes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, overload

from functrans.core import errors, tree
from functrans.core.hooks import runs_again
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Graph, trace_names
from functrans.graph.scopes import CallStack
from functrans.interpreters.stage import Stage, marked_like
from functrans.interpreters.tape import sweep
from functrans.transforms.arguments import LATER, check_callable
from functrans.transforms.functions import transformed
from functrans.transforms.leaves import is_staging

# The library function that pictures show next to the user's functions.
_NAMED = {sweep.__code__: "backward sweep"}


@overload
def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]: ...
@overload
def make_graph() -> Callable[[Callable[..., Any]], Callable[..., Graph]]: ...
def make_graph(f: Callable[..., Any] = LATER) -> Any:
    """Trace a function into a `Graph`, for arguments with given shapes and dtypes.

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
    if f is LATER:
        return make_graph
    f = check_callable(f, "make_graph")

    def stage_out(*args: Any, **kwargs: Any) -> Graph:
        if is_staging():  # an outer trace checks the draws
            return staged_out(f, args, kwargs, "make_graph")
        from functrans.core.draws import Draws  # which needs NumPy's and Python's generators

        with Draws(f, args, kwargs) as draws:
            graph = staged_out(f, args, kwargs, "make_graph")
        draws.warn("make_graph")
        return graph

    return transformed(stage_out, f, make_graph, "The graph of {f}.")


@runs_again
def staged_out(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], transform: str
) -> Graph:
    """Trace a function into a graph; error messages name `transform`."""
    leaves, structure = tree.flatten((args, kwargs))
    for k, leaf in enumerate(leaves):
        if not isinstance(leaf, ArraySpec) and not tree.is_array(leaf):
            tree.check_array(leaf, f"{transform}: {trace_names(f, args, kwargs)[k]}")
    tree.seal(structure)
    with Stage(f, transform) as stage:
        stage.reruns = True
        stage.calls = CallStack(sys._getframe(), _NAMED)
        tracers = [marked_like(stage.input(spec_of(leaf)), leaf) for leaf in leaves]
        traced_args, traced_kwargs = tree.unflatten(structure, tracers)
        out = f(*traced_args, **traced_kwargs)
        out_leaves, out_structure = tree.flatten(out)
        for leaf in out_leaves:
            tree.check_array(leaf, f"{transform}: an output of {errors.describe(f)}")
        tree.seal(out_structure)
        graph: Graph = stage.finish(
            out_leaves,
            in_tree=structure,
            out_tree=out_structure,
            input_names=trace_names(f, args, kwargs),
        )
    return graph


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's results, found without computing them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ArraySpec, eval_shape
    >>> eval_shape(np.matmul, ArraySpec((1000, 20), float), ArraySpec((20, 3), float))
    float64[1000,3]
    """
    f = check_callable(f, "eval_shape")
    graph = staged_out(f, args, kwargs, "eval_shape")
    return tree.unflatten(graph.out_tree, [variable.spec for variable in graph.outputs])
