"""Least squares by Householder reflections."""

import numpy as np


def program(matrix, right):
    """The x that makes matrix @ x closest to right."""
    r, image = matrix.copy(), right.copy()
    columns = r.shape[1]
    for k in range(columns):
        reflector = r[k:, k].copy()
        reflector[0] += np.copysign(np.sqrt(reflector @ reflector), reflector[0])
        reflector /= np.sqrt(reflector @ reflector)
        r[k:, k:] -= 2 * np.outer(reflector, reflector @ r[k:, k:])
        image[k:] -= 2 * reflector * (reflector @ image[k:])
    x = image[:columns]
    for i in reversed(range(columns)):
        x[i] -= r[i, i + 1 :] @ x[i + 1 :]
        x[i] /= r[i, i]
    return x


def example():
    matrix = np.array([[1.0, 0.2, -0.3], [0.5, 1.5, 0.4], [-0.7, 0.3, 0.8], [0.2, -0.4, 1.1]])
    return matrix, np.array([1.0, -0.5, 0.3, 0.8])


def reference(matrix, right):
    return np.linalg.lstsq(matrix, right)[0]
