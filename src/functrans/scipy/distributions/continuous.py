"""The table of continuous distributions. z is a point in standard form, q a probability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.scipy.distributions.family import (
    Continuous,
    distribution,
    half_line,
    whole_line,
)
from functrans.scipy.loading import load
from functrans.scipy.rules.incomplete import beta_density, gamma_density

sc = load("scipy.special")

LOG_ROOT_2PI = math.log(2 * math.pi) / 2
LOG_2, _LOG_PI, _ROOT_2 = math.log(2), math.log(math.pi), math.sqrt(2)
EULER = float(np.euler_gamma)


def where(condition: Any, x: Any, formula: Any, otherwise: Any, spare: float) -> Any:
    """formula(x) where the condition holds, which borrows a spare argument elsewhere."""
    return np.where(condition, formula(np.where(condition, x, spare)), otherwise)


LINE = {"support": whole_line, "inside": lambda *shapes: 0.5}
HALF = {"support": half_line, "inside": lambda *shapes: 1.0}

norm = distribution(
    Continuous,
    "norm",
    "The normal distribution",
    "0.3",
    **LINE,
    log_density=lambda z: -z * z / 2 - LOG_ROOT_2PI,
    cdf=lambda z: sc.ndtr(z),
    logcdf=lambda z: sc.log_ndtr(z),
    ppf=lambda q: sc.ndtri(q),
    symmetric=True,
    mean=lambda: 0.0,
    var=lambda: 1.0,
    entropy=lambda: LOG_ROOT_2PI + 0.5,
)

uniform = distribution(
    Continuous,
    "uniform",
    "The uniform distribution on [loc, loc + scale]",
    "0.3",
    support=lambda: (0.0, 1.0),
    inside=lambda: 0.5,
    log_density=lambda z: 0 * z,
    cdf=lambda z: z,
    ppf=lambda q: q,
    mean=lambda: 0.5,
    var=lambda: 1 / 12,
    entropy=lambda: 0.0,
)

expon = distribution(
    Continuous,
    "expon",
    "The exponential distribution",
    "0.3",
    **HALF,
    log_density=lambda z: -z,
    logsf=lambda z: -z,
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
    mean=lambda: 1.0,
    var=lambda: 1.0,
    entropy=lambda: 1.0,
)

gamma = distribution(
    Continuous,
    "gamma",
    "The gamma distribution with shape parameter a",
    "0.3, 2.0",
    **HALF,
    shapes="a",
    log_density=lambda z, a: sc.xlogy(a - 1, z) - z - sc.gammaln(a),
    density=lambda z, a: gamma_density(a, z),
    cdf=lambda z, a: sc.gammainc(a, z),
    sf=lambda z, a: sc.gammaincc(a, z),
    ppf=lambda q, a: sc.gammaincinv(a, q),
    isf=lambda q, a: sc.gammainccinv(a, q),
    mean=lambda a: a,
    var=lambda a: a,
    entropy=lambda a: a + sc.gammaln(a) + (1 - a) * sc.psi(a),
)

chi2 = distribution(
    Continuous,
    "chi2",
    "The chi-squared distribution with df degrees of freedom",
    "0.3, 3.0",
    **HALF,
    shapes="df",
    log_density=lambda z, df: sc.xlogy(df / 2 - 1, z) - z / 2 - sc.gammaln(df / 2) - LOG_2 * df / 2,
    density=lambda z, df: gamma_density(df / 2, z / 2) / 2,
    cdf=lambda z, df: sc.chdtr(df, z),
    sf=lambda z, df: sc.chdtrc(df, z),
    ppf=lambda q, df: 2 * sc.gammaincinv(df / 2, q),
    isf=lambda q, df: sc.chdtri(df, q),
    mean=lambda df: df,
    var=lambda df: 2 * df,
    entropy=lambda df: df / 2 + LOG_2 + sc.gammaln(df / 2) + (1 - df / 2) * sc.psi(df / 2),
)

invgamma = distribution(
    Continuous,
    "invgamma",
    "The inverse gamma distribution with shape parameter a",
    "0.3, 2.0",
    **HALF,
    open=True,
    shapes="a",
    log_density=lambda z, a: -(a + 1) * np.log(z) - sc.gammaln(a) - 1 / z,
    cdf=lambda z, a: sc.gammaincc(a, 1 / z),
    sf=lambda z, a: sc.gammainc(a, 1 / z),
    ppf=lambda q, a: 1 / sc.gammainccinv(a, q),
    isf=lambda q, a: 1 / sc.gammaincinv(a, q),
    mean=lambda a: where(a > 1, a, lambda a: 1 / (a - 1), np.inf, 2.0),
    var=lambda a: where(a > 2, a, lambda a: 1 / ((a - 1) ** 2 * (a - 2)), np.inf, 3.0),
    entropy=lambda a: a - (a + 1) * sc.psi(a) + sc.gammaln(a),
)

loggamma = distribution(
    Continuous,
    "loggamma",
    "The distribution of the logarithm of a gamma variable with shape parameter c",
    "0.3, 2.0",
    **LINE,
    shapes="c",
    log_density=lambda z, c: c * z - np.exp(z) - sc.gammaln(c),
    cdf=lambda z, c: sc.gammainc(c, np.exp(z)),
    sf=lambda z, c: sc.gammaincc(c, np.exp(z)),
    ppf=lambda q, c: np.log(sc.gammaincinv(c, q)),
    isf=lambda q, c: np.log(sc.gammainccinv(c, q)),
    mean=lambda c: sc.psi(c),
    var=lambda c: sc.zeta(2.0, c),
    entropy=lambda c: sc.gammaln(c) - c * sc.psi(c) + c,
)


def _beta_entropy(a: Any, b: Any) -> Any:
    own = (a - 1) * sc.psi(a) + (b - 1) * sc.psi(b)
    return sc.betaln(a, b) - own + (a + b - 2) * sc.psi(a + b)


beta = distribution(
    Continuous,
    "beta",
    "The beta distribution with shape parameters a and b",
    "0.3, 2.0, 3.0",
    shapes="a b",
    support=lambda a, b: (0.0, 1.0),
    inside=lambda a, b: 0.5,
    log_density=lambda z, a, b: sc.xlogy(a - 1, z) + sc.xlog1py(b - 1, -z) - sc.betaln(a, b),
    density=lambda z, a, b: beta_density(a, b, z),
    cdf=lambda z, a, b: sc.betainc(a, b, z),
    sf=lambda z, a, b: sc.betaincc(a, b, z),
    ppf=lambda q, a, b: sc.betaincinv(a, b, q),
    isf=lambda q, a, b: sc.betainccinv(a, b, q),
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    entropy=_beta_entropy,
)


def _students_log_density(z: Any, df: Any) -> Any:
    """With infinitely many degrees of freedom it is normal."""
    normal = np.isposinf(df)
    df = np.where(normal, 1.0, df)
    log_density = -(df + 1) / 2 * np.log1p(z * z / df) - sc.betaln(0.5, df / 2) - np.log(df) / 2
    return np.where(normal, -z * z / 2 - LOG_ROOT_2PI, log_density)


t = distribution(
    Continuous,
    "t",
    "Student's t distribution with df degrees of freedom",
    "0.3, 3.0",
    **LINE,
    shapes="df",
    log_density=_students_log_density,
    cdf=lambda z, df: sc.stdtr(df, z),
    ppf=lambda q, df: sc.stdtrit(df, q),
    symmetric=True,
    mean=lambda df: np.where(df > 1, 0 * df, np.inf),
    var=lambda df: np.where(
        df > 2,
        where(np.isfinite(df) & (df > 2), df, lambda df: df / (df - 2), 1.0, 3.0),
        np.where(df > 1, np.inf, np.nan),
    ),
    entropy=lambda df: where(
        np.isfinite(df),
        df,
        lambda df: (
            (df + 1) / 2 * (sc.psi((df + 1) / 2) - sc.psi(df / 2))
            + np.log(df) / 2
            + sc.betaln(df / 2, 0.5)
        ),
        LOG_ROOT_2PI + 0.5,
        1.0,
    ),
)


def _f_log_density(z: Any, n: Any, m: Any) -> Any:
    powers = n / 2 * np.log(n) + m / 2 * np.log(m) + sc.xlogy(n / 2 - 1, z)
    return powers - (n + m) / 2 * np.log(m + n * z) - sc.betaln(n / 2, m / 2)


def _f_entropy(n: Any, m: Any) -> Any:
    a, b = n / 2, m / 2
    slopes = (1 - a) * sc.psi(a) - (1 + b) * sc.psi(b) + (a + b) * sc.psi(a + b)
    return np.log(m / n) + sc.betaln(a, b) + slopes


f = distribution(
    Continuous,
    "f",
    "Fisher's F distribution with dfn and dfd degrees of freedom",
    "0.3, 3.0, 5.0",
    **HALF,
    shapes="dfn dfd",
    log_density=_f_log_density,
    cdf=lambda z, n, m: sc.fdtr(n, m, z),
    sf=lambda z, n, m: sc.fdtrc(n, m, z),
    ppf=lambda q, n, m: sc.fdtri(n, m, q),
    mean=lambda n, m: where(m > 2, m, lambda m: m / (m - 2), np.inf, 3.0),
    var=lambda n, m: where(
        m > 4, m, lambda m: 2 * m * m * (n + m - 2) / (n * (m - 2) ** 2 * (m - 4)), np.inf, 5.0
    ),
    entropy=_f_entropy,
)

lognorm = distribution(
    Continuous,
    "lognorm",
    "The distribution of exp(X) for a normal X with standard deviation s",
    "0.3, 0.8",
    **HALF,
    open=True,
    shapes="s",
    log_density=lambda z, s: -((np.log(z) / s) ** 2) / 2 - np.log(s * z) - LOG_ROOT_2PI,
    cdf=lambda z, s: sc.ndtr(np.log(z) / s),
    sf=lambda z, s: sc.ndtr(-np.log(z) / s),
    logcdf=lambda z, s: sc.log_ndtr(np.log(z) / s),
    logsf=lambda z, s: sc.log_ndtr(-np.log(z) / s),
    ppf=lambda q, s: np.exp(s * sc.ndtri(q)),
    isf=lambda q, s: np.exp(-s * sc.ndtri(q)),
    mean=lambda s: np.exp(s * s / 2),
    var=lambda s: np.exp(s * s) * np.expm1(s * s),
    entropy=lambda s: LOG_ROOT_2PI + 0.5 + np.log(s),
)


def _weibull_var(c: Any) -> Any:
    return sc.gamma(1 + 2 / c) - sc.gamma(1 + 1 / c) ** 2


def _weibull_entropy(c: Any) -> Any:
    return EULER * (1 - 1 / c) - np.log(c) + 1


weibull_min = distribution(
    Continuous,
    "weibull_min",
    "The Weibull distribution of minima with shape parameter c",
    "0.3, 1.7",
    **HALF,
    shapes="c",
    log_density=lambda z, c: np.log(c) + sc.xlogy(c - 1, z) - z**c,
    logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-np.log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-np.log(q)) ** (1 / c),
    mean=lambda c: sc.gamma(1 + 1 / c),
    var=_weibull_var,
    entropy=_weibull_entropy,
)

weibull_max = distribution(
    Continuous,
    "weibull_max",
    "The Weibull distribution of maxima, below 0, with shape parameter c",
    "-0.3, 1.7",
    shapes="c",
    support=lambda c: (-np.inf, 0.0),
    inside=lambda c: -1.0,
    log_density=lambda z, c: np.log(c) + sc.xlogy(c - 1, -z) - (-z) ** c,
    logcdf=lambda z, c: -((-z) ** c),
    ppf=lambda q, c: -((-np.log(q)) ** (1 / c)),
    isf=lambda q, c: -((-np.log1p(-q)) ** (1 / c)),
    mean=lambda c: -sc.gamma(1 + 1 / c),
    var=_weibull_var,
    entropy=_weibull_entropy,
)

exponweib = distribution(
    Continuous,
    "exponweib",
    "The exponentiated Weibull distribution with shape parameters a and c",
    "0.3, 2.0, 1.7",
    **HALF,
    shapes="a c",
    log_density=lambda z, a, c: (
        np.log(a * c) + sc.xlogy(a - 1, -np.expm1(-(z**c))) - z**c + sc.xlogy(c - 1, z)
    ),
    logcdf=lambda z, a, c: a * np.log(-np.expm1(-(z**c))),
    ppf=lambda q, a, c: (-np.log1p(-(q ** (1 / a)))) ** (1 / c),
)


def _double_tail(z: Any, c: Any) -> Any:
    return np.exp(-(np.abs(z) ** c)) / 2


def _double_quantile(q: Any, c: Any) -> Any:
    tail = np.where(q <= 0.5, q, 1 - q)
    return np.where(q > 0.5, 1, -1) * (-np.log(2 * tail)) ** (1 / c)


dweibull = distribution(
    Continuous,
    "dweibull",
    "The double Weibull distribution with shape parameter c",
    "0.3, 1.7",
    **LINE,
    shapes="c",
    log_density=lambda z, c: np.log(c / 2) + sc.xlogy(c - 1, np.abs(z)) - np.abs(z) ** c,
    cdf=lambda z, c: np.where(z > 0, 1 - _double_tail(z, c), _double_tail(z, c)),
    ppf=_double_quantile,
    symmetric=True,
    mean=lambda c: 0 * c,
    var=lambda c: sc.gamma(1 + 2 / c),
    entropy=lambda c: _weibull_entropy(c) + LOG_2,
)

pareto = distribution(
    Continuous,
    "pareto",
    "The Pareto distribution with shape parameter b",
    "1.3, 2.0",
    shapes="b",
    support=lambda b: (1.0, np.inf),
    inside=lambda b: 2.0,
    log_density=lambda z, b: np.log(b) - (b + 1) * np.log(z),
    logsf=lambda z, b: -b * np.log(z),
    ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
    isf=lambda q, b: q ** (-1 / b),
    mean=lambda b: where(b > 1, b, lambda b: b / (b - 1), np.inf, 2.0),
    var=lambda b: where(b > 2, b, lambda b: b / ((b - 1) ** 2 * (b - 2)), np.inf, 3.0),
    entropy=lambda b: 1 + 1 / b - np.log(b),
)

powerlaw = distribution(
    Continuous,
    "powerlaw",
    "The distribution on [0, 1] whose density is a power, with shape parameter a",
    "0.3, 2.0",
    shapes="a",
    support=lambda a: (0.0, 1.0),
    inside=lambda a: 0.5,
    log_density=lambda z, a: np.log(a) + sc.xlogy(a - 1, z),
    cdf=lambda z, a: z**a,
    logcdf=lambda z, a: a * np.log(z),
    sf=lambda z, a: -sc.powm1(z, a),
    ppf=lambda q, a: q ** (1 / a),
    mean=lambda a: a / (a + 1),
    var=lambda a: a / ((a + 2) * (a + 1) ** 2),
    entropy=lambda a: 1 - 1 / a - np.log(a),
)


def _cauchy_quantile(q: Any) -> Any:
    """tan π(q - 1/2), which is -1/tan πq, to the last digit in the middle as well as at the ends."""
    middle = np.abs(q - 0.5) < 0.25
    inner = np.tan(np.pi * np.where(middle, q - 0.5, 0.0))
    return np.where(middle, inner, -1 / np.tan(np.pi * np.where(middle, 0.25, q)))


cauchy = distribution(
    Continuous,
    "cauchy",
    "The Cauchy distribution",
    "0.3",
    **LINE,
    log_density=lambda z: -_LOG_PI - np.log1p(z * z),
    cdf=lambda z: np.arctan2(1.0, -z) / np.pi,
    ppf=_cauchy_quantile,
    symmetric=True,
    mean=lambda: np.nan,
    var=lambda: np.nan,
    entropy=lambda: math.log(4 * math.pi),
)

halfcauchy = distribution(
    Continuous,
    "halfcauchy",
    "The distribution of the size of a Cauchy variable",
    "0.3",
    **HALF,
    log_density=lambda z: math.log(2 / math.pi) - np.log1p(z * z),
    cdf=lambda z: 2 / np.pi * np.arctan(z),
    sf=lambda z: 2 / np.pi * np.arctan2(1.0, z),
    ppf=lambda q: np.tan(np.pi / 2 * q),
    isf=lambda q: 1 / np.tan(np.pi / 2 * q),
    mean=lambda: np.inf,
    var=lambda: np.inf,
    entropy=lambda: math.log(2 * math.pi),
)

laplace = distribution(
    Continuous,
    "laplace",
    "The Laplace distribution",
    "0.3",
    **LINE,
    log_density=lambda z: -np.abs(z) - LOG_2,
    cdf=lambda z: np.where(z > 0, 1 - np.exp(-np.abs(z)) / 2, np.exp(-np.abs(z)) / 2),
    logcdf=lambda z: np.where(z > 0, np.log1p(-np.exp(-np.abs(z)) / 2), -np.abs(z) - LOG_2),
    ppf=lambda q: np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q)),
    symmetric=True,
    mean=lambda: 0.0,
    var=lambda: 2.0,
    entropy=lambda: LOG_2 + 1,
)

logistic = distribution(
    Continuous,
    "logistic",
    "The logistic distribution",
    "0.3",
    **LINE,
    log_density=lambda z: sc.log_expit(z) + sc.log_expit(-z),
    cdf=lambda z: sc.expit(z),
    logcdf=lambda z: sc.log_expit(z),
    ppf=lambda q: sc.logit(q),
    symmetric=True,
    mean=lambda: 0.0,
    var=lambda: math.pi**2 / 3,
    entropy=lambda: 2.0,
)

gumbel_r = distribution(
    Continuous,
    "gumbel_r",
    "The Gumbel distribution of maxima",
    "0.3",
    **LINE,
    log_density=lambda z: -z - np.exp(-z),
    logcdf=lambda z: -np.exp(-z),
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
    mean=lambda: EULER,
    var=lambda: math.pi**2 / 6,
    entropy=lambda: EULER + 1,
)

gumbel_l = distribution(
    Continuous,
    "gumbel_l",
    "The Gumbel distribution of minima",
    "0.3",
    **LINE,
    log_density=lambda z: z - np.exp(z),
    logsf=lambda z: -np.exp(z),
    ppf=lambda q: np.log(-np.log1p(-q)),
    isf=lambda q: np.log(-np.log(q)),
    mean=lambda: -EULER,
    var=lambda: math.pi**2 / 6,
    entropy=lambda: EULER + 1,
)

rayleigh = distribution(
    Continuous,
    "rayleigh",
    "The Rayleigh distribution",
    "0.3",
    **HALF,
    log_density=lambda z: np.log(z) - z * z / 2,
    density=lambda z: z * np.exp(-z * z / 2),
    logsf=lambda z: -z * z / 2,
    ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2 * np.log(q)),
    mean=lambda: math.sqrt(math.pi / 2),
    var=lambda: (4 - math.pi) / 2,
    entropy=lambda: EULER / 2 + 1 - LOG_2 / 2,
)

maxwell = distribution(
    Continuous,
    "maxwell",
    "The Maxwell distribution",
    "0.3",
    **HALF,
    log_density=lambda z: math.log(2 / math.pi) / 2 + 2 * np.log(z) - z * z / 2,
    density=lambda z: math.sqrt(2 / math.pi) * z * z * np.exp(-z * z / 2),
    cdf=lambda z: sc.gammainc(1.5, z * z / 2),
    sf=lambda z: sc.gammaincc(1.5, z * z / 2),
    ppf=lambda q: np.sqrt(2 * sc.gammaincinv(1.5, q)),
    isf=lambda q: np.sqrt(2 * sc.gammainccinv(1.5, q)),
    mean=lambda: 2 * math.sqrt(2 / math.pi),
    var=lambda: 3 - 8 / math.pi,
    entropy=lambda: EULER + LOG_ROOT_2PI - 0.5,
)

halfnorm = distribution(
    Continuous,
    "halfnorm",
    "The distribution of the size of a normal variable",
    "0.3",
    **HALF,
    log_density=lambda z: math.log(2 / math.pi) / 2 - z * z / 2,
    cdf=lambda z: sc.erf(z / _ROOT_2),
    sf=lambda z: sc.erfc(z / _ROOT_2),
    logsf=lambda z: LOG_2 + sc.log_ndtr(-z),
    ppf=lambda q: sc.ndtri((1 + q) / 2),
    isf=lambda q: -sc.ndtri(q / 2),
    mean=lambda: math.sqrt(2 / math.pi),
    var=lambda: 1 - 2 / math.pi,
    entropy=lambda: math.log(math.pi / 2) / 2 + 0.5,
)
