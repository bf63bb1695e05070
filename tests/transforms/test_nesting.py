"""Transforms inside transforms: no level is mistaken for another, and orders that must agree do."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import (
    assert_trees_close,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jacobian,
)

RNG = np.random.default_rng(7)
MATRIX = RNG.uniform(-1, 1, (4, 3))


def derivative(f):
    """Forward-mode derivative of a function of one number."""
    return lambda x: ft.jvp(f, (x,), (1.0,))[1]


def batched_derivative(f):
    """Derivative of a function of one number by a vmap with one lane, around a grad."""
    return lambda x: ft.vmap(ft.grad(f))(np.stack([x]))[0]


def derivative_of_batch(f):
    """Derivative of a function of one number by a grad around a vmap with two equal lanes."""
    return lambda x: ft.grad(lambda y: np.sum(ft.vmap(f)(np.stack([y, y]))) / 2)(x)


def pulled_back(f):
    return lambda x: ft.vjp(f, x)[1](1.0)[0]


def linearized(f):
    return lambda x: ft.linearize(f, x)[1](1.0)


DERIVATIVES = {
    "grad": ft.grad,
    "jvp": derivative,
    "vjp": pulled_back,
    "linearize": linearized,
    "jacfwd": ft.jacfwd,
    "jacrev": ft.jacrev,
    "vmap(grad)": batched_derivative,
    "grad(vmap)": derivative_of_batch,
}
KINDS = pytest.mark.parametrize("kind", DERIVATIVES.values(), ids=DERIVATIVES)
PAIRS = pytest.mark.parametrize(
    ("outer", "inner"),
    list(itertools.product(DERIVATIVES.values(), repeat=2)),
    ids=[f"{a} of {b}" for a, b in itertools.product(DERIVATIVES, repeat=2)],
)


# --- perturbation confusion ----------------------------------------------------------------------


@PAIRS
def test_inner_derivative_does_not_see_the_outer_variable(outer, inner):
    # d/dx [x * d/dy (x + y)] = d/dx [x * 1] = 1, not 2.
    f = outer(lambda x: x * inner(lambda y: x + y)(1.0))
    np.testing.assert_allclose(f(3.0), 1.0)


@PAIRS
def test_inner_derivative_of_a_product_with_the_outer_variable(outer, inner):
    # d/dx [x * d/dy (x y^2) at y = 2] = d/dx [4 x^2] = 8 x.
    f = outer(lambda x: x * inner(lambda y: x * y**2)(2.0))
    np.testing.assert_allclose(f(3.0), 24.0)


@PAIRS
def test_inner_derivative_at_a_point_that_depends_on_the_outer_variable(outer, inner):
    # D y -> x sin(y) at y = x^2 is x cos(x^2); its derivative is cos(x^2) - 2 x^2 sin(x^2).
    f = outer(lambda x: inner(lambda y: x * np.sin(y))(x**2))
    x = 0.7
    np.testing.assert_allclose(f(x), np.cos(x**2) - 2 * x**2 * np.sin(x**2))


@PAIRS
def test_constant_inner_function_has_zero_derivative(outer, inner):
    f = outer(lambda x: x * inner(lambda y: x * 1.0 + 0.0 * y)(5.0) + x)
    np.testing.assert_allclose(f(2.0), 1.0)


@PAIRS
def test_inner_variable_captured_by_a_closure_of_the_outer_function(outer, inner):
    # g_x(y) = x^2 y^3; x * g_x'(y) at y = 2 is 12 x^3, whose derivative is 36 x^2.
    def f(x):
        def g(y):
            return square_of_x * y**3

        square_of_x = x * x
        return x * inner(g)(2.0)

    np.testing.assert_allclose(outer(f)(1.5), 36 * 1.5**2)


@KINDS
def test_shift_operator_of_manzyuk_and_others(kind):
    # Manzyuk, Pearlmutter, Radul, Rush and Siskind, "Perturbation confusion in forward automatic
    # differentiation of higher-order functions" (2019): the derivative of a curried shift.
    def shift(offset):
        return lambda f: lambda x: f(x + offset)

    def shifted_derivative(f, x):
        return kind(lambda offset: shift(offset)(f)(x))(0.0)

    twice = kind(lambda x: shifted_derivative(np.sin, x))
    np.testing.assert_allclose(twice(0.4), -np.sin(0.4))


@KINDS
def test_nested_derivative_used_as_a_number_in_an_outer_loop(kind):
    # Siskind and Pearlmutter, "Nesting forward-mode AD in a functional framework" (2008): a
    # gradient inside the objective of another. One Newton step finds argmin_y (y - x)^2 = x.
    def argmin(f, start):
        slope, curvature = kind(f)(start), kind(kind(f))(start)
        return start - slope / curvature

    f = kind(lambda x: argmin(lambda y: (y - x) ** 2 + x, 0.0) ** 3)
    np.testing.assert_allclose(f(1.5), 3 * 1.5**2)


def test_jvp_inside_grad_of_the_same_variable():
    # d/dx [d/dy f(y) at y = x] for f = exp(2 y) is 4 exp(2 x).
    f = ft.grad(lambda x: ft.jvp(lambda y: np.exp(2 * y), (x,), (1.0,))[1])
    np.testing.assert_allclose(f(0.3), 4 * np.exp(0.6))


def test_tangent_that_depends_on_the_outer_variable():
    # d/dx [sin'(x) * x^2] = -sin(x) x^2 + 2 x cos(x).
    f = ft.grad(lambda x: ft.jvp(np.sin, (x,), (x**2,))[1])
    np.testing.assert_allclose(f(0.8), -np.sin(0.8) * 0.8**2 + 1.6 * np.cos(0.8))


def test_cotangent_that_depends_on_the_outer_variable():
    f = derivative(lambda x: ft.vjp(np.sin, x)[1](x**2)[0])
    np.testing.assert_allclose(f(0.8), -np.sin(0.8) * 0.8**2 + 1.6 * np.cos(0.8))


def test_pullback_made_inside_one_transform_is_transformed_by_another():
    _, pullback = ft.vjp(lambda x: np.sin(x) * MATRIX, np.arange(3.0))
    cotangents = RNG.uniform(-1, 1, (5, 4, 3))
    expected = np.stack([pullback(c)[0] for c in cotangents])
    np.testing.assert_allclose(ft.vmap(pullback)(cotangents)[0], expected)
    # The pullback is linear, so that its own pullback is the pushforward.
    direction = np.array([1.0, -2.0, 0.5])
    back = ft.vjp(lambda c: pullback(c)[0], cotangents[0])[1](direction)[0]
    np.testing.assert_allclose(back, np.cos(np.arange(3.0)) * direction * MATRIX)


def test_pullback_called_many_times_gives_the_same_answer():
    _, pullback = ft.vjp(lambda x, y: x * np.exp(y), 2.0, 0.5)
    first = pullback(1.0)
    assert_trees_close(pullback(3.0), map_leaves(lambda leaf: 3 * leaf, first))
    assert_trees_close(pullback(1.0), first)


def test_linearized_function_is_transformed_by_another():
    x = np.array([0.1, 0.2, 0.3])
    _, pushforward = ft.linearize(lambda x: MATRIX @ np.sin(x), x)
    jacobian = MATRIX * np.cos(x)
    np.testing.assert_allclose(ft.vmap(pushforward)(np.eye(3)), jacobian.T)
    np.testing.assert_allclose(ft.jacrev(pushforward)(np.ones(3)), jacobian)
    (transposed,) = ft.linear_transpose(pushforward, x)(np.ones(4))
    np.testing.assert_allclose(transposed, jacobian.sum(axis=0))


# --- depth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    list(itertools.product(["grad", "jvp", "vmap(grad)", "grad(vmap)"], repeat=4)),
    ids=" of ".join,
)
def test_four_derivatives_deep_in_every_order(order):
    f = lambda x: np.exp(2 * x) * x**3 + np.sin(x) / x
    for kind in reversed(order):
        f = DERIVATIVES[kind](f)
    np.testing.assert_allclose(f(0.9), fourth_derivative(0.9), rtol=1e-8)


def fourth_derivative(x):
    """The fourth derivative of exp(2 x) x^3 + sin(x) / x, by Leibniz' rule and by its series."""
    product = np.exp(2 * x) * (16 * x**3 + 4 * 8 * 3 * x**2 + 6 * 4 * 6 * x + 4 * 2 * 6)
    quotient = 0.0
    factorial = 1.0
    for k in range(12):
        power = 2 * k
        if k:
            factorial *= power * (power + 1)
        falling = np.prod([float(power - j) for j in range(4)])
        if power >= 4:
            quotient += (-1) ** k * falling * x ** (power - 4) / factorial
    return product + quotient


