"""Promises beyond calculus: kinks, complex numbers, emptiness, dtypes, depth, memory, threads."""

import concurrent.futures
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import functrans as ft
from tests.support.marks import of_constants, one_in
from tests.support.oracles import assert_trees_close, leaves, numerical_gradient, numerical_jvp


def slopes(f, x):
    """The derivative of an elementwise or scalar function of a number, in both modes."""
    x = np.float64(x)
    return [ft.grad(f)(x), ft.jvp(f, (x,), (np.float64(1.0),))[1]]


# --- kinks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f", [np.abs, np.absolute, np.fabs, abs], ids=["abs", "absolute", "fabs", "builtin"]
)
def test_abs_at_zero_has_derivative_zero(f):
    assert slopes(f, 0.0) == [0.0, 0.0]
    np.testing.assert_array_equal(
        ft.grad(lambda x: np.sum(f(x)))(np.array([-2.0, 0.0, 3.0])), [-1.0, 0.0, 1.0]
    )


def test_abs_of_complex_zero_has_derivative_zero():
    assert ft.grad(np.abs)(0j) == 0


RELUS = {
    "clip(x, 0, None)": lambda x: np.clip(x, 0, None),
    "where": lambda x: np.where(x > 0, x, 0.0),
    "mask": lambda x: x * (x > 0),
}


@pytest.mark.parametrize("relu", RELUS.values(), ids=RELUS)
def test_relu_at_zero_has_derivative_zero(relu):
    assert slopes(relu, 0.0) == [0.0, 0.0]
    gradient = ft.grad(lambda x: np.sum(relu(x)))
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(gradient(x), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(ft.vmap(ft.grad(relu))(x), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        gradient(x.astype(np.float32)), np.array([0, 0, 1], dtype=np.float32)
    )


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_two_equal_arguments_of_maximum_share_evenly(f):
    assert ft.grad(f, (0, 1))(2.0, 2.0) == (0.5, 0.5)
    assert ft.jvp(f, (2.0, 2.0), (1.0, 0.0))[1] == 0.5
    assert ft.jvp(f, (2.0, 2.0), (1.0, 1.0))[1] == 1.0
    x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    left, right = ft.grad(lambda x, y: np.sum(f(x, y)), (0, 1))(x, y)
    np.testing.assert_array_equal(left + right, np.ones(3))
    assert left[1] == 0.5


@pytest.mark.parametrize("f", [np.maximum, np.minimum])
def test_maximum_of_a_value_and_itself_has_derivative_one(f):
    assert slopes(lambda x: f(x, x), 3.0) == [1.0, 1.0]


TIES = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 1.0]])


