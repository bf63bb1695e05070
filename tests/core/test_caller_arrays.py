"""The caller's arrays stay as they are, and plain arrays may change without harm to a derivative.

A function may change its arguments in place; under a transform that is refused, or happens to a copy.
Plain arrays that are changed between their uses were used with the values they had.
"""

import copy
from contextlib import suppress

import numpy as np
import pytest

import functrans as ft
from functrans.errors import FunctransError
from tests.support.oracles import assert_trees_close, central_difference_jvp, numerical_gradient

VECTOR = np.array([0.7, -0.4, 1.3])
MATRIX = np.array([[0.7, -0.4, 1.3], [0.2, -1.1, 0.6]])


def set_item(a):
    a[0] = 10.0


def scale(a):
    a *= 2.0


def add_out(a):
    np.add(a, 1.0, out=a)


def write_to_view(a):
    a[::-1][:2] -= 3.0


def fill(a):
    a.fill(2.0)


def sort(a):
    a.sort()


def scatter(a):
    np.add.at(a, [1, 1], 4.0)


def copy_to(a):
    np.copyto(a, 5.0, where=np.array([True, False, True]))


def put_values(a):
    np.put(a, [2], 8.0)


CHANGES = [set_item, scale, add_out, write_to_view, fill, sort, scatter, copy_to, put_values]
for_each_change = pytest.mark.parametrize("change", CHANGES, ids=[f.__name__ for f in CHANGES])

ONES = (np.ones(3), np.ones(3))
CALLS = {
    "grad": lambda f, x, p: ft.grad(f)(x, p),
    "grad by the other": lambda f, x, p: ft.grad(f, argnums=1)(x, p),
    "grad by both": lambda f, x, p: ft.grad(f, argnums=(0, 1))(x, p),
    "value_and_grad": lambda f, x, p: ft.value_and_grad(f)(x, p),
    "vjp": lambda f, x, p: ft.vjp(f, x, p)[1](1.0),
    "jvp": lambda f, x, p: ft.jvp(f, (x, p), ONES),
    "linearize": lambda f, x, p: ft.linearize(f, x, p)[1](*ONES),
    "jacfwd": lambda f, x, p: ft.jacfwd(f)(x, p),
    "jacrev": lambda f, x, p: ft.jacrev(f)(x, p),
    "hessian": lambda f, x, p: ft.hessian(f)(x, p),
    "hvp": lambda f, x, p: ft.hvp(f, (x, p), ONES),
    "vmap": lambda f, x, p: ft.vmap(f)(x[None], p[None]),
    "vmap, shared": lambda f, x, p: ft.vmap(f, (0, None))(x[None], p),
    "vmap, shared first": lambda f, x, p: ft.vmap(f, (None, 0))(x, p[None]),
    "vmap, last axis": lambda f, x, p: ft.vmap(f, -1)(x[:, None], p[:, None]),
    "vmap of grad": lambda f, x, p: ft.vmap(ft.grad(f), (0, None))(x[None], p),
    "vmap of grad by shared": lambda f, x, p: ft.vmap(ft.grad(f, 1), (0, None))(x[None], p),
    "grad of vmap": lambda f, x, p: ft.grad(lambda x, p: ft.vmap(f, (0, None))(x[None], p)[0])(
        x, p
    ),
    "grad of grad": lambda f, x, p: ft.grad(lambda x, p: np.sum(ft.grad(f)(x, p) ** 2))(x, p),
    "make_graph": lambda f, x, p: ft.make_graph(f)(x, p)(x, p),
    "grad of a graph": lambda f, x, p: ft.grad(ft.make_graph(f)(x, p))(x, p),
    "eval_shape": lambda f, x, p: ft.eval_shape(f, x, p).shape,
}


