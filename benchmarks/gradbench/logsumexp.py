"""log(sum(exp(x))), with the maximum taken out so that nothing overflows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size


def objective(lib: Any, x: Any) -> Any:
    xp = lib.xp
    largest = xp.amax(x, 0)
    return largest + xp.log(xp.sum(xp.exp(x - largest)))


def by_hand(x: Any) -> Any:
    """The softmax of x."""
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def data(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(0).uniform(-100, 100, n),)


PROBLEM = Problem(
    name="lse",
    title="log-sum-exp",
    kind="gradient",
    derivative="gradient",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=tuple(
        Size(f"n = {n:,}", {"n": n}, work=n, n=n) for n in (2_500, 20_000, 160_000, 1_280_000)
    ),
    tiny={"n": 7},
    growth="numbers",
)
