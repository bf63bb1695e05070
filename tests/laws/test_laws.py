"""Laws that hold for every function in the table of cases, whatever its shapes and values.

Derivatives are compared with numerical ones, batching with a Python loop, and the transforms with
each other.
"""

import itertools
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
from tests.support.cases import ANY_SHAPE, CASES, DIFFERENTIABLE, LANES, PAIR, THREE
from tests.support.marks import of_constants, one_in
from tests.support.oracles import (
    assert_trees_close,
    inner_product,
    is_inexact,
    leaves,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jvp,
)

pytestmark = of_constants  # of some cases: counts, and the like
SEEDS = st.integers(0, 2**32 - 1)


def for_each(cases, every=1):
    """A test of each case; only one in `every` by default, and the others with `-m slow`."""
    return pytest.mark.parametrize("case", one_in(every, cases), ids=attrgetter("name"))


def draw(case, data, **options):
    """Arguments for a case, and the generator to draw more from."""
    rng = np.random.default_rng(data.draw(SEEDS, label="seed"))
    return case.sample(rng, data.draw(case.shapes, label="shapes"), **options), rng


def draw_lanes(case, data):
    """Shapes of the arguments of one lane, and the generator to draw values from."""
    rng = np.random.default_rng(data.draw(SEEDS, label="seed"))
    return data.draw(case.shapes, label="shapes"), rng


def with_lanes(case, rng, shapes, in_axes):
    """Arguments with LANES lanes along each of `in_axes`; every lane is smooth by itself."""
    count = [case.sample(rng, shapes) for _ in range(LANES)]
    return tuple(
        lanes[0] if axis is None else np.stack(lanes, axis=axis)
        for lanes, axis in zip(zip(*count, strict=True), in_axes, strict=True)
    )


def direction(rng, tree):
    """Something of the same structure, shapes and kind, to move along."""

    def along(leaf):
        real = rng.uniform(-1.0, 1.0, np.shape(leaf))
        return real + 1j * rng.uniform(-1.0, 1.0, np.shape(leaf)) if np.iscomplexobj(leaf) else real

    return map_leaves(along, tree)


def inexact_part(function):
    """The inexact outputs as a list: integers, like the exponents of frexp, have no derivative."""

    def inexact(*args):
        return [leaf for leaf in leaves(function(*args)) if is_inexact(leaf)]

    return inexact


def loss_of(function, rng, args):
    """A real scalar function with a second derivative even where `function` is linear."""
    function = inexact_part(function)
    weights = [rng.uniform(0.5, 1.5, np.shape(leaf)) for leaf in function(*args)]

    def loss(*args):
        return sum(np.sum(w * out * out) for w, out in zip(weights, function(*args), strict=True))

    return loss


def all_of(args):
    return tuple(range(len(args)))


@for_each(CASES)
@given(data=st.data())
def test_values_are_those_of_numpy(case, data):
    args, rng = draw(case, data)
    expected = case.function(*args)
    if not case.needs_values:
        in_lanes = tuple(arg[None] for arg in args)
        batched = ft.vmap(case.function)(*in_lanes)
        assert_trees_close(
            batched, map_leaves(lambda leaf: np.asarray(leaf)[None], expected), dtypes=True
        )
    if case.differentiable:
        function, reals = case.of_reals(args)
        tangents = direction(rng, reals)
        assert_trees_close(ft.jvp(function, reals, tangents)[0], expected, dtypes=True)
        assert_trees_close(ft.vjp(function, *reals)[0], expected, dtypes=True)
        assert_trees_close(ft.linearize(function, *reals)[0], expected, dtypes=True)
        loss = loss_of(function, rng, reals)
        assert_trees_close(ft.value_and_grad(loss)(*reals)[0], loss(*reals), dtypes=True)


@for_each(DIFFERENTIABLE)
@given(data=st.data())
def test_jvp_and_linearize_are_the_numerical_derivative(case, data):
    args, rng = draw(case, data)
    function, reals = case.of_reals(args)
    function = inexact_part(function)
    _, pushforward = ft.linearize(function, *reals)
    for _ in range(2):
        tangents = direction(rng, reals)
        expected = numerical_jvp(function, reals, tangents, case.analytic)
        pushed = ft.jvp(function, reals, tangents)[1]
        assert_trees_close(pushed, expected)
        assert_trees_close(pushforward(*tangents), pushed, rtol=1e-10, atol=1e-12)