def test_ties_in_max_share_evenly():
    gradient = ft.grad(np.max)(TIES)
    np.testing.assert_allclose(gradient, (TIES == 3.0) / 3)
    rows = ft.grad(lambda x: np.sum(np.max(x, axis=1)))(TIES)
    np.testing.assert_allclose(rows, [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    tangent = ft.jvp(
        lambda x: x.max(axis=1), (TIES,), (np.array([[9.0, 1.0, 2.0], [5.0, 9.0, 9.0]]),)
    )[1]
    np.testing.assert_allclose(tangent, [1.5, 5.0])


def test_ties_in_min_share_evenly():
    gradient = ft.grad(lambda x: np.min(-x))(TIES)
    np.testing.assert_allclose(gradient, (TIES == 3.0) / -3.0)
    columns = ft.grad(lambda x: np.sum(np.min(x, axis=0)))(np.array([[1.0, 2.0], [1.0, 5.0]]))
    np.testing.assert_allclose(columns, [[0.5, 1.0], [0.5, 0.0]])


def test_ties_share_evenly_in_every_lane():
    gradient = ft.vmap(ft.grad(np.max))(TIES)
    np.testing.assert_allclose(gradient, [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])


POWERS_AT_ZERO = {
    "x ** 2": (lambda x: x**2, 0.0, 2.0),
    "x ** 2.0": (lambda x: x**2.0, 0.0, 2.0),
    "power(x, 2)": (lambda x: np.power(x, 2), 0.0, 2.0),
    "power(x, 2.0)": (lambda x: np.power(x, 2.0), 0.0, 2.0),
    "square": (np.square, 0.0, 2.0),
    "x ** 3": (lambda x: x**3, 0.0, 0.0),
    "x ** 1": (lambda x: x**1, 1.0, 0.0),
    "x ** 1.0": (lambda x: x**1.0, 1.0, 0.0),
    "x ** 0": (lambda x: x**0, 0.0, 0.0),
    "x ** 0.0": (lambda x: x**0.0, 0.0, 0.0),
    "x ** array": (lambda x: x ** np.array(2.0), 0.0, 2.0),
    "float_power": (lambda x: np.float_power(x, 2.0), 0.0, 2.0),
}


@pytest.mark.parametrize(("f", "first", "second"), POWERS_AT_ZERO.values(), ids=POWERS_AT_ZERO)
def test_powers_at_zero_have_finite_derivatives(f, first, second):
    assert slopes(f, 0.0) == [first, first]
    assert slopes(ft.grad(f), 0.0) == [second, second]
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(np.zeros(2)), [first, first])


def test_power_of_two_traced_arguments_at_zero():
    power = lambda x, y: x**y
    # d/dx x^y = y x^(y-1) and d/dy x^y = x^y log(x) -> 0 as x -> 0 for y > 0.
    assert ft.grad(power, (0, 1))(0.0, 2.0) == (0.0, 0.0)
    assert ft.grad(power, (0, 1))(0.0, 1.0) == (1.0, 0.0)
    assert ft.grad(power, 0)(0.0, 0.0) == 0.0
    assert ft.jvp(power, (0.0, 2.0), (1.0, 1.0))[1] == 0.0
    assert ft.grad(lambda y: 0.0**y)(3.0) == 0.0


def test_power_of_a_negative_base_with_a_constant_exponent():
    np.testing.assert_allclose(slopes(lambda x: x**3, -2.0), [12.0, 12.0])
    np.testing.assert_allclose(slopes(lambda x: np.power(x, 2.0), -2.0), [-4.0, -4.0])
    np.testing.assert_allclose(slopes(lambda x: x**-1, -2.0), [-0.25, -0.25])


def test_norm_at_zero_has_derivative_zero():
    np.testing.assert_array_equal(ft.grad(np.linalg.norm)(np.zeros(3)), np.zeros(3))
    np.testing.assert_array_equal(ft.grad(np.linalg.norm)(np.zeros((2, 2))), np.zeros((2, 2)))
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    gradient = ft.grad(lambda x: np.sum(np.linalg.norm(x, axis=1)))(rows)
    np.testing.assert_allclose(gradient, [[0.6, 0.8], [0.0, 0.0]])
    tangent = ft.jvp(np.linalg.norm, (np.zeros(3),), (np.ones(3),))[1]
    assert tangent == 0.0


def test_products_with_zeros_have_the_right_derivative():
    np.testing.assert_allclose(ft.grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])
    np.testing.assert_allclose(ft.grad(np.prod)(np.array([0.0, 0.0, 3.0])), [0.0, 0.0, 0.0])
    hessian = ft.hessian(np.prod)(np.array([0.0, 0.0, 3.0]))
    np.testing.assert_allclose(hessian, [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    x = np.array([2.0, 0.0, 3.0])
    jacobian = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 6.0, 0.0]])
    np.testing.assert_allclose(ft.jacrev(np.cumprod)(x), jacobian)
    np.testing.assert_allclose(ft.jacfwd(np.cumprod)(x), jacobian)


@pytest.mark.parametrize(
    "f", [np.floor, np.ceil, np.rint, np.trunc, np.sign, np.argmax, lambda x: x > 0]
)
def test_piecewise_constant_functions_are_constants(f):
    x = np.array([1.5, -0.5, 0.25])
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(f(x) * x))(x), np.broadcast_to(f(x), 3))
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(f(x) + x))(x), np.ones(3))


