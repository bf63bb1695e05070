"""trace_steps: the forward and backward pass of a function, one picture for each step."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple, overload

from functrans.core.shapes import spec_of
from functrans.drawing.diagram import Diagram
from functrans.drawing.picture import scrolling, write_by_suffix
from functrans.drawing.svg import ACTIVE, EDGE, FAINT, Look, box_size, lay_out, render
from functrans.drawing.sweeps import Recording, record_sweeps
from functrans.drawing.texts import call_lines, spec_text, value_text
from functrans.transforms.arguments import check_callable


def trace_steps(f: Callable[..., Any], *args: Any) -> Steps:
    """Show the forward and backward pass of a function, step by step, as pictures.

    The function runs on the tape that `grad` uses, and must return a real scalar. It is differentiated with
    respect to all floating point arguments; Python floats become NumPy numbers. Notebooks show the steps as
    a page with buttons and a slider; the arrow keys work too.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import trace_steps
    >>> steps = trace_steps(lambda x, y: np.sin(x) * y, 0.0, 2.0)
    >>> steps
    <Steps: 2 forward, 3 backward>
    >>> for step in steps:
    ...     print(step.title)
    start: the inputs have values
    forward: a = sin(x) is 0
    forward: b = multiply(a, y) is 0
    backward: start from the result b, whose gradient is 1
    backward: multiply(a, y) hands 2 to a, 0 to y
    backward: sin(x) hands 2 to x
    >>> [float(g) for g in steps.gradients]
    [2.0, 0.0]
    """
    f = check_callable(f, "trace_steps")
    return Steps(getattr(f, "__name__", type(f).__name__), record_sweeps(f, args))


class State(NamedTuple):
    """The state after a step."""

    phase: str  # "start", "forward" or "backward"
    title: str
    location: str  # the user's line
    active: int | None
    known: int  # the number of nodes that have values
    gradients: dict[int, str]


class Step:
    """One picture, `svg`, described by `title`; `phase` is "start", "forward" or "backward"."""

    def __init__(self, steps: Steps, state: State) -> None:
        self._steps = steps
        self._state = state

    def __repr__(self) -> str:
        return f"<Step {self.title!r}>"

    @property
    def phase(self) -> str:
        return self._state.phase

    @property
    def title(self) -> str:
        return self._state.title

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return self._steps.picture(self._state)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.title)}</p>{scrolling(self.svg)}"


class Steps:
    """A sequence of pictures of a forward and a backward pass.

    value: the result of the function.
    gradients: the gradient of each argument, in the structure of the arguments; None for integers.
    html: one page with all steps, which needs no network.
    """

    def __init__(self, name: str, recording: Recording) -> None:
        self.name = name
        self.value = recording.value
        self.gradients = recording.gradients
        self._values = [", ".join(map(value_text, node.values)) for node in recording.nodes]
        self._diagram = _diagram(recording)
        self._states = list(_states(recording, self._diagram, self._values))

    def __len__(self) -> int:
        return len(self._states)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        if isinstance(index, slice):
            return [Step(self, state) for state in self._states[index]]
        return Step(self, self._states[index])

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, state) for state in self._states)

    def __repr__(self) -> str:
        phases = [state.phase for state in self._states]
        return f"<Steps: {phases.count('forward')} forward, {phases.count('backward')} backward>"

    @cached_property
    def _layout(self) -> Any:
        """Places for boxes with room for every text they will show."""
        sizes = []
        for number, box in enumerate(self._diagram.boxes):
            gradients = [state.gradients.get(number, "") for state in self._states]
            longest = max(gradients, key=len, default="")
            sizes.append(box_size((*box.lines, f"= {self._values[number]}", f"∂ {longest}")))
        return lay_out(self._diagram, sizes)

    def picture(self, state: State) -> str:
        """The picture after a step, as SVG."""
        looks = []
        for number, value in enumerate(self._values):
            known = number < state.known
            gradient = state.gradients.get(number, "")
            looks.append(
                Look(
                    active=number == state.active,
                    faint=not known,
                    value=f"= {value}" if known else "",
                    gradient=f"∂ {gradient}" if gradient else "",
                )
            )
        return render(self._diagram, self._layout, looks)

    @property
    def html(self) -> str:
        """One page with all steps: buttons, a slider and the arrow keys go through them."""
        last = self._states[-1]
        everything = last._replace(
            active=None,
            known=len(self._values),
            gradients={**dict.fromkeys(range(len(self._values)), " "), **last.gradients},
        )
        states = [state._asdict() for state in self._states]
        data = {"states": states, "active": ACTIVE, "edge": EDGE, "faint": FAINT}
        template = files("functrans.drawing").joinpath("steps.html").read_text(encoding="utf-8")
        return (
            template.replace("{{title}}", escape(f"{self.name}, step by step"))
            # Nothing in the data may end the script that holds it.
            .replace("{{data}}", json.dumps(data).replace("<", "\\u003c"))
            .replace("{{picture}}", self.picture(everything))
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a .html file, or the last picture to a .svg file."""
        last = self[-1].svg
        write_by_suffix(path, {".html": self.html, ".svg": last})

    def _repr_html_(self) -> str:
        # In an iframe, so that its script and style do not interfere with those of the notebook.
        height = min(self._layout.height + 150, 900)
        return (
            f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: {height:.0f}px; '
            f'border: 1px solid #d0d7de" title="{escape(self.name)}, step by step"></iframe>'
        )


