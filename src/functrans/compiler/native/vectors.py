"""Vectors of LLVM IR with Python's operators, so that a formula reads like mathematics.

A `Vector` is an SSA value of a vector type and the builder that extends it. Python numbers among the operands
become constants in all lanes. The formulas are in the other files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from llvmlite import ir


@dataclass(frozen=True)
class Format:
    """The layout of a floating point kind: "d" is float64 and "f" float32."""

    kind: str
    real: ir.Type
    integer: ir.IntType
    fraction: int  # bits of the fraction, so that 2**-fraction is the ulp of 1
    bias: int  # the exponent field of 1.0
    libm: str  # the suffix of the C library's functions of this kind

    @property
    def bits(self) -> int:
        return int(self.integer.width)

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.fraction

    @property
    def round_shift(self) -> float:
        """x + round_shift rounds x to an integer, which is then in the low bits of the sum."""
        return 1.5 * 2.0**self.fraction

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FORMATS = {
    "d": Format("d", ir.DoubleType(), ir.IntType(64), 52, 1023, ""),
    "f": Format("f", ir.FloatType(), ir.IntType(32), 23, 127, "f"),
}


@lru_cache(maxsize=4096)
def constant(kind: ir.VectorType, number: float, sign: float) -> ir.Constant:
    """A number in all lanes, cached because its text is slow to make; the sign tells 0.0 from -0.0."""
    return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)


class Vector:
    """A vector of floats, of integers as wide as the floats, or of bools."""

    __slots__ = ("builder", "form", "value")

    def __init__(self, builder: ir.IRBuilder, form: Format, value: ir.Value):
        self.builder = builder
        self.form = form
        self.value = value

    def like(self, value: ir.Value) -> Vector:
        """`value` as a vector to combine with this one."""
        return Vector(self.builder, self.form, value)

    def lift(self, operand: Vector | float) -> ir.Value:
        """The value of an operand; a number becomes a constant of this vector's type."""
        if isinstance(operand, Vector):
            return operand.value
        return constant(self.value.type, operand, math.copysign(1.0, operand))

    def splat(self, number: float) -> Vector:
        """A constant of this vector's type."""
        return self.like(self.lift(number))

    @property
    def is_real(self) -> bool:
        return not isinstance(self.value.type.element, ir.IntType)

    def _binary(self, real: str, integer: str, x: Vector | float, y: Vector | float) -> Vector:
        method = getattr(self.builder, real if self.is_real else integer)
        return self.like(method(self.lift(x), self.lift(y)))

    def __add__(self, other: Vector | float) -> Vector:
        return self._binary("fadd", "add", self, other)

    def __radd__(self, other: float) -> Vector:
        return self._binary("fadd", "add", other, self)

    def __sub__(self, other: Vector | float) -> Vector:
        return self._binary("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> Vector:
        return self._binary("fsub", "sub", other, self)

    def __mul__(self, other: Vector | float) -> Vector:
        return self._binary("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> Vector:
        return self._binary("fmul", "mul", other, self)

    def __truediv__(self, other: Vector | float) -> Vector:
        return self.like(self.builder.fdiv(self.value, self.lift(other)))

    def __rtruediv__(self, other: float) -> Vector:
        return self.like(self.builder.fdiv(self.lift(other), self.value))

    def __neg__(self) -> Vector:
        return self.like(self.builder.fneg(self.value))

    # Integers and bools.

    def __and__(self, other: Vector | int) -> Vector:
        return self.like(self.builder.and_(self.value, self.lift(other)))

    def __or__(self, other: Vector | int) -> Vector:
        return self.like(self.builder.or_(self.value, self.lift(other)))

    def __xor__(self, other: Vector | int) -> Vector:
        return self.like(self.builder.xor(self.value, self.lift(other)))

    def __invert__(self) -> Vector:
        return self ^ -1

    def __lshift__(self, places: int) -> Vector:
        return self.like(self.builder.shl(self.value, self.lift(places)))

    def __rshift__(self, places: int) -> Vector:
        """A logical shift: AVX2 has no arithmetic one for 64 bits."""
        return self.like(self.builder.lshr(self.value, self.lift(places)))

    # Comparisons, false where an operand is nan.

    def _compare(self, sign: str, other: Vector | float) -> Vector:
        method = self.builder.fcmp_ordered if self.is_real else self.builder.icmp_signed
        return self.like(method(sign, self.value, self.lift(other)))

    def __lt__(self, other: Vector | float) -> Vector:
        return self._compare("<", other)

    def __le__(self, other: Vector | float) -> Vector:
        return self._compare("<=", other)

    def __gt__(self, other: Vector | float) -> Vector:
        return self._compare(">", other)

    def __ge__(self, other: Vector | float) -> Vector:
        return self._compare(">=", other)

    def equals(self, other: Vector | float) -> Vector:
        return self._compare("==", other)

    def is_nan(self) -> Vector:
        return self.like(self.builder.fcmp_unordered("uno", self.value, self.value))

    # The bits of a float.

    def bits(self) -> Vector:
        """The same bits as integers."""
        kind = ir.VectorType(self.form.integer, self.value.type.count)
        return self.like(self.builder.bitcast(self.value, kind))

    def real(self) -> Vector:
        """The same bits as floats."""
        kind = ir.VectorType(self.form.real, self.value.type.count)
        return self.like(self.builder.bitcast(self.value, kind))


# A function from vectors of one type to a vector of that type.
Formula = Callable[..., Vector]


def where(condition: Vector, x: Vector | float, y: Vector | float) -> Vector:
    """x in the lanes where the condition holds, y in the others; one of them is a vector."""
    model = x if isinstance(x, Vector) else y
    assert isinstance(model, Vector)
    return model.like(model.builder.select(condition.value, model.lift(x), model.lift(y)))


def intrinsic(name: str, *operands: Vector) -> Vector:
    """LLVM's intrinsic `name` for vectors of one type, declared on first use."""
    first = operands[0]
    module, kind = first.builder.module, first.value.type
    full = f"llvm.{name}.v{kind.count}f{first.form.bits}"
    callee = module.globals.get(full)
    if callee is None:
        callee = ir.Function(module, ir.FunctionType(kind, [kind] * len(operands)), full)
    return first.like(first.builder.call(callee, [operand.value for operand in operands]))


def _vector(operand: Vector | float, model: Vector) -> Vector:
    return operand if isinstance(operand, Vector) else model.splat(operand)


def fma(x: Vector, y: Vector | float, z: Vector | float) -> Vector:
    """x y + z, rounded once."""
    return intrinsic("fma", x, _vector(y, x), _vector(z, x))


def absolute(x: Vector) -> Vector:
    return intrinsic("fabs", x)


def copysign(x: Vector, sign: Vector) -> Vector:
    """|x| with the sign of `sign`."""
    return intrinsic("copysign", x, sign)


def sqrt(x: Vector) -> Vector:
    return intrinsic("sqrt", x)


def rint(x: Vector) -> Vector:
    return intrinsic("rint", x)


def at_most(x: Vector, bound: Vector | float) -> Vector:
    """The smaller of x and the bound, and nan where x is nan."""
    return where(x > bound, bound, x)


def at_least(x: Vector, bound: Vector | float) -> Vector:
    """The larger of x and the bound, and nan where x is nan."""
    return where(x < bound, bound, x)


def horner(x: Vector, coefficients: Sequence[float]) -> Vector:
    """c0 + c1 x + c2 x² + ..., in the order of the coefficients from c0 on."""
    *lower, last = coefficients
    total = x.splat(last)
    for coefficient in reversed(lower):
        total = fma(total, x, coefficient)
    return total


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """Like `horner`; long ones are split into even and odd powers, which a processor computes in parallel."""
    if len(coefficients) < 8:
        return horner(x, coefficients)
    z = x * x
    return fma(horner(z, coefficients[1::2]), x, horner(z, coefficients[::2]))


def power_of_two(exponent_bits: Vector) -> Vector:
    """2**n, where n is the low bits of an integer vector and 2**n a normal number."""
    form = exponent_bits.form
    return ((exponent_bits << form.fraction) + form.one).real()


def lane_by_lane(where_slow: Vector, x: Vector, fast: Vector, name: str) -> Vector:
    """`fast`, but the C function `name` of x in the lanes where the condition holds.

    This is for rare arguments, for which vector code would only cost time. If the condition holds
    anywhere, a loop calls the C function for every lane.
    """
    builder = x.builder
    module = builder.module
    kind = x.value.type
    index = ir.IntType(32)
    scalar = module.globals.get(name)
    if scalar is None:
        scalar = ir.Function(module, ir.FunctionType(kind.element, [kind.element]), name)
        scalar.attributes.add("nounwind")
        scalar.attributes.add("readnone")  # errno is ignored
    any_slow = builder.icmp_unsigned(
        "!=",
        builder.bitcast(where_slow.value, ir.IntType(kind.count)),
        ir.Constant(ir.IntType(kind.count), 0),
    )
    start = builder.block
    loop = builder.append_basic_block("lanes")
    done = builder.append_basic_block("done")
    builder.cbranch(any_slow, loop, done)
    builder.position_at_end(loop)
    lane = builder.phi(index)
    so_far = builder.phi(kind)
    one = builder.call(scalar, [builder.extract_element(x.value, lane)])
    filled = builder.insert_element(so_far, one, lane)
    mixed = builder.select(where_slow.value, filled, fast.value)
    following = builder.add(lane, ir.Constant(index, 1))
    lane.add_incoming(ir.Constant(index, 0), start)
    lane.add_incoming(following, loop)
    so_far.add_incoming(fast.value, start)
    so_far.add_incoming(filled, loop)
    builder.cbranch(
        builder.icmp_unsigned("<", following, ir.Constant(index, kind.count)), loop, done
    )
    builder.position_at_end(done)
    result = builder.phi(kind)
    result.add_incoming(fast.value, start)
    result.add_incoming(mixed, loop)
    return x.like(result)


def widened(x: Vector, wide: Format) -> Vector:
    """The floats of x in a wider format."""
    kind = ir.VectorType(wide.real, x.value.type.count)
    return Vector(x.builder, wide, x.builder.fpext(x.value, kind))


def narrowed(x: Vector, narrow: Format) -> Vector:
    """The floats of x, rounded to a narrower format."""
    kind = ir.VectorType(narrow.real, x.value.type.count)
    return Vector(x.builder, narrow, x.builder.fptrunc(x.value, kind))
