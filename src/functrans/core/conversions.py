"""Conversions of tracers to plain values: which are allowed, and the errors for the others.

A plain value has no derivative. Only an explicit conversion in the user's code may cut a derivative off,
with a warning: float(x), int(x), x.item() and x.tolist(). Everything else (math.sin(x), a C function, a
library that calls float) is an error, which names the user's line and one remedy.
"""

from __future__ import annotations

import builtins
import cmath
import importlib
import inspect
import math
import sys
import warnings
from types import BuiltinFunctionType, FrameType
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.calls import called_at, is_formatting, module_of, operation_at
from functrans.core.dispatch import (
    carries_derivative,
    concrete,
    is_plain,
    running_interpreters,
)
from functrans.core.explaining import STATISTICS
from functrans.core.hooks import are_enabled, original_of

_STORES = frozenset({"STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR"})  # array[i] = x, array.real = x
_READS = frozenset({"BINARY_SUBSCR", "BINARY_SLICE"})  # array[x]
_OPERATIONS = frozenset({"BINARY_OP", "COMPARE_OP"})  # array * [x, 1]
_STORING = frozenset({"fill", "put", "__setitem__", "setitem", "fill_diagonal"})  # by a call
# Functions whose results have no derivative: they may read the value.
_PREDICATES = tuple(
    getattr(module, name)
    for module in (math, cmath)
    for name in ("isnan", "isinf", "isfinite", "isclose")
)
# Functions of math that have another name elsewhere.
_ELSEWHERE = {
    "fsum": "np.sum",
    "dist": "np.linalg.norm(np.subtract(p, q))",
    "erf": "scipy.special.erf",
    "erfc": "scipy.special.erfc",
    "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln",
    "sumprod": "np.dot",
    "phase": "np.angle",
}
_ROOT_FINDERS = frozenset(
    {"bisect", "brenth", "brentq", "fsolve", "newton", "ridder", "root", "root_scalar", "toms748"}
)
# What NumPy joins or spans between brackets.
_SUBSCRIPTED = {type(getattr(np, name)): name for name in ("r_", "c_", "mgrid", "ogrid")}
# Modules whose functions have counterparts for traced values, and the modules of those.
COUNTERPARTS: dict[str, str] = {}


def refuse_assignment(tracer: Any) -> None:
    """NumPy's `array[i] = tracer` calls float(tracer): refuse, since it drops the derivative."""
    if tracer.interpreter.closed:
        tracer.interpreter.escaped()
    frame = errors.calling_frame()
    if frame is None or frame.f_lasti < 0:
        return
    if operation_at(frame) in _STORES or called_at(frame)[0] in _STORING:
        learn_assignment()
        raise noted(
            errors.AssignmentError(
                f"a traced value cannot be assigned into a plain array, at {errors.user_location()}. "
                "The plain array cannot hold the derivative. Create the array inside the function with "
                "functrans.numpy, as in functrans.numpy.zeros(shape), which accepts traced values."
            )
        )


def plain_number(tracer: Any, conversion: type) -> Any:
    """The value for Python's float(x), int(x) or complex(x), if it may be read without its derivative."""
    refuse_assignment(tracer)
    if is_differentiated(tracer):
        frame = sys._getframe(2)
        _, function = called_at(frame)
        if function is conversion and function is not complex and frame is errors.user_frame():
            if function is int or not learn():  # the next run keeps a float traced
                warn_of_lost_derivative(f"{conversion.__name__}()", depth=3)
        elif function not in _PREDICATES and not is_formatting(frame):
            raise conversion_error(tracer)
    return concrete(tracer)


def plain_value(tracer: Any, method: str) -> Any:
    """The same for x.item(), x.tolist() and other methods that give plain values."""
    if tracer.interpreter.closed:
        tracer.interpreter.escaped()
    if is_differentiated(tracer) and method != "is_integer":  # an answer, like math.isnan(x)
        if sys._getframe(2) is not errors.user_frame():
            raise conversion_error(tracer)
        warn_of_lost_derivative(f".{method}()", depth=3)
    return concrete(tracer)


