"""Regression by a Gaussian process with a squared exponential kernel."""

import numpy as np


def program(inputs, targets, log_parameters):
    """The log marginal likelihood of the targets."""
    scale, length, noise = np.exp(log_parameters)
    n = len(inputs)
    kernel = np.empty((n, n), like=inputs)
    for i in range(n):
        kernel[i] = scale**2 * np.exp(-0.5 * ((inputs[i] - inputs) / length) ** 2)
    kernel[np.diag_indices(n)] += noise**2
    factor = np.linalg.cholesky(kernel)
    whitened = np.linalg.solve(factor, targets)
    log_determinant = np.linalg.slogdet(kernel)[1]
    return -0.5 * (whitened @ whitened + log_determinant + n * np.log(2 * np.pi))


def example():
    inputs = np.array([-1.0, -0.3, 0.2, 0.9, 1.7])
    return inputs, np.sin(2 * inputs) + 0.1, np.array([0.1, -0.4, -1.2])
