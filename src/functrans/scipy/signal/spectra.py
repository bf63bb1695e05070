"""Spectra of signals, from Fourier transforms of overlapping segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.delegation import delegates, is_traced, refuse_option
from functrans.scipy.filters import ss
from functrans.scipy.signal import smoothing
from functrans.scipy.signal.filtering import extended
from functrans.surface.table import as_array, axis_index, ndim_of


class _Segments:
    """How a signal is cut into segments, and how these are transformed."""

    def __init__(
        self, length: int, window: Any, nperseg: Any, noverlap: Any, nfft: Any, shorten: bool = True
    ) -> None:
        named = isinstance(window, (str, tuple))
        if named:
            size = 256 if nperseg is None else int(nperseg)
            if size < 1:
                raise ValueError("nperseg must be a positive integer")
            if shorten:
                size = min(size, length)
            self.window = ss.get_window(window, size)
        else:
            self.window = as_array(window)
            size = shape_of(self.window)[0]
            if ndim_of(self.window) != 1 or (nperseg is not None and nperseg != size):
                raise ValueError("value specified for nperseg is different from length of window")
            if size > length and shorten:
                raise ValueError("window is longer than input signal")
        self.size = size
        self.nfft = size if nfft is None else int(nfft)
        if self.nfft < size:
            raise ValueError("nfft must be greater than or equal to nperseg.")
        self.overlap = size // 2 if noverlap is None else int(noverlap)
        if self.overlap >= size:
            raise ValueError("noverlap must be less than nperseg.")
        self.step = size - self.overlap

    def starts(self, length: int) -> Any:
        return np.arange(0, length - self.size + 1, self.step)

    def transformed(self, x: Any, trend: Any, onesided: bool) -> Any:
        """The spectra of all segments of the last axis, as (..., segment, frequency)."""
        places = self.starts(shape_of(x)[-1])[:, None] + np.arange(self.size)
        pieces = _without_trend(x[..., places], trend) * self.window.astype(
            dtype_of(x).type(0).real.dtype
        )
        return np.fft.rfft(pieces, self.nfft) if onesided else np.fft.fft(pieces, self.nfft)

    def frequencies(self, fs: Any, onesided: bool) -> Any:
        return (np.fft.rfftfreq if onesided else np.fft.fftfreq)(self.nfft) * fs


def _without_trend(pieces: Any, trend: Any) -> Any:
    if trend is False or trend is None:
        return pieces
    if callable(trend):
        return trend(pieces)
    return smoothing.detrend(pieces, type=trend)


def _floating(x: Any) -> Any:
    array = as_array(x)
    return array if dtype_of(array).kind in "fc" else array.astype(np.float64)


def _density(
    x: Any, y: Any, fs: Any, segments: _Segments, trend: Any, onesided: bool, scaling: str
) -> Any:
    """conj(X) Y of all segments, scaled, as (..., segment, frequency)."""
    if scaling == "density":
        scale = 1 / (fs * np.sum(segments.window**2))
    elif scaling == "spectrum":
        scale = 1 / np.sum(segments.window) ** 2
    else:
        raise ValueError(f"Parameter scaling={scaling!r} not in ['density', 'spectrum']!")
    left = segments.transformed(x, trend, onesided)
    right = left if y is None else segments.transformed(y, trend, onesided)
    product = np.conj(left) * right
    if y is None:
        product = product.real
    if onesided:  # negative frequencies count as positive ones
        counts = np.full(shape_of(product)[-1], 2.0)
        counts[0] = 1
        if segments.nfft % 2 == 0:
            counts[-1] = 1
        product = product * counts.astype(dtype_of(product).type(0).real.dtype)
    return product * as_array(scale).astype(dtype_of(product).type(0).real.dtype)


def _averaged(product: Any, average: str) -> Any:
    if average == "mean":
        return np.mean(product, axis=-2)
    if average != "median":
        raise ValueError(f"average must be 'median' or 'mean', but is {average!r}")
    # the median of exponentially distributed numbers, relative to their mean
    pairs = 2.0 * np.arange(1, (shape_of(product)[-2] - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (pairs + 1) - 1 / pairs)
    if dtype_of(product).kind == "c":
        middle = np.median(product.real, axis=-2) + 1j * np.median(product.imag, axis=-2)
    else:
        middle = np.median(product, axis=-2)
    return middle / bias


def _signals(x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    first = _floating(x)
    axis = axis_index(axis, ndim_of(first))
    first = np.moveaxis(first, axis, -1)
    if y is None:
        return first, None, axis
    second = np.moveaxis(_floating(y), axis, -1)
    lengths = shape_of(first)[-1], shape_of(second)[-1]
    if lengths[0] != lengths[1]:  # the shorter one is followed by zeros
        longest = max(lengths)
        first, second = (
            np.concatenate(
                [each, np.zeros((*shape_of(each)[:-1], longest - shape_of(each)[-1]))], axis=-1
            )
            for each in (first, second)
        )
    return first, second, axis


@delegates(ss.periodogram)
def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Any]:
    """The frequencies and the power of a signal.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import periodogram
    >>> grad(lambda x: periodogram(x)[1][1])(np.array([1.0, 0.0, 0.0, 0.0]))
    array([ 1.,  0., -1.,  0.])
    """
    signal = as_array(x)
    length = shape_of(signal)[axis]
    size = length if nfft is None else int(nfft)
    if size < length:
        place = (slice(None),) * axis_index(axis, ndim_of(signal)) + (slice(size),)
        signal, length = signal[place], size
    return welch(
        signal, fs, window, length if isinstance(window, (str, tuple)) else None, 0, size, detrend,
        return_onesided, scaling, axis,
    )  # fmt: skip


@delegates(ss.welch)
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The frequencies and the power of a signal, averaged over segments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import welch
    >>> grad(lambda x: np.sum(welch(x, nperseg=4)[1]))(np.arange(8.0) ** 2).shape
    (8,)
    """
    frequencies, power = csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip
    return frequencies, power


