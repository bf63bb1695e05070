"""Repeated equations become loops, with the same values."""

import numpy as np
import pytest

from functrans import grad, hessian, jacrev, jit, vmap
from functrans.control.scanning import along
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(40, 5))
WEIGHTS = (DRAW.normal(size=(5, 16)) / 3, DRAW.normal(size=(4, 16)) / 3, np.zeros(16))
VECTOR = DRAW.normal(size=100)


def loops(f, *args):
    """The lengths of the loops in the compiled graph, and the number of other equations."""
    equations = jit(f, backend="native").trace(*args).optimized.equations
    lengths = [e.params["length"] for e in equations if e.primitive is along]
    return lengths, len(equations) - len(lengths)


def same(f, *args):
    assert_trees_close(jit(f, backend="native")(*args), f(*args), rtol=1e-9, atol=1e-11)


def sines(x):
    for k in range(100):
        x = np.sin(x) * 1.01 + 0.001 * k
    return np.sum(x)


def lstm(weights, rows):
    into, again, bias = weights
    hidden, cell = np.zeros(4), np.zeros(4)
    bent = lambda x: 1 / (1 + np.exp(-x))
    for row in rows:
        gates = row @ into + hidden @ again + bias
        cell = bent(gates[:4]) * cell + bent(gates[4:8]) * np.tanh(gates[8:12])
        hidden = bent(gates[12:]) * np.tanh(cell)
    return np.sum(hidden * hidden)


def lorenz(y):
    def slope(y):
        return np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 2.7 * y[2]])

    h = 0.01
    for _ in range(40):
        first = slope(y)
        second = slope(y + h / 2 * first)
        y = y + h * second
    return np.sum(y)


def two_states(x):
    a, b = x, x * x
    for _ in range(80):
        a, b = b, np.sin(a) + b * 0.5
    return a + b


def far_back(x):
    states = [x, x + 1, x + 2]
    for _ in range(90):
        states.append(np.sin(states[-1]) * 0.3 + np.cos(states[-3]) * 0.2)
    return states[-1] + states[-2]


def nested(x):
    total = x
    for _ in range(20):
        for j in range(12):
            total = np.sin(total) * 0.99 + 0.01 * j
        total = total * 1.1 + np.cos(x)
    return np.sum(total)


def forward_and_backward(x):
    total = 0.0
    for k in range(100):
        total = total + np.sin(x[k]) * x[99 - k]
    return total


def by_columns(x):
    total = x[:, 0]
    for k in range(39):
        total = np.tanh(total) * x[:, k + 1] + x[2]
    return np.sum(total)


def all_states(x):
    states = []
    for k in range(60):
        x = np.tanh(x * 1.1 + 0.01 * k)
        states.append(x)
    return np.sum(np.stack(states) * np.arange(60.0)[:, None])


def two_loops(x):
    for _ in range(60):
        x = np.sin(x) + 0.1 * x
    x = np.cumsum(x)
    for _ in range(60):
        x = np.exp(-x) * x + 0.3
    return np.sum(x)


PROGRAMS = [
    (sines, (VECTOR[:6],)),
    (sines, (np.float64(0.3),)),
    (sines, (0.3,)),
    (sines, (np.float32(0.3),)),
    (lstm, (WEIGHTS, ROWS)),
    (lorenz, (np.ones(3),)),
    (two_states, (np.float64(0.3),)),
    (far_back, (np.float64(0.3),)),
    (nested, (VECTOR[:4],)),
    (forward_and_backward, (VECTOR,)),
    (by_columns, (np.outer(VECTOR[:40], VECTOR[:40]),)),
    (all_states, (VECTOR[:3],)),
    (two_loops, (VECTOR[:5] / 10,)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_values_do_not_change(f, args):
    assert loops(f, *args)[0]
    tolerance = 1e-5 if isinstance(args[0], np.float32) else 1e-10
    found, expected = jit(f, backend="native")(*args), f(*args)
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert type(found) is type(expected)


@pytest.mark.parametrize(("f", "args"), [p for p in PROGRAMS if type(p[1][0]) is not np.float32])
def test_gradients(f, args):
    same(grad(f), *args)


@pytest.mark.parametrize("f", [lorenz, all_states])
def test_second_derivatives_and_lanes(f):
    same(hessian(f), VECTOR[:3])
    same(vmap(grad(f)), VECTOR[:12].reshape(4, 3))
    same(jacrev(grad(f)), VECTOR[:3])


def test_both_sweeps_of_a_gradient_are_loops():
    for f, args in ((sines, (VECTOR[:6],)), (lstm, (WEIGHTS, ROWS)), (nested, (VECTOR[:4],))):
        lengths, others = loops(grad(f), *args)
        assert len(lengths) == 2 and others < 130, (f, lengths, others)


def test_inner_loops_are_loops_in_the_body():
    equations = jit(nested, backend="native").trace(VECTOR[:4]).optimized.equations
    (loop,) = [e for e in equations if e.primitive is along]
    assert loop.params["length"] == 20 and len(loop.params["body"].graph.equations) <= 3 * 12 + 3


def test_what_repeats_only_in_part_stays_right():
    def f(x):
        for k in range(60):
            x = np.sin(x) + 0.1
            if k % 7 == 3:
                x = np.cos(x)
            if k == 31:
                x = x * x
        return np.sum(x)

    same(f, VECTOR[:4])
    same(grad(f), VECTOR[:4])


def test_places_that_do_not_advance_evenly_stay_right():
    order = [(k * k) % 97 for k in range(90)]

    def f(x):
        total = x[0]
        for k in order:
            total = np.sin(total) + x[k]
        return total

    same(f, VECTOR)
    same(grad(f), VECTOR)


def test_arrays_filled_step_by_step_stay_right():
    def f(x):
        out = np.zeros(60)
        out[0] = x
        for k in range(1, 60):
            out[k] = np.sin(out[k - 1]) + x * k
        return np.sum(out**2)

    same(f, np.float64(0.3))
    same(grad(f), np.float64(0.3))


def test_short_programs_are_left_alone():
    def f(x):
        for _ in range(6):
            x = np.sin(x) * 2
        return x

    assert loops(f, VECTOR)[0] == []
