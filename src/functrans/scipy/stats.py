"""Densities and distribution functions of scipy.stats, for traced values and parameters.

Each distribution is a namespace with SciPy's names and arguments. Everything may be traced: the point, the
location, the scale and the shape parameters. Outside its support a density is 0 and its logarithm -inf,
with derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.scipy import linalg
from functrans.scipy.loading import load
from functrans.surface.table import as_array

sc = load("scipy.special")

__all__ = [
    "beta",
    "dirichlet",
    "gamma",
    "laplace",
    "logistic",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
]


def __dir__() -> list[str]:
    return __all__


_LOG_ROOT_2PI = math.log(2 * math.pi) / 2


def _standardized(x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    scale = as_array(scale)
    return (as_array(x) - as_array(loc)) / scale, scale


def _inside(supported: Any, z: Any, anywhere: float, log_density: Callable[[Any], Any]) -> Any:
    """log_density(z) where z is supported, and -inf elsewhere; `anywhere` is a point of the support."""
    supported = supported | np.isnan(z)  # nan stays nan
    return np.where(supported, log_density(np.where(supported, z, anywhere)), -np.inf)[()]


class norm:
    """The normal distribution.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import norm
    >>> float(grad(norm.logpdf, 1)(2.0, 0.5, 1.0))
    1.5
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        return -z * z / 2 - _LOG_ROOT_2PI - np.log(scale)

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(norm.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.ndtr(_standardized(x, loc, scale)[0])

    @staticmethod
    def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.log_ndtr(_standardized(x, loc, scale)[0])

    @staticmethod
    def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.ndtr(-_standardized(x, loc, scale)[0])

    @staticmethod
    def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.log_ndtr(-_standardized(x, loc, scale)[0])

    @staticmethod
    def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return as_array(loc) + as_array(scale) * sc.ndtri(as_array(q))


class t:
    """Student's t distribution with df degrees of freedom.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import t
    >>> float(grad(t.logpdf)(1.0, 3.0))
    -1.0
    """

    @staticmethod
    def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        df = as_array(df)
        constant = sc.betaln(0.5, df / 2) + np.log(df) / 2 + np.log(scale)
        return -(df + 1) / 2 * np.log1p(z * z / df) - constant

    @staticmethod
    def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(t.logpdf(x, df, loc, scale))

    @staticmethod
    def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.stdtr(as_array(df), _standardized(x, loc, scale)[0])

    @staticmethod
    def ppf(q: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
        q = as_array(q)
        z = np.where(
            q == 0, -np.inf, sc.stdtrit(as_array(df), q)
        )  # at 0 SciPy's has the wrong sign
        return as_array(loc) + as_array(scale) * z


class gamma:
    """The gamma distribution with shape parameter a.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import gamma
    >>> float(grad(gamma.logpdf)(2.0, 3.0))
    0.0
    """

    @staticmethod
    def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        a = as_array(a)
        constant = sc.gammaln(a) + np.log(scale)
        return _inside(z >= 0, z, 1.0, lambda z: sc.xlogy(a - 1, z) - z - constant)

    @staticmethod
    def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(gamma.logpdf(x, a, loc, scale))

    @staticmethod
    def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, _ = _standardized(x, loc, scale)
        below = z <= 0
        return np.where(below, 0, sc.gammainc(as_array(a), np.where(below, 1, z)))[()]

    @staticmethod
    def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, _ = _standardized(x, loc, scale)
        below = z <= 0
        return np.where(below, 1, sc.gammaincc(as_array(a), np.where(below, 1, z)))[()]


class beta:
    """The beta distribution with shape parameters a and b.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import beta
    >>> float(grad(beta.logpdf)(0.5, 2.0, 2.0))
    0.0
    """

    @staticmethod
    def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        a, b = as_array(a), as_array(b)
        constant = sc.betaln(a, b) + np.log(scale)
        return _inside(
            (z >= 0) & (z <= 1),
            z,
            0.5,
            lambda z: sc.xlogy(a - 1, z) + sc.xlog1py(b - 1, -z) - constant,
        )

    @staticmethod
    def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(beta.logpdf(x, a, b, loc, scale))

    @staticmethod
    def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, _ = _standardized(x, loc, scale)
        outside = (z <= 0) | (z >= 1)
        inner = sc.betainc(as_array(a), as_array(b), np.where(outside, 0.5, z))
        return np.where(outside, np.where(z <= 0, 0.0, 1.0), inner)[()]


class poisson:
    """The Poisson distribution with mean mu, on the integers from `loc` upward.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import poisson
    >>> float(grad(poisson.logpmf, 1)(3, 2.0))
    0.5
    """

    @staticmethod
    def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
        count = as_array(k) - as_array(loc)
        mu = as_array(mu)
        whole = (count >= 0) & (count == np.floor(count))
        return _inside(whole, count, 0.0, lambda n: sc.xlogy(n, mu) - mu - sc.gammaln(n + 1.0))

    @staticmethod
    def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
        return np.exp(poisson.logpmf(k, mu, loc))

    @staticmethod
    def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
        count = np.floor(as_array(k) - as_array(loc))
        return np.where(count < 0, 0, sc.pdtr(np.maximum(count, 0), as_array(mu)))[()]


class laplace:
    """The Laplace distribution.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import laplace
    >>> float(grad(laplace.logpdf)(2.0, 0.5, 1.0))
    -1.0
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        return -np.abs(z) - np.log(2 * scale)

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(laplace.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, _ = _standardized(x, loc, scale)
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z > 0, 1 - tail, tail)[()]

    @staticmethod
    def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, _ = _standardized(x, loc, scale)
        right = np.log1p(-np.exp(-np.abs(z)) / 2)
        return np.where(z > 0, right, -np.abs(z) - math.log(2))[()]


class logistic:
    """The logistic distribution.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.stats import logistic
    >>> float(grad(logistic.cdf)(0.0))
    0.25
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z, scale = _standardized(x, loc, scale)
        return sc.log_expit(z) + sc.log_expit(-z) - np.log(scale)

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.exp(logistic.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.expit(_standardized(x, loc, scale)[0])

    @staticmethod
    def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.log_expit(_standardized(x, loc, scale)[0])

    @staticmethod
    def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return sc.expit(-_standardized(x, loc, scale)[0])

    @staticmethod
    def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return as_array(loc) + as_array(scale) * sc.logit(as_array(q))


class dirichlet:
    """The Dirichlet distribution with concentrations alpha; x is a point, or points in columns.

    As in SciPy, the last entry of a point may be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import dirichlet
    >>> grad(dirichlet.logpdf)(np.array([0.25, 0.75]), np.array([2.0, 4.0]))
    array([4., 4.])
    """

    @staticmethod
    def logpdf(x: Any, alpha: Any) -> Any:
        point, alpha = as_array(x), as_array(alpha)
        if shape_of(point)[0] == shape_of(alpha)[0] - 1:
            point = np.concatenate([point, 1 - np.sum(point, axis=0, keepdims=True)], axis=0)
        concentrations = alpha.reshape(shape_of(alpha) + (1,) * (len(shape_of(point)) - 1))
        constant = np.sum(sc.gammaln(alpha)) - sc.gammaln(np.sum(alpha))
        return np.sum(sc.xlogy(concentrations - 1, point), axis=0) - constant

    @staticmethod
    def pdf(x: Any, alpha: Any) -> Any:
        return np.exp(dirichlet.logpdf(x, alpha))


class multivariate_normal:
    """The multivariate normal distribution; the last axis of x holds the vectors.

    `cov` is a matrix, the diagonal of one, or a number. It must be positive definite; only the lower
    triangle of a matrix is read.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import multivariate_normal
    >>> cov = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> grad(multivariate_normal.logpdf)(np.ones(2), np.zeros(2), cov)
    array([-0.5 , -0.25])
    """

    @staticmethod
    def logpdf(x: Any, mean: Any = None, cov: Any = 1) -> Any:
        x, cov = as_array(x), as_array(cov)
        mean = None if mean is None else as_array(mean)
        given = [shape_of(each)[-1:] for each in (cov, mean) if each is not None]
        size = next((shape[0] for shape in given if shape), None)
        if size is None:
            size = shape_of(x)[-1] if len(shape_of(x)) > 1 else 1
        if len(shape_of(cov)) < 2:
            cov = cov * np.eye(size)
        if len(shape_of(x)) == 0:
            x = x.reshape((1,))
        elif len(shape_of(x)) == 1 and size == 1:
            x = x[:, None]
        gap = x if mean is None else x - mean
        factor = linalg.cholesky(cov, lower=True)
        rows = gap.reshape((-1, size))
        white = linalg.solve_triangular(factor, rows.T, lower=True)
        distance = np.sum(white * white, axis=0).reshape(shape_of(gap)[:-1])
        scale = np.sum(np.log(np.diagonal(factor)))
        out = -distance / 2 - scale - size * _LOG_ROOT_2PI
        return out[0] if shape_of(out) == (1,) else out

    @staticmethod
    def pdf(x: Any, mean: Any = None, cov: Any = 1) -> Any:
        return np.exp(multivariate_normal.logpdf(x, mean, cov))
