"""Special functions that NumPy has: the Bessel functions behind np.i0."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from functrans.core.primitive import Elementwise, always_array, always_number, family
from functrans.ops.families import elementwise


def _series(x: Any, order: int) -> Any:
    """I_n(x) = sum_k (x/2)^(2k+n) / (k! (k+n)!), whose terms all have the same sign."""
    half = x / 2
    term = half**order / math.factorial(order)
    total = term
    for k in range(1, 100 + order**2):
        term = term * (half * half / (k * (k + order)))
        total = total + term
    return total


def _far_out(x: Any, order: int) -> Any:
    """e^x / sqrt(2 pi x) (1 - (m - 1)/(8x) + (m - 1)(m - 9)/(2! (8x)^2) - ...), m = 4 n^2."""
    term = np.ones_like(x)
    total = term
    for k in range(1, 30):
        term = term * (((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * x))
        total = total + term
    return np.exp(x / 2) / np.sqrt(2 * np.pi * x) * total * np.exp(x / 2)  # avoids early overflow


@family("bessel_i")
@cache
def bessel_i(order: int) -> Elementwise:
    """The modified Bessel function of the first kind, for every order, and so with derivatives of all orders.

    I_n' = (I_{n-1} + I_{n+1}) / 2, and I_{-1} = I_1 (Abramowitz and Stegun, 9.6.26).
    """
    border = 40.0 + order**2

    def evaluate(x: Any) -> Any:
        if not order:
            return np.i0(x)
        given = np.asarray(x)
        size = np.abs(given).astype(np.float64)
        near = _series(np.minimum(size, border), order)
        value = np.where(size < border, near, _far_out(np.maximum(size, border), order))
        return (value * np.sign(given) if order % 2 else value).astype(given.dtype)[()]

    def slope(x: Any) -> Any:
        return (bessel_i(abs(order - 1))(x) + bessel_i(order + 1)(x)) / 2

    form = always_number if order else always_array  # that of `np.i0`
    return elementwise(None, slope, impl=evaluate, name=f"bessel_i{order}", form=form)
