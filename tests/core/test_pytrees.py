"""Trees of arguments and results: every container in, the same container out."""

import dataclasses
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import (
    assert_trees_close,
    leaves,
    loop_vmap,
    map_leaves,
    numerical_gradient,
)

RNG = np.random.default_rng(5)
Layer = namedtuple("Layer", ["weight", "bias"])


@dataclasses.dataclass
class Model:
    encoder: Layer
    scale: float
    options: dict


class Interval:
    """A class that must be registered, with a part that is not a child."""

    def __init__(self, low, high, label):
        self.low, self.high, self.label = low, high, label


ft.tree.register(
    Interval,
    lambda interval: ((interval.low, interval.high), interval.label),
    lambda label, children: Interval(*children, label),
)


def some(*shape):
    return RNG.uniform(0.5, 1.5, shape)


TREES = {
    "array": some(2),
    "tuple": (some(2), some()),
    "list": [some(2), some(1, 2)],
    "dict": {"b": some(2), "a": some()},
    "nested": {"layers": [(some(2, 2), some(2)), (some(2),)], "rate": some()},
    "namedtuple": Layer(some(2, 3), some(3)),
    "dataclass": Model(Layer(some(2), some(2)), np.float64(1.5), {"x": some(1)}),
    "with None": {"a": some(2), "b": None, "c": (None, some())},
    "with empty containers": {"a": some(2), "b": [], "c": (), "d": {}},
    "one-tuple": (some(3),),
    "empty": {},
}
NON_EMPTY = {name: tree for name, tree in TREES.items() if leaves(tree)}
EACH_TREE = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def energy(tree):
    """A real function of all leaves that couples them."""
    total = sum(np.sum(np.sin(leaf)) for leaf in leaves(tree))
    return total**2 + sum(np.sum(leaf**3) for leaf in leaves(tree))


# --- derivatives ---------------------------------------------------------------------------------


@EACH_TREE
def test_gradient_has_the_structure_of_its_argument(tree):
    assert_trees_close(
        ft.grad(lambda t: energy(t) + 0.0)(tree), numerical_gradient(energy, (tree,))[0]
    )


@EACH_TREE
def test_tangents_have_the_structure_of_the_result(tree):
    double = lambda t: map_leaves(lambda leaf: leaf**2, t)
    direction = map_leaves(lambda leaf: np.ones_like(leaf), tree)
    out, tangent = ft.jvp(double, (tree,), (direction,))
    assert_trees_close(out, map_leaves(lambda leaf: leaf**2, tree))
    assert_trees_close(tangent, map_leaves(lambda leaf: 2 * leaf, tree))
    assert_trees_close(ft.linearize(double, tree)[1](direction), tangent)


@EACH_TREE
def test_pullback_takes_the_structure_of_the_result(tree):
    double = lambda t: map_leaves(lambda leaf: leaf**2, t)
    out, pullback = ft.vjp(double, tree)
    (pulled,) = pullback(map_leaves(lambda leaf: np.ones_like(leaf), out))
    assert_trees_close(pulled, map_leaves(lambda leaf: 2 * leaf, tree))


@pytest.mark.parametrize("tree", NON_EMPTY.values(), ids=NON_EMPTY)
def test_vmap_maps_every_leaf_of_a_tree(tree):
    batched = map_leaves(lambda leaf: np.stack([leaf, 2 * leaf, -leaf]), tree)
    f = lambda t: (map_leaves(np.sin, t), energy(t))
    assert_trees_close(ft.vmap(f)(batched), loop_vmap(f)(batched))
    assert_trees_close(ft.vmap(ft.grad(energy))(batched), loop_vmap(ft.grad(energy))(batched))


@EACH_TREE
def test_graphs_keep_structure(tree):
    f = lambda t: (map_leaves(np.sin, t), {"energy": energy(t) + 0.0})
    graph = ft.make_graph(f)(tree)
    graph.check()
    assert_trees_close(graph(tree), f(tree))


def test_registered_class_is_differentiated_and_keeps_what_is_no_child():
    interval = Interval(np.float64(1.0), some(2), "metres")
    gradient = ft.grad(lambda i: np.sum(i.high**2) - i.low**3)(interval)
    assert type(gradient) is Interval
    assert gradient.label == "metres"
    assert_trees_close((gradient.low, gradient.high), (-3.0, 2 * interval.high))


