"""The inverse hyperbolic functions: logarithms of double-double numbers."""

from __future__ import annotations

import math

from functrans.compiler.native.double_double import (
    Sum,
    exact_product,
    exact_sum,
    exact_sum_ordered,
    quotient,
    rounded,
    square_root,
)
from functrans.compiler.native.logarithm import log_of_sum
from functrans.compiler.native.vectors import Vector, absolute, copysign, where

# Below these x the odd functions round to x, and beyond their inverses x² ± 1 to x².
TINY = {"d": 2.0**-28, "f": 2.0**-13}


def _log_with_root(x: Vector, sign: float) -> Vector:
    """log(x + √(x² + sign)) for x >= 0, and log(2 x) for a large x, whose square may overflow."""
    large = x > 1 / TINY[x.form.kind]
    square, error = exact_product(x, x)
    inside, more = exact_sum(square, sign)
    root = square_root(Sum(inside, more + error))
    total, rest = exact_sum(x, root.high)
    high = where(large, x, total)
    low = where(large, 0.0, rest + root.low)
    doublings = where(large, x.splat(1.0), 0.0)
    return where(x < math.inf, rounded(log_of_sum(Sum(high, low), doublings)), x)


def arcsinh(x: Vector) -> Vector:
    size = absolute(x)
    result = where(size < TINY[x.form.kind], size, _log_with_root(size, 1.0))
    return copysign(result, x)


def arccosh(x: Vector) -> Vector:
    return where(x < 1.0, math.nan, _log_with_root(x, -1.0))


def arctanh(x: Vector) -> Vector:
    # artanh(x) = log((1 + x)/(1 - x))/2
    size = absolute(x)
    one = x.splat(1.0)
    ratio = quotient(exact_sum_ordered(one, size), exact_sum_ordered(one, -size))
    ratio = exact_sum_ordered(ratio.high, ratio.low)
    result = where(size < TINY[x.form.kind], size, 0.5 * rounded(log_of_sum(ratio)))
    at_end = where(size.equals(1.0), x.splat(math.inf), math.nan)
    return copysign(where(size < 1.0, result, at_end), x)
