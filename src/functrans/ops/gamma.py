"""The derivative of gamma samples with respect to the shape parameter, and the gamma functions that it needs.

Let F(x; a) be the cumulative distribution function, with density p. A sample x(a) with F(x(a); a) constant
has

    d log x / da = -(dF/da) / (x p(x)).

Write t = x e^u in the integrals for F and 1 - F. Then, with psi the digamma function,

    d log x / da = integral of (u + log x - psi(a)) exp(a u - x (e^u - 1)) du

over u > 0, and minus the same over u < 0. On the side that `_moments` chooses, where u and
log x - psi(a) have the same sign, nothing cancels. So the slope is M_1 + (log x - psi(a)) M_0 with
the moments M_k(a, log x) of the exponential on that side, for which differentiation under the
integral and integration by parts give

    dM_k / da = M_{k+1},    dM_k / dlog x = (x - a) M_k - k M_{k-1} - [k = 0],

and derivatives of any order follow.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from functrans.core.primitive import Elementwise, family
from functrans.ops.families import elementwise

# B_2, B_4, ..., the Bernoulli numbers of the asymptotic series
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 16  # the asymptotic series is used above this; recurrences lead there
_NODES = 40
_CUT = 45.0  # exp(-45) is negligible compared to 1
_CHUNK = 4096


def log_factorial(k: Any) -> Any:
    """log k! for plain k >= 0, from Stirling's series at k + 1 + shift."""
    z = np.asarray(k, np.float64) + 1
    product = np.ones_like(z)
    for i in range(_SHIFT):
        product = product * np.where(z < _SHIFT, z + i, 1.0)
    z = np.where(z < _SHIFT, z + _SHIFT, z)
    series = sum(
        b / (2 * n * (2 * n - 1) * z ** (2 * n - 1)) for n, b in enumerate(_BERNOULLI, start=1)
    )
    return (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series - np.log(product)


def _polygamma(order: int, x: Any) -> Any:
    x = np.asarray(x, np.float64)
    sign = 1.0 if order % 2 else -1.0
    shift = _SHIFT + order
    head = sum(1 / (x + i) ** (order + 1) for i in range(shift)) * math.factorial(order)
    z = x + shift
    tail = math.factorial(order) / (2 * z ** (order + 1))
    tail = tail + (-np.log(z) if order == 0 else math.factorial(order - 1) / z**order)
    for n, bernoulli in enumerate(_BERNOULLI, start=1):
        weight = bernoulli * math.factorial(2 * n + order - 1) / math.factorial(2 * n)
        tail = tail + weight / z ** (2 * n + order)
    return (sign * (head + tail))[()]


@family("polygamma")
@cache
def polygamma(order: int) -> Elementwise:
    """The derivative of this order of the digamma function, for positive arguments."""
    return elementwise(
        None,
        lambda x: polygamma(order + 1)(x),
        impl=lambda x: _polygamma(order, x),
        name=f"polygamma{order}",
    )


@cache
def _gauss_legendre() -> Any:
    """Quadrature nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _extent(a: Any, x: Any, upper: Any) -> Any:
    """Where the exponential decreases to exp(-cut) on its side, found with Newton's method.

    E(s) = x (e^s - 1) - a s above and a s - x (1 - e^-s) below are convex, so Newton's method
    converges from the right; lower bounds of E give starting points to the right of the root.
    """
    drift = np.abs(x - a)
    drift = np.where(upper, x - a, drift)
    above = np.where(
        x < 4, np.log1p(2 * _CUT / x), 2 * _CUT / (drift + np.sqrt(drift**2 + 2 * x * _CUT))
    )
    below = 2 * _CUT / (drift + np.sqrt(drift**2 + 4 / 3 * x * _CUT))
    below = np.where(below <= 1, below, (_CUT + x) / a)
    s = np.where(upper, above, below)
    side = np.where(upper, 1.0, -1.0)
    for _ in range(8):
        u = side * s
        s = s - (x * np.expm1(u) - a * u - _CUT) / (side * (x * np.exp(u) - a))
    return side * s


def _by_quadrature(orders: tuple[int, ...], a: Any, x: Any, upper: Any) -> Any:
    nodes, weights = _gauss_legendre()
    extent = _extent(a, x, upper)
    u = extent[:, None] * nodes
    density = np.exp(a[:, None] * u - x[:, None] * np.expm1(u)) * weights
    return [extent * np.einsum("ij,ij->i", u**k, density) for k in orders]


def _by_series(orders: tuple[int, ...], a: Any, x: Any) -> Any:
    """For small x, on the lower side: expand exp(-x e^u) in powers of x, and integrate each term."""
    totals = [np.zeros_like(a) for _ in orders]
    power = -np.exp(x)
    for n in range(30):
        for k, total in zip(orders, totals, strict=True):
            total += power * math.factorial(k) / (-1.0) ** k / (a + n) ** (k + 1)
        power = power * -x / (n + 1)
    return totals


def _moments(orders: tuple[int, ...], a: Any, log_x: Any) -> Any:
    """The moments of these orders, stacked."""
    a, log_x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(log_x, np.float64))
    shape = a.shape
    a, log_x = a.reshape(-1), log_x.reshape(-1)
    out = np.empty((len(orders), len(a)))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for start in range(0, len(a), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            some_a, x = a[chunk], np.exp(log_x[chunk])
            upper = log_x[chunk] >= _polygamma(0, some_a)
            small = (x <= 0.25) | ((x <= 2) & ~upper)
            large = ~small
            out[:, chunk][:, small] = _by_series(orders, some_a[small], x[small])
            out[:, chunk][:, large] = _by_quadrature(orders, some_a[large], x[large], upper[large])
    return out.reshape((len(orders), *shape))


@family("gamma_moment")
@cache
def _moment(k: int) -> Elementwise:
    def by_log_x(out: Any, x: Any, y: Any) -> Any:
        excess = (np.exp(y) - x) * out
        return excess - k * _moment(k - 1)(x, y) if k else excess - 1

    return elementwise(
        None,
        lambda x, y: _moment(k + 1)(x, y),
        by_log_x,
        impl=lambda a, log_x: _moments((k,), a, log_x)[0],
        name=f"gamma_moment{k}",
    )


def _slope(a: Any, log_x: Any) -> Any:
    mass, mean = _moments((0, 1), a, log_x)
    return mean + (log_x - _polygamma(0, a)) * mass


def _slope_by_shape(x: Any, y: Any) -> Any:
    excess = y - polygamma(0)(x)
    return _moment(2)(x, y) + excess * _moment(1)(x, y) - polygamma(1)(x) * _moment(0)(x, y)


# d log x / da of a sample with shape parameter a at a fixed quantile; its arguments are a and log x.
gamma_slope = elementwise(
    None,
    _slope_by_shape,
    lambda out, x, y: (np.exp(y) - x) * out - y + polygamma(0)(x),
    impl=_slope,
    name="gamma_slope",
)