def note_text(tracer: Any, text: str) -> None:
    """Remember the text of a number where the code may read it again: float("{:.18f}".format(x))."""
    frame = errors.calling_frame()
    if frame is None or "float" not in frame.f_code.co_names or not is_differentiated(tracer):
        return
    learn()
    running = running_interpreters()
    if running and running[0].plan is not None:
        running[0].plan.texts[text] = tracer


def learn() -> bool:
    """Let the next run have the hooks that would have kept this value traced; whether there will be one."""
    from functrans.core import learning

    return learning.learn()


def is_asked_by_package() -> bool:
    """Whether code of SciPy asks for a value. It may catch the error, and give another result instead."""
    frame = errors.calling_frame()
    return frame is not None and (frame.f_globals.get("__name__") or "").startswith("scipy.")


def learn_decision() -> None:
    """Let the next run have the hook of a search of SciPy's that decides by a traced value."""
    from functrans.core import learning

    learning.learn_decision()


def learn_assignment(array: Any = None) -> None:
    """Let the next run make the array that was assigned to as one that accepts traced values."""
    from functrans.core import learning  # which needs what is below

    learning.learn_assignment(array)


def stays_traced(tracer: Any) -> bool:
    """Whether a method that returns plain numbers returns traced ones, to keep the derivative."""
    return are_enabled() and not tracer.interpreter.closed and is_differentiated(tracer)


def is_differentiated(tracer: Any) -> bool:
    """Whether a tracer has a derivative to lose."""
    return tracer.dtype.kind in "fc" and carries_derivative(tracer)


def warn_of_lost_derivative(conversion: str, depth: int) -> None:
    warnings.warn(
        f"{conversion} of a value that is being differentiated gives a plain number, at "
        f"{errors.user_location()}: no derivative flows through it. Use the value itself, or "
        "functrans.stop_gradient(x) if you mean a constant.",
        errors.DerivativeWarning,
        stacklevel=depth + 1,
    )


def conversion_error(tracer: Any) -> errors.FunctransError:
    """The error for a traced value that would become a plain one, depending on what the user's line calls."""
    calling = errors.calling_frame()
    operation = "" if calling is None else operation_at(calling)
    # array[x], array * [x, 1], array.dot(x)
    if operation in _READS or operation in _OPERATIONS or _is_method_of_array(calling):
        learn_assignment()
    else:
        learn()
    where = errors.user_location()
    frame = errors.user_frame()
    name, function = called_at(frame)
    given = inspect.unwrap(tracer.interpreter.function)
    if function is None and isinstance(given, BuiltinFunctionType):
        name, function = given.__name__, given  # grad(math.sin)(x)
    happened, remedy = _explanation(name, function, frame)
    return noted(errors.ArrayConversionError(f"{happened}, at {where}. {remedy}"))


def noted(error: errors.FunctransError) -> errors.FunctransError:
    """Remember an error until the end of the transform, in case the function catches it."""
    running = running_interpreters()
    if running and running[0].declined is None and are_enabled():
        running[0].declined = error
    return error


def _is_method_of_array(frame: FrameType | None) -> bool:
    name, function = called_at(frame)
    owner = getattr(function, "__self__", None)
    return is_plain(owner, np.ndarray) or (function is None and hasattr(np.ndarray, name or ""))


