"""Which equations of a graph are drawn as one box: calls of the user's functions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from functrans.core.errors import OptionError, user_location
from functrans.drawing.texts import short_text
from functrans.graph.graph import Equation, Graph
from functrans.graph.scopes import FunctionCall

READABLE = 200  # boxes in one picture


class DrawnPart(NamedTuple):
    """Equations that are drawn as one box: neighbors in the order of the graph."""

    equations: list[Equation]
    name: str = ""  # of the function, if it is a call that is drawn as one box
    depth: int = 0  # of that call: its place in the scopes of the equations


def drawn_parts(graph: Graph, collapse: Any) -> list[DrawnPart]:
    """The boxes to draw a graph with; `collapse` is that of `Graph.draw`."""
    equations = graph.equations
    if collapse is False or collapse is None:
        return [DrawnPart([equation]) for equation in equations]
    if collapse == "auto":
        return _readable_parts(graph)
    if isinstance(collapse, (int, np.integer)) and collapse >= 1:  # True is 1
        return _by_depth(equations, int(collapse))
    names = [collapse] if isinstance(collapse, str) else collapse
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            'collapse must be "auto", True, False, a positive int (the depth of the calls that become '
            f"boxes) or names of functions, not {collapse!r}, at {user_location()}."
        )
    wanted = set(names)
    known = {call.name for equation in equations for call in equation.scope}
    if unknown := sorted(wanted - known):
        raise OptionError(
            f"collapse names {', '.join(map(repr, unknown))}, but the functions that were called while "
            f"this graph was traced are {', '.join(map(repr, sorted(known))) or 'not known'}, at "
            f"{user_location()}."
        )
    return _by_call(
        equations,
        [next((c for c in equation.scope if c.name in wanted), None) for equation in equations],
    )


def _readable_parts(graph: Graph) -> list[DrawnPart]:
    """As much as is readable: calls are opened while there is room, smallest first."""
    parts = _by_depth(graph.equations, 1)
    while True:
        closed: dict[tuple[str, int], list[DrawnPart]] = {}
        for part in parts:
            if part.name:  # all calls of one function are opened at once
                closed.setdefault((part.name, part.depth), []).append(part)
        inner = {
            id(part): _grouped(part.equations, part.depth + 1)
            for group in closed.values()
            for part in group
        }
        growth = {
            key: sum(len(inner[id(part)]) - 1 for part in group) for key, group in closed.items()
        }
        smallest = min(growth, key=growth.__getitem__, default=None)
        if smallest is None or len(parts) + growth[smallest] > READABLE:
            break
        parts = [
            small
            for part in parts
            for small in (inner[id(part)] if (part.name, part.depth) == smallest else [part])
        ]
    if len(parts) <= READABLE:
        return parts
    size = -(-len(parts) // READABLE)
    return [_joined(parts[k : k + size]) for k in range(0, len(parts), size)]


def _joined(parts: list[DrawnPart]) -> DrawnPart:
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(part.name or part.equations[0].primitive.name for part in parts)
    name = (
        f"{next(iter(names))} × {len(parts)}" if len(names) == 1 else short_text(", ".join(names))
    )
    return DrawnPart([equation for part in parts for equation in part.equations], name)


def _by_depth(equations: list[Equation], depth: int) -> list[DrawnPart]:
    """Calls at this depth as boxes; depth 0 is the call that all equations are in."""
    scopes = [equation.scope for equation in equations]
    shared = 0
    while scopes and all(len(s) > shared and s[shared] is scopes[0][shared] for s in scopes):
        shared += 1
    return _grouped(equations, shared + depth - 1)


def _grouped(equations: list[Equation], depth: int) -> list[DrawnPart]:
    """Equations of one call, at this depth of their scopes, share a box."""
    calls = [e.scope[depth] if len(e.scope) > depth else None for e in equations]
    return _by_call(equations, calls, depth)


def _by_call(
    equations: list[Equation], calls: list[FunctionCall | None], depth: int = 0
) -> list[DrawnPart]:
    """Neighbors in one call share a box. Only neighbors, so that there are no cycles."""
    parts = []
    pairs = zip(calls, equations, strict=True)
    for call, group in groupby(pairs, key=lambda pair: pair[0]):
        members = [equation for _, equation in group]
        if call is None or len(members) == 1:
            parts += [DrawnPart([equation]) for equation in members]
        else:
            parts.append(DrawnPart(members, call.name, depth))
    return parts
