"""x^y = e^(y log(x)), with about 65 bits of log(x), so that even a large y log(x) is accurate enough."""

from __future__ import annotations

import math

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import (
    Sum,
    exact_product,
    exact_sum_ordered,
    product,
    quotient,
    square,
)
from functrans.compiler.native.exponential import LOG_2, exp, exp_of_sum
from functrans.compiler.native.logarithm import log, split
from functrans.compiler.native.vectors import (
    FORMATS,
    Vector,
    absolute,
    narrowed,
    polynomial,
    rint,
    where,
    widened,
)

# 2/3 = high + low.
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def log_sum(x: Vector) -> Sum:
    """log(x) of a positive finite float64, with a relative error of about 2^-65."""
    exponent, f = split(x)
    # log(1 + f) = 2 s + s z (2/3 + z q(z)) with s = f/(2 + f) and z = s².
    s = quotient(Sum(f, x.splat(0.0)), exact_sum_ordered(x.splat(2.0), f))
    z = square(s)
    high, low = TWO_THIRDS
    cubic = exact_sum_ordered(
        x.splat(high), z.high * polynomial(z.high, coefficients.LOG_FINE["d"])
    )
    cubic = Sum(cubic.high, cubic.low + low)
    bend = product(s, product(z, cubic))
    fraction, error = exact_sum_ordered(s.high + s.high, bend.high)
    high, low = LOG_2["d"]
    total, rest = exact_sum_ordered(exponent * high, fraction)
    return Sum(total, rest + (exponent * low + (error + (bend.low + (s.low + s.low)))))


def magnitude(x: Vector, y: Vector) -> Vector:
    """x^y for a float64 x > 0, which may be infinite, or 0 for a limit."""
    log_x = log_sum(x)
    # The logarithms of infinity, of nan and of zero, as limits.
    high = where(x < math.inf, where(x > 0.0, log_x.high, -math.inf), x)
    exponent, error = exact_product(y, high)
    error = error + y * log_x.low
    return exp_of_sum(exponent, where(absolute(exponent) < 1000.0, error, 0.0))


def power(x: Vector, y: Vector) -> Vector:
    size = absolute(x)
    if x.form.kind == "d":
        result = magnitude(size, y)
    else:
        wide = FORMATS["d"]
        result = narrowed(exp(widened(y, wide) * log(widened(size, wide))), x.form)
    # (-1)^±inf is 1 by convention.
    result = where(size.equals(1.0), 1.0, result)
    half = y * 0.5
    integral = rint(y).equals(y)
    odd = integral & ~rint(half).equals(half)
    result = where(odd & (x.bits() < 0), -result, result)
    finite_negative = (x < 0.0) & (x > -math.inf)
    result = where(finite_negative & ~integral, math.nan, result)
    # 1^nan and nan^0 are 1, too.
    return where(x.equals(1.0) | y.equals(0.0), 1.0, result)
