"""Random programs under random stacks of transforms, against independent oracles; and the fuzzer itself."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.ops.elementwise import sin
from tests.support.marks import of_constants, one_in
from tests.support.oracles import assert_trees_close
from tests.support.packages import require_package
from tools.fuzz import running
from tools.fuzz.cases import Tally, judge_program
from tools.fuzz.judging import RATES, DisagreementError, Judge, distance
from tools.fuzz.numeric import Numeric
from tools.fuzz.programs import Drawn, Seeded, random_program
from tools.fuzz.programs.layers import LayerWriter
from tools.fuzz.programs.stack import Stack
from tools.fuzz.programs.statements import KINDS
from tools.fuzz.scripts import script
from tools.fuzz.shrinking import shrunk

ALONE = RATES | {"jax": 0.0, "torch": 0.0}
pytestmark = of_constants  # some random programs are
PROGRAMS = 20


def judged(chooser, tally, rates=ALONE):
    """Judge a program; a failure is shown as a script."""
    for failure in judge_program(chooser, ft, tally, rates):
        raise AssertionError(script(shrunk(failure, ft), ft))


@pytest.mark.parametrize("chunk", one_in(4, range(20)))
def test_random_programs_agree_with_all_oracles(chunk):
    tally = Tally()
    for number in range(chunk * PROGRAMS, (chunk + 1) * PROGRAMS):
        judged(Seeded(20, number), tally)
    assert tally.cases > 4 * PROGRAMS
    undecided = tally.counts.get("verdicts", {})
    assert sum(undecided.values()) <= 0.02 * tally.cases


@settings(max_examples=10)
@given(data=st.data())
def test_programs_that_hypothesis_draws(data):
    judged(Drawn(lambda low, high: data.draw(st.integers(low, high))), Tally())


@pytest.mark.peers
@pytest.mark.parametrize(("peer", "programs", "rate"), [("jax", 12, 30.0), ("torch", 40, 100.0)])
def test_other_libraries_agree(peer, programs, rate):
    require_package(peer)
    rates = dict.fromkeys(RATES, 0.0) | {peer: rate}
    tally = Tally()
    for number in range(programs):
        judged(Seeded(30, number), tally, rates)
    assert tally.counts["agreed"][peer] > 3


# The generator.


def test_a_seed_gives_the_same_program_and_different_seeds_others():
    sources = [random_program(Seeded(1, number)).source for number in range(20)]
    assert sources == [random_program(Seeded(1, number)).source for number in range(20)]
    assert len(set(sources)) > 15


def test_all_kinds_of_statements_transforms_and_shapes_occur():
    kinds, ranks, sizes, dtypes, depths = set(), set(), set(), set(), set()
    for number in range(400):
        program = random_program(Seeded(2, number))
        kinds.update(program.kinds)
        for value in program.points[0].values():
            ranks.add(np.ndim(value))
            sizes.add(np.size(value))
            dtypes.add(np.asarray(value).dtype.name)
        stack, writer = Stack(program, ft), LayerWriter(Seeded(3, number), program)
        stack.push(writer.layer(stack))
        depths.update(stack.kinds)
    assert len(kinds) == len({kind.__name__ for _, kind in KINDS} - {"product", "rows"})
    assert ranks == {0, 1, 2, 3}
    assert {0, 1} < sizes
    assert dtypes == {"float64", "float32", "int64"}
    assert {"grad", "value_and_grad", "jvp", "vjp", "linearize", "jacfwd", "jacrev"} <= depths
    assert {"hessian", "hvp", "vmap", "checkpoint", "custom_jvp", "custom_vjp"} <= depths
    assert {"jit numpy", "jit native"} <= depths


# The oracles.


def test_numbers_alone_give_derivatives_and_lanes():
    def function(x, y):
        return {"a": np.sum(x * np.sin(y)), "b": x * y}

    x, y = np.array([0.3, 0.7]), 0.4
    for numeric, tolerance in ((Numeric(analytic=True), 1e-14), (Numeric(), 1e-9)):
        jacobian = numeric.jacfwd(function, argnums=(0, 1))(x, y)
        expected = ft.jacrev(function, argnums=(0, 1))(x, y)
        assert_trees_close(jacobian, expected, rtol=tolerance, atol=tolerance)
        assert numeric.exact == numeric.analytic
        loss = lambda x: np.sum(function(x, y)["b"] ** 3)
        assert_trees_close(numeric.hessian(loss)(x), ft.hessian(loss)(x), rtol=1e-7)
    lanes = Numeric().vmap(function, in_axes=(1, None), out_axes=-1)
    batch = np.arange(6.0).reshape(2, 3)
    assert_trees_close(lanes(batch, y), ft.vmap(function, (1, None), -1)(batch, y))


def test_distance_tells_structure_shape_nan_and_size_apart():
    assert distance((1.0, [2.0]), (1.0, [2.0])) == (0.0, "")
    assert distance((1.0,), [1.0])[0] == np.inf
    assert distance(np.ones(2), np.ones((2, 1)))[0] == np.inf
    assert distance(np.nan, 1.0)[0] == np.inf
    assert 0.09 < distance(1.1, 1.0)[0] < 0.11


# Something is wrong: the fuzzer must notice, shrink it and write it down.


@pytest.fixture
def broken_sine(monkeypatch):
    """The cotangent of sin has the wrong sign."""
    save, pull = sin.rules[1]

    def wrong(cotangent, saved):
        return -pull(cotangent, saved)

    wrong.needs = pull.needs
    monkeypatch.setattr(sin, "rules", (sin.rules[0], (save, wrong)))


def test_a_wrong_rule_is_found_and_shrinks_to_a_few_lines(broken_sine, monkeypatch):
    monkeypatch.setattr("tools.fuzz.judging._SLOW", math.inf)  # compare all, however long it takes
    failures = [
        failure
        for number in range(12)
        for failure in judge_program(Seeded(4, number), ft, Tally(), ALONE)
    ]
    assert failures
    # Which of them are found depends on the other libraries at hand; the simplest comes first.
    failures.sort(key=lambda failure: len(failure.layers))
    small = min((shrunk(failure, ft) for failure in failures[:4]), key=lambda f: len(f.layers))
    assert len(small.layers) == 1
    assert len(small.program.statements) <= 1
    text = script(small, ft, "From a test.")
    assert "np.sin(" in text or "np.cos(" in text  # whose second derivative is that of a sine
    assert len(text.splitlines()) < 40
    # It stands alone: in a process in which nothing is broken, it says what it should say.
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout


def test_a_result_that_is_wrong_by_a_millionth_is_a_disagreement():
    program = random_program(Seeded(1, 7))
    stack = Stack(program, ft)
    stack.push(LayerWriter(Seeded(0), program).layer(stack, "vmap"))
    right = stack.wide["f1"]
    judge = Judge(stack, Seeded(0), ALONE)
    judge.judge()
    assert len(set(judge.agreed)) >= 2
    stack.wide["f1"] = lambda *args: Numeric().vmap(lambda y: y * (1 + 1e-6))(right(*args))
    with pytest.raises(DisagreementError, match="loop over lanes"):
        Judge(stack, Seeded(0), ALONE).judge()


def test_a_chunk_has_scripts_of_its_failures(broken_sine):
    chunk = running.judge_chunk(4, 0, 3, only=["programs"])
    assert chunk.tally.programs == 3
    assert chunk.failures
    for sort, name, text in chunk.failures:
        assert sort.startswith("another answer")
        assert name.startswith("programs-4-")
        compile(text, name, "exec")


def judged_chunks(monkeypatch, *chunks):
    monkeypatch.setattr(running, "chunks", lambda seed, first, workers, only: iter(chunks))


def test_a_corpus_goes_on_where_it_stopped_and_keeps_failures(tmp_path, monkeypatch):
    tally = Tally(cases=30, programs=20)
    tally.count("transforms", ["grad"] * 29)
    failure = ("another answer, dual", "4-7-0.py", "print(1)")
    judged_chunks(monkeypatch, running.Chunk(tally, [failure]), running.Chunk(tally, []))
    first = running.run(cases=20, seed=4, corpus=tmp_path)
    assert (first["cases"], first["next"], first["seed"]) == (30, 20, 4)
    assert first["failures"] == {"another answer, dual": 1}
    assert (tmp_path / "4-7-0.py").read_text() == "print(1)"
    again = running.run(cases=50, seed=99, corpus=tmp_path)
    assert (again["cases"], again["next"], again["seed"]) == (60, 40, 4)
    assert again["counts"]["transforms"] == {"grad": 58}
    assert json.loads((tmp_path / "state.json").read_text()) == again


def dies(seed, first, count, rates=None, only=()):
    """In place of judging a chunk: the first one kills its process, unless other libraries are left out."""
    if first == 0 and rates is None:
        os._exit(1)
    return running.Chunk(Tally(cases=first + 1), [])


def test_a_process_that_dies_loses_nothing(monkeypatch):
    monkeypatch.setattr(running, "judge_chunk", dies)
    found = running.chunks(0, 0, 1)
    assert [next(found).tally.cases for _ in range(3)] == [1, 21, 41]
    found.close()


def test_the_command_says_what_it_counted(tmp_path):
    command = [sys.executable, "-m", "tools.fuzz", "--cases", "30", "--workers", "2"]
    command += ["--only", "programs", "--corpus", str(tmp_path), "--progress"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    state = json.loads(ran.stdout)
    assert state["cases"] >= 30
    assert state["failures"] == {}
    assert sum(state["counts"]["transforms"].values()) == state["cases"]
