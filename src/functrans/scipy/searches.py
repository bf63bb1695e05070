"""More of scipy.optimize: fmin and similar functions, global optimizers, linear programs, and small tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.scipy.conditions import Limits, at_minimum
from functrans.scipy.loading import load
from functrans.scipy.minima import limits_of, limits_of_bounds, plain_bounds, plain_constraints
from functrans.scipy.solutions import (
    arguments,
    is_differentiated,
    jacobian_of,
    plain,
    plainly,
    with_value,
)
from functrans.surface.table import as_array

so = load("scipy.optimize")

_FUNCTIONS = frozenset(
    {
        "func",
        "f",
        "fprime",
        "fhess",
        "fhess_p",
        "f_eqcons",
        "f_ieqcons",
        "fprime_eqcons",
        "fprime_ieqcons",
    }
)


def like_scipys(name: str, run: Callable[[Any, dict[str, Any]], Any], text: str) -> Any:
    """A function with the signature of SciPy's; run(solver, arguments by name) computes it."""
    solver = getattr(so, name)
    signature = inspect.signature(solver)

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return run(solver, dict(bound.arguments))

    parameters = [each.replace(annotation=Any) for each in signature.parameters.values()]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=Any
    )
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _example(name: str, call: str, title: str) -> str:
    return f"""{title}; SciPy's `{name}`.

    The minimum has derivatives with respect to the values that the function closes over and those in
    `args`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import {name}
    >>> def minimum(c):
    ...     return {call}
    >>> round(float(grad(minimum)(1.5)), 4)
    3.0
    """


# The functions from before `minimize`: they return x, or a tuple that begins with it.


def _older(name: str, call: str, title: str) -> Any:
    def run(solver: Any, given: dict[str, Any]) -> Any:
        more = arguments(given.pop("args", ()))
        function = given.get("func", given.get("f"))
        joint = name in ("fmin_l_bfgs_b", "fmin_tnc") and not (
            given.get("fprime") or given.get("approx_grad")
        )  # the function returns (value, gradient)

        def value(x: Any) -> Any:
            out = function(x, *more)  # type: ignore[misc]
            out = out[0] if joint else out
            return np.reshape(as_array(out), ())[()] if shape_of(out) else out

        limits = _older_limits(given, more)
        for key in _FUNCTIONS & given.keys():
            given[key] = plainly(given[key], *more)
        for key in ("eqcons", "ieqcons"):
            if key in given:
                given[key] = [plainly(each, *more) for each in given[key]]
        if "cons" in given:
            extra = given.pop("consargs", None)
            extra = more if extra is None else arguments(extra)
            cons = given["cons"] if isinstance(given["cons"], Sequence) else [given["cons"]]
            given["cons"] = [plainly(each, *extra) for each in cons]
        if given.get("bounds") is not None:
            given["bounds"] = plain_bounds(given["bounds"])
        given["x0"] = plain(given["x0"])
        out = solver(**given)
        several = isinstance(out, tuple)
        found = out[0] if several else out
        vector = np.atleast_1d(np.asarray(found, np.float64))
        x = at_minimum(value, vector, limits, name)
        if not is_differentiated(x):
            return out
        x = np.reshape(x, np.shape(found))
        if not several:
            return x
        if name == "fmin_l_bfgs_b" or (given.get("full_output") and name != "fmin_tnc"):
            return (x, with_value(out[1], value(x)), *out[2:])
        return (x, *out[1:])

    return like_scipys(name, run, _example(name, call, title))


def _older_limits(given: dict[str, Any], more: tuple[Any, ...]) -> list[Limits]:
    """The limits in the arguments of fmin_l_bfgs_b, fmin_tnc, fmin_slsqp and fmin_cobyla."""
    size = np.size(plain(given["x0"]))
    limits = limits_of_bounds(given.get("bounds"), size)
    zero, endless = np.float64(0.0), np.float64(np.inf)

    def constraint(function: Any, args: Any, upper: Any) -> None:
        limits.append(Limits(lambda x: np.atleast_1d(as_array(function(x, *args))), zero, upper))

    for kind, upper in (("eqcons", zero), ("ieqcons", endless)):
        if given.get(f"f_{kind}") is not None:
            constraint(given[f"f_{kind}"], more, upper)
        else:
            for each in given.get(kind, ()):
                constraint(each, more, upper)
    if "cons" in given:
        extra = given.get("consargs")
        cons = given["cons"] if isinstance(given["cons"], Sequence) else [given["cons"]]
        for each in cons:
            constraint(each, more if extra is None else arguments(extra), endless)
    return limits


