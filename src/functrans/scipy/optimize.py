"""scipy.optimize with derivatives supplied: of plain functions, on pytrees of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core import tree
from functrans.core.dispatch import Tracer
from functrans.core.shapes import dtype_of
from functrans.scipy.loading import load
from functrans.transforms.derivatives import value_and_grad
from functrans.transforms.jacobians import hessian, hvp, jacfwd, jacrev
from functrans.tree import ravel_pytree

so = load("scipy.optimize")

__all__ = ["least_squares", "minimize"]

# What SciPy's methods can use beyond the value of the function.
_WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
_WITH_HESSIAN = frozenset({"dogleg", "trust-exact"})
_WITH_HESSIAN_PRODUCT = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})


def _vector(x0: Any, name: str) -> tuple[Any, Callable[[Any], Any]]:
    """The parameters as a vector of floats, and the way back to their structure."""
    for leaf in tree.leaves(x0):
        if isinstance(leaf, Tracer):
            raise errors.InputTypeError(
                f"{name}: the start x0 is traced, at {errors.user_location()}. The solution is found "
                "by a loop outside of what can be differentiated: call it with plain numbers."
            )
    floating = tree.map(
        lambda leaf: leaf if dtype_of(leaf).kind == "f" else np.asarray(leaf, np.float64),
        tree.map(np.asarray, x0),
    )
    if tree.is_array(x0) or isinstance(x0, list) and not any(np.ndim(leaf) for leaf in x0):
        floating = np.asarray(x0, np.float64)
        return floating.reshape(-1), lambda vector: vector.reshape(np.shape(floating))
    vector, unravel = ravel_pytree(floating)
    return np.asarray(vector, np.float64), unravel


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
        As in SciPy. Gradients are supplied to the methods that use them, and Hessians, or their
        products with vectors, to those that use these.
    **options
        All other arguments of SciPy's `minimize`: bounds, constraints, tol, callback, options. Bounds
        and callbacks are about the vector of all parameters. Constraints are functions of x as `fun` is,
        and are given their Jacobians.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With `x`, and `jac` where there is one, of the structure of x0.

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
        settings["hessp"] = lambda vector, direction: hvp(loss, (vector,), (direction,))
    if "constraints" in options and kind not in _WITHOUT_GRADIENT:
        options["constraints"] = _with_jacobians(options["constraints"], unravel)
    elif "constraints" in options:
        options["constraints"] = _unraveling(options["constraints"], unravel)
    result = so.minimize(x0=start, method=method, **(settings | options))
    result.x = unravel(result.x)
    if result.get("jac") is not None and np.shape(result.jac) == start.shape:
        result.jac = unravel(np.asarray(result.jac, np.float64))
    return result


def _plain(value: Any, gradient: Any) -> tuple[float, Any]:
    return float(value), np.asarray(gradient, np.float64)
