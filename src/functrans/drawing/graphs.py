"""Graphs as diagrams: what becomes a box, and what is put together in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import run_equations
from functrans.core.shapes import ArraySpec
from functrans.drawing.diagram import Diagram
from functrans.drawing.kinds import kind_of
from functrans.drawing.picture import Drawing, scrolling
from functrans.graph.graph import Equation, Graph, Variable, fitting
from functrans.graph.printing import format_param, is_written_out, variable_names

READABLE = 200  # boxes in one picture
_LONGEST = 34  # characters in a line of a box


class Part:
    """Equations that are drawn as one box: neighbors in the order of the graph."""

    def __init__(self, equations: list[Equation], name: str = "") -> None:
        self.equations = equations
        self.name = name  # of the function, if it is a call that is drawn as one box


def draw_graph(graph: Graph, collapse: Any = "auto", show_values: Any = None) -> Drawing:
    """What `Graph.draw` does."""
    values = None if show_values is None else _values(graph, show_values)
    return Drawing(_diagram(graph, _parts(graph, collapse), values))


def graph_page(graph: Graph) -> str:
    """The picture of a graph and its text, for notebooks."""
    text = (
        "<details><summary>as text</summary>"
        f'<pre style="line-height: 1.3">{escape(str(graph))}</pre></details>'
    )
    return f"<div>{scrolling(draw_graph(graph).svg)}{text}</div>"


# Which equations share a box.


def _parts(graph: Graph, collapse: Any) -> list[Part]:
    equations = graph.equations
    if collapse is False or collapse is None:
        return [Part([equation]) for equation in equations]
    if collapse == "auto":
        return _readable_parts(graph)
    if isinstance(collapse, (int, np.integer)) and collapse >= 1:  # True is 1
        return _by_depth(equations, int(collapse))
    names = [collapse] if isinstance(collapse, str) else collapse
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise errors.OptionError(
            'collapse must be "auto", True, False, a positive int (how deep the calls are that become '
            f"boxes) or names of functions, not {collapse!r}."
        )
    wanted = set(names)
    known = {call.name for equation in equations for call in equation.scope}
    if unknown := sorted(wanted - known):
        raise errors.OptionError(
            f"collapse names {', '.join(map(repr, unknown))}, but the functions that were called while "
            f"this graph was traced are {', '.join(map(repr, sorted(known))) or 'not known'}."
        )
    return _grouped(
        equations,
        [next((c for c in equation.scope if c.name in wanted), None) for equation in equations],
    )


def _readable_parts(graph: Graph) -> list[Part]:
    """All equations, or if those are too many the calls as deep as can be, or runs of them."""
    equations = graph.equations
    room = max(READABLE - len(graph.inputs) - len(graph.outputs), 20)
    parts = [Part([equation]) for equation in equations]
    if len(parts) <= room:
        return parts
    deepest = max(len(equation.scope) for equation in equations)
    for depth in range(deepest, 0, -1):
        parts = _by_depth(equations, depth)
        if len(parts) <= room:
            return parts
    size = -(-len(parts) // room)
    runs = [parts[k : k + size] for k in range(0, len(parts), size)]
    return [_joined(run) for run in runs]


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    names = {part.name or part.equations[0].primitive.name for part in parts}
    name = f"{names.pop()} × {len(parts)}" if len(names) == 1 else f"{len(parts)} operations"
    return Part([equation for part in parts for equation in part.equations], name)


def _by_depth(equations: list[Equation], depth: int) -> list[Part]:
    """Calls at this depth as boxes; depth 0 is the call that all equations are in."""
    scopes = [equation.scope for equation in equations]
    shared = 0
    while scopes and all(len(s) > shared and s[shared] is scopes[0][shared] for s in scopes):
        shared += 1
    place = shared + depth - 1
    return _grouped(equations, [s[place] if len(s) > place else None for s in scopes])


def _grouped(equations: list[Equation], calls: list[Any]) -> list[Part]:
    """Neighbors of one call share a box. Neighbors only, so that no way leads around in a circle."""
    parts = []
    pairs = zip(calls, equations, strict=True)
    for call, group in groupby(pairs, key=lambda pair: pair[0]):
        members = [equation for _, equation in group]
        if call is None or len(members) == 1:
            parts += [Part([equation]) for equation in members]
        else:
            parts.append(Part(members, call.name))
    return parts


# Boxes and edges.


def _diagram(graph: Graph, parts: list[Part], values: dict[Variable, Any] | None) -> Diagram:
    diagram = Diagram()
    names = variable_names(graph)
    made_by: dict[Variable, int] = {}
    takers: list[tuple[Variable, int]] = []

    def shown(variable: Variable) -> tuple[str, ...]:
        return () if values is None else (f"= {value_text(values[variable])}",)

    for variable in graph.inputs:
        made_by[variable] = diagram.box((names[variable], *shown(variable)), "input")
    for variable, constant in graph.constants.items():
        if not is_written_out(constant):
            made_by[variable] = diagram.box((names[variable], value_text(constant)), "constant")
    for part in parts:
        if part.name:
            box = diagram.box((part.name, f"{len(part.equations)} operations"), "function")
        else:
            (equation,) = part.equations
            lines = equation_lines(equation, names)
            for variable in equation.outputs:
                lines += shown(variable)
            box = diagram.box(lines, kind_of(equation.primitive))
        inside = {variable for equation in part.equations for variable in equation.outputs}
        made_by.update(dict.fromkeys(inside, box))
        for equation in part.equations:
            takers += [(v, box) for v in equation.inputs if v not in inside]
    for number, variable in enumerate(graph.outputs):
        name = "output" if len(graph.outputs) == 1 else f"output {number}"
        if variable not in made_by:  # a number, which has no box of its own yet
            made_by[variable] = diagram.box((names[variable],), "constant")
        takers.append((variable, diagram.box((name, *shown(variable)), "output")))
    for variable, box in takers:
        if variable in made_by:
            diagram.edge(made_by[variable], box, spec_text(variable.spec), variable)
    return diagram


def equation_lines(equation: Equation, names: dict[Variable, str]) -> tuple[str, ...]:
    """b = multiply(a, 2.0), and the parameters below."""
    results = ", ".join(names[v] for v in equation.outputs)
    arguments = ", ".join(names[v] for v in equation.inputs)
    return call_lines(results, equation.primitive.name, arguments, equation.params)


def call_lines(results: str, name: str, arguments: str, params: dict[str, Any]) -> tuple[str, ...]:
    first = shortened(f"{results} = {name}({arguments})")
    options = ", ".join(f"{key}={format_param(value)}" for key, value in params.items())
    return (first, shortened(options)) if options else (first,)


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def spec_text(spec: ArraySpec) -> str:
    """The shape of an array, and its dtype if it is not the usual one."""
    return str(spec).rstrip("*").removeprefix("float64")


def value_text(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, Tracer):
        return "traced"
    array = np.asarray(value)
    if array.ndim == 0:
        return _number_text(array[()])
    if array.ndim == 1 and array.size <= 4:
        return f"[{' '.join(map(_number_text, array))}]"
    if array.ndim == 2 and array.size <= 4 and array.size:
        return f"[{' '.join(value_text(row) for row in array)}]"
    if array.size == 0 or array.dtype.kind not in "biuf":
        return spec_text(ArraySpec(array.shape, array.dtype))
    low, high = _number_text(array.min()), _number_text(array.max())
    return f"{low} … {high}"


def _number_text(number: Any) -> str:
    if isinstance(number, (bool, np.bool_, int, np.integer)):
        return str(number)
    return f"{number:.4g}"


def _values(graph: Graph, args: Any) -> dict[Variable, Any]:
    """The value of every variable, when the graph is run on these arguments."""
    if not isinstance(args, Sequence):
        raise errors.OptionError(
            "show_values needs the arguments to run the graph on, in a tuple: "
            f"graph.draw(show_values=(x,)), not {type(args).__name__}."
        )
    leaves, structure = tree.flatten((tuple(args), {}))
    if graph.in_tree is not None and structure != graph.in_tree:
        raise errors.GraphError(
            f"show_values has the structure {structure}, but the graph was traced for arguments of "
            f"structure {graph.in_tree}."
        )
    environment: dict[Variable, Any] = dict(graph.constants)
    for k, (variable, leaf) in enumerate(zip(graph.inputs, leaves, strict=True)):
        environment[variable] = fitting(leaf, variable.spec, k)
    run_equations(graph.equations, environment)
    return environment
