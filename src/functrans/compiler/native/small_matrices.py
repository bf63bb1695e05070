"""Small linear systems, determinants and Cholesky factors in machine code.

For a few rows, calling LAPACK takes longer than the work. These functions are the textbook's: elimination
with partial pivoting, row by row. A singular matrix, or one that is not positive definite, is left to NumPy,
which raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import NumberKind, number_kind_of
from functrans.compiler.native.lowering import Control, lowers
from functrans.compiler.native.plan import Plan, PlannedValue
from functrans.compiler.native.strides import BufferView, c_strides
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Variable
from functrans.ops.determinant import det, slogdet
from functrans.ops.factorization import cholesky, solve

LARGEST = 16  # rows; from there on, LAPACK is faster

_NAMES = {solve: "solve", det: "det", slogdet: "slogdet", cholesky: "cholesky"}


class MatrixStep(NamedTuple):
    """One operation on each of a stack of matrices."""

    name: str
    operands: list[BufferView]
    results: list[BufferView]
    work: BufferView
    matrices: int  # in the stack
    strides: list[int]  # of operands and results, from one of the stack to the next
    sizes: tuple[int, int]  # the rows of the matrix, and the columns of the right-hand side

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        return [*self.operands, *self.results, self.work]

    @property
    def operations(self) -> int:
        return self.matrices * self.sizes[0] ** 3

    def call(self, writer: FunctionWriter, pointers: list[str]) -> None:
        """Write the calls, one for each of the stack."""
        *pointers, work = pointers
        kind = self.work.buffer.kind
        name = f"ft_{self.name}_{kind.letter}"

        def one(index: str, _: list[str]) -> list[str]:
            places = []
            for pointer, stride in zip(pointers, self.strides, strict=True):
                distance = writer.op(f"mul i64 {index}, {stride}")
                places.append(
                    writer.op(f"getelementptr {kind.memory}, ptr {pointer}, i64 {distance}")
                )
            numbers = [("i64", str(size)) for size in self.sizes]
            given = [("ptr", place) for place in (*places, work)]
            writer.call("void", name, [*given, *numbers, ("ptr", "%status")])
            return []

        writer.loop("0", str(self.matrices), 1, one)


def _takes(equation: Equation, known: Mapping[Variable, Any]) -> bool:
    first, out = equation.inputs[0].spec, equation.outputs[0].spec
    kinds = {v.spec.dtype for v in (*equation.inputs, *equation.outputs)}
    kind = number_kind_of(out.dtype)
    if kind is None or not kind.is_float or len(kinds) > 1 or first.shape[-1] > LARGEST:
        return False
    stack = first.shape[:-2]
    if equation.primitive is solve:
        right = equation.inputs[1].spec.shape[:-2]
        return stack == right or not stack or not right
    return True


def _plan(plan: Plan, equation: Equation) -> None:
    primitive, inputs, outputs = equation.primitive, equation.inputs, equation.outputs
    n = inputs[0].spec.shape[-1]
    columns = inputs[1].spec.shape[-1] if primitive is solve else 0
    out = outputs[0].spec
    stack = out.shape[:-2] if primitive in (solve, cholesky) else out.shape
    operands = [in_order(plan, v) for v in inputs]
    results = [plan.block(v) for v in outputs]
    strides = [0 if v.spec.ndim == 2 else prod(v.spec.shape[-2:]) for v in inputs]
    strides += [prod(v.spec.shape[len(stack) :]) for v in outputs]
    work = plan.block(Variable(ArraySpec((n, n), out.dtype)))
    name = _NAMES[primitive]
    step = MatrixStep(name, operands, results, work, prod(stack), strides, (n, columns))
    plan.steps.append(step)
    for variable, view in zip(outputs, results, strict=True):
        plan.values[variable] = PlannedValue(len(plan.steps) - 1, view=view)


def in_order(plan: Plan, variable: Variable) -> BufferView:
    """A value in memory, in C order."""
    view = plan.memory(variable)
    fits = view.buffer.role != "identity" and view.strides == c_strides(view.shape)
    return view if fits else plan.copied(variable)


lowers.state(solve, det, slogdet, cholesky, entry=Control(_takes, _plan))


# The functions.


def matrix_function(name: str, kind: NumberKind) -> str:
    """The text of one of them: name(*operands, *results, work, n, m, status)."""
    return _MatrixWriter(kind).text(name)


class _MatrixWriter:
    """Writes scalar loops over the entries of matrices."""

    def __init__(self, kind: NumberKind) -> None:
        self.kind = kind
        self.type = kind.memory
        self.writer = FunctionWriter()

    def text(self, name: str) -> str:
        parameters, write = {
            "solve": (("a", "b", "x"), self.solve),
            "det": (("a", "x"), self.det),
            "slogdet": (("a", "x", "y"), self.slogdet),
            "cholesky": (("a", "x"), self.cholesky),
        }[name]
        self.writer.start("entry")
        write()
        self.writer.do("ret void")
        pointers = "".join(f"ptr %{each}, " for each in (*parameters, "w"))
        head = f"define void @ft_{name}_{self.kind.letter}({pointers}i64 %n, i64 %m, ptr %status)"
        lines = "\n".join(self.writer.lines)
        return "\n".join([*sorted(self.writer.declarations), f"{head} {{\n{lines}\n}}"])

    # Entries and loops.

    def at(self, matrix: str, row: str, column: str, width: str = "%n") -> str:
        writer = self.writer
        place = writer.op(f"add i64 {writer.op(f'mul i64 {row}, {width}')}, {column}")
        return writer.op(f"getelementptr {self.type}, ptr {matrix}, i64 {place}")

    def load(self, address: str) -> str:
        return self.writer.op(f"load {self.type}, ptr {address}")

    def store(self, value: str, address: str) -> None:
        self.writer.do(f"store {self.type} {value}, ptr {address}")

    def op(self, name: str, x: str, y: str) -> str:
        return self.writer.op(f"{name} {self.type} {x}, {y}")

    def intrinsic(self, name: str, x: str) -> str:
        suffix = "f64" if self.kind.size == 8 else "f32"
        return self.writer.call(self.type, f"llvm.{name}.{suffix}", [(self.type, x)])

    def each(self, start: str, stop: str, body: Callable[[str], None]) -> None:
        """A loop that may be empty."""

        def one(index: str, _: list[str]) -> list[str]:
            body(index)
            return []

        self.writer.loop(start, stop, 1, one, once=False)

    def after(self, index: str) -> str:
        return self.writer.op(f"add i64 {index}, 1")

    def copy(self, source: str, target: str, count: str) -> None:
        size = self.writer.op(f"mul i64 {count}, {self.kind.size}")
        arguments = [("ptr", target), ("ptr", source), ("i64", size), ("i1", "false")]
        self.writer.call("void", "llvm.memcpy.p0.p0.i64", arguments)

    def end_if(self, condition: str, at_end: Callable[[], None]) -> None:
        """Return here if a condition holds."""
        writer = self.writer
        end, going_on = writer.label(), writer.label()
        writer.branch(condition, end, going_on)
        writer.start(end)
        at_end()
        writer.do("ret void")
        writer.start(going_on)

    def note(self) -> None:
        self.writer.do("store i64 2, ptr %status")

    # Elimination.

    def eliminate(
        self, at_zero: Callable[[], None], right: str | None, swapped: Callable[[], None]
    ) -> None:
        """Make the matrix in %w upper triangular; the rows of `right` go along."""
        writer = self.writer
        self.copy("%a", "%w", writer.op("mul i64 %n, %n"))
        number, best = writer.op("alloca i64"), writer.op(f"alloca {self.type}")

        def column(k: str) -> None:
            writer.do(f"store i64 {k}, ptr {number}")
            self.store(self.intrinsic("fabs", self.load(self.at("%w", k, k))), best)

            def compare(i: str) -> None:
                size = self.intrinsic("fabs", self.load(self.at("%w", i, k)))
                old = self.load(best)
                larger = self.op("fcmp ogt", size, old)
                self.store(
                    writer.op(f"select i1 {larger}, {self.type} {size}, {self.type} {old}"), best
                )
                before = writer.op(f"load i64, ptr {number}")
                chosen = writer.op(f"select i1 {larger}, i64 {i}, i64 {before}")
                writer.do(f"store i64 {chosen}, ptr {number}")

            following = self.after(k)
            self.each(following, "%n", compare)
            self.end_if(self.op("fcmp oeq", self.load(best), "0.0"), at_zero)
            pivot_row = writer.op(f"load i64, ptr {number}")
            swap, done = writer.label(), writer.label()
            writer.branch(writer.op(f"icmp ne i64 {pivot_row}, {k}"), swap, done)
            writer.start(swap)
            self.each(k, "%n", lambda j: self.exchange("%w", k, pivot_row, j, "%n"))
            if right:
                self.each("0", "%m", lambda j: self.exchange(right, k, pivot_row, j, "%m"))
            swapped()
            writer.jump(done)
            writer.start(done)
            pivot = self.load(self.at("%w", k, k))

            def row(i: str) -> None:
                factor = self.op("fdiv", self.load(self.at("%w", i, k)), pivot)
                self.each(following, "%n", lambda j: self.subtract("%w", i, k, j, factor, "%n"))
                if right:
                    self.each("0", "%m", lambda j: self.subtract(right, i, k, j, factor, "%m"))

            self.each(following, "%n", row)

        self.each("0", "%n", column)

    def exchange(self, matrix: str, i: str, k: str, j: str, width: str) -> None:
        one, other = self.at(matrix, i, j, width), self.at(matrix, k, j, width)
        first, second = self.load(one), self.load(other)
        self.store(second, one)
        self.store(first, other)

    def subtract(self, matrix: str, i: str, k: str, j: str, factor: str, width: str) -> None:
        """Row i, minus a multiple of row k, at column j."""
        place = self.at(matrix, i, j, width)
        product = self.op("fmul", factor, self.load(self.at(matrix, k, j, width)))
        self.store(self.op("fsub", self.load(place), product), place)

    def solve(self) -> None:
        writer = self.writer
        self.copy("%b", "%x", writer.op("mul i64 %n, %m"))
        self.eliminate(self.note, "%x", lambda: None)

        def back(index: str) -> None:
            k = writer.op(f"sub i64 {writer.op('sub i64 %n, 1')}, {index}")
            pivot = self.load(self.at("%w", k, k))

            def divide(j: str) -> None:
                place = self.at("%x", k, j, "%m")
                self.store(self.op("fdiv", self.load(place), pivot), place)

            def above(i: str) -> None:
                factor = self.load(self.at("%w", i, k))
                self.each("0", "%m", lambda j: self.subtract("%x", i, k, j, factor, "%m"))

            self.each("0", "%m", divide)
            self.each("0", k, above)

        self.each("0", "%n", back)

    def det(self) -> None:
        self.store("1.0", "%x")
        self.eliminate(lambda: self.store("0.0", "%x"), None, lambda: self.negate("%x"))

        def multiply(k: str) -> None:
            self.store(self.op("fmul", self.load("%x"), self.load(self.at("%w", k, k))), "%x")

        self.each("0", "%n", multiply)

    def negate(self, place: str) -> None:
        self.store(self.writer.op(f"fneg {self.type} {self.load(place)}"), place)

    def slogdet(self) -> None:
        writer = self.writer
        infinity = "0xFFF0000000000000"
        self.store("1.0", "%x")
        self.store("0.0", "%y")

        def singular() -> None:
            self.store("0.0", "%x")
            self.store(infinity, "%y")

        self.eliminate(singular, None, lambda: self.negate("%x"))

        def add(k: str) -> None:
            pivot = self.load(self.at("%w", k, k))
            sign = self.load("%x")
            negative = self.op("fcmp olt", pivot, "0.0")
            turned = writer.op(f"fneg {self.type} {sign}")
            self.store(
                writer.op(f"select i1 {negative}, {self.type} {turned}, {self.type} {sign}"), "%x"
            )
            log = "log" if self.kind.size == 8 else "logf"
            size = self.intrinsic("fabs", pivot)
            self.store(
                self.op("fadd", self.load("%y"), writer.call(self.type, log, [(self.type, size)])),
                "%y",
            )

        self.each("0", "%n", add)

    def cholesky(self) -> None:
        writer = self.writer
        total = writer.op(f"alloca {self.type}")

        def column(j: str) -> None:
            def less(i: str) -> str:
                """An entry of the matrix, less what the columns before explain."""
                self.store(self.load(self.at("%a", i, j)), total)

                def one(k: str) -> None:
                    product = self.op(
                        "fmul", self.load(self.at("%x", i, k)), self.load(self.at("%x", j, k))
                    )
                    self.store(self.op("fsub", self.load(total), product), total)

                self.each("0", j, one)
                return self.load(total)

            square = less(j)
            positive = self.op("fcmp ogt", square, "0.0")
            self.end_if(writer.op(f"xor i1 {positive}, true"), self.note)
            pivot = self.intrinsic("sqrt", square)
            self.store(pivot, self.at("%x", j, j))
            self.each("0", j, lambda i: self.store("0.0", self.at("%x", i, j)))

            def below(i: str) -> None:
                value = less(i)
                self.store(self.op("fdiv", value, pivot), self.at("%x", i, j))

            self.each(self.after(j), "%n", below)

        self.each("0", "%n", column)
