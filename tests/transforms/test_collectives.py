"""Collectives over a named vmap axis: what lanes say to each other, alone and under derivatives."""

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import assert_trees_close, numerical_gradient, numerical_jvp

RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (4, 3))


def over_lanes(f, **options):
    return ft.vmap(f, axis_name="lanes", **options)


@pytest.mark.parametrize(
    ("collective", "reduce"),
    [(ft.psum, np.sum), (ft.pmean, np.mean), (ft.pmax, np.max), (ft.pmin, np.min)],
    ids=["psum", "pmean", "pmax", "pmin"],
)
def test_reductions_give_every_lane_the_same_result(collective, reduce):
    out = over_lanes(lambda x: collective(x, "lanes"))(X)
    np.testing.assert_allclose(out, np.broadcast_to(reduce(X, axis=0), X.shape))
    mixed = over_lanes(lambda x: x - collective(np.sin(x), "lanes"))(X)
    np.testing.assert_allclose(mixed, X - reduce(np.sin(X), axis=0))


@pytest.mark.parametrize("in_axis", [0, 1, -1])
def test_reductions_over_any_mapped_axis(in_axis):
    out = over_lanes(lambda x: x / ft.psum(x, "lanes"), in_axes=in_axis, out_axes=in_axis)(
        np.exp(X)
    )
    np.testing.assert_allclose(out, np.exp(X) / np.exp(X).sum(axis=in_axis, keepdims=True))


def test_reduction_may_be_returned_unmapped():
    out = over_lanes(lambda x: ft.psum(x, "lanes"), out_axes=None)(X)
    np.testing.assert_allclose(out, X.sum(axis=0))


def test_all_gather_gives_every_lane_all_lanes():
    out = over_lanes(lambda x: ft.all_gather(x, "lanes"))(X)
    np.testing.assert_allclose(out, np.broadcast_to(X, (4, 4, 3)))
    distances = over_lanes(lambda x: np.sum((ft.all_gather(x, "lanes") - x) ** 2, axis=1))(X)
    np.testing.assert_allclose(distances, np.sum((X[:, None] - X) ** 2, axis=-1))


def test_axis_index_counts_lanes():
    np.testing.assert_array_equal(over_lanes(lambda x: ft.axis_index("lanes"))(X), np.arange(4))
    out = over_lanes(lambda x: x * ft.axis_index("lanes"))(X)
    np.testing.assert_allclose(out, X * np.arange(4)[:, None])
    np.testing.assert_array_equal(
        over_lanes(lambda: ft.axis_index("lanes"), axis_size=3)(), np.arange(3)
    )


def test_axis_index_decides_branches():
    def f(x):
        return x if ft.axis_index("lanes") % 2 else -x

    np.testing.assert_allclose(over_lanes(f)(X), X * np.array([-1.0, 1.0, -1.0, 1.0])[:, None])


def test_unmapped_values_count_once_for_each_lane():
    out = over_lanes(lambda x: x * 0 + ft.psum(1.0, "lanes"))(X)
    np.testing.assert_allclose(out, np.full((4, 3), 4.0))
    shared = over_lanes(lambda x, y: x + ft.pmean(y, "lanes"), in_axes=(0, None))(X, 2.0)
    np.testing.assert_allclose(shared, X + 2.0)


def test_nested_names_reach_the_axis_they_name():
    table = RNG.uniform(-1, 1, (2, 3))
    both = ft.vmap(
        ft.vmap(
            lambda x: (
                ft.psum(x, "rows"),
                ft.psum(x, "columns"),
                ft.psum(ft.psum(x, "rows"), "columns"),
            ),
            axis_name="columns",
        ),
        axis_name="rows",
    )
    rows, columns, everything = both(table)
    np.testing.assert_allclose(rows, np.broadcast_to(table.sum(axis=0), (2, 3)))
    np.testing.assert_allclose(columns, np.broadcast_to(table.sum(axis=1, keepdims=True), (2, 3)))
    np.testing.assert_allclose(everything, np.full((2, 3), table.sum()))


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_all_gather_over_one_of_two_nested_axes(name):
    table = RNG.uniform(-1, 1, (2, 3, 2))

    def products(table):
        """The value at (row, column) times all those in its column, or in its row."""
        one = lambda x: ft.all_gather(x, name) * x
        return ft.vmap(ft.vmap(one, axis_name="columns"), axis_name="rows")(table)

    def plainly(table):
        every = np.swapaxes(table, 0, 1)[None] if name == "rows" else table[:, None]
        return every * table[:, :, None]

    assert_trees_close(products(table), plainly(table))
    direction = RNG.uniform(-1, 1, table.shape)
    tangent = ft.jvp(products, (table,), (direction,))[1]
    assert_trees_close(tangent, numerical_jvp(plainly, (table,), (direction,)))
    weights = RNG.uniform(-1, 1, plainly(table).shape)
    gradient = ft.grad(lambda table: np.sum(weights * products(table)))(table)
    loss = lambda table: np.sum(weights * plainly(table))
    assert_trees_close(gradient, numerical_gradient(loss, (table,))[0])