@pytest.mark.parametrize("depth", range(1, 7))
@KINDS
def test_repeated_derivative_of_the_exponential(kind, depth):
    f = lambda x: np.exp(2 * x)
    for _ in range(depth):
        f = kind(f)
    np.testing.assert_allclose(f(0.25), 2.0**depth * np.exp(0.5))


MAPPERS = {
    "jacfwd diagonal": lambda f: lambda x: np.diagonal(ft.jacfwd(ft.vmap(f))(x)),
    "grad of sum": lambda f: ft.grad(lambda x: np.sum(ft.vmap(f)(x))),
    "jvp of ones": lambda f: lambda x: ft.jvp(ft.vmap(f), (x,), (np.ones(3),))[1],
}


@pytest.mark.parametrize(
    "inner", list(itertools.product(["grad", "jvp"], repeat=2)), ids=" of ".join
)
@pytest.mark.parametrize("outer", ["jacfwd diagonal", "grad of sum", "jvp of ones"])
def test_vmap_between_derivatives(outer, inner):
    # Third derivatives of x^5, with a vmap in the middle of the stack.
    f = lambda x: x**5
    for kind in inner:
        f = DERIVATIVES[kind](f)
    x = np.array([0.5, 1.0, -1.5])
    np.testing.assert_allclose(MAPPERS[outer](f)(x), 60 * x**2)


