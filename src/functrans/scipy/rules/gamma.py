"""The gamma function, its logarithms and integrals, and the zeta function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from functrans.core.shapes import dtype_of
from functrans.scipy.rules.family import rule
from functrans.scipy.rules.incomplete import (
    beta_density,
    betainc_by_a,
    betainc_by_b,
    gamma_density,
    gammainc_by_a,
)
from functrans.transforms.forward_mode import jvp

rule(sc.gamma, lambda out, x: out * sc.psi(x))
rule(sc.gammaln, lambda x: sc.psi(x))
rule(sc.loggamma, lambda x: sc.psi(x))
rule(sc.gammasgn, None)
rule(sc.psi, lambda x: sc.zeta(2.0, x))


def _slope_of_rgamma(x: Any) -> Any:
    """-ψ(x)/Γ(x), and left of 1/2 by reflection, since ψ and Γ have poles where 1/Γ is smooth.

    1/Γ(x) = Γ(1-x) sin(πx)/π, so its slope is Γ(1-x) (cos(πx) - ψ(1-x) sin(πx)/π).
    """
    reflected = np.real(x) < 0.5
    right, left = np.where(reflected, 1, x), np.where(reflected, x, 0)
    angle = np.pi * left
    return np.where(
        reflected,
        sc.gamma(1 - left) * (np.cos(angle) - sc.psi(1 - left) * np.sin(angle) / np.pi),
        -sc.psi(right) * sc.rgamma(right),
    )


rule(sc.rgamma, lambda x: _slope_of_rgamma(x))

# B(x, y) = Γ(x) Γ(y) / Γ(x + y), binomial coefficients, and rising factorials Γ(x + y)/Γ(x).
rule(
    sc.beta,
    lambda out, x, y: out * (sc.psi(x) - sc.psi(x + y)),
    lambda out, x, y: out * (sc.psi(y) - sc.psi(x + y)),
)
rule(
    sc.betaln,
    lambda x, y: sc.psi(x) - sc.psi(x + y),
    lambda x, y: sc.psi(y) - sc.psi(x + y),
)


# Where ψ has a pole, 1/Γ is 0 and has a slope: that of Γ(x + 1) / (Γ(y + 1) Γ(x - y + 1)) at whole y > x is
# the slope of the last factor alone.


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (x == np.floor(x))


def _binom_by_n(out: Any, n: Any, k: Any) -> Any:
    pole = _is_pole(n - k + 1)
    rest = np.where(pole, 1, n - k + 1)
    vanishing = sc.gamma(n + 1) * sc.rgamma(k + 1) * _slope_of_rgamma(n - k + 1)
    return np.where(pole, vanishing, out * (sc.psi(n + 1) - sc.psi(rest)))


def _binom_by_k(out: Any, n: Any, k: Any) -> Any:
    pole = _is_pole(n - k + 1) | _is_pole(k + 1)
    rest, below = np.where(pole, 1, n - k + 1), np.where(pole, 1, k + 1)
    vanishing = sc.rgamma(n - k + 1) * _slope_of_rgamma(k + 1)
    vanishing = vanishing - sc.rgamma(k + 1) * _slope_of_rgamma(n - k + 1)
    return np.where(pole, sc.gamma(n + 1) * vanishing, out * (sc.psi(rest) - sc.psi(below)))


def _poch_by_x(out: Any, x: Any, m: Any) -> Any:
    """At a pole of both factors by reflection, (x)_m = ±Γ(1 - x)/Γ(1 - x - m)."""
    pole, both = _is_pole(x), _is_pole(x) & _is_pole(x + m)
    safe, top = np.where(pole, 1, x), np.where(_is_pole(x + m), 1, x + m)
    left, bottom = np.where(both, 1 - x, 1), np.where(both, 1 - x - m, 1)
    vanishing = sc.gamma(top) * _slope_of_rgamma(np.where(pole, x, 1))
    slope = np.where(pole, vanishing, out * (sc.psi(top) - sc.psi(safe)))
    return np.where(both, out * (sc.psi(bottom) - sc.psi(left)), slope)


def _poch_by_m(out: Any, x: Any, m: Any) -> Any:
    """At a pole of both factors the value is an isolated one among zeros, without a slope."""
    isolated = _is_pole(x) & _is_pole(x + m)
    return np.where(isolated, np.nan, out * sc.psi(np.where(isolated, 1, x + m)))


rule(
    sc.binom,
    lambda out, x, y: _binom_by_n(out, x, y),
    lambda out, x, y: _binom_by_k(out, x, y),
)
rule(
    sc.poch,
    lambda out, x, y: _poch_by_x(out, x, y),
    lambda out, x, y: _poch_by_m(out, x, y),
)

# Incomplete integrals: the derivative with respect to the limit is the integrand, and that of the inverse is
# its reciprocal. For an inverse x(a, y) of F(a, x) = y, ∂x/∂a = -(∂F/∂a)/(∂F/∂x).


def _gammaincinv_by_a(out: Any, a: Any) -> Any:
    return -gammainc_by_a(a, out) / gamma_density(a, out)


def _betaincinv_by(derivative: Any, out: Any, a: Any, b: Any) -> Any:
    return -derivative(a, b, out) / beta_density(a, b, out)


rule(sc.gammainc, lambda x, y: gammainc_by_a(x, y), lambda x, y: gamma_density(x, y))
rule(sc.gammaincc, lambda x, y: -gammainc_by_a(x, y), lambda x, y: -gamma_density(x, y))
rule(
    sc.gammaincinv,
    lambda out, x: _gammaincinv_by_a(out, x),
    lambda out, x: 1 / gamma_density(x, out),
)
rule(
    sc.gammainccinv,
    lambda out, x: _gammaincinv_by_a(out, x),
    lambda out, x: -1 / gamma_density(x, out),
)
rule(
    sc.betainc,
    lambda x, y, z: betainc_by_a(x, y, z),
    lambda x, y, z: betainc_by_b(x, y, z),
    lambda x, y, z: beta_density(x, y, z),
)
rule(
    sc.betaincc,
    lambda x, y, z: -betainc_by_a(x, y, z),
    lambda x, y, z: -betainc_by_b(x, y, z),
    lambda x, y, z: -beta_density(x, y, z),
)
rule(
    sc.betaincinv,
    lambda out, x, y: _betaincinv_by(betainc_by_a, out, x, y),
    lambda out, x, y: _betaincinv_by(betainc_by_b, out, x, y),
    lambda out, x, y: 1 / beta_density(x, y, out),
)
rule(
    sc.betainccinv,
    lambda out, x, y: _betaincinv_by(betainc_by_a, out, x, y),
    lambda out, x, y: _betaincinv_by(betainc_by_b, out, x, y),
    lambda out, x, y: -1 / beta_density(x, y, out),
)

# Hurwitz' zeta function ζ(s, q) = Σ (k + q)^-s, and Riemann's, ζ(s, 1).

_SUMMED = 12
_BERNOULLI = sc.bernoulli(24)[2::2]
_LOG_2PI = math.log(2 * math.pi)


def _euler_maclaurin(s: Any, q: Any) -> Any:
    """ζ(s, q) for q > 0 and s >= -1, as an expression that can be differentiated with respect to s.

    Σ_{k<N} (k+q)^-s + w^(1-s)/(s-1) + w^-s/2 + Σ_j B_2j/(2j)! s(s+1)...(s+2j-2) w^(1-s-2j), w = N + q.
    """
    w = _SUMMED + q
    total = w ** (1 - s) / (s - 1) + w**-s / 2
    for k in range(_SUMMED):
        total = total + (k + q) ** -s
    term = s * w ** (-1 - s) / 2
    for j, number in enumerate(_BERNOULLI, start=1):
        total = total + number * term
        term = term * (s + 2 * j - 1) * (s + 2 * j) / ((2 * j + 1) * (2 * j + 2) * w * w)
    return total


def _by_s(s: Any, q: Any) -> Any:
    s = s + np.zeros(np.shape(q))
    return jvp(lambda s: _euler_maclaurin(s, q), (s,), (np.ones(np.shape(s), dtype_of(s)),))[1]


def _hurwitz_by_s(s: Any, q: Any) -> Any:
    """SciPy knows ζ(s, q) for s > 1 only, so the slope is not a number elsewhere, either."""
    known = s > 1
    return np.where(known, _by_s(np.where(known, s, 2), q), np.nan)


def _reflected(s: Any) -> Any:
    """ζ'(s) left of -1, by ζ(s) = 2 (2π)^(s-1) sin(πs/2) Γ(1-s) ζ(1-s).

    Γ alone overflows where ζ does not.
    """
    log_gamma = sc.loggamma if dtype_of(s).kind == "c" else sc.gammaln
    mirrored = 1 - s
    factor = 2 * np.exp(log_gamma(mirrored) - mirrored * _LOG_2PI)
    sine, cosine = np.sin(np.pi / 2 * s), np.cos(np.pi / 2 * s)
    zeta = sc._ufuncs._riemann_zeta(mirrored)
    turned = np.pi / 2 * cosine + (_LOG_2PI - sc.psi(mirrored)) * sine
    return factor * (turned * zeta - sine * _by_s(mirrored, 1.0))


def _riemann_by_s(s: Any) -> Any:
    left = np.real(s) < -1
    return np.where(left, _reflected(np.where(left, s, -2)), _by_s(np.where(left, 2, s), 1.0))


rule(
    sc._ufuncs._zeta,
    lambda x, y: _hurwitz_by_s(x, y),
    lambda x, y: -x * sc.zeta(x + 1, y),
)
rule(sc._ufuncs._riemann_zeta, lambda x: _riemann_by_s(x))
rule(sc.zetac, lambda x: _riemann_by_s(x))
