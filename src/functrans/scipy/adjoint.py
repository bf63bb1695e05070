"""Ordinary differential equations in graphs, solved by SciPy and differentiated implicitly.

The solution is one primitive, `odeint`, of the initial value, the times and the arguments. Its rules are
those of `functrans.odeint`: solvers/sensitivities.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import is_anything_running
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, shape_of
from functrans.ops.families import with_lanes
from functrans.scipy.loading import load
from functrans.scipy.solutions import plain
from functrans.solvers.ode import closed_equation, read_problem
from functrans.solvers.sensitivities import RightHandSide, cotangents_of_path, tangent_of_path
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import bare, tracked

si = load("scipy.integrate")


def staged_path(
    f: Callable[..., Any], y0: Any, t: Any, args: tuple[Any, ...], rtol: float, atol: float
) -> Any:
    """The solution of dy/dt = f(y, t, *args) at the times t, as one operation of a graph."""
    equation, start, times, leaves, rebuild = read_problem(f, y0, t, args)
    if is_anything_running():
        equation, captured = closed_equation(equation, [start, times, *leaves])
        leaves = [*captured, *leaves]
    return rebuild(solution(start, times, *leaves, equation=equation, rtol=rtol, atol=atol))


def _solve(y0: Any, t: Any, *leaves: Any, equation: Any, rtol: float, atol: float) -> Any:
    """The solution from NumPy and SciPy alone: a Runge-Kutta method of order 8 with adaptive steps."""

    def slope(time: float, y: Any) -> Any:
        return plain(equation(y, time, *leaves))

    y0, t = np.asarray(y0), np.asarray(t)
    fresh = np.append(True, t[1:] != t[:-1])  # a time may repeat, but not for SciPy
    times = t[fresh]
    steps = np.sign(np.diff(times))
    if np.any(steps != steps[:1]):
        turn = int(np.argmax(steps != steps[0]))
        raise ValueError(
            f"odeint: the times must always increase, or always decrease; {times[turn - 1]}, "
            f"{times[turn]}, {times[turn + 1]} do neither. Sort them with np.sort."
        )
    if len(times) == 1 or y0.size == 0:
        return np.broadcast_to(y0, (len(t), *y0.shape)).copy()
    found = si.solve_ivp(
        slope,
        (times[0], times[-1]),
        y0,
        method="DOP853",
        t_eval=times,
        rtol=max(rtol, 100 * np.finfo(np.float64).eps),
        atol=atol,
    )
    if not found.success:
        raise FloatingPointError(f"odeint: the equation {equation} was not solved: {found.message}")
    return found.y.T[np.cumsum(fresh) - 1].astype(y0.dtype)


def _spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    y0, t = specs[:2]
    return ArraySpec((t.shape[0], *y0.shape), y0.dtype)


def _solver(params: Any) -> Any:
    """The primitive in the form that the rules of paths call, with the tolerances of the call."""
    rest = {name: params[name] for name in ("rtol", "atol")}
    return lambda equation, *operands: solution(*operands, equation=equation, **rest)


def _forward(path: Any, args: Any, tangents: Any, params: Any) -> Any:
    return tangent_of_path(_solver(params), params["equation"], path, args, tangents)


def _backward(g: Any, saved: Any) -> Any:
    mask, path, args, params = saved
    active = tracked(mask, len(args))
    found = cotangents_of_path(_solver(params), params["equation"], path, args, active, g)
    return bare(found)


# Lanes with the same times form one large system; the tolerance applies to each lane separately.


def _batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    y0, t, *leaves = args
    equation = params["equation"]
    if batched[1]:
        lanes = [
            primitive(
                *[x[k] if mapped else x for x, mapped in zip(args, batched, strict=True)], **params
            )
            for k in range(size)
        ]
        return np.stack(lanes)
    if not batched[0]:
        y0 = with_lanes(y0, size)
    length = shape_of(y0)[1]
    mapped = vmap(equation, (0, None, *(0 if each else None for each in batched[2:])))

    def lanes_slope(y: Any, time: Any, *leaves: Any) -> Any:
        return mapped(y.reshape((size, length)), time, *leaves).reshape(-1)

    tighter = {name: params[name] / size**0.5 for name in ("rtol", "atol")}
    path = primitive(
        y0.reshape(-1),
        t,
        *leaves,
        equation=RightHandSide(lanes_slope, f"{equation} in lanes"),
        **tighter,
    )
    return np.moveaxis(path.reshape((shape_of(t)[0], size, length)), 1, 0)


solution = Primitive(
    "odeint",
    _solve,
    jvp=_forward,
    vjp=lambda mask, out, args, params: (_backward, (mask, out, args, params)),
    batch=_batch,
    shape=_spec,
)
