"""Everything, each part in a separate process: the problems, their memory, the other benchmarks.

A part that fails, or exceeds its time limit, is reported in its place, and the others continue.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.contestants import available
from benchmarks.gradbench import PROBLEMS
from benchmarks.threads import thread_settings

ROOT = Path(__file__).resolve().parent.parent
TABLES = ("eager", "compiled", "tensor")  # with numbers as JSON
TEXTS = ("control_flow", "checkpoint", "fixed_point", "scatter")  # with their printed output
HAS_PEERS, HAS_QUICK = ("eager",), (*TABLES, "control_flow", "checkpoint", "fixed_point")
# The contestants whose memory is measured: one for each engine.
WEIGHED = (
    "numpy",
    "autograd",
    "jax-jit",
    "torch-backward",
    "functrans",
    "functrans-native",
    "functrans-numpy",
    "functrans-tensor",
)


# They compile every operation by itself, or take long to load: not for a quick run.
SLOW_TO_START = ("jax", "torch-func")


@dataclass(frozen=True)
class Settings:
    peers: tuple[str, ...]
    quick: bool
    threads: int
    limit: float  # seconds that a process may take


def parts(only: list[str] | None) -> list[str]:
    """The parts to run, in order; `gradbench` stands for all problems."""
    everything = [*PROBLEMS, *TABLES, *TEXTS]
    if not only:
        return everything
    chosen = set(only) | (set(PROBLEMS) if "gradbench" in only else set())
    unknown = chosen - {*everything, "gradbench"}
    if unknown:
        raise ValueError(
            f"unknown: {', '.join(sorted(unknown))}; choose from gradbench, {', '.join(everything)}"
        )
    return [part for part in everything if part in chosen]


def run(
    names: list[str], settings: Settings, progress: Callable[[list[str]], Iterator[str]]
) -> Iterator[dict[str, Any]]:
    """The results of these parts so far, yielded after each of them."""
    found: dict[str, dict[str, Any]] = {"problems": {}, "tables": {}, "texts": {}}

    def run_part(name: str) -> None:
        if name in PROBLEMS:
            found["problems"][name] = run_problem(name, settings)
        elif name in TABLES:
            found["tables"][name] = run_table(name, settings)
        else:
            found["texts"][name] = run_text(name, settings)

    # A quick run does not compare times, so its parts may disturb each other.
    with ThreadPoolExecutor(os.cpu_count() if settings.quick else 1) as pool:
        running = {name: pool.submit(run_part, name) for name in names}
        for name in progress(names):
            running[name].result()
            yield {
                kind: {name: parts[name] for name in names if name in parts}
                for kind, parts in found.items()
            }


def command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{module}", *arguments]


def environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **thread_settings(settings.threads)}


def run_problem(name: str, settings: Settings) -> dict[str, Any]:
    problem = PROBLEMS[name]
    contestants = available(settings.peers)
    flags = []
    if settings.quick:
        flags.append("--quick")
        contestants = [lib for lib in contestants if lib not in SLOW_TO_START]
    sizes, error = lines_of(
        command("worker", name, *contestants, *flags),
        environment(settings),
        settings.limit,
    )
    found = {
        "title": problem.title,
        "kind": problem.kind,
        "derivative": problem.derivative,
        "growth": problem.growth,
        "same_algorithm": problem.same_algorithm,
        "sizes": sizes,
    }
    if error:
        found["error"] = error
    weigh(name, sizes, settings)
    return found


def lines_of(
    arguments: list[str], variables: dict[str, str], limit: float
) -> tuple[list[dict[str, Any]], str | None]:
    """The output of a process, as lines of JSON, and why it ended early, if it did."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        with subprocess.Popen(
            arguments, cwd=ROOT, env=variables, stdout=out, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                _, said = process.communicate(timeout=limit)
                error = None if process.returncode == 0 else last_line(said)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                error = f"not done after {limit:.0f} s; what is missing was not measured"
        out.seek(0)
        lines = [json.loads(line) for line in out if line.endswith("\n")]
    if any(line.get("wrong") for line in lines):
        error = "a wrong answer: nothing was timed beside it, and no further size"
    return lines, error


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "ended with an error"


def weigh(name: str, sizes: list[dict[str, Any]], settings: Settings) -> None:
    """Put the peak memory of those who were timed into `sizes`, for the sizes of the series."""
    series = [size for size in sizes if size["n"] is not None]
    if not memory.is_supported():
        return
    chosen = ("functrans",) if settings.quick else WEIGHED
    labels = {
        lib: [size["label"] for size in series if lib in size["derivatives"]] for lib in chosen
    }

    def peaks(lib: str) -> dict[str, int]:
        lines, _ = lines_of(
            command("memory", name, lib, *labels[lib]), environment(settings), settings.limit / 3
        )
        return lines[0] if lines else {}

    for size in series:
        size["memory"] = {}
    # Memory does not depend on who else is running, so these may run side by side.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        timed = [lib for lib in chosen if labels[lib]]
        for lib, found in zip(timed, pool.map(peaks, timed), strict=True):
            for size in series:
                if size["label"] in found:
                    size["memory"][lib] = found[size["label"]]


def finished(arguments: list[str], limit: float) -> tuple[str, str | None]:
    """The output of a process, and why it failed, if it did."""
    try:
        done = subprocess.run(
            arguments, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"not done after {limit:.0f} s"
    return done.stdout, None if done.returncode == 0 else last_line(done.stdout + done.stderr)


def flags_of(name: str, settings: Settings) -> list[str]:
    flags = ["--quick"] if settings.quick and name in HAS_QUICK else []
    if name in HAS_PEERS:
        flags += ["--peers", ",".join(settings.peers) or "none"]
    return flags


def run_table(name: str, settings: Settings) -> dict[str, Any]:
    """The numbers of one of the other benchmarks, which sets its threads itself."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "numbers.json"
        arguments = command(name, *flags_of(name, settings), "--json", str(target))
        _, error = finished(arguments, 2 * settings.limit)
        numbers = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    return {"numbers": numbers, **({"error": error} if error else {})}


def run_text(name: str, settings: Settings) -> dict[str, Any]:
    text, error = finished(command(name, *flags_of(name, settings)), settings.limit)
    return {"text": text.rstrip(), **({"error": error} if error else {})}


def failures(results: dict[str, Any]) -> list[str]:
    """Failures of functrans, or of a whole process: a reason for the command to fail."""
    found = []
    for kind in ("problems", "tables", "texts"):
        for name, part in results[kind].items():
            if "error" in part:
                found.append(f"{name}: {part['error']}")
    for name, problem in results["problems"].items():
        for size in problem["sizes"]:
            wrong = {**size["failed"], **size["wrong"]}
            found += [
                f"{name}, {size['label']}: {lib}: {why}"
                for lib, why in wrong.items()
                if lib.startswith("functrans") or lib in size["wrong"]
            ]
    return found
