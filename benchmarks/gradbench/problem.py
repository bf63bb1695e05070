"""What a problem of GradBench is to the benchmark: a function, data, and the derivative that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.timing import Thunk


@dataclass(frozen=True)
class Size:
    """One instance. `n` is its place on the axis of growth, or None if it is no part of that series."""

    label: str
    arguments: Mapping[str, int]
    work: float  # operations, up to a factor: what its time is predicted from
    n: float | None = None


@dataclass(frozen=True)
class Problem:
    """`objective(lib, x, *data)` in the terms of a contestant; `data(**arguments)` gives (x, *data)."""

    name: str
    title: str
    kind: str  # the method of a contestant that makes the derivative
    derivative: str  # what that is, for people
    objective: Callable[..., Any]
    data: Callable[..., tuple[Any, ...]]
    by_hand: Callable[..., Any]
    sizes: tuple[Size, ...]  # in the order of their work
    tiny: Mapping[str, int]  # arguments for tests
    growth: str  # what n counts
    tolerance: float = 1e-7  # between two libraries
    coarse: float = 1e-4  # between a library and finite differences
    same_algorithm: bool = True  # whether `by_hand` does what a derivative of the objective does
    unrolled: bool = False  # whether a compiler meets every operation, and takes longer for it

    def function(self, lib: Any, arguments: tuple[Any, ...]) -> Thunk:
        thunk: Thunk = lib.value(partial(self.objective, lib), *lib.native(arguments))
        return thunk

    def differentiate(self, lib: Any, arguments: tuple[Any, ...]) -> Thunk:
        """The thunk of the derivative; by hand it is this problem's own."""
        if lib.name == "numpy":
            return lambda: self.by_hand(*arguments)
        make = getattr(lib, self.kind)
        thunk: Thunk = make(partial(self.objective, lib), *lib.native(arguments))
        return thunk

    def sizes_for(self, quick: bool) -> tuple[Size, ...]:
        """All, or the two smallest of the series along which n grows."""
        series = tuple(size for size in self.sizes if size.n is not None)
        return series[:2] if quick else self.sizes
