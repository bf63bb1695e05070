"""The hyperbolic functions, by exponentials."""

from __future__ import annotations

from functrans.compiler.native.exponential import bend, reduced
from functrans.compiler.native.vectors import Vector, absolute, at_most, copysign, fma, power_of_two

# From this argument on tanh rounds to 1.
TANH_ONE = {"d": 20.0, "f": 10.0}


def tanh(x: Vector) -> Vector:
    # tanh(x) = m/(m + 2) with m = e^2|x| - 1 = 2^n (r + b) + (2^n - 1), b = e^r - 1 - r.
    u = at_most(absolute(x), TANH_ONE[x.form.kind])
    _, n_bits, r = reduced(u + u)
    scale = power_of_two(n_bits)
    m = fma(scale, bend(r), fma(scale, r, scale - 1.0))
    return copysign(m / (m + 2.0), x)
