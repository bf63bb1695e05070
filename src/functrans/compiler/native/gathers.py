"""Reading and writing with integer arrays as indices: x[indices] and its transpose.

Indices are checked like NumPy's: negative ones count from the end. One that is out of range is noted at
`%status`; then NumPy repeats the call and raises its error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from functrans.compiler.native.kinds import BOOL, INT64, NumberKind
from functrans.compiler.native.strides import BufferView, broadcast
from functrans.graph.graph import Variable
from functrans.ops.indexing import ARRAY

if TYPE_CHECKING:
    from functrans.compiler.native.lanes import LaneWriter
    from functrans.compiler.native.loops import KernelWriter


class IndexedAxis(NamedTuple):
    """One indexed axis: where the numbers come from, its length, and its stride."""

    variable: Variable
    length: int
    stride: int


class Indexed(NamedTuple):
    """x[template] with integer arrays: the view without them, and the axes that they index."""

    view: BufferView  # of x over the shape of the result; it stands still along the arrays' axes
    arrays: list[BufferView]  # over the shape of the result
    axes: list[tuple[int, int]]  # the length and stride of each indexed axis


def indexed_layout(x: BufferView, template: tuple[Any, ...], arrays: list[BufferView]) -> Indexed:
    """How the result of x[template] is read, for integer arrays in the place of `ARRAY`."""
    block = _broadcast_shape([array.shape for array in arrays])
    places = [k for k, entry in enumerate(template) if entry is ARRAY]
    # NumPy puts the arrays' axes where the arrays stand if they stand side by side, and first otherwise.
    adjacent = places[-1] - places[0] + 1 == len(places)
    before = places[0] if adjacent else 0
    rest: list[tuple[int, int]] = []
    axes: list[tuple[int, int]] = []
    offset, axis = x.offset, 0
    for entry in template:
        if entry is None:
            rest.append((1, 0))
            continue
        length, stride = x.shape[axis], x.strides[axis]
        axis += 1
        if entry is ARRAY:
            axes.append((length, stride))
        else:
            start, stop, step = entry.indices(length)
            rest.append((len(range(start, stop, step)), stride * step))
            offset += start * stride
    shape = (*(n for n, _ in rest[:before]), *block, *(n for n, _ in rest[before:]))
    strides = (*(s for _, s in rest[:before]), *(0 for _ in block), *(s for _, s in rest[before:]))
    spread = []
    for array in arrays:
        steps = broadcast(array, block).strides
        along = (*(0 for _ in rest[:before]), *steps, *(0 for _ in rest[before:]))
        spread.append(BufferView(array.buffer, shape, along, array.offset))
    return Indexed(BufferView(x.buffer, shape, strides, offset), spread, axes)


def _broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    return tuple(max(lengths) for lengths in zip(*padded, strict=True))


class Gatherer:
    """Writes one access at indexed places, for the lanes of one vector."""

    def __init__(
        self,
        kernel: KernelWriter,
        lanes: LaneWriter,
        access: int,
        places: tuple[IndexedAxis, ...],
        index: str,
    ) -> None:
        self.kernel = kernel
        self.lanes = lanes
        self.access = access
        self.places = places
        self.kind: NumberKind = kernel.accesses[access].view.buffer.kind
        # If no index moves along the innermost loop, neither do the places.
        self.standing = all(
            kernel.inner.strides[kernel.loads[place.variable]] == 0 for place in places
        )
        self.base = kernel.address(access, index)

    def distances(self, indices: list[str], count: int) -> str:
        """The distance of every lane from the base; notes if one of the first `count` is out of range."""
        lanes, total = self.lanes, ""
        for place, number in zip(self.places, indices, strict=True):
            length = lanes.constant(place.length, INT64)
            negative = lanes.op("icmp slt", INT64, number, "zeroinitializer")
            wrapped = lanes.select(negative, INT64, lanes.op("add", INT64, number, length), number)
            fits = lanes.op("icmp ult", INT64, wrapped, length)
            self.kernel.note(lanes, lanes.op("xor", BOOL, fits, lanes.constant(True, BOOL)), count)
            safe = lanes.select(fits, INT64, wrapped, "zeroinitializer")
            term = lanes.op("mul", INT64, safe, lanes.constant(place.stride, INT64))
            total = lanes.op("add", INT64, total, term) if total else term
        return total

    def _lane(self, distances: str, lane: int) -> str:
        """The address of a lane's element."""
        writer, memory = self.kernel.writer, self.kind.memory
        distance = writer.op(f"extractelement <{self.lanes.width} x i64> {distances}, i32 {lane}")
        start = (
            self.base if self.standing else self.kernel.lane_address(self.access, self.base, lane)
        )
        return writer.op(f"getelementptr {memory}, ptr {start}, i64 {distance}")

    def load(self, distances: str, count: int) -> str:
        if self.standing:
            return self.kernel.load_at(self.access, self._lane(distances, 0), count)
        writer, kind, width = self.kernel.writer, self.kind, self.lanes.width
        entries = []
        for lane in range(count):
            pointer = self._lane(distances, lane)
            entries.append(writer.op(f"load {kind.memory}, ptr {pointer}, align {kind.size}"))
        value = self.kernel.packed(kind, entries)
        if kind.is_bool:
            return writer.op(f"icmp ne <{width} x i8> {value}, zeroinitializer")
        return value

    def store(self, distances: str, count: int, value: str, adds: bool) -> None:
        """Store values, or add them, one after the other: an index may occur more than once."""
        kernel, writer, kind, width = self.kernel, self.kernel.writer, self.kind, self.lanes.width
        add = "fadd" if kind.is_float else "add"
        if self.standing:
            start = self._lane(distances, 0)
            if adds:
                old = kernel.load_at(self.access, start, count)
                value = self.lanes.op(add, kind, old, value)
            kernel.store_at(self.access, start, count, value)
            return
        vector = f"<{width} x {kind.memory}>"
        if kind.is_bool:
            value = writer.op(f"zext <{width} x i1> {value} to {vector}")
        for lane in range(count):
            pointer = self._lane(distances, lane)
            entry = writer.op(f"extractelement {vector} {value}, i32 {lane}")
            if adds:
                old = writer.op(f"load {kind.memory}, ptr {pointer}, align {kind.size}")
                entry = writer.op(f"{add} {kind.memory} {old}, {entry}")
            writer.do(f"store {kind.memory} {entry}, ptr {pointer}, align {kind.size}")
