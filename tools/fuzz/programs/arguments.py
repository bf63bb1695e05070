"""The arguments of random programs. Each function here writes them, and returns the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tools.fuzz.programs.choosing import Chooser
from tools.fuzz.programs.writer import Writer

# For each parameter, a pytree of the names of its leaves; and the parameters that are the same at all points.
Parameters = tuple[tuple[Any, ...], frozenset[int]]

_SHAPES = [(2, 3), (3, 3), (6,), (2, 1, 3), (2, 2, 2)]
# Around the widths of vectors and blocks of vectors.
_LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 65]
_LARGEST = 4000


def trees_of_small_arrays(writer: Writer) -> Parameters:
    """Up to four pytrees of numbers and small arrays, some of them the same at all points; and a constant."""
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


def _shape(chooser: Chooser, lengths: list[int]) -> tuple[int, ...]:
    return tuple(chooser.pick(lengths) for _ in range(chooser.pick([1, 2, 0, 2, 1, 3])))


def copied_array(writer: Writer) -> Parameters:
    """A small array; the program begins with a copy of it, and does not read the array itself again."""
    writer.add_leaf("x0", writer.chooser.pick(_SHAPES), "double", False)
    writer.names.remove("x0")
    writer.statement("v0 = x0.copy()", ["v0"], "copy")
    return ("x0",), frozenset()


def large_arrays(kinds: tuple[str, ...]) -> Callable[[Writer], Parameters]:
    """Up to three arrays of these kinds, which may be large; all broadcast to the shape of the first."""

    def write(writer: Writer) -> Parameters:
        chooser = writer.chooser
        shape: tuple[int, ...] = ()
        for _ in range(chooser.pick([1, 0, 1, 2, 2, 2, 3, 3])):
            room = _LARGEST // math.prod(shape)
            shape += (chooser.pick([n for n in _LENGTHS if n <= room]),)
        names = [f"x{k}" for k in range(1 + chooser.below(3))]
        for name in names:
            own = shape
            if name != "x0":
                own = tuple(chooser.pick([n, n, 1]) for n in shape)
                own = own[chooser.pick([0, 0, 0, len(own) // 2]) :]
            writer.add_leaf(name, own, chooser.pick(kinds), False)
        return tuple(names), frozenset()

    return write