@for_each(DIFFERENTIABLE)
@given(data=st.data())
def test_vjp_is_the_numerical_gradient_and_the_transpose_of_jvp(case, data):
    args, rng = draw(case, data)
    function, reals = case.of_reals(args)
    function = inexact_part(function)
    out, pullback = ft.vjp(function, *reals)
    cotangent = direction(rng, out)
    weighted = lambda *xs: inner_product(function(*xs), cotangent)
    pulled = pullback(cotangent)
    assert_trees_close(pulled, numerical_gradient(weighted, reals, case.analytic))
    tangents = direction(rng, reals)
    pushed = ft.jvp(function, reals, tangents)[1]
    np.testing.assert_allclose(
        inner_product(pushed, cotangent), inner_product(tangents, pulled), rtol=1e-9, atol=1e-11
    )


@for_each([case for case in CASES if case.linear])
@given(data=st.data())
def test_a_linear_function_is_its_own_derivative_and_has_a_transpose(case, data):
    args, rng = draw(case, data)
    function, reals = case.of_reals(args)
    tangents = direction(rng, reals)
    image = function(*tangents)
    assert_trees_close(ft.jvp(function, reals, tangents)[1], image, rtol=1e-10, atol=1e-12)
    cotangent = direction(rng, image)
    transposed = ft.linear_transpose(function, *reals)(cotangent)
    assert_trees_close(transposed, ft.vjp(function, *reals)[1](cotangent), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        inner_product(image, cotangent), inner_product(tangents, transposed), rtol=1e-9, atol=1e-11
    )


def fixed_shapes(case):
    """Some entries along each axis, and a broadcast, where a case takes all shapes."""
    return {ANY_SHAPE: ((2, 3),), PAIR: ((2, 3), (3,)), THREE: ((2, 3), (3,), (2, 1))}[case.shapes]


# Three random shapes are often small. Here a derivative in the wrong place shows.
@for_each([case for case in DIFFERENTIABLE if case.shapes in (ANY_SHAPE, PAIR, THREE)])
def test_derivatives_where_there_are_several_entries_in_each_axis(case):
    rng = np.random.default_rng(2)
    function, reals = case.of_reals(case.sample(rng, fixed_shapes(case)))
    function = inexact_part(function)
    tangents = direction(rng, reals)
    expected = numerical_jvp(function, reals, tangents, case.analytic)
    assert_trees_close(ft.jvp(function, reals, tangents)[1], expected)
    out, pullback = ft.vjp(function, *reals)
    cotangent = direction(rng, out)
    weighted = lambda *xs: inner_product(function(*xs), cotangent)
    assert_trees_close(pullback(cotangent), numerical_gradient(weighted, reals, case.analytic))


def check_over_the_reals(function, complexes, rng):
    tangents = direction(rng, complexes)
    out, pushed = ft.jvp(function, complexes, tangents)
    assert_trees_close(out, function(*complexes), dtypes=True)
    assert_trees_close(pushed, numerical_jvp(function, complexes, tangents))
    cotangent = direction(rng, out)
    pulled = ft.vjp(function, *complexes)[1](cotangent)
    assert all(np.iscomplexobj(leaf) for leaf in leaves(pulled))
    np.testing.assert_allclose(
        inner_product(pushed, cotangent).real,
        inner_product(tangents, pulled).real,
        rtol=1e-9,
        atol=1e-11,
    )


@for_each(
    [case for case in DIFFERENTIABLE if case.complexes and case.shapes in (ANY_SHAPE, PAIR, THREE)]
)
def test_complex_derivatives_where_there_are_several_entries_in_each_axis(case):
    rng = np.random.default_rng(2)
    args = case.sample(rng, fixed_shapes(case), complexes=True)
    check_over_the_reals(*case.of_reals(args), rng)


@for_each([case for case in DIFFERENTIABLE if case.complexes])
@given(data=st.data())
def test_complex_arguments_follow_the_derivative_over_the_reals(case, data):
    args, rng = draw(case, data, complexes=True)
    check_over_the_reals(*case.of_reals(args), rng)


@for_each(DIFFERENTIABLE, every=4)
@given(data=st.data())
def test_second_derivatives_agree_in_all_four_orders(case, data):
    args, rng = draw(case, data)
    function, reals = case.of_reals(args)
    loss = loss_of(function, rng, reals)
    tangents = direction(rng, reals)
    gradient = ft.grad(loss, argnums=all_of(reals))

    def slope(*xs):
        return ft.jvp(loss, xs, tangents)[1]

    def slope_of_gradient(*xs):
        return sum(np.sum(g * t) for g, t in zip(gradient(*xs), tangents, strict=True))

    expected = numerical_jvp(gradient, reals, tangents)
    assert_trees_close(ft.jvp(gradient, reals, tangents)[1], expected, rtol=1e-5, atol=1e-6)
    assert_trees_close(
        ft.grad(slope_of_gradient, all_of(reals))(*reals), expected, rtol=1e-5, atol=1e-6
    )
    assert_trees_close(ft.grad(slope, all_of(reals))(*reals), expected, rtol=1e-5, atol=1e-6)
    curvature = ft.jvp(slope, reals, tangents)[1]
    np.testing.assert_allclose(curvature, inner_product(expected, tangents), rtol=1e-5, atol=1e-6)


