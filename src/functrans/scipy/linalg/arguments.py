"""How the functions of `functrans.scipy.linalg` read matrices and right-hand sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.factorization import from_triangle
from functrans.scipy.matrices import triangle
from functrans.surface.table import as_array, ndim_of


def matrix_of(a: Any, name: str, square: bool = True) -> Any:
    """A stack of matrices of floating-point numbers."""
    x = as_array(a)
    if dtype_of(x).kind not in "fc":
        x = x.astype(np.float64)
    shape = shape_of(x)
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        wanted = "square matrices" if square else "matrices"
        raise ValueError(f"{name}: expected {wanted} in the last two axes, got shape {shape}")
    return x


def with_columns(b: Any, size: int, name: str) -> tuple[Any, bool]:
    """The right-hand side as matrices, and whether it was one vector."""
    x = as_array(b)
    vector = ndim_of(x) == 1
    shape = shape_of(x)
    if not shape or shape[-1 if vector else -2] != size:
        raise ValueError(
            f"{name}: the matrix has {size} rows, but the right-hand side has shape {shape}"
        )
    return (x[:, None] if vector else x), vector


def structured(a: Any, assume_a: Any, lower: bool, name: str) -> Any:
    """The matrix that SciPy computes with: of some structures, it reads one triangle or band only."""
    structure = _STRUCTURES.get(assume_a, assume_a)
    if structure in (None, "general", "banded"):
        return a
    if structure in ("hermitian", "positive definite"):
        return from_triangle(a, "L" if lower else "U")
    if structure == "symmetric":
        if dtype_of(a).kind != "c":
            return from_triangle(a, "L" if lower else "U")
        read = triangle(a, bool(lower))
        return read + np.swapaxes(triangle(a, bool(lower), -1), -1, -2)
    if structure == "upper triangular":
        return triangle(a, False)
    if structure == "lower triangular":
        return triangle(a, True)
    n = shape_of(a)[-1]
    distance = np.abs(np.arange(n)[:, None] - np.arange(n))
    if structure in ("diagonal", "tridiagonal"):
        return np.where(distance <= (structure == "tridiagonal"), a, 0).astype(dtype_of(a))
    raise ValueError(f"{name}: {assume_a!r} is not a recognized matrix structure")


_STRUCTURES = {
    "gen": "general",
    "sym": "symmetric",
    "her": "hermitian",
    "pos": "positive definite",
}
