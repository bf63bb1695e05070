"""Continuous distributions whose formulas need functions of their own: the rest of the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.ops.families import elementwise
from functrans.ops.structure import stop_gradient
from functrans.scipy.distributions.continuous import EULER, HALF, LINE, LOG_2, LOG_ROOT_2PI, where
from functrans.scipy.distributions.family import Continuous, distribution, implicit_quantile, ss
from functrans.scipy.loading import load

sc = load("scipy.special")

# The normal distribution between a and b.


def _log_mass(a: Any, b: Any) -> Any:
    """log(Φ(b) - Φ(a)) for a < b, from the smaller tails."""
    right = a > 0
    low, high = np.where(right, -b, a), np.where(right, -a, b)
    central = high > 0
    # Φ(b) - Φ(a) = 1 - Φ(a) - Φ(-b) around 0, and Φ(b) (1 - Φ(a)/Φ(b)) left of it.
    around = np.log1p(-sc.ndtr(np.where(central, low, -1.0)) - sc.ndtr(-np.where(central, high, 1)))
    top = sc.log_ndtr(np.where(central, -1.0, high))
    gap = sc.log_ndtr(np.where(central, -2.0, low)) - top
    return np.where(central, around, top + np.log(-np.expm1(gap)))


def _end_slope(z: Any) -> Any:
    """z times the normal density, 0 at infinity."""
    return where(np.isfinite(z), z, lambda z: z * np.exp(-z * z / 2 - LOG_ROOT_2PI), 0.0, 0.0)


def _truncated_mean(a: Any, b: Any) -> Any:
    gap = np.exp(-a * a / 2 - LOG_ROOT_2PI) - np.exp(-b * b / 2 - LOG_ROOT_2PI)
    return gap / np.exp(_log_mass(a, b))


def _truncated_quantile(log_q: Any, log_rest: Any, a: Any, b: Any) -> Any:
    """From the tail that is nearer to the interval."""
    left, mass = a < 0, _log_mass(a, b)
    below = np.logaddexp(sc.log_ndtr(np.where(left, a, -1.0)), log_q + mass)
    above = np.logaddexp(sc.log_ndtr(np.where(left, -1.0, -b)), log_rest + mass)
    return np.where(left, sc.ndtri_exp(below), -sc.ndtri_exp(above))


truncnorm = distribution(
    Continuous,
    "truncnorm",
    "The normal distribution, truncated to [a, b] in standard form",
    "0.3, -1.0, 2.0",
    shapes="a b",
    support=lambda a, b: (a, b),
    inside=lambda a, b: (np.clip(a, -1e3, 1e3) + np.clip(b, -1e3, 1e3)) / 2,
    valid=lambda a, b: a < b,
    log_density=lambda z, a, b: -z * z / 2 - LOG_ROOT_2PI - _log_mass(a, b),
    logcdf=lambda z, a, b: _log_mass(a, z) - _log_mass(a, b),
    logsf=lambda z, a, b: _log_mass(z, b) - _log_mass(a, b),
    ppf=lambda q, a, b: _truncated_quantile(np.log(q), np.log1p(-q), a, b),
    isf=lambda q, a, b: _truncated_quantile(np.log1p(-q), np.log(q), a, b),
    mean=_truncated_mean,
    var=lambda a, b: (
        1 + (_end_slope(a) - _end_slope(b)) / np.exp(_log_mass(a, b)) - _truncated_mean(a, b) ** 2
    ),
    entropy=lambda a, b: (
        LOG_ROOT_2PI
        + 0.5
        + _log_mass(a, b)
        + (_end_slope(a) - _end_slope(b)) / (2 * np.exp(_log_mass(a, b)))
    ),
)


def _triangle(left: Any, right: Any) -> Any:
    """left(z, c) below c, and right(1 - z, 1 - c) above it."""

    def of(z: Any, c: Any) -> Any:
        below = z < c
        near, far = np.where(below, c, 0.5), np.where(below, 0.5, 1 - c)
        rising = left(np.where(below, z, 0.25), near)
        return np.where(below, rising, right(np.where(below, 0.25, 1 - z), far))

    return of


triang = distribution(
    Continuous,
    "triang",
    "The triangular distribution with its mode at c",
    "0.3, 0.6",
    shapes="c",
    support=lambda c: (0.0, 1.0),
    inside=lambda c: 0.5,
    valid=lambda c: (c >= 0) & (c <= 1),
    log_density=_triangle(lambda z, c: np.log(2 * z / c), lambda z, c: np.log(2 * z / c)),
    density=_triangle(lambda z, c: 2 * z / c, lambda z, c: 2 * z / c),
    cdf=_triangle(lambda z, c: z * z / c, lambda z, c: 1 - z * z / c),
    sf=_triangle(lambda z, c: 1 - z * z / c, lambda z, c: z * z / c),
    ppf=_triangle(lambda q, c: np.sqrt(c * q), lambda q, c: 1 - np.sqrt(c * q)),
    isf=lambda q, c: 1 - _triangle_quantile(q, 1 - c),
    mean=lambda c: (c + 1) / 3,
    var=lambda c: (1 - c + c * c) / 18,
    entropy=lambda c: 0.5 - LOG_2 + 0 * c,
)
_triangle_quantile: Any = triang.facts.ppf


# Φ(z) - 2 T(z, a), with Owen's T; SciPy keeps the digits of the lower tail, where this difference does not.


def _skewed_log_density(z: Any, a: Any) -> Any:
    return LOG_2 - z * z / 2 - LOG_ROOT_2PI + sc.log_ndtr(a * z)


_skewed_cdf = elementwise(
    None,
    lambda x, y: np.exp(_skewed_log_density(x, y)),
    lambda x, y: -np.exp(-x * x * (1 + y * y) / 2) / (np.pi * (1 + y * y)),
    impl=lambda z, a: ss.skewnorm.cdf(z, a),
    name="skewnorm_cdf",
)
_SKEWED = {"log_density": _skewed_log_density, "cdf": _skewed_cdf}
skewnorm = distribution(
    Continuous,
    "skewnorm",
    "The skewed normal distribution with skewness parameter a",
    "0.3, 2.0",
    **LINE,
    **_SKEWED,
    shapes="a",
    valid=lambda a: np.isfinite(a),
    sf=lambda z, a: _skewed_cdf(-z, -a),
    ppf=implicit_quantile("skewnorm", _SKEWED),
    isf=lambda q, a: -_skewed_quantile(q, -a),
    mean=lambda a: math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a),
    var=lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
)
_skewed_quantile: Any = skewnorm.facts.ppf


# Extreme values and excesses. Both have log(1 + u)/u, smooth at u = 0, where they are Gumbel's and the
# exponential distribution.


def _log1p_ratio(u: Any) -> Any:
    small = np.abs(u) < 0.02
    near, far = np.where(small, u, 0.0), np.where(small, 1.0, u)
    series: Any = 0.0
    for k in range(11, 0, -1):
        series = 1 / k - near * series
    return np.where(small, series, np.log1p(far) / far)


_ZETAS = sc.zeta(np.arange(2.0, 14.0))


def _log_gamma_ratios(c: Any) -> tuple[Any, Any]:
    """log Γ(1+c) / c, and (log Γ(1+2c) - 2 log Γ(1+c)) / c²: with series Σ ζ(k) (-c)^k / k near 0."""
    small = np.abs(c) < 0.02
    near, far = np.where(small, c, 0.0), np.where(small, 1.0, c)
    first: Any = 0.0
    second: Any = 0.0
    for k in range(13, 1, -1):
        term = (-1) ** k * float(_ZETAS[k - 2]) / k
        first = term + near * first
        second = (2**k - 2) * term + near * second
    one, two = sc.gammaln(1 + far), sc.gammaln(1 + 2 * far)
    return (
        np.where(small, near * first - EULER, one / far),
        np.where(small, second, (two - 2 * one) / (far * far)),
    )


def _extreme_mean(c: Any) -> Any:
    ratio, _ = _log_gamma_ratios(c)
    return -ratio * sc.exprel(ratio * c)  # (1 - Γ(1+c)) / c


def _extreme_var(c: Any) -> Any:
    ratio, second = _log_gamma_ratios(c)
    return np.exp(2 * ratio * c) * sc.exprel(second * c * c) * second


def _side(c: Any, sign: int) -> Any:
    """1/c where c has this sign, and infinity elsewhere."""
    return where(sign * c > 0, c, lambda c: 1 / c, sign * np.inf, float(sign))


genextreme = distribution(
    Continuous,
    "genextreme",
    "The generalized extreme value distribution with shape parameter c",
    "0.3, 0.2",
    shapes="c",
    support=lambda c: (_side(c, -1), _side(c, 1)),
    inside=lambda c: 0.0,
    valid=lambda c: np.isfinite(c),
    # With y = log(1 - c z)/c the distribution function is exp(-exp(y)).
    log_density=lambda z, c: (
        -np.exp(-z * _log1p_ratio(-c * z)) - (1 - c) * z * _log1p_ratio(-c * z)
    ),
    logcdf=lambda z, c: -np.exp(-z * _log1p_ratio(-c * z)),
    ppf=lambda q, c: _excess(np.log(-np.log(q)), c),
    isf=lambda q, c: _excess(np.log(-np.log1p(-q)), c),
    mean=lambda c: where(c > -1, c, _extreme_mean, np.nan, 0.0),
    var=lambda c: where(c > -0.5, c, _extreme_var, np.nan, 0.0),
    entropy=lambda c: EULER * (1 - c) + 1,
)


def _excess(log_level: Any, c: Any) -> Any:
    """(1 - exp(c l))/c."""
    return -log_level * sc.exprel(c * log_level)


genpareto = distribution(
    Continuous,
    "genpareto",
    "The generalized Pareto distribution of excesses with shape parameter c",
    "0.3, 0.2",
    shapes="c",
    support=lambda c: (0.0, -_side(c, -1)),
    inside=lambda c: 0.5 / np.maximum(1.0, -c),
    valid=lambda c: np.isfinite(c),
    log_density=lambda z, c: -(1 + c) * z * _log1p_ratio(c * z),
    logsf=lambda z, c: -z * _log1p_ratio(c * z),
    ppf=lambda q, c: _excess(np.log1p(-q), -c),
    isf=lambda q, c: _excess(np.log(q), -c),
    mean=lambda c: where(c < 1, c, lambda c: 1 / (1 - c), np.inf, 0.0),
    var=lambda c: where(c < 0.5, c, lambda c: 1 / ((1 - c) ** 2 * (1 - 2 * c)), np.inf, 0.0),
    entropy=lambda c: 1 + c,
)


def _gaussian_limits(z: Any, mu: Any, sign: float) -> tuple[Any, Any]:
    root = np.sqrt(z)
    own = sc.log_ndtr(sign * (z / mu - 1) / root)
    return own, 2 / mu + sc.log_ndtr(-(z / mu + 1) / root)


def _inverse_gaussian_log_cdf(z: Any, mu: Any) -> Any:
    own, other = _gaussian_limits(z, mu, 1.0)
    return own + np.log1p(np.exp(other - own))


def _inverse_gaussian_log_sf(z: Any, mu: Any) -> Any:
    own, other = _gaussian_limits(z, mu, -1.0)
    return own + np.log1p(-np.exp(other - own))


_INVERSE_GAUSSIAN = {
    "log_density": lambda z, mu: -LOG_ROOT_2PI - 1.5 * np.log(z) - ((z - mu) / mu) ** 2 / (2 * z),
    "cdf": lambda z, mu: np.exp(_inverse_gaussian_log_cdf(z, mu)),
}
invgauss = distribution(
    Continuous,
    "invgauss",
    "The inverse Gaussian distribution with mean mu",
    "0.3, 1.5",
    **HALF,
    **_INVERSE_GAUSSIAN,
    open=True,
    shapes="mu",
    logcdf=_inverse_gaussian_log_cdf,
    logsf=_inverse_gaussian_log_sf,
    ppf=implicit_quantile("invgauss", _INVERSE_GAUSSIAN),
    mean=lambda mu: mu,
    var=lambda mu: mu**3,
)


# Von Mises: the density is exp(κ cos z)/(2π I0(κ)) on the whole line; the distribution function grows by 1
# with every turn. Its slope in κ is the integral from 0 of (cos t - I1/I0) times the density, by Gauss'
# quadrature as far as the density is not 0 to rounding.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def _circular_log_density(z: Any, kappa: Any) -> Any:
    return kappa * sc.cosm1(z) - 2 * LOG_ROOT_2PI - np.log(sc.i0e(kappa))


def _circular_by_kappa(z: Any, kappa: Any) -> Any:
    turns = np.round(stop_gradient(z) / (2 * np.pi))
    reach = np.minimum(np.pi, 15 / np.sqrt(np.maximum(stop_gradient(kappa), 1e-6)))
    end = np.clip(z - 2 * np.pi * turns, -reach, reach)
    kappa = (kappa + 0 * end)[..., None]
    half = end[..., None] / 2
    angles = half * (1 + _NODES)
    mean = sc.i1e(kappa) / sc.i0e(kappa)
    integrand = (np.cos(angles) - mean) * np.exp(_circular_log_density(angles, kappa))
    return np.sum(half * _WEIGHTS * integrand, axis=-1)


_circular_cdf = elementwise(
    None,
    lambda x, y: np.exp(_circular_log_density(x, y)),
    lambda x, y: _circular_by_kappa(x, y),
    impl=lambda z, kappa: ss.vonmises.cdf(z, kappa),
    name="vonmises_cdf",
)
_CIRCULAR = {"log_density": _circular_log_density, "cdf": _circular_cdf}
vonmises = distribution(
    Continuous,
    "vonmises",
    "The von Mises distribution of angles with concentration kappa",
    "0.3, 2.0",
    **LINE,
    **_CIRCULAR,
    shapes="kappa",
    vanishes=False,
    mean=lambda kappa: 0 * kappa,
    valid=lambda kappa: kappa >= 0,
    ppf=implicit_quantile("vonmises", _CIRCULAR),
    entropy=lambda kappa: (
        2 * LOG_ROOT_2PI + np.log(sc.i0e(kappa)) + kappa * (1 - sc.i1e(kappa) / sc.i0e(kappa))
    ),
)
