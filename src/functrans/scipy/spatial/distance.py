"""Distances between vectors, with the names and arguments of scipy.spatial.distance.

A distance is a function of two arrays of vectors along the last axis, which broadcast; `cdist` and `pdist`
apply it to all pairs of rows. Where two vectors coincide, the derivative of a norm of their difference is 0.
What is not traced goes to SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.elementwise import root_of_squares
from functrans.scipy.loading import load
from functrans.surface.table import as_array, holds_tracer, ndim_of

sd = load("scipy.spatial.distance")
sc = load("scipy.special")

__all__ = [
    "braycurtis",
    "canberra",
    "cdist",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "jensenshannon",
    "mahalanobis",
    "minkowski",
    "pdist",
    "seuclidean",
    "sqeuclidean",
    "squareform",
]

# A metric that users write may close over traced values.
CLOSES_OVER = frozenset({"cdist", "pdist"})


def __dir__() -> list[str]:
    return __all__


# The metrics, of vectors along the last axis.


def _weighted(x: Any, w: Any) -> Any:
    return x if w is None else x * w


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(_weighted((u - v) ** 2, w), axis=-1)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return root_of_squares(_sqeuclidean(u, v, w))


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return np.sum(_weighted(np.abs(u - v), w), axis=-1)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """Weights only choose entries, as in SciPy."""
    sizes = np.abs(u - v)
    return np.max(sizes if w is None else np.where(w > 0, sizes, 0), axis=-1)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if not holds_tracer(p):
        if p <= 0:
            raise ValueError("p must be greater than 0")
        special = {1: _cityblock, 2: _euclidean, np.inf: _chebyshev}.get(p)
        if special is not None:
            return special(u, v, w)
    # Kept away from 0, where powers have no derivative.
    sizes = np.abs(u - v)
    there = sizes > 0
    total = np.sum(_weighted(np.where(there, np.where(there, sizes, 1) ** p, 0), w), axis=-1)
    some = total > 0
    return np.where(some, np.where(some, total, 1) ** (1 / p), 0)[()]


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    return _correlation(u, v, w, centered=False)


def _correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    if w is not None:
        w = w / np.sum(w)
    if centered:
        u, v = (
            x - (np.mean(x, axis=-1, keepdims=True) if w is None else np.sum(x * w, -1)[..., None])
            for x in (u, v)
        )
    u_square, v_square = (np.sum(_weighted(x * x, w), axis=-1) for x in (u, v))
    product = np.sum(_weighted(u * v, w), axis=-1)
    return np.clip(1 - product / np.sqrt(u_square * v_square), 0, 2)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    total = np.abs(u) + np.abs(v)
    there = total > 0
    return np.sum(
        _weighted(np.where(there, np.abs(u - v) / np.where(there, total, 1), 0), w), axis=-1
    )


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return _cityblock(u, v, w) / _cityblock(u, -v, w)


def _seuclidean(u: Any, v: Any, V: Any) -> Any:
    return root_of_squares(np.sum((u - v) ** 2 / V, axis=-1))


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    gap = u - v
    return root_of_squares(np.sum((gap @ VI) * gap, axis=-1))


def _jensenshannon(p: Any, q: Any, base: Any = None, axis: int = -1, keepdims: bool = False) -> Any:
    p = p / np.sum(p, axis=axis, keepdims=True)
    q = q / np.sum(q, axis=axis, keepdims=True)
    middle = (p + q) / 2
    terms = sc.rel_entr(p, middle) + sc.rel_entr(q, middle)
    total = np.sum(terms, axis=axis, keepdims=keepdims) / 2
    if base is not None:
        total = total / np.log(base)
    # Rounding may leave a little below 0 where the two coincide.
    return root_of_squares(np.where(total > 0, total, 0).astype(dtype_of(total)))


_METRICS: dict[str, Callable[..., Any]] = {
    "braycurtis": _braycurtis,
    "canberra": _canberra,
    "chebyshev": _chebyshev,
    "cityblock": _cityblock,
    "correlation": _correlation,
    "cosine": _cosine,
    "euclidean": _euclidean,
    "jensenshannon": _jensenshannon,
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "seuclidean": _seuclidean,
    "sqeuclidean": _sqeuclidean,
}
_ALIASES = {
    **dict.fromkeys(("chebychev", "cheby", "cheb", "ch"), "chebyshev"),
    **dict.fromkeys(("cblock", "cb", "c"), "cityblock"),
    **dict.fromkeys(("euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("mahal", "mah"), "mahalanobis"),
    **dict.fromkeys(("mi", "m", "pnorm"), "minkowski"),
    **dict.fromkeys(("se", "s"), "seuclidean"),
    **dict.fromkeys(("sqe", "sqeuclid"), "sqeuclidean"),
    "co": "correlation",
    "cos": "cosine",
    "js": "jensenshannon",
}


# All pairs of rows.


def _rows(x: Any, name: str) -> Any:
    x = as_array(x)
    if dtype_of(x).kind == "c":
        raise TypeError("Complex data must be converted to real before computing distances.")
    if ndim_of(x) != 2:
        raise ValueError(f"{name} must be a 2-dimensional array.")
    return x.astype(np.float64)


def _of_rows(metric: Any, rows: list[Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The metric as a function of two arrays of vectors; `rows` are what its defaults follow from."""
    if not isinstance(metric, str):
        if not callable(metric):
            raise TypeError("2nd argument metric must be a string identifier or a function.")
        return lambda u, v: _looped(metric, u, v, options)
    name = metric.lower()
    name = _ALIASES.get(name, name)
    if name not in _METRICS:
        known = name in getattr(sd, "_METRICS_NAMES", ())
        if not known:
            raise ValueError(f"Unknown Distance Metric: {metric}")
        raise errors.MissingRuleError(
            f"the metric {name!r} counts entries that differ, and has no rule for traced values, at "
            f"{errors.user_location()}. The metrics that have are {', '.join(_METRICS)}."
        )
    options = {
        key: as_array(value) if key in ("w", "V", "VI") else value
        for key, value in options.items()
        if value is not None
    }
    if name == "seuclidean" and "V" not in options:
        options["V"] = np.var(np.concatenate(rows, axis=0), axis=0, ddof=1)
    if name == "mahalanobis" and "VI" not in options:
        every = np.concatenate(rows, axis=0)
        count, size = shape_of(every)
        if count <= size:
            raise ValueError(
                f"The number of observations ({count}) is too small; the covariance matrix is "
                f"singular. For observations with {size} dimensions, at least {size + 1} "
                "observations are required."
            )
        options["VI"] = np.linalg.inv(np.cov(every.T)).T
    return lambda u, v: _METRICS[name](u, v, **options)


