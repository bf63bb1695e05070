"""Minima of scipy.optimize: minimize, minimize_scalar and the functions from before them.

SciPy's methods get derivatives from here where the user gives none. The minimum that they find has
derivatives with respect to everything that the function depends on: see conditions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.shapes import shape_of
from functrans.scipy.conditions import Limits, at_minimum
from functrans.scipy.loading import load
from functrans.scipy.solutions import (
    arguments,
    is_differentiable,
    is_differentiated,
    plain,
    plainly,
    with_value,
)
from functrans.surface.table import as_array
from functrans.transforms.derivatives import value_and_grad
from functrans.transforms.jacobians import hessian, hvp, jacrev
from functrans.tree import ravel_pytree

so = load("scipy.optimize")

# What SciPy's methods can use beyond the value of the function.
_WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
_WITH_HESSIAN = frozenset({"dogleg", "trust-exact"})
_WITH_HESSIAN_PRODUCT = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
_NUMERICAL = ("2-point", "3-point", "cs")


def starting_point(x0: Any) -> tuple[Any, Callable[[Any], Any], bool]:
    """The parameters as a plain vector, a function that restores their structure, and whether it "
    "does more."""
    leaves = tree.leaves(x0)
    numbers = isinstance(x0, (list, tuple)) and all(shape_of(leaf) == () for leaf in leaves)
    if numbers or (len(leaves) == 1 and leaves[0] is x0 and len(shape_of(x0)) <= 1):
        vector = np.atleast_1d(
            np.array(plain(x0))
        )  # a number is a vector of one entry, as in SciPy
        if vector.dtype.kind != "c":
            vector = vector.astype(np.float64)
        return vector, lambda vector: vector, False
    vector, unravel = ravel_pytree(tree.map(lambda leaf: np.asarray(plain(leaf), np.float64), x0))
    return vector, unravel, True


def _scalar(value: Any) -> Any:
    """The value of a loss, which SciPy accepts as an array of one entry."""
    return np.reshape(as_array(value), ())[()] if shape_of(value) else value


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """Minimize a scalar function; SciPy's `minimize`, with the derivatives supplied.

    The minimum has derivatives with respect to the values that `fun` closes over and those in `args`, and
    with respect to bounds that are active. It does not depend on `x0`.

    Parameters
    ----------
    fun
        fun(x, *args) -> a number, written with NumPy.
    x0
        The start: an array, or a pytree of arrays.
    args
        Further arguments of `fun`, not optimized over.
    method
        As in SciPy. Gradients, Hessians and Hessian-vector products are supplied to the methods that use
        them, if `jac`, `hess` and `hessp` are not given.
    jac, hess, hessp
        As in SciPy, for arrays x0 with one axis.
    bounds, constraints, tol, callback, options
        As in SciPy. Bounds and callbacks apply to the vector of all parameters. Constraints are functions
        of x, like `fun`, and their Jacobians are supplied.

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x`, and `jac` if there is one, have the structure of x0. `x` and `fun` have derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import minimize
    >>> def loss(params):
    ...     return (params["a"] - 3.0) ** 2 + np.sum((params["b"] - params["a"]) ** 2)
    >>> result = minimize(loss, {"a": 0.0, "b": np.zeros(2)})
    >>> print(round(float(result.x["a"]), 4), result.x["b"].round(4))
    3.0 [3. 3.]
    >>> round(float(grad(lambda c: minimize(lambda x: np.cosh(x - c**2), 0.0).x[0])(1.5)), 6)
    3.0
    """
    given = arguments(args)
    start, unravel, structured = starting_point(x0)
    for option, choice in (("jac", jac), ("hess", hess), ("hessp", hessp)):
        if structured and (choice is True or callable(choice)):
            raise errors.OptionError(
                f"minimize: {option}= is supplied by functrans if x0 is a tree, at "
                f"{errors.user_location()}. Leave it out."
            )

    def value(vector: Any) -> Any:
        out = fun(unravel(vector), *given)
        return _scalar(out[0] if jac is True else out)

    kind = method.lower() if isinstance(method, str) else ""
    settings = _settings(fun, given, value, start, kind, jac, hess, hessp)
    if constraints:
        smooth = kind not in _WITHOUT_GRADIENT
        settings["constraints"] = plain_constraints(constraints, unravel, smooth)
    result = so.minimize(
        x0=start,
        method=method,
        bounds=plain_bounds(bounds),
        tol=tol,
        callback=callback,
        options=options,
        **settings,
    )
    found = result.x
    limits = limits_of_bounds(bounds, len(start)) + limits_of(constraints, unravel)
    x = found
    if start.dtype.kind != "c":
        x = at_minimum(value, np.asarray(found, np.float64), limits, "minimize")
    if is_differentiated(x):
        result.fun = with_value(result.fun, value(x))
    elif x is found or not structured:
        x = found
    result.x = unravel(x)
    if structured and result.get("jac") is not None and np.shape(result.jac) == start.shape:
        result.jac = unravel(np.asarray(result.jac, np.float64))
    return result


