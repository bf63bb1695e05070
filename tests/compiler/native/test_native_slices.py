"""Sums into slices, and the threads that share loops."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

from functrans.compiler.native.slices import sums_of_slices


def native(function):
    return ft.jit(function, backend="native")


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bending(x):
    return np.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2)


def apart(x):
    return np.sum(x[3:] * x[:-3]) + np.sum(x[-7:] ** 2)


def rows(x):
    u = x.reshape(-1, 50)
    return np.sum((u[1:] - u[:-1]) ** 2) + np.sum(u[:, 1:] * u[:, :-1])


@pytest.mark.parametrize("function", [rosenbrock, bending, apart, rows])
@pytest.mark.parametrize("size", [50 * 80, 50 * 100, 50 * 103, 50 * 2000])
def test_gradients_of_stencils(function, size):
    x = np.sin(np.arange(size) ** 2.0)
    found = native(ft.grad(function))(x)
    np.testing.assert_allclose(found, ft.grad(function)(x), rtol=1e-12, atol=1e-12)
    step = 1e-6 * np.random.default_rng(0).standard_normal(size)  # and by differences
    slope = (function(x + step) - function(x - step)) / 2
    np.testing.assert_allclose(found @ step, slope, rtol=1e-5)


@pytest.mark.parametrize("function", [rosenbrock, bending, apart])
@pytest.mark.parametrize("size", [20, 64, 65, 301])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_hessians_of_stencils(function, size, threads, monkeypatch):
    monkeypatch.setattr("functrans.compiler.native.threads._WORTH", 0)
    monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda: threads)
    x = np.sin(np.arange(size) ** 2.0)
    expected = ft.hessian(function)(x)
    np.testing.assert_allclose(native(ft.hessian(function))(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 7, 8, 19, 39])
def test_hessians_spread_what_is_not_finite_as_eagerly(bad, place):
    """Zeros off the diagonal meet it as well: 0 * inf is nan."""
    x = np.sin(np.arange(40) ** 2.0)
    x[place] = bad
    with np.errstate(all="ignore"):
        expected = ft.hessian(rosenbrock)(x)
        assert np.isnan(expected).any()
        assert not np.isnan(expected).all()
        np.testing.assert_allclose(native(ft.hessian(rosenbrock))(x), expected, rtol=1e-12)


def test_reductions_of_what_is_made_of_the_identity():
    def f(x):
        weights = np.cos(x) * np.eye(37) + np.eye(37, k=3) * x
        return np.sum(np.exp(weights) - weights**3, axis=1), np.max(weights, axis=0)

    x = np.sin(np.arange(37) ** 2.0)
    for found, expected in zip(native(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_sums_of_slices_write_every_entry_once():
    x = np.linspace(-1.0, 2.0, 5000)
    graph = ft.make_graph(ft.grad(bending))(x)
    assert "scatter_sum" in str(graph)
    changed = sums_of_slices(graph)
    assert "scatter_sum" not in str(changed)
    assert "concatenate" in str(changed)
    np.testing.assert_allclose(changed(x), graph(x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.exp(x[1:] * x[:-1])),  # would be computed twice
        lambda x: np.sum(x[::2] * x[1::2]),  # steps
        lambda x: np.sum(x[1:-1] * 2.0 * x[2:]),  # nothing is added at the first entry
    ],
)
def test_sums_that_stay_as_they_are(function):
    x = np.linspace(-1.0, 2.0, 5000)
    graph = ft.make_graph(ft.grad(function))(x)
    assert "scatter" in str(sums_of_slices(graph))
    np.testing.assert_allclose(native(ft.grad(function))(x), graph(x), rtol=1e-12, atol=1e-13)


def test_negative_zeros_in_rows_that_are_begun():
    x = -np.zeros((64, 64))
    found = native(ft.grad(lambda x: np.sum(np.tanh(x[1:]) * -x[:-1])))(x)
    assert not np.any(found)


# Threads.


def busy(x):
    return np.sum(np.tanh(x) * np.exp(-x * x)), np.sin(x) * x


def test_callers_at_the_same_time_get_their_own_results():
    compiled = native(busy)
    arguments = [np.linspace(k, k + 1.0, 300_000) for k in range(6)]
    expected = [busy(x) for x in arguments]
    failures = []

    def call(k):
        try:
            for _ in range(30):
                assert_trees_close(compiled(arguments[k]), expected[k], rtol=1e-9, atol=1e-9)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def run(program, **variables):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


FORK = """
    import os, numpy as np, functrans as ft
    f = ft.jit(lambda x: np.sum(np.tanh(x) * x), backend="native")
    x = np.linspace(0.0, 1.0, 1_000_000)
    before = f(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(f(x) == before for _ in range(20)) else 1)
    assert all(f(x) == before for _ in range(20))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_makes_threads_of_its_own():
    done = run(FORK, FUNCTRANS_NUM_THREADS="3")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_process_ends_while_its_threads_look_for_work():
    program = """
        import numpy as np, functrans as ft
        print(ft.jit(lambda x: np.sum(x * x), backend="native")(np.ones(3_000_000)))
    """
    for _ in range(3):
        done = run(program, FUNCTRANS_NUM_THREADS="4")
        assert (done.returncode, done.stdout) == (0, "3000000.0\n"), done.stderr


