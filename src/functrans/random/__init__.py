"""Random numbers from splittable keys: the same key gives the same numbers, under every transform.

A key is a uint32 array of two words. Functions are pure: they take a key and return numbers, so
they may be differentiated, mapped and staged. Split a key to draw again; see docs/random.md.

Names and parameters follow `jax.random`.
"""

from functrans.core.publishing import publish as _publish
from functrans.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    normal,
    pareto,
    rayleigh,
    truncated_normal,
    uniform,
    weibull_min,
)
from functrans.random.discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    poisson,
    rademacher,
    randint,
)
from functrans.random.gammas import beta, chisquare, dirichlet, gamma, loggamma, student_t
from functrans.random.keys import bits, fold_in, key, split

t = student_t  # the name in jax.random

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "student_t",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])
