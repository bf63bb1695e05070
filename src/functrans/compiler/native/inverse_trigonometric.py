"""The inverse trigonometric functions, with π/2 as a sum of two numbers."""

from __future__ import annotations

import math

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import exact_sum_ordered
from functrans.compiler.native.trigonometric import HALF_PI
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    copysign,
    fma,
    horner,
    polynomial,
    sqrt,
    where,
)


def arctan_bend(t: Vector) -> Vector:
    """arctan(t) - t for 0 <= t <= 1."""
    z = t * t
    # Not `polynomial`: at z = 1 the even and the odd powers are larger than their sum.
    return t * z * horner(z, coefficients.ARCTAN[t.form.kind])


def arctan(x: Vector) -> Vector:
    # arctan(x) = π/2 - arctan(1/x) for x > 1.
    size = absolute(x)
    large = size > 1.0
    t = where(large, 1.0 / size, size)
    high, low, _ = HALF_PI[x.form.kind]
    bend = arctan_bend(t)
    result = where(large, (high - t) + (low - bend), t + bend)
    return copysign(result, x)


def arctan2(y: Vector, x: Vector) -> Vector:
    # The angle in the first octant is arctan(t) with t = min/max; reflections give the others.
    form = x.form
    across, up = absolute(x), absolute(y)
    steep = up > across
    short = where(steep, across, up)
    long = where(steep, up, across)
    # 0/0 is an angle of 0, and inf/inf one of π/4.
    t = where(long.equals(0.0), 0.0, where(short.equals(math.inf), 1.0, short / long))
    bend = arctan_bend(t)
    high, low, _ = HALF_PI[form.kind]
    # The angle is quarters · π/2 ± arctan(t).
    left = x.bits() < 0
    turned = steep ^ left
    quarters = where(steep, x.splat(1.0), where(left, x.splat(2.0), 0.0))
    t = where(turned, -t, t)
    bend = where(turned, -bend, bend)
    result = fma(quarters, high, t) + fma(quarters, low, bend)
    # A minimum by comparison may have lost a nan.
    result = where(x.is_nan() | y.is_nan(), math.nan, result)
    return copysign(result, y)


def _arcsin_parts(size: Vector) -> tuple[Vector, Vector, Vector]:
    """Whether size > 1/2, t, and arcsin(t) - t, for t = size, or √((1 - size)/2) if size > 1/2."""
    large = size > 0.5
    z = where(large, fma(size, -0.5, 0.5), size * size)
    t = where(large, sqrt(z), size)
    return large, t, t * z * polynomial(z, coefficients.ARCSIN[size.form.kind])


def arcsin(x: Vector) -> Vector:
    # arcsin(x) = π/2 - 2 arcsin(√((1 - x)/2)) for x > 1/2.
    large, t, bend = _arcsin_parts(absolute(x))
    high, low, _ = HALF_PI[x.form.kind]
    start, error = exact_sum_ordered(x.splat(high), -2.0 * t)
    result = where(large, start + fma(bend, -2.0, error + low), t + bend)
    return copysign(result, x)


def arccos(x: Vector) -> Vector:
    # arccos(x) = π/2 - arcsin(x), 2 arcsin(√((1 - x)/2)) for x > 1/2, and π - arccos(-x).
    large, t, bend = _arcsin_parts(absolute(x))
    high, low, _ = HALF_PI[x.form.kind]
    negative = x < 0.0
    twice, twice_bend = t + t, bend + bend
    beyond = where(negative, (2 * high - twice) + (2 * low - twice_bend), twice + twice_bend)
    t, bend = copysign(t, x), copysign(bend, x)
    return where(large, beyond, (high - t) + (low - bend))
