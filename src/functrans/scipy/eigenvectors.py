"""Eigenvectors with the signs that SciPy's routines give them, which differ from those of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, checked_flags, checked_length
from functrans.ops.factorization import dtypes_for, factorization
from functrans.ops.families import batch_elementwise
from functrans.ops.spectral import eigh_pull, eigh_push
from functrans.scipy.matrices import check_matrices, over_stack, sl


def _eigh(a: Any, uplo: str) -> tuple[Any, Any]:
    n = a.shape[-1]
    lead, lower = a.shape[:-2], uplo == "L"
    found = [sl.eigh(each, lower=lower, check_finite=False) for each in a.reshape((-1, n, n))]
    dtypes = dtypes_for(a.dtype)
    w = np.array([each for each, _ in found], dtypes["real"]).reshape((*lead, n))
    v = np.array([each for _, each in found], dtypes["same"]).reshape((*lead, n, n))
    return w, v


eigh = factorization("eigh_of_scipy", _eigh, eigh_push, eigh_pull, "n real", "nn same")


# The vectors that another routine of SciPy gives, as constants: only their signs are used.


def _of_scipy(*given: Any, lower: bool, kind: int, driver: Any, first: int, count: int) -> Any:
    def one(*each: Any) -> Any:
        n = each[0].shape[-1]
        subset = None if count == n else [first, first + count - 1]
        if not count:
            return np.zeros((n, 0), each[0].dtype)
        return sl.eigh(
            *each,
            lower=lower,
            type=kind,
            driver=driver,
            subset_by_index=subset,
            check_finite=False,
        )[1]

    return over_stack(one, *given)


def _of_scipy_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    check_matrices(*specs)
    checked_flags(params["lower"])
    lead = np.broadcast_shapes(*(spec.shape[:-2] for spec in specs))
    dtype = np.result_type(*(dtypes_for(spec.dtype)["same"] for spec in specs))
    return ArraySpec((*lead, specs[0].shape[-1], checked_length(params["count"])), dtype)


of_scipy = Primitive(
    "eigenvectors_of_scipy",
    _of_scipy,
    batch=batch_elementwise,
    shape=_of_scipy_spec,
    kind="linear algebra",
)


def _of_tridiagonal(d: Any, e: Any) -> Any:
    """Diagonals are matrices of one row here."""
    return over_stack(
        lambda main, side: sl.eigh_tridiagonal(main[0], side[0], check_finite=False)[1], d, e
    )


def _of_tridiagonal_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    d, e = specs
    lead = np.broadcast_shapes(d.shape[:-2], e.shape[:-2])
    return ArraySpec((*lead, d.shape[-1], d.shape[-1]), np.result_type(d.dtype, e.dtype))


of_tridiagonal = Primitive(
    "eigenvectors_of_tridiagonal",
    _of_tridiagonal,
    batch=batch_elementwise,
    shape=_of_tridiagonal_spec,
    kind="linear algebra",
)
