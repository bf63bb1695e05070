"""Load: many threads, long tapes, many calls, interruptions, and other processes.

Each test has a small form, which runs with the suite, and the full one: FUNCTRANS_LOAD=full.
"""

import ast
import collections
import dataclasses
import gc
import io
import itertools
import linecache
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.torch as torch
from tests.support.marks import one_in

FULL = os.environ.get("FUNCTRANS_LOAD") == "full"
FORKS = "fork" in multiprocessing.get_all_start_methods()


def _full(full, small):
    return full if FULL else small


# The mixed transforms of one round, each with the answer in closed form.

_compiled = ft.jit(ft.grad(lambda x: np.sum(np.sin(x) * x)), backend="numpy")
_mapped_jit = ft.jit(lambda x: np.cumsum(x * x))


def _of_branches(x):
    return x**3 if x > 0.5 else -2 * x


def _looped(x):
    return ft.scan(lambda carry, row: (carry * x + row, None), 0.0, np.ones(3))[0]


def _backward(x):
    tensor = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (tensor.sin() * tensor).sum().backward()
    return tensor.grad.numpy()


def _in_worker(x):
    """A thread within a transform, which closes over its values."""

    def function(x):
        found = []
        worker = threading.Thread(target=lambda: found.append(ft.grad(lambda y: x * y * y)(3.0)))
        worker.start()
        worker.join()
        return found[0]

    return ft.grad(function)(float(x[0]))


MIXED = [
    (lambda x: ft.grad(lambda x: np.sum(x * x))(x), lambda x: 2 * x),
    (lambda x: ft.jvp(np.sin, (x,), (x,))[1], lambda x: x * np.cos(x)),
    (lambda x: ft.vmap(ft.grad(_of_branches))(x), lambda x: np.where(x > 0.5, 3 * x * x, -2.0)),
    (lambda x: ft.vmap(lambda v: v - ft.pmean(v, "i"), axis_name="i")(x), lambda x: x - x.mean()),
    (lambda x: ft.hessian(lambda x: np.sum(x**3))(x), lambda x: np.diag(6 * x)),
    (lambda x: ft.grad(_looped)(float(x[0])), lambda x: 2 * x[0] + 1),
    (lambda x: _compiled(x), lambda x: np.sin(x) + x * np.cos(x)),
    (lambda x: ft.jacrev(_mapped_jit)(x), lambda x: np.tril(np.ones((3, 3))) * 2 * x),
    (_backward, lambda x: np.sin(x) + x * np.cos(x)),
    (_in_worker, lambda x: 6.0),
]


def test_threads_of_mixed_transforms_give_right_answers():
    failures = []

    def work(seed):
        draw = np.random.default_rng(seed)
        try:
            for _ in range(_full(10_000, 200)):
                function, expected = MIXED[draw.integers(len(MIXED))]
                x = draw.uniform(-1, 1, 3)
                np.testing.assert_allclose(function(x), expected(x), rtol=1e-10, atol=1e-12)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures, failures


