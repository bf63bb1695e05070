"""One problem in a separate process: check every contestant's answer, then time them in turns.

`python -m benchmarks` starts this, with the threads already set, and reads one line of JSON for each size, so
that nothing is lost if a later size does not end. A contestant that raises or that would take too long is
named in its place. A wrong answer ends the run: nothing is timed next to it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import CONTESTANTS, Differences, agree, as_arrays
from benchmarks.gradbench import PROBLEMS
from benchmarks.gradbench.problem import Problem, Size
from benchmarks.timing import Thunk, Timing, measure


@dataclass(frozen=True)
class Limits:
    """The time limits of a contestant, in seconds."""

    first: float  # for a first call, which may compile
    call: float  # for any other
    sampling: dict[str, Any]


FULL = Limits(60.0, 1.0, {"seconds": 0.2, "min_samples": 4, "warmup_seconds": 0.05})
QUICK = Limits(3.0, 0.3, {"seconds": 0.01, "min_samples": 2, "warmup_seconds": 0.0})


def one_line(error: Exception) -> str:
    """The message of an error, in one short line without the paths of this machine."""
    text = re.sub(r"\S*/\S*/", "", f"{type(error).__name__}: {error}".split("\n")[0])
    return text if len(text) <= 120 else f"{text[:117]}..."


def clocked(thunk: Thunk) -> tuple[float, Any]:
    start = time.perf_counter()
    result = thunk()
    return time.perf_counter() - start, result


class Forecast:
    """A prediction of a contestant's time, from its times for smaller sizes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: dict[str, list[tuple[float, float, float]]] = {}  # (work, first call, call)

    def remember(self, name: str, size: Size, first: float, call: float) -> None:
        self.seen.setdefault(name, []).append((size.work, first, call))

    def too_long(self, lib: Any, size: Size, limits: Limits) -> str | None:
        """Why it does not take part, or None."""
        if lib.name not in self.seen:
            return None
        # In proportion to the work. This is too high where overhead dominated, so take the minimum.
        call = min(call * size.work / work for work, _, call in self.seen[lib.name])
        work, first, _ = self.seen[lib.name][-1]
        if self.problem.unrolled and lib.unrolls:
            # Compilers take somewhat more than linear time in straight-line code.
            first *= (size.work / work) ** 1.2
        if call > limits.call:
            return f"a call would take about {call:.1f} s"
        if first + call > limits.first:
            return f"the first call would take about {first:.0f} s"
        return None


class Row:
    """The results for one size."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.functions: dict[str, Thunk] = {}
        self.derivatives: dict[str, Thunk] = {}
        self.first: dict[str, float] = {}
        self.skipped: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.wrong: dict[str, str] = {}

    def report(self, timings: dict[str, Timing]) -> dict[str, Any]:
        return {
            "label": self.size.label,
            "n": self.size.n,
            "functions": {name: vars(timings[f"f {name}"]) for name in self.functions if timings},
            "derivatives": {
                name: vars(timings[f"d {name}"]) for name in self.derivatives if timings
            },
            "first_calls": self.first,
            "skipped": self.skipped,
            "failed": self.failed,
            "wrong": self.wrong,
        }


def prepare(
    problem: Problem, size: Size, contestants: list[Any], limits: Limits, forecast: Forecast
) -> Row:
    """All thunks, after their answers have been compared with those of the first contestant."""
    row = Row(size)
    arguments = problem.data(**size.arguments)
    expected_value: list[Any] | None = None
    expected: list[Any] = []
    for lib in contestants:
        reason = forecast.too_long(lib, size, limits)
        if reason:
            row.skipped[lib.name] = reason
            continue
        try:
            function = problem.function(lib, arguments)
            _, value = clocked(function)
            evaluation, value = clocked(function)
            predicted = evaluation * lib.evaluations(problem.kind, arguments[0])
            if predicted > limits.call:
                row.skipped[lib.name] = f"a call would take about {predicted:.1f} s"
                continue
            derivative = problem.differentiate(lib, arguments)
            row.first[lib.name], answer = clocked(derivative)
            call, _ = clocked(derivative)
        except Exception as error:  # one broken contestant must not hide the others
            row.failed[lib.name] = one_line(error)
            continue
        forecast.remember(lib.name, size, row.first[lib.name], call)
        if call > 2 * limits.call:
            row.skipped[lib.name] = f"a call takes {call:.1f} s"
            continue
        found_value, found = as_arrays(value), as_arrays(answer)
        if expected_value is None:
            expected_value, expected = found_value, found
        if isinstance(lib, Differences) and not agree(expected, found, problem.coarse):
            row.failed[lib.name] = f"not within {problem.coarse:g} of the derivative by hand"
            continue
        if not agree(expected_value, found_value, problem.tolerance):
            row.wrong[lib.name] = "another value than that by hand"
        elif not isinstance(lib, Differences) and not agree(expected, found, problem.tolerance):
            row.wrong[lib.name] = "another derivative than that by hand"
        row.functions[lib.name], row.derivatives[lib.name] = function, derivative
    return row


def run_size(
    problem: Problem, size: Size, contestants: list[Any], limits: Limits, forecast: Forecast
) -> dict[str, Any]:
    row = prepare(problem, size, contestants, limits, forecast)
    if row.wrong:
        return row.report({})
    thunks = {f"f {name}": thunk for name, thunk in row.functions.items()}
    thunks |= {f"d {name}": thunk for name, thunk in row.derivatives.items()}
    return row.report(measure(thunks, **limits.sampling))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=sorted(PROBLEMS))
    parser.add_argument("contestants", nargs="+", choices=list(CONTESTANTS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    problem, limits = PROBLEMS[options.problem], QUICK if options.quick else FULL
    contestants = [CONTESTANTS[name].make() for name in options.contestants]
    forecast = Forecast(problem)
    np.seterr(all="ignore")  # warnings about overflow take time
    for size in problem.sizes_for(options.quick):
        found = run_size(problem, size, contestants, limits, forecast)
        print(json.dumps(found), flush=True)
        if found["wrong"]:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
