"""torch.profiler and torch.autograd.profiler: counts and times of operations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from functrans.torch import registry, tensor
from functrans.torch.autograd.engine import PullbackWatch


class FunctionEventAvg:
    """All calls of one operation together; times in microseconds.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     _ = torch.ones(2, requires_grad=True).exp()
    >>> [event.count for event in prof.key_averages()]
    [1, 1, 1]
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call, in microseconds.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.autograd.profiler.profile() as prof:
        ...     _ = torch.ones(2, requires_grad=True).exp()
        >>> prof.key_averages()[0].cpu_time >= 0
        True
        """
        return self.cpu_time_total / self.count if self.count else 0.0


class EventList(list[FunctionEventAvg]):
    """A list of measured operations.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     _ = torch.ones(2, requires_grad=True).exp()
    >>> type(prof.key_averages()).__name__
    'EventList'
    """

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """A table of times, sorted by a column such as "cpu_time_total" or "count".

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.autograd.profiler.profile() as prof:
        ...     _ = torch.ones(2, requires_grad=True).exp()
        >>> "Name" in prof.key_averages().table(sort_by="cpu_time_total")
        True
        """
        rows = list(self)
        if sort_by is not None:
            field = sort_by.replace("cuda", "cpu").replace("device", "cpu")
            if not hasattr(FunctionEventAvg("x"), field):
                raise AttributeError(f"cannot sort by {sort_by!r}: use cpu_time_total or count")
            rows.sort(key=lambda row: getattr(row, field), reverse=True)
        total = sum(row.self_cpu_time_total for row in self) or 1.0
        heads = [
            "Name",
            "Self CPU %",
            "Self CPU",
            "CPU total %",
            "CPU total",
            "CPU time avg",
            "# of Calls",
        ]
        lines = [
            [
                row.key,
                f"{100 * row.self_cpu_time_total / total:.2f}%",
                _duration(row.self_cpu_time_total),
                f"{100 * row.cpu_time_total / total:.2f}%",
                _duration(row.cpu_time_total),
                _duration(row.cpu_time),
                str(row.count),
            ]
            for row in rows[: row_limit if row_limit >= 0 else None]
        ]
        widths = [max(len(line[k]) for line in [heads, *lines]) for k in range(len(heads))]
        rule = "  ".join("-" * width for width in widths)
        body = ["  ".join(t.rjust(w) for t, w in zip(line, widths, strict=True)) for line in lines]
        head = "  ".join(t.rjust(w) for t, w in zip(heads, widths, strict=True))
        return "\n".join(
            [rule, head, rule, *body, rule, f"Self CPU time total: {_duration(total)}", ""]
        )


def _duration(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


class profile:
    """Measure the operations inside, forward and backward.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.profiler.profile() as prof:
    ...     (x * 2).sum().backward()
    >>> "MulBackward0" in prof.key_averages().table(sort_by="cpu_time_total")
    True
    """

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        self.enabled = enabled
        self._averages: dict[str, FunctionEventAvg] = {}
        self._running: list[list[Any]] = []  # [name, start, time of calls inside]
        self._codes = _codes()
        self._before: Any = None

    def __enter__(self) -> profile:
        """Start measuring.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> prof = torch.profiler.profile()
        >>> _ = prof.start()
        >>> prof.stop()
        """
        if self.enabled:
            PullbackWatch.profiler = self
            self._before = sys.getprofile()
            sys.setprofile(self._event)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Stop measuring.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> prof = torch.profiler.profile()
        >>> _ = prof.start()
        >>> prof.stop()
        """
        if self.enabled:
            sys.setprofile(self._before)
            PullbackWatch.profiler = None
            self._running.clear()

    start, stop = __enter__, __exit__

    def step(self) -> None:
        """Mark the end of a step. This has no effect: all steps are measured.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.profiler.profile() as prof:
        ...     prof.step()
        """

    def _event(self, frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in self._codes:
            self._begin(_operation(frame), frame)
        elif event == "return" and self._running and self._running[-1][3] is frame:
            self._end()

    def _begin(self, name: str, frame: Any = None) -> None:
        self._running.append([name, perf_counter_ns(), 0, frame])

    def _end(self) -> None:
        name, start, inside, _ = self._running.pop()
        spent = perf_counter_ns() - start
        if self._running:
            self._running[-1][2] += spent
        average = self._averages.setdefault(name, FunctionEventAvg(name))
        average.count += 1
        average.cpu_time_total += spent / 1e3
        average.self_cpu_time_total += (spent - inside) / 1e3

    def _around(self, name: str, pull: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a pullback to measure it."""

        def measured(g: Any, saved: Any) -> Any:
            self._begin(name)
            try:
                return pull(g, saved)
            finally:
                self._end()

        return measured

    def key_averages(self, **options: Any) -> EventList:
        """The measured operations, with the calls of each summed up.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.autograd.profiler.profile() as prof:
        ...     _ = torch.ones(2, requires_grad=True).exp()
        >>> [event.key for event in prof.key_averages()]
        ['aten::requires_grad', 'aten::ones', 'aten::exp']
        """
        return EventList(self._averages.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum over all operations.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.autograd.profiler.profile() as prof:
        ...     _ = torch.ones(2, requires_grad=True).exp()
        >>> prof.total_average().count
        3
        """
        total = FunctionEventAvg("Total")
        for each in self._averages.values():
            total.count += each.count
            total.cpu_time_total += each.self_cpu_time_total
            total.self_cpu_time_total += each.self_cpu_time_total
        return total

    def table(self, **options: Any) -> str:
        """`key_averages().table(...)`.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> with torch.autograd.profiler.profile() as prof:
        ...     _ = torch.ones(2, requires_grad=True).exp()
        >>> "aten::exp" in prof.table()
        True
        """
        return self.key_averages().table(**options)


def _codes() -> frozenset[Any]:
    """The code objects of all functions that users see as operations."""
    functions = [*registry.FUNCTIONS.values(), *vars(tensor.Tensor).values()]
    return frozenset(
        f.__code__ for f in functions if hasattr(f, "__code__") and f.__name__ != "lift"
    )


def _operation(frame: Any) -> str:
    local = frame.f_locals
    primitive = local.get("primitive")
    function = local.get("function")
    if primitive is not None:
        name = primitive.name
    else:
        name = getattr(function, "__name__", None) or frame.f_code.co_name
    return f"aten::{name.strip('_')}"


class record_function:
    """Label a part of the program in the profile.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.profiler.profile() as prof, torch.profiler.record_function("doubling"):
    ...     _ = torch.ones(2) * 2
    >>> "doubling" in prof.key_averages().table()
    True
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._profiler: Any = None

    def __enter__(self) -> record_function:
        self._profiler = PullbackWatch.profiler
        if self._profiler is not None:
            self._profiler._begin(self.name)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._profiler is not None and self._profiler._running:
            self._profiler._end()


class ProfilerActivity:
    """The kinds of activity to measure: only the CPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.profiler.ProfilerActivity.CPU is not None
    True
    """

    CPU = "cpu"
    CUDA = "cuda"
