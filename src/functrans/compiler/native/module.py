"""A plan as one LLVM module: the kernels, the function that runs them in order, and the entry."""

from __future__ import annotations

from typing import Any

from functrans.compiler.native.engine import provide, vector_bytes
from functrans.compiler.native.entry import DATA_OF, Context, EntryWriter
from functrans.compiler.native.kinds import Kind, literal
from functrans.compiler.native.loops import KernelWriter
from functrans.compiler.native.memory import place
from functrans.compiler.native.plan import Kernel, Plan
from functrans.compiler.native.products import Product, ProductWriter, find_blas, in_parts
from functrans.compiler.native.threads import (
    RUNTIME,
    Task,
    combine_cells,
    parts_of,
    private_cells,
    run_in_threads,
    starter,
    thread_count,
)
from functrans.compiler.native.views import View
from functrans.compiler.native.writer import FunctionWriter

_STACK = 1 << 14  # bytes; a larger workspace is allocated
_STEPS = 100  # of one function
_RELEASE = 1 << 15  # entries; with more work than this, other threads may run meanwhile


class Module:
    """The text of a plan, and the addresses that it needs."""

    def __init__(
        self, plan: Plan, arguments: tuple[Any, ...], results: Any, slow: Any, in_numpy: Any
    ) -> None:
        self.plan = plan
        self.context = Context()
        self.context.object(slow)  # place 0: see EntryWriter
        self.context.object(in_numpy)  # place 1
        self.declarations: set[str] = set()
        self.numbers: dict[tuple[str, str], str] = {}
        self.functions: set[tuple[str, str, int]] = set()
        self.kernels: dict[str, str] = {}  # the text of each kernel -> its name
        self.fills: set[Kind] = set()
        self.starters: dict[str, str] = {}  # of functions that run on several threads
        self.work = 0
        body = self._body()
        graph = plan.graph
        entry = EntryWriter(
            self.context,
            arguments,
            results,
            [v.spec for v in graph.inputs],
            [v.spec for v in graph.outputs],
            self.work > _RELEASE,
        )
        entry_text = entry.write()
        self._collect(entry.writer)
        for function in self.functions:
            provide(*function)
        parts = [
            f"@context = global [{max(len(self.context.addresses), 1)} x ptr] zeroinitializer",
            *(
                f"{name} = internal constant {kind} {value}"
                for (kind, value), name in self.numbers.items()
            ),
            *entry.globals,
            DATA_OF,
            *sorted(self.declarations),
            *(f"define internal void @{name}{text}" for text, name in self.kernels.items()),
            *self.starters.values(),
            RUNTIME if self.starters else "",
            *(_fill_function(kind) for kind in self.fills),
            body,
            entry_text,
        ]
        self.text = "\n\n".join(part for part in parts if part)

    def _collect(self, writer: FunctionWriter) -> None:
        self.declarations |= writer.declarations
        self.numbers |= writer.constants
        self.functions |= writer.functions

    def _body(self) -> str:
        """The functions that run all steps.

        `body` returns 0, or 1 if there is no memory, or 2 if an index is out of range.
        """
        self.offsets, size = place(self.plan)
        parts: list[str] = []
        for start in range(0, len(self.plan.steps), _STEPS):
            steps = self.plan.steps[start : start + _STEPS]
            parts.append(self._part(f"part{len(parts)}", steps))
        writer = FunctionWriter()
        writer.start("entry")
        workspace = self._workspace(writer, size)
        if self.plan.checks:
            writer.do(f"store i64 0, ptr {workspace}")
        for k in range(len(parts)):
            writer.do(f"call void @part{k}(ptr %inputs, ptr %outputs, ptr {workspace})")
        status = writer.op(f"load i64, ptr {workspace}") if self.plan.checks else "0"
        if size > _STACK:
            writer.call("void", "free", [("ptr", workspace)])
        wrong = writer.op(f"icmp ne i64 {status}, 0")
        writer.do(f"ret i32 {writer.op(f'select i1 {wrong}, i32 2, i32 0')}")
        self._collect(writer)
        lines = "\n".join(writer.lines)
        parts.append(f"define internal i32 @body(ptr %inputs, ptr %outputs) {{\n{lines}\n}}")
        return "\n\n".join(parts)

    def _part(self, name: str, steps: list[Any]) -> str:
        """Some steps in a row. It is only calls: LLVM need not think about it for long."""
        writer = FunctionWriter()
        writer.start("entry")
        for step in steps:
            if isinstance(step, Kernel):
                self._call_kernel(writer, step)
            else:
                self._call_product(writer, step)
        writer.do("ret void")
        self._collect(writer)
        head = f"define internal void @{name}(ptr %inputs, ptr %outputs, ptr %workspace)"
        return f"{head} noinline optnone {{\n{chr(10).join(writer.lines)}\n}}"

    def _workspace(self, writer: FunctionWriter, size: int) -> str:
        if not size:
            return "null"
        if size <= _STACK:
            return writer.op(f"alloca [{size} x i8], align 64")
        memory = writer.call("ptr", "malloc", [("i64", str(size))])
        good, bad = writer.label(), writer.label()
        writer.branch(writer.op(f"icmp ne ptr {memory}, null"), good, bad)
        writer.start(bad)
        writer.do("ret i32 1")
        writer.start(good)
        return memory

    def _pointer(self, writer: FunctionWriter, view: View) -> str:
        """Where a view begins."""
        buffer = view.buffer
        if buffer.role == "identity":
            return str(view.offset)
        distance = view.offset * buffer.kind.size
        if buffer.role == "work":
            base, distance = "%workspace", distance + self.offsets[buffer]
        else:
            if buffer.role == "constant":
                array = self.plan.constants[buffer.index]
                table, index = "@context", self.context.address(array.ctypes.data, array)
            else:
                table, index = f"%{buffer.role}s", buffer.index
            slot = writer.op(f"getelementptr ptr, ptr {table}, i64 {index}")
            base = writer.op(f"load ptr, ptr {slot}")
        return writer.op(f"getelementptr i8, ptr {base}, i64 {distance}") if distance else base

    def _named(self, text: str) -> str:
        """The name of a kernel; kernels of the same text are the same."""
        return self.kernels.setdefault(text, f"kernel{len(self.kernels)}")

    def _call_kernel(self, writer: FunctionWriter, kernel: Kernel) -> None:
        if not kernel.items:
            return
        loops = KernelWriter(kernel, self.plan.values, vector_bytes())
        lines = loops.write()
        kinds = ["i64" if loops.is_identity(k) else "ptr" for k in range(len(loops.accesses))]
        parameters = [f"{kind} %p{k}" for k, kind in enumerate(kinds)]
        if loops.checks:
            kinds.append("ptr")
            parameters.append("ptr %status")
        parameters += ["i64 %lo", "i64 %hi"]
        name = self._named(f"({', '.join(parameters)}) {{\n{lines}\n}}")
        self._collect(loops.writer)
        points = 1
        for loop in loops.loops:
            points *= loop.length
        self.work += points * len(kernel.items)
        pointers = [self._pointer(writer, access.view) for access in loops.accesses]
        if loops.checks:
            pointers.append("%workspace")
        for view in kernel.cleared:
            self._fill(writer, view, 0)
        for access, value in loops.fills:
            self._fill(writer, loops.accesses[access].view, value)
        kinds += ["i64", "i64"]
        parts = parts_of(loops)
        if len(parts) == 1:
            self._call(writer, Task(name, kinds, [*pointers, "0", str(parts[0][1])]))
            return
        tables = [list(pointers) for _ in parts]
        cells = {item: private_cells(writer, len(parts)) for item in loops.totals}
        for item, places in cells.items():
            for table, place_of_part in zip(tables, places, strict=True):
                table[loops.targets[item]] = place_of_part
        # The last rounds of a part touch what the next part touches, so they come afterward.
        reach = loops.reach or 0
        tasks = [
            Task(
                name, kinds, [*table, str(start), str(stop - (reach if stop < parts[-1][1] else 0))]
            )
            for table, (start, stop) in zip(tables, parts, strict=True)
        ]
        self._run(writer, tasks)
        for _, stop in parts[:-1]:
            if reach:
                self._call(writer, Task(name, kinds, [*pointers, str(stop - reach), str(stop)]))
        for item, places in cells.items():
            combine_cells(writer, loops, item, places, pointers[loops.targets[item]])

    def _call(self, writer: FunctionWriter, task: Task) -> None:
        arguments = [f"{kind} {v}" for kind, v in zip(task.kinds, task.values, strict=True)]
        writer.do(f"call void @{task.name}({', '.join(arguments)})")

    def _run(self, writer: FunctionWriter, tasks: list[Task]) -> None:
        """One call, or several at the same time."""
        if len(tasks) == 1:
            self._call(writer, tasks[0])
            return
        for task in tasks:
            self.starters[task.name] = starter(task.name, task.kinds)
        run_in_threads(writer, tasks)

    def _fill(self, writer: FunctionWriter, view: View, value: Any) -> None:
        """Set a whole buffer to a number."""
        buffer, kind = view.buffer, view.buffer.kind
        start = self._pointer(writer, view)
        if not value:
            size = str(buffer.size * kind.size)
            arguments = [("ptr", start), ("i8", "0"), ("i64", size), ("i1", "false")]
            writer.call("void", "llvm.memset.p0.i64", arguments)
            return
        self.fills.add(kind)
        number = str(int(value)) if kind.is_bool else literal(value, kind)
        writer.do(
            f"call void @fill_{kind.memory}(ptr {start}, i64 {buffer.size}, {kind.memory} {number})"
        )

    def _call_product(self, writer: FunctionWriter, product: Product) -> None:
        blas = find_blas()
        kind = product.out.buffer.kind
        slot = self.context.address(blas.addresses[kind.letter]) if blas is not None else -1
        self.work += product.out.size * product.a.shape[-1]
        tasks = []
        for part in in_parts(product, thread_count()):
            matrices = ProductWriter(part, vector_bytes(), slot)
            name = self._named(f"(ptr %a, ptr %b, ptr %c) {{\n{matrices.write()}\n}}")
            self._collect(matrices.writer)
            pointers = [self._pointer(writer, view) for view in matrices.product]
            tasks.append(Task(name, ["ptr"] * 3, pointers))
        self._run(writer, tasks)


def _fill_function(kind: Kind) -> str:
    memory = kind.memory
    return f"""define internal void @fill_{memory}(ptr %p, i64 %n, {memory} %value) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr {memory}, ptr %p, i64 %i
  store {memory} %value, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
