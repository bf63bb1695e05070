"""Drawing: a finished picture, as SVG, HTML or Graphviz text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from html import escape

from functrans.core.errors import OptionError, user_location
from functrans.drawing.diagram import Diagram
from functrans.drawing.layout import Layout
from functrans.drawing.svg import lay_out, render


class Drawing:
    """A picture of a graph. A notebook shows it; `save` writes it to a file.

    inside: a title and a picture of the inside of each box that stands for a call; a click opens them.

    Examples
    --------
    >>> import numpy as np, functrans
    >>> drawing = functrans.make_graph(np.sin)(1.0).draw()
    >>> print(drawing.dot.splitlines()[0])
    digraph {
    >>> drawing.svg.startswith("<svg")
    True
    """

    def __init__(self, diagram: Diagram, inside: Sequence[tuple[str, Drawing]] = ()) -> None:
        self.diagram = diagram
        self.inside = inside

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.diagram.boxes)} boxes>"

    @cached_property
    def layout(self) -> Layout:
        """The positions of all parts."""
        return lay_out(self.diagram)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG."""
        return render(self.diagram, self.layout)

    @property
    def dot(self) -> str:
        """The graph as Graphviz text."""
        return self.diagram.dot()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file; its suffix selects the format: .svg, .html or .dot."""
        write_by_suffix(
            path, {".svg": self.svg, ".html": page(self.svg + self._folds), ".dot": self.dot}
        )

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def _folds(self) -> str:
        return "".join(fold(title, drawing._repr_html_()) for title, drawing in self.inside)

    def _repr_html_(self) -> str:
        return scrolling(self.svg) + self._folds


def scrolling(svg: str) -> str:
    """A picture as a part of a page, at its own size."""
    return f'<div style="overflow: auto; max-height: 900px; max-width: 100%">{svg}</div>'


def fold(title: str, content: str) -> str:
    """A part of a page that is closed until its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def page(svg: str, title: str = "graph") -> str:
    """A picture as a standalone page."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"</head>\n<body>{svg}</body></html>\n"
    )


def write_by_suffix(path: str | os.PathLike[str], texts: dict[str, str]) -> None:
    """Write the text in the format of a file's suffix."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in texts:
        known = ", ".join(texts)
        raise OptionError(
            f"a picture is saved as {known}, according to the suffix of the file, but the name is "
            f"{os.fspath(path)!r}, at {user_location()}."
        )
    with open(path, "w", encoding="utf-8") as file:
        file.write(texts[suffix])
