"""functrans: composable function transforms for plain NumPy code.

grad, vmap, jvp, vjp, Jacobians, Hessians and graphs of functions written with `import numpy as np`,
nested in any order and to any depth.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from functrans import errors as errors
from functrans import numpy as numpy
from functrans import tree as tree
from functrans.core.allocator import keep_freed_memory as _keep_freed_memory
from functrans.core.shapes import ArraySpec
from functrans.core.tracer import LAZY as _LAZY
from functrans.graph.graph import Graph
from functrans.transforms.batching import (
    all_gather,
    axis_index,
    pmax,
    pmean,
    pmin,
    psum,
    vmap,
)
from functrans.transforms.derivatives import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)
from functrans.transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from functrans.transforms.staging import eval_shape, make_graph
from functrans.tree import ravel_pytree

if TYPE_CHECKING:
    from functrans import random as random
    from functrans.compiler.jit import jit as jit
    from functrans.compiler.source import source as source
    from functrans.compiler.storage import load_graph as load_graph

__version__ = "0.1.0"

_keep_freed_memory()
_LAZY["scipy.special._ufuncs"] = "functrans.scipy.rules"


_WHEN_USED = {"jit": "jit", "load_graph": "storage", "source": "source"}


def __getattr__(name: str) -> Any:
    """`functrans.random` and what compiles graphs are imported when they are first used."""
    if name == "random":
        return import_module("functrans.random")
    if name not in _WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"functrans.compiler.{_WHEN_USED[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "ArraySpec",
    "Graph",
    "all_gather",
    "axis_index",
    "errors",
    "eval_shape",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "load_graph",
    "make_graph",
    "numpy",
    "pmax",
    "pmean",
    "pmin",
    "psum",
    "ravel_pytree",
    "source",
    "stop_gradient",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
]
