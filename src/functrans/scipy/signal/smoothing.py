"""Smoothing and removal of trends: Savitzky and Golay, medians, Wiener; and the analytic signal."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy import filters
from functrans.scipy.delegation import delegates, is_traced
from functrans.scipy.filters import ss
from functrans.scipy.signal.convolutions import correlate
from functrans.surface.table import as_array, axis_index, ndim_of

_PADS = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


@delegates(ss.savgol_coeffs)
def savgol_coeffs(
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: Any = 1.0,
    pos: int | None = None,
    use: str = "conv",
    *,
    xp: Any = None,
    device: Any = None,
) -> Any:
    """The coefficients of the filter of Savitzky and Golay, for samples at distance `delta`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal import savgol_coeffs
    >>> float(grad(lambda d: savgol_coeffs(3, 1, deriv=1, delta=d)[0])(0.5).round(6))
    -2.0
    """
    return ss.savgol_coeffs(window_length, polyorder, deriv, 1.0, pos, use) / delta**deriv


@delegates(ss.savgol_filter)
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: Any = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """A signal, smoothed by polynomials that are fitted in a moving window.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import savgol_filter
    >>> grad(lambda x: savgol_filter(x, 3, 1)[1])(np.ones(4)).round(6)
    array([0.333333, 0.333333, 0.333333, 0.      ])
    """
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError(
            "mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp', not " + repr(mode)
        )
    signal = as_array(x)
    if dtype_of(signal) != np.float32 and dtype_of(signal) != np.float64:
        signal = signal.astype(np.float64)
    dtype = dtype_of(signal)
    signal = np.moveaxis(signal, axis_index(axis, ndim_of(signal)), -1)
    length, half = shape_of(signal)[-1], window_length // 2
    taps = ss.savgol_coeffs(window_length, polyorder, deriv).astype(dtype)
    if mode == "interp":
        if window_length > length:
            raise ValueError(
                "If mode is 'interp', window_length must be less than or equal to the size of x."
            )
        # At the ends, the polynomial of the first and the last window is evaluated: a matrix.
        ends = ss.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, axis=0)
        ends = ends.astype(dtype)
        first = signal[..., :window_length] @ ends[:half].T
        last = signal[..., length - window_length :] @ ends[window_length - half :].T
        start = window_length - window_length % 2
        middle = filters.convolve(signal, taps, ndim=1)[..., start : start + length - 2 * half]
        out = np.concatenate([first, middle, last], axis=-1)
    else:
        options = {"constant_values": cval} if mode == "constant" else {}
        margins = [(0, 0)] * (ndim_of(signal) - 1) + [(half, half)]
        wider = np.pad(signal, margins, mode=_PADS[mode], **options)  # type: ignore[call-overload]
        full = filters.convolve(wider, taps, ndim=1)
        start = window_length - 1 + (window_length % 2 == 0)
        out = full[..., start : start + length]
    if deriv and (is_traced(delta) or delta != 1):
        out = out / delta**deriv
    return np.moveaxis(out.astype(dtype), -1, axis)


@delegates(ss.detrend)
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    """Data without their mean, or without the line that fits them best, between breakpoints `bp`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import detrend
    >>> grad(lambda x: detrend(x, type="constant")[0])(np.ones(4))
    array([ 0.75, -0.25, -0.25, -0.25])
    """
    signal = as_array(data)
    if dtype_of(signal).kind not in "fc":
        signal = signal.astype(np.float64)
    if type in ("constant", "c"):
        return signal - np.mean(signal, axis, keepdims=True)
    if type not in ("linear", "l"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    axis = axis_index(axis, ndim_of(signal))
    rows = np.moveaxis(signal, axis, -1)
    length = shape_of(rows)[-1]
    breaks = np.sort(np.unique(np.concatenate([[0], np.ravel(bp), [length]]).astype(int)))
    if np.any(breaks > length):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    parts = []
    for start, stop in pairwise(breaks):
        steps = np.arange(1, stop - start + 1) / (stop - start)
        lines = np.stack([steps, np.ones(stop - start)], axis=1)
        fitted = (lines @ np.linalg.pinv(lines)).astype(dtype_of(rows))
        part = rows[..., start:stop]
        parts.append(part - part @ fitted.T)
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, axis)


def _step(n: int) -> Any:
    """Twice the Heaviside function on the frequencies of a transform of length n."""
    step = np.zeros(n)
    step[0] = 1
    step[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        step[n // 2] = 1
    return step


@delegates(ss.hilbert)
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal: x, and i times its Hilbert transform.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import hilbert
    >>> grad(lambda x: hilbert(x).imag[0])(np.ones(4))
    array([ 0. , -0.5,  0. ,  0.5])
    """
    signal = as_array(x)
    if dtype_of(signal).kind == "c":
        raise ValueError("x must be real.")
    axis = axis_index(axis, ndim_of(signal))
    n = shape_of(signal)[axis] if N is None else N
    if n <= 0:
        raise ValueError("N must be positive.")
    frequencies = np.fft.fft(signal, n, axis=axis)
    step = _step(n).reshape((-1,) + (1,) * (ndim_of(signal) - axis - 1))
    return np.fft.ifft(frequencies * step.astype(dtype_of(frequencies)), axis=axis)


@delegates(ss.medfilt)
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """The medians in moving windows; beyond the border are zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import medfilt
    >>> grad(lambda x: medfilt(x, 3)[1])(np.array([1.0, 5.0, 2.0]))
    array([0., 0., 1.])
    """
    data = np.atleast_1d(as_array(volume))
    ndim, shape = ndim_of(data), shape_of(data)
    sizes = np.broadcast_to(3 if kernel_size is None else np.asarray(kernel_size), (ndim,))
    if any(size % 2 != 1 for size in sizes):
        raise ValueError("Each element of kernel_size should be odd.")
    wider = np.pad(data, [(int(size) // 2, int(size) // 2) for size in sizes])
    windows = [
        wider[tuple(slice(k, k + n) for k, n in zip(start, shape, strict=True))]
        for start in product(*(range(int(size)) for size in sizes))
    ]
    ranked = np.sort(np.stack(windows, axis=-1), axis=-1)
    return ranked[..., prod(int(size) for size in sizes) // 2]


@delegates(ss.medfilt2d)
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """The medians in moving windows of a matrix; beyond the border are zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import medfilt2d
    >>> grad(lambda x: medfilt2d(x, [1, 3])[0, 1])(np.array([[1.0, 5.0, 2.0]]))
    array([[0., 0., 1.]])
    """
    if ndim_of(as_array(input)) != 2:
        raise ValueError("Input image must be 2-D")
    return medfilt(input, kernel_size)


@delegates(ss.wiener)
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """An image, smoothed by the local mean where its variance is not above that of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import wiener
    >>> grad(lambda x: wiener(x, 3, 100.0)[1])(np.arange(4.0)).round(6)
    array([0.333333, 0.333333, 0.333333, 0.      ])
    """
    image = as_array(im)
    sizes = np.broadcast_to(3 if mysize is None else np.asarray(mysize), (ndim_of(image),))
    window = np.ones(tuple(int(size) for size in sizes))
    count = window.size
    mean = correlate(image, window, "same") / count
    variance = correlate(image**2, window, "same") / count - mean**2
    if noise is None:
        noise = np.mean(variance)
    quiet = variance < noise
    kept = 1 - noise / np.where(quiet, 1, variance)
    return np.where(quiet, mean, (image - mean) * kept + mean)
