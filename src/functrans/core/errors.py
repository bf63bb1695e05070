"""Every error that a user can meet. places.py finds the line of the user's code.

Each class is a `FunctransError` and also the built-in exception that NumPy users would expect, so
`except TypeError` keeps working. A message says what happened, where, and what to do instead.
"""

from __future__ import annotations

import numpy as np

from functrans.core.places import RULE_FILE as RULE_FILE
from functrans.core.places import called_library as called_library
from functrans.core.places import calling_frame as calling_frame
from functrans.core.places import describe as describe
from functrans.core.places import describe_users as describe_users
from functrans.core.places import is_ours as is_ours
from functrans.core.places import is_outside as is_outside
from functrans.core.places import location_of as location_of
from functrans.core.places import name_of as name_of
from functrans.core.places import user_depth as user_depth
from functrans.core.places import user_frame as user_frame
from functrans.core.places import user_location as user_location
from functrans.core.places import user_place as user_place


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
    """`grad` of a function whose output is not a scalar.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: 2 * x)(np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.errors.OutputShapeError: grad needs a function that returns one real ...
    """


class OutputTypeError(FunctransError, TypeError):
    """`grad` of a function whose output is complex, an integer, or not a number.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: (x, x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.OutputTypeError: grad needs a function that returns one real ...
    """


class InputTypeError(FunctransError, TypeError):
    """An argument that a transform cannot work on, such as `grad` of an integer argument.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: x**2)(3)
    Traceback (most recent call last):
        ...
    functrans.errors.InputTypeError: grad differentiates with respect to floating point numbers, ...
    """


class ArgnumsError(FunctransError, ValueError):
    """`argnums` that name an argument which was not passed.

    Examples
    --------
    >>> from functrans import grad
    >>> grad(lambda x: x**2, argnums=1)(3.0)
    Traceback (most recent call last):
        ...
    functrans.errors.ArgnumsError: argnums=1 names argument 1, but `<lambda>` (...) ...
    """


class OptionError(FunctransError, ValueError):
    """An option with an invalid value.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacobian
    >>> jacobian(np.sin, mode="forward")
    Traceback (most recent call last):
        ...
    functrans.errors.OptionError: mode must be "auto", "fwd" or "rev", not 'forward', ...
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
    functrans.errors.MappedAxisError: vmap needs mapped axes of one size, but argument ...
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
    functrans.errors.TangentError: the tangent of argument 0 has shape (), but the ...
    """


class ArrayConversionError(FunctransError, TypeError):
    """A traced value that would become a plain one: `np.array([x])`, `math.sin(x)`, SciPy functions.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, use_hooks
    >>> with use_hooks(False):
    ...     grad(lambda x: np.sum(np.array([x, x])))(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.ArrayConversionError: numpy.array would make a plain array of traced ...
    """


class TypeTestError(FunctransError, TypeError):
    """`type(x) == np.ndarray` of a traced value, without hooks; only `isinstance` works.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, use_hooks
    >>> with use_hooks(False):
    ...     grad(lambda x: np.sum(x) if type(x) == np.ndarray else x)(np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.errors.TypeTestError: type(x) == ndarray cannot be answered ...
    """


class MemoryAccessError(ArrayConversionError, AttributeError):
    """A method or an attribute that needs the bytes of an array in memory.

    It is an AttributeError, so that `hasattr`, and `getattr` with a default, work.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.sum(x) * x.strides[0])(np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.errors.MemoryAccessError: a traced array has no memory for x.strides to ...
    """


class AssignmentError(FunctransError, TypeError, ValueError):
    """Assignment of a traced value into a plain array, or any assignment into a read-only argument.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, use_hooks
    >>> def f(x):
    ...     out = np.zeros(2)
    ...     out[0] = x
    ...     return np.sum(out)
    >>> with use_hooks(False):
    ...     grad(f)(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.AssignmentError: a traced value cannot be assigned into a plain ...
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
    functrans.errors.EscapedTracerError: a traced value is used after the transform that ...
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
    functrans.errors.MissingRuleError: numpy.abs (vectorized) has no rule for traced ...
    """


class StagingError(FunctransError, TypeError):
    """Code that needs a concrete value while a function is being staged to a graph.

    Examples
    --------
    >>> from functrans import make_graph
    >>> make_graph(lambda x: x if x > 0 else -x)(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.StagingError: the branch `if x > 0` depends on the value of ...
    """


class AxisNameError(FunctransError, NameError):
    """A collective over an axis name that no running `vmap` has, or that two have.

    Examples
    --------
    >>> from functrans import psum
    >>> psum(1.0, "lanes")
    Traceback (most recent call last):
        ...
    functrans.errors.AxisNameError: no running vmap has an axis named 'lanes', ...
    """


