"""Powers, exponentials, logarithms, entropies, angles in degrees, and losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from functrans.scipy.rules.family import UNKNOWN, rule

_DEGREE = math.pi / 180


def _slope_of_exprel(x: Any) -> Any:
    """d/dx (exp(x) - 1)/x without cancellation at 0: exprel(x) = 1F1(1, 2, x).

    SciPy's 1F1 does not return at infinity, so it is not asked where the slope overflows.
    """
    overflows = x > 800
    return np.where(overflows, np.inf, sc.hyp1f1(2.0, 3.0, np.where(overflows, 1, x)) / 2)


def _boxcox_by_lambda(log: Any, lmbda: Any) -> Any:
    """L² exprel'(λ L), and far left, where exprel'(u) = 1/u², 1/λ², even for x = 0."""
    u = lmbda * log
    left = u < -50
    log, scale = np.where(left, 1, log), np.where(left, lmbda, 1)
    return np.where(left, 1 / (scale * scale), log**2 * _slope_of_exprel(np.where(left, 1, u)))


def log1p_ratio(x: Any) -> Any:
    """log(1 + x)/x, smooth at 0."""
    return sc.hyp2f1(1.0, 1.0, 2.0, -x)


def _safe_log(x: Any) -> Any:
    """log x, and 0 at x = 0, for terms in which x log x stands behind it."""
    return np.log(np.where(x == 0, 1, x))


def _ratio(x: Any, y: Any) -> Any:
    """x / y, and 0 for 0 / 0, which is the slope of x log y in y along x = 0."""
    both = (x == 0) & (y == 0)
    return x / np.where(both, 1, y)


def _rel_entr_by_first(x: Any, y: Any) -> Any:
    """1 + log(x / y), and 0 at x = 0: events of probability 0 do not count (JAX's convention)."""
    zero = x == 0
    return np.where(zero, 0, 1 + np.log(np.where(zero, 1, x) / np.where(zero, 1, y)))


rule(sc.expm1, lambda out: out + 1)
rule(sc.log1p, lambda x: 1 / (1 + x))
rule(sc.exp2, lambda out: out * math.log(2))
rule(sc.exp10, lambda out: out * math.log(10))
rule(sc.cbrt, lambda out: 1 / (3 * out * out))
rule(sc.exprel, lambda x: _slope_of_exprel(x))
rule(
    sc.powm1,
    lambda x, y: y * x ** np.where(y == 0, 1, y - 1),
    lambda out, x: (out + 1) * _safe_log(x),
)

# Logistic functions.
rule(sc.expit, lambda out, x: out * sc.expit(-x))
rule(sc.log_expit, lambda x: sc.expit(-x))
rule(sc.logit, lambda x: 1 / (x * (1 - x)))

# x log y and entropies.
rule(sc.xlogy, lambda y: np.log(y), lambda x, y: _ratio(x, y))
rule(sc.xlog1py, lambda y: np.log1p(y), lambda x, y: _ratio(x, 1 + y))
rule(sc.entr, lambda x: -1 - np.log(x))
rule(sc.rel_entr, lambda x, y: _rel_entr_by_first(x, y), lambda x, y: -_ratio(x, y))
rule(sc.kl_div, lambda x, y: _rel_entr_by_first(x, y) - 1, lambda x, y: 1 - _ratio(x, y))

# Box-Cox: with L = log x (or log1p x), out = L exprel(λ L), so d/dλ = L² exprel'(λ L), even at λ = 0.
rule(
    sc.boxcox,
    lambda x, y: x ** (y - 1),
    lambda x, y: _boxcox_by_lambda(np.log(x), y),
)
rule(
    sc.boxcox1p,
    lambda x, y: (1 + x) ** (y - 1),
    lambda x, y: _boxcox_by_lambda(np.log1p(x), y),
)


def _inverse_boxcox_by_lambda(power: Any, y: Any, lmbda: Any) -> Any:
    """(1 + λ y)^(1/λ) = exp(y g(λ y)), where g(u) = log(1 + u)/u and g' = -2F1(2, 2; 3; -u)/2."""
    return power * y * y * sc.hyp2f1(2.0, 2.0, 3.0, -lmbda * y) / -2


rule(
    sc.inv_boxcox,
    lambda out, x, y: out / (1 + x * y),
    lambda out, x, y: _inverse_boxcox_by_lambda(out, x, y),
)
rule(
    sc.inv_boxcox1p,
    lambda out, x, y: (out + 1) / (1 + x * y),
    lambda out, x, y: _inverse_boxcox_by_lambda(out + 1, x, y),
)

# Losses: huber(delta, residual).
rule(
    sc.huber,
    lambda x, y: np.maximum(np.abs(y) - x, 0),
    lambda x, y: np.minimum(np.maximum(y, -x), x),
)
rule(
    sc.pseudo_huber,
    lambda out, x, y: 2 * out / x - y * y / (x * np.sqrt(1 + (y / x) ** 2)),
    lambda x, y: y / np.sqrt(1 + (y / x) ** 2),
)

# Angles, most of them in degrees.
rule(sc.cosm1, lambda x: -np.sin(x))
rule(sc.sindg, lambda x: _DEGREE * sc.cosdg(x))
rule(sc.cosdg, lambda x: -_DEGREE * sc.sindg(x))
rule(sc.tandg, lambda out: _DEGREE * (1 + out * out))
rule(sc.cotdg, lambda out: -_DEGREE * (1 + out * out))
rule(sc.radian, lambda: _DEGREE, lambda: _DEGREE / 60, lambda: _DEGREE / 3600)
rule(sc.round, None)

# Lambert's W and Wright's omega: w exp(w) = z and ω + log ω = z.
rule(sc._ufuncs._lambertw, lambda out: np.exp(-out) / (1 + out), None, UNKNOWN)
rule(sc.wrightomega, lambda out: out / (1 + out))
