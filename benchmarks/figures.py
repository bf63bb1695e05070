"""Figures derived from the results of a run: ratios, slopes, and where functrans is slower.

Results are the dictionaries that `suite.run` makes and results.json holds. page.py formats them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from benchmarks.timing import growth_exponent

BOUND = 4.0  # a gradient's time relative to that of its function, in theory
MARGIN = 1.1  # the ratio that counts as slower, if the quartiles do not overlap either
VISIBLE = 1 << 20  # bytes; less is lost among the pages of the process
# Each path of functrans is compared with libraries that work in the same way.
RIVALS = {
    "functrans": ("numpy", "autograd", "jax", "torch-backward", "torch-func"),
    "functrans-native": ("numpy", "jax-jit", "functrans-numpy", "functrans"),
    "functrans-numpy": ("functrans",),
    "functrans-tensor": ("torch-backward",),
}


def time_ratio(size: dict[str, Any], ours: str, theirs: str) -> float | None:
    """The median of functrans divided by the median of the peer, for the derivative."""
    times = size["derivatives"]
    if ours not in times or theirs not in times:
        return None
    return float(times[ours]["median"] / times[theirs]["median"])


def cost_ratio(size: dict[str, Any], lib: str) -> float | None:
    """The derivative's time divided by that of the contestant's function."""
    if lib not in size["derivatives"]:
        return None
    return float(size["derivatives"][lib]["median"] / size["functions"][lib]["median"])


def largest(problem: dict[str, Any]) -> dict[str, Any] | None:
    """The largest size that was timed for functrans."""
    timed = [size for size in problem["sizes"] if "functrans" in size["derivatives"]]
    return timed[-1] if timed else None


def points(problem: dict[str, Any], lib: str, quantity: str) -> list[tuple[float, float]]:
    """(n, seconds) or (n, bytes) along the series."""
    found = []
    for size in problem["sizes"]:
        if size["n"] is None:
            continue
        if quantity == "time" and lib in size["derivatives"]:
            found.append((size["n"], size["derivatives"][lib]["median"]))
        elif quantity == "memory" and size.get("memory", {}).get(lib, 0) >= VISIBLE:
            found.append((size["n"], size["memory"][lib]))
    return found


def slope(problem: dict[str, Any], lib: str, quantity: str) -> float | None:
    """The p of n**p, by least squares on logarithms; it needs three points."""
    series = points(problem, lib, quantity)
    if len(series) < 3:
        return None
    return growth_exponent([n for n, _ in series], [y for _, y in series])


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


@dataclass(frozen=True)
class Loss:
    where: str
    ours: str
    theirs: str
    ratio: float


def slower(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """By more than the margin, and by more than the spread of either."""
    apart = ours["quartiles"][0] > theirs["quartiles"][1]
    return bool(apart and ours["median"] > MARGIN * theirs["median"])


def losses(results: dict[str, Any]) -> list[Loss]:
    """Every size of a problem, and every row of a table, where a rival is faster; the worst first."""
    found = [*_in_problems(results["problems"]), *_in_tables(results["tables"])]
    return sorted(found, key=lambda loss: -loss.ratio)


def _in_problems(problems: dict[str, Any]) -> list[Loss]:
    found = []
    for problem in problems.values():
        for size in problem["sizes"]:
            times = size["derivatives"]
            for ours, rivals in RIVALS.items():
                for rival in rivals:
                    if rival == "numpy" and not problem["same_algorithm"]:
                        continue
                    if ours in times and rival in times and slower(times[ours], times[rival]):
                        where = f"{problem['title']}, {size['label']}"
                        ratio = times[ours]["median"] / times[rival]["median"]
                        found.append(Loss(where, ours, rival, ratio))
    return found


def _in_tables(tables: dict[str, Any]) -> list[Loss]:
    found = []
    for case in tables.get("eager", {}).get("numbers", {}).get("cases", []):
        times = case["times"]
        for rival in RIVALS["functrans"]:
            if "functrans" in times and rival in times and slower(times["functrans"], times[rival]):
                ratio = times["functrans"]["median"] / times[rival]["median"]
                found.append(Loss(f"eager: {case['title']}", "functrans", rival, ratio))
    for case in tables.get("compiled", {}).get("numbers", {}).values():
        times = case["call"]
        for rival, name in COMPILED_RIVALS.items():
            if "functrans" in times and rival in times and slower(times["functrans"], times[rival]):
                ratio = times["functrans"]["median"] / times[rival]["median"]
                found.append(Loss(f"compiled: {case['title']}", "functrans-native", name, ratio))
    for case in tables.get("tensor", {}).get("numbers", {}).get("times", []):
        if case["ratio"] > MARGIN:
            where = f"tensor: {case['case']}"
            found.append(Loss(where, "functrans-tensor", "torch-backward", case["ratio"]))
    return found


# The names that compiled.py gives, and ours for the same.
COMPILED_RIVALS = {"jax.jit": "jax-jit", "torch": "torch-backward", "numpy": "numpy"}


def over_the_bound(problems: dict[str, Any]) -> list[tuple[str, str, float]]:
    """(where, contestant, ratio) for gradients of ours that cost more than the bound."""
    found = []
    for problem in problems.values():
        if problem["kind"] != "gradient":
            continue
        for size in problem["sizes"]:
            for lib in RIVALS:
                ratio = cost_ratio(size, lib)
                if ratio is not None and ratio > BOUND:
                    found.append((f"{problem['title']}, {size['label']}", lib, ratio))
    return sorted(found, key=lambda row: -row[2])
