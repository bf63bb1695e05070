"""Triangular systems: x = T^-1 b, with T one triangle of a, or its transpose.

BLAS solves them in half the time of a matrix product, and NumPy has no name for it. The library is the one
that NumPy has loaded; without it, a general solver takes its place.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from functrans.core.blas import numpy_blas
from functrans.core.primitive import Primitive, bare
from functrans.core.shapes import ArraySpec, checked_flags, shape_of, sum_to_shape
from functrans.ops.contraction import swap
from functrans.ops.families import batch_elementwise

_FEW_ROWS = 32  # of many matrices: a loop over them takes longer than the arithmetic
_NAMES = {"f": "strsm", "d": "dtrsm", "F": "ctrsm", "D": "ztrsm"}


def _common_dtype(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype in which BLAS solves a system with arrays of these dtypes."""
    dtype = np.result_type(a, b)
    if dtype.char in _NAMES:
        return dtype
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def _triangular_solve(a: Any, b: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    dtype = _common_dtype(a, b)
    a, b = np.asarray(a, dtype), np.asarray(b, dtype)
    if not unit_diagonal:
        _check_regular(a)
    if a.ndim == 2 and b.ndim > 2:  # one matrix, many right-hand sides: all are columns
        columns = np.moveaxis(b, -2, 0)
        out = _solved(a, columns.reshape((len(a), -1)), lower, transposed, unit_diagonal)
        return np.moveaxis(out.reshape(columns.shape), 0, -2)
    if a.ndim == b.ndim == 2:
        return _solved(a, b, lower, transposed, unit_diagonal)
    n = a.shape[-1]
    if n <= _FEW_ROWS:
        return _solved_generally(a, b, lower, transposed, unit_diagonal)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*lead, n, n)), np.broadcast_to(b, (*lead, *b.shape[-2:]))
    out = np.empty(b.shape, dtype)
    for place in np.ndindex(*lead):
        out[place] = _solved(a[place], b[place], lower, transposed, unit_diagonal)
    return out


def _check_regular(a: Any) -> None:
    diagonal = a.diagonal(0, -2, -1)
    if not diagonal.all():
        place = int(np.argwhere(diagonal == 0)[0][-1])
        raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {place}")


def _solved(a: Any, b: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    """The solution for one matrix, by BLAS."""
    functions = numpy_blas(*_NAMES.values())
    if functions is None or not b.size:
        return _solved_generally(a, b, lower, transposed, unit_diagonal)
    # BLAS reads columns: an array in C order is the transpose to it.
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        a = np.ascontiguousarray(a)
    turned_a = a.flags.c_contiguous
    from_right = not b.flags.f_contiguous  # T x = b, or x^T T^T = b^T
    out = np.array(b, order="C" if from_right else "F")
    n, columns = b.shape
    rows_first = (columns, n) if from_right else (n, columns)
    turn = (transposed != from_right) != turned_a
    one = np.ones((), a.dtype)
    functions["fdFD".index(a.dtype.char)](
        b"R" if from_right else b"L",
        b"L" if lower != turned_a else b"U",
        b"T" if turn else b"N",
        b"U" if unit_diagonal else b"N",
        *[ctypes.byref(ctypes.c_int64(length)) for length in rows_first],
        ctypes.c_void_p(one.ctypes.data),
        ctypes.c_void_p(a.ctypes.data),
        ctypes.byref(ctypes.c_int64(n)),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.byref(ctypes.c_int64(rows_first[0])),
    )
    return out


def _solved_generally(a: Any, b: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    matrix = _triangle(a, lower, unit_diagonal)
    if unit_diagonal:
        matrix = matrix + np.eye(a.shape[-1], dtype=a.dtype)
    return np.linalg.solve(swap(matrix) if transposed else matrix, b)


def _triangle(a: Any, lower: bool, unit_diagonal: bool) -> Any:
    """The part of a, or of its tangent, that is read: without a unit diagonal, which is constant."""
    if lower:
        return np.tril(a, -1 if unit_diagonal else 0)
    return np.triu(a, 1 if unit_diagonal else 0)


def _triangular_jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    # T x = b, so T dx = db - dT x.
    (a, _), (a_tangent, b_tangent) = args, tangents
    change = b_tangent
    if a_tangent is not None:
        part = _triangle(a_tangent, params["lower"], params["unit_diagonal"])
        moved = (swap(part) if params["transposed"] else part) @ x
        change = -moved if change is None else change - moved
    return triangular_solve(a, change, **params)


def _triangular_pull(g: Any, saved: Any) -> Any:
    # T^-T g flows to b, and the triangle of -(T^-T g) x^T to T.
    mask, x, a, shapes, params = saved
    back = triangular_solve(a, g, **{**params, "transposed": not params["transposed"]})
    parts = []
    if mask & 1:
        outer = -(x @ swap(back) if params["transposed"] else back @ swap(x))
        part = _triangle(outer, params["lower"], params["unit_diagonal"])
        parts.append(sum_to_shape(part, shapes[0]))
    if mask & 2:
        parts.append(sum_to_shape(back, shapes[1]))
    return bare(parts)


def _triangular_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    a, b = specs
    if params.keys() != {"lower", "transposed", "unit_diagonal"}:
        raise TypeError("a triangular system needs lower, transposed and unit_diagonal")
    checked_flags(*params.values())
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("a matrix has two axes")
    if a.shape[-2] != a.shape[-1] or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a matrix of shape {a.shape[-2:]} is not square, or does not fit a right-hand side with "
            f"{b.shape[-2]} rows"
        )
    if a.dtype.itemsize < 4 or b.dtype.itemsize < 4:
        raise TypeError(
            f"the dtypes {a.dtype}, {b.dtype} are too narrow; convert with a.astype(float)"
        )
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]
    return ArraySpec(shape, _common_dtype(a.dtype, b.dtype))


triangular_solve = Primitive(
    "triangular_solve",
    _triangular_solve,
    jvp=_triangular_jvp,
    vjp=lambda mask, out, args, params: (
        _triangular_pull,
        (mask, out, args[0], (shape_of(args[0]), shape_of(args[1])), params),
    ),
    batch=batch_elementwise,
    shape=_triangular_spec,
    kind="linear algebra",
    views=False,
)
