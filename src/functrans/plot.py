"""Figures of derivatives and their cost, with matplotlib.

Each function draws into the given Axes, or into a new figure, and returns the Axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.errors import InputTypeError, MissingPackageError, user_location
from functrans.core.tree import with_article

__all__ = ["growth", "matrix", "memory_curve", "sparsity", "speed"]


def __dir__() -> list[str]:
    return __all__


# Easy to distinguish, even with color blindness (Okabe and Ito).
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
_MARKERS = "osD^vPX"
_GRID = {"color": "#d9dee3", "linewidth": 0.8}


def _axes(ax: Any, width: float, height: float) -> Any:
    """The given Axes, or those of a new figure."""
    try:
        from matplotlib import axes, pyplot
    except ImportError:
        raise MissingPackageError(
            "functrans.plot needs matplotlib, which is not installed. Install it with "
            '`pip install "functrans[plot]"`.'
        ) from None
    if ax is None:
        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    elif not isinstance(ax, axes.Axes):
        raise InputTypeError(
            f"functrans.plot: ax must be one Axes of matplotlib, not {with_article(ax)}, at "
            f"{user_location()}. Pass one of pyplot.subplots()."
        )
    return ax


def _named(values: Any, what: str) -> Mapping[str, Any]:
    """Check that the data is a dict with a name for each series."""
    if not isinstance(values, Mapping):
        raise InputTypeError(
            f"functrans.plot: {what} must be a dict with a name for each, not {with_article(values)}, at "
            f"{user_location()}."
        )
    return values


def _plain(ax: Any) -> None:
    """Remove the lines at the top and the right, which show nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def _as_matrix(array: Any, what: str) -> np.ndarray[Any, Any]:
    """The entries in rows and columns: an array of more axes has outputs first, then inputs."""
    found = np.asarray(array)
    if found.ndim == 0 or found.dtype.kind not in "biufc":
        raise InputTypeError(
            f"functrans.plot.{what} draws one array of numbers with at least one axis, not "
            f"{with_article(array)}, at {user_location()}. Choose one leaf of a tree of Jacobians."
        )
    if found.ndim <= 2:
        return np.atleast_2d(found)
    outputs = found.ndim // 2
    return found.reshape(int(np.prod(found.shape[:outputs])), -1)


def sparsity(jacobian: Any, ax: Any = None) -> Any:
    """Draw which entries of a Jacobian are not zero.

    Parameters
    ----------
    jacobian : array
        A matrix. In an array with more axes, the first half are outputs.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if it is not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd, plot
    >>> ax = plot.sparsity(jacfwd(np.diff)(np.arange(5.0)))
    >>> ax.get_title()
    '8 of 20 entries are not zero (40%)'
    """
    entries = _as_matrix(jacobian, "sparsity") != 0
    ax = _axes(ax, *_figure_size(*entries.shape))
    from matplotlib.colors import ListedColormap

    colors = ListedColormap(["#f3f5f7", _COLORS[0]])
    _show_cells(ax, entries, "output", "input", cmap=colors, vmin=0, vmax=1)
    count = int(entries.sum())
    ax.set_title(f"{count} of {entries.size} entries are not zero ({count / entries.size:.0%})")
    return ax


def matrix(hessian: Any, ax: Any = None) -> Any:
    """Draw the entries of a Hessian or a Jacobian as colors: red above zero, blue below.

    Parameters
    ----------
    hessian : array
        A matrix. In an array with more axes, the first half are rows.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if it is not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import hessian, plot
    >>> ax = plot.matrix(hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0])))
    >>> float(ax.images[0].get_clim()[1])
    6.0
    """
    entries = _as_matrix(hessian, "matrix")
    if entries.dtype.kind == "c":
        raise InputTypeError(
            f"functrans.plot.matrix draws real numbers, but the entries are complex, at {user_location()}. "
            "Draw np.real, np.imag or np.abs of them."
        )
    entries = entries.astype(float)
    width, height = _figure_size(*entries.shape)
    ax = _axes(ax, width + 0.8, height)
    finite = np.abs(entries[np.isfinite(entries)])
    largest = float(finite.max(initial=0.0)) or 1.0
    image = _show_cells(ax, entries, "row", "column", cmap="RdBu_r", vmin=-largest, vmax=largest)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85, pad=0.03)
    bar.outline.set_visible(False)
    if entries.size <= 36:
        for (i, j), entry in np.ndenumerate(entries):
            dark = abs(entry) > 0.6 * largest
            ax.text(
                j, i, f"{entry:.3g}", ha="center", va="center", color="white" if dark else "#1d2733"
            )
    return ax


def _figure_size(rows: int, columns: int) -> tuple[float, float]:
    """Inches, in the proportions of the matrix where they are not extreme."""
    longest = max(rows, columns)
    width, height = 4.6 * columns / longest, 4.6 * rows / longest
    return max(width, 2.6) + 0.6, max(height, 1.6) + 0.7


def _show_cells(
    ax: Any, entries: np.ndarray[Any, Any], row_name: str, column_name: str, **colors: Any
) -> Any:
    """A matrix in colors, with lines between the entries where they are few enough to be seen."""
    from matplotlib.ticker import MaxNLocator

    rows, columns = entries.shape
    squarish = max(rows, columns) <= 6 * min(rows, columns)
    aspect = "equal" if squarish else "auto"
    image = ax.imshow(entries, interpolation="nearest", aspect=aspect, **colors)
    ax.set_xlabel(column_name)
    ax.set_ylabel(row_name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(False)  # a user's style may have grid lines, which would run through the entries
    if max(rows, columns) <= 40:
        ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.5)
        ax.tick_params(which="minor", length=0)
    return image


