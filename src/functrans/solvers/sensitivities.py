"""How the path of a differential equation depends on its start, its times and its parameters.

An equation is a function equation(y, t, *parameters) -> dy/dt of vectors. `solve(equation, y0, t,
*parameters)` is its path, one row for each time. Tangents and cotangents of a path are paths of other
equations, found by the same `solve`; so if that has these derivatives, it has those of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.branching import choose
from functrans.control.scanning import scan
from functrans.core.shapes import cast, dtype_of, shape_of, spec_of
from functrans.solvers.vectors import joined, parted
from functrans.transforms.batching import vmap
from functrans.transforms.derivatives import vjp
from functrans.transforms.forward_mode import jvp
from functrans.transforms.leaves import Flags, chosen, moves, strong, zeros

Solve = Callable[..., Any]


class RightHandSide:
    """The right-hand side as a function of vectors, with a name: equation(y, t, *parameters) -> dy/dt."""

    __slots__ = ("name", "slope")

    def __init__(self, slope: Callable[..., Any], name: str) -> None:
        self.slope = slope
        self.name = name

    def __call__(self, y: Any, t: Any, *parameters: Any) -> Any:
        return self.slope(y, t, *parameters)

    def __repr__(self) -> str:
        return self.name


def _nan_unless_zero(x: Any) -> Any:
    return np.where(x == 0, x, np.nan)


def _along(equation: Any, path: Any, t: Any, parameters: Sequence[Any]) -> Any:
    """dy/dt at each time."""
    return vmap(equation, (0, 0, *[None] * len(parameters)))(path, t, *parameters)


def _of_some(equation: Any, time: Any, parameters: Sequence[Any], flags: Flags) -> Any:
    """The slope at a time as a function of y and of the flagged parameters."""

    def slope(y: Any, *given: Any) -> Any:
        each = iter(given)
        full = [next(each) if flag else p for p, flag in zip(parameters, flags, strict=True)]
        return equation(y, time, *full)

    return slope


# Forward: s = dy obeys s' = (∂f/∂y) s + (∂f/∂θ) dθ. A change of the first time moves the start along the
# slope, backward, and a change of a later time moves its point along the slope.


def tangent_of_path(
    solve: Solve, equation: Any, path: Any, operands: Sequence[Any], tangents: Sequence[Any]
) -> Any:
    """The tangent of a path, given those of (y0, t, *parameters), where None stands for zero."""
    (y0, t, *parameters), (y0_tangent, t_tangent, *changes) = operands, tangents
    moving = moves(changes)
    size, count = shape_of(y0)[0], len(parameters)

    def linearized(state: Any, time: Any, *both: Any) -> Any:
        values, moved = both[:count], both[count:]
        slope = _of_some(equation, time, values, moving)
        primals = (state[:size], *chosen(values, moving))
        return np.concatenate(jvp(slope, primals, (state[size:], *moved)))

    along = None if t_tangent is None else _along(equation, path, t, parameters)
    change = np.zeros(size, dtype_of(y0)) if y0_tangent is None else y0_tangent
    if along is not None:
        change = change - along[0] * t_tangent[0]
    both = solve(
        RightHandSide(linearized, f"{equation} linearized"),
        np.concatenate([y0, change]),
        t,
        *parameters,
        *chosen(changes, moving),
    )
    total = both[:, size:]
    return total if along is None else total + along * t_tangent[:, None]


# Reverse: a = ∂L/∂y obeys a' = -(∂f/∂y)^T a, and ∂L/∂θ is the integral of (∂f/∂θ)^T a (Chen et al. 2018,
# arXiv:1806.07366). Going backward, the cotangent of the point at each time is added to a. y is integrated
# again from the known points.


def cotangents_of_path(
    solve: Solve, equation: Any, path: Any, operands: Sequence[Any], active: Flags, g: Any
) -> list[Any]:
    """The cotangents of the active ones of (y0, t, *parameters), from that of the path."""
    y0, t, *parameters = operands
    flags = active[2:]
    size, dtype = shape_of(y0)[0], dtype_of(y0)
    wanted = [strong(spec_of(p)) for p in chosen(parameters, flags)]
    none = joined([zeros(spec) for spec in wanted]) if wanted else np.zeros(0, dtype)
    common = np.result_type(dtype, none.dtype)

    def adjoint(state: Any, time: Any, *values: Any) -> Any:
        y, a = cast(state[:size], dtype), cast(state[size : 2 * size], dtype)
        out, pullback = vjp(_of_some(equation, time, values, flags), y, *chosen(values, flags))
        parts = [out, *(-np.reshape(change, (-1,)) for change in pullback(a))]
        return np.concatenate(parts).astype(common)

    backward = RightHandSide(adjoint, f"adjoint of {equation}")

    def followed(a: Any, integral: Any, y: Any, start: Any, stop: Any) -> Any:
        state = np.concatenate([y, a, integral]).astype(common)
        state = solve(backward, state, np.stack([start, stop]), *parameters)[1]
        return cast(state[size : 2 * size], dtype), cast(state[2 * size :], none.dtype)

    # After a failure there is no path; cotangents that do not involve it still give derivatives.
    def passed(a: Any, integral: Any, *_: Any) -> Any:
        return _nan_unless_zero(a), integral + cast(np.sum(_nan_unless_zero(a)), none.dtype)

    def interval(carry: Any, step: Any) -> Any:
        a, integral = carry
        y, cotangent, start, stop = step
        exists = np.all(np.isfinite(y)).astype(np.int64)
        operands = (a + cotangent, integral, y, start, stop)
        return choose(exists, (passed, followed), operands, "odeint", compared=False), None

    a, integral = np.zeros(size, dtype), none
    if shape_of(t)[0] > 1:
        steps = (path[1:], g[1:], t[1:], t[:-1])
        (a, integral), _ = scan(interval, (a, integral), steps, reverse=True)
    cotangents = [a + g[0]] if active[0] else []
    if active[1]:
        along = _along(equation, path, t, parameters)
        exists = np.isfinite(path[1:])
        later = np.sum(np.where(exists, g[1:] * along[1:], _nan_unless_zero(g[1:])), axis=1)
        first = -np.sum(a * along[0], keepdims=True)
        cotangents.append(cast(np.concatenate([first, later]), dtype_of(t)))
    return cotangents + parted(integral, wanted)
