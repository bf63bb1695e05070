"""Numerical programs in plain NumPy are differentiated and batched without changing a line.

All arguments are differentiated, or mapped, at once: a program makes its arrays like one of them, and
whether that one is traced is the caller's choice.
"""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import functrans as ft
from tests.support import programs
from tests.support.oracles import (
    assert_trees_close,
    inner_product,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jacobian,
    numerical_jvp,
)

NAMES = sorted(module.name for module in pkgutil.iter_modules(programs.__path__))
MODULES = [importlib.import_module(f"tests.support.programs.{name}") for name in NAMES]

for_each_program = pytest.mark.parametrize("module", MODULES, ids=NAMES)


def random_like(tree, seed=0):
    rng = np.random.default_rng(seed)
    return map_leaves(lambda leaf: rng.uniform(-1.0, 1.0, np.shape(leaf)), tree)


def weighted(program, seed=1):
    """The outputs of a program as one number."""

    def loss(*args):
        out = program(*args)
        return np.sum(random_like(np.zeros(np.shape(out)), seed) * out)

    return loss


def lanes(args):
    """Three examples, each a little different from the others."""
    rng = np.random.default_rng(2)
    nearby = [map_leaves(lambda a: a + 0.02 * rng.normal(size=np.shape(a)), args) for _ in range(2)]
    return tuple(np.stack(column) for column in zip(args, *nearby, strict=True))


def all_of(args):
    return tuple(range(len(args)))


@for_each_program
def test_the_program_is_plain_numpy(module):
    assert "functrans" not in inspect.getsource(module)
    assert module.__doc__ and module.program.__doc__
    out = module.program(*module.example())
    assert np.all(np.isfinite(out))
    if hasattr(module, "reference"):
        assert_trees_close(out, module.reference(*module.example()), rtol=1e-9)


@for_each_program
def test_gradient(module):
    args = module.example()
    originals = [np.copy(arg) for arg in args]
    loss = weighted(module.program)
    value, gradient = ft.value_and_grad(loss, all_of(args))(*args)
    np.testing.assert_allclose(value, loss(*args), rtol=1e-12)
    assert_trees_close(gradient, numerical_gradient(loss, args), rtol=1e-5, atol=1e-6)
    for arg, original in zip(args, originals, strict=True):
        np.testing.assert_array_equal(arg, original)


@for_each_program
def test_jacobian(module):
    args = module.example()

    def of_one(index):
        return lambda arg: module.program(*args[:index], arg, *args[index + 1 :])

    expected = tuple(numerical_jacobian(of_one(i), arg) for i, arg in enumerate(args))
    for jacobian in (ft.jacrev, ft.jacfwd):
        found = jacobian(module.program, all_of(args))(*args)
        assert_trees_close(found, expected, rtol=1e-5, atol=1e-6)


@for_each_program
def test_directional_derivative_and_its_transpose(module):
    args = module.example()
    tangents = random_like(args, 3)
    out, pushed = ft.jvp(module.program, args, tangents)
    assert_trees_close(out, module.program(*args), rtol=1e-12)
    expected = numerical_jvp(module.program, args, tangents)
    assert_trees_close(pushed, expected, rtol=1e-5, atol=1e-6)
    cotangent = random_like(np.zeros(np.shape(out)), 4)
    pulled = ft.vjp(module.program, *args)[1](cotangent)
    np.testing.assert_allclose(
        inner_product(pushed, cotangent), inner_product(tangents, pulled), rtol=1e-9, atol=1e-11
    )


@for_each_program
def test_second_derivative(module):
    args = module.example()
    tangents = random_like(args, 5)
    gradient = ft.grad(weighted(module.program), all_of(args))
    expected = numerical_jvp(gradient, args, tangents)
    assert_trees_close(ft.jvp(gradient, args, tangents)[1], expected, rtol=1e-4, atol=1e-5)


@for_each_program
def test_lanes(module):
    batch = lanes(module.example())
    expected = loop_vmap(module.program)(*batch)
    assert_trees_close(ft.vmap(module.program)(*batch), expected, rtol=1e-9, atol=1e-11)


@for_each_program
def test_gradients_of_lanes(module):
    batch = lanes(module.example())
    loss = weighted(module.program)
    expected = loop_vmap(lambda *args: numerical_gradient(loss, args))(*batch)
    gradient = ft.vmap(ft.grad(loss, all_of(batch)))(*batch)
    assert_trees_close(gradient, expected, rtol=1e-5, atol=1e-6)
    total = lambda *batch: np.sum(ft.vmap(loss)(*batch))
    assert_trees_close(ft.grad(total, all_of(batch))(*batch), gradient, rtol=1e-9, atol=1e-11)