@of_constants
def test_derivative_of_something_unrelated_to_the_argument_is_zero():
    np.testing.assert_array_equal(ft.grad(lambda x: 3.0)(2.0), 0.0)
    np.testing.assert_array_equal(ft.grad(lambda x, y: y**2)(np.ones(3), 2.0), np.zeros(3))
    np.testing.assert_array_equal(ft.jvp(lambda x: np.ones(2), (1.0,), (1.0,))[1], np.zeros(2))
    np.testing.assert_array_equal(ft.jacrev(lambda x: np.ones(2))(np.ones(3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(ft.jacfwd(lambda x: np.ones(2))(np.ones(3)), np.zeros((2, 3)))


def test_branch_not_taken_by_where_does_not_poison_the_gradient():
    f = lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([4.0, 0.0, -1.0])), [0.25, 0.0, 0.0])


SINGULAR = {
    "log": (np.log, (0.0,)),
    "log1p": (np.log1p, (-1.0,)),
    "log2": (np.log2, (0.0,)),
    "sqrt": (np.sqrt, (0.0,)),
    "sqrt of negative": (np.sqrt, (-1.0,)),
    "reciprocal": (np.reciprocal, (0.0,)),
    "arcsin": (np.arcsin, (1.0,)),
    "arctanh": (np.arctanh, (1.0,)),
    "arccosh": (np.arccosh, (1.0,)),
    "arctan2": (np.arctan2, (0.0, 0.0)),
    "divide": (np.divide, (1.0, 0.0)),
    "power": (np.power, (0.0, -1.0)),
    "power of negative": (np.power, (-1.0, 0.5)),
    "power overflow": (np.power, (1e200, 2.0)),
    "mod": (np.mod, (1.0, 0.0)),
    "fmod": (np.fmod, (1.0, 0.0)),
    "exp overflow": (np.exp, (1e4,)),
    "square overflow": (np.square, (1e200,)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "args"), SINGULAR.values(), ids=SINGULAR)
def test_singular_points_give_infinities_and_nans_as_in_numpy(f, args):
    scalars = tuple(map(np.float64, args))
    arrays = tuple(map(np.array, args))
    everything = tuple(range(len(args)))
    expected = f(*scalars)
    gradients = ft.grad(f, everything)(*arrays)
    for kind in (args, scalars):
        value, found = ft.value_and_grad(f, everything)(*kind)
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(found, gradients)
        np.testing.assert_array_equal(ft.jvp(f, kind, tuple(map(type(kind[0]), kind)))[0], expected)


# --- complex numbers -----------------------------------------------------------------------------

MATRIX = np.array([[1.0 + 2j, 0.5 - 1j], [-0.3j, 2.0 + 0j]])
REAL_OF_COMPLEX = {
    "real": lambda z: np.sum(z.real),
    "imag": lambda z: np.sum(z.imag),
    "abs": lambda z: np.sum(np.abs(z)),
    "squared modulus": lambda z: np.sum((z * np.conj(z)).real),
    "real of product": lambda z: np.real(z[0] * z[1]),
    "imag of exp": lambda z: np.sum(np.imag(np.exp(z))),
    "modulus of log": lambda z: np.sum(np.abs(np.log(z))),
    "vdot": lambda z: np.real(np.vdot(z, MATRIX @ z)),
    "vdot with itself": lambda z: np.vdot(z, z).real,
    "quadratic form": lambda z: np.abs(z @ MATRIX @ np.conj(z)) ** 2,
    "norm": np.linalg.norm,
    "var": np.var,
    "mixed with reals": lambda z: np.sum(np.abs(z * np.array([1.0, 2.0]) + 3.0) ** 3),
    "division": lambda z: np.real(z[0] / z[1]),
    "power": lambda z: np.sum(np.real(z**2.5)),
    "where": lambda z: np.sum(np.where(z.real > 0.5, np.abs(z) ** 2, z.imag)),
}
Z = np.array([0.8 + 0.6j, 0.3 - 1.1j])


@pytest.mark.parametrize("f", REAL_OF_COMPLEX.values(), ids=REAL_OF_COMPLEX)
def test_gradient_of_a_real_function_of_z_is_du_dx_minus_i_du_dy(f):
    gradient = ft.grad(f)(Z)
    assert gradient.dtype == np.complex128
    assert_trees_close(gradient, numerical_gradient(f, (Z,))[0])


@pytest.mark.parametrize("f", REAL_OF_COMPLEX.values(), ids=REAL_OF_COMPLEX)
def test_tangent_of_a_real_function_of_z(f):
    direction = np.array([1.0 - 0.5j, 0.25 + 2j])
    tangent = ft.jvp(f, (Z,), (direction,))[1]
    assert_trees_close(tangent, numerical_jvp(f, (Z,), (direction,)))


@pytest.mark.parametrize("f", REAL_OF_COMPLEX.values(), ids=REAL_OF_COMPLEX)
def test_per_lane_gradient_of_a_real_function_of_z(f):
    lanes = np.stack([Z, 0.5 * Z + 0.7, Z[::-1]])
    expected = np.stack([numerical_gradient(f, (z,))[0] for z in lanes])
    assert_trees_close(ft.vmap(ft.grad(f))(lanes), expected)


def test_gradient_of_a_real_argument_through_complex_numbers_is_real():
    f = lambda t: np.sum(np.abs(np.exp(1j * t) + t) ** 2)
    t = np.array([0.1, 0.7])
    gradient = ft.grad(f)(t)
    assert gradient.dtype == np.float64
    assert_trees_close(gradient, numerical_gradient(f, (t,))[0])


def test_gradient_descends_when_its_conjugate_is_subtracted():
    f = lambda z: np.abs(z - (1 + 2j)) ** 2
    z = 0.0 + 0.0j
    for _ in range(60):
        z = z - 0.2 * np.conj(ft.grad(f)(z))
    np.testing.assert_allclose(z, 1 + 2j, rtol=1e-6)


@pytest.mark.peers
@pytest.mark.parametrize("name", REAL_OF_COMPLEX)
def test_complex_gradients_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    same = {
        "real": lambda z: jnp.sum(z.real),
        "imag": lambda z: jnp.sum(z.imag),
        "abs": lambda z: jnp.sum(jnp.abs(z)),
        "squared modulus": lambda z: jnp.sum((z * jnp.conj(z)).real),
        "real of product": lambda z: jnp.real(z[0] * z[1]),
        "imag of exp": lambda z: jnp.sum(jnp.imag(jnp.exp(z))),
        "modulus of log": lambda z: jnp.sum(jnp.abs(jnp.log(z))),
        "vdot": lambda z: jnp.real(jnp.vdot(z, MATRIX @ z)),
        "vdot with itself": lambda z: jnp.vdot(z, z).real,
        "quadratic form": lambda z: jnp.abs(z @ MATRIX @ jnp.conj(z)) ** 2,
        "norm": jnp.linalg.norm,
        "var": jnp.var,
        "mixed with reals": lambda z: jnp.sum(jnp.abs(z * jnp.array([1.0, 2.0]) + 3.0) ** 3),
        "division": lambda z: jnp.real(z[0] / z[1]),
        "power": lambda z: jnp.sum(jnp.real(z**2.5)),
        "where": lambda z: jnp.sum(jnp.where(z.real > 0.5, jnp.abs(z) ** 2, z.imag)),
    }[name]
    expected = np.asarray(jax.grad(same)(Z))
    assert_trees_close(ft.grad(REAL_OF_COMPLEX[name])(Z), expected, rtol=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "conjugate",
        "real",
        "imag",
        "abs",
        "exp",
        "sqrt",
        "square",
        "log",
        "sin",
        "tanh",
        "reciprocal",
    ],
)
def test_complex_pullbacks_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    out, pullback = ft.vjp(getattr(np, name), Z)
    expected_out, expected_pullback = jax.vjp(getattr(jax.numpy, name), Z)
    assert_trees_close(out, np.asarray(expected_out), rtol=1e-10, dtypes=True)
    cotangent = np.array([0.5, -2.0]) + (np.array([1j, 0.3j]) if np.iscomplexobj(out) else 0.0)
    assert_trees_close(
        pullback(cotangent), (np.asarray(expected_pullback(cotangent)[0]),), rtol=1e-10
    )


