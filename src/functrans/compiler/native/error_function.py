"""erf and erfc, in float64: erfc(x) = e^(-x²) times a function that varies slowly."""

from __future__ import annotations

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import (
    Sum,
    exact_product,
    exact_sum,
    exact_sum_ordered,
    product,
    quotient,
    rounded,
)
from functrans.compiler.native.exponential import exp_minus_one, reduced, scaled
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    at_most,
    copysign,
    fma,
    horner,
    where,
)

# Beyond this argument erfc rounds to 0.
ERFC_ZERO = 27.5
# 8 e^16 erfc(4) = high + low: the value at t = 0 of the function in `scaled_complement`.
AT_CENTER = (1.095995661000491, 5.757254511326975e-17)


def scaled_complement(x: Vector) -> Sum:
    """e^(x²) erfc(x) for 3/4 <= x <= 27.5."""
    # It is g(t)/(x + 4) with t = (x - 4)/(x + 4), where g is smooth up to infinity.
    below = exact_sum(x, 4.0)
    t = quotient(exact_sum(x, -4.0), below)
    slope = horner(t.high, coefficients.ERFC["d"])
    rise, error = exact_product(t.high, slope)
    high, low = AT_CENTER
    start, rest = exact_sum_ordered(x.splat(high), rise)
    return quotient(Sum(start, fma(t.low, slope, (error + low) + rest)), below)


def complement(x: Vector) -> Vector:
    """erfc(x) for x >= 3/4."""
    x = at_most(x, ERFC_ZERO)
    square, error = exact_product(x, x)
    n, n_bits, r = reduced(-square)
    start = exp_minus_one(r - error)
    fraction = 1.0 + start
    exponential = Sum(fraction, start - (fraction - 1.0))
    return scaled(rounded(product(exponential, scaled_complement(x))), n, n_bits)


def erf(x: Vector) -> Vector:
    # erf(x) = x + x p(x²) for small arguments.
    size = absolute(x)
    small = fma(size, horner(size * size, coefficients.ERF["d"]), size)
    result = where(size < 1.0, small, 1.0 - complement(size))
    return copysign(result, x)


def erfc(x: Vector) -> Vector:
    # 1 - x - x p(x²) for small arguments, erfc(-x) = 2 - erfc(x).
    start, error = exact_sum_ordered(x.splat(1.0), -x)
    small = start + fma(-x, horner(x * x, coefficients.ERF["d"]), error)
    size = absolute(x)
    tail = complement(size)
    return where(size < 0.75, small, where(x < 0.0, 2.0 - tail, tail))
