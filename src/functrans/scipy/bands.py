"""Linear systems with banded matrices: the primitive `banded_solve`, and the form of the bands.

A matrix with `below` diagonals under the main one and `above` over it is given as SciPy expects it: entry
(i, j) is in row above + i - j and column j of the bands. Entries of the bands that lie outside of the matrix
are not read, and have derivative 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, checked_flags, checked_length, dtype_of, shape_of
from functrans.ops.families import batch_elementwise, result_spec
from functrans.scipy.matrices import check_matrices, over_stack, sl, unbroadcast


def _places(below: int, above: int, n: int) -> tuple[Any, Any, Any]:
    """The row and the column in the matrix of each entry of the bands, and whether it is inside."""
    columns = np.broadcast_to(np.arange(n), (below + above + 1, n))
    rows = columns + np.arange(-above, below + 1)[:, None]
    return np.clip(rows, 0, n - 1), columns, (rows >= 0) & (rows < n)


def transposed_bands(ab: Any, below: int, above: int) -> Any:
    """The bands of the transposed matrix, which has `above` diagonals under the main one."""
    count, n = shape_of(ab)[-2:]
    rows, _, inside = _places(above, below, n)
    found = ab[..., np.arange(count)[::-1, None], rows]
    return np.where(inside, found, 0).astype(dtype_of(ab))


def from_bands(ab: Any, below: int, above: int) -> Any:
    """The matrix, with zeros outside of the bands."""
    n = shape_of(ab)[-1]
    place = above + np.arange(n)[:, None] - np.arange(n)
    inside = (place >= 0) & (place <= below + above)
    found = ab[..., np.clip(place, 0, below + above), np.arange(n)]
    return np.where(inside, found, 0).astype(dtype_of(ab))


def _product(ab: Any, x: Any, below: int, above: int) -> Any:
    """The product of a banded matrix with the columns of x, one diagonal at a time."""
    n = shape_of(ab)[-1]
    other = transposed_bands(ab, below, above)  # column i of it is row i of the matrix
    total: Any = 0
    for k in range(below + above + 1):
        neighbor = np.arange(n) + k - below
        inside = ((neighbor >= 0) & (neighbor < n))[:, None]
        near = np.where(inside, x[..., np.clip(neighbor, 0, n - 1), :], 0)
        total = total + other[..., k, :, None] * near
    return total


def _outer(left: Any, right: Any, below: int, above: int) -> Any:
    """The bands of left right^T."""
    rows, _, inside = _places(below, above, shape_of(left)[-2])
    products = np.sum(left[..., rows, :] * right[..., None, :, :], axis=-1)
    return np.where(inside, products, 0).astype(dtype_of(products))


def _one(ab: Any, b: Any, below: int, above: int, definite: bool) -> Any:
    if definite:
        return sl.solveh_banded(ab[: above + 1], b, check_finite=False)
    return sl.solve_banded((below, above), ab, b, check_finite=False)


def _banded_solve(ab: Any, b: Any, below: int, above: int, definite: bool) -> Any:
    options: dict[str, Any] = {"below": below, "above": above, "definite": definite}
    if ab.ndim == 2 and b.ndim > 2:  # one matrix, many right-hand sides: all are columns
        columns = np.moveaxis(b, -2, 0)
        out = _one(ab, columns.reshape((ab.shape[-1], -1)), **options)
        return np.moveaxis(out.reshape(columns.shape), 0, -2)
    return over_stack(_one, ab, b, **options)


def _jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    # A x = b, so A dx = db - dA x.
    (ab, _), (ab_tangent, change) = args, tangents
    if ab_tangent is not None:
        moved = _product(ab_tangent, x, params["below"], params["above"])
        change = -moved if change is None else change - moved
    return banded_solve(ab, change, **params)


def _pull(g: Any, saved: Any) -> Any:
    mask, x, args, params = saved
    below, above = params["below"], params["above"]
    other = transposed_bands(args[0], below, above)
    back = banded_solve(other, g, below=above, above=below, definite=params["definite"])
    return unbroadcast([-_outer(back, x, below, above), back], mask, args)


def _spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    ab, b = specs
    below, above = (checked_length(params[name]) for name in ("below", "above"))
    checked_flags(params["definite"])
    check_matrices(ab, b)
    if ab.shape[-2] != below + above + 1 or ab.shape[-1] != b.shape[-2]:
        raise ValueError(f"bands of shape {ab.shape} do not fit {b.shape}")
    lead = np.broadcast_shapes(ab.shape[:-2], b.shape[:-2])
    small = [ArraySpec((1, 1), ab.dtype), ArraySpec((1, 1), b.dtype)]
    trial = {"below": 0, "above": 0, "definite": False}
    return result_spec(_banded_solve, small, trial, lead + b.shape[-2:])


banded_solve = Primitive(
    "banded_solve",
    _banded_solve,
    jvp=_jvp,
    vjp=lambda mask, out, args, params: (_pull, (mask, out, args, params)),
    batch=batch_elementwise,
    shape=_spec,
    kind="linear algebra",
)
