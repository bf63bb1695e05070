"""Roots of scipy.optimize: brentq and similar functions, newton, root, fsolve and fixed_point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import (
    ImplicitEquation,
    arguments,
    is_differentiated,
    plain,
    plainly,
)
from functrans.surface.table import as_array

so = load("scipy.optimize")

_RTOL = float(4 * np.finfo(float).eps)
_SLOPE = "the derivative of the function"
_JACOBIAN = "the Jacobian of the function"


def _differentiated(
    function: Callable[[Any], Any],
    found: Any,
    name: str,
    elementwise: bool = True,
    what: str = _SLOPE,
) -> Any:
    """A root, with derivatives if the function depends on values that are differentiated."""
    if not np.all(np.isfinite(found)) or not is_differentiated(function(found)):
        return found
    return ImplicitEquation(function, name, what, elementwise).solution(found)


def _bracketing(name: str, title: str) -> Any:
    solver = getattr(so, name)

    def function(
        f: Callable[..., Any],
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float = 2e-12,
        rtol: float = _RTOL,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
    ) -> Any:
        given = arguments(args)
        return _scalar_root(
            name,
            f,
            given,
            lambda call: solver(
                call, plain(a), plain(b), (), xtol, rtol, maxiter, full_output, disp
            ),
        )

    return _described(function, name, title)


def _described(function: Any, name: str, title: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""A root of a function in the interval from a to b, {title}; SciPy's `{name}`.

    It has derivatives with respect to the values that `f` closes over and those in `args`. The root does
    not depend on the interval.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import {name}
    >>> def cube_root(a):
    ...     return {name}(lambda x: x**3 - a, 0.0, 10.0)
    >>> round(float(grad(cube_root)(8.0)), 9)  # 1/12
    0.083333333
    """
    return function


def _scalar_root(
    name: str, f: Callable[..., Any], args: tuple[Any, ...], solve: Callable[[Any], Any]
) -> Any:
    """The result of a solver for numbers, which may come with a report."""
    out = solve(plainly(f, *args))
    root, report = out if isinstance(out, tuple) else (out, None)
    traced = _differentiated(lambda x: f(x, *args), root, name)
    if report is None:
        return traced
    report.root = traced
    return traced, report


brentq = _bracketing("brentq", "by Brent's method with inverse quadratic interpolation")
brenth = _bracketing("brenth", "by Brent's method with hyperbolic extrapolation")
bisect = _bracketing("bisect", "by bisection")
ridder = _bracketing("ridder", "by Ridders' method")