def test_registered_class_is_mapped():
    batch = Interval(np.arange(3.0), some(3, 2), "metres")
    out = ft.vmap(lambda i: Interval(i.high * i.low, i.low + 1, i.label))(batch)
    assert type(out) is Interval
    assert out.label == "metres"
    assert_trees_close((out.low, out.high), (batch.high * batch.low[:, None], batch.low + 1))


def test_ordered_dict_keeps_its_order():
    tree = OrderedDict([("z", np.float64(2.0)), ("a", np.float64(3.0))])
    gradient = ft.grad(lambda t: t["z"] ** 2 * t["a"])(tree)
    assert type(gradient) is OrderedDict
    assert list(gradient.items()) == [("z", 12.0), ("a", 4.0)]


def test_jacobian_of_a_tree_by_a_tree():
    f = lambda m: {"y": m.encoder.weight * m.scale, "n": [np.sum(m.encoder.bias)]}
    model = Model(Layer(np.array([1.0, 2.0]), np.array([3.0, 4.0])), np.float64(5.0), {})
    expected = {
        "y": Model(Layer(5 * np.eye(2), np.zeros((2, 2))), np.array([1.0, 2.0]), {}),
        "n": [Model(Layer(np.zeros(2), np.ones(2)), np.float64(0.0), {})],
    }
    assert_trees_close(ft.jacrev(f)(model), expected)
    assert_trees_close(ft.jacfwd(f)(model), expected)


def test_hessian_over_a_tree_has_a_block_for_each_pair_of_leaves():
    f = lambda t: t["a"] ** 2 * np.sum(t["b"])
    hessian = ft.hessian(f)({"a": np.float64(3.0), "b": np.array([1.0, 2.0])})
    expected = {
        "a": {"a": np.float64(6.0), "b": np.array([6.0, 6.0])},
        "b": {"a": np.array([6.0, 6.0]), "b": np.zeros((2, 2))},
    }
    assert_trees_close(hessian, expected)


def test_gradient_by_two_trees():
    f = lambda p, q: np.sum(p["w"] * q[0]) + q[1]
    p, q = {"w": np.array([1.0, 2.0])}, [np.array([3.0, 4.0]), np.float64(1.0)]
    assert_trees_close(ft.grad(f, (0, 1))(p, q), ({"w": q[0]}, [p["w"], 1.0]))


# --- axes as trees -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "in_axes",
    [
        0,
        (0, 0),
        (0, None),
        ({"a": 0, "b": 1}, None),
        ({"a": None, "b": -1}, (None, None)),
        ({"a": 0, "b": 1}, (0, 1)),
        (None, (0, None)),
        [0, 0],
    ],
    ids=str,
)
def test_in_axes_as_prefixes_of_the_arguments(in_axes):
    f = lambda p, q: (np.sin(p["a"]) * np.sum(p["b"]) + np.sum(q[0]), q[1] * 2)
    args = ({"a": some(3, 3), "b": some(3, 3)}, (some(3, 3), some(3, 3)))
    assert_trees_close(ft.vmap(f, in_axes)(*args), loop_vmap(f, in_axes)(*args))


def test_in_axes_of_namedtuples_and_dataclasses():
    layer = Layer(some(2, 3), some(3, 2))
    out = ft.vmap(lambda m: m.weight * 2 + m.bias, in_axes=(Layer(1, 0),))(layer)
    np.testing.assert_allclose(out, layer.weight.T * 2 + layer.bias)


@pytest.mark.parametrize(
    "out_axes", [0, 1, -1, (0, {"s": 1, "t": [-1]}), (1, 0), (-2, {"s": -1, "t": 0})], ids=str
)
def test_out_axes_as_prefixes_of_the_results(out_axes):
    f = lambda x: (np.outer(x, x), {"s": x * 2, "t": [np.sin(x)]})
    xs = some(4, 3)
    assert_trees_close(ft.vmap(f, 0, out_axes)(xs), loop_vmap(f, 0, out_axes)(xs))


def test_out_axes_none_inside_a_tree():
    f = lambda x, y: {"mapped": x * y, "shared": y + 1}
    xs, y = some(3), some(2)
    out = ft.vmap(f, (0, None), {"mapped": 1, "shared": None})(xs, y)
    assert_trees_close(out, {"mapped": np.outer(y, xs), "shared": y + 1})


# --- the tree module -----------------------------------------------------------------------------


