"""A record of what a tape does: every operation with its value, then every gradient as it arrives.

The function runs on the library's own tape, and the backward pass is the library's own. A subclass of the
tape records the operations, and the backward pass gets a dictionary that records its entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.core import errors, tree
from functrans.core.accumulate import settled
from functrans.core.custody import check_unchanged, guarded, watched_since
from functrans.core.dispatch import concrete
from functrans.core.evaluate import OpenArray, as_constant
from functrans.core.hooks import runs_again
from functrans.core.shapes import dtype_of
from functrans.graph.graph import trace_names
from functrans.graph.printing import letters, readable
from functrans.interpreters.tape import Share, Tape, TapeTracer, sweep
from functrans.transforms.arguments import own_all
from functrans.transforms.derivatives import check_scalar


class SweepNode(NamedTuple):
    """An input, or the results of an operation."""

    name: str
    primitive: Any  # None for an input
    params: dict[str, Any]
    parents: tuple[int | None, ...]  # the nodes that it takes; None for a constant
    constants: tuple[Any, ...]  # their values: one for each None
    values: tuple[Any, ...]  # one, or those of an operation with several results
    location: str  # the user's line


class Arrival(NamedTuple):
    """One backward step: a node passes its gradient on, and the gradients of its parents change."""

    node: int
    gradients: dict[int, Any]


class Recording:
    """A recording: the nodes in order, then the backward steps, and the results."""

    def __init__(self) -> None:
        self.nodes: list[SweepNode] = []
        self.result: int | None = None  # the node that is returned; None if it depends on no input
        self.seed: Any = None  # the gradient that the backward pass starts with
        self.arrivals: list[Arrival] = []
        self.value: Any = None
        self.gradients: Any = None


class NotingTape(Tape):
    """A tape that records its operations."""

    __slots__ = ("node_of_array", "node_of_key", "nodes")

    transform = "trace_steps"

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.nodes: list[SweepNode] = []
        self.node_of_key: dict[int, int] = {}  # by the key of a record
        # By the address of an array through which no derivative flows; it is kept alive.
        self.node_of_array: dict[int, tuple[int, Any]] = {}

    def input(self, value: Any, name: str) -> TapeTracer:
        tracer = self.leaf(value)
        self.node_of_key[tracer.record[0]] = len(self.nodes)
        self.nodes.append(SweepNode(name, None, {}, (), (), (_held(value),), ""))
        return tracer

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self._note(primitive, args, params, super().process, (primitive, args, params))

    def process1(self, primitive: Any, x: Any) -> Any:
        return self._note(primitive, (x,), {}, super().process1, (primitive, x))

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        return self._note(primitive, (x, y), {}, super().process2, (primitive, x, y))

    def _note(self, primitive: Any, args: Any, params: Any, process: Any, call: Any) -> Any:
        # Before it runs: an assignment may change an argument.
        parents = tuple(map(self.node_of, args))
        constants = tuple(
            _held(arg) for arg, parent in zip(args, parents, strict=True) if parent is None
        )
        start = len(self.records)
        out = process(*call)
        number = len(self.nodes)
        for record in self.records[start:]:
            self.node_of_key[record[0]] = number
        results = out if primitive.outputs else (out,)
        for result in results:
            if isinstance(result, OpenArray):
                self.node_of_array[id(result)] = number, result
                self.node_of_array[id(result.value)] = number, result
        values = tuple(map(_held, results))
        place = errors.user_location()
        self.nodes.append(SweepNode("", primitive, params, parents, constants, values, place))
        return out

    def node_of(self, value: Any) -> int | None:
        """The number of the node that made a value, or None."""
        ours = type(value) is TapeTracer and value.interpreter is self
        if ours:
            return self.node_of_key.get(value.record[0])
        known = self.node_of_array.get(id(value))
        return None if known is None else known[0]


class NotingDict(dict[int, Any]):
    """The cotangents of a backward pass: records which one is taken, and what is put in until the next."""

    def __init__(self, tape: NotingTape) -> None:
        super().__init__()
        self.nodes = tape.node_of_key
        self.parts = {  # the place among several results, by the keys of their records
            record[0]: record[2] for record in tape.records if record[1] is Share
        }
        self.arrivals: list[Arrival] = []

    def pop(self, key: int, *default: Any) -> Any:
        value = super().pop(key, *default)
        # The record of one of several results only passes its cotangent to that of the operation.
        if value is not None and key not in self.parts:
            self.arrivals.append(Arrival(self.nodes[key], {}))
        return value

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, value)
        if self.arrivals:
            gradients = self.arrivals[-1].gradients
            held = _held(settled(value))
            if key in self.parts:
                place, count = self.parts[key]
                several = gradients.setdefault(self.nodes[key], [None] * count)
                several[place] = held
            else:
                gradients[self.nodes[key]] = held


@runs_again
def record_sweeps(f: Callable[..., Any], args: tuple[Any, ...]) -> Recording:
    """Run a function forward on a tape, and backward from its result."""
    leaves, structure = tree.flatten(args)
    names = [readable(name) for name in trace_names(f, args, {})]
    for name, leaf in zip(names, leaves, strict=True):
        tree.check_array(leaf, f"trace_steps: {name}")
    likes, keys, traced = [], [], []
    recording = Recording()
    with NotingTape(f) as tape:
        tape.reruns = True
        for name, leaf in zip(names, leaves, strict=True):
            if dtype_of(leaf).kind in "fc":
                # A NumPy number needs no conversion, which would be an extra step.
                leaf = np.float64(leaf) if type(leaf) is float else leaf
                tracer = tape.input(leaf, name)
                likes.append(leaf)
                keys.append(tracer.record[0])
                traced.append(tracer)
            else:
                traced.append(guarded(leaf))
        if not keys:
            raise errors.InputTypeError(
                "trace_steps: no argument is a floating point array or number, at "
                f"{errors.user_location()}. Write 1.0 instead of 1, or x.astype(float)."
            )
        out = f(*tree.unflatten(structure, traced))
    cotangents = NotingDict(tape)
    value = out
    if type(out) is TapeTracer and out.interpreter is tape:
        value = out.value
        recording.result = tape.node_of(out)
    recording.value = value = as_constant(value)
    check_scalar(value, f, transform="trace_steps")
    if recording.result is not None:
        recording.seed = cotangents[out.record[0]] = dtype_of(value).type(1)
    check_unchanged(watched_since(tape.mark))
    sweep(tape.records, cotangents)
    found = iter(own_all(cotangents, keys, likes, set()))
    gradients = [next(found) if dtype_of(leaf).kind in "fc" else None for leaf in leaves]
    recording.gradients = tree.unflatten(structure, gradients)
    recording.arrivals = cotangents.arrivals
    unused = letters({node.name for node in tape.nodes})
    recording.nodes = [
        node if node.name else node._replace(name=next(unused)) for node in tape.nodes
    ]
    return recording


def _held(value: Any) -> Any:
    """A plain copy of the current value."""
    plain = concrete(value)
    return plain.copy() if isinstance(plain, np.ndarray) else plain
