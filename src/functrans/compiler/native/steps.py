"""The functions that run the steps of a plan: what each step calls, with which addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functrans.compiler.native.control_code import PARAMETERS, call_control
from functrans.compiler.native.engine import vector_bytes
from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import literal
from functrans.compiler.native.library import product_function
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
from functrans.compiler.native.running import RunningStep
from functrans.compiler.native.small_matrices import MatrixStep
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

if TYPE_CHECKING:
    from functrans.compiler.native.module import NativeModule

_STEPS = 100  # in one function


class StepWriter:
    """Writes the functions of one plan into a module."""

    def __init__(self, module: NativeModule, plan: Plan) -> None:
        self.module = module
        self.plan = plan
        self.offsets, self.size = place_buffers(plan)

    def write(self, name: str) -> None:
        """Add the function `name`, which runs all steps."""
        steps, calls = self.plan.steps, list[str]()
        if len(steps) <= _STEPS:
            self._add_part(name, steps)
            return
        for start in range(0, len(steps), _STEPS):
            part = f"{name}_part{len(calls)}"
            self._add_part(part, steps[start : start + _STEPS])
            calls.append(f"  call void @{part}({PARAMETERS})")
        self.module.add_function(name, ["entry:", *calls, "  ret void"])

    def _add_part(self, name: str, steps: list[Any]) -> None:
        """Some consecutive steps. They are only calls, which LLVM compiles quickly."""
        writer = FunctionWriter()
        writer.start("entry")
        for step in steps:
            if isinstance(step, Kernel):
                self._call_kernel(writer, step)
            elif isinstance(step, Product):
                self._call_product(writer, step)
            elif isinstance(step, (MatrixStep, RunningStep)):
                step.call(writer, [self.pointer(writer, view) for view in step.views])
                self.module.work += step.operations
            else:
                call_control(self, writer, step)
        writer.do("ret void")
        self.module.collect(writer)
        self.module.add_function(name, writer.lines)

    def pointer(self, writer: FunctionWriter, view: BufferView) -> str:
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
                table, index = "@context", self.module.context.address(array.ctypes.data, array)
            else:
                table, index = f"%{buffer.role}s", buffer.index
            slot = writer.op(f"getelementptr ptr, ptr {table}, i64 {index}")
            base = writer.op(f"load ptr, ptr {slot}")
        return writer.op(f"getelementptr i8, ptr {base}, i64 {distance}") if distance else base

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
        self.module.collect(loops.writer)
        points = 1
        for loop in loops.loops:
            points *= loop.length
        self.module.work += points * len(kernel.items)
        for view in kernel.cleared:
            self._clear(writer, loops, view, afterward)
        for access, value in loops.fills:
            self._fill(writer, loops.accesses[access].view, value)
        kinds = ["i64" if loops.is_identity(k) else "ptr" for k in range(len(loops.accesses))]
        parameters = [(kind, f"%p{k}") for k, kind in enumerate(kinds)]
        pointers = [self.pointer(writer, access.view) for access in loops.accesses]
        if loops.checks:
            parameters.append(("ptr", "%status"))
            pointers.append("%status")
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
        name = self.module.named(in_table_form(parameters, private, len(parts), lines))
        kinds = [kind for kind, _ in parameters[:-2]]
        job = Job(name, [*kinds, "ptr"], [*table, self.module.integers([*ranges, *afterward])])
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
            self._zeros(writer, view, view.size * view.buffer.kind.size)
            return
        kind = view.buffer.kind
        pieces = [(0, rows.first), (rows.first + rows.rounds, view.buffer.size // rows.length)]
        pieces += [(start + rows.first, stop + rows.first) for start, stop in afterward]
        for start, stop in pieces:
            if start < stop:
                entries = BufferView(view.buffer, (), (), start * rows.length)
                self._zeros(writer, entries, (stop - start) * rows.length * kind.size)

    def _zeros(self, writer: FunctionWriter, view: BufferView, size: int) -> None:
        start = self.pointer(writer, view)
        arguments = [("ptr", start), ("i8", "0"), ("i64", str(size)), ("i1", "false")]
        writer.call("void", "llvm.memset.p0.i64", arguments)

    def _call(
        self,
        writer: FunctionWriter,
        parameters: list[tuple[str, str]],
        lines: str,
        values: list[str],
    ) -> None:
        head = ", ".join(f"{kind} {name}" for kind, name in parameters)
        name = self.module.named(f"({head}) {{\n{lines}\n}}")
        given = [f"{kind} {v}" for (kind, _), v in zip(parameters, values, strict=True)]
        writer.do(f"call void @{name}({', '.join(given)})")

    def _fill(self, writer: FunctionWriter, view: BufferView, value: Any) -> None:
        """Set a whole buffer to a number."""
        buffer, kind = view.buffer, view.buffer.kind
        if not value:
            self._zeros(writer, view, buffer.size * kind.size)
            return
        start = self.pointer(writer, view)
        self.module.fills.add(kind.memory)
        number = str(int(value)) if kind.is_bool else literal(value, kind)
        writer.do(
            f"call void @fill_{kind.memory}(ptr {start}, i64 {buffer.size}, {kind.memory} {number})"
        )

    def _call_product(self, writer: FunctionWriter, product: Product) -> None:
        product = arranged(product)
        self.module.work += product.out.size * product.a.shape[-1]
        pointers = [self.pointer(writer, view) for view in product]
        parts = bands(product, thread_count())
        if is_tiled(product):
            self._call_tiles(writer, product, pointers, parts)
            return
        kind, slot = product.out.buffer.kind, -1
        blas = find_blas()
        if not is_small(product.a, product.b) and blas is not None:
            slot = self.module.context.address(blas.addresses[kind.letter])
        matrices = ProductWriter(product, vector_bytes(), slot, len(parts) > 1)
        lines = matrices.write()
        self.module.collect(matrices.writer)
        parameters = [("ptr", f"%{name}") for name in "abc"]
        if len(parts) == 1:
            self._call(writer, parameters, lines, pointers)
            return
        name = self.module.named(
            in_table_form([*parameters, ("i64", "%lo"), ("i64", "%hi")], set(), len(parts), lines)
        )
        run_in_threads(
            writer, Job(name, ["ptr"] * 4, [*pointers, self.module.integers(parts)]), len(parts)
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
        job = Job(name, ["ptr"] * 4, [*pointers, self.module.integers(parts, numbers)])
        if len(parts) > 1:
            self.module.declarations.add(f"declare void @{name}(ptr, i64)")
            run_in_threads(writer, job, len(parts))
        else:
            writer.call("void", name, [("ptr", job.table(writer)), ("i64", "0")])
