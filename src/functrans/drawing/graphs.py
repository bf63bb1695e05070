"""Graphs as diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from functrans.core import errors, tree
from functrans.core.evaluate import run_equations
from functrans.drawing.diagram import Diagram
from functrans.drawing.kinds import kind_of
from functrans.drawing.parts import Part, parts_of
from functrans.drawing.picture import Drawing, scrolling
from functrans.drawing.texts import equation_lines, spec_text, value_text
from functrans.graph.graph import Graph, Variable, fitting
from functrans.graph.printing import is_written_out, variable_names

_FEW = 3  # values between two boxes, which have an edge each up to here


def draw_graph(graph: Graph, collapse: Any = "auto", show_values: Any = None) -> Drawing:
    """What `Graph.draw` does."""
    values = None if show_values is None else _values(graph, show_values)
    return Drawing(_diagram(graph, parts_of(graph, collapse), values))


def graph_page(graph: Graph) -> str:
    """The picture of a graph and its text, for notebooks."""
    text = (
        "<details><summary>as text</summary>"
        f'<pre style="line-height: 1.3">{escape(str(graph))}</pre></details>'
    )
    return f"<div>{scrolling(draw_graph(graph).svg)}{text}</div>"


def _diagram(graph: Graph, parts: list[Part], values: dict[Variable, Any] | None) -> Diagram:
    diagram = Diagram()
    names = variable_names(graph)
    made_by: dict[Variable, int] = {}
    takers: dict[Variable, list[int]] = {}

    def shown(variable: Variable) -> tuple[str, ...]:
        return () if values is None else (f"= {value_text(values[variable])}",)

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
            for variable in equation.inputs:
                if variable not in inside:
                    takers.setdefault(variable, []).append(box)
    closed = any(part.name for part in parts)
    arguments = _arguments(graph)
    # What comes from one box and is returned, or goes to the same boxes, may share one, too.
    outputs = _together(graph.outputs, made_by.get, closed)
    for variable, constant in graph.constants.items():
        returned_number = is_written_out(constant) and variable in graph.outputs
        if returned_number or not is_written_out(constant):
            text = () if is_written_out(constant) else (value_text(constant),)
            made_by[variable] = diagram.box((names[variable], *text), "constant")
    for members in outputs:
        if len(members) > 1:
            lines = ("outputs", f"{len(members)} arrays")
        else:
            number = graph.outputs.index(members[0])
            name = "output" if len(graph.outputs) == 1 else f"output {number}"
            lines = (name, *shown(members[0]))
        box = diagram.box(lines, "output")
        for variable in members:
            takers.setdefault(variable, []).append(box)
    inputs = _together(graph.inputs, lambda v: (arguments[v], frozenset(takers.get(v, ()))), closed)
    for members in inputs:
        if len(members) > 1:
            lines = (arguments[members[0]], f"{len(members)} arrays")
        else:
            lines = (names[members[0]], *shown(members[0]))
        made_by.update(dict.fromkeys(members, diagram.box(lines, "input")))
    _connect(diagram, made_by, takers)
    return diagram


def _together(
    variables: list[Variable], key: Callable[[Variable], Any], closed: bool
) -> list[list[Variable]]:
    """Variables by what they have in common, if there are calls drawn as one box; else one by one."""
    groups: dict[Any, list[Variable]] = {}
    for number, variable in enumerate(variables):
        groups.setdefault(key(variable) if closed else number, []).append(variable)
    return [
        part
        for group in groups.values()
        for part in ([group] if len(group) > _FEW else [[variable] for variable in group])
    ]


def _arguments(graph: Graph) -> dict[Variable, str]:
    """The argument that each input belongs to: params of params['w'][0]."""
    names = graph.input_names or ["inputs"] * len(graph.inputs)
    stems = [name.partition("[")[0].partition(".")[0] for name in names]
    return dict(zip(graph.inputs, stems, strict=True))


def _connect(
    diagram: Diagram, made_by: dict[Variable, int], takers: dict[Variable, list[int]]
) -> None:
    """Draw edges: one for each value, or one for all between two boxes that share many."""
    bundles: dict[tuple[int, int], list[Variable]] = {}
    for variable, boxes in takers.items():
        for box in dict.fromkeys(boxes):
            if variable in made_by:  # a number is written where it is used
                bundles.setdefault((made_by[variable], box), []).append(variable)
    for (tail, head), members in bundles.items():
        if len(members) > _FEW:
            diagram.edge(tail, head, f"{len(members)} arrays", head)
        else:
            for variable in members:
                diagram.edge(tail, head, spec_text(variable.spec), variable)


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