def test_a_sweep_over_millions_of_records():
    records = _full(10_000_000, 200_000)

    def chain(x):
        for _ in range(records // 2):
            x = x * 0.5 + 1.0
        return x

    # The derivative is 0.5 ** n, which is 0 in floating point: start over from x at the end.
    value, slope = ft.value_and_grad(lambda x: chain(x) + 3.0 * x)(1.0)
    assert value == 5.0
    assert slope == 3.0


def _flat_calls():
    x = np.linspace(0.1, 1, 8)
    big = np.ones(20_000)  # arrays of this size are watched, not copied
    weights = torch.tensor([1.0, 2.0], requires_grad=True)

    def backward():
        weights.grad = None
        (weights.exp() * weights).sum().backward()

    def divides(y):
        return np.sum(y * big) if 1 // 0 else y

    def failing():
        with pytest.raises(ZeroDivisionError):
            ft.grad(lambda y: np.sum(y * big) * divides(y))(1.0)

    native = ft.jit(lambda x: np.sum(np.sin(x)))
    indexed = ft.jit(lambda x, i: x[i] * 2.0)
    indexed_after_numpy = ft.jit(lambda x, i: np.sort(x)[i] * 2.0)
    indexed_in_numpy = ft.jit(lambda x, i: x[i] * 2.0, backend="numpy")
    outside = np.array([10**6])

    def index_error(function, values):
        with pytest.raises(IndexError):
            function(values, outside)

    def bad_argument():
        with pytest.raises(TypeError):
            ft.define_primitive("p", np.sin, lambda out, x, t: t[0])(None)

    def bad_file():
        with pytest.raises(ft.errors.GraphError):
            ft.load_graph(io.BytesIO(b"not a graph"))

    def escaped():
        kept = []
        ft.grad(lambda x: kept.append(x) or x)(1.0)
        with pytest.raises(ft.errors.EscapedTracerError):
            kept[0] + 1

    return {
        "grad": lambda: ft.grad(lambda x: np.sum(np.sin(x) * x))(x),
        "watched arrays": lambda: ft.grad(lambda x: np.sum(x * big))(1.0),
        "vmap": lambda: ft.vmap(_of_branches)(x),
        "jvp": lambda: ft.jvp(np.sin, (x,), (x,)),
        "jit": lambda: native(x),
        "grad of jit": lambda: ft.grad(native)(x),
        "vjp": lambda: ft.vjp(np.sin, x)[1](x),
        "backward": backward,
        "errors": failing,
        "native index errors": lambda: index_error(indexed, x),
        "native index errors of much work": lambda: index_error(indexed, big),
        "index errors between NumPy steps": lambda: index_error(indexed_after_numpy, x),
        "index errors of generated code": lambda: index_error(indexed_in_numpy, x),
        "native code, arguments of another layout": lambda: native(x[::-1]),
        "native code under a transform": lambda: ft.vmap(indexed, (None, 0))(x, np.array([1, 2])),
        "bad arguments": bad_argument,
        "bad files": bad_file,
        "escaped values": escaped,
        "cond": lambda: ft.cond(x[0] > 0, lambda x: x * 2, lambda x: x, x),
        "checkpoint": lambda: ft.grad(ft.checkpoint(lambda x: np.sum(np.sin(x))))(x),
    }


def _new_dataclass(x):
    point = dataclasses.make_dataclass("Point", ["x", "y"])
    return ft.grad(lambda p: np.sum(p.x * p.y))(point(x, x)).x


def _new_primitive(x):
    double = ft.define_primitive(
        "double", lambda x: x * 2, jvp=lambda out, x, t: 2 * t[0], shape=lambda x: x
    )
    return ft.make_graph(lambda x: double(x))(x)(x)


def _new_custom_rule(x):
    total = ft.custom_vjp(lambda x: np.sum(x))
    total.defvjp(lambda x: (np.sum(x), None), lambda _, g: (g * np.ones(8),))
    return ft.jit(ft.grad(total))(x)


def _stored(x):
    file = io.BytesIO()
    ft.make_graph(lambda x: np.sin(x) * 2.0)(x).save(file)
    return ft.load_graph(file)(x)


# Whatever is made anew for each call goes away with it, what was compiled, cached and registered for it
# included.
_MADE_ANEW = {
    "jit": lambda x: ft.jit(lambda x: np.sum(np.sin(x)) * 2.0)(x),
    "jit in NumPy": lambda x: ft.jit(lambda x: np.sum(np.sin(x)) * 2.0, backend="numpy")(x),
    "jit in segments": lambda x: ft.jit(ft.grad(lambda x: np.sum(np.sort(x) ** 2)))(x),
    "jit of a loop": lambda x: ft.jit(lambda x: ft.scan(lambda c, r: (c * r, c), 1.0, x))(x),
    "jit of a branch": lambda x: ft.jit(
        lambda x: ft.cond(x[0] > 0, lambda x: x * 2.0, lambda x: x, x)
    )(x),
    "jit of a closure": lambda x: ft.grad(lambda y: ft.jit(lambda x: np.sum(x * y))(x))(2.0),
    "make_graph": lambda x: ft.make_graph(lambda x: np.sin(x) * 2.0)(x)(x),
    "source": lambda x: str(ft.source(lambda x: np.sin(x) * 2.0)(x)),
    "files": _stored,
    "draw": lambda x: ft.make_graph(lambda x: np.sin(x) * 2.0)(x).draw().svg,
    "namedtuple": lambda x: ft.grad(lambda p: np.sum(p.x))(collections.namedtuple("P", "x")(x)),
    "dataclass": _new_dataclass,
    "primitive": _new_primitive,
    "custom rule": _new_custom_rule,
    "callback": lambda x: ft.jit(
        lambda x: ft.pure_callback(np.sin, ft.ArraySpec((8,), np.float64), x)
    )(x),
}


def _held_after(call, calls):
    """The bytes that Python holds, and the lines that linecache holds, after this many calls."""
    for _ in range(calls):
        call()
    gc.collect()
    gc.collect()
    return tracemalloc.get_traced_memory()[0], len(linecache.cache)


@pytest.mark.parametrize("name", one_in(8, _MADE_ANEW))
def test_what_is_made_anew_goes_away(name, monkeypatch):
    monkeypatch.setattr("functrans.core.tree._MOST_MET", 8)
    x = np.linspace(0.1, 1, 8)
    calls = _full(3_000, 40)
    call = lambda: _MADE_ANEW[name](x)
    tracemalloc.start()
    try:
        _held_after(call, calls // 2)
        held = [_held_after(call, calls) for _ in range(5)]
    finally:
        tracemalloc.stop()
    grown = [after - before for (before, _), (after, _) in itertools.pairwise(held)]
    lines = [after - before for (_, before), (_, after) in itertools.pairwise(held)]
    # A leak shows in every round; garbage of other tests in this process goes away after one.
    assert min(lines) <= 0
    # The least that could stay of a call is a name. Python keeps some hundred freed objects for later.
    assert min(grown) < 30 * calls + 12_000, f"{grown} bytes in {calls} calls"


@pytest.mark.slow
def test_memory_of_native_code_is_given_back():
    script = """
        import gc, sys
        import numpy as np
        import functrans as ft

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        def compile_some(count):
            for k in range(count):
                ft.jit(lambda x: np.sum(np.exp(np.sin(x) * k)) + x[::-1])(np.linspace(0, 1, 40))
            gc.collect()
            return resident()

        calls = int(sys.argv[1])
        compile_some(calls)
        before = compile_some(calls)
        print(compile_some(calls) - before)
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("the memory of a process is read from /proc")
    calls = _full(2_000, 50)
    command = [sys.executable, "-c", textwrap.dedent(script), str(calls)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    # The code of one of these functions takes a page at least.
    assert int(found.stdout) < 1024 * calls + 1_000_000


def test_warnings_with_other_numbers_are_not_all_remembered():
    rng = np.random.default_rng(0)
    matrix = np.diag(np.linspace(1, 100, 20))
    scope = {"__name__": "someone", "ft": ft, "matrix": matrix}
    code = compile(
        "def solve(b): return ft.cg(lambda v: matrix @ v, b, maxiter=2)", "someone", "exec"
    )
    exec(code, scope)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *_, **__: None
        for _ in range(600):
            scope["solve"](rng.normal(size=20))
    assert 1 < len(scope["__warningregistry__"]) < 300


def test_no_call_leaves_its_keywords_behind():
    """Until Python 3.13, f(*lazy, **keywords) loses the keywords if `lazy` raises on its way."""
    found = []
    for path in sorted(Path(ft.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.keywords and len(node.args) == 1:
                value = getattr(node.args[0], "value", None)
                lazy = isinstance(value, ast.GeneratorExp) or (
                    isinstance(value, ast.Call)
                    and getattr(value.func, "id", "") in ("map", "filter", "zip")
                )
                if isinstance(node.args[0], ast.Starred) and lazy:
                    found.append(f"{path.name}, line {node.lineno}")
    assert not found, found


@pytest.mark.parametrize("name", one_in(4, _flat_calls()))
def test_memory_is_flat_over_many_calls(name):
    call = _flat_calls()[name]
    calls = _full(100_000, 1_000)
    tracemalloc.start()
    try:
        for _ in range(1_000):  # NumPy keeps some small blocks of memory for later
            call()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(calls):
            call()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One object of 16 bytes for each call would be more.
    assert after - before < 10_000, f"{after - before} bytes in {calls} calls"


# Interruptions.

_INTERRUPTED = """
    import math, random, signal, sys
    import numpy as np
    from numpy import array
    import functrans as ft
    import functrans.torch as torch
    from functrans.core import dispatch

    seed, rounds = map(int, sys.argv[1:])
    draw = random.Random(seed)
    x = np.linspace(0.1, 1, 5)

    def long(x):
        for _ in range(40):
            x = np.sin(x) * 0.9 + x
        return np.sum(x)

    weight = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)

    def backward():
        weight.grad = None
        y = weight
        for _ in range(40):
            y = y.sin() + y
        y.sum().backward()
        return weight.grad.numpy().copy()

    def named(x):
        return ft.vmap(lambda v: long(v * ft.psum(v, "i")), axis_name="i")(x)

    table = np.ones((5, 5))

    def as_it_is(x):  # needs hooks, a call that makes open arrays, and a stand-in
        out = np.zeros(5)
        for i in range(5):
            out[i] = float(math.sin(x[i])) * array([x[i], 1.0])[0]
        return np.sum(table.dot(out))

    originals = (np.zeros, array, math.sin, table)
    compiled = ft.jit(ft.grad(long))
    calls = [
        lambda: ft.grad(as_it_is)(x),
        lambda: ft.hessian(as_it_is)(x),
        lambda: ft.grad(long)(x),
        lambda: ft.hessian(long)(x),
        lambda: ft.vmap(lambda v: long(v) if v > 0.5 else -v)(x),
        lambda: named(x),
        lambda: ft.jit(long, backend="numpy")(x),
        lambda: compiled(x),
        lambda: ft.scan(lambda c, row: (c * row + 1, c), 0.0, x)[1],
        lambda: ft.grad(ft.checkpoint(long))(x),
        lambda: ft.linearize(long, x)[1](x),
        backward,
    ]
    expected = [call() for call in calls]
    with ft.detect_anomaly():
        watched = ft.grad(long)(x)

    fired = False

    def interrupt(*_):
        global fired
        fired = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    for _ in range(rounds):
        which = draw.randrange(len(calls))
        fired = False
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 3e-3))
            if draw.random() < 0.2:
                with ft.detect_anomaly():
                    calls[which]()
            else:
                calls[which]()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException:
            # NumPy replaces some exceptions by its own errors.
            if not fired:
                raise
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        # The next calls are right, and nothing is left running.
        for k in {which, draw.randrange(len(calls))}:
            np.testing.assert_allclose(calls[k](), expected[k], rtol=1e-12)
        assert not dispatch.running_interpreters()
        assert not dispatch.is_anything_running()
        assert dispatch.watcher() is None
        assert torch.is_grad_enabled()
        assert all(a is b for a, b in zip((np.zeros, array, math.sin, table), originals))
        assert "float" not in globals()
    assert interrupted > rounds // 10, interrupted
    print("interrupted", interrupted)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers by signal")
