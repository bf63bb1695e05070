"""Loops and branches in machine code: the same answers as eager ones, and no Python between the rounds."""

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from functrans import cond, fori_loop, grad, hessian, jit, jvp, scan, switch, vmap, while_loop
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

X = np.linspace(0.1, 1.2, 6)


def native(f, *args):
    """The results of native code, after making sure that no part of it is Python."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


def sums(x):
    def step(carry, row):
        total, vector = carry
        vector = np.tanh(vector * row + x)
        return (total + vector[0] * row, vector), (vector, total)

    (total, vector), (vectors, totals) = scan(step, (x[0], x), np.linspace(0.5, 1.5, 7))
    return total + np.sum(vector * vectors[2]) + np.sum(totals * totals)


def backward(x):
    step = lambda carry, row: (np.sin(carry) * row, carry + row)
    carry, ys = scan(step, x[0], x, reverse=True)
    return carry * ys[0] - ys[-1]


def nested(x):
    def outer(carry, row):
        inner, _ = scan(lambda c, r: (np.cos(c) + r * row, None), carry, x)
        return np.where(inner > 0.5, inner, carry), inner

    return np.sum(scan(outer, x[1], x)[1])


def matrices(x):
    weight = np.outer(x, x) / 3

    def step(state, _):
        return np.tanh(weight @ state + x), state @ weight

    state, ys = scan(step, x, None, length=5)
    return np.sum(state) + np.sum(ys * ys)


def counted(x):
    return fori_loop(2, 9, lambda i, y: np.sin(y) + x * i - (i + 1) / 3, x)[2]


def indexed(x):
    return fori_loop(0, 6, lambda i, y: y * 0.9 + x[i] * x[5 - i], x[0])


def collatz(x):
    """Lanes that need different numbers of rounds."""
    going = lambda state: state[0] > 1e-3
    return while_loop(going, lambda state: (state[0] / 2, state[1] + np.sin(state[0])), (x, x))[1]


def root(x):
    return while_loop(lambda y: np.abs(y * y - x) > 1e-13 * x, lambda y: (y + x / y) / 2, x)


def chosen(x):
    return cond(x[0] > 0.3, lambda v: np.sum(np.sin(v)), lambda v: np.sum(v * v) + v[1], x)


def one_of_three(x):
    which = np.asarray(x[0] * 3, dtype=int)
    branches = [lambda v: v, lambda v: np.exp(v), lambda v: v[::-1] * v]
    return np.sum(switch(which, branches, x) * x)


def branch_in_loop(x):
    def step(c, row):
        return cond(row > 0.6, lambda c: np.sin(c) * row, lambda c: c + row * row, c), c

    c, ys = scan(step, x[0], x)
    return c + np.sum(ys)


def loop_in_loop(x):
    def step(c, row):
        return while_loop(lambda s: s > 0.2, lambda s: s * 0.7, c + row), c

    return np.sum(scan(step, x[0], x)[1] * x)


def loop_in_branch(x):
    long = lambda v: fori_loop(0, 4, lambda i, c: np.sin(c) + v[i], v[0])
    return cond(np.sum(x) > 1.0, long, lambda v: v[0] * 2, x)


OF_VECTORS = [
    sums,
    backward,
    nested,
    matrices,
    counted,
    indexed,
    chosen,
    one_of_three,
    branch_in_loop,
    loop_in_loop,
    loop_in_branch,
]
POINTS = [X, X[::-1].copy(), X * 0.4]


@pytest.mark.parametrize("f", OF_VECTORS)
def test_values_and_forward_derivatives(f):
    for x in POINTS:
        np.testing.assert_allclose(native(f, x), f(x), rtol=1e-12)
        push = lambda x: jvp(f, (x,), (np.cos(x),))
        assert_trees_close(native(push, x), push(x), rtol=1e-11)


@pytest.mark.parametrize("f", OF_VECTORS)
def test_gradients(f):
    for x in POINTS:
        np.testing.assert_allclose(native(grad(f), x), grad(f)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [sums, nested, matrices, counted, branch_in_loop])
def test_hessians(f):
    np.testing.assert_allclose(native(hessian(f), X), hessian(f)(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("f", OF_VECTORS)
def test_lanes(f):
    rows = np.stack(POINTS)
    one_by_one = np.stack([f(x) for x in rows])
    np.testing.assert_allclose(native(vmap(f), rows), one_by_one, rtol=1e-12)
    slopes = np.stack([grad(f)(x) for x in rows])
    np.testing.assert_allclose(native(vmap(grad(f)), rows), slopes, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("f", [collatz, root])
def test_loops_of_any_length(f):
    singles = [np.float32(2.0)] if f is collatz else []  # of root, they do not converge
    for x in (0.5, np.float64(3.0), 100.0, *singles):
        rtol = 1e-6 if isinstance(x, np.float32) else 1e-12
        found, expected = native(f, x), f(x)
        np.testing.assert_allclose(found, expected, rtol=rtol)
        assert type(found) is type(expected)
        np.testing.assert_allclose(native(grad(f), x), grad(f)(x), rtol=100 * rtol)
    x = np.geomspace(1e-2, 1e4, 33)
    np.testing.assert_allclose(native(vmap(f), x), [f(v) for v in x], rtol=1e-12)
    slopes = [grad(f)(v) for v in x]
    np.testing.assert_allclose(native(vmap(grad(f)), x), slopes, rtol=1e-10)
    push = lambda x: jvp(vmap(f), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(native(push, x), slopes, rtol=1e-10)


def test_a_loop_that_does_not_run_gives_its_initial_state():
    f = lambda x: while_loop(lambda s: s[0] > 10, lambda s: (s[0] * 2, s[1] + 1), (x, x * 3))
    assert native(f, 2.0) == (2.0, 6.0)
    assert native(grad(lambda x: f(x)[1]), 2.0) == 3.0


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_final_state_is_in_its_place_after_any_number_of_rounds(length):
    def f(x):
        return scan(lambda c, _: ((c[1] + 1, c[0] * 2), c[0]), (x, x * 3), None, length=length)

    assert_trees_close(native(f, X), f(X), rtol=1e-14)


def test_transposed_and_broadcast_rows_and_states():
    def f(x):
        rows = np.broadcast_to(x[:, None], (6, 4)).T
        return scan(lambda c, row: (c.T @ c + np.outer(row, x), c[0]), np.outer(x, x).T, rows)

    assert_trees_close(native(f, X), f(X), rtol=1e-12)


def test_states_that_pass_through_and_exchange_places():
    def f(x, y):
        def step(carry, row):
            a, b, same = carry
            return (b, a, same), (a, row, same, row)

        return scan(step, (x, y, x), np.stack([x, y, x]))

    assert_trees_close(native(f, X, X * 2), f(X, X * 2), rtol=0)


def test_results_are_new_memory():
    f = lambda x: while_loop(lambda s: s[0] > 100, lambda s: s, x)
    x = X.copy()
    found = native(f, x)
    found[0] = 77.0
    assert x[0] == X[0]


def test_an_index_out_of_range_in_a_loop_raises_as_in_numpy():
    f = lambda x, n: fori_loop(0, n, lambda i, s: s + x[i], x[0])
    compiled = jit(f, static_argnums=1, backend="native")
    np.testing.assert_allclose(compiled(X, 6), f(X, 6))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(X, 7)


def test_python_numbers_fail_as_python_does():
    f = lambda x, y: while_loop(lambda s: s > 0.5, lambda s: x / y, 1.0)
    assert native(f, 1.0, 4.0) == 0.25
    with pytest.raises(ZeroDivisionError):
        jit(f, backend="native")(1.0, 0.0)
    g = lambda x: while_loop(lambda s: s < 5.0, lambda s: s**x, 2.0)
    assert native(g, 3.0) == 8.0
    with pytest.raises(OverflowError):
        jit(g, backend="native")(1e5)


def test_large_python_integers_keep_their_digits():
    """What a counter is multiplied with may need more than 64 bits: then Python counts."""

    def f(x):
        return fori_loop(0, 70, lambda i, s: (s[0] * 2, s[1] + x), (1, x))

    count, total = jit(f, backend="native")(1.5)
    assert count == 2**70 and total == 1.5 * 71


def test_a_step_that_is_not_native_leaves_the_rest_of_the_loop_compiled():
    def f(x):
        step = lambda c, row: (np.sort(c * row) + 1, np.sum(c))
        return scan(step, x, x)

    assert_trees_close(jit(f, backend="native")(X), f(X), rtol=1e-13)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there are no timers by signal")
@pytest.mark.parametrize("kind", ["while_loop", "scan"])
def test_a_loop_can_be_interrupted(kind):
    program = f"""
        import signal
        import numpy as np
        import functrans as ft

        def endless(x):
            return ft.while_loop(lambda s: s < 5.0, lambda s: np.sin(s) * 0.5, x)

        def long(x):
            return ft.scan(lambda c, _: (np.sin(c) + 1.0, None), x, None, length=10**12)[0]

        f = ft.jit({"endless" if kind == "while_loop" else "long"}, backend="native")
        f.trace(1.0)

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                f(1.0)
            except KeyboardInterrupt:
                print("interrupted")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stdout == "interrupted\n" * 3, run.stderr


