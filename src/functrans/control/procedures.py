"""Procedures: functions as closed graphs, which loops and branches carry in their parameters.

`close` traces a function and finds the traced values that it closes over, which become inputs. The result
is a `Procedure`, which can be differentiated and batched. Each of these gives a procedure again, so a loop
over a procedure becomes a loop over another one, to any order. The loops and branches that use procedures
are in branching.py, loops.py and scanning.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.accumulate import Accumulator
from functrans.core.custody import lending, own
from functrans.core.dispatch import Tracer, carries_derivative
from functrans.core.evaluate import as_constant, run_equations
from functrans.core.hooks import runs_again
from functrans.core.shapes import ArraySpec, dtype_of, spec_of
from functrans.graph.graph import Equation, Graph, Variable, fitting
from functrans.interpreters.batch import Batch, BatchTracer
from functrans.interpreters.dual import Dual, DualTracer
from functrans.interpreters.stage import CatchingStage, Stage, marked_like
from functrans.interpreters.tape import Tape, TapeTracer, sweep
from functrans.ops.families import with_lanes
from functrans.ops.structure import stop_gradient
from functrans.transforms.leaves import (
    Flags,
    Specs,
    chosen,
    described,
    fitted,
    grouped,
    is_moving,
    strong,
    ungrouped,
    zeros,
)


class Procedure:
    """A function of flat arrays as a graph that depends on nothing but its inputs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.derived: dict[Any, Any] = {}
        self.program: Any = None

    def __repr__(self) -> str:
        return f"[{len(self.graph.equations)} equations]"

    def __call__(self, *leaves: Any) -> list[Any]:
        """Run it. Unlike a graph, it frees every value after its last use."""
        if self.program is None:
            self.program = self._compiled()
        initial, steps, results = self.program
        values = initial.copy()
        for k, (leaf, variable) in enumerate(zip(leaves, self.graph.inputs, strict=True)):
            values[k] = leaf if type(leaf) is np.ndarray else fitting(leaf, variable.spec, k)
        for primitive, inputs, params, outputs, dying in steps:
            result = primitive(*[values[k] for k in inputs], **params)
            if primitive.outputs:
                for k, each in zip(outputs, result, strict=True):
                    values[k] = each
            else:
                values[outputs[0]] = result
            for k in dying:
                values[k] = None
        return [values[k].copy() if copies else values[k] for k, copies in results]

    def _compiled(self) -> tuple[list[Any], list[Any], list[tuple[int, bool]]]:
        """The constants in their slots, the equations with slots for variables, and the results."""
        graph = self.graph
        place = {v: k for k, v in enumerate((*graph.inputs, *graph.constants))}
        initial = [None] * len(graph.inputs) + list(graph.constants.values())
        for equation in graph.equations:
            for variable in equation.outputs:
                place[variable] = len(place)
        initial += [None] * (len(place) - len(initial))
        living = {place[v] for v in (*graph.outputs, *graph.constants)}
        steps = []
        for equation in reversed(graph.equations):
            inputs, outputs = ([place[v] for v in vs] for vs in (equation.inputs, equation.outputs))
            dying = {*inputs, *outputs} - living
            living |= dying
            steps.append((equation.primitive, inputs, equation.params, outputs, tuple(dying)))
        # A constant that is returned is copied, because the caller may change the result.
        results = [
            (place[v], v in graph.constants and type(graph.constants[v]) is np.ndarray)
            for v in graph.outputs
        ]
        return initial, steps[::-1], results

    @property
    def inputs(self) -> Specs:
        return tuple(variable.spec for variable in self.graph.inputs)

    @property
    def outputs(self) -> Specs:
        return tuple(variable.spec for variable in self.graph.outputs)

    @property
    def arrays(self) -> frozenset[int]:
        """The places of outputs without axes that are arrays and not numbers."""
        return self.graph.arrays or frozenset()

    def cast(self, specs: Specs) -> Procedure:
        """The same with outputs of these specs, which may have other dtypes for Python scalars."""
        if specs == self.outputs:
            return self
        return staged(lambda *leaves: list(map(fitted, self(*leaves), specs)), self.inputs)

    def moved(self, moving: Flags) -> Flags:
        """Which outputs have a tangent if these inputs do."""
        return self._derive(("moved", moving), lambda: self._pushed((moving,), None)[1])  # type: ignore[no-any-return]

    def pushed(self, groups: tuple[Flags, ...], wanted: tuple[Flags, ...]) -> Procedure:
        """The same with tangents: after each group of inputs or outputs come the tangents of those that move.

        All `wanted` outputs have a tangent, even if it is zero.
        """
        key = ("pushed", groups, wanted)
        return self._derive(key, lambda: self._pushed(groups, wanted)[0])  # type: ignore[no-any-return]

    def _pushed(
        self, groups: tuple[Flags, ...], wanted: tuple[Flags, ...] | None
    ) -> tuple[Procedure, Flags]:
        found: Flags = ()

        def push(*leaves: Any) -> list[Any]:
            nonlocal found
            values, tangents = push_through(self, *ungrouped(leaves, groups))
            found = tuple(tangent is not None for tangent in tangents)
            return grouped(values, tangents, (found,) if wanted is None else wanted)

        return staged(push, grouped(self.inputs, map(strong, self.inputs), groups)), found

    def pulled(self, active: Flags) -> Procedure:
        """(inputs, cotangents of the floating outputs) -> cotangents of the active inputs."""

        def build() -> Any:
            specs = (*self.inputs, *map(strong, filter(is_moving, self.outputs)))
            return staged(lambda *leaves: pull_through(self, active, leaves), specs)

        return self._derive(("pulled", active), build)  # type: ignore[no-any-return]

    def split(self, active: Flags, passing: range, wanted: Flags | None = None) -> Split:
        """The same in two halves, for a loop that runs forward first and then backward."""
        key = ("split", active, passing, wanted)
        return self._derive(key, lambda: Split(self, active, passing, wanted))  # type: ignore[no-any-return]

    def batched(
        self, mapped: Flags, batch: Batch, wanted: Flags | None = None, masked: bool = False
    ) -> tuple[Procedure, Flags]:
        """The same for all lanes of a batch at once, and which outputs have the lanes as first axis.

        All `wanted` outputs have that axis. If `masked`, lanes may have borrowed their values, so
        collectives are refused.
        """
        size, name = batch.size, batch.axis_name

        def build() -> Any:
            flags: Flags = ()

            def run(*leaves: Any) -> list[Any]:
                nonlocal flags
                kind = _Masked if masked else _AllLanes
                with kind(np.arange(size), size, name) as inner:
                    outs = self(
                        *(
                            BatchTracer(inner, leaf) if maps else leaf
                            for leaf, maps in zip(leaves, mapped, strict=True)
                        )
                    )
                    ours = [type(out) is BatchTracer and out.interpreter is inner for out in outs]
                    values = [
                        inner.hidden(out) if mine else as_constant(out)
                        for out, mine in zip(outs, ours, strict=True)
                    ]
                flags = tuple(ours) if wanted is None else wanted
                return [
                    with_lanes(value, size) if want and not mine else value
                    for value, mine, want in zip(values, ours, flags, strict=True)
                ]

            specs = [
                ArraySpec((size, *spec.shape), spec.dtype) if maps else spec
                for spec, maps in zip(self.inputs, mapped, strict=True)
            ]
            return staged(run, specs), flags

        return self._derive(("batched", mapped, size, name, wanted, masked), build)  # type: ignore[no-any-return]

    def _derive(self, key: Any, build: Callable[[], Any]) -> Any:
        if key not in self.derived:
            self.derived[key] = build()
        return self.derived[key]


