"""Running sums, products and extremes in machine code, term by term as NumPy computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import FLOAT32, FLOAT64, NumberKind, number_kind_of
from functrans.compiler.native.lanes import LaneWriter
from functrans.compiler.native.lowering import Control, VectorRule, lowers
from functrans.compiler.native.plan import Plan, PlannedValue
from functrans.compiler.native.small_matrices import in_order
from functrans.compiler.native.strides import BufferView
from functrans.core.shapes import ArraySpec
from functrans.core.summation import FEW
from functrans.graph.graph import Equation, Variable
from functrans.ops import elementwise as ew
from functrans.ops import reduction, running, structure

# Each is a chain of one elementwise operation.
_LINKS = {
    reduction.cumsum: ew.add,
    reduction.cumprod: ew.multiply,
    running.running_max: ew.maximum,
    running.running_min: ew.minimum,
}
_BY_NAME = {each.name: each for each in _LINKS}
_LINE = 64  # bytes that are computed at a time, if terms lie apart


class RunningStep(NamedTuple):
    """A chain along the middle one of three axes."""

    name: str
    operand: BufferView
    result: BufferView
    sizes: tuple[int, int, int]

    @property
    def views(self) -> list[BufferView]:
        """All memory that the step reads or writes."""
        return [self.operand, self.result]

    @property
    def operations(self) -> int:
        return prod(self.sizes)

    def call(self, writer: FunctionWriter, pointers: list[str]) -> None:
        """Write the call."""
        sizes = [("i64", str(size)) for size in self.sizes]
        writer.call("void", self.name, [*(("ptr", each) for each in pointers), *sizes])


def _takes(equation: Equation, known: Mapping[Variable, Any]) -> bool:
    kind = number_kind_of(equation.outputs[0].spec.dtype)
    return kind is not None and not kind.is_bool and not equation.inputs[0].spec.weak


def _plan(plan: Plan, equation: Equation) -> None:
    (x,), (out,) = equation.inputs, equation.outputs
    if x.spec.dtype != out.spec.dtype:
        same = Variable(ArraySpec(x.spec.shape, out.spec.dtype))
        plan.add(Equation(structure.astype, (x,), {"dtype": out.spec.dtype}, (same,)))
        x = same
    shape, axis = out.spec.shape, equation.params["axis"] % out.spec.ndim
    sizes = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    kind = number_kind_of(out.spec.dtype)
    assert kind is not None
    # Long sums in single precision would lose digits.
    wide = equation.primitive is reduction.cumsum and kind is FLOAT32 and sizes[1] > FEW
    form = "wide" if wide else "plain"
    name = f"ft_running_{equation.primitive.name}_{form}_{kind.dtype.name}"
    operand, result = in_order(plan, x), plan.block(out)
    plan.steps.append(RunningStep(name, operand, result, sizes))
    plan.values[out] = PlannedValue(len(plan.steps) - 1, view=result)


lowers.state(*_LINKS, entry=Control(_takes, _plan))


# The functions.


def running_function(name: str, form: str, kind: NumberKind) -> str:
    """The text of one of them: (operand, result, number of blocks, terms, distance of terms)."""
    return _RunningWriter(_BY_NAME[name], kind, FLOAT64 if form == "wide" else kind).text(
        f"ft_running_{name}_{form}_{kind.dtype.name}"
    )


class _RunningWriter:
    """Writes the loops over blocks, over positions in a block, and along the chain."""

    def __init__(self, primitive: Any, kind: NumberKind, inner: NumberKind) -> None:
        self.link = lowers.of(_LINKS[primitive])
        self.kind = kind
        self.inner = inner  # the kind in which terms are combined
        self.writer = FunctionWriter()

    def text(self, name: str) -> str:
        writer = self.writer
        writer.start("entry")
        self._each("0", "%blocks", 1, self._block)
        writer.do("ret void")
        head = f"define void @{name}(ptr %x, ptr %y, i64 %blocks, i64 %n, i64 %apart)"
        lines = "\n".join(writer.lines)
        return "\n".join([*sorted(writer.declarations), f"{head} {{\n{lines}\n}}"])

    def _each(self, start: str, stop: str, step: int, body: Callable[[str], None]) -> None:
        def one(index: str, _: list[str]) -> list[str]:
            body(index)
            return []

        self.writer.loop(start, stop, step, one, once=False)

    def _block(self, block: str) -> None:
        writer, width = self.writer, _LINE // self.kind.size
        first = writer.op(f"mul i64 {writer.op(f'mul i64 {block}, %n')}, %apart")
        whole = writer.op(f"and i64 %apart, {-width}")
        self._each("0", whole, width, lambda at: self._chain(first, at, width))
        self._each(whole, "%apart", 1, lambda at: self._chain(first, at, 1))

    def _chain(self, first: str, position: str, width: int) -> None:
        writer, kind, link = self.writer, self.kind, self.link
        lanes = LaneWriter(writer, width)
        assert isinstance(link, VectorRule)
        start = writer.op(f"add i64 {first}, {position}")

        def load(place: str) -> str:
            address = writer.op(f"getelementptr {kind.memory}, ptr %x, i64 {place}")
            value = writer.op(f"load {lanes.type(kind)}, ptr {address}, align {kind.size}")
            return lanes.convert(value, kind, self.inner)

        def store(value: str, place: str) -> None:
            address = writer.op(f"getelementptr {kind.memory}, ptr %y, i64 {place}")
            value = lanes.convert(value, self.inner, kind)
            writer.do(f"store {lanes.type(kind)} {value}, ptr {address}, align {kind.size}")

        def step(k: str, carried: list[str]) -> list[str]:
            place = writer.op(f"add i64 {start}, {writer.op(f'mul i64 {k}, %apart')}")
            total = link.rule(lanes, self.inner, carried[0], load(place))
            store(total, place)
            return [total]

        total = load(start)
        store(total, start)
        writer.loop("1", "%n", 1, step, [(lanes.type(self.inner), total)], once=False)
