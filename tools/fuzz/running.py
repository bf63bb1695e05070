"""The command of the fuzzer: cases on all cores, their counts, and the scripts of failures.

It runs on all cores, reports failures, and resumes where it stopped: the folder `--corpus` keeps the counts,
and each failure as a small standalone script. It mixes all kinds of cases, unless `--only` selects some.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

from tools.fuzz.cases import Tally
from tools.fuzz.judging import RATES
from tools.fuzz.kinds import KINDS, kind_of
from tools.fuzz.peers import PEERS, forget
from tools.fuzz.programs.choosing import Seeded

_CHUNK = 20  # programs and probes
_KEPT = 25  # failures of one sort that are kept
_SHRUNK = 3  # of them in one chunk


@dataclass
class Chunk:
    """The results for some cases: counts, and (sort, name, script) for each failure."""

    tally: Tally
    failures: list[tuple[str, str, str]]


def judge_chunk(
    seed: int,
    first: int,
    count: int,
    rates: dict[str, float] = RATES,
    only: Sequence[str] = (),
) -> Chunk:
    """Judge the programs and probes numbered from `first` on."""
    library = import_module("functrans")
    tally = Tally()
    failures: list[tuple[str, str, str]] = []
    for number in range(first, first + count):
        kind = kind_of(seed, number, only)
        for k, finding in enumerate(kind.judge(Seeded(seed, number), library, tally, rates)):
            sort = finding.sort
            if sum(sort == other for other, _, _ in failures) < _SHRUNK:
                finding = finding.shrunk()
            text = finding.script(f"Number {number} of seed {seed}: {kind.name}.")
            failures.append((sort, f"{kind.name}-{seed}-{number}-{k}.py", text))
    forget()
    return Chunk(tally, failures)


class Corpus:
    """A folder with the counts of all runs and the scripts of failures; or only the counts, in memory."""

    def __init__(self, folder: Path | None, seed: int, only: Sequence[str] = ()) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {"seed": seed, "only": list(only), "next": 0}
        self.state |= {"cases": 0, "programs": 0, "seconds": 0.0, "seconds_of_kinds": {}}
        self.state |= {"counts": {}, "failures": {}}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if self._file.exists():
                self.state = json.loads(self._file.read_text())

    @property
    def _file(self) -> Path:
        assert self.folder is not None
        return self.folder / "state.json"

    def add(self, chunk: Chunk, count: int, seconds: float) -> None:
        state = self.state
        state["next"] += count
        state["cases"] += chunk.tally.cases
        state["programs"] += chunk.tally.programs
        state["seconds"] += seconds
        for kind, own in chunk.tally.seconds.items():
            state["seconds_of_kinds"][kind] = state["seconds_of_kinds"].get(kind, 0.0) + own
        for category, counts in chunk.tally.counts.items():
            known = Counter(state["counts"].get(category, {}))
            known.update(counts)
            state["counts"][category] = dict(known.most_common())
        for sort, name, text in chunk.failures:
            seen = state["failures"].get(sort, 0)
            state["failures"][sort] = seen + 1
            if self.folder is None:
                print(text, file=sys.stderr)
            elif seen < _KEPT:
                (self.folder / name).write_text(text)
        if self.folder is not None:
            # A run interrupted while writing must not lose earlier results.
            draft = self.folder / "state.json.new"
            draft.write_text(json.dumps(state, indent=1))
            draft.replace(self._file)


def chunks(seed: int, first: int, workers: int, only: Sequence[str] = ()) -> Iterator[Chunk]:
    """Yield the results of all chunks, in order and without end, computed in other processes.

    A process may crash in this library's machine code, or in another library. Its chunk is then judged
    again without other libraries, and if that crashes too, it is a failure.
    """
    waiting: deque[tuple[int, Future[Chunk]]] = deque()
    pool = _pool(workers)

    def submitted(start: int) -> tuple[int, Future[Chunk]]:
        return start, pool.submit(judge_chunk, seed, start, _CHUNK, only=only)

    try:
        while True:
            while len(waiting) < 3 * workers:
                waiting.append(submitted(first))
                first += _CHUNK
            start, future = waiting.popleft()
            try:
                chunk = future.result()
            except BrokenProcessPool:
                chunk = _judged_alone(seed, start, only)
                pool = _pool(workers)
                waiting = deque(submitted(later) for later, _ in list(waiting))
            yield chunk
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _judged_alone(seed: int, first: int, only: Sequence[str]) -> Chunk:
    """Judge a chunk in a separate process, without other libraries."""
    rates = RATES | dict.fromkeys(PEERS, 0.0)
    try:
        with _pool(1) as pool:
            return pool.submit(judge_chunk, seed, first, _CHUNK, rates, only).result()
    except BrokenProcessPool:
        call = f"judge_chunk({seed}, {first}, {_CHUNK}, only={tuple(only)})"
        text = f"from tools.fuzz.running import judge_chunk\n\n{call}\n"
        return Chunk(Tally(), [("the process died", f"{seed}-{first}-died.py", text)])


def run(
    cases: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    workers: int = 1,
    corpus: Path | None = None,
    progress: bool = False,
    only: Sequence[str] = (),
) -> dict[str, Any]:
    """Judge random cases until there are enough, or the time is up; returns the counts."""
    kept = Corpus(corpus, seed, only)
    bar = _bar(cases, kept.state["cases"]) if progress else None
    started = before = monotonic()
    state = kept.state
    for chunk in chunks(state["seed"], state["next"], workers, state["only"]):
        now = monotonic()
        kept.add(chunk, _CHUNK, now - before)
        before = now
        if bar is not None:
            bar(chunk.tally.cases, sum(state["failures"].values()))
        enough = cases is not None and state["cases"] >= cases
        if enough or (minutes is not None and now - started > 60 * minutes):
            break
    return state


def _bar(total: int | None, initial: int) -> Any:
    """A function that shows the number of cases and failures, using tqdm if it is installed."""
    try:
        tqdm = import_module("tqdm").tqdm
    except ImportError:
        done = initial

        def show(new: int, failures: int) -> None:
            nonlocal done
            done += new
            print(f"\r{done} cases, {failures} failures", end="", file=sys.stderr)

        return show
    bar = tqdm(total=total, initial=initial, unit=" cases")

    def update(new: int, failures: int) -> None:
        bar.set_postfix(failures=failures, refresh=False)
        bar.update(new)

    return update


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz",
        description="Judge random programs under random stacks of transforms, and probes of laws.",
    )
    parser.add_argument("--cases", type=int, help="stop after this many, including earlier runs")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--corpus", type=Path, help="a folder for counts and failures, to resume from"
    )
    parser.add_argument("--progress", action="store_true")
    parser.add_argument(
        "--only", nargs="+", default=(), choices=KINDS, metavar="KIND", help=", ".join(KINDS)
    )
    options = parser.parse_args()
    if options.cases is None and options.minutes is None:
        options.cases = 10_000
    state = run(**vars(options))
    print(json.dumps(state, indent=1))
    return 1 if state["failures"] else 0