_QUADRATIC = "(lambda x: np.sum((x - c**2) ** 2), [1.0]"
fmin = _older(
    "fmin",
    f"fmin{_QUADRATIC}, disp=0)[0]",
    "Minimize a function by the simplex method of Nelder and Mead",
)
fmin_powell = _older(
    "fmin_powell",
    "np.sum(fmin_powell(lambda x: np.sum((x - c**2) ** 2), [1.0], disp=0))",
    "Minimize a function by Powell's method",
)
fmin_bfgs = _older(
    "fmin_bfgs", f"fmin_bfgs{_QUADRATIC}, disp=0)[0]", "Minimize a function by the BFGS method"
)
fmin_cg = _older(
    "fmin_cg",
    f"fmin_cg{_QUADRATIC}, disp=0)[0]",
    "Minimize a function by nonlinear conjugate gradients",
)
fmin_ncg = _older(
    "fmin_ncg",
    f"fmin_ncg{_QUADRATIC}, lambda x: 2 * (x - c**2), disp=0)[0]",
    "Minimize a function by Newton's method with conjugate gradients",
)
fmin_l_bfgs_b = _older(
    "fmin_l_bfgs_b",
    f"fmin_l_bfgs_b{_QUADRATIC}, approx_grad=True)[0][0]",
    "Minimize a function with bounds by the L-BFGS-B method",
)
fmin_tnc = _older(
    "fmin_tnc",
    f"fmin_tnc{_QUADRATIC}, approx_grad=True, disp=0)[0][0]",
    "Minimize a function with bounds by a truncated Newton method",
)
fmin_slsqp = _older(
    "fmin_slsqp",
    f"fmin_slsqp{_QUADRATIC}, disp=0)[0]",
    "Minimize a function with constraints by sequential least squares",
)
fmin_cobyla = _older(
    "fmin_cobyla",
    f"fmin_cobyla{_QUADRATIC}, [lambda x: 9.0 - x[0]], rhoend=1e-7)[0]",
    "Minimize a function with constraints by linear approximations",
)


# Optimizers that search for the least of several minima.


def _global(name: str, call: str, title: str) -> Any:
    def run(solver: Any, given: dict[str, Any]) -> Any:
        more = arguments(given.pop("args", ()))
        function, vectorized = given["func"], given.get("vectorized")

        def value(x: Any) -> Any:
            return function(x[:, None], *more)[0] if vectorized else function(x, *more)

        limits = limits_of_bounds(given.get("bounds"), _length(given))
        constraints = given.get("constraints") or ()
        limits += limits_of(constraints, lambda x: x)
        given["func"] = plainly(function, *more)
        if constraints:
            given["constraints"] = plain_constraints(constraints, lambda x: x, False)
        if given.get("bounds") is not None:
            given["bounds"] = plain_bounds(given["bounds"])
        if given.get("x0") is not None:
            given["x0"] = plain(given["x0"])
        result = solver(**given)
        if result.x is None:
            return result
        x = at_minimum(value, np.asarray(result.x, np.float64), limits, name)
        if is_differentiated(x):
            if given.get("integrality") is not None:
                raise errors.MissingRuleError(
                    f"{name} with integrality= has no rule for traced values, at {errors.user_location()}. "
                    "Search with plain values, and pass the result on."
                )
            result.x = x
            result.fun = with_value(result.fun, np.reshape(as_array(value(x)), ())[()])
        return result

    return like_scipys(name, run, _example(name, call, title))


