"""A problem of GradBench, as the benchmark sees it: a function, data, and the derivative to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.timing import Thunk


@dataclass(frozen=True)
class Size:
    """One instance. `n` is its position on the axis of sizes, or None if it is not part of that series."""

    label: str
    arguments: Mapping[str, int]
    work: float  # operations, up to a factor, to predict its time
    n: float | None = None


@dataclass(frozen=True)
class Problem:
    """`objective(lib, x, *data)` in the terms of a contestant; `data(**arguments)` gives (x, *data)."""

    name: str
    title: str
    kind: str  # the method of a contestant that makes the derivative
    derivative: str  # its description
    objective: Callable[..., Any]
    data: Callable[..., tuple[Any, ...]]
    by_hand: Callable[..., Any]
    sizes: tuple[Size, ...]  # in the order of their work
    tiny: Mapping[str, int]  # arguments for tests
    growth: str  # what n counts
    tolerance: float = 1e-7  # between two libraries
    coarse: float = 1e-4  # between a library and finite differences
    same_algorithm: bool = True  # whether `by_hand` does the work of a derivative of the objective
    unrolled: bool = False  # whether a compiler sees every operation, and takes longer for it

    def function(self, lib: Any, arguments: tuple[Any, ...]) -> Thunk:
        thunk: Thunk = lib.value(partial(self.objective, lib), *lib.native(arguments))
        return thunk

    def differentiate(self, lib: Any, arguments: tuple[Any, ...]) -> Thunk:
        """The thunk of the derivative; the contestant "by hand" uses this problem's formula."""
        if lib.name == "numpy":
            return lambda: self.by_hand(*arguments)
        make = getattr(lib, self.kind)
        thunk: Thunk = make(partial(self.objective, lib), *lib.native(arguments))
        return thunk

    def sizes_for(self, quick: bool) -> tuple[Size, ...]:
        """All, or the two smallest of the series along which n grows."""
        series = tuple(size for size in self.sizes if size.n is not None)
        return series[:2] if quick else self.sizes
