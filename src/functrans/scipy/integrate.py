"""Ordinary differential equations, solved by SciPy and differentiated implicitly.

The solution is one primitive, `odeint`, of the initial value, the times and the arguments. Its rules are
those of `functrans.odeint`: solvers/sensitivities.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, shape_of
from functrans.ops.families import with_lanes
from functrans.scipy.loading import load
from functrans.solvers.ode import read_problem
from functrans.solvers.sensitivities import RightHandSide, cotangents_of_path, tangent_of_path
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import bare, tracked

si = load("scipy.integrate")

__all__ = ["odeint"]


def __dir__() -> list[str]:
    return __all__


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1e-8,
    atol: float = 1e-8,
) -> Any:
    """Solve dy/dt = f(y, t, *args) from y(t[0]) = y0, at the times t.

    It can be differentiated with respect to y0, t and args, in forward and reverse mode and to any order.
    Values that you want to differentiate with respect to, or map over, must be among `args`: `f` must not
    close over traced values.

    Parameters
    ----------
    f
        f(y, t, *args) -> dy/dt, with the structure and shapes of y.
    y0
        The initial value: an array, or a pytree of arrays.
    t
        The times, increasing or decreasing; they may repeat.
    *args
        Pytrees of arrays that `f` depends on.
    rtol, atol
        Relative and absolute tolerance per step.

    Returns
    -------
    array or pytree
        Like y0, with the times as the first axis of each leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import odeint
    >>> def decay(y, t, rate):
    ...     return -rate * y
    >>> def final(rate):
    ...     return odeint(decay, 1.0, np.array([0.0, 2.0]), rate)[-1]
    >>> round(float(grad(final)(0.5)), 6)  # d/dr exp(-2r) = -2 exp(-2r)
    -0.735759
    """
    equation, start, times, leaves, rebuild = read_problem(f, y0, t, args)
    return rebuild(solution(start, times, *leaves, equation=equation, rtol=rtol, atol=atol))


def _solve(y0: Any, t: Any, *leaves: Any, equation: Any, rtol: float, atol: float) -> Any:
    """The solution from NumPy and SciPy alone: a Runge-Kutta method of order 8 with adaptive steps."""

    def slope(time: float, y: Any) -> Any:
        out = equation(y, time, *leaves)
        if isinstance(out, Tracer):
            raise errors.InputTypeError(
                f"odeint: the equation {equation} depends on a value that is traced by "
                f"{out.interpreter.transform} and is not among its arguments, at "
                f"{errors.user_location()}. Pass it through args: odeint(f, y0, t, *args)."
            )
        return out

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
