"""cond, switch, while_loop, fori_loop, scan, map and associative_scan, under every transform.

Each program is compared with the same one in plain Python.
"""

import numpy as np
import pytest
from everywhere import EXACT, MATRIX, SQUARE, VECTOR, check_everywhere, lanes_like
from oracles import assert_trees_close, loop_vmap

import functrans as ft

CASES = []


def case(x, **options):
    """A program and its meaning in plain Python: a function of `ft`'s names, or of Python's own."""

    def register(program):
        CASES.append(pytest.param(program, x, options, id=program.__name__))
        return program

    return register


class Python:
    """What the names mean."""

    @staticmethod
    def cond(pred, true_fn, false_fn, *operands):
        return true_fn(*operands) if pred else false_fn(*operands)

    @staticmethod
    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(cond, body, init):
        while cond(init):
            init = body(init)
        return init

    @staticmethod
    def fori_loop(lower, upper, body, init):
        for i in range(int(lower), int(upper)):
            init = body(i, init)
        return init

    @staticmethod
    def scan(f, init, xs, length=None, reverse=False):
        steps = length if xs is None else len(ft.tree.leaves(xs)[0])
        ys = [None] * steps
        for k in reversed(range(steps)) if reverse else range(steps):
            x = None if xs is None else ft.tree.map(lambda leaf, k=k: leaf[k], xs)
            init, ys[k] = f(init, x)
        return init, ft.tree.map(lambda *each: np.stack(each), *ys)

    @staticmethod
    def map(f, xs, batch_size=None):
        return Python.scan(lambda carry, x: (carry, f(x)), None, xs)[1]

    @staticmethod
    def associative_scan(fn, elems, reverse=False, axis=0):
        elems = ft.tree.map(lambda leaf: np.moveaxis(leaf, axis, 0), elems)
        count = len(ft.tree.leaves(elems)[0])
        rows = [ft.tree.map(lambda leaf, k=k: leaf[k], elems) for k in range(count)]
        results = [rows[-1]] if reverse else [rows[0]]
        for row in rows[-2::-1] if reverse else rows[1:]:
            results.append(fn(row, results[-1]) if reverse else fn(results[-1], row))
        results = results[::-1] if reverse else results
        return ft.tree.map(lambda *each: np.moveaxis(np.stack(each), 0, axis), *results)

    @staticmethod
    def checkpoint(f, policy=None):
        return f

    remat = checkpoint

    @staticmethod
    def checkpoint_name(x, name):
        return x


@case(VECTOR)
def branch_by_value(m, x):
    return [m.cond(x[0] > 0.5, lambda x: np.sin(x) * x[0], lambda x: x**2, x)]


@case(VECTOR)
def branch_that_is_singular_elsewhere(m, x):
    root = lambda y: m.cond(y > 0, np.sqrt, lambda y: -(y**2), y)
    return [root(x[0]), root(x[1])]


@case(VECTOR)
def branches_that_close_over_values(m, x):
    w = np.exp(x[1])
    return [m.cond(x.sum() > 0.5, lambda: w * x, lambda: x / w)]


@case(VECTOR)
def branches_of_trees(m, x):
    out = m.cond(
        x[2] > 0.3,
        lambda tree: {"a": tree["a"] * 2.0, "b": (tree["b"], 1.0)},
        lambda tree: {"a": tree["a"] ** 2, "b": (np.cos(tree["b"]), tree["a"][0])},
        {"a": x[:2], "b": x[2:]},
    )
    return [out["a"], out["b"][0], out["b"][1] * x[0]]


@case(VECTOR)
def branch_in_a_branch(m, x):
    inner = lambda y: m.cond(y.sum() > 1.0, lambda y: y * y[0], np.tanh, y)
    return [m.cond(x[0] > 0.2, inner, lambda y: inner(2.0 * y) + y, x)]


@case(VECTOR)
def one_of_three(m, x):
    index = np.floor(3 * np.abs(x[0])).astype(int) - 1
    return [m.switch(index, [np.sin, lambda x: x**3, lambda x: x[::-1] * 2.0], x)]


