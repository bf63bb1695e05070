"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.surface.calculus import convolve
from functrans.surface.linalg import are_real, least_squares
from functrans.surface.table import as_array, decided, implements, known, ndim_of


def _coefficients(p: Any) -> Any:
    return np.atleast_1d(as_array(p.coeffs if isinstance(p, np.poly1d) else p))


def _trimmed(p: Any) -> Any:
    """Coefficients without leading zeros, as in np.poly1d; the number of zeros must be known."""
    x = _coefficients(p)
    if not shape_of(x)[0]:
        return np.zeros(1, dtype_of(x))
    some = np.any(x != 0)
    leading = np.where(some, np.argmax(x != 0), shape_of(x)[0] - 1)
    return x[int(concrete(leading)) :]


def _answer(result: Any, *given: Any) -> Any:
    return np.poly1d(result) if any(isinstance(p, np.poly1d) for p in given) else result


def _same_length(a1: Any, a2: Any) -> tuple[Any, Any]:
    x, y = _coefficients(a1), _coefficients(a2)
    missing = shape_of(y)[0] - shape_of(x)[0]
    x = np.concatenate([np.zeros(max(missing, 0), dtype_of(x)), x])
    y = np.concatenate([np.zeros(max(-missing, 0), dtype_of(y)), y])
    return x, y


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    x, y = _same_length(a1, a2)
    return _answer(x + y, a1, a2)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    x, y = _same_length(a1, a2)
    return _answer(x - y, a1, a2)


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    return _answer(convolve(_trimmed(a1), _trimmed(a2)), a1, a2)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> Any:
    rest, divisor = _coefficients(u) + 0.0, _coefficients(v) + 0.0
    m, n = shape_of(rest)[0] - 1, shape_of(divisor)[0] - 1
    scale = 1.0 / divisor[0]
    dtype = np.result_type(dtype_of(rest), dtype_of(divisor))
    rest = rest.astype(dtype)
    quotient = []
    for k in range(m - n + 1):
        factor = scale * rest[k]
        quotient.append(factor)
        before, after = np.zeros(k, dtype), np.zeros(m - n - k, dtype)
        rest = rest - np.concatenate([before, factor * divisor, after])
    # The remainder's highest powers are rounding errors, which are cut off as in NumPy.
    small = np.asarray(concrete(np.isclose(rest, 0, rtol=1e-14)))
    keep = int(np.argmin(small)) if not small.all() else m
    q = np.stack(quotient) if quotient else np.zeros(1, dtype)
    return _answer(q, u, v), _answer(rest[keep:], u, v)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Horner's scheme."""
    at = x if isinstance(x, np.poly1d) else as_array(x)
    result: Any = 0 if isinstance(x, np.poly1d) else np.zeros_like(at)
    for coefficient in _coefficients(p):
        result = result * at + coefficient
    return result


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    order = int(m)
    if order < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    x = _coefficients(p)
    for _ in range(order):
        x = x[:-1] * np.arange(shape_of(x)[0] - 1, 0, -1)
    return _answer(x, p)


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    order = int(m)
    if order < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    if not order:
        return _answer(as_array(p), p)
    constants = np.atleast_1d(as_array(0.0 if k is None else k))
    if shape_of(constants)[0] == 1:
        constants = np.broadcast_to(constants, (order,))
    if shape_of(constants)[0] < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    x = _coefficients(p)
    for step in range(order):
        x = np.concatenate([x / np.arange(shape_of(x)[0], 0, -1), constants[step : step + 1]])
    return _answer(x, p)


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros = np.atleast_1d(as_array(seq_of_zeros))
    if ndim_of(zeros) == 2 and shape_of(zeros)[0] == shape_of(zeros)[1]:
        zeros = np.linalg.eigvals(zeros)
    elif ndim_of(zeros) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    zeros = zeros.astype(np.dtype(np.mintypecode(dtype_of(zeros).char)))
    one = np.ones(1, dtype_of(zeros))
    result: Any = one
    for k in range(shape_of(zeros)[0]):
        result = convolve(result, np.concatenate([one, -zeros[k : k + 1]]))
    if dtype_of(result).kind == "c":  # zeros in conjugate pairs have real coefficients
        paired = np.all(np.sort_complex(zeros) == np.sort_complex(np.conjugate(zeros)))
        what = "np.poly of complex zeros gives real or complex coefficients"
        remedy = "Multiply the factors yourself, with np.convolve."
        return result.real if decided(paired, what, remedy) else result
    return result


@implements(np.roots)
def roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix."""
    x = _coefficients(p)
    if ndim_of(x) != 1:
        raise ValueError("Input must be a rank-1 array.")
    places = np.asarray(concrete(x != 0)).nonzero()[0]
    if not len(places):
        return np.zeros(0)
    at_zero = shape_of(x)[0] - int(places[-1]) - 1
    x = x[int(places[0]) : int(places[-1]) + 1]
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    degree = shape_of(x)[0] - 1
    if not degree:
        return np.zeros(at_zero)
    below = np.eye(degree, dtype=dtype_of(x))[:-1]
    companion = np.concatenate([(-x[1:] / x[0])[None], below])
    found = np.linalg.eigvals(companion)
    if dtype_of(found).kind == "c" and are_real(companion, found):  # with all versions of NumPy
        found = found.real
    return np.concatenate([found, np.zeros(at_zero, dtype_of(found))])


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    points = as_array(x)
    if ndim_of(points) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = shape_of(points)[0] if N is None else int(N)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    dtype = np.promote_types(dtype_of(points), int)
    return np.power(points.astype(dtype)[:, None], powers)


@implements(np.polyfit)
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    terms = int(deg) + 1
    points, values = as_array(x) + 0.0, as_array(y) + 0.0
    count = shape_of(points)[0] if ndim_of(points) else 0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if ndim_of(points) != 1:
        raise TypeError("expected 1D vector for x")
    if not count:
        raise TypeError("expected non-empty vector for x")
    if ndim_of(values) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(values)[0] != count:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = count * np.finfo(dtype_of(points)).eps
    matrix, right = vander(points, terms), values
    if w is not None:
        weights = as_array(w) + 0.0
        if ndim_of(weights) != 1:
            raise TypeError("expected a 1-d array for weights")
        if shape_of(weights)[0] != count:
            raise TypeError("expected w and y to have the same length")
        matrix = matrix * weights[:, None]
        right = right * (weights[:, None] if ndim_of(right) == 2 else weights)
    # Columns of length 1 make the condition number small.
    scale = np.sqrt(np.sum(matrix * matrix, axis=0))
    matrix = matrix / scale
    if full:
        solution, residuals, rank, singular = np.linalg.lstsq(matrix, right, rcond)
        return _unscaled(solution, scale), residuals, rank, singular, rcond
    columns, targets, rank, _ = least_squares(matrix, right, rcond)
    fit = _unscaled(columns[:, 0] if ndim_of(values) == 1 else columns, scale)
    if known(rank != terms):
        warnings.warn(
            "Polyfit may be poorly conditioned",
            np.exceptions.RankWarning,
            stacklevel=errors.user_depth(),
        )
    if not cov:
        return fit
    base = np.linalg.inv(np.matmul(np.transpose(matrix), matrix)) / np.outer(scale, scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if count <= terms:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = np.sum((targets - matrix @ columns) ** 2, axis=0) / (count - terms)
    return fit, (base * factor if ndim_of(values) == 1 else base[:, :, None] * factor)


def _unscaled(solution: Any, scale: Any) -> Any:
    return solution / (scale[:, None] if ndim_of(solution) == 2 else scale)
