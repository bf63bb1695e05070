"""NumPy's `np.linalg`: equations, factorizations, eigenvalues and products. Norms are in norms.py.

These functions check shapes as NumPy does and call primitives on stacks of matrices. For derivatives where
eigenvectors are not unique, see `functrans/ops/factorization.py`.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import FUNCTIONS, UFUNCS
from functrans.ops import contraction, determinant, factorization, singular, spectral
from functrans.ops.factorization import H
from functrans.ops.structure import stop_gradient
from functrans.surface.products import dot, outer, tensordot
from functrans.surface.shaping import matrix_transpose, trace
from functrans.surface.table import as_array, as_number, decided, given, implements, ndim_of, refuse

# The types of NumPy's results, which it does not export.
_eig_of_one = np.linalg.eig(np.eye(1))
_EigResult = type(_eig_of_one)
# Whether NumPy gives real results where all eigenvalues are real. From NumPy 2.5 on, they are always complex.
_MAY_BE_REAL = _eig_of_one.eigenvalues.dtype.kind != "c"
_EighResult = type(np.linalg.eigh(np.eye(1)))
_QRResult = type(np.linalg.qr(np.eye(1)))
_SlogdetResult = type(np.linalg.slogdet(np.eye(1)))
_SVDResult = type(np.linalg.svd(np.eye(1)))


def as_matrices(a: Any) -> Any:
    """A stack of matrices, or NumPy's error."""
    x = as_array(a)
    if ndim_of(x) < 2:
        raise LinAlgError(
            f"{ndim_of(x)}-dimensional array given. Array must be at least two-dimensional"
        )
    return x


def as_square(a: Any) -> Any:
    """A stack of square matrices, or NumPy's error."""
    x = as_matrices(a)
    m, n = shape_of(x)[-2:]
    if m != n:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return x


# Linear equations.


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    x, y = as_square(a), as_array(b)
    if ndim_of(y) == 1:
        return factorization.solve(x, y[:, None])[..., 0]
    return factorization.solve(x, y)


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    return factorization.inverse(as_square(a))


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    x = as_matrices(a)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = given(rtol, 1e-15)
    if rcond is None:
        rcond = max(shape_of(x)[-2:]) * np.finfo(dtype_of(x)).eps
    return singular.pinv(x, rcond=concrete(rcond), hermitian=bool(hermitian))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = as_array(a), as_array(b)
    solution, columns, rank, values = least_squares(a, b, rcond)
    m, n = shape_of(a)
    # The shape of the residuals depends on the rank.
    what = "np.linalg.lstsq gives residuals or none"
    if m > n and decided(rank == n, what, "Write np.linalg.pinv(a) @ b for the solution."):
        residuals = np.sum(_squares(columns - a @ solution), axis=0)
    else:
        residuals = np.empty(0, dtype_of(values))
    return solution[:, 0] if ndim_of(b) == 1 else solution, residuals, rank, values


