"""Sine, cosine and tangent. Arguments beyond `LARGE` are rare, and the C library's concern."""

from __future__ import annotations

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import Sum, exact_product, exact_sum
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    fma,
    horner,
    lane_by_lane,
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


def half_wave(r: Sum) -> Vector:
    """sin(r) for |r| <= π/2."""
    z = r.high * r.high
    cubic = z * horner(z, coefficients.SIN[z.form.kind])
    return r.high + fma(r.high, cubic, r.low)


def flipped(x: Vector, bits: Vector) -> Vector:
    """x with another sign where the last of the bits is set."""
    return (x.bits() ^ (bits << (x.form.integer.width - 1))).real()


def sin(x: Vector) -> Vector:
    # sin(x) = (-1)^n sin(x - n π)
    size = absolute(x)
    shifted = fma(size, INVERSE_PI, x.form.round_shift)
    n = shifted - x.form.round_shift
    wave = half_wave(less_multiple(size, n, 1.0))
    signs = shifted.bits() ^ (x.bits() >> (x.form.integer.width - 1))
    result = flipped(wave, signs)
    return lane_by_lane(size > LARGE[x.form.kind], x, result, "sin" + x.form.libm)


def cos(x: Vector) -> Vector:
    # cos(x) = sin(x + π/2) = (-1)^n sin(x - (n - 1/2) π)
    size = absolute(x)
    shifted = fma(size, INVERSE_PI, 0.5) + x.form.round_shift
    n = shifted - x.form.round_shift
    result = flipped(half_wave(less_multiple(size, n + n - 1.0, 0.5)), shifted.bits())
    return lane_by_lane(size > LARGE[x.form.kind], x, result, "cos" + x.form.libm)


def tan(x: Vector) -> Vector:
    # tan(x) = tan(x - n π/2), or -cot of it where n is odd.
    kind = x.form.kind
    size = absolute(x)
    shifted = fma(size, 2 * INVERSE_PI, x.form.round_shift)
    n = shifted - x.form.round_shift
    r = less_multiple(size, n, 0.5)
    z = r.high * r.high
    sine = r.high + fma(r.high * z, horner(z, coefficients.SIN_QUARTER[kind]), r.low)
    # 1 - z/2 with its rounding error, and the terms of higher order with those of r.low.
    half = z * 0.5
    start = 1.0 - half
    rest = fma(z * z, horner(z, coefficients.COS_QUARTER[kind]), -(r.high * r.low))
    cosine = start + (((1.0 - start) - half) + rest)
    odd = (shifted.bits() << (x.form.integer.width - 1)) < 0
    result = where(odd, -cosine, sine) / where(odd, sine, cosine)
    result = flipped(result, x.bits() >> (x.form.integer.width - 1))
    return lane_by_lane(size > LARGE[kind], x, result, "tan" + x.form.libm)
