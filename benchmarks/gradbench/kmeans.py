"""k-means: the sum over points of the squared distance to the nearest centroid, and Newton's step for it.

The Hessian with respect to the centroids is diagonal, so its product with a vector of ones is its diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size


def objective(lib: Any, centroids: Any, points: Any) -> Any:
    xp = lib.xp
    # |p - c|^2 = |c|^2 - 2 p.c + |p|^2
    distances = xp.sum(centroids * centroids, 1) - 2.0 * (points @ centroids.T)
    return xp.sum(xp.amin(distances, 1)) + xp.sum(points * points)


def by_hand(centroids: Any, points: Any) -> Any:
    """Gradient 2 (count c - sum of its points), Hessian 2 count."""
    distances = np.sum(centroids * centroids, 1) - 2.0 * (points @ centroids.T)
    nearest = np.argmin(distances, 1)
    counts = np.bincount(nearest, minlength=len(centroids))[:, None]
    members = np.zeros((len(centroids), len(points)))
    members[nearest, np.arange(len(points))] = 1.0
    return centroids - members @ points / counts


def data(k: int, n: int, d: int) -> tuple[Any, ...]:
    points = np.random.default_rng(0).uniform(size=(n, d))
    # Slightly off its last points, so that every cluster has a point and no centroid is one.
    return points[-k:] + 1e-3, points


PROBLEM = Problem(
    name="kmeans",
    title="k-means",
    kind="newton_direction",
    derivative="gradient and diagonal Hessian, Newton's step",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=(
        Size("k = 10, n = 1,000, d = 8", {"k": 10, "n": 1_000, "d": 8}, work=1e4, n=1_000),
        Size("k = 10, n = 10,000, d = 8", {"k": 10, "n": 10_000, "d": 8}, work=1e5, n=10_000),
        Size("k = 100, n = 10,000, d = 16", {"k": 100, "n": 10_000, "d": 16}, work=1e6),
        Size("k = 10, n = 100,000, d = 8", {"k": 10, "n": 100_000, "d": 8}, work=1e6, n=100_000),
    ),
    tiny={"k": 3, "n": 40, "d": 2},
    growth="points",
    coarse=2e-2,  # second differences
)
