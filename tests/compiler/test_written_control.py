"""Loops and branches in files, in pickles and as source: the same numbers as the function itself."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import functrans as ft
from functrans.errors import GraphError
from tests.support.oracles import assert_trees_close

X = np.linspace(0.1, 0.5, 4)
TABLE = np.sin(np.arange(60.0)).reshape(4, 15)  # too long to be written out


def running(x):
    total, rows = ft.scan(lambda c, a: (np.sin(c) * a + 1.0, (c, a * TABLE)), x[0], x)
    return total + np.sum(rows[0]) + np.sum(rows[1] ** 2)


def backward(x):
    total, rows = ft.scan(lambda c, a: (c * a + 0.5, np.cos(c)), 1.0, x, reverse=True)
    return total * rows[1]


def chosen(x):
    return ft.cond(x[0] > 0.2, lambda v: np.sum(v**2), lambda v: np.sum(np.sin(v)) * TABLE[1, 2], x)


def several(x):
    branches = [lambda v: v, lambda v: v * v, lambda v: np.exp(v)]
    return np.sum(ft.switch(np.argmax(x) % 3, branches, x))


def nested(x):
    def step(c, a):
        return ft.cond(c > 1.0, lambda c, a: c * a, lambda c, a: c + a, c, a), c

    total, states = ft.scan(step, x[0], x)
    return total * states[-1]


def counted(x):
    return ft.fori_loop(0, 5, lambda k, v: v * 0.9 + k * x[1], np.sum(x))


def until(x):
    return ft.while_loop(lambda v: v[0] < 10.0, lambda v: (v[0] * 1.5, v[1] + 1), (np.sum(x), 0))[0]


def empty(x):
    total, rows = ft.scan(lambda c, a: (c + a, c), x[0], x[:0])
    return total + np.sum(rows)


FUNCTIONS = [running, backward, chosen, several, nested, counted, until, empty]
GRADIENTS = [running, backward, chosen, several, nested, counted, empty]


PROGRAMS = [
    *(pytest.param(function, id=function.__name__) for function in FUNCTIONS),
    *(pytest.param(ft.grad(f), id=f"grad of {f.__name__}") for f in GRADIENTS),
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_stored_and_read_back(function):
    graph = ft.make_graph(function)(X)
    file = io.BytesIO()
    graph.save(file)
    again = ft.load_graph(file)
    assert str(again) == str(graph)
    for x in (X, X[::-1]):
        expected = function(x)
        assert_trees_close(again(x), expected, rtol=1e-13, atol=1e-14)
        assert_trees_close(pickle.loads(pickle.dumps(graph))(x), expected, rtol=1e-13, atol=1e-14)
        assert_trees_close(ft.jit(again)(x), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("function", PROGRAMS)
def test_written_as_source(function):
    text = ft.source(function)(X)
    assert "functrans" not in text
    for x in (X, X[::-1]):
        assert_trees_close(text.function(x), function(x), rtol=1e-12, atol=1e-13)


def test_a_batch_as_source():
    batch = np.stack([X, -X, X + 0.3])
    mapped = ft.vmap(ft.grad(nested))
    found = ft.source(mapped)(batch).function(batch)
    np.testing.assert_allclose(found, np.stack([ft.grad(nested)(x) for x in batch]), rtol=1e-12)


def test_source_of_a_loop_is_a_loop():
    assert (
        ft.source(lambda x: ft.fori_loop(0, 3, lambda k, v: v * 2.0 + k, x))(1.0).split("\n", 3)[3]
        == """def function(x):
    # x: float64[]*
    def step(x2, x3):
        # x2: int64[]*, x3: float64[]*
        return x2 + 1, x3 * 2.0 + x2

    state, state2 = 0, x
    for k in range(3):
        state, state2 = step(state, state2)
    return state2  # float64[]*"""
    )


def test_lanes_that_stop_at_different_times():
    batch = np.stack([X, 2 * X, 0.1 * X])
    found = ft.source(ft.vmap(until))(batch).function(batch)
    np.testing.assert_allclose(found, [until(x) for x in batch], rtol=1e-13)


def changed(change):
    """A stored loop, with something changed in the description."""
    file = io.BytesIO()
    ft.make_graph(running)(X).save(file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["graph.json"])
    change(next(e for e in document["equations"] if e["primitive"] == "scan"))
    parts["graph.json"] = json.dumps(document).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["params"].update(body=5),
        lambda e: e["params"].update(counts=["tuple", 9, 9]),
        lambda e: e["params"]["body"][1]["equations"].pop(),
        lambda e: e["params"]["body"][1].update(outputs=[999]),
        lambda e: e["params"].pop("length"),
        lambda e: e["params"]["body"][1]["constants"].clear(),
    ],
)
def test_a_damaged_loop_is_refused(change):
    with pytest.raises(GraphError, match="not a graph that functrans can read"):
        ft.load_graph(changed(change))
