"""Least squares of scipy.optimize: least_squares, leastsq, curve_fit, lsq_linear and nnls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.scipy.conditions import Limits, at_minimum
from functrans.scipy.linalg import solve_triangular
from functrans.scipy.loading import load
from functrans.scipy.minima import starting_point
from functrans.scipy.solutions import (
    arguments,
    holds_traced,
    is_differentiable,
    is_differentiated,
    jacobian_of,
    plain,
    plainly,
    with_value,
)
from functrans.surface.table import as_array
from functrans.transforms.forward_mode import jvp
from functrans.transforms.jacobians import jacfwd, jacrev

so = load("scipy.optimize")

_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


class _Cost:
    """½ Σ C² ρ(r² / C²) of residuals r, for a loss ρ and its scale C."""

    def __init__(self, residuals: Callable[[Any], Any], loss: Any, scale: Any) -> None:
        self.residuals = residuals
        self.scale = 1.0 if loss == "linear" else scale
        self.is_linear = loss == "linear"
        self.rho = _LOSSES[loss] if isinstance(loss, str) else lambda z: loss(z)[0]

    def __call__(self, x: Any) -> Any:
        return self.of(self.residuals(x))

    def of(self, r: Any) -> Any:
        if self.is_linear:
            return 0.5 * np.sum(r * r)
        return 0.5 * np.sum(self.scale**2 * self.rho((r / self.scale) ** 2))

    def jacobian(self, x: Any) -> Any:
        """The Jacobian of the residuals, scaled so that J^T J approximates the Hessian of the cost."""
        matrix = jacobian_of(self.residuals, x)
        if self.is_linear:
            return matrix
        z = (self.residuals(x) / self.scale) ** 2
        ones = np.ones(shape_of(z))
        slope = lambda z: jvp(self.rho, (z,), (ones,))[1]
        first, second = jvp(slope, (z,), (ones,))
        weights = np.maximum(first + 2 * second * z, np.finfo(float).eps)
        return matrix * np.sqrt(weights)[:, None]

    def gradient(self, x: Any) -> Any:
        return jacrev(self)(x)


def _bounds(bounds: Any, size: int) -> list[Limits]:
    """The bounds (lower, upper) of least squares, as limits on x; none if there are none."""
    low, high = (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else bounds
    low, high = (np.broadcast_to(as_array(side), (size,)) for side in (low, high))
    if not holds_traced(low, high) and not (np.isfinite(low).any() or np.isfinite(high).any()):
        return []
    return [Limits(lambda x: x, low, high)]


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    callback: Any = None,
    workers: Any = None,
) -> Any:
    """Minimize half the sum of squared residuals; SciPy's `least_squares`, with the Jacobian supplied.

    The minimum has derivatives with respect to the values that `fun` closes over, those in `args` and
    `kwargs`, and bounds that are active. It does not depend on `x0`.

    Parameters
    ----------
    fun
        fun(x, *args, **kwargs) -> an array of residuals, written with NumPy.
    x0
        The start: an array, or a pytree of arrays.
    jac
        A function that returns the Jacobian. By default, and for the names of SciPy's difference schemes,
        it is supplied.
    args, kwargs
        Further arguments of `fun`.

    The other arguments are those of SciPy.

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x` has the structure of x0. `jac` is the Jacobian matrix, residuals by parameters. `x`, `cost`,
        `fun`, `jac` and `grad` have derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import least_squares
    >>> time = np.arange(4.0)
    >>> def fit(scale):
    ...     data = scale * np.exp(-0.5 * time)
    ...     return least_squares(lambda p: p[1] * np.exp(-p[0] * time) - data, np.ones(2)).x
    >>> fit(2.0).round(4), jacfwd(fit)(2.0).round(4) + 0.0
    (array([0.5, 2. ]), array([0., 1.]))
    """
    start, unravel, _ = starting_point(x0)
    given, named = arguments(args), kwargs or {}

    def residuals(vector: Any) -> Any:
        return np.reshape(as_array(fun(unravel(vector), *given, **named)), (-1,))

    options: dict[str, Any] = {
        "bounds": bounds if isinstance(bounds, so.Bounds) else plain(tuple(bounds)),
        "method": method,
        "ftol": ftol,
        "xtol": xtol,
        "gtol": gtol,
        "loss": plainly(loss),
        "f_scale": plain(f_scale),
        "diff_step": diff_step,
        "tr_solver": tr_solver,
        "jac_sparsity": jac_sparsity,
        "max_nfev": max_nfev,
        "verbose": verbose,
        # Options that not all versions of SciPy have, or whose defaults differ.
        **({} if x_scale is None else {"x_scale": plain(x_scale)}),
        **({} if tr_options is None else {"tr_options": tr_options}),
        **({} if callback is None else {"callback": callback}),
        **({} if workers is None else {"workers": workers}),
    }
    options["jac"] = (
        plainly(lambda vector: jac(vector, *given, **named))
        if callable(jac)
        else _supplied(residuals, start, jac, jac_sparsity)
    )
    result = so.least_squares(plainly(residuals), start, **options)
    cost = _Cost(residuals, loss, f_scale)
    x = at_minimum(cost, result.x, _bounds(bounds, len(start)), "least_squares")
    if is_differentiated(x):
        at_x = residuals(x)
        result.fun = with_value(result.fun, at_x)
        result.cost = with_value(result.cost, cost.of(at_x))
        if isinstance(result.jac, np.ndarray):
            result.jac = with_value(result.jac, cost.jacobian(x))
        result.grad = with_value(result.grad, cost.gradient(x))
    result.x = unravel(x)
    return result


def _supplied(residuals: Any, start: Any, jac: Any, sparsity: Any) -> Any:
    """The Jacobian for SciPy, by the mode that is cheaper."""
    if sparsity is not None:
        return jac
    size = np.size(plain(residuals(start)))
    function = (jacfwd if size >= start.size else jacrev)(residuals)
    if not is_differentiable(function, start):
        return jac
    return plainly(function)


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: Any = False,
    col_deriv: Any = False,
    ftol: float = 1.49012e-8,
    xtol: float = 1.49012e-8,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Minimize the sum of squared residuals; SciPy's `leastsq`.

    It has derivatives with respect to the values that `func` closes over and those in `args`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import leastsq
    >>> round(
    ...     float(grad(lambda a: leastsq(lambda x: x**2 - np.stack([a, 9.0]), 1.0)[0][0])(7.0)), 4
    ... )
    0.0884
    """
    given = arguments(args)
    out = so.leastsq(
        plainly(func, *given),
        plain(x0),
        (),
        plainly(Dfun, *given),
        full_output,
        col_deriv,
        ftol,
        xtol,
        gtol,
        maxfev,
        epsfcn,
        factor,
        diag,
    )
    cost = _Cost(lambda x: np.reshape(as_array(func(x, *given)), (-1,)), "linear", 1.0)
    x = at_minimum(cost, out[0], [], "leastsq")
    if not full_output or not is_differentiated(x):
        return (x, *out[1:])
    covariance = out[1]
    if covariance is not None:
        covariance = with_value(covariance, _inverse_square(cost.jacobian(x)))
    out[2]["fvec"] = with_value(out[2]["fvec"], cost.residuals(x))
    return (x, covariance, *out[2:])


def _inverse_square(matrix: Any) -> Any:
    return np.linalg.inv(matrix.T @ matrix)


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """The parameters for which a function fits data best, and their covariance; SciPy's `curve_fit`.

    Both have derivatives with respect to the data, `sigma`, and the values that `f` closes over.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacrev
    >>> from functrans.scipy.optimize import curve_fit
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> def slope(y):
    ...     return curve_fit(lambda x, a, b: a * x + b, x, y)[0][0]
    >>> jacrev(slope)(np.array([0.0, 1.0, 4.0])).round(6) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    x, y, sigma = _without_nan(nan_policy, xdata, ydata, sigma)
    if holds_traced(x, y, sigma):
        nan_policy = None if nan_policy == "omit" else nan_policy
    fixed = as_array(x) if holds_traced(x) else None

    def on_data(function: Any) -> Any:
        def call(x: Any, *parameters: Any) -> Any:
            return plain(function(x if fixed is None else fixed, *parameters))

        return functools.wraps(function)(call)

    out = so.curve_fit(
        on_data(f),
        plain(x),
        plain(y),
        plain(p0),
        plain(sigma),
        absolute_sigma,
        check_finite,
        bounds if isinstance(bounds, so.Bounds) else plain(tuple(bounds)),
        method,
        on_data(jac) if callable(jac) else jac,
        full_output=full_output,
        nan_policy=nan_policy,
        **kwargs,
    )
    found, covariance = out[:2]
    inputs = fixed
    if inputs is None:
        inputs = np.asarray(x, float) if isinstance(x, (list, tuple, np.ndarray)) else x
    cost = _Cost(
        _fit_residuals(f, inputs, as_array(y), sigma, len(found)),
        kwargs.get("loss", "linear"),
        kwargs.get("f_scale", 1.0),
    )
    limits = _bounds(bounds, len(found))
    best = at_minimum(cost, found, limits, "curve_fit")
    if not is_differentiated(best):
        return out
    residuals = cost.residuals(best)
    if np.all(np.isfinite(covariance)):
        traced = _inverse_square(cost.jacobian(best))
        if not absolute_sigma:
            traced = traced * 2 * cost.of(residuals) / (shape_of(residuals)[0] - len(found))
        covariance = with_value(covariance, traced)
    if full_output:
        out[2]["fvec"] = with_value(out[2]["fvec"], residuals)
    return (best, covariance, *out[2:])


def _without_nan(policy: str | None, x: Any, y: Any, sigma: Any) -> tuple[Any, Any, Any]:
    """The data without the points that have nan, if that is asked for and SciPy cannot do it."""
    if policy != "omit" or not holds_traced(x, y, sigma):
        return x, y, sigma
    x, y = as_array(x), as_array(y)
    missing = np.isnan(np.asarray(plain(x), float))
    missing = missing.any(axis=tuple(range(missing.ndim - 1))) | np.isnan(
        np.asarray(plain(y), float)
    )
    keep = np.flatnonzero(~missing)
    if sigma is not None:
        sigma = as_array(sigma)
        sigma = sigma[keep] if len(shape_of(sigma)) == 1 else sigma[keep][:, keep]
    return x[..., keep], y[keep], sigma


def _fit_residuals(f: Any, x: Any, y: Any, sigma: Any, count: int) -> Callable[[Any], Any]:
    deviation = None if sigma is None else as_array(sigma)
    factor: Any = None
    if deviation is not None and len(shape_of(deviation)) == 2:
        factor = np.linalg.cholesky(deviation)

    def residuals(parameters: Any) -> Any:
        difference = as_array(f(x, *(parameters[k] for k in range(count)))) - y
        if factor is not None:
            return solve_triangular(factor, difference, lower=True)
        return difference if deviation is None else difference / deviation

    return residuals


def lsq_linear(
    A: Any,
    b: Any,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    tol: float = 1e-10,
    lsq_solver: Any = None,
    lsmr_tol: Any = None,
    max_iter: int | None = None,
    verbose: int = 0,
    *,
    lsmr_maxiter: int | None = None,
) -> Any:
    """Linear least squares with bounds; SciPy's `lsq_linear`.

    `x`, `fun` and `cost` have derivatives with respect to `A`, `b` and the bounds that are active.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import lsq_linear
    >>> matrix = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> jacfwd(lambda b: lsq_linear(matrix, b, (0.0, 2.0)).x)(np.array([3.0, 0.5])).round(6) + 0.0
    array([[0. , 0. ],
           [0.5, 0.5]])
    """
    matrix, right = (A if hasattr(A, "tocsr") else as_array(A)), as_array(b)
    result = so.lsq_linear(
        plain(matrix),
        plain(right),
        bounds if isinstance(bounds, so.Bounds) else plain(tuple(bounds)),
        method,
        tol,
        lsq_solver,
        lsmr_tol,
        max_iter,
        verbose,
        lsmr_maxiter=lsmr_maxiter,
    )
    if not is_differentiated(matrix, right, *(() if isinstance(bounds, so.Bounds) else bounds)):
        return result
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    cost = _Cost(lambda x: matrix @ x - right, "linear", 1.0)
    limits = _bounds(bounds, len(result.x))
    x = at_minimum(cost, result.x, limits, "lsq_linear")
    result.x = x
    result.fun = with_value(result.fun, cost.residuals(x))
    result.cost = with_value(result.cost, cost(x))
    if not limits and result.get("unbounded_sol") is not None:
        result.unbounded_sol = (x, *result.unbounded_sol[1:])
    return result


def nnls(A: Any, b: Any, *, maxiter: int | None = None, atol: Any = None) -> tuple[Any, Any]:
    """The x >= 0 that minimizes ‖A x - b‖, and that norm; SciPy's `nnls`.

    Both have derivatives with respect to `A` and `b`; entries that are held at 0 have none.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import nnls
    >>> matrix = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> jacfwd(lambda b: nnls(matrix, b)[0])(np.array([3.0, -0.5])).round(6) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    matrix, right = as_array(A), as_array(b)
    options = {} if atol is None else {"atol": atol}
    found, norm = so.nnls(plain(matrix), plain(right), maxiter=maxiter, **options)
    if not is_differentiated(matrix, right):
        return found, norm
    cost = _Cost(lambda x: matrix @ x - right, "linear", 1.0)
    limits = [Limits(lambda x: x, np.zeros(len(found)), np.full(len(found), np.inf))]
    x = at_minimum(cost, found, limits, "nnls")
    return x, with_value(norm, np.sqrt(np.sum(cost.residuals(x) ** 2)))
