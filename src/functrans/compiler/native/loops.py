"""Kernels as LLVM functions: one loop nest each, vectorized along its innermost axis."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.native.entrywise import Lanes, emit, operand_kinds
from functrans.compiler.native.kinds import Kind, kind_of, literal
from functrans.compiler.native.plan import Kernel, Value
from functrans.compiler.native.views import View
from functrans.compiler.native.writer import FunctionWriter
from functrans.graph.graph import Variable

# So many vectors are added up before their sum goes into a compensated one: the error of a long sum is
# then that of a short one, which is what NumPy reaches by adding in pairs.
_BLOCK = 64


class Reduction(NamedTuple):
    """How values are reduced: the instruction on vectors, and the intrinsic across lanes."""

    real: str
    integer: str
    across_real: str
    across_integer: str


_REDUCTIONS = {
    "sum": Reduction("fadd", "add", "fadd", "add"),
    "mean": Reduction("fadd", "add", "fadd", "add"),
    "prod": Reduction("fmul", "mul", "fmul", "mul"),
    "max": Reduction("maximum", "smax", "fmaximum", "smax"),
    "min": Reduction("minimum", "smin", "fminimum", "smin"),
    "any": Reduction("", "or", "", "or"),
    "all": Reduction("", "and", "", "and"),
}


def identity(name: str, kind: Kind) -> Any:
    """The value that changes nothing in a reduction."""
    if name in ("sum", "mean", "any"):
        return 0
    if name in ("prod", "all"):
        return 1
    if kind.is_float:
        return -np.inf if name == "max" else np.inf
    bounds = np.iinfo(kind.dtype)
    return bounds.min if name == "max" else bounds.max


class Access(NamedTuple):
    """A view that a kernel reads or writes, by its own pointer."""

    view: View
    pointer: str


class Loop(NamedTuple):
    """One loop of the nest: its length, and the stride of every access along it."""

    length: int
    strides: tuple[int, ...]


class KernelWriter:
    """Writes the function of one kernel.

    Its parameters are one pointer for each access, and the range of the outermost loop.
    """

    def __init__(self, kernel: Kernel, values: dict[Variable, Value], vector_bytes: int) -> None:
        self.kernel = kernel
        self.values = values
        self.writer = FunctionWriter()
        self.accesses: list[Access] = []
        self.loads = {variable: self._access(view) for variable, view in kernel.loads.items()}
        self.targets: list[int] = []  # for each item, its access
        self.items = kernel.items
        for item in self.items:
            self.targets.append(-1 if item.view is None else self._access(item.view))
        self.loops = _order(_collapse(kernel.shape, [a.view.strides for a in self.accesses]), self)
        self.inner = self.loops[-1]
        self.width = self._lanes(vector_bytes)
        self.fills: list[tuple[int, Any]] = []  # accesses that are filled with a number before
        self.pointers = [access.pointer for access in self.accesses]
        # Where sums over several loops keep what their rounding has lost, so that they are as exact as
        # NumPy's, which adds up all in pairs.
        self.lost: dict[int, str] = {}

    def _access(self, view: View) -> int:
        self.accesses.append(Access(view, f"%p{len(self.accesses)}"))
        return len(self.accesses) - 1

    def _lanes(self, vector_bytes: int) -> int:
        sizes = [access.view.buffer.kind.size for access in self.accesses]
        for item in self.items:
            kind = kind_of(item.variable.spec.dtype)
            if kind is not None and not kind.is_bool:
                sizes.append(kind.size)
        width = vector_bytes // max([4, *sizes])
        while width > 1 and width // 2 >= self.inner.length:
            width //= 2
        return width

    @property
    def is_parallel(self) -> bool:
        """Whether parts of the outermost loop can run at the same time."""
        return not any(
            item.action == "accumulate"
            or (item.action == "reduce" and not self.loops[0].strides[target])
            for item, target in zip(self.items, self.targets, strict=True)
        )

    @property
    def is_total(self) -> bool:
        """Whether they can if each part has its own place for the totals of all entries."""
        return len(self.loops) == 1 and not any(i.action == "accumulate" for i in self.items)

    @property
    def totals(self) -> list[int]:
        """The items that reduce all of the one loop; along an axis of length 1 there is nothing to add."""
        return [
            k
            for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True))
            if self.is_total and item.action == "reduce" and self.reduces_inside(target)
        ]

    @property
    def round(self) -> int:
        """How many entries one round of the innermost loop takes."""
        return self.width * self._unroll(self.inner.length)

    @property
    def rounds(self) -> int:
        """How many times a point was written out."""
        rest = self.inner.length % self.round
        return self._unroll(self.inner.length) + -(-rest // self.width)

    def reduces_inside(self, target: int) -> bool:
        """Whether the innermost loop is one of those that a reduction adds up."""
        return self.inner.strides[target] == 0 and self.inner.length > 1

    # The nest.

    def write(self) -> str:
        """The body of the function, from its first block to its return."""
        for item, target in zip(self.items, self.targets, strict=True):
            if item.action == "reduce" and not self._stored_at_once(target):
                name = item.equation.primitive.name if item.equation else "sum"
                self.fills.append((target, identity(name, self.accesses[target].view.buffer.kind)))
        self.writer.start("entry")
        for depth in range(len(self.loops) - 1):
            for k in self._begun_at(depth):
                self.lost[k] = self.writer.op(f"alloca {self._kind(k).memory}")
        self._nest(0)
        self.writer.do("ret void")
        return "\n".join(self.writer.lines)

    def _stored_at_once(self, target: int) -> bool:
        """Whether a reduction is finished by one run of the innermost loop."""
        outer = self.loops[:-1]
        return self.reduces_inside(target) and all(
            loop.strides[target] or loop.length == 1 for loop in outer
        )

    def _begun_at(self, depth: int) -> list[int]:
        """The sums of which this loop and all inside make one entry."""
        return [
            k
            for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True))
            if item.action == "reduce"
            and self._compensates(k)
            and self.reduces_inside(target)
            and not any(loop.strides[target] for loop in self.loops[depth:])
            and (not depth or self.loops[depth - 1].strides[target])
        ]

    def _nest(self, depth: int) -> None:
        if depth == len(self.loops) - 1:
            self._innermost(depth)
            return
        writer, loop = self.writer, self.loops[depth]
        sums = self._begun_at(depth)
        for k in sums:
            writer.do(f"store {self._kind(k).memory} 0.0, ptr {self.lost[k]}")
        start, stop = ("%lo", "%hi") if depth == 0 else ("0", str(loop.length))
        before, head, done = writer.block, writer.label(), writer.label()
        index, following = writer.fresh(), writer.fresh()
        writer.jump(head)
        writer.start(head)
        place = len(writer.lines)
        saved = self.pointers
        self.pointers = [
            self._offset(k, index, loop.strides[k]) if loop.strides[k] else pointer
            for k, pointer in enumerate(saved)
        ]
        self._nest(depth + 1)
        self.pointers = saved
        writer.do(f"{following} = add i64 {index}, 1")
        more = writer.op(f"icmp slt i64 {following}, {stop}")
        writer.lines.insert(
            place, f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{writer.block} ]"
        )
        writer.branch(more, head, done)
        writer.start(done)
        for k in sums:
            memory, target = self._kind(k).memory, self.pointers[self.targets[k]]
            parts = [writer.op(f"load {memory}, ptr {p}") for p in (target, self.lost[k])]
            total = writer.op(f"fadd {memory} {', '.join(parts)}")
            writer.do(f"store {memory} {total}, ptr {target}")

    def _offset(self, k: int, index: str, stride: int) -> str:
        writer = self.writer
        distance = index if stride == 1 else writer.op(f"mul i64 {index}, {stride}")
        kind = self.accesses[k].view.buffer.kind
        return writer.op(f"getelementptr {kind.memory}, ptr {self.pointers[k]}, i64 {distance}")

    # The innermost loop: whole vectors, then what is left.

    def _innermost(self, depth: int) -> None:
        length, width = self.inner.length, self.width
        lanes = Lanes(self.writer, width)
        standing = {
            variable: self._splat(lanes, access)
            for variable, access in self.loads.items()
            if not self.inner.strides[access]
        }
        split = depth == 0  # the range is given from outside
        unroll = self._unroll(length)
        step = width * unroll
        whole_end = length - length % step
        sums = [
            k
            for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True))
            if item.action == "reduce" and self.reduces_inside(target)
        ]
        totals = {k: [self._identity(lanes, k)] * unroll for k in sums}
        if whole_end or split:
            start, stop = ("%lo", "%hi") if split else ("0", str(whole_end))
            totals = self._vector_loop(lanes, standing, sums, start, stop, whole_end, unroll)
        # A range from outside ends at whole vectors, or at the end.
        rest = [(k, min(width, length - k)) for k in range(whole_end, length, width)]
        if rest:
            self._rest(lanes, standing, totals, rest, split)
        for k in sums:
            self._flush(lanes, k, totals[k])

    def _unroll(self, length: int) -> int:
        work = sum(item.action == "compute" for item in self.items)
        heavy = 1 if work > 12 else 2 if work > 5 else 4
        while heavy > 1 and length < 2 * heavy * self.width:
            heavy //= 2
        return heavy

    def _vector_loop(
        self,
        lanes: Lanes,
        standing: dict[Variable, str],
        sums: list[int],
        start: str,
        stop: str,
        count: int,
        unroll: int,
    ) -> dict[int, list[str]]:
        """Whole vectors from `start` to `stop`; returns what the reductions have come to."""
        writer = self.writer
        step = self.width * unroll
        if start == "%lo":
            stop = writer.call("i64", "llvm.smin.i64", [("i64", stop), ("i64", str(count))])
        blocked = any(self._compensates(k) for k in sums) and count > _BLOCK * step
        if not blocked:
            initial = {k: [self._identity(lanes, k)] * unroll for k in sums}
            return self._plain_loop(lanes, standing, initial, start, stop, unroll)
        return self._blocked_loop(lanes, standing, sums, start, stop, unroll)

    def _plain_loop(
        self,
        lanes: Lanes,
        standing: dict[Variable, str],
        totals: dict[int, list[str]],
        start: str,
        stop: str,
        unroll: int,
    ) -> dict[int, list[str]]:
        writer, step = self.writer, self.width * unroll
        before, head, body, done = writer.block, writer.label(), writer.label(), writer.label()
        index, following = writer.fresh(), writer.fresh()
        names = {k: [writer.fresh() for _ in range(unroll)] for k in totals}
        writer.jump(head)
        writer.start(head)
        place = len(writer.lines)
        more = writer.op(f"icmp slt i64 {index}, {stop}")
        writer.branch(more, body, done)
        writer.start(body)
        carried = names
        for part in range(unroll):
            at = index if not part else writer.op(f"add i64 {index}, {part * self.width}")
            found = self._point(lanes, standing, at, self.width)
            carried = {
                k: [
                    self.combine(lanes, k, old, found[k]) if j == part else old
                    for j, old in enumerate(olds)
                ]
                for k, olds in carried.items()
            }
        writer.do(f"{following} = add i64 {index}, {step}")
        end = writer.block
        writer.jump(head)
        phis = [f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{end} ]"]
        for k, olds in totals.items():
            vector = lanes.type(self._kind(k))
            phis += [
                f"  {name} = phi {vector} [ {old}, %{before} ], [ {new}, %{end} ]"
                for name, old, new in zip(names[k], olds, carried[k], strict=True)
            ]
        writer.lines[place:place] = phis
        writer.start(done)
        return names

    def _blocked_loop(
        self,
        lanes: Lanes,
        standing: dict[Variable, str],
        sums: list[int],
        start: str,
        stop: str,
        unroll: int,
    ) -> dict[int, list[str]]:
        """The same in blocks, whose sums are added up with compensation (Neumaier 1974)."""
        writer, span = self.writer, _BLOCK * self.width * unroll
        before, head, body, done = writer.block, writer.label(), writer.label(), writer.label()
        index, following = writer.fresh(), writer.fresh()
        names = {k: (writer.fresh(), writer.fresh()) for k in sums}
        writer.jump(head)
        writer.start(head)
        place = len(writer.lines)
        more = writer.op(f"icmp slt i64 {index}, {stop}")
        writer.branch(more, body, done)
        writer.start(body)
        writer.do(f"{following} = add i64 {index}, {span}")
        limit = writer.call("i64", "llvm.smin.i64", [("i64", following), ("i64", stop)])
        initial = {k: [self._identity(lanes, k)] * unroll for k in sums}
        found = self._plain_loop(lanes, standing, initial, index, limit, unroll)
        carried = {}
        for k in sums:
            value = self._together(lanes, k, found[k])
            total, lost = names[k]
            if self._compensates(k):
                carried[k] = self._add_exactly(lanes, self._kind(k), total, lost, value)
            else:
                carried[k] = (self.combine(lanes, k, total, value), lost)
        end = writer.block
        writer.jump(head)
        phis = [f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{end} ]"]
        for k in sums:
            vector = lanes.type(self._kind(k))
            firsts = (self._identity(lanes, k), "zeroinitializer")
            for name, first, new in zip(names[k], firsts, carried[k], strict=True):
                phis.append(f"  {name} = phi {vector} [ {first}, %{before} ], [ {new}, %{end} ]")
        writer.lines[place:place] = phis
        writer.start(done)
        totals = {}
        for k in sums:
            total, lost = names[k]
            if self._compensates(k):
                total = lanes.op("fadd", self._kind(k), total, lost)
            totals[k] = [total] + [self._identity(lanes, k)] * (unroll - 1)
        return totals

    def _add_exactly(
        self, lanes: Lanes, kind: Kind, total: str, lost: str, value: str
    ) -> tuple[str, str]:
        """total + value, and what its rounding has lost so far."""
        new = lanes.op("fadd", kind, total, value)
        # Two-sum (Knuth): the error of an addition from additions.
        back = lanes.op("fsub", kind, new, total)
        rest = lanes.op("fsub", kind, total, lanes.op("fsub", kind, new, back))
        error = lanes.op("fadd", kind, rest, lanes.op("fsub", kind, value, back))
        finite = lanes.op("fcmp oeq", kind, error, error)  # inf - inf is no error
        error = lanes.select(finite, kind, error, "zeroinitializer")
        return new, lanes.op("fadd", kind, lost, error)

    def _rest(
        self,
        lanes: Lanes,
        standing: dict[Variable, str],
        totals: dict[int, list[str]],
        rest: list[tuple[int, int]],
        split: bool,
    ) -> None:
        """What is less than the vectors of one round; if the range is split, only at its end."""
        writer = self.writer
        before, done = writer.block, ""
        if split:
            last, done = writer.label(), writer.label()
            writer.branch(writer.op(f"icmp eq i64 %hi, {self.inner.length}"), last, done)
            writer.start(last)
        new = {k: list(olds) for k, olds in totals.items()}
        for start, count in rest:
            found = self._point(lanes, standing, str(start), count)
            for k in new:
                value = found[k]
                if count < self.width:
                    value = self._only_first(lanes, k, value, count)
                new[k][0] = self.combine(lanes, k, new[k][0], value)
        if split:
            end = writer.block
            writer.jump(done)
            writer.start(done)
            for k in new:
                vector = lanes.type(self._kind(k))
                new[k][0] = writer.op(
                    f"phi {vector} [ {totals[k][0]}, %{before} ], [ {new[k][0]}, %{end} ]"
                )
        totals.update(new)

    def _only_first(self, lanes: Lanes, k: int, value: str, count: int) -> str:
        flags = ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(self.width))
        return lanes.select(f"<{flags}>", self._kind(k), value, self._identity(lanes, k))

    # One point: `count` lanes from `index` on. Returns the values of the reductions of this loop.

    def _point(
        self, lanes: Lanes, standing: dict[Variable, str], index: str, count: int
    ) -> dict[int, str]:
        known = dict(standing)
        found: dict[int, str] = {}

        def value_of(variable: Variable, kind: Kind) -> str:
            value = self.values[variable]
            if variable in self.loads or variable in known:
                if variable not in known:
                    known[variable] = self._load(lanes, self.loads[variable], index, count)
                have = kind_of(variable.spec.dtype)
                assert have is not None
                return lanes.convert(known[variable], have, kind)
            return lanes.constant(value.literal, kind)

        for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True)):
            if item.action == "compute":
                equation = item.equation
                assert equation is not None
                kinds = operand_kinds(equation) or []
                args = [value_of(v, kind) for v, kind in zip(equation.inputs, kinds, strict=True)]
                known[item.variable] = emit(lanes, equation, args)
                continue
            kind = self.accesses[target].view.buffer.kind
            if item.action == "store":
                self._store(lanes, target, index, count, value_of(item.variable, kind))
            elif item.action == "accumulate":
                old = self._load(lanes, target, index, count)
                value = value_of(item.variable, kind)
                new = lanes.op("fadd" if kind.is_float else "add", kind, old, value)
                self._store(lanes, target, index, count, new)
            else:
                assert item.equation is not None
                (argument,) = item.equation.inputs
                value = value_of(argument, kind)
                if self.reduces_inside(target):
                    found[k] = value
                else:
                    old = self._load(lanes, target, index, count)
                    self._store(lanes, target, index, count, self.combine(lanes, k, old, value))
        return found

    # Memory.

    def _address(self, access: int, index: str, lane: int = 0) -> str:
        """Where the entry of a lane is."""
        writer, stride = self.writer, self.inner.strides[access]
        memory = self.accesses[access].view.buffer.kind.memory
        pointer = self.pointers[access]
        if stride and index != "0":
            distance = index if stride == 1 else writer.op(f"mul i64 {index}, {stride}")
            pointer = writer.op(f"getelementptr {memory}, ptr {pointer}, i64 {distance}")
        if lane and stride:
            pointer = writer.op(f"getelementptr {memory}, ptr {pointer}, i64 {lane * stride}")
        return pointer

    def _load(self, lanes: Lanes, access: int, index: str, count: int) -> str:
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        if count == self.width and self.inner.strides[access] == 1:
            vector = f"<{self.width} x {kind.memory}>"
            pointer = self._address(access, index)
            value = writer.op(f"load {vector}, ptr {pointer}, align {kind.size}")
        else:
            # Lanes past the end repeat the first. With zeros there, LLVM (22.1, for AVX-512) takes
            # 0 / 0 for 0, and leaves out the selection that keeps such lanes from a sum.
            vector, value = f"<{self.width} x {kind.memory}>", "poison"
            base = self._address(access, index)
            for lane in range(count):
                pointer = self._lane_address(access, base, lane)
                entry = writer.op(f"load {kind.memory}, ptr {pointer}, align {kind.size}")
                value = writer.op(
                    f"insertelement {vector} {value}, {kind.memory} {entry}, i32 {lane}"
                )
                if not lane and count < self.width:
                    value = writer.op(
                        f"shufflevector {vector} {value}, {vector} poison, "
                        f"<{self.width} x i32> zeroinitializer"
                    )
        if kind.is_bool:
            return writer.op(f"icmp ne {vector} {value}, zeroinitializer")  # any byte but 0 is true
        return value

    def _lane_address(self, access: int, base: str, lane: int) -> str:
        distance = lane * self.inner.strides[access]
        if not distance:
            return base
        memory = self.accesses[access].view.buffer.kind.memory
        return self.writer.op(f"getelementptr {memory}, ptr {base}, i64 {distance}")

    def _store(self, lanes: Lanes, access: int, index: str, count: int, value: str) -> None:
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        vector = f"<{self.width} x {kind.memory}>"
        if kind.is_bool:
            value = writer.op(f"zext <{self.width} x i1> {value} to {vector}")
        pointer = self._address(access, index)
        if count == self.width and self.inner.strides[access] == 1:
            writer.do(f"store {vector} {value}, ptr {pointer}, align {kind.size}")
            return
        for lane in range(count):
            entry = writer.op(f"extractelement {vector} {value}, i32 {lane}")
            writer.do(
                f"store {kind.memory} {entry}, ptr {self._lane_address(access, pointer, lane)}, "
                f"align {kind.size}"
            )

    def _splat(self, lanes: Lanes, access: int) -> str:
        """A value that stands still along the innermost loop."""
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        entry = writer.op(f"load {kind.memory}, ptr {self.pointers[access]}, align {kind.size}")
        if kind.is_bool:
            entry = writer.op(f"icmp ne i8 {entry}, 0")
        vector = lanes.type(kind)
        first = writer.op(f"insertelement {vector} poison, {kind.register} {entry}, i32 0")
        return writer.op(
            f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer"
        )

    # Reductions.

    def _kind(self, k: int) -> Kind:
        return self.accesses[self.targets[k]].view.buffer.kind

    def _name(self, k: int) -> str:
        equation = self.items[k].equation
        assert equation is not None
        return str(equation.primitive.name)

    def _compensates(self, k: int) -> bool:
        return self._name(k) in ("sum", "mean") and self._kind(k).is_float

    def _identity(self, lanes: Lanes, k: int) -> str:
        return lanes.constant(identity(self._name(k), self._kind(k)), self._kind(k))

    def combine(self, lanes: Lanes, k: int, old: str, value: str) -> str:
        rule, kind = _REDUCTIONS[self._name(k)], self._kind(k)
        name = rule.real if kind.is_float else rule.integer
        if name in ("maximum", "minimum", "smax", "smin"):
            return lanes.intrinsic(name, kind, old, value)
        return lanes.op(name, kind, old, value)

    def _together(self, lanes: Lanes, k: int, parts: list[str]) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.combine(lanes, k, total, part)
        return total

    def _flush(self, lanes: Lanes, k: int, parts: list[str]) -> None:
        """Put the result of the innermost loop where it belongs."""
        writer, kind, target = self.writer, self._kind(k), self.targets[k]
        total = self._together(lanes, k, parts)
        rule, vector = _REDUCTIONS[self._name(k)], lanes.type(kind)
        across = rule.across_real if kind.is_float else rule.across_integer
        suffix = {"double": "f64", "float": "f32"}.get(kind.register, kind.register)
        full = f"llvm.vector.reduce.{across}.v{self.width}{suffix}"
        if across in ("fadd", "fmul"):
            first = literal(-0.0 if across == "fadd" else 1.0, kind)
            writer.declarations.add(f"declare {kind.register} @{full}({kind.register}, {vector})")
            value = writer.op(
                f"call reassoc {kind.register} @{full}({kind.register} {first}, {vector} {total})"
            )
        else:
            value = writer.call(kind.register, full, [(vector, total)])
        if not self._stored_at_once(target):
            one = Lanes(writer, 1)
            old = writer.op(f"load {kind.memory}, ptr {self.pointers[target]}, align {kind.size}")
            if kind.is_bool:
                old = writer.op(f"trunc i8 {old} to i1")
            packed = [
                writer.op(f"insertelement {one.type(kind)} poison, {kind.register} {v}, i32 0")
                for v in (old, value)
            ]
            if k in self.lost:
                lost = writer.op(f"load {one.type(kind)}, ptr {self.lost[k]}, align {kind.size}")
                new, lost = self._add_exactly(one, kind, packed[0], lost, packed[1])
                writer.do(f"store {one.type(kind)} {lost}, ptr {self.lost[k]}, align {kind.size}")
            else:
                new = self.combine(one, k, *packed)
            value = writer.op(f"extractelement {one.type(kind)} {new}, i32 0")
        if kind.is_bool:
            value = writer.op(f"zext i1 {value} to i8")
        writer.do(f"store {kind.memory} {value}, ptr {self.pointers[target]}, align {kind.size}")


def _collapse(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> list[Loop]:
    """The loops over a shape; axes that every access runs through as one become one."""
    loops: list[Loop] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        steps = tuple(each[axis] for each in strides)
        if loops and all(a == b * length for a, b in zip(loops[-1].strides, steps, strict=True)):
            loops[-1] = Loop(loops[-1].length * length, steps)
        else:
            loops.append(Loop(length, steps))
    return loops or [Loop(1, (0,) * len(strides))]


def _order(loops: list[Loop], writer: KernelWriter) -> list[Loop]:
    """The loops with the one innermost along which most accesses are unbroken."""

    def cost(loop: Loop) -> int:
        written = {target for target in writer.targets if target >= 0}
        return sum(
            (3 if k in written else 2)
            for k, stride in enumerate(loop.strides)
            if stride not in (0, 1)
        )

    best = min(range(len(loops)), key=lambda k: (cost(loops[k]), -k))
    return loops[:best] + loops[best + 1 :] + [loops[best]]
