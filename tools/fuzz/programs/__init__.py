"""Random programs: well-typed functions over NumPy, as source code, and stacks of transforms of them."""

from __future__ import annotations

from typing import Any

from tools.fuzz.programs.choosing import Chooser, Drawn, Seeded
from tools.fuzz.programs.program import Program
from tools.fuzz.programs.styles import MIXED, Style, in_place, whole_arrays
from tools.fuzz.programs.writer import RejectedError, Writer

__all__ = ["Chooser", "Drawn", "Program", "Seeded", "Style", "in_place"]
__all__ += ["random_program", "whole_arrays"]


def random_program(chooser: Chooser, style: Style = MIXED, length: int | None = None) -> Program:
    """A random function of pytrees of arrays, and points at which it can be evaluated.

    Parameters
    ----------
    chooser : Chooser
        Makes all choices: `Seeded(seed)`, or `Drawn(draw)` for hypothesis.
    style : Style, optional
        The sort of program; by default, one that is smooth around all points.
    length : int, optional
        The number of statements; by default, it is random. A shorter program of the same seed consists of the
        first statements of a longer one.

    Examples
    --------
    >>> from tools.fuzz.programs import Seeded, random_program
    >>> program = random_program(Seeded(1))
    >>> program.source.startswith("def f0(x0")
    True
    """
    if not isinstance(chooser, Chooser):
        raise TypeError(f"random_program needs a Chooser, such as Seeded(1), not {chooser!r}")
    writer = Writer(chooser, chooser.chance(style.narrow), style.limits)
    parameters, shared = style.arguments(writer)
    wanted = 1 + chooser.below(style.longest) if length is None else length
    begun = len(writer.statements)
    # Rejected statements count as tries, so a program may be shorter than wanted, but takes no longer.
    for _ in range(3 * wanted):
        if len(writer.statements) >= begun + wanted:
            break
        try:
            chooser.weighted(style.statements)(writer)
        except RejectedError:
            continue
    results = () if style.watched else _results(writer, style.inner)
    return writer.finished(parameters, shared, results, style.watched)


def _results(writer: Writer, inner: bool) -> Any:
    """The newest value, and some of those that no statement has read; with `inner`, also of the others."""
    chooser = writer.chooser
    last = writer.operands()[0]
    made = [name for statement in writer.statements for name in statement.defines]
    unread = [n for n in reversed(writer.names) if n in made and n not in writer.used and n != last]
    names = [last, *(unread[: chooser.below(3)] if unread else [])]
    if inner:
        others = [name for name in made if name not in names]
        names += chooser.some(others, 0)[: chooser.below(5)]
    if len(names) == 1:
        return chooser.pick([last, last, (last,), {"y": last}])
    return chooser.pick([tuple(names), names, {f"y{k}": name for k, name in enumerate(names)}])
