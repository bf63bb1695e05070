"""Large loops on several threads: each runs the kernel on a part of its outermost loop."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from functrans.compiler.native.entrywise import Lanes
from functrans.compiler.native.loops import KernelWriter
from functrans.compiler.native.writer import FunctionWriter

# Starting a thread and waiting for it takes some 30 microseconds, so a loop must take several times
# as long. Times are estimates, in nanoseconds for each entry.
_WORTH = 200e3
_OPERATION, _FUNCTION, _BYTE = 0.15, 1.5, 0.06


@cache
def thread_count() -> int:
    """How many threads a loop may use: FUNCTRANS_NUM_THREADS, or the processors there are for us."""
    if os.name != "posix":
        return 1
    wanted = os.environ.get("FUNCTRANS_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return min(int(wanted), 64)
    available = getattr(os, "sched_getaffinity", None)
    return min(len(available(0)) if available else os.cpu_count() or 1, 64)


def parts_of(loops: KernelWriter) -> list[tuple[int, int]]:
    """The parts of the outermost loop, one for each thread; a single one if more are not worth it."""
    length = loops.loops[0].length
    count = min(thread_count(), length)
    if count < 2 or _nanoseconds(loops) < _WORTH or not (loops.is_parallel or loops.is_total):
        return [(0, length)]
    step = loops.round if len(loops.loops) == 1 else 1
    size = -(-length // (count * step)) * step
    if loops.is_parallel and loops.reach and size < 4 * loops.reach:
        return [(0, length)]
    return [(start, min(start + size, length)) for start in range(0, length, size)]


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


class Task(NamedTuple):
    """A call of a function: its name, and the types and values of its arguments."""

    name: str
    kinds: list[str]
    values: list[str]


def starter(name: str, kinds: list[str]) -> str:
    """The function that a thread begins with.

    Its argument is a table of the arguments of `name`, behind which it puts a 1 when all is done.
    """
    lines, arguments = [], []
    for k, kind in enumerate(kinds):
        lines.append(f"  %a{k} = getelementptr i64, ptr %table, i64 {k}")
        lines.append(f"  %v{k} = load {kind}, ptr %a{k}")
        arguments.append(f"{kind} %v{k}")
    lines += [
        f"  call void @{name}({', '.join(arguments)})",
        f"  %done = getelementptr i64, ptr %table, i64 {len(kinds)}",
        "  store atomic i64 1, ptr %done release, align 8",
        "  ret ptr null",
    ]
    return f"define internal ptr @{name}_task(ptr %table) {{\nentry:\n{chr(10).join(lines)}\n}}"


def run_in_threads(writer: FunctionWriter, tasks: list[Task]) -> None:
    """Start a thread for every task but the first, run that one here, and wait for the others.

    We look for the sign that a thread is done instead of sleeping until it ends, since waking up takes as
    long as many a loop.
    """
    tables = []
    for task in tasks:
        table = writer.op(f"alloca i64, i64 {len(task.values) + 1}")
        tables.append(table)
        for k, (kind, value) in enumerate(zip(task.kinds, task.values, strict=True)):
            slot = writer.op(f"getelementptr i64, ptr {table}, i64 {k}")
            writer.do(f"store {kind} {value}, ptr {slot}")
        done = writer.op(f"getelementptr i64, ptr {table}, i64 {len(task.values)}")
        writer.do(f"store atomic i64 0, ptr {done} monotonic, align 8")
    for task, table in zip(tasks[1:], tables[1:], strict=True):
        writer.do(f"call void @start_thread(ptr @{task.name}_task, ptr {table})")
    writer.op(f"call ptr @{tasks[0].name}_task(ptr {tables[0]})")
    for task, table in zip(tasks[1:], tables[1:], strict=True):
        done = writer.op(f"getelementptr i64, ptr {table}, i64 {len(task.values)}")
        writer.do(f"call void @await_thread(ptr {done})")


# `start_thread` runs a task here if there is no thread to be had.
RUNTIME = """define internal void @start_thread(ptr %task, ptr %table) {
entry:
  %thread = alloca i64
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr %task, ptr %table)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %started, label %here
started:
  %handle = load i64, ptr %thread
  %ignored = call i32 @pthread_detach(i64 %handle)
  ret void
here:
  %result = call ptr %task(ptr %table)
  ret void
}

define internal void @await_thread(ptr %done) {
entry:
  br label %look
look:
  %count = phi i64 [ 0, %entry ], [ %more, %wait ], [ %more, %give ]
  %sign = load atomic i64, ptr %done acquire, align 8
  %finished = icmp ne i64 %sign, 0
  br i1 %finished, label %out, label %again
again:
  %more = add i64 %count, 1
  %long = icmp ugt i64 %more, 20000
  br i1 %long, label %give, label %wait
wait:
  br label %look
give:
  %yielded = call i32 @sched_yield()
  br label %look
out:
  ret void
}

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @sched_yield()
"""


def private_cells(writer: FunctionWriter, count: int) -> list[str]:
    """A place for the total of each thread, apart from those of the others."""
    cells = writer.op(f"alloca [64 x i8], i64 {count}, align 64")
    return [writer.op(f"getelementptr [64 x i8], ptr {cells}, i64 {k}") for k in range(count)]


def combine_cells(
    writer: FunctionWriter, loops: KernelWriter, item: int, cells: list[str], target: str
) -> None:
    """Put the totals of all threads together."""
    kind = loops.accesses[loops.targets[item]].view.buffer.kind
    lanes = Lanes(writer, 1)
    vector, total = f"<1 x {kind.memory}>", ""
    for cell in cells:
        value = writer.op(f"load {vector}, ptr {cell}, align {kind.size}")
        if kind.is_bool:
            value = writer.op(f"trunc {vector} {value} to <1 x i1>")
        total = loops.combine(lanes, item, total, value) if total else value
    if kind.is_bool:
        total = writer.op(f"zext <1 x i1> {total} to {vector}")
    writer.do(f"store {vector} {total}, ptr {target}, align {kind.size}")
