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


def _slope_of_chebyu(n: Any, x: Any) -> Any:
    """U_n is Gegenbauer's polynomial with α = 1."""
    return 2 * _lowered(sc.eval_gegenbauer, n, 2.0, x)


def _slope_of_legendre(n: Any, x: Any) -> Any:
    """P_n is Gegenbauer's polynomial with α = 1/2."""
    return _lowered(sc.eval_gegenbauer, n, 1.5, x)


rule(sc.eval_chebyt, UNKNOWN, lambda x, y: x * _lowered(sc.eval_chebyu, x, y))
rule(sc.eval_chebyu, UNKNOWN, lambda x, y: _slope_of_chebyu(x, y))
rule(sc.eval_chebyc, UNKNOWN, lambda x, y: x * _lowered(sc.eval_chebys, x, y))
rule(sc.eval_chebys, UNKNOWN, lambda x, y: _slope_of_chebyu(x, y / 2) / 2)
rule(sc.eval_sh_chebyt, UNKNOWN, lambda x, y: 2 * x * _lowered(sc.eval_chebyu, x, 2 * y - 1))
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
rule(sc.hyp0f1, UNKNOWN, lambda x, y: sc.hyp0f1(x + 1, y) / x)
rule(sc.hyp1f1, UNKNOWN, UNKNOWN, lambda x, y, z: x / y * sc.hyp1f1(x + 1, y + 1, z))
rule(
    sc.hyp2f1,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    lambda x, y, z, w: x * y / z * sc.hyp2f1(x + 1, y + 1, z + 1, w),
)
rule(sc.hyperu, UNKNOWN, UNKNOWN, lambda x, y, z: -x * sc.hyperu(x + 1, y + 1, z))