def _explanation(name: str | None, function: Any, frame: FrameType | None) -> tuple[str, str]:
    """What happened, and the one thing to do instead."""
    inside = _numpy_object_at_work(frame)
    if isinstance(inside, np.vectorize):
        return "np.vectorize computes with plain numbers", "Use functrans.numpy.vectorize."
    if name is None:
        if type(inside) in _SUBSCRIPTED:
            shortcut = _SUBSCRIPTED[type(inside)]
            return (
                f"np.{shortcut}[...] would make a plain array of traced values, without derivatives",
                f"Write functrans.numpy.{shortcut}[...], which takes traced values.",
            )
        if frame is not None and operation_at(frame) in _READS:
            return (
                "a plain array cannot be indexed by a traced value",
                "Write functrans.numpy.take(array, i).",
            )
        library = None if frame is None else errors.called_library(sys._getframe(1), frame)
        if library is not None:
            return f"{library} computes with plain numbers, without derivatives", _OWN_RULE
        return (
            "a traced value cannot become a plain one, which has no derivative",
            "To read the value without its derivative, use functrans.stop_gradient(x).",
        )
    module = module_of(function) if function is not None else ""
    own_name = getattr(function, "__name__", name)
    if original_of(getattr(sys.modules.get(module), own_name, None)) is original_of(function):
        name = own_name  # the user's line may have another name for it
    package = module.split(".")[0]
    owner = getattr(function, "__self__", None)
    if module in ("math", "cmath"):
        instead = f"np.{name}" if hasattr(np, name) else _ELSEWHERE.get(name)
        return (
            f"{module}.{name} gives a plain number, without a derivative",
            f"Write {instead} instead." if instead else _OWN_RULE,
        )
    if isinstance(function, type) and issubclass(function, np.generic):
        return (
            f"np.{name}(x) turns a traced value into a plain number",
            f"Write x.astype(np.{name}).",
        )
    if function is builtins.complex:
        return "complex(x) gives a plain number, without a derivative", "Write x + 0j."
    if _draws(name, function, owner) or module in ("random", "numpy.random"):
        return (
            f"the random {name} cannot take a traced parameter",
            "Draw standard numbers and transform them, loc + scale * rng.normal(size=...), or use "
            "functrans.random, whose functions have derivatives with respect to their parameters.",
        )
    if isinstance(owner, np.ndarray) or (function is None and hasattr(np.ndarray, name)):
        instead = "array @ x" if name == "dot" else f"np.{name}(array, x)"
        return f"the method {name} of a plain array cannot take a traced value", f"Write {instead}."
    if package == "numpy":
        return (
            f"{module}.{name} would make a plain array of traced values, without derivatives",
            f"Write functrans.{module}.{name}, which accepts traced values, even in lists."
            if _has_counterpart(module, name)
            else _OWN_RULE,
        )
    if module == "statistics" and name in STATISTICS:
        return (
            f"{module}.{name} computes with plain numbers, without derivatives",
            f"Write {STATISTICS[name]}.",
        )
    if package == "scipy":
        return (
            f"{module}.{name} computes with plain numbers, without derivatives",
            _instead_of_scipy(module, name),
        )
    called = f"{module}.{name}" if module not in ("", "builtins", "__main__") else name
    return f"{called} asks for a plain value, which has no derivative", _OWN_RULE


def _has_counterpart(module: str, name: str) -> bool:
    """Whether functrans.numpy has a function of its own under a name of NumPy's."""
    if module not in ("numpy", "numpy.linalg", "numpy.fft"):
        return False
    ours = getattr(importlib.import_module(f"functrans.{module}"), name, None)
    return ours is not None and ours is not getattr(sys.modules[module], name, None)


def _numpy_object_at_work(user: FrameType | None) -> Any:
    """The object of NumPy's whose method the user's line runs, as np.c_[x] and np.vectorize(f)(x) do."""
    found = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not user:
        if frame.f_code.co_name in ("__getitem__", "__call__"):
            found = frame.f_locals.get("self", found)
        frame = frame.f_back
    return found


def _draws(name: str, function: Any, owner: Any) -> bool:
    """Whether a function is a method of a random generator."""
    import random

    if isinstance(owner, (np.random.Generator, np.random.RandomState, random.Random)):
        return True
    return function is None and hasattr(np.random.Generator, name) and not hasattr(np, name)


def _instead_of_scipy(module: str, name: str) -> str:
    """What to use instead of a SciPy function."""
    if module in COUNTERPARTS and hasattr(importlib.import_module(COUNTERPARTS[module]), name):
        return f"Use functrans.{module}.{name}."
    if module == "scipy.linalg" and hasattr(np.linalg, name):
        return f"Use np.linalg.{name}."
    if module == "scipy.optimize" and name in _ROOT_FINDERS:
        return "Pass the solver to functrans.custom_root, which differentiates the root it finds."
    return _OWN_RULE


_OWN_RULE = (
    "Wrap the call in a function with a custom derivative (functrans.custom_jvp around "
    "functrans.pure_callback)."
)