# --- Hessians ------------------------------------------------------------------------------------


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_hessian(x):
    n = len(x)
    hessian = np.zeros((n, n))
    for i in range(n - 1):
        hessian[i, i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
        hessian[i, i + 1] -= 400 * x[i]
        hessian[i + 1, i] -= 400 * x[i]
        hessian[i + 1, i + 1] += 200
    return hessian


POINT = np.array([0.3, -0.8, 1.2, 0.5, -0.1])


@pytest.mark.parametrize(
    "hessian",
    [
        ft.hessian,
        lambda f: ft.jacfwd(ft.jacrev(f)),
        lambda f: ft.jacrev(ft.jacfwd(f)),
        lambda f: ft.jacfwd(ft.jacfwd(f)),
        lambda f: ft.jacrev(ft.jacrev(f)),
        lambda f: ft.jacfwd(ft.grad(f)),
        lambda f: ft.jacrev(ft.grad(f)),
        lambda f: ft.jacobian(ft.grad(f)),
        lambda f: ft.jacobian(ft.jacobian(f)),
        lambda f: lambda x: ft.vmap(lambda v: ft.hvp(f, (x,), (v,)))(np.eye(len(x))),
    ],
    ids=[
        "hessian",
        "jacfwd(jacrev)",
        "jacrev(jacfwd)",
        "jacfwd(jacfwd)",
        "jacrev(jacrev)",
        "jacfwd(grad)",
        "jacrev(grad)",
        "jacobian(grad)",
        "jacobian(jacobian)",
        "vmap(hvp)",
    ],
)
def test_every_way_to_a_hessian_is_the_closed_form(hessian):
    np.testing.assert_allclose(
        hessian(rosenbrock)(POINT), rosenbrock_hessian(POINT), rtol=1e-10, atol=1e-10
    )


def test_hvp_is_the_hessian_times_the_vector():
    v = np.array([1.0, -0.5, 2.0, 0.0, 3.0])
    product = ft.hvp(rosenbrock, (POINT,), (v,))
    np.testing.assert_allclose(product, rosenbrock_hessian(POINT) @ v, rtol=1e-10)


def test_hvp_of_a_pytree():
    def f(p):
        return np.sum(np.sin(p["a"]) * p["b"] ** 2)

    a, b = np.array([0.1, 0.5]), np.array([1.0, -2.0])
    va, vb = np.array([1.0, 2.0]), np.array([-1.0, 0.5])
    product = ft.hvp(f, ({"a": a, "b": b},), ({"a": va, "b": vb},))
    expected = {
        "a": -np.sin(a) * b**2 * va + 2 * np.cos(a) * b * vb,
        "b": 2 * np.cos(a) * b * va + 2 * np.sin(a) * vb,
    }
    assert_trees_close(product, expected)


def test_third_derivative_tensor():
    # f = (sum x)^3 has all third derivatives equal to 6.
    f = lambda x: np.sum(x) ** 3
    tensor = ft.jacfwd(ft.hessian(f))(np.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(tensor, np.full((3, 3, 3), 6.0))


def test_hessian_of_a_vector_function_has_one_matrix_for_each_output():
    f = lambda x: np.stack([x[0] * x[1], x[1] ** 3])
    expected = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 12.0]]])
    np.testing.assert_allclose(ft.hessian(f)(np.array([1.0, 2.0])), expected)


