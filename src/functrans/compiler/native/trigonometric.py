"""Sine, cosine and tangent. Arguments beyond `LARGE` are rare, and the C library's concern."""

from __future__ import annotations

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import (
    Sum,
    exact_product,
    exact_sum,
    exact_sum_ordered,
    quotient,
    rounded,
)
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    fma,
    lane_by_lane,
    polynomial,
    where,
)

INVERSE_PI = 0.3183098861837907
# π as a sum of three numbers. The product of the first with an integer n is a multiple of its last
# place, so that x - n π is exact by fma as long as x is near n π and n is not too large.
PI = {
    "d": (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
    "f": (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
}
LARGE = {"d": 2.0**30, "f": 2.0**13}


def less_multiple(x: Vector, n: Vector, unit: float) -> Sum:
    """x - n unit π, where this is small."""
    first, second, third = (unit * part for part in PI[x.form.kind])
    next_part, error = exact_product(n, n.splat(-second))
    high, low = exact_sum(fma(n, -first, x), next_part)
    return Sum(high, low + fma(n, -third, error))


def waves(r: Sum) -> tuple[Sum, Sum]:
    """sin(r) and cos(r) for |r| <= π/4."""
    kind = r.high.form.kind
    z = r.high * r.high
    cubic = fma(r.high * z, polynomial(z, coefficients.SIN_QUARTER[kind]), r.low)
    sine = exact_sum_ordered(r.high, cubic)
    # 1 - z/2 with its rounding error, and the terms of higher order with that of r.low.
    half = z * 0.5
    start = 1.0 - half
    rest = fma(z * z, polynomial(z, coefficients.COS_QUARTER[kind]), -(r.high * r.low))
    cosine = exact_sum_ordered(start, ((1.0 - start) - half) + rest)
    return sine, cosine


def quadrant(size: Vector) -> tuple[Vector, Sum]:
    """n, in the low bits of an integer vector, and r with size = n π/2 + r."""
    shifted = fma(size, 2 * INVERSE_PI, size.form.round_shift)
    n = shifted - size.form.round_shift
    return shifted.bits(), less_multiple(size, n, 0.5)


def top_bit(bits: Vector, place: int) -> Vector:
    """The bit at this place moved to that of the sign."""
    return bits << (bits.form.bits - 1 - place)


def flipped(x: Vector, bits: Vector) -> Vector:
    """x with another sign where the highest of the bits is set."""
    sign = -1 << (x.form.bits - 1)
    return (x.bits() ^ (bits & sign)).real()


def sin(x: Vector) -> Vector:
    size = absolute(x)
    n, r = quadrant(size)
    sine, cosine = waves(r)
    wave = where(top_bit(n, 0) < 0, cosine.high, sine.high)
    result = flipped(wave, top_bit(n, 1) ^ x.bits())
    return lane_by_lane(size > LARGE[x.form.kind], x, result, "sin" + x.form.libm)


def cos(x: Vector) -> Vector:
    # cos(x) = sin(x + π/2), the sine of the next quadrant.
    size = absolute(x)
    n, r = quadrant(size)
    sine, cosine = waves(r)
    wave = where(top_bit(n, 0) < 0, sine.high, cosine.high)
    result = flipped(wave, top_bit(n + 1, 1))
    return lane_by_lane(size > LARGE[x.form.kind], x, result, "cos" + x.form.libm)


def tan(x: Vector) -> Vector:
    # tan(x) = tan(x - n π/2), or -cot of it where n is odd.
    size = absolute(x)
    n, r = quadrant(size)
    sine, cosine = waves(r)
    odd = top_bit(n, 0) < 0
    above = Sum(where(odd, cosine.high, sine.high), where(odd, cosine.low, sine.low))
    below = Sum(where(odd, sine.high, cosine.high), where(odd, sine.low, cosine.low))
    result = flipped(rounded(quotient(above, below)), top_bit(n, 0) ^ x.bits())
    return lane_by_lane(size > LARGE[x.form.kind], x, result, "tan" + x.form.libm)
