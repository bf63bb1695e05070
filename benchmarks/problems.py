"""Functions that several benchmarks compute. `xp` is the array namespace of a contestant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np


def scalar_chain(xp: Any, x: Any) -> Any:
    """Sixty operations on a scalar."""
    y = x
    for _ in range(6):
        y = xp.sin(y)
        y = y * x
        y = y + 1.5
        y = xp.sqrt(y)
        y = xp.log(y)
        y = y - x
        y = xp.exp(y)
        y = y / 2.0
        y = xp.tanh(y)
        y = y * y
    return y


def mlp_loss(xp: Any, params: Any, inputs: Any, targets: Any) -> Any:
    """Mean squared error of a network with tanh hidden layers, on a batch or one example."""
    activation = inputs
    for weight, bias in params[:-1]:
        activation = xp.tanh(activation @ weight + bias)
    weight, bias = params[-1]
    return xp.mean((activation @ weight + bias - targets) ** 2)


def mlp_gradient_by_hand(params: Any, inputs: Any, targets: Any) -> Any:
    """Backpropagation through `mlp_loss`, as one writes it in NumPy."""
    activations = [inputs]
    for weight, bias in params[:-1]:
        activations.append(np.tanh(activations[-1] @ weight + bias))
    weight, bias = params[-1]
    residual = activations[-1] @ weight + bias - targets
    delta = residual * residual.dtype.type(2.0 / residual.size)
    gradients = []
    for layer in reversed(range(len(params))):
        activation = activations[layer]
        gradients.append((activation.T @ delta, delta.sum(axis=0)))
        if layer:
            delta = (delta @ params[layer][0].T) * (1 - activation * activation)
    return gradients[::-1]


def rosenbrock(xp: Any, x: Any) -> Any:
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def mlp_problem(sizes: Sequence[int], batch: int, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    """Parameters, inputs and targets of a network with these layer sizes."""
    random = np.random.default_rng(0)
    draw = lambda *shape: random.standard_normal(shape).astype(dtype)
    params = [
        (draw(n_in, n_out) / dtype(np.sqrt(n_in)), draw(n_out)) for n_in, n_out in pairwise(sizes)
    ]
    return params, draw(batch, sizes[0]), draw(batch, sizes[-1])
