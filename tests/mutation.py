"""The mutation check: every rule of every primitive is broken on purpose, and some test must notice.

    python tests/mutation.py                      all rules against the tests of laws and of control flow
    python tests/mutation.py --sample 50 -k sin   some of them, against the tests with that in their name

First the tests run once, while it is noted which rules each of them uses. Then each rule is broken in one way
at a time, and the fastest tests that use it run until one fails. What survives is a hole in the net.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

import functrans
from functrans.core.primitive import Elementwise, HigherOrder, Primitive

HERE = Path(__file__).parent
# The files whose tests hold rules against numbers.
NET = [
    "test_laws.py",
    "test_laws_numpy.py",
    "test_fft.py",
    "test_linalg.py",
    "test_collectives.py",
    "test_checkpoint.py",
    "test_structured_control_flow.py",
    "test_custom_derivatives.py",
    "test_assignment_rules.py",
    "test_solutions.py",
    "test_scipy.py",
    "test_scipy_special.py",
    "test_random.py",
]
TRIES = 12  # tests that may notice one mutation
Damage = Callable[[Any], Any]


# What is done to a tangent, or to a cotangent.

DAMAGES: dict[str, Damage] = {
    "sign": lambda value: -value,
    "factor": lambda value: 1.25 * value,
    "missing": lambda value: 0 * value,
    "axis": lambda value: np.flip(value) if np.ndim(value) else value,
}


def damaged(values: Any, place: int, damage: Damage) -> Any:
    """A tuple of tangents with one of them damaged; None stands for zero and stays."""
    values = list(values)
    if place < len(values) and values[place] is not None:
        values[place] = damage(values[place])
    return tuple(values)


def damaged_pull(pull: Any, place: int, damage: Damage) -> Any:
    """A pullback that damages the cotangent of one of its arguments, counted among the tracked ones."""

    def wrapped(cotangent: Any, saved: Any) -> Any:
        pulled = pull(cotangent, saved)
        if isinstance(pulled, (tuple, list)):
            return damaged(pulled, place, materialized(damage))
        return materialized(damage)(pulled) if place == 0 and pulled is not None else pulled

    if hasattr(pull, "needs"):
        wrapped.needs = pull.needs  # type: ignore[attr-defined]
    return wrapped


def materialized(damage: Damage) -> Damage:
    """The same for what may be a value with a place, which the sweep adds up by itself."""

    def apply(value: Any) -> Any:
        if hasattr(value, "value") and type(value).__name__.endswith("Deposit"):
            changed = damage(value.value)
            value.value = changed
            return value
        return damage(value)

    return apply


@dataclass(frozen=True)
class Mutation:
    """One rule, broken in one way."""

    name: str
    primitive: Primitive = field(repr=False, compare=False)
    slot: str  # "jvp", "vjp" or "batch"
    place: int
    kind: str

    def __str__(self) -> str:
        return f"{self.name}.{self.slot}[{self.place}] {self.kind}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        primitive = self.primitive
        slots = {slot: getattr(primitive, slot) for slot in _slots(primitive)}
        try:
            getattr(self, f"_break_{self.slot}")(primitive, DAMAGES[self.kind])
            yield
        finally:
            for slot, value in slots.items():
                setattr(primitive, slot, value)

    def _break_jvp(self, primitive: Any, damage: Damage) -> None:
        if isinstance(primitive, HigherOrder):
            push = primitive.push

            def wrapped_push(args: Any, tangents: Any, params: Any) -> Any:
                outs, pushed = push(args, tangents, params)
                return outs, damaged(pushed, self.place, damage)

            primitive.push = wrapped_push
            return
        if isinstance(primitive, Elementwise):
            primitive.pushes = tuple(self._broken_push(p, k, damage) for k, p in _masks(primitive))
        jvp = primitive.jvp

        def wrapped(out: Any, args: Any, tangents: Any, params: Any) -> Any:
            return jvp(out, args, damaged(tangents, self.place, damage), params)

        if not isinstance(primitive, Elementwise):  # whose jvp reads `pushes`
            primitive.jvp = wrapped

    def _broken_push(self, push: Any, mask: int, damage: Damage) -> Any:
        if push is None or not mask >> self.place & 1:
            return push

        def wrapped(out: Any, *rest: Any) -> Any:
            arity = len(rest) // 2
            return push(out, *rest[:arity], *damaged(rest[arity:], self.place, damage))

        return wrapped

    def _break_vjp(self, primitive: Any, damage: Damage) -> None:
        if isinstance(primitive, HigherOrder):
            trace = primitive.trace

            def wrapped_trace(mask: int, args: Any, params: Any) -> Any:
                outs, pull, saved = trace(mask, args, params)
                place = _among_tracked(mask, self.place)
                if pull is None or place is None:
                    return outs, pull, saved
                return outs, damaged_pull(pull, place, damage), saved

            primitive.trace = wrapped_trace
            return
        if hasattr(primitive, "rules"):
            rules = []
            for mask, rule in enumerate(primitive.rules):
                place = _among_tracked(mask, self.place)
                if rule is not None and place is not None:
                    save, pull = rule
                    rule = save, damaged_pull(pull, place, damage)
                rules.append(rule)
            primitive.rules = tuple(rules)
        vjp = primitive.vjp

        def wrapped(mask: int, out: Any, args: Any, params: Any) -> Any:
            found = vjp(mask, out, args, params)
            place = _among_tracked(mask, self.place)
            if found is None or place is None:
                return found
            pull, saved = found
            return damaged_pull(pull, place, damage), saved

        if not isinstance(primitive, Elementwise):  # whose vjp reads `rules`
            primitive.vjp = wrapped

    def _break_batch(self, primitive: Any, damage: Damage) -> None:
        batch = primitive.batch

        def lanes(value: Any) -> Any:
            if self.kind == "axis":  # lanes in another order
                return value[::-1] if np.ndim(value) else value
            return damage(value) if np.asarray(value[:0]).dtype.kind != "b" else ~value

        def wrapped(*args: Any) -> Any:
            out = batch(*args)
            return tuple(map(lanes, out)) if isinstance(out, (tuple, list)) else lanes(out)

        primitive.batch = wrapped


def _masks(primitive: Any) -> list[tuple[int, Any]]:
    return list(enumerate(primitive.pushes))


def _slots(primitive: Any) -> list[str]:
    names = ["jvp", "vjp", "batch"]
    if isinstance(primitive, Elementwise):
        names.append("pushes")
    if isinstance(primitive, HigherOrder):
        names += ["push", "trace"]
    return [*names, "rules"] if hasattr(primitive, "rules") else names


def _among_tracked(mask: int, place: int) -> int | None:
    """The position of an argument among those in a mask."""
    if not mask >> place & 1:
        return None
    return (mask & ((1 << place) - 1)).bit_count()