def test_hessian_over_two_arguments_has_all_four_blocks():
    f = lambda x, y: np.sum(x**2) * y
    x, y = np.array([1.0, 2.0]), 3.0
    blocks = ft.hessian(f, argnums=(0, 1))(x, y)
    assert_trees_close(blocks, ((6.0 * np.eye(2), 2 * x), (2 * x, 0.0)))


# --- vmap in vmap --------------------------------------------------------------------------------


@pytest.mark.parametrize("outer_axis", [0, 1, 2, -1])
@pytest.mark.parametrize("inner_axis", [0, 1, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_vmap_of_vmap_over_different_axes_is_two_loops(outer_axis, inner_axis, out_axis):
    f = lambda v, m: np.sin(v) @ m + v[0]
    vectors, matrix = RNG.uniform(-1, 1, (3, 3, 3)), RNG.uniform(-1, 1, (3, 2))
    mapped = ft.vmap(ft.vmap(f, (inner_axis, None), out_axis), (outer_axis, None), out_axis)
    looped = loop_vmap(loop_vmap(f, (inner_axis, None), out_axis), (outer_axis, None), out_axis)
    assert_trees_close(mapped(vectors, matrix), looped(vectors, matrix))


def test_vmap_of_vmap_over_different_arguments_is_an_outer_product():
    x, y = np.arange(1.0, 4.0), np.arange(1.0, 3.0)
    table = ft.vmap(ft.vmap(lambda a, b: a**b, (None, 0)), (0, None))(x, y)
    np.testing.assert_allclose(table, x[:, None] ** y)


def test_three_vmaps_over_three_arguments():
    x, y, z = np.arange(2.0), np.arange(3.0), np.arange(4.0)
    f = lambda a, b, c: a + 10 * b + 100 * c
    mapped = ft.vmap(ft.vmap(ft.vmap(f, (None, None, 0)), (None, 0, None)), (0, None, None))
    np.testing.assert_allclose(mapped(x, y, z), x[:, None, None] + 10 * y[:, None] + 100 * z)


def test_inner_vmap_over_a_constant_of_the_outer_one():
    x, y = np.arange(1.0, 4.0), np.arange(5.0)
    mapped = ft.vmap(lambda a: ft.vmap(lambda b: a * b)(y))(x)
    np.testing.assert_allclose(mapped, np.outer(x, y))


def test_grad_of_vmap_of_grad_of_vmap():
    # g(x) = d/dx sum_j sin(x y_j) = sum_j y_j cos(x y_j), so that g'(x) = -sum_j y_j^2 sin(x y_j).
    y = np.array([0.5, -1.0, 2.0])

    def inner(x):
        return ft.grad(lambda x: np.sum(ft.vmap(lambda c: np.sin(x * c))(y)))(x)

    x = np.array([0.1, 0.7])
    total = ft.grad(lambda x: np.sum(ft.vmap(inner)(x)))
    expected = -np.sum(y**2 * np.sin(x[:, None] * y), axis=1)
    np.testing.assert_allclose(total(x), expected)


def test_vmap_of_grad_of_vmap_of_grad():
    rows = RNG.uniform(-1, 1, (4, 3))

    def inner(row):
        return np.sum(ft.vmap(ft.grad(lambda x: x**4))(row) ** 2)

    # sum (4 x^3)^2 = 16 sum x^6, whose gradient is 96 x^5.
    np.testing.assert_allclose(ft.vmap(ft.grad(inner))(rows), 96 * rows**5)


def test_jvp_of_vmap_of_hessian():
    f = lambda x: np.sum(x**3)
    xs, vs = RNG.uniform(-1, 1, (4, 2)), RNG.uniform(-1, 1, (4, 2))
    out, tangent = ft.jvp(ft.vmap(ft.hessian(f)), (xs,), (vs,))
    np.testing.assert_allclose(out, 6 * np.eye(2) * xs[:, None, :])
    np.testing.assert_allclose(tangent, 6 * np.eye(2) * vs[:, None, :])


def test_captured_tracers_of_two_outer_levels():
    # F(a) = d/db [ sum_i d/dx (a b x_i^2) ] = sum_i 2 a x_i; its derivative with respect to a is sum_i 2 x_i.
    x = np.array([1.0, 2.0, 4.0])

    def of_a(a):
        def of_b(b):
            return np.sum(ft.vmap(ft.grad(lambda t: a * b * t**2))(x))

        return ft.grad(of_b)(3.0)

    np.testing.assert_allclose(ft.grad(of_a)(5.0), 14.0)
    np.testing.assert_allclose(ft.vmap(of_a)(np.array([1.0, 2.0])), [14.0, 28.0])


# --- Jacobians -----------------------------------------------------------------------------------

JACOBIANS = pytest.mark.parametrize(
    "jacobian", [ft.jacrev, ft.jacfwd, ft.jacobian], ids=["rev", "fwd", "auto"]
)


@JACOBIANS
@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: MATRIX @ np.sin(x), (3,)),
        (lambda x: np.sum(x**2), (2, 3)),
        (lambda x: np.outer(x, x), (3,)),
        (lambda x: x[:, None] * MATRIX[:2, :2], (2, 2)),
        (lambda x: np.exp(x), ()),
        (lambda x: np.stack([x, x**2]), ()),
    ],
    ids=["wide", "scalar out", "matrix out", "broadcast", "scalar", "scalar in"],
)
def test_jacobian_is_the_numerical_one(jacobian, f, shape):
    x = RNG.uniform(-1, 1, shape)
    assert_trees_close(jacobian(f)(x), numerical_jacobian(f, x))


