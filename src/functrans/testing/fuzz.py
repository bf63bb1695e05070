"""The fuzzer: random programs under random stacks of transforms, against independent oracles.

    python -m functrans.testing.fuzz --cases 100000 --minutes 30 --progress

Runs on all cores, says what it found, and goes on where it stopped: the folder `--corpus` keeps counts, and
every failure as a small stand-alone script.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

from functrans.testing.cases import Tally, judge_program
from functrans.testing.judging import RATES
from functrans.testing.peers import PEERS, forget
from functrans.testing.programs.choosing import Seeded
from functrans.testing.scripts import script
from functrans.testing.shrinking import shrunk, signature

_CHUNK = 20  # programs
_KEPT = 25  # failures of one sort
_SHRUNK = 3  # of them in one chunk


@dataclass
class Chunk:
    """What became of some programs: counts, and (sort, name, script) for each failure."""

    tally: Tally
    failures: list[tuple[str, str, str]]


def judge_chunk(seed: int, first: int, count: int, rates: dict[str, float] = RATES) -> Chunk:
    """Judge the programs with the numbers from `first` on."""
    library = import_module("functrans")
    tally = Tally()
    failures: list[tuple[str, str, str]] = []
    for number in range(first, first + count):
        for k, failure in enumerate(judge_program(Seeded(seed, number), library, tally, rates)):
            sort = f"{signature(failure.error)}, {failure.error.oracle}"
            if sum(sort == other for other, _, _ in failures) < _SHRUNK:
                failure = shrunk(failure, library)
            text = script(failure, library, f"Program {number} of seed {seed}.")
            failures.append((sort, f"{seed}-{number}-{k}.py", text))
    forget()
    return Chunk(tally, failures)


class Corpus:
    """A folder with the counts of all runs and the scripts of failures; or only the counts, in memory."""

    def __init__(self, folder: Path | None, seed: int) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {"seed": seed, "next": 0, "cases": 0, "programs": 0}
        self.state |= {"seconds": 0.0, "counts": {}, "failures": {}}
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
            # A run that is stopped in the middle of writing must not lose what it had.
            draft = self.folder / "state.json.new"
            draft.write_text(json.dumps(state, indent=1))
            draft.replace(self._file)


def chunks(seed: int, first: int, workers: int) -> Iterator[Chunk]:
    """The results of all chunks from a program on, in order, without end, from other processes.

    A process may die, of this library's machine code or of another library. Its chunk is then judged once
    more without other libraries, and if that dies too, it is a failure.
    """
    waiting: deque[tuple[int, Future[Chunk]]] = deque()
    pool = _pool(workers)
    try:
        while True:
            while len(waiting) < 3 * workers:
                waiting.append((first, pool.submit(judge_chunk, seed, first, _CHUNK)))
                first += _CHUNK
            start, future = waiting.popleft()
            try:
                chunk = future.result()
            except BrokenProcessPool:
                chunk = _judged_alone(seed, start)
                pool, before = _pool(workers), list(waiting)
                waiting = deque((k, pool.submit(judge_chunk, seed, k, _CHUNK)) for k, _ in before)
            yield chunk
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _judged_alone(seed: int, first: int) -> Chunk:
    """A chunk in a process of its own, without other libraries."""
    rates = RATES | dict.fromkeys(PEERS, 0.0)
    try:
        with _pool(1) as pool:
            return pool.submit(judge_chunk, seed, first, _CHUNK, rates).result()
    except BrokenProcessPool:
        text = f"from functrans.testing.fuzz import judge_chunk\n\njudge_chunk({seed}, {first}, {_CHUNK})\n"
        return Chunk(Tally(), [("the process died", f"{seed}-{first}-died.py", text)])


def run(
    cases: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    workers: int = 1,
    corpus: Path | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Judge random cases until there are enough, or the time is over; returns the counts."""
    kept = Corpus(corpus, seed)
    bar = _bar(cases, kept.state["cases"]) if progress else None
    started = before = monotonic()
    for chunk in chunks(kept.state["seed"], kept.state["next"], workers):
        now = monotonic()
        kept.add(chunk, _CHUNK, now - before)
        before = now
        if bar is not None:
            bar(chunk.tally.cases, sum(kept.state["failures"].values()))
        enough = cases is not None and kept.state["cases"] >= cases
        if enough or (minutes is not None and now - started > 60 * minutes):
            break
    return kept.state


def _bar(total: int | None, initial: int) -> Any:
    """A function that is told of new cases and of all failures; by tqdm, if it is installed."""
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
        prog="python -m functrans.testing.fuzz",
        description="Judge random programs under random stacks of transforms.",
    )
    parser.add_argument("--cases", type=int, help="stop after so many, with those of earlier runs")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--corpus", type=Path, help="a folder for counts and failures, to go on with"
    )
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    if options.cases is None and options.minutes is None:
        options.cases = 10_000
    state = run(**vars(options))
    print(json.dumps(state, indent=1))
    return 1 if state["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
