"""Gradients of single NumPy functions, eager, next to HIPS autograd's.

    python benchmarks/operations.py [--quick] [--only NAME]

Each line is the gradient of a scalar function of arrays, for a small and a larger size, and the time of
functrans divided by that of autograd. benchmarks/eager.py measures whole programs and more peers.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import Timing, measure

SIZES = (10, 200)


@dataclass(frozen=True)
class Operation:
    """A scalar function of `xp` and one array, and the shape of the array for a size n."""

    name: str
    function: Callable[[Any, Any], Any]
    shape: Callable[[int], tuple[int, ...]]


def vector(n: int) -> tuple[int, ...]:
    return (n,)


def matrix(n: int) -> tuple[int, ...]:
    return (n, n)


def four_axes(n: int) -> tuple[int, ...]:
    return (2, 3, 2, max(3, n // 20))


def _mixture(xp: Any, x: Any) -> Any:
    logpdf = _scipy(xp, "stats").multivariate_normal.logpdf
    points, covariance = np.linspace(-1, 1, 60).reshape(20, 3), np.eye(3)
    return xp.sum(
        xp.logaddexp(logpdf(points, x[:3], covariance), logpdf(points, x[3:6], covariance))
    )


def _scipy(xp: Any, module: str) -> Any:
    return importlib.import_module(f"{'' if xp is np else 'autograd.'}scipy.{module}")


OPERATIONS = (
    Operation("det", lambda xp, x: xp.linalg.det(x), matrix),
    Operation("slogdet", lambda xp, x: xp.linalg.slogdet(x)[1], matrix),
    Operation("inv", lambda xp, x: xp.sum(xp.linalg.inv(x)), matrix),
    Operation("solve", lambda xp, x: xp.sum(xp.linalg.solve(x, x[0])), matrix),
    Operation("cholesky", lambda xp, x: xp.sum(xp.linalg.cholesky(x)), matrix),
    Operation("prod", lambda xp, x: xp.prod(x), vector),
    Operation("prod, axis", lambda xp, x: xp.sum(xp.prod(x, axis=1)), lambda n: (n, n)),
    Operation("einsum, ij,ij->", lambda xp, x: xp.einsum("ij,ij->", x, x), matrix),
    Operation("einsum, ij,jk->ik", lambda xp, x: xp.sum(xp.einsum("ij,jk->ik", x, x)), matrix),
    Operation("repeat", lambda xp, x: xp.sum(xp.repeat(x, 3)), vector),
    Operation("repeat, axis", lambda xp, x: xp.sum(xp.repeat(x, 3, axis=0)), matrix),
    Operation("expit", lambda xp, x: xp.sum(_scipy(xp, "special").expit(x)), vector),
    Operation("kron", lambda xp, x: xp.sum(xp.kron(x[:10, :10], x[:10, :10])), matrix),
    Operation("diag, of a vector", lambda xp, x: xp.sum(xp.diag(x)), vector),
    Operation("diag, of a matrix", lambda xp, x: xp.sum(xp.diag(x)), matrix),
    Operation("outer", lambda xp, x: xp.sum(xp.outer(x, x)), vector),
    Operation("logaddexp", lambda xp, x: xp.sum(xp.logaddexp(x, 1.0)), vector),
    Operation("trace", lambda xp, x: xp.trace(x), matrix),
    Operation("inner", lambda xp, x: xp.inner(x, x), vector),
    Operation("inner, of matrices", lambda xp, x: xp.sum(xp.inner(x, x)), matrix),
    Operation("cross", lambda xp, x: xp.sum(xp.cross(x, x[::-1])), lambda n: (n, 3)),
    Operation("norm", lambda xp, x: xp.linalg.norm(x), vector),
    Operation("dot, 4 axes", lambda xp, x: xp.sum(xp.dot(x, xp.swapaxes(x, 2, 3))), four_axes),
    Operation(
        "tensordot, 4 axes", lambda xp, x: xp.sum(xp.tensordot(x, x, ((0, 1), (0, 1)))), four_axes
    ),
    Operation("mixture, logpdf", _mixture, vector),
)


def compare(operation: Operation, n: int, **settings: Any) -> dict[str, Timing]:
    """The times of one gradient with both libraries, after a comparison of the results."""
    import autograd
    import autograd.numpy

    import functrans

    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1.5, operation.shape(n))
    if operation.shape is matrix:
        x = (x + x.T) / n + np.eye(n)
    ours = functrans.grad(lambda x: operation.function(np, x))
    theirs = autograd.grad(lambda x: operation.function(autograd.numpy, x))
    if (
        operation.name != "cholesky"
    ):  # autograd's cotangent is symmetric, ours of the triangle that is read
        np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-6, atol=1e-9)
    return measure({"functrans": lambda: ours(x), "autograd": lambda: theirs(x)}, **settings)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Gradients of single functions, against HIPS autograd."
    )
    parser.add_argument("--quick", action="store_true", help="few samples, to check that it runs")
    parser.add_argument("--only", default="", help="operations whose names contain this")
    options = parser.parse_args()
    settings: dict[str, Any] = {"seconds": 0.15, "warmup_seconds": 0.02}
    if options.quick:
        settings = {"seconds": 0.01, "min_samples": 2, "warmup_seconds": 0.0}
    print(
        f"{'gradient of':<20}{'n':>5}{'functrans':>12}{'autograd':>12}{'ratio':>8}   (microseconds, best)"
    )
    for operation in OPERATIONS:
        if options.only not in operation.name:
            continue
        for n in SIZES:
            times = compare(operation, n, **settings)
            ours, theirs = times["functrans"].best, times["autograd"].best
            print(
                f"{operation.name:<20}{n:>5}{ours * 1e6:>12.1f}{theirs * 1e6:>12.1f}{ours / theirs:>8.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
