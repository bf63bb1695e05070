"""GMM: the log-likelihood of a mixture of Gaussians with a Wishart prior, and its gradient.

The inverse covariance of component k is Q_k^T Q_k, with Q_k lower triangular: the logarithms of its diagonal
and the entries below it, column by column, are a row of `icf`. The prior has gamma = 1 and m = 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size

GAMMA, M = 1.0, 0


def constant(n: int, d: int, k: int) -> float:
    """The terms of the density and of the prior that do not depend on the parameters."""
    freedom = d + M + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * (freedom + 1 - j)) for j in range(1, d + 1)
    )
    prior = freedom * d * (math.log(GAMMA) - 0.5 * math.log(2)) - log_gamma
    return -0.5 * n * d * math.log(2 * math.pi) + k * prior


def log_sum_exp(xp: Any, x: Any) -> Any:
    """Along the first axis."""
    largest = xp.amax(x, 0)
    return largest + xp.log(xp.sum(xp.exp(x - largest), 0))


def objective(lib: Any, params: Any, x: Any, places: Any, zeros: Any) -> Any:
    xp = lib.xp
    alphas, means, icf = params
    n, d = x.shape
    logs, below = icf[:, :d], icf[:, d:]
    diagonal = xp.exp(logs)
    # `places` says for every entry of the triangle where it is in this row.
    factors = xp.concatenate([diagonal, below, zeros], 1)[:, places]
    whitened = (x - means[:, None, :]) @ factors
    heights = (alphas + xp.sum(logs, 1))[:, None] - 0.5 * xp.sum(whitened * whitened, 2)
    likelihood = xp.sum(log_sum_exp(xp, heights)) - n * log_sum_exp(xp, alphas)
    squares = xp.sum(diagonal * diagonal) + xp.sum(below * below)
    prior = M * xp.sum(logs) - 0.5 * GAMMA * GAMMA * squares
    return likelihood + prior + constant(n, d, len(alphas))


def by_hand(params: Any, x: Any, places: Any, zeros: Any) -> Any:
    alphas, means, icf = params
    n, d = x.shape
    logs, below = icf[:, :d], icf[:, d:]
    diagonal = np.exp(logs)
    factors = np.concatenate([diagonal, below, zeros], 1)[:, places]
    centered = x - means[:, None, :]
    whitened = centered @ factors
    heights = (alphas + logs.sum(1))[:, None] - 0.5 * np.einsum("kni,kni->kn", whitened, whitened)
    weights = np.exp(heights - heights.max(0))
    weights /= weights.sum(0)  # of the components, for every point
    totals = weights.sum(1)
    shares = np.exp(alphas - alphas.max())
    # d/d whitened = -weight whitened; whitened = (x - mean) @ factor.
    whitened *= -weights[:, :, None]
    by_factors = centered.transpose(0, 2, 1) @ whitened
    by_means = -(factors @ whitened.sum(1)[:, :, None])[:, :, 0]
    columns, rows = np.triu_indices(d, 1)
    by_logs = np.einsum("kii->ki", by_factors) * diagonal + totals[:, None]
    by_logs += M - GAMMA * GAMMA * diagonal * diagonal
    by_below = by_factors[:, columns, rows] - GAMMA * GAMMA * below
    return [
        totals - n * shares / shares.sum(),
        by_means,
        np.concatenate([by_logs, by_below], 1),
    ]


def triangle(d: int) -> Any:
    """For entry (i, j) of Q^T its place in a row of [diagonal, below, 0]."""
    places = np.full((d, d), d + d * (d - 1) // 2)
    places[np.diag_indices(d)] = np.arange(d)
    # The entries of Q below its diagonal, column by column, are those of Q^T above it, row by row.
    places[np.triu_indices(d, 1)] = d + np.arange(d * (d - 1) // 2)
    return places


def data(n: int, d: int, k: int) -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    params = (
        random.standard_normal(k),
        random.uniform(size=(k, d)),
        random.standard_normal((k, d + d * (d - 1) // 2)),
    )
    return params, random.standard_normal((n, d)), triangle(d), np.zeros((k, 1))


def size(n: int, d: int, k: int, in_series: bool = False) -> Size:
    # Exponentials and memory weigh more than the products while d is small.
    work = n * k * (d * d + 20 * d)
    label = f"n = {n:,}, d = {d}, K = {k}"
    return Size(label, {"n": n, "d": d, "k": k}, work=work, n=n if in_series else None)


PROBLEM = Problem(
    name="gmm",
    title="Gaussian mixture",
    kind="gradient",
    derivative="gradient",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=(
        size(1_000, 2, 5),
        size(1_000, 10, 10, in_series=True),
        size(3_000, 10, 10, in_series=True),
        size(10_000, 10, 10, in_series=True),
        size(1_000, 32, 25),
        size(1_000, 64, 50),
        size(10_000, 32, 25),
        size(10_000, 64, 50),
    ),
    tiny={"n": 6, "d": 3, "k": 2},
    growth="points",
)
