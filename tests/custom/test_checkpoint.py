"""checkpoint: what is kept, what is computed again, and that nothing else changes.

That its derivatives are right under every transform is in test_structured_control_flow.py.
"""

import tracemalloc

import numpy as np
import pytest

import functrans as ft
from functrans.ops import contraction
from tests.support.everywhere import EXACT, SQUARE, VECTOR, lanes_like
from tests.support.oracles import assert_trees_close, loop_vmap, numerical_jvp

POLICIES = [
    None,
    ft.checkpoint_policies.save_nothing,
    ft.checkpoint_policies.save_matmuls,
    ft.checkpoint_policies.save_names("hidden"),
]


def counting(name="count"):
    """A primitive, x + 1, that counts how often it runs."""
    calls = []

    def impl(x):
        calls.append(1)
        return x + 1.0

    return calls, ft.define_primitive(
        name, impl, jvp=lambda out, x, t: t[0], shape=lambda spec: spec
    )


def test_reverse_mode_computes_again_and_nothing_else_does():
    calls, step = counting()
    f = ft.checkpoint(lambda x: np.sin(step(x)))
    f(1.0)
    assert len(calls) == 1
    calls.clear()
    ft.jvp(f, (1.0,), (1.0,))
    assert len(calls) == 1
    calls.clear()
    ft.grad(f)(1.0)
    assert len(calls) == 2
    calls.clear()
    ft.grad(lambda x: np.sin(step(x)))(1.0)
    assert len(calls) == 1


