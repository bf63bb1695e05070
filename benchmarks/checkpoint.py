"""Memory of a gradient against depth: a chain of layers, plain and in sqrt(n) checkpointed parts.

    python benchmarks/checkpoint.py [--quick]

Memory is the peak that tracemalloc sees above what was there before, in multiples of one layer's array.
Times are measured without tracemalloc, in turns.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import growth_exponent, measure
from functrans import checkpoint, grad

WIDTH = 20_000


def layer(x: Any) -> Any:
    return np.sin(np.tanh(x) * 1.1)


def layers(x: Any, count: int) -> Any:
    for _ in range(count):
        x = layer(x)
    return x


def plain(depth: int) -> Callable[[Any], Any]:
    return grad(lambda x: np.sum(layers(x, depth)))


def checkpointed(depth: int) -> Callable[[Any], Any]:
    """The same in sqrt(depth) parts of sqrt(depth) layers, the last of which may be shorter."""
    size = math.isqrt(depth)
    part = checkpoint(lambda x, count: layers(x, int(count)))

    def loss(x: Any) -> Any:
        for start in range(0, depth, size):
            x = part(x, min(size, depth - start))
        return np.sum(x)

    return grad(loss)


def peak(gradient: Callable[[Any], Any], x: Any) -> float:
    """The peak memory of a gradient, in multiples of x."""
    gradient(x)
    tracemalloc.start()
    gradient(x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / x.nbytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="shallow chains, few samples")
    quick = parser.parse_args().quick
    depths = [16, 64] if quick else [64, 125, 250, 500, 1000]
    x = np.linspace(0.0, 1.0, WIDTH)
    print(f"{'depth':>6} {'plain':>10} {'checkpointed':>13} {'memory':>8} {'time':>7}")
    curves: dict[str, list[float]] = {"plain": [], "checkpointed": []}
    for depth in depths:
        one, other = plain(depth), checkpointed(depth)
        np.testing.assert_allclose(other(x), one(x), rtol=1e-12)
        memory = peak(one, x), peak(other, x)
        times = measure(
            {"plain": lambda one=one: one(x), "checkpointed": lambda other=other: other(x)},
            seconds=0.1 if quick else 1.0,
            min_samples=2 if quick else 5,
        )
        curves["plain"].append(memory[0])
        curves["checkpointed"].append(memory[1])
        ratio = times["checkpointed"].best / times["plain"].best
        print(
            f"{depth:6} {memory[0]:10.1f} {memory[1]:13.1f} {memory[1] / memory[0]:8.1%} {ratio:6.2f}x"
        )
    for name, curve in curves.items():
        print(f"{name}: memory grows like depth^{growth_exponent(depths, curve):.2f}")


if __name__ == "__main__":
    main()