# What the shape rules of loops and branches ask of procedures, which may come from a file.


def check_fit(found: Sequence[ArraySpec], wanted: Sequence[ArraySpec]) -> None:
    """Raise ValueError unless the shapes and dtypes are the same."""
    if [(spec.shape, spec.dtype) for spec in found] != [(s.shape, s.dtype) for s in wanted]:
        raise ValueError(f"{tuple(found)} stand where {tuple(wanted)} belong")


def checked_outputs(procedure: Any, given: Sequence[ArraySpec]) -> Specs:
    """The outputs of a procedure that takes such arguments."""
    if type(procedure) is not Procedure:
        raise TypeError(f"a procedure is a graph, not a {type(procedure).__name__}")
    check_fit(procedure.inputs, given)
    return procedure.outputs


class Split:
    """A procedure in two halves. The second uses the residuals of the first:

    forward    inputs -> outputs, then residuals
    backward   residuals, then cotangents of the outputs in `moving` -> cotangents of active inputs

    A residual that is an input, and not one of the `passing` inputs that the next step overwrites, is
    not among the outputs of `forward`: `sources` has its position, or None.
    """

    def __init__(
        self, procedure: Procedure, active: Flags, passing: range, wanted: Flags | None
    ) -> None:
        with Stage() as stage:
            inputs = [stage.input(spec) for spec in procedure.inputs]
            with Tape() as tape:
                tracers = [
                    tape.leaf(value) if mine else value
                    for value, mine in zip(inputs, active, strict=True)
                ]
                outs = procedure(*tracers)
            ours = tuple(type(out) is TapeTracer and out.interpreter is tape for out in outs)
            self.moving: Flags = ours if wanted is None else wanted

            def pull(*cotangents: Any) -> list[Any]:
                return sweep_back(
                    tape, chosen(tracers, active), chosen(outs, self.moving), cotangents
                )

            cotangents = [strong(spec) for spec in chosen(procedure.outputs, self.moving)]
            self.backward, residuals = close(pull, cotangents)
            values = [out.value if mine else out for out, mine in zip(outs, ours, strict=True)]
            positions = {v: k for k, v in enumerate(stage.inputs) if k not in passing}
            self.sources = [positions.get(residual.variable) for residual in residuals]
            computed = [r for r, k in zip(residuals, self.sources, strict=True) if k is None]
            self.forward = Procedure(stage.finish([*values, *computed]).pruned())


