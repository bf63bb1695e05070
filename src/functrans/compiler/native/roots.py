"""The cube root and the length of a vector in the plane."""

from __future__ import annotations

import math

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import (
    Sum,
    exact_product,
    exact_sum_ordered,
    product,
    rounded,
    square_root,
)
from functrans.compiler.native.logarithm import split
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    copysign,
    fma,
    polynomial,
    power_of_two,
    where,
)

CUBE_ROOT_2 = 1.2599210498948732
# Beyond 2^±(first) the squares of two numbers need a factor of 2^∓(second).
RESCALING = {"d": (450, 600), "f": (50, 90)}


def cbrt(x: Vector) -> Vector:
    # x = 8^k a with a = 2^j (1 + f) and j = -1, 0 or 1.
    size = absolute(x)
    exponent, f = split(size)
    shifted = fma(exponent, 1 / 3, x.form.round_shift)
    j = fma(shifted - x.form.round_shift, -3.0, exponent)
    factor = where(j > 0.0, x.splat(2.0), where(j < 0.0, x.splat(0.5), 1.0))
    a = (1.0 + f) * factor
    first = where(j > 0.0, x.splat(CUBE_ROOT_2), where(j < 0.0, x.splat(1 / CUBE_ROOT_2), 1.0))
    y = first * polynomial(f, coefficients.CBRT[x.form.kind])
    # Newton's step y - (y³ - a)/(3 y²), which doubles the digits, with an exact y³.
    square = exact_product(y, y)
    cube = product(square, Sum(y, x.splat(0.0)))
    y = y - ((cube.high - a) + cube.low) / (3.0 * square.high)
    result = y * power_of_two(shifted.bits())
    ordinary = (size > 0.0) & (size < math.inf)
    return copysign(where(ordinary, result, size), x)


def hypot(x: Vector, y: Vector) -> Vector:
    x, y = absolute(x), absolute(y)
    swapped = y > x
    long, short = where(swapped, y, x), where(swapped, x, y)
    limit, power = (2.0**exponent for exponent in RESCALING[x.form.kind])
    large, small = long > limit, long < 1 / limit
    scale = where(large, x.splat(1 / power), where(small, x.splat(power), 1.0))
    back = where(large, x.splat(power), where(small, x.splat(1 / power), 1.0))
    first = exact_product(long * scale, long * scale)
    second = exact_product(short * scale, short * scale)
    total, error = exact_sum_ordered(first.high, second.high)
    result = back * rounded(square_root(Sum(total, error + (first.low + second.low))))
    infinite = x.equals(math.inf) | y.equals(math.inf)
    # A minimum by comparison may have lost a nan; but hypot(inf, nan) is inf.
    result = where(x.is_nan() | y.is_nan(), math.nan, result)
    return where(infinite, math.inf, result)
