"""exp and related functions, by argument reduction: x = n log(2) + r with |r| <= log(2)/2, e^x = 2^n e^r."""

from __future__ import annotations

from typing import NamedTuple

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import Sum, exact_sum_ordered, quotient, rounded
from functrans.compiler.native.vectors import (
    Vector,
    absolute,
    at_least,
    at_most,
    fma,
    polynomial,
    power_of_two,
    where,
)

LOG2_E = 1.4426950408889634
# log(2) = high + low, where high n is exact for every exponent n.
LOG_2 = {
    "d": (0.6931471805598903, 5.497923018708371e-14),
    "f": (0.693145751953125, 1.428606765330187e-06),
}
# Beyond these arguments e^x is 0, or infinite.
EXP_RANGE = {"d": (-746.0, 710.0), "f": (-104.0, 89.0)}
# Below this argument e^x - 1 rounds to -1.
EXPM1_LEAST = {"d": -40.0, "f": -20.0}


class Reduced(NamedTuple):
    n: Vector  # an integer, as a float
    n_bits: Vector  # the same in the low bits of an integer vector
    r: Vector


def reduced(x: Vector) -> Reduced:
    """x = n log(2) + r."""
    shift = x.form.round_shift
    shifted = fma(x, LOG2_E, shift)
    n = shifted - shift
    high, low = LOG_2[x.form.kind]
    r = fma(n, -low, fma(n, -high, x))
    return Reduced(n, shifted.bits(), r)


def reduction_error(x: Vector, n: Vector, r: Vector) -> Vector:
    """The rounding error of r in a reduction: x - n log(2) - r."""
    high, low = LOG_2[x.form.kind]
    return fma(n, -low, fma(n, -high, x) - r)


def exp_bend(r: Vector) -> Vector:
    """e^r - 1 - r = r² q(r), for a reduced r."""
    return r * r * polynomial(r, coefficients.EXP[r.form.kind])


def exp_minus_one(r: Vector) -> Vector:
    """e^r - 1, for a reduced r."""
    return fma(r * r, polynomial(r, coefficients.EXP[r.form.kind]), r)


def scaled(x: Vector, n: Vector, n_bits: Vector) -> Vector:
    """x 2^n, rounded once, even where 2^n overflows or underflows: it is split into two factors."""
    shifted = fma(n, 0.5, x.form.round_shift)
    half = shifted.bits()
    return x * power_of_two(half) * power_of_two(n_bits - half)


def clamped(x: Vector) -> Vector:
    low, high = EXP_RANGE[x.form.kind]
    return at_least(at_most(x, high), low)


def exp(x: Vector) -> Vector:
    n, n_bits, r = reduced(clamped(x))
    return scaled(1.0 + exp_minus_one(r), n, n_bits)


def exp_of_sum(x: Vector, low: Vector) -> Vector:
    """e^(x + low) for a `low` much smaller than x, such as the rounding error of x."""
    n, n_bits, r = reduced(clamped(x))
    return scaled(1.0 + exp_minus_one(r + low), n, n_bits)


def half_exp(x: Vector) -> Vector:
    """e^x / 2 for x >= 0, which overflows a little later than e^x."""
    n, n_bits, r = reduced(at_most(x, EXP_RANGE[x.form.kind][1] + 2.0))
    return scaled(1.0 + exp_minus_one(r), n - 1.0, n_bits - 1)


def exp2(x: Vector) -> Vector:
    # 2^x = 2^n 2^r with an exact r = x - n.
    form = x.form
    bound = float(form.bias + form.fraction + 2)
    x = at_least(at_most(x, bound), -bound)
    shifted = x + form.round_shift
    n = shifted - form.round_shift
    r = x - n
    return scaled(fma(r, polynomial(r, coefficients.EXP2[form.kind]), 1.0), n, shifted.bits())


def expm1(x: Vector) -> Vector:
    # e^x - 1 = 2 (h (r + b) + (h - 1/2)) with h = 2^(n-1), finite for all n, and b = e^r - 1 - r.
    kind = x.form.kind
    inside = at_least(at_most(x, EXP_RANGE[kind][1]), EXPM1_LEAST[kind])
    n, n_bits, r = reduced(inside)
    half = power_of_two(n_bits - 1)
    rest = exp_bend(r) + reduction_error(inside, n, r)
    result = fma(half, rest, fma(half, r, half - 0.5))
    # Half of a subnormal number may not be representable, and -0 must remain -0.
    return where(absolute(x) < 2.0 ** -(x.form.fraction + 2), x, result + result)


def exp_sum(x: Vector) -> Sum:
    """e^x for x <= 0, with most of its rounding error."""
    n, n_bits, r = reduced(at_least(x, EXP_RANGE[x.form.kind][0]))
    start = exp_minus_one(r)
    fraction = 1.0 + start
    error = start - (fraction - 1.0)
    return Sum(scaled(fraction, n, n_bits), scaled(error, n, n_bits))


def expit(x: Vector) -> Vector:
    # 1/(1 + e^-x) = e^x/(1 + e^x); use the form whose exponential does not overflow.
    e, error = exp_sum(-absolute(x))
    total, rest = exact_sum_ordered(x.splat(1.0), e)
    negative = x < 0.0
    above = Sum(where(negative, e, 1.0), where(negative, error, 0.0))
    return rounded(quotient(above, Sum(total, rest + error)))