@for_each_change
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("target", ["x", "p"])
def test_changes_of_an_argument_are_refused_or_do_not_reach_the_caller(change, call, target):
    def changing(x, p):
        change(x if target == "x" else p)
        return np.sum(x * x * p)

    def copying(x, p):
        return changing(x.copy(), p.copy())

    x, p = VECTOR.copy(), VECTOR[::-1].copy()
    try:
        result = call(changing, x, p)
    except (FunctransError, ValueError):
        result = None
    assert x.tobytes() == VECTOR.tobytes()
    assert p.tobytes() == VECTOR[::-1].copy().tobytes()
    assert x.flags.writeable and p.flags.writeable
    if result is not None:
        assert_trees_close(result, call(copying, x, p))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arguments_that_are_views_of_one_array_do_not_change(call):
    whole = np.arange(8.0) / 4
    x, p = whole[1:4], whole[::2][1:]

    def changing(x, p):
        x *= 3.0
        p[0] = 7.0
        return np.sum(x * x * p)

    with suppress(FunctransError, ValueError):
        call(changing, x, p)
    np.testing.assert_array_equal(whole, np.arange(8.0) / 4)


def test_arguments_in_containers_and_keywords_do_not_change():
    def changing(params, *, data):
        params["w"][0] = 3.0
        params["b"][0] += 1.0
        data *= 2.0
        return np.sum(params["w"] * data) + np.sum(params["b"][0])

    params = {"w": VECTOR.copy(), "b": [MATRIX.copy()]}
    data = VECTOR.copy()
    original = copy.deepcopy((params, data))
    for call in (
        lambda: ft.grad(changing)(params, data=data),
        lambda: ft.vjp(lambda params: changing(params, data=data.copy()), params),
        lambda: ft.make_graph(changing)(params, data=data),
    ):
        with suppress(FunctransError, ValueError):
            call()
        assert_trees_close((params, data), original, rtol=0, atol=0)


