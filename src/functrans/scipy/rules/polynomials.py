"""Orthogonal polynomials, Legendre functions and hypergeometric functions, by their last argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from functrans.scipy.rules.family import UNKNOWN, rule


def _lowered(polynomial: Any, n: Any, *rest: Any) -> Any:
    """polynomial(n - 1, ...), and 0 for n = 0, for polynomials whose derivative is one of lower degree."""
    constant = n == 0
    return np.where(constant, 0, 1) * polynomial(np.where(constant, 0, n - 1), *rest)


# SciPy's hypergeometric series for a degree that is not whole fails near -1, where the function is singular.
# Left of 0 these slopes do without.


def _is_left(n: Any, x: Any) -> Any:
    return (n != np.round(n)) & (x > -1) & (x < 0)


def _slope_of_chebyt(n: Any, x: Any) -> Any:
    """n U_{n-1}, and U_{n-1}(cos θ) = sin nθ / sin θ."""
    left = _is_left(n, x)
    angle = np.arccos(np.where(left, x, -0.5))
    whole = _lowered(sc.eval_chebyu, np.where(left, 1, n), np.where(left, 0.5, x))
    return n * np.where(left, np.sin(n * angle) / np.sin(angle), whole)


def _slope_of_chebyu(n: Any, x: Any) -> Any:
    """U_n is Gegenbauer's polynomial with α = 1."""
    return 2 * _lowered(sc.eval_gegenbauer, n, 2.0, x)


def _slope_of_legendre(n: Any, x: Any) -> Any:
    """P_n is Gegenbauer's polynomial with α = 1/2; and (1 - x²) P_n' = n (P_{n-1} - x P_n)."""
    left = _is_left(n, x)
    degree, point = np.where(left, n, 0.5), np.where(left, x, -0.5)
    lower, same = sc.eval_legendre(degree - 1, point), sc.eval_legendre(degree, point)
    by_recurrence = degree * (lower - point * same) / ((1 - point) * (1 + point))
    whole = _lowered(sc.eval_gegenbauer, np.where(left, 1, n), 1.5, np.where(left, 0.5, x))
    return np.where(left, by_recurrence, whole)


rule(sc.eval_chebyt, UNKNOWN, lambda x, y: _slope_of_chebyt(x, y))
rule(sc.eval_chebyu, UNKNOWN, lambda x, y: _slope_of_chebyu(x, y))
rule(sc.eval_chebyc, UNKNOWN, lambda x, y: _slope_of_chebyt(x, y / 2))
rule(sc.eval_chebys, UNKNOWN, lambda x, y: _slope_of_chebyu(x, y / 2) / 2)
rule(sc.eval_sh_chebyt, UNKNOWN, lambda x, y: 2 * _slope_of_chebyt(x, 2 * y - 1))
rule(sc.eval_sh_chebyu, UNKNOWN, lambda x, y: 2 * _slope_of_chebyu(x, 2 * y - 1))
rule(sc.eval_legendre, UNKNOWN, lambda x, y: _slope_of_legendre(x, y))
rule(sc.eval_sh_legendre, UNKNOWN, lambda x, y: 2 * _slope_of_legendre(x, 2 * y - 1))
rule(sc.eval_hermite, UNKNOWN, lambda x, y: 2 * x * _lowered(sc.eval_hermite, x, y))
rule(sc.eval_hermitenorm, UNKNOWN, lambda x, y: x * _lowered(sc.eval_hermitenorm, x, y))
rule(sc.eval_laguerre, UNKNOWN, lambda x, y: -_lowered(sc.eval_genlaguerre, x, 1.0, y))
rule(
    sc.eval_genlaguerre,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z: -_lowered(sc.eval_genlaguerre, x, y + 1, z),
)
rule(
    sc.eval_gegenbauer,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z: 2 * y * _lowered(sc.eval_gegenbauer, x, y + 1, z),
)


def _slope_of_jacobi(n: Any, alpha: Any, beta: Any, x: Any) -> Any:
    return (n + alpha + beta + 1) / 2 * _lowered(sc.eval_jacobi, n, alpha + 1, beta + 1, x)


rule(
    sc.eval_jacobi,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z, w: _slope_of_jacobi(x, y, z, w),
)
# G_n(p, q; x) = P_n^(p-q, q-1)(2x - 1) / C(2n + p - 1, n).
rule(
    sc.eval_sh_jacobi,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z, w: (
        2 * _slope_of_jacobi(x, y - z, z - 1, 2 * w - 1) / sc.binom(2 * x + y - 1, x)
    ),
)

# (x² - 1) P' = v x P_v - (v + m) P_{v-1}, all of the same order m.
rule(
    sc.lpmv,
    UNKNOWN,
    UNKNOWN,
    lambda out, x, y, z: (y * z * out - (x + y) * sc.lpmv(x, y - 1, z)) / (z * z - 1),
)

# pFq(a; b; z)' = Π a / Π b  pFq(a + 1; b + 1; z).


def _slope_of_1f1(a: Any, b: Any, z: Any) -> Any:
    """1F1(0; b; z) is 1, even for b = 0, where SciPy has a pole."""
    flat, linear = a == 0, a == -1
    raised = sc.hyp1f1(np.where(flat | linear, 1, a + 1), np.where(flat | linear, 1, b + 1), z)
    return np.where(flat, 0, a / np.where(flat, 1, b) * np.where(linear, 1, raised))


rule(sc.hyp0f1, UNKNOWN, lambda x, y: sc.hyp0f1(x + 1, y) / x)
rule(sc.hyp1f1, UNKNOWN, UNKNOWN, lambda x, y, z: _slope_of_1f1(x, y, z))
rule(
    sc.hyp2f1,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z, w: x * y / z * sc.hyp2f1(x + 1, y + 1, z + 1, w),
)
rule(sc.hyperu, UNKNOWN, UNKNOWN, lambda x, y, z: -x * sc.hyperu(x + 1, y + 1, z))
