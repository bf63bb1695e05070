"""Cosine and sine transforms with SciPy's signatures, normalized as SciPy does."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.fourier import OPPOSITE
from functrans.scipy import cosine_transforms
from functrans.scipy.cosine_transforms import PARTNER, along, ends, sf
from functrans.scipy.delegation import delegates
from functrans.scipy.fft.transforms import prepared, scaling
from functrans.surface.fourier import resized
from functrans.surface.table import axis_index, ndim_of


def _along_axis(
    x: Any, type: int, n: Any, axis: Any, norm: Any, orthogonalize: Any, sine: bool, inverse: bool
) -> Any:
    array = prepared(x)
    if dtype_of(array).kind not in "fc":
        array = array.astype(np.float64)
    axis = axis_index(axis, ndim_of(array))
    kind = operator.index(type)
    if kind not in PARTNER:
        raise ValueError(f"type must be an integer between 1 and 4, not {type}")
    scale = scaling(norm)
    if inverse:
        kind, scale = PARTNER[kind], OPPOSITE[scale]
    length = shape_of(array)[axis] if n is None else operator.index(n)
    if length < 1 + (kind == 1 and not sine):
        raise ValueError(f"invalid number of data points ({length}) specified")
    array = resized(array, length, axis)
    orthogonal = scale == "ortho" if orthogonalize is None else orthogonalize
    if dtype_of(array).kind == "c":  # SciPy does not read the option for complex numbers
        orthogonal = scale == "ortho"
    root = 2**0.5
    # The terms that are counted once are made as long as the others.
    if orthogonal and kind == 1 and not sine:
        array = along(ends(length, root, True, True), array, axis)
    if orthogonal and kind == 3:
        array = along(ends(length, root, not sine, sine), array, axis)
    out = cosine_transforms.transform(array, axis=axis, kind=kind, sine=sine)
    if orthogonal and kind == 1 and not sine:
        out = along(ends(length, 1 / root, True, True), out, axis)
    if orthogonal and kind == 2:
        out = along(ends(length, 1 / root, not sine, sine), out, axis)
    period = 2 * (length + (sine - (not sine) if kind == 1 else 0))
    factor = {"backward": 1.0, "ortho": period**-0.5, "forward": 1 / period}[scale]
    return out if factor == 1 else out * factor


def _along_axes(
    x: Any, type: int, s: Any, axes: Any, norm: Any, orthogonalize: Any, sine: bool, inverse: bool
) -> Any:
    array = prepared(x)
    ndim, chosen = ndim_of(array), axes
    lengths = [s] if isinstance(s, (int, np.integer)) else s
    if axes is None:
        chosen = range(ndim) if s is None else range(ndim - len(lengths), ndim)
    elif isinstance(axes, (int, np.integer)):
        chosen = [axes]
    if s is not None and len(lengths) != len(chosen):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    for k, axis in enumerate(chosen):
        n = None if s is None or lengths[k] in (None, -1) else lengths[k]
        array = _along_axis(array, type, n, axis, norm, orthogonalize, sine, inverse)
    return array


@delegates(sf.dct)
def dct(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete cosine transform along an axis, of types 1 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import dct
    >>> grad(lambda x: np.sum(dct(x, norm="ortho") ** 2))(np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    return _along_axis(x, type, n, axis, norm, orthogonalize, False, False)


@delegates(sf.idct)
def idct(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The inverse discrete cosine transform along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import idct
    >>> grad(lambda x: np.sum(idct(x, norm="ortho") ** 2))(np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    return _along_axis(x, type, n, axis, norm, orthogonalize, False, True)


@delegates(sf.dst)
def dst(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete sine transform along an axis, of types 1 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import dst
    >>> grad(lambda x: np.sum(dst(x, norm="ortho") ** 2))(np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    return _along_axis(x, type, n, axis, norm, orthogonalize, True, False)


@delegates(sf.idst)
def idst(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The inverse discrete sine transform along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import idst
    >>> grad(lambda x: np.sum(idst(x, norm="ortho") ** 2))(np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    return _along_axis(x, type, n, axis, norm, orthogonalize, True, True)


@delegates(sf.dctn)
def dctn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete cosine transform along several axes, of types 1 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import dctn
    >>> grad(lambda x: np.sum(dctn(x, norm="ortho") ** 2))(np.array([[1.0, 2.0]])).round(6)
    array([[2., 4.]])
    """
    return _along_axes(x, type, s, axes, norm, orthogonalize, False, False)


@delegates(sf.idctn)
def idctn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The inverse discrete cosine transform along several axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import idctn
    >>> grad(lambda x: np.sum(idctn(x, norm="ortho") ** 2))(np.array([[1.0, 2.0]])).round(6)
    array([[2., 4.]])
    """
    return _along_axes(x, type, s, axes, norm, orthogonalize, False, True)


@delegates(sf.dstn)
def dstn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete sine transform along several axes, of types 1 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import dstn
    >>> grad(lambda x: np.sum(dstn(x, norm="ortho") ** 2))(np.array([[1.0, 2.0]])).round(6)
    array([[2., 4.]])
    """
    return _along_axes(x, type, s, axes, norm, orthogonalize, True, False)


@delegates(sf.idstn)
def idstn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The inverse discrete sine transform along several axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import idstn
    >>> grad(lambda x: np.sum(idstn(x, norm="ortho") ** 2))(np.array([[1.0, 2.0]])).round(6)
    array([[2., 4.]])
    """
    return _along_axes(x, type, s, axes, norm, orthogonalize, True, True)
