"""The conditions that a minimum satisfies, as an equation: the derivative of the minimum follows from it.

Without bounds and constraints, the gradient vanishes. Otherwise the conditions of Karush, Kuhn and Tucker
hold: for the constraints that are active, c(x) = bound, and ∇f = Σ λ ∇c. Those that are not active do not
matter nearby.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.core.dispatch import concrete
from functrans.scipy.solutions import ImplicitEquation, is_differentiated, jacobian_of, plain
from functrans.surface.table import as_array
from functrans.transforms.derivatives import grad


class Limits(NamedTuple):
    """lower <= function(x) <= upper, entry by entry; equal limits are an equation."""

    function: Callable[[Any], Any]
    lower: Any
    upper: Any


_NEAR = 1e-4  # how close to a limit the least accurate of SciPy's methods come


def at_minimum(loss: Callable[[Any], Any], found: Any, limits: list[Limits], name: str) -> Any:
    """The plain vector that minimizes a loss under limits, with derivatives if there are any."""
    at_found = [loss(found), *(part for each in limits for part in _parts(each, found))]
    if not np.all(np.isfinite(found)) or not is_differentiated(*at_found):
        return found
    gradient = grad(loss)
    what = "the matrix of second derivatives of the function"
    if not limits:
        return ImplicitEquation(gradient, name, what).solution(found)
    active = _active(gradient, found, limits)
    if not active:
        return ImplicitEquation(gradient, name, what).solution(found)
    held, multipliers = active
    size = len(found)

    def conditions(z: Any) -> Any:
        x, factors = z[:size], z[size:]

        def lagrangian(x: Any) -> Any:
            values = np.concatenate([_rows(each.function, x)[rows] for each, rows, _ in held])
            return loss(x) - factors @ values

        gaps = [_rows(each.function, x)[rows] - target for each, rows, target in held]
        return np.concatenate([grad(lagrangian)(x), *gaps])

    what = "the matrix of second derivatives of the function with its active constraints"
    z = ImplicitEquation(conditions, name, what).solution(np.concatenate([found, multipliers]))
    return z[:size]


def _parts(limits: Limits, x: Any) -> tuple[Any, Any, Any]:
    return limits.function(x), limits.lower, limits.upper


def _rows(function: Callable[[Any], Any], x: Any) -> Any:
    return np.reshape(as_array(function(x)), (-1,))


def _active(gradient: Callable[[Any], Any], x: Any, limits: list[Limits]) -> Any:
    """The limits that hold the minimum, as (limits, rows, target values), and their multipliers."""
    slope = concrete(gradient(x))
    curvature = concrete(jacobian_of(gradient, x))
    rows: list[
        tuple[int, int, int]
    ] = []  # which limits, which row, and -1, 0 or 1: below, equal, above
    normals, gaps = [], []
    for k, each in enumerate(limits):
        values = concrete(_rows(each.function, x))
        low, high = (np.broadcast_to(plain(side), values.shape) for side in each[1:])
        matrix = concrete(jacobian_of(lambda y, f=each.function: _rows(f, y), x))  # type: ignore[misc]
        for i, value in enumerate(values):
            for side, bound in ((-1, low[i]), (1, high[i])):
                if low[i] == high[i]:
                    if side < 0:
                        rows.append((k, i, 0))
                        normals.append(matrix[i])
                        gaps.append(0.0)
                elif np.isfinite(bound) and abs(value - bound) <= _NEAR * (1 + abs(bound)):
                    rows.append((k, i, side))
                    normals.append(matrix[i])
                    gaps.append(abs(value - bound))
    while rows:
        factors = np.linalg.lstsq(np.array(normals).T, slope, rcond=None)[0]
        worst, worst_excess = None, 0.0
        for j, (_, _, side) in enumerate(rows):
            if side == 0:
                continue
            # How far beyond the limit the minimum would be without it; it is active if there is any.
            normal = normals[j]
            stiffness = abs(normal @ curvature @ normal) / max(normal @ normal, 1e-300) ** 2
            excess = -side * factors[j] - (stiffness * gaps[j] if gaps[j] > 1e-10 else -1e-12)
            if excess < worst_excess:
                worst, worst_excess = j, excess
        if worst is None:
            break
        del rows[worst], normals[worst], gaps[worst]
    if not rows:
        return None
    held = []
    order: list[int] = []
    for k, each in enumerate(limits):
        chosen = [j for j, row in enumerate(rows) if row[0] == k]
        if not chosen:
            continue
        count = len(concrete(_rows(each.function, x)))
        low, high = (np.broadcast_to(side, (count,)) for side in each[1:])
        targets = [high[rows[j][1]] if rows[j][2] > 0 else low[rows[j][1]] for j in chosen]
        held.append((each, np.array([rows[j][1] for j in chosen]), np.stack(targets)))
        order += chosen
    return held, factors[order]
