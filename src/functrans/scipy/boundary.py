"""Boundary value problems: solve_bvp of scipy.integrate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import shape_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import (
    ImplicitEquation,
    holds_traced,
    is_differentiated,
    plain,
    plainly,
    with_value,
)
from functrans.surface.table import as_array

si = load("scipy.integrate")


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> Any:
    """Solve dy/dx = fun(x, y, p) with bc(y(a), y(b), p) = 0; SciPy's `solve_bvp`.

    The values `y`, `yp` and `p` at the final mesh, and the spline `sol`, have derivatives with respect to
    the values that the functions close over. They do not depend on the guesses `y` and `p`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import solve_bvp
    >>> def middle(height):  # y'' = 0 from 0 to the height
    ...     slope = lambda x, y: np.stack([y[1], 0 * y[0]])
    ...     ends = lambda ya, yb: np.stack([ya[0], yb[0] - height])
    ...     return solve_bvp(slope, ends, [0.0, 1.0, 2.0], np.zeros((2, 3))).y[0, 1]
    >>> round(float(grad(middle)(3.0)), 6)
    0.5
    """
    if holds_traced(x, S):
        raise errors.MissingRuleError(
            "solve_bvp has no derivative with respect to the mesh x and the matrix S, at "
            f"{errors.user_location()}. Solve on a fixed interval, with a scaled equation."
        )
    result = si.solve_bvp(
        plainly(fun),
        plainly(bc),
        x,
        plain(as_array(y)),
        plain(p) if p is None else plain(as_array(p)),
        S,
        plainly(fun_jac),
        plainly(bc_jac),
        tol,
        max_nodes,
        verbose,
        bc_tol,
    )
    rows, columns = result.y.shape
    count = 0 if result.p is None else len(result.p)
    h = np.diff(result.x)
    middle = result.x[:-1] + h / 2
    more: Any = lambda z: (z[rows * columns :],) if count else ()
    states: Any = lambda z: np.reshape(z[: rows * columns], (rows, columns))

    def equations(z: Any) -> Any:
        # Collocation of order 4: the cubic spline satisfies the equation at the mesh and in the middle
        # of intervals.
        y, given = states(z), more(z)
        f = as_array(fun(result.x, y, *given))
        between = (y[:, 1:] + y[:, :-1]) / 2 - h / 8 * (f[:, 1:] - f[:, :-1])
        inner = as_array(fun(middle, between, *given))
        gaps = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * inner)
        ends = as_array(bc(y[:, 0], y[:, -1], *given))
        return np.concatenate([np.reshape(gaps, (-1,)), np.reshape(ends, (-1,))])

    found = np.concatenate([result.y.ravel(), () if result.p is None else result.p])
    if not result.success or not is_differentiated(equations(found)):
        return result
    if S is not None:
        raise errors.MissingRuleError(
            f"solve_bvp with S= has no rule for traced values, at {errors.user_location()}. Begin the "
            "interval beyond the singular point."
        )
    z = ImplicitEquation(equations, "solve_bvp", "the Jacobian of the equations").solution(found)
    result.y = states(z)
    slope = as_array(fun(result.x, result.y, *more(z)))
    result.yp = with_value(result.yp, slope)
    if count:
        result.p = more(z)[0]
    result.sol = HermiteSpline(result.x, result.y, result.yp)
    return result


class HermiteSpline:
    """The cubic spline with given values and slopes at a mesh."""

    def __init__(self, x: Any, y: Any, slopes: Any) -> None:
        self.x, self._y, self._slopes = x, y, slopes

    def __call__(self, x: Any, nu: int = 0) -> Any:
        """The spline at x, or its derivative of order nu."""
        at = as_array(x)
        k = np.clip(np.searchsorted(self.x, concrete(at), side="right") - 1, 0, len(self.x) - 2)
        h = self.x[k + 1] - self.x[k]
        s = (at - self.x[k]) / h
        y0, y1 = self._y[:, k], self._y[:, k + 1]
        d0, d1 = h * self._slopes[:, k], h * self._slopes[:, k + 1]
        # In powers of s
        parts = [y0, d0, 3 * (y1 - y0) - 2 * d0 - d1, 2 * (y0 - y1) + d0 + d1]
        total: Any = np.zeros(shape_of(y0))
        for power in range(nu, 4):
            factor = np.prod(np.arange(power - nu + 1, power + 1)) if nu else 1.0
            total = total + factor * parts[power] * s ** (power - nu)
        return total / h**nu