@delegates(ss.csd)
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The frequencies and the cross power of two signals, averaged over segments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import csd
    >>> y = np.arange(8.0)
    >>> grad(lambda x: np.sum(csd(x, y, nperseg=4)[1].real))(y**2).shape
    (8,)
    """
    first, second, axis = _signals(x, None if y is x else y, axis)
    segments = _Segments(shape_of(first)[-1], window, nperseg, noverlap, nfft)
    plain = dtype_of(first).kind != "c" and (second is None or dtype_of(second).kind != "c")
    onesided = bool(return_onesided) and plain
    product = _density(first, second, fs, segments, detrend, onesided, scaling)
    out = np.moveaxis(_averaged(product, average), -1, axis)
    return segments.frequencies(fs, onesided), out


@delegates(ss.coherence)
def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> tuple[Any, Any]:
    """The frequencies and the coherence of two signals, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import coherence
    >>> y = np.arange(8.0)
    >>> grad(lambda x: coherence(x, y, nperseg=4)[1][1])(y**2).shape
    (8,)
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis)
    frequencies, first = csd(x, None, *options)
    _, second = csd(y, None, *options) if is_traced(y) else ss.welch(y, *options)
    _, both = csd(x, y, *options)
    return frequencies, (both * np.conj(both)).real / first / second


@delegates(ss.spectrogram)
def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Any, Any, Any]:
    """The frequencies, the times of segments, and the power of a signal in them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import spectrogram
    >>> grad(lambda x: np.sum(spectrogram(x, nperseg=4)[2]))(np.arange(8.0) ** 2).shape
    (8,)
    """
    if mode not in ("psd", "complex", "magnitude", "angle"):
        refuse_option("scipy.signal.spectrogram", "Use np.unwrap on mode='angle'.", mode=mode)
    first, _, axis = _signals(x, None, axis)
    length = shape_of(first)[-1]
    size = nperseg
    if noverlap is None:
        known = shape_of(as_array(window))[0] if not isinstance(window, (str, tuple)) else None
        size = known or min(256 if nperseg is None else int(nperseg), length)
        noverlap = size // 8
        size = None if known else size
    segments = _Segments(length, window, size, noverlap, nfft)
    onesided = bool(return_onesided) and dtype_of(first).kind != "c"
    times = (segments.starts(length) + segments.size / 2) / fs
    if mode == "psd":
        out = _density(first, None, fs, segments, detrend, onesided, scaling)
    else:
        out = segments.transformed(first, detrend, onesided) * _amplitude(segments, fs, scaling)
        if mode == "magnitude":
            out = np.abs(out)
        elif mode == "angle":
            out = np.angle(out)
    out = np.moveaxis(np.swapaxes(out, -1, -2), -2, axis if axis < ndim_of(first) - 1 else -2)
    return segments.frequencies(fs, onesided), times, out


def _amplitude(segments: _Segments, fs: Any, scaling: str) -> Any:
    if scaling in ("density", "psd"):
        return np.sqrt(1 / (fs * np.sum(segments.window**2)))
    return np.sqrt(1 / np.sum(segments.window) ** 2)


@delegates(ss.stft)
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """The frequencies, the times of segments, and their Fourier transforms.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import stft
    >>> grad(lambda x: np.sum(np.abs(stft(x, nperseg=4)[2]) ** 2))(np.arange(8.0)).shape
    (8,)
    """
    kinds = {"even": "even", "odd": "odd", "constant": "constant", "zeros": "zeros", None: None}
    if boundary not in kinds:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(kinds)}")
    if scaling not in ("psd", "spectrum"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    first, _, axis = _signals(x, None, axis)
    size = None if not isinstance(window, (str, tuple)) else nperseg
    segments = _Segments(shape_of(first)[-1], window, size, noverlap, nfft)
    first = extended(first, segments.size // 2, boundary)
    if padded:
        over = (shape_of(first)[-1] - segments.size) % segments.step
        missing = (segments.step - over) % segments.step % segments.size
        tail = np.zeros((*shape_of(first)[:-1], missing), dtype_of(first))
        first = np.concatenate([first, tail], axis=-1)
    onesided = bool(return_onesided) and dtype_of(first).kind != "c"
    times = (segments.starts(shape_of(first)[-1]) + segments.size / 2) / fs
    if boundary is not None:
        times = times - segments.size / 2 / fs
    out = segments.transformed(first, detrend, onesided) * _amplitude(segments, fs, scaling)
    out = np.moveaxis(np.swapaxes(out, -1, -2), -2, axis if axis < ndim_of(first) - 1 else -2)
    return segments.frequencies(fs, onesided), times, out
