"""Every error a user can meet, and the helpers that point at the user's own code.

Each class is a `FunctransError` and also the built-in exception that NumPy users would expect, so
`except TypeError` keeps working. A message says what happened, where, and what to do instead.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_GENERATED = "<functrans "  # how the names of all generated code begin
RULE_FILE = "<functrans rule>"  # the name of code that rules are compiled from
_NUMPY_FOLDER = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_SCIPY_FOLDER = os.path.join(os.path.dirname(os.path.dirname(_NUMPY_FOLDER)), "scipy") + os.sep


class FunctransError(Exception):
    """The base of every error that functrans raises on purpose.

    Examples
    --------
    >>> import functrans
    >>> try:
    ...     functrans.grad(lambda x: x)([1, 2])
    ... except functrans.errors.FunctransError as error:
    ...     print(type(error).__name__)
    InputTypeError
    """


class OutputShapeError(FunctransError, TypeError):
    """`grad` of a function whose output is not one scalar.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: 2 * x)(np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.core.errors.OutputShapeError: grad needs a function that returns one real ...
    """


class OutputTypeError(FunctransError, TypeError):
    """`grad` of a function whose output is complex, integer, or no number at all.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: (x, x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.OutputTypeError: grad needs a function that returns one real ...
    """


class InputTypeError(FunctransError, TypeError):
    """An argument that a transform cannot work on, such as `grad` of an integer argument.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: x**2)(3)
    Traceback (most recent call last):
        ...
    functrans.core.errors.InputTypeError: grad differentiates by floating point arguments, ...
    """


class ArgnumsError(FunctransError, ValueError):
    """`argnums` that names an argument which was not passed.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: x**2, argnums=1)(3.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.ArgnumsError: argnums=1 names argument 1, but `<lambda>` (...) ...
    """


class OptionError(FunctransError, ValueError):
    """An option that has none of the values it may have.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacobian
    >>> jacobian(np.sin, mode="forward")
    Traceback (most recent call last):
        ...
    functrans.core.errors.OptionError: mode must be "auto", "fwd" or "rev", not 'forward'.
    """


class MappedAxisError(FunctransError, ValueError):
    """`in_axes` or `out_axes` that do not fit the values, or axis sizes that differ.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vmap
    >>> vmap(np.add)(np.ones(3), np.ones(4))
    Traceback (most recent call last):
        ...
    functrans.core.errors.MappedAxisError: vmap needs mapped axes of one size, but argument ...
    """


class TangentError(FunctransError, TypeError):
    """Tangents or cotangents that do not match the values they belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> jvp(np.sin, (np.ones(3),), (1.0,))
    Traceback (most recent call last):
        ...
    functrans.core.errors.TangentError: the tangent of argument 0 has shape (), but the ...
    """


class ArrayConversionError(FunctransError, TypeError):
    """`np.array` or `np.asarray` of a traced value.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.sum(np.array([x, x])))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.ArrayConversionError: a traced value cannot become a plain array, ...
    """


class MemoryAccessError(ArrayConversionError, AttributeError):
    """A method or an attribute that is about bytes in memory.

    An AttributeError, so that `hasattr` and `getattr` with a default ask safely.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.sum(x) * x.strides[0])(np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.core.errors.MemoryAccessError: a traced array has no memory for x.strides to ...
    """


class AssignmentError(FunctransError, TypeError):
    """Assignment of a traced value into a plain array.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> def f(x):
    ...     out = np.zeros(2)
    ...     out[0] = x
    ...     return np.sum(out)
    >>> grad(f)(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.AssignmentError: a traced value cannot be assigned into a plain ...
    """


class EscapedTracerError(FunctransError, RuntimeError):
    """A traced value used after the transform that made it has finished.

    Examples
    --------
    >>> from functrans import grad
    >>> kept = []
    >>> slope = grad(lambda x: (kept.append(x), x)[1])(1.0)
    >>> kept[0] + 1.0
    Traceback (most recent call last):
        ...
    functrans.core.errors.EscapedTracerError: a traced value is used after the transform that ...
    """


class MissingRuleError(FunctransError, NotImplementedError, TypeError):
    """A NumPy function or a transform for which a primitive has no rule.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.frompyfunc(abs, 1, 1)(x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.MissingRuleError: numpy.abs (vectorized) has no rule for traced ...
    """


class StagingError(FunctransError, TypeError):
    """Code that needs a concrete value while a function is being staged to a graph.

    Examples
    --------
    >>> from functrans import make_graph
    >>> make_graph(lambda x: x if x > 0 else -x)(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.StagingError: the value of a traced array (bool[]*) is not ...
    """


class AxisNameError(FunctransError, NameError):
    """A collective over an axis name that no running `vmap` has, or has twice.

    Examples
    --------
    >>> from functrans import psum
    >>> psum(1.0, "lanes")
    Traceback (most recent call last):
        ...
    functrans.core.errors.AxisNameError: no running vmap has an axis named 'lanes', ...
    """


class LaneError(FunctransError, ValueError):
    """Lanes of a `vmap` that took different Python branches and cannot be put together again.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vmap
    >>> vmap(lambda x: np.ones(2) if x > 0 else np.ones(3))(np.array([1.0, -1.0]))
    Traceback (most recent call last):
        ...
    functrans.core.errors.LaneError: lanes of `<lambda>` (...) took different branches ...
    """


class GraphError(FunctransError, ValueError):
    """A graph that breaks its own rules, or is called with arguments it was not traced for.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import make_graph
    >>> make_graph(np.sin)(np.ones(3))(np.ones(4))
    Traceback (most recent call last):
        ...
    functrans.core.errors.GraphError: input 0 was traced as float64[3], but is float64[4].
    """


class LinearityError(FunctransError, ValueError):
    """`linear_transpose`, or a linear system, of a function that is not linear.

    Examples
    --------
    >>> from functrans import linear_transpose
    >>> linear_transpose(lambda x: x + 1.0, 1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.LinearityError: linear_transpose needs a linear function, but ...
    """


class SingularError(FunctransError, np.linalg.LinAlgError):
    """A root that has no derivative, because the Jacobian of its equation is singular.

    Examples
    --------
    >>> from functrans import custom_root, grad
    >>> zero = lambda f, x: 0.0 * x
    >>> grad(lambda a: custom_root(lambda x: x**2 - a, 1.0, zero))(0.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.SingularError: custom_root: the Jacobian of `<lambda>` (...) is singular ...
    """


class CarryError(FunctransError, TypeError):
    """A loop whose body returns another structure, shape or dtype than it was given.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import scan
    >>> scan(lambda total, x: total + x, 0.0, np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.core.errors.CarryError: scan: `<lambda>` (...) must return a pair (carry, ...
    """


class BranchError(FunctransError, TypeError):
    """Branches that return different structures, shapes or dtypes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import cond, make_graph
    >>> make_graph(lambda x: cond(x > 0, np.sin, lambda x: np.ones(2), x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.BranchError: cond: the branches return different values, ...
    """


class RuleError(FunctransError, TypeError):
    """A user's own rule, callback, equation or solver that returns other values than it is to return.

    Examples
    --------
    >>> from functrans import custom_jvp, grad
    >>> grad(custom_jvp(lambda x: x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.RuleError: `<lambda>` (...) is a custom_jvp without a rule: ...
    """


class ClosureError(FunctransError, TypeError):
    """A function with a rule of its own that depends on traced values beside its arguments.

    Examples
    --------
    >>> from functrans import custom_jvp, grad
    >>> def scaled(scale):
    ...     f = custom_jvp(lambda x: scale * x)
    ...     f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    ...     return f(scale)
    >>> grad(scaled)(3.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.ClosureError: `<lambda>` (...) is a custom_jvp, and it or its ...
    """


class AnomalyError(FunctransError, FloatingPointError):
    """A nan or an inf, found by `detect_anomaly`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import detect_anomaly, vmap
    >>> with detect_anomaly():
    ...     vmap(np.log)(np.array([1.0, -1.0]))
    Traceback (most recent call last):
        ...
    functrans.core.errors.AnomalyError: log made a nan, forward, ...
    """


class DerivativeError(FunctransError, AssertionError):
    """A derivative that differs from finite differences, found by `check_derivatives`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import check_derivatives
    >>> check_derivatives(lambda x: np.maximum(x, 0.0), (0.0,))
    Traceback (most recent call last):
        ...
    functrans.core.errors.DerivativeError: check_derivatives: the derivative of `<lambda>` ...
    """


class MissingPackageError(FunctransError, ImportError):
    """A package that an option or a module needs, and that is not installed.

    Examples
    --------
    >>> import sys
    >>> import functrans
    >>> sys.modules["tqdm.auto"] = None  # as if it were absent
    >>> functrans.check_derivatives(abs, (1.0,), progress=True)
    Traceback (most recent call last):
        ...
    functrans.core.errors.MissingPackageError: progress=True needs tqdm, which is not ...
    >>> del sys.modules["tqdm.auto"]
    """


class DerivativeWarning(UserWarning):
    """A derivative is lost: `float(x)` of a value that is being differentiated.

    Examples
    --------
    >>> import math, warnings
    >>> from functrans import grad
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     grad(lambda x: math.sin(x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.DerivativeWarning: float() of a value that is being differentiated ...
    """


class ConvergenceWarning(RuntimeWarning):
    """A solver gave up: what it returns is no solution, or not one to the accuracy that was asked for.

    To have an error instead: `warnings.simplefilter("error", functrans.errors.ConvergenceWarning)`.

    Examples
    --------
    >>> import warnings
    >>> from functrans import fixed_point
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     fixed_point(lambda x: 0.99 * x + 1.0, 0.0, maxiter=10)
    Traceback (most recent call last):
        ...
    functrans.core.errors.ConvergenceWarning: the fixed-point iteration of `<lambda>` (...) has ...
    """


def user_frame() -> Any:
    """The innermost frame that is neither functrans' own nor NumPy's; None if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def user_depth() -> int:
    """How far up the user's frame is from the caller's, as `stacklevel` of a warning counts."""
    frame: Any = sys._getframe(1)
    user = user_frame()
    depth = 1
    while frame is not None and frame is not user:
        frame = frame.f_back
        depth += 1
    return depth


def is_users(code: Any) -> bool:
    """Whether code is neither functrans' own nor NumPy's."""
    file: str = code.co_filename
    return not file.startswith((_GENERATED, _PACKAGE_FOLDER, _NUMPY_FOLDER))


def user_location() -> str:
    """Where in the user's code we are, as `file, line n, in f: source` ready for a message."""
    frame = user_frame()
    called = frame
    while called is not None and called.f_code.co_filename.startswith(_SCIPY_FOLDER):
        called = called.f_back  # the user called a function of SciPy
    frame = called or frame
    if frame is None:
        return "an unknown place"
    return location_of(frame.f_code, frame.f_lineno)


def location_of(code: Any, line: int) -> str:
    """A line of code, ready for a message."""
    text = linecache.getline(code.co_filename, line).strip()
    place = f"{_file_name(code)}, line {line}, in {code.co_name}"
    return f"{place}: `{text}`" if text else place


def _file_name(code: Any) -> str:
    folder, name = os.path.split(code.co_filename)
    # Jupyter keeps each cell in a file whose name is a number, which tells nobody anything.
    return "notebook cell" if os.path.basename(folder).startswith("ipykernel_") else name


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def describe(function: Callable[..., Any]) -> str:
    """A user's function as a message names it: `loss` (model.py, line 12)."""
    name = name_of(function)
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None:
        return f"`{name}`"
    return f"`{name}` ({_file_name(code)}, line {code.co_firstlineno})"
