"""Linear least squares: half the sum of (s_i - x_0 - x_1 t_i - x_2 t_i^2 - ...)^2, s_i = sign(t_i)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size


def objective(lib: Any, x: Any, t: Any, s: Any, exponents: Any) -> Any:
    residuals = s - t[:, None] ** exponents @ x
    return 0.5 * lib.xp.sum(residuals * residuals)


def by_hand(x: Any, t: Any, s: Any, exponents: Any) -> Any:
    powers = t[:, None] ** exponents
    return (powers @ x - s) @ powers


def data(n: int, m: int) -> tuple[Any, ...]:
    x = np.random.default_rng(0).uniform(size=m)
    t = np.linspace(-1.0, 1.0, n)
    return x, t, np.sign(t), np.arange(m)


PROBLEM = Problem(
    name="llsq",
    title="linear least squares",
    kind="gradient",
    derivative="gradient",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=tuple(
        Size(f"n = {n:,}, m = 128", {"n": n, "m": 128}, work=n, n=n)
        for n in (64, 512, 4_096, 16_392)
    ),
    tiny={"n": 6, "m": 4},
    growth="equations",
)
