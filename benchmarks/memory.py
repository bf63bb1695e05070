"""The peak memory of one contestant's derivative, for growing sizes, in a separate process.

The peak is that of resident memory during a call, above what was resident before the smallest of all sizes
had been made, so data and results count, and libraries do not. Linux only: elsewhere there is
nothing that starts the peak anew.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.contestants import CONTESTANTS
from benchmarks.gradbench import PROBLEMS

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field_name: str) -> int:
    """A field of this process' status, in bytes."""
    for line in STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(field_name):
            return int(line.split()[1]) * 1024
    raise KeyError(field_name)


def start_anew() -> None:
    CLEAR.write_text("5", encoding="ascii")


def is_supported() -> bool:
    return STATUS.exists() and CLEAR.exists()


def peaks(problem: Any, lib: Any, labels: list[str]) -> dict[str, int]:
    """Bytes by the label of a size."""
    problem.differentiate(lib, problem.data(**problem.tiny))()  # so that the library is loaded
    before = resident("VmRSS")
    found = {}
    for size in problem.sizes:
        if size.label in labels:
            derivative = problem.differentiate(lib, problem.data(**size.arguments))
            derivative()  # compiled, and warm
            start_anew()
            derivative()
            found[size.label] = max(resident("VmHWM") - before, 0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=sorted(PROBLEMS))
    parser.add_argument("contestant", choices=list(CONTESTANTS))
    parser.add_argument("labels", nargs="+")
    options = parser.parse_args()
    lib = CONTESTANTS[options.contestant].make()
    print(json.dumps(peaks(PROBLEMS[options.problem], lib, options.labels)))


if __name__ == "__main__":
    main()
