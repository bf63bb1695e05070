"""Probes of laws: the library holds them, and a law that is broken is noticed, shrunk and written down."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from tools.fuzz import laws, running
from tools.fuzz.cases import Tally
from tools.fuzz.judging import RATES
from tools.fuzz.kinds import KINDS, kind_of
from tools.fuzz.laws import BrokenLawError
from tools.fuzz.probes import PROBES
from tools.fuzz.probes.probe import Probe, failure_of, probe, script, sort_of
from tools.fuzz.probes.replaying import Recorded, Replayed, shrunk, written
from tools.fuzz.programs import Drawn, Seeded

NUMBER = {"sums": 8, "spectral": 30, "cuts": 40}
X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", PROBES)
def test_the_library_holds_the_laws(kind):
    for number in range(NUMBER.get(kind, 80)):
        found = next(KINDS[kind].judge(Seeded(40, number), ft, Tally(), RATES), None)
        assert found is None, found.shrunk().script("From a test.")


# The generator.


@pytest.mark.parametrize("kind", PROBES)
def test_a_seed_gives_the_same_probe_and_different_seeds_others(kind):
    write = PROBES[kind][1]
    texts = [written(write, Seeded(1, number))[0].text for number in range(12)]
    assert texts == [written(write, Seeded(1, number))[0].text for number in range(12)]
    assert len(set(texts)) > 8
    for text in texts:
        compile(text, "<probe>", "exec")


@pytest.mark.parametrize("kind", PROBES)
def test_choices_that_are_replayed_write_the_same_probe(kind):
    subject, choices = written(PROBES[kind][1], Seeded(2, 0))
    assert PROBES[kind][1](Replayed(choices)).text == subject.text


@settings(max_examples=10)
@given(data=st.data())
def test_hypothesis_can_choose(data):
    draw = Drawn(lambda low, high: data.draw(st.integers(low, high)))
    write = PROBES[data.draw(st.sampled_from(sorted(PROBES)))][1]
    compile(written(write, draw)[0].text, "<probe>", "exec")


def test_all_kinds_are_mixed_unless_some_are_named():
    names = {kind_of(0, number).name for number in range(2000)}
    assert names == set(KINDS) == {"programs", *PROBES}
    assert {kind_of(0, number, ["leaks", "arrays"]).name for number in range(50)} == {
        "leaks",
        "arrays",
    }


def test_a_chunk_counts_the_cases_and_seconds_of_each_kind():
    chunk = running.judge_chunk(0, 0, 30, only=["customs", "forms"])
    assert chunk.tally.programs == chunk.tally.cases == 30
    counts = chunk.tally.counts["kinds"]
    assert set(counts) == set(chunk.tally.seconds) == {"customs", "forms"}
    assert sum(counts.values()) == 30


def test_a_kind_that_does_not_exist_is_an_error():
    command = [sys.executable, "-m", "tools.fuzz", "--only", "nothing"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "aliasing" in ran.stderr


# Shrinking, with a law of whole numbers.


def write_sum(chooser):
    numbers = [chooser.below(100) for _ in range(1 + chooser.below(20))]
    return probe(f"total = sum({numbers})\nlaws.same(min(total, 150), total, 0.0, 'small sums')")


def test_a_failure_shrinks_to_the_simplest_of_its_sort():
    recorded = Recorded(Seeded(3, 1))
    subject = write_sum(recorded)
    error = failure_of(subject)
    assert sort_of(error) == "small sums"
    small, smaller_error = shrunk(write_sum, recorded.made, subject, error, tries=2000)
    assert sort_of(smaller_error) == "small sums"
    listed = eval(small.text.split("sum(")[1].split(")")[0])
    assert len(listed) <= 3
    assert sum(listed) == 151


def test_a_script_stands_alone_and_says_what_went_wrong():
    subject = probe("laws.same(np.ones(2), np.zeros(2))", "a feature")
    text = script(subject, failure_of(subject), "Number 7.")
    assert text.startswith('"""Number 7.\n\nBrokenLawError: values: ')
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "BrokenLawError" in ran.stderr


def test_definitions_stand_above_what_mentions_them():
    definitions = {
        "one": "one = 1",
        "two": "two = one + one",
        "three": "three = 3",
        "m": "import m",
    }
    text = probe("laws.same(two, 2)", definitions=definitions).text
    assert "one = 1\n\ntwo = one + one\n\nlaws.same" in text
    assert "three" not in text
    assert "import m" not in text


def test_an_error_of_another_type_is_a_failure_too():
    assert sort_of(failure_of(Probe("1 / 0"))) == "ZeroDivisionError"
    assert failure_of(Probe("1 / 1")) is None


def test_a_probe_that_does_not_end_is_a_failure(monkeypatch):
    monkeypatch.setattr("tools.fuzz.probes.probe._LONGEST", 0.05)
    assert sort_of(failure_of(Probe("while True:\n    pass"))) == "TimeoutError"


