"""Diagrams as SVG."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from functrans.drawing.diagram import COLORS, Box, Diagram, DrawnValue
from functrans.drawing.layout import LABEL, Layout, Placed, Point, arrange

# Characters of monospace fonts are 0.6 of their size wide, or a little less.
_SIZE, _CHARACTER, _LINE = 11.0, 6.7, 14.5
_SMALL, _SMALL_CHARACTER = 9.0, 5.5
_LEGEND_HEIGHT = 26.0
ACTIVE, EDGE, FAINT = "#c62828", "#7c8794", "0.25"
FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Look(NamedTuple):
    """How a box is drawn at a moment."""

    active: bool = False  # whether it is the current box
    faint: bool = False  # whether it has no value yet
    value: str = ""
    gradient: str = ""


def box_size(lines: tuple[str, ...]) -> Point:
    """The width and height of a box with these lines."""
    return max(map(len, lines), default=0) * _CHARACTER + 18, len(lines) * _LINE + 11


def lay_out(diagram: Diagram, sizes: list[Point] | None = None) -> Layout:
    """Places for a diagram; `sizes` are the sizes of the boxes, if they do not follow from the text."""
    if sizes is None:
        sizes = [box_size(box.lines) for box in diagram.boxes]
    values = diagram.values
    labels = [
        (len(v.label) * _SMALL_CHARACTER + 4, _SMALL + 3) if v.label else (0.0, 0.0) for v in values
    ]
    return arrange(sizes, values, labels)


def render(diagram: Diagram, layout: Layout, looks: list[Look] | None = None) -> str:
    """The picture. `looks` says how the boxes look at one step, if there are steps."""
    if looks is None:
        looks = [Look()] * len(diagram.boxes)
    kinds = [kind for kind in COLORS if any(box.kind == kind for box in diagram.boxes)]
    legend, legend_width = _legend(kinds, layout.height)
    width = max(layout.width, legend_width)
    height = layout.height + _LEGEND_HEIGHT
    shift = (width - layout.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" font-size="{_SIZE:g}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<g transform="translate({shift:.1f} 0)">',
    ]
    for value, ways in zip(diagram.values, layout.edges, strict=True):
        for head, way in ways:
            parts.append(_edge(way, value, head, looks[head]))
    for value, place in zip(diagram.values, layout.labels, strict=True):
        if place is not None:
            parts.append(_label(value.label, place, value.tail, looks[value.tail].faint))
    for number, (box, place, look) in enumerate(
        zip(diagram.boxes, layout.boxes, looks, strict=True)
    ):
        parts.append(_box(number, box, place, look))
    return "\n".join([*parts, "</g>", *legend, "</svg>", ""])


def _edge(way: list[Point], value: DrawnValue, head: int, look: Look) -> str:
    """A line that is vertical at every corner, with a head at its end and room for the label."""
    (x, y), *rest = way
    path = [f"M{x:.1f},{y:.1f}"]
    for k, (to_x, to_y) in enumerate(rest):
        if k == LABEL and value.label:
            path.append(f"M{to_x:.1f},{to_y:.1f}")
        elif to_y > y:
            middle = (y + to_y) / 2
            straight = abs(to_x - x) < 0.05
            path.append(
                f"V{to_y:.1f}"
                if straight
                else f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
            )
        x, y = to_x, to_y
    color = ACTIVE if look.active else EDGE
    return (
        f'<g class="edge" data-tail="{value.tail}" data-head="{head}" stroke="{color}" '
        f'fill="{color}"{_opacity(look.faint)}>'
        f'<path d="{" ".join(path)}" fill="none" stroke-width="1.2"/>'
        f'<path d="M{x - 3:.1f},{y - 6:.1f} L{x:.1f},{y:.1f} L{x + 3:.1f},{y - 6:.1f} z" '
        'stroke="none"/></g>'
    )


def _opacity(faint: bool) -> str:
    return f' opacity="{FAINT}"' if faint else ""


def _label(text: str, place: Placed, tail: int, faint: bool) -> str:
    return (
        f'<text class="label" data-tail="{tail}" x="{place.x:.1f}" y="{place.y + 3:.1f}" '
        f'font-size="{_SMALL:g}" text-anchor="middle" fill="#46525e"{_opacity(faint)}>'
        f"{escape(text)}</text>"
    )


def _box(number: int, box: Box, place: Placed, look: Look) -> str:
    fill, outline = COLORS[box.kind]
    left, top = place.x - place.width / 2, place.y - place.height / 2
    stroke, thick = (ACTIVE, 3) if look.active else (outline, 1.1)
    radius = 9 if box.kind in ("input", "output", "constant") else 3
    lines = [
        f'<g class="box" data-box="{number}"{_opacity(look.faint)}>',
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{place.width:.1f}" height="{place.height:.1f}" '
        f'rx="{radius}" fill="{fill}" stroke="{stroke}" stroke-width="{thick}"/>',
    ]
    texts = [("name", text, "#1d2733" if k == 0 else "#56616c") for k, text in enumerate(box.lines)]
    if look.value or look.gradient:
        texts += [("value", look.value, "#1b5e9e"), ("gradient", look.gradient, ACTIVE)]
    for k, (role, text, color) in enumerate(texts):
        lines.append(
            f'<text class="{role}" x="{place.x:.1f}" y="{top + 16 + k * _LINE:.1f}" '
            f'text-anchor="middle" fill="{color}">{escape(text)}</text>'
        )
    return "".join([*lines, "</g>"])


def _legend(kinds: list[str], y: float) -> tuple[list[str], float]:
    """The legend of the colors, and its width."""
    parts, x = [], 12.0
    for kind in kinds:
        fill, outline = COLORS[kind]
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 6:.1f}" width="9" height="9" rx="2" fill="{fill}" '
            f'stroke="{outline}"/><text x="{x + 14:.1f}" y="{y + 14:.1f}" font-size="{_SMALL:g}" '
            f'fill="#56616c">{escape(kind)}</text>'
        )
        x += 14 + len(kind) * _SMALL_CHARACTER + 16
    return parts, x
