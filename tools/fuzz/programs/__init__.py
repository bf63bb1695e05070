"""Random programs: well-typed functions over NumPy, as source code, and stacks of transforms of them."""

from __future__ import annotations

from typing import Any

from tools.fuzz.programs.choosing import Chooser, Drawn, Seeded
from tools.fuzz.programs.program import Program
from tools.fuzz.programs.statements import KINDS
from tools.fuzz.programs.writer import RejectedError, Writer

__all__ = ["Chooser", "Drawn", "Program", "Seeded", "random_program"]


def random_program(chooser: Chooser) -> Program:
    """A random function of pytrees of arrays, and points around which it is smooth.

    Parameters
    ----------
    chooser : Chooser
        Makes all choices: `Seeded(seed)`, or `Drawn(draw)` for hypothesis.

    Examples
    --------
    >>> from tools.fuzz.programs import Seeded, random_program
    >>> program = random_program(Seeded(1))
    >>> program.source.startswith("def f0(x0")
    True
    """
    if not isinstance(chooser, Chooser):
        raise TypeError(f"random_program needs a Chooser, such as Seeded(1), not {chooser!r}")
    writer = Writer(chooser, narrow=chooser.chance(15))
    parameters, shared = _write_parameters(writer)
    wanted = 1 + chooser.below(7)
    # Rejected statements count as tries, so a program may be shorter than wanted, but takes no longer.
    for _ in range(3 * wanted):
        if len(writer.statements) >= wanted:
            break
        try:
            chooser.weighted(KINDS)(writer)
        except RejectedError:
            continue
    return writer.finished(parameters, shared, _results(writer))


def _shape(chooser: Chooser, lengths: list[int]) -> tuple[int, ...]:
    return tuple(chooser.pick(lengths) for _ in range(chooser.pick([1, 2, 0, 2, 1, 3])))


def _write_parameters(writer: Writer) -> tuple[tuple[Any, ...], frozenset[int]]:
    chooser = writer.chooser
    lengths = (
        [0, 2, 3] if chooser.chance(4) else chooser.pick([[2, 3], [3], [2], [1, 2, 3], [2, 4]])
    )
    parameters: list[Any] = []
    shared = set()

    def leaf(name: str, known: bool, kind: str = "") -> str:
        shape = _shape(chooser, lengths)
        if not kind:
            kind = "single" if writer.narrow and chooser.chance(60) else "double"
            if shape == () and not writer.narrow and chooser.chance(30):
                kind = "python"
        writer.add_leaf(name, shape, kind, known)
        return name

    for k in range(chooser.pick([1, 2, 2, 3])):
        known = k > 0 and chooser.chance(40)
        if known:
            shared.add(k)
        form = chooser.below(6)
        if form < 4:
            parameters.append(leaf(f"x{k}", known))
        elif form == 4:
            parameters.append({key: leaf(f"{key}{k}", known) for key in ("p", "q")})
        else:
            parameters.append((leaf(f"p{k}", known), [leaf(f"q{k}", known)]))
    if chooser.chance(12):
        k = len(parameters)
        shape = chooser.pick([(), (2,)])
        writer.add_leaf(f"x{k}", shape, "int", False)
        parameters.append(f"x{k}")
    if chooser.chance(30):
        kind = "single" if writer.narrow else "double"
        writer.add_constant("c0", _shape(chooser, lengths), kind)
    return tuple(parameters), frozenset(shared)


def _results(writer: Writer) -> Any:
    """The newest value, and some of those that no statement has read."""
    chooser = writer.chooser
    last = writer.floats()[0]
    made = [name for statement in writer.statements for name in statement.defines]
    unread = [n for n in reversed(writer.names) if n in made and n not in writer.used and n != last]
    names = [last, *(unread[: chooser.below(3)] if unread else [])]
    if len(names) == 1:
        return chooser.pick([last, last, (last,), {"y": last}])
    return chooser.pick([tuple(names), names, {f"y{k}": name for k, name in enumerate(names)}])
