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
    from functrans import checkpoint_policies as checkpoint_policies
    from functrans import plot as plot
    from functrans import random as random
    from functrans import testing as testing
    from functrans.compiler.jit import jit as jit
    from functrans.compiler.source import source as source
    from functrans.compiler.storage import load_graph as load_graph
    from functrans.debugging.anomaly import detect_anomaly as detect_anomaly
    from functrans.debugging.profiling import profile as profile
    from functrans.drawing.steps import trace_steps as trace_steps
    from functrans.testing.derivatives import check_derivatives as check_derivatives
    from functrans.transforms.associative import associative_scan as associative_scan
    from functrans.transforms.branching import cond as cond
    from functrans.transforms.branching import switch as switch
    from functrans.transforms.callbacks import pure_callback as pure_callback
    from functrans.transforms.callbacks import tap as tap
    from functrans.transforms.checkpointing import checkpoint as checkpoint
    from functrans.transforms.checkpointing import checkpoint_name as checkpoint_name
    from functrans.transforms.checkpointing import remat as remat
    from functrans.transforms.custom import custom_jvp as custom_jvp
    from functrans.transforms.custom import custom_vjp as custom_vjp
    from functrans.transforms.extension import define_primitive as define_primitive
    from functrans.transforms.krylov import bicgstab as bicgstab
    from functrans.transforms.krylov import cg as cg
    from functrans.transforms.krylov import gmres as gmres
    from functrans.transforms.linear import linear_solve as linear_solve
    from functrans.transforms.loops import fori_loop as fori_loop
    from functrans.transforms.loops import while_loop as while_loop
    from functrans.transforms.mapping import map as map
    from functrans.transforms.ode import odeint as odeint
    from functrans.transforms.roots import custom_root as custom_root
    from functrans.transforms.roots import fixed_point as fixed_point
    from functrans.transforms.scanning import scan as scan

__version__ = "0.1.0"

_keep_freed_memory()
_LAZY["scipy.special._ufuncs"] = "functrans.scipy.rules"


# What is imported when it is first used, so that `import functrans` stays fast, and where it is.
_LATER = {
    "associative_scan": "transforms.associative",
    "bicgstab": "transforms.krylov",
    "cg": "transforms.krylov",
    "check_derivatives": "testing.derivatives",
    "checkpoint": "transforms.checkpointing",
    "checkpoint_name": "transforms.checkpointing",
    "cond": "transforms.branching",
    "custom_jvp": "transforms.custom",
    "custom_root": "transforms.roots",
    "custom_vjp": "transforms.custom",
    "define_primitive": "transforms.extension",
    "fixed_point": "transforms.roots",
    "detect_anomaly": "debugging.anomaly",
    "fori_loop": "transforms.loops",
    "gmres": "transforms.krylov",
    "jit": "compiler.jit",
    "linear_solve": "transforms.linear",
    "load_graph": "compiler.storage",
    "map": "transforms.mapping",
    "odeint": "transforms.ode",
    "profile": "debugging.profiling",
    "pure_callback": "transforms.callbacks",
    "remat": "transforms.checkpointing",
    "scan": "transforms.scanning",
    "source": "compiler.source",
    "switch": "transforms.branching",
    "tap": "transforms.callbacks",
    "trace_steps": "drawing.steps",
    "while_loop": "transforms.loops",
}


def __getattr__(name: str) -> Any:
    if name in ("checkpoint_policies", "plot", "random", "testing"):
        return import_module(f"functrans.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"functrans.{_LATER[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "ArraySpec",
    "Graph",
    "all_gather",
    "associative_scan",
    "axis_index",
    "bicgstab",
    "cg",
    "check_derivatives",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "cond",
    "custom_jvp",
    "custom_root",
    "custom_vjp",
    "define_primitive",
    "detect_anomaly",
    "errors",
    "eval_shape",
    "fixed_point",
    "fori_loop",
    "gmres",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_solve",
    "linear_transpose",
    "linearize",
    "load_graph",
    "make_graph",
    "map",
    "numpy",
    "odeint",
    "plot",
    "pmax",
    "pmean",
    "pmin",
    "profile",
    "psum",
    "pure_callback",
    "ravel_pytree",
    "remat",
    "scan",
    "source",
    "stop_gradient",
    "switch",
    "tap",
    "testing",
    "trace_steps",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
