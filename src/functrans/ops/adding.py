"""buffer[i, j, ...] += rows, where an entry may be named more than once, by the fastest way there is.

np.add.at is fast for numbers, and slow for rows. Rows are added up by np.bincount over all their
entries, or, if they are few beside the buffer, by sorting them first and touching no other row.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

_add: Any = np.add


def sum_rows(shape: tuple[int, ...], dtype: Any, arrays: tuple[Any, ...], value: Any) -> Any:
    """Zeros to which value[k] is added at [arrays[0][k], arrays[1][k], ...], for all k in turn."""
    lead, tail = shape[: len(arrays)], shape[len(arrays) :]
    rows, width = prod(lead), prod(tail)
    place = np.asarray(_flat(arrays, lead)).reshape(-1)  # an index may be a Python integer
    values = np.asarray(value).reshape(place.size, width)
    rows_of_floats = width > 1 and np.dtype(dtype).kind == "f"
    if rows_of_floats and 20 * place.size > rows and _within(place, rows):
        entries = (place % rows)[:, None] * width + np.arange(width)
        sums = np.bincount(entries.reshape(-1), values.reshape(-1), rows * width)
        return sums.reshape(shape).astype(dtype, copy=False)
    table = np.zeros((rows, width), dtype)
    if width == 1:
        _add.at(table.reshape(-1), place, values.reshape(-1))
    elif not _within(place, rows):
        _add.at(table, place, values)  # nothing, or NumPy says what is wrong
    else:
        order = np.argsort(place % rows, kind="stable")
        place = (place % rows)[order]
        starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
        table[place[starts]] = _add.reduceat(values[order], starts, axis=0)
    return table.reshape(shape)


def _flat(arrays: tuple[Any, ...], lead: tuple[int, ...]) -> Any:
    """Several index arrays as one into the flattened axes."""
    if len(arrays) == 1:
        return np.asarray(arrays[0])  # a graph may have a Python int
    wrapped = [np.where(a < 0, a + n, a) for a, n in zip(arrays, lead, strict=True)]
    return np.ravel_multi_index(np.broadcast_arrays(*wrapped), lead)  # checks the range


def _within(place: Any, rows: int) -> bool:
    return bool(place.size) and place.min() >= -rows and place.max() < rows
