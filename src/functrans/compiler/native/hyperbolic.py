"""The hyperbolic functions, from exponentials."""

from __future__ import annotations

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import Sum, exact_sum_ordered, quotient, rounded
from functrans.compiler.native.exponential import exp_bend, half_exp, reduced
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    at_most,
    copysign,
    fma,
    polynomial,
    power_of_two,
    where,
)

# For larger arguments tanh rounds to 1.
TANH_ONE = {"d": 20.0, "f": 10.0}


def tanh(x: Vector) -> Vector:
    # tanh(x) = m/(m + 2) with m = e^2|x| - 1 = 2^n (r + b) + (2^n - 1), b = e^r - 1 - r.
    u = at_most(absolute(x), TANH_ONE[x.form.kind])
    _, n_bits, r = reduced(u + u)
    scale = power_of_two(n_bits)
    start = fma(scale, r, scale - 1.0)
    error = fma(scale, r, (scale - 1.0) - start)
    high, rest = exact_sum_ordered(start, scale * exp_bend(r))
    m = Sum(high, rest + error)
    more = high + 2.0
    result = rounded(quotient(m, Sum(more, (high - (more - 2.0)) + m.low)))
    return copysign(result, x)


def sinh(x: Vector) -> Vector:
    # An odd polynomial for small arguments, and e^u/2 - e^-u/2 for the others.
    u = absolute(x)
    z = x * x
    small = fma(u * z, polynomial(z, coefficients.SINH[x.form.kind]), u)
    half = half_exp(u)
    result = where(u < 1.0, small, half - 0.25 / half)
    return copysign(result, x)


def cosh(x: Vector) -> Vector:
    half = half_exp(absolute(x))
    return half + 0.25 / half
