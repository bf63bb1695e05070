"""The sources of the choices in a random program: a fast generator, or hypothesis, which can shrink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Chooser:
    """Makes choices. Every choice is a number below a bound, and smaller numbers stand for simpler things.

    Examples
    --------
    >>> from tools.fuzz.programs import Chooser
    >>> class First(Chooser):
    ...     def below(self, count):
    ...         return 0
    >>> First().pick(["simple", "less so"])
    'simple'
    """

    def below(self, count: int) -> int:
        """A number from 0 up to but not including `count`."""
        raise NotImplementedError

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the simplest should come first."""
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of the options (weight, option)."""
        place = self.below(sum(weight for weight, _ in options))
        for weight, option in options:
            if place < weight:
                return option
            place -= weight
        raise AssertionError("weights are positive")

    def chance(self, percent: float) -> bool:
        """True with this probability in percent; False is the simpler answer."""
        return self.below(1000) >= 1000 - 10 * percent

    def some(self, options: Sequence[T], least: int = 1) -> list[T]:
        """At least `least` of the options, in their order."""
        dropped = self.below(max(1, len(options) - least + 1))
        kept = list(options)
        for _ in range(dropped):
            kept.pop(self.below(len(kept)))
        return kept


class Seeded(Chooser):
    """Makes choices with a seeded generator.

    Examples
    --------
    >>> from tools.fuzz.programs import Seeded
    >>> Seeded(1).below(10) == Seeded(1).below(10)
    True
    """

    def __init__(self, *seed: int) -> None:
        # A string seed is hashed, so that neighboring seeds have nothing in common.
        self._random = Random(":".join(map(str, seed)))

    def below(self, count: int) -> int:
        return self._random.randrange(count)


class Simplest(Chooser):
    """Always makes the simplest choice."""

    def below(self, count: int) -> int:
        return 0


class Drawn(Chooser):
    """Makes choices with hypothesis.

    Parameters
    ----------
    draw : callable
        `draw(low, high)` gives an integer within these bounds, such as
        `lambda low, high: data.draw(st.integers(low, high))`.

    Examples
    --------
    >>> from tools.fuzz.programs import Drawn
    >>> Drawn(lambda low, high: high).below(10)
    9
    """

    def __init__(self, draw: Callable[[int, int], Any]) -> None:
        self.draw = draw

    def below(self, count: int) -> int:
        number: int = self.draw(0, count - 1)
        return number