def _length(given: dict[str, Any]) -> int:
    bounds = given.get("bounds")
    if bounds is None:
        return int(np.size(plain(given.get("x0", ()))))
    return int(np.size(bounds.lb)) if isinstance(bounds, so.Bounds) else len(bounds)


_WAVE = "(lambda x: np.sum((x - c**2) ** 2), [(0.0, 5.0)]"
differential_evolution = _global(
    "differential_evolution",
    f"differential_evolution{_WAVE}, rng=0).x[0]",
    "Minimize a function by differential evolution",
)
dual_annealing = _global(
    "dual_annealing",
    f"dual_annealing{_WAVE}, maxiter=50, rng=0).x[0]",
    "Minimize a function by dual annealing",
)
shgo = _global("shgo", f"shgo{_WAVE}).x[0]", "Minimize a function by simplicial homology")
direct = _global(
    "direct", f"direct{_WAVE}, vol_tol=1e-9).x[0]", "Minimize a function by dividing rectangles"
)
basinhopping = _global(
    "basinhopping",
    f"basinhopping{_QUADRATIC}, niter=3, rng=0).x[0]",
    "Minimize a function by random steps from minimum to minimum",
)


def _brute(solver: Any, given: dict[str, Any]) -> Any:
    more = arguments(given.pop("args", ()))
    function = given["func"]
    given["func"] = plainly(function, *more)
    given["ranges"] = plain(given["ranges"])
    out = solver(**given)
    several = isinstance(out, tuple)  # full_output
    if given.get("finish", so.fmin) is None:
        return out  # a point of the grid: a constant
    found = out[0] if several else out
    vector = np.atleast_1d(np.asarray(found, np.float64))
    x = at_minimum(lambda x: function(x, *more), vector, [], "brute")
    if not is_differentiated(x):
        return out
    x = np.reshape(x, np.shape(found))
    return (x, with_value(out[1], function(x, *more)), *out[2:]) if several else x


brute = like_scipys(
    "brute",
    _brute,
    _example(
        "brute",
        "brute(lambda x: (x[0] - c**2) ** 2, [(0.0, 5.0)])[0]",
        "Minimize a function on a grid, and then from the best point",
    ),
)


def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> tuple[Any, Any]:
    """The rows and columns of the cheapest assignment, as plain indices; SciPy's `linear_sum_assignment`.

    The indices have no derivative; the cost that they select has one.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import linear_sum_assignment
    >>> grad(lambda c: np.sum(c[linear_sum_assignment(c)]))(np.array([[1.0, 2.0], [5.0, 1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    return so.linear_sum_assignment(plain(as_array(cost_matrix)), maximize)  # type: ignore[no-any-return]


def approx_fprime(
    xk: Any, f: Callable[..., Any], epsilon: Any = 1.4901161193847656e-8, *args: Any
) -> Any:
    """The gradient or Jacobian of a function by finite differences; SciPy's `approx_fprime`.

    The value is that of the differences; its derivatives are those of the exact gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import approx_fprime
    >>> jacfwd(lambda x: approx_fprime(x, lambda x: np.sum(x**3)))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    at = as_array(xk)
    found = so.approx_fprime(plain(at), plainly(f, *args), plain(epsilon))
    if not is_differentiated(f(at, *args)):
        return found
    at = np.atleast_1d(at)
    value = jacobian_of(lambda x: as_array(f(x, *args)), at)
    return with_value(found, np.reshape(value, np.shape(found)))


def check_grad(
    func: Callable[..., Any],
    grad: Callable[..., Any],
    x0: Any,
    *args: Any,
    epsilon: float = 1.4901161193847656e-8,
    direction: str = "all",
    rng: Any = None,
) -> Any:
    """The difference between a gradient and finite differences, a plain number; SciPy's `check_grad`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import check_grad
    >>> bool(check_grad(lambda x: np.sum(x**2), lambda x: 2 * x, np.ones(2)) < 1e-6)
    True
    """
    options = {} if rng is None else {"rng": rng}
    return so.check_grad(
        plainly(func, *args),
        plainly(grad, *args),
        plain(x0),
        epsilon=epsilon,
        direction=direction,
        **options,
    )
