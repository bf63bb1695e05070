"""Sine, cosine and tangent. Arguments beyond `LARGE` are rare, and left to the C library."""

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

TWO_OVER_PI = 0.6366197723675814
# π/2 as a sum of three numbers. The product of the first with an integer n is a multiple of its last place,
# so that fma computes x minus this product exactly if the difference is small.
HALF_PI = {
    "d": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    "f": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
}
# Up to here, x · 2/π is accurate enough to find the quadrant, and three numbers are enough.
LARGE = {"d": 2.0**40, "f": 2.0**16}


def quadrant(size: Vector) -> tuple[Vector, Sum]:
    """n, in the low bits of an integer vector, and r with size = n π/2 + r."""
    shift = size.form.round_shift
    shifted = fma(size, TWO_OVER_PI, shift)
    n = shifted - shift
    first, second, third = HALF_PI[size.form.kind]
    next_part, error = exact_product(n, n.splat(-second))
    high, low = exact_sum(fma(n, -first, size), next_part)
    return shifted.bits(), Sum(high, low + fma(n, -third, error))


def waves(r: Sum) -> tuple[Sum, Sum]:
    """sin(r) and cos(r) for |r| up to π/4 and a little more."""
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


def top_bit(bits: Vector, place: int) -> Vector:
    """Move the bit at this position to the sign bit."""
    return bits << (bits.form.bits - 1 - place)


def flipped(x: Vector, bits: Vector) -> Vector:
    """x with its sign flipped where the highest of the bits is set."""
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
