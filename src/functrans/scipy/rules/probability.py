"""Distribution functions and their inverses.

The derivative of a distribution function by its limit is the density, that of the inverse is one over
it. Counts, and parameters without a formula, are UNKNOWN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from functrans.core.shapes import dtype_of
from functrans.scipy.rules.family import UNKNOWN, rule
from functrans.scipy.rules.incomplete import (
    beta_density,
    betainc_by_a,
    betainc_by_b,
    gamma_density,
    gammainc_by_a,
)
from functrans.transforms.forward_mode import jvp

_ROOT_2PI = math.sqrt(2 * math.pi)

# SciPy rounds counts down, some of them towards 0; the slope is that of the function of whole counts.
# Binomial, bdtr(k, n, p): d/dp P(X <= k) = -n C(n-1, k) p^k (1-p)^(n-1-k), and 0 unless 0 <= k < n.


def _binomial_slope(k: Any, n: Any, p: Any) -> Any:
    k, n = np.floor(k), np.trunc(n)
    certain = (k < 0) | (k >= n)
    k, n = np.where(certain, 0, k), np.where(certain, 1, n)
    return np.where(certain, 0, n * sc.binom(n - 1, k) * p**k * (1 - p) ** (n - 1 - k))


def _negative_binomial_slope(k: Any, n: Any, p: Any) -> Any:
    return beta_density(np.trunc(n) * 1.0, np.trunc(k) + 1.0, p)


def _poisson_slope(k: Any, m: Any) -> Any:
    return gamma_density(np.floor(k) + 1.0, m)


rule(sc.bdtr, UNKNOWN, UNKNOWN, lambda x, y, z: -_binomial_slope(x, y, z))
rule(sc.bdtrc, UNKNOWN, UNKNOWN, lambda x, y, z: _binomial_slope(x, y, z))
rule(sc.bdtri, UNKNOWN, UNKNOWN, lambda out, x, y: -1 / _binomial_slope(x, y, out))

# Negative binomial, nbdtr(k, n, p) = I_p(n, k + 1), and Poisson, pdtr(k, m) = Q(k + 1, m).
rule(sc.nbdtr, UNKNOWN, UNKNOWN, lambda x, y, z: _negative_binomial_slope(x, y, z))
rule(sc.nbdtrc, UNKNOWN, UNKNOWN, lambda x, y, z: -_negative_binomial_slope(x, y, z))
rule(sc.nbdtri, UNKNOWN, UNKNOWN, lambda out, x, y: 1 / _negative_binomial_slope(x, y, out))
rule(sc.pdtr, UNKNOWN, lambda x, y: -_poisson_slope(x, y))
rule(sc.pdtrc, UNKNOWN, lambda x, y: _poisson_slope(x, y))
rule(sc.pdtri, UNKNOWN, lambda out, x: -1 / _poisson_slope(np.trunc(x), out))

# Chi-square, chdtr(df, x) = P(df/2, x/2). chdtri inverts the upper tail.


def _chi_square_density(df: Any, x: Any) -> Any:
    return gamma_density(df / 2, x / 2) / 2


def _chi_square_by_df(df: Any, x: Any) -> Any:
    return gammainc_by_a(df / 2, x / 2) / 2


rule(sc.chdtr, lambda x, y: _chi_square_by_df(x, y), lambda x, y: _chi_square_density(x, y))
rule(sc.chdtrc, lambda x, y: -_chi_square_by_df(x, y), lambda x, y: -_chi_square_density(x, y))
rule(
    sc.chdtri,
    lambda out, x: -_chi_square_by_df(x, out) / _chi_square_density(x, out),
    lambda out, x: -1 / _chi_square_density(x, out),
)

# Noncentral chi-square, chndtr(x, df, λ): d/dλ is minus the density with two more degrees of freedom.


def _noncentral_chi_square_density(x: Any, df: Any, noncentrality: Any) -> Any:
    """exp(-(√x - √λ)²/2) (x/λ)^(df/4 - 1/2) I_{df/2 - 1}(√(λx)) exp(-√(λx)) / 2.

    For small λx the central density times exp(-λ/2) 0F1(df/2, λx/4), which is smooth at λ = 0.
    """
    small = x * noncentrality < 1
    central = _chi_square_density(df, x) * np.exp(-noncentrality / 2)
    near = central * sc.hyp0f1(df / 2, np.where(small, x * noncentrality, 0) / 4)
    x, noncentrality = np.where(small, 1, x), np.where(small, 1, noncentrality)
    gap = np.sqrt(x) - np.sqrt(noncentrality)
    bessel = sc.ive(df / 2 - 1, np.sqrt(x * noncentrality))
    far = np.exp(-gap * gap / 2) * (x / noncentrality) ** (df / 4 - 0.5) * bessel / 2
    return np.where(small, near, far)


def _noncentral_quantile_by_lambda(out: Any, df: Any, noncentrality: Any) -> Any:
    density = _noncentral_chi_square_density
    return density(out, df + 2, noncentrality) / density(out, df, noncentrality)


rule(
    sc.chndtr,
    lambda x, y, z: _noncentral_chi_square_density(x, y, z),
    UNKNOWN,
    lambda x, y, z: -_noncentral_chi_square_density(x, y + 2, z),
)
rule(
    sc.chndtrix,
    lambda out, y, z: 1 / _noncentral_chi_square_density(out, y, z),
    UNKNOWN,
    lambda out, y, z: _noncentral_quantile_by_lambda(out, y, z),
)

# Fisher's F, fdtr(d1, d2, x) = I_u(d1/2, d2/2) with u = d1 x / (d2 + d1 x).


def _f_integral(of_u: Any, of_rest: Any, d1: Any, d2: Any, x: Any) -> Any:
    """of_u(d1/2, d2/2, u), or where 1 - u is the smaller of the two of_rest(d2/2, d1/2, 1 - u).

    The larger is rounded, to 1 where x is large.
    """
    a, b, total = d1 / 2, d2 / 2, d2 + d1 * x
    lower = d1 * x < d2
    u, rest = np.where(lower, d1 * x / total, 0.5), np.where(lower, 0.5, d2 / total)
    return np.where(lower, of_u(a, b, u), of_rest(b, a, rest))


def _f_density(d1: Any, d2: Any, x: Any) -> Any:
    total = d2 + d1 * x
    return _f_integral(beta_density, beta_density, d1, d2, x) * (d1 / total) * (d2 / total)


def _f_by_d1(d1: Any, d2: Any, x: Any) -> Any:
    by_shape = _f_integral(betainc_by_a, lambda *args: -betainc_by_b(*args), d1, d2, x)
    return by_shape / 2 + _f_density(d1, d2, x) * x / d1


def _f_by_d2(d1: Any, d2: Any, x: Any) -> Any:
    by_shape = _f_integral(betainc_by_b, lambda *args: -betainc_by_a(*args), d1, d2, x)
    return by_shape / 2 - _f_density(d1, d2, x) * x / d2


rule(
    sc.fdtr,
    lambda x, y, z: _f_by_d1(x, y, z),
    lambda x, y, z: _f_by_d2(x, y, z),
    lambda x, y, z: _f_density(x, y, z),
)
rule(
    sc.fdtrc,
    lambda x, y, z: -_f_by_d1(x, y, z),
    lambda x, y, z: -_f_by_d2(x, y, z),
    lambda x, y, z: -_f_density(x, y, z),
)
rule(
    sc.fdtri,
    lambda out, x, y: -_f_by_d1(x, y, out) / _f_density(x, y, out),
    lambda out, x, y: -_f_by_d2(x, y, out) / _f_density(x, y, out),
    lambda out, x, y: 1 / _f_density(x, y, out),
)

# Gamma, gdtr(a, b, x) = P(b, a x), and its inverses in x and in a, for which a x is constant.
rule(
    sc.gdtr,
    lambda x, y, z: z * gamma_density(y, x * z),
    lambda x, y, z: gammainc_by_a(y, x * z),
    lambda x, y, z: x * gamma_density(y, x * z),
)
rule(
    sc.gdtrc,
    lambda x, y, z: -z * gamma_density(y, x * z),
    lambda x, y, z: -gammainc_by_a(y, x * z),
    lambda x, y, z: -x * gamma_density(y, x * z),
)
rule(
    sc.gdtrix,
    lambda out, x: -out / x,
    lambda out, x, y: -gammainc_by_a(y, x * out) / (x * gamma_density(y, x * out)),
    lambda out, x, y: 1 / (x * gamma_density(y, x * out)),
)
rule(
    sc.gdtria,
    lambda out, y, z: 1 / (z * gamma_density(y, z * out)),
    lambda out, y, z: -gammainc_by_a(y, z * out) / (z * gamma_density(y, z * out)),
    lambda out, z: -out / z,
)

# Student's t.


def _t_density(df: Any, t: Any) -> Any:
    """(1 + t²/df)^(-(df+1)/2) / (√df B(1/2, df/2))."""
    return np.exp(-(df + 1) / 2 * np.log1p(t * t / df) - sc.betaln(0.5, df / 2)) / np.sqrt(df)


def _t_by_df(df: Any, t: Any) -> Any:
    """For t < 0 it is I_u(df/2, 1/2)/2 with u = df/(df + t²), for t > 0 one minus this; 0 at t = 0.

    Next to 0, where u is rounded to 1, I_{1-u}(1/2, df/2) is taken.
    """
    center = t == 0
    square = np.where(center, 1, t * t)
    inner = square < df
    u, rest = np.where(inner, 0.5, df / (df + square)), np.where(inner, square / (df + square), 0.5)
    by_shape = np.where(inner, -betainc_by_b(0.5, df / 2, rest), betainc_by_a(df / 2, 0.5, u))
    # The density of u times ∂u/∂df, and that is the density of t times -t/(2 df).
    return np.where(center, 0, -np.sign(t) * by_shape / 4 - _t_density(df, t) * t / (2 * df))


rule(sc.stdtr, lambda x, y: _t_by_df(x, y), lambda x, y: _t_density(x, y))
rule(
    sc.stdtrit,
    lambda out, x: -_t_by_df(x, out) / _t_density(x, out),
    lambda out, x: 1 / _t_density(x, out),
)

# The normal distribution solved for its mean and its deviation: mean = x - sd Φ⁻¹(p).
rule(
    sc.nrdtrimn,
    lambda x, y: -y * _ROOT_2PI * np.exp(sc.ndtri(x) ** 2 / 2),
    lambda x: -sc.ndtri(x),
    1,
)
rule(
    sc.nrdtrisd,
    lambda y: -1 / sc.ndtri(y),
    lambda out, y: -out / sc.ndtri(y) * _ROOT_2PI * np.exp(sc.ndtri(y) ** 2 / 2),
    lambda y: 1 / sc.ndtri(y),
)

# Tukey's lambda has the quantile function (p^λ - (1-p)^λ)/λ, and the density is one over its slope.
# Outside its support, |x| >= 1/λ, the distribution function is constant.


def _tukey_density(out: Any, x: Any, lmbda: Any) -> Any:
    outside = (out <= 0) | (out >= 1) | (np.abs(x) * lmbda >= 1)
    p = np.where(outside, 0.5, out)
    return np.where(outside, 0, 1 / (p ** (lmbda - 1) + (1 - p) ** (lmbda - 1)))


rule(sc.tklmbda, lambda out, x, y: _tukey_density(out, x, y), UNKNOWN)

# Solved for a shape parameter p of F(p, x) = y: ∂p/∂y = 1/F_p, and ∂p/∂x = -F_x/F_p.
rule(
    sc.chdtriv,
    lambda out, y: 1 / _chi_square_by_df(out, y),
    lambda out, y: -_chi_square_density(out, y) / _chi_square_by_df(out, y),
)
rule(
    sc.gdtrib,
    lambda out, x, z: -z * gamma_density(out, x * z) / gammainc_by_a(out, x * z),
    lambda out, x, z: 1 / gammainc_by_a(out, x * z),
    lambda out, x, z: -x * gamma_density(out, x * z) / gammainc_by_a(out, x * z),
)
rule(
    sc.btdtria,
    lambda out, y, z: 1 / betainc_by_a(out, y, z),
    lambda out, y, z: -betainc_by_b(out, y, z) / betainc_by_a(out, y, z),
    lambda out, y, z: -beta_density(out, y, z) / betainc_by_a(out, y, z),
)
rule(
    sc.btdtrib,
    lambda out, x, z: -betainc_by_a(x, out, z) / betainc_by_b(x, out, z),
    lambda out, x, z: 1 / betainc_by_b(x, out, z),
    lambda out, x, z: -beta_density(x, out, z) / betainc_by_b(x, out, z),
)
rule(
    sc.chndtrinc,
    lambda out, x, y: 1 / _noncentral_quantile_by_lambda(x, y, out),
    UNKNOWN,
    lambda out, x, y: -1 / _noncentral_chi_square_density(x, y + 2, out),
)

# Kolmogorov's distribution: K(x) = 2 Σ (-1)^(k-1) exp(-2k²x²), which converges fast for large x, and
# K(x) = 1 - √(2π)/x Σ exp(-(2k-1)²π²/(8x²)), which does for small x.


def _kolmogorov_series(x: Any) -> Any:
    small = x < 1
    large, x = np.where(small, 1, x), np.where(small, x, 1)
    right: Any = 0
    left: Any = 0
    for k in range(1, 6):
        right = right - 2 * (-1) ** k * np.exp(-2 * k * k * large * large)
        left = left + np.exp(-(((2 * k - 1) * math.pi / x) ** 2) / 8)
    return np.where(small, 1 - _ROOT_2PI / x * left, right)


def _slope_of_kolmogorov(x: Any) -> Any:
    # K(x) is 1 for x <= 0, and to the last digit for x < 0.04, where the series would divide 0 by 0.
    known = x > 0.04
    inside = np.where(known, x, 1)
    slope = jvp(_kolmogorov_series, (inside,), (np.ones(np.shape(x), dtype_of(x)),))[1]
    return np.where(known, slope, 0)


rule(sc.kolmogorov, lambda x: _slope_of_kolmogorov(x))
rule(sc.kolmogi, lambda out: 1 / _slope_of_kolmogorov(out))