class Pair(NamedTuple):
    left: object
    right: object


@JACOBIANS
def test_jacobian_over_pytrees_nests_inputs_inside_outputs(jacobian):
    def f(p):
        return {"sum": p.left + np.sum(p.right), "product": [p.left * p.right]}

    p = Pair(np.float64(2.0), np.array([1.0, 3.0]))
    expected = {
        "sum": Pair(np.float64(1.0), np.ones(2)),
        "product": [Pair(p.right, 2.0 * np.eye(2))],
    }
    assert_trees_close(jacobian(f)(p), expected)


@JACOBIANS
def test_jacobian_argnums(jacobian):
    f = lambda x, y: x * y
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(jacobian(f, argnums=1)(x, y), np.diag(x))
    np.testing.assert_allclose(jacobian(f, argnums=-1)(x, y), np.diag(x))
    assert_trees_close(jacobian(f, argnums=(0, 1))(x, y), (np.diag(y), np.diag(x)))
    assert_trees_close(jacobian(f, argnums=(1,))(x, y), (np.diag(x),))


@pytest.mark.parametrize("jacobian", [ft.jacrev, ft.jacfwd])
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 100])
def test_jacobian_in_chunks_is_the_same(jacobian, chunk_size):
    f = lambda p: MATRIX @ np.sin(p["a"]) * p["b"]
    p = {"a": np.array([0.1, 0.2, 0.3]), "b": np.arange(1.0, 5.0)}
    assert_trees_close(jacobian(f, chunk_size=chunk_size)(p), jacobian(f)(p), rtol=1e-12)