# Every law notices when it is broken.


def broken(law, *args, **kwargs):
    with pytest.raises(BrokenLawError) as caught:
        law(*args, **kwargs)
    return caught.value.law


def test_values_shapes_structures_and_infinities_are_told_apart():
    laws.same((X, [X]), (X, [X]), 0.0)
    laws.same(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), 0.0)
    for wrong in (X + 1e-6, X[:2], [X], np.array([1.0, 2.0, np.nan])):
        broken(laws.same, wrong, X)


def test_results_that_share_memory_are_noticed():
    laws.own_results(lambda a: a * 2.0, None, X)
    laws.own_results(lambda a: a, lambda a: a, X)
    assert broken(laws.own_results, lambda a: a, None, X) == "results are apart from arguments"
    pair = lambda a: (lambda b: (b, b[::-1]))(a * 2.0)
    assert broken(laws.own_results, pair, None, X) == "results are apart from each other"
    laws.own_results(pair, pair, X)


def test_results_that_cannot_be_written_are_noticed():
    read_only = lambda a: np.broadcast_to(a * 2.0, (2, 3))
    assert broken(laws.own_results, read_only, lambda a: np.stack([a, a]), X) == (
        "results can be written"
    )


def test_a_result_that_is_handed_out_twice_is_noticed():
    kept = X.copy()
    assert broken(laws.own_results, lambda a: kept, lambda a: a * 2.0, X) == (
        "the next call gives the same"
    )
    assert broken(laws.own_results, lambda a: a.fill(0.0) or a * 1.0, None, X) == (
        "arguments are unchanged"
    )


def one_program(wrap):
    def f(x):
        y = wrap(lambda a: a)(x)
        x[0] = 5.0
        return x, y

    return f


def test_a_program_has_one_meaning():
    looks = {"eager": lambda ft, f: f(X.copy()), "graph": lambda ft, f: ft.make_graph(f)(X)(X)}
    for wrap in (laws.transparent, laws.by_value):
        laws.one_meaning(laws.Plain(), one_program, [wrap], **looks)
    calls = iter([laws.transparent, laws.by_value])  # another meaning in each call
    changing = lambda f: next(calls)(f)
    assert broken(laws.one_meaning, laws.Plain(), one_program, [changing], **looks) == (
        "one meaning, traced or not"
    )


def test_a_derivative_is_that_where_the_function_was_recorded():
    def program(late):
        def f(x):
            push = late(lambda a: a * a, lambda a: 2.0 * a, x)
            x[0] = 5.0
            return push(np.ones(3))

        return f

    eager = lambda ft, f: f(X.copy())
    laws.one_meaning(ft, program, [], [laws.recorded], eager=eager)
    too_late = lambda f, slope, a: lambda t: slope(a) * t
    broken(laws.one_meaning, ft, program, [], [too_late], eager=eager)


def test_an_escaped_value_must_raise_its_own_error():
    kept = []
    ft.grad(lambda x: kept.append(x) or x * 2.0)(1.0)
    laws.escaped(lambda: kept[0] + 1.0)
    assert broken(laws.escaped, lambda: 0.0) == "an escaped value, a result"
    assert broken(laws.escaped, lambda: 1 / 0) == "an escaped value, another error"


def test_rules_that_write_through_are_noticed():
    x = X.copy()

    def program(own):
        y = own(x)
        y *= 2.0
        return y * 1.0

    assert broken(laws.writes_to_its_own, program, x=x) == "the caller's arrays are unchanged"

    def other(own):
        shared = X * 1.0
        own(shared)[0] = 7.0
        return shared

    assert broken(laws.writes_to_its_own, other, x=x) == "a rule writes to its own"

    def refusing(own):
        shared = X * 1.0
        shared.flags.writeable = False
        own(shared)[0] = 7.0

    laws.writes_to_its_own(refusing, x=x)


def test_arrays_of_other_kinds_are_told_apart(tmp_path):
    memory = np.memmap(tmp_path / "memory", float, "w+", shape=(3,))
    memory[:] = X
    laws.any_kind_of_array(lambda a: a * 2.0, memory)
    laws.any_kind_of_array(lambda a: a, memory)  # as for a plain array
    plain_only = lambda a: a if isinstance(a, np.memmap) else a.copy()
    assert broken(laws.any_kind_of_array, plain_only, memory) == (
        "arrays of all kinds are the caller's own"
    )
    by_kind = lambda a: a * (2.0 if isinstance(a, np.memmap) else 1.0)
    assert broken(laws.any_kind_of_array, by_kind, memory) == "arrays of all kinds, values"
    writes = lambda a: a.fill(0.0) if isinstance(a, np.memmap) else None
    assert broken(laws.any_kind_of_array, writes, memory) == "arrays of all kinds are unchanged"


