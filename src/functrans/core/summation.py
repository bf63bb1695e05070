"""Sums whose error does not grow with the number of terms, whatever the axes and the layout.

NumPy adds pairwise along the axis whose entries are adjacent in memory, which keeps the error small, and
sequentially along all others: the float32 sum of four million rows has two or three correct digits. Here
such axes are summed in blocks, and then the sums of blocks, in double precision. Short rows that follow each
other in memory are treated as one long row, which is also several times faster.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

FEW = 256  # up to this many numbers are added sequentially: blocks would cost more than they gain
# Rows in a block: few if rows are short, which costs nothing, and more if there are digits to spare.
_SHORT_BLOCK, _BLOCK, _DOUBLE_BLOCK = 32, 64, 128
_ROW_BYTES = 8192  # a row of this length and its running sum stay in the fastest cache
_COLUMNS = 8  # up to this many columns that do not fill their rows are summed one by one
_FLOAT32 = np.dtype(np.float32)
# The dtypes for sums of blocks, for dtypes with few digits compared to the possible number of terms.
WIDER: dict[Any, np.dtype[Any]] = {
    np.dtype(np.float16): _FLOAT32,
    _FLOAT32: np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}
_reduce: Any = np.add.reduce
_ndarray = np.ndarray


def add_up(x: Any, axis: tuple[int, ...], keepdims: bool = False) -> Any:
    """np.sum(x, axis) of a plain array, as accurate as if each sum were that of a vector.

    Half precision is summed in single precision, as NumPy does with vectors.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.full((1_000_000, 2), 0.1, np.float32)
    >>> np.round(add_up(rows, (0,)))
    array([100000., 100000.], dtype=float32)
    """
    if type(x) is _ndarray and x.ndim > 1 and axis:
        shape = x.shape
        terms = shape[axis[0]] if len(axis) == 1 else prod([shape[a] for a in axis])
        if (terms > FEW or x.itemsize == 2) and x.dtype.kind in "fc" and not _is_in_pairs(x, axis):
            total = _exact(x, axis, terms).astype(x.dtype.newbyteorder("="), copy=False)
            if keepdims:
                total = np.reshape(total, [1 if a in axis else n for a, n in enumerate(shape)])
            return total
    return _reduce(x, axis, None, None, keepdims)


def _is_in_pairs(x: Any, axis: tuple[int, ...]) -> bool:
    """Whether NumPy finds all terms of a sum next to each other."""
    flags, count = x.flags, len(axis)
    return bool(
        (flags.c_contiguous and min(axis) == x.ndim - count)
        or (flags.f_contiguous and max(axis) == count - 1)
    )


def _exact(x: Any, axis: tuple[int, ...], terms: int) -> Any:
    """The sum of any array, in the dtype in which it was computed; over all axes, a scalar."""
    if x.flags.c_contiguous and max(axis) == len(axis) - 1 and x.dtype.isnative and x.size:
        return _along(x.reshape(terms, -1), 0).reshape(x.shape[len(axis) :])  # the usual case
    if not (x.dtype.isnative and x.flags.aligned):
        x = x.astype(x.dtype.newbyteorder("="))  # NumPy would do it in many pieces
    kept = tuple(n for a, n in enumerate(x.shape) if a not in axis)
    if x.size == 0:
        return np.zeros(kept, x.dtype)[()]
    # Repeated entries are summed by a product.
    count = 1
    for a, (n, stride) in enumerate(zip(x.shape, x.strides, strict=True)):
        if stride == 0 and n > 1:
            x = x[(*[slice(None)] * a, slice(0, 1))]
            count *= n if a in axis else 1
    # From the longest stride to the shortest, as NumPy goes through memory.
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))
    places = [a for a in order if a not in axis]
    lengths = [x.shape[a] for a in places]
    total = _along_all(x.transpose(order), [a in axis for a in order])
    if count > 1:
        total = total * (_FLOAT32 if total.itemsize == 2 else total.dtype).type(count)
    if not kept:
        return total.reshape(())[()]
    ranks = sorted(range(len(places)), key=places.__getitem__)
    total = total.reshape(lengths).transpose(ranks)
    return total if total.shape == kept else np.array(np.broadcast_to(total, kept))


def _along_all(x: Any, reduced: list[bool]) -> Any:
    """The sum of an array whose strides decrease; the result is flat."""
    x, reduced = _merged(x, reduced)
    while True in reduced:
        # The longest axis first: it leaves the least to be added up further.
        place = max((n, a) for a, n in enumerate(x.shape) if reduced[a])[1]
        x = _along(x, place)
        x, reduced = _merged(x, reduced[:place] + reduced[place + 1 :])
    return x


def _merged(x: Any, reduced: list[bool]) -> tuple[Any, list[bool]]:
    """The same array with neighboring axes of the same kind merged, where memory allows it."""
    lengths: list[int] = []
    strides: list[int] = []
    kinds: list[bool] = []
    for n, stride, kind in zip(x.shape, x.strides, reduced, strict=True):
        if n == 1:
            continue
        if kinds and kinds[-1] == kind and strides[-1] == n * stride:
            lengths[-1] *= n
            strides[-1] = stride
        else:
            lengths.append(n)
            strides.append(stride)
            kinds.append(kind)
    return x.reshape(lengths), kinds


def _along(x: Any, axis: int) -> Any:
    """The sum along one axis of an array whose strides decrease, perhaps in a wider dtype."""
    dtype = _FLOAT32 if x.itemsize == 2 else None
    shape, last = x.shape, x.ndim - 1
    n = shape[axis]
    if n <= _SHORT_BLOCK or axis == last:
        return _reduce(x, axis, dtype)
    # Rows of the last axis that follow each other in memory are merged into one row.
    block = _BLOCK if x.dtype in WIDER else _DOUBLE_BLOCK
    together, before, after = 1, shape[:axis], shape[axis + 1 :]
    if axis == last - 1:
        width = shape[last]
        if x.strides[axis] == width * x.strides[last]:
            row_bytes = width * x.itemsize
            if 16 * row_bytes <= _ROW_BYTES:
                block = _SHORT_BLOCK
            together = min(-(-n // block), _ROW_BYTES // row_bytes) or 1
            after = (together * width,)
        elif width <= _COLUMNS:
            return np.stack([_reduce(x[..., k], axis, dtype) for k in range(width)], -1)
    blocks = -(-n // (block * together))
    length = n // (blocks * together)  # of a block, in such rows
    whole = blocks * together * length
    everything = (slice(None),) * axis
    head = x if whole == n else x[(*everything, slice(0, whole))]
    sums = _reduce(head.reshape((*before, blocks, length, *after)), axis + 1, dtype)
    sums = sums.reshape((*before, blocks * together, *shape[axis + 1 :]))
    if whole < n:
        sums[(*everything, slice(0, n - whole))] += x[(*everything, slice(whole, n))]
    if blocks * together <= block:
        return _reduce(sums, axis)
    return _along(sums.astype(WIDER.get(sums.dtype, sums.dtype), copy=False), axis)
