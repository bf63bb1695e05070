"""cond, switch, while_loop, fori_loop, scan, map and associative_scan, under every transform.

Each program is compared with the same one in plain Python.
"""

import numpy as np
import pytest

import functrans as ft
from tests.support.everywhere import EXACT, MATRIX, SQUARE, VECTOR, check_everywhere, lanes_like
from tests.support.oracles import assert_trees_close, loop_vmap

CASES = []


def case(x, **options):
    """A program and its meaning in plain Python: a function of `ft`'s names, or of Python's own."""

    def register(program):
        CASES.append(pytest.param(program, x, options, id=program.__name__))
        return program

    return register


class Python:
    """The meaning of each name."""

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
def one_of_two_with_many_operands(m, x):
    operands = [np.sin(k * x[:3]) for k in range(1, 8)]
    first = lambda a, b, c, d, e, f, g: a * b - c * d + e * f[::-1] * g
    second = lambda a, b, c, d, e, f, g: a * e * e + b * g * g - np.cos(c) * d * f
    return [m.switch((x[0] > 0.3).astype(int), [first, second], *operands)]


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
    expected = ft.grad(lambda x: np.real(np.sum(x * ft.grad(reference)(x))))
    graph = ft.make_graph(ft.grad(slope))(x)
    for lane in (x, *batch):  # they take different branches
        assert_trees_close(graph(lane), expected(lane), rtol=1e-9, atol=1e-10)


# The contents of graphs.


def names_of(graph):
    return [equation.primitive.name for equation in graph.equations]


def test_a_staged_loop_is_one_equation():
    step = lambda c, u: (np.sin(c) * u, c)
    assert names_of(ft.make_graph(lambda x: ft.scan(step, 1.0, x))(VECTOR)) == ["scan"]
    closed = lambda w: ft.scan(lambda c, u: (np.sin(c) * w, c), np.ones(3), np.ones(4))
    assert names_of(ft.make_graph(closed)(2.0)) == ["scan"]
    loop = lambda x: ft.while_loop(lambda y: y < 3.0, lambda y: y * 2.0, x)
    assert names_of(ft.make_graph(loop)(0.5)) == ["while_loop"]
    assert names_of(ft.make_graph(lambda x: ft.fori_loop(0, 5, lambda i, y: y * i, x))(0.5)) == [
        "scan"
    ]
    counted = lambda x, n: ft.fori_loop(0, n, lambda i, y: y * i, x)
    assert names_of(ft.make_graph(counted)(0.5, 3)) == ["while_loop"]
    branch = lambda p, x: ft.cond(p, np.sin, np.cos, x)
    assert names_of(ft.make_graph(branch)(True, 0.5)).count("switch") == 1
    assert names_of(ft.make_graph(lambda x: ft.map(np.sin, x))(VECTOR)) == ["scan"]


def test_the_gradient_of_a_staged_scan_is_two_scans():
    loss = lambda x: ft.scan(lambda c, u: (np.sin(c) * u, None), 1.0, x)[0]
    assert names_of(ft.make_graph(ft.grad(loss))(VECTOR)) == ["scan", "scan"]


def test_reverse_mode_of_a_scan_stores_what_the_sweep_needs_and_nothing_else():
    w = np.arange(12.0).reshape(4, 3) / 10

    def loss(w, xs):  # it needs cos(a) and u, and w once: not a, not w in every step
        step = lambda c, u: (c + np.sum(np.sin(w @ u)), None)
        return ft.scan(step, 0.0, xs)[0]

    xs = np.linspace(0, 1, 15).reshape(5, 3)
    graph = ft.make_graph(ft.grad(loss))(w, xs)
    forward, _ = (e for e in graph.equations if e.primitive.name == "scan")
    stored = [v.spec.shape for v in forward.outputs[1:]]
    assert stored == [(5, 4)]
    assert_trees_close(graph(w, xs), ft.grad(loss)(w, xs), **EXACT)
    linear = lambda xs: ft.scan(lambda c, u: (c * 0.5 + u, None), 0.0, xs)[0]
    graph = ft.make_graph(ft.grad(linear))(VECTOR)
    (forward,) = (e for e in graph.equations if e.primitive.name == "scan")
    assert len(forward.outputs) == 1  # nothing is stored, and the way back is a constant
    np.testing.assert_allclose(graph(VECTOR), 0.5 ** np.arange(4, -1, -1))


