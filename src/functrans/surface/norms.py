"""NumPy's norms of vectors and matrices, condition numbers and ranks.

The derivative of a norm at 0 is 0, and so is that of the absolute value of an entry, even inside other norms.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import reduction
from functrans.ops.elementwise import root_of_squares
from functrans.surface.linalg import as_matrices, as_square, inv, slogdet, svd
from functrans.surface.table import (
    as_array,
    as_number,
    axis_tuple,
    implements,
    ndim_of,
    returns_numbers,
)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    a = as_array(x)
    if dtype_of(a).kind not in "fc":
        a = a.astype(np.float64)
    ndim = ndim_of(a)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and ndim == 2) or (ord == 2 and ndim == 1)
    ):
        return _euclidean(a, tuple(range(ndim)), keepdims)
    if axis is not None and not isinstance(axis, tuple):
        try:
            axis = int(axis)
        except Exception as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    axes = axis_tuple(axis, ndim)
    if len(axes) == 1:
        return _vector_norm(a, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(a, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _euclidean(a: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    squares = (a * np.conj(a)).real if dtype_of(a).kind == "c" else a * a
    return root_of_squares(reduction.sum(squares, axis=axes, keepdims=bool(keepdims)))


def _largest(a: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    """The largest of non-negative values, and 0 if there is none."""
    shape = shape_of(a)
    if prod(shape[k] for k in axes):
        return np.max(a, axis=axes, keepdims=bool(keepdims))
    kept = (1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes)
    return np.zeros(tuple(kept), dtype_of(a))


def _vector_norm(a: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    keep = bool(keepdims)
    if ord is None or ord == 2:
        return _euclidean(a, axes, keep)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    sizes = np.abs(a)
    if ord == np.inf:
        return _largest(sizes, axes, keep)
    if ord == -np.inf:
        return np.min(sizes, axis=axes, keepdims=keep)
    if ord == 0:
        return np.sum((a != 0).astype(dtype_of(sizes)), axis=axes, keepdims=keep)
    if ord == 1:
        return np.sum(sizes, axis=axes, keepdims=keep)
    # (Σ |x|^p)^(1/p), kept away from 0, where the powers have no derivative: an element of 0 adds
    # nothing if p > 0, and makes the norm 0 if p < 0.
    zero = sizes == 0
    total = np.sum(np.where(zero, 0, np.where(zero, 1, sizes) ** ord), axis=axes, keepdims=keep)
    vanishes = total == 0 if ord > 0 else np.any(zero, axis=axes, keepdims=keep)
    return as_number(np.where(vanishes, 0, np.where(vanishes, 1, total) ** (1 / ord)))


def _matrix_norm(a: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    x = np.moveaxis(a, axes, (-2, -1))
    if ord in (None, "f", "fro"):
        result = _euclidean(x, (ndim_of(x) - 2, ndim_of(x) - 1), False)
    elif ord in (2, -2, "nuc"):
        values = svd(x, compute_uv=False)
        last = (ndim_of(values) - 1,)
        if ord == 2:
            result = _largest(values, last, False)
        else:
            result = np.sum(values, axis=last) if ord == "nuc" else np.min(values, axis=last)
    elif ord in (1, -1, np.inf, -np.inf):
        # of columns for 1, of rows for inf
        sums = np.sum(np.abs(x), axis=-2 if abs(ord) == 1 else -1)
        last = (ndim_of(sums) - 1,)
        result = _largest(sums, last, False) if ord > 0 else np.min(sums, axis=last)
    else:
        raise ValueError("Invalid norm order for matrices.")
    if not keepdims:
        return result
    return np.reshape(result, tuple(1 if k in axes else n for k, n in enumerate(shape_of(a))))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    a = as_array(x)
    axes = axis_tuple(axis, ndim_of(a))
    if dtype_of(a).kind not in "fc":
        a = a.astype(np.float64)
    return _vector_norm(a, ord, axes, keepdims)


@implements(np.linalg.cond)
@returns_numbers
def cond(x: Any, p: Any = None) -> Any:
    a = as_matrices(x)
    if 0 in shape_of(a)[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        values = svd(a, compute_uv=False)
        first, last = values[..., 0], values[..., -1]
        zero = last == 0 if p != -2 else first == 0
        above, below = (last, first) if p == -2 else (first, last)
        return _unless_nan(a, np.where(zero, np.inf, above / np.where(zero, 1, below)))
    a = as_square(a)
    singular = slogdet(a).sign == 0
    safe = np.where(
        np.expand_dims(singular, (-2, -1)), np.eye(shape_of(a)[-1], dtype=dtype_of(a)), a
    )
    product = norm(safe, p, (-2, -1)) * norm(inv(safe), p, (-2, -1))
    return _unless_nan(a, np.where(singular, np.inf, product))


def _unless_nan(matrices: Any, number: Any) -> Any:
    """A condition number is nan only if the matrix contains nan, and infinite for inf / inf."""
    given = np.any(np.isnan(matrices), axis=(-2, -1))
    return np.where(np.isnan(number) & ~given, np.inf, number)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    a = as_array(A)
    if ndim_of(a) < 2:
        return np.any(a != 0).astype(np.int64)
    values = svd(a, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        limit = as_array(tol)[..., None]
    else:
        if rtol is None:
            share: Any = max(shape_of(a)[-2:]) * np.finfo(dtype_of(values)).eps
        else:
            share = as_array(rtol)[..., None]
        limit = _largest(values, (ndim_of(values) - 1,), True) * share
    return np.count_nonzero(values > limit, axis=-1)
