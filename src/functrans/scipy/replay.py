"""The steps that SciPy took along a path, taken again on traced values.

Explicit methods of Runge and Kutta repeat SciPy's own formulas. For the methods for stiff equations, each
step is collocation at the nodes of Radau, of order 5 and stable for stiff equations: its equations are
solved on plain values, and differentiated as other equations are (solutions.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import derivative_order, is_differentiated, jacobian_of
from functrans.surface.table import as_array
from functrans.transforms.forward_mode import jvp

si = load("scipy.integrate")

Slope = Callable[[Any, Any], Any]  # f(t, y)


def _combined(weights: Any, slopes: list[Any]) -> Any:
    return sum(w * k for w, k in zip(weights, slopes, strict=False) if w)


class ExplicitStep:
    """One step of an explicit method, from t to t + h."""

    def __init__(self, table: Any, slope: Slope, t: float, h: float, y: Any, first: Any) -> None:
        self.table, self.slope = table, slope
        self.t, self.h, self.y = t, h, y
        slopes = [first]
        for row, node in zip(table.A[1:], table.C[1:], strict=True):
            slopes.append(slope(t + node * h, y + h * _combined(row, slopes)))
        self.end = y + h * _combined(table.B, slopes)
        self.last = slope(t + h, self.end)
        self.slopes = [*slopes, self.last]
        self._parts: list[Any] | None = None

    def at(self, t: float) -> Any:
        """The path at a plain time within the step, by the method's interpolation."""
        x = (t - self.t) / self.h
        if x == 1.0:
            return self.end
        if not hasattr(self.table, "D"):
            powers = np.cumprod(np.full(self.table.P.shape[1], x))
            return self.y + self.h * _combined(self.table.P @ powers, self.slopes)
        # Hairer, Nørsett and Wanner, Solving ODEs I, II.6: the order 7 interpolation of DOP853.
        if self._parts is None:
            self._parts = self._seventh_order()
        total: Any = 0.0
        for k, part in enumerate(reversed(self._parts)):
            total = (total + part) * (x if k % 2 == 0 else 1 - x)
        return self.y + total

    def _seventh_order(self) -> list[Any]:
        slopes, h = list(self.slopes), self.h
        for row, node in zip(self.table.A_EXTRA, self.table.C_EXTRA, strict=True):
            slopes.append(self.slope(self.t + node * h, self.y + h * _combined(row, slopes)))
        change = self.end - self.y
        first = h * self.slopes[0]
        return [
            change,
            first - change,
            2 * change - (h * self.last + first),
            *(h * _combined(row, slopes) for row in self.table.D),
        ]


_ROOT = np.sqrt(6.0)
_NODES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])  # of Radau IIA, with three stages
# ∫ from 0 to a node of the polynomials that are 1 at one node and 0 at the others
_STAGES = (_NODES[:, None] ** [1, 2, 3] / [1, 2, 3]) @ np.linalg.inv(_NODES[:, None] ** [0, 1, 2])


class CollocationStep:
    """One implicit step, from t to t + h. `guess(t)` is the path nearby, plain."""

    def __init__(self, slope: Slope, t: float, h: float, y: Any, guess: Any) -> None:
        self.slope, self.t, self.h, self.y = slope, t, h, y
        self.size = shape_of(y)[0]
        self.times = t + _NODES * h
        plain_y = concrete(y)
        stages = np.concatenate([guess(time) for time in self.times])
        for _ in range(_ITERATIONS):
            matrix = self._matrix(stages)
            step = np.linalg.solve(matrix, concrete(self._residual(stages, plain_y)))
            stages = stages - step
            if not np.max(np.abs(step)) > 1e-12 * (1 + np.max(np.abs(stages))):
                break
        traced: Any = stages
        for _ in range(max(derivative_order(), 1)):
            traced = traced - np.linalg.solve(matrix, self._residual(traced, y))
        self.stages = [traced[k * self.size : (k + 1) * self.size] for k in range(3)]
        self.end = self.stages[-1]

    def _residual(self, stages: Any, y: Any) -> Any:
        parts = [stages[k * self.size : (k + 1) * self.size] for k in range(3)]
        slopes = [self.slope(time, part) for time, part in zip(self.times, parts, strict=True)]
        return np.concatenate(
            [
                part - y - self.h * _combined(row, slopes)
                for row, part in zip(_STAGES, parts, strict=True)
            ]
        )

    def _matrix(self, stages: Any) -> Any:
        n = self.size
        columns = []
        for k, time in enumerate(self.times):
            jacobian = concrete(jacobian_of(partial(self.slope, time), stages[k * n : (k + 1) * n]))
            columns.append(np.kron(_STAGES[:, k : k + 1], jacobian))
        return np.eye(3 * n) - self.h * np.concatenate(columns, axis=1)

    def at(self, t: float) -> Any:
        """The path at a plain time within the step: the polynomial through the stages."""
        x = (t - self.t) / self.h
        if x == 1.0:
            return self.end
        nodes = np.array([0.0, *_NODES])
        weights = [
            np.prod([(x - other) / (node - other) for other in nodes if other != node])
            for node in nodes
        ]
        return _combined(weights, [self.y, *self.stages])


