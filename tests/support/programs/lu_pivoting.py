"""Linear equations by elimination with partial pivoting."""

import numpy as np


def program(matrix, right):
    """The solution of matrix @ x = right."""
    lu, x = matrix.copy(), right.copy()
    n = len(x)
    for k in range(n):
        pivot = k + np.argmax(np.abs(lu[k:, k]))
        if pivot != k:
            lu[[k, pivot]] = lu[[pivot, k]]
            x[k], x[pivot] = x[pivot], x[k]
        for i in range(k + 1, n):
            lu[i, k] /= lu[k, k]
            lu[i, k + 1 :] -= lu[i, k] * lu[k, k + 1 :]
    for i in range(n):
        x[i] -= lu[i, :i] @ x[:i]
    for i in reversed(range(n)):
        x[i] = (x[i] - lu[i, i + 1 :] @ x[i + 1 :]) / lu[i, i]
    return x


def example():
    matrix = np.array(
        [[0.1, 2.0, 0.5, 1.0], [1.5, 0.3, -0.4, 0.2], [0.7, -0.6, 0.2, 1.1], [-0.9, 0.8, 1.3, 0.4]]
    )
    return matrix, np.array([1.0, 2.0, -0.5, 0.3])


reference = np.linalg.solve
