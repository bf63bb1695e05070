"""Time and memory against n, on logarithmic axes, with the fitted slopes. Needs matplotlib."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.contestants import CONTESTANTS

ABSENT = "no charts: matplotlib is not installed (pip install matplotlib, or the extra `plot`)"
# functrans is drawn with solid lines; every library has its own color.
COLORS = {
    "functrans": "#c0392b",
    "functrans-native": "#e67e22",
    "functrans-numpy": "#d4ac0d",
    "functrans-tensor": "#8e44ad",
    "numpy": "#111111",
    "autograd": "#16a085",
    "jax": "#7fb3d5",
    "jax-jit": "#1f618d",
    "torch-backward": "#1e8449",
    "torch-func": "#82e0aa",
    "differences": "#999999",
}


def is_available() -> bool:
    return find_spec("matplotlib") is not None


def draw(results: dict[str, Any], folder: Path) -> dict[str, Path]:
    """One picture for each problem with two sizes or more; where they are, by the problem's name."""
    if not is_available():
        return {}
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "functrans"  # the same picture has the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text, which is smaller than its shapes
    drawn = {}
    for name, problem in results["problems"].items():
        if sum(size["n"] is not None for size in problem["sizes"]) >= 2:
            folder.mkdir(parents=True, exist_ok=True)
            drawn[name] = folder / f"{name}.svg"
            draw_problem(problem, drawn[name])
    return drawn


def draw_problem(problem: dict[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(14, 4.6), layout="constrained")
    for panel, quantity, unit in zip(panels, ("time", "memory"), ("seconds", "bytes"), strict=True):
        for name, color in COLORS.items():
            series = figures.points(problem, name, quantity)
            if series:
                slope = figures.slope(problem, name, quantity)
                fitted = "" if slope is None else f", n^{slope:.2f}"
                panel.loglog(
                    *zip(*series, strict=True),
                    marker="o",
                    markersize=3,
                    color=color,
                    linestyle="-" if name.startswith("functrans") else "--",
                    label=CONTESTANTS[name].title + fitted,
                )
        panel.set_title(f"{problem['title']}: {quantity} of the {problem['derivative']}", size=9)
        panel.set_xlabel(f"n, {problem['growth']}")
        panel.set_ylabel(unit)
        panel.grid(True, which="major", alpha=0.3)
        if panel.lines:
            panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        else:
            panel.set_axis_off()  # not measured
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
