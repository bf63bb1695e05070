"""Series and DataFrames of pandas, and DataArrays of xarray: arrays with labels.

`tree.flatten` takes them as the arrays that they hold, so a transformed function gets a traced array. What
comes back in the shape of an argument, such as its gradient, gets the labels of the argument again. Neither
package is imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain


def may_occur() -> bool:
    """Whether there can be labelled arrays: whether a package that has them was imported."""
    return "pandas" in sys.modules or "xarray" in sys.modules


def _kind(value: Any) -> str | None:
    """The class of a labelled array, or of which its class is a subclass; None for other values."""
    if isinstance(value, (Tracer, np.ndarray, np.generic)):
        return None
    for package, names in (("pandas", ("Series", "DataFrame")), ("xarray", ("DataArray",))):
        for name in names:
            known = getattr(sys.modules.get(package), name, None)
            if isinstance(known, type) and isinstance(value, known):
                return name
    return None


def bare(value: Any) -> Any:
    """The array of numbers in a labelled array; any other value unchanged."""
    kind = _kind(value)
    if kind is None or not all(map(_is_number, _dtypes(value))):
        return value
    if kind == "DataArray":
        return value.values
    array = value.to_numpy()
    # Columns of pandas' own dtypes, which have missing values
    return array if _is_number(array.dtype) else value.to_numpy(dtype=float, na_value=np.nan)


def labels_of(value: Any) -> Callable[[Any], Any] | None:
    """A function that gives an array of the same shape the labels of a value; None if it has none.

    It holds the labels, and not the value.
    """
    kind, shape = _kind(value), np.shape(value)
    if kind is None:
        return None
    if kind == "DataArray":
        template = value.copy(data=np.broadcast_to(np.float64(0), shape))
        build: Callable[[Any], Any] = lambda array: template.copy(data=array)
    elif kind == "Series":
        series, index, name = sys.modules["pandas"].Series, value.index, value.name
        build = lambda array: series(array, index, name=name)
    else:
        frame, index, columns = sys.modules["pandas"].DataFrame, value.index, value.columns
        build = lambda array: frame(array, index, columns)
    return lambda array: (
        build(array) if is_plain(array, np.ndarray) and array.shape == shape else array
    )


def refusal(value: Any) -> tuple[str, str] | None:
    """Why a labelled array cannot be traced, and what to do instead; None for other values."""
    kind = _kind(value)
    if kind is None:
        return None
    if kind == "DataFrame":
        others = [
            f"{name!r} of dtype {dtype}"
            for name, dtype in value.dtypes.items()
            if not _is_number(dtype)
        ]
        return (
            f"a DataFrame with the column{'s' * (len(others) > 1)} {', '.join(others)}",
            "Select the columns of numbers: df.select_dtypes('number').",
        )
    return f"a {kind} of dtype {value.dtype}", "Convert it: x.astype(float)."


def _dtypes(value: Any) -> list[Any]:
    return list(value.dtypes) if hasattr(value, "columns") else [value.dtype]


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biufc"
