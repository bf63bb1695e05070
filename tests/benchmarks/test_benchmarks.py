"""The benchmarks: right answers on every path of functrans, and pages that say what was found."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import functrans
from benchmarks import charts, figures, page, suite
from benchmarks.contestants import CONTESTANTS, agree, as_arrays, leaves
from benchmarks.gradbench import PROBLEMS, bundle_adjustment, determinant, gaussian_mixture
from benchmarks.threads import thread_settings
from benchmarks.timing import growth_exponent, measure
from benchmarks.worker import FULL, Forecast, Limits, one_line, run_size
from tests.support import ROOT
from tests.support.packages import require_package

OURS = [name for name in CONTESTANTS if name.startswith("functrans")]


def make(name):
    if CONTESTANTS[name].package == "llvmlite":
        pytest.importorskip("llvmlite")
    return CONTESTANTS[name].make()


# --------------------------------------------------------------------------------------
# The problems.


@pytest.mark.parametrize("name", [*OURS, "differences"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_path_gives_the_value_and_the_derivative_by_hand(problem, name):
    lib = make(name)
    arguments = problem.data(**problem.tiny)
    value = problem.objective(CONTESTANTS["numpy"].make(), *arguments)
    assert agree(as_arrays(value), as_arrays(problem.function(lib, arguments)()))
    expected = as_arrays(problem.by_hand(*arguments))
    found = as_arrays(problem.differentiate(lib, arguments)())
    assert all(np.any(part) for part in expected), "an answer of zeros checks nothing"
    assert agree(expected, found, problem.coarse if name == "differences" else 1e-9)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["autograd", "jax", "jax-jit", "torch-backward", "torch-func"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_peers_give_the_derivative_by_hand(problem, name, monkeypatch):
    require_package(CONTESTANTS[name].package)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    lib = CONTESTANTS[name].make()
    if CONTESTANTS[name].package == "jax":
        lib.library.config.update("jax_enable_x64", True)
    arguments = problem.data(**problem.tiny)
    found = as_arrays(problem.differentiate(lib, arguments)())
    assert agree(as_arrays(problem.by_hand(*arguments)), found, problem.tolerance)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_data_is_seeded_and_sizes_grow(problem):
    one, other = (leaves(problem.data(**problem.tiny)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    works = [size.work for size in problem.sizes]
    assert works == sorted(works)
    assert len([size for size in problem.sizes if size.n is not None]) >= 3
    assert len(problem.sizes_for(quick=True)) == 2


def test_the_sparse_jacobian_is_the_dense_one():
    cameras, points, p = 2, 3, 5
    lenses, places, weights, features, (camera, point) = bundle_adjustment.scene(cameras, points, p)
    numpy = CONTESTANTS["numpy"].make()

    def errors(flat):
        lenses, places = flat[: 11 * cameras].reshape(cameras, 11), flat[11 * cameras : -p]
        seen = (lenses[camera], places.reshape(points, 3)[point], flat[-p:])
        reprojection = bundle_adjustment.objective(numpy, seen, features)
        return np.concatenate([reprojection.T.reshape(-1), 1 - flat[-p:] ** 2])

    flat = np.concatenate([lenses.ravel(), places.ravel(), weights])
    blocks = bundle_adjustment.by_hand((lenses[camera], places[point], weights), features)
    rows, columns, values = bundle_adjustment.sparse_matrix(
        blocks, weights, (camera, point), cameras, points
    )
    dense = np.zeros((3 * p, flat.size))
    np.add.at(dense, (rows, columns), values)
    np.testing.assert_allclose(dense, functrans.jacfwd(errors)(flat), rtol=1e-10, atol=1e-12)


def test_the_mixture_is_the_density_that_scipy_computes():
    stats = pytest.importorskip("scipy.stats")
    special = pytest.importorskip("scipy.special")
    params, x, places, zeros = gaussian_mixture.data(n=6, d=3, k=2)
    alphas, means, icf = params
    shares = special.softmax(alphas)
    densities, prior = 0.0, 0.0
    for share, mean, row in zip(shares, means, icf, strict=True):
        factor = np.diag(np.exp(row[:3]))
        factor[[1, 2, 2], [0, 0, 1]] = row[3:]
        precision = factor.T @ factor
        densities += share * stats.multivariate_normal(mean, np.linalg.inv(precision)).pdf(x)
        # Wishart's density with d + 1 degrees of freedom, which has no determinant in it, up to the
        # power of 2 in which the published constant differs from it.
        freedom = 4
        prior += -0.5 * np.trace(precision) - special.multigammaln(freedom / 2, 3)
        prior -= 0.5 * freedom * 3 * np.log(2)
    value = gaussian_mixture.objective(CONTESTANTS["numpy"].make(), *(params, x, places, zeros))
    np.testing.assert_allclose(value, np.sum(np.log(densities)) + prior, rtol=1e-12)


def test_the_expansion_is_the_determinant():
    (matrix,) = determinant.data(l=5)
    value = determinant.objective(CONTESTANTS["numpy"].make(), matrix)
    np.testing.assert_allclose(value, np.linalg.det(matrix), rtol=1e-12)
    assert [determinant.products(l) for l in (2, 3, 4)] == [2, 9, 40]


# --------------------------------------------------------------------------------------
# The worker.

SHORT = Limits(10.0, 10.0, {"seconds": 0.0, "min_samples": 2, "warmup_seconds": 0.0})


class Broken:
    """A contestant that fails, or answers wrongly."""

    name, unrolls = "autograd", False

    def __init__(self, answer):
        self.answer = answer

    def value(self, f, x):
        return partial(PROBLEMS["lse"].objective, CONTESTANTS["numpy"].make(), x)

    def gradient(self, f, x):
        return partial(self.answer, x)

    def native(self, value):
        return value

    def evaluations(self, kind, x):
        return 0


def run_beside(broken):
    problem = PROBLEMS["lse"]
    size = problem.sizes[0]
    contestants = [make("numpy"), broken, make("functrans")]
    return run_size(problem, size, contestants, SHORT, Forecast(problem))


def test_a_wrong_answer_stops_the_timing():
    found = run_beside(Broken(lambda x: 1.001 * PROBLEMS["lse"].by_hand(x)))
    assert found["wrong"] == {"autograd": "another derivative than that by hand"}
    assert found["derivatives"] == {}


def test_a_contestant_that_fails_is_reported_and_the_others_are_timed():
    def fail(x):
        raise ValueError("no rule in /some/folder/of/theirs.py\nand more")

    found = run_beside(Broken(fail))
    assert found["failed"] == {"autograd": "ValueError: no rule in theirs.py"}
    assert set(found["derivatives"]) == {"numpy", "functrans"}
    low, high = found["derivatives"]["functrans"]["quartiles"]
    assert low <= found["derivatives"]["functrans"]["median"] <= high


def test_a_long_error_is_cut():
    assert len(one_line(ValueError("x" * 500))) == 120


def test_what_would_take_too_long_is_skipped_and_named():
    problem = PROBLEMS["det"]
    small, large = problem.sizes[0], problem.sizes[-1]
    forecast = Forecast(problem)
    forecast.remember("functrans", small, first=0.01, call=0.01)
    forecast.remember("functrans-numpy", small, first=0.5, call=1e-6)
    assert forecast.too_long(make("functrans"), small, FULL) is None
    assert forecast.too_long(make("functrans"), large, FULL) == "a call would take about 17.3 s"
    forecast.remember(
        "functrans", problem.sizes[1], first=0.01, call=1e-3
    )  # the first had overhead
    assert forecast.too_long(make("functrans"), large, FULL) is None
    # The whole expansion is compiled, so its compilation grows, too.
    compiled = forecast.too_long(make("functrans-numpy"), large, FULL)
    assert compiled.startswith("the first call would take about")


def test_samples_are_shuffled_and_counted():
    order = []
    found = measure(
        {name: partial(order.append, name) for name in "abc"},
        seconds=0.0,
        min_samples=3,
        sample_seconds=1e-9,
        warmup_seconds=0.0,
    )
    assert all(timing.samples == 3 for timing in found.values())
    assert set(order) == set("abc")


# --------------------------------------------------------------------------------------
# The figures and the page.


def timed(seconds, spread=0.02):
    return {
        "best": seconds,
        "median": seconds,
        "samples": 5,
        "calls_per_sample": 1,
        "quartiles": [seconds * (1 - spread), seconds * (1 + spread)],
    }


def results():
    """A problem whose derivative takes n^1.5 seconds by hand, and twice that by functrans."""
    sizes = [
        {
            "label": f"n = {n}",
            "n": n,
            "functions": {"numpy": timed(n**1.5 / 2), "functrans": timed(n**1.5 / 2)},
            "derivatives": {"numpy": timed(n**1.5), "functrans": timed(2 * n**1.5)},
            "first_calls": {},
            "skipped": {"differences": "a call would take about 9 s"},
            "failed": {"jax": "TypeError: a | b"},
            "wrong": {},
            "memory": {"functrans": n << 20},
        }
        for n in (10, 100, 1000)
    ]
    problem = {
        "title": "powers",
        "kind": "gradient",
        "derivative": "gradient",
        "growth": "numbers",
        "same_algorithm": True,
        "sizes": sizes,
    }
    machine = {
        "processor": "a processor",
        "architecture": "x86_64",
        "cores": 2,
        "system": "Linux",
        "python": "3.11.7",
        "versions": {"numpy": "2.4.6"},
        "threads": 1,
    }
    return {
        "machine": machine,
        "quick": False,
        "problems": {"powers": problem},
        "tables": {},
        "texts": {},
    }


def test_slopes_are_fitted():
    problem = results()["problems"]["powers"]
    assert figures.slope(problem, "functrans", "time") == pytest.approx(1.5)
    assert figures.slope(problem, "functrans", "memory") == pytest.approx(1.0)
    assert figures.slope(problem, "numpy", "memory") is None
    for size in problem["sizes"]:
        size["memory"]["functrans"] = size["n"]  # too small to be seen
    assert figures.slope(problem, "functrans", "memory") is None
    assert growth_exponent([1, 10, 100], [3.0, 30.0, 300.0]) == pytest.approx(1.0)


def test_losses_are_found_and_need_more_than_the_spread():
    found = results()
    lost = figures.losses(found)
    assert [(loss.ours, loss.theirs, round(loss.ratio, 6)) for loss in lost] == [
        ("functrans", "numpy", 2.0)
    ] * 3
    for size in found["problems"]["powers"]["sizes"]:
        size["derivatives"]["functrans"] = timed(size["derivatives"]["functrans"]["median"], 0.7)
    assert figures.losses(found) == []
    found = results()
    found["problems"]["powers"]["same_algorithm"] = False
    assert figures.losses(found) == []


def test_the_tables_of_the_other_benchmarks_count_as_losses():
    found = results() | {"problems": {}}
    case = {"title": "a network", "times": {"functrans": timed(3.0), "autograd": timed(1.0)}}
    found["tables"] = {
        "eager": {"numbers": {"cases": [case], "threads": 1}},
        "compiled": {
            "numbers": {
                "net": {
                    "title": "a net",
                    "call": {"functrans": timed(2.0), "jax.jit": timed(1.0)},
                    "first call": {},
                }
            }
        },
        "tensor": {
            "numbers": {
                "times": [{"case": "a step", "functrans": 1.5, "torch": 1.0, "ratio": 1.5}],
                "memory": [],
            }
        },
    }
    assert [(loss.where, loss.theirs) for loss in figures.losses(found)] == [
        ("eager: a network", "autograd"),
        ("compiled: a net", "jax-jit"),
        ("tensor: a step", "torch-backward"),
    ]
    assert "| a net | 2.00 s ± 2% |" in page.write(found, {})


def test_gradients_over_the_bound_are_named():
    found = results()
    assert figures.over_the_bound(found["problems"]) == []
    found["problems"]["powers"]["sizes"][0]["functions"]["functrans"] = timed(10**1.5 / 4)
    ((where, lib, ratio),) = figures.over_the_bound(found["problems"])
    assert (where, lib) == ("powers, n = 10", "functrans") and ratio == pytest.approx(8.0)
    found["problems"]["powers"]["kind"] = "newton_direction"  # which may cost more
    assert figures.over_the_bound(found["problems"]) == []


def test_the_page_says_what_was_found():
    text = page.write(results(), {"powers": "charts/powers.svg"})
    assert "a processor (x86_64), 2 cores, Linux, Python\n3.11.7. numpy 2.4.6. Threads: 1" in text
    assert "| powers, n = 1000 | **4.00** | 2.00 |" not in text  # 4 is not above the bound
    assert "| powers, n = 1000 | 4.00 | 2.00 |" in text
    assert "| powers: time vs. numbers | 1.50 | 1.50 |" in text
    assert "| powers, n = 1000 | functrans eager | NumPy by hand | 2.00 |" in text
    assert "- finite differences, n = 10: a call would take about 9 s" in text
    assert "- JAX eager, n = 10: failed, TypeError: a | b" in text
    assert "![Time and memory against n: powers](charts/powers.svg)" in text


def test_tables_in_markdown():
    assert page.table(["a", "b"], [["x|y", "1"]]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 |"
    assert [page.seconds(s) for s in (2.0, 0.0123, 4.56e-6, 7e-10)] == [
        "2.00 s",
        "12.3 ms",
        "4.56 µs",
        "0.70 ns",
    ]
    assert page.timing(timed(0.5, spread=0.1)) == "500 ms ± 10%"


def test_charts_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = charts.draw(results(), tmp_path / "charts")
    text = drawn["powers"].read_text(encoding="utf-8")
    assert text.startswith("<?xml") and "1.50" in text


# --------------------------------------------------------------------------------------
# The command.


def test_parts_are_chosen_by_name():
    assert suite.parts(None) == [*PROBLEMS, *suite.TABLES, *suite.TEXTS]
    assert suite.parts(["gradbench"]) == list(PROBLEMS)
    assert suite.parts(["eager", "gmm"]) == ["gmm", "eager"]
    with pytest.raises(ValueError, match="unknown: gnm; choose from gradbench, gmm, "):
        suite.parts(["gnm"])


def test_what_fails_of_our_own_or_is_wrong_fails_the_command():
    found = results()
    assert suite.failures(found) == []
    size = found["problems"]["powers"]["sizes"][0]
    size["failed"]["functrans"] = "TypeError: no"
    size["wrong"]["autograd"] = "another derivative than that by hand"
    found["tables"]["eager"] = {"numbers": {}, "error": "not done after 9 s"}
    assert suite.failures(found) == [
        "eager: not done after 9 s",
        "powers, n = 10: functrans: TypeError: no",
        "powers, n = 10: autograd: another derivative than that by hand",
    ]


def test_threads_are_the_same_for_all():
    settings = thread_settings(1)
    assert settings["OMP_NUM_THREADS"] == settings["FUNCTRANS_NUM_THREADS"] == "1"
    assert settings["XLA_FLAGS"].endswith("=false")


def test_a_process_that_does_not_end_is_ended_and_its_lines_are_kept():
    script = "import time; print('{\"n\": 1}', flush=True); time.sleep(60)"
    lines, error = suite.lines_of([sys.executable, "-c", script], None, 3.0)
    assert lines == [{"n": 1}]
    assert error == "not done after 3 s; what is missing was not measured"


@pytest.mark.slow
def test_one_command_writes_everything(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--peers", "none", "--only", "lse"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    (size, _) = found["problems"]["lse"]["sizes"]
    assert {"numpy", "functrans", "functrans-tensor"} <= set(size["derivatives"])
    assert size["wrong"] == size["failed"] == {}
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "This was a quick run" in text and "## Log-sum-exp" in text
    assert "A quick run has too few samples to tell" in text  # where we lose
    assert str(ROOT) not in text


def test_a_page_is_written_again_from_results(tmp_path):
    source = tmp_path / "old.json"
    source.write_text(json.dumps(results()), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks", "--from", str(source), "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # a peer may fail
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "| powers: time vs. numbers | 1.50 | 1.50 |" in text


def test_an_unknown_part_is_an_error_that_lists_the_parts(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--only", "nothing", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown: nothing; choose from gradbench, gmm, ba" in done.stderr
