"""Logarithms, from x = 2^e (1 + f) with √½ <= 1 + f < √2 and log(1 + f) = 2 artanh(s), s = f/(2 + f)."""

from __future__ import annotations

import math
import struct

from functrans.compiler.native import coefficients
from functrans.compiler.native.double_double import Sum, exact_sum, exact_sum_ordered, rounded
from functrans.compiler.native.exponential import LOG_2, exp_sum
from functrans.compiler.native.vectors import (
    Format,
    Vector,
    absolute,
    copysign,
    fma,
    polynomial,
    power_of_two,
    where,
)

# log10(2) = high + low, where high e is exact for every exponent e.
LOG10_2 = {
    "d": (0.30102999566383914, 1.42050232272661e-13),
    "f": (0.301025390625, 4.605038981195214e-06),
}
# Constants as double-double numbers.
LOG2_E = {
    "d": (1.4426950408889634, 2.0355273740931033e-17),
    "f": (1.4426950216293335, 1.9259629911266175e-08),
}
LOG10_E = {
    "d": (0.4342944819032518, 1.098319650216765e-17),
    "f": (0.4342944920063019, -1.0103050052231683e-08),
}


def bits_of(value: float, form: Format) -> int:
    code, integer = ("<d", "<q") if form.kind == "d" else ("<f", "<i")
    return int(struct.unpack(integer, struct.pack(code, value))[0])


def split(x: Vector) -> tuple[Vector, Vector]:
    """The exponent e, as a float, and the fraction f of a positive finite x."""
    form = x.form
    lifted = form.fraction + 2
    subnormal = x < form.smallest_normal
    x = where(subnormal, x * 2.0**lifted, x)
    # Relative to √½, the numbers up to √2 have the same exponent.
    root = bits_of(math.sqrt(0.5), form)
    counted = x.bits() + (form.one - root)
    # An integer in the fraction of 2^fraction is a float that is larger by this power.
    power = 2.0**form.fraction
    exponent = ((counted >> form.fraction) | bits_of(power, form)).real()
    bias = power + form.bias
    exponent = exponent - where(subnormal, x.splat(bias + lifted), bias)
    fraction = (counted & ((1 << form.fraction) - 1)) + root
    return exponent, fraction.real() - 1.0


def log_bend(f: Vector) -> tuple[Vector, Vector]:
    """s, and f - log(1 + f) = s (f - z p(z)) with z = s²."""
    s = f / (f + 2.0)
    z = s * s
    return s, s * fma(-z, polynomial(z, coefficients.LOG[f.form.kind]), f)


def on_domain(x: Vector, result: Vector) -> Vector:
    """The result where x is positive and finite, and the logarithm's limit or nan elsewhere."""
    beyond = where(x.equals(0.0), x.splat(-math.inf), math.nan)
    return where(x > 0.0, where(x < math.inf, result, x), beyond)


def log(x: Vector) -> Vector:
    exponent, f = split(x)
    _, below = log_bend(f)
    high, low = LOG_2[x.form.kind]
    return on_domain(x, fma(exponent, high, f) + fma(exponent, low, -below))


def log_of_sum(x: Sum, doublings: Vector | None = None) -> Sum:
    """log(2^doublings x) for positive finite x, as a sum that is not yet rounded."""
    form = x.high.form
    exponent, f = split(x.high)
    s, below = log_bend(f)
    # x.low adds x.low/x.high = 2^-e x.low/(1 + f), with 1/(1 + f) = (1 - s)/(1 + s) ≈ 1 - 2 s.
    # 2^(1-e) is finite, or 0, for every e.
    exponent_bits = (exponent + form.round_shift).bits()
    low = x.low * power_of_two(1 - exponent_bits) * (0.5 - s)
    if doublings is not None:
        exponent = exponent + doublings
    long, short = LOG_2[form.kind]
    return Sum(fma(exponent, long, f), fma(exponent, short, low) - below)


def log1p(x: Vector) -> Vector:
    total = exact_sum(x, 1.0)
    result = on_domain(total.high, rounded(log_of_sum(total)))
    return copysign(result, x)  # for the sign of zero


def softplus(x: Vector) -> Vector:
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
    e, error = exp_sum(-absolute(x))
    one_more, rest = exact_sum_ordered(x.splat(1.0), e)
    log, low = log_of_sum(Sum(one_more, rest + error))
    total, more = exact_sum(where(x < 0.0, 0.0, x), log)
    return where(x < math.inf, total + (more + low), x)


def log_expit(x: Vector) -> Vector:
    # log(1/(1 + e^-x))
    return -softplus(-x)


def log_of_fraction(f: Vector) -> tuple[Vector, Vector]:
    """log(1 + f), as a number and its rounding error."""
    _, below = log_bend(f)
    total = f - below
    return total, (f - total) - below


def log2(x: Vector) -> Vector:
    exponent, f = split(x)
    log, error = log_of_fraction(f)
    high, low = LOG2_E[x.form.kind]
    return on_domain(x, fma(log, high, exponent) + fma(error, high, log * low))


def log10(x: Vector) -> Vector:
    exponent, f = split(x)
    log, error = log_of_fraction(f)
    long, short = LOG10_2[x.form.kind]
    high, low = LOG10_E[x.form.kind]
    rest = fma(exponent, short, fma(error, high, log * low))
    return on_domain(x, fma(exponent, long, log * high) + rest)
