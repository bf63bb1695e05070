"""Bounds of Python integers in the bodies of loops.

A Python integer has any number of digits, a register has 64 bits. A counter that a loop carries is known to
stay small, and so is what is computed from it. Python integers whose bounds are known are native; they stay
below 2^53, so that each is one float64 as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from functrans.compiler.native.kinds import is_python_integer
from functrans.graph.graph import Graph, Variable
from functrans.ops import elementwise as ew
from functrans.ops import structure

Bounds = tuple[int, int]

_LARGEST = 1 << 53
KEPT: Bounds = (-(1 << 52), 1 << 52)  # of integers that a loop has kept in an array
_FLAG: Bounds = (0, 1)
_ROUNDS = 1 << 52  # more than a loop can run through in a month


def bounded(graph: Graph, known: Mapping[Variable, Bounds]) -> dict[Variable, Bounds] | None:
    """The bounds of all Python integers of a graph; None if one of them has none, or too large ones."""
    found = {**known, **constant_bounds(graph.constants)}
    if not all(map(_is_small, found.values())):
        return None
    if any(is_python_integer(v.spec) and v not in found for v in graph.inputs):
        return None
    for equation in graph.equations:
        for out in equation.outputs:
            if not is_python_integer(out.spec):
                continue
            rule = _RULES.get(equation.primitive)
            given = [_FLAG if v.spec.dtype.kind == "b" else found.get(v) for v in equation.inputs]
            bounds = None if rule is None or None in given else rule(*given)
            if bounds is not None and _is_small(bounds):
                found[out] = bounds
            elif len(equation.outputs) == 1:
                return None
            # Otherwise it is the last count of a loop: what reads it is not native.
    return found


def bounds_of_counter(
    body: Graph,
    fixed: int,
    states: Sequence[Variable],
    known: Mapping[Variable, Bounds],
    length: int | None,
) -> dict[Variable, Bounds] | None:
    """The bounds of the Python integers that a loop carries, or None.

    `states` are their initial values and `known` their bounds; the loop runs `length` times, or for as long
    as it takes.
    """
    rounds = _ROUNDS if length is None else length
    steps = _steps(body)
    found: dict[Variable, Bounds] = {}
    for state, variable, following in zip(states, body.inputs[fixed:], body.outputs, strict=False):
        if not is_python_integer(variable.spec):
            continue
        initial = known.get(state)
        origin, step = steps.get(following, (None, 0))
        if initial is None or origin is not variable:
            return None
        low, high = initial
        found[variable] = (low + min(step, 0) * rounds, high + max(step, 0) * rounds)
    return found if all(map(_is_small, found.values())) else None


def constant_bounds(constants: Mapping[Variable, Any]) -> dict[Variable, Bounds]:
    """The bounds of the constants that are Python integers."""
    return {
        variable: (int(value), int(value))
        for variable, value in constants.items()
        if is_python_integer(variable.spec)
    }


def _is_small(bounds: Bounds) -> bool:
    return -_LARGEST < bounds[0] <= bounds[1] < _LARGEST


def _steps(graph: Graph) -> dict[Variable, tuple[Variable, int]]:
    """The Python integers that are an input plus a constant."""
    constants = constant_bounds(graph.constants)
    found = {v: (v, 0) for v in graph.inputs if is_python_integer(v.spec)}
    for equation in graph.equations:
        if equation.primitive not in (ew.add, ew.subtract):
            continue
        x, y = equation.inputs
        sign = 1 if equation.primitive is ew.add else -1
        if x in found and y in constants:
            origin, step = found[x]
            found[equation.outputs[0]] = origin, step + sign * constants[y][0]
        elif sign == 1 and x in constants and y in found:
            origin, step = found[y]
            found[equation.outputs[0]] = origin, step + constants[x][0]
    return found


def _multiplied(x: Bounds, y: Bounds) -> Bounds:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _joined(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), max(x[1], y[1])


def _quotient(x: Bounds, y: Bounds) -> Bounds:
    """Of x // y: no larger than x. That y is 0 is noticed when it is."""
    most = max(abs(x[0]), abs(x[1]))
    return (0 if x[0] >= 0 and y[0] >= 0 else -most, most)


def _remainder(x: Bounds, y: Bounds) -> Bounds:
    """Of x % y: it has the sign of y."""
    return min(y[0], 0), max(y[1], 0)


_RULES: dict[Any, Callable[..., Bounds]] = {
    ew.add: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    ew.subtract: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    ew.multiply: _multiplied,
    ew.square: lambda x: _multiplied(x, x),
    ew.floor_divide: _quotient,
    ew.remainder: _remainder,
    ew.negative: lambda x: (-x[1], -x[0]),
    ew.positive: lambda x: x,
    ew.absolute: lambda x: (0, max(abs(x[0]), abs(x[1]))),
    ew.maximum: _joined,
    ew.minimum: _joined,
    structure.where: lambda mask, x, y: _joined(x, y),
    structure.copy: lambda x: x,
    structure.stop_gradient: lambda x: x,
}
