"""Eager speed: functrans against other libraries and hand-written NumPy, in one table of ratios.

    python benchmarks/eager.py [--quick] [--peers all|none|autograd,torch,jax] [--json FILE]

Every library computes the same functions, in float64, on one thread. Answers are compared before
anything is timed. JAX runs without jit, and each timing includes block_until_ready; HIPS autograd,
which has no vmap, uses a Python loop for per-example gradients. timing.py describes how samples are
taken.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.threads import use_threads

THREADS = 1
use_threads(THREADS)  # before the import of NumPy

import numpy as np

from benchmarks.contestants import (
    Autograd,
    ByHand,
    Functrans,
    Jax,
    TorchBackward,
    TorchFunc,
    agree,
    as_arrays,
    parse_peers,
)
from benchmarks.problems import (
    mlp_gradient_by_hand,
    mlp_loss,
    mlp_problem,
    rosenbrock,
    scalar_chain,
)
from benchmarks.timing import Thunk, Timing, growth_exponent, measure

# --------------------------------------------------------------------------------------
# The mathematics. `xp` is the array namespace of the contestant; for functrans it is NumPy.


def hundred_to_hundred(xp: Any, matrix: Any, x: Any) -> Any:
    return xp.tanh(matrix @ x) * xp.sin(x)


def scalar_reads(xp: Any, x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        element = x[i]
        total = total + element * element
    return total


def _random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


# --------------------------------------------------------------------------------------
# The contestants.

OURS = "functrans"
HAND = "numpy"
EAGER_PEERS = ("autograd", "torch-backward", "torch-func", "jax")
PEERS_OF_PACKAGE = {
    "autograd": (Autograd,),
    "torch": (TorchBackward, TorchFunc),
    "jax": (Jax,),
}


# --------------------------------------------------------------------------------------
# The cases.


@dataclass(frozen=True)
class Target:
    """`ours / against` must be at most `limit`, or below it where `strictly`."""

    against: str  # a contestant's name, or "fastest" for the fastest eager peer
    limit: float
    strictly: bool = False

    def reached(self, ratio: float) -> bool:
        return ratio < self.limit if self.strictly else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'<' if self.strictly else '<='} {self.limit:g}"


AHEAD = (Target("fastest", 1.0, strictly=True),)
TWICE_AS_FAST = (Target("fastest", 0.5), Target("autograd", 0.25))


@dataclass(frozen=True)
class Case:
    """One row. `build` returns the thunk of a contestant, or None if it does not take part."""

    key: str
    title: str
    build: Callable[[Any], Thunk | None]
    targets: tuple[Target, ...] = ()
    skip: dict[str, str] = field(default_factory=dict)  # contestant -> why
    skip_in_quick: tuple[str, ...] = ()
    only_full: bool = False
    size: int = 0  # of the scalar reads, for their growth exponent


def chain_case() -> Case:
    def build(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        x = lib.native(np.float64(0.7))
        return lib.gradient(lambda x: scalar_chain(lib.xp, x), x)

    return Case("chain", "scalar chain, 60 operations: grad", build, TWICE_AS_FAST)


def mlp_cases(
    key: str, sizes: Sequence[int], batch: int, targets: tuple[Target, ...]
) -> list[Case]:
    title = f"MLP {'-'.join(map(str, sizes))}, batch {batch}"

    def build_gradient(lib: Any) -> Thunk | None:
        params, inputs, labels = lib.native(mlp_problem(sizes, batch))
        if lib.name == HAND:
            return lambda: mlp_gradient_by_hand(params, inputs, labels)
        return lib.gradient(lambda p, x, y: mlp_loss(lib.xp, p, x, y), params, inputs, labels)

    def build_per_example(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        params, inputs, labels = lib.native(mlp_problem(sizes, batch))
        return lib.per_example(lambda p, x, y: mlp_loss(lib.xp, p, x, y), params, inputs, labels)

    return [
        Case(f"{key}-grad", f"{title}: grad", build_gradient, targets),
        Case(f"{key}-per-example", f"{title}: vmap(grad)", build_per_example, AHEAD),
    ]


def rosenbrock_cases(n: int) -> list[Case]:
    x, v = 0.5 + 0.1 * _random(2, n)

    def build_hvp(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        return lib.hvp(lambda x: rosenbrock(lib.xp, x), lib.native(x), lib.native(v))

    def build_hessian(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        return lib.hessian(lambda x: rosenbrock(lib.xp, x), lib.native(x))

    return [
        Case(f"hvp-{n}", f"Rosenbrock n={n}: hvp", build_hvp, AHEAD),
        Case(
            f"hessian-{n}",
            f"Rosenbrock n={n}: hessian",
            build_hessian,
            only_full=n >= 1000,
        ),
    ]


def jacobian_case(mode: str) -> Case:
    matrix, x = _random(100, 100) / 10.0, _random(100)

    def build(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        native = lib.native(matrix)
        build_jacobian = getattr(lib, f"jacobian_{mode}")
        return build_jacobian(lambda x: hundred_to_hundred(lib.xp, native, x), lib.native(x))

    call = {"reverse": "jacrev", "forward": "jacfwd"}[mode]
    return Case(f"jacobian-{mode}", f"Jacobian 100 to 100: {call}", build, AHEAD)


def reads_case(n: int, skip: dict[str, str]) -> Case:
    def build(lib: Any) -> Thunk | None:
        if lib.name == HAND:
            return None
        return lib.gradient(lambda x: scalar_reads(lib.xp, x), lib.native(_random(n)))

    return Case(
        f"reads-{n}",
        f"{n:,} scalar reads: grad",
        build,
        skip=skip,
        skip_in_quick=("jax",),
        only_full=n > 10_000,
        size=n,
    )


def all_cases() -> list[Case]:
    slow = "milliseconds per read; n = 10,000 was not done after seven minutes"
    large = "keeps a dense n-vector per read, 80 GB"
    return [
        chain_case(),
        *mlp_cases("small-mlp", (2, 16, 16, 2), 16, TWICE_AS_FAST),
        *mlp_cases("large-mlp", (784, 256, 256, 10), 128, (Target(HAND, 1.15),)),
        *rosenbrock_cases(100),
        *rosenbrock_cases(1000),
        jacobian_case("reverse"),
        jacobian_case("forward"),
        reads_case(1_000, {}),
        reads_case(10_000, {"jax": slow}),
        reads_case(100_000, {"jax": slow, "torch-func": large}),
    ]


# --------------------------------------------------------------------------------------
# Running.


@dataclass
class Row:
    case: Case
    timings: dict[str, Timing]
    errors: list[str]
    skipped: dict[str, str]

    def ratio(self, against: str, statistic: str = "best") -> float | None:
        """ours / against, or None if either was not measured."""
        peers = EAGER_PEERS if against == "fastest" else (against,)
        times = [getattr(self.timings[name], statistic) for name in peers if name in self.timings]
        if OURS not in self.timings or not times:
            return None
        return float(getattr(self.timings[OURS], statistic) / min(times))


def run_case(case: Case, contestants: Sequence[Any], quick: bool) -> Row:
    """Build, check and time one case; a contestant that fails or disagrees is reported and not timed."""
    thunks: dict[str, Thunk] = {}
    errors = []
    skipped = {}
    reference: tuple[str, list[Any]] | None = None
    for lib in contestants:
        if lib.name in case.skip:
            skipped[lib.name] = case.skip[lib.name]
            continue
        if quick and lib.name in case.skip_in_quick:
            skipped[lib.name] = "more than a minute, left to the full run"
            continue
        try:
            thunk = case.build(lib)
            if thunk is None:
                continue
            answer = as_arrays(thunk())
        except Exception as error:  # one broken contestant must not hide the others
            errors.append(f"{case.title}: {lib.name} raised {type(error).__name__}: {error}")
            continue
        if reference is None:
            reference = (lib.name, answer)
        elif not agree(reference[1], answer):
            errors.append(f"{case.title}: {lib.name} disagrees with {reference[0]}")
            continue
        thunks[lib.name] = thunk
    del reference
    settings: dict[str, Any] = {"seconds": 1.0, "min_samples": 3}
    if quick:
        settings = {"seconds": 0.02, "min_samples": 2, "warmup_seconds": 0.0}
    return Row(case, measure(thunks, **settings), errors, skipped)


def find_contestants(peers: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Those that are installed, ours last so that the others are the reference; and notes."""
    contestants: list[Any] = [ByHand()]
    notes = []
    for package in peers:
        if importlib.util.find_spec(package) is None:
            notes.append(f"{package} is not installed")
        else:
            contestants += [make() for make in PEERS_OF_PACKAGE[package]]
    if importlib.util.find_spec(OURS) is None:
        notes.append(f"{OURS} is not installed: only the peers are measured")
    else:
        contestants.append(Functrans())
    return contestants, notes


