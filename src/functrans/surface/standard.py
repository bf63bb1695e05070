"""The Python array API standard, where NumPy's functions differ from it or older versions lack them."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.tracer import ArrayTracer, install_method
from functrans.surface import creation, reductions, shaping
from functrans.surface.constructors import check_device
from functrans.surface.table import as_array, ndim_of
from functrans.surface.unhooked import reach

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_sort, _argsort, _diff, _flip = map(reach, (np.sort, np.argsort, np.diff, np.flip))


def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """`np.sort`, with an option for descending order.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.sort(np.array([2, 3, 1]), descending=True)
    array([3, 2, 1])
    """
    ordered = _sort(a, axis, kind, order, stable=stable)
    return _flip(ordered, axis=-1 if axis is None else axis) if descending else ordered


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """`np.argsort`, with an option for descending order; equal values keep their order by default.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.argsort(np.array([2, 3, 3, 1]), descending=True)
    array([1, 2, 0, 3])
    """
    if stable is None and kind is None and order is None:
        stable = True
    if not descending:
        return _argsort(a, axis, kind, order, stable=stable)
    x = as_array(a)
    if axis is None:
        x, axis = x.reshape(-1), -1
    # Reversed twice, so that equal values keep their order.
    places = _flip(_argsort(_flip(x, axis=axis), axis, kind, order, stable=stable), axis=axis)
    return x.shape[axis] - 1 - places if ndim_of(x) else places


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """`np.diff`; with None, nothing is prepended or appended.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.diff(np.array([1.0, 4.0, 9.0]), prepend=None)
    array([3., 5.])
    """
    options = {"prepend": prepend, "append": append}
    return _diff(a, n, axis, **{key: value for key, value in options.items() if value is not None})


def finfo(dtype: Any, /) -> Any:
    """`np.finfo` of a dtype, or of an array's dtype.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.finfo(np.ones(2, np.float32)).bits
    32
    """
    return np.finfo(_dtype(dtype))


def iinfo(type: Any, /) -> Any:
    """`np.iinfo` of a dtype, or of an array's dtype.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.iinfo(np.arange(2, dtype=np.int8)).max
    127
    """
    return np.iinfo(_dtype(type))


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, (ArrayTracer, np.ndarray, np.generic)) else value


def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """`np.fft.fftfreq` with a choice of dtype; the spacing may be traced.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.fft.fftfreq(4, dtype=np.float32)
    array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _frequencies(np.fft.fftfreq, n, d, device, dtype)


def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """`np.fft.rfftfreq` with a choice of dtype; the spacing may be traced.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.fft.rfftfreq(4, dtype=np.float32)
    array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    return _frequencies(np.fft.rfftfreq, n, d, device, dtype)


def _frequencies(numpy_function: Any, n: int, d: Any, device: Any, dtype: Any) -> Any:
    check_device(device)
    made = numpy_function(n) / d if isinstance(d, Tracer) else numpy_function(n, d)
    return creation.opened(made) if dtype is None else creation.opened(made.astype(dtype))


class Info:
    """The capabilities of this namespace, in the form that the standard defines.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.__array_namespace_info__().default_device()
    'cpu'
    """

    def capabilities(self) -> dict[str, Any]:
        """Shapes that depend on data are supported where values are known; not in a staged function."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        check_device(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.intp),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        check_device(device)
        kinds = [kind] if isinstance(kind, str) else kind or _KINDS
        return {name: np.dtype(name) for each in kinds for name in _KINDS[each]}


_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}

# Replacements of NumPy's functions.
FUNCTIONS = {"argsort": argsort, "diff": diff, "finfo": finfo, "iinfo": iinfo, "sort": sort}
# Functions that NumPy lacks before version 2.1.
NEWER = {
    "astype": creation.astype,
    "cumulative_prod": reductions.cumulative_prod,
    "cumulative_sum": reductions.cumulative_sum,
    "unstack": shaping.unstack,
}


def _to_device(x: Any, device: Any, /, *, stream: Any = None) -> Any:
    check_device(device)
    if stream is not None:
        raise ValueError("the device has no streams: stream must be None")
    return x


install_method("to_device", _to_device)
install_method("__dlpack_device__", lambda x: (1, 0))  # the CPU
# A traced value raises an error: another library could not trace it.
install_method("__dlpack__", lambda x, **options: np.array(x).__dlpack__(**options))