def _settings(
    fun: Any, args: Any, value: Any, start: Any, kind: str, jac: Any, hess: Any, hessp: Any
) -> dict[str, Any]:
    """What SciPy is given: the function on plain values, and derivatives for the methods that use them."""
    if jac is True:
        settings: dict[str, Any] = {"fun": plainly(fun, *args), "jac": True}
    elif callable(jac) or jac in _NUMERICAL:
        settings = {"fun": plainly(value), "jac": plainly(jac, *args)}
    elif kind in _WITHOUT_GRADIENT or start.dtype.kind == "c":
        settings = {"fun": plainly(value)}
    else:
        both = value_and_grad(value)
        settings = {"fun": lambda vector: _numbers(*plain(both(vector))), "jac": True}
        if not is_differentiable(both, start):
            settings = {"fun": plainly(value)}
    if hess is not None or hessp is not None:
        settings |= {"hess": plainly(hess, *args), "hessp": plainly(hessp, *args)}
    elif settings.get("jac") is not None:
        if kind in _WITH_HESSIAN:
            settings["hess"] = plainly(hessian(value))
        elif kind in _WITH_HESSIAN_PRODUCT:
            settings["hessp"] = lambda vector, direction: plain(
                hvp(value, (vector,), (np.asarray(direction, np.float64),))
            )
    return settings


def _numbers(value: Any, gradient: Any) -> tuple[float, Any]:
    return float(value), np.asarray(gradient, np.float64)


# Bounds and constraints, for SciPy without derivatives, and for the conditions at the minimum.


def plain_bounds(bounds: Any) -> Any:
    if isinstance(bounds, so.Bounds):
        return so.Bounds(plain(bounds.lb), plain(bounds.ub), bounds.keep_feasible)
    return None if bounds is None else plain(list(bounds))


def limits_of_bounds(bounds: Any, size: int) -> list[Limits]:
    if bounds is None or (isinstance(bounds, (list, tuple)) and not bounds):
        return []
    if isinstance(bounds, so.Bounds):
        low, high = bounds.lb, bounds.ub
    else:
        pairs = [tuple(pair) for pair in bounds]
        low = as_array([-np.inf if pair[0] is None else pair[0] for pair in pairs])
        high = as_array([np.inf if pair[1] is None else pair[1] for pair in pairs])
    low, high = (np.broadcast_to(as_array(side), (size,)) for side in (low, high))
    return [Limits(lambda x: x, low, high)]


def plain_constraints(given: Any, unravel: Callable[[Any], Any], smooth: bool) -> Any:
    """Constraints as functions of the vector, with their Jacobians for methods that use them."""
    if isinstance(given, (list, tuple)):
        return [plain_constraints(each, unravel, smooth) for each in given]
    value = _constraint_value(given, unravel)
    if value is None:  # linear ones apply to the vector, and need no derivative
        matrix, low, high = map(plain, (given.A, given.lb, given.ub))
        return so.LinearConstraint(matrix, low, high, given.keep_feasible)
    supplied = plainly(jacrev(value))
    if isinstance(given, dict):
        out = {"type": given["type"], "fun": plainly(value)}
        if given.get("jac") is not None:
            out["jac"] = plainly(given["jac"], *given.get("args", ()))
        elif smooth:
            out["jac"] = supplied
        return out
    jac = plainly(given.jac) if callable(given.jac) else supplied if smooth else given.jac
    hess = plainly(given.hess) if type(given.hess).__name__ == "function" else given.hess
    low, high = plain(given.lb), plain(given.ub)
    return so.NonlinearConstraint(
        plainly(value), low, high, jac=jac, hess=hess, keep_feasible=given.keep_feasible
    )