# --------------------------------------------------------------------------------------
# Printing.


def print_table(header: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *lines]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def print_times(rows: list[Row], names: list[str]) -> None:
    print("Best and median time of one call, in microseconds")
    lines = []
    for row in rows:
        cells = [row.case.title]
        for name in names:
            timing = row.timings.get(name)
            cells.append(
                f"{timing.best * 1e6:,.1f} / {timing.median * 1e6:,.1f}" if timing else "-"
            )
        lines.append(cells)
    print_table(["case", *names], lines)


def print_ratios(rows: list[Row], names: list[str], quick: bool) -> None:
    print(f"Time of {OURS} divided by the time of each other (best of samples; small is good)")
    others = [name for name in names if name != OURS]
    lines = []
    for row in rows:
        ratios = [row.ratio(name) for name in others]
        cells = [row.case.title, *("-" if r is None else f"{r:.3f}" for r in ratios)]
        fastest = row.ratio("fastest")
        cells.append("-" if fastest is None else f"{fastest:.3f}")
        cells.append("; ".join(verdicts(row, quick)) or "no target")
        lines.append(cells)
    print_table(["case", *others, "fastest peer", "target"], lines)


def verdicts(row: Row, quick: bool) -> list[str]:
    said = []
    absent = [name for name in EAGER_PEERS if name not in row.timings and name not in row.skipped]
    for target in row.case.targets:
        ratio = row.ratio(target.against)
        if ratio is None:
            verdict = "not measured"
        elif quick:
            verdict = "not judged (quick)"
        elif not target.reached(ratio):
            verdict = "missed"
        elif target.against == "fastest" and absent:
            # The fastest one may not have run.
            verdict = "not judged (peers absent)"
        else:
            verdict = "reached"
        said.append(f"{target} {target.against}: {verdict}")
    return said


