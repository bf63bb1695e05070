"""Images between their points, with SciPy's names and arguments; `functrans.scipy.ndimage` has them.

An image is a sum of B-splines. `map_coordinates` and similar functions evaluate it at points that may be
traced: they are linear in the image, and piecewise polynomials of the points.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import shape_of
from functrans.scipy.filtering import read_image
from functrans.scipy.loading import load
from functrans.surface.padding import pad
from functrans.surface.shaping import take
from functrans.surface.table import as_array, holds_tracer, ndim_of

sn = load("scipy.ndimage")

_MODES = (
    "reflect",
    "grid-mirror",
    "constant",
    "grid-constant",
    "nearest",
    "mirror",
    "wrap",
    "grid-wrap",
)
_PADDED = 12  # entries that SciPy adds where a spline has no exact boundary condition


def _check(order: int, mode: str) -> str:
    if order not in range(6):
        raise RuntimeError("spline order not supported")
    if mode not in _MODES:
        raise RuntimeError(f"boundary mode not supported: {mode!r}")
    return {"grid-mirror": "reflect"}.get(mode, mode)


def _coefficients(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Any, int]:
    """The coefficients of the splines, and how many entries were added on each side.

    They are linear in the image: SciPy filters the unit vectors along each axis.
    """
    if not prefilter or order < 2:
        return x, 0
    added = _PADDED if mode in ("nearest", "grid-constant") else 0
    if mode == "nearest":
        x = np.pad(x, added, "edge")
    elif mode == "grid-constant":
        x = pad(x, added, "constant", constant_values=cval)
    for axis in range(ndim_of(x)):
        n = shape_of(x)[axis]
        if n > 1:
            matrix = sn.spline_filter1d(np.eye(n), order, axis=0, mode=mode)
            x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x, added


def _mapped(c: Any, n: int, mode: str) -> Any:
    """A coordinate beyond the edges as one inside, or for some modes just next to them."""
    if mode == "mirror":
        if n == 1:
            return 0 * c
        turned = np.mod(c, 2 * (n - 1))
        return np.where(turned > n - 1, 2 * (n - 1) - turned, turned)
    if mode == "reflect":
        turned = np.mod(c + 0.5, 2 * n)
        return np.where(turned > n, 2 * n - turned, turned) - 0.5
    if mode == "grid-wrap":
        return np.mod(c, n)
    if mode == "wrap":  # the last entry is the first of the next period, except at its end
        if n == 1:
            return 0 * c
        period = n - 1
        left = c + period * (np.floor(-c / period) + 1)
        right = c - period * np.floor(c / period)
        return np.where(c < 0, left, np.where(c > n - 1, right, c))
    return c


def _places(k: Any, n: int, mode: str) -> Any:
    """Indices beyond the edges as indices inside."""
    if mode in ("constant", "wrap", "mirror"):  # for the first two, splines are mirrored
        if n == 1:
            return 0 * k
        turned = np.mod(k, 2 * (n - 1))
        return np.where(turned > n - 1, 2 * (n - 1) - turned, turned)
    if mode == "reflect":
        turned = np.mod(k, 2 * n)
        return np.where(turned > n - 1, 2 * n - 1 - turned, turned)
    if mode == "grid-wrap":
        return np.mod(k, n)
    return np.clip(k, 0, n - 1)


def _splines(c: Any, order: int) -> tuple[Any, list[Any]]:
    """The index of the first spline that is not 0 at a coordinate, and the values of all of these.

    With u the distance from the last knot, the recurrence of Cox and de Boor is
    b_j ← ((u + d - j) b_{j-1} + (j + 1 - u) b_j) / d.
    """
    knot = np.floor(c + 0.5) if order % 2 == 0 else np.floor(c)
    u = c - knot + (0.5 if order % 2 == 0 else 0.0)
    values: list[Any] = [1 + 0 * u]
    for d in range(1, order + 1):
        left, right = [0.0, *values], [*values, 0.0]
        values = [((u + d - j) * left[j] + (j + 1 - u) * right[j]) / d for j in range(d + 1)]
    return knot.astype(np.int64) - order // 2, values


class _Axis:
    """What is needed to evaluate splines along one axis: weights, indices, and where they do not count."""

    def __init__(self, c: Any, n: int, order: int, mode: str, added: int) -> None:
        unknown = np.isnan(c)
        self.outside = unknown
        if mode == "constant":
            self.outside = unknown | (c < 0) | (c > n - 1)
        inner = np.where(self.outside, 0.0, _mapped(c + added, n + 2 * added, mode))
        if mode in ("nearest", "grid-constant"):  # far away all splines have the same value
            inner = np.clip(inner, -order - 2, n + 2 * added + order + 1)
        first, self.weights = _splines(inner, order)
        raw = [first + k for k in range(order + 1)]
        self.places = [_places(k, n + 2 * added, mode) for k in raw]
        self.beyond = [
            ((k < 0) | (k >= n + 2 * added)) if mode == "grid-constant" else None for k in raw
        ]


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Integers are rounded, as in SciPy."""
    if dtype.kind in "iu":
        x = np.trunc(x + np.where(x > 0, 0.5, -0.5))
    return x.astype(dtype)


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An image at points between its entries, by splines of an order; `coordinates[k]` is along axis k.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import map_coordinates
    >>> squares = np.arange(6.0) ** 2
    >>> round(float(grad(lambda x: map_coordinates(squares, [x], order=1))(2.5)), 6)
    5.0
    """
    if not holds_tracer((input, coordinates, cval)):
        return sn.map_coordinates(input, coordinates, output, order, mode, cval, prefilter)
    mode = _check(order, mode)
    x, dtype = read_image(input, "map_coordinates", output)
    points = as_array(coordinates)
    points = points.astype(np.float64)
    shape = shape_of(x)
    if ndim_of(points) < 1 or shape_of(points)[0] != len(shape) or not shape:
        raise RuntimeError("invalid shape for coordinate array")
    return _cast(_evaluated(x, points, order, mode, cval, prefilter), dtype)


def _evaluated(x: Any, points: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    shape = shape_of(x)
    coefficients, added = _coefficients(x, order, mode, cval, prefilter)
    wide = shape_of(coefficients)
    axes = [_Axis(points[k], n, order, mode, added) for k, n in enumerate(shape)]
    flat = coefficients.reshape(-1)
    total: Any = None
    for choice in itertools.product(range(order + 1), repeat=len(shape)):
        place: Any = 0
        weight: Any = None
        beyond: Any = None
        for axis, k, n in zip(axes, choice, wide, strict=True):
            place = place * n + axis.places[k]
            weight = axis.weights[k] if weight is None else weight * axis.weights[k]
            if axis.beyond[k] is not None:
                beyond = axis.beyond[k] if beyond is None else beyond | axis.beyond[k]
        value = take(flat, place, axis=0)
        if beyond is not None:
            value = np.where(beyond, cval, value)
        total = weight * value if total is None else total + weight * value
    outside = axes[0].outside
    for axis in axes[1:]:
        outside = outside | axis.outside
    return np.where(outside, cval, total)


def _resampled(x: Any, points: list[Any], order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    """An image at a grid of points, one list of coordinates per axis: axis after axis."""
    shape = shape_of(x)
    coefficients, added = _coefficients(x, order, mode, cval, prefilter)
    axes = [_Axis(c, n, order, mode, added) for c, n in zip(points, shape, strict=True)]
    apart = mode == "grid-constant"
    total = coefficients - cval if apart else coefficients  # then what is beyond the edges is 0
    outside: Any = False
    for k, axis in enumerate(axes):
        column = (-1,) + (1,) * (len(shape) - k - 1)
        parts: Any = None
        for weight, place, beyond in zip(axis.weights, axis.places, axis.beyond, strict=True):
            share = weight if beyond is None else np.where(beyond, 0.0, weight)
            part = share.reshape(column) * take(total, place, axis=k)
            parts = part if parts is None else parts + part
        total = parts
        outside = outside | axis.outside.reshape(column)
    return np.where(outside, cval, total + cval if apart else total)


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An image moved by a number of entries along each axis, which need not be whole and may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.ndimage import shift
    >>> jacfwd(lambda s: shift(np.arange(4.0) ** 2, s, order=1, mode="nearest"))(0.5)
    array([ 0., -1., -3., -5.])
    """
    if not holds_tracer((input, shift, cval)):
        return sn.shift(input, shift, output, order, mode, cval, prefilter)
    mode = _check(order, mode)
    x, dtype = read_image(input, "shift", output)
    shape = shape_of(x)
    steps = np.broadcast_to(as_array(shift).astype(np.float64), (len(shape),))
    points = [np.arange(n) - steps[k] for k, n in enumerate(shape)]
    return _cast(_resampled(x, points, order, mode, cval, prefilter), dtype)


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """An image with more or fewer entries; the factors, which determine its shape, have no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import zoom
    >>> grad(lambda x: zoom(x, 1.5, order=1)[1])(np.array([1.0, 3.0]))
    array([0.5, 0.5])
    """
    if not holds_tracer((input, zoom, cval)):
        return sn.zoom(input, zoom, output, order, mode, cval, prefilter, grid_mode=grid_mode)
    mode = _check(order, mode)
    x, dtype = read_image(input, "zoom", output)
    shape = shape_of(x)
    factors = np.broadcast_to(np.asarray(concrete(as_array(zoom)), np.float64), (len(shape),))
    points = []
    for n, factor in zip(shape, factors.tolist(), strict=True):
        count = round(n * factor)
        steps, gaps = (n, count) if grid_mode else (n - 1, count - 1)
        step = steps / gaps if gaps else 1.0
        places = np.arange(count, dtype=np.float64)
        # A last point that rounding moves beyond the edge is still on it.
        end = np.clip(places * step, 0, n - 1)
        points.append((places + 0.5) * step - 0.5 if grid_mode else end)
    return _cast(_resampled(x, points, order, mode, cval, prefilter), dtype)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image whose entry at o is that of the given one at matrix @ o + offset; both may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.ndimage import affine_transform
    >>> ramp = np.arange(5.0)
    >>> jacfwd(lambda m: affine_transform(ramp, m[None], order=1))(0.5)
    array([0., 1., 2., 3., 4.])
    """
    if not holds_tracer((input, matrix, offset, cval)):
        return sn.affine_transform(
            input, matrix, offset, output_shape, output, order, mode, cval, prefilter
        )
    mode = _check(order, mode)
    x, dtype = read_image(input, "affine_transform", output)
    shape = shape_of(x)
    ndim = len(shape)
    m = as_array(matrix).astype(np.float64)
    if shape_of(m) in ((ndim + 1, ndim + 1), (ndim, ndim + 1)):  # homogeneous coordinates
        m, offset = m[:ndim, :ndim], m[:ndim, ndim]
    offset = np.broadcast_to(as_array(offset).astype(np.float64), (ndim,))
    sides = shape if output_shape is None else tuple(int(n) for n in output_shape)
    if shape_of(m) == (ndim,):
        points = [m[k] * np.arange(n, dtype=np.float64) + offset[k] for k, n in enumerate(sides)]
        return _cast(_resampled(x, points, order, mode, cval, prefilter), dtype)
    if shape_of(m) != (ndim, ndim):
        raise RuntimeError("improper transform matrix rank")
    axes = [np.arange(n, dtype=np.float64) for n in sides]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"))
    moved = np.tensordot(m, grid, (1, 0)) + offset.reshape((ndim,) + (1,) * ndim)
    return _cast(_evaluated(x, moved, order, mode, cval, prefilter), dtype)
