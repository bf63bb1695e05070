"""np.emath: functions that return complex numbers where there is no real result.

Whether a result is complex depends on the values, which must be known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of
from functrans.surface.table import as_array, decided, implements


def _complex_if(outside: Any, x: Any) -> Any:
    """x as complex if any entry is outside the domain of the real function."""
    what = "a function of np.emath gives real or complex values"
    remedy = "Use NumPy's function of a complex array: np.sqrt(x.astype(complex))."
    if dtype_of(x).kind == "c" or not decided(np.any(outside), what, remedy):
        return x
    small = dtype_of(x) == np.float32 or dtype_of(x).char in "bBhH"
    return x.astype(np.complex64 if small else np.complex128)


def _below_zero(value: Any) -> Any:
    x = as_array(value)
    return x if dtype_of(x).kind == "c" else _complex_if(x < 0, x)


def _beyond_one(value: Any) -> Any:
    x = as_array(value)
    return _complex_if(abs(x) > 1, x)


for _function, _ufunc, _prepared in (
    (np.emath.sqrt, np.sqrt, _below_zero),
    (np.emath.log, np.log, _below_zero),
    (np.emath.log2, np.log2, _below_zero),
    (np.emath.log10, np.log10, _below_zero),
    (np.emath.arccos, np.arccos, _beyond_one),
    (np.emath.arcsin, np.arcsin, _beyond_one),
    (np.emath.arctanh, np.arctanh, _beyond_one),
):
    implements(_function)(lambda x, ufunc=_ufunc, prepared=_prepared: ufunc(prepared(x)))


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Any:
    return np.log(_below_zero(x)) / np.log(_below_zero(n))


@implements(np.emath.power)
def power(x: Any, p: Any) -> Any:
    exponent = as_array(p)
    if dtype_of(exponent).kind in "biu" and concrete(np.any(exponent < 0)):
        exponent = exponent * 1.0
    return np.power(_below_zero(x), exponent)
