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
    """`grad` of a function whose output is not one scalar."""


class OutputTypeError(FunctransError, TypeError):
    """`grad` of a function whose output is complex, integer, or no number at all."""


class InputTypeError(FunctransError, TypeError):
    """An argument that a transform cannot work on, such as `grad` of an integer argument."""


class ArgnumsError(FunctransError, ValueError):
    """`argnums` that names an argument which was not passed."""


class OptionError(FunctransError, ValueError):
    """An option that has none of the values it may have."""


class MappedAxisError(FunctransError, ValueError):
    """`in_axes` or `out_axes` that do not fit the values, or axis sizes that differ."""


class TangentError(FunctransError, TypeError):
    """Tangents or cotangents that do not match the values they belong to."""


class ArrayConversionError(FunctransError, TypeError):
    """`np.array` or `np.asarray` of a traced value."""


class MemoryAccessError(ArrayConversionError, AttributeError):
    """A method or an attribute that is about bytes in memory.

    An AttributeError, so that `hasattr` and `getattr` with a default ask safely.
    """


class AssignmentError(FunctransError, TypeError):
    """Assignment of a traced value into a plain array."""


class EscapedTracerError(FunctransError, RuntimeError):
    """A traced value used after the transform that made it has finished."""


class MissingRuleError(FunctransError, NotImplementedError, TypeError):
    """A NumPy function or a transform for which a primitive has no rule."""


class StagingError(FunctransError, TypeError):
    """Code that needs a concrete value while a function is being staged to a graph."""


class AxisNameError(FunctransError, NameError):
    """A collective over an axis name that no running `vmap` has, or has twice."""


class LaneError(FunctransError, ValueError):
    """Lanes of a `vmap` that took different Python branches and cannot be put together again."""


class GraphError(FunctransError, ValueError):
    """A graph that breaks its own rules, or is called with arguments it was not traced for."""


class LinearityError(FunctransError, ValueError):
    """`linear_transpose`, or a linear system, of a function that is not linear."""


class SingularError(FunctransError, np.linalg.LinAlgError):
    """A root that has no derivative, because the Jacobian of its equation is singular."""


class CarryError(FunctransError, TypeError):
    """A loop whose body returns another structure, shape or dtype than it was given."""


class BranchError(FunctransError, TypeError):
    """Branches that return different structures, shapes or dtypes."""


class RuleError(FunctransError, TypeError):
    """A user's own rule, callback, equation or solver that returns other values than it is to return."""


class ClosureError(FunctransError, TypeError):
    """A function with a rule of its own that depends on traced values beside its arguments."""


class AnomalyError(FunctransError, FloatingPointError):
    """A nan or an inf, found by `detect_anomaly`."""


class DerivativeError(FunctransError, AssertionError):
    """A derivative that differs from finite differences, found by `check_derivatives`."""


class MissingPackageError(FunctransError, ImportError):
    """A package that an option or a module needs, and that is not installed."""


class DerivativeWarning(UserWarning):
    """A derivative is lost: `float(x)` of a value that is being differentiated."""


class ConvergenceWarning(RuntimeWarning):
    """A solver gave up: what it returns is no solution, or not one to the accuracy that was asked for.

    To have an error instead: `warnings.simplefilter("error", functrans.errors.ConvergenceWarning)`.
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
