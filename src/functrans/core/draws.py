"""Detects random numbers that are drawn while a function is traced, since they are drawn only once.

NumPy does not report draws. But a draw changes the state of a generator, so the states of all generators
that the function can reach are compared before and after: NumPy's and Python's global ones, and those in
closures, globals, default values, attributes and containers. A generator that the function creates itself
draws the same numbers in every call, unless it is created without a seed, which requests entropy.
"""

from __future__ import annotations

import _random
import ctypes
import dis
import random
import sys
import threading
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.random import bit_generator as _numpys_entropy

from functrans.core import errors
from functrans.core.mentions import mentions_of
from functrans.core.reachable import Reachable

# Sources of random numbers.


class ObservedGenerator:
    """A generator, and its state when this object was made."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator
        self.state = _state(generator)

    def has_drawn(self) -> bool:
        return bool(_state(self.generator) != self.state)

    @property
    def is_global(self) -> bool:
        return any(self.generator is one for one in _global_generators())

    def __str__(self) -> str:
        kind = type(self.generator)
        library = "Python" if isinstance(self.generator, random.Random) else "NumPy"
        return (
            f"{library}'s global generator" if self.is_global else f"a {kind.__name__} of {library}"
        )


class StartingStates:
    """The states of all generators that a function can reach, for a run that may have to be repeated."""

    def __init__(self, function: Any) -> None:
        found = [*_global_generators(), *Reachable((function,)).generators]
        self.states = [(generator, _full_state(generator)) for generator in found]

    def restore(self) -> None:
        """Let the next run draw the numbers of the first one."""
        for generator, state in self.states:
            if isinstance(generator, random.Random):
                generator.setstate(state)
            elif isinstance(generator, np.random.RandomState):
                generator.set_state(state)
            else:
                getattr(generator, "bit_generator", generator).state = state


def _full_state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return getattr(generator, "bit_generator", generator).state


def _state(generator: Any) -> Any:
    """The state of a generator, as something to compare."""
    if isinstance(generator, random.Random):
        if not _IS_CPYTHON:
            return generator.getstate()
        # The second of two normally distributed numbers is kept for the next call.
        return _memory(generator, _random.Random), getattr(generator, "gauss_next", None)
    if isinstance(generator, np.random.RandomState):
        if not _IS_CPYTHON:
            return repr(generator.get_state())
        return _memory(generator, np.random.RandomState), _state(_bits_of(generator))
    bits = _bits_of(generator)
    kind = type(bits)
    if not _IS_CPYTHON or not kind.__module__.startswith("numpy."):
        return repr(bits.state)
    seeds = bits.seed_seq  # it counts the generators that were made from this one
    return _memory(bits, kind), None if seeds is None else _memory(seeds, type(seeds))


_IS_CPYTHON = sys.implementation.name == "cpython"


def _bits_of(generator: Any) -> Any:
    """What holds the state of NumPy's generators: several of them may share one."""
    return getattr(generator, "bit_generator", None) or getattr(
        generator, "_bit_generator", generator
    )


def _memory(value: Any, kind: Any) -> bytes:
    """The bytes of an object without its header: the states of NumPy's and Python's generators are there.

    Reading the state itself takes thirty times as long.
    """
    head = object.__basicsize__
    return ctypes.string_at(id(value) + head, kind.__basicsize__ - head)


def _global_generators() -> tuple[Any, Any]:
    return np.random.mtrand._rand, random._inst


# Entropy. A generator created without a seed gets it from NumPy's module under this name.


class _Recorders(threading.local):
    def __init__(self) -> None:
        self.active: list[Draws] = []


_recorders = _Recorders()
_installing = threading.Lock()
_installed = 0
_entropy: Any = _numpys_entropy.randbits  # type: ignore[attr-defined]


def _noting_entropy(bits: int) -> Any:
    if _recorders.active and not _is_importing() and not _is_legacy_seed():
        note_draw("a generator without a seed")
    return _entropy(bits)


def _is_legacy_seed() -> bool:
    """Whether np.random.RandomState is called with a seed: it requests entropy first, and drops it."""
    frame = errors.user_frame()
    if frame is None:
        return False
    names = frame.f_code.co_names
    values = map(frame.f_globals.get, names)
    if "RandomState" not in names and all(v is not np.random.RandomState for v in values):
        return False
    steps = dis.get_instructions(frame.f_code)
    return any(step.offset == frame.f_lasti and bool(step.arg) for step in steps)


def _is_importing() -> bool:
    """Whether a module that the function imports created the generator."""
    frame: Any = sys._getframe(2)
    while frame is not None and not errors.is_ours(frame.f_code):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _install(change: int) -> None:
    global _installed
    with _installing:
        _installed += change
        found = _noting_entropy if _installed else _entropy
        _numpys_entropy.randbits = found  # type: ignore[attr-defined]


_next_time = count(1).__next__


def time_now() -> int:
    """A growing number: draws from functrans generators older than a trace happen only once."""
    return _next_time()


def note_draw(name: str, since: int = 0) -> None:
    """Record that a generator, seeded at the time `since`, is drawn from at this line."""
    for recorder in _recorders.active:
        if since < recorder.started:
            recorder.noted.setdefault(name, errors.user_location())


# Around a trace.


class Draws:
    """The draws of a function in a `with` block, from generators that it and its arguments can reach."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function = function
        self.reachable = Reachable((function, *arguments))
        self.noted: dict[str, str] = {}  # where something was drawn
        self.found: list[ObservedGenerator] = []
        self.started = 0

    def __enter__(self) -> Draws:
        every = (*self.reachable.generators, *_global_generators())
        found = {id(_bits_of(generator)): generator for generator in every}  # each state once
        self.sources = list(map(ObservedGenerator, found.values()))
        self.started = time_now()
        _recorders.active.append(self)
        _install(1)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        _install(-1)
        if self in _recorders.active:
            _recorders.active.remove(self)
        self.found = [source for source in self.sources if source.has_drawn()]

    def warn(self, transform: str) -> None:
        """Warn of draws, at the line that drew, if it is known."""
        for source in self.found:
            self._look_for(source)
        for name, place in self.noted.items():
            where = f", at {place}" if place else ""
            warnings.warn(
                f"{transform}: {errors.describe(self.function)} draws random numbers from {name} while it "
                f"is traced{where}. They are drawn once, and every call uses the same ones. Use "
                "functrans.random with a key that is an argument, or pass the numbers as an argument.",
                errors.RandomnessWarning,
                stacklevel=errors.user_depth(),
            )

    def _look_for(self, source: ObservedGenerator) -> None:
        lines = mentions_of(source.generator, self.reachable)
        if any(method in _SEEDING for method, _ in lines):
            return  # from a seed in the function: the same in every call
        if source.is_global and not lines and threading.active_count() > 1:
            return  # another thread may have drawn from it
        self.noted.setdefault(str(source), ", and at ".join([place for _, place in lines[:3]]))


_SEEDING = frozenset({"seed", "set_state", "setstate"})
