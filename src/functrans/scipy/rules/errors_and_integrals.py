"""The error function and related functions, and integrals of exponentials, sines and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from functrans.core.shapes import dtype_of
from functrans.scipy.rules.elementary import log1p_ratio
from functrans.scipy.rules.family import UNKNOWN, rule, several

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2)
_ROOT_2PI = math.sqrt(2 * math.pi)
_FAR = 50.0  # where six terms of the asymptotic series are exact to rounding


def _tail(x: Any, sign: int) -> Any:
    """Σ (2n+1)!! (sign/2x²)^n / x², the asymptotic series of the slopes of erfcx and dawsn."""
    step = sign / (2 * x * x)
    total: Any = 1.0
    for factor in (11, 9, 7, 5, 3):
        total = 1 + factor * step * total
    return total / (x * x)


def _near_or_far(x: Any, far: Any, slope: Any, tail: Any) -> Any:
    """slope(x), which is a difference of nearly equal terms far out; there the tail of its series."""
    if dtype_of(x).kind == "c":
        return slope(x)
    return np.where(far, tail(np.where(far, x, _FAR)), slope(np.where(far, 1, x)))


rule(sc.erf, lambda x: 2 / _ROOT_PI * np.exp(-x * x))
rule(sc.erfc, lambda x: -2 / _ROOT_PI * np.exp(-x * x))
rule(sc.erfi, lambda x: 2 / _ROOT_PI * np.exp(x * x))
rule(sc.erfinv, lambda out: _ROOT_PI / 2 * np.exp(out * out))
rule(sc.erfcinv, lambda out: -_ROOT_PI / 2 * np.exp(out * out))
rule(
    sc.erfcx,
    lambda x: _near_or_far(
        x,
        np.real(x) > _FAR,
        lambda x: 2 * x * sc.erfcx(x) - 2 / _ROOT_PI,
        lambda x: _tail(x, -1) / -_ROOT_PI,
    ),
)
rule(
    sc.dawsn,
    lambda x: _near_or_far(
        x,
        np.abs(x) > _FAR,
        lambda x: 1 - 2 * x * sc.dawsn(x),
        lambda x: _tail(x, 1) / -2,
    ),
)


# Faddeeva's function: w' = 2i/√π - 2zw, a difference of nearly equal terms far out. In the upper half plane
# w = i/(√π z) Σ (2n-1)!! t^n with t = 1/(2z²), next to exp(-z²), which matters near the real axis alone.

_WOFZ_TERMS = 13


def _is_far(z: Any) -> Any:
    """Where that many terms are exact to rounding, and exp(-z²) is negligible or 0."""
    across, height = np.real(z), np.imag(z)
    above = (np.abs(z) > 12) & (height >= 1)
    return above | ((np.abs(z) > 27) & (height >= 0)) | (np.abs(across) > np.hypot(height, 27.4))


def _far_series(t: Any, power: int) -> Any:
    """Σ (2n+1)!! (2n+2)^power t^n: of the first derivative, or with power 1 of the second."""
    term: Any = 1.0
    total: Any = 2.0**power
    for n in range(1, _WOFZ_TERMS):
        term = term * (2 * n + 1) * t
        total = total + (2.0 * n + 2) ** power * term
    return total


def _near_slope_of_wofz(z: Any) -> Any:
    return 2j / _ROOT_PI - 2 * z * sc.wofz(z)


def _slope_of_wofz(z: Any) -> Any:
    far = _is_far(z)
    distant = np.where(far, z, 30j)
    tail = _far_series(1 / (2 * distant * distant), 0) / (1j * _ROOT_PI * distant * distant)
    return np.where(far, tail, _near_slope_of_wofz(np.where(far, 1j, z)))


rule(sc.wofz, lambda x: _slope_of_wofz(x))

# voigt_profile(x, σ, γ) = Re w(ζ) / (σ √(2π)) with ζ = (x + iγ) / (σ √2), and ∂/∂σ = σ ∂²/∂x². Far out, where
# σ may be 0, it is -Im Σ (2n-1)!! (σ/q)^2n / q / π with q = x + iγ.


def _voigt(x: Any, sigma: Any, gamma: Any, near: Any, far: Any) -> Any:
    """near(ζ, σ), or far out far((σ/q)², q)"""
    q = x + 1j * gamma
    narrow = sigma == 0
    distant = narrow | _is_far(q / (np.where(narrow, 1, sigma) * _ROOT_2))
    width, place = np.where(distant, 1, sigma), np.where(distant, 1j, q)
    q = np.where(distant, q, 30j)
    ratio = np.where(distant, sigma, 1) / q
    return np.where(distant, far(ratio * ratio, q), near(place / (width * _ROOT_2), width))


def _voigt_by_x(zeta: Any, sigma: Any) -> Any:
    return np.real(_near_slope_of_wofz(zeta)) / (2 * _ROOT_PI * sigma * sigma)


def _voigt_by_gamma(zeta: Any, sigma: Any) -> Any:
    return -np.imag(_near_slope_of_wofz(zeta)) / (2 * _ROOT_PI * sigma * sigma)


def _voigt_by_sigma(zeta: Any, sigma: Any) -> Any:
    curvature = -2 * (sc.wofz(zeta) + zeta * _near_slope_of_wofz(zeta))
    return np.real(curvature) / (2 * _ROOT_2PI * sigma * sigma)


rule(
    sc.voigt_profile,
    lambda x, y, z: _voigt(
        x, y, z, _voigt_by_x, lambda t, q: np.imag(_far_series(t, 0) / (q * q)) / np.pi
    ),
    lambda x, y, z: _voigt(
        x,
        y,
        z,
        _voigt_by_sigma,
        lambda t, q: -y * np.imag(_far_series(t, 1) / (q * q * q)) / np.pi,
    ),
    lambda x, y, z: _voigt(
        x, y, z, _voigt_by_gamma, lambda t, q: np.real(_far_series(t, 0) / (q * q)) / np.pi
    ),
)

# The normal distribution.


def _hazard(x: Any) -> Any:
    """φ(x)/Φ(x) = √(2/π) / erfcx(-x/√2), which far right, where erfcx overflows, is next to 0."""
    if dtype_of(x).kind != "c":
        x = np.minimum(x, 37.0 if dtype_of(x).itemsize > 4 else 13.0)
    return math.sqrt(2 / math.pi) / sc.erfcx(-x / _ROOT_2)


rule(sc.ndtr, lambda x: np.exp(-x * x / 2) / _ROOT_2PI)
rule(sc.ndtri, lambda out: _ROOT_2PI * np.exp(out * out / 2))
rule(sc.log_ndtr, lambda x: _hazard(x))
rule(sc.ndtri_exp, lambda out: 1 / _hazard(out))
rule(
    sc.owens_t,
    lambda x, y: -np.exp(-x * x / 2) * sc.erf(x * y / _ROOT_2) / (2 * _ROOT_2PI),
    lambda x, y: np.exp(-x * x * (1 + y * y) / 2) / (2 * np.pi * (1 + y * y)),
)

# Exponential, sine and Fresnel integrals.


def _slope_of_expn(out: Any, n: Any, x: Any) -> Any:
    """E_n' = -E_{n-1}, and E_0 = exp(-x)/x. SciPy truncates n."""
    n = np.trunc(n)
    at_zero = n == 0
    lower = sc.expn(np.where(at_zero, 0, n - 1), x)
    return -np.where(at_zero, out * (1 + 1 / x), lower)


