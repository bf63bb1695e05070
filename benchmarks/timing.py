"""How all benchmarks measure time: contestants take turns in one run.

The benchmark that calls this says what is measured, and which contestants.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat

Thunk = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds per call, over `samples` samples of `calls_per_sample` calls each."""

    best: float
    median: float
    samples: int
    calls_per_sample: int
    quartiles: tuple[float, float]  # half of the samples lie between them

    @property
    def spread(self) -> float:
        """The interquartile range, as a fraction of the median."""
        return (self.quartiles[1] - self.quartiles[0]) / self.median


def measure(
    contestants: Mapping[str, Thunk],
    *,
    seconds: float = 1.0,
    min_samples: int = 5,
    sample_seconds: float = 2e-3,
    warmup_seconds: float = 0.1,
) -> dict[str, Timing]:
    """Time each contestant, one sample of each in turn.

    Turns, and an order that is shuffled from round to round, give every contestant the same share of
    whatever else the machine does meanwhile, and of each other's traces. A sample is a batch of calls that
    takes at least `sample_seconds`. If that is a single call, another one that is not timed goes before it:
    as in a batch, the function finds memory and caches as it leaves them itself. A contestant leaves once it
    has `min_samples` samples and has used `seconds`. The garbage collector runs before each sample and is off
    during it, for all alike.
    """
    names = list(contestants)
    order = random.Random(0)
    with _collector_off():
        calls = {
            name: _warm_up(contestants[name], sample_seconds, warmup_seconds) for name in names
        }
        samples: dict[str, list[float]] = {name: [] for name in names}
        spent = dict.fromkeys(names, 0.0)
        running = list(names)
        while running:
            order.shuffle(running)
            for name in list(running):
                gc.collect()
                if calls[name] == 1:
                    contestants[name]()
                elapsed = _sample(contestants[name], calls[name])
                samples[name].append(elapsed / calls[name])
                spent[name] += elapsed
                if len(samples[name]) >= min_samples and spent[name] >= seconds:
                    running.remove(name)
    return {
        name: Timing(
            best=min(samples[name]),
            median=statistics.median(samples[name]),
            samples=len(samples[name]),
            calls_per_sample=calls[name],
            quartiles=_quartiles(samples[name]),
        )
        for name in names
    }


def growth_exponent(sizes: list[int], times: list[float]) -> float:
    """The p of time ~ size**p, by least squares on logarithms."""
    slope, _ = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(seconds) for seconds in times]
    )
    return slope


def _quartiles(samples: list[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, high


def _sample(function: Thunk, calls: int) -> float:
    turns = repeat(None, calls)
    start = time.perf_counter()
    for _ in turns:
        function()
    return time.perf_counter() - start


def _warm_up(function: Thunk, sample_seconds: float, warmup_seconds: float) -> int:
    """Call the function until it is warm; return how many calls make one sample."""
    calls = 1
    spent = 0.0
    while True:
        elapsed = _sample(function, calls)
        spent += elapsed
        if elapsed >= sample_seconds:
            if spent >= warmup_seconds:
                return calls
        else:
            # Aim a little past the goal, so that a fast sample is still long enough.
            calls = max(calls + 1, min(10 * calls, int(1.2 * calls * sample_seconds / elapsed)))


@contextmanager
def _collector_off() -> Iterator[None]:
    """Collect garbage, freeze all live objects (mostly imports), and stop automatic collection."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
