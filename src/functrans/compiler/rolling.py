"""Rolling up: a graph that repeats itself becomes a loop.

A Python `for` is unrolled when it is traced. Its steps are the same operations on the results of the step
before, with other constants or other places of arrays. Where enough of them follow one another, they become
one `scan`: it is compiled once, and computes the same.

First, equations are compared by what they do, and a period is found at which they repeat. Then their
arguments are classified: for each place in a step, the argument is made in the same step (inner), some steps
before (carried), outside of all steps (shared), or outside and another one for each step (a row). Steps with
the same classes are one loop; those at the ends that differ stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.passes import rebuilt
from functrans.control.procedures import Procedure
from functrans.control.scanning import along
from functrans.core.dispatch import Tracer
from functrans.core.frozen import by_identity, frozen
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops.indexing import index
from functrans.ops.structure import transpose

_FEWEST = 8  # steps of a loop
_WORTH = 150  # equations that a loop saves
_CANDIDATES = 6  # periods that are tried, for each length of sequences
_SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TIMES = (1, 2, 3, 4, 5, 6)  # multiples of a period that are tried
_FARTHEST = 3  # steps over which a value may be carried

# How many steps a loop leaves out at its start and at its end, and whether it has another one at its start.
_ENDS = sorted(
    (
        (late, early, begins)
        for late in range(3)
        for early in range(4)
        for begins in (True, False)
        if not (late and begins)
    ),
    key=lambda each: each[0] + each[1] - each[2],
)

Accept = Callable[[Equation], bool]


def rolled(graph: Graph, accept: Accept) -> Graph:
    """The graph with its repetitions as loops, where `accept` takes the equation of the loop."""
    if len(graph.equations) < _WORTH:
        return graph
    return _Roller(graph, accept).run()


class Run(NamedTuple):
    """Equations that repeat: where they start, how long a step is, and how many there are."""

    start: int
    period: int
    steps: int


class _Roller:
    def __init__(self, graph: Graph, accept: Accept) -> None:
        self.graph = graph
        self.accept = accept
        self.constants = dict(graph.constants)
        self.equations = graph.equations
        self.made = {v: k for k, e in enumerate(graph.equations) for v in e.outputs}
        self.last_use: dict[Variable, int] = {}
        for k, equation in enumerate(graph.equations):
            self.last_use.update(dict.fromkeys(equation.inputs, k))
        self.last_use.update(dict.fromkeys(graph.outputs, len(graph.equations)))
        self.results: list[Equation] = []
        # Values that a loop has given out: their stack, and their row in it.
        self.rows: dict[Variable, tuple[Variable, int]] = {}
        self.renamed: dict[Variable, Variable] = {}

    def run(self) -> Graph:
        done, found = 0, False
        for run in _runs(_tokens(self.graph)):
            if run.start < done:
                continue
            # What is done repeats sooner than what it is done to, perhaps.
            for times in _TIMES:
                longer = Run(run.start, run.period * times, run.steps // times)
                end = self._roll(longer, done)
                if end is not None:
                    done, found = end, True
                    break
        if not found:
            return self.graph
        self._copy(done, len(self.equations))
        outputs = [self.now(v) for v in self.graph.outputs]
        return rebuilt(self.graph, self.results, self.constants, outputs).pruned()

    # Equations outside of loops.

    def _copy(self, start: int, stop: int) -> None:
        for equation in self.equations[start:stop]:
            inputs = tuple(map(self.now, equation.inputs))
            self.results.append(
                Equation(
                    equation.primitive, inputs, equation.params, equation.outputs, equation.scope
                )
            )

    def now(self, variable: Variable) -> Variable:
        """A variable that has the value of this one, in the new graph."""
        if variable in self.renamed:
            return self.renamed[variable]
        if variable in self.rows:
            stack, row = self.rows[variable]
            template = (row, *(slice(None) for _ in variable.spec.shape))
            self.renamed[variable] = self.emit(index, stack, template=template)
            return self.renamed[variable]
        return variable

    def emit(self, primitive: Any, *inputs: Variable, **params: Any) -> Variable:
        out = Variable(primitive.shape(tuple(v.spec for v in inputs), params))
        self.results.append(Equation(primitive, inputs, params, (out,)))
        return out

    def constant(self, value: Any) -> Variable:
        variable = Variable(spec_of(value))
        self.constants[variable] = value
        return variable

    # One loop.

    def _roll(self, run: Run, done: int) -> int | None:
        """Write a loop, and what is before it; returns the number of equations dealt with."""
        first, last = self._alike(run)
        steps = last - first
        if steps < _FEWEST or (steps - 1) * run.period < _WORTH:
            return None
        period = run.period
        # The step before may be one of the loop, if it differs only in that it carries nothing yet. And steps
        # at either end may read what no loop has given out.
        for late, early, begins in _ENDS:
            start = run.start + (first + late - begins) * period
            length = steps - late - early + begins
            body = _Body(self, Run(start, period, length), begins)
            if first + late >= begins and length >= _FEWEST and body.classify():
                break
        else:
            return None
        mark = len(self.results), dict(self.renamed), dict(self.constants)
        self._copy(done, start)
        loop = body.loop()
        if loop is None or not self.accept(loop):
            del self.results[mark[0] :]
            self.renamed, self.constants = mark[1], mark[2]
            return None
        self.results.append(loop)
        body.name_results(loop)
        return start + period * length

    def _alike(self, run: Run) -> tuple[int, int]:
        """The longest range of steps whose arguments are of the same classes."""
        best, since, before = (0, 0), 0, None
        for step in range(run.steps):
            signature = self._signature(run, step)
            if signature != before:
                since, before = step, signature
            if step + 1 - since > best[1] - best[0]:
                best = since, step + 1
        return best

    def _signature(self, run: Run, step: int) -> tuple[Any, ...]:
        start = run.start + step * run.period
        found: list[Any] = []
        for equation in self.equations[start : start + run.period]:
            for variable in equation.inputs:
                place = self.made.get(variable, -1)
                if place >= run.start:
                    found.append((place - start) if place < start + run.period else None)
                else:
                    found.append("outside" if variable not in self.constants else "constant")
        return tuple(found)


class _Body:
    """The steps of a run as one body."""

    def __init__(self, roller: _Roller, run: Run, begins: bool) -> None:
        self.roller = roller
        self.run = run
        self.begins = begins  # whether what the first step reads as carried is from outside
        self.starts: dict[tuple[int, int], Variable] = {}  # if so, what it reads
        self.equations = roller.equations
        self.model = 1  # the step that the body is made from
        # A result is known by the place of its equation in a step, and its number there.
        self.carried: dict[tuple[tuple[int, int], int], Variable] = {}  # (result, lag) -> input
        self.shared: dict[Variable, Variable] = {}  # outside -> body input
        self.constants: dict[Variable, Any] = {}
        self.stacks: list[Variable] = []
        self.stack_inputs: list[Variable] = []
        self.own: dict[Variable, Variable] = {}
        self.pending: list[Any] = []
        self.finals: list[tuple[int, int]] = []  # results that only the last step gives out
        self.columns: list[tuple[int, int]] = []  # and those that all do
        self.final_places: dict[tuple[int, int], int] = {}
        self.reads: list[int] = []  # rows that are used after the loop, too
        self.stack_of: dict[int, Variable] = {}

    def step(self, number: int) -> list[Equation]:
        start = self.run.start + number * self.run.period
        return self.equations[start : start + self.run.period]

    def column(self, place: int, argument: int) -> list[Variable]:
        """One argument in all steps."""
        start, period = self.run.start + place, self.run.period
        return [self.equations[start + k * period].inputs[argument] for k in range(self.run.steps)]

    def classify(self) -> bool:
        """Find out what each argument is; False if the steps are not one loop."""
        for place, equation in enumerate(self.step(self.model)):
            plan: Any = self._rows_read(place)
            if plan is None:
                plan = [self._class_of(place, k) for k in range(len(equation.inputs))]
            if plan == () or None in plan:
                return False
            self.pending.append((place, equation, plan))
        return True

    def _class_of(self, place: int, argument: int) -> Any:
        """What an argument is, or None if it is not the same in all steps."""
        run, made = self.run, self.roller.made
        column = self.column(place, argument)
        distances = [made.get(v, -1) - (run.start + k * run.period) for k, v in enumerate(column)]
        inside, same = distances[self.model] >= 0, len(set(distances[1:])) == 1
        if inside and same and distances[0] == distances[1]:
            return ("inner", column[self.model])
        lag, offset = -(distances[self.model] // run.period), distances[self.model] % run.period
        if inside or not same or not 1 <= lag <= _FARTHEST:
            return None if inside else self._outside(column)
        variable = column[self.model]
        where = offset, self.equations[made[variable]].outputs.index(variable)
        if distances[0] != distances[1] and (not self.begins or lag > 1 or distances[0] >= 0):
            return None
        if lag == 1 and self.starts.setdefault(where, column[0]) is not column[0]:
            return None
        return ("carried", where, lag)

    def _outside(self, column: list[Variable]) -> Any:
        """What an argument from outside is, over all steps."""
        first = column[0]
        if all(v is first for v in column):
            return ("shared", first)
        constants = self.roller.constants
        if all(v in constants for v in column):
            values = [constants[v] for v in column]
            if any(isinstance(value, Tracer) for value in values):
                return None
            key = frozen(values[0])
            if all(frozen(value) == key for value in values[1:]):
                return ("shared", first)
            if len({v.spec for v in column}) > 1 or first.spec.size > 4096:
                return None
            return ("rows", first.spec, np.stack([np.asarray(value) for value in values]))
        stacks = {self.roller.rows[v][0] if v in self.roller.rows else None for v in column}
        if len(stacks) != 1 or None in stacks:
            return None
        (stack,) = stacks
        numbers = [self.roller.rows[v][1] for v in column]
        return None if _progression(numbers) is None else ("stack", first.spec, stack, numbers)

    def _rows_read(self, place: int) -> tuple[Any, ...] | None:
        """The array, the axis and the places, if an equation reads another place in each step.

        The result is empty if these places are not the rows of an array from outside, and None if the
        equation is another.
        """
        run = self.run
        each = [self.equations[run.start + place + k * run.period] for k in range(run.steps)]
        if each[0].primitive is not index:
            return None
        templates = [equation.params["template"] for equation in each]
        moving = [
            k
            for k in range(len(templates[0]))
            if type(templates[0][k]) is int and len({template[k] for template in templates}) > 1
        ]
        if not moving:
            return None
        inputs = {equation.inputs for equation in each}
        source = each[0].inputs[0]
        if len(moving) > 1 or len(inputs) > 1 or len(each[0].inputs) > 1:
            return ()
        (axis,) = moving
        numbers = [template[axis] for template in templates]
        made_inside = self.roller.made.get(source, -1) >= run.start
        if made_inside or _progression(numbers) is None or min(numbers) < 0 <= max(numbers):
            return ()
        return source, axis, numbers

    # The loop.

    def loop(self) -> Equation | None:
        """The equation of the loop."""
        roller, run, model = self.roller, self.run, self.step(self.model)
        inner: list[Equation] = []
        for place, equation, plan in self.pending:
            if isinstance(plan, tuple):
                self.own[equation.outputs[0]] = self._read(equation, *plan)
                self.stack_of[place] = self.stacks[-1]
                continue
            inputs = tuple(self._argument(part) for part in plan)
            outputs = tuple(Variable(v.spec) for v in equation.outputs)
            self.own |= zip(equation.outputs, outputs, strict=True)
            inner.append(Equation(equation.primitive, inputs, equation.params, outputs))
        self._find_results()
        lags = dict.fromkeys(self.finals, 1)
        for where, lag in self.carried:
            lags[where] = max(lags.get(where, 1), lag)
        inputs_, outputs_, starts = list[Variable](), list[Variable](), list[Variable]()
        for where, most in lags.items():
            value = self.own[model[where[0]].outputs[where[1]]]
            self.final_places[where] = len(inputs_)
            for lag in range(1, most + 1):
                starts.append(self._start(where, lag, value.spec))
                outputs_.append(value if lag == 1 else inputs_[-1])
                inputs_.append(self.carried.get((where, lag)) or Variable(value.spec))
        outputs_ += [self.own[model[place].outputs[slot]] for place, slot in self.columns]
        graph = Graph(
            [*self.shared.values(), *inputs_, *self.stack_inputs], self.constants, inner, outputs_
        )
        arguments = (*map(roller.now, self.shared), *starts, *self.stacks)
        params = {
            "body": Procedure(rolled(graph.pruned(), roller.accept)),
            "counts": (len(self.shared), len(inputs_)),
            "length": run.steps,
            "reverse": False,
            "unroll": 1,
        }
        try:
            specs = along.shape(tuple(v.spec for v in arguments), params)
        except ValueError:  # the first value that is carried has another dtype than the others
            return None
        return Equation(along, arguments, params, tuple(map(Variable, specs)))

    def _find_results(self) -> None:
        """What is used after the loop: of the last step, or of several."""
        run, last_use = self.run, self.roller.last_use
        end = run.start + run.period * run.steps
        for place, equation, plan in self.pending:
            for slot in range(len(equation.outputs)):
                used = [
                    step
                    for step in range(run.steps)
                    if last_use.get(self._output(place, slot, step), -1) >= end
                ]
                if used and isinstance(plan, tuple):
                    self.reads.append(place)
                elif used == [run.steps - 1]:
                    self.finals.append((place, slot))
                elif used:
                    self.columns.append((place, slot))

    def _output(self, place: int, slot: int, step: int) -> Variable:
        return self.equations[self.run.start + place + step * self.run.period].outputs[slot]

    def _start(self, where: tuple[int, int], lag: int, spec: ArraySpec) -> Variable:
        """The value that the first step reads from `lag` steps before."""
        most = max((each for what, each in self.carried if what == where), default=0)
        if lag > most:  # none
            return self.roller.constant(np.zeros(spec.shape, spec.dtype))
        if lag == 1 and where in self.starts:
            return self.roller.now(self.starts[where])
        place = self.run.start + where[0] - lag * self.run.period
        return self.roller.now(self.equations[place].outputs[where[1]])

    def _argument(self, part: Any) -> Variable:
        kind = part[0]
        if kind == "inner":
            return self.own[part[1]]
        if kind == "carried":
            _, where, lag = part
            if (where, lag) not in self.carried:
                made = self._output(where[0], where[1], self.model)
                self.carried[where, lag] = Variable(made.spec)
            return self.carried[where, lag]
        if kind == "shared":
            outside: Variable = part[1]
            constants = self.roller.constants
            if outside in constants and not isinstance(constants[outside], Tracer):
                self.constants[outside] = constants[outside]
                return outside
            if outside not in self.shared:
                self.shared[outside] = Variable(outside.spec)
            return self.shared[outside]
        if kind == "rows":
            _, spec, values = part
            return self._row(self.roller.constant(values), spec)
        _, spec, stack, numbers = part
        return self._row(self._slice(stack, 0, numbers), spec)

    def _row(self, stack: Variable, spec: ArraySpec) -> Variable:
        self.stacks.append(stack)
        self.stack_inputs.append(Variable(spec))
        return self.stack_inputs[-1]

    def _read(
        self, equation: Equation, source: Variable, axis: int, numbers: list[int]
    ) -> Variable:
        template = list(equation.params["template"])
        stack = self._slice(self.roller.now(source), axis, numbers, template)
        before = sum(not isinstance(entry, int) for entry in template[:axis])
        if before:
            order = (before, *(k for k in range(stack.spec.ndim) if k != before))
            stack = self.roller.emit(transpose, stack, axes=order)
        return self._row(stack, equation.outputs[0].spec)

    def _slice(
        self, stack: Variable, axis: int, numbers: list[int], template: Sequence[Any] = ()
    ) -> Variable:
        first, difference = numbers[0], numbers[1] - numbers[0]
        if not template and (first, difference, len(numbers)) == (0, 1, stack.spec.shape[0]):
            return stack
        stop: int | None = numbers[-1] + (1 if difference > 0 else -1)
        if stop == (0 if first < 0 else -1):  # it would mean the other end
            stop = None
        entries = list(template) or [slice(None)] * stack.spec.ndim
        entries[axis] = slice(first, stop, difference)
        return self.roller.emit(index, stack, template=tuple(entries))

    def name_results(self, loop: Equation) -> None:
        """Say where the results of the steps are now."""
        roller, run = self.roller, self.run
        for where in self.finals:
            last = self._output(*where, run.steps - 1)
            roller.renamed[last] = loop.outputs[self.final_places[where]]
        stacks = loop.outputs[loop.params["counts"][1] :]
        for where, stack in zip(self.columns, stacks, strict=True):
            for step in range(run.steps):
                roller.rows[self._output(*where, step)] = stack, step
        for place in self.reads:
            for step in range(run.steps):
                roller.rows[self._output(place, 0, step)] = self.stack_of[place], step


def _progression(numbers: Sequence[int]) -> int | None:
    """The common difference of numbers that advance evenly."""
    difference = numbers[1] - numbers[0]
    even = all(b - a == difference for a, b in pairwise(numbers))
    return difference if even and difference else None


# Periods.


def _tokens(graph: Graph) -> np.ndarray[Any, Any]:
    """A number for each equation; those with the same one do the same to their arguments."""
    numbers: dict[Any, int] = {}
    specs: dict[Any, int] = {}
    found = np.empty(len(graph.equations), np.int64)
    constants = graph.constants
    for k, equation in enumerate(graph.equations):
        params = equation.params
        if equation.primitive is index:
            template = tuple("int" if type(e) is int else _plain(e) for e in params["template"])
            key: Any = (template, tuple(n for n in params if n != "template"))
        else:
            key = frozen(params, by_identity) if params else None
        given = tuple(
            (specs.setdefault(v.spec, len(specs)), v in constants) for v in equation.inputs
        )
        out = tuple(specs.setdefault(v.spec, len(specs)) for v in equation.outputs)
        found[k] = numbers.setdefault((equation.primitive, key, given, out), len(numbers))
    return found


def _plain(entry: Any) -> Any:
    return (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else id(entry)


def _runs(tokens: np.ndarray[Any, Any]) -> list[Run]:
    """Stretches that repeat, in order, the longest first where they overlap."""
    chosen: list[Run] = []
    _find(tokens, 0, len(tokens), chosen)
    return sorted(chosen)


def _find(tokens: np.ndarray[Any, Any], start: int, stop: int, chosen: list[Run]) -> None:
    if stop - start < _WORTH:
        return
    best: Run | None = None
    part = tokens[start:stop]
    for period in _periods(part):
        first, length = _longest(part[:-period] == part[period:])
        steps = length // period + 1
        saved = (steps - 1) * period
        if steps < _FEWEST or saved < _WORTH:
            continue
        if best is None or saved > 1.1 * (best.steps - 1) * best.period:
            best = Run(start + first, period, steps)
    if best is None:
        return
    chosen.append(best)
    _find(tokens, start, best.start, chosen)
    _find(tokens, best.start + best.period * best.steps, stop, chosen)


def _periods(tokens: np.ndarray[Any, Any]) -> list[int]:
    """Distances at which tokens, and sequences of them, come again, the shortest first."""
    found, count = set[int](), len(tokens)
    for length in _SEQUENCES:
        order = np.argsort(tokens, kind="stable")
        same = tokens[order][1:] == tokens[order][:-1]
        distances, times = np.unique(np.diff(order)[same], return_counts=True)
        best = np.argsort(-times * distances)[:_CANDIDATES]  # long ones are seen less often
        found.update(distances[best].tolist())
        if len(tokens) <= length:
            break
        pairs = np.stack([tokens[:-length], tokens[length:]])  # sequences of twice the length
        tokens = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return sorted(p for p in found if p * _FEWEST <= count)


def _longest(matches: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The start and the length of the longest stretch of True."""
    padded = np.concatenate([[False], matches, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    k = int(np.argmax(ends - starts))
    return int(starts[k]), int(ends[k] - starts[k])
