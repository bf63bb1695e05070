"""The product of two matrices of any size, as a function that all modules share.

A tile of the result, four rows by two vectors, stays in registers during the loop over the inner axis. Tiles
go down a block of rows of a that stays in the cache, then on to the next two vectors of b. The columns left
over at the right use masked lanes, and the rows left over at the bottom are computed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import NumberKind

ROWS = 4  # of a tile
_VECTORS = 2  # of a tile, side by side
_BLOCK = 1 << 18  # bytes of a that should stay in the cache
_SIZES = ("k", "n", "a_row", "a_column", "b_row", "c_row", "block")


def tile_sizes(k: int, n: int, strides: Sequence[int], size: int) -> list[int]:
    """The numbers of `_SIZES`, for matrices with these strides and entries of `size` bytes."""
    block = max(_BLOCK // (k * size) // ROWS * ROWS, ROWS)
    return [k, n, *strides, block]


class TileWriter:
    """Writes `name`(table, part), which computes one band of rows of c = a @ b.

    The table has the addresses of a, b, c and of numbers: those of `_SIZES`, then the first row and the one
    after the last for every part. Columns of b and c are next to each other.
    """

    def __init__(self, name: str, kind: NumberKind, vector_bytes: int) -> None:
        self.name = name
        self.kind = kind
        self.lanes = vector_bytes // kind.size
        self.vector = f"<{self.lanes} x {kind.register}>"
        self.suffix = "f64" if kind.letter == "d" else "f32"
        self.writer = FunctionWriter()
        self.a = self.b = self.c = ""
        self.sizes: dict[str, str] = {}

    def text(self) -> str:
        """The module."""
        writer = self.writer
        writer.start("entry")
        self.a, self.b, self.c, table = (self._slot("%table", str(k), "ptr") for k in range(4))
        self.sizes = {name: self._slot(table, str(k), "i64") for k, name in enumerate(_SIZES)}
        band = writer.op("shl i64 %part, 1")
        low, high = (
            self._slot(table, writer.op(f"add i64 {band}, {len(_SIZES) + k}"), "i64")
            for k in range(2)
        )
        writer.loop(low, high, self.sizes["block"], lambda row, _: self._block(row, high))
        writer.do("ret void")
        body = "\n".join(writer.lines)
        head = f"define void @{self.name}(ptr %table, i64 %part)"
        return "\n".join([*sorted(writer.declarations), f"{head} {{\n{body}\n}}"])

    def _slot(self, table: str, place: str, kind: str) -> str:
        slot = self.writer.op(f"getelementptr i64, ptr {table}, i64 {place}")
        return self.writer.op(f"load {kind}, ptr {slot}")

    def _moved(self, pointer: str, index: str, stride: str = "1") -> str:
        writer = self.writer
        distance = index if stride == "1" else writer.op(f"mul i64 {index}, {stride}")
        return writer.op(f"getelementptr {self.kind.memory}, ptr {pointer}, i64 {distance}")

    def _block(self, first: str, high: str) -> list[str]:
        """All columns of a block of rows."""
        writer = self.writer
        end = writer.op(f"add i64 {first}, {self.sizes['block']}")
        end = writer.call("i64", "llvm.smin.i64", [("i64", end), ("i64", high)])
        whole = writer.op(f"sub i64 {end}, {first}")
        whole = writer.op(f"and i64 {whole}, {-ROWS}")
        whole = writer.op(f"add i64 {first}, {whole}")
        width = _VECTORS * self.lanes

        def columns(column: str, _: list[str]) -> list[str]:
            left = writer.op(f"sub i64 {self.sizes['n']}, {column}")
            full, partial, further = (writer.label() for _ in range(3))
            writer.branch(writer.op(f"icmp sge i64 {left}, {width}"), full, partial)
            writer.start(full)
            self._rows(first, whole, end, column, [])
            writer.jump(further)
            writer.start(partial)
            self._rows(first, whole, end, column, self._masks(left))
            writer.jump(further)
            writer.start(further)
            return []

        writer.loop("0", self.sizes["n"], width, columns)
        return []

    def _masks(self, left: str) -> list[str]:
        """Which lanes of each vector are among the `left` remaining columns."""
        writer, integers = self.writer, f"<{self.lanes} x i64>"
        first = writer.op(f"insertelement {integers} poison, i64 {left}, i32 0")
        spread = writer.op(
            f"shufflevector {integers} {first}, {integers} poison, <{self.lanes} x i32> zeroinitializer"
        )
        masks = []
        for vector in range(_VECTORS):
            numbers = ", ".join(f"i64 {vector * self.lanes + lane}" for lane in range(self.lanes))
            masks.append(writer.op(f"icmp slt {integers} <{numbers}>, {spread}"))
        return masks

    def _rows(self, first: str, whole: str, end: str, column: str, masks: list[str]) -> None:
        def tile(height: int, row: str) -> list[str]:
            self._tile(row, column, height, masks)
            return []

        writer = self.writer
        writer.loop(first, whole, ROWS, lambda row, _: tile(ROWS, row), once=False)
        writer.loop(whole, end, 1, lambda row, _: tile(1, row), once=False)

    def _tile(self, row: str, column: str, height: int, masks: list[str]) -> None:
        writer, vector, number = self.writer, self.vector, self.kind.register
        a_rows, c_rows = [], []
        for i in range(height):
            place = writer.op(f"add i64 {row}, {i}")
            a_rows.append(self._moved(self.a, place, self.sizes["a_row"]))
            c_rows.append(self._moved(self._moved(self.c, place, self.sizes["c_row"]), column))

        def step(_: str, values: list[str]) -> list[str]:
            b, along, *totals = values
            right = [self._load(b, part, masks) for part in range(_VECTORS)]
            new: list[str] = []
            for i in range(height):
                entry = writer.op(f"load {number}, ptr {self._moved(a_rows[i], along)}")
                single = writer.op(f"insertelement {vector} poison, {number} {entry}, i32 0")
                left = writer.op(
                    f"shufflevector {vector} {single}, {vector} poison, "
                    f"<{self.lanes} x i32> zeroinitializer"
                )
                for part in range(_VECTORS):
                    arguments = [(vector, left), (vector, right[part]), (vector, totals[len(new)])]
                    name = f"llvm.fma.v{self.lanes}{self.suffix}"
                    new.append(writer.call(vector, name, arguments))
            following = writer.op(f"add i64 {along}, {self.sizes['a_column']}")
            return [self._moved(b, self.sizes["b_row"]), following, *new]

        carried = [("ptr", self._moved(self.b, column)), ("i64", "0")]
        carried += [(vector, "zeroinitializer")] * (height * _VECTORS)
        _, _, *totals = writer.loop("0", self.sizes["k"], 1, step, carried)
        for k, total in enumerate(totals):
            i, part = divmod(k, _VECTORS)
            self._store(c_rows[i], part, masks, total)

    def _load(self, row: str, part: int, masks: list[str]) -> str:
        writer, vector, size = self.writer, self.vector, self.kind.size
        place = self._moved(row, str(part * self.lanes)) if part else row
        if not masks:
            return writer.op(f"load {vector}, ptr {place}, align {size}")
        arguments = [("ptr", place), ("i32", str(size)), (f"<{self.lanes} x i1>", masks[part])]
        name = f"llvm.masked.load.v{self.lanes}{self.suffix}.p0"
        return writer.call(vector, name, [*arguments, (vector, "zeroinitializer")])

    def _store(self, row: str, part: int, masks: list[str], value: str) -> None:
        writer, vector, size = self.writer, self.vector, self.kind.size
        place = self._moved(row, str(part * self.lanes)) if part else row
        if not masks:
            writer.do(f"store {vector} {value}, ptr {place}, align {size}")
            return
        arguments = [(vector, value), ("ptr", place), ("i32", str(size))]
        name = f"llvm.masked.store.v{self.lanes}{self.suffix}.p0"
        writer.call("void", name, [*arguments, (f"<{self.lanes} x i1>", masks[part])])
