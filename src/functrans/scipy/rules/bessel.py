"""Bessel and related functions: Hankel, Kelvin, Struve, Airy, Wright, Mathieu, parabolic cylinders.

Derivatives are with respect to the argument; for the order there is no closed form. They follow from
C'_v = (C_{v-1} - C_{v+1})/2 and similar recurrences, which hold for derivatives of every order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from functrans.core.shapes import cast, dtype_of
from functrans.core.tracer import UFUNCS
from functrans.scipy.rules.family import UNKNOWN, refuse_complex, rule, several

# Of the first, second and third kind, and modified.


def _difference(function: Any, v: Any, x: Any) -> Any:
    return (function(v - 1, x) - function(v + 1, x)) / 2


def _sum(function: Any, v: Any, x: Any) -> Any:
    return (function(v - 1, x) + function(v + 1, x)) / 2


rule(sc.jv, UNKNOWN, lambda x, y: _difference(sc.jv, x, y))
rule(sc.yv, UNKNOWN, lambda x, y: _difference(sc.yv, x, y))
rule(sc.hankel1, UNKNOWN, lambda x, y: _difference(sc.hankel1, x, y))
rule(sc.hankel2, UNKNOWN, lambda x, y: _difference(sc.hankel2, x, y))
rule(sc.iv, UNKNOWN, lambda x, y: _sum(sc.iv, x, y))
rule(sc.kv, UNKNOWN, lambda x, y: -_sum(sc.kv, x, y))
# SciPy truncates the orders of these two.
rule(sc.yn, UNKNOWN, lambda x, y: _difference(sc.yv, np.trunc(x), y))
rule(sc.kn, UNKNOWN, lambda x, y: -_sum(sc.kv, np.trunc(x), y))

# Scaled by exp(z), exp(-iz), exp(iz); and by exp(-|Im z|), exp(-|Re z|), which are not holomorphic.
# Far out the slope is a small difference of large terms, which SciPy does not even know for x > 1e9. There
# e^-x I_v, e^x K_v and e^∓ix H_v go like x^-½ Σ a_k (c/x)^k, a_k = Π_j (4v² - (2j-1)²)/(8j), c = -1, 1, ±i.

_TERMS = 12


def _far(v: Any, distance: Any) -> Any:
    """Where this number of terms of the series is exact."""
    return distance > 50 + 2 * v * v


def _log_slope(v: Any, x: Any, c: complex) -> Any:
    """The derivative of the logarithm of the series."""
    term: Any = 1.0
    total: Any = 1.0
    moment: Any = 0.0
    for k in range(1, _TERMS):
        term = term * (4 * v * v - (2 * k - 1) ** 2) * c / (8 * k * x)
        total, moment = total + term, moment + k * term
    return -(0.5 + moment / total) / x


def _slope_of_scaled(near: Any, out: Any, v: Any, x: Any, c: complex) -> Any:
    """near(x), and far out the slope by the series."""
    far = _far(v, np.real(x))
    return np.where(far, out * _log_slope(v, np.where(far, x, 100), c), near(np.where(far, 1, x)))


def _slope_of_scaled_i(near: Any, out: Any, v: Any, x: Any) -> Any:
    """The same for e^-|x| I_v, which is even or odd."""
    refuse_complex(sc.ive, x)
    far = _far(v, np.abs(x))
    series = np.sign(x) * out * _log_slope(v, np.where(far, np.abs(x), 100), -1)
    return np.where(far, series, near(np.where(far, 1, x)))


def _slope_of_unscaled(function: Any, v: Any, x: Any) -> Any:
    refuse_complex(function, x)
    return _difference(function, v, x)


def _near_ive(v: Any, x: Any) -> Any:
    return _sum(sc.ive, v, x) - np.sign(x) * sc.ive(v, x)


def _near_kve(v: Any, x: Any) -> Any:
    return sc.kve(v, x) - _sum(sc.kve, v, x)


def _near_hankel(function: Any, v: Any, x: Any, c: complex) -> Any:
    return _difference(function, v, x) - c * function(v, x)


rule(
    sc.kve,
    UNKNOWN,
    lambda out, x, y: _slope_of_scaled(lambda z: _near_kve(x, z), out, x, y, 1),
)
rule(
    sc.hankel1e,
    UNKNOWN,
    lambda out, x, y: _slope_of_scaled(
        lambda z: _near_hankel(sc.hankel1e, x, z, 1j), out, x, y, 1j
    ),
)
rule(
    sc.hankel2e,
    UNKNOWN,
    lambda out, x, y: _slope_of_scaled(
        lambda z: _near_hankel(sc.hankel2e, x, z, -1j), out, x, y, -1j
    ),
)
rule(sc.jve, UNKNOWN, lambda x, y: _slope_of_unscaled(sc.jve, x, y))
rule(sc.yve, UNKNOWN, lambda x, y: _slope_of_unscaled(sc.yve, x, y))
rule(sc.ive, UNKNOWN, lambda out, x, y: _slope_of_scaled_i(lambda z: _near_ive(x, z), out, x, y))

# Orders 0 and 1.


def _near_i0e(x: Any) -> Any:
    return sc.i1e(x) - np.sign(x) * sc.i0e(x)


def _near_i1e(x: Any) -> Any:
    return (sc.i0e(x) + sc.ive(2, x)) / 2 - np.sign(x) * sc.i1e(x)


def _near_k0e(x: Any) -> Any:
    return sc.k0e(x) - sc.k1e(x)


def _near_k1e(x: Any) -> Any:
    return sc.k1e(x) - (sc.k0e(x) + sc.kve(2, x)) / 2


rule(sc.j0, lambda x: -sc.j1(x))
rule(sc.j1, lambda x: (sc.j0(x) - sc.jv(2, x)) / 2)
rule(sc.y0, lambda x: -sc.y1(x))
rule(sc.y1, lambda x: (sc.y0(x) - sc.yv(2, x)) / 2)
rule(sc.i0, lambda x: sc.i1(x))
rule(sc.i1, lambda x: (sc.i0(x) + sc.iv(2, x)) / 2)
rule(sc.i0e, lambda out, x: _slope_of_scaled_i(_near_i0e, out, 0, x))
rule(sc.i1e, lambda out, x: _slope_of_scaled_i(_near_i1e, out, 1, x))
rule(sc.k0, lambda x: -sc.k1(x))
rule(sc.k1, lambda x: -(sc.k0(x) + sc.kv(2, x)) / 2)
rule(sc.k0e, lambda out, x: _slope_of_scaled(_near_k0e, out, 0, x, 1))
rule(sc.k1e, lambda out, x: _slope_of_scaled(_near_k1e, out, 1, x, 1))

# Spherical: (2n+1) f' = n f_{n-1} - (n+1) f_{n+1} and similar. These are the ufuncs behind
# scipy.special.spherical_jn, spherical_yn, spherical_in and spherical_kn, and, ending in _d, behind
# their derivative=True.


def _spherical(kind: str, below: int, above: int) -> None:
    function = getattr(sc._ufuncs, f"_spherical_{kind}")

    def slope(n: Any, x: Any) -> Any:
        share = cast(n / (2 * n + 1), dtype_of(x).type(0).real.dtype)
        lower, upper = function(np.maximum(n - 1, 0), x), function(n + 1, x)
        return below * share * lower + above * (1 - share) * upper

    rule(function, UNKNOWN, lambda x, y: slope(x, y))
    UFUNCS[getattr(sc._ufuncs, f"_spherical_{kind}_d")] = slope


_spherical("jn", 1, -1)
_spherical("yn", 1, -1)
_spherical("in", 1, 1)
_spherical("kn", -1, -1)

# Struve: H'_v = (H_{v-1} - H_{v+1} + (x/2)^v / (√π Γ(v + 3/2)))/2, modified with a plus.


def _struve_term(v: Any, x: Any) -> Any:
    """In two halves for large v, since the power may overflow where the term does not."""
    large = v > 50
    below, above = np.where(large, 1, v), np.where(large, v, 1)
    half = np.abs(x / 2) ** (above / 2)
    sign = np.where(x < 0, (-1.0) ** above, 1)
    power = np.where(large, half * (sc.rgamma(v + 1.5) * half) * sign, (x / 2) ** below)
    return power * np.where(large, 1, sc.rgamma(below + 1.5)) / (2 * math.sqrt(math.pi))


rule(sc.struve, UNKNOWN, lambda x, y: _difference(sc.struve, x, y) + _struve_term(x, y))
rule(sc.modstruve, UNKNOWN, lambda x, y: _sum(sc.modstruve, x, y) + _struve_term(x, y))

# Wright: Φ(a, b; x) = Σ x^k / (k! Γ(ak + b)), and its logarithm.
rule(sc.wright_bessel, UNKNOWN, UNKNOWN, lambda x, y, z: sc.wright_bessel(x, x + y, z))
rule(
    sc.log_wright_bessel,
    UNKNOWN,
    UNKNOWN,
    lambda out, x, y, z: np.exp(sc.log_wright_bessel(x, x + y, z) - out),
)

# besselpoly(a, λ, v) = ∫_0^1 t^λ J_v(2at) dt.
rule(
    sc.besselpoly,
    lambda x, y, z: sc.besselpoly(x, y + 1, z - 1.0) - sc.besselpoly(x, y + 1, z + 1.0),
    UNKNOWN,
    UNKNOWN,
)


def _over(slope: Any, x: Any, limit: complex) -> Any:
    """slope / x, with its limit at 0."""
    return np.where(x == 0, limit, slope / np.where(x == 0, 1, x))


def _deviation(function: Any, x: Any, sign: int) -> Any:
    """±(function(x) - 1)/x for I_0 and J_0, by their series Σ (±x²/4)^k / k!² where both are nearly 1."""
    small = np.abs(x) < 0.5
    square = sign * np.where(small, x * x, 0) / 4
    series: Any = 1.0
    for k in range(7, 1, -1):
        series = 1 + square / (k * k) * series
    far = np.where(small, 1, x)
    return np.where(small, x / 4 * series, sign * (function(far) - 1) / far)


# Integrals of Bessel, Struve and Airy functions from 0 to x; those named it2 of f(t)/t or (f(t) - 1)/t.
several(sc.itj0y0, lambda out, x: (sc.j0(x), sc.y0(x)))
several(sc.iti0k0, lambda out, x: (sc.i0(x), sc.k0(x)))
several(sc.it2j0y0, lambda out, x: (_deviation(sc.j0, x, -1), -sc.y0(x) / x))
several(sc.it2i0k0, lambda out, x: (_deviation(sc.i0, x, 1), -sc.k0(x) / x))
rule(sc.itstruve0, lambda x: sc.struve(0, x))
rule(sc.it2struve0, lambda x: -_over(sc.struve(0, x), x, 2 / math.pi))
rule(sc.itmodstruve0, lambda x: sc.modstruve(0, x))


def _slopes_of_itairy(out: Any, x: Any) -> Any:
    ai, _, bi, _ = sc.airy(x)
    mirrored_ai, _, mirrored_bi, _ = sc.airy(-x)
    return ai, bi, mirrored_ai, mirrored_bi


several(sc.itairy, _slopes_of_itairy)

# Airy: y'' = x y. Scaled: Ai and Ai' by exp(2/3 x √x), Bi and Bi' by its inverse where x > 0.
several(sc.airy, lambda out, x: (out[1], x * out[0], out[3], x * out[2]))


def _slopes_of_airye(out: Any, x: Any) -> Any:
    refuse_complex(sc.airye, x)
    ai, ai_slope, bi, bi_slope = out
    root = np.sqrt(x)
    real_root = np.sqrt(np.maximum(x, 0))
    return (
        ai_slope + root * ai,
        x * ai + root * ai_slope,
        bi_slope - real_root * bi,
        x * bi - real_root * bi_slope,
    )


several(sc.airye, _slopes_of_airye)

# Kelvin: f = ber + i bei solves f'' = i f - f'/x, and so does ker + i kei.


rule(sc.ber, lambda x: sc.berp(x))
rule(sc.bei, lambda x: sc.beip(x))
rule(sc.ker, lambda x: sc.kerp(x))
rule(sc.kei, lambda x: sc.keip(x))
rule(sc.berp, lambda out, x: -sc.bei(x) - _over(out, x, 0.0))
rule(sc.beip, lambda out, x: sc.ber(x) - _over(out, x, 0.5))
rule(sc.kerp, lambda out, x: -sc.kei(x) - out / x)
rule(sc.keip, lambda out, x: sc.ker(x) - out / x)
several(
    sc.kelvin,
    lambda out, x: (
        out[2],
        out[3],
        1j * out[0] - _over(out[2], x, 0.5j),
        1j * out[1] - out[3] / x,
    ),
)

# Parabolic cylinders: D'' = (x²/4 - v - 1/2) D, and W'' = (a - x²/4) W. The second result is the slope.
several(sc.pbdv, UNKNOWN, lambda out, x, y: (out[1], (y * y / 4 - x - 0.5) * out[0]))
several(sc.pbvv, UNKNOWN, lambda out, x, y: (out[1], (y * y / 4 - x - 0.5) * out[0]))
several(sc.pbwa, UNKNOWN, lambda out, x, y: (out[1], (x - y * y / 4) * out[0]))

# Mathieu: y'' = (2q cos 2x - a) y with x in degrees, and modified, y'' = (a - 2q cosh 2x) y.


def _mathieu(function: Any, characteristic: Any) -> None:
    def slopes(out: Any, m: Any, q: Any, x: Any) -> Any:
        curvature = 2 * q * np.cos(2 * np.deg2rad(x)) - characteristic(m, q)
        return math.pi / 180 * out[1], math.pi / 180 * curvature * out[0]

    several(function, UNKNOWN, UNKNOWN, slopes)


def _modified_mathieu(function: Any, characteristic: Any) -> None:
    def slopes(out: Any, m: Any, q: Any, x: Any) -> Any:
        return out[1], (characteristic(m, q) - 2 * q * np.cosh(2 * x)) * out[0]

    several(function, UNKNOWN, UNKNOWN, slopes)


_mathieu(sc.mathieu_cem, sc.mathieu_a)
_mathieu(sc.mathieu_sem, sc.mathieu_b)
_modified_mathieu(sc.mathieu_modcem1, sc.mathieu_a)
_modified_mathieu(sc.mathieu_modcem2, sc.mathieu_a)
_modified_mathieu(sc.mathieu_modsem1, sc.mathieu_b)
_modified_mathieu(sc.mathieu_modsem2, sc.mathieu_b)
