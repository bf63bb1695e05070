"""A plan as one LLVM module: the kernels, the function that runs them in order, and the entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.compiler.native.engine import vector_bytes
from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import NumberKind, literal
from functrans.compiler.native.library import (
    product_function,
    provide_declared,
    provide_vector_function,
)
from functrans.compiler.native.loops import KernelWriter
from functrans.compiler.native.memory import place_buffers
from functrans.compiler.native.plan import Kernel, Plan
from functrans.compiler.native.products import (
    Product,
    ProductWriter,
    arranged,
    bands,
    find_blas,
    is_small,
    is_tiled,
)
from functrans.compiler.native.python_call import AddressTable, EntryWriter
from functrans.compiler.native.strides import BufferView
from functrans.compiler.native.threads import (
    Job,
    combine_cells,
    in_table_form,
    private_cells,
    run_in_threads,
    thread_count,
    thread_parts,
    whole_rounds,
)
from functrans.compiler.native.tiles import tile_sizes
from functrans.compiler.native.workspace import KEPT_FROM

_STACK = 1 << 14  # bytes; a larger workspace is allocated
_STEPS = 100  # in one function
_RELEASE = 1 << 15  # elements; with more work than this, Python's lock is released


class NativeModule:
    """The text of a plan, and the addresses that it needs."""

    def __init__(
        self, plan: Plan, arguments: tuple[Any, ...], results: Any, slow: Any, in_numpy: Any
    ) -> None:
        self.plan = plan
        self.context = AddressTable()
        self.context.object(slow)  # place 0: see EntryWriter
        self.context.object(in_numpy)  # place 1
        self.declarations: set[str] = set()
        self.numbers: dict[tuple[str, str], str] = {}
        self.functions: set[tuple[str, str, int]] = set()
        self.kernels: dict[str, str] = {}  # the text of each kernel -> its name
        self.fills: set[NumberKind] = set()
        self.tables: dict[tuple[int, ...], str] = {}  # integers in memory -> their name
        self.work = 0
        body = self._body()
        graph = plan.graph
        entry = EntryWriter(
            self.context,
            arguments,
            results,
            [v.spec for v in graph.inputs],
            [v.spec for v in graph.outputs],
            graph.arrays or frozenset(),
            self.work > _RELEASE,
        )
        entry_text = entry.write()
        self._collect(entry.writer)
        for function in self.functions:
            provide_vector_function(*function)
        provide_declared(self.declarations)
        parts = [
            f"@context = global [{max(len(self.context.addresses), 1)} x ptr] zeroinitializer",
            *(
                f"{name} = internal constant {kind} {value}"
                for (kind, value), name in self.numbers.items()
            ),
            *(_constant(name, numbers) for numbers, name in self.tables.items()),
            *entry.globals,
            *sorted(self.declarations),
            *(f"define internal void @{name}{text}" for text, name in self.kernels.items()),
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
        self.offsets, size = place_buffers(self.plan)
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
            give = "free" if size < KEPT_FROM else "ft_give_workspace"
            writer.call("void", give, [("ptr", workspace)])
        wrong = writer.op(f"icmp ne i64 {status}, 0")
        writer.do(f"ret i32 {writer.op(f'select i1 {wrong}, i32 2, i32 0')}")
        self._collect(writer)
        lines = "\n".join(writer.lines)
        parts.append(f"define internal i32 @body(ptr %inputs, ptr %outputs) {{\n{lines}\n}}")
        return "\n\n".join(parts)

    def _part(self, name: str, steps: list[Any]) -> str:
        """Some consecutive steps. They are only calls, which LLVM compiles quickly."""
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
        take = "malloc" if size < KEPT_FROM else "ft_take_workspace"
        memory = writer.call("ptr", take, [("i64", str(size))])
        good, bad = writer.label(), writer.label()
        writer.branch(writer.op(f"icmp ne ptr {memory}, null"), good, bad)
        writer.start(bad)
        writer.do("ret i32 1")
        writer.start(good)
        return memory

    def _pointer(self, writer: FunctionWriter, view: BufferView) -> str:
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
        """The name of a kernel; kernels with the same text share one."""
        return self.kernels.setdefault(text, f"kernel{len(self.kernels)}")

    def _call_kernel(self, writer: FunctionWriter, kernel: Kernel) -> None:
        if not kernel.items:
            return
        loops = KernelWriter(kernel, self.plan.values, vector_bytes())
        lines = loops.write()
        parts = thread_parts(loops)
        # The last rounds of a part touch what the next part touches, so they come afterward.
        reach = whole_rounds(loops, loops.reach or 0)
        afterward = [(stop - reach, stop) for _, stop in parts[:-1]] if reach else []
        if loops.begun and afterward:
            loops = KernelWriter(kernel, self.plan.values, vector_bytes())
            loops.is_fresh = "%fresh"  # not in the iterations that run afterward
            lines = loops.write()
        self._collect(loops.writer)
        points = 1
        for loop in loops.loops:
            points *= loop.length
        self.work += points * len(kernel.items)
        for view in kernel.cleared:
            self._clear(writer, loops, view, afterward)
        for access, value in loops.fills:
            self._fill(writer, loops.accesses[access].view, value)
        kinds = ["i64" if loops.is_identity(k) else "ptr" for k in range(len(loops.accesses))]
        parameters = [(kind, f"%p{k}") for k, kind in enumerate(kinds)]
        pointers = [self._pointer(writer, access.view) for access in loops.accesses]
        if loops.checks:
            parameters.append(("ptr", "%status"))
            pointers.append("%workspace")
        parameters += [("i64", "%lo"), ("i64", "%hi")]
        if len(parts) == 1:
            self._call(writer, parameters, lines, [*pointers, "0", str(parts[0][1])])
            return
        ranges = [(start, stop - (reach if stop < parts[-1][1] else 0)) for start, stop in parts]
        cells = {item: private_cells(writer, len(parts)) for item in loops.totals}
        table = list(pointers)
        for item, place_of_cells in cells.items():
            table[loops.targets[item]] = place_of_cells
        private = {loops.targets[item] for item in cells}
        name = self._named(in_table_form(parameters, private, len(parts), lines))
        kinds = [kind for kind, _ in parameters[:-2]]
        job = Job(name, [*kinds, "ptr"], [*table, self._integers([*ranges, *afterward])])
        filled = run_in_threads(writer, job, len(parts))
        for k in range(len(afterward)):
            writer.do(f"call void @{name}(ptr {filled}, i64 {len(parts) + k})")
        for item, place_of_cells in cells.items():
            target = pointers[loops.targets[item]]
            combine_cells(writer, loops, item, place_of_cells, len(parts), target)

    def _clear(
        self,
        writer: FunctionWriter,
        loops: KernelWriter,
        view: BufferView,
        afterward: list[tuple[int, int]],
    ) -> None:
        """Set the memory that a kernel adds to to zero, except for the rows that its iterations begin."""
        rows = loops.begun.get(view.buffer)
        if rows is None:
            self._fill(writer, view, 0)
            return
        kind = view.buffer.kind
        pieces = [(0, rows.first), (rows.first + rows.rounds, view.buffer.size // rows.length)]
        pieces += [(start + rows.first, stop + rows.first) for start, stop in afterward]
        for start, stop in pieces:
            if start < stop:
                entries = BufferView(view.buffer, (), (), start * rows.length)
                self._zeros(writer, entries, (stop - start) * rows.length * kind.size)

    def _zeros(self, writer: FunctionWriter, view: BufferView, size: int) -> None:
        start = self._pointer(writer, view)
        arguments = [("ptr", start), ("i8", "0"), ("i64", str(size)), ("i1", "false")]
        writer.call("void", "llvm.memset.p0.i64", arguments)

    def _integers(self, ranges: list[tuple[int, int]], before: Sequence[int] = ()) -> str:
        """The address of some integers and ranges in memory."""
        numbers = (*before, *(bound for bounds in ranges for bound in bounds))
        return self.tables.setdefault(numbers, f"@integers{len(self.tables)}")

    def _call(
        self,
        writer: FunctionWriter,
        parameters: list[tuple[str, str]],
        lines: str,
        values: list[str],
    ) -> None:
        head = ", ".join(f"{kind} {name}" for kind, name in parameters)
        name = self._named(f"({head}) {{\n{lines}\n}}")
        given = [f"{kind} {v}" for (kind, _), v in zip(parameters, values, strict=True)]
        writer.do(f"call void @{name}({', '.join(given)})")

    def _fill(self, writer: FunctionWriter, view: BufferView, value: Any) -> None:
        """Set a whole buffer to a number."""
        buffer, kind = view.buffer, view.buffer.kind
        if not value:
            self._zeros(writer, view, buffer.size * kind.size)
            return
        start = self._pointer(writer, view)
        self.fills.add(kind)
        number = str(int(value)) if kind.is_bool else literal(value, kind)
        writer.do(
            f"call void @fill_{kind.memory}(ptr {start}, i64 {buffer.size}, {kind.memory} {number})"
        )

    def _call_product(self, writer: FunctionWriter, product: Product) -> None:
        product = arranged(product)
        self.work += product.out.size * product.a.shape[-1]
        pointers = [self._pointer(writer, view) for view in product]
        parts = bands(product, thread_count())
        if is_tiled(product):
            self._call_tiles(writer, product, pointers, parts)
            return
        kind, slot = product.out.buffer.kind, -1
        blas = find_blas()
        if not is_small(product.a, product.b) and blas is not None:
            slot = self.context.address(blas.addresses[kind.letter])
        matrices = ProductWriter(product, vector_bytes(), slot, len(parts) > 1)
        lines = matrices.write()
        self._collect(matrices.writer)
        parameters = [("ptr", f"%{name}") for name in "abc"]
        if len(parts) == 1:
            self._call(writer, parameters, lines, pointers)
            return
        name = self._named(
            in_table_form([*parameters, ("i64", "%lo"), ("i64", "%hi")], set(), len(parts), lines)
        )
        run_in_threads(
            writer, Job(name, ["ptr"] * 4, [*pointers, self._integers(parts)]), len(parts)
        )

    def _call_tiles(
        self,
        writer: FunctionWriter,
        product: Product,
        pointers: list[str],
        parts: list[tuple[int, int]],
    ) -> None:
        """The product of one pair of matrices, with the function that all modules share."""
        a, b, c = product
        kind = c.buffer.kind
        strides = [*a.strides[-2:], b.strides[-2], c.strides[-2]]
        numbers = tile_sizes(a.shape[-1], b.shape[-1], strides, kind.size)
        name = product_function(kind.letter, vector_bytes())
        job = Job(name, ["ptr"] * 4, [*pointers, self._integers(parts, numbers)])
        if len(parts) > 1:
            self.declarations.add(f"declare void @{name}(ptr, i64)")
            run_in_threads(writer, job, len(parts))
        else:
            writer.call("void", name, [("ptr", job.table(writer)), ("i64", "0")])


def _constant(name: str, numbers: tuple[int, ...]) -> str:
    entries = ", ".join(f"i64 {number}" for number in numbers)
    return f"{name} = internal constant [{len(numbers)} x i64] [{entries}]"


def _fill_function(kind: NumberKind) -> str:
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
