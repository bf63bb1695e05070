"""Large loops on several threads: each runs the kernel on parts of its outermost loop."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.lanes import LaneWriter
from functrans.compiler.native.loops import KernelWriter

# Waking a thread takes about 30 microseconds, so a loop must take longer, and so should a part of it. Times
# are estimates, in nanoseconds per element.
_WORTH, _PART = 60e3, 30e3
_OPERATION, _FUNCTION, _BYTE = 0.15, 1.5, 0.06
# Parts per thread: with several, a thread that is delayed leaves more of them to the others.
_SHARES = 4


@cache
def thread_count() -> int:
    """How many threads a loop may use: FUNCTRANS_NUM_THREADS, or the number of available processors."""
    if os.name != "posix":
        return 1
    wanted = os.environ.get("FUNCTRANS_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return min(int(wanted), 64)
    available = getattr(os, "sched_getaffinity", None)
    return min(len(available(0)) if available else os.cpu_count() or 1, 64)


def thread_parts(loops: KernelWriter) -> list[tuple[int, int]]:
    """The parts of the outermost loop, some for each thread; a single one if more would not pay off."""
    length, time = loops.loops[0].length, _nanoseconds(loops)
    if thread_count() < 2 or time < _WORTH or not (loops.is_parallel or loops.is_total):
        return [(0, length)]
    count = min(thread_count() * shares(time), length)
    size = whole_rounds(loops, -(-length // count))
    if loops.is_parallel and loops.reach and size < 4 * whole_rounds(loops, loops.reach):
        return [(0, length)]
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def whole_rounds(loops: KernelWriter, length: int) -> int:
    """A length of the outermost loop, rounded up to whole iterations."""
    step = loops.round if len(loops.loops) == 1 else 1
    return -(-length // step) * step


def shares(nanoseconds: float) -> int:
    """The number of parts per thread."""
    return int(max(1, min(_SHARES, nanoseconds / thread_count() // _PART)))


def _nanoseconds(loops: KernelWriter) -> float:
    points = 1
    for loop in loops.loops:
        points *= loop.length
    operations = sum(item.action == "compute" for item in loops.items)
    functions = sum(line.count("@ft_") for line in loops.writer.lines) / max(loops.rounds, 1)
    moved = sum(
        access.view.buffer.kind.size
        for k, access in enumerate(loops.accesses)
        if loops.inner.strides[k]
    )
    return points * (_OPERATION * operations + _FUNCTION * functions + _BYTE * moved)


class Job(NamedTuple):
    """A function of a table and a part: its name, and the types and values of the table's entries."""

    name: str
    kinds: list[str]
    values: list[str]

    def table(self, writer: FunctionWriter) -> str:
        """The table, filled, on the stack."""
        table = writer.op(f"alloca i64, i64 {len(self.values)}")
        for k, (kind, value) in enumerate(zip(self.kinds, self.values, strict=True)):
            slot = writer.op(f"getelementptr i64, ptr {table}, i64 {k}")
            writer.do(f"store {kind} {value}, ptr {slot}")
        return table


def in_table_form(
    parameters: list[tuple[str, str]], cells: set[int], parts: int, lines: str
) -> str:
    """A function of pointers and a range, (..., lo, hi), as one of a table and the number of a part.

    The last entry of the table is the address of the ranges of all parts. At the positions in `cells`, it has
    the addresses of cells, one for each part. Parts numbered `parts` and above run afterward.
    """
    opening = ["entry:", f"  %fresh = icmp ult i64 %part, {parts}"]
    for k, (kind, name) in enumerate(parameters[:-2]):
        opening.append(f"  {name}.place = getelementptr i64, ptr %table, i64 {k}")
        loaded = f"{name}.base" if k in cells else name
        opening.append(f"  {loaded} = load {kind}, ptr {name}.place")
        if k in cells:
            opening.append(f"  {name} = getelementptr [64 x i8], ptr {loaded}, i64 %part")
    opening += [
        f"  %ranges.place = getelementptr i64, ptr %table, i64 {len(parameters) - 2}",
        "  %ranges = load ptr, ptr %ranges.place",
        "  %range = getelementptr [2 x i64], ptr %ranges, i64 %part",
        "  %lo = load i64, ptr %range",
        "  %range.end = getelementptr i64, ptr %range, i64 1",
        "  %hi = load i64, ptr %range.end",
    ]
    body = lines.removeprefix("entry:\n")
    return f"(ptr %table, i64 %part) {{\n{chr(10).join(opening)}\n{body}\n}}"


def run_in_threads(writer: FunctionWriter, job: Job, parts: int) -> str:
    """Run all parts, and return the table."""
    table = job.table(writer)
    arguments = [("ptr", f"@{job.name}"), ("ptr", table), ("i64", str(parts))]
    writer.call("void", "ft_run", [*arguments, ("i64", str(thread_count() - 1))])
    return table


def private_cells(writer: FunctionWriter, count: int) -> str:
    """Memory for the total of each part, on separate cache lines."""
    return writer.op(f"alloca [64 x i8], i64 {count}, align 64")


def combine_cells(
    writer: FunctionWriter, loops: KernelWriter, item: int, cells: str, count: int, target: str
) -> None:
    """Combine the totals of all parts."""
    kind = loops.accesses[loops.targets[item]].view.buffer.kind
    lanes = LaneWriter(writer, 1)
    vector, total = f"<1 x {kind.memory}>", ""
    for part in range(count):
        cell = writer.op(f"getelementptr [64 x i8], ptr {cells}, i64 {part}")
        value = writer.op(f"load {vector}, ptr {cell}, align {kind.size}")
        if kind.is_bool:
            value = writer.op(f"trunc {vector} {value} to <1 x i1>")
        total = loops.combine(lanes, item, total, value) if total else value
    if kind.is_bool:
        total = writer.op(f"zext <1 x i1> {total} to {vector}")
    writer.do(f"store {vector} {total}, ptr {target}, align {kind.size}")
