"""erf and erfc, from erfc(x) = e^(-x²) times a function that varies slowly."""

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
    polynomial,
    power_of_two,
    where,
)

# For larger arguments erfc rounds to 0.
ERFC_ZERO = {"d": 27.5, "f": 10.5}
# For larger arguments erf rounds to 1.
ERF_ONE = {"d": 6.0, "f": 4.0}
# 8 e^16 erfc(4) = high + low: the value at t = 0 of the function in `scaled_complement`.
AT_CENTER = {
    "d": (1.095995661000491, 5.757254511326975e-17),
    "f": (1.0959956645965576, -3.5960664980719385e-09),
}


def scaled_complement(x: Vector) -> Sum:
    """e^(x²) erfc(x) for 3/4 <= x <= 27.5."""
    # It is g(t)/(x + 4) with t = (x - 4)/(x + 4), where g is smooth up to infinity.
    below = exact_sum(x, 4.0)
    t = quotient(exact_sum(x, -4.0), below)
    # The steps up to g(t) = g(0) + t (c0 + t c(t)) use double-double numbers. `horner`, not `polynomial`,
    # because at the ends the even and the odd powers are larger than their sum.
    first, *others = coefficients.ERFC[x.form.kind]
    bend, error = exact_product(t.high, horner(t.high, others))
    slope, rest = exact_sum_ordered(x.splat(first), bend)
    rise = product(t, Sum(slope, rest + error))
    high, low = AT_CENTER[x.form.kind]
    g, rest = exact_sum_ordered(x.splat(high), rise.high)
    return quotient(Sum(g, rest + (rise.low + low)), below)


def complement(x: Vector) -> Vector:
    """erfc(x) for x >= 3/4."""
    x = at_most(x, ERFC_ZERO[x.form.kind])
    square, error = exact_product(x, x)
    n, n_bits, r = reduced(-square)
    start = exp_minus_one(r - error)
    fraction = 1.0 + start
    exponential = Sum(fraction, start - (fraction - 1.0))
    return scaled(rounded(product(exponential, scaled_complement(x))), n, n_bits)


def erf(x: Vector) -> Vector:
    # x + x p(x²) for small arguments. For others, erfc(x) = e^q(x) needs few digits, and does not underflow.
    kind = x.form.kind
    size = absolute(x)
    small = fma(size, polynomial(size * size, coefficients.ERF[kind]), size)
    log = polynomial(at_most(size, ERF_ONE[kind]), coefficients.LOG_ERFC[kind])
    _, n_bits, r = reduced(log)
    large = fma(-power_of_two(n_bits), 1.0 + exp_minus_one(r), 1.0)
    return copysign(where(size < 1.0, small, large), x)


def erfc(x: Vector) -> Vector:
    # 1 - x - x p(x²) for small arguments, erfc(-x) = 2 - erfc(x).
    start, error = exact_sum_ordered(x.splat(1.0), -x)
    small = start + fma(-x, polynomial(x * x, coefficients.ERF[x.form.kind]), error)
    size = absolute(x)
    tail = complement(size)
    return where(size < 0.75, small, where(x < 0.0, 2.0 - tail, tail))
