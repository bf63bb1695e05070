"""Diagram: boxes, and the values that flow between them, without their positions."""

from __future__ import annotations

import json
from typing import NamedTuple

# Fill and outline of each kind of box.
COLORS = {
    "input": ("#d3e5fb", "#3a78c2"),
    "constant": ("#ececec", "#8a8a8a"),
    "elementwise": ("#fdf0c4", "#bd9310"),
    "reduction": ("#fbd9c3", "#cc6a2b"),
    "linear algebra": ("#e5d9f7", "#7d54bd"),
    "shape": ("#d8f0ee", "#2d918a"),
    "control flow": ("#f9d3e0", "#bf3d72"),
    "function": ("#dfe6ee", "#4d6075"),
    "operation": ("#f4f4f4", "#6b6b6b"),
    "output": ("#d6efcf", "#4a9a37"),
}


class Box(NamedTuple):
    """A box: its lines of text, and the kind that determines its color."""

    lines: tuple[str, ...]
    kind: str


class DrawnValue(NamedTuple):
    """A value that one box makes and others take: an edge with one end for each head."""

    tail: int
    heads: tuple[int, ...]
    label: str = ""


class Diagram:
    """Boxes by number, and the values between them. There are no cycles."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self._values: dict[tuple[int, object], tuple[str, list[int]]] = {}

    def box(self, lines: tuple[str, ...], kind: str) -> int:
        self.boxes.append(Box(lines, kind))
        return len(self.boxes) - 1

    def edge(self, tail: int, head: int, label: str = "", value: object = None) -> None:
        """Add a box that takes a value; `value` tells the values of one tail apart."""
        _, heads = self._values.setdefault((tail, value), (label, []))
        if head not in heads:
            heads.append(head)

    @property
    def values(self) -> list[DrawnValue]:
        return [
            DrawnValue(tail, tuple(heads), label)
            for (tail, _), (label, heads) in self._values.items()
        ]

    def dot(self) -> str:
        """The diagram as Graphviz text."""
        lines = ["digraph {", "\tnode [shape=box style=filled fontname=monospace fontsize=10]"]
        lines.append("\tedge [fontname=monospace fontsize=9]")
        for number, box in enumerate(self.boxes):
            fill, outline = COLORS[box.kind]
            text = _quoted("\n".join(box.lines))
            lines.append(f'\tn{number} [label={text} fillcolor="{fill}" color="{outline}"]')
        for tail, heads, label in self.values:
            note = f" [label={_quoted(label)}]" if label else ""
            lines += [f"\tn{tail} -> n{head}{note}" for head in heads]
        return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # Graphviz escapes quotes and newlines as JSON does
