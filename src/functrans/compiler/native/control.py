"""Loops and branches as steps of a plan: their bodies are plans of their own, and run without Python.

A body is a function of tables of addresses. So a loop passes its state from one round to the next by
exchanging two addresses, and hands out rows of arrays by advancing others. A loop or a branch is native if
all equations of its bodies are; otherwise Python runs it, and its bodies are compiled one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from functrans.compiler.native.blocks import in_blocks
from functrans.compiler.native.expansions import expanded
from functrans.compiler.native.kinds import BOOL, INT64, is_python_integer, number_kind_of
from functrans.compiler.native.lowering import Control, lowers
from functrans.compiler.native.memory import place_buffers
from functrans.compiler.native.plan import Plan, PlannedValue, is_native
from functrans.compiler.native.python_integers import (
    KEPT,
    Bounds,
    bounded,
    bounds_of_counter,
)
from functrans.compiler.native.slices import early_slices, sums_of_slices
from functrans.compiler.native.strides import Buffer, BufferView, c_strides, whole
from functrans.compiler.passes import optimize
from functrans.compiler.subroutines import inlined
from functrans.control.branching import branch
from functrans.control.procedures import Procedure
from functrans.control.repeating import loop, rewind
from functrans.control.scanning import along
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops.structure import astype
from functrans.transforms.leaves import is_moving


class Region:
    """The body of a loop or a branch: a plan, and the memory that it needs to run."""

    def __init__(self, graph: Graph) -> None:
        self.plan = in_blocks(Plan(graph))
        self.workspace = Buffer("work", -1, BOOL, place_buffers(self.plan)[1])

    @property
    def views(self) -> list[BufferView]:
        """The workspace, for whoever places it."""
        return [whole(self.workspace, (self.workspace.size,))] if self.workspace.size else []


class Carried(NamedTuple):
    """A part of the state of a loop: where it comes from, and the two places that it alternates between."""

    initial: BufferView
    final: BufferView
    spare: BufferView


class ScanStep(NamedTuple):
    """A loop over rows."""

    body: Region
    shared: list[BufferView]
    carried: list[Carried]
    rows: list[BufferView]
    columns: list[BufferView]  # the results of the rounds
    length: int
    reverse: bool

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        carried = [view for each in self.carried for view in each]
        return [*self.shared, *carried, *self.rows, *self.columns, *self.body.views]


class WhileStep(NamedTuple):
    """A loop that ends when its test is false."""

    test: Region
    body: Region
    tested: list[BufferView]  # what the test reads besides the state
    shared: list[BufferView]  # what the body reads besides the state
    carried: list[Carried]
    flag: BufferView  # the result of the test

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        carried = [view for each in self.carried for view in each]
        regions = [*self.test.views, *self.body.views]
        return [*self.tested, *self.shared, *carried, self.flag, *regions]


class RewindStep(NamedTuple):
    """The pullback of a loop that ends by a test: forward with records, then backward over them."""

    test: Region
    forward: Region
    backward: Region
    tested: list[BufferView]  # what the test reads besides the state
    shared: list[BufferView]  # what the body reads besides the state
    carried: list[Carried]
    flag: BufferView
    record: list[int]  # the sizes of what each round keeps, in bytes
    fixed: list[BufferView]  # what all rounds keep alike
    sums: list[Carried]  # of the cotangents of constants; they begin as zeros
    cotangents: list[Carried]  # of the state

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        carried = [v for each in (*self.carried, *self.sums, *self.cotangents) for v in each]
        regions = [*self.test.views, *self.forward.views, *self.backward.views]
        return [*self.tested, *self.shared, *carried, self.flag, *self.fixed, *regions]


class BranchStep(NamedTuple):
    """One of several bodies, chosen by a number."""

    bodies: list[Region]
    which: BufferView
    operands: list[BufferView]
    results: list[BufferView]

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        regions = [view for body in self.bodies for view in body.views]
        return [self.which, *self.operands, *self.results, *regions]


# The graphs of bodies.


def ready(graph: Graph) -> Graph:
    """A graph in the operations that plans know best."""
    return early_slices(sums_of_slices(expanded(inlined(graph))))


def body_graph(procedure: Procedure) -> Graph:
    """The graph of a procedure, as it is compiled."""
    key = ("native body",)
    if key not in procedure.derived:
        procedure.derived[key] = ready(optimize(procedure.graph))
    graph: Graph = procedure.derived[key]
    return graph


def _is_native(graph: Graph, integers: Mapping[Variable, tuple[int, int]]) -> bool:
    """Whether all of a body is; `integers` are the bounds of its inputs that are Python integers."""
    variables = (*graph.inputs, *graph.outputs, *graph.constants)
    if any(number_kind_of(v.spec.dtype) is None or not v.spec.size for v in variables):
        return False
    bounds = bounded(graph, integers)
    return bounds is not None and all(
        is_native(equation, graph.constants, bounds) for equation in graph.equations
    )


def _takes_scan(equation: Equation, known: Mapping[Variable, Bounds]) -> bool:
    params, inputs = equation.params, equation.inputs
    fixed, count = params["counts"]
    if not params["length"]:
        return False
    body = body_graph(params["body"])
    shared = _passed_on(body, inputs[:fixed], known)
    states = inputs[fixed : fixed + count]
    counters = bounds_of_counter(body, fixed, states, known, params["length"])
    rows = _kept_integers(body.inputs[fixed + count :])
    return counters is not None and _is_native(body, shared | counters | rows)


def _takes_while(equation: Equation, known: Mapping[Variable, Bounds]) -> bool:
    params, inputs = equation.params, equation.inputs
    first, second = params["counts"]
    body, test = body_graph(params["body"]), body_graph(params["test"])
    shared = _passed_on(body, inputs[first : first + second], known)
    counters = bounds_of_counter(body, second, inputs[first + second :], known, None)
    if counters is None or not _is_native(body, shared | counters):
        return False
    same = dict(zip(body.inputs[second:], test.inputs[first:], strict=True))
    tested = _passed_on(test, inputs[:first], known)
    return _is_native(test, tested | {same[v]: bounds for v, bounds in counters.items()})


def _takes_rewind(equation: Equation, known: Mapping[Variable, Bounds]) -> bool:
    params, inputs = equation.params, equation.inputs
    first, second = params["counts"]
    test, forward = body_graph(params["test"]), body_graph(params["forward"])
    count = len(params["active"])
    shared = _passed_on(forward, inputs[first : first + second], known)
    states = inputs[first + second : count]
    counters = bounds_of_counter(forward, second, states, known, None)
    if counters is None or not _is_native(forward, shared | counters):
        return False
    same = dict(zip(forward.inputs[second:], test.inputs[first:], strict=True))
    tested = _passed_on(test, inputs[:first], known)
    if not _is_native(test, tested | {same[v]: bounds for v, bounds in counters.items()}):
        return False
    backward = body_graph(params["backward"])
    return _is_native(backward, _kept_integers(backward.inputs))


def _kept_integers(variables: Sequence[Variable]) -> dict[Variable, Bounds]:
    """The bounds of Python integers that were kept in arrays: they have been small before."""
    return {v: KEPT for v in variables if is_python_integer(v.spec)}


def _takes_branch(equation: Equation, known: Mapping[Variable, Bounds]) -> bool:
    _, *operands = equation.inputs
    bodies = map(body_graph, equation.params["branches"])
    return all(_is_native(body, _passed_on(body, operands, known)) for body in bodies)


def _passed_on(
    body: Graph, given: Sequence[Variable], known: Mapping[Variable, Bounds]
) -> dict[Variable, Bounds]:
    """The bounds of the first inputs of a body."""
    return {own: known[v] for own, v in zip(body.inputs, given, strict=False) if v in known}


# Plans.


def _rows(plan: Plan, variable: Variable, axes: int = 0) -> BufferView:
    """A value in memory, each entry along its first `axes` axes in C order."""
    view = plan.memory(variable)
    inner = c_strides(view.shape[axes:])
    fits = view.buffer.role != "identity" and all(
        have == want or n == 1
        for n, have, want in zip(view.shape[axes:], view.strides[axes:], inner, strict=True)
    )
    return view if fits else plan.copied(variable)


def _carried(plan: Plan, variables: Sequence[Variable], outs: Sequence[Variable]) -> list[Carried]:
    return [
        Carried(_rows(plan, variable), plan.block(out), plan.block(out))
        for variable, out in zip(variables, outs, strict=True)
    ]


def _append(plan: Plan, step: Any, results: Sequence[tuple[Variable, BufferView]]) -> None:
    plan.steps.append(step)
    for variable, view in results:
        plan.values[variable] = PlannedValue(len(plan.steps) - 1, view=view)


def _plan_scan(plan: Plan, equation: Equation) -> None:
    params, inputs, outputs = equation.params, equation.inputs, equation.outputs
    fixed, count = params["counts"]
    shared = [_rows(plan, v) for v in inputs[:fixed]]
    carried = _carried(plan, inputs[fixed : fixed + count], outputs[:count])
    rows = [_rows(plan, v, 1) for v in inputs[fixed + count :]]
    columns = [plan.block(v) for v in outputs[count:]]
    body = Region(body_graph(params["body"]))
    step = ScanStep(body, shared, carried, rows, columns, params["length"], params["reverse"])
    finals = [each.final for each in carried]
    _append(plan, step, list(zip(outputs, [*finals, *columns], strict=True)))


def _plan_while(plan: Plan, equation: Equation) -> None:
    params, inputs, outputs = equation.params, equation.inputs, equation.outputs
    first, second = params["counts"]
    tested = [_rows(plan, v) for v in inputs[:first]]
    shared = [_rows(plan, v) for v in inputs[first : first + second]]
    carried = _carried(plan, inputs[first + second :], outputs)
    test, body = Region(body_graph(params["test"])), Region(body_graph(params["body"]))
    flag = plan.block(Variable(ArraySpec((), bool)))
    step = WhileStep(test, body, tested, shared, carried, flag)
    _append(plan, step, [(v, each.final) for v, each in zip(outputs, carried, strict=True)])


def _plan_rewind(plan: Plan, equation: Equation) -> None:
    params, inputs = equation.params, equation.inputs
    active, carried, counts = params["active"], params["carried"], params["counts"]
    first, second = counts
    count, body = len(active), params["body"]
    tested = [_rows(plan, v) for v in inputs[:first]]
    shared = [_rows(plan, v) for v in inputs[first : first + second]]
    state = inputs[first + second : count]
    test, forward, backward = (
        Region(body_graph(params[name])) for name in ("test", "forward", "backward")
    )
    outputs = params["backward"].outputs
    seeds = iter(inputs[count:])
    given = [next(seeds) if is_moving(spec) else None for spec in body.outputs]
    cotangents = [
        Carried(_rows(plan, seed), plan.block(seed), plan.block(seed))
        for seed, flag in zip(given, carried, strict=True)
        if flag and seed is not None
    ]
    totals = [Variable(spec) for spec in outputs[: len(outputs) - len(cotangents)]]
    blocks = [(plan.block(total), plan.block(total)) for total in totals]
    step = RewindStep(
        test,
        forward,
        backward,
        tested,
        shared,
        _carried(plan, state, state),
        plan.block(Variable(ArraySpec((), bool))),
        [spec.size * spec.dtype.itemsize for spec in params["forward"].outputs[len(state) :]],
        [shared[k] for k in params["sources"] if k is not None],
        [Carried(final, final, spare) for final, spare in blocks],
        cotangents,
    )
    _append(plan, step, [(v, final) for v, (final, _) in zip(totals, blocks, strict=True)])
    _name_cotangents(plan, equation, totals, [each.final for each in cotangents])


def _name_cotangents(
    plan: Plan, equation: Equation, totals: Sequence[Variable], views: Sequence[BufferView]
) -> None:
    """The results of a rewind, from its sums and from the cotangents of the state."""
    params, step = equation.params, len(plan.steps) - 1
    active, counts = params["active"], params["counts"]
    sums, places = iter(totals), iter(views)
    back = [next(places) if flag else None for flag in params["carried"]]
    outputs = iter(equation.outputs)
    for k, (given, flag) in enumerate(zip(equation.inputs, active, strict=False)):
        if not flag:
            continue
        out = next(outputs)
        if k < counts[0]:  # nothing that only the test reads has a derivative
            plan.broadcast_number(0.0, out)
        elif k < sum(counts):
            plan.add(Equation(astype, (next(sums),), {"dtype": given.spec.dtype}, (out,)))
        else:
            plan.values[out] = PlannedValue(step, view=back[k - sum(counts)])


def _plan_branch(plan: Plan, equation: Equation) -> None:
    index, *operands = equation.inputs
    bodies = [Region(body_graph(each)) for each in equation.params["branches"]]
    views = [_rows(plan, v) for v in operands]
    number = _rows(plan, index)
    if number.buffer.kind is not INT64:
        raise AssertionError("the number of a branch is an int64")
    results = [plan.block(v) for v in equation.outputs]
    step = BranchStep(bodies, number, views, results)
    _append(plan, step, list(zip(equation.outputs, results, strict=True)))


lowers.state(along, entry=Control(_takes_scan, _plan_scan))
lowers.state(loop, entry=Control(_takes_while, _plan_while))
lowers.state(rewind, entry=Control(_takes_rewind, _plan_rewind))
lowers.state(branch, entry=Control(_takes_branch, _plan_branch))
