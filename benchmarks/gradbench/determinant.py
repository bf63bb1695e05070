"""The determinant by expansion in minors: recursive code on scalars, whose work grows as l!."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size


def objective(lib: Any, matrix: Any) -> Any:
    size = matrix.shape[0]
    entries = [[matrix[i, j] for j in range(size)] for i in range(size)]

    def minor(row: int, columns: tuple[int, ...]) -> Any:
        """The determinant of the rows from `row` on, in these columns."""
        if len(columns) == 1:
            return entries[row][columns[0]]
        total = 0.0
        for k, column in enumerate(columns):
            term = entries[row][column] * minor(row + 1, columns[:k] + columns[k + 1 :])
            total = total - term if k % 2 else total + term
        return total

    return minor(0, tuple(range(size)))


def by_hand(matrix: Any) -> Any:
    """Jacobi's formula: d det(A) = det(A) trace(A^-1 dA). It does not expand, and so is much faster."""
    return np.linalg.det(matrix) * np.linalg.inv(matrix).T


def data(l: int) -> tuple[Any, ...]:
    return (np.random.default_rng(0).uniform(size=(l, l)),)


def products(l: int) -> int:
    """How many products the expansion has."""
    return 0 if l == 1 else l * (products(l - 1) + 1)


PROBLEM = Problem(
    name="det",
    title="determinant by minors",
    kind="gradient",
    derivative="gradient",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=tuple(
        Size(f"l = {l}", {"l": l}, work=products(l), n=products(l)) for l in (4, 5, 6, 7, 8)
    ),
    tiny={"l": 3},
    growth="products in the expansion",
    same_algorithm=False,
    unrolled=True,
)