# --- empty arrays and empty trees ----------------------------------------------------------------

EMPTY = {
    "sum": (np.sum, (0,)),
    "sum of (0, 3)": (np.sum, (0, 3)),
    "sum along the empty axis": (lambda x: np.sum(np.sum(x, axis=0) + 1.0), (0, 3)),
    "sum along the other axis": (lambda x: np.sum(np.sum(x, axis=1)), (0, 3)),
    "prod": (np.prod, (0,)),
    "cumsum": (lambda x: np.sum(np.cumsum(x)), (0,)),
    "cumprod": (lambda x: np.sum(np.cumprod(x, axis=1)), (0, 3)),
    "max along the full axis": (lambda x: np.sum(np.max(x, axis=1)), (0, 3)),
    "sort": (lambda x: np.sum(np.sort(x)), (0,)),
    "elementwise": (lambda x: np.sum(np.sin(x) * x**2 / (1 + x)), (2, 0)),
    "matmul": (lambda x: np.sum(x @ np.ones((3, 2))), (0, 3)),
    "matmul over nothing": (lambda x: np.sum(x @ np.ones((0, 2))), (3, 0)),
    "dot": (lambda x: np.dot(x, x), (0,)),
    "einsum": (lambda x: np.einsum("ij,kj->", x, x), (0, 3)),
    "tensordot": (lambda x: np.sum(np.tensordot(x, x, axes=0)), (0, 2)),
    "outer": (lambda x: np.sum(np.outer(x, np.ones(2))), (0,)),
    "reshape": (lambda x: np.sum(x.reshape(0, 5, 2)), (0, 3)),
    "transpose": (lambda x: np.sum(x.T * np.ones((3, 0))), (0, 3)),
    "concatenate": (lambda x: np.sum(np.concatenate([x, np.ones((2, 3)), x])), (0, 3)),
    "stack": (lambda x: np.sum(np.stack([x, x])), (0, 3)),
    "split": (lambda x: sum(np.sum(part) for part in np.split(x, [0, 0])), (0, 3)),
    "pad": (lambda x: np.sum(np.pad(x, 1)), (0, 3)),
    "tile": (lambda x: np.sum(np.tile(x, (2, 2))), (0, 3)),
    "repeat": (lambda x: np.sum(np.repeat(x, 2, axis=1)), (0, 3)),
    "flip and roll": (lambda x: np.sum(np.roll(np.flip(x), 1)), (0, 3)),
    "index": (lambda x: np.sum(x[:, 1]) + np.sum(x[::-1]) + np.sum(x[:, [0, 2]]), (0, 3)),
    "mask": (lambda x: np.sum(x[np.zeros(0, dtype=bool)]), (0, 3)),
    "where": (lambda x: np.sum(np.where(x > 0, x, 0.0)), (0, 3)),
    "broadcast": (lambda x: np.sum(x + np.ones((2, 1, 3))), (0, 3)),
    "norm": (lambda x: np.sum(np.linalg.norm(x, axis=1)), (0, 3)),
    "diagonal": (lambda x: np.trace(x) + np.sum(np.diagonal(x)), (0, 3)),
}