def test_other_answers_of_a_traced_value_are_noticed():
    log = []
    laws.answers(log, lambda: log.append(1), lambda: log.append(1))
    broken(laws.answers, log, lambda: log.append(1), lambda: log.append(2))


def test_a_derivative_that_is_cut_is_noticed():
    laws.derivative_or_error(lambda: 4.0, lambda x: x * x, 2.0)
    laws.derivative_or_error(lambda: 1 / 0, lambda x: x * x, 2.0)
    laws.derivative_or_error(lambda: 2.0 * X, lambda x: np.sum(x * x), X)
    broken(laws.derivative_or_error, lambda: 0.0, lambda x: x * x, 2.0)


def test_a_finite_wrong_number_is_noticed_and_nan_is_not():
    laws.accurate_or_unknown(lambda: X + 1e-9, lambda: X, 1e-6)
    laws.accurate_or_unknown(lambda: np.array([np.nan, 2.0, 3.0]), lambda: X, 1e-6)
    broken(laws.accurate_or_unknown, lambda: X + 1e-3, lambda: X, 1e-6)
    broken(laws.accurate_or_unknown, lambda: np.array([np.nan, 9.0, 3.0]), lambda: X, 1e-6)


def test_a_sum_that_is_not_pairwise_is_noticed():
    data = np.full(30_000, 0.1)
    laws.accurate_sums(np.sum, np.float32, 5e-6, data)
    broken(laws.accurate_sums, lambda x: np.cumsum(x)[-1:], np.float32, 5e-6, data)


def test_signs_of_zeros_dtypes_and_forms_are_told_apart():
    laws.as_numpy(lambda: (X,), lambda: (X,), 0.0)
    broken(laws.as_numpy, lambda: np.array([-0.0]), lambda: np.array([0.0]), 1e-9)
    broken(laws.as_numpy, lambda: np.array([np.inf]), lambda: np.array([np.nan]), 1e-9)
    broken(laws.as_numpy, lambda: X.astype(np.float32), lambda: X, 1e-9)
    laws.same_form(lambda: np.float64(1.0), lambda: 1.0)
    assert broken(laws.same_form, lambda: np.array(1.0), lambda: 1.0) == "forms, array or number"
    assert broken(laws.same_form, lambda: np.float32(1.0), lambda: 1.0) == "forms, dtypes"


def test_two_rules_for_one_kink_are_noticed():
    laws.one_rule(lambda: 0.5, lambda: np.float64(0.5))
    broken(laws.one_rule, lambda: 0.5, lambda: 0.0)


def test_missing_and_needless_warnings_are_noticed():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("look at functrans.random", stacklevel=1)
    laws.warned(caught, UserWarning, "functrans.random")
    broken(laws.warned, caught, UserWarning, "something else")
    broken(laws.warned, [], UserWarning)
    laws.silent([])
    broken(laws.silent, caught)


def test_a_refusal_is_an_error_of_the_library():
    refuse = lambda: ft.grad(lambda x: 2 * x)(X)
    laws.refused_in_words(refuse)
    laws.right_or_refused(refuse, lambda: X)
    broken(laws.refused_in_words, lambda: 1 / 0)
    broken(laws.right_or_refused, lambda: X + 1.0, lambda: X)


# A library that is broken in one place is found by the kind that is for it.


def found_by(kind, probes):
    """The sorts of failures among some probes."""
    sorts = set()
    for number in range(probes):
        for finding in KINDS[kind].judge(Seeded(50, number), ft, Tally(), RATES):
            sorts.add(finding.sort)
    return sorts


def test_compiled_code_that_forgets_what_it_was_traced_for_is_found(monkeypatch):
    def forgetful(f, **options):
        results = {}
        return lambda *args, **named: results.setdefault(0, f(*args, **named))

    monkeypatch.setattr(ft, "jit", forgetful)
    assert "retracing, static values" in found_by("retracing", 60)


def test_a_wrapper_that_shares_memory_now_and_then_is_found(monkeypatch):
    monkeypatch.setattr(ft, "vmap", lambda f, *axes, **options: lambda *args: f(*args))
    found = found_by("aliasing", 150)
    assert any(sort.startswith("aliasing, results are apart") for sort in found)


def test_a_transform_that_takes_any_value_is_found(monkeypatch):
    monkeypatch.setattr(ft, "jacrev", lambda f, **options: lambda x: (f(x), 0.0)[1])
    assert "leaks, an escaped value, a result" in found_by("leaks", 300)


def test_rewriting_that_drops_an_addition_of_zero_is_found(monkeypatch):
    real = ft.make_graph

    def rewriting(f):
        return lambda *args: (
            lambda *later: ft.tree.map(
                lambda leaf: -0.0 * np.ones_like(leaf) if np.all(leaf == 0) else leaf,
                real(f)(*args)(*later),
            )
        )

    monkeypatch.setattr(ft, "make_graph", rewriting)
    assert "special, as NumPy" in found_by("special", 150)
