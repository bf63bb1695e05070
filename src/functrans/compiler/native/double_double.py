"""Double-double numbers: sums of two floats, the second about as small as the rounding error of the first.

The rounding errors of a sum and of a product are floats, too (Dekker, Knuth); for a product, fma
computes it. So a few more operations keep about twice the digits in those steps of a formula that
would lose some.
"""

from __future__ import annotations

from typing import NamedTuple

from functrans.compiler.native.vectors import Vector, fma, sqrt, where


class Sum(NamedTuple):
    high: Vector
    low: Vector


def exact_sum(x: Vector, y: Vector | float) -> Sum:
    """x + y exactly."""
    total = x + y
    part = total - x
    return Sum(total, (x - (total - part)) + (y - part))


def exact_sum_ordered(x: Vector, y: Vector) -> Sum:
    """x + y exactly, where |x| >= |y| or x = 0."""
    total = x + y
    return Sum(total, y - (total - x))


def exact_product(x: Vector, y: Vector) -> Sum:
    """x y exactly."""
    product = x * y
    return Sum(product, fma(x, y, -product))


def product(x: Sum, y: Sum) -> Sum:
    high, low = exact_product(x.high, y.high)
    return Sum(high, fma(x.high, y.low, fma(x.low, y.high, low)))


def square(x: Sum) -> Sum:
    high, low = exact_product(x.high, x.high)
    return Sum(high, fma(x.high + x.high, x.low, low))


def quotient(x: Sum, y: Sum) -> Sum:
    """x / y, with one division of floats."""
    inverse = 1.0 / y.high
    high = x.high * inverse
    # The remainder of a first quotient: x - high y, where the product with y.high is exact.
    rest = fma(-high, y.high, x.high) + fma(-high, y.low, x.low)
    return Sum(high, rest * inverse)


def rounded(x: Sum) -> Vector:
    return x.high + x.low


def square_root(x: Sum) -> Sum:
    """√x; the root of zero is zero."""
    root = sqrt(x.high)
    rest = fma(-root, root, x.high) + x.low
    return Sum(root, where(root > 0.0, rest / (root + root), 0.0))
