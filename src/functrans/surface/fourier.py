"""NumPy's `np.fft`: every transform is a sequence of 1-D transforms of padded or cropped arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.fourier import OPPOSITE, dft, irdft, rdft
from functrans.surface.table import as_array, axis_index, implements, in_array, ndim_of, refuse


def _scaling(norm: Any) -> str:
    if norm is None:
        return "backward"
    if norm not in OPPOSITE:
        raise ValueError(
            f'Invalid norm value {norm}; should be None, "ortho", "forward" or "backward".'
        )
    return str(norm)


def resized(x: Any, n: int, axis: int) -> Any:
    """x cropped, or padded with zeros at the end, to length n along an axis."""
    shape = shape_of(x)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    if n <= shape[axis]:
        return x if n == shape[axis] else x[(slice(None),) * axis + (slice(n),)]
    missing = np.zeros((*shape[:axis], n - shape[axis], *shape[axis + 1 :]), dtype_of(x))
    return np.concatenate([x, missing], axis=axis)


def _prepared(a: Any, n: Any, axis: Any) -> tuple[Any, int]:
    x = as_array(a)
    axis = axis_index(axis, ndim_of(x))
    return resized(x, shape_of(x)[axis] if n is None else operator.index(n), axis), axis


def _complex(name: str, inverse: bool) -> Any:
    def transform(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        refuse(name, out=out)
        x, axis = _prepared(a, n, axis)
        return dft(x, axis=axis, inverse=inverse, norm=_scaling(norm))

    return transform


fft = implements(np.fft.fft)(_complex("fft.fft", False))
ifft = implements(np.fft.ifft)(_complex("fft.ifft", True))


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.rfft", out=out)
    x, axis = _prepared(a, n, axis)
    return rdft(x, axis=axis, norm=_scaling(norm))


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.irfft", out=out)
    x = as_array(a)
    axis = axis_index(axis, ndim_of(x))
    length = 2 * (shape_of(x)[axis] - 1) if n is None else operator.index(n)
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    return irdft(resized(x, length // 2 + 1, axis), axis=axis, n=length, norm=_scaling(norm))


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.hfft", out=out)
    return irfft(np.conj(as_array(a)), n, axis, OPPOSITE[_scaling(norm)])


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.ihfft", out=out)
    return np.conj(rfft(a, n, axis, OPPOSITE[_scaling(norm)]))


# Several axes.


def _lengths_and_axes(
    shape: tuple[int, ...], s: Any, axes: Any, halved: bool = False
) -> list[tuple[Any, int]]:
    """(length, axis) for each axis to transform; `halved` if the last one holds n/2 + 1 frequencies."""
    ndim = len(shape)
    if axes is None:
        axes = range(-ndim if s is None else -len(s), 0)
    along = [axis_index(axis, ndim) for axis in axes]
    if s is not None:
        if len(s) != len(along):
            raise ValueError("Shape and axes have different lengths.")
        # NumPy leaves an axis unchanged for -1, and chooses the length for None.
        return [
            (shape[axis] if n == -1 else n if n is None else int(concrete(n)), axis)
            for n, axis in zip(s, along, strict=True)
        ]
    lengths = [shape[axis] for axis in along]
    if halved and along:
        lengths[-1] = 2 * (lengths[-1] - 1)
    return list(zip(lengths, along, strict=True))


def _repeated(name: str, transform: Any) -> Any:
    def transform_all(
        a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None
    ) -> Any:
        refuse(name, out=out)
        x = as_array(a)
        for n, axis in reversed(_lengths_and_axes(shape_of(x), s, axes)):
            x = transform(x, n, axis, norm)
        return in_array(x)

    return transform_all


fftn = implements(np.fft.fftn)(_repeated("fft.fftn", fft))
ifftn = implements(np.fft.ifftn)(_repeated("fft.ifftn", ifft))


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.rfftn", out=out)
    x = as_array(a)
    *others, (n, axis) = _lengths_and_axes(shape_of(x), s, axes)
    x = rfft(x, n, axis, norm)
    for n, axis in reversed(others):
        x = fft(x, n, axis, norm)
    return x


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse("fft.irfftn", out=out)
    x = as_array(a)
    *others, last = _lengths_and_axes(shape_of(x), s, axes, halved=True)
    for n, axis in others:
        x = ifft(x, n, axis, norm)
    return irfft(x, *last, norm)


for _function, _transform in (
    (np.fft.fft2, fftn),
    (np.fft.ifft2, ifftn),
    (np.fft.rfft2, rfftn),
    (np.fft.irfft2, irfftn),
):
    implements(_function)(
        lambda a, s=None, axes=(-2, -1), norm=None, out=None, f=_transform: f(a, s, axes, norm, out)
    )


# Moving frequency 0 to the middle, and back.


def _shifted(x: Any, axes: Any, direction: int) -> Any:
    x = as_array(x)
    if axes is None:
        axes = tuple(range(ndim_of(x)))
    along = (axes,) if isinstance(axes, (int, np.integer)) else tuple(axes)
    # n // 2 to the right, and as many to the left to undo it
    return np.roll(x, tuple(direction * (shape_of(x)[axis] // 2) for axis in along), along)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, -1)
