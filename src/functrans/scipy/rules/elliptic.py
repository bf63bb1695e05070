"""Elliptic integrals: Legendre's, Carlson's symmetric ones, Jacobi's functions, and the agm."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from functrans.scipy.rules.family import rule, several

# Complete: K(m) = π/2 2F1(1/2, 1/2; 1; m) and E(m) = π/2 2F1(-1/2, 1/2; 1; m), smooth at m = 0.


def _slope_of_k(m: Any) -> Any:
    return np.pi / 8 * sc.hyp2f1(1.5, 1.5, 2.0, m)


def _slope_of_e(m: Any) -> Any:
    return -np.pi / 8 * sc.hyp2f1(0.5, 1.5, 2.0, m)


def _slope_of_km1(k: Any, p: Any) -> Any:
    """-K'(1-p) = (K - E/p) / (2 (1-p)), which does not round p away; near p = 1 as for K."""
    small = p < 0.5
    q = np.where(small, p, 0.25)
    return np.where(
        small,
        (k - sc.ellipe(1 - q) / q) / (2 * (1 - q)),
        -_slope_of_k(1 - np.where(small, 1, p)),
    )


rule(sc.ellipk, lambda x: _slope_of_k(x))
rule(sc.ellipe, lambda x: _slope_of_e(x))
rule(sc.ellipkm1, lambda out, x: _slope_of_km1(out, x))

# Incomplete, F(φ, m) and E(φ, m). Within |φ| <= π/2, with s = sin φ and c = cos φ,
# ∂F/∂m = s³/6 R_D(c², 1, 1 - m s²) and ∂E/∂m = -s³/6 R_D(c², 1 - m s², 1) (DLMF 19.25). Both
# integrals grow by twice the complete one with each half turn.


def _delta(phi: Any, m: Any) -> Any:
    return np.sqrt(1 - m * np.sin(phi) ** 2)


def _f_by_m(phi: Any, m: Any) -> Any:
    turns, sine, square = _reduced(phi)
    carlson = sc.elliprd(1 - square, 1.0, 1 - m * square)
    return sine * square / 6 * carlson + _per_turn(turns, _slope_of_k, m)


def _e_by_m(phi: Any, m: Any) -> Any:
    turns, sine, square = _reduced(phi)
    carlson = sc.elliprd(1 - square, 1 - m * square, 1.0)
    return -sine * square / 6 * carlson + _per_turn(turns, _slope_of_e, m)


def _reduced(phi: Any) -> tuple[Any, Any, Any]:
    """The number of half turns, and the sine of the remainder and its square."""
    turns = np.round(phi / np.pi)
    sine = np.sin(phi - np.pi * turns)
    return turns, sine, sine * sine


def _per_turn(turns: Any, slope: Any, m: Any) -> Any:
    """2 turns slope(m), and 0 without a turn, even for m >= 1."""
    return np.where(turns == 0, 0, 2 * turns * slope(np.where(turns == 0, 0, m)))


rule(sc.ellipkinc, lambda x, y: 1 / _delta(x, y), lambda x, y: _f_by_m(x, y))
rule(sc.ellipeinc, lambda x, y: _delta(x, y), lambda x, y: _e_by_m(x, y))

# Jacobi's functions sn, cn, dn and the amplitude φ, of (u, m). F(φ, m) = u, so ∂φ/∂m = -dn ∂F/∂m.


def _jacobi_by_m(out: Any, u: Any, m: Any) -> Any:
    sn, cn, dn, phi = out
    slope = -dn * _f_by_m(phi, m)
    return cn * slope, -sn * slope, -(sn * sn + 2 * m * sn * cn * slope) / (2 * dn), slope


several(
    sc.ellipj,
    lambda out, u, m: (out[1] * out[2], -out[0] * out[2], -m * out[0] * out[1], out[2]),
    _jacobi_by_m,
)

# Carlson's. With (t+x), (t+y), (t+z) under the integral, ∂R_F/∂x = -R_D(y, z, x)/6, and partial
# fractions of 1/((t+x)(t+z)) give ∂R_D/∂x and ∂R_J/∂x; the last argument follows since R_D and R_J are
# homogeneous of degree -3/2.

_CLOSE = 1e-5