LINEAR = 1.1


def growth(rows: list[Row], names: list[str]) -> dict[str, float]:
    """The exponent of time against n in the scalar reads, where two sizes or more were measured."""
    exponents = {}
    for name in names:
        points = [
            (row.case.size, row.timings[name].best)
            for row in rows
            if row.case.size and name in row.timings
        ]
        if len(points) >= 2:
            exponents[name] = growth_exponent(*map(list, zip(*points, strict=True)))
    return exponents


def print_growth(exponents: dict[str, float], quick: bool) -> None:
    print("Growth of n scalar reads, the p of time ~ n**p")
    for name, exponent in exponents.items():
        verdict = ""
        if name == OURS and not quick:
            verdict = f"  target <= {LINEAR}: {'reached' if exponent <= LINEAR else 'missed'}"
        print(f"  {name:<15}{exponent:6.2f}{verdict}")


def report(rows: list[Row], names: list[str], contestants: Sequence[Any]) -> dict[str, Any]:
    packages = sorted({lib.name.split("-")[0] for lib in contestants})
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "versions": {package: version(package) for package in packages},
        "growth_exponents": growth(rows, names),
        "cases": [
            {
                "key": row.case.key,
                "title": row.case.title,
                "times": {name: vars(timing) for name, timing in row.timings.items()},
                "targets": [
                    {
                        "against": target.against,
                        "limit": str(target),
                        "ratio_of_best": row.ratio(target.against),
                        "ratio_of_median": row.ratio(target.against, "median"),
                    }
                    for target in row.case.targets
                ],
                "skipped": row.skipped,
                "errors": row.errors,
            }
            for row in rows
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Eager speed of functrans and its peers.")
    parser.add_argument(
        "--quick", action="store_true", help="few samples, no slow cases, to check that it runs"
    )
    parser.add_argument(
        "--peers", type=parse_peers, default="all", help="all, none, or comma-separated names"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the numbers to this file"
    )
    options = parser.parse_args()

    contestants, notes = find_contestants(options.peers)
    print(f"Python {platform.python_version()}, threads: {THREADS} for every contestant")
    print(
        ", ".join(f"{p} {version(p)}" for p in sorted({c.name.split("-")[0] for c in contestants}))
    )
    rows = []
    for case in all_cases():
        if options.quick and case.only_full:
            continue
        print(f"measuring {case.title}", file=sys.stderr, flush=True)
        rows.append(run_case(case, contestants, options.quick))

    names = [lib.name for lib in contestants]
    names = [name for name in (OURS, HAND, *EAGER_PEERS) if name in names]
    print()
    print_times(rows, names)
    if OURS in names:
        print()
        print_ratios(rows, names, options.quick)
    print()
    print_growth(growth(rows, names), options.quick)

    notes += [
        f"-  {name}, {row.case.title}: skipped, {why}"
        for row in rows
        for name, why in row.skipped.items()
    ]
    errors = [error for row in rows for error in row.errors]
    print("\nNotes")
    for note in notes:
        print(f"  {note}")
    for error in errors:
        print(f"  ERROR  {error}")
    if options.json:
        options.json.write_text(json.dumps(report(rows, names, contestants), indent=2) + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
