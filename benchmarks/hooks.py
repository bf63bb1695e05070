"""What hooks cost: gradients of functions that run without them, with hooks and with `use_hooks(False)`.

python benchmarks/hooks.py prints the best time of each in microseconds, and their ratio. The functions on top
mention no function that has a hook, and should have the ratio 1. Those below fill plain tables with np.zeros,
np.array and similar functions, whose hooks look at their arguments; their ratio should be at most 1.3.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "")]

from benchmarks.timing import measure
from functrans import grad, use_hooks

# Functions that mention nothing with a hook.


def polynomial(x: Any) -> Any:
    return x * x * x - 2 * x


def long_sum(x: Any) -> Any:
    total = x * 0.0
    for k in range(50):
        total = total + np.sin(k * x)
    return total


def products(x: Any) -> Any:
    return np.sum(np.tanh(WEIGHTS @ np.ravel(x * WEIGHTS[0])))


WEIGHTS = np.linspace(0.0, 1.0, 64).reshape(8, 8)


# Functions that fill plain tables.


def table_by_entries(x: Any) -> Any:
    table = np.zeros(100)
    for k in range(100):
        table[k] = math.sqrt(k) + 0.5 * k
    return np.sum(np.sin(table * x))


def many_small_arrays(x: Any) -> Any:
    total = 0.0 * x
    for k in range(20):
        row = np.array([1.0, k, k * k])
        total = total + x * np.sum(row * np.arange(3))
    return total


def grid(x: Any) -> Any:
    points = np.linspace(0.0, 1.0, 200)
    squares = np.empty((200, 200))
    squares[:] = np.outer(points, points)
    squares[np.eye(200, dtype=bool)] = 0.0
    return np.sum(np.sin(x * squares))


def dynamic_program(x: Any) -> Any:
    costs = np.full((12, 12), np.inf)
    costs[0, 0] = 0.0
    for i in range(12):
        for j in range(12):
            if i and j:
                costs[i, j] = min(costs[i - 1, j], costs[i, j - 1], costs[i - 1, j - 1] + 1.0)
            elif i or j:
                costs[i, j] = float(i + j)
    return x * costs[11, 11]


WITHOUT: tuple[Callable[[Any], Any], ...] = (polynomial, long_sum, products)
TABLES: tuple[Callable[[Any], Any], ...] = (
    table_by_entries,
    many_small_arrays,
    grid,
    dynamic_program,
)


def with_hooks(function: Any, enabled: bool) -> Callable[[], Any]:
    # A copy of the code: Python adapts it to the functions that it calls, and programs do not take turns.
    code = function.__code__.replace(co_name=f"{function.__name__}_{enabled}")
    gradient, x = grad(FunctionType(code, function.__globals__)), np.float64(0.7)

    def run() -> Any:
        with use_hooks(enabled):
            return gradient(x)

    return run


def ratio(function: Callable[[Any], Any], seconds: float) -> tuple[float, float, float]:
    """The best times with and without hooks, and the first over the second."""
    found = measure(
        {"on": with_hooks(function, True), "off": with_hooks(function, False)}, seconds=seconds
    )
    on, off = found["on"].best, found["off"].best
    return on, off, on / off


def main() -> None:
    seconds = 0.2 if "--quick" in sys.argv else 2.0
    for title, functions in (("no hooks needed", WITHOUT), ("plain tables", TABLES)):
        print(f"{title}:")
        for function in functions:
            on, off, quotient = ratio(function, seconds)
            print(
                f"  {function.__name__:20} hooks on {1e6 * on:8.1f} us, off {1e6 * off:8.1f} us, "
                f"ratio {quotient:.2f}"
            )


if __name__ == "__main__":
    main()
