"""Convolutions and correlations, and division of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy import filters
from functrans.scipy.delegation import delegates
from functrans.scipy.filters import ss
from functrans.scipy.signal.filtering import lfilter
from functrans.surface.table import as_array, axis_index, ndim_of

_MODES = ("full", "same", "valid")


def _pair(in1: Any, in2: Any) -> tuple[Any, Any]:
    x, y = as_array(in1), as_array(in2)
    if ndim_of(x) != ndim_of(y):
        raise ValueError("in1 and in2 should have the same dimensionality")
    return x, y


def _part(
    full: Any, first: tuple[int, ...], second: tuple[int, ...], mode: str, late: bool = False
) -> Any:
    """What a mode keeps of the last axes of a full convolution; `late` for the later of two middles."""
    if mode not in _MODES:
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    if mode == "full":
        return full
    if mode == "same":
        place = [(n - 1 + late) // 2 for n in second]
        lengths = list(first)
    else:
        larger = [m >= n for m, n in zip(first, second, strict=True)]
        if not all(larger) and not all(n >= m for m, n in zip(first, second, strict=True)):
            raise ValueError(
                "For 'valid' mode, one must be at least as large as the other in every dimension"
            )
        place = [min(m, n) - 1 for m, n in zip(first, second, strict=True)]
        lengths = [abs(m - n) + 1 for m, n in zip(first, second, strict=True)]
    return full[(..., *(slice(k, k + n) for k, n in zip(place, lengths, strict=True)))]


def _convolved(x: Any, y: Any, mode: str) -> Any:
    if not ndim_of(x):
        return x * y
    if 0 in shape_of(x) + shape_of(y):
        return np.array([], np.result_type(dtype_of(x), dtype_of(y)))
    full = filters.convolve(x, y, ndim=ndim_of(x))
    return _part(full, shape_of(x), shape_of(y), mode)


def _reversed(x: Any) -> Any:
    flipped = np.flip(x)
    return np.conj(flipped) if dtype_of(x).kind == "c" else flipped


@delegates(ss.convolve)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays along all axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import convolve
    >>> grad(lambda x: convolve(x, np.array([1.0, 2.0]))[1])(np.ones(3))
    array([2., 1., 0.])
    """
    return _convolved(*_pair(in1, in2), mode)


@delegates(ss.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation of two arrays along all axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import correlate
    >>> grad(lambda x: correlate(x, np.array([1.0, 2.0]), mode="valid")[0])(np.ones(3))
    array([1., 2., 0.])
    """
    x, y = _pair(in1, in2)
    return _convolved(x, _reversed(y) if ndim_of(y) else np.conj(y), mode)


def _along(in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    x, y = _pair(in1, in2)
    if dtype_of(x).kind not in "fc" and dtype_of(y).kind not in "fc":
        x = x.astype(np.float64)
    ndim = ndim_of(x)
    if axes is None:
        return _convolved(x, y, mode)
    chosen = [axes] if isinstance(axes, (int, np.integer)) else list(axes)
    chosen = sorted({axis_index(axis, ndim) for axis in chosen})
    if not chosen:
        return x * y
    ends = range(ndim - len(chosen), ndim)
    x, y = np.moveaxis(x, chosen, ends), np.moveaxis(y, chosen, ends)
    core = len(chosen)
    full = filters.convolve(x, y, ndim=core)
    out = _part(full, shape_of(x)[-core:], shape_of(y)[-core:], mode)
    return np.moveaxis(out, ends, chosen)


@delegates(ss.fftconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along some axes; the others broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import fftconvolve
    >>> grad(lambda x: fftconvolve(x, np.array([1.0, 2.0]))[1])(np.ones(3))
    array([2., 1., 0.])
    """
    return _along(in1, in2, mode, axes)


@delegates(ss.oaconvolve)
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along some axes; the others broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import oaconvolve
    >>> grad(lambda x: oaconvolve(x, np.array([1.0, 2.0]))[1])(np.ones(3))
    array([2., 1., 0.])
    """
    return _along(in1, in2, mode, axes)


def _planar(x: Any, y: Any, mode: str, boundary: str, fillvalue: Any, late: bool = False) -> Any:
    """A convolution in the plane, with what lies beyond the border of x."""
    if ndim_of(x) != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if mode not in _MODES:
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    first, second = shape_of(x), shape_of(y)
    if mode == "valid":
        return _convolved(x, y, mode)
    margins = [(n - 1, n - 1) for n in second]
    if boundary in ("fill", "pad"):
        wider = np.pad(x, margins, constant_values=fillvalue)
    elif boundary in ("wrap", "circular"):
        wider = np.pad(x, margins, mode="wrap")
    elif boundary in ("symm", "symmetric"):
        wider = np.pad(x, margins, mode="symmetric")
    else:
        raise ValueError(
            f"Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), not {boundary!r}"
        )
    full = _convolved(wider, y, "full")
    place = tuple(slice(n - 1, n - 1 + m + n - 1) for m, n in zip(first, second, strict=True))
    return _part(full[place], first, second, mode, late)


@delegates(ss.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The convolution of two matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import convolve2d
    >>> grad(lambda x: convolve2d(x, np.array([[1.0, 2.0]]))[0, 1])(np.ones((1, 2)))
    array([[2., 1.]])
    """
    return _planar(*_pair(in1, in2), mode, boundary, fillvalue)


@delegates(ss.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The correlation of two matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import correlate2d
    >>> grad(lambda x: correlate2d(x, np.array([[1.0, 2.0]]), "valid")[0, 0])(np.ones((1, 2)))
    array([[1., 2.]])
    """
    x, y = _pair(in1, in2)
    return _planar(x, _reversed(y), mode, boundary, fillvalue, late=True)


@delegates(ss.deconvolve)
def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of the division of polynomials.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import deconvolve
    >>> grad(lambda d: deconvolve(np.array([1.0, 3.0, 2.0]), d)[0][1])(np.array([1.0, 1.0]))
    array([-1., -1.])
    """
    num, den = np.atleast_1d(as_array(signal)), np.atleast_1d(as_array(divisor))
    if ndim_of(num) > 1 or ndim_of(den) > 1:
        raise ValueError("signal and divisor must be 1-D.")
    count = shape_of(num)[0] - shape_of(den)[0] + 1
    if count < 1:
        return np.array([]), num
    impulse = np.zeros(count)
    impulse[0] = 1
    quotient = lfilter(num, den, impulse)
    return quotient, num - convolve(den, quotient)