class LaneError(FunctransError, ValueError):
    """Lanes of a `vmap` that took different Python branches and whose results cannot be combined.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vmap
    >>> vmap(lambda x: np.ones(2) if x > 0 else np.ones(3))(np.array([1.0, -1.0]))
    Traceback (most recent call last):
        ...
    functrans.errors.LaneError: lanes of `<lambda>` (...) took different branches ...
    """


class GraphError(FunctransError, ValueError):
    """An invalid graph, or one called with arguments it was not traced for.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import make_graph
    >>> make_graph(np.sin)(np.ones(3))(np.ones(4))
    Traceback (most recent call last):
        ...
    functrans.errors.GraphError: input 0 of the graph was traced as float64[3], ...
    """


class LinearityError(FunctransError, ValueError):
    """A function that is not linear, given to `linear_transpose` or to a linear solver.

    Examples
    --------
    >>> from functrans import linear_transpose
    >>> linear_transpose(lambda x: x + 1.0, 1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.LinearityError: linear_transpose needs a linear function, but ...
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
    functrans.errors.SingularError: custom_root: the Jacobian of `<lambda>` (...) is singular ...
    """


class CarryError(FunctransError, TypeError):
    """A loop whose body changes the structure, shapes or dtypes of its carry.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import scan
    >>> scan(lambda total, x: total + x, 0.0, np.ones(3))
    Traceback (most recent call last):
        ...
    functrans.errors.CarryError: scan: `<lambda>` (...) must return a pair (carry, ...
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
    functrans.errors.BranchError: cond: the branches return different values, ...
    """


class RuleError(FunctransError, TypeError):
    """A user's rule, callback, equation or solver that returns values of the wrong form.

    Examples
    --------
    >>> from functrans import custom_jvp, grad
    >>> grad(custom_jvp(lambda x: x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.RuleError: `<lambda>` (...) is a custom_jvp without a rule, ...
    """


class ClosureError(FunctransError, TypeError):
    """A function with a custom rule that depends on traced values other than its arguments.

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
    functrans.errors.ClosureError: `<lambda>` (...) is a custom_jvp, and it or its ...
    """


class AnomalyError(FunctransError, FloatingPointError):
    """A nan or inf, found by `detect_anomaly`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import detect_anomaly, vmap
    >>> with detect_anomaly():
    ...     vmap(np.log)(np.array([1.0, -1.0]))
    Traceback (most recent call last):
        ...
    functrans.errors.AnomalyError: log made a nan, forward, ...
    """


class DerivativeError(FunctransError, AssertionError):
    """A derivative that differs from finite differences, found by `check_derivatives`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import check_derivatives
    >>> check_derivatives(lambda x: np.clip(x, 0.0, 1.0), (0.0,))
    Traceback (most recent call last):
        ...
    functrans.errors.DerivativeError: check_derivatives: the derivative of `<lambda>` ...
    """


class MissingPackageError(FunctransError, ImportError):
    """A package that an option or a module needs is not installed.

    Examples
    --------
    >>> import sys
    >>> import functrans
    >>> sys.modules["tqdm.auto"] = None  # as if it were absent
    >>> functrans.check_derivatives(abs, (1.0,), progress=True)
    Traceback (most recent call last):
        ...
    functrans.errors.MissingPackageError: progress=True needs tqdm, which is not ...
    >>> del sys.modules["tqdm.auto"]
    """


class DerivativeWarning(UserWarning):
    """The user's code cuts a derivative off with `float(x)`, `int(x)`, `x.item()` or `x.tolist()`.

    Also raised by `grad` of a function whose output does not depend on the arguments at all.

    Examples
    --------
    >>> import warnings
    >>> from functrans import grad, use_hooks
    >>> with warnings.catch_warnings(), use_hooks(False):
    ...     warnings.simplefilter("error")
    ...     grad(lambda x: x * float(x))(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.DerivativeWarning: float() of a value that is being differentiated ...
    """


class RandomnessWarning(UserWarning):
    """A function draws random numbers while it is traced, so compiled code reuses them in every call.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from functrans import jit
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     jit(lambda x: x + np.random.normal())(1.0)
    Traceback (most recent call last):
        ...
    functrans.errors.RandomnessWarning: jit: `<lambda>` (...) draws random numbers from NumPy's ...
    """


class ConvergenceWarning(RuntimeWarning):
    """A solver did not converge: its result is not a solution to the requested accuracy.

    To raise an error instead: `warnings.simplefilter("error", functrans.errors.ConvergenceWarning)`.

    Examples
    --------
    >>> import warnings
    >>> from functrans import fixed_point
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     fixed_point(lambda x: 0.99 * x + 1.0, 0.0, maxiter=10)
    Traceback (most recent call last):
        ...
    functrans.errors.ConvergenceWarning: the fixed-point iteration of `<lambda>` (...) did ...
    """
