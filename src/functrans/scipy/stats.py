"""scipy.stats for traced values: distributions, and statistics of samples.

The distributions have SciPy's methods and arguments, all of which may be traced: the point, the location, the
scale and the shape parameters. `norm(loc, scale)` holds parameters. Outside the support, a density is 0 and
its logarithm -inf, with derivative 0. What is not traced goes to SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from functrans.core import errors
from functrans.core.publishing import publish as _publish
from functrans.scipy.delegation import is_traced
from functrans.scipy.descriptive import (
    boxcox_llf,
    entropy,
    evaluate_kde,
    evaluate_log_kde,
    gaussian_kde,
    gmean,
    hmean,
    iqr,
    kurtosis,
    moment,
    pearsonr,
    pmean,
    sem,
    skew,
    trim_mean,
    variation,
    zmap,
    zscore,
)
from functrans.scipy.distributions.composite import (
    genextreme,
    genpareto,
    invgauss,
    skewnorm,
    triang,
    truncnorm,
    vonmises,
)
from functrans.scipy.distributions.continuous import (
    beta,
    cauchy,
    chi2,
    dweibull,
    expon,
    exponweib,
    f,
    gamma,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halfnorm,
    invgamma,
    laplace,
    loggamma,
    logistic,
    lognorm,
    maxwell,
    norm,
    pareto,
    powerlaw,
    rayleigh,
    t,
    uniform,
    weibull_max,
    weibull_min,
)
from functrans.scipy.distributions.discrete import (
    bernoulli,
    binom,
    geom,
    nbinom,
    poisson,
    randint,
)
from functrans.scipy.distributions.expectation import expect
from functrans.scipy.distributions.family import KNOWN, ss
from functrans.scipy.distributions.multivariate import (
    MULTIVARIATE,
    dirichlet,
    multivariate_normal,
    multivariate_t,
    wishart,
)

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "boxcox_llf",
    "cauchy",
    "chi2",
    "dirichlet",
    "dweibull",
    "entropy",
    "expon",
    "exponweib",
    "f",
    "gamma",
    "gaussian_kde",
    "genextreme",
    "genpareto",
    "geom",
    "gmean",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halfnorm",
    "hmean",
    "invgamma",
    "invgauss",
    "iqr",
    "kurtosis",
    "laplace",
    "loggamma",
    "logistic",
    "lognorm",
    "maxwell",
    "moment",
    "multivariate_normal",
    "multivariate_t",
    "nbinom",
    "norm",
    "pareto",
    "pearsonr",
    "pmean",
    "poisson",
    "powerlaw",
    "randint",
    "rayleigh",
    "sem",
    "skew",
    "skewnorm",
    "t",
    "triang",
    "trim_mean",
    "truncnorm",
    "uniform",
    "variation",
    "vonmises",
    "weibull_max",
    "weibull_min",
    "wishart",
    "zmap",
    "zscore",
]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])


# What SciPy's own distributions do with traced arguments. A distribution is known by its name; one that holds
# parameters calls that of its class.

_OF_POINTS = ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")
_OF_PARAMETERS = ("mean", "var", "std", "median", "entropy", "support", "stats", "interval")


def _counterpart(scipys: Any, method: str) -> Any:
    """Our distribution for one of SciPy's."""
    name = getattr(scipys, "name", None) or type(scipys).__name__
    if name not in KNOWN:
        raise errors.MissingRuleError(
            f"scipy.stats.{name}.{method} has no rule for traced values, at "
            f"{errors.user_location()}. The distributions that have are {', '.join(sorted(KNOWN))}."
        )
    return KNOWN[name]


def _of_distribution(method: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        return getattr(_counterpart(self, method), method)(*args, **kwds)

    return call


def _of_frozen(method: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        held = _counterpart(self.dist, method)(*self.args, **self.kwds)
        return getattr(held, method)(*args, **kwds)

    return call


def _of_object(ours: Any, method: str) -> Callable[..., Any]:
    return lambda self, *args, **kwds: getattr(ours, method)(*args, **kwds)


def _of_frozen_object(ours: Any, method: str, parameters: tuple[str, ...]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        held = ours(*(getattr(self, name) for name in parameters))
        return getattr(held, method)(*args, **kwds)

    return call


def _methods() -> dict[tuple[type, str], Callable[..., Any]]:
    generic = ss.rv_continuous.__mro__[1]
    found: dict[tuple[type, str], Callable[..., Any]] = {}
    for kind, own in ((ss.rv_continuous, ("pdf", "logpdf")), (ss.rv_discrete, ("pmf", "logpmf"))):
        for name in (*own, *_OF_POINTS):
            found[kind, name] = _of_distribution(name)
        frozen = type(ss.norm() if kind is ss.rv_continuous else ss.poisson(1))
        for name in own:
            found[frozen, name] = _of_frozen(name)
    for name in _OF_PARAMETERS:
        found[generic, name] = _of_distribution(name)
    for name in ("freeze", "__call__"):
        found[generic, name] = _of_distribution("freeze")
    for name in _OF_POINTS:
        found[type(ss.norm()).__mro__[1], name] = _of_frozen(name)
    samples: dict[str, tuple[Any, tuple[str, ...]]] = {
        "multivariate_normal": (ss.multivariate_normal([0.0]), ("mean", "cov", "allow_singular")),
        "multivariate_t": (ss.multivariate_t([0.0]), ("loc", "shape", "df")),
        "dirichlet": (ss.dirichlet([1.0, 1.0]), ("alpha",)),
        "wishart": (ss.wishart(1, 1), ("df", "scale")),
    }
    for ours in MULTIVARIATE:
        held, parameters = samples[ours.name]
        kind = type(ours.scipys)
        found[kind, "__call__"] = _of_object(ours, "freeze")
        for name in ("logpdf", "pdf", "entropy", "mean", "var", "cov"):
            if hasattr(kind, name) and hasattr(ours, name):
                found[kind, name] = _of_object(ours, name)
        for name in ("logpdf", "pdf"):
            found[type(held), name] = _of_frozen_object(ours, name, parameters)
    for name in ("evaluate", "__call__", "pdf"):
        found[ss.gaussian_kde, name] = evaluate_kde
    found[ss.gaussian_kde, "logpdf"] = evaluate_log_kde
    found[ss.rv_continuous, "expect"] = partial(
        _expect, _of_distribution("pdf"), _of_distribution("cdf")
    )
    return found


def _expect(pdf: Any, cdf: Any, self: Any, *args: Any, **kwds: Any) -> Any:
    def of(ours: Any, scipys: Any) -> Any:
        return lambda *args, **kwds: (
            ours(self, *args, **kwds)
            if is_traced(*args, *kwds.values())
            else scipys(*args, **kwds)  # of a distribution that need not be one of ours
        )

    return expect(self, of(pdf, self.pdf), of(cdf, self.cdf), *args, **kwds)


METHODS = _methods()
CLOSES_OVER = frozenset({"rv_continuous.expect"})  # its function may close over traced values
