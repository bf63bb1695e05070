"""profile: how often each primitive runs, how long it takes and how much memory it touches.

A function runs on watched values. Everything it does, and everything that transforms inside it do, ends in
primitives on plain arrays, which are timed one by one.
"""

from __future__ import annotations

import html
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np

from functrans.core.errors import OptionError, user_location
from functrans.core.evaluate import compute
from functrans.core.shapes import ArraySpec, spec_of
from functrans.interpreters.tape import sweep
from functrans.interpreters.watch import Watch
from functrans.transforms.arguments import LATER, check_callable
from functrans.transforms.functions import P, transformed


@overload
def profile(f: np.ufunc) -> Callable[..., Profile]: ...
@overload
def profile(f: Callable[P, Any]) -> Callable[P, Profile]: ...
@overload
def profile() -> Callable[[Callable[P, Any]], Callable[P, Profile]]: ...
def profile(f: Callable[..., Any] = LATER) -> Any:
    """Return a function that takes the arguments of f, runs it once and returns a `Profile`.

    Every primitive on values that depend on the arguments is timed where it is evaluated, including those of
    transforms inside f and their backward passes. So profile(grad(loss))(x) shows what the gradient of a
    loss does. A jitted function runs operation by operation, as optimized.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, profile
    >>> result = profile(grad(lambda x: np.sum(np.sin(x))))(np.zeros(3))
    >>> result.value
    array([1., 1., 1.])
    >>> print(result.table(sort_by="name"))
    primitive      phase     calls    time  share    bytes
    ...
    sin            forward       1 ...
    """
    if f is LATER:
        return profile
    f = check_callable(f, "profile")

    def profiled(*args: Any, **kwargs: Any) -> Profile:
        profiler = _Profiler(f)
        start = time.perf_counter_ns()
        value = profiler.run(f, args, kwargs)
        stop = time.perf_counter_ns()
        name = getattr(f, "__name__", type(f).__name__)
        return Profile(value, name, start, stop, profiler.events)

    return transformed(profiled, f, profile, "The profile of one call of {f}.")


class Event(NamedTuple):
    """One primitive that was evaluated; times are those of time.perf_counter_ns."""

    primitive: str
    phase: str  # "forward" or "backward"
    start: int
    stop: int
    bytes: int  # of the arrays it read and wrote
    results: tuple[ArraySpec, ...]
    thread: int


class Row(NamedTuple):
    """All evaluations of one primitive in one phase."""

    primitive: str
    phase: str
    calls: int
    seconds: float
    bytes: int


class Profile:
    """The result of `profile(f)(*args)`.

    value: the result of f.
    seconds: the time of the whole call, including the Python code around the primitives.
    events: every evaluation of a primitive, in order.
    """

    def __init__(self, value: Any, name: str, start: int, stop: int, events: list[Event]) -> None:
        self.value = value
        self.name = name
        self.seconds = (stop - start) * 1e-9
        self.events = events
        self._start = start
        self._stop = stop

    def rows(self, sort_by: str = "time") -> list[Row]:
        """One row for each primitive and phase, by "time", "calls", "bytes" or "name"."""
        if sort_by not in _ORDERS:
            choices = ", ".join(f'"{order}"' for order in _ORDERS)
            raise OptionError(
                f"sort_by must be one of {choices}, not {sort_by!r}, at {user_location()}."
            )
        sums: dict[tuple[str, str], list[int]] = {}
        for event in self.events:
            total = sums.setdefault((event.primitive, event.phase), [0, 0, 0])
            total[0] += 1
            total[1] += event.stop - event.start
            total[2] += event.bytes
        rows = [Row(*key, calls, ns * 1e-9, size) for key, (calls, ns, size) in sums.items()]
        return sorted(rows, key=_ORDERS[sort_by])

    def table(self, sort_by: str = "time") -> str:
        """The rows as text, with a row for their sum, and the share of the time that they explain."""
        cells = self._cells(sort_by)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        return "\n".join([*lines, self._summary()])

    def chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file for chrome://tracing, Perfetto and similar tools."""
        process = os.getpid()
        whole = {"name": self.name, "cat": "call", "ts": 0.0, "tid": threading.get_ident()}
        whole["dur"] = (self._stop - self._start) / 1e3
        events = [{**whole, "ph": "X", "pid": process}]
        events += [
            {
                "name": event.primitive,
                "cat": event.phase,
                "ph": "X",
                "ts": (event.start - self._start) / 1e3,
                "dur": (event.stop - event.start) / 1e3,
                "pid": process,
                "tid": event.thread,
                "args": {"bytes": event.bytes, "results": list(map(str, event.results))},
            }
            for event in self.events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        head, *body = [[html.escape(cell) for cell in line] for line in self._cells("time")]
        share = head.index("share")

        def line(cells: list[str]) -> str:
            parts = [f"<td>{cell}</td>" for cell in cells]
            # The share is also shown as a bar behind its number.
            bar = f"linear-gradient(90deg, #9ecae199 {cells[share]}, transparent {cells[share]})"
            parts[share] = f'<td style="background: {bar}">{cells[share]}</td>'
            return f"<tr>{''.join(parts)}</tr>"

        rows = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>", *map(line, body)]
        return f"<table>{''.join(rows)}</table><p>{html.escape(self._summary())}</p>"

    def _cells(self, sort_by: str) -> list[list[str]]:
        rows = self.rows(sort_by)
        total = Row("total", "", len(self.events), self._inside(), sum(r.bytes for r in rows))
        lines = [["primitive", "phase", "calls", "time", "share", "bytes"]]
        for row in (*rows, total):
            share = row.seconds / total.seconds if total.seconds else 0.0
            figures = [_seconds(row.seconds), f"{share:.0%}", _size(row.bytes)]
            lines.append([row.primitive, row.phase, str(row.calls), *figures])
        return lines

    def _inside(self) -> float:
        return sum(event.stop - event.start for event in self.events) * 1e-9

    def _summary(self) -> str:
        rest = _seconds(self.seconds - self._inside())
        return f"{self.name} took {_seconds(self.seconds)}, of which {rest} outside of primitives"


_ORDERS: dict[str, Callable[[Row], Any]] = {
    "time": lambda row: (-row.seconds, row.primitive),
    "calls": lambda row: (-row.calls, row.primitive),
    "bytes": lambda row: (-row.bytes, row.primitive),
    "name": lambda row: (row.primitive, row.phase != "forward"),
}


class _Profiler(Watch):
    """Records every primitive that it evaluates."""

    __slots__ = ("events",)

    transform = "profile"

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.events: list[Event] = []

    def evaluate(self, primitive: Any, values: list[Any], params: dict[str, Any]) -> Any:
        start = time.perf_counter_ns()
        if self.bottom:
            out = primitive.impl(*values, **params)
        else:
            out = compute(primitive, *values, **params)
        stop = time.perf_counter_ns()
        results = tuple(map(spec_of, out if primitive.outputs else (out,)))
        size = sum([_bytes(value) for value in (*values, *results)])
        thread = threading.get_ident()
        self.events.append(Event(primitive.name, _phase(), start, stop, size, results, thread))
        return out


_SWEEP = sweep.__code__
_RUN = Watch.run.__code__


def _phase() -> str:
    """Whether a backward pass is on the stack. Searching is slow, but costs nothing when not profiling."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code is not _RUN:
        if frame.f_code is _SWEEP:
            return "backward"
        frame = frame.f_back
    return "forward"


def _bytes(value: Any) -> int:
    if type(value) is np.ndarray:
        return value.nbytes
    spec = spec_of(value)
    return spec.size * spec.dtype.itemsize


def _seconds(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
