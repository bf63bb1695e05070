"""Signals at other rates: `upfirdn`, `resample`, `resample_poly` and `decimate`."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy import filters
from functrans.scipy.delegation import delegates, is_traced, refuse_option
from functrans.scipy.filters import ss
from functrans.scipy.signal.filtering import sosfilt, sosfiltfilt
from functrans.surface.table import as_array, axis_index, ndim_of


@delegates(ss.upfirdn)
def upfirdn(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """A signal with zeros in between, filtered, of which every `down`-th sample is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import upfirdn
    >>> grad(lambda h: upfirdn(h, np.array([1.0, 2.0]), up=2)[2])(np.ones(3))
    array([2., 0., 1.])
    """
    if mode not in (None, "constant") or is_traced(cval) or cval != 0:
        refuse_option("scipy.signal.upfirdn", "Extend x with np.pad.", mode=mode)
    taps, signal = as_array(h), as_array(x)
    if ndim_of(taps) != 1 or not shape_of(taps)[0]:
        raise ValueError("h must be 1-D with non-zero length")
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    axis = axis_index(axis, ndim_of(signal))
    rows = np.moveaxis(signal, axis, -1)
    length = shape_of(rows)[-1]
    if up > 1:
        zeros = np.zeros((*shape_of(rows), up - 1), dtype_of(rows))
        rows = np.concatenate([rows[..., None], zeros], axis=-1)
        rows = rows.reshape((*shape_of(rows)[:-2], length * up))[..., : (length - 1) * up + 1]
    out = filters.convolve(rows, taps, ndim=1)[..., ::down]
    return np.moveaxis(out, -1, axis)


@delegates(ss.resample)
def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """A periodic signal at `num` samples, by its Fourier transform.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import resample
    >>> grad(lambda x: resample(x, 4)[0])(np.ones(2))
    array([1., 0.])
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    if callable(window):
        refuse_option("scipy.signal.resample", "Pass its name, or an array.", window=window)
    signal = as_array(x)
    axis = axis_index(axis, ndim_of(signal))
    length = shape_of(signal)[axis]
    if num <= 0:
        raise ValueError("Parameter num must be positive")
    real = domain == "time" and dtype_of(signal).kind != "c"
    rows = np.moveaxis(signal, axis, -1)
    if domain == "freq":
        spectrum = rows
    else:
        spectrum = np.fft.fft(rows)
    if window is not None:
        weights = window if is_traced(window) or isinstance(window, np.ndarray) else None
        if weights is None:
            weights = np.fft.ifftshift(ss.get_window(window, length))
        spectrum = spectrum * as_array(weights)
    shared = min(num, length)
    positive, negative = (shared + 1) // 2, (shared - 1) // 2
    lead = shape_of(spectrum)[:-1]
    parts = [spectrum[..., :positive]]
    middle = num - positive - negative
    if shared % 2 == 0:
        half = shared // 2
        if num < length:  # both frequencies fall on the same one
            edge = spectrum[..., half : half + 1] + spectrum[..., length - half : length - half + 1]
            parts.append(edge)
            middle -= 1
        elif num > length:  # one frequency becomes two
            edge = spectrum[..., half : half + 1] / 2
            gap = np.zeros((*lead, num - length - 1), dtype_of(spectrum))
            parts += [edge, gap, edge]
            middle = 0
        else:
            parts.append(spectrum[..., half : half + 1])
            middle -= 1
    if middle:
        parts.append(np.zeros((*lead, middle), dtype_of(spectrum)))
    parts.append(spectrum[..., length - negative :])
    out: Any = np.fft.ifft(np.concatenate(parts, axis=-1)) * (num / length)
    if real:
        out = out.real
    out = np.moveaxis(out, -1, axis)
    if t is None:
        return out
    times = as_array(t)
    return out, np.arange(num) * (times[1] - times[0]) * length / num + times[0]


_BACKGROUNDS: dict[str, Any] = {
    "mean": np.mean,
    "median": np.median,
    "minimum": np.min,
    "maximum": np.max,
}


@delegates(ss.resample_poly)
def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str | None = "constant",
    cval: Any = None,
) -> Any:
    """A signal at up / down times its rate, by a filter without feedback.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import resample_poly
    >>> grad(lambda x: np.sum(resample_poly(x, 1, 2)[:1]))(np.ones(4)).round(3)
    array([ 0.5  ,  0.317,  0.   , -0.101])
    """
    signal = as_array(x)
    axis = axis_index(axis, ndim_of(signal))
    if up < 1 or down < 1:
        raise ValueError("up and down must be >= 1")
    common = gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return signal.copy()
    length = shape_of(signal)[axis]
    count = -(-length * up // down)
    if isinstance(window, (list, np.ndarray)) or is_traced(window):
        taps = as_array(window)
        half = (shape_of(taps)[0] - 1) // 2
    else:
        rate = max(up, down)
        half = 10 * rate
        taps = ss.firwin(2 * half + 1, 1 / rate, window=window)
        if dtype_of(signal) in (np.float32, np.complex64):
            taps = taps.astype(np.float32)
    taps = taps * up
    before = down - half % down
    skipped = (half + before) // down
    after = 0
    size = shape_of(taps)[0]
    while ((length - 1) * up + size + before + after - 1) // down + 1 < count + skipped:
        after += 1
    taps = np.concatenate([np.zeros(before, dtype_of(taps)), taps, np.zeros(after, dtype_of(taps))])
    background: Any = None
    if padtype in _BACKGROUNDS:
        background = _BACKGROUNDS[str(padtype)](signal, axis=axis, keepdims=True)
        signal = signal - background
    elif padtype not in (None, "constant"):
        refuse_option("scipy.signal.resample_poly", "Extend x with np.pad.", padtype=padtype)
    elif cval is not None and (is_traced(cval) or cval != 0):
        signal, background = signal - cval, cval
    place = (slice(None),) * axis + (slice(skipped, skipped + count),)
    out = upfirdn(taps, signal, up, down, axis=axis)[place]
    return out if background is None else out + background


@delegates(ss.decimate)
def decimate(
    x: Any,
    q: int,
    n: int | None = None,
    ftype: Any = "iir",
    axis: int = -1,
    zero_phase: bool = True,
) -> Any:
    """Every q-th sample of a signal, after a filter that removes what is too fast for them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import decimate
    >>> grad(lambda x: np.sum(decimate(x, 2)))(np.ones(40)).shape
    (40,)
    """
    signal = as_array(x)
    if dtype_of(signal).kind not in "fc":
        signal = signal.astype(np.float64)
    axis = axis_index(axis, ndim_of(signal))
    if not isinstance(ftype, str):
        refuse_option("scipy.signal.decimate", "Use ftype='iir' or 'fir'.", ftype=ftype)
    if ftype == "fir":
        order = 20 * q if n is None else n
        taps = ss.firwin(order + 1, 1 / q, window="hamming")
        if zero_phase:
            return resample_poly(signal, 1, q, axis=axis, window=taps)
        count = shape_of(signal)[axis]
        count = count // q + bool(count % q)
        place = (slice(None),) * axis + (slice(0, count),)
        return upfirdn(taps, signal, 1, q, axis=axis)[place]
    if ftype != "iir":
        raise ValueError("invalid ftype")
    sos = ss.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    filtered = (sosfiltfilt if zero_phase else sosfilt)(sos, signal, axis=axis)
    return filtered[(slice(None),) * axis + (slice(None, None, q),)]