@pytest.mark.parametrize("jacobian", [ft.jacrev, ft.jacfwd])
def test_jacobian_in_chunks_still_nests(jacobian):
    chunked = jacobian(jacobian(rosenbrock, chunk_size=2), chunk_size=2)
    np.testing.assert_allclose(chunked(POINT), rosenbrock_hessian(POINT), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5, 100])
def test_vmap_in_chunks_is_the_same(chunk_size):
    f = lambda x, y: {"a": x @ y, "b": np.sum(x)}
    xs, y = RNG.uniform(-1, 1, (3, 5)), RNG.uniform(-1, 1, (3, 2))
    chunked = ft.vmap(f, (1, None), -1, chunk_size=chunk_size)
    assert_trees_close(chunked(xs, y), loop_vmap(f, (1, None), -1)(xs, y))


def test_vmap_in_chunks_runs_the_function_once_for_each_chunk():
    calls = []

    def f(x):
        calls.append(x)
        return x**2

    np.testing.assert_allclose(ft.vmap(f, chunk_size=2)(np.arange(5.0)), np.arange(5.0) ** 2)
    assert len(calls) == 3


# --- has_aux, argnums, keyword arguments ---------------------------------------------------------


def with_aux(x, y):
    return np.sum(x**2 * y), {"double": 2 * x, "note": y}


def test_grad_has_aux():
    x, y = np.array([1.0, 2.0]), 3.0
    gradient, aux = ft.grad(with_aux, has_aux=True)(x, y)
    assert_trees_close(gradient, 6 * x)
    assert_trees_close(aux, {"double": 2 * x, "note": 3.0})


def test_value_and_grad_has_aux():
    x, y = np.array([1.0, 2.0]), 3.0
    (value, aux), gradients = ft.value_and_grad(with_aux, argnums=(0, 1), has_aux=True)(x, y)
    assert_trees_close(value, 15.0)
    assert_trees_close(aux, {"double": 2 * x, "note": 3.0})
    assert_trees_close(gradients, (6 * x, 5.0))


def test_vjp_has_aux():
    x, y = np.array([1.0, 2.0]), 3.0
    out, pullback, aux = ft.vjp(with_aux, x, y, has_aux=True)
    assert_trees_close(out, 15.0)
    assert_trees_close(pullback(1.0), (6 * x, 5.0))
    assert_trees_close(aux, {"double": 2 * x, "note": 3.0})


def test_jvp_has_aux():
    x, y = np.array([1.0, 2.0]), 3.0
    out, tangent, aux = ft.jvp(with_aux, (x, y), (np.ones(2), 0.0), has_aux=True)
    assert_trees_close(out, 15.0)
    assert_trees_close(tangent, 18.0)
    assert_trees_close(aux, {"double": 2 * x, "note": 3.0})


@pytest.mark.parametrize("jacobian", [ft.jacrev, ft.jacfwd])
def test_jacobians_has_aux(jacobian):
    x = np.array([1.0, 2.0])
    matrix, aux = jacobian(lambda x: (x**2, {"cube": x**3}), has_aux=True)(x)
    assert_trees_close(matrix, np.diag(2 * x))
    assert_trees_close(aux, {"cube": x**3})


def test_aux_that_is_no_array_is_passed_through():
    _, aux = ft.grad(lambda x: (x**2, "a note"), has_aux=True)(2.0)
    assert aux == "a note"


def test_aux_of_an_inner_grad_is_differentiated_by_an_outer_one():
    def outer(x):
        _, aux = ft.grad(lambda y: (y**2, x * y), has_aux=True)(x)
        return aux

    np.testing.assert_allclose(ft.grad(outer)(3.0), 6.0)