def toms748(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    k: int = 1,
    xtol: float = 2e-12,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    given = arguments(args)
    return _scalar_root(
        "toms748",
        f,
        given,
        lambda call: so.toms748(
            call, plain(a), plain(b), (), k, xtol, rtol, maxiter, full_output, disp
        ),
    )


_described(toms748, "toms748", "by Algorithm 748 of Alefeld, Potra and Shi")


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root near x0, or one for each entry of x0, by Newton's, Halley's or the secant method.

    SciPy's `newton`, with derivatives with respect to the values that `func` closes over and those in
    `args`. The root does not depend on `x0`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import newton
    >>> grad(lambda a: np.sum(newton(lambda x: x**2 - a, np.ones(2))))(np.array([4.0, 9.0])).round(
    ...     6
    ... )
    array([0.25    , 0.166667])
    """
    args = tuple(args)  # which SciPy unpacks, too
    out = so.newton(
        plainly(func, *args),
        plain(x0),
        plainly(fprime, *args),
        (),
        tol,
        maxiter,
        plainly(fprime2, *args),
        plain(x1),
        rtol,
        full_output,
        disp,
    )
    several = isinstance(out, tuple)
    root = out[0] if several else out
    traced = _differentiated(lambda x: func(x, *args), root, "newton")
    if not several:
        return traced
    if hasattr(out[1], "root"):
        out[1].root = traced
        return traced, out[1]
    return out._replace(root=traced) if hasattr(out, "_replace") else (traced, *out[1:])


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: Any = None,
) -> Any:
    """A root of a function of a number; SciPy's `root_scalar`.

    The `root` in the result has derivatives with respect to the values that `f` closes over and those in
    `args`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import root_scalar
    >>> float(grad(lambda a: root_scalar(lambda x: x**2 - a, bracket=(0, 9)).root)(4.0))
    0.25
    """
    args = arguments(args)
    out = so.root_scalar(
        plainly(f, *args),
        (),
        method,
        plain(bracket),
        plainly(fprime, *args),
        plainly(fprime2, *args),
        plain(x0),
        plain(x1),
        xtol,
        rtol,
        maxiter,
        options,
    )

    def value(x: Any) -> Any:  # fprime=True: f returns its derivatives as well
        found = f(x, *args)
        return found[0] if isinstance(found, tuple) else found

    if out.converged:
        out.root = _differentiated(value, out.root, "root_scalar")
    return out


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """A root of a function of several numbers; SciPy's `root`.

    `x` and `fun` in the result have derivatives with respect to the values that the function closes over
    and those in `args`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import root
    >>> def crossing(r):
    ...     return root(lambda x: np.stack([x @ x - r, x[0] - x[1]]), np.ones(2)).x
    >>> jacfwd(crossing)(8.0).round(6)
    array([0.125, 0.125])
    """
    args = arguments(args)
    out = so.root(
        plainly(fun, *args), plain(x0), (), method, plainly(jac, *args), tol, callback, options
    )
    value: Any = (lambda x: fun(x, *args)[0]) if jac is True else (lambda x: fun(x, *args))
    found = out.x
    out.x = vector_root(value, found, "root")
    if out.x is not found:
        out.fun = as_array(value(out.x))
    return out


def vector_root(value: Callable[[Any], Any], found: Any, name: str) -> Any:
    """A root whose entries depend on each other."""
    shape = np.shape(found)

    def equation(x: Any) -> Any:
        return np.reshape(as_array(value(np.reshape(x, shape))), (-1,))

    flat = np.reshape(found, (-1,))
    traced = _differentiated(equation, flat, name, False, _JACOBIAN)
    return found if traced is flat else np.reshape(traced, shape)


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A root of a function of several numbers; SciPy's `fsolve`.

    It has derivatives with respect to the values that the function closes over and those in `args`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import fsolve
    >>> round(float(grad(lambda a: fsolve(lambda x: np.exp(x) - a, 1.0)[0])(2.0)), 6)
    0.5
    """
    args = arguments(args)
    out = so.fsolve(
        plainly(func, *args),
        plain(x0),
        (),
        plainly(fprime, *args),
        full_output,
        col_deriv,
        xtol,
        maxfev,
        band,
        epsfcn,
        factor,
        diag,
    )
    found = out[0] if full_output else out
    value: Any = lambda x: func(x, *args)
    traced = vector_root(value, found, "fsolve")
    if not full_output:
        return traced
    if traced is not found:
        out[1]["fvec"] = as_array(value(traced))
    return (traced, *out[1:])


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """A point with func(x) = x; SciPy's `fixed_point`.

    It has derivatives with respect to the values that the function closes over and those in `args`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import fixed_point
    >>> round(float(grad(lambda a: fixed_point(lambda x: (x + a / x) / 2, 1.0))(4.0)), 6)
    0.25
    """
    args = tuple(args)
    found = so.fixed_point(plainly(func, *args), plain(x0), (), xtol, maxiter, method)
    traced = vector_root(lambda x: x - as_array(func(x, *args)), np.asarray(found), "fixed_point")
    return found if not is_differentiated(traced) else traced[()]


def rosen(x: Any) -> Any:
    """The Rosenbrock function, Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])²; SciPy's `rosen`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import rosen, rosen_der
    >>> grad(rosen)(np.array([1.0, 2.0])), rosen_der(np.array([1.0, 2.0]))
    (array([-400.,  200.]), array([-400.,  200.]))
    """
    x = as_array(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, axis=0)


def _shifted(inner: Any, before: int, after: int) -> Any:
    rest = shape_of(inner)[1:]
    dtype = dtype_of(inner)
    return np.concatenate(
        [np.zeros((before, *rest), dtype), inner, np.zeros((after, *rest), dtype)]
    )


def rosen_der(x: Any) -> Any:
    """The gradient of the Rosenbrock function; SciPy's `rosen_der`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import rosen_der
    >>> rosen_der(np.array([1.0, 2.0]))
    array([-400.,  200.])
    """
    x = as_array(x)
    rise = x[1:] - x[:-1] ** 2
    return _shifted(-400 * rise * x[:-1] - 2 * (1 - x[:-1]), 0, 1) + _shifted(200 * rise, 1, 0)


def rosen_hess(x: Any) -> Any:
    """The Hessian matrix of the Rosenbrock function; SciPy's `rosen_hess`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import rosen_hess
    >>> rosen_hess(np.array([1.0, 2.0]))
    array([[ 402., -400.],
           [-400.,  200.]])
    """
    x = np.atleast_1d(as_array(x))
    diagonal, beside = _rosen_bands(x)
    return np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)


def rosen_hess_prod(x: Any, p: Any) -> Any:
    """The product of the Hessian matrix of the Rosenbrock function with a vector; SciPy's `rosen_hess_prod`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.optimize import rosen_hess_prod
    >>> rosen_hess_prod(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([ 402., -400.])
    """
    p = as_array(p)
    diagonal, beside = _rosen_bands(np.atleast_1d(as_array(x)))
    return diagonal * p + _shifted(beside * p[1:], 0, 1) + _shifted(beside * p[:-1], 1, 0)


def _rosen_bands(x: Any) -> tuple[Any, Any]:
    own = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    return _shifted(own, 0, 1) + _shifted(np.full(len(x) - 1, 200.0), 1, 0), -400 * x[:-1]
