"""scipy.optimize with automatic derivatives, for plain functions of pytrees of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.scipy.loading import load
from functrans.transforms.derivatives import value_and_grad
from functrans.transforms.jacobians import hessian, hvp, jacfwd, jacrev
from functrans.tree import ravel_pytree

so = load("scipy.optimize")

__all__ = ["least_squares", "minimize"]


def __dir__() -> list[str]:
    return __all__


# What SciPy's methods can use beyond the value of the function.
_WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
_WITH_HESSIAN = frozenset({"dogleg", "trust-exact"})
_WITH_HESSIAN_PRODUCT = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})


def _vector(x0: Any, name: str) -> tuple[Any, Callable[[Any], Any]]:
    """The parameters as a vector of floats, and a function that restores their structure."""
    leaves = tree.leaves(x0)
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            raise errors.InputTypeError(
                f"{name}: the initial guess x0 is traced, at {errors.user_location()}, but the search for "
                "the solution is not differentiated. Call it with plain numbers, outside of the transform."
            )
    if isinstance(x0, (list, tuple)) and all(np.ndim(leaf) == 0 for leaf in leaves):
        x0 = np.array(leaves, np.float64)  # a list of numbers is an array, as in SciPy
    vector, unravel = ravel_pytree(tree.map(lambda leaf: np.asarray(leaf, np.float64), x0))
    return vector, unravel


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    **options: Any,
) -> Any:
    """Minimize a scalar function; SciPy's `minimize`, with the derivatives supplied.

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
        them.
    **options
        All other arguments of SciPy's `minimize`: bounds, constraints, tol, callback, options. Bounds
        and callbacks apply to the vector of all parameters. Constraints are functions of x, like `fun`,
        and their Jacobians are supplied.

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x`, and `jac` if there is one, have the structure of x0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import minimize
    >>> def loss(params):
    ...     return (params["a"] - 3.0) ** 2 + np.sum((params["b"] - params["a"]) ** 2)
    >>> result = minimize(loss, {"a": 0.0, "b": np.zeros(2)})
    >>> print(round(float(result.x["a"]), 4), result.x["b"].round(4))
    3.0 [3. 3.]
    """
    start, unravel = _vector(x0, "minimize")
    _refuse_derivatives("minimize", options)

    def loss(vector: Any) -> Any:
        return fun(unravel(vector), *args)

    kind = method.lower() if isinstance(method, str) else ""
    if kind in _WITHOUT_GRADIENT:
        settings: dict[str, Any] = {"fun": loss}
    else:
        value_and_gradient = value_and_grad(loss)
        settings = {"fun": lambda vector: _plain(*value_and_gradient(vector)), "jac": True}
    if kind in _WITH_HESSIAN:
        settings["hess"] = hessian(loss)
    elif kind in _WITH_HESSIAN_PRODUCT:
        settings["hessp"] = lambda vector, direction: hvp(
            loss, (vector,), (np.asarray(direction, np.float64),)
        )
    if "constraints" in options:
        options["constraints"] = _constraints(
            options["constraints"], unravel, kind not in _WITHOUT_GRADIENT
        )
    result = so.minimize(x0=start, method=method, **(settings | options))
    result.x = unravel(result.x)
    if result.get("jac") is not None and np.shape(result.jac) == start.shape:
        result.jac = unravel(np.asarray(result.jac, np.float64))
    return result


def _plain(value: Any, gradient: Any) -> tuple[float, Any]:
    return float(value), np.asarray(gradient, np.float64)


def _refuse_derivatives(name: str, options: dict[str, Any]) -> None:
    for option in ("jac", "hess", "hessp"):
        if option in options:
            raise errors.OptionError(
                f"{name}: {option}= is supplied by functrans, at {errors.user_location()}. Leave it out."
            )


def _constraints(given: Any, unravel: Callable[[Any], Any], smooth: bool) -> Any:
    """Constraints as functions of the vector, with their Jacobians for methods that use them."""
    if isinstance(given, (list, tuple)):
        return [_constraints(each, unravel, smooth) for each in given]
    if isinstance(given, dict):
        function = given["fun"]
    elif isinstance(given, so.NonlinearConstraint):
        function = given.fun
    else:
        return given  # linear ones apply to the vector, and need no derivative

    def value(vector: Any, *args: Any) -> Any:
        return function(unravel(vector), *args)

    if isinstance(given, dict):
        supplied = {"jac": jacrev(value)} if smooth else {}
        return {**given, "fun": value, **supplied}
    return so.NonlinearConstraint(
        value,
        given.lb,
        given.ub,
        jac=jacrev(value) if smooth else given.jac,
        hess=given.hess,
        keep_feasible=given.keep_feasible,
    )


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Minimize half the sum of squared residuals; SciPy's `least_squares`, with the Jacobian supplied.

    Parameters
    ----------
    fun
        fun(x, *args, **kwargs) -> an array of residuals, written with NumPy.
    x0
        The start: an array, or a pytree of arrays.
    args, kwargs
        Further arguments of `fun`.
    **options
        All other arguments of SciPy's `least_squares`: bounds, method, loss, ftol, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x` has the structure of x0. `jac` is the Jacobian matrix, residuals by parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import least_squares
    >>> time = np.arange(4.0)
    >>> def residuals(params):
    ...     rate, height = params
    ...     return height * np.exp(-rate * time) - 2.0 * np.exp(-0.5 * time)
    >>> least_squares(residuals, np.ones(2)).x.round(4)
    array([0.5, 2. ])
    """
    start, unravel = _vector(x0, "least_squares")
    _refuse_derivatives("least_squares", options)

    def residuals(vector: Any) -> Any:
        return np.reshape(fun(unravel(vector), *args, **(kwargs or {})), (-1,))

    tall = np.size(residuals(start)) >= start.size
    result = so.least_squares(
        residuals, start, jac=(jacfwd if tall else jacrev)(residuals), **options
    )
    result.x = unravel(result.x)
    return result