@of_constants
@pytest.mark.parametrize(("f", "shape"), EMPTY.values(), ids=EMPTY)
def test_empty_arrays_have_empty_gradients(f, shape):
    x = np.ones(shape)
    value, gradient = ft.value_and_grad(f)(x)
    assert_trees_close(value, f(x), dtypes=True)
    assert_trees_close(gradient, np.zeros(shape), dtypes=True)
    out, tangent = ft.jvp(f, (x,), (x,))
    assert_trees_close(out, f(x), dtypes=True)
    assert_trees_close(tangent, 0.0)


@pytest.mark.parametrize(("f", "shape"), EMPTY.values(), ids=EMPTY)
def test_empty_arrays_in_every_lane(f, shape):
    x = np.ones((2, *shape))
    assert_trees_close(ft.vmap(f)(x), np.stack([f(x[0])] * 2))
    assert_trees_close(ft.vmap(ft.grad(f))(x), np.zeros((2, *shape)))
    graph = ft.make_graph(f)(x[0])
    assert_trees_close(graph(x[0]), f(x[0]))


def test_no_lanes_at_all():
    f = lambda x, y: {"a": np.sin(x) @ y, "b": np.sum(x)}
    out = ft.vmap(f, (0, None))(np.ones((0, 3)), np.ones((3, 2)))
    assert_trees_close(out, {"a": np.ones((0, 2)), "b": np.ones(0)}, dtypes=True)
    assert_trees_close(ft.vmap(ft.grad(lambda x: np.sum(x**2)))(np.ones((0, 3))), np.ones((0, 3)))
    gradient = ft.grad(lambda x: np.sum(ft.vmap(np.sin)(x)))(np.ones(0))
    assert_trees_close(gradient, np.ones(0))


def test_jacobians_of_and_to_nothing():
    for jacobian in (ft.jacrev, ft.jacfwd, ft.jacobian):
        assert_trees_close(jacobian(lambda x: x[:0])(np.ones(3)), np.zeros((0, 3)))
        assert_trees_close(jacobian(lambda x: np.sum(x) + np.ones(2))(np.ones(0)), np.zeros((2, 0)))
        assert_trees_close(jacobian(np.sin)(np.ones((0, 2))), np.zeros((0, 2, 0, 2)))
    assert_trees_close(ft.hessian(np.sum)(np.ones(0)), np.zeros((0, 0)))


def test_scalars_of_every_kind():
    for x in (2.0, np.float64(2.0), np.array(2.0)):
        assert_trees_close(ft.grad(lambda x: x**3)(x), 12.0)
        assert_trees_close(ft.jacfwd(lambda x: x**3)(x), 12.0)
        assert_trees_close(ft.hessian(lambda x: x**3)(x), 12.0)
        assert_trees_close(ft.jvp(np.sin, (x,), (1.0,)), (np.sin(2.0), np.cos(2.0)))


@pytest.mark.parametrize("empty", [(), [], {}, None, {"a": [], "b": None}], ids=str)
def test_empty_trees_have_empty_gradients(empty):
    f = lambda tree, x: x**2
    assert_trees_close(ft.grad(f)(empty, 3.0), empty)
    assert_trees_close(ft.grad(f, (0, 1))(empty, 3.0), (empty, 6.0))
    assert_trees_close(ft.vmap(lambda tree, x: (tree, x))(empty, np.ones(2)), (empty, np.ones(2)))
    assert_trees_close(ft.jvp(lambda x: (empty, x), (1.0,), (2.0,)), ((empty, 1.0), (empty, 2.0)))