def _looped(metric: Any, u: Any, v: Any, options: dict[str, Any]) -> Any:
    """A user's function of two vectors, for every pair."""
    u, v = np.broadcast_arrays(u, v)
    lead, size = shape_of(u)[:-1], shape_of(u)[-1]
    pairs = zip(u.reshape((-1, size)), v.reshape((-1, size)), strict=True)
    found = [as_array(metric(one, other, **options)) for one, other in pairs]
    return np.stack(found).reshape(lead) if found else np.zeros(lead)


def _refuse_out(out: Any, name: str) -> None:
    if out is not None:
        raise errors.MissingRuleError(
            f"scipy.spatial.distance.{name} with out= has no rule for traced values, at "
            f"{errors.user_location()}. Leave it out, and use the returned array."
        )


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances between all rows of one array and all rows of another.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import cdist
    >>> grad(lambda x: cdist(x, np.zeros((1, 2)))[0, 0])(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    if not holds_tracer((XA, XB, tuple(kwargs.values()))) and (
        isinstance(metric, str) or out is not None
    ):
        return sd.cdist(XA, XB, metric, out=out, **kwargs)
    _refuse_out(out, "cdist")
    one, other = _rows(XA, "XA"), _rows(XB, "XB")
    if shape_of(one)[1] != shape_of(other)[1]:
        raise ValueError("XA and XB must have the same number of columns")
    between = _of_rows(metric, [one, other], kwargs)
    return between(one[:, None, :], other[None, :, :])


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances between all pairs of rows of an array, as a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import pdist
    >>> grad(lambda x: pdist(x, "cityblock")[0])(np.array([[1.0, 5.0], [2.0, 3.0]]))
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    if not holds_tracer((X, tuple(kwargs.values()))) and (
        isinstance(metric, str) or out is not None
    ):
        return sd.pdist(X, metric, out=out, **kwargs)
    _refuse_out(out, "pdist")
    rows = _rows(X, "X")
    first, second = np.triu_indices(shape_of(rows)[0], 1)
    between = _of_rows(metric, [rows], kwargs)
    return between(rows[first], rows[second])


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """A vector of distances as a symmetric matrix with a zero diagonal, or back, from the upper triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import squareform
    >>> grad(lambda d: np.sum(squareform(d)[0]))(np.array([1.0, 2.0, 3.0]))
    array([1., 1., 0.])
    """
    if not holds_tracer(X):
        return sd.squareform(X, force, checks)
    x = as_array(X)
    ndim = ndim_of(x)
    forced = {"tomatrix": 1, "tovector": 2}.get(force.lower())
    if forced is not None and ndim != forced:
        raise ValueError(f"Forcing {force!r} but input X is not {forced}-dimensional.")
    if ndim == 1:
        count = shape_of(x)[0]
        size = int(np.ceil(np.sqrt(count * 2))) if count else 1
        if size * (size - 1) != count * 2:
            raise ValueError(
                "Incompatible vector size. It must be a binomial coefficient n choose 2 for some "
                "integer n >= 2."
            )
        # Entry (i, j) of the matrix is where the pair stands in the vector; the diagonal reads a zero.
        places = np.full((size, size), count)
        upper = np.triu_indices(size, 1)
        places[upper] = np.arange(count)
        places = np.minimum(places, places.T)
        return np.concatenate([x, np.zeros(1, dtype_of(x))])[places]
    if ndim == 2:
        rows, columns = shape_of(x)
        if rows != columns:
            raise ValueError("The matrix argument must be square.")
        return x[np.triu_indices(rows, 1)]
    raise ValueError("The first argument must be one or two dimensional array.")


# Two vectors.


def _vector(value: Any) -> Any:
    x = as_array(value)
    if ndim_of(x) != 1:
        raise ValueError("Input vector should be 1-D.")
    return x if dtype_of(x).kind == "f" else x.astype(np.float64)


def _weights(w: Any) -> Any:
    return None if w is None else as_array(w)


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The Euclidean distance between two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import euclidean
    >>> grad(euclidean)(np.array([3.0, 4.0]), np.zeros(2))
    array([0.6, 0.8])
    """
    if not holds_tracer((u, v, w)):
        return sd.euclidean(u, v, w)
    return _euclidean(_vector(u), _vector(v), _weights(w)).astype(np.float64)


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The square of the Euclidean distance between two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import sqeuclidean
    >>> grad(sqeuclidean)(np.array([3.0, 4.0]), np.zeros(2))
    array([6., 8.])
    """
    if not holds_tracer((u, v, w)):
        return sd.sqeuclidean(u, v, w)
    return _sqeuclidean(_vector(u), _vector(v), _weights(w))


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of the absolute differences of two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import cityblock
    >>> grad(cityblock)(np.array([3.0, -4.0]), np.zeros(2))
    array([ 1., -1.])
    """
    if not holds_tracer((u, v, w)):
        return sd.cityblock(u, v, w)
    return _cityblock(_vector(u), _vector(v), _weights(w))


def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """The largest absolute difference of two vectors, where weights are not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import chebyshev
    >>> grad(chebyshev)(np.array([3.0, -4.0]), np.zeros(2))
    array([ 0., -1.])
    """
    if not holds_tracer((u, v, w)):
        return sd.chebyshev(u, v, w)
    return _chebyshev(_vector(u), _vector(v), _weights(w))


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """The p-norm of the difference of two vectors; p may be traced, too.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import minkowski
    >>> grad(minkowski)(np.array([3.0, 4.0]), np.zeros(2), 3).round(6)
    array([0.444851, 0.790847])
    """
    if not holds_tracer((u, v, p, w)):
        return sd.minkowski(u, v, p, w)
    return _minkowski(_vector(u), _vector(v), p, _weights(w)).astype(np.float64)


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """One minus the cosine of the angle between two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import cosine
    >>> grad(cosine)(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    array([ 0., -1.])
    """
    if not holds_tracer((u, v, w)):
        return sd.cosine(u, v, w)
    return _cosine(_vector(u), _vector(v), _weights(w))


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """One minus the correlation coefficient of two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import correlation
    >>> grad(correlation)(np.array([1.0, 0.0, -1.0]), np.array([1.0, -2.0, 1.0])).round(6)
    array([-0.288675,  0.57735 , -0.288675])
    """
    if not holds_tracer((u, v, w)):
        return sd.correlation(u, v, w, centered)
    return _correlation(_vector(u), _vector(v), _weights(w), centered)


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of `|u - v| / (|u| + |v|)` over the entries of two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import canberra
    >>> grad(canberra)(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    array([-0.375,  0.   ])
    """
    if not holds_tracer((u, v, w)):
        return sd.canberra(u, v, w)
    return _canberra(_vector(u), _vector(v), _weights(w)).astype(np.float64)


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of `|u - v|` divided by the sum of `|u + v|`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import braycurtis
    >>> grad(braycurtis)(np.array([1.0]), np.array([3.0]))
    array([-0.375])
    """
    if not holds_tracer((u, v, w)):
        return sd.braycurtis(u, v, w)
    return _braycurtis(_vector(u), _vector(v), _weights(w)).astype(np.float64)


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """The Euclidean distance between two vectors whose entries have the variances V.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import seuclidean
    >>> grad(seuclidean)(np.array([3.0, 4.0]), np.zeros(2), np.array([1.0, 1.0]))
    array([0.6, 0.8])
    """
    if not holds_tracer((u, v, V)):
        return sd.seuclidean(u, v, V)
    return _seuclidean(_vector(u), _vector(v), _vector(V)).astype(np.float64)


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """The distance between two vectors with the inverse covariance matrix VI.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import mahalanobis
    >>> grad(mahalanobis)(np.array([3.0, 4.0]), np.zeros(2), np.eye(2))
    array([0.6, 0.8])
    """
    if not holds_tracer((u, v, VI)):
        return sd.mahalanobis(u, v, VI)
    return _mahalanobis(_vector(u), _vector(v), np.atleast_2d(as_array(VI)))


def jensenshannon(
    p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    """The Jensen-Shannon distance between probabilities, which are normalized.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.distance import jensenshannon
    >>> grad(jensenshannon)(np.array([0.5, 0.5]), np.array([0.2, 0.8])).round(6)
    array([ 0.343752, -0.343752])
    """
    if not holds_tracer((p, q)):
        return sd.jensenshannon(p, q, base, axis=axis, keepdims=keepdims)
    one, other = as_array(p), as_array(q)
    one, other = (x if dtype_of(x).kind == "f" else x.astype(np.float64) for x in (one, other))
    return _jensenshannon(one, other, base, axis, keepdims)
