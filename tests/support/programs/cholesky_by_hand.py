"""The Cholesky factor of a matrix, one element at a time."""

import numpy as np


def program(matrix):
    """The lower triangular factor."""
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        factor[j, j] = np.sqrt(matrix[j, j] - np.sum(factor[j, :j] ** 2))
        for i in range(j + 1, len(matrix)):
            factor[i, j] = matrix[i, j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] /= factor[j, j]
    return factor


def example():
    return (
        np.array(
            [[4.0, 1.0, 0.5, 0.2], [1.0, 3.0, 0.7, 0.1], [0.5, 0.7, 2.0, 0.3], [0.2, 0.1, 0.3, 1.5]]
        ),
    )


reference = np.linalg.cholesky
