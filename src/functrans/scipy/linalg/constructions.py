"""Matrices of special forms, products of matrices, and questions about their structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.delegation import delegates
from functrans.scipy.linalg.systems import toeplitz
from functrans.scipy.matrices import sl
from functrans.surface.table import as_array, ndim_of


@delegates(sl.block_diag)
def block_diag(*arrs: Any) -> Any:
    """A matrix with the given matrices along its diagonal, and zeros elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import block_diag
    >>> grad(lambda x: np.sum(block_diag(x, x) @ np.arange(4.0)))(np.ones((1, 2)))
    array([[2., 4.]])
    """
    blocks = [np.atleast_2d(as_array(block)) for block in arrs]
    lead = np.broadcast_shapes(*(shape_of(block)[:-2] for block in blocks))
    dtype = np.result_type(*(dtype_of(block) for block in blocks))
    width = sum(shape_of(block)[-1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        height, columns = shape_of(block)[-2:]
        block = np.broadcast_to(block, (*lead, height, columns)).astype(dtype)
        left = np.zeros((*lead, height, before), dtype)
        right = np.zeros((*lead, height, width - before - columns), dtype)
        rows.append(np.concatenate([left, block, right], axis=-1))
        before += columns
    return np.concatenate(rows, axis=-2)


@delegates(sl.circulant)
def circulant(c: Any) -> Any:
    """The matrix whose columns are c, shifted by one more place each.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import circulant
    >>> grad(lambda c: np.sum(circulant(c)[0]))(np.ones(3))
    array([1., 1., 1.])
    """
    column = np.atleast_1d(as_array(c))
    n = shape_of(column)[-1]
    return column[..., (np.arange(n)[:, None] - np.arange(n)) % n]


@delegates(sl.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with constant antidiagonals, from its first column and last row.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import hankel
    >>> grad(lambda c: np.sum(hankel(c)))(np.ones(3))
    array([1., 2., 3.])
    """
    column = np.ravel(as_array(c))
    row = np.zeros_like(column) if r is None else np.ravel(as_array(r))
    height, width = shape_of(column)[0], shape_of(row)[0]
    antidiagonals = np.concatenate([column, row[1:]])
    return antidiagonals[np.arange(height)[:, None] + np.arange(width)]


@delegates(sl.companion)
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial with these coefficients, highest degree first.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import companion
    >>> grad(lambda a: np.sum(companion(a)))(np.array([1.0, 2.0, 3.0]))
    array([ 5., -1., -1.])
    """
    coefficients = np.atleast_1d(as_array(a))
    n = shape_of(coefficients)[-1]
    if n < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    first = -coefficients[..., 1:] / coefficients[..., :1]
    lead, dtype = shape_of(first)[:-1], dtype_of(first)
    below = np.broadcast_to(np.eye(n - 2, n - 1, dtype=dtype), (*lead, n - 2, n - 1))
    return np.concatenate([first[..., None, :], below], axis=-2)


@delegates(sl.leslie)
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of fecundities f and survival rates s.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import leslie
    >>> grad(lambda s: leslie(np.ones(2), s)[1, 0])(np.array([0.5]))
    array([1.])
    """
    births, survival = np.atleast_1d(as_array(f)), np.atleast_1d(as_array(s))
    n = shape_of(births)[-1]
    if shape_of(survival)[-1] != n - 1:
        raise ValueError("The length of `s` must be one less than the length of `f`.")
    lead = np.broadcast_shapes(shape_of(births)[:-1], shape_of(survival)[:-1])
    births = np.broadcast_to(births, (*lead, n))
    rows = survival[..., None] * np.eye(n - 1, n, dtype=dtype_of(survival))
    return np.concatenate([births[..., None, :], np.broadcast_to(rows, (*lead, n - 1, n))], axis=-2)


@delegates(sl.fiedler)
def fiedler(a: Any) -> Any:
    """The symmetric matrix of the distances between numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import fiedler
    >>> grad(lambda a: fiedler(a)[0, 1])(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    x = np.atleast_1d(as_array(a))
    return np.abs(x[..., :, None] - x[..., None, :])


@delegates(sl.convolution_matrix)
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with a vector of length n is its convolution with `a`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import convolution_matrix
    >>> grad(lambda a: np.sum(convolution_matrix(a, 3)))(np.ones(2))
    array([3., 3.])
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"'mode' argument must be one of ('full', 'valid', 'same'), not {mode!r}")
    x = np.atleast_1d(as_array(a))
    m = shape_of(x)[-1]
    lead = shape_of(x)[:-1]
    zeros = np.zeros((*lead, n - 1), dtype_of(x))
    column = np.concatenate([x, zeros], axis=-1)
    row = np.concatenate([x[..., :1], zeros], axis=-1)
    full = toeplitz(column, row)
    if mode == "full":
        return full
    if mode == "same":
        # as np.convolve(a, v, 'same'): the middle of length max(m, n)
        start, length = (min(m, n) - 1) // 2, max(m, n)
    else:
        start, length = min(m, n) - 1, max(m, n) - min(m, n) + 1
    return full[..., start : start + length, :]


@delegates(sl.khatri_rao)
def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker products of corresponding columns.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import khatri_rao
    >>> grad(lambda a: np.sum(khatri_rao(a, np.ones((2, 1)))))(np.ones((1, 1)))
    array([[2.]])
    """
    left, right = as_array(a), as_array(b)
    if ndim_of(left) < 2 or ndim_of(right) < 2:
        raise ValueError("The both arrays should be 2-dimensional.")
    if shape_of(left)[-1] != shape_of(right)[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    products = left[..., :, None, :] * right[..., None, :, :]
    *lead, m, n, columns = shape_of(products)
    return products.reshape((*lead, m * n, columns))


# Questions about values.


@delegates(sl.bandwidth)
def bandwidth(a: Any) -> tuple[int, int]:
    """The numbers of diagonals below and above the main one that are not all zero.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import bandwidth
    >>> bandwidth(np.eye(3, k=1))
    (0, 1)
    """
    return sl.bandwidth(np.asarray(concrete(a)))  # type: ignore[no-any-return]


@delegates(sl.issymmetric)
def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> bool:
    """Whether a square matrix is symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import issymmetric
    >>> bool(issymmetric(np.eye(3)))
    True
    """
    return bool(sl.issymmetric(np.asarray(concrete(a)), concrete(atol), concrete(rtol)))


@delegates(sl.ishermitian)
def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> bool:
    """Whether a square matrix is Hermitian.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import ishermitian
    >>> bool(ishermitian(1j * np.eye(3)))
    False
    """
    return bool(sl.ishermitian(np.asarray(concrete(a)), concrete(atol), concrete(rtol)))
