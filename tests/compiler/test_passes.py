"""Passes over graphs: each does what it says, and none changes what a graph computes."""

from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.compiler import passes
from tests.support.cases import CASES, DIFFERENTIABLE
from tests.support.marks import one_in

STAGED = [case for case in CASES if not case.needs_values]
STAGED_DERIVATIVES = [case for case in DIFFERENTIABLE if not case.needs_values][::2]
few = settings(max_examples=1)


def names(graph):
    return [equation.primitive.name for equation in graph.equations]


def draw(case, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    return case.sample(rng, data.draw(case.shapes, label="shapes"))


def same_bits(actual, expected):
    for one, other in zip(ft.tree.leaves(actual), ft.tree.leaves(expected), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            signs = np.signbit(one) == np.signbit(other)
            assert np.all(signs | np.isnan(one))  # the sign of a nan says nothing


def close(actual, expected):
    for one, other in zip(ft.tree.leaves(actual), ft.tree.leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def gradient(case, args):
    """The pullback of ones, of the real arguments."""
    function, reals = case.of_reals(args)

    def total(*reals):
        return sum(np.sum(np.real(leaf)) for leaf in ft.tree.leaves(function(*reals)))

    return ft.grad(total, argnums=tuple(range(len(reals)))), reals


@pytest.mark.parametrize("case", STAGED, ids=attrgetter("name"))
@few
@given(data=st.data())
def test_a_function_is_what_it_was(case, data):
    args = draw(case, data)
    graph = ft.make_graph(case.function)(*args)
    expected = graph(*args)
    exact, optimized = passes.optimize(graph, 1), passes.optimize(graph)
    exact.check()
    optimized.check()
    same_bits(exact(*args), expected)
    close(optimized(*args), expected)


@pytest.mark.parametrize("case", one_in(3, STAGED_DERIVATIVES), ids=attrgetter("name"))
@few
@given(data=st.data())
def test_a_gradient_is_what_it_was(case, data):
    derivative, reals = gradient(case, draw(case, data))
    graph = ft.make_graph(derivative)(*reals)
    expected = graph(*reals)
    exact, optimized = passes.optimize(graph, 1), passes.optimize(graph)
    exact.check()
    optimized.check()
    assert len(optimized.equations) <= len(graph.equations)
    same_bits(exact(*reals), expected)
    close(optimized(*reals), expected)


SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1e308])


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x * 1, []),
        (lambda x: 1.0 * x, []),
        (lambda x: np.ones(9) * x, []),
        (lambda x: x / 1, []),
        (lambda x: x**1, []),
        (lambda x: x - 0.0, []),
        (lambda x: x + -0.0, []),
        (lambda x: np.negative(-x), []),
        (lambda x: +x, []),
        (lambda x: x.astype(float), []),
        (lambda x: np.conj(x.real), []),
        (lambda x: x * -1, ["negative"]),
        (lambda x: x + x, ["multiply"]),
        (lambda x: x + (-x), ["subtract"]),
        (lambda x: x - (-x), ["multiply"]),
        (lambda x: x.reshape(3, 3).T.T.reshape(9), []),
        (lambda x: x[:, None][:, 0], []),
        (lambda x: x + 0.0, ["add"]),
        (lambda x: x - -0.0, ["subtract"]),
        (lambda x: x * 0.0, ["multiply"]),
        (lambda x: x * np.broadcast_to(2.0, 9), ["multiply"]),
        (lambda x: np.sin(x) * np.sin(x), ["sin", "multiply"]),
        (lambda x: (x + 1) * (1 + x), ["add", "multiply"]),
        (lambda x: x * np.sin(np.arange(9.0)), ["multiply"]),
    ],
)
def test_identities_that_hold_for_every_number(function, left):
    graph = ft.make_graph(function)(SPECIAL)
    simpler = passes.optimize(graph, 1)
    simpler.check()
    assert names(simpler) == left
    with np.errstate(all="ignore"):
        same_bits(simpler(SPECIAL), function(SPECIAL))


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x + 0.0, ["add"]),  # -0.0 becomes 0.0
        (lambda x: x**2, ["multiply"]),
        (lambda x: x**3, ["multiply", "multiply"]),
        (lambda x: 3.0 * (x * 2.0), ["multiply"]),
    ],
)
def test_identities_up_to_the_last_digit(function, left):
    graph = ft.make_graph(function)(SPECIAL)
    simpler = passes.optimize(graph, 2)
    assert names(simpler) == left
    with np.errstate(all="ignore"):
        close(simpler(SPECIAL), function(SPECIAL))


