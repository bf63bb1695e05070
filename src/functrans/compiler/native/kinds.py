"""The kinds of numbers that native code computes with."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from functrans.core.shapes import ArraySpec


class NumberKind(NamedTuple):
    """How numbers of one dtype are held in registers and in memory."""

    dtype: np.dtype[Any]
    register: str  # the type in computations
    memory: str  # the type of loads and stores
    letter: str  # the letter in names of vector functions; "" for integers and bools

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.letter != ""

    @property
    def is_bool(self) -> bool:
        return self.register == "i1"

    @property
    def is_unsigned(self) -> bool:
        """Whether it has no negative numbers; truth values have none, either."""
        return self.dtype.kind in "ub"


FLOAT64 = NumberKind(np.dtype(np.float64), "double", "double", "d")
FLOAT32 = NumberKind(np.dtype(np.float32), "float", "float", "f")
INT64 = NumberKind(np.dtype(np.int64), "i64", "i64", "")
INT32 = NumberKind(np.dtype(np.int32), "i32", "i32", "")
BOOL = NumberKind(np.dtype(np.bool_), "i1", "i8", "")
_OTHERS = [
    NumberKind(np.dtype(f"{name}{bits}"), f"i{bits}", f"i{bits}", "")
    for name, sizes in (("int", (8, 16)), ("uint", (8, 16, 32, 64)))
    for bits in sizes
]

_KINDS = {kind.dtype: kind for kind in (FLOAT64, FLOAT32, INT64, INT32, BOOL, *_OTHERS)}


def number_kind_of(dtype: np.dtype[Any]) -> NumberKind | None:
    """The kind of a dtype, or None if native code does not know it."""
    return _KINDS.get(dtype) if dtype.isnative else None


def is_python_integer(spec: ArraySpec) -> bool:
    """Whether a number is a Python integer, which has unlimited size."""
    return spec.weak and spec.dtype.kind == "i"


def common_kind(specs: list[ArraySpec]) -> NumberKind | None:
    """What NumPy converts operands to before it compares or combines them."""
    parts = [spec.dtype.type(0).item() if spec.weak else spec.dtype for spec in specs]
    return number_kind_of(np.result_type(*parts))


def literal(value: Any, kind: NumberKind) -> str:
    """A number as LLVM writes it."""
    if kind.is_bool:
        return "true" if value else "false"
    if not kind.is_float:
        if type(value) is not int:
            with np.errstate(invalid="ignore"):
                value = int(np.asarray(value).astype(kind.dtype))
        bits = 8 * kind.size
        return str((value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    number = float(kind.dtype.type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