def test_other_threads_run_while_a_loop_does():
    compiled = jit(lambda x: while_loop(lambda s: s[0] < 3e7, _count, (0.0, x))[1])
    compiled(1.0)
    found = []
    thread = threading.Thread(target=lambda: found.append(compiled(1.0)))
    start = time.perf_counter()
    thread.start()
    rounds = 0
    while thread.is_alive():
        rounds += 1
        time.sleep(0.001)
    assert found and (rounds > 5 or time.perf_counter() - start < 0.02)


def _count(state):
    return state[0] + 1.0, np.sin(state[1])


def test_many_threads_share_one_loop():
    compiled = jit(grad(sums), backend="native")
    expected = [grad(sums)(x) for x in POINTS]
    failures = []

    def work(k):
        for _ in range(50):
            if not np.allclose(compiled(POINTS[k]), expected[k], rtol=1e-10):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_loop_without_steps_computes_nothing_of_its_body():
    numbers, matrix = np.ones(3), np.zeros((2, 2))
    f = jit(lambda b, i: fori_loop(0, 0, lambda j, c: c + b[i], 0.0), backend="native")
    assert f(numbers, 7) == 0.0
    f = jit(lambda i: fori_loop(0, 0, lambda j, c: c + 10 // i, 0), backend="native")
    assert f(0) == 0
    f = jit(lambda m: fori_loop(5, 2, lambda j, c: c + np.linalg.inv(m), m), backend="native")
    np.testing.assert_array_equal(f(matrix), matrix)
    lanes = lambda n, b, i: fori_loop(0, n, lambda j, c: c + b[i], 0.0)
    f = jit(lambda b, i: vmap(lanes, (0, None, None))(np.array([0, 0]), b, i), backend="native")
    np.testing.assert_array_equal(f(numbers, 7), [0.0, 0.0])


def test_python_integers_as_limits_and_operands():
    f = lambda x, n: fori_loop(0, n, lambda i, s: s + x[i] * n, 0.0)
    assert native(f, X, 4) == f(X, 4)
    assert native(grad(f), X, 4) == pytest.approx(grad(f)(X, 4))
    for g in (lambda n: n + 1, lambda n: n * n, lambda n: (n, n * 0.5), lambda n: -n):
        for number in (3, -(2**52), 2**52, 2**53 + 1, 2**63, -(10**30)):
            found, expected = jit(g, backend="native")(number), g(number)
            assert found == expected and type(found) is type(expected)
    add = jit(lambda x, n: x + n, backend="native")
    with pytest.raises(OverflowError):
        add(np.arange(3, dtype=np.int8), 300)
    with pytest.raises(OverflowError):
        add(np.arange(3, dtype=np.int32), 2**40)


def test_compiled_loops_give_their_memory_back():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def compile_some(start):
        for k in range(start, start + 60):
            jit(lambda c: fori_loop(0, 5, lambda j, c: c * k + j, c), backend="native")(1.0)  # noqa: B023
        gc.collect()

    if sys.platform != "linux":
        pytest.skip("memory is measured as Linux reports it")
    compile_some(0)
    before = resident()
    compile_some(1000)
    assert resident() - before < 60 * 20_000  # LLVM's own pipelines would keep 50,000 bytes each
