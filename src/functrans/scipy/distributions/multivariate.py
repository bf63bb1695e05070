"""Distributions of vectors and matrices, with SciPy's names and arguments.

A matrix parameter is read from its lower triangle, as in SciPy, and must be positive definite. SciPy also
checks values, for example that the entries of a point of the Dirichlet distribution add up to 1; traced
values are not checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.triangular import triangular_solve
from functrans.scipy import linalg
from functrans.scipy.distributions.family import ss
from functrans.scipy.distributions.methods import FrozenDistribution, Method
from functrans.scipy.loading import load
from functrans.scipy.special import multigammaln
from functrans.surface.table import as_array, holds_tracer, known, ndim_of

sc = load("scipy.special")

_LOG_2PI = math.log(2 * math.pi)


def _floating(x: Any) -> Any:
    array = as_array(x)
    return array if dtype_of(array) == np.float64 and ndim_of(array) else array.astype(np.float64)


def _read_place(mean: Any, matrix: Any) -> tuple[int, Any, Any]:
    """The dimension, the center and the matrix, which may be a diagonal or a number."""
    if isinstance(matrix, ss.Covariance):
        matrix = matrix.covariance
    matrix = _floating(1.0 if matrix is None else matrix)
    if mean is None:
        size = 1 if ndim_of(matrix) < 2 else shape_of(matrix)[0]
        mean = np.zeros(size)
    mean = _floating(mean).reshape(-1)
    size = shape_of(mean)[0]
    if size == 1 and shape_of(matrix) in ((), (1,)):
        matrix = matrix.reshape((1, 1))
    elif ndim_of(matrix) == 0:
        matrix = matrix * np.eye(size)
    elif ndim_of(matrix) == 1:
        matrix = matrix[:, None] * np.eye(shape_of(matrix)[0])
    if shape_of(matrix) != (size, size):
        raise ValueError(
            f"the mean has {size} entries, but the matrix has the shape {shape_of(matrix)}"
        )
    return size, mean, matrix


def _read_points(x: Any, size: int) -> Any:
    x = _floating(x)
    if ndim_of(x) == 0:
        return x.reshape((1,))
    return x[:, None] if ndim_of(x) == 1 and size == 1 else x


def _squeezed(out: Any) -> Any:
    return np.squeeze(out)[()]


def _log_determinant(factor: Any) -> Any:
    return 2 * np.sum(np.log(np.diagonal(factor)))


def _distance(factor: Any, gap: Any) -> Any:
    """gap · matrix⁻¹ · gap along the last axis."""
    rows = gap.reshape((-1, shape_of(gap)[-1]))
    white = triangular_solve(factor, rows.T, lower=True, transposed=False, unit_diagonal=False)
    return np.sum(white * white, axis=0).reshape(shape_of(gap)[:-1])


class _Placed(FrozenDistribution):
    """A distribution with a center and a matrix; some of SciPy's methods do not take `allow_singular`."""

    plain: frozenset[str]

    def parameters_of(self, method: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.args[:-1], {}) if method in self.plain else (self.args, {})

    @property
    def dim(self) -> int:
        """The number of entries of a point."""
        return _read_place(*self.args[:2])[0]

    @property
    def allow_singular(self) -> bool:
        """Whether the matrix may be singular."""
        return bool(self.args[-1])


