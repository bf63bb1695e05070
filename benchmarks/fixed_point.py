"""Memory of a gradient through a fixed point against the number of iterations, implicit and unrolled.

    python benchmarks/fixed_point.py [--quick]

Memory is the peak that tracemalloc sees above what was there before, in multiples of the array that is
iterated. The unrolled loop, on the tape, is measured for as long as it fits.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.checkpoint import peak
from benchmarks.timing import growth_exponent
from functrans import fixed_point, grad

WIDTH = 10_000
TOLERANCE = 1e-10
UNROLLED = 1_000  # the most iterations that are unrolled


def contraction(theta: Any, iterations: int) -> Callable[[Any], Any]:
    """A function whose iteration from zero takes this many steps to converge."""
    # sinh(x) approaches tanh(theta): the error is multiplied by the rate in every step.
    rate = TOLERANCE ** (1 / iterations)
    target = (1 - rate) * np.tanh(theta)
    return lambda x: np.arcsinh(rate * np.sinh(x) + target)


def implicit(iterations: int) -> Callable[[Any], Any]:
    def loss(theta: Any) -> Any:
        f = contraction(theta, iterations)
        tol = TOLERANCE * (1 - TOLERANCE ** (1 / iterations))
        return np.sum(fixed_point(f, np.zeros(WIDTH), tol=tol, maxiter=2 * iterations))

    return grad(loss)


def unrolled(iterations: int) -> Callable[[Any], Any]:
    def loss(theta: Any) -> Any:
        f = contraction(theta, iterations)
        x = np.zeros(WIDTH)
        for _ in range(iterations):
            x = f(x)
        return np.sum(x)

    return grad(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few iterations")
    counts = [10, 100] if parser.parse_args().quick else [10, 100, 1_000, 10_000]
    theta = np.linspace(0.0, 1.0, WIDTH)
    curves: dict[str, list[float]] = {"fixed_point": [], "unrolled": []}
    print(f"{'iterations':>10} {'fixed_point':>12} {'unrolled':>10} {'seconds':>8}")
    for count in counts:
        gradient = implicit(count)
        start = time.perf_counter()
        found = gradient(theta)
        seconds = time.perf_counter() - start
        # d/dθ arcsinh(tanh θ)
        exact = 1 / np.cosh(theta) ** 2 / np.sqrt(1 + np.tanh(theta) ** 2)
        np.testing.assert_allclose(found, exact, rtol=1e-7)
        curves["fixed_point"].append(peak(gradient, theta))
        row = "-"
        if count <= UNROLLED:
            curves["unrolled"].append(peak(unrolled(count), theta))
            row = f"{curves['unrolled'][-1]:.1f}"
        print(f"{count:10} {curves['fixed_point'][-1]:12.1f} {row:>10} {seconds:8.3f}")
    for name, curve in curves.items():
        exponent = growth_exponent(counts[: len(curve)], curve)
        print(f"{name}: memory grows like iterations^{exponent:.2f}")


if __name__ == "__main__":
    main()