def _diagram(recording: Recording) -> Diagram:
    diagram = Diagram()
    for number, node in enumerate(recording.nodes):
        if node.primitive is None:
            diagram.box((node.name,), "input")
            continue
        kind = "output" if number == recording.result else node.primitive.kind
        diagram.box(
            call_lines(node.name, node.primitive.name, _arguments(recording, node), {}), kind
        )
        for parent in node.parents:
            if parent is not None:
                values = recording.nodes[parent].values
                label = spec_text(spec_of(values[0])) if len(values) == 1 else ""
                diagram.edge(parent, number, label)
    return diagram


def _arguments(recording: Recording, node: Any) -> str:
    constants = iter(node.constants)
    return ", ".join(
        value_text(next(constants)) if parent is None else recording.nodes[parent].name
        for parent in node.parents
    )


def _states(recording: Recording, diagram: Diagram, values: list[str]) -> Iterator[State]:
    nodes = recording.nodes
    inputs = sum(node.primitive is None for node in nodes)
    yield State("start", "start: the inputs have values", "", None, inputs, {})
    for number in range(inputs, len(nodes)):
        title = f"forward: {diagram.boxes[number].lines[0]} is {values[number]}"
        yield State("forward", title, nodes[number].location, number, number + 1, {})
    if recording.result is None:
        return
    gradients = {recording.result: value_text(recording.seed)}
    title = f"backward: start from the result {nodes[recording.result].name}, whose gradient is 1"
    yield State("backward", title, "", recording.result, len(nodes), dict(gradients))
    totals = {recording.result: recording.seed}
    for number, arrived in recording.arrivals:
        handed = ", ".join(
            _handed(nodes[node].name, gradient, totals.get(node))
            for node, gradient in arrived.items()
        )
        totals.update(arrived)
        gradients.update((node, _gradient_text(gradient)) for node, gradient in arrived.items())
        name = diagram.boxes[number].lines[0].split(" = ", 1)[-1]
        title = f"backward: {name} hands {handed or 'nothing on'}"
        yield State("backward", title, nodes[number].location, number, len(nodes), dict(gradients))


def _handed(name: str, gradient: Any, before: Any) -> str:
    """The gradient that a step added to a node, and the total if there were others before."""
    if before is None or isinstance(gradient, list):
        return f"{_gradient_text(gradient)} to {name}"
    return f"{value_text(gradient - before)} to {name} (now {value_text(gradient)})"


def _gradient_text(gradient: Any) -> str:
    if isinstance(gradient, list):  # of an operation with several results
        return ", ".join("0" if part is None else value_text(part) for part in gradient)
    return value_text(gradient)
