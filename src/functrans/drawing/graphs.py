"""Graphs as diagrams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from functrans.core import errors, tree
from functrans.core.evaluate import run_equations
from functrans.drawing.diagram import Diagram
from functrans.drawing.parts import DrawnPart, drawn_parts
from functrans.drawing.picture import Drawing, fold
from functrans.drawing.texts import equation_lines, short_text, spec_text, value_text
from functrans.graph.graph import Equation, Graph, Variable, arguments_of, fitting
from functrans.graph.printing import is_written_out, variable_names

_FEW = 3  # values between two boxes, which have an edge each up to here
_MANY = 40  # inputs or outputs of a call, which have a box each up to here
_FOLDS = 20  # closed calls whose insides come with a picture


def draw_graph(graph: Graph, collapse: Any = "auto", show_values: Any = None) -> Drawing:
    """The implementation of `Graph.draw`."""
    values = None if show_values is None else _values(graph, show_values)
    uses = _uses(graph.equations) + Counter(graph.outputs)
    whole = _Whole(variable_names(graph), values, uses, set())
    return _drawing(graph, drawn_parts(graph, collapse), whole)


def graph_page(graph: Graph) -> str:
    """The picture of a graph and its text, for notebooks."""
    style = "line-height: 1.3; overflow: auto"
    text = fold("as text", f'<pre style="{style}">{escape(str(graph))}</pre>')
    return f"<div>{draw_graph(graph)._repr_html_()}{text}</div>"


class _Whole(NamedTuple):
    """State shared by the picture of a graph and those of its parts."""

    names: dict[Variable, str]
    values: dict[Variable, Any] | None
    uses: Counter[Variable]
    drawn: set[tuple[str, ...]]  # the kinds of calls whose insides have a picture


def _drawing(graph: Graph, parts: list[DrawnPart], whole: _Whole) -> Drawing:
    """The picture, and those of the insides of its closed calls. Identical calls are drawn once."""
    closed: list[DrawnPart] = []
    for part in parts:
        kind = (part.name, *(equation.primitive.name for equation in part.equations))
        if part.name and kind not in whole.drawn and len(closed) < _FOLDS:
            whole.drawn.add(kind)
            closed.append(part)
    inside = []
    for part in closed:
        inner = _inner_graph(graph, part, whole)
        drawing = _drawing(inner, drawn_parts(inner, "auto"), whole)
        inside.append((f"inside {part.name}: {len(part.equations)} operations", drawing))
    return Drawing(_diagram(graph, parts, whole), inside)


def _inner_graph(graph: Graph, part: DrawnPart, whole: _Whole) -> Graph:
    """A part as a graph: its inputs come from other parts, and its outputs are used by other parts.

    Where there are very many, like the inputs of a backward pass, they get no boxes: the operations name
    them.
    """
    made = {variable for equation in part.equations for variable in equation.outputs}
    given = [variable for variable in _uses(part.equations) if variable not in made]
    inputs = [variable for variable in given if variable not in graph.constants]
    constants = {v: graph.constants[v] for v in given if v in graph.constants}
    outputs = _results(part, whole.uses)
    inputs, outputs = (some if len(some) <= _MANY else [] for some in (inputs, outputs))
    names = [whole.names[variable] for variable in inputs]
    return Graph(inputs, constants, part.equations, outputs, input_names=names)


def _results(part: DrawnPart, uses: Counter[Variable]) -> list[Variable]:
    """The values that a part makes for others."""
    inner = _uses(part.equations)
    made = (variable for equation in part.equations for variable in equation.outputs)
    return [variable for variable in made if uses[variable] > inner[variable]]


def _diagram(graph: Graph, parts: list[DrawnPart], whole: _Whole) -> Diagram:
    diagram = Diagram()
    names, values, uses, _ = whole
    made_by: dict[Variable, int] = {}
    takers: dict[Variable, list[int]] = {}

    def shown(variable: Variable) -> tuple[str, ...]:
        return () if values is None else (f"= {value_text(values[variable])}",)

    for part in parts:
        made = [variable for equation in part.equations for variable in equation.outputs]
        if part.name:
            results = ", ".join(names[variable] for variable in _results(part, uses))
            text = short_text(f"{len(part.equations)} operations → {results}")
            box = diagram.box((part.name, text), "function")
        else:
            (equation,) = part.equations
            texts = [text for variable in made for text in shown(variable)]
            box = diagram.box((*equation_lines(equation, names), *texts), equation.primitive.kind)
        made_by.update(dict.fromkeys(made, box))
        for variable in _uses(part.equations):
            if made_by.get(variable) != box:
                takers.setdefault(variable, []).append(box)
    for variable, constant in graph.constants.items():
        if not is_written_out(constant):
            lines = (names[variable], value_text(constant))
            made_by[variable] = diagram.box(lines, "constant")
        elif variable in graph.outputs:  # it is shown nowhere else
            made_by[variable] = diagram.box((names[variable],), "constant")
    closed = any(part.name for part in parts)
    outputs = graph.outputs
    for places in _together(len(outputs), lambda k: made_by.get(outputs[k]), closed):
        if len(places) > 1:
            texts = ["outputs", f"{len(places)} arrays"]
        else:
            name = "output" if len(outputs) == 1 else f"output {places[0]}"
            texts = [name, *shown(outputs[places[0]])]
        box = diagram.box(tuple(texts), "output")
        for place in places:
            takers.setdefault(outputs[place], []).append(box)
    inputs, arguments = graph.inputs, _arguments(graph)
    shared = [frozenset(takers.get(variable, ())) for variable in inputs]
    for places in _together(len(inputs), lambda k: (arguments[k], shared[k]), closed):
        if len(places) > 1:
            texts = [arguments[places[0]], f"{len(places)} arrays"]
        else:
            texts = [names[inputs[places[0]]], *shown(inputs[places[0]])]
        box = diagram.box(tuple(texts), "input")
        made_by.update({inputs[place]: box for place in places})
    _connect(diagram, made_by, takers)
    return diagram


def _uses(equations: list[Equation]) -> Counter[Variable]:
    """The number of times each variable is an input."""
    return Counter(variable for equation in equations for variable in equation.inputs)


def _together(count: int, key: Callable[[int], Any], closed: bool) -> list[list[int]]:
    """Groups of places that share a box, if calls are drawn as boxes; otherwise one by one."""
    groups: dict[Any, list[int]] = {}
    for place in range(count):
        groups.setdefault(key(place) if closed else place, []).append(place)
    return [
        part
        for group in groups.values()
        for part in ([group] if len(group) > _FEW else [[place] for place in group])
    ]


def _arguments(graph: Graph) -> list[str]:
    """The argument that each input belongs to: params of params['w'][0]."""
    names = graph.input_names or ["inputs"] * len(graph.inputs)
    return [name.partition("[")[0].partition(".")[0] for name in names]


def _connect(
    diagram: Diagram, made_by: dict[Variable, int], takers: dict[Variable, list[int]]
) -> None:
    """Draw edges: one for each value, or one for all values between two boxes if there are many."""
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
            "show_values needs the arguments to run the graph on, in a tuple, not "
            f"{tree.with_article(args)}, at {errors.user_location()}. Write graph.draw(show_values=(x,))."
        )
    leaves, structure = tree.flatten((tuple(args), {}))
    if graph.in_tree is not None and structure != graph.in_tree:
        raise errors.GraphError(
            f"show_values has arguments {arguments_of(structure)}, but the graph was traced for "
            f"{arguments_of(graph.in_tree)}, at {errors.user_location()}. Pass those of the function."
        )
    environment: dict[Variable, Any] = dict(graph.constants)
    for k, (variable, leaf) in enumerate(zip(graph.inputs, leaves, strict=True)):
        environment[variable] = fitting(leaf, variable.spec, k)
    run_equations(graph.equations, environment)
    return environment
