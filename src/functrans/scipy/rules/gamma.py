"""The gamma function, its logarithms and integrals, and the zeta function."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from functrans.scipy.rules.family import UNKNOWN, rule

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
rule(
    sc.binom,
    lambda out, x, y: out * (sc.psi(x + 1) - sc.psi(x - y + 1)),
    lambda out, x, y: out * (sc.psi(x - y + 1) - sc.psi(y + 1)),
)
rule(
    sc.poch,
    lambda out, x, y: out * (sc.psi(x + y) - sc.psi(x)),
    lambda out, x, y: out * sc.psi(x + y),
)

# Incomplete integrals: the derivative by the limit is the integrand, and that of the inverse is one
# over it.


def gamma_density(a: Any, x: Any) -> Any:
    """x^(a-1) exp(-x) / Γ(a)."""
    return np.exp(sc.xlogy(a - 1, x) - x - sc.gammaln(a))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b)."""
    return np.exp(sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - sc.betaln(a, b))


rule(sc.gammainc, UNKNOWN, lambda x, y: gamma_density(x, y))
rule(sc.gammaincc, UNKNOWN, lambda x, y: -gamma_density(x, y))
rule(sc.gammaincinv, UNKNOWN, lambda out, x: 1 / gamma_density(x, out))
rule(sc.gammainccinv, UNKNOWN, lambda out, x: -1 / gamma_density(x, out))
rule(sc.betainc, UNKNOWN, UNKNOWN, lambda x, y, z: beta_density(x, y, z))
rule(sc.betaincc, UNKNOWN, UNKNOWN, lambda x, y, z: -beta_density(x, y, z))
rule(sc.betaincinv, UNKNOWN, UNKNOWN, lambda out, x, y: 1 / beta_density(x, y, out))
rule(sc.betainccinv, UNKNOWN, UNKNOWN, lambda out, x, y: -1 / beta_density(x, y, out))

# Hurwitz' zeta function Σ (k + q)^-s. By s there is no closed form.
rule(sc._ufuncs._zeta, UNKNOWN, lambda x, y: -x * sc.zeta(x + 1, y))
rule(sc._ufuncs._riemann_zeta, UNKNOWN)
rule(sc.zetac, UNKNOWN)