def test_vmap_of_grad_with_aux():
    xs = np.arange(3.0)
    gradients, aux = ft.vmap(ft.grad(lambda x: (x**3, {"square": x**2}), has_aux=True))(xs)
    assert_trees_close(gradients, 3 * xs**2)
    assert_trees_close(aux, {"square": xs**2})


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 12.0),
        (1, 8.0),
        (2, 6.0),
        (-1, 6.0),
        (-3, 12.0),
        ((0,), (12.0,)),
        ((2, 0), (6.0, 12.0)),
        ((-1, 1), (6.0, 8.0)),
        ((0, 1, 2), (12.0, 8.0, 6.0)),
    ],
)
def test_argnums_choose_what_to_differentiate_by(argnums, expected):
    f = lambda x, y, z: x * y * z
    assert_trees_close(ft.grad(f, argnums)(2.0, 3.0, 4.0), expected)
    value, gradients = ft.value_and_grad(f, argnums=argnums)(2.0, 3.0, 4.0)
    assert_trees_close(value, 24.0)
    assert_trees_close(gradients, expected)


def test_arguments_that_are_not_differentiated_may_be_anything():
    def f(x, name, options):
        return x * options[name]

    assert_trees_close(ft.grad(f)(2.0, "rate", {"rate": 7}), 7.0)


def test_keyword_arguments_are_passed_to_the_function():
    f = lambda x, *, scale=1.0, shift: np.sum(scale * x**2 + shift)
    x = np.array([1.0, 2.0])
    assert_trees_close(ft.grad(f)(x, scale=3.0, shift=1.0), 6 * x)
    assert_trees_close(ft.value_and_grad(f)(x, shift=1.0), (7.0, 2 * x))
    assert_trees_close(ft.jacrev(f)(x, shift=1.0), 2 * x)
    assert_trees_close(ft.jacfwd(f)(x, shift=1.0), 2 * x)
    assert_trees_close(ft.hessian(f)(x, shift=1.0), 2 * np.eye(2))


def test_keyword_arguments_of_vmap_map_over_axis_0():
    f = lambda x, *, y: x * np.sum(y)
    xs, ys = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(ft.vmap(f)(xs, y=ys), xs * ys.sum(axis=1))
    np.testing.assert_allclose(ft.vmap(f, in_axes=None)(2.0, y=ys), 2 * ys.sum(axis=1))


def test_axis_size_alone_says_how_many_lanes():
    np.testing.assert_allclose(
        ft.vmap(lambda: 3.0 * np.ones(2), axis_size=4)(), np.full((4, 2), 3.0)
    )
    np.testing.assert_allclose(
        ft.vmap(lambda x: 2 * x, in_axes=None, axis_size=3)(1.5), [3.0, 3.0, 3.0]
    )


def test_out_axes_none_returns_what_is_the_same_in_every_lane():
    x, y = np.arange(3.0), np.array([1.0, 2.0])
    mapped, shared = ft.vmap(lambda a, b: (a * b, b + 1), (0, None), (0, None))(x, y)
    np.testing.assert_allclose(mapped, np.outer(x, y))
    np.testing.assert_allclose(shared, y + 1)


def test_constant_output_is_repeated_for_every_lane():
    np.testing.assert_allclose(ft.vmap(lambda x: 1.0)(np.arange(3.0)), np.ones(3))
    np.testing.assert_allclose(
        ft.vmap(lambda x: np.arange(2), out_axes=1)(np.arange(3.0)), [[0] * 3, [1] * 3]
    )


def test_wrapped_function_keeps_its_name_and_docstring():
    def energy(x):
        """Say what it is."""
        return x**2

    for transform in (
        ft.grad,
        ft.value_and_grad,
        ft.jacrev,
        ft.jacfwd,
        ft.jacobian,
        ft.hessian,
        ft.vmap,
    ):
        assert transform(energy).__doc__.endswith("Say what it is.")
        assert "energy" in transform(energy).__name__


