"""Statistics of samples, with SciPy's names and arguments; `functrans.scipy.stats` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy import linalg
from functrans.scipy.loading import load
from functrans.scipy.special import logsumexp
from functrans.surface.table import as_array, holds_tracer, ndim_of

sc = load("scipy.special")
ss = load("scipy.stats")


def _sample(a: Any, axis: Any, name: str, nan_policy: str = "propagate") -> tuple[Any, Any]:
    """A sample of floating point numbers, and the axis along which it lies."""
    if nan_policy != "propagate":
        raise errors.MissingRuleError(
            f"scipy.stats.{name} with nan_policy={nan_policy!r} has no rule for traced values, at "
            f"{errors.user_location()}. Remove nan from the sample first."
        )
    x = as_array(a)
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _traced(*values: Any) -> bool:
    return holds_tracer(values)


def _count(x: Any, axis: Any) -> int:
    axes = axis if isinstance(axis, tuple) else (axis,)
    return int(np.prod([shape_of(x)[each] for each in axes]))


def _weighted(x: Any, axis: Any, weights: Any, keepdims: bool) -> Any:
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    return np.average(x, axis=axis, weights=as_array(weights), keepdims=keepdims)  # type: ignore[call-overload]


def zmap(
    scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Any:
    """Scores relative to the mean and the standard deviation of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import zmap
    >>> grad(lambda x: np.sum(zmap(x, np.array([1.0, 3.0]))))(np.array([4.0]))
    array([1.])
    """
    if not _traced(scores, compare):
        return ss.zmap(scores, compare, axis, ddof, nan_policy)
    sample, along = _sample(compare, axis, "zmap", nan_policy)
    points, _ = _sample(scores, 0, "zmap")
    mean = np.mean(sample, axis=along, keepdims=axis is not None)
    spread = np.std(sample, axis=along, ddof=ddof, keepdims=axis is not None)
    return (points - mean) / spread


def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """A sample shifted and scaled to mean 0 and standard deviation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> from functrans.scipy.stats import zscore
    >>> jvp(zscore, (np.array([1.0, 3.0]),), (np.array([1.0, 1.0]),))[1]
    array([0., 0.])
    """
    if not _traced(a):
        return ss.zscore(a, axis, ddof, nan_policy)
    return zmap(a, a, axis, ddof, nan_policy)


def gmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The geometric mean.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import gmean
    >>> grad(gmean)(np.array([1.0, 4.0]))
    array([1.  , 0.25])
    """
    if not _traced(a, weights):
        return ss.gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    x, axis = _sample(_cast(a, dtype), axis, "gmean", nan_policy)
    return np.exp(_weighted(np.log(x), axis, weights, keepdims))


def _cast(a: Any, dtype: Any) -> Any:
    return a if dtype is None else as_array(a).astype(dtype)


def hmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The harmonic mean.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import hmean
    >>> grad(hmean)(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """
    if not _traced(a, weights):
        return ss.hmean(a, axis, dtype, weights=weights, nan_policy=nan_policy, keepdims=keepdims)
    x, axis = _sample(_cast(a, dtype), axis, "hmean", nan_policy)
    return np.where(
        np.all(x >= 0, axis=axis, keepdims=keepdims),
        1 / _weighted(1 / x, axis, weights, keepdims),
        np.nan,
    )[()].astype(dtype_of(x))


def pmean(
    a: Any,
    p: Any,
    *,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The power mean with exponent p; the geometric mean for p = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import pmean
    >>> grad(lambda a: pmean(a, 2))(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    """
    options: dict[str, Any] = {"axis": axis, "dtype": dtype, "weights": weights}
    options |= {"nan_policy": nan_policy, "keepdims": keepdims}
    if not _traced(a, p, weights):
        return ss.pmean(a, p, **options)
    if not _traced(p) and p == 0:
        return gmean(a, **options)
    x, axis = _sample(_cast(a, dtype), axis, "pmean", nan_policy)
    mean = _weighted(x**p, axis, weights, keepdims) ** (1 / p)
    valid = np.all(x >= 0, axis=axis, keepdims=keepdims)
    return np.where(valid, mean, np.nan)[()].astype(dtype_of(mean))


def moment(
    a: Any,
    order: Any = 1,
    axis: Any = 0,
    nan_policy: str = "propagate",
    *,
    center: Any = None,
    keepdims: bool = False,
) -> Any:
    """The moments of a sample of whole orders, around the mean or around `center`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import moment
    >>> grad(lambda a: moment(a, 2))(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    if not _traced(a, center):
        return ss.moment(a, order, axis, nan_policy, center=center, keepdims=keepdims)
    x, axis = _sample(a, axis, "moment", nan_policy)
    gap = x - (np.mean(x, axis=axis, keepdims=True) if center is None else center)
    orders = np.asarray(order)
    if np.any(orders != np.round(orders)):
        raise ValueError("moment: All elements of `order` must be integral.")
    if center is None:  # the first moment is 0, without rounding
        powers = [0 * gap if each == 1 else gap ** int(each) for each in orders.reshape(-1)]
    else:
        powers = [gap ** int(each) for each in orders.reshape(-1)]
    found = [np.mean(power, axis=axis, keepdims=keepdims) for power in powers]
    return np.stack(found) if orders.ndim else found[0]


def _central(x: Any, axis: Any, keepdims: bool, *orders: int) -> list[Any]:
    """Central moments, the first of them the variance: nan where the sample is constant to rounding."""
    mean = np.mean(x, axis=axis, keepdims=True)
    gap = x - mean
    found = [np.mean(gap**order, axis=axis, keepdims=keepdims) for order in (2, *orders)]
    eps = float(np.finfo(dtype_of(x)).eps)
    level = np.mean(x, axis=axis, keepdims=keepdims)
    constant = found[0] <= (eps * level) ** 2
    return [np.where(constant, np.nan, found[0]).astype(dtype_of(x)), *found[1:]]


def skew(
    a: Any,
    axis: Any = 0,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The skewness of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import skew
    >>> grad(skew)(np.array([-1.0, 0.0, 1.0])).round(6)
    array([ 0.612372, -1.224745,  0.612372])
    """
    if not _traced(a):
        return ss.skew(a, axis, bias, nan_policy, keepdims=keepdims)
    x, axis = _sample(a, axis, "skew", nan_policy)
    second, third = _central(x, axis, keepdims, 3)
    n = _count(x, axis)
    value = third / second**1.5
    return value if bias or n <= 2 else ((n - 1) * n) ** 0.5 / (n - 2) * value


def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The kurtosis of a sample; `fisher` subtracts 3, that of the normal distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import kurtosis
    >>> grad(kurtosis)(np.array([-1.0, 0.0, 1.0]))
    array([0., 0., 0.])
    """
    if not _traced(a):
        return ss.kurtosis(a, axis, fisher, bias, nan_policy, keepdims=keepdims)
    x, axis = _sample(a, axis, "kurtosis", nan_policy)
    second, fourth = _central(x, axis, keepdims, 4)
    n = _count(x, axis)
    value = fourth / second**2
    if not bias and n > 3:
        value = 3 + ((n * n - 1) * value - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3))
    return value - 3 if fisher else value


def sem(
    a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """The standard error of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import sem
    >>> grad(sem)(np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    """
    if not _traced(a):
        return ss.sem(a, axis, ddof, nan_policy, keepdims=keepdims)
    x, axis = _sample(a, axis, "sem", nan_policy)
    return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims) / _count(x, axis) ** 0.5


def variation(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False
) -> Any:
    """The coefficient of variation, the standard deviation divided by the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import variation
    >>> grad(variation)(np.array([1.0, 3.0]))
    array([-0.375,  0.125])
    """
    if not _traced(a):
        return ss.variation(a, axis, nan_policy, ddof, keepdims=keepdims)
    x, axis = _sample(a, axis, "variation", nan_policy)
    mean = np.mean(x, axis=axis, keepdims=keepdims)
    return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims) / mean


def trim_mean(
    a: Any,
    proportiontocut: Any,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The mean without the smallest and the largest values of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import trim_mean
    >>> grad(lambda a: trim_mean(a, 0.25))(np.array([4.0, 1.0, 9.0, 2.0]))
    array([0.5, 0. , 0. , 0.5])
    """
    if not _traced(a):
        return ss.trim_mean(a, proportiontocut, axis, nan_policy=nan_policy, keepdims=keepdims)
    x, along = _sample(a, axis, "trim_mean", nan_policy)
    n = shape_of(x)[along]
    cut = int(proportiontocut * n)
    if 2 * cut >= n and n:
        raise ValueError("trim_mean: Proportion too big.")
    middle = np.moveaxis(np.sort(x, axis=along), along, 0)[cut : n - cut]
    out = np.mean(middle, axis=0)
    if not keepdims:
        return out
    return out.reshape((1,) * ndim_of(a)) if axis is None else np.expand_dims(out, along)


def iqr(
    x: Any,
    axis: Any = None,
    rng: Any = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The distance between two percentiles, by default between the quartiles.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import iqr
    >>> grad(iqr)(np.array([1.0, 2.0, 4.0, 8.0, 9.0]))
    array([ 0., -1.,  0.,  1.,  0.])
    """
    if not _traced(x, rng, scale):
        return ss.iqr(x, axis, rng, scale, nan_policy, interpolation, keepdims)
    sample, _ = _sample(x, 0, "iqr", nan_policy)
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} not a valid scale for `iqr`")
        scale = 2 * float(sc.ndtri(0.75))
    low, high = sorted(rng)
    ends: Any = [
        np.percentile(sample, each, axis=axis, method=interpolation, keepdims=keepdims)  # type: ignore[call-overload]
        for each in (low, high)
    ]
    return (ends[1] - ends[0]) / scale


def entropy(
    pk: Any,
    qk: Any = None,
    base: Any = None,
    axis: int = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The entropy of probabilities, or their relative entropy to others; both are normalized.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import entropy
    >>> grad(entropy)(np.array([1.0, 1.0]))
    array([0., 0.])
    """
    if not _traced(pk, qk, base):
        return ss.entropy(pk, qk, base, axis, nan_policy=nan_policy, keepdims=keepdims)
    p, axis = _sample(pk, axis, "entropy", nan_policy)
    p = p / np.sum(p, axis=axis, keepdims=True)
    if qk is None:
        terms = sc.entr(p)
    else:
        q, _ = _sample(qk, axis, "entropy")
        terms = sc.rel_entr(p, q / np.sum(q, axis=axis, keepdims=True))
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    return total if base is None else (total / np.log(base)).astype(dtype_of(total))


def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0
) -> Any:
    """The correlation coefficient of two samples, and its p-value; both have derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import pearsonr
    >>> y = np.array([1.0, 0.0, 2.0])
    >>> grad(lambda x: pearsonr(x, y).statistic)(np.array([1.0, 2.0, 3.0]))
    array([ 0.25, -0.5 ,  0.25])
    """
    if not _traced(x, y):
        return ss.pearsonr(x, y, alternative=alternative, method=method, axis=axis)
    if method is not None:
        raise errors.MissingRuleError(
            f"scipy.stats.pearsonr with method= has no rule for traced values, at "
            f"{errors.user_location()}. Leave it out."
        )
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    (a, along), (b, _) = _sample(x, axis, "pearsonr"), _sample(y, axis, "pearsonr")
    a, b = np.broadcast_arrays(a, b)
    n = shape_of(a)[along]
    if n < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    units = []
    for each in (a, b):
        gap = each - np.mean(each, axis=along, keepdims=True)
        units.append(gap / np.sqrt(np.sum(gap * gap, axis=along, keepdims=True)))
    r = np.clip(np.sum(units[0] * units[1], axis=along), -1.0, 1.0)
    half = n / 2 - 1  # under independence (1 + r)/2 has the beta distribution with these parameters
    if n == 2:
        pvalue = np.ones(shape_of(r))[()]
    elif alternative == "two-sided":
        pvalue = 2 * sc.betaincc(half, half, (1 + np.abs(r)) / 2)
    else:
        tail = sc.betaincc if alternative == "greater" else sc.betainc
        pvalue = tail(half, half, (1 + r) / 2)
    kind = type(ss.pearsonr([0.0, 1.0, 1.0], [0.0, 1.0, 0.0]))
    return kind(r, pvalue, alternative=alternative, n=n, x=a, y=b, axis=along)


def boxcox_llf(
    lmb: Any,
    data: Any,
    *,
    axis: Any = 0,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Any:
    """The log-likelihood of the Box-Cox transformation with parameter lmb.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import boxcox_llf
    >>> round(float(grad(boxcox_llf)(0.5, np.array([1.0, 2.0, 4.0]))), 6)
    -0.295476
    """
    if not _traced(lmb, data):
        return ss.boxcox_llf(lmb, data, axis=axis, keepdims=keepdims, nan_policy=nan_policy)
    x, axis = _sample(data, axis, "boxcox_llf", nan_policy)
    logs = np.log(x)
    level = np.mean(logs, axis=axis, keepdims=True)
    # Relative to the geometric mean, powers do not overflow: var x^λ = exp(2λ level) var (x exp(-level))^λ.
    spread = np.var(sc.boxcox(np.exp(logs - level), lmb), axis=axis, keepdims=keepdims)
    level = np.mean(logs, axis=axis, keepdims=keepdims)
    n = _count(x, axis)
    out = (lmb - 1) * n * level - n / 2 * (np.log(spread) + 2 * lmb * level)
    return out.astype(dtype_of(x))


class gaussian_kde:
    """A density estimated from a sample with Gaussian kernels; sample, weights and points may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import gaussian_kde
    >>> density = gaussian_kde(np.array([-1.0, 0.0, 1.0]))
    >>> abs(float(grad(lambda x: density(x)[0])(0.0))) < 1e-15
    True
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        sample, _ = _sample(dataset, 0, "gaussian_kde")
        self.dataset = np.atleast_2d(sample)
        self.d, self.n = shape_of(self.dataset)
        if weights is None:
            self.weights = np.full(self.n, 1 / self.n)
        else:
            self.weights = as_array(weights) / np.sum(as_array(weights))
        self.neff = 1 / np.sum(self.weights * self.weights)
        self.set_bandwidth(bw_method)

    def scotts_factor(self) -> Any:
        """Scott's rule for the width of the kernels."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Silverman's rule for the width of the kernels."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def covariance_factor(self) -> Any:
        """The width of the kernels relative to that of the sample."""
        return self.factor

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Choose the width: "scott", "silverman", a number, or a function of this object."""
        if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
            self.factor = self.scotts_factor()
        elif isinstance(bw_method, str) and bw_method == "silverman":
            self.factor = self.silverman_factor()
        elif callable(bw_method) and not _traced(bw_method):
            self.factor = bw_method(self)
        elif isinstance(bw_method, str):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        else:
            self.factor = bw_method
        self.covariance = _weighted_covariance(self.dataset, self.weights) * self.factor**2

    def evaluate(self, points: Any) -> Any:
        """The density at points, which lie along the last axis."""
        return evaluate_kde(self, points)

    def pdf(self, x: Any) -> Any:
        """The density at points: `evaluate`."""
        return evaluate_kde(self, x)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points."""
        return evaluate_log_kde(self, x)

    __call__ = evaluate


def _weighted_covariance(sample: Any, weights: Any) -> Any:
    gap = sample - np.sum(sample * weights, axis=1, keepdims=True)
    return (gap * weights) @ gap.T / (1 - np.sum(weights * weights))


def evaluate_log_kde(kde: Any, points: Any) -> Any:
    """The logarithm of an estimated density, SciPy's or ours."""
    x, _ = _sample(points, 0, "gaussian_kde")
    x = np.atleast_2d(x)
    rows, count = shape_of(x)
    if rows != kde.d:
        if not (rows == 1 and count == kde.d):
            raise ValueError(f"points have dimension {rows}, dataset has dimension {kde.d}")
        x = x.reshape((kde.d, 1))
    factor = linalg.cholesky(kde.covariance, lower=True)
    white = linalg.solve_triangular(factor, x, lower=True)
    centers = linalg.solve_triangular(factor, kde.dataset, lower=True)
    gap = white[:, :, None] - centers[:, None, :]
    constant = np.sum(np.log(np.diagonal(factor))) + kde.d / 2 * np.log(2 * np.pi)
    exponents = -np.sum(gap * gap, axis=0) / 2
    return logsumexp(exponents, axis=1, b=kde.weights[None, :]) - constant


def evaluate_kde(kde: Any, points: Any) -> Any:
    """An estimated density, SciPy's or ours."""
    return np.exp(evaluate_log_kde(kde, points))