# Memory.


def large(x):
    rows = np.sin(x)[:, None] * np.cos(x)  # 50 MB that nothing fuses with its product
    return np.sum((rows @ x) * x), rows[0, 1]


def test_large_workspaces_are_taken_in_turns():
    compiled = native(lambda x: ft.grad(lambda x: large(x)[0])(x))
    arguments = [np.linspace(0.1, 0.2 + k, 2500) for k in range(3)]
    expected = [ft.grad(lambda x: large(x)[0])(x) for x in arguments]
    assert "ft_take_workspace" in compiled.trace(arguments[0]).code
    failures = []

    def call(k):
        for _ in range(4):
            if not np.allclose(compiled(arguments[k]), expected[k], rtol=1e-9):
                failures.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_is_put_at_one_place_twice_keeps_its_order():
    def put(i, v):
        y = np.zeros_like(v, shape=(18,))
        y[i] = v.T
        return y

    i = np.arange(18).reshape(2, 9)
    i[0, 8] = 9
    v = np.arange(18.0).reshape(9, 2)
    np.testing.assert_array_equal(native(put)(i, v), put(i, v))


def test_zeros_of_a_diagonal_matrix_keep_their_signs():
    for matrix in (-np.eye(32), np.eye(32), -np.eye(32) + 0.0, np.where(np.eye(32) > 0, 2.0, -0.0)):
        f = lambda x, matrix=matrix: x / matrix
        with np.errstate(divide="ignore"):
            expected = f(np.ones((32, 32)))
            np.testing.assert_array_equal(native(f)(np.ones((32, 32))), expected)


def test_an_index_out_of_range_is_found_by_one_of_several_threads(monkeypatch):
    monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda: 3)
    f = native(lambda x, i: np.sin(x[i]))
    x, generator = np.linspace(0, 1, 1000), np.random.default_rng(0)
    places = generator.integers(-1000, 1000, 1_000_000)
    np.testing.assert_allclose(f(x, places), np.sin(x[places]), rtol=1e-15)
    for wrong in generator.integers(0, len(places), 40):
        kept, places[wrong] = places[wrong], 5000
        with pytest.raises(IndexError):
            f(x, places)
        places[wrong] = kept


@pytest.mark.parametrize("length", [3, 7, 8, 16])
def test_bands_of_a_thin_matrix_are_shared_only_where_each_is_done_once(length, monkeypatch):
    monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda: 3)
    a = np.sin(np.arange(200_000.0 * length)).reshape(-1, length)
    found = native(lambda a, v: a @ v)(a, np.arange(1.0, length + 1))
    np.testing.assert_allclose(found, a @ np.arange(1.0, length + 1), rtol=1e-13, atol=1e-13)
