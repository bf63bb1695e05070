"""The loops of a kernel, and what is known of them before they are written."""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans.compiler.native.accesses import AccessWriter, Loop, collapse
from functrans.compiler.native.kinds import NumberKind, number_kind_of
from functrans.compiler.native.lowering import SUM, Reduction, lowers, may_raise
from functrans.compiler.native.plan import Item, Kernel, PlannedValue
from functrans.compiler.native.strides import Buffer
from functrans.graph.graph import Variable


class Rows(NamedTuple):
    """A buffer of which each round of the outermost loop begins one row, and adds to some before it."""

    item: int  # the one that is the first to add to a row
    length: int  # of a row
    first: int  # the row that the first round begins
    rounds: int  # each of which begins one row


class LoopNest(AccessWriter):
    """One kernel as a nest of loops: their order, how far apart they work, and what they add up."""

    def __init__(
        self, kernel: Kernel, values: dict[Variable, PlannedValue], vector_bytes: int
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.values = values
        views = {view: self.access(view) for view in dict.fromkeys(kernel.loads.values())}
        self.loads = {variable: views[view] for variable, view in kernel.loads.items()}
        self.targets: list[int] = []  # for each item, its access
        self.items = kernel.items
        for item in self.items:
            self.targets.append(-1 if item.view is None else self.access(item.view))
        self.loops = _order(collapse(kernel.shape, [a.view.strides for a in self.accesses]), self)
        self.remaining: dict[int, int] = {}  # of the inner halves of divided loops, all rounds
        self.indices: dict[int, str] = {}  # of the loops around
        if kernel.places:
            self._divide_loops()
        self.inner = self.loops[-1]
        self.width = self._lanes(vector_bytes)
        self.masks = vector_bytes == 64  # AVX-512
        self.fills: list[tuple[int, Any]] = []  # accesses that are filled with a number before
        # Where sums over several loops keep what their rounding has lost, so that they are as exact as
        # NumPy's, which adds up all in pairs.
        self.lost: dict[int, str] = {}
        # Such rows need not be set to zero before. `is_fresh` is true, or names what tells it.
        self.begun = {buffer: rows for buffer in kernel.begun if (rows := self._rows(buffer))}
        self.is_fresh = "true"

    def _divide_loops(self) -> None:
        """Loops in blocks as two loops, and reductions at the places of their blocks."""
        for k, places in self.kernel.places.items():
            target = self.targets[k]
            for j, (share, stride) in enumerate(zip(*places, strict=True)):
                if share < self.loops[j].length:
                    strides = list(self.loops[j].strides)
                    strides[target] = stride
                    self.loops[j] = self.loops[j]._replace(strides=tuple(strides))
        for j in sorted(self.kernel.rounds, reverse=True):
            loop, rounds = self.loops[j], self.kernel.rounds[j]
            around, inside = [stride * rounds for stride in loop.strides], list(loop.strides)
            for k, places in self.kernel.places.items():
                if 1 < places.shares[j] < loop.length:
                    around[self.targets[k]], inside[self.targets[k]] = places.strides[j], 0
            self.loops[j : j + 1] = [
                Loop(-(-loop.length // rounds), tuple(around)),
                Loop(rounds, tuple(inside)),
            ]
            self.remaining = {depth + 1: rest for depth, rest in self.remaining.items()}
            if loop.length % rounds:
                self.remaining[j + 1] = loop.length

    def loops_in_memory(self, k: int) -> list[int]:
        """The loops along which an item adds to memory without compensation."""
        item, target = self.items[k], self.targets[k]
        if item.action != "reduce" or not self._compensates(k):
            return []
        still = [not loop.strides[target] and loop.length > 1 for loop in self.loops]
        last = len(self.loops)
        while last and (still[last - 1] or self.loops[last - 1].length == 1):
            last -= 1  # along the innermost loops there is compensation
        return [j for j in range(last) if still[j]]

    def _rows(self, buffer: Buffer) -> Rows | None:
        """How the rows of a buffer are begun, if all parts are whole rows."""
        if len(self.loops) == 1 or self.kernel.rounds:
            return None
        outer, *inner = self.loops
        first, begins, found = -1, -1, set()
        for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True)):
            if item.action == "accumulate" and item.view and item.view.buffer is buffer:
                length = outer.strides[target]
                if length <= 0 or item.view.offset % length:
                    return None
                found.add((length, tuple(loop.strides[target] for loop in inner)))
                if item.view.offset // length > first:
                    first, begins = item.view.offset // length, k
        if len(found) != 1:
            return None
        ((length, strides),) = found
        expected = 1  # the inner loops go over all entries of a row, in some order
        for stride, loop in sorted(zip(strides, inner, strict=True)):
            if stride != expected:
                return None
            expected *= loop.length
        return Rows(begins, length, first, outer.length) if expected == length else None

    def _lanes(self, vector_bytes: int) -> int:
        sizes = [access.view.buffer.kind.size for access in self.accesses]
        for item in self.items:
            kind = number_kind_of(item.variable.spec.dtype)
            if kind is not None and not kind.is_bool:
                sizes.append(kind.size)
        width = vector_bytes // max([4, *sizes])
        while width > 1 and width // 2 >= self.inner.length:
            width //= 2
        return width

    @property
    def checks(self) -> bool:
        """Whether the kernel notes at `%status` what NumPy has to do."""
        return any(
            item.places or (item.action == "compute" and item.equation and may_raise(item.equation))
            for item in self.items
        )

    @property
    def is_parallel(self) -> bool:
        """Whether parts of the outermost loop can run at the same time, but for `reach`."""
        return self.reach is not None and not any(
            item.action in ("scatter", "put")
            or (item.action == "reduce" and not self.loops[0].strides[target])
            for item, target in zip(self.items, self.targets, strict=True)
        )

    @property
    def reach(self) -> int | None:
        """How many rounds of the outermost loop further an entry may be added to again.

        None if that cannot be told by the rows of a matrix.
        """
        rows: dict[
            Any, list[tuple[int, int, int]]
        ] = {}  # of a buffer: distance, first and last row
        for item, target in zip(self.items, self.targets, strict=True):
            if item.action == "accumulate":
                view, distance = self.accesses[target].view, self.loops[0].strides[target]
                inner = [(loop.length - 1) * loop.strides[target] for loop in self.loops[1:]]
                if distance <= 0 or any(extent < 0 for extent in inner):
                    return None
                last = (view.offset + sum(inner)) // distance
                rows.setdefault(view.buffer, []).append((distance, view.offset // distance, last))
        reach = 0
        for found in rows.values():
            if len({distance for distance, _, _ in found}) > 1:
                return None
            reach = max(reach, max(f[2] for f in found) - min(f[1] for f in found))
        return reach

    @property
    def is_total(self) -> bool:
        """Whether they can if each part has its own place for the totals of all entries."""
        writes = {"accumulate", "scatter", "put"}
        return len(self.loops) == 1 and writes.isdisjoint(item.action for item in self.items)

    @property
    def totals(self) -> list[int]:
        """The items that reduce all of the one loop; along an axis of length 1 there is nothing to add."""
        if not self.is_total:
            return []
        return [
            k
            for k, (item, target) in enumerate(zip(self.items, self.targets, strict=True))
            if item.action == "reduce" and self.reduces_inside(target)
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

    def _unroll(self, length: int) -> int:
        """How many vectors one round takes: several if it is a sum that would wait for itself."""
        work = sum(item.action == "compute" for item in self.items)
        sums = any(
            item.action == "reduce" and self.reduces_inside(target)
            for item, target in zip(self.items, self.targets, strict=True)
        )
        count = 4 if sums and work < 4 else 1
        while count > 1 and length < 4 * count * self.width:
            count //= 2
        return count

    def _kind(self, k: int) -> NumberKind:
        return self.accesses[self.targets[k]].view.buffer.kind

    @staticmethod
    def _reduction(item: Item) -> Reduction:
        found = SUM if item.equation is None else lowers.of(item.equation.primitive)
        assert isinstance(found, Reduction)
        return found

    def _compensates(self, k: int) -> bool:
        return self._reduction(self.items[k]) is SUM and self._kind(k).is_float


def _order(loops: list[Loop], nest: LoopNest) -> list[Loop]:
    """The loops with the one innermost along which most accesses are unbroken."""

    def cost(loop: Loop) -> int:
        written = {target for target in nest.targets if target >= 0}
        return sum(
            (3 if k in written else 2)
            for k, stride in enumerate(loop.strides)
            if stride not in (0, 1) and not nest.is_identity(k)
        )

    if any(item.action == "put" for item in nest.items):
        return loops  # of several values for one place the last one stays
    best = min(range(len(loops)), key=lambda k: (cost(loops[k]), -k))
    return loops[:best] + loops[best + 1 :] + [loops[best]]
