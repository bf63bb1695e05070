"""Shrinking of probes by their choices: fewer and smaller numbers make a simpler script.

Every choice is a number, and smaller numbers stand for simpler things. So one way to shrink works for all
kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.fuzz.probes.probe import Probe, RejectedError, Write, failure_of, sort_of
from tools.fuzz.programs.choosing import Chooser

_RETRIES = 20


class Recorded(Chooser):
    """Makes the choices of another chooser, and notes them in `made`."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self.made: list[int] = []

    def below(self, count: int) -> int:
        number = self._chooser.below(count)
        self.made.append(number)
        return number


class Replayed(Chooser):
    """Repeats earlier choices; makes the simplest ones when those are used up."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._rest = iter(choices)
        self.made: list[int] = []

    def below(self, count: int) -> int:
        number = min(next(self._rest, 0), count - 1)
        self.made.append(number)
        return number


def written(write: Write, chooser: Chooser) -> tuple[Probe, list[int]]:
    """A random probe of a kind, and its choices. If choices do not fit together, it tries again."""
    for _ in range(_RETRIES):
        recorded = Recorded(chooser)
        try:
            return write(recorded), recorded.made
        except RejectedError:
            continue
    raise RejectedError(f"{write.__module__} rejects {_RETRIES} probes in a row")


def shrunk(
    write: Write, choices: list[int], probe: Probe, error: Exception, tries: int = 300
) -> tuple[Probe, Exception]:
    """The smallest probe that fails in the same way, among the first `tries` smaller ones."""
    best, size = choices, _size(probe, choices)
    improved = True
    while improved and tries > 0:
        improved = False
        for candidate in _smaller(best):
            if tries <= 0:
                break
            replayed = Replayed(candidate)
            try:
                other = write(replayed)
            except RejectedError:
                continue
            if not _size(other, replayed.made) < size:
                continue
            tries -= 1
            found = failure_of(other)
            if found is not None and sort_of(found) == sort_of(error):
                probe, error, improved = other, found, True
                best, size = replayed.made, _size(other, replayed.made)
                break
    return probe, error


def _size(probe: Probe, choices: list[int]) -> tuple[int, int, list[int]]:
    return len(probe.text.splitlines()), len(probe.text), choices


def _smaller(choices: list[int]) -> Iterator[list[int]]:
    """The choices without some of them, or with one of them smaller."""
    for length in (16, 8, 4, 2, 1):
        for start in range(0, len(choices) - length + 1, max(1, length // 2)):
            yield choices[:start] + choices[start + length :]
    for place, number in enumerate(choices):
        for lower in dict.fromkeys((0, number // 2, number - 1)):
            if 0 <= lower < number:
                yield [*choices[:place], lower, *choices[place + 1 :]]
