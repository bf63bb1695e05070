"""Hooks for np.poly1d and numpy.polynomial, whose polynomials may have traced coefficients.

NumPy cuts off coefficients of the highest powers that are zero, and with them their derivatives. Traced ones
are kept: the polynomial has the same values. Zeros that are not traced go, as in NumPy.
"""

from __future__ import annotations

from functools import cache, wraps
from itertools import dropwhile
from typing import Any

import numpy as np

from functrans.core import hooks
from functrans.core.dispatch import Tracer
from functrans.core.hooks import Hook
from functrans.core.tracer import FUNCTIONS
from functrans.surface.calculus import convolve
from functrans.surface.table import as_array, holds_tracer

_POLY1D = np.poly1d  # a name that may be hooked later
_init: Any = np.poly1d.__init__
_multiply: Any = vars(np.poly1d)["__mul__"]
_divide: Any = vars(np.poly1d)["__truediv__"]
_power: Any = vars(np.poly1d)["__pow__"]


@wraps(_init)
def _initialize(self: Any, c_or_r: Any, r: bool = False, variable: Any = None) -> None:
    if not holds_tracer(c_or_r):
        _init(self, c_or_r, r, variable)
        return
    if isinstance(c_or_r, (list, tuple)) and not r:
        c_or_r = list(dropwhile(lambda c: not isinstance(c, Tracer) and c == 0, c_or_r))
    coefficients = np.atleast_1d(as_array(c_or_r))
    if coefficients.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    _init(self, [1.0], False, variable)
    self._coeffs = np.poly(coefficients) if r else coefficients


def _is_traced(self: Any, other: Any) -> bool:
    """Whether an operation of two polynomials needs rules of ours; one with a number does not."""
    return not np.isscalar(other) and holds_tracer((self.coeffs, getattr(other, "coeffs", other)))


@wraps(_multiply)
def _product(self: Any, other: Any) -> Any:
    if not _is_traced(self, other):
        return _multiply(self, other)
    return _POLY1D(convolve(self.coeffs, _POLY1D(other).coeffs))


@wraps(_divide)
def _quotient(self: Any, other: Any) -> Any:
    if not _is_traced(self, other):
        return _divide(self, other)
    return tuple(map(_POLY1D, FUNCTIONS[np.polydiv](self.coeffs, _POLY1D(other).coeffs)))


@wraps(_power)
def _repeated_product(self: Any, val: Any) -> Any:
    is_count = isinstance(val, (int, np.integer)) and val > 0
    if not holds_tracer(self.coeffs) or not is_count:
        return _power(self, val)
    result = self
    for _ in range(int(val) - 1):
        result = _product(result, self)
    return result


_METHODS = (
    (_POLY1D, "__init__", _init, _initialize),
    (_POLY1D, "__mul__", _multiply, _product),
    (_POLY1D, "__truediv__", _divide, _quotient),
    (_POLY1D, "__pow__", _power, _repeated_product),
)
for _kind, _name, _original, _method in _METHODS:
    hooks.METHODS[_original.__code__] = (_kind, _name, _method)


def find(module: str, name: str, original: Any) -> Hook | None:
    """The hook for np.poly1d, or for a function or class of numpy.polynomial."""
    if original is _POLY1D:
        return Hook(_POLY1D, True, methods=_METHODS)
    # They run as they are, on hooked functions of NumPy's, if only nothing is cut off.
    from numpy.polynomial import polyutils  # which is slow to import

    trimming = (vars(polyutils), "trimseq", *_trimming(polyutils))
    return Hook(original, True, methods=(trimming,))


@cache
def _trimming(polyutils: Any) -> tuple[Any, Any]:
    """The function that cuts zeros off, and its hook."""
    original = polyutils.trimseq
    return original, wraps(original)(lambda seq: seq if holds_tracer(seq) else original(seq))