def test_axis_index_of_nested_names():
    index = lambda x: 10 * ft.axis_index("rows") + ft.axis_index("columns")
    table = ft.vmap(ft.vmap(index, axis_name="columns"), axis_name="rows")(np.zeros((2, 3)))
    np.testing.assert_array_equal(table, [[0, 1, 2], [10, 11, 12]])


def normalize(x):
    """Batch normalization of one example among its fellows."""
    mean = ft.pmean(x, "lanes")
    variance = ft.pmean((x - mean) ** 2, "lanes")
    return (x - mean) / np.sqrt(variance + 0.1)


def normalize_all(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 0.1)


def test_batch_normalization_is_the_whole_batch_formula():
    np.testing.assert_allclose(over_lanes(normalize)(X), normalize_all(X))


WEIGHTS = RNG.uniform(-1, 1, (4, 3))
COLLECTIVE_PROGRAMS = {
    "psum": lambda x: np.sin(x) * ft.psum(x**2, "lanes"),
    "pmean": normalize,
    "pmax": lambda x: np.exp(x - ft.pmax(x, "lanes")) * x,
    "pmin": lambda x: x * ft.pmin(x**3, "lanes"),
    "all_gather": lambda x: np.sin(ft.all_gather(x, "lanes") * x).sum(axis=0),
    "axis_index": lambda x: x ** (1 + ft.axis_index("lanes")),
}
PLAIN_PROGRAMS = {
    "psum": lambda x: np.sin(x) * np.sum(x**2, axis=0),
    "pmean": normalize_all,
    "pmax": lambda x: np.exp(x - np.max(x, axis=0)) * x,
    "pmin": lambda x: x * np.min(x**3, axis=0),
    "all_gather": lambda x: np.sin(x * x[:, None]).sum(axis=1),
    "axis_index": lambda x: x ** (1 + np.arange(4)[:, None]),
}
EACH_PROGRAM = pytest.mark.parametrize("name", COLLECTIVE_PROGRAMS)


def plain_loss(name):
    return lambda x: np.sum(WEIGHTS * PLAIN_PROGRAMS[name](x))


@EACH_PROGRAM
def test_derivatives_around_the_map_see_every_lane(name):
    expected = numerical_gradient(plain_loss(name), (X,))[0]
    loss = lambda x: np.sum(WEIGHTS * over_lanes(COLLECTIVE_PROGRAMS[name])(x))
    assert_trees_close(ft.grad(loss)(X), expected)
    direction = RNG.uniform(-1, 1, X.shape)
    out, tangent = ft.jvp(over_lanes(COLLECTIVE_PROGRAMS[name]), (X,), (direction,))
    assert_trees_close(out, PLAIN_PROGRAMS[name](X))
    assert_trees_close(tangent, numerical_jvp(PLAIN_PROGRAMS[name], (X,), (direction,)))


@EACH_PROGRAM
def test_forward_derivatives_inside_the_map_carry_every_lanes_tangent(name):
    direction = RNG.uniform(-1, 1, X.shape)
    push = lambda x, v: ft.jvp(COLLECTIVE_PROGRAMS[name], (x,), (v,))
    out, tangent = over_lanes(push)(X, direction)
    assert_trees_close(out, PLAIN_PROGRAMS[name](X))
    assert_trees_close(tangent, numerical_jvp(PLAIN_PROGRAMS[name], (X,), (direction,)))


@EACH_PROGRAM
def test_reverse_derivatives_inside_the_map_gather_every_lanes_cotangent(name):
    pull = lambda x, w: ft.vjp(COLLECTIVE_PROGRAMS[name], x)[1](w)[0]
    assert_trees_close(over_lanes(pull)(X, WEIGHTS), numerical_gradient(plain_loss(name), (X,))[0])


@EACH_PROGRAM
def test_second_derivatives_through_the_map(name):
    direction = RNG.uniform(-1, 1, X.shape)
    loss = lambda x: np.sum(WEIGHTS * over_lanes(COLLECTIVE_PROGRAMS[name])(x))
    expected = numerical_jvp(ft.grad(plain_loss(name)), (X,), (direction,))
    assert_trees_close(ft.hvp(loss, (X,), (direction,)), expected)


def test_data_parallel_training_step_is_the_step_on_the_whole_batch():
    inputs, targets = RNG.normal(size=(6, 3)), RNG.normal(size=6)
    loss = lambda w, x, y: (x @ w - y) ** 2

    def step(w, x, y):
        return w - 0.1 * ft.pmean(ft.grad(loss)(w, x, y), "lanes")

    w = RNG.normal(size=3)
    stepped = over_lanes(step, in_axes=(None, 0, 0), out_axes=None)(w, inputs, targets)
    gradient = 2 * inputs.T @ (inputs @ w - targets) / 6
    np.testing.assert_allclose(stepped, w - 0.1 * gradient)


@pytest.mark.peers
def test_gradients_of_collectives_are_those_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = jax.vmap(
        jax.grad(lambda x: jax.numpy.sum(jax.lax.psum(x**2, "lanes") * x)), axis_name="lanes"
    )
    ours = over_lanes(ft.grad(lambda x: np.sum(ft.psum(x**2, "lanes") * x)))
    assert_trees_close(ours(X), np.asarray(theirs(X)), rtol=1e-10)