def test_identities_that_would_change_the_dtype_or_the_shape_are_left():
    numbers = np.arange(3)
    for function in (lambda n: n * 1.0, lambda n: n + np.float32(-0.0), lambda n: n[:, None] * 1):
        simpler = passes.optimize(ft.make_graph(function)(numbers))
        same_bits(simpler(numbers), function(numbers))
    wide = passes.optimize(ft.make_graph(lambda x: x * np.ones((2, 3)))(np.ones(3)))
    assert wide(np.ones(3)).shape == (2, 3)


def test_python_scalars_stay_python_scalars():
    graph = ft.make_graph(lambda x: (x * 1.0 + 2.0) * 3.0)(2.0)
    simpler = passes.optimize(graph)
    assert simpler.outputs[0].spec.weak
    assert type(simpler(2.0)) is float


def test_dead_code_goes():
    def function(x):
        np.exp(x)
        return np.sin(x)

    assert names(passes.optimize(ft.make_graph(function)(np.ones(2)))) == ["sin"]


def test_large_constants_are_not_computed_ahead():
    large = np.arange(3.0)
    graph = ft.make_graph(lambda x: np.sum(x) + np.broadcast_to(large, (10**5, 3)).sum())(large)
    assert (
        sum(value.size for value in map(np.asarray, passes.optimize(graph).constants.values())) < 99
    )


def test_stop_gradient_survives():
    graph = ft.make_graph(lambda x: np.sum(ft.stop_gradient(x) * x))(np.ones(2))
    np.testing.assert_array_equal(ft.grad(passes.optimize(graph))(np.array([3.0, 4.0])), [3.0, 4.0])


def test_derivatives_of_the_optimized_graph_are_those_of_the_function():
    def function(x):
        return np.sum(np.maximum(x * 1, 0) ** 2 + x**3 - np.abs(x) * np.ones(3))

    x = np.array([-1.0, 0.0, 2.0])
    graph = passes.optimize(ft.make_graph(function)(x))
    np.testing.assert_allclose(ft.grad(graph)(x), ft.grad(function)(x))
    np.testing.assert_allclose(ft.hessian(graph)(x), ft.hessian(function)(x))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b, v: a @ b @ v, ((30, 40), (40, 50), (50,))),
        (lambda v, a, b: v @ (a @ b), ((30,), (30, 40), (40, 50))),
        (lambda a, b, c: a @ (b @ c), ((2, 40), (40, 50), (50, 60))),
        (lambda a, b, c: (a @ b) @ c, ((60, 50), (50, 40), (40, 2))),
        (lambda a, b, c, v: a @ b @ c @ v, ((20, 30), (30, 40), (40, 20), (20,))),
    ],
)
def test_products_in_the_cheapest_order(function, shapes):
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape) for shape in shapes]
    graph = ft.make_graph(function)(*args)
    ordered = passes.optimize(graph)
    ordered.check()
    largest = [max(v.spec.size for e in g.equations for v in e.outputs) for g in (graph, ordered)]
    assert largest[1] <= 120 < largest[0]
    np.testing.assert_allclose(ordered(*args), function(*args), rtol=1e-10)
    assert len(ordered.equations) == len(graph.equations)


def test_products_that_are_used_twice_or_stacked_stay():
    def function(a, b, v):
        product = a @ b
        return product @ v, product

    args = (np.ones((3, 4)), np.ones((4, 5)), np.ones(5))
    assert names(passes.optimize(ft.make_graph(function)(*args))) == ["matmul", "matmul"]
    stacked = passes.optimize(ft.make_graph(lambda a, b, c: a @ b @ c)(*[np.ones((2, 3, 3))] * 3))
    assert stacked(*[np.ones((2, 3, 3))] * 3).shape == (2, 3, 3)


def test_rules_of_users_keep_their_arrays():
    from functrans.ops.families import elementwise

    shifted = elementwise(None, 1, 1, impl=lambda x, y: x + y.astype(x.dtype), name="shifted")
    graph = ft.make_graph(lambda x: shifted(x, np.ones(3)))(np.zeros(3))
    np.testing.assert_array_equal(passes.optimize(graph)(np.zeros(3)), 1.0)


def test_level_zero_changes_nothing():
    graph = ft.make_graph(lambda x: x * 1)(np.ones(2))
    assert passes.optimize(graph, 0) is graph


def test_a_gradient_loses_what_differentiation_left():
    graph = ft.make_graph(ft.grad(lambda x: np.sum(x * x)))(np.ones(2))
    assert str(passes.optimize(graph)) == (
        "graph(x: float64[2]) -> float64[2]:\n    a: float64[2] = multiply(2, x)\n    return a"
    )
