"""Responses of filters to frequencies, and their coefficients in other forms."""

from __future__ import annotations

from math import comb, pi
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy import filters
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.filters import ss
from functrans.scipy.signal.filtering import sections_of
from functrans.surface.table import as_array, known, ndim_of


def _frequencies(worN: Any, whole: bool, fs: Any, include_nyquist: bool = False) -> Any:
    """Angles on the unit circle: a number of them, or those of given frequencies."""
    if worN is None:
        worN = 512
    if isinstance(worN, (int, np.integer)):
        end = 2 * pi if whole else pi
        return np.linspace(0, end, int(worN), endpoint=bool(include_nyquist) and not whole)
    return np.atleast_1d(as_array(worN)) * (2 * pi / fs)


def _powers(z: Any, coefficients: Any) -> Any:
    """Σ_k c_k z^k; further axes of the coefficients broadcast."""
    total: Any = 0.0
    for k in range(shape_of(coefficients)[0] - 1, -1, -1):
        row = coefficients[k]
        total = total * z + (row[..., None] if ndim_of(row) and shape_of(row)[-1] != 1 else row)
    return total


@delegates(ss.freqz)
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 2 * pi,
    include_nyquist: bool = False,
) -> tuple[Any, Any]:
    """The frequencies, and the response of a digital filter to them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import freqz
    >>> grad(lambda b: np.abs(freqz(b, worN=4)[1][0]))(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    if plot is not None:
        refuse_option("scipy.signal.freqz", "Plot its results.", plot=plot)
    taps, poles = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    if ndim_of(taps) > 1 or ndim_of(poles) > 1:
        refuse_option("scipy.signal.freqz", "Map over the filters with vmap.", b="a stack")
    w = _frequencies(worN, whole, fs, include_nyquist)
    z = np.exp(-1j * w)
    return w * (fs / (2 * pi)), _powers(z, taps) / _powers(z, poles)


@delegates(ss.freqz_sos)
def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * pi) -> tuple[Any, Any]:
    """The frequencies, and the response of a cascade of sections to them.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import freqz_sos
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    >>> grad(lambda sos: np.abs(freqz_sos(sos, worN=4)[1][0]))(sos)[0, :3]
    array([2., 2., 2.])
    """
    rows = sections_of(sos)
    w = _frequencies(worN, whole, fs)
    z = np.exp(-1j * w)
    out: Any = 1.0
    for k in range(shape_of(rows)[0]):
        out = out * (_powers(z, rows[k, :3]) / _powers(z, rows[k, 3:]))
    return w * (fs / (2 * pi)), out


@delegates(ss.sosfreqz)
def sosfreqz(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * pi) -> tuple[Any, Any]:
    """The frequencies, and the response of a cascade of sections: another name of `freqz_sos`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sosfreqz
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    >>> grad(lambda sos: np.abs(sosfreqz(sos, worN=4)[1][0]))(sos)[0, :3]
    array([2., 2., 2.])
    """
    return freqz_sos(sos, worN, whole, fs)


@delegates(ss.freqz_zpk)
def freqz_zpk(
    z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * pi
) -> tuple[Any, Any]:
    """The frequencies, and the response of a filter given by zeros, poles and gain.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import freqz_zpk
    >>> float(grad(lambda k: np.abs(freqz_zpk([], [0.5], k, worN=4)[1][0]))(1.0))
    2.0
    """
    w = _frequencies(worN, whole, fs)
    place = np.exp(1j * w)
    above: Any = np.prod(place[:, None] - np.atleast_1d(as_array(z)), axis=-1)
    below = np.prod(place[:, None] - np.atleast_1d(as_array(p)), axis=-1)
    return w * (fs / (2 * pi)), k * above / below


@delegates(ss.freqs)
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> tuple[Any, Any]:
    """The frequencies, and the response of an analog filter to them.

    Of traced coefficients, `worN` must be an array of frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import freqs
    >>> f = lambda a: np.abs(freqs([1.0], a, np.array([0.0]))[1][0])
    >>> grad(f)(np.array([1.0, 2.0]))
    array([ 0.  , -0.25])
    """
    if plot is not None or worN is None or isinstance(worN, (int, np.integer)):
        refuse_option("scipy.signal.freqs", "Pass an array of frequencies.", worN=worN)
    w = np.atleast_1d(as_array(worN))
    taps, poles = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    s = 1j * w
    return w, _powers(s, np.flip(taps, 0)) / _powers(s, np.flip(poles, 0))


@delegates(ss.sos2tf)
def sos2tf(sos: Any) -> tuple[Any, Any]:
    """The numerator and the denominator of a cascade of sections.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sos2tf
    >>> sos = np.array([[1.0, 2.0, 0.0, 1.0, -0.5, 0.0]])
    >>> grad(lambda sos: sos2tf(sos)[0][1])(sos)[0, :3]
    array([0., 1., 0.])
    """
    rows = sections_of(sos)
    b, a = rows[0, :3], rows[0, 3:]
    for k in range(1, shape_of(rows)[0]):
        b = filters.convolve(b, rows[k, :3], ndim=1)
        a = filters.convolve(a, rows[k, 3:], ndim=1)
    return b, a


@delegates(ss.zpk2tf)
def zpk2tf(z: Any, p: Any, k: Any) -> tuple[Any, Any]:
    """The numerator and the denominator of a filter with these zeros, poles and gain.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import zpk2tf
    >>> grad(lambda p: zpk2tf([], p, 1.0)[1][2])(np.array([2.0, 3.0]))
    array([3., 2.])
    """
    zeros, poles = np.atleast_1d(as_array(z)), np.atleast_1d(as_array(p))
    if ndim_of(zeros) > 1 or ndim_of(poles) > 1:
        refuse_option("scipy.signal.zpk2tf", "Map over the filters with vmap.", z="a stack")
    return k * np.poly(zeros), np.atleast_1d(np.poly(poles))


@delegates(ss.tf2zpk)
def tf2zpk(b: Any, a: Any) -> tuple[Any, Any, Any]:
    """The zeros, the poles and the gain of a filter with this numerator and denominator.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import tf2zpk
    >>> grad(lambda a: tf2zpk([1.0], a)[1][0])(np.array([1.0, -0.5]))
    array([-0.5, -1. ])
    """
    taps, poles = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    for name, each in (("b", taps), ("a", poles)):
        require_first(each, name)
    taps, poles = taps / poles[0], poles / poles[0]
    return np.roots(taps), np.roots(poles), taps[0]


def require_first(coefficients: Any, name: str) -> None:
    """Refuse traced coefficients that begin with zeros, which SciPy leaves out."""
    first = known(stop_gradient(coefficients)[0] == 0)
    if first is not None and first:
        refuse_option("scipy.signal.tf2zpk", "Leave the zeros out.", **{name: "leading zeros"})


@delegates(ss.bilinear)
def bilinear(b: Any, a: Any, fs: Any = 1.0) -> tuple[Any, Any]:
    """The digital filter that the bilinear transform makes of an analog one.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import bilinear
    >>> grad(lambda a: bilinear([1.0], a, 0.5)[0][0])(np.array([1.0, 1.0]))
    array([-0.25, -0.25])
    """
    taps, poles = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    degree = max(shape_of(taps)[0], shape_of(poles)[0]) - 1
    digital = [_with_z(each, degree, fs) for each in (taps, poles)]
    return digital[0] / digital[1][0], digital[1] / digital[1][0]


def _with_z(coefficients: Any, degree: int, fs: Any) -> Any:
    """Σ_j c_j (2 fs (z - 1))^j (z + 1)^(degree - j), highest power of z first."""
    count = shape_of(coefficients)[0]
    dtype = np.result_type(dtype_of(coefficients), np.float64)
    total: Any = np.zeros(degree + 1, dtype)
    for j in range(count):
        minus = np.array([(-1.0) ** k * comb(j, k) for k in range(j + 1)])
        plus = np.array([float(comb(degree - j, k)) for k in range(degree - j + 1)])
        total = total + coefficients[count - 1 - j] * (2 * fs) ** j * np.convolve(minus, plus)
    return total
