"""An initial value problem by the Runge-Kutta method of order 4: y_0' = x_0, y_i' = x_i y_(i-1), t <= 2.

GradBench asks for the gradient of the last component. It is exactly zero for n > 4 s, since s steps reach no
further, so we ask for that of their sum: the same work, and an answer that can be wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size

END = 2.0


def objective(lib: Any, x: Any, steps: Any) -> Any:
    xp = lib.xp
    first = xp.ones_like(x[:1])

    def slope(y: Any) -> Any:
        return x * xp.concatenate([first, y[:-1]])

    def step(y: Any, h: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return xp.sum(lib.loop(step, xp.zeros_like(x), steps))


def by_hand(x: Any, steps: Any) -> Any:
    """The adjoint of every step, from the last to the first."""

    def shifted(y: Any) -> Any:
        return np.concatenate([[1.0], y[:-1]])

    def shifted_back(g: Any) -> Any:
        return np.concatenate([g[1:], [0.0]])

    y, states = np.zeros_like(x), []
    for h in steps:
        s1 = shifted(y)
        s2 = shifted(y + h / 2 * x * s1)
        s3 = shifted(y + h / 2 * x * s2)
        s4 = shifted(y + h * x * s3)
        states.append((h, s1, s2, s3, s4))
        y = y + h / 6 * x * (s1 + 2 * s2 + 2 * s3 + s4)
    gradient, adjoint = np.zeros_like(x), np.ones_like(x)
    for h, s1, s2, s3, s4 in reversed(states):
        g4 = h / 6 * adjoint
        a4 = shifted_back(g4 * x)
        g3 = h / 3 * adjoint + h * a4
        a3 = shifted_back(g3 * x)
        g2 = h / 3 * adjoint + h / 2 * a3
        a2 = shifted_back(g2 * x)
        g1 = h / 6 * adjoint + h / 2 * a2
        gradient += g1 * s1 + g2 * s2 + g3 * s3 + g4 * s4
        adjoint = adjoint + shifted_back(g1 * x) + a2 + a3 + a4
    return gradient


def data(n: int, s: int) -> tuple[Any, ...]:
    return np.random.default_rng(0).uniform(size=n), np.full(s, END / s)


PROBLEM = Problem(
    name="ode",
    title="ODE by Runge-Kutta",
    kind="gradient",
    derivative="gradient of the sum of the solution",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=(
        Size("n = 1,000, s = 10", {"n": 1_000, "s": 10}, work=1e4, n=1_000),
        Size("n = 10,000, s = 10", {"n": 10_000, "s": 10}, work=1e5, n=10_000),
        Size("n = 1,000, s = 100", {"n": 1_000, "s": 100}, work=1e5),
        Size("n = 100,000, s = 10", {"n": 100_000, "s": 10}, work=1e6, n=100_000),
    ),
    tiny={"n": 5, "s": 3},
    growth="components",
)