@case(VECTOR)
def recurrent_network(m, x):
    w = SQUARE[:2, :2] * np.exp(x[0])
    state, ys = m.scan(lambda c, u: (np.tanh(w @ c + u), np.sum(c) * u), x[:2], x)
    return [state, ys]


@case(VECTOR)
def scan_backward_over_a_tree(m, x):
    def step(carry, row):
        total = carry["total"] * row["a"] + np.sum(row["b"])
        return {"total": total, "count": carry["count"] + 1}, (total, row["b"] * carry["total"])

    rows = {"a": x, "b": np.stack([np.sin(x), x**2], axis=1)}
    last, (totals, products) = m.scan(step, {"total": x[0] * 1.0, "count": 0}, rows, reverse=True)
    return [last["total"], totals, products]


@case(VECTOR)
def scan_without_rows(m, x):
    state, ys = m.scan(lambda c, _: (c * np.cos(x), np.sum(c)), x, None, length=4)
    return [state, ys]


@case(MATRIX)
def scan_in_a_scan(m, x):
    def row(carry, entries):
        inner = lambda c, u: (np.sin(c) * carry + u, c * u)
        total, ys = m.scan(inner, carry, entries)
        return total, np.sum(ys) * carry

    return list(m.scan(row, x[0, 0] + 0.0, x))


@case(VECTOR)
def scan_from_a_python_number(m, x):
    return list(m.scan(lambda c, u: (c + u * u, c), 0.0, x))


@case(VECTOR)
def scan_with_branches(m, x):
    step = lambda c, u: (m.cond(u > 0, lambda c: c * u, lambda c: c - u**2, c), c)
    return list(m.scan(step, x[0] + 1.0, x))


@case(VECTOR)
def scan_over_a_table(m, x):
    order = np.array([3, 0, 0, 2])
    step = lambda c, k: (c * np.take(x, k) + 1.0, np.take(x, k) * c)
    return list(m.scan(step, x[1] * 1.0, order))


@case(np.array([0.7 - 0.2j, -0.4 + 1.1j, 0.3 + 0.9j]))
def scan_of_complex_numbers(m, x):
    return list(m.scan(lambda c, z: (c * z + 1.0, c * c), x[0] * 1.0, x))


@case(VECTOR)
def newton_by_while(m, x):
    a = x[0] ** 2 + 0.3
    far = lambda state: (np.abs(state[0] ** 2 - a) > 1e-12) & (state[1] < 30)
    step = lambda state: ((state[0] + a / state[0]) / 2, state[1] + 1)
    return [m.while_loop(far, step, (a + 1.0, 0))[0] * x]


@case(VECTOR)
def while_over_a_tree(m, x):
    def body(state):
        return {
            "x": np.sin(state["x"]) * 1.2,
            "sum": state["sum"] + state["x"] ** 2,
            "n": state["n"] + 1,
        }

    go_on = lambda state: (state["n"] < 7) & (np.sum(state["sum"]) < 4.0)
    out = m.while_loop(go_on, body, {"x": x, "sum": np.zeros(5), "n": 0})
    return [out["x"], out["sum"]]


@case(VECTOR)
def while_that_never_runs(m, x):
    return [m.while_loop(lambda y: np.sum(y * y) < 0, lambda y: np.log(-1 - y * y), x) * x]


@case(VECTOR)
def as_many_steps_as_values_say(m, x):
    count = np.sum(x > 0)
    return [m.fori_loop(1, count + 1, lambda i, y: y * x[0] + i, x)]


@case(VECTOR)
def a_known_number_of_steps(m, x):
    return [
        m.fori_loop(0, 3, lambda i, y: np.sin(y) * x[0] + i * y, x),
        m.fori_loop(3, 1, lambda i, y: y / 0, x * 1.0),
    ]


@case(VECTOR)
def while_in_a_scan(m, x):
    halve = lambda y: m.while_loop(lambda y: y * y > 0.1, lambda y: y * np.sin(x[0]) * 0.5, y)
    return list(m.scan(lambda c, u: (halve(c + u), c * u), x[1] * 1.0, x))


