"""Quotients that are rounded down, and remainders, as NumPy and Python define them.

A remainder of floats is exact: x - q y with the quotient q = trunc(x / y). While q is small, one fused
multiplication gives it. The rounded x / y may be an integer that x / y is just below, so that q is too large
by one; then the sign of the remainder is wrong, and adding y once repairs it, exactly again. For other
operands (large quotients, zeros, infinities, nan) there is the C library's `fmod`, as in NumPy.
"""

from __future__ import annotations

from functrans.compiler.native.kinds import BOOL, NumberKind
from functrans.compiler.native.lanes import ZERO, LaneWriter

_SMALL = {8: 2.0**52, 4: 2.0**22}  # quotients, by the size of the numbers
_INFINITE = float("inf")


def truncated_remainder(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    """np.fmod of floats: it has the sign of x."""
    writer, vector = lanes.writer, lanes.type(kind)
    quotient = lanes.op("fdiv", kind, x, y)
    small, finite = (
        lanes.op("fcmp olt", kind, lanes.intrinsic("fabs", kind, size), lanes.constant(limit, kind))
        for size, limit in ((quotient, _SMALL[kind.size]), (y, _INFINITE))
    )
    simple = lanes.op("and", BOOL, small, finite)
    whole = lanes.op("fneg", kind, lanes.intrinsic("trunc", kind, quotient))
    rest = lanes.intrinsic("fma", kind, whole, y, x)
    expected = lanes.op("fcmp olt", kind, lanes.intrinsic("copysign", kind, rest, x), ZERO)
    is_wrong = lanes.op("xor", BOOL, expected, lanes.op("fcmp olt", kind, rest, ZERO))
    size = lanes.intrinsic("copysign", kind, y, x)
    rest = lanes.select(is_wrong, kind, lanes.op("fadd", kind, rest, size), rest)
    fast = lanes.intrinsic("copysign", kind, rest, x)
    # The others are rare, and each costs a call.
    all_simple = writer.call(
        "i1", f"llvm.vector.reduce.and.v{lanes.width}i1", [(f"<{lanes.width} x i1>", simple)]
    )
    before, slow, done = writer.block, writer.label(), writer.label()
    writer.branch(all_simple, done, slow)
    writer.start(slow)
    exact = lanes.op("frem", kind, x, y)
    chosen = lanes.select(simple, kind, fast, exact)
    after = writer.block
    writer.jump(done)
    writer.start(done)
    return writer.op(f"phi {vector} [ {fast}, %{before} ], [ {chosen}, %{after} ]")


def _of_floats(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> tuple[str, str]:
    """The quotient and the remainder, which has the sign of y."""
    rest = truncated_remainder(lanes, kind, x, y)
    by_zero = lanes.op("fcmp oeq", kind, y, ZERO)
    ratio = lanes.op("fdiv", kind, x, y)
    quotient = lanes.op("fdiv", kind, lanes.op("fsub", kind, x, rest), y)
    signs = (lanes.op("fcmp olt", kind, each, ZERO) for each in (y, rest))
    remains = lanes.op("fcmp une", kind, rest, ZERO)
    is_above = lanes.op("and", BOOL, remains, lanes.op("xor", BOOL, *signs))
    below = lanes.op("fsub", kind, quotient, lanes.constant(1.0, kind))
    quotient = lanes.select(is_above, kind, below, quotient)
    zero = lanes.intrinsic("copysign", kind, ZERO, y)
    modulus = lanes.select(is_above, kind, lanes.op("fadd", kind, rest, y), rest)
    modulus = lanes.select(remains, kind, modulus, zero)
    whole = lanes.intrinsic("floor", kind, quotient)
    is_low = lanes.op(
        "fcmp ogt", kind, lanes.op("fsub", kind, quotient, whole), lanes.constant(0.5, kind)
    )
    up = lanes.op("fadd", kind, whole, lanes.constant(1.0, kind))
    whole = lanes.select(is_low, kind, up, whole)
    is_zero = lanes.op("fcmp oeq", kind, quotient, ZERO)
    whole = lanes.select(is_zero, kind, lanes.intrinsic("copysign", kind, ZERO, ratio), whole)
    return lanes.select(by_zero, kind, ratio, whole), lanes.select(by_zero, kind, rest, modulus)


def _of_integers(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> tuple[str, str]:
    # The processor stops at a division that has no result; `division_fails` leaves these to NumPy.
    y = lanes.select(division_fails(lanes, kind, "", x, y), kind, lanes.constant(1, kind), y)
    if kind.is_unsigned:
        return lanes.op("udiv", kind, x, y), lanes.op("urem", kind, x, y)
    quotient = lanes.op("sdiv", kind, x, y)
    rest = lanes.op("sub", kind, x, lanes.op("mul", kind, quotient, y))
    signs = (lanes.op("icmp slt", kind, each, ZERO) for each in (y, rest))
    remains = lanes.op("icmp ne", kind, rest, ZERO)
    is_above = lanes.op("and", BOOL, remains, lanes.op("xor", BOOL, *signs))
    below = lanes.op("sub", kind, quotient, lanes.constant(1, kind))
    above = lanes.op("add", kind, rest, y)
    return lanes.select(is_above, kind, below, quotient), lanes.select(is_above, kind, above, rest)


def floor_divide(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    return (_of_floats if kind.is_float else _of_integers)(lanes, kind, x, y)[0]


def remainder(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    return (_of_floats if kind.is_float else _of_integers)(lanes, kind, x, y)[1]


def division_fails(lanes: LaneWriter, kind: NumberKind, result: str, x: str, y: str) -> str:
    """Division by zero, or of the smallest integer by -1, whose result does not fit."""
    if kind.is_float:
        return lanes.op("fcmp oeq", kind, y, ZERO)
    by_zero = lanes.op("icmp eq", kind, y, ZERO)
    if kind.is_unsigned:
        return by_zero
    is_least = lanes.op("icmp eq", kind, x, lanes.constant(-(1 << 8 * kind.size - 1), kind))
    by_minus_one = lanes.op("icmp eq", kind, y, lanes.constant(-1, kind))
    return lanes.op("or", BOOL, by_zero, lanes.op("and", BOOL, is_least, by_minus_one))