@runs_again
def push_through(function: Any, values: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    """A flat function applied to values and tangents: results and their tangents. None means zero."""
    with Dual(function) as dual:
        dual.reruns = True
        outs = function(
            *(
                value if tangent is None else DualTracer(dual, value, tangent)
                for value, tangent in zip(values, tangents, strict=True)
            )
        )
    ours = [type(out) is DualTracer and out.interpreter is dual for out in outs]
    pairs = list(zip(outs, ours, strict=True))
    results = [out.value if mine else as_constant(out) for out, mine in pairs]
    return results, [out.tangent if mine else None for out, mine in pairs]


@runs_again
def pull_through(function: Any, active: Flags, leaves: Sequence[Any]) -> list[Any]:
    """The pullback of a flat function, as a function of its inputs, then the cotangents of its outputs.

    Only floating outputs have cotangents.
    """
    with Tape(function) as tape:
        tape.reruns = True
        tracers = [
            tape.leaf(value) if mine else value for value, mine in zip(leaves, active, strict=False)
        ]
        outs = function(*tracers)
    moving = [out for out in outs if dtype_of(out).kind in "fc"]
    return sweep_back(tape, chosen(tracers, active), moving, leaves[len(active) :])


def sweep_back(
    tape: Tape, leaves: list[Any], outs: list[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """The cotangents of a tape's leaves, from those of its results."""
    found: dict[int, Any] = {}
    for out, cotangent in zip(outs, cotangents, strict=True):
        if type(out) is TapeTracer and out.interpreter is tape:
            key = out.record[0]
            found[key] = found[key] + cotangent if key in found else cotangent
    sweep(list(tape.records), found)
    results = []
    for leaf in leaves:
        result = found.get(leaf.record[0])
        if type(result) is Accumulator:
            result = result.settle()
        results.append(zeros(strong(spec_of(leaf))) if result is None else result)
    return results


class _AllLanes(Batch):
    """All lanes of a procedure, whose equations do not assign to results."""

    __slots__ = ()

    shares_results = True


class _Masked(_AllLanes):
    """A batch in which some lanes hold values borrowed from others."""

    __slots__ = ()

    is_whole = False

    def require_all_lanes(self, what: str) -> None:
        raise errors.LaneError(
            f"{what} over axis {self.axis_name!r} is in a branch or a loop that lanes leave at "
            f"different times, so not all of them take part, at {errors.user_location()}. Move it out "
            "of the branch or the loop."
        )


# From functions to procedures.


class CuriousStage(Stage):
    """Records equations, and runs those recorded so far when a Python branch asks for a value.

    `moving` says for each input whether a derivative with respect to it will be taken: float(x) of a value
    that depends on it would lose that derivative.
    """

    __slots__ = ("done", "environment", "given", "moving")

    def __init__(
        self, function: Callable[..., Any], given: Sequence[Any], moving: Sequence[bool]
    ) -> None:
        super().__init__(function)
        self.given = given  # the values of the inputs
        self.moving = moving
        self.environment: dict[Variable, Any] = {}
        self.done = 0  # the number of equations that have run

    def carries_derivative(self, tracer: Any) -> bool:
        moving = {
            variable for variable, moves in zip(self.inputs, self.moving, strict=True) if moves
        }
        moving |= {variable for variable, v in self.constants.items() if carries_derivative(v)}
        for equation in self.equations:
            if not moving.isdisjoint(equation.inputs) and not equation.primitive.is_constant:
                moving.update(equation.outputs)
        return tracer.variable in moving

    def concrete(self, tracer: Any) -> Any:
        if self.closed:
            self.escaped()
        for variable, value in (
            *zip(self.inputs, self.given, strict=True),
            *self.constants.items(),
        ):
            if variable not in self.environment:
                self.environment[variable] = (
                    stop_gradient(value) if isinstance(value, Tracer) else value
                )
        run_equations(self.equations[self.done :], self.environment)
        self.done = len(self.equations)
        return self.environment[tracer.variable]


@runs_again
def close(
    function: Callable[..., Any],
    specs: Sequence[ArraySpec],
    stage: Stage | None = None,
    given: Sequence[Any] | None = None,
) -> tuple[Procedure, list[Any]]:
    """A function of flat arrays that returns a list of them, as a procedure.

    The traced values that it closes over become its first inputs, and are returned as well. `given` are
    the values that the function will be called with, if available: they show which inputs are arrays.
    """
    reruns = stage is None
    with stage or Stage(function) as stage:
        stage.reruns = reruns
        inputs = list(map(stage.input, specs))
        if given is not None:
            inputs = list(map(marked_like, inputs, given))
        graph = stage.finish(function(*inputs)).pruned()
    captured: dict[Any, tuple[Variable, Any]] = {}
    same: dict[
        Variable, Variable
    ] = {}  # one variable for one value, whichever tracer stands for it
    for variable, value in list(graph.constants.items()):
        if isinstance(value, Tracer):
            key = (
                id(value.interpreter),
                id(getattr(value, "value", None)),
                id(getattr(value, "detail", None)),
            )
            same[variable] = captured.setdefault(key, (variable, value))[0]
            del graph.constants[variable]
    if len(captured) < len(same):
        graph.equations = [
            Equation(e.primitive, tuple(same.get(v, v) for v in e.inputs), e.params, e.outputs)
            for e in graph.equations
        ]
        graph.outputs = [same.get(v, v) for v in graph.outputs]
    graph.inputs = [*(variable for variable, _ in captured.values()), *graph.inputs]
    return Procedure(graph), [value for _, value in captured.values()]


def close_all(
    function: Callable[..., Any], specs: Sequence[ArraySpec], given: Sequence[Any] | None = None
) -> tuple[Procedure, list[Any]]:
    """The same for a function that need not run: it computes nothing outside of the procedure.

    If it reads values that it closes over, they have to be known; then the result is that of `close`.
    """
    try:
        return close(function, specs, CatchingStage(function), given)
    except errors.StagingError:
        return close(function, specs, None, given)


def staged(function: Callable[..., Any], specs: Sequence[ArraySpec]) -> Procedure:
    """The same for a function that closes over no traced value, unless a custom rule inside does."""
    procedure, captured = close(function, specs)
    if captured:
        raise errors.ClosureError(
            f"a custom rule closes over a traced value, at {errors.user_location()}, and its function is "
            "called in a loop or a branch. The derivative of the loop needs every value the rule depends on: "
            "pass the value as an argument, or in nondiff_argnums."
        )
    return procedure


class Flattened:
    """A user's function of trees as one of flat arrays, which records the structure of the result."""

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Any,
        what: str,
        user: Callable[..., Any] | None = None,
    ) -> None:
        self.function = function
        self.user = user or function  # the function that messages name
        self.structure = structure
        self.what = what
        self.out_structure: Any = None
        if hasattr(function, "__code__"):
            self.__wrapped__ = function

    def __call__(self, *leaves: Any) -> list[Any]:
        found, self.out_structure = tree.flatten(lending(self._run, leaves, self.user))
        for k in range(len(found)):
            if not tree.is_array(found[k]):
                what = f"{self.what}: an output of {errors.describe(self.user)}"
                tree.check_array(found[k], what)
        return own(found, leaves)

    def _run(self, leaves: list[Any]) -> Any:
        return self.function(*tree.unflatten(self.structure, leaves))

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """The result of the function, from its leaves."""
        return tree.unflatten(self.out_structure, leaves)

    def describe(self, specs: Sequence[ArraySpec]) -> str:
        """The result of the function, for a message."""
        return described(self.rebuild(specs))
