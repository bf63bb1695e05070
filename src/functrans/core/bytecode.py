"""The instructions of functions, one load or store at a time.

Python 3.13 joins two loads or stores of local variables in one instruction.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

# Instructions whose code begins where that of the value begins which they take: `f` in f(x), `a` in a.b.
_AFTER_A_LOAD = frozenset({"PUSH_NULL", "LOAD_ATTR", "LOAD_METHOD"})


class Instruction(NamedTuple):
    """An instruction, with the line and columns of the code that it is for, where they are known."""

    name: str
    argument: Any
    text: str  # the argument, as `dis` shows it
    offset: int
    line: int | None
    column: int | None
    end: int | None
    # For the second of two that are joined, where the code of the first begins.
    after: int | None = None


def steps(code: CodeType) -> Iterator[Instruction]:
    """The instructions of a function, those that are joined as two."""
    instructions = list(dis.get_instructions(code))
    following: list[Any] = [*instructions[1:], None]
    for each, later in zip(instructions, following, strict=True):
        at = each.positions
        line, column, end = (
            (None,) * 3 if at is None else (at.lineno, at.col_offset, at.end_col_offset)
        )
        if not isinstance(each.argval, tuple) or "_FAST_" not in each.opname:
            yield Instruction(
                each.opname, each.argval, each.argrepr, each.offset, line, column, end
            )
            continue
        first, second = _parts(each.opname)
        yield Instruction(first, each.argval[0], each.argval[0], each.offset, line, column, end)
        # Only the place of the first is known. Some instructions tell where the second one begins.
        known = later is not None and later.opname in _AFTER_A_LOAD and later.positions is not None
        start = later.positions.col_offset if known else None
        name = each.argval[1]
        yield Instruction(second, name, name, each.offset, line, start, None, column)


def _parts(name: str) -> tuple[str, str]:
    """STORE_FAST and LOAD_FAST for STORE_FAST_LOAD_FAST, and so on."""
    middle = max(name.find("_LOAD_FAST", 1), name.find("_STORE_FAST", 1))
    return name[:middle], name[middle + 1 :]