# --- dtypes --------------------------------------------------------------------------------------

FLOATS = [np.float16, np.float32, np.float64]
COMPLEXES = [np.complex64, np.complex128]
PROGRAMS = {
    "elementary": lambda x: np.sum(np.exp(-(x**2)) / (1 + np.abs(x)) + 0.5 * x),
    "reductions": lambda x: np.mean(x) * np.max(np.abs(x)) + np.prod(np.abs(x)),
    "contractions": lambda x: np.sum(np.abs(x @ x) + np.abs(np.einsum("i,j->ij", x, x))),
    "structure": lambda x: np.sum(
        np.abs(np.concatenate([x[::-1], np.pad(x, 1)[1:-1], np.stack([x, x])[0]]))
    ),
    "python scalars": lambda x: np.sum(2 * np.abs(x) ** 2 - 1.5 + np.abs(x) / 3),
}


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_gradient_has_the_dtype_of_its_input(f, dtype):
    x = np.array([0.5, -1.5, 0.25], dtype=dtype)
    value, gradient = ft.value_and_grad(lambda x: f(x).real)(x)
    assert value.dtype == f(x).real.dtype
    assert gradient.dtype == dtype
    assert ft.vmap(ft.grad(lambda x: f(x).real))(np.stack([x, x])).dtype == dtype
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    expected = numerical_gradient(lambda x: f(x).real, (wide,))[0]
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-6}[np.finfo(dtype).dtype.itemsize]
    np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_tangents_and_jacobians_have_the_dtype_of_the_output(dtype):
    x = np.array([0.5, -1.5, 0.25], dtype=dtype)
    f = lambda x: 2.0 * np.sin(x) * x
    out, tangent = ft.jvp(f, (x,), (x,))
    assert out.dtype == tangent.dtype == dtype
    assert ft.linearize(f, x)[1](x).dtype == dtype
    if dtype in FLOATS:
        assert ft.jacrev(f)(x).dtype == ft.jacfwd(f)(x).dtype == dtype
        assert ft.hessian(lambda x: np.sum(f(x)))(x).dtype == dtype


def test_each_leaf_keeps_its_own_dtype():
    f = lambda p: np.sum(p["a"]) * np.sum(p["b"]) * p["c"]
    p = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float64), "c": np.float16(2)}
    gradient = ft.grad(f)(p)
    assert {name: leaf.dtype for name, leaf in gradient.items()} == {
        name: leaf.dtype for name, leaf in p.items()
    }


def test_casts_inside_the_function_do_not_change_the_dtype_of_the_gradient():
    f = lambda x: np.sum(x.astype(np.float64) ** 2)
    x = np.array([1.0, 2.0], dtype=np.float32)
    value, gradient = ft.value_and_grad(f)(x)
    assert value.dtype == np.float64
    assert gradient.dtype == np.float32
    narrowing = ft.grad(lambda x: np.sum(x.astype(np.float32) ** 2))(np.array([1.0, 2.0]))
    assert narrowing.dtype == np.float64
    np.testing.assert_allclose(gradient, 2 * x)
    np.testing.assert_allclose(narrowing, 2 * x)


def test_python_scalars_stay_weak_on_every_tracer():
    x = np.ones(3, dtype=np.float32)
    seen = []

    def f(x):
        seen.extend(
            [(x * 2.5).dtype, (1 / x).dtype, (x**2).dtype, np.maximum(x, 0.0).dtype, (x + 1).dtype]
        )
        return np.sum(x)

    ft.grad(f)(x)
    ft.jvp(f, (x,), (x,))
    ft.vmap(f)(x[None])
    ft.make_graph(f)(x)
    assert set(seen) == {np.dtype(np.float32)}
    assert len(seen) == 20


def test_results_are_plain_numpy():
    x = np.arange(3.0)
    results = [
        ft.grad(lambda x: np.sum(x**2))(x),
        ft.value_and_grad(lambda x: np.sum(x**2))(x),
        ft.jvp(np.sin, (x,), (x,)),
        ft.vmap(np.sin)(x),
        ft.vmap(lambda x: (x, 1.0, x > 0))(x),
        ft.hessian(lambda x: np.sum(x**2))(x),
        ft.linearize(np.sin, x)[1](x),
        ft.make_graph(np.sin)(x)(x),
    ]
    assert {type(leaf) for leaf in leaves(results)} <= {np.ndarray, np.float64}


