"""The results of a run as a page of Markdown: results.md, and docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import figures
from benchmarks.contestants import CONTESTANTS

TITLES = {name: entry.title for name, entry in CONTESTANTS.items()}
# functrans first, then its peers.
ORDER = (
    "functrans",
    "functrans-native",
    "functrans-numpy",
    "functrans-tensor",
    "numpy",
    "autograd",
    "jax",
    "jax-jit",
    "torch-backward",
    "torch-func",
    "differences",
)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; a bar within a cell is escaped."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def seconds(value: float) -> str:
    """Three digits, with the unit that suits them."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{significant(value * factor)} {unit}"
    return f"{significant(value * 1e9)} ns"


def significant(value: float) -> str:
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f}"


def optional(value: float | None, bold_above: float | None = None) -> str:
    if value is None:
        return ""
    text = significant(value)
    return f"**{text}**" if bold_above is not None and value > bold_above else text


def timing(found: dict[str, Any] | None) -> str:
    """The median, and half the distance of the quartiles in percent of it."""
    if found is None:
        return ""
    low, high = found["quartiles"]
    half = 50 * (high - low) / found["median"]
    return f"{seconds(found['median'])} ± {half:.0f}%"


def write(results: dict[str, Any], charts: dict[str, str]) -> str:
    """The whole page; `charts` has the address of a picture by the name of its problem."""
    sections = [head(results)]
    problems = {name: part for name, part in results["problems"].items() if part["sizes"]}
    if problems:
        sections += [summary(problems), costs(problems), growth(problems)]
    sections.append(defeats(results))
    sections += [one_problem(part, charts.get(name)) for name, part in problems.items()]
    sections += other_tables(results["tables"])
    sections += other_texts(results["texts"])
    sections += errors(results)
    return "\n\n".join(sections) + "\n"


