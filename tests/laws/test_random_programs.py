"""Random programs mean the same on traced arrays as on plain ones, after every statement.

A program returns every live array, views of views included, as it was after each of its statements.
The reference is NumPy itself; derivatives are taken by complex steps, which are exact to rounding.
"""

import numpy as np
from hypothesis import given, settings

import functrans as ft
from tests.support.everywhere import EXACT
from tests.support.oracles import (
    assert_trees_close,
    complex_step_jvp,
    loop_vmap,
    numerical_gradient,
)
from tests.support.random_programs import lanes_of, programs_in_place

PROGRAMS = programs_in_place()
EXAMPLES = settings(max_examples=100)


def loss_of(program, x):
    """All that the program shows, with weights, and the values as they are."""
    rng = np.random.default_rng(0)
    weights = [rng.uniform(-1.0, 1.0, np.shape(value)) for value in program(x)]

    def loss(x):
        seen = program(x)
        return sum(np.sum(w * value) for w, value in zip(weights, seen, strict=True)), seen

    return loss


def gradient_by_complex_steps(loss, x):
    return numerical_gradient(lambda x: loss(x)[0], (x,), analytic=True)[0]


@EXAMPLES
@given(program=PROGRAMS)
def test_values_and_gradients(program):
    (x,) = program.arguments(0)
    loss = loss_of(program.run, x)
    gradient, seen = ft.grad(loss, has_aux=True)(x)
    assert_trees_close(seen, program.run(x), **EXACT, dtypes=True)
    assert_trees_close(gradient, gradient_by_complex_steps(loss, x), **EXACT)


@EXAMPLES
@given(program=PROGRAMS)
def test_values_and_tangents(program):
    (x,) = program.arguments(0)
    tangent = np.cos(np.arange(x.size)).reshape(x.shape)
    seen, pushed = ft.jvp(program.run, (x,), (tangent,))
    assert_trees_close(seen, program.run(x), **EXACT, dtypes=True)
    assert_trees_close(pushed, complex_step_jvp(program.run, (x,), (tangent,)), **EXACT)


@EXAMPLES
@given(program=PROGRAMS)
def test_lanes(program):
    batch = lanes_of(program)
    expected = loop_vmap(program.run)(batch)
    assert_trees_close(ft.vmap(program.run)(batch), expected, **EXACT, dtypes=True)


@EXAMPLES
@given(program=PROGRAMS)
def test_graphs(program):
    x, *others = lanes_of(program)
    graph = ft.make_graph(program.run)(x)
    graph.check()
    for other in (x, *others):
        assert_trees_close(graph(other), program.run(other), **EXACT, dtypes=True)


@EXAMPLES
@given(program=PROGRAMS)
def test_gradients_of_lanes(program):
    batch = lanes_of(program)
    loss = loss_of(program.run, batch[0])
    expected = np.stack([gradient_by_complex_steps(loss, lane) for lane in batch])
    gradients, seen = ft.vmap(ft.grad(loss, has_aux=True))(batch)
    assert_trees_close(gradients, expected, **EXACT)
    assert_trees_close(seen, loop_vmap(program.run)(batch), **EXACT, dtypes=True)
    total = lambda batch: np.sum(ft.vmap(lambda x: loss(x)[0])(batch))
    assert_trees_close(ft.grad(total)(batch), expected, **EXACT)


def check(program, graphs=True):
    (x,) = program.arguments(0)
    loss = loss_of(program.run, x)
    gradient, seen = ft.grad(loss, has_aux=True)(x)
    assert_trees_close(seen, program.run(x), **EXACT, dtypes=True)
    assert_trees_close(gradient, gradient_by_complex_steps(loss, x), **EXACT)
    batch = lanes_of(program)
    assert_trees_close(ft.vmap(program.run)(batch), loop_vmap(program.run)(batch), **EXACT)
    if graphs:
        assert_trees_close(ft.make_graph(program.run)(x)(batch[1]), program.run(batch[1]), **EXACT)


@settings(max_examples=200)
@given(program=programs_in_place(keep_order=True))
def test_programs_whose_results_keep_the_order_of_their_operands(program):
    # While a function is staged, results of operations are taken to be in C order.
    check(program, graphs=False)


@EXAMPLES
@given(program=programs_in_place(scalars=True))
def test_programs_with_scalars_and_arrays_without_axes(program):
    check(program)
