"""Interpolation by a natural cubic spline."""

import numpy as np


def curvatures(knots, values):
    """The second derivatives at the knots, zero at both ends."""
    widths = knots[1:] - knots[:-1]
    slopes = (values[1:] - values[:-1]) / widths
    n = len(knots)
    matrix = np.zeros((n, n), like=knots)
    right = np.zeros_like(values)
    matrix[0, 0] = matrix[-1, -1] = 1.0
    for i in range(1, n - 1):
        matrix[i, i - 1 : i + 2] = 0.0
        matrix[i, i - 1] += widths[i - 1]
        matrix[i, i] += 2 * (widths[i - 1] + widths[i])
        matrix[i, i + 1] += widths[i]
        right[i] = 6 * (slopes[i] - slopes[i - 1])
    return np.linalg.solve(matrix, right)


def program(knots, values, points):
    """The values of the spline at the points."""
    bend = curvatures(knots, values)
    out = np.empty_like(points)
    for m, point in enumerate(points):
        k = 0
        while k < len(knots) - 2 and point > knots[k + 1]:
            k += 1
        width = knots[k + 1] - knots[k]
        left, right = (knots[k + 1] - point) / width, (point - knots[k]) / width
        out[m] = left * values[k] + right * values[k + 1]
        out[m] += ((left**3 - left) * bend[k] + (right**3 - right) * bend[k + 1]) * width**2 / 6
    return out


def example():
    knots = np.array([0.0, 0.9, 2.1, 3.0, 4.2])
    return knots, np.sin(knots), np.array([0.4, 1.3, 2.6, 3.9])
