"""How cotangents add up during a sweep.

A slot holds the cotangent of one value: a bare array while there is one contribution, which is not
ours to change, and an `Accumulator` when there are more. The accumulator adds in place into a buffer
that it owns, so that reading n entries of an n-vector one by one costs O(n), not O(n^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer


class Deposit:
    """A cotangent that touches only a part of its array, such as that of `x[i]`."""

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
        """All deposits into one array as a value, by primitives."""
        raise NotImplementedError


class Accumulator:
    """The sum of many cotangents, part of it in a buffer that may be changed in place."""

    __slots__ = ("buffer", "deposits", "total")

    def __init__(self, total: Any) -> None:
        self.total = total
        self.buffer: Any = None
        self.deposits: list[Deposit] = []

    def add(self, cotangent: Any) -> None:
        if isinstance(cotangent, Deposit):
            if isinstance(cotangent.value, Tracer):
                self.deposits.append(cotangent)
                return
            if self.buffer is None:
                if type(self.total) is not np.ndarray or not self.total.ndim:
                    self.buffer = cotangent.new_buffer()
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

    def only_buffer(self) -> Any:
        """The buffer, if it is all there is, else None."""
        return self.buffer if self.total is None and not self.deposits else None

    def settle(self) -> Any:
        """The sum as a value."""
        parts = [part for part in (self.buffer, self.total) if part is not None]
        if self.deposits:
            parts.append(self.deposits[0].merge(self.deposits))
        result = parts[0]
        for part in parts[1:]:
            result = result + part
        return result


def accumulate(slot: Any, cotangent: Any) -> Any:
    """The slot with one more cotangent added."""
    cotangent = settled(cotangent)
    if type(slot) is Accumulator:
        slot.add(cotangent)
        return slot
    if isinstance(cotangent, Deposit) or (type(slot) is np.ndarray and slot.ndim):
        accumulator = Accumulator(slot)
        accumulator.add(cotangent)
        return accumulator
    return cotangent if slot is None else slot + cotangent


def settled(cotangent: Any) -> Any:
    """A cotangent as a value."""
    return cotangent.settle() if type(cotangent) is Accumulator else cotangent