BATCHABLE = [case for case in CASES if not case.needs_values]
BATCHABLE_DIFFERENTIABLE = [case for case in BATCHABLE if case.differentiable]


def axis_choices(shape):
    return [None, *range(-len(shape) - 1, len(shape) + 1)]


def maps_something(axes):
    return any(axis is not None for axis in axes)


@for_each(BATCHABLE)
@given(data=st.data())
def test_vmap_over_every_axis_to_every_axis_is_a_loop(case, data):
    shapes, rng = draw_lanes(case, data)
    ways = list(filter(maps_something, itertools.product(*map(axis_choices, shapes))))
    ranks = [np.ndim(leaf) for leaf in leaves(case.function(*case.sample(rng, shapes)))]
    for way in rng.permutation(len(ways))[:16]:
        in_axes = ways[way]
        out_axes = int(rng.integers(-min(ranks) - 1, min(ranks) + 1))
        args = with_lanes(case, rng, shapes, in_axes)
        expected = loop_vmap(case.function, in_axes, out_axes)(*args)
        mapped = ft.vmap(case.function, in_axes, out_axes)(*args)
        assert_trees_close(mapped, expected, rtol=1e-10, atol=1e-12, dtypes=True)


@for_each([case for case in BATCHABLE if case.complexes])
@given(data=st.data())
def test_vmap_over_complex_arguments_is_a_loop(case, data):
    shapes, rng = draw_lanes(case, data)
    lanes = [case.sample(rng, shapes, complexes=True) for _ in range(LANES)]
    batched = tuple(map(np.stack, zip(*lanes, strict=True)))
    expected = loop_vmap(case.function)(*batched)
    mapped = ft.vmap(case.function)(*batched)
    assert_trees_close(mapped, expected, rtol=1e-10, atol=1e-12, dtypes=True)


def draw_in_axes(data, shapes):
    """One way to map at least one argument, over axes counted from either end."""
    axes = st.tuples(*[st.sampled_from(axis_choices(shape)) for shape in shapes])
    return data.draw(axes.filter(maps_something), label="in_axes")


def real_lanes(case, data):
    """A loss of one lane's real arguments, their axes, and batched values."""
    shapes, rng = draw_lanes(case, data)
    args = case.sample(rng, shapes)
    function, reals = case.of_reals(args)
    in_axes = draw_in_axes(data, [np.shape(arg) for arg in reals])
    lanes = [case.of_reals(case.sample(rng, shapes))[1] for _ in range(LANES)]
    batched = tuple(
        column[0] if axis is None else np.stack(column, axis=axis)
        for column, axis in zip(zip(*lanes, strict=True), in_axes, strict=True)
    )
    return loss_of(function, rng, reals), in_axes, batched, rng


@for_each(BATCHABLE_DIFFERENTIABLE, every=3)
@given(data=st.data())
def test_vmap_of_grad_gives_the_gradient_of_every_lane(case, data):
    loss, in_axes, batched, _ = real_lanes(case, data)
    gradient = ft.grad(loss, all_of(batched))
    assert_trees_close(
        ft.vmap(gradient, in_axes)(*batched),
        loop_vmap(gradient, in_axes)(*batched),
        rtol=1e-9,
        atol=1e-11,
    )


@for_each(BATCHABLE_DIFFERENTIABLE, every=4)
@given(data=st.data())
def test_grad_of_vmap_gathers_the_gradients_of_the_lanes(case, data):
    loss, in_axes, batched, _ = real_lanes(case, data)
    total = ft.grad(lambda *xs: np.sum(ft.vmap(loss, in_axes)(*xs)), all_of(batched))
    of_lanes = loop_vmap(ft.grad(loss, all_of(batched)), in_axes)(*batched)
    expected = tuple(
        np.sum(lanes, axis=0) if axis is None else np.moveaxis(lanes, 0, axis)
        for lanes, axis in zip(of_lanes, in_axes, strict=True)
    )
    assert_trees_close(total(*batched), expected, rtol=1e-9, atol=1e-11)


@for_each(BATCHABLE_DIFFERENTIABLE, every=4)
@given(data=st.data())
def test_vmap_and_jvp_commute(case, data):
    loss, in_axes, batched, rng = real_lanes(case, data)
    tangents = direction(rng, batched)

    def push(xs, vs):
        return ft.jvp(loss, xs, vs)

    inside = ft.vmap(push, (in_axes, in_axes))(batched, tangents)
    outside = ft.jvp(ft.vmap(loss, in_axes), batched, tangents)
    expected = loop_vmap(push, (in_axes, in_axes))(batched, tangents)
    assert_trees_close(inside, expected, rtol=1e-9, atol=1e-11)
    assert_trees_close(outside, expected, rtol=1e-9, atol=1e-11)