def head(results: dict[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    quick = (
        "\n\n**This was a quick run**, with small sizes and few samples. It shows that everything works,"
        "\nbut is too noisy to judge by."
        if results["quick"]
        else ""
    )
    return f"""# Benchmarks

This page is generated from the results of one run:

```bash
pip install -e ".[peers,jit,plot]"
python -m benchmarks --peers all --out results/ --write-docs
```

{machine["processor"]} ({machine["architecture"]}), {machine["cores"]} cores, {machine["system"]}, Python
{machine["python"]}. {versions}. Threads: {machine["threads"]} per library in the problems below; the
other benchmarks state their own number of threads.{quick}

Each problem runs in a separate process. All libraries compute the same function in float64, and their results
are checked against the hand-written derivative before anything is timed. Libraries take turns, one sample
each, in shuffled order, so compare times within a run, not between runs. A time is the median of the samples,
followed by ± half the interquartile range. See [performance.md](performance.md) for more."""


def present(problems: dict[str, Any]) -> list[str]:
    seen = {
        lib for part in problems.values() for size in part["sizes"] for lib in size["derivatives"]
    }
    return [name for name in ORDER if name in seen]


def by_problem(
    problems: dict[str, Any], names: list[str], cell: Callable[[dict[str, Any], str], str]
) -> list[list[str]]:
    rows = []
    for part in problems.values():
        size = figures.largest(part)
        if size is not None:
            title = f"{part['title']}, {size['label']}"
            rows.append([title, *(cell(size, name) for name in names)])
    return rows


def summary(problems: dict[str, Any]) -> str:
    names = [name for name in present(problems) if name != "functrans"]
    ratio = lambda size, name: optional(figures.time_ratio(size, name, "functrans"))
    rows = by_problem(problems, names, ratio)
    means = []
    for name in names:
        found = [
            figures.time_ratio(size, name, "functrans")
            for part in problems.values()
            if (size := figures.largest(part)) is not None
        ]
        means.append(optional(figures.geometric_mean([r for r in found if r is not None])))
    rows.append(["geometric mean", *means])
    return (
        "## Time of the derivative, relative to functrans eager\n\nThe time of each library divided by that "
        "of functrans without `jit`, for the largest size measured: above 1 is slower.\nThe hand-written "
        "determinant uses a different algorithm.\n\n"
        + table(["problem", *(TITLES[name] for name in names)], rows)
    )


def costs(problems: dict[str, Any]) -> str:
    names = present(problems)
    cost = lambda size, name: optional(figures.cost_ratio(size, name), bold_above=figures.BOUND)
    return (
        "## Time of the derivative, relative to the function\n\nThe time of the derivative divided by the "
        "time of the function in the same library. In theory, a gradient costs at\nmost about 4 function "
        "evaluations; larger ratios are bold. Two problems need more than a gradient: bundle\nadjustment "
        "needs two passes, and k-means needs second derivatives.\n\n"
        + table(["problem", *(TITLES[name] for name in names)], by_problem(problems, names, cost))
    )


def growth(problems: dict[str, Any]) -> str:
    names = present(problems)
    rows = []
    for part in problems.values():
        for quantity in ("time", "memory"):
            slopes = [figures.slope(part, name, quantity) for name in names]
            if any(found is not None for found in slopes):
                rows.append(
                    [f"{part['title']}: {quantity} vs. {part['growth']}", *map(optional, slopes)]
                )
    if not rows:
        return "## Growth\n\nNot fitted: this needs three sizes or more; a quick run has fewer."
    return (
        "## Growth\n\nThe exponent p of a fit n^p over all sizes of a series. 1 is linear; below 1, constant "
        "overhead still matters.\nMemory is the peak during a call minus the memory in use before it; values "
        "below a megabyte are omitted.\n\n" + table(["", *(TITLES[name] for name in names)], rows)
    )


def defeats(results: dict[str, Any]) -> str:
    if results["quick"]:
        return "## Where we lose\n\nA quick run has too few samples to tell."
    lost = figures.losses(results)
    text = (
        "## Where we lose\n\nA loss is a size or a row in which a comparable library was faster than "
        "functrans by more than 10%, and by more\nthan the spread of both. "
    )
    if lost:
        text += "The ratio is our time divided by theirs.\n\n" + table(
            ["where", "ours", "theirs", "ratio"],
            [
                [loss.where, TITLES[loss.ours], TITLES[loss.theirs], significant(loss.ratio)]
                for loss in lost
            ],
        )
    else:
        text += "There were none in this run."
    over = figures.over_the_bound(results["problems"])
    if over:
        text += "\n\nfunctrans gradients that cost more than 4 function evaluations:\n\n" + table(
            ["where", "ours", "derivative / function"],
            [[where, TITLES[lib], significant(ratio)] for where, lib, ratio in over],
        )
    return text


def one_problem(part: dict[str, Any], chart: str | None) -> str:
    names = [name for name in ORDER if any(name in s["derivatives"] for s in part["sizes"])]
    labels = [size["label"] for size in part["sizes"]]
    rows = [
        [TITLES[name], *(timing(size["derivatives"].get(name)) for size in part["sizes"])]
        for name in names
    ]
    functions = [
        [f"{TITLES[name]}: function", *(timing(s["functions"].get(name)) for s in part["sizes"])]
        for name in ("numpy", "functrans-native", "jax-jit", "torch-backward")
        if name in names
    ]
    text = f"## {part['title'][0].upper()}{part['title'][1:]}\n\n"
    text += f"The {part['derivative']}.\n\n" + table(["", *labels], rows + functions)
    firsts = [
        [TITLES[name], *(optional_seconds(size["first_calls"].get(name)) for size in part["sizes"])]
        for name in ("functrans-native", "functrans-numpy", "jax-jit")
        if name in names
    ]
    if firsts:
        text += "\n\nThe first call, which compiles:\n\n" + table(["", *labels], firsts)
    notes = absences(part)
    if notes:
        text += "\n\nNot measured:\n\n" + "\n".join(f"- {note}" for note in notes)
    if chart:
        text += f"\n\n![Time and memory against n: {part['title']}]({chart})"
    return text


def optional_seconds(value: float | None) -> str:
    return "" if value is None else seconds(value)


def absences(part: dict[str, Any]) -> list[str]:
    """Which contestants are missing in which sizes, and why."""
    notes = []
    for size in part["sizes"]:
        for kind, said in (("skipped", ""), ("failed", "failed, "), ("wrong", "wrong, ")):
            for name, why in size[kind].items():
                notes.append(f"{TITLES[name]}, {size['label']}: {said}{why}")
    return notes


def other_tables(tables: dict[str, Any]) -> list[str]:
    writers = {"eager": eager, "compiled": compiled, "tensor": tensor}
    return [writers[name](part["numbers"]) for name, part in tables.items() if part.get("numbers")]


def eager(numbers: dict[str, Any]) -> str:
    seen = {name for case in numbers["cases"] for name in case["times"]}
    names = [name for name in ORDER if name in seen]
    rows = [
        [case["title"], *(timing(case["times"].get(name)) for name in names)]
        for case in numbers["cases"]
    ]
    return (
        f"## Small eager programs\n\n`benchmarks/eager.py`, threads: {numbers['threads']}.\n\n"
        + table(["", *(TITLES[name] for name in names)], rows)
    )


def compiled(numbers: dict[str, Any]) -> str:
    names = ["functrans", "functrans-numpy", "jax.jit", "torch", "numpy"]
    heads = ["jit native", "jit numpy", "JAX jit", "torch", "NumPy by hand"]
    rows = []
    for case in numbers.values():
        times, firsts = case["call"], case["first call"]
        ratio = None
        if "functrans" in times and "jax.jit" in times:
            ratio = times["functrans"]["median"] / times["jax.jit"]["median"]
        rows.append(
            [
                case["title"],
                *(timing(times.get(name)) for name in names),
                optional(ratio),
                optional_seconds(firsts.get("functrans")),
                optional_seconds(firsts.get("jax.jit")),
            ]
        )
    return (
        "## Compiled programs\n\n`benchmarks/compiled.py`, threads: one per core. The ratio "
        "is jit native divided by JAX jit.\n\n"
        + table(["", *heads, "ratio", "first call", "JAX's first call"], rows)
    )


def tensor(numbers: dict[str, Any]) -> str:
    rows = [
        [case["case"], seconds(case["functrans"]), seconds(case["torch"]), optional(case["ratio"])]
        for case in numbers["times"]
    ]
    rows += [
        [
            f"peak memory: {case['case']}",
            f"{case['functrans']:.0f} MB",
            f"{case['torch']:.0f} MB",
            optional(case["ratio"]),
        ]
        for case in numbers["memory"]
    ]
    return (
        "## Tensors\n\n`benchmarks/tensor.py`, float32, threads: 2. Best times of a forward and backward "
        "pass.\n\n" + table(["", "functrans Tensor", "torch", "ratio"], rows)
    )


def other_texts(texts: dict[str, Any]) -> list[str]:
    sections = []
    for name, part in texts.items():
        if part["text"]:
            title = name.replace("_", " ").capitalize()
            sections.append(
                f"## {title}\n\n`benchmarks/{name}.py` prints:\n\n```text\n{part['text']}\n```"
            )
    return sections


def errors(results: dict[str, Any]) -> list[str]:
    found = [
        f"- {name}: {part['error']}"
        for kind in ("problems", "tables", "texts")
        for name, part in results[kind].items()
        if "error" in part
    ]
    return ["## Errors\n\n" + "\n".join(found)] if found else []