_ITERATIONS = 8


def moved(slope: Slope, t: Any, y: Any, change: Any) -> Any:
    """The path at t + change, from y at t: the change is about zero, but is differentiated."""
    order = derivative_order()
    if order <= 1:
        return y + change * slope(t, y)
    table = si.RK45 if order <= 5 else si.DOP853
    slopes = [slope(t, y)]
    for row, node in zip(table.A[1:], table.C[1:], strict=True):
        slopes.append(slope(t + node * change, y + change * _combined(row, slopes)))
    return y + change * _combined(table.B, slopes)


class Path:
    """A path along the steps of SciPy's `interpolants`, on traced values."""

    def __init__(
        self, slope: Slope, start: Any, y0: Any, solver: Any, found: Any, more: Any, name: str
    ) -> None:
        """`more` are times at which the path is needed, which implicit steps must end at."""
        self.slope = slope
        self.steps: list[Any] = []
        interpolants = found.interpolants
        edges = [interpolants[0].t_old, *(each.t for each in interpolants)]
        y = y0
        if is_differentiated(start):
            y = moved(slope, start, y, edges[0] - start)
        self.begin, self.first = edges[0], y
        explicit = isinstance(solver, type) and hasattr(solver, "A") and hasattr(solver, "B")
        if explicit:
            first = slope(edges[0], y)
            for t, after in itertools.pairwise(edges):
                step = ExplicitStep(solver, slope, t, after - t, y, first)
                self.steps.append(step)
                y, first = step.end, step.last
        else:
            if np.dtype(dtype_of(y)).kind == "c":
                raise errors.MissingRuleError(
                    f"{name}: the methods for stiff equations have no derivatives for complex states, at "
                    f"{errors.user_location()}. Use method='RK45' or 'DOP853', or real and imaginary parts."
                )
            direction = 1.0 if edges[-1] >= edges[0] else -1.0
            inside = [t for t in more if min(edges[0], edges[-1]) < t < max(edges[0], edges[-1])]
            edges = sorted({*map(float, edges), *map(float, inside)}, key=lambda t: direction * t)
            for t, after in itertools.pairwise(edges):
                self.steps.append(CollocationStep(slope, t, after - t, y, found))
                y = self.steps[-1].end
        self.edges = np.array(edges)

    def at(self, t: float) -> Any:
        """The path at a plain time."""
        if t == self.begin:
            return self.first
        direction = 1.0 if self.edges[-1] >= self.edges[0] else -1.0
        k = int(np.searchsorted(direction * self.edges, direction * t)) - 1
        return self.steps[min(max(k, 0), len(self.steps) - 1)].at(t)

    def near(self, t: Any) -> Any:
        """The path at a time that may be traced."""
        value = float(concrete(t))
        y = self.at(value)
        return moved(self.slope, value, y, t - value) if is_differentiated(t) else y


def event_time(event: Any, path: Path, t: float, name: str) -> tuple[Any, Any]:
    """The time near the plain t at which event(t, y) = 0 along the path, and y there."""
    y = path.at(t)

    def along(change: Any) -> Any:
        out = as_array(event(t + change, moved(path.slope, t, y, change)))
        return np.reshape(out, ())

    slope = concrete(jvp(along, (np.float64(0.0),), (np.float64(1.0),))[1])
    if slope == 0:
        raise errors.SingularError(
            f"{name}: an event does not cross zero at t = {t:.6g} with a slope, so its time has no "
            f"derivative, at {errors.user_location()}. Use an event function that changes its sign."
        )
    change: Any = np.float64(0.0)
    for _ in range(max(derivative_order(), 1)):
        change = change - along(change) / slope
    return t + change, moved(path.slope, t, y, change)
