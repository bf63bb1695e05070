"""functrans: composable function transforms for plain NumPy code.

grad, vmap, jvp, vjp, Jacobians, Hessians and graphs of functions written with `import numpy as np`,
nested in any order and to any depth.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from functrans import checkpoint_policies as checkpoint_policies
from functrans import errors as errors
from functrans import numpy as numpy
from functrans import tree as tree
from functrans.core.allocator import keep_freed_memory as _keep_freed_memory
from functrans.core.shapes import ArraySpec
from functrans.core.tracer import LAZY as _LAZY
from functrans.graph.graph import Graph
from functrans.transforms.associative import associative_scan
from functrans.transforms.batching import (
    all_gather,
    axis_index,
    pmax,
    pmean,
    pmin,
    psum,
    vmap,
)
from functrans.transforms.branching import cond, switch
from functrans.transforms.callbacks import pure_callback, tap
from functrans.transforms.checkpointing import checkpoint, checkpoint_name
from functrans.transforms.checkpointing import checkpoint as remat
from functrans.transforms.custom import custom_jvp, custom_vjp
from functrans.transforms.derivatives import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)
from functrans.transforms.extension import define_primitive
from functrans.transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from functrans.transforms.loops import fori_loop, while_loop
from functrans.transforms.mapping import map
from functrans.transforms.scanning import scan
from functrans.transforms.staging import eval_shape, make_graph
from functrans.tree import ravel_pytree

if TYPE_CHECKING:
    from functrans import random as random

__version__ = "0.1.0"

_keep_freed_memory()
_LAZY["scipy.special._ufuncs"] = "functrans.scipy.rules"


def __getattr__(name: str) -> Any:
    """`functrans.random` is imported when it is first used."""
    if name != "random":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("functrans.random")


__all__ = [
    "ArraySpec",
    "Graph",
    "all_gather",
    "associative_scan",
    "axis_index",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "define_primitive",
    "errors",
    "eval_shape",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_graph",
    "map",
    "numpy",
    "pmax",
    "pmean",
    "pmin",
    "psum",
    "pure_callback",
    "ravel_pytree",
    "remat",
    "scan",
    "stop_gradient",
    "switch",
    "tap",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
