"""Bugs that the fuzzer found, in their smallest form: each once raised an error, or gave a wrong answer."""

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import assert_trees_close, loop_vmap

X = np.array([0.3, 0.4])
TANGENT = np.array([1.0, -2.0])
TABLE = np.sin(np.arange(27.0)).reshape(3, 3, 3)


def with_rule(wrapper):
    function = wrapper(lambda x: np.sin(x))
    if wrapper is ft.custom_vjp:
        function.defvjp(lambda x: (np.sin(x), x), lambda x, g: (np.cos(x) * g,))
    function.defjvp(lambda primals, tangents: (function(*primals), np.cos(*primals) * tangents[0]))
    return function


FUNCTIONS = {
    "checkpoint": ft.checkpoint(lambda x: np.sin(x) * x),
    "scan": lambda x: ft.scan(lambda c, row: (np.sin(c) * row, c * row), x[0], x)[1],
    "fori_loop": lambda x: ft.fori_loop(0, 3, lambda i, c: np.sin(c) * (i + 1), x),
    "while_loop": lambda x: ft.while_loop(lambda c: np.sum(c) > 0.1, lambda c: c * c, x),
    "cond": lambda x: ft.cond(np.sum(x) > 0, np.sin, np.cos, x),
    "map": lambda x: ft.map(np.sin, x),
    "custom_jvp": with_rule(ft.custom_jvp),
    "custom_vjp": with_rule(ft.custom_vjp),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_linearize_of_functions_in_one_piece_where_values_are_traced(name):
    # The value of such a function was written down with its tangent, and left in the finished graph.
    function = FUNCTIONS[name]
    pushed = lambda x: ft.linearize(function, x)[1](TANGENT)
    expected = pushed(X)
    assert_trees_close(expected, ft.jvp(function, (X,), (TANGENT,))[1], rtol=1e-13)
    assert_trees_close(ft.make_graph(pushed)(X)(X), expected, rtol=1e-13)
    assert_trees_close(ft.make_graph(lambda x: ft.linearize(function, x)[0])(X)(X), function(X))
    out, pullback = ft.vjp(pushed, X)
    assert_trees_close(out, expected, rtol=1e-13)
    assert_trees_close(pullback(TANGENT)[0], ft.grad(lambda x: TANGENT @ pushed(x))(X), rtol=1e-13)
    columns = lambda x: ft.jacfwd(function, chunk_size=1)(x)
    assert_trees_close(ft.make_graph(columns)(X)(X), ft.jacrev(function)(X), rtol=1e-13)


def test_the_transpose_of_an_index_that_is_a_python_integer_in_a_graph():
    pull = lambda x, i: ft.vjp(lambda x: x[i], x)[1](np.ones(2))[0]
    x = np.zeros((3, 2))
    expected = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert_trees_close(ft.make_graph(pull)(x, 1)(x, 1), expected)
    assert_trees_close(ft.jit(pull, backend="numpy")(x, 1), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_holds_functions_is_written_as_source(name):
    # That of a scan had the printed form of its body in the place of the body.
    written = ft.source(FUNCTIONS[name])(X).function
    assert_trees_close(written(X), FUNCTIONS[name](X), rtol=1e-13)


def test_lanes_that_disagree_about_a_branch_which_reads_a_plain_array():
    # The lanes that a branch is not meant for borrow the values of another: of a plain array by a traced
    # number, where the function is staged.
    x, y = np.array([[0.3, 0.4], [0.7, 0.2]]), np.array([[1.0, 0.5], [-1.0, -0.5]])

    def branches(x, y):
        return ft.cond(np.sum(x * y) > 0.2, lambda u: np.sin(u) * x, lambda u: u * x * x, y)

    gradient = ft.grad(lambda x: np.sum(ft.vmap(branches)(x, y)))
    expected = np.array([np.sin(y[0]), 2 * x[1] * y[1]])
    assert_trees_close(gradient(x), expected)
    assert_trees_close(ft.make_graph(gradient)(x)(x), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.take(x, [0, 0], axis=0),
        lambda x: np.take(x, 0, axis=-1),
        lambda x: np.squeeze(x, 0),
        lambda x: np.compress([True], x, axis=0),
    ],
)
def test_axes_of_a_number_where_numpy_takes_it_for_an_array_of_one(function):
    x = np.array(2.0)
    assert_trees_close(ft.vmap(function)(np.array([2.0, 3.0]))[0], function(x))
    assert_trees_close(ft.jvp(function, (x,), (x,)), (function(x), function(x)))
    with pytest.raises(np.exceptions.AxisError):
        ft.grad(lambda x: np.take(x, 0, axis=1))(x)


@pytest.mark.parametrize("wrapper", [ft.custom_jvp, ft.custom_vjp])
def test_a_branch_in_a_function_with_rules_within_a_checkpoint(wrapper):
    def branches(x):
        return np.sin(x) if np.sum(x) > 0 else x * x

    function = wrapper(branches)
    if wrapper is ft.custom_jvp:
        function.defjvp(lambda primals, tangents: ft.jvp(branches, primals, tangents))
    else:
        function.defvjp(lambda x: (branches(x), x), lambda x, g: ft.vjp(branches, x)[1](g))
    total = lambda x: np.sum(ft.checkpoint(function)(x))
    lanes = np.stack([X, -X])
    expected = np.stack([np.cos(X), -2 * X])
    assert_trees_close(ft.grad(total)(X), expected[0])
    assert_trees_close(ft.vmap(ft.grad(total))(lanes), expected)
    assert_trees_close(ft.grad(lambda xs: np.sum(ft.vmap(total)(xs)))(lanes), expected)
    with pytest.raises(ft.errors.StagingError):
        ft.make_graph(function)(X)


def test_a_reshaped_view_of_lanes_that_lie_within_each_other():
    # A lane alone is contiguous, so that its reshape is a view; in the batch it has gaps.
    def function(x):
        y = x + 1.0
        flat = y.reshape(-1)
        flat *= 2.0
        return y, flat

    batch = np.arange(12.0).reshape(2, 2, 3)
    for axis in (-1, 1, 0):
        assert_trees_close(ft.vmap(function, axis)(batch), loop_vmap(function, axis)(batch))
        turned = lambda x: function(x.T)  # the result keeps this order, so its reshape is a copy
        assert_trees_close(ft.vmap(turned, axis)(batch), loop_vmap(turned, axis)(batch))


def test_source_names_what_a_loop_takes_rows_of():
    # An expression stood there, and only its last factor was indexed.
    def f(x):
        _, rows = ft.scan(lambda c, r: (0.5 * c + r, np.sin(r) * c), x[0], x * np.cos(x))
        return np.sum(np.arctan(rows) * TABLE)

    x = np.sin(TABLE)
    for function in (f, ft.grad(f)):
        written = ft.source(function)(x)
        assert_trees_close(written.function(x), function(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", [float, int, complex])
def test_an_unmapped_value_without_axes_may_be_assigned_into_a_plain_array(dtype):
    def f(x, shared):
        plain = np.zeros(2, dtype)
        plain[0] = shared
        return x * plain

    found = ft.vmap(f, (0, None))(X, np.array(3.0))
    np.testing.assert_array_equal(found, np.stack([f(x, np.array(3.0)) for x in X]))


@pytest.mark.parametrize(
    "constant",
    [
        lambda x: ft.grad(lambda u: np.sum(0.4 * u + x))(x),
        lambda x: np.sum(ft.jacrev(lambda u: 0.4 * u)(x), axis=0),
        lambda x: np.sum(ft.jacfwd(lambda u: 0.4 * u)(x), axis=0),
    ],
)
def test_a_gradient_that_is_the_same_for_all_values_takes_traced_ones(constant):
    # It was a plain array, which can be neither indexed by traced values nor assigned them.
    def f(x, i):
        y = constant(x)
        part = y[i]
        y[0] = x[1]
        return y * part

    x, places = np.stack([X, 2 * X, -X]), np.array([0, 1, 0])
    expected = np.stack([f(row, i) for row, i in zip(x, places, strict=True)])
    np.testing.assert_allclose(ft.vmap(f)(x, places), expected)


def test_what_python_computes_alone_inside_a_transform_is_indexed_as_outside():
    def f(x):
        return ft.vjp(lambda u: 0.5 * u, x)[1](0.7 * x)[0][None]

    np.testing.assert_allclose(f(1.5), [0.525])
    np.testing.assert_allclose(ft.jacfwd(f)(1.5), [0.35])
    np.testing.assert_allclose(ft.jacrev(f)(1.5), [0.35])


def test_native_code_looks_at_the_indices_that_there_are():
    # Past the end of a vector stood ones, out of range for an axis of length 1; NumPy repeated the call.
    pytest.importorskip("llvmlite")

    def f(parts, i):
        x, (y,) = parts
        return {"x": np.exp(x[i]), "y": [y * 2.0]}

    parts = (np.ones(1), [np.arange(3.0)])
    mapped = ft.jit(f, backend="native")
    for places in (np.array([0, -1, 0]), np.array([0, 0])):
        assert_trees_close(mapped(parts, places), f(parts, places))
    with pytest.raises(IndexError):
        mapped(parts, np.array([0, 1]))
