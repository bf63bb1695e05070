"""The tool that measures how much public code works: it finds functions, and it can fail."""

import json
import os
import subprocess
import sys
import types
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import functrans
from tools.corpus import records, report, soundness
from tools.corpus.isolation import forked
from tools.corpus.judge import TRANSFORMS, Verdict, judge, judge_all
from tools.corpus.packages import PACKAGES
from tools.corpus.records import Record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks processes")

SOURCE = '''
import functools, math, os, random, sys
import numpy as np

def energy(x):
    """The sum of the squares.

    Parameters
    ----------
    x : array_like, shape (3,)
    """
    total = np.zeros(3)
    for i in range(3):
        total[i] = x[i] ** 2
    return total.sum()

def rate(T, speed):
    return {"rate": speed * math.exp(-1.0 / T), "count": 3}

def strict(x):
    if type(x) is not np.ndarray:
        raise TypeError("x must be an array")
    return np.sum(np.sin(x))

def steps(x):
    return np.floor(x)

def kink(x):
    return np.abs(x - x)

def noisy(x):
    return np.sum(x) + random.random()

def talks(x):
    print(x)
    return np.sum(x)

def reads(x):
    open(__file__).close()
    return np.sum(x)

def counts(x):
    return int(np.sum(x))

@functools.lru_cache
def cached(x):
    return x * x

def hangs(x):
    while True:
        pass

def crashes(x):
    os.abort()

class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def force(self, x):
        return -self.stiffness * x

    @property
    def period(self):
        return 2 * math.pi / math.sqrt(self.stiffness)
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The functions that are found in a small package, by name."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "tinycorpus.py").write_text(SOURCE, encoding="utf-8")
    # In a new process, because discovery replaces functools.lru_cache.
    script = (
        "import json, sys; from dataclasses import asdict\n"
        "from tools.corpus import discovery\n"
        "from tools.corpus.packages import Package\n"
        f"sys.path.append({str(folder)!r})\n"
        "discovery.SECONDS_PER_FUNCTION = 5.0\n"
        "package = Package('tiny', '1', ('tinycorpus',), 'tests')\n"
        "print(json.dumps([asdict(record) for record in discovery.discover(package)]))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    sys.path.append(str(folder))
    yield {item["name"]: Record(**item) for item in json.loads(done.stdout)}
    sys.path.remove(str(folder))


def test_discovery_keeps_only_smooth_functions_without_side_effects(found):
    assert set(found) == {"energy", "rate", "strict", "Spring.force", "Spring.period"}
    assert found["energy"].wrt == [0] and len(found["energy"].args[0]["array"]) == 3
    assert found["rate"].wrt == [0, 1]
    assert found["Spring.force"].of == "args" and found["Spring.period"].of == "init"


@pytest.mark.parametrize("name", ["energy", "rate", "Spring.force", "Spring.period"])
def test_functions_that_work_are_ok(found, name):
    for transform in TRANSFORMS:
        verdict = judge(functrans, found[name], transform)
        assert verdict.verdict == "ok", verdict


def faulty(**names):
    """functrans with other transforms under some names."""
    public = {name: getattr(functrans, name) for name in functrans.__all__}
    return types.SimpleNamespace(**{**public, **names})


def test_a_wrong_number_is_noticed_for_every_transform(found):
    double = lambda array: 2 * np.asarray(array)

    def value_and_grad(f, argnums):
        def call(*args):
            value, found = functrans.value_and_grad(f, argnums=argnums)(*args)
            return value, tuple(double(item) for item in found)

        return call

    def jvp(f, primals, tangents):
        values, found = functrans.jvp(f, primals, tangents)
        return values, [double(item) for item in found]

    vmap = lambda f: lambda *args: [double(item) for item in functrans.vmap(f)(*args)]
    hessian = lambda f, argnums: (
        lambda *args: [
            [double(block) for block in row] for row in functrans.hessian(f, argnums=argnums)(*args)
        ]
    )
    wrong = faulty(value_and_grad=value_and_grad, jvp=jvp, vmap=vmap, hessian=hessian)
    for transform in TRANSFORMS:
        verdict = judge(wrong, found["energy"], transform)
        assert (verdict.transform, verdict.verdict) == (transform, "WRONG")
        assert "expected" in verdict.detail


def test_a_wrong_value_is_noticed(found):
    def value_and_grad(f, argnums):
        return lambda *args: (f(*args) * 1.001, functrans.grad(f, argnums=argnums)(*args))

    verdict = judge(faulty(value_and_grad=value_and_grad), found["energy"], "grad")
    assert verdict.verdict == "WRONG" and "the value" in verdict.detail


def test_a_warning_of_functrans_is_told_from_silence(found):
    class Warned(UserWarning):
        pass

    Warned.__module__ = "functrans.errors"

    def value_and_grad(f, argnums):
        warnings.warn("no derivative", Warned, stacklevel=1)
        zero = lambda tree: tuple(0 * np.asarray(item) for item in tree)
        return lambda *args: (f(*args), zero(args))

    verdict = judge(faulty(value_and_grad=value_and_grad), found["energy"], "grad")
    assert verdict.verdict == "WARNED"


def test_a_derivative_that_is_not_a_number_is_not_a_silent_one(found):
    nan = lambda tree: tuple(np.nan * np.asarray(item) for item in tree)
    value_and_grad = lambda f, argnums: lambda *args: (f(*args), nan(args))
    verdict = judge(faulty(value_and_grad=value_and_grad), found["energy"], "grad")
    assert verdict.verdict == "nan"


def unknown_types(f, argnums):
    """A transform that calls the function with something that is not an array."""
    return lambda *args: f(*(types.SimpleNamespace() for _ in args))


def test_an_error_has_its_idiom_and_traceback(found):
    verdict = judge(faulty(value_and_grad=unknown_types), found["strict"], "grad")
    assert verdict.verdict == "error"
    assert verdict.detail == "TypeError: x must be an array"
    assert verdict.idiom == "type test"
    assert "tinycorpus.py" in verdict.trace


def test_crashes_and_hangs_end_only_the_transform_that_causes_them(found):
    def crash(f, primals, tangents):
        os.abort()

    def hang(f):
        while True:
            pass

    hostile = faulty(jvp=crash, vmap=hang)
    ((record, verdicts),) = judge_all(hostile, [found["energy"]], TRANSFORMS, 5.0)
    assert record.name == "energy"
    assert [verdict.verdict for verdict in verdicts] == ["ok", "crash", "timeout", "ok"]


def test_what_a_process_sent_before_it_died_is_kept():
    def work(send):
        send(1)
        raise SystemExit("the end")

    received, end = forked(work, 5.0)
    assert received == [1] and "the end" in end


def test_the_report_counts_functions_and_packages(found):
    results = []
    for ft, name in ((functrans, "energy"), (faulty(value_and_grad=unknown_types), "strict")):
        for record, verdicts in judge_all(ft, [found[name]], ("grad",), 10.0):
            results.append(report.Result(record, verdicts))
    assert report.rows(results) == [
        ["tiny", "2", "50.0"],
        ["all functions", "2", "50.0"],
        ["mean over packages", "1", "50.0"],
    ]
    printed = report.text(results, 3)
    assert "WRONG: 0" in printed and "tinycorpus.strict (grad)" in printed


def test_records_survive_the_file(found, tmp_path):
    path = tmp_path / "functions.jsonl"
    records.save(found.values(), path)
    assert {record.name: record for record in records.load(path)} == found


def test_the_stored_functions_are_of_pinned_packages():
    stored = records.load()
    names = {package.name for package in PACKAGES}
    assert len(stored) >= 400
    assert len({record.package for record in stored}) >= 10
    assert {record.package for record in stored} <= names
    labels = [(record.package, record.label) for record in stored]
    assert len(set(labels)) == len(labels)
    assert all(record.wrt for record in stored)


class TestSoundness:
    """Functions of which finite differences do not tell the derivative are left out."""

    x, direction = np.array([0.3]), np.array([0.2])

    def test_staircases(self):
        for f in (
            lambda x: np.round(x, 7),
            lambda x: np.floor(1e9 * x),
            lambda x: x.astype(np.float32),
        ):
            assert soundness.is_staircase(f, self.x, self.direction)
        for f in (np.sin, lambda x: x - 2451545.0, lambda x: np.array([3.0, 2 * x[0]])):
            assert not soundness.is_staircase(f, self.x, self.direction)

    def test_rounding_errors_that_hide_a_term(self, module):
        record = Record("tiny", module, "large", args=[1.8e13, 0.1], wrt=[1])
        assert not soundness.is_conditioned(record)
        assert soundness.is_conditioned(Record("tiny", module, "large", args=[2.5, 0.1], wrt=[1]))

    def test_bases_that_lapack_chooses(self, module):
        point = [{"array": [0.3, 0.2, 0.5]}]
        assert not soundness.is_determined(Record("tiny", module, "basis", args=point, wrt=[0]))
        assert soundness.is_determined(Record("tiny", module, "projector", args=point, wrt=[0]))
        assert np.linalg.svd.__module__ == "numpy.linalg"

    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        source = (
            "import numpy as np\n"
            "def large(t, x):\n"
            "    return (1.0027 * (t + x)) % 1.0\n"
            "def basis(a):\n"
            "    return np.linalg.svd(a.reshape(-1, 1))[0][:, 1:]\n"
            "def projector(a):\n"
            "    u = basis(a)\n"
            "    return u @ u.T\n"
        )
        (tmp_path / "unsound.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        yield "unsound"
        sys.modules.pop("unsound", None)


def test_results_survive_the_file(tmp_path):
    result = report.Result(
        Record("tiny", "m", "f", args=[0.5], wrt=[0]),
        [Verdict("grad", "nan", "the gradient is nan")],
    )
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(asdict(result)) + "\n", encoding="utf-8")
    assert report.load(path) == [result]
