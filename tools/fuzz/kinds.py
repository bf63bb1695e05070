"""The kinds of cases that the fuzzer judges: random programs under stacks of transforms, and probes of laws.

A kind judges the cases that a chooser makes, counts them, and yields a `Finding` for each that fails. That is
all the fuzzer knows about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from tools.fuzz.cases import Failure, Tally, judge_program
from tools.fuzz.probes import PROBES
from tools.fuzz.probes.probe import Probe, Write, failure_of, script, sort_of
from tools.fuzz.probes.replaying import shrunk as shrunk_probe
from tools.fuzz.probes.replaying import written
from tools.fuzz.programs.choosing import Chooser, Seeded
from tools.fuzz.scripts import script as program_script
from tools.fuzz.shrinking import shrunk as shrunk_program
from tools.fuzz.shrinking import signature

# The weight of programs relative to probes. A probe is one case; a program is about seven.
_PROGRAMS = 8


class Finding(Protocol):
    """A case that fails: the sort of failure, a smaller case of the same sort, and its script."""

    @property
    def sort(self) -> str: ...

    def shrunk(self) -> Finding: ...

    def script(self, origin: str) -> str: ...


@dataclass(frozen=True)
class Kind:
    """A kind of case, and how often it is judged relative to the others."""

    name: str
    weight: int
    _judge: Callable[[Chooser, Any, Tally, dict[str, float]], Iterator[Finding]]

    def judge(
        self, chooser: Chooser, library: Any, tally: Tally, rates: dict[str, float]
    ) -> Iterator[Finding]:
        """Judge the cases that a chooser makes; counts cases and seconds, and yields those that fail."""
        cases, started = tally.cases, perf_counter()
        found = list(self._judge(chooser, library, tally, rates))
        tally.seconds[self.name] += perf_counter() - started
        tally.count("kinds", [self.name] * (tally.cases - cases))
        tally.programs += 1
        yield from found


@dataclass(frozen=True)
class ProgramFinding:
    """A random program and a stack of transforms on which an oracle disagrees."""

    failure: Failure
    library: Any

    @property
    def sort(self) -> str:
        return f"{signature(self.failure.error)}, {self.failure.error.oracle}"

    def shrunk(self) -> ProgramFinding:
        return ProgramFinding(shrunk_program(self.failure, self.library), self.library)

    def script(self, origin: str) -> str:
        return program_script(self.failure, self.library, origin)


@dataclass(frozen=True)
class ProbeFinding:
    """A probe of a broken law, and the choices that it was written from."""

    kind: str
    write: Write
    choices: list[int]
    probe: Probe
    error: Exception

    @property
    def sort(self) -> str:
        return f"{self.kind}, {sort_of(self.error)}"

    def shrunk(self) -> ProbeFinding:
        probe, error = shrunk_probe(self.write, self.choices, self.probe, self.error)
        return ProbeFinding(self.kind, self.write, self.choices, probe, error)

    def script(self, origin: str) -> str:
        return script(self.probe, self.error, origin)


def _judge_programs(
    chooser: Chooser, library: Any, tally: Tally, rates: dict[str, float]
) -> Iterator[Finding]:
    for failure in judge_program(chooser, library, tally, rates):
        yield ProgramFinding(failure, library)


def _probing(name: str, write: Write) -> Callable[..., Iterator[Finding]]:
    def judge(
        chooser: Chooser, library: Any, tally: Tally, rates: dict[str, float]
    ) -> Iterator[Finding]:
        probe, choices = written(write, chooser)
        tally.cases += 1
        tally.count(name, probe.features)
        error = failure_of(probe)
        if error is not None:
            yield ProbeFinding(name, write, choices, probe, error)

    return judge


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("programs", _PROGRAMS, _judge_programs),
        *(Kind(name, weight, _probing(name, write)) for name, (weight, write) in PROBES.items()),
    )
}


def kind_of(seed: int, number: int, only: Sequence[str] = ()) -> Kind:
    """The kind of the case with this number: one of those named in `only`, or of all."""
    kinds = [KINDS[name] for name in only or KINDS]
    # Use other choices than those that make the case, so that the case does not depend on `only`.
    return Seeded(seed, number, 0).weighted([(kind.weight, kind) for kind in kinds])