def growth(ns: Sequence[float], series: Mapping[str, Sequence[float]], ax: Any = None) -> Any:
    """Plot how costs grow with size: both axes are logarithmic, and the legend has the fitted powers.

    Parameters
    ----------
    ns : sequence of float
        The sizes.
    series : dict
        For each name the cost at each size, such as seconds.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if it is not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from functrans import plot
    >>> ax = plot.growth([1, 2, 4, 8], {"matrix product": [1.0, 8.0, 64.0, 512.0]})
    >>> ax.get_legend().get_texts()[0].get_text()
    'matrix product, slope 3.00'
    """
    return _power_laws(ns, series, ax, "n", "cost")


def memory_curve(
    depths: Sequence[float], series: Mapping[str, Sequence[float]], ax: Any = None
) -> Any:
    """Plot memory against depth: both axes are logarithmic, and the legend has the fitted powers.

    A plain backward pass keeps every step, so its slope is 1; with checkpoints it is about 1/2.

    Parameters
    ----------
    depths : sequence of float
        The numbers of steps or layers.
    series : dict
        For each name the bytes at each depth.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if it is not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from functrans import plot
    >>> ax = plot.memory_curve(
    ...     [10, 40, 160], {"all kept": [1e6, 4e6, 16e6], "roots": [1e6, 2e6, 4e6]}
    ... )
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['all kept, slope 1.00', 'roots, slope 0.50']
    """
    ax = _power_laws(depths, series, ax, "depth", "memory")
    from matplotlib.ticker import FuncFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda size, _: _bytes_text(size)))
    return ax


def _power_laws(
    ns: Sequence[float],
    series: Mapping[str, Sequence[float]],
    ax: Any,
    x_label: str,
    y_label: str,
) -> Any:
    sizes = np.atleast_1d(np.asarray(ns, float))
    costs = {name: np.asarray(given, float) for name, given in _named(series, "series").items()}
    for name, given in costs.items():
        if given.shape != (sizes.size,) or sizes.shape != (sizes.size,) or sizes.size < 2:
            raise InputTypeError(
                f"functrans.plot: the series {name!r} has {given.size} values for {sizes.size} sizes, at "
                f"{user_location()}. Pass one value for each size, and at least two sizes."
            )
        if not all(np.all((numbers > 0) & (numbers < np.inf)) for numbers in (sizes, given)):
            raise InputTypeError(
                f"functrans.plot: the sizes, or the values of {name!r}, are not all positive and "
                f"finite, at {user_location()}. Both axes are logarithmic: leave zeros out."
            )
    ax = _axes(ax, 6.0, 4.2)
    for k, (name, given) in enumerate(costs.items()):
        color, marker = _COLORS[k % len(_COLORS)], _MARKERS[k % len(_MARKERS)]
        # log cost = power * log n + log factor
        power, factor = np.polyfit(np.log(sizes), np.log(given), 1)
        ends = np.array([sizes.min(), sizes.max()])
        ax.plot(ends, np.exp(factor) * ends**power, color=color, linewidth=1.2, alpha=0.55)
        label = f"{name}, slope {power:.2f}"
        ax.plot(sizes, given, marker, color=color, markersize=6, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _readable_ticks(ax.xaxis)
    _readable_ticks(ax.yaxis)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(True, which="major", **_GRID)
    ax.set_axisbelow(True)
    ax.legend(frameon=False)
    _plain(ax)
    return ax


def _readable_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis: 1, 2 and 5 of each decade where they are few, and plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def speed(ratios: Mapping[str, float], ax: Any = None, baseline: str | None = None) -> Any:
    """Plot times relative to a baseline, as horizontal bars with a line at 1.

    Parameters
    ----------
    ratios : dict
        For each name its ratio to the baseline; or, with `baseline`, its time.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if it is not given.
    baseline : str, optional
        The name whose time is 1. All others are divided by it.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from functrans import plot
    >>> ax = plot.speed({"NumPy": 2.0, "grad": 5.0, "jit": 1.0}, baseline="NumPy")
    >>> [float(bar.get_width()) for bar in ax.patches]
    [2.5, 0.5]
    """
    times = {name: float(value) for name, value in _named(ratios, "ratios").items()}
    if baseline is not None:
        if baseline not in times:
            raise InputTypeError(
                f"functrans.plot.speed: the baseline {baseline!r} is not one of "
                f"{', '.join(map(str, times))}, at {user_location()}."
            )
        unit = times.pop(baseline)
        times = {name: value / unit for name, value in times.items()}
    ax = _axes(ax, 6.0, 0.42 * len(times) + 1.1)
    places = np.arange(len(times))
    widths = list(times.values())
    colors = [_COLORS[2] if width <= 1 else _COLORS[0] for width in widths]
    ax.barh(places, widths, color=colors, height=0.62)
    for place, width in zip(places, widths, strict=True):
        ax.annotate(
            f"{width:.2f}×" if width < 10 else f"{width:.0f}×",
            (width, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        )
    ax.axvline(1.0, color="#1d2733", linewidth=1.2, linestyle="--", zorder=1.5)
    ax.set_yticks(places, list(times))
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * max([1.0, *widths]))
    ax.set_xlabel("time, relative to " + (baseline or "the baseline"))
    ax.grid(True, axis="x", **_GRID)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    _plain(ax)
    return ax


def _bytes_text(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