def test_policies_say_what_is_computed_again(monkeypatch):
    products = []
    product = contraction.matmul.impl
    monkeypatch.setattr(
        contraction.matmul, "impl", lambda *args: (products.append(args), product(*args))[1]
    )
    others, hidden = counting("other")
    matrix = np.eye(len(VECTOR))
    f = lambda x: np.sum(np.sin(np.exp(x @ matrix)) * ft.checkpoint_name(hidden(x), "hidden") ** 2)
    counts = []
    for policy in POLICIES:
        products.clear()
        others.clear()
        gradient = ft.grad(ft.checkpoint(f, policy=policy))(VECTOR)
        counts.append((len(products), len(others)))
        assert_trees_close(gradient, ft.grad(f)(VECTOR), **EXACT)
    assert counts == [(2, 2), (2, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("policy", POLICIES)
def test_closures_branches_and_keywords(policy):
    def make(checkpoint):
        def f(w, x, sign=1.0):
            def layer(x, flip=False, name="layer"):
                if np.sum(x) > 0:  # a Python branch, by values
                    return np.tanh(x @ w) * sign
                return np.cos(x) @ w**2 * (-1 if flip else 1)

            layer = checkpoint(layer)
            return np.sum(layer(layer(x), flip=True) ** 2)

        return f

    plain, ours = make(lambda f: f), make(ft.checkpoint(policy=policy))
    batch = lanes_like(VECTOR[:3])
    for x in batch:
        expected = ft.grad(plain, (0, 1, 2))(SQUARE, x, 0.5)
        assert_trees_close(ft.grad(ours, (0, 1, 2))(SQUARE, x, 0.5), expected, **EXACT)
    mapped = ft.vmap(ft.grad(ours), (None, 0))(SQUARE, batch)
    assert_trees_close(mapped, loop_vmap(ft.grad(plain), (None, 0))(SQUARE, batch), **EXACT)
    total = lambda f: lambda w: np.sum(ft.vmap(f, (None, 0))(w, batch))
    assert_trees_close(ft.grad(total(ours))(SQUARE), ft.grad(total(plain))(SQUARE), **EXACT)


@pytest.mark.parametrize("policy", POLICIES)
def test_tangents_of_several_results(policy):
    def f(w, x):
        hidden = ft.checkpoint_name(np.tanh(w @ x), "hidden")
        return np.sum(hidden), np.sin(hidden) * x, w @ hidden

    args, tangents = (SQUARE, VECTOR[:3]), (np.cos(SQUARE), np.arange(1.0, 4.0))
    expected = numerical_jvp(f, args, tangents)
    graph = ft.make_graph(ft.checkpoint(f, policy=policy))(*args)
    out, tangent = ft.jvp(graph, args, tangents)
    assert_trees_close(out, f(*args), **EXACT)
    assert_trees_close(tangent, expected)
    # And around reverse mode, which records the call: the same as without a checkpoint.
    loss = lambda f: lambda *args: sum(np.sum(out * out) for out in f(*args))
    gradient = lambda f: ft.grad(loss(f), (0, 1))
    curvature = ft.jvp(gradient(ft.checkpoint(f, policy=policy)), args, tangents)[1]
    assert_trees_close(curvature, ft.jvp(gradient(f), args, tangents)[1], **EXACT)
    assert_trees_close(curvature, numerical_jvp(gradient(f), args, tangents), 1e-5, 1e-6)


def peak_memory(run):
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def chain(depth, part):
    """A gradient through `depth` layers, checkpointed in parts of a given length."""
    layer = lambda x: np.sin(np.tanh(x) * 1.1)

    def layers(count, x):
        for _ in range(count):
            x = layer(x)
        return x

    def f(x):
        for _ in range(depth // part):
            x = ft.checkpoint(lambda x: layers(part, x))(x) if part > 1 else layer(x)
        return np.sum(x)

    return f


def test_sqrt_n_checkpoints_take_sqrt_n_memory():
    x = np.linspace(0, 1, 4000)
    gradient = lambda depth, part: lambda: ft.grad(chain(depth, part))(x)
    np.testing.assert_allclose(gradient(256, 16)(), gradient(256, 1)(), rtol=1e-12)
    plain, ours = peak_memory(gradient(256, 1)), peak_memory(gradient(256, 16))
    assert ours < 0.2 * plain
    # Four times as deep: four times the memory without, about twice with checkpoints.
    assert peak_memory(gradient(64, 1)) < 0.3 * plain
    assert ours < 2.6 * peak_memory(gradient(64, 8))


def test_nested_checkpoints_take_less():
    x = np.linspace(0, 1, 4000)
    layer = lambda x: np.sin(np.tanh(x) * 1.1)

    def nested(x, levels):
        if levels == 0:
            return layer(x)
        part = ft.checkpoint(lambda x: nested(x, levels - 1))
        for _ in range(4):
            x = part(x)
        return x

    deep = ft.grad(lambda x: np.sum(nested(x, 4)))
    np.testing.assert_allclose(deep(x), ft.grad(chain(256, 1))(x), rtol=1e-12)
    assert peak_memory(lambda: deep(x)) < peak_memory(lambda: ft.grad(chain(256, 16))(x))


def test_options():
    with pytest.raises(ft.errors.OptionError, match="policy"):
        ft.checkpoint(np.sin, policy="everything")
    with pytest.raises(ft.errors.InputTypeError, match="function"):
        ft.checkpoint(3)

    @ft.remat(policy=ft.checkpoint_policies.save_matmuls)
    def f(x):
        """Its own words."""
        return x

    assert f.__doc__.endswith("Its own words.")
    assert float(ft.checkpoint_name(np.float64(2.0), "a")) == 2.0


def test_loops_with_python_branches_in_a_checkpoint():
    def f(x):
        step = lambda c, u: ((c * u if u > 0 else c - u), None)
        c = ft.scan(step, 1.0, x)[0]
        c = ft.while_loop(
            lambda c: c > 0.3, lambda c: c * 0.5 if c > 1 else c - x[0] * 0.2, c + 2.0
        )
        return ft.cond(c > 0, lambda c: c * x[1] if c > 0.1 else np.sin(c), lambda c: -(c**2), c)

    for x in lanes_like(np.abs(VECTOR)):
        x = np.abs(x)
        assert_trees_close(ft.grad(ft.checkpoint(f))(x), ft.grad(f)(x), **EXACT)


@pytest.mark.parametrize("policy", POLICIES)
def test_custom_rules_with_python_branches_in_a_checkpoint(policy):
    @ft.custom_jvp
    def bent(x):
        return x**3 if x > 0 else x**2

    @bent.defjvp
    def bent_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        return bent(x), (3 * x**2 if x > 0 else 2 * x) * t

    f = ft.checkpoint(lambda x: x * bent(x), policy=policy)
    for x, second, third in ((2.0, 12 * 4.0, 24 * 2.0), (-1.5, 6 * -1.5, 6.0)):  # of x⁴ and x³
        of_second_order = [
            ft.hessian(f),
            ft.grad(ft.grad(f)),
            ft.jacrev(ft.jacfwd(f)),
            lambda x: ft.linearize(ft.grad(f), x)[1](1.0),
        ]
        for derivative in of_second_order:
            np.testing.assert_allclose(derivative(x), second)
            np.testing.assert_allclose(ft.jacfwd(derivative)(x), third)
        slopes = [ft.grad(f)(x + h) for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(ft.hessian(f)(x), (slopes[0] - slopes[1]) / 2e-5, rtol=1e-6)
    both = np.array([2.0, -1.5])  # a branch for each lane
    np.testing.assert_allclose(ft.vmap(ft.hessian(f))(both), [48.0, -9.0])
    with pytest.raises(ft.errors.StagingError, match="if x > 0"):  # nobody knows x there
        ft.make_graph(ft.hessian(f))(2.0)
