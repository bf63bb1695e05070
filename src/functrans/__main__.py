"""`python -m functrans`: a tour that checks itself.

Every step computes something with a transform and once more by its closed form in NumPy alone, and
prints both. The exit status is 1 if a pair disagrees.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import functrans
from functrans import grad, hvp, jacfwd, jacrev, make_graph, vmap

Array = np.ndarray[Any, Any]

# The functions to transform: plain NumPy and plain Python, with nothing of functrans in them.


def log_sum_exp(x: Array) -> Any:
    return np.log(np.sum(np.exp(x)))


def softmax(x: Array) -> Any:
    weights = np.exp(x)
    return weights / np.sum(weights)


def squared_error(w: Array, x: Array, y: float) -> Any:
    return (x @ w - y) ** 2


def rosenbrock(x: Array) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def huber(r: float) -> float:
    if abs(r) <= 1:
        return r * r / 2
    return abs(r) - 0.5


def spring(x: Array) -> Any:
    return np.sum(np.sin(x) * x)


SPRING_GRAPH = """\
graph(x: float64[3]) -> float64[]:
    a: float64[3] = sin(x)
    b: float64[3] = multiply(a, x)
    c: float64[] = sum(b, axis=(0,), keepdims=False)
    return c"""

# The points at which to evaluate.

x = np.array([0.5, -1.0, 2.0])
p = np.exp(x) / np.exp(x).sum()
w = np.array([1.0, -1.0])
inputs = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
targets = np.array([0.0, 1.0, 2.0])
residuals = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
long, direction = np.linspace(-1, 1, 100_000), np.cos(np.arange(100_000.0))


def rosenbrock_hessian_times(x: Array, v: Array) -> Array:
    """The Hessian is tridiagonal: add up the product of each diagonal with v."""
    left, right = x[:-1], x[1:]
    product = np.zeros_like(x)
    product[:-1] += (1200 * left**2 - 400 * right + 2) * v[:-1] - 400 * left * v[1:]
    product[1:] += 200 * v[1:] - 400 * left * v[:-1]
    return product


def traced_spring() -> tuple[str, Any, Any]:
    """A graph as text, what it computes, and what its gradient computes."""
    graph = make_graph(spring)(x)
    graph.check()
    return str(graph), graph(x), grad(graph)(x)


@dataclass(frozen=True)
class TourStep:
    """A value, by a transform and by its closed form; several values make a tuple."""

    title: str
    code: str
    compute: Callable[[], Any]
    closed_form: Callable[[], Any]


STEPS = (
    TourStep(
        "A gradient: that of log-sum-exp is softmax",
        "grad(log_sum_exp)(x)",
        lambda: grad(log_sum_exp)(x),
        lambda: p,
    ),
    TourStep(
        "Per-example gradients: one row for each example, without a loop",
        "vmap(grad(squared_error), in_axes=(None, 0, 0))(w, inputs, targets)",
        lambda: vmap(grad(squared_error), in_axes=(None, 0, 0))(w, inputs, targets),
        lambda: 2 * (inputs @ w - targets)[:, None] * inputs,
    ),
    TourStep(
        "A Jacobian, forward mode",
        "jacfwd(softmax)(x)",
        lambda: jacfwd(softmax)(x),
        lambda: np.diag(p) - np.outer(p, p),
    ),
    TourStep(
        "The same Jacobian, reverse mode",
        "jacrev(softmax)(x)",
        lambda: jacrev(softmax)(x),
        lambda: np.diag(p) - np.outer(p, p),
    ),
    TourStep(
        "A Hessian-vector product in 100,000 dimensions; the matrix is never built",
        "hvp(rosenbrock, (long,), (direction,))",
        lambda: hvp(rosenbrock, (long,), (direction,)),
        lambda: rosenbrock_hessian_times(long, direction),
    ),
    TourStep(
        "A Python `if` under vmap: lanes that disagree run separately",
        "vmap(grad(huber))(residuals)",
        lambda: vmap(grad(huber))(residuals),
        lambda: np.clip(residuals, -1, 1),
    ),
    TourStep(
        "A function as a graph, which is checked, run, and differentiated",
        "graph = make_graph(spring)(x); str(graph), graph(x), grad(graph)(x)",
        traced_spring,
        lambda: (SPRING_GRAPH, np.sin(x) @ x, np.sin(x) + x * np.cos(x)),
    ),
)


def agree(found: Any, expected: Any) -> bool:
    """Whether two results are the same text, or the same numbers up to rounding."""
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(agree, found, expected))
    if isinstance(expected, str):
        return bool(found == expected)
    return np.shape(found) == np.shape(expected) and np.allclose(found, expected, rtol=1e-10)


def show(label: str, value: Any) -> None:
    """Print a value next to its label; the following lines have the same indentation."""
    parts = value if isinstance(value, tuple) else (value,)
    with np.printoptions(precision=4, suppress=True, threshold=20, edgeitems=2):
        lines = "\n".join(str(part) for part in parts).splitlines()
    for k, line in enumerate(lines):
        print(f"   {label if k == 0 else '':<13}{line}")


def timed(compute: Callable[[], Any], calls: int = 5) -> tuple[Any, float]:
    """The result, and the seconds of the fastest call."""
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        result = compute()
        best = min(best, time.perf_counter() - start)
    return result, best


def main() -> int:
    print(
        f"functrans {functrans.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}"
    )
    wrong = 0
    for number, step in enumerate(STEPS, 1):
        found, seconds = timed(step.compute)
        expected = step.closed_form()
        right = agree(found, expected)
        wrong += not right
        print(f"\n{number}. {step.title}\n   {step.code}")
        show("functrans", found)
        show("closed form", expected)
        print(f"   {'ok' if right else 'WRONG'}, {seconds * 1e3:.3f} ms")
    print(f"\n{len(STEPS) - wrong} of {len(STEPS)} steps agree with their closed forms.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