def test_arguments_are_never_written_to():
    x = np.arange(1.0, 4.0)
    x.flags.writeable = False
    f = lambda x: np.sum(x * x) + x[0] * x[1] + np.sum(x[:2])
    np.testing.assert_allclose(ft.grad(f)(x), [5.0, 6.0, 6.0])
    out, pullback = ft.vjp(lambda x: x, x)
    cotangent = np.ones(3)
    pullback(cotangent)[0][...] = 7.0
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pullback(cotangent)[0], np.ones(3))


def test_two_gradients_never_share_memory():
    left, right = ft.grad(lambda x, y: np.sum(x + y), (0, 1))(np.ones(3), np.ones(3))
    left += 5.0
    np.testing.assert_array_equal(right, np.ones(3))


# --- depth ---------------------------------------------------------------------------------------

LONG = 1_000_000
FACTOR = 1.0 + 1e-7


def long_chain(x):
    for _ in range(LONG):
        x = x * FACTOR
    return x


def test_a_million_operations_are_differentiated_in_reverse():
    np.testing.assert_allclose(ft.grad(long_chain)(2.0), FACTOR**LONG, rtol=1e-6)


@pytest.mark.slow
def test_a_million_operations_are_freed_with_their_pullback():
    out, pullback = ft.vjp(long_chain, 2.0)
    np.testing.assert_allclose(pullback(1.0)[0], FACTOR**LONG, rtol=1e-6)
    del out, pullback


def test_a_million_operations_are_differentiated_forward():
    tangent = ft.jvp(long_chain, (2.0,), (1.0,))[1]
    np.testing.assert_allclose(tangent, FACTOR**LONG, rtol=1e-6)


def test_a_long_chain_of_sums_is_differentiated_in_reverse():
    def fibonacci(x):
        before, now = x, x
        for _ in range(50_000):
            before, now = now, 0.5 * (before + now)
        return now

    np.testing.assert_allclose(ft.grad(fibonacci)(3.0), 1.0)


# --- memory --------------------------------------------------------------------------------------


def watched_chain(constants, length=10, size=10_000):
    """A function that keeps weak references to constants that only its tape can keep alive.

    They are large: of small ones the tape keeps a copy.
    """

    def f(x):
        for k in range(length):
            constant = np.full(size, 1.0 + k / length)
            constants.append(weakref.ref(constant))
            x = np.sin(x * constant)
        return np.sum(x)

    return f


@pytest.fixture
def no_garbage_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


POINT = np.linspace(0.0, 1.0, 10_000)
USES = {
    "grad": lambda f: ft.grad(f)(POINT),
    "value_and_grad": lambda f: ft.value_and_grad(f)(POINT),
    "jvp": lambda f: ft.jvp(f, (POINT,), (POINT,)),
    "vjp": lambda f: ft.vjp(f, POINT)[1](1.0),
    "linearize": lambda f: ft.linearize(f, POINT)[1](POINT),
    "vmap": lambda f: ft.vmap(f)(POINT[None]),
    "vmap of grad": lambda f: ft.vmap(ft.grad(f))(POINT[None]),
    "grad of vmap": lambda f: ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(POINT[None]),
    "hvp": lambda f: ft.hvp(f, (POINT,), (POINT,)),
    "grad of grad": lambda f: ft.grad(lambda x: np.sum(ft.grad(f)(x)))(POINT),
    "split lanes": lambda f: ft.vmap(lambda x: f(x) if x[0] > 0 else f(-x))(
        np.stack([POINT + 1, -POINT - 1])
    ),
}


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_stays_alive_after_a_transform(use):
    constants = []
    result = use(watched_chain(constants))
    assert len(constants) >= 10
    assert [reference() for reference in constants if reference() is not None] == []
    assert result is not None


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("use", one_in(3, USES.values()), ids=USES)
def test_no_reference_cycle_is_left_behind(use):
    use(watched_chain([]))
    gc.collect()
    use(watched_chain([]))
    assert gc.collect() == 0


@pytest.mark.usefixtures("no_garbage_collection")
def test_a_pullback_keeps_what_it_needs_and_no_longer():
    constants = []
    out, pullback = ft.vjp(watched_chain(constants), POINT)
    first = pullback(np.ones_like(out))
    np.testing.assert_array_equal(first, pullback(np.ones_like(out)))
    assert all(reference() is not None for reference in constants)
    del pullback
    assert all(reference() is None for reference in constants)


