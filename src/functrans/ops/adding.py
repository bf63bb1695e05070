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
    if width < 2 or np.dtype(dtype).kind != "f":
        return _added(np.zeros(shape, dtype), rows, width, arrays, value)
    place = _flat(arrays, lead).reshape(-1)
    if 20 * place.size < rows or not _within(place, rows):
        return _added(np.zeros(shape, dtype), rows, width, (place,), value)
    entries = (place % rows)[:, None] * width + np.arange(width)
    sums = np.bincount(entries.reshape(-1), np.asarray(value).reshape(-1), rows * width)
    return sums.reshape(shape).astype(dtype, copy=False)


def _flat(arrays: tuple[Any, ...], lead: tuple[int, ...]) -> Any:
    """Several index arrays as one into the flattened axes."""
    if len(arrays) == 1:
        return arrays[0]
    wrapped = [np.where(a < 0, a + n, a) for a, n in zip(arrays, lead, strict=True)]
    return np.ravel_multi_index(np.broadcast_arrays(*wrapped), lead)  # checks the range


def _within(place: Any, rows: int) -> bool:
    return bool(place.size) and place.min() >= -rows and place.max() < rows


def _added(buffer: Any, rows: int, width: int, arrays: tuple[Any, ...], value: Any) -> Any:
    if width < 2 or len(arrays) > 1:
        lead = buffer.shape[: len(arrays)]
        flat = buffer.reshape(-1) if width < 2 else buffer.reshape(rows, width)
        place = _flat(arrays, lead).reshape(-1)
        _add.at(flat, place, np.asarray(value).reshape(place.size, *flat.shape[1:]))
        return buffer
    place = arrays[0]
    values, table = np.asarray(value).reshape(place.size, width), buffer.reshape(rows, width)
    if not _within(place, rows):
        _add.at(table, place, values)  # NumPy says what is wrong
        return buffer
    place = place % rows
    order = np.argsort(place, kind="stable")
    place = place[order]
    starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
    table[place[starts]] = _add.reduceat(values[order], starts, axis=0)
    return buffer
