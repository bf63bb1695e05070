"""profile: calls, time and bytes of every primitive, forward and backward."""

import json
import time

import numpy as np
import pytest

import functrans
from functrans import (
    checkpoint,
    custom_vjp,
    grad,
    hessian,
    jit,
    profile,
    pure_callback,
    scan,
    value_and_grad,
    vmap,
)
from functrans.core.dispatch import running_interpreters
from functrans.errors import InputTypeError, OptionError


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


W, X = np.linspace(-1.0, 1.0, 6).reshape(3, 2), np.linspace(0.0, 1.0, 12).reshape(4, 3)


def counts(result):
    return {(row.primitive, row.phase): row.calls for row in result.rows()}


def test_a_plain_function():
    result = profile(lambda x: np.sin(x) + np.sin(2.0 * x))(np.ones(3))
    assert counts(result) == {
        ("sin", "forward"): 2,
        ("multiply", "forward"): 1,
        ("add", "forward"): 1,
    }
    np.testing.assert_array_equal(result.value, np.sin(np.ones(3)) + np.sin(2 * np.ones(3)))
    assert type(result.value) is np.ndarray


def test_a_gradient_forward_and_backward():
    result = profile(grad(loss))(W, X)
    np.testing.assert_allclose(result.value, grad(loss)(W, X), rtol=1e-14)
    found = counts(result)
    assert found["matmul", "forward"] == found["tanh", "forward"] == 1
    assert found["matmul", "backward"] == 1
    assert ("tanh", "backward") not in found  # its rule is 1 - out * out
    assert found["multiply", "backward"] >= 2
    assert not any(phase == "backward" for name, phase in found if name in ("tanh", "power", "sum"))


def test_bytes_are_those_read_and_written():
    result = profile(lambda x, y: x * y)(np.ones((10, 3)), np.ones(3, np.float32))
    (row,) = result.rows()
    assert row.bytes == 240 + 12 + 240
    (row,) = profile(np.sum)(np.ones(5)).rows()
    assert row.bytes == 48


def test_times_are_those_of_the_primitives():
    def slow(x):
        time.sleep(0.02)
        return x + 0.0

    sleepy = functrans.define_primitive("sleepy", slow, jvp=lambda out, x, t: t[0])
    result = profile(lambda x: sleepy(x) + sleepy(2.0 * x))(np.ones(2))
    rows = {row.primitive: row for row in result.rows()}
    assert result.rows()[0].primitive == "sleepy"
    assert 0.04 <= rows["sleepy"].seconds < result.seconds < 1.0
    assert rows["add"].seconds < 0.02


@pytest.mark.parametrize(
    "make",
    [
        lambda f: grad(f),
        lambda f: value_and_grad(f),
        lambda f: hessian(f),
        lambda f: vmap(grad(f), (None, 0)),
        lambda f: grad(jit(f)),
        lambda f: jit(grad(f)),
        lambda f: grad(checkpoint(f)),
    ],
    ids=["grad", "value_and_grad", "hessian", "vmap of grad", "of jit", "jit of", "checkpoint"],
)
def test_the_value_is_that_of_the_function(make):
    found = profile(make(loss))(W, X)
    expected = make(loss)(W, X)
    leaves = functrans.tree.leaves
    for one, other in zip(leaves(found.value), leaves(expected), strict=True):
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert ("tanh", "forward") in counts(found)


def test_keywords_trees_and_other_arguments():
    def f(params, power, *, shift):
        return {"out": [params["a"] ** power + shift, "text", 3]}

    result = profile(f)({"a": np.ones(2)}, 2, shift=1.0)
    assert result.value["out"][1:] == ["text", 3]
    np.testing.assert_array_equal(result.value["out"][0], [2.0, 2.0])


def test_integers_are_not_watched_so_they_may_index():
    table = np.arange(4.0)
    result = profile(lambda x, i: x * table[i])(np.ones(2), np.array([1, 3]))
    np.testing.assert_array_equal(result.value, [1.0, 3.0])


