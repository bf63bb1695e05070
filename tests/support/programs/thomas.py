"""Tridiagonal equations by the algorithm of Thomas, in place."""

import numpy as np


def program(below, diagonal, above, right):
    """The solution; the arguments are copied, since elimination overwrites them."""
    diagonal, solution = diagonal.copy(), right.copy()
    n = len(diagonal)
    for i in range(1, n):
        factor = below[i - 1] / diagonal[i - 1]
        diagonal[i] -= factor * above[i - 1]
        solution[i] -= factor * solution[i - 1]
    solution[-1] /= diagonal[-1]
    for i in range(n - 2, -1, -1):
        solution[i] -= above[i] * solution[i + 1]
        solution[i] /= diagonal[i]
    return solution


def example():
    below, above = np.array([0.5, -0.3, 0.8, 0.1]), np.array([-0.7, 0.2, 0.4, 0.6])
    return below, np.array([2.0, 1.8, 2.5, 2.2, 1.9]), above, np.array([1.0, -0.5, 0.3, 0.7, 2.0])


def reference(below, diagonal, above, right):
    matrix = np.diag(diagonal) + np.diag(below, -1) + np.diag(above, 1)
    return np.linalg.solve(matrix, right)