@for_each(BATCHABLE)
@given(data=st.data())
def test_a_graph_computes_the_function_it_was_made_from(case, data):
    shapes, rng = draw_lanes(case, data)
    args, others = case.sample(rng, shapes), case.sample(rng, shapes)
    graph = ft.make_graph(case.function)(*args)
    graph.check()
    expected = case.function(*others)
    assert_trees_close(graph(*others), expected, rtol=1e-10, atol=1e-12, dtypes=True)
    foreseen = [(leaf.shape, leaf.dtype) for leaf in leaves(ft.eval_shape(case.function, *args))]
    assert foreseen == [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves(expected)]


@for_each(BATCHABLE_DIFFERENTIABLE, every=8)
@given(data=st.data())
def test_graphs_are_transformed_like_the_function_they_were_made_from(case, data):
    shapes, rng = draw_lanes(case, data)
    function, reals = case.of_reals(case.sample(rng, shapes))
    loss = loss_of(function, rng, reals)
    gradient = ft.grad(loss, all_of(reals))
    expected = gradient(*reals)
    graph = ft.make_graph(loss)(*reals)
    assert_trees_close(ft.grad(graph, all_of(reals))(*reals), expected, rtol=1e-9, atol=1e-11)
    others = case.of_reals(case.sample(rng, shapes))[1]  # with the constants of the first
    batched = tuple(map(np.stack, zip(reals, others, strict=True)))
    plain = ft.make_graph(function)(*reals)
    values = loop_vmap(function)(*batched)
    assert_trees_close(ft.vmap(plain)(*batched), values, rtol=1e-9, atol=1e-11)
    in_lanes = tuple(map(np.stack, zip(expected, gradient(*others), strict=True)))
    assert_trees_close(
        ft.vmap(ft.grad(graph, all_of(reals)))(*batched), in_lanes, rtol=1e-9, atol=1e-11
    )
    graph_of_gradient = ft.make_graph(gradient)(*reals)
    graph_of_gradient.check()
    assert_trees_close(graph_of_gradient(*reals), expected, rtol=1e-9, atol=1e-11)


@for_each([case for case in DIFFERENTIABLE if case.shapes in (ANY_SHAPE, PAIR, THREE)])
@given(seed=SEEDS)
def test_python_numbers_are_treated_like_scalars_of_numpy(case, seed):
    rng = np.random.default_rng(seed)
    args = case.sample(rng, ((),) * len(case.domains))
    function, reals = case.of_reals([arg[()] for arg in args])
    function = inexact_part(function)
    numbers = tuple(float(x) for x in reals)
    out, pullback = ft.vjp(function, *numbers)
    assert_trees_close(out, function(*map(np.float64, numbers)), rtol=1e-14, atol=0, dtypes=True)
    expected = ft.vjp(function, *reals)[1](out)
    assert_trees_close(pullback(out), expected, rtol=1e-12, atol=1e-12, dtypes=True)
    tangents = (1.0,) * len(reals)
    expected = ft.jvp(function, reals, tuple(map(np.float64, tangents)))
    assert_trees_close(ft.jvp(function, numbers, tangents), expected, rtol=1e-12, dtypes=True)


@for_each(DIFFERENTIABLE)
@given(data=st.data())
def test_values_have_the_dtype_of_numpy_and_gradients_that_of_the_input(case, data):
    args, rng = draw(case, data)
    function, reals = case.of_reals(args)
    of_arrays = inexact_part(lambda *xs: map_leaves(np.asarray, function(*xs)))
    function = inexact_part(function)
    for dtype in (np.float16, np.float32):
        narrow = tuple(x.astype(dtype) for x in reals)
        out, pullback = ft.vjp(function, *narrow)
        tolerance = 16 * float(np.finfo(dtype).eps)
        assert_trees_close(out, of_arrays(*narrow), tolerance, tolerance, dtypes=True)
        cotangent = [rng.uniform(-1, 1, np.shape(leaf)).astype(leaf.dtype) for leaf in out]
        pulled = pullback(cotangent)
        assert all(leaf.dtype == dtype for leaf in pulled)
    wide = tuple(x.astype(np.float64) for x in narrow)
    expected = ft.vjp(function, *wide)[1]([leaf.astype(np.float64) for leaf in cotangent])
    assert_trees_close(pulled, expected, rtol=1e-2, atol=1e-3)
