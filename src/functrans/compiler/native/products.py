"""Matrix products: small ones as loops over registers, large ones as calls to BLAS."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import NumberKind, literal
from functrans.compiler.native.strides import BufferView
from functrans.compiler.native.tiles import ROWS
from functrans.core.blas import numpy_blas

_SMALL = 32**3  # multiplications; with fewer, a call to BLAS costs more than the arithmetic
# Loops over matrices that stay in the cache are as fast as BLAS, and need no threads, if their rows do not
# map to the same cache lines.
_CACHE, _PAGE = 1 << 21, 1 << 12
_LARGE = 1 << 26  # multiplications; with more, the finer blocks of BLAS are faster
_WORTH = 1 << 20  # multiplications; with more, several threads share the rows
_SHARES = 4  # at most this many bands of rows per thread
_LONGEST_VECTOR = 64  # bytes


class Product(NamedTuple):
    """out = a @ b for stacks of matrices; all three have the same leading axes."""

    a: BufferView
    b: BufferView
    out: BufferView


class Blas(NamedTuple):
    """The addresses of gemm for "d" and "f", and the type of its integers."""

    addresses: dict[str, int]
    integer: str


@cache
def find_blas() -> Blas | None:
    """The BLAS that NumPy's wheels have loaded, or the one that SciPy provides, or None."""
    functions = numpy_blas("dgemm", "sgemm")
    if functions is not None:
        dgemm, sgemm = (_address(ctypes.cast(f, ctypes.c_void_p)) for f in functions)
        return Blas({"d": dgemm, "f": sgemm}, "i64")
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsules = cython_blas.__pyx_capi__
    chosen = {"d": capsules["dgemm"], "f": capsules["sgemm"]}
    return Blas({k: pointer(capsule, name(capsule)) for k, capsule in chosen.items()}, "i32")


def _address(pointer: ctypes.c_void_p) -> int:
    assert pointer.value is not None
    return pointer.value


def is_loop(rows: int, inner: int, columns: int, size: int) -> bool:
    """Whether a product of matrices with entries of `size` bytes runs as a generated loop."""
    work = rows * inner * columns
    fits = inner * columns * size <= _CACHE and columns * size % _PAGE != 0
    return work <= _SMALL or (fits and work <= _LARGE)


def is_small(a: BufferView, b: BufferView) -> bool:
    return is_loop(a.shape[-2], a.shape[-1], b.shape[-1], a.buffer.kind.size)


def is_tiled(product: Product) -> bool:
    """Whether to use the function for matrices of any size, which is usually compiled already.

    The smallest matrices are faster with specialized code.
    """
    a, b, c = product
    unbroken = b.strides[-1] == 1 and c.strides[-1] == 1 and b.shape[-1] > 1
    work = a.shape[-2] * a.shape[-1] * b.shape[-1]
    return unbroken and not lane_loops(product) and is_small(a, b) and work > _SMALL


