"""The error function and its kin, and integrals of exponentials, sines and logarithms."""

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


def _slope_of_wofz(z: Any) -> Any:
    return 2j / _ROOT_PI - 2 * z * sc.wofz(z)


rule(sc.wofz, lambda x: _slope_of_wofz(x))

# voigt_profile(x, σ, γ) = Re w(ζ) / (σ √(2π)) with ζ = (x + iγ) / (σ √2).


def _voigt_argument(x: Any, sigma: Any, gamma: Any) -> Any:
    return (x + 1j * gamma) / (sigma * _ROOT_2)


def _voigt(x: Any, sigma: Any, gamma: Any, factor: complex) -> Any:
    slope = _slope_of_wofz(_voigt_argument(x, sigma, gamma))
    return np.real(factor * slope) / (2 * _ROOT_PI * sigma * sigma)


def _voigt_by_sigma(out: Any, x: Any, sigma: Any, gamma: Any) -> Any:
    zeta = _voigt_argument(x, sigma, gamma)
    return -out / sigma - np.real(zeta * _slope_of_wofz(zeta)) / (_ROOT_2PI * sigma * sigma)


rule(
    sc.voigt_profile,
    lambda x, y, z: _voigt(x, y, z, 1),
    lambda out, x, y, z: _voigt_by_sigma(out, x, y, z),
    lambda x, y, z: _voigt(x, y, z, 1j),
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
    """E_n' = -E_{n-1}, and E_0 = exp(-x)/x."""
    at_zero = n == 0
    lower = sc.expn(np.where(at_zero, 0, n - 1), x)
    return -np.where(at_zero, out * (1 + 1 / x), lower)


def _sinhc(x: Any) -> Any:
    """sinh(x)/x, also at 0."""
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
