"""make_dot: the graph of a tensor, as Graphviz source and as SVG."""

from __future__ import annotations

from typing import Any

from functrans.drawing.diagram import Diagram
from functrans.drawing.svg import lay_out, render
from functrans.interpreters.tape import Share
from functrans.torch.autograd.nodes import node_of, operation_name
from functrans.torch.errors import TensorValueError
from functrans.torch.tensor import Tensor

# torchviz's colors for leaves, operations and results, and the kinds of boxes in pictures.
_KINDS = {"lightblue": "input", "lightgrey": "operation", "darkolivegreen1": "output"}


class Digraph:
    """A graph of boxes and arrows: `source` is Graphviz source; `svg()` draws it without Graphviz.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.viz.Digraph().source.startswith("digraph")
    True
    """

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, str]] = {}  # label and color, by name
        self.edges: list[tuple[str, str]] = []

    def node(self, name: str, label: str, color: str) -> None:
        """Add a box.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> dot = torch.viz.Digraph()
        >>> dot.node("a", "x", "white")
        >>> "a" in dot.nodes
        True
        """
        self.nodes[name] = (label, color)

    def edge(self, tail: str, head: str) -> None:
        """Add an arrow.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> dot = torch.viz.Digraph()
        >>> dot.edge("a", "b")
        >>> dot.edges
        [('a', 'b')]
        """
        if (tail, head) not in self.edges:
            self.edges.append((tail, head))

    @property
    def source(self) -> str:
        """The graph as Graphviz source.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.viz.Digraph().source.startswith("digraph")
        True
        """
        lines = ["digraph {", "\tnode [align=left fontname=monospace fontsize=10 shape=box]"]
        for name, (label, color) in self.nodes.items():
            text = label.replace("\n", "\\n").replace('"', '\\"')
            lines.append(f'\t{name} [label="{text}" style=filled fillcolor={color}]')
        lines += [f"\t{tail} -> {head}" for tail, head in self.edges]
        return "\n".join([*lines, "}", ""])

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f"<Digraph of {len(self.nodes)} boxes>"

    def svg(self) -> str:
        """The graph as an SVG picture.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.viz.make_dot(torch.ones(1, requires_grad=True) * 2).svg().startswith("<svg")
        True
        """
        diagram = Diagram()
        numbers = {
            name: diagram.box(tuple(label.split("\n")), _KINDS[color])
            for name, (label, color) in self.nodes.items()
        }
        for tail, head in self.edges:
            diagram.edge(numbers[tail], numbers[head])
        return render(diagram, lay_out(diagram))

    def _repr_svg_(self) -> str:
        return self.svg()

    def render(self, filename: str, format: str = "svg", cleanup: bool = False) -> str:
        """Write the source to `filename` and the picture to `filename.svg`; returns the path of the picture.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "graph")
        >>> torch.viz.make_dot(torch.ones(1)).render(path).endswith(".svg")
        True
        """
        if format != "svg":
            raise TensorValueError(
                f"the format {format!r} needs Graphviz: use 'svg', or run dot on .source"
            )
        if not cleanup:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(self.source)
        picture = f"{filename}.svg"
        with open(picture, "w", encoding="utf-8") as file:
            file.write(self.svg())
        return picture


def make_dot(var: Any, params: dict[str, Tensor] | None = None) -> Digraph:
    """The graph of a tensor: leaves in blue, operations in gray, the result in green.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> print(torch.viz.make_dot((x * 2).sum(), params={"x": x}))  # doctest: +ELLIPSIS
    digraph {
    ...
        n1 -> n0
    ...
    """
    names = {}
    for name, tensor in (params or {}).items():
        if tensor.record is not None:
            names[tensor.record[0]] = name
    dot = Digraph()
    numbers: dict[int, str] = {}

    def number(record: Any) -> str:
        return numbers.setdefault(record[0], f"n{len(numbers)}")

    roots = list(var) if isinstance(var, (tuple, list)) else [var]
    stack = []
    for root in roots:
        record = _operation(root.record) if root.record is not None else None
        result = f"out{len(dot.nodes)}"
        dot.node(result, str(tuple(root.shape)), "darkolivegreen1")
        if record is not None:
            dot.edge(number(record), result)
            stack.append(record)
    seen: set[int] = set()
    while stack:
        record = stack.pop()
        if record[0] in seen:
            continue
        seen.add(record[0])
        if len(record) == 1:
            tensor = node_of(record).variable
            shape = str(tuple(tensor.shape)) if tensor is not None else ""
            dot.node(number(record), f"{names.get(record[0], '')}\n{shape}".strip(), "lightblue")
            continue
        dot.node(number(record), operation_name(record), "lightgrey")
        parents = record[4:] if record.edges is None else filter(None, record.edges)
        for parent in map(_operation, parents):
            dot.edge(number(parent), number(record))
            stack.append(parent)
    return dot


def _operation(record: Any) -> Any:
    return record[4] if len(record) > 1 and record[1] is Share else record
