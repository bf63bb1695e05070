"""What `import functrans` loads, and that the rest is loaded when it is needed, once, in any thread."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans

# Slow to import, and not needed before the first transform runs, or at all.
LATER = ["functrans.surface", "functrans.numpy", "functrans.control", "functrans.custom"]
LATER += ["functrans.solvers", "functrans.random", "functrans.scipy", "functrans.debugging"]
LATER += ["functrans.core.archives", "functrans.compiler.jit", "functrans.drawing", "optree"]
LATER += ["dataclasses", "fractions", "json", "zipfile", "numpy.fft"]
FOLDER = Path(functrans.__file__).parents[1]


def run(program):
    """Run a program in a new process, in which nothing is loaded yet; return the words it prints."""
    start = f"import sys; sys.path.insert(0, {str(FOLDER)!r})\nimport numpy as np\n"
    command = [sys.executable, "-c", start + program]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_import_loads_only_what_every_program_needs():
    program = (
        "before = set(sys.modules)\nimport functrans\nprint(*set(sys.modules) - before)\n"
        "functrans.grad(np.sin)(1.0)\nprint('|', *sys.modules)"
    )
    loaded = run(program)
    at_import, at_first_call = loaded[: loaded.index("|")], loaded[loaded.index("|") :]
    assert "functrans.transforms.derivatives" in at_import
    assert not set(at_import) & set(LATER)
    assert "functrans.surface" in at_first_call


def test_rules_of_elementwise_functions_are_derived_when_they_are_read():
    program = (
        "import functrans\n"
        "from functrans.core.primitive import PRIMITIVES, Elementwise\n"
        "def derived():\n"
        "    found = [each for each in PRIMITIVES.values() if isinstance(each, Elementwise)]\n"
        "    return [each for each in found if type(getattr(each, 'rules', None)) is tuple]\n"
        "print(*derived())\n"
        "functrans.grad(np.sin)(1.0)\n"
        "print('|', *derived())"
    )
    assert run(program) == ["|", "sin"]


FIRST_CALLS = {
    "grad": "functrans.grad(lambda x: np.sum(np.sin(x) * x.T))(np.ones(2))",
    "jvp": "functrans.jvp(lambda x: x.mean() + np.prod(x), (np.ones(2),), (np.ones(2),))",
    "vmap": "functrans.vmap(lambda x: np.cumsum(x)[::-1])(np.ones((2, 2)))",
    "jacfwd": "functrans.jacfwd(lambda x: np.fft.ifft(x).real)(np.ones(2))",
    "hessian": "functrans.hessian(lambda x: np.linalg.norm(x) ** 4)(np.ones(2))",
    "linearize": "functrans.linearize(lambda x: np.outer(x, x), np.ones(2))[1](np.ones(2))",
    "make_graph": "functrans.make_graph(lambda x: np.stack([x, x]))(np.ones(2))(np.ones(2))",
    "eval_shape": "functrans.eval_shape(lambda x: x.reshape(1, 2), np.ones(2))",
    "jit": "functrans.jit(lambda x: np.sum(x))(np.ones(2))",
    "fractions": "functrans.grad(lambda x: __import__('fractions').Fraction(1, 2) * x)(1.0)",
    "standard": "functrans.grad(lambda x: x.__array_namespace__().sum(x))(np.ones(2))",
    "numpy": "functrans.numpy.array([1.0, 2.0])",
    "tree": "functrans.tree.map(np.negative, {'a': 1.0})",
    "structure": "isinstance(functrans.tree.structure(1.0), functrans.tree.TreeDef)",
    "ravel": "functrans.ravel_pytree([np.ones(2), 3.0])[0]",
    "scan": "functrans.scan(lambda c, x: (c + x, c), 0.0, np.ones(2))",
    "tensor": "functrans.torch.tensor([1.0]).sum().item()",
    "random": "functrans.random.normal(functrans.random.key(0))",
}


@pytest.mark.parametrize("call", FIRST_CALLS.values(), ids=FIRST_CALLS)
def test_any_call_may_be_the_first(call):
    expected = repr(eval(call, {"np": np, "functrans": functrans}))
    assert run(f"import functrans\nprint(repr({call}))") == expected.split()


def test_first_transforms_in_many_threads_at_once():
    program = """
import functrans, threading
sys.setswitchinterval(1e-6)
calls = [
    lambda: functrans.grad(lambda x: np.sum(np.sin(x) * x.T))(np.ones(2)),
    lambda: functrans.vmap(lambda x: np.cumsum(x).sum() * x.mean())(np.ones((2, 2))),
    lambda: functrans.jacfwd(lambda x: np.stack([x[0], x[1] ** 2]))({0: 1.0, 1: 2.0})[0],
    lambda: functrans.make_graph(lambda x: np.linalg.norm(x))(np.ones(2))(np.ones(2)),
    lambda: functrans.numpy.sum([1.0, 2.0]),
    lambda: functrans.tree.leaves((1.0, [2.0])),
    lambda: functrans.grad(np.tanh)(0.5),
    lambda: functrans.jvp(np.tanh, (0.5,), (1.0,)),
]
results = [None] * len(calls)
gate = threading.Barrier(len(calls))
def work(k):
    gate.wait()
    results[k] = repr(calls[k]())
threads = [threading.Thread(target=work, args=(k,)) for k in range(len(calls))]
for each in threads: each.start()
for each in threads: each.join()
assert results == [repr(call()) for call in calls], results
assert None not in results
"""
    for _ in range(3):
        run(program)


def test_a_graph_is_loaded_where_nothing_was_traced(tmp_path):
    file = tmp_path / "graph.zip"

    def f(x):
        return np.sum(np.fft.fft(np.sort(x)).real) + np.linalg.det(np.outer(x, x) + np.eye(3))

    functrans.make_graph(f)(np.ones(3)).save(file)
    program = f"import functrans\nprint(float(functrans.load_graph({str(file)!r})(np.ones(3))))"
    assert run(program) == [str(float(f(np.ones(3))))]


@pytest.mark.parametrize("line", [1, 300, 1500])
def test_the_first_transform_may_be_interrupted(line):
    program = f"""
import functrans
lines = 0
def interrupt(frame, event, arg):
    global lines
    file = frame.f_code.co_filename.replace("\\\\", "/")
    if "functrans/surface/" not in file and "functrans/numpy/" not in file:
        return None
    lines += event == "line"
    if lines == {line}:
        sys.settrace(None)
        raise KeyboardInterrupt
    return interrupt
def f(x):
    return np.sum(x * x.T) + np.median(x)
sys.settrace(interrupt)
try:
    functrans.grad(f)(np.arange(1.0, 4.0))
except KeyboardInterrupt:
    print("interrupted")
print(*functrans.grad(f)(np.arange(1.0, 4.0)).tolist())
"""
    assert run(program) == ["interrupted", "2.0", "5.0", "6.0"]