def test_the_next_call_is_right_after_an_interruption():
    for seed in range(_full(10, 1)):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(_INTERRUPTED), str(seed), str(_full(1000, 150))],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == 0, run.stderr
        assert "interrupted" in run.stdout


# Other processes.


def _checked_round(seed, queue=None):
    draw = np.random.default_rng(seed)
    for function, expected in MIXED:
        x = draw.uniform(-1, 1, 3)
        np.testing.assert_allclose(function(x), expected(x), rtol=1e-10, atol=1e-12)
    if queue is not None:
        queue.put(seed)
    return seed


def _run_in_processes(method, count):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=_checked_round, args=(k, queue)) for k in range(count)]
    for process in processes:
        process.start()
    finished = sorted(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert finished == list(range(count))


@pytest.mark.parametrize(
    "method", [m for m in ("fork", "spawn", "forkserver") if m != "fork" or FORKS]
)
def test_transforms_in_other_processes(method):
    _checked_round(0)  # so that a fork inherits compiled functions and pools
    _run_in_processes(method, _full(8, 2))


@pytest.mark.skipif(not FORKS, reason="this system does not fork")
def test_a_fork_while_other_threads_run_transforms():
    stop = threading.Event()
    failures = []

    def work(seed):
        try:
            while not stop.is_set():
                _checked_round(seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(_full(20, 3)):
            _run_in_processes("fork", 2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


@pytest.mark.skipif(not FORKS, reason="this system does not fork")
def test_a_fork_while_native_code_runs_in_its_own_threads():
    x = np.linspace(0, 1, 1_000_000)
    total = ft.jit(lambda x: np.sum(np.sin(x) * np.exp(-x)))
    expected = total(x)  # Python itself must not fork while another thread imports modules
    stop = threading.Event()

    def work():
        while not stop.is_set():
            total(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(_full(50, 3)):
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that waits for the threads of its parent would hang
                os._exit(0 if np.isclose(total(x), expected) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


_FORKED_WHILE_COMPILING = """
    import os, signal, sys, threading
    import numpy as np
    import functrans as ft

    x = np.linspace(0.1, 0.9, 50)
    ft.jit(np.sum)(x)  # imports the compiler
    functions = [np.sin, np.tan, np.arcsin, np.arctan, np.sinh, np.exp, np.log, np.expm1, np.cbrt]

    def work():
        for function in functions:  # each needs a function of the library, which is compiled now
            ft.jit(lambda x: np.sum(function(x)))(x)

    thread = threading.Thread(target=work)
    thread.start()
    for k, function in enumerate(functions):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # or it would wait forever for a thread that it does not have
            os._exit(0 if np.allclose(ft.jit(function)(x), function(x), rtol=1e-13) else 1)
        assert os.waitpid(child, 0)[1] == 0, k
    thread.join()
"""


@pytest.mark.skipif(not FORKS, reason="this system does not fork")
def test_a_fork_while_another_thread_compiles():
    for _ in range(_full(10, 1)):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(_FORKED_WHILE_COMPILING)],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == 0, run.stderr


def test_a_fork_within_a_transform():
    """The child goes on where it was: within the function that is being differentiated."""
    if not FORKS:
        pytest.skip("this system does not fork")
    answers = []

    def function(x):
        reader, writer = os.pipe()
        y = x * x
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            code = 1
            try:
                inner = ft.grad(lambda z: z * z * 3)(2.0)
                os.write(writer, b"%d" % inner)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        answers.append((status, os.read(reader, 10)))
        os.close(reader)
        os.close(writer)
        return y * x

    assert ft.grad(function)(2.0) == 12.0
    assert answers == [(0, b"12")]
