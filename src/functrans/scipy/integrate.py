"""scipy.integrate with derivatives: integrals of functions and samples, and differential equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.publishing import publish
from functrans.scipy.boundary import solve_bvp
from functrans.scipy.paths import at_times, odeint, si, solve_ivp
from functrans.scipy.quadrature import dblquad, fixed_quad, nquad, quad, quad_vec, tplquad
from functrans.scipy.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "nquad",
    "odeint",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "solve_bvp",
    "solve_ivp",
    "tplquad",
    "trapezoid",
]

# Functions that take functions, which may close over traced values.
CLOSES_OVER = frozenset(
    {
        "dblquad",
        "fixed_quad",
        "nquad",
        "odeint",
        "quad",
        "quad_vec",
        "solve_bvp",
        "solve_ivp",
        "tplquad",
    }
)

# Methods of plain objects, for traced arguments.
METHODS: dict[tuple[type, str], Callable[..., Any]] = {(si.OdeSolution, "__call__"): at_times}

# Its compiled code crashes if it cannot read a value.
REFUSES = {"LSODA": "Write solve_ivp(fun, t_span, y0, method='LSODA')."}


def __dir__() -> list[str]:
    return __all__


publish(__name__, [globals()[name] for name in __all__])
