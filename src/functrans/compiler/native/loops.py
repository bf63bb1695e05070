"""Kernels as LLVM functions: one loop nest each, vectorized along its innermost axis."""

from __future__ import annotations

from collections.abc import Callable

from functrans.compiler.native.gathers import Gatherer
from functrans.compiler.native.kinds import INT64, NumberKind, literal, number_kind_of
from functrans.compiler.native.lanes import LaneWriter
from functrans.compiler.native.lowering import emit, errors_of, of_kind, operand_kinds
from functrans.compiler.native.nests import LoopNest
from functrans.graph.graph import Variable

# This many vectors are summed before their sum is added to a compensated sum: the error of a long sum is then
# that of a short one, which NumPy achieves with pairwise summation.
_BLOCK = 64
# With at least this many operations, vectors off the diagonals of identity matrices get a separate code path.
_WORK_APART = 4


class KernelWriter(LoopNest):
    """Writes the function of one kernel.

    Its parameters are one pointer per access, and the range of the outermost loop.
    """

    # The nest.

    def write(self) -> str:
        """The body of the function, from its first block to its return."""
        for item, target in zip(self.items, self.targets, strict=True):
            if item.action == "reduce" and not self._stored_at_once(target):
                kind = self.accesses[target].view.buffer.kind
                self.fills.append((target, self._reduction(item).identity(kind)))
        self.writer.start("entry")
        for depth in range(len(self.loops) - 1):
            for k in self._begun_at(depth):
                self.lost[k] = self.writer.op(f"alloca {self._kind(k).memory}")
        self._nest(0)
        self.writer.do("ret void")
        return "\n".join(self.writer.lines)

    def _stored_at_once(self, target: int) -> bool:
        """Whether one run of the innermost loop completes a reduction."""
        outer = self.loops[:-1]
        return self.reduces_inside(target) and all(
            loop.strides[target] or loop.length == 1 for loop in outer
        )

    def _begun_at(self, depth: int) -> list[int]:
        """The sums of which this loop and those inside it compute one element."""
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
        elif depth == len(self.loops) - 2 and self._is_transposing():
            self._columns(depth)
        else:
            self._loop(depth, lambda: self._nest(depth + 1))

    def _is_transposing(self) -> bool:
        """Whether elements far apart along the innermost loop are neighbors along the next outer one."""
        inner, outer = self.loops[-1], self.loops[-2]
        far = any(
            abs(inner.strides[access]) > 1 and outer.strides[access] == 1
            for access in self.loads.values()
            if not self.is_identity(access)
        )
        # Of several values stored at one index the last one stays, so the order must not change.
        return far and not any(item.action in ("reduce", "put") for item in self.items)

    def _columns(self, depth: int) -> None:
        """The two innermost loops interchanged, in strips of columns as wide as a vector.

        The cache then holds the few lines that the elements of a vector come from.
        """
        writer, length, width = self.writer, self.inner.length, self.width
        lanes = LaneWriter(writer, width)
        whole_end = length - length % width

        def point(index: str, count: int) -> None:
            self._point(lanes, self._standing(lanes), index, count)

        def block(index: str, _: list[str]) -> list[str]:
            self._loop(depth, lambda: point(index, width))
            return []

        if whole_end:
            writer.loop("0", str(whole_end), width, block)
        if whole_end < length:
            self._loop(depth, lambda: point(str(whole_end), length - whole_end))

    def _loop(self, depth: int, body: Callable[[], None]) -> None:
        """One loop of the nest around a body; it advances all pointers."""
        writer, loop = self.writer, self.loops[depth]
        sums = self._begun_at(depth)
        for k in sums:
            writer.do(f"store {self._kind(k).memory} 0.0, ptr {self.lost[k]}")
        start, stop = ("%lo", "%hi") if depth == 0 else ("0", str(loop.length))
        if depth in self.remaining:  # the last block may be shorter
            done = writer.op(f"mul i64 {self.indices[depth - 1]}, {loop.length}")
            rest = writer.op(f"sub i64 {self.remaining[depth]}, {done}")
            stop = writer.call("i64", "llvm.smin.i64", [("i64", rest), ("i64", stop)])

        def moving(index: str, _: list[str]) -> list[str]:
            self.indices[depth] = index
            saved = self.pointers
            self.pointers = [
                self.moved(k, index, loop.strides[k]) if loop.strides[k] else pointer
                for k, pointer in enumerate(saved)
            ]
            body()
            self.pointers = saved
            return []

        writer.loop(start, stop, 1, moving)
        for k in sums:
            memory, target = self._kind(k).memory, self.pointers[self.targets[k]]
            parts = [writer.op(f"load {memory}, ptr {p}") for p in (target, self.lost[k])]
            total = writer.op(f"fadd {memory} {', '.join(parts)}")
            writer.do(f"store {memory} {total}, ptr {target}")

    # The innermost loop: whole vectors, then the remainder.

    def _innermost(self, depth: int) -> None:
        length, width = self.inner.length, self.width
        lanes = LaneWriter(self.writer, width)
        standing = self._standing(lanes)
        split = depth == 0  # the caller gives the range
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
        # A range from the caller consists of whole vectors, except at the end.
        rest = [(k, min(width, length - k)) for k in range(whole_end, length, width)]
        if rest:
            self._rest(lanes, standing, totals, rest, split)
        for k in sums:
            self._flush(lanes, k, totals[k])

    def _standing(self, lanes: LaneWriter) -> dict[int, str]:
        """What stands still along the innermost loop, by its access."""
        accesses = dict.fromkeys(self.loads.values())
        self.find_diagonals(accesses)
        return {
            access: self.splat(lanes, access)
            for access in accesses
            if not self.inner.strides[access]
        }

    def _vector_loop(
        self,
        lanes: LaneWriter,
        standing: dict[int, str],
        sums: list[int],
        start: str,
        stop: str,
        count: int,
        unroll: int,
    ) -> dict[int, list[str]]:
        """Whole vectors from `start` to `stop`; returns the values of the reductions."""
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
        lanes: LaneWriter,
        standing: dict[int, str],
        totals: dict[int, list[str]],
        start: str,
        stop: str,
        unroll: int,
    ) -> dict[int, list[str]]:
        writer = self.writer

        def vectors(index: str, names: list[str]) -> list[str]:
            values = list(names)
            for part in range(unroll):
                at = index if not part else writer.op(f"add i64 {index}, {part * self.width}")
                found = self._vector(lanes, standing, at)
                for place, k in enumerate(totals):
                    own = place * unroll + part  # every part has its own total
                    values[own] = self.combine(lanes, k, values[own], found[k])
            return values

        carried = [(lanes.type(self._kind(k)), old) for k, olds in totals.items() for old in olds]
        last = writer.loop(start, stop, self.width * unroll, vectors, carried, once=False)
        return {k: last[n * unroll : (n + 1) * unroll] for n, k in enumerate(totals)}

    def _blocked_loop(
        self,
        lanes: LaneWriter,
        standing: dict[int, str],
        sums: list[int],
        start: str,
        stop: str,
        unroll: int,
    ) -> dict[int, list[str]]:
        """The same in blocks, with a compensated sum of the blocks."""
        writer, span = self.writer, _BLOCK * self.width * unroll

        def block(index: str, names: list[str]) -> list[str]:
            end = writer.op(f"add i64 {index}, {span}")
            limit = writer.call("i64", "llvm.smin.i64", [("i64", end), ("i64", stop)])
            initial = {k: [self._identity(lanes, k)] * unroll for k in sums}
            found = self._plain_loop(lanes, standing, initial, index, limit, unroll)
            values: list[str] = []
            for n, k in enumerate(sums):
                value = self._together(lanes, k, found[k])
                total, lost = names[2 * n : 2 * n + 2]
                if self._compensates(k):
                    values += self._add_exactly(lanes, self._kind(k), total, lost, value)
                else:
                    values += [self.combine(lanes, k, total, value), lost]
            return values

        carried = [
            (lanes.type(self._kind(k)), first)
            for k in sums
            for first in (self._identity(lanes, k), "zeroinitializer")
        ]
        last = writer.loop(start, stop, span, block, carried, once=False)
        totals = {}
        for n, k in enumerate(sums):
            total, lost = last[2 * n : 2 * n + 2]
            if self._compensates(k):
                total = lanes.op("fadd", self._kind(k), total, lost)
            totals[k] = [total] + [self._identity(lanes, k)] * (unroll - 1)
        return totals

    def _add_exactly(
        self, lanes: LaneWriter, kind: NumberKind, total: str, lost: str, value: str
    ) -> tuple[str, str]:
        """total + value + lost, and its rounding error (Kahan 1965).

        The previous error is added immediately: a sum of errors would have rounding errors, too.
        """
        value = lanes.op("fadd", kind, value, lost)
        new = lanes.op("fadd", kind, total, value)
        # Two-sum (Knuth): the error of an addition from additions.
        back = lanes.op("fsub", kind, new, total)
        rest = lanes.op("fsub", kind, total, lanes.op("fsub", kind, new, back))
        error = lanes.op("fadd", kind, rest, lanes.op("fsub", kind, value, back))
        finite = lanes.op("fcmp oeq", kind, error, error)  # inf - inf is not an error term
        return new, lanes.select(finite, kind, error, "zeroinitializer")

    def _rest(
        self,
        lanes: LaneWriter,
        standing: dict[int, str],
        totals: dict[int, list[str]],
        rest: list[tuple[int, int]],
        split: bool,
    ) -> None:
        """The remainder, less than one iteration; if the range is split, only at its end."""
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

    def _only_first(self, lanes: LaneWriter, k: int, value: str, count: int) -> str:
        flags = ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(self.width))
        return lanes.select(f"<{flags}>", self._kind(k), value, self._identity(lanes, k))

    def _vector(self, lanes: LaneWriter, standing: dict[int, str], index: str) -> dict[int, str]:
        """A point of all lanes.

        Off the diagonals, identity matrices are zero. Values computed from these zeros do not change along
        the loop, so LLVM moves them out of it.
        """
        work = sum(item.action == "compute" for item in self.items)
        if not self.diagonals or work < _WORK_APART:
            return self._point(lanes, standing, index, self.width)
        writer = self.writer
        on, off, done = writer.label(), writer.label(), writer.label()
        writer.branch(self.meets_diagonal(index), on, off)
        zeros = dict.fromkeys(self.diagonals, "zeroinitializer")
        ways = []
        for label, known in ((on, standing), (off, {**standing, **zeros})):
            writer.start(label)
            found = self._point(lanes, known, index, self.width)
            ways.append((found, writer.block))
            writer.jump(done)
        writer.start(done)
        return {
            k: writer.op(
                f"phi {lanes.type(self._kind(k))} "
                + ", ".join(f"[ {found[k]}, %{block} ]" for found, block in ways)
            )
            for k in ways[0][0]
        }

    # One point: `count` lanes, starting at `index`. Returns the values of the reductions of this loop.

    def _point(
        self, lanes: LaneWriter, standing: dict[int, str], index: str, count: int
    ) -> dict[int, str]:
        loaded = dict(standing)
        known: dict[Variable, str] = {}
        found: dict[int, str] = {}
        self.numbers = {}

        def value_of(variable: Variable, kind: NumberKind) -> str:
            if variable in known:
                value = known[variable]
            elif variable in self.loads:
                access = self.loads[variable]
                if access not in loaded:
                    loaded[access] = self.load(lanes, access, index, count)
                value = loaded[access]
            else:
                return lanes.constant(self.values[variable].literal, kind)
            have = number_kind_of(variable.spec.dtype)
            assert have is not None
            return lanes.convert(value, have, kind)

        for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True)):
            if item.action == "compute":
                equation = item.equation
                assert equation is not None
                kinds = operand_kinds(equation) or []
                args = [value_of(v, kind) for v, kind in zip(equation.inputs, kinds, strict=True)]
                result = known[item.variable] = emit(lanes, equation, args)
                wrong = errors_of(lanes, equation, result, args)
                if wrong is not None:
                    self.note(lanes, wrong, count)
                continue
            kind = self.accesses[target].view.buffer.kind
            if item.places:
                places = Gatherer(self, lanes, target, item.places, index)
                numbers = [value_of(p.variable, INT64) for p in item.places]
                distances = places.distances(numbers, count)
                if item.action == "gather":
                    known[item.variable] = places.load(distances, count)
                else:
                    value = value_of(item.variable, kind)
                    places.store(distances, count, value, adds=item.action == "scatter")
            elif item.action == "store":
                self.store(target, index, count, value_of(item.variable, kind))
            elif item.action == "accumulate":
                old = self._sum_so_far(lanes, k, target, index, count)
                value = value_of(item.variable, kind)
                new = lanes.op("fadd" if kind.is_float else "add", kind, old, value)
                self.store(target, index, count, new)
            else:
                assert item.equation is not None
                (argument,) = item.equation.inputs
                value = value_of(argument, kind)
                if self.reduces_inside(target):
                    found[k] = value
                else:
                    old = self.load(lanes, target, index, count)
                    self.store(target, index, count, self.combine(lanes, k, old, value))
        return found

    def note(self, lanes: LaneWriter, wrong: str, count: int) -> None:
        """Note that NumPy has to do it, if something is wrong in one of the first `count` lanes."""
        writer, width = self.writer, lanes.width
        if count < width:  # lanes past the end may hold any number
            first = ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(width))
            wrong = writer.op(f"and <{width} x i1> {wrong}, <{first}>")
        any_wrong = writer.call(
            "i1", f"llvm.vector.reduce.or.v{width}i1", [(f"<{width} x i1>", wrong)]
        )
        # Conditional: a thread that finds nothing wrong must not overwrite another thread's note.
        found, going_on = writer.label(), writer.label()
        writer.branch(any_wrong, found, going_on)
        writer.start(found)
        writer.do("store atomic i64 2, ptr %status monotonic, align 8")
        writer.jump(going_on)
        writer.start(going_on)

    def _sum_so_far(self, lanes: LaneWriter, k: int, target: int, index: str, count: int) -> str:
        """What is added to: zeros, if this item begins the row."""
        kind = self.accesses[target].view.buffer.kind
        begins = any(rows.item == k for rows in self.begun.values())
        if begins and self.is_fresh == "true":
            return "zeroinitializer"
        old = self.load(lanes, target, index, count)
        if not begins:
            return old
        vector = lanes.type(kind)
        return self.writer.op(
            f"select i1 {self.is_fresh}, {vector} zeroinitializer, {vector} {old}"
        )

    # Reductions.

    def _identity(self, lanes: LaneWriter, k: int) -> str:
        return lanes.constant(self._reduction(self.items[k]).identity(self._kind(k)), self._kind(k))

    def combine(self, lanes: LaneWriter, k: int, old: str, value: str) -> str:
        rule, kind = self._reduction(self.items[k]), self._kind(k)
        name = rule.real if kind.is_float else of_kind(rule.integer, kind)
        if name in ("maximum", "minimum", "smax", "smin", "umax", "umin"):
            return lanes.intrinsic(name, kind, old, value)
        return lanes.op(name, kind, old, value)

    def _together(self, lanes: LaneWriter, k: int, parts: list[str]) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.combine(lanes, k, total, part)
        return total

    def _flush(self, lanes: LaneWriter, k: int, parts: list[str]) -> None:
        """Put the result of the innermost loop where it belongs."""
        writer, kind, target = self.writer, self._kind(k), self.targets[k]
        total = self._together(lanes, k, parts)
        rule, vector = self._reduction(self.items[k]), lanes.type(kind)
        across = rule.across_real if kind.is_float else of_kind(rule.across_integer, kind)
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
            one = LaneWriter(writer, 1)
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