def test_a_value_that_the_sweep_needs_twice_is_stored_once():
    def loss(c, xs):
        def step(c, u):
            v = np.exp(u)
            return np.einsum("i,j->i", v, c) * np.einsum("i,i->i", c, v), None

        return np.sum(ft.scan(step, c, xs)[0])

    c, xs = np.ones(3), MATRIX
    graph = ft.make_graph(ft.grad(loss))(c, xs)
    forward = next(e for e in graph.equations if e.primitive.name == "scan")
    assert len(forward.outputs) == 4  # the carry, v, and both factors
    assert_trees_close(graph(c, xs), ft.grad(loss)(c, xs), **EXACT)


def test_a_known_predicate_is_a_python_branch_in_a_graph_too():
    assert names_of(ft.make_graph(lambda x: ft.cond(True, np.sin, np.cos, x))(0.5)) == [
        "astype",
        "sin",
    ]


def test_linearize_runs_loops_in_python():
    seen = []

    def step(c, u):
        seen.append(float(ft.stop_gradient(u)))
        return c * u, None

    ft.linearize(lambda x: ft.scan(step, 1.0, x)[0], VECTOR)
    np.testing.assert_allclose(seen, VECTOR)


def test_python_branches_in_bodies_work_where_values_are_known():
    def step(c, u):
        return (c * u if u > 0 else c - u), c

    expected = Python.scan(step, 1.0, VECTOR)
    assert_trees_close(ft.scan(step, 1.0, VECTOR), expected, **EXACT)
    batch = lanes_like(VECTOR)
    run = lambda x: ft.scan(step, x[0] * 1.0, x)
    assert_trees_close(
        ft.vmap(run)(batch), loop_vmap(lambda x: Python.scan(step, x[0] * 1.0, x))(batch), **EXACT
    )
    body = lambda y: y * 0.5 if y > 4 else y - 1.0
    loop = lambda x: ft.while_loop(lambda y: y > 1.0, body, x)
    starts = np.array([0.5, 3.0, 9.0, 20.0])
    expected = [Python.while_loop(lambda y: y > 1.0, body, x) for x in starts]
    np.testing.assert_allclose(ft.vmap(loop)(starts), expected)
    inner = lambda x: ft.cond(x > 3, lambda x: x if x > 8 else -x, lambda x: 2 * x, x)
    np.testing.assert_allclose(ft.vmap(inner)(starts), [1.0, 6.0, 9.0, 20.0])
    # Inside of make_graph, on values that do not depend on its arguments.
    graph = ft.make_graph(lambda x: x + ft.while_loop(lambda y: y > 1.0, body, 20.0))(0.5)
    assert float(graph(1.0)) == 1.0 + expected[3]


