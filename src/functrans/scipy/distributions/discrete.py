"""The table of discrete distributions. k is a count in standard form."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.scipy.distributions.family import Discrete, constant_quantiles, distribution, whole
from functrans.scipy.loading import load

sc = load("scipy.special")


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _quantiles(name: str, arity: int) -> dict[str, Any]:
    return dict(zip(("ppf", "isf"), constant_quantiles(name, arity), strict=True))


poisson = distribution(
    Discrete,
    "poisson",
    "The Poisson distribution with mean mu",
    "2.0",
    **_quantiles("poisson", 1),
    shapes="mu",
    support=lambda mu: (0.0, np.inf),
    inside=lambda mu: 0.0,
    valid=lambda mu: mu >= 0,
    log_density=lambda k, mu: sc.xlogy(k, mu) - mu - sc.gammaln(k + 1),
    cdf=lambda k, mu: sc.pdtr(k, mu),
    sf=lambda k, mu: sc.pdtrc(k, mu),
    mean=lambda mu: mu,
    var=lambda mu: mu,
)


def _left(n: Any, k: Any) -> Any:
    """The trials that do not succeed; at the end of the support, where it is not needed, 1."""
    return np.where(n > k, n - k, 1.0)


binom = distribution(
    Discrete,
    "binom",
    "The binomial distribution of the successes in n trials with probability p",
    "5, 0.4",
    **_quantiles("binom", 2),
    shapes="n p",
    support=lambda n, p: (0.0, n),
    inside=lambda n, p: 0.0,
    valid=lambda n, p: (n >= 0) & (n == np.floor(n)) & _is_probability(p),
    log_density=whole(
        lambda k, n, p: (
            sc.gammaln(n + 1)
            - sc.gammaln(k + 1)
            - sc.gammaln(n - k + 1)
            + sc.xlogy(k, p)
            + sc.xlog1py(n - k, -p)
        ),
        1,
    ),
    cdf=whole(lambda k, n, p: sc.betaincc(k + 1, _left(n, k), p), 1),
    sf=whole(lambda k, n, p: sc.betainc(k + 1, _left(n, k), p), 1),
    mean=whole(lambda n, p: n * p, 0),
    var=whole(lambda n, p: n * p * (1 - p), 0),
)

bernoulli = distribution(
    Discrete,
    "bernoulli",
    "The distribution of 1 with probability p, and 0 otherwise",
    "0.4",
    **_quantiles("bernoulli", 1),
    shapes="p",
    support=lambda p: (0.0, 1.0),
    inside=lambda p: 0.0,
    valid=_is_probability,
    log_density=lambda k, p: sc.xlogy(k, p) + sc.xlog1py(1 - k, -p),
    cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k,
    mean=lambda p: p,
    var=lambda p: p * (1 - p),
    entropy=lambda p: sc.entr(p) + sc.entr(1 - p),
)

geom = distribution(
    Discrete,
    "geom",
    "The geometric distribution of the trials up to the first success, with probability p",
    "0.4",
    **_quantiles("geom", 1),
    shapes="p",
    support=lambda p: (1.0, np.inf),
    inside=lambda p: 1.0,
    valid=lambda p: (p > 0) & (p <= 1),
    log_density=lambda k, p: sc.xlog1py(k - 1, -p) + np.log(p),
    logsf=lambda k, p: k * np.log1p(-p),
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    entropy=lambda p: (sc.entr(p) + sc.entr(1 - p)) / p,
)

nbinom = distribution(
    Discrete,
    "nbinom",
    "The negative binomial distribution of the failures before the n-th success",
    "2.5, 0.4",
    **_quantiles("nbinom", 2),
    shapes="n p",
    support=lambda n, p: (0.0, np.inf),
    inside=lambda n, p: 0.0,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    log_density=lambda k, n, p: (
        sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n) + n * np.log(p) + sc.xlog1py(k, -p)
    ),
    cdf=lambda k, n, p: sc.betainc(n, k + 1, p),
    sf=lambda k, n, p: sc.betaincc(n, k + 1, p),
    mean=lambda n, p: n * (1 - p) / p,
    var=lambda n, p: n * (1 - p) / (p * p),
)

randint = distribution(
    Discrete,
    "randint",
    "The uniform distribution on the integers from low to high - 1",
    "2, 6",
    **_quantiles("randint", 2),
    shapes="low high",
    support=lambda low, high: (low, high - 1),
    inside=lambda low, high: low,
    valid=lambda low, high: (high > low) & (low == np.floor(low)) & (high == np.floor(high)),
    log_density=whole(lambda k, low, high: -np.log(high - low) + 0 * k, 1, 2),
    cdf=whole(lambda k, low, high: (k - low + 1) / (high - low), 1, 2),
    sf=whole(lambda k, low, high: (high - 1 - k) / (high - low), 1, 2),
    mean=whole(lambda low, high: (high + low - 1) / 2, 0, 1),
    var=whole(lambda low, high: ((high - low) ** 2 - 1) / 12, 0, 1),
    entropy=whole(lambda low, high: np.log(high - low), 0, 1),
)
