"""functrans: composable function transforms for plain NumPy code.

grad, vmap, jvp, vjp, Jacobians, Hessians and graphs of functions written with `import numpy as np`,
nested in any order and to any depth.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from functrans import errors as errors
from functrans import tree as tree
from functrans.core.allocator import keep_freed_memory as _keep_freed_memory
from functrans.core.conversions import COUNTERPARTS as _COUNTERPARTS
from functrans.core.hooks import PACKAGES as _PACKAGES
from functrans.core.hooks import use_hooks
from functrans.core.primitive import add_source as _add_source
from functrans.core.publishing import publish as _publish
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
from functrans.transforms.derivatives import grad, stop_gradient, value_and_grad, vjp
from functrans.transforms.forward_mode import jvp, linear_transpose, linearize
from functrans.transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from functrans.transforms.staging import eval_shape, make_graph
from functrans.tree import ravel_pytree

if TYPE_CHECKING:
    from functrans import checkpoint_policies as checkpoint_policies
    from functrans import debugging as debugging
    from functrans import numpy as numpy
    from functrans import plot as plot
    from functrans import random as random
    from functrans import scipy as scipy
    from functrans import testing as testing
    from functrans import torch as torch
    from functrans.compiler.jit import jit as jit
    from functrans.compiler.numpy.source import source as source
    from functrans.compiler.storage import load_graph as load_graph
    from functrans.control.associative import associative_scan as associative_scan
    from functrans.control.branching import cond as cond
    from functrans.control.branching import switch as switch
    from functrans.control.loops import fori_loop as fori_loop
    from functrans.control.loops import while_loop as while_loop
    from functrans.control.mapping import map as map
    from functrans.control.scanning import scan as scan
    from functrans.custom.callbacks import pure_callback as pure_callback
    from functrans.custom.callbacks import tap as tap
    from functrans.custom.checkpointing import checkpoint as checkpoint
    from functrans.custom.checkpointing import checkpoint_name as checkpoint_name
    from functrans.custom.checkpointing import remat as remat
    from functrans.custom.primitives import define_primitive as define_primitive
    from functrans.custom.rules import custom_jvp as custom_jvp
    from functrans.custom.rules import custom_vjp as custom_vjp
    from functrans.debugging.anomaly import detect_anomaly as detect_anomaly
    from functrans.debugging.profiling import profile as profile
    from functrans.drawing.steps import trace_steps as trace_steps
    from functrans.solvers.krylov import bicgstab as bicgstab
    from functrans.solvers.krylov import cg as cg
    from functrans.solvers.krylov import gmres as gmres
    from functrans.solvers.linear import linear_solve as linear_solve
    from functrans.solvers.ode import odeint as odeint
    from functrans.solvers.roots import custom_root as custom_root
    from functrans.solvers.roots import fixed_point as fixed_point
    from functrans.testing.derivatives import check_derivatives as check_derivatives
    from functrans.transforms.spectral_functions import spectral_function as spectral_function

__version__ = "0.1.0"

_keep_freed_memory()
_LAZY["scipy.special._ufuncs"] = "functrans.scipy.rules"


def _load_scipy() -> None:
    """Import the primitives of functrans.scipy, if SciPy is there."""
    try:
        from functrans.scipy import (  # noqa: F401
            adjoint,
            bands,
            cosine_transforms,
            eigenvectors,
            filters,
            matrices,
            matrix_functions,
            rules,
        )
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise


_add_source(_load_scipy)
_SCIPY = (
    *(
        "fft",
        "integrate",
        "interpolate",
        "linalg",
        "ndimage",
        "optimize",
        "signal",
        "signal.windows",
    ),
    *("spatial.distance", "spatial.transform", "special", "stats"),
)
_COUNTERPARTS.update((f"scipy.{name}", f"functrans.scipy.{name}") for name in _SCIPY)


_PACKAGES |= {
    "numpy": "functrans.surface.hooked",
    "math": "functrans.surface.hooked_math",
    "cmath": "functrans.surface.hooked_math",
    "statistics": "functrans.surface.hooked_statistics",
    "scipy": "functrans.scipy.hooks",
}

# What is imported when it is first used, so that `import functrans` stays fast, and where it is.
_LATER = {
    "associative_scan": "control.associative",
    "bicgstab": "solvers.krylov",
    "cg": "solvers.krylov",
    "check_derivatives": "testing.derivatives",
    "checkpoint": "custom.checkpointing",
    "checkpoint_name": "custom.checkpointing",
    "cond": "control.branching",
    "custom_jvp": "custom.rules",
    "custom_root": "solvers.roots",
    "custom_vjp": "custom.rules",
    "define_primitive": "custom.primitives",
    "fixed_point": "solvers.roots",
    "detect_anomaly": "debugging.anomaly",
    "fori_loop": "control.loops",
    "gmres": "solvers.krylov",
    "jit": "compiler.jit",
    "linear_solve": "solvers.linear",
    "load_graph": "compiler.storage",
    "map": "control.mapping",
    "odeint": "solvers.ode",
    "profile": "debugging.profiling",
    "pure_callback": "custom.callbacks",
    "remat": "custom.checkpointing",
    "scan": "control.scanning",
    "source": "compiler.numpy.source",
    "spectral_function": "transforms.spectral_functions",
    "switch": "control.branching",
    "tap": "custom.callbacks",
    "trace_steps": "drawing.steps",
    "while_loop": "control.loops",
}
_MODULES = (
    "checkpoint_policies",
    "debugging",
    "numpy",
    "plot",
    "random",
    "scipy",
    "testing",
    "torch",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"functrans.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"functrans.{_LATER[name]}"), name)
    _publish(__name__, [value])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


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
    "spectral_function",
    "stop_gradient",
    "switch",
    "tap",
    "testing",
    "trace_steps",
    "tree",
    "use_hooks",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

_publish(__name__, [globals().get(name) for name in __all__])
