"""How cotangents add up during a backward pass.

A slot holds the cotangent of one value: a bare array while there is one contribution, which must not be
changed, and an `Accumulator` when there are more. The accumulator adds in place into a buffer that it
owns, so that reading n entries of an n-vector one by one costs O(n), not O(n^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.shapes import cast, dtype_of
from functrans.core.summation import WIDER

_BLOCK = 64  # the number of cotangents that are added one after the other
_FLOAT16 = np.dtype(np.float16)
_NARROW_NUMBERS = frozenset({np.float16, np.float32, np.complex64})


class Deposit:
    """A cotangent that touches only part of its array, such as that of `x[i]`."""

    __slots__ = ("value",)

    value: Any

    def new_buffer(self) -> np.ndarray[Any, Any]:
        """Zeros of the shape of the whole array, with `value` added to its part; `value` is plain."""
        raise NotImplementedError

    def add_to(self, buffer: np.ndarray[Any, Any]) -> None:
        """Add to the part of `buffer`, in place; `value` is plain."""
        raise NotImplementedError

    @staticmethod
    def merge(deposits: list[Any]) -> Any:
        """All deposits into one array as a value, computed with primitives."""
        raise NotImplementedError


class Accumulator:
    """The sum of many cotangents, part of it in a buffer that may be changed in place.

    The error does not grow with their number: the sums of blocks are kept in a wider dtype.
    """

    __slots__ = ("buffer", "deposits", "dtype", "has_parts", "left", "total", "wide")

    def __init__(self, total: Any) -> None:
        self.total = total
        self.buffer: Any = None
        self.has_parts = False  # whether the buffer has deposits
        self.deposits: list[Deposit] = []
        self.wide: Any = None  # the sum of earlier blocks
        self.dtype: Any = None  # that of the cotangents, if some of their sum is in a wider one
        self.left = _BLOCK if getattr(total, "dtype", None) is not _FLOAT16 else 1  # in this block

    def add(self, cotangent: Any) -> None:
        self.left -= 1
        if self.left < 0:
            self._end_block()
        if issubclass(type(cotangent), Deposit):
            if isinstance(cotangent.value, Tracer):
                self.deposits.append(cotangent)
                return
            self.has_parts = True
            if self.buffer is None:
                if type(self.total) is not np.ndarray or not self.total.ndim:
                    self.buffer = cotangent.new_buffer()
                    self.left = _BLOCK if self.buffer.dtype is not _FLOAT16 else 1
                    return
                self.buffer, self.total = self.total.copy(), None
            cotangent.add_to(self.buffer)
        elif type(cotangent) is np.ndarray and cotangent.ndim:
            if self.buffer is not None and self.buffer.dtype == cotangent.dtype:
                np.add(self.buffer, cotangent, out=self.buffer)
            elif self.buffer is None and type(self.total) is np.ndarray:
                self.buffer, self.total = self.total + cotangent, None
            else:
                self.total = cotangent if self.total is None else self.total + cotangent
        else:
            self.total = cotangent if self.total is None else self.total + cotangent

    def _end_block(self) -> None:
        """Continue in a wider dtype, if there is one."""
        if self.buffer is not None and self.has_parts:
            # A new buffer for every block would cost more than the additions.
            if self.buffer.dtype in WIDER and self.dtype is None:
                self.dtype = self.buffer.dtype
                self.buffer = self.buffer.astype(WIDER[self.dtype])
        elif self._widens(self.buffer):
            self.buffer = None
        if self._widens(self.total):
            self.total = None
        self.left = 1 if self.dtype is _FLOAT16 else _BLOCK

    def _widens(self, part: Any) -> bool:
        """Whether part of the sum is already in a wider dtype."""
        wider = None if part is None else WIDER.get(dtype_of(part))
        if wider is None:
            return False
        self.dtype = dtype_of(part)
        part = part.astype(wider)
        self.wide = part if self.wide is None else self.wide + part
        return True

    def only_buffer(self) -> Any:
        """The buffer, if it is all there is, else None."""
        alone = self.total is self.dtype is None and not self.deposits
        return self.buffer if alone else None

    def settle(self) -> Any:
        """The sum as a value."""
        parts = [part for part in (self.wide, self.buffer, self.total) if part is not None]
        if self.deposits:
            parts.append(self.deposits[0].merge(self.deposits))
        result = parts[0]
        for part in parts[1:]:
            result = result + part
        return result if self.dtype is None else cast(result, self.dtype)


def accumulate(slot: Any, cotangent: Any) -> Any:
    """The slot with one more cotangent added."""
    cotangent = settled(cotangent)
    if type(slot) is Accumulator:
        slot.add(cotangent)
        return slot
    if (
        issubclass(type(cotangent), Deposit)
        or (type(slot) is np.ndarray and slot.ndim)
        or type(slot) in _NARROW_NUMBERS
    ):
        accumulator = Accumulator(slot)
        accumulator.add(cotangent)
        return accumulator
    return cotangent if slot is None else slot + cotangent


def settled(cotangent: Any) -> Any:
    """A cotangent as a value."""
    return cotangent.settle() if type(cotangent) is Accumulator else cotangent
