"""A plan as one LLVM module: the kernels, the function that runs them in order, and the entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.compiler.native.control_code import PARAMETERS
from functrans.compiler.native.engine import JOINED
from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.library import provide_declared, provide_vector_function
from functrans.compiler.native.plan import Plan
from functrans.compiler.native.python_call import AddressTable, EntryWriter
from functrans.compiler.native.steps import StepWriter
from functrans.compiler.native.workspace import KEPT_FROM

_STACK = 1 << 14  # bytes; a larger workspace is allocated
_SHORT = 100  # lines of a function
_JOINED_LINES = 80  # of a kernel that is inlined
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
        self.vector_functions: set[tuple[str, str, int]] = set()
        self.kernels: dict[str, str] = {}  # the text of each kernel -> its name
        self.functions: list[str] = []  # that run steps
        self.fills: set[str] = set()  # types in memory
        self.tables: dict[tuple[int, ...], str] = {}  # integers in memory -> their name
        self.regions: dict[Any, tuple[str, int]] = {}  # bodies: their names, and their work
        self.work = 0
        self._count = 0
        steps = StepWriter(self, plan)
        steps.write("steps")
        body = self._body(steps.size)
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
        self.collect(entry.writer)
        for function in self.vector_functions:
            provide_vector_function(*function)
        provide_declared(self.declarations)
        parts = [
            JOINED if self.regions else "",
            f"@context = global [{max(len(self.context.addresses), 1)} x ptr] zeroinitializer",
            *(
                f"{name} = internal constant {kind} {value}"
                for (kind, value), name in self.numbers.items()
            ),
            *(_constant(name, numbers) for numbers, name in self.tables.items()),
            *entry.globals,
            *sorted(self.declarations),
            *(self._kernel(text, name) for text, name in self.kernels.items()),
            *(_fill_function(memory) for memory in sorted(self.fills)),
            *self.functions,
            body,
            entry_text,
        ]
        self.text = "\n\n".join(part for part in parts if part)

    # What the writers of functions add.

    def collect(self, writer: FunctionWriter) -> None:
        """Note what a function refers to."""
        self.declarations |= writer.declarations
        self.numbers |= writer.constants
        self.vector_functions |= writer.functions

    def add_function(self, name: str, lines: Sequence[str]) -> None:
        """Add a function that runs steps. LLVM does not spend time on long ones, which are only calls."""
        attributes = "noinline optnone" if len(lines) > _SHORT else ""
        if self.regions and not attributes:
            attributes = "alwaysinline"
        head = f"define internal void @{name}({PARAMETERS}) {attributes}"
        self.functions.append(f"{head} {{\n{chr(10).join(lines)}\n}}")

    def region_name(self, region: Any) -> tuple[str, int]:
        """The name of the function that runs a body, and how much work it is."""
        if region not in self.regions:
            name, before = f"region{len(self.regions)}", self.work
            self.regions[region] = name, 0
            StepWriter(self, region.plan).write(name)
            self.regions[region] = name, self.work - before
            self.work = before
        return self.regions[region]

    def fresh_name(self) -> str:
        """A name for a function that runs steps."""
        self._count += 1
        return f"control{self._count}"

    def named(self, text: str) -> str:
        """The name of a kernel; kernels with the same text share one."""
        return self.kernels.setdefault(text, f"kernel{len(self.kernels)}")

    def integers(self, ranges: list[tuple[int, int]], before: Sequence[int] = ()) -> str:
        """The address of some integers and ranges in memory."""
        numbers = (*before, *(bound for bounds in ranges for bound in bounds))
        return self.tables.setdefault(numbers, f"@integers{len(self.tables)}")

    def _kernel(self, text: str, name: str) -> str:
        """The definition of a kernel. In a module with loops, short ones become part of what calls them."""
        parameters, start, body = text.partition(") {")
        joined = " alwaysinline" if self.regions and body.count("\n") <= _JOINED_LINES else ""
        return f"define internal void @{name}{parameters}){joined} {{{body}" if start else ""

    # The function that the entry calls.

    def _body(self, size: int) -> str:
        """The function that runs everything.

        It returns 0; 1 if it runs out of memory; 2 if NumPy has to do it, because an index is out of range,
        for example; or 3 if Python has an exception to raise.
        """
        writer = FunctionWriter()
        writer.start("entry")
        workspace = self._workspace(writer, size)
        status = writer.op("alloca i64")
        writer.do(f"store i64 0, ptr {status}")
        arguments = ("%inputs", "%outputs", workspace, status)
        writer.do(f"call void @steps({', '.join(f'ptr {each}' for each in arguments)})")
        if size > _STACK:
            give = "free" if size < KEPT_FROM else "ft_give_workspace"
            writer.call("void", give, [("ptr", workspace)])
        found = writer.op(f"load i64, ptr {status}")
        writer.do(f"ret i32 {writer.op(f'trunc i64 {found} to i32')}")
        self.collect(writer)
        lines = "\n".join(writer.lines)
        return f"define internal i32 @body(ptr %inputs, ptr %outputs) {{\n{lines}\n}}"

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


def _constant(name: str, numbers: tuple[int, ...]) -> str:
    entries = ", ".join(f"i64 {number}" for number in numbers)
    return f"{name} = internal constant [{len(numbers)} x i64] [{entries}]"


def _fill_function(memory: str) -> str:
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