@EACH_TREE
def test_flatten_and_unflatten_are_inverse(tree):
    flat, structure = ft.tree.flatten(tree)
    assert_trees_close(list(flat), leaves(tree))
    assert_trees_close(ft.tree.unflatten(structure, flat), tree)
    assert_trees_close(list(ft.tree.leaves(tree)), leaves(tree))
    assert ft.tree.structure(tree) == structure


def test_structures_differ_when_containers_do():
    assert ft.tree.structure((1.0, 2.0)) != ft.tree.structure([1.0, 2.0])
    assert ft.tree.structure({"a": 1.0}) != ft.tree.structure({"b": 1.0})
    assert ft.tree.structure({"a": 1.0, "b": 2.0}) == ft.tree.structure({"b": 5.0, "a": 6.0})


@EACH_TREE
def test_map_over_one_tree_and_over_two(tree):
    assert_trees_close(
        ft.tree.map(lambda leaf: 2 * leaf, tree), map_leaves(lambda leaf: 2 * leaf, tree)
    )
    assert_trees_close(
        ft.tree.map(lambda a, b: a - b, tree, tree), map_leaves(lambda leaf: 0 * leaf, tree)
    )


@EACH_TREE
def test_reduce_folds_over_leaves(tree):
    total = ft.tree.reduce(lambda total, leaf: total + np.sum(leaf), tree, 0.0)
    np.testing.assert_allclose(total, sum(np.sum(leaf) for leaf in leaves(tree)))


def test_map_works_on_tracers():
    f = lambda t: ft.tree.reduce(lambda a, b: a + b, ft.tree.map(lambda leaf: np.sum(leaf**2), t))
    tree = {"a": some(2), "b": [some(3)]}
    assert_trees_close(ft.grad(f)(tree), map_leaves(lambda leaf: 2 * leaf, tree))


# --- ravel_pytree --------------------------------------------------------------------------------


@EACH_TREE
def test_ravel_pytree_and_back(tree):
    flat, unravel = ft.ravel_pytree(tree)
    assert flat.ndim == 1
    assert flat.size == sum(np.size(leaf) for leaf in leaves(tree))
    assert_trees_close(unravel(flat), tree)
    assert_trees_close(unravel(2 * flat), map_leaves(lambda leaf: 2 * leaf, tree))


def test_ravel_pytree_returns_leaves_of_their_own_dtype():
    tree = {"a": np.ones(2, np.float32), "b": np.ones((1, 2), np.float64)}
    flat, unravel = ft.ravel_pytree(tree)
    assert flat.dtype == np.float64
    assert_trees_close(unravel(flat), tree, dtypes=True)


def test_ravel_pytree_inside_derivatives_and_maps():
    tree = {"a": some(2), "b": [some(3), some()]}
    flat, unravel = ft.ravel_pytree(tree)
    gradient = ft.grad(lambda v: energy(unravel(v)))(flat)
    assert_trees_close(unravel(gradient), ft.grad(energy)(tree))
    lanes = np.stack([flat, 2 * flat])
    assert_trees_close(ft.vmap(unravel)(lanes), loop_vmap(unravel)(lanes))
    norm = ft.grad(lambda t: np.sum(ft.ravel_pytree(t)[0] ** 2))(tree)
    assert_trees_close(norm, map_leaves(lambda leaf: 2 * leaf, tree))


# --- eval_shape and graphs -----------------------------------------------------------------------


def test_eval_shape_of_a_tree():
    f = lambda t, x: {"product": t["w"] @ x, "count": [np.argmax(x)]}
    shapes = ft.eval_shape(f, {"w": np.ones((2, 3), np.float32)}, np.ones(3, np.float32))
    assert (shapes["product"].shape, shapes["product"].dtype) == ((2,), np.float32)
    assert (shapes["count"][0].shape, shapes["count"][0].dtype) == ((), np.int64)


def test_eval_shape_computes_nothing():
    f = lambda x: np.einsum("i,j,k->", x, x, x)
    shape = ft.eval_shape(f, np.zeros(10**5))
    assert (shape.shape, shape.dtype) == ((), np.float64)


def test_printed_graph_names_its_operations_and_shapes():
    text = str(ft.make_graph(lambda x: np.sin(x) @ np.exp(x))(np.ones(3)))
    assert "sin" in text
    assert "exp" in text
    assert "3" in text
    assert "float64" in text or "f64" in text
