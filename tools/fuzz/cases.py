"""Cases of the fuzzer: a program, under several stacks of transforms, each judged at every depth."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.fuzz.judging import RATES, DisagreementError, Judge
from tools.fuzz.nests import leaves
from tools.fuzz.programs import random_program
from tools.fuzz.programs.choosing import Chooser
from tools.fuzz.programs.layers import LayerWriter
from tools.fuzz.programs.program import Program
from tools.fuzz.programs.stack import Stack

# The number of stacks that a program is judged under, and their depths.
_STACKS = 3
_DEPTHS = [1, 2, 2, 3, 3, 3, 4, 5]
_LARGEST_RESULT = 150


@dataclass(frozen=True)
class Failure:
    """A case on which an oracle disagrees, or that raises an exception."""

    program: Program
    layers: tuple[Any, ...]
    error: DisagreementError

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(layer.kind for layer in self.layers)


@dataclass
class Tally:
    """Counts of the cases judged."""

    cases: int = 0
    programs: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def count(self, category: str, names: Sequence[str]) -> None:
        self.counts.setdefault(category, Counter()).update(names)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.programs += other.programs
        for category, counts in other.counts.items():
            self.counts.setdefault(category, Counter()).update(counts)
        for kind, seconds in other.seconds.items():
            self.seconds[kind] += seconds


def judge_program(
    chooser: Chooser, library: Any, tally: Tally, rates: dict[str, float] = RATES
) -> Iterator[Failure]:
    """Judge a random program under random stacks; counts cases, and yields those that fail."""
    # Random programs divide by zero, and use deprecated functions.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = random_program(chooser)
        tally.count("statements", program.kinds)
        for _ in range(_STACKS):
            yield from _judge_stack(program, chooser, library, tally, rates)


def _judge_stack(
    program: Program, chooser: Chooser, library: Any, tally: Tally, rates: dict[str, float]
) -> Iterator[Failure]:
    stack = Stack(program, library)
    writer = LayerWriter(chooser, program)
    for _ in range(chooser.pick(_DEPTHS)):
        if sum(np.size(leaf) for leaf in leaves(stack.result)) > _LARGEST_RESULT:
            return
        stack.push(writer.layer(stack))
        judge = Judge(stack, chooser, rates)
        tally.cases += 1
        try:
            judge.judge()
        except DisagreementError as error:
            tally.count("failures", [error.oracle])
            yield Failure(program, tuple(stack.layers), error)
            return  # the layers above a wrong one are wrong too
        tally.count("transforms", [stack.kinds[-1]])
        tally.count("depths", [str(len(stack.layers))])
        tally.count("agreed", judge.agreed)
        tally.count("undecided", judge.undecided)
        if len(set(judge.agreed)) < 2:
            tally.count("verdicts", ["fewer than two oracles could decide"])


def restacked(program: Program, kinds: Sequence[str], chooser: Chooser, library: Any) -> Stack:
    """A stack of layers of the given kinds, with the simplest choice for everything else."""
    stack = Stack(program, library)
    writer = LayerWriter(chooser, program)
    for k, kind in enumerate(kinds):
        stack.push(writer.layer(stack, kind))
        if k < len(kinds) - 1:
            stack.result = stack.own[f"f{k + 1}"](*stack.points[-1][0])
    return stack
