"""One function under every transform, compared with what it does to plain NumPy arrays.

The function takes one array and returns a list of arrays. It runs on a copy of the array first, which
is what all the rest is compared with; derivatives are compared with numerical ones.
"""

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import (
    assert_trees_close,
    inner_product,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jvp,
)

VECTOR = np.array([0.7, -0.4, 1.3, 0.2, -1.1])
MATRIX = np.array([[0.7, -0.4, 1.3], [0.2, -1.1, 0.6]])
SQUARE = np.array([[0.7, -0.4, 1.3], [0.2, -1.1, 0.6], [-0.9, 0.5, 1.6]])
CUBE = np.linspace(-1.0, 1.3, 12).reshape(2, 3, 2)
COMPLEX = np.array([0.7 - 0.2j, -0.4 + 1.1j, 0.3 + 0.9j])

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def collect(cases):
    """A decorator that puts a function of one array into a list of cases.

    The function gets a copy of the array. The options are those of check_everywhere.
    """

    def case(x, **options):
        def register(function):
            def of_a_copy(x):
                return function(x.copy())

            cases.append(pytest.param(of_a_copy, x, options, id=function.__name__))
            return function

        return register

    return case


def direction(rng, tree):
    """Random leaves of the same structure, shapes and kinds."""

    def along(leaf):
        real = rng.uniform(-1.0, 1.0, np.shape(leaf))
        return real + 1j * rng.uniform(-1.0, 1.0, np.shape(leaf)) if np.iscomplexobj(leaf) else real

    return map_leaves(along, tree)


def lanes_like(x):
    """Three lanes of different values, the first of them `x`."""
    return np.stack([x, 0.3 - 0.7 * x, 0.9 * x + 0.05])


def weighted_loss(function, weights):
    """A real number that depends on every output, with a curvature even if `function` is linear."""

    def part(weight, out):
        if np.iscomplexobj(weight):
            out = out * np.conj(out)
            return np.sum(np.abs(weight) * out.real)
        return np.sum(weight * out + out * out)

    def loss(x):
        return sum(part(w, out) for w, out in zip(weights, function(x), strict=True))

    return loss


def check_values(function, x, expected):
    tangent = direction(np.random.default_rng(1), x)
    assert_trees_close(ft.jvp(function, (x,), (tangent,))[0], expected, **EXACT, dtypes=True)
    assert_trees_close(ft.vjp(function, x)[0], expected, **EXACT, dtypes=True)
    assert_trees_close(ft.linearize(function, x)[0], expected, **EXACT, dtypes=True)


def check_derivatives(function, reference, x, analytic=False):
    rng = np.random.default_rng(2)
    tangent = direction(rng, x)
    out, pushed = ft.jvp(function, (x,), (tangent,))
    assert_trees_close(pushed, numerical_jvp(reference, (x,), (tangent,), analytic))
    assert_trees_close(ft.linearize(function, x)[1](tangent), pushed, **EXACT)
    cotangent = direction(rng, out)
    pullback = ft.vjp(function, x)[1]
    (pulled,) = pullback(cotangent)
    assert_trees_close(pullback(cotangent), (pulled,), rtol=0, atol=0)
    np.testing.assert_allclose(
        np.real(inner_product(pushed, cotangent)), np.real(inner_product(tangent, pulled)), **EXACT
    )
    loss = weighted_loss(function, cotangent)
    gradient = numerical_gradient(weighted_loss(reference, cotangent), (x,), analytic)[0]
    assert_trees_close(ft.grad(loss)(x), gradient)


def check_second_derivatives(function, x):
    rng = np.random.default_rng(3)
    tangent = direction(rng, x)
    loss = weighted_loss(function, direction(rng, function(x.copy())))
    expected = numerical_jvp(ft.grad(loss), (x,), (tangent,))
    assert_trees_close(ft.jvp(ft.grad(loss), (x,), (tangent,))[1], expected, 1e-5, 1e-6)
    slope = lambda x: np.real(np.sum(tangent * ft.grad(loss)(x)))
    assert_trees_close(ft.grad(slope)(x), expected, 1e-5, 1e-6)


def check_lanes(function, reference, x):
    batch = lanes_like(x)
    copying = lambda lane: reference(lane.copy())
    assert_trees_close(ft.vmap(function)(batch), loop_vmap(copying)(batch), **EXACT, dtypes=True)
    last = np.moveaxis(batch, 0, -1).copy()
    mapped = ft.vmap(function, in_axes=-1, out_axes=-1)(last)
    assert_trees_close(mapped, loop_vmap(copying, -1, -1)(last), **EXACT, dtypes=True)


def check_lanes_and_derivatives(function, x):
    batch = lanes_like(x)
    loss = weighted_loss(function, direction(np.random.default_rng(4), function(x.copy())))
    expected = loop_vmap(ft.grad(loss))(batch)
    assert_trees_close(ft.vmap(ft.grad(loss))(batch), expected, **EXACT)
    assert_trees_close(ft.grad(lambda b: np.sum(ft.vmap(loss)(b)))(batch), expected, **EXACT)
    tangents = direction(np.random.default_rng(5), batch)
    push = lambda x, t: ft.jvp(loss, (x,), (t,))[1]
    assert_trees_close(
        ft.vmap(push)(batch, tangents), ft.jvp(ft.vmap(loss), (batch,), (tangents,))[1], **EXACT
    )


def check_graphs(function, reference, x):
    graph = ft.make_graph(function)(x)
    graph.check()
    for other in lanes_like(x):
        expected = reference(other.copy())
        # Twice: a graph that changed its constants would show it in the second run.
        for _ in range(2):
            assert_trees_close(graph(other), expected, **EXACT, dtypes=True)
    foreseen = ft.eval_shape(function, x)
    assert [(s.shape, s.dtype) for s in foreseen] == [(np.shape(e), e.dtype) for e in expected]
    loss = weighted_loss(function, direction(np.random.default_rng(6), expected))
    gradient = ft.grad(loss)(x)
    assert_trees_close(ft.grad(ft.make_graph(loss)(x))(x), gradient, **EXACT)
    assert_trees_close(ft.make_graph(ft.grad(loss))(x)(x), gradient, **EXACT)


def check_everywhere(function, x, reference=None, staged=True, analytic=False):
    """`function` gives NumPy's values and the right derivatives under every transform.

    `reference` is the same function for plain arrays, if `function` cannot take them. What is not
    `staged` has shapes that depend on values. `analytic` functions are compared by complex steps.
    """
    reference = reference or function
    original = x.copy()
    expected = reference(x.copy())
    check_values(function, x, expected)
    check_derivatives(function, lambda x: reference(x.copy()), x, analytic)
    check_second_derivatives(function, x)
    check_lanes(function, reference, x)
    check_lanes_and_derivatives(function, x)
    if staged:
        check_graphs(function, reference, x)
    assert x.tobytes() == original.tobytes(), "the caller's array was changed"