def _rd_by_first(x: Any, y: Any, z: Any) -> Any:
    """∂R_D(x, y, z)/∂x = (R_D(x, y, z) - R_D(y, z, x)) / (2 (z - x)), an even function of z - x.

    Where x and z are close, it is extrapolated from a wider gap around the same middle.
    """

    def quotient(x: Any, z: Any) -> Any:
        return (sc.elliprd(x, y, z) - sc.elliprd(y, z, x)) / (2 * (z - x))

    close = np.abs(z - x) <= _CLOSE * np.abs(z + x)
    middle = np.where(close, (x + z) / 2, 1)
    narrow, wide = (quotient(middle * (1 - gap), middle * (1 + gap)) for gap in (0.5e-3, 1e-3))
    return np.where(
        close,
        (4 * narrow - wide) / 3,
        quotient(np.where(close, 1, x), np.where(close, 2, z)),
    )


def _rd_by_last(out: Any, x: Any, y: Any, z: Any) -> Any:
    return -(1.5 * out + _times(x, _rd_by_first, x, y, z) + _times(y, _rd_by_first, y, x, z)) / z


def _times(factor: Any, function: Any, x: Any, *rest: Any) -> Any:
    """factor function(x, ...), and 0 where the factor is 0 and the function may be infinite."""
    zero = factor == 0
    return np.where(zero, 0, factor * function(np.where(zero, 0.5, x), *rest))


rule(
    sc.elliprf,
    lambda x, y, z: sc.elliprd(y, z, x) / -6,
    lambda x, y, z: sc.elliprd(z, x, y) / -6,
    lambda x, y, z: sc.elliprd(x, y, z) / -6,
)
# R_C(x, y) = R_F(x, y, y).
rule(
    sc.elliprc,
    lambda x, y: sc.elliprd(y, y, x) / -6,
    lambda x, y: sc.elliprd(x, y, y) / -3,
)
rule(
    sc.elliprg,
    lambda x, y, z: (sc.elliprf(x, y, z) - x * sc.elliprd(y, z, x) / 3) / 4,
    lambda x, y, z: (sc.elliprf(x, y, z) - y * sc.elliprd(z, x, y) / 3) / 4,
    lambda x, y, z: (sc.elliprf(x, y, z) - z * sc.elliprd(x, y, z) / 3) / 4,
)
rule(
    sc.elliprd,
    lambda x, y, z: _rd_by_first(x, y, z),
    lambda x, y, z: _rd_by_first(y, x, z),
    lambda out, x, y, z: _rd_by_last(out, x, y, z),
)


def _rj_by_first(out: Any, x: Any, y: Any, z: Any, p: Any) -> Any:
    """∂R_J/∂x = (R_J - R_D(y, z, x)) / (2 (p - x)).

    Where x and p are close, (t+x)^(-3/2) (t+p)^-1 under its integral is (t+q)^(-5/2) with q = (3x + 2p)/5,
    up to the square of their distance, and this is a derivative of R_D.
    """
    close = np.abs(p - x) <= _CLOSE * np.abs(p + x)
    middle = np.where(close, (3 * x + 2 * p) / 5, 1)
    apart = np.where(close, 2, p - x)
    return np.where(
        close,
        _rd_by_last(sc.elliprd(y, z, middle), y, z, middle) / 3,
        (out - sc.elliprd(y, z, x)) / (2 * apart),
    )


def _rj_by_last(out: Any, x: Any, y: Any, z: Any, p: Any) -> Any:
    inner = (
        _times(x, lambda x: _rj_by_first(out, x, y, z, p), x)
        + _times(y, lambda y: _rj_by_first(out, y, z, x, p), y)
        + _times(z, lambda z: _rj_by_first(out, z, x, y, p), z)
    )
    return -(1.5 * out + inner) / p


rule(
    sc.elliprj,
    lambda out, x, y, z, w: _rj_by_first(out, x, y, z, w),
    lambda out, x, y, z, w: _rj_by_first(out, y, z, x, w),
    lambda out, x, y, z, w: _rj_by_first(out, z, x, y, w),
    lambda out, x, y, z, w: _rj_by_last(out, x, y, z, w),
)

# agm(a, b) = π (a + b) / (4 K(m)) with m = ((a - b)/(a + b))².


def _agm_by_first(out: Any, a: Any, b: Any) -> Any:
    total, gap = a + b, a - b
    m = (gap / total) ** 2
    return out / total * (1 - 4 * gap * b * _slope_of_k(m) / (total * total * sc.ellipk(m)))


rule(
    sc.agm,
    lambda out, x, y: _agm_by_first(out, x, y),
    lambda out, x, y: _agm_by_first(out, y, x),
)