@case(VECTOR)
def scan_in_a_while(m, x):
    def body(state):
        y, n = state
        return m.scan(lambda c, u: (np.sin(c) + 0.1 * u * x[0], None), y, x)[0] * 0.9, n + 1

    go_on = lambda state: (np.sum(state[0]) > 0.4) & (state[1] < 4)
    return [m.while_loop(go_on, body, (x[2] * x[:2] + 1.0, 0))[0]]


@case(MATRIX)
def map_over_rows(m, x):
    return [m.map(lambda row: np.sum(row**2) * x[0, 0], x)]


@case(VECTOR)
def map_in_batches(m, x):
    return [m.map(lambda u: np.sin(u) * x[1], x, batch_size=2)]


@case(VECTOR)
def linear_recurrence(m, x):
    combine = lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1])
    return list(m.associative_scan(combine, (x, np.cos(x))))


@case(MATRIX)
def products_from_the_right(m, x):
    return [m.associative_scan(lambda a, b: a * b, x, reverse=True, axis=1)]


@case(VECTOR)
def checkpointed_layers(m, x):
    layer = m.checkpoint(lambda y: np.tanh(y * x[0]) + np.sin(y))
    return [layer(layer(x))]


@case(VECTOR)
def nested_checkpoints(m, x):
    inner = m.checkpoint(lambda y: np.sin(y) * x)
    outer = m.remat(lambda y, w: inner(inner(y)) * w["w"])
    return [outer(x, {"w": x[1]})]


@case(MATRIX)
def checkpoint_that_keeps_products(m, x):
    keep = ft.checkpoint_policies.save_matmuls
    layer = m.checkpoint(lambda y, w: np.tanh(y @ w) * x[0, 0], policy=keep)
    return [layer(layer(x, SQUARE), x.T @ x)]


@case(VECTOR)
def checkpoint_that_keeps_names(m, x):
    def f(y):
        h = m.checkpoint_name(np.exp(y), "hidden")
        return m.checkpoint_name(np.sin(h), "other") * h

    return [m.checkpoint(f, policy=ft.checkpoint_policies.save_names("hidden"))(x)]


@case(VECTOR)
def checkpointed_scan(m, x):
    step = m.checkpoint(lambda c, u: (np.sin(c * u) + c, c**2))
    return list(m.scan(step, x[0] * 1.0, x))


@pytest.mark.parametrize(("program", "x", "options"), CASES)
def test_it_means_what_python_means_under_every_transform(program, x, options):
    check_everywhere(lambda x: program(ft, x), x, reference=lambda x: program(Python, x), **options)


@pytest.mark.parametrize(("program", "x", "options"), CASES)
def test_two_transforms_deep_in_graphs(program, x, options):
    def loss(x):
        return sum(np.sum(np.real(out * np.conj(out))) for out in program(ft, x))

    def reference(x):
        return sum(np.sum(np.real(out * np.conj(out))) for out in program(Python, x))

    batch = lanes_like(x)
    expected = loop_vmap(ft.grad(reference))(batch)
    graph = ft.make_graph(ft.vmap(ft.grad(loss)))(batch)
    graph.check()
    assert_trees_close(graph(batch), expected, **EXACT)
    summed = lambda batch: np.sum(ft.vmap(loss)(batch))
    assert_trees_close(ft.make_graph(ft.grad(summed))(batch)(batch), expected, **EXACT)
    assert_trees_close(ft.vmap(ft.grad(ft.make_graph(loss)(x)))(batch), expected, **EXACT)
    curve = lambda loss: lambda x: ft.jvp(ft.grad(loss), (x,), (x,))[1]
    expected = loop_vmap(curve(reference))(batch)
    graph = ft.make_graph(ft.vmap(curve(loss)))(batch)
    assert_trees_close(graph(batch), expected, rtol=1e-9, atol=1e-10)
    slope = lambda x: np.real(np.sum(x * ft.grad(loss)(x)))
    graph = ft.make_graph(ft.grad(slope))(x)
    assert_trees_close(
        graph(x),
        ft.grad(lambda x: np.real(np.sum(x * ft.grad(reference)(x))))(x),
        rtol=1e-9,
        atol=1e-10,
    )