def least_squares(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """The solution and the right side as matrices, the rank, and the singular values."""
    x, y = as_array(a), as_array(b)
    columns = y[:, None] if ndim_of(y) == 1 else y
    for array in (x, columns):
        if ndim_of(array) != 2:
            raise LinAlgError(
                f"{ndim_of(array)}-dimensional array given. Array must be two-dimensional"
            )
    m, n = shape_of(x)
    if m != shape_of(columns)[0]:
        raise LinAlgError("Incompatible dimensions")
    dtype = np.result_type(*(factorization.dtypes_for(dtype_of(z))["same"] for z in (x, y)))
    if rcond is None:
        rcond = np.finfo(dtype).eps * max(m, n)
    x, columns = x.astype(dtype), columns.astype(dtype)
    values = singular.svdvals(x)
    rank = np.sum(values > rcond * np.max(values, initial=0), dtype=np.int32)
    solution = singular.pinv(x, rcond=float(concrete(rcond)), hermitian=False) @ columns
    return solution, columns, rank, values


def _squares(x: Any) -> Any:
    return (x * np.conj(x)).real if dtype_of(x).kind == "c" else x * x


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = as_array(a), as_array(b)
    if axes is not None:
        order = list(range(ndim_of(x)))
        for axis in axes:
            order.remove(axis)
            order.append(axis)
        x = np.transpose(x, order)
    shape = shape_of(x)[ndim_of(y) - ndim_of(x) :]
    size = prod(shape)
    if prod(shape_of(x)) != size**2:
        raise LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == "
            "prod(a.shape[:b.ndim])"
        )
    return solve(x.reshape((size, size)), y.reshape(-1)).reshape(shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    x = as_array(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    first, last = shape_of(x)[:ind], shape_of(x)[ind:]
    return inv(x.reshape((prod(last), -1))).reshape(last + first)


# Determinants.


@implements(np.linalg.det)
def det(a: Any) -> Any:
    return determinant.det(as_square(a))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return _SlogdetResult(*determinant.slogdet(as_square(a)))


# Factorizations.


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    x = as_square(a)
    # NumPy reads one triangle: the upper one of A is the lower one of A^H.
    return H(factorization.cholesky(H(x))) if upper else factorization.cholesky(x)


@implements(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        if mode in ("raw", "f", "full", "e", "economic"):
            raise errors.MissingRuleError(
                f"np.linalg.qr with mode={mode!r} has no rule for traced values, at "
                f"{errors.user_location()}. Use mode='reduced', 'complete' or 'r'."
            )
        raise ValueError(f"Unrecognized mode '{mode}'")
    x = as_matrices(a)
    m, n = shape_of(x)[-2:]
    if m > n and mode == "complete":
        q, r, completion = factorization.qr_complete(x)
        q = np.concatenate([q, factorization.complement(q, stop_gradient(completion))], axis=-1)
        r = np.concatenate([r, np.zeros((*shape_of(r)[:-2], m - n, n), dtype_of(r))], axis=-2)
    else:
        # The first m columns of a wide matrix determine Q.
        q, r = factorization.qr(x[..., :m])
        if m < n:
            r = np.concatenate([r, H(q) @ x[..., m:]], axis=-1)
    return r if mode == "r" else _QRResult(q, r)


@implements(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if hermitian:
        return _svd_of_hermitian(as_square(a), compute_uv)
    x = as_matrices(a)
    if not compute_uv:
        return singular.svdvals(x)
    m, n = shape_of(x)[-2:]
    if not full_matrices or m == n:
        return _SVDResult(*singular.svd(x))
    u, s, vh, more_u, more_vh = singular.svd_full(x)
    if m > n:
        u = np.concatenate([u, factorization.complement(u, stop_gradient(more_u))], axis=-1)
    else:
        more_v = factorization.complement(H(vh), H(stop_gradient(more_vh)))
        vh = np.concatenate([vh, H(more_v)], axis=-2)
    return _SVDResult(u, s, vh)


def _svd_of_hermitian(x: Any, compute_uv: bool) -> Any:
    """Singular values are the absolute eigenvalues, in descending order; signs go to V."""
    if not compute_uv:
        return np.sort(np.abs(spectral.eigvalsh(x, uplo="L")), axis=-1)[..., ::-1]
    w, v = spectral.eigh(x, uplo="L")
    order = np.argsort(np.abs(w), axis=-1)[..., ::-1]
    w = np.take_along_axis(w, order, axis=-1)
    v = np.take_along_axis(v, order[..., None, :], axis=-1)
    signs = np.copysign(np.ones((), dtype_of(w)), stop_gradient(w))
    return _SVDResult(v, np.abs(w), H(v * signs[..., None, :]))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return singular.svdvals(as_matrices(x))


# Eigenvalues.


def _triangle(uplo: Any) -> str:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return str(uplo.upper())


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    return _EighResult(*spectral.eigh(as_square(a), uplo=_triangle(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return spectral.eigvalsh(as_square(a), uplo=_triangle(UPLO))


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    x = as_square(a)
    w, v = spectral.eig(x)
    if _MAY_BE_REAL and are_real(x, w):
        w, v = w.real, v.real
    return _EigResult(w, _as_lapack_scales(v))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    x = as_square(a)
    w, _ = spectral.eig(x)
    return w.real if _MAY_BE_REAL and are_real(x, w) else w


def are_real(x: Any, w: Any) -> bool:
    """Whether a matrix and all its eigenvalues are real: this depends on values."""
    what = "np.linalg.eig and eigvals of a real matrix give real or complex results"
    remedy = "Pass a complex matrix, x.astype(complex); np.linalg.eigh is for symmetric ones."
    return dtype_of(x).kind != "c" and decided(np.all(w.imag == 0), what, remedy)


def _as_lapack_scales(v: Any) -> Any:
    """Eigenvectors of length 1, whose largest component is real.

    The values are already normalized; this is for the derivative.
    """
    if not shape_of(v)[-1]:
        return v
    length = np.sqrt(np.sum(_squares(v), axis=-2, keepdims=True))
    if dtype_of(v).kind != "c":
        return v / length
    # Any component within rounding of the largest is as good as LAPACK's choice: take the first.
    largest = np.argmax(np.abs(stop_gradient(v)), axis=-2)[..., None, :]
    component = np.take_along_axis(v, largest, axis=-2)
    phase = component / np.abs(component)
    return v / (length * phase * np.conj(stop_gradient(phase)))


# Products and powers.


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    x = as_square(a)
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if n == 0:
        return np.broadcast_to(np.eye(shape_of(x)[-1], dtype=dtype_of(x)), shape_of(x)).copy()
    if n < 0:
        x, n = inv(x), -n
    power = None
    while True:
        if n & 1:
            power = x if power is None else power @ x
        n >>= 1
        if not n:
            return power
        x = x @ x


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    refuse("linalg.multi_dot", out=out)
    chain = [as_array(a) for a in arrays]
    if len(chain) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(chain) == 2:
        return dot(*chain)
    row, column = ndim_of(chain[0]) == 1, ndim_of(chain[-1]) == 1
    chain[0] = chain[0][None] if row else chain[0]
    chain[-1] = chain[-1][:, None] if column else chain[-1]
    for x in chain:
        if ndim_of(x) != 2:
            raise LinAlgError(
                f"{ndim_of(x)}-dimensional array given. Array must be two-dimensional"
            )
    product = _chain_product(chain)
    product = product[0] if row else product
    return as_number(product[..., 0] if column else product)


def _chain_product(chain: list[Any]) -> Any:
    """The product in the cheapest order, found by dynamic programming."""
    sides = [shape_of(x)[0] for x in chain] + [shape_of(chain[-1])[1]]
    count = len(chain)
    # best[i, j] = (cost, where to split) for the matrices i to j - 1
    best = {(i, i + 1): (0, i) for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k, j][0] + sides[i] * sides[k] * sides[j], k)
                for k in range(i + 1, j)
            )

    def product(i: int, j: int) -> Any:
        if j == i + 1:
            return chain[i]
        cut = best[i, j][1]
        return contraction.matmul(product(i, cut), product(cut, j))

    return product(0, count)


def _row(x: Any) -> Any:
    return as_array(x).conj()[..., None, :]


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, keepdims: bool = False) -> Any:
    """Σ conj(x) y along an axis."""
    x, y = as_array(x1), as_array(x2)
    if axis != -1:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    product = (_row(x) @ y[..., None])[..., 0, 0]
    return np.expand_dims(product, axis) if keepdims else product


def _product_with_options(product: Any, name: str) -> Any:
    """A product of vectors or matrices that accepts the options of generalized ufuncs."""

    def call(
        x1: Any,
        x2: Any,
        /,
        *,
        axes: Any = None,
        dtype: Any = None,
        order: Any = "K",
        subok: bool = True,
        **options: Any,
    ) -> Any:
        factors: list[Any] = [as_array(x1), as_array(x2)]
        if dtype is not None:
            factors = [factor.astype(np.dtype(dtype)) for factor in factors]
        if axes is None:
            if name != "vecdot":
                refuse(name, **options)
            return product(*factors, **options)
        refuse(name, **options)
        # The axes of vectors and matrices, for each factor and for the result; they belong last.
        places = [entry if isinstance(entry, tuple) else (entry,) for entry in axes]
        for k, place in enumerate(places[:2]):
            factors[k] = np.moveaxis(factors[k], place, range(-len(place), 0))
        result = product(*factors)
        if len(places) == 2:
            return result
        return np.moveaxis(result, range(-len(places[2]), 0), places[2])

    return call


_PRODUCTS: dict[str, Any] = {
    "matmul": contraction.matmul,
    "vecdot": vecdot,
    "matvec": lambda x, y: (as_matrices(x) @ as_array(y)[..., None])[..., 0],
    "vecmat": lambda x, y: (_row(x) @ as_matrices(y))[..., 0, :],
}
for _name, _product in _PRODUCTS.items():
    if hasattr(np, _name):  # matvec and vecmat: since NumPy 2.2
        UFUNCS[getattr(np, _name)] = _product
        FUNCTIONS[getattr(np, _name), "__call__"] = _product_with_options(_product, _name)


@implements(np.linalg.vecdot)
def vecdot_along(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return vecdot(x1, x2, axis=axis)


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x, y = as_array(x1), as_array(x2)
    lengths = shape_of(x)[axis], shape_of(y)[axis]
    if lengths != (3, 3):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{lengths[0]} and {lengths[1]} dimensional instead."
        )
    x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    first, second = [1, 2, 0], [2, 0, 1]
    product = x[..., first] * y[..., second] - x[..., second] * y[..., first]
    return np.moveaxis(product, -1, axis)


@implements(np.linalg.outer)
def outer_of_vectors(x1: Any, x2: Any, /) -> Any:
    x, y = as_array(x1), as_array(x2)
    if ndim_of(x) != 1 or ndim_of(y) != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={ndim_of(x)} and x2.ndim={ndim_of(y)}."
        )
    return outer(x, y)


implements(np.linalg.matrix_transpose)(matrix_transpose)
implements(np.linalg.matmul)(lambda x1, x2, /: contraction.matmul(as_array(x1), as_array(x2)))
implements(np.linalg.tensordot)(lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes))
implements(np.linalg.trace)(lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype))