def test_tangents_and_cotangents_do_not_change():
    def function(x):
        y = x.copy()
        y *= y
        y[0] = y[1] * 2
        view = y[1:]
        view += y[:2]
        return y

    tangent, cotangent = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    out, pushed = ft.jvp(function, (VECTOR,), (tangent,))
    first = pushed.copy()
    pullback = ft.vjp(function, VECTOR)[1]
    (pulled,) = pullback(cotangent)
    second = pulled.copy()
    pulled *= 0.0  # what a pullback returns is the caller's to change
    assert_trees_close(pullback(cotangent)[0], second)
    assert_trees_close(ft.jvp(function, (VECTOR,), (tangent,))[1], first)
    np.testing.assert_array_equal(tangent, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(cotangent, [4.0, 5.0, 6.0])
    assert out.flags.writeable and pushed.flags.writeable


def test_results_that_are_views_of_each_other_are_right():
    def function(x):
        y = x * 2
        view = y[:2]
        view[0] = x[2] ** 2
        return y, view, y[::-1], y

    expected = function(VECTOR)
    assert_trees_close(ft.vjp(function, VECTOR)[0], expected)
    assert_trees_close(ft.make_graph(function)(VECTOR)(VECTOR), expected)
    assert_trees_close(ft.jvp(function, (VECTOR,), (VECTOR,))[0], expected)


# Plain arrays that change between their uses.


def buffer_of_factors(x):
    buffer, total = np.zeros(3), 0.0
    for i in range(3):
        buffer[:] = i + np.arange(3)
        total = total + np.sum(x * buffer) ** 2
    return total


def buffer_of_divisors_and_powers(x):
    buffer, total = np.ones(3), 0.0
    for _ in range(3):
        buffer += 1.0
        total = total + np.sum(np.sin(x) / buffer + x**2 * np.exp(-buffer) + (2 + x) ** buffer)
    return total


def buffer_on_the_left(x):
    buffer, total = np.array([1.0, 2.0, 3.0]), 0.0
    for _ in range(3):
        total = total + np.sum(buffer * x) + np.sum(buffer / (3 + x)) + np.dot(buffer, x * x)
        buffer *= 2.0
    return total


def buffer_in_matmul(x):
    matrix, total = np.eye(3), 0.0
    for i in range(3):
        matrix[i] = np.arange(3) + i
        total = total + np.sum((matrix @ x) ** 2) + np.sum(np.tensordot(x, matrix, 1) ** 2)
        total = total + np.einsum("i,ij,j->", x, matrix, x)
    return total


def buffer_of_indices(x):
    indices, total = np.array([0, 1]), 0.0
    for i in range(3):
        total = total + np.sum(x[indices] ** 2) * (i + 1) + np.take(x, indices)[0]
        indices += 1
        indices %= 3
    return total


def buffer_of_masks(x):
    mask, total = np.array([True, False, False]), 0.0
    for i in range(3):
        total = total + np.sum(x[mask] ** 2) * (i + 1)
        total = total + np.sum(np.where(mask, x**3, np.cos(x)))
        mask[:] = np.roll(mask, 1)
        mask[0] = True
    return total


def buffer_in_where(x):
    condition, total = np.array([True, False, True]), 0.0
    for _ in range(2):
        total = total + np.sum(x * x, where=condition) + np.sum(np.where(condition, x, 2 * x))
        np.logical_not(condition, out=condition)
        condition[0] = True
    return total


def view_of_a_buffer(x):
    buffer, total = np.zeros((2, 3)), 0.0
    row = buffer[0]
    for i in range(3):
        total = total + np.sum(x * x * row)
        buffer[:] = i + 1.0
    return total


def buffer_assigned_to_a_traced_array(x):
    buffer, total = np.zeros(3), 0.0
    y = np.zeros_like(x)
    for i in range(3):
        buffer[:] = i
        y[:] = buffer
        y *= x
        buffer -= 5.0
        total = total + np.sum(y * y)
    return total


def buffer_multiplied_into_a_traced_array(x):
    buffer = np.array([1.0, 2.0, 3.0])
    y = x.copy()
    for _ in range(3):
        y *= buffer
        buffer[1:] = buffer[:-1]
        y += x * buffer
    return np.sum(y * y)


BUFFERS = [
    buffer_of_factors,
    buffer_of_divisors_and_powers,
    buffer_on_the_left,
    buffer_in_matmul,
    buffer_of_indices,
    buffer_of_masks,
    buffer_in_where,
    view_of_a_buffer,
    buffer_assigned_to_a_traced_array,
    buffer_multiplied_into_a_traced_array,
]


@pytest.mark.parametrize("function", BUFFERS, ids=[f.__name__ for f in BUFFERS])
def test_plain_arrays_may_change_between_their_uses(function):
    (expected,) = numerical_gradient(function, (VECTOR,))
    assert_trees_close(ft.grad(function)(VECTOR), expected)
    assert_trees_close(ft.vjp(function, VECTOR)[1](1.0)[0], expected)
    slope = central_difference_jvp(function, (VECTOR,), (np.ones(3),))
    assert_trees_close(ft.jvp(function, (VECTOR,), (np.ones(3),))[1], slope)
    assert_trees_close(ft.linearize(function, VECTOR)[1](np.ones(3)), slope)
    batch = np.stack([VECTOR, 0.5 * VECTOR])
    lanes = np.stack([ft.grad(function)(row) for row in batch])
    assert_trees_close(ft.vmap(ft.grad(function))(batch), lanes)
    assert_trees_close(ft.grad(lambda b: np.sum(ft.vmap(function)(b)))(batch), lanes)
    assert_trees_close(ft.grad(ft.make_graph(function)(VECTOR))(VECTOR), expected)
    curvature = central_difference_jvp(ft.grad(function), (VECTOR,), (np.ones(3),))
    assert_trees_close(
        ft.jvp(ft.grad(function), (VECTOR,), (np.ones(3),))[1], curvature, rtol=1e-5, atol=1e-6
    )
    assert_trees_close(
        ft.grad(lambda x: np.sum(ft.grad(function)(x)))(VECTOR), curvature, rtol=1e-5, atol=1e-6
    )


def test_a_plain_array_that_changes_after_vjp_does_not_change_the_pullback():
    factors = np.array([1.0, 2.0, 3.0])
    function = lambda x: np.sin(x) * x * factors
    _, pullback = ft.vjp(function, VECTOR)
    _, linear = ft.linearize(function, VECTOR)
    expected = (np.sin(VECTOR) + VECTOR * np.cos(VECTOR)) * factors
    factors *= 0.0
    assert_trees_close(linear(np.ones(3)), expected)
    assert_trees_close(pullback(np.ones(3))[0], expected)


def test_a_primal_that_changes_after_vjp_does_not_change_the_pullback():
    x = VECTOR.copy()
    function = lambda x: np.sin(x) * x
    _, pullback = ft.vjp(function, x)
    _, linear = ft.linearize(function, x)
    expected = np.sin(x) + x * np.cos(x)
    x[:] = 99.0
    assert_trees_close(linear(np.ones(3)), expected)
    assert_trees_close(pullback(np.ones(3))[0], expected)
