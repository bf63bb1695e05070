"""Operations on vectors of lanes, written as instructions."""

from __future__ import annotations

from typing import Any

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import BOOL, INT32, INT64, NumberKind, literal

ZERO = "zeroinitializer"


class LaneWriter:
    """Writes operations on vectors of `width` lanes."""

    def __init__(self, writer: FunctionWriter, width: int) -> None:
        self.writer = writer
        self.width = width

    def type(self, kind: NumberKind) -> str:
        return f"<{self.width} x {kind.register}>"

    def constant(self, value: Any, kind: NumberKind) -> str:
        return f"splat ({kind.register} {literal(value, kind)})"

    def op(self, name: str, kind: NumberKind, *args: str) -> str:
        """An instruction whose operands and result are of one kind."""
        return self.writer.op(f"{name} {self.type(kind)} {', '.join(args)}")

    def intrinsic(self, name: str, kind: NumberKind, *args: str) -> str:
        full = f"llvm.{name}.v{self.width}{_suffix(kind)}"
        vector = self.type(kind)
        return self.writer.call(vector, full, [(vector, arg) for arg in args])

    def function(self, name: str, kind: NumberKind, *args: str) -> str:
        """A call of a vector function."""
        self.writer.functions.add((name, kind.letter, self.width))
        vector = self.type(kind)
        full = f"ft_{name}_{kind.letter}x{self.width}"
        return self.writer.call(vector, full, [(vector, arg) for arg in args])

    def select(self, mask: str, kind: NumberKind, yes: str, no: str) -> str:
        vector = self.type(kind)
        return self.writer.op(f"select <{self.width} x i1> {mask}, {vector} {yes}, {vector} {no}")

    def convert(self, value: str, kind: NumberKind, to: NumberKind) -> str:
        """What NumPy's astype does between these kinds."""
        if kind.register == to.register:
            return value
        if to.is_bool:
            return self.op("fcmp une" if kind.is_float else "icmp ne", kind, value, ZERO)
        if kind.is_float and to.is_float:
            name = "fpext" if to.size > kind.size else "fptrunc"
        elif kind.is_float:
            return self._to_integer(value, kind, to)
        elif to.is_float:
            name = "uitofp" if kind.is_unsigned else "sitofp"
        elif to.size > kind.size or kind.is_bool:
            name = "zext" if kind.is_unsigned else "sext"
        else:
            name = "trunc"
        return self.writer.op(f"{name} {self.type(kind)} {value} to {self.type(to)}")

    def _to_integer(self, value: str, kind: NumberKind, to: NumberKind) -> str:
        """As NumPy does on most processors, also with numbers that do not fit.

        These become the smallest of the integers that the processor converts to, of 32 or 64 bits; shorter
        ones are the last bits of such an integer.
        """
        if to.size == 8 and to.is_unsigned:
            half = self.constant(2.0**63, kind)
            is_large = self.op("fcmp oge", kind, value, half)
            number = self._to_signed(
                self.select(is_large, kind, self.op("fsub", kind, value, half), value), kind, INT64
            )
            moved = self.op("xor", INT64, number, self.constant(-(2**63), INT64))
            return self.select(is_large, INT64, moved, number)
        if to is INT32 or to is INT64:
            return self._to_signed(value, kind, to)
        wide = INT64 if to.size == 4 else INT32
        return self.convert(self._to_signed(value, kind, wide), wide, to)

    def _to_signed(self, value: str, kind: NumberKind, to: NumberKind) -> str:
        """A number as an int32 or int64; the smallest of them if it does not fit."""
        bound = 2.0 ** (8 * to.size - 1)
        high = self.op("fcmp olt", kind, value, self.constant(bound, kind))
        low = self.op("fcmp oge", kind, value, self.constant(-bound, kind))
        fits = self.op("and", BOOL, high, low)
        safe = self.select(fits, kind, value, ZERO)
        number = self.writer.op(f"fptosi {self.type(kind)} {safe} to {self.type(to)}")
        return self.select(fits, to, number, self.constant(-(2 ** (8 * to.size - 1)), to))


def _suffix(kind: NumberKind) -> str:
    return {"double": "f64", "float": "f32"}.get(kind.register, kind.register)
