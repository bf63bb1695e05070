"""make_dot: the graph of a tensor, as Graphviz text and as SVG."""

from __future__ import annotations

import html
from typing import Any

from functrans.interpreters.tape import Share
from functrans.torch.autograd.nodes import name_of, node_of
from functrans.torch.errors import TensorValueError
from functrans.torch.tensor import Tensor


class Digraph:
    """Boxes and arrows: `source` is Graphviz text, `svg()` a picture that needs no program.

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
        """The graph as Graphviz text.

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

    def _ranks(self) -> list[list[str]]:
        """The nodes in rows, each below all that point to it."""
        before: dict[str, list[str]] = {name: [] for name in self.nodes}
        after: dict[str, list[str]] = {name: [] for name in self.nodes}
        for tail, head in self.edges:
            before[head].append(tail)
            after[tail].append(head)
        rank = dict.fromkeys(self.nodes, 0)
        open_edges = {name: len(each) for name, each in before.items()}
        ready = [name for name, count in open_edges.items() if not count]
        while ready:
            name = ready.pop()
            for head in after[name]:
                rank[head] = max(rank[head], rank[name] + 1)
                open_edges[head] -= 1
                if not open_edges[head]:
                    ready.append(head)
        rows: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
        for name in self.nodes:
            rows[rank[name]].append(name)
        place: dict[str, float] = {}
        for row in rows:  # near the middle of what points to it
            middle = {n: _mean([place[b] for b in before[n]]) for n in row}
            row.sort(key=middle.__getitem__)
            for k, name in enumerate(row):
                place[name] = k - (len(row) - 1) / 2
        return rows

    def svg(self) -> str:
        """The graph as an SVG picture.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.viz.make_dot(torch.ones(1, requires_grad=True) * 2).svg().startswith("<svg")
        True
        """
        rows = self._ranks()
        sizes = {
            name: (7 * max(map(len, label.split("\n"))) + 16, 14 * len(label.split("\n")) + 10)
            for name, (label, _) in self.nodes.items()
        }
        width = max((sum(sizes[n][0] + 20 for n in row) for row in rows), default=0) + 20
        at: dict[str, tuple[float, float]] = {}
        y = 10.0
        for row in rows:
            x = (width - sum(sizes[n][0] + 20 for n in row)) / 2
            tall = max(sizes[n][1] for n in row)
            for name in row:
                at[name] = (x + 10 + sizes[name][0] / 2, y + tall / 2)
                x += sizes[name][0] + 20
            y += tall + 36
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y:.0f}" '
            'font-family="monospace" font-size="11">',
            '<defs><marker id="arrow" markerWidth="8" markerHeight="8" refX="7" refY="3" '
            'orient="auto"><path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
        ]
        for tail, head in self.edges:
            (x1, y1), (x2, y2) = at[tail], at[head]
            parts.append(
                f'<line x1="{x1:.1f}" y1="{y1 + sizes[tail][1] / 2:.1f}" x2="{x2:.1f}" '
                f'y2="{y2 - sizes[head][1] / 2:.1f}" stroke="black" marker-end="url(#arrow)"/>'
            )
        for name, (label, color) in self.nodes.items():
            (x, middle), (w, h) = at[name], sizes[name]
            parts.append(
                f'<rect x="{x - w / 2:.1f}" y="{middle - h / 2:.1f}" width="{w}" height="{h}" '
                f'fill="{color}" stroke="black"/>'
            )
            for k, line in enumerate(label.split("\n")):
                parts.append(
                    f'<text x="{x:.1f}" y="{middle - h / 2 + 16 + 14 * k:.1f}" '
                    f'text-anchor="middle">{html.escape(line)}</text>'
                )
        return "\n".join([*parts, "</svg>", ""])

    def _repr_svg_(self) -> str:
        return self.svg()

    def render(self, filename: str, format: str = "svg", cleanup: bool = False) -> str:
        """Write the text to `filename` and the picture to `filename.svg`; returns the latter.

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


def _mean(places: list[float]) -> float:
    return sum(places) / len(places) if places else 0.0


def make_dot(var: Any, params: dict[str, Tensor] | None = None) -> Digraph:
    """The graph behind a tensor: leaves in blue, operations in gray, the result in green.

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
        dot.node(number(record), name_of(record), "lightgrey")
        parents = record[4:] if record.edges is None else filter(None, record.edges)
        for parent in map(_operation, parents):
            dot.edge(number(parent), number(record))
            stack.append(parent)
    return dot


def _operation(record: Any) -> Any:
    return record[4] if len(record) > 1 and record[1] is Share else record