def _sinhc(x: Any) -> Any:
    """sinh(x)/x, and its limit at 0."""
    return (sc.exprel(x) + sc.exprel(-x)) / 2 if dtype_of(x).kind != "c" else np.sinh(x) / x


def _sinc(x: Any) -> Any:
    return np.sinc(x / np.pi) if dtype_of(x).kind != "c" else np.sin(x) / x


rule(sc.exp1, lambda x: -np.exp(-x) / x)
rule(sc.expi, lambda x: np.exp(x) / x)
rule(sc.expn, UNKNOWN, lambda out, x, y: _slope_of_expn(out, x, y))
rule(sc.spence, lambda x: -log1p_ratio(x - 1))
several(sc.sici, lambda out, x: (_sinc(x), np.cos(x) / x))
several(sc.shichi, lambda out, x: (_sinhc(x), np.cosh(x) / x))
several(sc.fresnel, lambda out, x: (np.sin(np.pi / 2 * x * x), np.cos(np.pi / 2 * x * x)))
# F±(x) = ∫_x^∞ exp(±it²) dt, and K±(x) = exp(∓i(x² + π/4)) F±(x) / √π.
several(
    sc.modfresnelp,
    lambda out, x: (-np.exp(1j * x * x), -2j * x * out[1] - np.exp(-1j * np.pi / 4) / _ROOT_PI),
)
several(
    sc.modfresnelm,
    lambda out, x: (-np.exp(-1j * x * x), 2j * x * out[1] - np.exp(1j * np.pi / 4) / _ROOT_PI),
)