@pytest.mark.usefixtures("no_garbage_collection")
def test_nothing_stays_alive_after_an_exception():
    constants = []
    chain = watched_chain(constants)

    def f(x):
        chain(x)
        raise RuntimeError("on purpose")

    for use in USES.values():
        with pytest.raises(RuntimeError, match="on purpose"):
            use(f)
    assert all(reference() is None for reference in constants)


def traced_peak(f):
    """The most memory, in bytes, allocated at one time while `f` runs."""
    f()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    f()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


@pytest.mark.usefixtures("no_garbage_collection")
def test_repeated_gradients_do_not_grow():
    USES["grad"](np.sum)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        ft.grad(lambda x: np.sum(np.sin(x) ** 2))(POINT)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # Python keeps some freed tuples for reuse; one array per call would be a hundred times more.
    assert grown < 10 * POINT.nbytes


def test_backward_sweep_frees_what_it_has_used():
    steps, size = 40, 10_000

    def f(x):
        # Going backward, the first step allocates as much as all the others together have saved.
        y = np.mean(x.reshape(steps, size), axis=0)
        for _ in range(steps):
            y = np.sin(y)
        return np.sum(y)

    whole = steps * size * 8
    x = np.linspace(0.0, 1.0, steps * size)
    peak = traced_peak(lambda: ft.grad(f)(x))
    assert peak < 1.4 * whole


def test_backward_sweep_holds_few_cotangents_at_a_time():
    steps, size = 40, 10_000

    def f(x):
        for _ in range(steps):
            x = np.sin(x)
        return np.sum(x)

    peak = traced_peak(lambda: ft.grad(f)(np.linspace(0.0, 1.0, size)))
    assert peak < (steps + 8) * size * 8


def test_forward_mode_keeps_nothing():
    steps, size = 40, 10_000

    def f(x):
        for _ in range(steps):
            x = np.sin(x)
        return x

    x = np.linspace(0.0, 1.0, size)
    assert traced_peak(lambda: ft.jvp(f, (x,), (x,))) < 12 * size * 8


# --- threads -------------------------------------------------------------------------------------


@pytest.fixture
def eager_thread_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def thread_program(seed):
    """Nested derivatives and lanes that split; the answers are known in closed form."""
    x = np.linspace(0.1, 1.0, 5) + seed

    def branch(t):
        return t**3 if t > seed + 0.5 else t**2

    gradients = ft.vmap(ft.grad(branch))(x)
    curvature = ft.hessian(lambda v: np.sum(v**3))(x)
    confusion = ft.grad(lambda a: a * ft.grad(lambda b: a + b)(1.0))(float(seed))
    tangent = ft.jvp(ft.grad(lambda v: np.sum(np.sin(v))), (x,), (x,))[1]
    np.testing.assert_allclose(gradients, np.where(x > seed + 0.5, 3 * x**2, 2 * x))
    np.testing.assert_allclose(curvature, np.diag(6 * x))
    np.testing.assert_allclose(confusion, 1.0)
    np.testing.assert_allclose(tangent, -np.sin(x) * x)
    return seed


@pytest.mark.usefixtures("eager_thread_switches")
def test_many_threads_get_the_right_answers():
    threads = 8
    barrier = threading.Barrier(threads)

    def work(seed):
        barrier.wait()
        return [thread_program(seed) for _ in range(10)]

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(work, range(threads)))
    assert results == [[seed] * 10 for seed in range(threads)]


def test_a_thread_inside_a_transform_starts_from_nothing():
    def f(x):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            inner = pool.submit(ft.grad(lambda y: y**3), 2.0).result()
        return inner * x**2

    np.testing.assert_allclose(ft.grad(f)(3.0), 72.0)


@pytest.mark.usefixtures("eager_thread_switches")
def test_one_pullback_is_called_from_many_threads():
    x = np.linspace(0.0, 1.0, 50)
    _, pullback = ft.vjp(lambda x: np.sin(x) * np.cumsum(x), x)
    cotangents = [np.full(50, float(k)) for k in range(32)]
    expected = pullback(np.ones(50))[0]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda c: pullback(c)[0], cotangents))
    for k, result in enumerate(results):
        np.testing.assert_allclose(result, k * expected)


def test_the_mixed_derivative_of_a_power_whose_exponent_is_zero():
    # d²/dxdy x^y = x^(y-1) (1 + y log x), which is 1 / x at y = 0
    both = ft.hessian(lambda p: p[0] ** p[1])(np.array([4.0, 0.0]))
    np.testing.assert_allclose(both, [[0, 0.25], [0.25, np.log(4.0) ** 2]])
    np.testing.assert_array_equal(ft.grad(lambda p: p[0] ** p[1])(np.zeros(2)), [0, 0])
