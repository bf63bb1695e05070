"""Loops and branches in LLVM IR: functions that call those of their bodies with changing addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functrans.compiler.native.control import (
    BranchStep,
    Carried,
    Region,
    RewindStep,
    ScanStep,
    WhileStep,
)
from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.strides import BufferView

if TYPE_CHECKING:
    from functrans.compiler.native.steps import StepWriter

# Of a function that runs steps: tables of addresses, the workspace, and where to note what went wrong.
PARAMETERS = "ptr %inputs, ptr %outputs, ptr %workspace, ptr %status"

_WATCHED = 1 << 22  # work; a loop asks for interruptions each time it has done so much
_ENDLESS = 1 << 20  # the work that a loop of unknown length is assumed to do


def call_control(steps: StepWriter, writer: FunctionWriter, step: Any) -> None:
    """Write the function of a loop or a branch, and its call."""
    name, inner = steps.module.fresh_name(), FunctionWriter()
    inner.start("entry")
    code = ControlWriter(steps, inner)
    if isinstance(step, ScanStep):
        code.scan(step)
    elif isinstance(step, WhileStep):
        code.loop(step)
    elif isinstance(step, RewindStep):
        code.rewind(step)
    else:
        assert isinstance(step, BranchStep)
        code.branch(step)
    inner.do("ret void")
    steps.module.collect(inner)
    steps.module.add_function(name, inner.lines)
    writer.do(f"call void @{name}({PARAMETERS})")


class Call:
    """The calls of a body: its tables of addresses, which are filled before each."""

    def __init__(self, code: ControlWriter, region: Region, inputs: int, outputs: int) -> None:
        self.writer = code.writer
        self.name, self.work = code.steps.module.region_name(region)
        self.inputs = self._table(inputs)
        self.outputs = self._table(outputs)
        self.workspace = code.address(*region.views) if region.views else "null"

    def _table(self, count: int) -> str:
        return self.writer.op(f"alloca ptr, i64 {max(count, 1)}")

    def _set(self, table: str, first: int, addresses: Sequence[str]) -> None:
        for k, address in enumerate(addresses, first):
            slot = self.writer.op(f"getelementptr ptr, ptr {table}, i64 {k}")
            self.writer.do(f"store ptr {address}, ptr {slot}")

    def give(self, first: int, addresses: Sequence[str]) -> None:
        """Set inputs, from the one with this number on."""
        self._set(self.inputs, first, addresses)

    def take(self, first: int, addresses: Sequence[str]) -> None:
        """Set where outputs go."""
        self._set(self.outputs, first, addresses)

    def run(self) -> None:
        tables = (self.inputs, self.outputs, self.workspace, "%status")
        self.writer.do(f"call void @{self.name}({', '.join(f'ptr {each}' for each in tables)})")


class ControlWriter:
    """Writes one function."""

    def __init__(self, steps: StepWriter, writer: FunctionWriter) -> None:
        self.steps = steps
        self.writer = writer

    def address(self, view: BufferView) -> str:
        return self.steps.pointer(self.writer, view)

    def addresses(self, views: Sequence[BufferView]) -> list[str]:
        return [self.address(view) for view in views]

    # A loop over rows.

    def scan(self, step: ScanStep) -> None:
        writer, fixed, count = self.writer, len(step.shared), len(step.carried)
        inputs = fixed + count + len(step.rows)
        body = Call(self, step.body, inputs, count + len(step.columns))
        self.steps.module.work += body.work * step.length
        body.give(0, self.addresses(step.shared))
        rows, columns = self.addresses(step.rows), self.addresses(step.columns)
        # The last round writes to the final place.
        finals = self.addresses([each.final for each in step.carried])
        spares = self.addresses([each.spare for each in step.carried])
        initial = self.addresses([each.initial for each in step.carried])
        following, other = (finals, spares) if step.length % 2 else (spares, finals)

        def goes_on(index: str, _: list[str]) -> str:
            return writer.op(f"icmp slt i64 {index}, {step.length}")

        def round_(index: str, places: list[str]) -> list[str]:
            now, then, later = (places[k * count : (k + 1) * count] for k in range(3))
            row = index
            if step.reverse:
                row = writer.op(f"sub i64 {step.length - 1}, {index}")
            body.give(fixed, now)
            body.give(
                fixed + count, [self._row(*each, row) for each in zip(step.rows, rows, strict=True)]
            )
            body.take(0, then)
            body.take(
                count, [self._row(*each, row) for each in zip(step.columns, columns, strict=True)]
            )
            body.run()
            if body.work * step.length > _WATCHED:
                self._watch(index, body.work)
            return [*then, *later, *then]

        self._rounds([*initial, *following, *other], goes_on, round_)

    def _row(self, view: BufferView, start: str, row: str) -> str:
        stride = view.strides[0] * view.buffer.kind.size
        if not stride:
            return start
        distance = self.writer.op(f"mul i64 {row}, {stride}")
        return self.writer.op(f"getelementptr i8, ptr {start}, i64 {distance}")

    # A loop with a test.

    def loop(self, step: WhileStep) -> None:
        writer, count = self.writer, len(step.carried)
        first, second = len(step.tested), len(step.shared)
        test = Call(self, step.test, first + count, 1)
        body = Call(self, step.body, second + count, count)
        self.steps.module.work += _ENDLESS
        test.give(0, self.addresses(step.tested))
        body.give(0, self.addresses(step.shared))
        flag = self.address(step.flag)
        test.take(0, [flag])
        finals = self.addresses([each.final for each in step.carried])
        spares = self.addresses([each.spare for each in step.carried])
        for each, place in zip(step.carried, finals, strict=True):
            self._copy(place, self.address(each.initial), each)

        def goes_on(_: str, places: list[str]) -> str:
            test.give(first, places[:count])
            test.run()
            return writer.op(f"icmp ne i8 {writer.op(f'load i8, ptr {flag}')}, 0")

        def round_(index: str, places: list[str]) -> list[str]:
            now, then = places[:count], places[count:]
            body.give(second, now)
            body.take(0, then)
            body.run()
            self._watch(index, body.work + test.work)
            return [*then, *now]

        _, last = self._rounds([*finals, *spares], goes_on, round_)
        for each, place, found in zip(step.carried, finals, last[:count], strict=True):
            self._copy(place, found, each)

    # The pullback of such a loop.

    def rewind(self, step: RewindStep) -> None:
        writer = self.writer
        size = sum(map(_rounded, step.record))
        block, room = writer.op("alloca ptr"), writer.op("alloca i64")
        writer.do(f"store ptr null, ptr {block}")
        writer.do(f"store i64 0, ptr {room}")
        count = self._forward(step, block, room, size)
        self._backward(step, block, size, count)
        writer.call("void", "free", [("ptr", writer.op(f"load ptr, ptr {block}"))])

    def _forward(self, step: RewindStep, block: str, room: str, size: int) -> str:
        """Run the loop and keep its records; returns the number of rounds."""
        writer, count = self.writer, len(step.carried)
        first, second = len(step.tested), len(step.shared)
        test = Call(self, step.test, first + count, 1)
        body = Call(self, step.forward, second + count, count + len(step.record))
        self.steps.module.work += _ENDLESS
        test.give(0, self.addresses(step.tested))
        body.give(0, self.addresses(step.shared))
        flag = self.address(step.flag)
        test.take(0, [flag])
        initial = self.addresses([each.initial for each in step.carried])
        finals = self.addresses([each.final for each in step.carried])
        spares = self.addresses([each.spare for each in step.carried])

        def goes_on(_: str, places: list[str]) -> str:
            test.give(first, places[:count])
            test.run()
            return writer.op(f"icmp ne i8 {writer.op(f'load i8, ptr {flag}')}, 0")

        def round_(index: str, places: list[str]) -> list[str]:
            now, then, later = (places[k * count : (k + 1) * count] for k in range(3))
            if size:
                self._make_room(index, block, room, size)
            body.give(second, now)
            body.take(0, then)
            body.take(count, self._entries(step, block, index, size))
            body.run()
            self._watch(index, body.work + test.work)
            return [*then, *later, *then]

        rounds, _ = self._rounds([*initial, *finals, *spares], goes_on, round_)
        return rounds

    def _make_room(self, index: str, block: str, room: str, size: int) -> None:
        """Make sure that there is memory for one more record."""
        writer = self.writer
        full, there, bad, good = (writer.label() for _ in range(4))
        have = writer.op(f"load i64, ptr {room}")
        writer.branch(writer.op(f"icmp sge i64 {index}, {have}"), full, there)
        writer.start(full)
        more = writer.op(f"add i64 {writer.op(f'mul i64 {have}, 2')}, 16")
        wanted = writer.op(f"mul i64 {more}, {size}")
        old = writer.op(f"load ptr, ptr {block}")
        new = writer.call("ptr", "realloc", [("ptr", old), ("i64", wanted)])
        writer.branch(writer.op(f"icmp eq ptr {new}, null"), bad, good)
        writer.start(bad)
        writer.do("store i64 1, ptr %status")
        writer.call("void", "free", [("ptr", old)])
        writer.do("ret void")
        writer.start(good)
        writer.do(f"store ptr {new}, ptr {block}")
        writer.do(f"store i64 {more}, ptr {room}")
        writer.jump(there)
        writer.start(there)

    def _entries(self, step: RewindStep, block: str, index: str, size: int) -> list[str]:
        """The addresses of the entries of a record."""
        writer, offset, found = self.writer, 0, []
        if size:
            start = writer.op(f"load ptr, ptr {block}")
            distance = writer.op(f"mul i64 {index}, {size}")
            start = writer.op(f"getelementptr i8, ptr {start}, i64 {distance}")
        for length in step.record:
            found.append(writer.op(f"getelementptr i8, ptr {start}, i64 {offset}"))
            offset += _rounded(length)
        return found

    def _backward(self, step: RewindStep, block: str, size: int, count: str) -> None:
        writer, fixed = self.writer, len(step.fixed)
        carried = [*step.sums, *step.cotangents]
        n = len(carried)
        body = Call(self, step.backward, fixed + n + len(step.record), n)
        body.give(0, self.addresses(step.fixed))
        finals = self.addresses([each.final for each in carried])
        spares = self.addresses([each.spare for each in carried])
        for each, place in zip(step.sums, finals, strict=False):
            arguments = [("ptr", place), ("i8", "0"), ("i64", str(_bytes(each))), ("i1", "false")]
            writer.call("void", "llvm.memset.p0.i64", arguments)
        for each, place in zip(step.cotangents, finals[len(step.sums) :], strict=True):
            self._copy(place, self.address(each.initial), each)

        def goes_on(index: str, _: list[str]) -> str:
            return writer.op(f"icmp slt i64 {index}, {count}")

        def round_(index: str, places: list[str]) -> list[str]:
            now, then = places[:n], places[n:]
            number = writer.op(f"sub i64 {writer.op(f'sub i64 {count}, 1')}, {index}")
            body.give(fixed, now)
            body.give(fixed + n, self._entries(step, block, number, size))
            body.take(0, then)
            body.run()
            self._watch(index, body.work)
            return [*then, *now]

        _, last = self._rounds([*finals, *spares], goes_on, round_)
        for each, place, found in zip(carried, finals, last[:n], strict=True):
            self._copy(place, found, each)

    def _copy(self, target: str, source: str, each: Carried) -> None:
        """Copy a part of the state to another place, or to the same."""
        size = str(_bytes(each))
        arguments = [("ptr", target), ("ptr", source), ("i64", size), ("i1", "false")]
        self.writer.call("void", "llvm.memmove.p0.p0.i64", arguments)

    # A branch.

    def branch(self, step: BranchStep) -> None:
        writer = self.writer
        calls = [Call(self, body, len(step.operands), len(step.results)) for body in step.bodies]
        self.steps.module.work += max(call.work for call in calls)
        operands, results = self.addresses(step.operands), self.addresses(step.results)
        which = writer.op(f"load i64, ptr {self.address(step.which)}")
        labels, done = [writer.label() for _ in calls], writer.label()
        cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        writer.do(f"switch i64 {which}, label %{labels[-1]} [ {cases} ]")
        for call, label in zip(calls, labels, strict=True):
            writer.start(label)
            call.give(0, operands)
            call.take(0, results)
            call.run()
            writer.jump(done)
        writer.start(done)

    # What loops have in common.

    def _rounds(
        self,
        places: list[str],
        goes_on: Callable[[str, list[str]], str],
        round_: Callable[[str, list[str]], list[str]],
    ) -> tuple[str, list[str]]:
        """A loop that carries addresses, and ends when something goes wrong.

        Returns the number of rounds, and the last addresses.
        """
        writer = self.writer
        before, head, inside, done = writer.block, *(writer.label() for _ in range(3))
        index, following = writer.fresh(), writer.fresh()
        names = [writer.fresh() for _ in places]
        writer.jump(head)
        writer.start(head)
        phis = len(writer.lines)
        status = writer.op("load i64, ptr %status")
        fine = writer.op(f"icmp eq i64 {status}, 0")
        more = writer.op(f"and i1 {fine}, {goes_on(index, names)}")
        writer.branch(more, inside, done)
        writer.start(inside)
        values = round_(index, names)
        writer.do(f"{following} = add i64 {index}, 1")
        end = writer.block
        writer.jump(head)
        writer.lines[phis:phis] = [
            f"  {name} = phi {kind} [ {first}, %{before} ], [ {then}, %{end} ]"
            for name, kind, first, then in (
                (index, "i64", "0", following),
                *((n, "ptr", a, b) for n, a, b in zip(names, places, values, strict=True)),
            )
        ]
        writer.start(done)
        return index, names

    def _watch(self, index: str, work: int) -> None:
        """From time to time, ask whether the loop is interrupted."""
        writer = self.writer
        period = 1 << max(_WATCHED // max(work, 1), 1).bit_length() - 1
        ask, going_on, raised = (writer.label() for _ in range(3))
        rest = writer.op(f"and i64 {index}, {period - 1}")
        writer.branch(writer.op(f"icmp eq i64 {rest}, {period - 1}"), ask, going_on)
        writer.start(ask)
        found = writer.call("i64", "ft_interrupted", [])
        writer.branch(writer.op(f"icmp ne i64 {found}, 0"), raised, going_on)
        writer.start(raised)
        writer.do(f"store i64 {found}, ptr %status")
        writer.jump(going_on)
        writer.start(going_on)


def _bytes(each: Carried) -> int:
    return each.final.buffer.size * each.final.buffer.kind.size


def _rounded(size: int) -> int:
    """A size in whole cache lines, or in whole numbers if it is small."""
    unit = 64 if size >= 64 else 8
    return -(-size // unit) * unit
