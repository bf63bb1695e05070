"""The machinery behind the transforms: primitives with several outputs, tables of rules, graphs."""

import numpy as np
import pytest

import functrans as ft
from functrans.core.primitive import Primitive
from functrans.core.tracer import FUNCTIONS, UFUNCS
from functrans.interpreters.tape import sweep
from functrans.transforms import derivatives


def _sincos_pull(g, saved):
    sine, cosine = saved
    g_sine, g_cosine = g
    total = 0.0
    if g_sine is not None:
        total = total + g_sine * cosine
    if g_cosine is not None:
        total = total - g_cosine * sine
    return total


sincos = Primitive(
    "sincos",
    lambda x: (np.sin(x), np.cos(x)),
    outputs=2,
    jvp=lambda out, args, tangents, params: (out[1] * tangents[0], -out[0] * tangents[0]),
    vjp=lambda mask, out, args, params: (_sincos_pull, out),
    batch=lambda primitive, args, batched, size, params: primitive(*args),
    shape=lambda specs, params: (specs[0], specs[0]),
)


def both(x):
    sine, cosine = sincos(x)
    return np.sum(sine * sine * cosine)


def plain(x):
    return np.sum(np.sin(x) ** 2 * np.cos(x))


X = np.linspace(-1.0, 2.0, 5)


@pytest.mark.parametrize(
    "transform",
    [
        ft.grad,
        ft.hessian,
        lambda f: ft.grad(lambda x: np.sum(ft.grad(f)(x) ** 2)),
        lambda f: ft.jacfwd(ft.grad(f)),
        lambda f: lambda x: ft.jvp(f, (x,), (np.ones_like(x),))[1],
        lambda f: lambda x: ft.linearize(f, x)[1](np.ones_like(x)),
        lambda f: ft.vmap(ft.grad(f)),
        lambda f: ft.grad(lambda x: np.sum(ft.vmap(f)(x))),
    ],
)
def test_an_operation_with_two_results_transforms_like_two_operations(transform):
    np.testing.assert_allclose(transform(both)(X), transform(plain)(X), rtol=1e-12, atol=1e-12)


def test_only_one_of_two_results_may_be_used():
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(sincos(x)[1]))(X), -np.sin(X))


def test_an_operation_with_two_results_is_one_equation():
    graph = ft.make_graph(both)(X)
    graph.check()
    assert "= sincos(x)" in str(graph)
    np.testing.assert_allclose(graph(X), plain(X))


def test_pruning_drops_what_no_output_needs():
    graph = ft.make_graph(lambda x: (np.exp(x) * np.arange(5.0), np.sin(x))[1])(X)
    assert len(graph.equations) == 3
    pruned = graph.pruned()
    pruned.check()
    assert [equation.primitive.name for equation in pruned.equations] == ["sin"]
    assert not pruned.constants
    np.testing.assert_array_equal(pruned(X), np.sin(X))


def test_every_ufunc_in_the_table_is_a_ufunc_and_every_function_is_callable():
    assert all(isinstance(ufunc, np.ufunc) for ufunc in UFUNCS)
    for key, handler in FUNCTIONS.items():
        assert callable(handler)
        if isinstance(key, str):  # a method of all ufuncs
            key = (np.add, key)
        function, method = key if isinstance(key, tuple) else (key, None)
        assert callable(function) and (method is None or hasattr(function, method))


def test_a_rule_saves_what_it_names_and_nothing_else():
    from functrans.ops import elementwise

    marks = {"out": object(), "x": object(), "y": object()}
    for primitive, mask, kept in (
        (elementwise.exp, 1, "out"),
        (elementwise.sin, 1, "x"),
        (elementwise.multiply, 1, "y"),
        (elementwise.multiply, 2, "x"),
    ):
        save, _ = primitive.rules[mask]
        arity = len(primitive.rules).bit_length() - 1
        saved = save(*[marks[name] for name in ("out", "x", "y")[: arity + 1]])
        assert saved is marks[kept]
    for mask in (1, 2, 3):
        assert elementwise.add.rules[mask][0] is None


def test_gradients_do_not_share_memory_with_each_other_or_with_the_arguments():
    def f(x, y, z):
        total = x + y
        return np.sum(total * total) + np.sum(z) + np.sum(np.ravel(z) * np.ravel(z))

    x, y, z = np.ones(3), np.ones(3), np.ones((2, 2))
    gradients = ft.grad(f, argnums=(0, 1, 2))(x, y, z)
    arrays = [*gradients, x, y, z]
    for k, first in enumerate(arrays):
        for second in arrays[k + 1 :]:
            assert not np.shares_memory(first, second)
    for gradient in gradients:
        gradient *= 2  # a gradient may be changed in place


def test_a_pullback_does_not_hand_back_its_own_argument():
    _, pullback = ft.vjp(lambda x: x + 0.0, np.ones(3))
    cotangent = np.ones(3)
    (gradient,) = pullback(cotangent)
    assert not np.shares_memory(gradient, cotangent)


def test_names_and_docstrings_of_the_wrapped_function_are_kept():
    def loss(x):
        """The loss."""
        return np.sum(x)

    for transform in (
        ft.grad,
        ft.value_and_grad,
        ft.vmap,
        ft.jacfwd,
        ft.jacrev,
        ft.jacobian,
        ft.hessian,
        ft.make_graph,
    ):
        wrapped = transform(loss)
        assert wrapped.__name__ == "loss"
        assert "`loss`" in wrapped.__doc__.splitlines()[0]
        assert wrapped.__doc__.endswith("The loss.")


def test_the_textbook_call_records_one_operation(monkeypatch):
    lengths = []
    monkeypatch.setattr(
        derivatives,
        "sweep",
        lambda records, *rest: (lengths.append(len(records)), sweep(records, *rest)),
    )
    assert ft.grad(np.sin)(1.0) == np.cos(1.0)
    assert lengths == [1]