def test_plain_values_may_be_asked_for():
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        return float(x[1]) + np.asarray(x).sum() + y[0] if x[0] > 0 else x

    assert profile(f)(np.array([1.0, 2.0])).value == 2.0 + 3.0 + 1.0


def test_custom_functions_and_loops_are_seen_inside():
    function = custom_vjp(lambda x: np.exp(np.sin(x)))
    function.defvjp(lambda x: (np.exp(np.sin(x)), x), lambda x, g: (g * np.cos(x),))
    found = counts(profile(grad(lambda x: np.sum(function(x))))(np.ones(2)))
    assert found["exp", "forward"] == found["cos", "backward"] == 1
    steps = counts(profile(lambda x: scan(lambda s, y: (s * y, None), 1.0, x))(np.ones(5)))
    assert steps["multiply", "forward"] == 5


def test_a_callback_gets_plain_values():
    seen = []

    def f(x):
        seen.append(type(x))
        return x + 1.0

    spec = functrans.ArraySpec((2,), float)
    result = profile(lambda x: pure_callback(f, spec, x))(np.ones(2))
    assert seen == [np.ndarray]
    assert counts(result) == {("pure_callback", "forward"): 1}


def test_the_table():
    result = profile(grad(loss))(W, X)
    lines = result.table().split("\n")
    assert lines[0].split() == ["primitive", "phase", "calls", "time", "share", "bytes"]
    assert lines[-2].startswith("total") and "100%" in lines[-2]
    assert lines[-1].startswith("loss took ") and lines[-1].endswith(" outside of primitives")
    assert len(lines) == len(result.rows()) + 3
    assert repr(result) == result.table()
    assert sum(row.calls for row in result.rows()) == len(result.events)


def test_the_order_of_the_table():
    result = profile(grad(loss))(W, X)
    for order, key in (
        ("time", lambda row: -row.seconds),
        ("calls", lambda row: -row.calls),
        ("bytes", lambda row: -row.bytes),
        ("name", lambda row: row.primitive),
    ):
        rows = result.rows(order)
        assert rows == sorted(rows, key=key)
        names = [line.split()[0] for line in result.table(sort_by=order).split("\n")[1:-2]]
        assert names == [row.primitive for row in rows]
    with pytest.raises(
        OptionError, match='sort_by must be one of "time", "calls", "bytes", "name"'
    ):
        result.table(sort_by="memory")


def test_in_a_notebook_it_is_a_table():
    text = profile(lambda x: np.sin(x))(np.ones(2))._repr_html_()
    assert text.startswith("<table><tr><th>primitive</th>")
    assert "<td>sin</td><td>forward</td><td>1</td>" in text
    assert "&lt;lambda&gt; took" in text and "<lambda>" not in text


def test_the_chrome_trace(tmp_path):
    result = profile(grad(loss))(W, X)
    result.chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    whole, *events = trace["traceEvents"]
    assert whole["name"] == "loss" and whole["ts"] == 0
    assert len(events) == len(result.events)
    for event in trace["traceEvents"]:
        assert event["ph"] == "X" and event["dur"] >= 0
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ts"] >= 0 and event["ts"] + event["dur"] <= whole["dur"] + 1e-6
    assert {event["cat"] for event in events} == {"forward", "backward"}
    (tanh,) = (event for event in events if event["name"] == "tanh")
    assert tanh["args"] == {"bytes": 128, "results": ["float64[4,2]"]}


def test_nothing_is_left_behind():
    def fail(x):
        np.sin(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        profile(fail)(np.ones(2))
    assert not running_interpreters()
    with pytest.raises(InputTypeError, match="profile needs a function"):
        profile(np.ones(3))


def test_a_function_of_nothing():
    result = profile(lambda: 3)()
    assert result.value == 3 and result.rows() == []
    assert result.table().split("\n")[1].split() == ["total", "0", "0", "µs", "0%", "0", "B"]
