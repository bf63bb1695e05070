"""The styles of random programs: the statements they consist of, their arguments, and their limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.fuzz.programs import statements
from tools.fuzz.programs.arguments import (
    Parameters,
    copied_array,
    large_arrays,
    trees_of_small_arrays,
)
from tools.fuzz.programs.changes import Changes
from tools.fuzz.programs.program import STAGING
from tools.fuzz.programs.writer import SMALL, Limits, Writer


@dataclass(frozen=True)
class Style:
    """A style of random programs.

    statements: functions that write a statement, each with its weight.
    arguments:  writes the arguments.
    longest:    the largest number of statements.
    narrow:     how many programs compute in single precision in part, in percent.
    inner:      whether programs return values that later statements read, which a compiler has to keep.
    watched:    whether programs return all arrays as they are after every statement.
    """

    statements: Sequence[tuple[int, Callable[[Writer], None]]]
    arguments: Callable[[Writer], Parameters]
    limits: Limits = SMALL
    longest: int = 7
    narrow: int = 0
    inner: bool = False
    watched: bool = False


# Everything that the fuzzer judges: smooth functions of pytrees, with control flow and transforms inside.
MIXED = Style(statements.KINDS, trees_of_small_arrays, narrow=15)


def in_place(keep_order: bool = False, scalars: bool = False) -> Style:
    """Views, copies and changes in place of small arrays, all of which can be seen after every statement.

    With `keep_order`, some arrays are in Fortran order. With `scalars`, arrays are made of scalars, and
    arrays without axes are changed in all ways.
    """
    limits = Limits(points=3, smooth=False, size=24, value=1e6)
    changes = Changes(keep_order, smallest=0 if scalars else 1)
    return Style([(1, changes.statement)], copied_array, limits, longest=12, watched=True)


def whole_arrays(*kinds: str) -> Style:
    """Operations on whole arrays, which may be large: what a compiler fuses, views and reuses.

    The arguments are of the kinds "double", "single", "int64", "int32" or "bool".
    """
    limits = Limits(
        points=1,
        smooth=False,
        size=20_000,
        least=1,
        value=1e4,
        kinds="fib",
        needs=frozenset({STAGING}),
    )
    return Style(_WHOLE, large_arrays(kinds), limits, longest=12, inner=True)


_WHOLE = [
    (4, statements.unary),
    (8, statements.binary),
    (3, statements.indexing),
    (4, statements.shaping),
    (6, statements.reduction),
    (1, statements.along_axis),
    (3, statements.product),
]
