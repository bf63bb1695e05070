"""How a kernel reads and writes memory: vectors, strided lanes, and values that a loop does not change."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import NumberKind
from functrans.compiler.native.lanes import LaneWriter
from functrans.compiler.native.strides import BufferView


class Access(NamedTuple):
    """A view that a kernel reads or writes, with its own pointer."""

    view: BufferView
    pointer: str


class Loop(NamedTuple):
    """One loop of the nest: its length, and the stride of every access along it."""

    length: int
    strides: tuple[int, ...]


class Diagonal(NamedTuple):
    """Where an identity matrix is not zero along the innermost loop."""

    place: str
    in_all_lanes: str


class AccessWriter:
    """Writes the loads and stores of a function, which has one pointer parameter per access."""

    def __init__(self) -> None:
        self.writer = FunctionWriter()
        self.accesses: list[Access] = []
        self.pointers: list[str] = []  # of each access, inside the enclosing loops
        self.inner = Loop(1, ())
        self.width = 1
        self.masks = False  # whether the processor has masked loads and stores
        self.diagonals: dict[int, Diagonal] = {}
        self.numbers: dict[str, str] = {}  # of the lanes, by that of the first; for one point

    def access(self, view: BufferView) -> int:
        """The number of a new access."""
        self.accesses.append(Access(view, f"%p{len(self.accesses)}"))
        self.pointers.append(self.accesses[-1].pointer)
        return len(self.accesses) - 1

    def moved(self, k: int, index: str, stride: int) -> str:
        writer = self.writer
        distance = index if stride == 1 else writer.op(f"mul i64 {index}, {stride}")
        if self.is_identity(k):
            return writer.op(f"add i64 {self.pointers[k]}, {distance}")
        kind = self.accesses[k].view.buffer.kind
        return writer.op(f"getelementptr {kind.memory}, ptr {self.pointers[k]}, i64 {distance}")

    def is_identity(self, access: int) -> bool:
        return self.accesses[access].view.buffer.role == "identity"

    def address(self, access: int, index: str) -> str:
        """The address of the first lane's element."""
        writer, stride = self.writer, self.inner.strides[access]
        memory = self.accesses[access].view.buffer.kind.memory
        pointer = self.pointers[access]
        if stride and index != "0":
            distance = index if stride == 1 else writer.op(f"mul i64 {index}, {stride}")
            pointer = writer.op(f"getelementptr {memory}, ptr {pointer}, i64 {distance}")
        return pointer

    def lane_address(self, access: int, base: str, lane: int) -> str:
        distance = lane * self.inner.strides[access]
        if not distance:
            return base
        memory = self.accesses[access].view.buffer.kind.memory
        return self.writer.op(f"getelementptr {memory}, ptr {base}, i64 {distance}")

    def load(self, lanes: LaneWriter, access: int, index: str, count: int) -> str:
        if self.is_identity(access):
            return self.identity_entries(lanes, access, index)
        return self.load_at(access, self.address(access, index), count)

    def load_at(self, access: int, base: str, count: int) -> str:
        """Load `count` lanes, starting at an address."""
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        vector = f"<{self.width} x {kind.memory}>"
        if count == self.width and self.inner.strides[access] == 1:
            value = writer.op(f"load {vector}, ptr {base}, align {kind.size}")
        elif self.masks and self.inner.strides[access] == 1:
            # The others are not zeros: see `packed`.
            one = f"splat ({kind.memory} {'1.0' if kind.is_float else '1'})"
            arguments = [("ptr", base), *self._mask(kind, count), (vector, one)]
            value = writer.call(vector, f"llvm.masked.load.{self._suffix(kind)}", arguments)
        else:
            entries = []
            for lane in range(count):
                pointer = self.lane_address(access, base, lane)
                entries.append(writer.op(f"load {kind.memory}, ptr {pointer}, align {kind.size}"))
            value = self.packed(kind, entries)
        if kind.is_bool:
            return writer.op(f"icmp ne {vector} {value}, zeroinitializer")  # nonzero bytes are true
        return value

    def _mask(self, kind: NumberKind, count: int) -> list[tuple[str, str]]:
        """The alignment and the mask of an access to the first lanes."""
        flags = ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(self.width))
        return [("i32", str(kind.size)), (f"<{self.width} x i1>", f"<{flags}>")]

    def _suffix(self, kind: NumberKind) -> str:
        name = {"double": "f64", "float": "f32"}.get(kind.memory, kind.memory)
        return f"v{self.width}{name}.p0"

    def packed(self, kind: NumberKind, entries: list[str]) -> str:
        """Entries from memory as a vector.

        Lanes past the end repeat the first. With zeros there, LLVM (22.1, for AVX-512) assumes that 0 / 0 is
        0, and drops the select that excludes such lanes from a sum.
        """
        writer, vector = self.writer, f"<{self.width} x {kind.memory}>"
        value = writer.op(f"insertelement {vector} poison, {kind.memory} {entries[0]}, i32 0")
        if len(entries) < self.width:
            value = writer.op(
                f"shufflevector {vector} {value}, {vector} poison, <{self.width} x i32> zeroinitializer"
            )
        for lane, entry in enumerate(entries[1:], 1):
            value = writer.op(f"insertelement {vector} {value}, {kind.memory} {entry}, i32 {lane}")
        return value

    def identity_entries(self, lanes: LaneWriter, access: int, index: str) -> str:
        """The entry in the lane whose distance is 0."""
        writer, stride = self.writer, self.inner.strides[access]
        kind = self.accesses[access].view.buffer.kind
        if access in self.diagonals:
            place = self.diagonals[access].in_all_lanes
            hit = writer.op(f"icmp eq <{self.width} x i64> {self._lane_numbers(index)}, {place}")
        else:
            start = writer.op(
                f"add i64 {self.pointers[access]}, {writer.op(f'mul i64 {index}, {stride}')}"
            )
            steps = ", ".join(f"i64 {lane * stride}" for lane in range(self.width))
            vector = f"<{self.width} x i64>"
            distances = writer.op(f"add {vector} {self._spread(start)}, <{steps}>")
            hit = writer.op(f"icmp eq {vector} {distances}, zeroinitializer")
        scale = lanes.constant(self.accesses[access].view.buffer.scale, kind)
        return lanes.select(hit, kind, scale, "zeroinitializer")

    def find_diagonals(self, accesses: Iterable[int]) -> None:
        """Find, before the innermost loop, where along it each identity matrix is not zero."""
        self.diagonals = {}
        for access in accesses:
            stride = self.inner.strides[access]
            if self.is_identity(access) and stride in (1, -1):
                place = self.pointers[access]
                if stride == 1:
                    place = self.writer.op(f"sub i64 0, {place}")
                self.diagonals[access] = Diagonal(place, self._spread(place))

    def meets_diagonal(self, index: str) -> str:
        """Whether a vector contains a nonzero element of an identity matrix."""
        writer = self.writer
        distances = [writer.op(f"sub i64 {d.place}, {index}") for d in self.diagonals.values()]
        hits = [writer.op(f"icmp ult i64 {distance}, {self.width}") for distance in distances]
        return functools.reduce(lambda a, b: writer.op(f"or i1 {a}, {b}"), hits)

    def _lane_numbers(self, index: str) -> str:
        """The index of every lane along the innermost loop."""
        if index not in self.numbers:
            steps = ", ".join(f"i64 {lane}" for lane in range(self.width))
            self.numbers[index] = self.writer.op(
                f"add <{self.width} x i64> {self._spread(index)}, <{steps}>"
            )
        return self.numbers[index]

    def _spread(self, number: str) -> str:
        """An integer in all lanes."""
        writer, vector = self.writer, f"<{self.width} x i64>"
        first = writer.op(f"insertelement {vector} poison, i64 {number}, i32 0")
        return writer.op(
            f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer"
        )

    def store(self, access: int, index: str, count: int, value: str) -> None:
        self.store_at(access, self.address(access, index), count, value)

    def store_at(self, access: int, base: str, count: int, value: str) -> None:
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        vector = f"<{self.width} x {kind.memory}>"
        if kind.is_bool:
            value = writer.op(f"zext <{self.width} x i1> {value} to {vector}")
        if count == self.width and self.inner.strides[access] == 1:
            writer.do(f"store {vector} {value}, ptr {base}, align {kind.size}")
            return
        if self.masks and self.inner.strides[access] == 1:
            arguments = [(vector, value), ("ptr", base), *self._mask(kind, count)]
            writer.call("void", f"llvm.masked.store.{self._suffix(kind)}", arguments)
            return
        for lane in range(count):
            entry = writer.op(f"extractelement {vector} {value}, i32 {lane}")
            pointer = self.lane_address(access, base, lane)
            writer.do(f"store {kind.memory} {entry}, ptr {pointer}, align {kind.size}")

    def splat(self, lanes: LaneWriter, access: int) -> str:
        """A value that stands still along the innermost loop."""
        writer, kind = self.writer, self.accesses[access].view.buffer.kind
        if self.is_identity(access):
            return self.identity_entries(lanes, access, "0")
        entry = writer.op(f"load {kind.memory}, ptr {self.pointers[access]}, align {kind.size}")
        if kind.is_bool:
            entry = writer.op(f"icmp ne i8 {entry}, 0")
        vector = lanes.type(kind)
        first = writer.op(f"insertelement {vector} poison, {kind.register} {entry}, i32 0")
        return writer.op(
            f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer"
        )


def collapse(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> list[Loop]:
    """The loops over a shape; axes that are contiguous in every access are merged."""
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