def test_linearize_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(x)
        return np.sin(x) ** 2

    _, pushforward = ft.linearize(f, 0.3)
    results = [pushforward(float(t)) for t in range(4)]
    assert len(calls) == 1
    np.testing.assert_allclose(results, np.arange(4) * np.sin(0.6))


def test_grad_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(x)
        return np.sum(x**2)

    ft.grad(f)(np.arange(3.0))
    ft.vmap(ft.grad(f))(np.arange(6.0).reshape(2, 3))
    assert len(calls) == 2


# --- holomorphic functions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "prime"),
    [
        (lambda z: z**3, lambda z: 3 * z**2),
        (np.exp, np.exp),
        (np.sin, np.cos),
        (lambda z: 1 / z, lambda z: -1 / z**2),
        (np.log, lambda z: 1 / z),
        (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
        (
            lambda z: (2 - 1j) * z * np.tanh(z),
            lambda z: (2 - 1j) * (np.tanh(z) + z / np.cosh(z) ** 2),
        ),
    ],
)
def test_holomorphic_grad_is_the_complex_derivative(f, prime):
    z = 0.7 + 0.4j
    np.testing.assert_allclose(ft.grad(f, holomorphic=True)(z), prime(z))
    np.testing.assert_allclose(ft.value_and_grad(f, holomorphic=True)(z), (f(z), prime(z)))
    np.testing.assert_allclose(ft.jvp(f, (z,), (1.0 + 0j,))[1], prime(z))
    np.testing.assert_allclose(
        ft.vmap(ft.grad(f, holomorphic=True))(np.array([z, 2 * z])), [prime(z), prime(2 * z)]
    )


def test_second_holomorphic_derivative():
    f = ft.grad(ft.grad(lambda z: z**4, holomorphic=True), holomorphic=True)
    np.testing.assert_allclose(f(0.5 + 1j), 12 * (0.5 + 1j) ** 2)


# --- stop_gradient -------------------------------------------------------------------------------


def test_stop_gradient_is_a_constant_to_every_derivative():
    f = lambda x: ft.stop_gradient(x**2) * x
    np.testing.assert_allclose(ft.grad(f)(3.0), 9.0)
    np.testing.assert_allclose(ft.jvp(f, (3.0,), (1.0,)), (27.0, 9.0))
    np.testing.assert_allclose(ft.grad(ft.grad(f))(3.0), 0.0)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.arange(3.0)), np.arange(3.0) ** 2)
    assert_trees_close(
        ft.stop_gradient({"a": 1.0, "b": [np.ones(2)]}), {"a": 1.0, "b": [np.ones(2)]}
    )


def test_stop_gradient_stops_the_outer_derivative_too():
    f = lambda x: x * ft.grad(lambda y: ft.stop_gradient(x) * y**2)(x)
    # x * (c * 2 x) with c = x held constant: 2 c x^2 has derivative 4 c x.
    np.testing.assert_allclose(ft.grad(f)(3.0), 36.0)


# --- a whole program -----------------------------------------------------------------------------


def network_loss(params, x, y):
    for weight, bias in params[:-1]:
        x = np.tanh(x @ weight + bias)
    weight, bias = params[-1]
    logits = x @ weight + bias
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    return -np.mean(np.take_along_axis(log_probabilities, y[..., None], axis=-1))


def test_per_example_gradients_of_a_network():
    sizes = [2, 5, 3]
    params = [(RNG.normal(size=(m, n)), RNG.normal(size=n)) for m, n in itertools.pairwise(sizes)]
    xs, ys = RNG.normal(size=(4, 2)), np.array([0, 2, 1, 1])
    per_example = ft.vmap(ft.grad(network_loss), (None, 0, 0))(params, xs, ys)
    mean = map_leaves(lambda g: g.mean(axis=0), per_example)
    assert_trees_close(mean, numerical_gradient(lambda p: network_loss(p, xs, ys), (params,))[0])
    assert_trees_close(per_example, loop_vmap(ft.grad(network_loss), (None, 0, 0))(params, xs, ys))