class multivariate_normal(_Placed):
    """The multivariate normal distribution; the last axis of x holds the vectors.

    `cov` is a matrix, the diagonal of one, or a number; only the lower triangle of a matrix is read. It must
    be positive definite, unless it is not traced and `allow_singular` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import multivariate_normal
    >>> cov = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> grad(multivariate_normal.logpdf)(np.ones(2), np.zeros(2), cov)
    array([-0.5 , -0.25])
    """

    name = "multivariate_normal"
    scipys = ss.multivariate_normal
    plain = frozenset({"entropy"})

    def __init__(
        self,
        mean: Any = None,
        cov: Any = 1,
        allow_singular: bool = False,
        seed: Any = None,
        **kwds: Any,
    ) -> None:
        super().__init__(mean, cov, allow_singular)

    @property
    def mean(self) -> Any:
        """The mean."""
        return _read_place(*self.args[:2])[1].copy()

    @property
    def cov(self) -> Any:
        """The covariance matrix."""
        return _read_place(*self.args[:2])[2].copy()

    @Method
    def logpdf(
        cls: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False
    ) -> Any:
        """The logarithm of the density."""
        size, mean, cov = _read_place(mean, cov)
        gap = _read_points(x, size) - mean
        if allow_singular and (found := _singular(cov)) is not None:
            # On the plane that the distribution lives on; elsewhere the density is 0.
            whitening, missing, tolerance, scale, rank = found
            distance = np.sum((gap @ whitening) ** 2, axis=-1)
            off = np.sum((gap @ missing) ** 2, axis=-1) >= tolerance**2
            out = np.where(off, -np.inf, -(distance + scale + rank * _LOG_2PI) / 2)
            return _squeezed(out)
        factor = linalg.cholesky(cov, lower=True)
        out = -(_distance(factor, gap) + _log_determinant(factor) + size * _LOG_2PI) / 2
        return _squeezed(out)

    @Method
    def pdf(cls: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
        """The density."""
        return np.exp(cls.logpdf(x, mean, cov, allow_singular))

    @Method
    def entropy(cls: Any, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy, in nats."""
        size, _, cov = _read_place(mean, cov)
        factor = linalg.cholesky(cov, lower=True)
        return (size * (_LOG_2PI + 1) + _log_determinant(factor)) / 2


def _singular(cov: Any) -> Any:
    """For a singular matrix: its whitening, its null space and how far a point may be off its plane, its
    log pseudo-determinant and its rank, by SciPy's tolerances."""
    plain = known(cov)
    if plain is None:
        return None
    values, vectors = np.linalg.eigh(plain)
    smallest = 1e6 * np.finfo(np.float64).eps * np.max(np.abs(values))
    large = values > smallest
    if np.all(large):
        return None
    if holds_tracer(cov):
        raise errors.MissingRuleError(
            "multivariate_normal with a singular covariance matrix that is traced has no derivative "
            f"with respect to it, at {errors.user_location()}. Hold it constant, or add a small multiple "
            "of np.eye(n) to it."
        )
    whitening = vectors[:, large] / np.sqrt(values[large])
    scale, rank = np.sum(np.log(values[large])), int(np.sum(large))
    return whitening, vectors[:, ~large], 1e3 * smallest, scale, rank


class multivariate_t(_Placed):
    """The multivariate t distribution with df degrees of freedom; the last axis of x holds the vectors.

    `shape` is a positive definite matrix, the diagonal of one, or a number; only the lower triangle of a
    matrix is read.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import multivariate_t
    >>> grad(multivariate_t.logpdf)(np.ones(2), np.zeros(2), np.eye(2), 3.0)
    array([-1., -1.])
    """

    name = "multivariate_t"
    scipys = ss.multivariate_t
    plain = frozenset({"logpdf", "entropy"})

    def __init__(
        self,
        loc: Any = None,
        shape: Any = 1,
        df: Any = 1,
        allow_singular: bool = False,
        seed: Any = None,
    ) -> None:
        super().__init__(loc, shape, df, allow_singular)

    @property
    def loc(self) -> Any:
        """The center."""
        return _read_place(*self.args[:2])[1].copy()

    @property
    def shape(self) -> Any:
        """The matrix of scales."""
        return _read_place(*self.args[:2])[2].copy()

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.args[2]

    @Method
    def logpdf(cls: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density."""
        size, loc, shape = _read_place(loc, shape)
        gap, df = _read_points(x, size) - loc, _floating(df)
        factor = linalg.cholesky(shape, lower=True)
        distance = _distance(factor, gap)
        normal = np.isposinf(df)
        df = np.where(normal, 1.0, df)
        constant = sc.gammaln((df + size) / 2) - sc.gammaln(df / 2) - size / 2 * np.log(df * np.pi)
        heavy = constant - (df + size) / 2 * np.log1p(distance / df)
        light = -(distance + size * _LOG_2PI) / 2
        return _squeezed(np.where(normal, light, heavy) - _log_determinant(factor) / 2)

    @Method
    def pdf(
        cls: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: Any = False
    ) -> Any:
        """The density."""
        return np.exp(cls.logpdf(x, loc, shape, df))

    @Method
    def entropy(cls: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The differential entropy, in nats."""
        size, _, shape = _read_place(loc, shape)
        factor = linalg.cholesky(shape, lower=True)
        df = _floating(df)
        half, own = (size + df) / 2, df / 2
        constant = sc.gammaln(own) - sc.gammaln(half) + size / 2 * np.log(df * np.pi)
        return constant + half * (sc.psi(half) - sc.psi(own)) + _log_determinant(factor) / 2


class dirichlet(FrozenDistribution):
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

    name = "dirichlet"
    scipys = ss.dirichlet

    def __init__(self, alpha: Any, seed: Any = None) -> None:
        super().__init__(alpha)

    @property
    def alpha(self) -> Any:
        """The concentrations."""
        return self.args[0]

    @Method
    def logpdf(cls: Any, x: Any, alpha: Any) -> Any:
        """The logarithm of the density."""
        point, alpha = _floating(x), _floating(alpha)
        if shape_of(point)[0] == shape_of(alpha)[0] - 1:
            point = np.concatenate([point, 1 - np.sum(point, axis=0, keepdims=True)], axis=0)
        concentrations = alpha.reshape(shape_of(alpha) + (1,) * (ndim_of(point) - 1))
        constant = np.sum(sc.gammaln(alpha)) - sc.gammaln(np.sum(alpha))
        return _squeezed(np.sum(sc.xlogy(concentrations - 1, point), axis=0) - constant)

    @Method
    def pdf(cls: Any, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(cls.logpdf(x, alpha))

    @Method
    def mean(cls: Any, alpha: Any) -> Any:
        """The expected point."""
        alpha = _floating(alpha)
        return _squeezed(alpha / np.sum(alpha))

    @Method
    def var(cls: Any, alpha: Any) -> Any:
        """The variances of the entries."""
        alpha = _floating(alpha)
        total = np.sum(alpha)
        return _squeezed(alpha * (total - alpha) / (total * total * (total + 1)))

    @Method
    def cov(cls: Any, alpha: Any) -> Any:
        """The covariance matrix."""
        alpha = _floating(alpha)
        total = np.sum(alpha)
        share = alpha / total
        spread = share[:, None] * np.eye(shape_of(alpha)[0]) - share[:, None] * share
        return _squeezed(spread / (total + 1))

    @Method
    def entropy(cls: Any, alpha: Any) -> Any:
        """The differential entropy, in nats."""
        alpha = _floating(alpha)
        total, count = np.sum(alpha), shape_of(alpha)[0]
        constant = np.sum(sc.gammaln(alpha)) - sc.gammaln(total)
        return constant + (total - count) * sc.psi(total) - np.sum((alpha - 1) * sc.psi(alpha))


class wishart(FrozenDistribution):
    """The Wishart distribution of positive definite matrices; a third axis of x holds several of them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.stats import wishart
    >>> round(float(grad(lambda df: wishart.logpdf(np.eye(2), df, np.eye(2)))(4.0)), 6)
    -0.922784
    """

    name = "wishart"
    scipys = ss.wishart

    def __init__(self, df: Any, scale: Any, seed: Any = None) -> None:
        super().__init__(df, scale)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.args[0]

    @property
    def scale(self) -> Any:
        """The matrix of scales."""
        return self.args[1]

    @Method
    def logpdf(cls: Any, x: Any, df: Any, scale: Any) -> Any:
        """The logarithm of the density."""
        df, scale, x = _floating(df), _matrix(scale), _floating(x)
        size = shape_of(scale)[0]
        if ndim_of(x) < 2:
            x = x.reshape(-1)[:, None, None] * np.eye(size)
        elif ndim_of(x) == 3:
            x = np.moveaxis(x, -1, 0)
        factor = linalg.cholesky(scale, lower=True)
        inner = linalg.cholesky(x, lower=True)
        log_x = 2 * np.sum(np.log(np.diagonal(inner, axis1=-2, axis2=-1)), axis=-1)
        white = linalg.solve_triangular(
            factor, inner, lower=True
        )  # tr(scale⁻¹ x) is its square norm
        trace = np.sum(white * white, axis=(-2, -1))
        constant = df * size * math.log(2) / 2 + df / 2 * _log_determinant(factor)
        constant = constant + multigammaln(df / 2, size)
        return _squeezed((df - size - 1) / 2 * log_x - trace / 2 - constant)

    @Method
    def pdf(cls: Any, x: Any, df: Any, scale: Any) -> Any:
        """The density."""
        return np.exp(cls.logpdf(x, df, scale))

    @Method
    def mean(cls: Any, df: Any, scale: Any) -> Any:
        """The expected matrix."""
        return _squeezed(_floating(df) * _matrix(scale))

    @Method
    def var(cls: Any, df: Any, scale: Any) -> Any:
        """The variances of the entries."""
        scale = _matrix(scale)
        sides = np.diagonal(scale)
        return _squeezed(_floating(df) * (scale * scale + sides[:, None] * sides))


def _matrix(scale: Any) -> Any:
    scale = _floating(scale)
    if ndim_of(scale) == 0:
        return scale.reshape((1, 1))
    return scale[:, None] * np.eye(shape_of(scale)[0]) if ndim_of(scale) == 1 else scale


MULTIVARIATE = (multivariate_normal, multivariate_t, dirichlet, wishart)
