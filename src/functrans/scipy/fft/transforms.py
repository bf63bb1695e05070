"""Fourier transforms with SciPy's signatures: those of `np.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.ops.fourier import OPPOSITE
from functrans.scipy.cosine_transforms import sf
from functrans.scipy.delegation import delegates
from functrans.surface import fourier
from functrans.surface.table import as_array


def prepared(x: Any) -> Any:
    """An array of single or double precision; SciPy reads narrower ones as single."""
    array = as_array(x)
    return array.astype(np.float32) if dtype_of(array) == np.float16 else array


def scaling(norm: Any) -> str:
    if norm is None:
        return "backward"
    if norm not in OPPOSITE:
        raise ValueError(
            f'Invalid norm value {norm!r}, should be None, "ortho", "forward" or "backward"'
        )
    return str(norm)


def _several(transform: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    if isinstance(s, (int, np.integer)):
        s = (s,)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
    return transform(prepared(x), s, axes, scaling(norm))


@delegates(sf.fft)
def fft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The discrete Fourier transform along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fft
    >>> grad(lambda x: np.sum(np.abs(fft(x)) ** 2))(np.array([1.0, 2.0]))
    array([4., 8.])
    """
    return fourier.fft(prepared(x), n, axis, norm)


@delegates(sf.ifft)
def ifft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse discrete Fourier transform along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ifft
    >>> grad(lambda x: ifft(x).real[0])(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    return fourier.ifft(prepared(x), n, axis, norm)


@delegates(sf.rfft)
def rfft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of real numbers: the frequencies that are not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import rfft
    >>> grad(lambda x: rfft(x).real[1])(np.array([1.0, 2.0]))
    array([ 1., -1.])
    """
    return fourier.rfft(prepared(x), n, axis, norm)


@delegates(sf.irfft)
def irfft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `rfft`: n real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import irfft
    >>> grad(lambda x: irfft(x)[1])(np.array([1.0, 2.0]))
    array([ 0.5, -0.5])
    """
    return fourier.irfft(prepared(x), n, axis, norm)


@delegates(sf.hfft)
def hfft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of Hermitian numbers, of which one half is given; it is real.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import hfft
    >>> grad(lambda x: hfft(x)[1])(np.array([1.0, 2.0]))
    array([ 1., -1.])
    """
    return fourier.hfft(prepared(x), n, axis, norm)


@delegates(sf.ihfft)
def ihfft(
    x: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `hfft`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ihfft
    >>> grad(lambda x: ihfft(x).real[0])(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    return fourier.ihfft(prepared(x), n, axis, norm)


@delegates(sf.fftn)
def fftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The discrete Fourier transform along several axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fftn
    >>> grad(lambda x: fftn(x).real[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    return _several(fourier.fftn, x, s, axes, norm)


@delegates(sf.ifftn)
def ifftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse discrete Fourier transform along several axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ifftn
    >>> grad(lambda x: ifftn(x).real[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return _several(fourier.ifftn, x, s, axes, norm)


@delegates(sf.rfftn)
def rfftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of real numbers along several axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import rfftn
    >>> grad(lambda x: rfftn(x).real[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    return _several(fourier.rfftn, x, s, axes, norm)


@delegates(sf.irfftn)
def irfftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `rfftn`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import irfftn
    >>> grad(lambda x: irfftn(x)[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return _several(fourier.irfftn, x, s, axes, norm)


@delegates(sf.hfftn)
def hfftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of Hermitian numbers along several axes; it is real.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import hfftn
    >>> grad(lambda x: hfftn(x)[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    opposite = OPPOSITE[scaling(norm)]
    return _several(fourier.irfftn, np.conj(prepared(x)), s, axes, opposite)


@delegates(sf.ihfftn)
def ihfftn(
    x: Any,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `hfftn`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ihfftn
    >>> grad(lambda x: ihfftn(x).real[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return np.conj(_several(fourier.rfftn, x, s, axes, OPPOSITE[scaling(norm)]))


@delegates(sf.fft2)
def fft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The discrete Fourier transform along two axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fft2
    >>> grad(lambda x: fft2(x).real[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    return fftn(x, s, axes, norm)


@delegates(sf.ifft2)
def ifft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse discrete Fourier transform along two axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ifft2
    >>> grad(lambda x: ifft2(x).real[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return ifftn(x, s, axes, norm)


@delegates(sf.rfft2)
def rfft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of real numbers along two axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import rfft2
    >>> grad(lambda x: rfft2(x).real[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    return rfftn(x, s, axes, norm)


@delegates(sf.irfft2)
def irfft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `rfft2`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import irfft2
    >>> grad(lambda x: irfft2(x)[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return irfftn(x, s, axes, norm)


@delegates(sf.hfft2)
def hfft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The Fourier transform of Hermitian numbers along two axes; it is real.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import hfft2
    >>> grad(lambda x: hfft2(x)[0, 0])(np.ones((1, 2)))
    array([[1., 1.]])
    """
    return hfftn(x, s, axes, norm)


@delegates(sf.ihfft2)
def ihfft2(
    x: Any,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Any:
    """The inverse of `hfft2`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ihfft2
    >>> grad(lambda x: ihfft2(x).real[0, 0])(np.ones((1, 2)))
    array([[0.5, 0.5]])
    """
    return ihfftn(x, s, axes, norm)


@delegates(sf.fftfreq)
def fftfreq(n: int, d: Any = 1.0, *, xp: Any = None, device: Any = None) -> Any:
    """The frequencies of `fft`, for samples at distance d.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fftfreq
    >>> float(grad(lambda d: fftfreq(4, d)[1])(0.5))
    -1.0
    """
    return np.fft.fftfreq(n) / d


@delegates(sf.rfftfreq)
def rfftfreq(n: int, d: Any = 1.0, *, xp: Any = None, device: Any = None) -> Any:
    """The frequencies of `rfft`, for samples at distance d.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.fft import rfftfreq
    >>> float(grad(lambda d: rfftfreq(4, d)[1])(0.5))
    -1.0
    """
    return np.fft.rfftfreq(n) / d


@delegates(sf.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """The frequencies of `fft` in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fftshift
    >>> grad(lambda x: fftshift(x)[0])(np.ones(3))
    array([0., 0., 1.])
    """
    return fourier.fftshift(x, axes)


@delegates(sf.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ifftshift
    >>> grad(lambda x: ifftshift(x)[0])(np.ones(3))
    array([0., 1., 0.])
    """
    return fourier.ifftshift(x, axes)
