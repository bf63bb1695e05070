"""buffer[i, j, ...] += rows, where an index may occur more than once, with the fastest method.

np.add.at is fast for scalars, but slow for rows. Rows are summed with np.bincount over all their elements, in
double precision. If there are few rows compared to the buffer, they are sorted first, and other rows are not
touched.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from functrans.core.summation import FEW, WIDER

_add: Any = np.add
_SMALL_TABLE = 4096
_REAL = {np.dtype(np.float32), np.dtype(np.float64)}


def sum_rows(shape: tuple[int, ...], dtype: Any, arrays: tuple[Any, ...], value: Any) -> Any:
    """Zeros to which value[k] is added at [arrays[0][k], arrays[1][k], ...], for all k in turn."""
    lead, tail = shape[: len(arrays)], shape[len(arrays) :]
    rows, width = prod(lead), prod(tail)
    place = np.asarray(_flat(arrays, lead)).reshape(-1)  # an index may be a Python integer
    values = np.asarray(value).reshape(place.size, width)
    rows_of_floats = width > 1 and np.dtype(dtype) in _REAL
    if rows_of_floats and 20 * place.size > rows and _within(place, rows):
        entries = (place % rows)[:, None] * width + np.arange(width)
        sums = np.bincount(entries.reshape(-1), values.reshape(-1), rows * width)
        return sums.reshape(shape).astype(dtype, copy=False)
    wide = wide_dtype(np.dtype(dtype), place.size, rows)
    if wide is not None:
        return sum_rows(shape, wide, arrays, np.asarray(value).astype(wide)).astype(dtype)
    table = np.zeros((rows, width), dtype)
    if width == 1:
        _add.at(table.reshape(-1), place, values.reshape(-1))
    elif not _within(place, rows):
        _add.at(table, place, values)  # empty, or NumPy raises its error
    else:
        order = np.argsort(place % rows, kind="stable")
        place = (place % rows)[order]
        starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
        table[place[starts]] = _add.reduceat(values[order], starts, axis=0)
    return table.reshape(shape)


def wide_dtype(dtype: np.dtype[Any], count: int, places: int) -> Any:
    """The wider dtype in which to add `count` numbers at `places` positions; None if the given one is enough.

    Numbers are added one after the other, so many at one position would lose digits. If there are more
    positions than numbers, this is unlikely, and a wider table would take too long.
    """
    many = count > FEW and (places <= _SMALL_TABLE or 8 * places <= count)
    return WIDER.get(dtype) if many or dtype == np.float16 else None


def _flat(arrays: tuple[Any, ...], lead: tuple[int, ...]) -> Any:
    """Several index arrays as one index array into the flattened axes."""
    if len(arrays) == 1:
        return np.asarray(arrays[0])  # a graph may have a Python int
    try:
        return np.ravel_multi_index(arrays, lead)  # checks the range
    except (ValueError, TypeError):  # some count from the end
        pass
    wrapped = [np.where(a < 0, a + n, a) for a, n in zip(arrays, lead, strict=True)]
    return np.ravel_multi_index(np.broadcast_arrays(*wrapped), lead)


def _within(place: Any, rows: int) -> bool:
    return bool(place.size) and place.min() >= -rows and place.max() < rows
