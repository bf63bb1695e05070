"""The same programs in JAX and in HIPS autograd, where installed: the answers are the same."""

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import assert_trees_close, map_leaves

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def jax():
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.fixture(scope="module")
def autograd():
    return pytest.importorskip("autograd")


def rosenbrock(np, x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic_regression(np, x):
    inputs = np.array([[0.5, 1.0, -1.0, 2.0], [1.5, -0.3, 0.2, 0.1], [-1.0, 0.4, 0.9, -0.7]])
    signs = np.array([1.0, -1.0, 1.0])
    return np.sum(np.logaddexp(0.0, -signs * (inputs @ x))) + 0.1 * np.sum(x**2)


def softmax_entropy(np, x):
    shifted = x - np.max(x)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted)))
    return -np.sum(np.exp(log_probabilities) * log_probabilities)


def network(np, x):
    first, second = x[:2, None] * np.ones((2, 3)), x[2:]
    hidden = np.tanh(np.array([[0.3, -0.6], [1.0, 0.2]]) @ first + second[0])
    return np.sum(np.maximum(hidden @ np.array([1.0, -2.0, 0.5]) * second[1], 0.0) ** 2)


def gaussian_log_density(np, x):
    scale = np.exp(x[2:])
    return -np.sum(0.5 * ((x[:2] - np.array([0.3, -0.4])) / scale) ** 2 + np.log(scale))


def pairwise_energy(np, x):
    points = np.reshape(x, (2, 2))
    difference = points[:, None, :] - points[None, :, :]
    squared = np.sum(difference**2, axis=-1) + np.eye(2)
    return np.sum(np.triu(squared**-3 - squared**-1.5, 1))


def einsum_chain(np, x):
    matrix = np.outer(np.sin(x), np.cos(x))
    return np.einsum("ij,jk,ki->", matrix, matrix + np.eye(4), matrix) + np.trace(matrix)


def cumulative(np, x):
    return np.sum(np.cumsum(np.exp(-x)) ** 2 / np.arange(1.0, 5.0))


def sorting(np, x):
    return np.sum(np.sort(x) * np.array([1.0, -2.0, 3.0, 0.5])) + np.max(x) * np.min(x)


def indexing(np, x):
    return x[0] * x[-1] + np.sum(x[::-2] ** 3) + np.sum(x[np.array([0, 0, 2])] * x[1])


def piecewise(np, x):
    return np.sum(np.where(x > 0, x**3, np.sinh(x)) + np.abs(x) * np.clip(x, -0.5, 0.5))


def power_iteration(np, x):
    matrix = np.outer(x, x) + np.diag(np.array([1.0, 2.0, 3.0, 4.0]))
    vector = np.ones(4)
    for _ in range(5):
        vector = matrix @ vector
        vector = vector / np.sqrt(np.sum(vector**2))
    return vector @ matrix @ vector


def recurrence(np, x):
    state = x[0]
    for k in range(10):
        state = np.tanh(x[1] * state + x[2] * np.sin(0.3 * k) + x[3])
    return state**2


def statistics(np, x):
    return (
        np.var(x)
        + np.std(x) * np.mean(x)
        + np.prod(x)
        + np.sum(np.concatenate([x, x**2]).reshape(2, 4) ** 2)
    )


def elementary(np, x):
    unit = np.tanh(x) * 0.9
    return np.sum(
        np.arcsin(unit) * np.arctan2(x, 2.0)
        + np.log1p(x**2) * np.expm1(unit)
        + np.arctan(x) / (2 + unit)
    )


PROGRAMS = {
    f.__name__: f
    for f in (
        rosenbrock,
        logistic_regression,
        softmax_entropy,
        network,
        gaussian_log_density,
        pairwise_energy,
        einsum_chain,
        cumulative,
        sorting,
        indexing,
        piecewise,
        power_iteration,
        recurrence,
        statistics,
        elementary,
    )
}
EACH_PROGRAM = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
X = np.array([0.7, -0.4, 1.3, 0.2])
V = np.array([0.5, 1.0, -0.25, 2.0])
BATCH = np.stack([X, X[::-1] * 0.9, X + np.array([0.1, 0.2, 0.3, 0.4])])


def ours(program):
    return lambda x: program(np, x)


def agree(actual, expected):
    assert_trees_close(actual, map_leaves(np.asarray, expected), rtol=1e-9, atol=1e-10)


@EACH_PROGRAM
def test_jax_agrees_on_value_and_grad(jax, program):
    theirs = jax.value_and_grad(lambda x: program(jax.numpy, x))
    agree(ft.value_and_grad(ours(program))(X), theirs(X))


@EACH_PROGRAM
def test_jax_agrees_on_jvp(jax, program):
    agree(ft.jvp(ours(program), (X,), (V,)), jax.jvp(lambda x: program(jax.numpy, x), (X,), (V,)))


@EACH_PROGRAM
def test_jax_agrees_on_vmap_of_grad(jax, program):
    theirs = jax.vmap(jax.grad(lambda x: program(jax.numpy, x)))
    agree(ft.vmap(ft.grad(ours(program)))(BATCH), theirs(BATCH))


@EACH_PROGRAM
def test_jax_agrees_on_the_hessian(jax, program):
    agree(ft.hessian(ours(program))(X), jax.hessian(lambda x: program(jax.numpy, x))(X))


@EACH_PROGRAM
def test_autograd_agrees_on_value_and_grad(autograd, program):
    import autograd.numpy as anp

    theirs = autograd.value_and_grad(lambda x: program(anp, x))
    agree(ft.value_and_grad(ours(program))(X), theirs(X))


@EACH_PROGRAM
def test_autograd_agrees_on_the_hessian(autograd, program):
    import autograd.numpy as anp

    agree(ft.hessian(ours(program))(X), autograd.hessian(lambda x: program(anp, x))(X))