def bands(product: Product, threads: int) -> list[tuple[int, int]]:
    """The rows of the result in bands for several threads, or all in one."""
    a, b, _ = product
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    # A matrix-vector product is limited by memory, and takes longer than its arithmetic.
    work = rows * inner * columns * (4 if columns == 1 else 1)
    # Rows shorter than a vector are not dot products: see `_matrix`.
    dots = is_dots(product) and inner * a.buffer.kind.size >= _LONGEST_VECTOR
    shared = is_tiled(product) or (dots and not lane_loops(product))
    if not shared or work < _WORTH or rows < 4 * ROWS or threads < 2:
        return [(0, rows)]
    count = threads * min(max(work // threads // _WORTH, 1), _SHARES)
    size = -(-rows // (count * ROWS)) * ROWS
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def is_dots(product: Product) -> bool:
    """Whether the rows of a and the one column of b are contiguous."""
    a, b, _ = product
    return b.shape[-1] == 1 and is_small(a, b) and a.strides[-1] == b.strides[-2] == 1


def arranged(product: Product) -> Product:
    """The product, or its transpose, so that the result has unit stride along its columns."""
    a, _, c = product
    if c.shape[-1] == 1:
        swap = a.strides[-2] == 1  # a vector times a row-major matrix
    else:
        swap = c.strides[-1] != 1 and c.strides[-2] == 1
    return Product(*(_flipped(view) for view in (product.b, a, c))) if swap else product


def _flipped(view: BufferView) -> BufferView:
    return view._replace(
        shape=(*view.shape[:-2], view.shape[-1], view.shape[-2]),
        strides=(*view.strides[:-2], view.strides[-1], view.strides[-2]),
    )


def lane_loops(product: Product) -> list[tuple[int, tuple[int, int, int]]]:
    """The loops over a stack: lengths, and the strides of a, b and the result."""
    strides = [view.strides[:-2] for view in product]
    return [
        (n, (sa, sb, sc))
        for n, sa, sb, sc in zip(product.out.shape[:-2], *strides, strict=True)
        if n > 1
    ]


class ProductWriter:
    """Writes the function of one `arranged` product, of the pointers a, b and c.

    In bands, it also takes a range of rows.
    """

    def __init__(self, product: Product, vector_bytes: int, gemm_slot: int, in_bands: bool) -> None:
        self.gemm_slot = gemm_slot  # in the context, of the address of gemm
        self.in_bands = in_bands
        self.product = product
        self.writer = FunctionWriter()
        self.kind: NumberKind = product.out.buffer.kind
        self.vector_bytes = vector_bytes
        self.m, self.k = self.product.a.shape[-2:]
        self.n = self.product.b.shape[-1]

    def write(self) -> str:
        writer = self.writer
        writer.start("entry")
        self._lanes(lane_loops(self.product), ["%a", "%b", "%c"])
        writer.do("ret void")
        return "\n".join(writer.lines)

    def _lanes(self, loops: list[tuple[int, tuple[int, int, int]]], pointers: list[str]) -> None:
        if not loops:
            self._matrix(*pointers)
            return
        length, strides = loops[0]

        def lane(index: str, _: list[str]) -> list[str]:
            moved = [
                self._moved(pointer, index, stride) if stride else pointer
                for pointer, stride in zip(pointers, strides, strict=True)
            ]
            self._lanes(loops[1:], moved)
            return []

        self.writer.loop("0", str(length), 1, lane)

    def _moved(self, pointer: str, index: str, stride: int) -> str:
        writer = self.writer
        distance = index if stride == 1 else writer.op(f"mul i64 {index}, {stride}")
        return writer.op(f"getelementptr {self.kind.memory}, ptr {pointer}, i64 {distance}")

    def _at(self, pointer: str, distance: int) -> str:
        if not distance:
            return pointer
        return self.writer.op(f"getelementptr {self.kind.memory}, ptr {pointer}, i64 {distance}")

    def _matrix(self, a: str, b: str, c: str) -> None:
        """Blocks of rows by blocks of columns; the last ones are smaller."""
        if not is_small(self.product.a, self.product.b):
            self._gemm(a, b, c)
            return
        if is_dots(self.product) and self.k >= self.vector_bytes // self.kind.size:
            self._dots(a, b, c)
            return
        columns = self._column_block()
        for row, rows, row_count in _blocks(self.m, ROWS):
            for column, width, column_count in _blocks(self.n, columns):
                self._tiles(a, b, c, (row, rows, row_count), (column, width, column_count))

    def _gemm(self, a: str, b: str, c: str) -> None:
        writer, kind, blas = self.writer, self.kind, find_blas()
        numbers = gemm_arguments(self.product)
        assert numbers is not None and blas is not None
        letters = [writer.constant("i8", str(ord(letter))) for letter in numbers[:2]]
        sizes = [writer.constant(blas.integer, number) for number in numbers[2:]]
        one, zero = (writer.constant(kind.memory, literal(x, kind)) for x in (1.0, 0.0))
        slot = writer.op(f"getelementptr ptr, ptr @context, i64 {self.gemm_slot}")
        gemm = writer.op(f"load ptr, ptr {slot}")
        n, m, k, ldb, lda, ldc = sizes
        arguments = [*letters, n, m, k, one, b, ldb, a, lda, zero, c, ldc]
        writer.do(f"call void {gemm}({', '.join(f'ptr {argument}' for argument in arguments)})")

    def _column_block(self) -> int:
        """Two vectors, if there are enough columns; for a single row, as many as fit in registers."""
        width = self.vector_bytes // self.kind.size
        block = (2 if self.m > 1 else 16) * width
        while block > 1 and block > self.n:
            block //= 2
        return block

    def _dots(self, a: str, b: str, c: str) -> None:
        """A matrix-vector product: dot products, four rows at a time."""
        writer, down, step = self.writer, self.product.a.strides[-2], self.product.out.strides[-2]
        for first, height, count in _blocks(self.m, ROWS):
            rows, out = self._at(a, first * down), self._at(c, first * step)

            def band(
                index: str, _: list[str], height: int = height, rows: str = rows, out: str = out
            ) -> list[str]:
                start = self._moved(rows, index, height * down)
                place = self._moved(out, index, height * step)
                for i, total in enumerate(self._dot_rows(start, b, height)):
                    entry = self._at(place, i * step)
                    writer.do(f"store {self.kind.memory} {total}, ptr {entry}")
                return []

            if not self.in_bands:
                self._repeat(count, band)
            elif height == ROWS:
                low, high = (writer.op(f"sdiv i64 {bound}, {ROWS}") for bound in ("%lo", "%hi"))
                writer.loop(low, high, 1, band, once=False)
            else:  # the last band has the remainder
                last, further = writer.label(), writer.label()
                writer.branch(writer.op(f"icmp eq i64 %hi, {self.m}"), last, further)
                writer.start(last)
                self._repeat(count, band)
                writer.jump(further)
                writer.start(further)

    def _repeat(self, count: int, body: Callable[[str, list[str]], Sequence[str]]) -> None:
        """A loop, if it runs more than once."""
        if count > 1:
            self.writer.loop("0", str(count), 1, body)
        else:
            body("0", [])

    def _dot_rows(self, rows: str, b: str, height: int) -> list[str]:
        """The dot products of some rows with b, as scalars."""
        writer, kind, stride = self.writer, self.kind, self.product.a.strides[-2]
        lanes = self.vector_bytes // kind.size
        vector, suffix = f"<{lanes} x {kind.register}>", "f64" if kind.letter == "d" else "f32"
        end = self.k - self.k % lanes

        def multiply_add(k: str, totals: list[str], count: int = lanes) -> list[str]:
            right = self._piece(self._moved(b, k, 1), count, lanes)
            new = []
            for i, total in enumerate(totals):
                left = self._piece(self._moved(self._at(rows, i * stride), k, 1), count, lanes)
                arguments = [(vector, left), (vector, right), (vector, total)]
                new.append(writer.call(vector, f"llvm.fma.v{lanes}{suffix}", arguments))
            return new

        zeros = [(vector, "zeroinitializer")] * height
        new = writer.loop("0", str(end), lanes, multiply_add, zeros)
        if end < self.k:
            new = multiply_add(str(end), new, self.k - end)
        full = f"llvm.vector.reduce.fadd.v{lanes}{suffix}"
        writer.declarations.add(f"declare {kind.register} @{full}({kind.register}, {vector})")
        start = literal(-0.0, kind)
        return [
            writer.op(
                f"call reassoc {kind.register} @{full}({kind.register} {start}, {vector} {value})"
            )
            for value in new
        ]

    def _piece(self, pointer: str, count: int, lanes: int) -> str:
        """`count` numbers from an address, followed by zeros."""
        writer, kind = self.writer, self.kind
        vector = f"<{lanes} x {kind.register}>"
        if count == lanes:
            return writer.op(f"load {vector}, ptr {pointer}, align {kind.size}")
        value = "zeroinitializer"
        for lane in range(count):
            entry = writer.op(
                f"load {kind.memory}, ptr {self._at(pointer, lane)}, align {kind.size}"
            )
            value = writer.op(
                f"insertelement {vector} {value}, {kind.register} {entry}, i32 {lane}"
            )
        return value

    def _tiles(
        self, a: str, b: str, c: str, rows: tuple[int, int, int], columns: tuple[int, int, int]
    ) -> None:
        """All tiles of one size: loops over their positions, with one tile inside."""
        (first_row, height, row_count), (first, width, count) = rows, columns
        left, right, out = self.product
        a = self._at(a, first_row * left.strides[-2])
        b = self._at(b, first * right.strides[-1])
        c = self._at(c, first_row * out.strides[-2] + first * out.strides[-1])

        def tile(row: str, column: str) -> None:
            place = self._moved(c, row, height * out.strides[-2])
            self._tile(
                self._moved(a, row, height * left.strides[-2]),
                self._moved(b, column, width * right.strides[-1]),
                self._moved(place, column, width * out.strides[-1]),
                height,
                width,
            )

        def outer(first: str, _: list[str]) -> list[str]:
            def inner(second: str, _: list[str]) -> list[str]:
                tile(*((second, first) if by_columns else (first, second)))
                return []

            self._repeat(row_count if by_columns else count, inner)
            return []

        # The columns of a large b stay in the cache during a pass over all rows; otherwise a row does.
        by_columns = self.k * self.n * self.kind.size > _CACHE // 4
        self._repeat(count if by_columns else row_count, outer)

    def _tile(self, a: str, b: str, c: str, height: int, width: int) -> None:
        """height x width elements of the result, in registers during the loop over the inner axis."""
        writer, kind = self.writer, self.kind
        left, right, out = self.product
        lanes = min(width, self.vector_bytes // kind.size)
        parts = width // lanes
        vector = f"<{lanes} x {kind.register}>"
        suffix = "f64" if kind.letter == "d" else "f32"

        def step(index: str, totals: list[str]) -> list[str]:
            row = self._moved(b, index, right.strides[-2])
            along = lanes * right.strides[-1]
            vectors = [self._load(row, part * along, lanes) for part in range(parts)]
            start = self._moved(a, index, left.strides[-1])
            new: list[str] = []
            for i in range(height):
                pointer = self._at(start, i * left.strides[-2])
                entry = writer.op(f"load {kind.memory}, ptr {pointer}, align {kind.size}")
                first = writer.op(f"insertelement {vector} poison, {kind.register} {entry}, i32 0")
                spread = writer.op(
                    f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
                )
                for right_part in vectors:
                    arguments = [(vector, spread), (vector, right_part), (vector, totals[len(new)])]
                    new.append(writer.call(vector, f"llvm.fma.v{lanes}{suffix}", arguments))
            return new

        zeros = [(vector, "zeroinitializer")] * (height * parts)
        new = writer.loop("0", str(self.k), 1, step, zeros)
        for k, value in enumerate(new):
            i, part = divmod(k, parts)
            distance = i * out.strides[-2] + part * lanes * out.strides[-1]
            self._store(c, distance, lanes, vector, value)

    def _load(self, pointer: str, distance: int, lanes: int) -> str:
        writer, kind, stride = self.writer, self.kind, self.product.b.strides[-1]
        vector = f"<{lanes} x {kind.register}>"
        if stride == 1 or lanes == 1:
            return writer.op(f"load {vector}, ptr {self._at(pointer, distance)}, align {kind.size}")
        value = "poison"
        for lane in range(lanes):
            entry = writer.op(
                f"load {kind.memory}, ptr {self._at(pointer, distance + lane * stride)}, "
                f"align {kind.size}"
            )
            value = writer.op(
                f"insertelement {vector} {value}, {kind.register} {entry}, i32 {lane}"
            )
        return value

    def _store(self, pointer: str, distance: int, lanes: int, vector: str, value: str) -> None:
        writer, kind, stride = self.writer, self.kind, self.product.out.strides[-1]
        if stride == 1 or lanes == 1:
            writer.do(
                f"store {vector} {value}, ptr {self._at(pointer, distance)}, align {kind.size}"
            )
            return
        for lane in range(lanes):
            entry = writer.op(f"extractelement {vector} {value}, i32 {lane}")
            writer.do(
                f"store {kind.memory} {entry}, ptr {self._at(pointer, distance + lane * stride)}, "
                f"align {kind.size}"
            )


def _blocks(length: int, block: int) -> list[tuple[int, int, int]]:
    """A length split into (start, size, count) of blocks: as many as fit, then halves for the remainder."""
    found, start = [], 0
    while start < length:
        count = (length - start) // block
        if count:
            found.append((start, block, count))
            start += block * count
        block = max(block // 2, 1)
    return found


# BLAS.


def gemm_arguments(product: Product) -> list[str] | None:
    """The letters, sizes and leading dimensions for gemm, or None if it cannot be used.

    BLAS is column-major, so it computes the transpose of the result from the transposes.
    """
    (m, k), n = product.a.shape[-2:], product.b.shape[-1]
    a, b = _leading(product.a), _leading(product.b)
    if a is None or b is None or (product.out.strides[-1] != 1 and n > 1):
        return None
    row = max(product.out.strides[-2], n, 1)
    if product.out.strides[-2] != row and m > 1:
        return None
    return [b[0], a[0], str(n), str(m), str(k), str(b[1]), str(a[1]), str(row)]


def _leading(view: BufferView) -> tuple[str, int] | None:
    """N and the distance of rows for a matrix in rows, T and that of columns for one in columns."""
    (rows, columns), (down, along) = view.shape[-2:], view.strides[-2:]
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return "N", max(down if rows > 1 else columns, columns, 1)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return "T", max(along if columns > 1 else rows, rows, 1)
    return None