def _constraint_value(given: Any, unravel: Callable[[Any], Any]) -> Any:
    if isinstance(given, dict):
        more = arguments(given.get("args", ()))
        return lambda vector: np.atleast_1d(as_array(given["fun"](unravel(vector), *more)))
    if isinstance(given, so.NonlinearConstraint):
        return lambda vector: np.atleast_1d(as_array(given.fun(unravel(vector))))
    return None


def limits_of(given: Any, unravel: Callable[[Any], Any]) -> list[Limits]:
    if isinstance(given, (list, tuple)):
        return [limits for each in given for limits in limits_of(each, unravel)]
    value = _constraint_value(given, unravel)
    if isinstance(given, dict):
        above = 0.0 if given["type"] == "eq" else np.inf
        return [Limits(value, np.float64(0.0), np.float64(above))]
    low, high = (as_array(side).astype(float) for side in (given.lb, given.ub))
    if value is None:
        matrix = (
            given.A.toarray() if hasattr(given.A, "toarray") else np.atleast_2d(as_array(given.A))
        )
        value = lambda x: matrix @ x
    return [Limits(value, low, high)]


# Functions of one number.


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: float | None = None,
    options: Any = None,
) -> Any:
    """Minimize a function of a number; SciPy's `minimize_scalar`.

    `x` and `fun` in the result have derivatives with respect to the values that `fun` closes over and
    those in `args`, and with respect to a bound that is active.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import minimize_scalar
    >>> round(float(grad(lambda a: minimize_scalar(lambda x: x**4 / 4 - a * x).x)(8.0)), 6)  # 1/12
    0.083333
    """
    given = arguments(args)
    result = so.minimize_scalar(
        plainly(fun, *given), plain(bracket), plain(bounds), (), method, tol, options
    )
    value: Any = lambda x: fun(x, *given)
    bounds = bounds if str(method or "bounded").lower() == "bounded" else None
    x = _least(value, result.x, "minimize_scalar", bounds)
    if is_differentiated(x):
        result.fun = with_value(result.fun, _scalar(value(x)))
        result.x = x
    return result


def _least(value: Callable[[Any], Any], found: Any, name: str, bounds: Any = None) -> Any:
    """The plain number that minimizes a function, with its derivatives."""
    limits = []
    if bounds is not None:
        limits = [Limits(lambda x: x, *(np.reshape(as_array(side), (1,)) for side in bounds))]
    vector = np.reshape(np.asarray(found, np.float64), (1,))
    x = at_minimum(lambda x: _scalar(value(x[0])), vector, limits, name)
    return np.reshape(x, np.shape(found))[()] if x is not vector else found


def _line_search(name: str, title: str, solve: Any) -> Any:
    def function(
        func: Callable[..., Any],
        args: Any = (),
        brack: Any = None,
        tol: float = solve.__defaults__[2],
        full_output: Any = 0,
        maxiter: int = solve.__defaults__[4],
    ) -> Any:
        given = arguments(args)
        out = solve(plainly(func, *given), (), plain(brack), tol, full_output, maxiter)
        value: Any = lambda x: func(x, *given)
        if not full_output:
            return _least(value, out, name)
        x = _least(value, out[0], name)
        least = with_value(out[1], _scalar(value(x))) if is_differentiated(x) else out[1]
        return (x, least, *out[2:])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The number that minimizes a function, {title}; SciPy's `{name}`.

    It has derivatives with respect to the values that `func` closes over and those in `args`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import {name}
    >>> round(float(grad(lambda a: {name}(lambda x: (x - a**2) ** 2))(1.5)), 6)
    3.0
    """
    return function


brent = _line_search("brent", "by Brent's method", so.brent)
golden = _line_search("golden", "by golden section search", so.golden)


def fminbound(
    func: Callable[..., Any],
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: float = 1e-5,
    maxfun: int = 500,
    full_output: Any = 0,
    disp: Any = 1,
) -> Any:
    """The number between x1 and x2 that minimizes a function; SciPy's `fminbound`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import fminbound
    >>> round(float(grad(lambda a: fminbound(lambda x: (x - a**2) ** 2, 0.0, 5.0))(1.5)), 6)
    3.0
    """
    given = arguments(args)
    out = so.fminbound(
        plainly(func, *given), plain(x1), plain(x2), (), xtol, maxfun, full_output, disp
    )
    value: Any = lambda x: func(x, *given)
    x = _least(value, out[0] if full_output else out, "fminbound", (x1, x2))
    if not full_output:
        return x
    least = with_value(out[1], _scalar(value(x))) if is_differentiated(x) else out[1]
    return (x, least, *out[2:])
