"""Sums into slices as slices of sums, so that every element of the result is written once.

The derivative of code with x[1:] and x[:-1] is a sum of two arrays, each padded with zeros. Along the axis,
the parts begin and end at a few positions; between two of them, the result is a sum of slices:

    zeros; out[:-1] += a; out[1:] += b   =   concatenate(a[:1], a[1:] + b[:-1], b[-1:])

A slice of a computed value is computed from slices of its operands. So this is done where that is cheap
arithmetic on values that are in memory anyway.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from functrans.compiler.native.lowering import operand_kinds
from functrans.compiler.passes import Rewriter
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import elementwise as ew
from functrans.ops import structure
from functrans.ops.indexing import ARRAY, index, scatter_sum

_CHEAP = frozenset({ew.add, ew.subtract, ew.multiply, ew.negative})
# How many operations may be repeated: for vectors, and for arrays with more axes, whose rows a kernel can
# begin one by one instead (see `Rows` in loops.py).
_OF_VECTORS, _OF_ROWS = 24, 6
_MOST_PIECES = 5
_WORTH = 1 << 12  # entries


def sums_of_slices(graph: Graph) -> Graph:
    """The graph with `scatter_sum` as `concatenate` where that is cheap. The last digits may differ."""
    return Rewriter(graph).run(_in_pieces)


def early_slices(graph: Graph) -> Graph:
    """The graph with a slice of a computed value computed from slices, where nothing else needs the value.

    Otherwise the value would be stored as a whole, and the slice copied from there.
    """
    return Rewriter(graph).run(_earlier)


def _earlier(walk: Rewriter, equation: Equation) -> Variable | None:
    if equation.primitive is not index:
        return None
    (x,) = equation.inputs[:1]
    found = _range(equation.params["template"], x.spec.shape)
    return None if found is None else _computed_slice(walk, x, *found)


def _computed_slice(
    walk: Rewriter, variable: Variable, axis: int, low: int, high: int
) -> Variable | None:
    """The slice of a value that only this slice needs; None if it is not an elementwise one."""
    origin = walk.origin.get(variable)
    if origin is None or walk.uses[variable] != 1 or operand_kinds(origin) is None:
        return None
    inputs = []
    for each in origin.inputs:
        own = axis - len(variable.spec.shape) + len(each.spec.shape)
        if own < 0 or each.spec.shape[own] == 1:
            inputs.append(each)
            continue
        template = (slice(None),) * own + (slice(low, high),)
        template += (slice(None),) * (len(each.spec.shape) - own - 1)
        inner = _computed_slice(walk, each, own, low, high)
        inputs.append(walk.emit(index, each, template=template) if inner is None else inner)
    return walk.emit(origin.primitive, *inputs, **origin.params)


def _in_pieces(walk: Rewriter, equation: Equation) -> Variable | None:
    if equation.primitive is not scatter_sum:
        return None
    (out,), shape = equation.outputs, equation.params["shape"]
    found = [_range(template, shape) for template in equation.params["templates"]]
    ranges = [each for each in found if each is not None]
    axes = {axis for axis, _, _ in ranges}
    if len(ranges) < len(found) or len(axes) != 1 or out.spec.size < _WORTH:
        return None
    (axis,) = axes
    places = sorted({place for _, *bounds in ranges for place in bounds})
    if places[0] or places[-1] != shape[axis] or len(places) > _MOST_PIECES + 1:
        return None
    counted: set[Variable] = set()
    for part, (_, start, stop) in zip(equation.inputs, ranges, strict=True):
        whole = (*shape[:axis], stop - start, *shape[axis + 1 :])
        if part.spec.shape != whole or part.spec.dtype != out.spec.dtype:
            return None
        if not _is_cheap(walk, part, out.spec.size, counted):
            return None
    if len(counted) > (_OF_VECTORS if len(shape) == 1 else _OF_ROWS):
        return None
    slicer, pieces = _Slicer(walk, out.spec.size), []
    for low, high in pairwise(places):
        total: Variable | None = None
        for part, (_, start, stop) in zip(equation.inputs, ranges, strict=True):
            if start <= low and high <= stop:
                piece = slicer.part(part, axis, low - start, high - start)
                total = piece if total is None else walk.emit(ew.add, total, piece)
        if total is None:  # no part covers this range
            return None
        pieces.append(total)
    return walk.emit(structure.concatenate, *pieces, axis=axis)


def _range(template: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(axis, start, stop) of an index that slices one axis and keeps the others."""
    if len(template) > len(shape) or not all(isinstance(entry, slice) for entry in template):
        return None
    bounds = [entry.indices(length) for entry, length in zip(template, shape, strict=False)]
    if any(step != 1 or stop <= start for start, stop, step in bounds):
        return None
    cut = [k for k, (start, stop, _) in enumerate(bounds) if (start, stop) != (0, shape[k])]
    return (cut[0], *bounds[cut[0]][:2]) if len(cut) == 1 else None


def _is_cheap(walk: Rewriter, variable: Variable, size: int, counted: set[Variable]) -> bool:
    """Whether slices of a value of the size of the result are cheap; counts the repeated operations."""
    equation = walk.origin.get(variable)
    if equation is None or variable in counted:
        return True
    if operand_kinds(equation) is None:  # in memory, or a view of a value in memory
        return ARRAY not in equation.params.get("template", ())
    if _is_small(variable, size):
        return True
    if equation.primitive not in _CHEAP:
        return False
    counted.add(variable)
    return all(_is_cheap(walk, each, size, counted) for each in equation.inputs)


def _is_small(variable: Variable, size: int) -> bool:
    """Whether a value may as well be stored in memory."""
    return bool(8 * variable.spec.size <= size)


class _Slicer:
    """Slices of values that make up a result of some size, each made once."""

    def __init__(self, walk: Rewriter, size: int) -> None:
        self.walk = walk
        self.size = size
        self.made: dict[tuple[Variable, int, int, int], Variable] = {}

    def part(self, variable: Variable, axis: int, low: int, high: int) -> Variable:
        """variable[..., low:high, ...]"""
        if (low, high) == (0, variable.spec.shape[axis]):
            return variable
        key = (variable, axis, low, high)
        if key not in self.made:
            self.made[key] = self._part(variable, axis, low, high)
        return self.made[key]

    def _part(self, variable: Variable, axis: int, low: int, high: int) -> Variable:
        equation = self.walk.origin.get(variable)
        small = _is_small(variable, self.size)
        if equation is None or equation.primitive not in _CHEAP or small:
            template = (*[slice(None)] * axis, slice(low, high))
            template += (slice(None),) * (len(variable.spec.shape) - len(template))
            return self.walk.emit(index, variable, template=template)
        inputs = []
        for each in equation.inputs:
            own = axis - len(variable.spec.shape) + len(each.spec.shape)
            spread = own < 0 or each.spec.shape[own] == 1
            inputs.append(each if spread else self.part(each, own, low, high))
        return self.walk.emit(equation.primitive, *inputs)
