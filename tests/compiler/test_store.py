"""Graphs in files and pickles: what comes back is what was stored, and bad files only raise."""

import collections
import io
import json
import pickle
import subprocess
import sys
import zipfile
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.errors import GraphError
from tests.support.cases import CASES
from tests.support.cases_numpy import NUMPY_CASES
from tests.support.oracles import assert_trees_close

STAGED = [case for case in [*CASES[::3], *NUMPY_CASES] if not case.needs_values]


def stored(graph):
    file = io.BytesIO()
    graph.save(file)
    return file.getvalue()


def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


ARGS = (np.linspace(-1, 1, 3), np.linspace(0, 1, 15).reshape(5, 3), np.linspace(1, 2, 5))
GRAPH = ft.make_graph(ft.grad(loss))(*ARGS)
FILE = stored(GRAPH)


@pytest.mark.parametrize("case", STAGED, ids=attrgetter("name"))
@settings(max_examples=1)
@given(data=st.data())
def test_every_graph_comes_back(case, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    args = case.sample(rng, data.draw(case.shapes, label="shapes"))
    graph = ft.make_graph(case.function)(*args)
    expected = graph(*args)
    again = ft.load_graph(io.BytesIO(stored(graph)))
    assert str(again) == str(graph)
    assert_trees_close(again(*args), expected, rtol=0, atol=0, dtypes=True)
    assert_trees_close(pickle.loads(pickle.dumps(graph))(*args), expected, rtol=0, atol=0)


def test_files(tmp_path):
    GRAPH.save(tmp_path / "g.functrans")
    again = ft.load_graph(str(tmp_path / "g.functrans"))
    np.testing.assert_array_equal(again(*ARGS), GRAPH(*ARGS))
    np.testing.assert_array_equal(ft.jacobian(again)(*ARGS), ft.jacobian(GRAPH)(*ARGS))
    with pytest.raises(FileNotFoundError):
        ft.load_graph(tmp_path / "nothing")


def test_constants_keep_every_bit():
    odd = np.array([np.nan, -0.0, np.inf, 5e-324, 0.1])

    def function(x):
        return x * odd, x + np.float32(0.1), x * (1 + 2j), x[::-1][:0], x[np.array([1, 0])], 3, True

    graph = ft.make_graph(function)(np.ones(5))
    for one, other in zip(
        graph.constants.values(),
        ft.load_graph(io.BytesIO(stored(graph))).constants.values(),
        strict=True,
    ):
        assert type(one) is type(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_containers_come_back():
    def function(params, *, n):
        return {"a": [params["w"], None]}, (params["b"],), n

    graph = ft.make_graph(function)({"w": np.ones(2), "b": 1.0}, n=2)
    again = ft.load_graph(io.BytesIO(stored(graph)))
    assert again.in_tree == graph.in_tree and again.out_tree == graph.out_tree
    assert_trees_close(
        again({"w": np.ones(2), "b": 2.0}, n=5), ({"a": [np.ones(2), None]}, (2.0,), 5)
    )


Pair = collections.namedtuple("Pair", "a b")


def test_classes_are_pickled_but_not_stored():
    graph = ft.make_graph(lambda p: Pair(p.a * 2, p.b))(Pair(1.0, 2.0))
    with pytest.raises(GraphError, match="Pair"):
        stored(graph)
    assert pickle.loads(pickle.dumps(graph))(Pair(2.0, 1.0)) == Pair(4.0, 1.0)


def test_what_is_not_ours_cannot_be_stored():
    mystery = ft.define_primitive("sin", lambda x: x + 1, shape=lambda x: x)
    with pytest.raises(GraphError, match="not part of functrans"):
        stored(ft.make_graph(lambda x: mystery(x))(1.0))
    with pytest.raises(GraphError, match="traced by another transform"):
        ft.grad(lambda x: len(stored(ft.make_graph(lambda y: x * y)(1.0))) * x)(2.0)


def test_special_functions_come_back():
    special = pytest.importorskip("scipy.special")
    graph = ft.make_graph(lambda x: special.gammaln(x) + special.log1p(x) + special.airy(x)[0])(
        np.full(2, 3.0)
    )
    again = ft.load_graph(io.BytesIO(stored(graph)))
    np.testing.assert_array_equal(again(np.full(2, 2.5)), graph(np.full(2, 2.5)))


def test_another_process_reads_graphs(tmp_path):
    GRAPH.save(tmp_path / "g")
    (tmp_path / "p").write_bytes(pickle.dumps(GRAPH))
    code = (
        "import sys, pickle, functrans as ft, numpy as np\n"
        "args = np.zeros(3), np.ones((5, 3)), np.ones(5)\n"
        "print(ft.load_graph(sys.argv[1])(*args))\n"
        "print(pickle.load(open(sys.argv[2], 'rb'))(*args))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "g"), str(tmp_path / "p")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    value = str(GRAPH(np.zeros(3), np.ones((5, 3)), np.ones(5)))
    assert found.splitlines() == [value, value]


# Files that are damaged, or made to deceive.


def changed(change, constants=None):
    """The stored graph with its description changed."""
    with zipfile.ZipFile(io.BytesIO(FILE)) as archive:
        document = json.loads(archive.read("graph.json"))
        arrays = archive.read("constants.npz") if constants is None else constants
    result = change(document)
    document = result if isinstance(result, (dict, list)) else document
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("graph.json", json.dumps(document))
        archive.writestr("constants.npz", arrays)
    file.seek(0)
    return file


def test_every_truncated_or_flipped_file_is_an_error_or_the_graph():
    for length in range(0, len(FILE), 37):
        with pytest.raises(GraphError, match="not a graph"):
            ft.load_graph(io.BytesIO(FILE[:length]))
    rng = np.random.default_rng(0)
    for _ in range(100):
        damaged = bytearray(FILE)
        damaged[rng.integers(len(FILE))] ^= 1 << rng.integers(8)
        try:
            graph = ft.load_graph(io.BytesIO(bytes(damaged)))
        except GraphError:
            continue
        assert str(graph) == str(GRAPH)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: {},
        lambda d: [1, 2],
        lambda d: d.update(format="other"),
        lambda d: d["equations"][0].update(primitive="os.system"),
        lambda d: d["equations"][0].update(primitive="__import__"),
        lambda d: d["equations"][0].update(primitive=7),
        lambda d: d["equations"][0].update(inputs=[99, 98]),
        lambda d: d["equations"][0].update(inputs=[]),
        lambda d: d["equations"][0].update(params={"x": ["eval", "1"]}),
        lambda d: d["equations"][0].update(params={"out": 1}),
        lambda d: d["equations"][0]["outputs"][0].update(variable=0),
        lambda d: d["equations"][0]["outputs"][0].update(spec=[[10**12, 10**12], "<f8", False]),
        lambda d: d["equations"].reverse(),
        lambda d: d["inputs"][0].update(spec=[[3], "|O", False]),
        lambda d: d["inputs"][0].update(spec=[[-3], "<f8", False]),
        lambda d: d["inputs"][0].update(spec=[["3"], "<f8", False]),
        lambda d: d["constants"][0].update(spec=[[3], "<f4", False]),
        lambda d: d["constants"].append({"variable": 55, "spec": [[], "<f8", True]}),
        lambda d: d.update(outputs=["a"]),
        lambda d: d.update(in_tree="leaf"),
        lambda d: d.update(in_tree=["class", "os", "leaf"]),
        lambda d: d.update(out_tree=["tuple", "leaf", "leaf"]),
        lambda d: d.update(input_names=["x"]),
        lambda d: d.pop("outputs"),
    ],
)
def test_hostile_descriptions(change):
    with pytest.raises(GraphError, match="not a graph that functrans can read"):
        ft.load_graph(changed(change))


def test_deep_containers_do_not_crash():
    with zipfile.ZipFile(changed(lambda d: d.update(out_tree=["tuple", "deep"]))) as archive:
        document = archive.read("graph.json").decode()
        arrays = archive.read("constants.npz")
    for depth in (2_000, 200_000):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            nested = '["tuple", ' * depth + '"leaf"' + "]" * depth
            archive.writestr("graph.json", document.replace('"deep"', nested))
            archive.writestr("constants.npz", arrays)
        with pytest.raises(GraphError):
            ft.load_graph(file)


def test_another_version_says_so():
    with pytest.raises(GraphError, match="version 99"):
        ft.load_graph(changed(lambda d: d.update(version=99)))


def test_pickles_in_the_constants_are_refused():
    held = io.BytesIO()
    np.savez(held, c3=np.array([print], dtype=object))
    with pytest.raises(GraphError):
        ft.load_graph(changed(lambda d: None, held.getvalue()))


def test_large_promises_are_not_kept():
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("graph.json", " " * (1 << 28 | 1))
        archive.writestr("constants.npz", b"")
    with pytest.raises(GraphError, match="too large for a file"):
        ft.load_graph(bomb)
    held = io.BytesIO()
    np.savez_compressed(held, c3=np.zeros(1 << 20))
    with pytest.raises(GraphError, match="too large for a file"):
        ft.load_graph(changed(lambda d: None, held.getvalue()))
