"""A few steps of the method of conjugate gradients."""

import numpy as np


def program(matrix, right, steps=3):
    """An approximate solution of matrix @ x = right, for a positive definite matrix."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    old = residual @ residual
    for _ in range(steps):
        image = matrix @ direction
        step = old / (direction @ image)
        solution += step * direction
        residual -= step * image
        new = residual @ residual
        direction *= new / old
        direction += residual
        old = new
    return solution


def example():
    factor = np.array(
        [[1.0, 0.2, 0.1, 0.0], [0.0, 1.5, 0.3, 0.2], [0.4, 0.0, 0.9, 0.1], [0.2, 0.1, 0.0, 2.0]]
    )
    return factor @ factor.T + np.eye(4), np.array([1.0, -0.5, 0.3, 0.8])