def test_loops_do_not_change_the_callers_arrays():
    start, rows = np.zeros(2), np.ones((3, 2))

    def step(c, u):
        c += u
        return c, c

    staged = ft.make_graph(lambda c, u: ft.scan(step, c, u))(start, rows)
    for total, ys in (ft.scan(step, start, rows), staged(start, rows)):
        np.testing.assert_array_equal(total, [3.0, 3.0])
        np.testing.assert_array_equal(ys, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    gradient = ft.grad(lambda u: np.sum(ft.scan(step, u[0] * 0.0, u)[1]))(rows)
    np.testing.assert_array_equal(gradient, [[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])

    def double(y):
        y *= 2
        return y

    ft.while_loop(lambda y: y[0] < 9, double, rows[0])
    ft.fori_loop(0, 2, lambda i, y: double(y), start)
    np.testing.assert_array_equal(rows, np.ones((3, 2)))
    np.testing.assert_array_equal(start, np.zeros(2))


def test_scan_of_no_steps():
    step = lambda c, u: (np.sin(c) * u, (c, np.ones(2)))
    carry, (ys, ones) = ft.scan(step, 2.0, np.zeros(0))
    assert carry == 2.0
    assert ys.shape == (0,)
    assert ones.shape == (0, 2)
    assert float(ft.grad(lambda c: ft.scan(step, c, np.zeros(0))[0] * 3.0)(2.0)) == 3.0


def test_float32_stays_float32():
    x = VECTOR.astype(np.float32)
    f = lambda x: ft.scan(lambda c, u: (c * u + 0.5, np.sin(c)), x[0], x)
    for out in (f(x), ft.make_graph(f)(x)(x)):
        assert [leaf.dtype for leaf in out] == [np.float32, np.float32]
    assert ft.make_graph(ft.grad(lambda x: f(x)[0]))(x)(x).dtype == np.float32


def test_many_lanes_leave_a_loop_when_they_are_done():
    collatz = lambda n: ft.while_loop(
        lambda s: s[0] > 1,
        lambda s: (np.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, 0),
    )[1]
    numbers = np.arange(1, 60)
    expected = [collatz(int(n)) for n in numbers]
    calls = []
    counted = lambda n: (calls.append(1), collatz(n))[1]
    np.testing.assert_array_equal(ft.vmap(counted)(numbers), expected)
    assert len(calls) == 1  # all lanes in one run
    np.testing.assert_array_equal(ft.vmap(ft.make_graph(collatz)(1))(numbers), expected)
    table = numbers[:6].reshape(2, 3)
    np.testing.assert_array_equal(
        ft.vmap(ft.vmap(collatz))(table), np.reshape(expected[:6], (2, 3))
    )


def test_a_lane_that_is_done_makes_no_nan():
    # A step at 1 would divide by zero, forward and backward.
    body = lambda s: (s[0] - 1, s[1] / np.sqrt(s[0] - 1.0))
    f = lambda n, y: ft.while_loop(lambda s: s[0] > 1.5, body, (n, y))[1]
    n, y = np.array([1.0, 2.0, 5.0]), np.array([3.0, 4.0, 5.0])
    expected = [ft.grad(f, (0, 1))(*pair) for pair in zip(n, y, strict=True)]
    with np.errstate(all="raise"):
        for run in (ft.vmap(ft.grad(f, (0, 1))), ft.make_graph(ft.vmap(ft.grad(f, (0, 1))))(n, y)):
            np.testing.assert_allclose(np.stack(run(n, y), axis=1), expected)


def test_collectives_in_loops():
    f = lambda x: ft.scan(lambda c, u: (c + ft.psum(u, "i"), c), x[0] * 0.0, x)[0]
    batch = lanes_like(VECTOR)
    expected = np.full(3, batch.sum())
    np.testing.assert_allclose(ft.vmap(f, axis_name="i")(batch), expected)
    np.testing.assert_allclose(ft.make_graph(ft.vmap(f, axis_name="i"))(batch)(batch), expected)
    parting = lambda x: ft.while_loop(lambda y: y < 3, lambda y: y + ft.psum(y, "i"), x)
    with pytest.raises(ft.errors.LaneError, match="psum"):
        ft.vmap(parting, axis_name="i")(np.array([1.0, 4.0]))


def test_unroll_changes_nothing():
    f = lambda k: ft.scan(lambda c, u: (c * u, c), 1.0, VECTOR, unroll=k)
    assert_trees_close(f(3), f(1), **EXACT)


# Errors.


def raises(kind, *parts):
    return pytest.raises(kind, match="(?s)" + ".*".join(parts))


def both_ways(function, x):
    """The function eagerly and staged."""
    return (lambda: function(x), lambda: ft.make_graph(function)(x))


@pytest.mark.parametrize("staged", [False, True])
def test_errors_of_carries_print_both_sides(staged):
    x = np.ones(3)
    shape = lambda x: ft.scan(lambda c, u: (np.stack([c, c]), u), x, x)
    with raises(ft.errors.CarryError, r"scan", r"float64\[3\]", r"float64\[2,3\]"):
        both_ways(shape, x)[staged]()
    structure = lambda x: ft.while_loop(lambda s: np.sum(s[0]) < 9, lambda s: s[0], (x, x))
    with raises(
        ft.errors.CarryError,
        r"while_loop",
        r"\(float64\[3\], float64\[3\]\)",
        r"returns  float64\[3\]",
    ):
        both_ways(structure, x)[staged]()
    dtype = lambda x: ft.fori_loop(0, 2, lambda i, c: c * 0.5, x.astype(int))
    with raises(TypeError, r"int64\[3\]", r"float64\[3\]"):
        both_ways(dtype, x)[staged]()
    pair = lambda x: ft.scan(lambda c, u: c, x, x)
    with raises(ft.errors.CarryError, r"pair \(carry, y\)"):
        both_ways(pair, x)[staged]()
    truth = lambda x: ft.while_loop(lambda c: c > 0, lambda c: c, x)
    with raises(ft.errors.CarryError, r"one bool", r"bool\[3\]"):
        both_ways(truth, x)[staged]()


def test_errors_of_branches_print_both_sides():
    def staged(true_fn, false_fn):
        return ft.make_graph(lambda p, x: ft.cond(p, true_fn, false_fn, x))(True, np.ones(3))

    with raises(ft.errors.BranchError, r"float64\[3\]", r"float64\[\]"):
        staged(np.sum, np.sin)
    with raises(ft.errors.BranchError, r"float64\[3\]", r"\(float64\[3\], float64\[3\]\)"):
        staged(lambda x: (x, x), np.sin)
    with raises(TypeError, r"float64\[3\]", r"bool\[3\]"):
        staged(lambda x: x > 0, np.sin)
    assert float(staged(lambda x: x[0], lambda x: 0)(False, np.ones(3))) == 0.0  # Python's 0 adapts
    with raises(ft.errors.BranchError, r"different"):  # lanes that disagree need it, too
        ft.vmap(lambda x: ft.cond(x > 0, lambda: x, lambda: (x, x)))(np.array([1.0, -1.0]))


@pytest.mark.parametrize(
    "transform", [lambda f: f, ft.grad, lambda f: lambda x: ft.jvp(f, (x,), (1.0,))]
)
def test_branches_are_compared_where_python_runs_one_of_them(transform):
    calls = (
        lambda x: ft.cond(x > 0, lambda x: x, lambda x: (x, x), x),
        lambda x: ft.cond(x < 0, lambda: np.ones(2), lambda: x),
        lambda x: ft.cond(True, lambda x: x, lambda x: np.greater(x, 0), x),
        lambda x: ft.switch(1, [lambda x: x, lambda x: x, lambda x: {"y": x}], x),
        lambda x: ft.switch(np.int64(0), [ft.jit(lambda x: x), ft.jit(lambda x: (x,))], x),
    )
    sides = (
        (r"false_fn.*returns \(float64\[\], float64\[\]\)", r"true_fn.*returns float64\[\]"),
        (r"false_fn.*returns float64\[\]", r"true_fn.*returns float64\[2\]"),
        (r"false_fn.*returns bool\[\]", r"true_fn.*returns float64\[\]"),
        (r"branch 0.*returns float64\[\]", r"branch 2.*returns {'y': float64\[\]}"),
        (r"branch 0.*returns float64\[\]", r"branch 1.*returns \(float64\[\],\)"),
    )
    for call, patterns in zip(calls, sides, strict=True):
        for _ in range(2):  # the second time, too
            with raises(ft.errors.BranchError, *patterns):
                transform(call)(1.0)


def test_branches_are_compared_again_for_operands_of_another_kind():
    def first(x):
        return ft.cond(True, lambda x: x[:3], lambda x: 2 * x, x)

    first(np.ones(3))
    with raises(ft.errors.BranchError, r"float64\[4\]", r"float64\[3\]"):
        first(np.ones(4))
    with raises(ft.errors.BranchError, r"float32\[2\]", r"float64\[2\]"):
        ft.cond(True, lambda x: x, lambda x: x.astype(np.float32), np.ones(2))


def test_branches_that_cannot_be_compared_are_not():
    calls = []

    def factorial(n):
        return ft.cond(n > 0, lambda n: n * factorial(n - 1), lambda n: 1, n)

    def noted(x):
        calls.append(x)
        return x

    assert ft.cond(True, lambda x: x, lambda x: 1 / 0, 2.0) == 2.0
    assert ft.cond(True, lambda x: x, lambda x: (x, x) if x > 0 else x, 2.0) == 2.0
    assert ft.cond(True, lambda: "text", lambda: 1.0) == "text"
    assert ft.cond(False, np.sin, lambda name: name, "text") == "text"
    assert ft.cond(np.True_, lambda x: x, lambda x: 0, 2.0) == 2.0  # Python's 0 adapts
    assert factorial(5) == 120
    single = np.ones(2, np.float32)
    slope = ft.grad(lambda w: ft.cond(w > 0, lambda x: np.sum(w * x), lambda x: x[0], single))(2.0)
    assert slope == 2.0
    # Lanes do not part, and graphs have no equation, for a branch that is not taken.
    several = lambda w: ft.cond(True, lambda: w, lambda: w if w > 0 else (w, w))
    np.testing.assert_array_equal(ft.vmap(several)(np.array([1.0, -1.0])), [1.0, -1.0])
    graph = ft.make_graph(lambda w: ft.cond(True, lambda: w, lambda: np.log(w)))(1.0)
    assert not graph.equations
    for _ in range(5):
        ft.cond(True, lambda x: x, noted, 1.0)
    assert len(calls) == 1  # written down once


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_a_branch_is_not_run_for_what_it_closes_over_alone(transform):
    seen = []

    def root(x):  # at 0, the derivative of the root would be 0 * inf
        return ft.cond(x > 0, lambda: np.sqrt(x), lambda: ft.tap(0.5 * x, seen.append, str))

    assert float(transform(ft.grad(root))(0.0)) == 0.5
    assert float(transform(ft.grad(root))(4.0)) == 0.25
    assert set(map(float, seen)) <= {0.0}
    lanes = np.array([4.0, 0.0, 9.0])
    for gradient in (ft.vmap(ft.grad(root)), ft.grad(lambda x: np.sum(ft.vmap(root)(x)))):
        np.testing.assert_allclose(transform(gradient)(lanes), [0.25, 0.5, 1 / 6])
    curvature = transform(ft.vmap(ft.grad(ft.grad(root))))(lanes)
    np.testing.assert_allclose(curvature, [-(4**-1.5) / 4, 0.0, -(9**-1.5) / 4])
    positive = lambda x: ft.pure_callback(lambda x: float(x) ** 0.5, ft.ArraySpec((), float), x)
    chosen = ft.vmap(lambda x: ft.cond(x >= 0, lambda: positive(x), lambda: -1.0))
    np.testing.assert_allclose(transform(chosen)(np.array([4.0, -4.0])), [2.0, -1.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_a_loop_without_steps_does_nothing_to_what_its_body_closes_over(transform):
    def f(x, n):  # x + n sqrt(x), whose root has no derivative at 0
        return ft.fori_loop(0, n, lambda i, y: y + np.sqrt(x), x)

    for first in (ft.grad, ft.jacfwd):
        assert float(transform(first(f))(0.0, 0)) == 1.0
        found = transform(ft.vmap(first(f)))(np.array([0.0, 4.0]), np.array([0, 2]))
        np.testing.assert_allclose(found, [1.0, 1.5])
    second = transform(ft.vmap(ft.grad(ft.grad(f))))(np.array([0.0, 4.0]), np.array([0, 2]))
    np.testing.assert_allclose(second, [0.0, -2 * 4**-1.5 / 4])


def test_a_branch_may_look_at_known_values_that_it_closes_over():
    def f(p, x):  # x is known, and p is not
        return ft.grad(lambda w: ft.cond(p > 0, lambda: w * w if w > 0 else w, lambda: w))(x)

    gradient = ft.make_graph(lambda p: f(p, 3.0))(1.0)
    assert float(gradient(1.0)) == 6.0 and float(gradient(-1.0)) == 1.0


def test_other_errors():
    with raises(ft.errors.InputTypeError, "one number"):
        ft.cond(np.ones(2) > 0, np.sin, np.cos, 1.0)
    with raises(ft.errors.InputTypeError, "needs a function"):
        ft.cond(True, 1.0, np.cos, 1.0)
    with raises(ft.errors.OptionError, "at least one branch"):
        ft.switch(0, [], 1.0)
    with raises(ft.errors.InputTypeError, "integer"):
        ft.switch(0.5, [np.sin], 1.0)
    with raises(ft.errors.OptionError, "length"):
        ft.scan(lambda c, u: (c, u), 1.0, None)
    with raises(ft.errors.MappedAxisError, "different lengths", r"float64\[2\]", r"float64\[3\]"):
        ft.scan(lambda c, u: (c, u), 1.0, (np.ones(2), np.ones(3)))
    with raises(ft.errors.MappedAxisError, "length is 4"):
        ft.scan(lambda c, u: (c, u), 1.0, np.ones(3), length=4)
    with raises(ft.errors.MappedAxisError, "no axis"):
        ft.scan(lambda c, u: (c, u), 1.0, 2.0)
    with raises(ft.errors.OptionError, "unroll"):
        ft.scan(lambda c, u: (c, u), 1.0, np.ones(3), unroll=0)
    with raises(ft.errors.InputTypeError, "one integer"):
        ft.fori_loop(0, 2.5, lambda i, y: y, 1.0)
    with raises(ft.errors.OptionError, "batch_size"):
        ft.map(np.sin, np.ones(3), batch_size=0)
    with raises(ft.errors.CarryError, r"float64\[2\]", r"bool\[2\]"):
        ft.associative_scan(lambda a, b: a > b, np.ones(4))
    with raises(ft.errors.MappedAxisError, "axis 1"):
        ft.associative_scan(np.add, np.ones(4), axis=1)
    with raises(ft.errors.StagingError, "if"):
        ft.make_graph(lambda x: ft.cond(x > 0, lambda x: x if x > 1 else -x, np.sin, x))(1.0)


@pytest.mark.peers
def test_against_jax():
    jax = pytest.importorskip("jax")
    jnp, lax = jax.numpy, jax.lax
    jax.config.update("jax_enable_x64", True)

    def program(m, np, w, x):
        def step(c, u):
            c = m.cond(np.sum(c) > 0.1, lambda c: np.tanh(w @ c) + u, lambda c: c - u, c)
            c = m.fori_loop(0, 2, lambda i, c: np.sin(c) + 0.1 * i, c)
            return c, np.sum(c**2)

        last, ys = m.scan(step, x[:3], x, reverse=True)
        sums = m.associative_scan(np.multiply, 1.0 + ys**2)
        return np.sum(last) + np.sum(ys * sums)

    ours = lambda w, x: program(ft, np, w, x)
    theirs = lambda w, x: program(jax.lax, jnp, w, x)
    assert lax.scan is jax.lax.scan
    expected = jax.grad(theirs, (0, 1))(SQUARE, VECTOR)
    for gradient in (ft.grad(ours, (0, 1)), ft.make_graph(ft.grad(ours, (0, 1)))(SQUARE, VECTOR)):
        assert_trees_close(gradient(SQUARE, VECTOR), tuple(map(np.asarray, expected)), rtol=1e-9)
    hessian = np.asarray(jax.hessian(theirs, 1)(SQUARE, VECTOR))
    np.testing.assert_allclose(ft.hessian(ours, 1)(SQUARE, VECTOR), hessian, rtol=1e-8)
    staged = ft.make_graph(ft.hessian(ours, 1))(SQUARE, VECTOR)
    np.testing.assert_allclose(staged(SQUARE, VECTOR), hessian, rtol=1e-8)


# The eager scan looks closely at the first step only.


def test_scan_keeps_ys_that_later_steps_change_in_place():
    def step(total, x):
        total += x
        return total, total

    last, ys = ft.scan(step, np.zeros(2), np.ones((3, 2)))
    np.testing.assert_array_equal(ys, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(last, [3.0, 3.0])
    _, (first, _) = ft.scan(lambda t, x: (step(t, x)[0], (t, x)), np.zeros(2), np.ones((3, 2)))
    np.testing.assert_array_equal(first, ys)


def test_scan_of_ys_that_change_their_type():
    kinds = iter([1, 2.5, np.float64(3.0), np.array(4.0)])
    _, ys = ft.scan(lambda s, x: (s, next(kinds)), 0.0, np.ones(4))
    np.testing.assert_array_equal(ys, [1.0, 2.5, 3.0, 4.0])
    numbers = iter([np.float64(1.0), np.array(2.0), np.float64(3.0)])
    _, ys = ft.scan(lambda s, x: (s, next(numbers)), 0.0, np.ones(3), reverse=True)
    np.testing.assert_array_equal(ys, [3.0, 2.0, 1.0])


def test_scan_refuses_ys_of_different_structures_and_shapes():
    for ys in ([None, 1.0], [(1.0,), 1.0], [1.0, None]):
        each = iter(ys)
        with pytest.raises(ft.errors.CarryError, match="ys of different structures"):
            ft.scan(lambda s, x, each=each: (s, next(each)), 0.0, np.ones(2))
    each = iter([np.ones(2), np.ones(3)])
    with pytest.raises(ValueError, match="same shape"):
        ft.scan(lambda s, x: (s, next(each)), 0.0, np.ones(2))


def test_scan_refuses_a_y_that_is_no_array():
    with pytest.raises(ft.errors.InputTypeError, match="scan: a y"):
        ft.scan(lambda s, x: (s, "text"), 0.0, np.ones(2))
