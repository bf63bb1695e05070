"""Filters of images, with SciPy's names and arguments; `functrans.scipy.ndimage` has them.

An image is extended beyond its edges as the mode says, and a filter is a sum of shifted images: it is linear
in the image, and smooth in the weights. As in SciPy, sums are computed in double precision, and results have
the dtype of the image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.elementwise import root_of_squares
from functrans.ops.reduction import slice_along
from functrans.scipy.loading import load
from functrans.surface.padding import pad
from functrans.surface.table import as_array, axis_index, holds_tracer, ndim_of

sn = load("scipy.ndimage")

_PADDING = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}


def read_image(image: Any, name: str, output: Any) -> tuple[Any, np.dtype[Any]]:
    """The image in double precision, and the dtype of the result."""
    x = as_array(image)
    kind = dtype_of(x) if output is None else output
    if isinstance(output, np.ndarray) or holds_tracer(output):
        raise errors.MissingRuleError(
            f"scipy.ndimage.{name} with an array as output= has no rule for traced values, at "
            f"{errors.user_location()}. Leave it out, and use the returned array."
        )
    wide = np.complex128 if dtype_of(x).kind == "c" else np.float64
    return x.astype(wide), np.dtype(kind)


def _per_axis(value: Any, count: int) -> list[Any]:
    """One value for each axis."""
    if value is None or isinstance(value, str):
        return [value] * count
    if not isinstance(value, (list, tuple)) and ndim_of(value) == 0:
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return values


def _read_axes(axes: Any, ndim: int) -> list[int]:
    if axes is None:
        return list(range(ndim))
    found = [
        axis_index(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else [axes])
    ]
    if len(set(found)) != len(found):
        raise ValueError("axes must be unique")
    return found


def _extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    if mode not in _PADDING:
        raise RuntimeError(f"boundary mode not supported: {mode!r}")
    widths = [(0, 0)] * ndim_of(x)
    widths[axis] = (before, after)
    options = {"constant_values": cval} if _PADDING[mode] == "constant" else {}
    return pad(x, widths, _PADDING[mode], **options)


def _check_origin(size: int, origin: int) -> None:
    if size // 2 + origin < 0 or size // 2 + origin >= size:
        raise ValueError(
            "Invalid origin; origin must satisfy -(size // 2) <= origin <= (size-1) // 2"
        )


def _summed(x: Any, weights: list[Any], axis: int, mode: str, cval: Any, origin: int) -> Any:
    """The sum of shifted images with these weights along an axis, without those that are plain zeros."""
    size, count = len(weights), shape_of(x)[axis]
    _check_origin(size, origin)
    before = size // 2 + origin
    wide = _extended(x, axis, before, size - 1 - before, mode, cval)
    total: Any = None
    for k, weight in enumerate(weights):
        if not holds_tracer(weight) and weight == 0:
            continue
        term = weight * slice_along(wide, axis, k, k + count)
        total = term if total is None else total + term
    return 0 * x if total is None else total


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Integers are cut off, as in SciPy."""
    return x.astype(dtype)


def _list_of(weights: Any) -> list[Any]:
    w = as_array(weights)
    if ndim_of(w) != 1 or shape_of(w)[0] < 1:
        raise RuntimeError("no filter weights given")
    return [w[k] for k in range(shape_of(w)[0])]


def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The correlation of an image with weights along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import correlate1d
    >>> x = np.array([1.0, 4.0, 9.0])
    >>> grad(lambda w: correlate1d(x, w)[1])(np.array([-1.0, 0.0, 1.0]))
    array([1., 4., 9.])
    """
    if not holds_tracer((input, weights, cval)):
        return sn.correlate1d(input, weights, axis, output, mode, cval, origin)
    x, dtype = read_image(input, "correlate1d", output)
    axis = axis_index(axis, ndim_of(x))
    return _cast(_summed(x, _list_of(weights), axis, mode, cval, origin), dtype)


def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The convolution of an image with weights along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import convolve1d
    >>> x = np.array([1.0, 4.0, 9.0])
    >>> grad(lambda w: convolve1d(x, w)[1])(np.array([-1.0, 0.0, 1.0]))
    array([9., 4., 1.])
    """
    if not holds_tracer((input, weights, cval)):
        return sn.convolve1d(input, weights, axis, output, mode, cval, origin)
    w = as_array(weights)
    shifted = -origin - (1 if shape_of(w)[0] % 2 == 0 else 0)
    return correlate1d(input, w[::-1], axis, output, mode, cval, shifted)


def _correlated(
    x: Any, weights: Any, mode: Any, cval: Any, origin: Any, axes: Any, flipped: bool
) -> Any:
    w = as_array(weights)
    along = _read_axes(axes, ndim_of(x))
    if ndim_of(w) != len(along):
        raise RuntimeError(f"weights.ndim ({ndim_of(w)}) must match len(axes) ({len(along)})")
    sizes, modes = shape_of(w), _per_axis(mode, len(along))
    if flipped:
        w = w[(slice(None, None, -1),) * len(along)]
        origin = [
            -o - (size % 2 == 0)
            for o, size in zip(_per_axis(origin, len(along)), sizes, strict=True)
        ]
    wide = x
    for axis, size, each, start in zip(
        along, sizes, modes, _per_axis(origin, len(along)), strict=True
    ):
        _check_origin(size, start)
        before = size // 2 + start
        wide = _extended(wide, axis, before, size - 1 - before, each, cval)
    total: Any = None
    for place in itertools.product(*map(range, sizes)):
        weight = w[place]
        if not holds_tracer(weight) and weight == 0:
            continue
        part = wide
        for axis, k in zip(along, place, strict=True):
            part = slice_along(part, axis, k, k + shape_of(x)[axis])
        total = weight * part if total is None else total + weight * part
    return 0 * x if total is None else total


def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The correlation of an image with an array of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import correlate
    >>> x = np.arange(9.0).reshape(3, 3)
    >>> grad(lambda w: correlate(x, w)[1, 1])(np.ones((3, 3)))
    array([[0., 1., 2.],
           [3., 4., 5.],
           [6., 7., 8.]])
    """
    if not holds_tracer((input, weights, cval)):
        return sn.correlate(input, weights, output, mode, cval, origin, axes=axes)
    x, dtype = read_image(input, "correlate", output)
    return _cast(_correlated(x, weights, mode, cval, origin, axes, False), dtype)


def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The convolution of an image with an array of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import convolve
    >>> x = np.arange(9.0).reshape(3, 3)
    >>> grad(lambda w: convolve(x, w)[1, 1])(np.ones((3, 3)))
    array([[8., 7., 6.],
           [5., 4., 3.],
           [2., 1., 0.]])
    """
    if not holds_tracer((input, weights, cval)):
        return sn.convolve(input, weights, output, mode, cval, origin, axes=axes)
    x, dtype = read_image(input, "convolve", output)
    return _cast(_correlated(x, weights, mode, cval, origin, axes, True), dtype)


def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The mean of `size` neighbors along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import uniform_filter1d
    >>> grad(lambda x: uniform_filter1d(x, 2)[2])(np.arange(4.0))
    array([0. , 0.5, 0.5, 0. ])
    """
    if not holds_tracer((input, cval)):
        return sn.uniform_filter1d(input, size, axis, output, mode, cval, origin)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    return correlate1d(input, np.full(size, 1 / size), axis, output, mode, cval, origin)


def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The mean of the neighbors in a box.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import uniform_filter
    >>> grad(lambda x: uniform_filter(x, 2)[1, 1])(np.zeros((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    if not holds_tracer((input, cval)):
        return sn.uniform_filter(input, size, output, mode, cval, origin, axes=axes)
    x, dtype = read_image(input, "uniform_filter", output)
    along = _read_axes(axes, ndim_of(x))
    rows = zip(along, *(_per_axis(each, len(along)) for each in (size, mode, origin)), strict=True)
    for axis, length, each, start in rows:
        if length > 1:
            x = uniform_filter1d(x, int(length), axis, None, each, cval, start)
    return _cast(x, dtype)


def _gaussian_weights(sigma: Any, order: int, truncate: float, radius: Any) -> list[Any]:
    """The normal density at whole numbers, or its derivative of an order: a polynomial times it."""
    if radius is None:
        radius = int(truncate * float(concrete(sigma)) + 0.5)
    if order < 0:
        raise ValueError("order must be non-negative")
    square = sigma * sigma
    places = np.arange(-radius, radius + 1, dtype=np.float64)
    density = np.exp(-0.5 / square * places**2)
    density = density / np.sum(density)
    # With p the polynomial, (p φ)' = (p' - x p/σ²) φ.
    polynomial: list[Any] = [1.0]
    for _ in range(order):
        down = [*(k * c for k, c in enumerate(polynomial))][1:] + [0.0, 0.0]
        up = [0.0, *(c / square for c in polynomial)]
        polynomial = [a - b for a, b in zip(down, up, strict=True)]
    factor: Any = 0.0
    for coefficient in reversed(polynomial):
        factor = coefficient + places * factor
    weights = (density * factor)[::-1]
    return [weights[k] for k in range(2 * radius + 1)]


def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """An image filtered with a Gaussian, or a derivative of one, along an axis; `sigma` may be traced, too.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import gaussian_filter1d
    >>> x = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> round(float(grad(lambda s: gaussian_filter1d(x, s)[2])(1.0)), 6)
    -0.398915
    """
    if not holds_tracer((input, sigma, cval)):
        return sn.gaussian_filter1d(
            input, sigma, axis, order, output, mode, cval, truncate, radius=radius
        )
    x, dtype = read_image(input, "gaussian_filter1d", output)
    axis = axis_index(axis, ndim_of(x))
    weights = _gaussian_weights(sigma, order, truncate, radius)
    return _cast(_summed(x, weights, axis, mode, cval, 0), dtype)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """An image filtered with a Gaussian along all axes; `sigma` may be traced, too.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import gaussian_filter
    >>> loss = lambda x: np.sum(gaussian_filter(x, 1.0) ** 2)
    >>> grad(loss)(np.ones((2, 2))).round(6)
    array([[2., 2.],
           [2., 2.]])
    """
    if not holds_tracer((input, sigma, cval)):
        return sn.gaussian_filter(
            input, sigma, order, output, mode, cval, truncate, radius=radius, axes=axes
        )
    x, dtype = read_image(input, "gaussian_filter", output)
    along = _read_axes(axes, ndim_of(x))
    spread = (_per_axis(each, len(along)) for each in (sigma, order, mode, radius))
    for axis, width, each_order, each_mode, reach in zip(along, *spread, strict=True):
        if concrete(width) > 1e-15:
            weights = _gaussian_weights(width, each_order, truncate, reach)
            x = _summed(x, weights, axis, each_mode, cval, 0)
    return _cast(x, dtype)


def _edges(
    name: str, smoothing: tuple[float, ...], summary: str, at_corner: str
) -> Callable[..., Any]:
    def edges(
        input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
    ) -> Any:
        if not holds_tracer((input, cval)):
            return getattr(sn, name)(input, axis, output, mode, cval)
        x, dtype = read_image(input, name, output)
        axis = axis_index(axis, ndim_of(x))
        modes = _per_axis(mode, ndim_of(x))
        x = _summed(x, [-1.0, 0.0, 1.0], axis, modes[axis], cval, 0)
        for other in range(ndim_of(x)):
            if other != axis:
                x = _summed(x, list(smoothing), other, modes[other], cval, 0)
        return _cast(x, dtype)

    edges.__name__ = edges.__qualname__ = name
    edges.__doc__ = f"""{summary}

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import {name}
    >>> grad(lambda x: {name}(x)[0, 0])(np.zeros((2, 2)))
    {at_corner}
    """
    return edges


sobel = _edges(
    "sobel",
    (1.0, 2.0, 1.0),
    "Sobel's filter: the difference of neighbors along an axis, smoothed along the others.",
    "array([[-3.,  3.],\n           [-1.,  1.]])",
)
prewitt = _edges(
    "prewitt",
    (1.0, 1.0, 1.0),
    "Prewitt's filter: the difference of neighbors along an axis, averaged along the others.",
    "array([[-2.,  2.],\n           [-1.,  1.]])",
)


def laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    """The sum of the second differences along all axes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import laplace
    >>> grad(lambda x: laplace(x)[2])(np.zeros(5))
    array([ 0.,  1., -2.,  1.,  0.])
    """
    if not holds_tracer((input, cval)):
        return sn.laplace(input, output, mode, cval, axes=axes)
    x, dtype = read_image(input, "laplace", output)
    along = _read_axes(axes, ndim_of(x))
    total: Any = 0 * x if not along else None
    for axis, each in zip(along, _per_axis(mode, len(along)), strict=True):
        term = _summed(x, [1.0, -2.0, 1.0], axis, each, cval, 0)
        total = term if total is None else total + term
    return _cast(total, dtype)


def _gaussian_derivatives(
    x: Any, sigma: Any, order: int, mode: Any, cval: Any, axes: Any, options: dict[str, Any]
) -> list[Any]:
    """Filtered with a Gaussian whose derivative is taken along each of the axes in turn."""
    along = _read_axes(axes, ndim_of(x))
    found = []
    for k in range(len(along)):
        orders = [order if j == k else 0 for j in range(len(along))]
        found.append(gaussian_filter(x, sigma, orders, None, mode, cval, axes=along, **options))
    return found


def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The Laplacian of an image filtered with a Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import gaussian_laplace
    >>> x = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> round(float(grad(lambda s: gaussian_laplace(x, s)[2])(1.0)), 6)
    1.196802
    """
    if not holds_tracer((input, sigma, cval)):
        return sn.gaussian_laplace(input, sigma, output, mode, cval, axes=axes, **kwargs)
    x, dtype = read_image(input, "gaussian_laplace", output)
    parts = _gaussian_derivatives(x, sigma, 2, mode, cval, axes, kwargs)
    return _cast(sum(parts[1:], parts[0]) if parts else 0 * x, dtype)


def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The norm of the gradient of an image filtered with a Gaussian; where it is 0, so is its derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import gaussian_gradient_magnitude
    >>> grad(lambda x: np.sum(gaussian_gradient_magnitude(x, 1.0)))(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    if not holds_tracer((input, sigma, cval)):
        return sn.gaussian_gradient_magnitude(input, sigma, output, mode, cval, axes=axes, **kwargs)
    x, dtype = read_image(input, "gaussian_gradient_magnitude", output)
    parts = _gaussian_derivatives(x, sigma, 1, mode, cval, axes, kwargs)
    squares = [part * part for part in parts]
    return _cast(root_of_squares(sum(squares[1:], squares[0])), dtype)


# Filters by rank: the neighbors of every entry are stacked, and one of them is chosen.


def _neighbors(
    x: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any
) -> Any:
    along = _read_axes(axes, ndim_of(x))
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(tuple(int(n) for n in _per_axis(size, len(along))), bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != len(along):
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(along)})")
    if not footprint.any():
        raise ValueError("All-zero footprint is not supported.")
    wide = x
    starts, modes = _per_axis(origin, len(along)), _per_axis(mode, len(along))
    for axis, length, each, start in zip(along, footprint.shape, modes, starts, strict=True):
        _check_origin(length, start)
        before = length // 2 + start
        wide = _extended(wide, axis, before, length - 1 - before, each, cval)
    found = []
    for place in np.argwhere(footprint):
        part = wide
        for axis, k in zip(along, place.tolist(), strict=True):
            part = slice_along(part, axis, k, k + shape_of(x)[axis])
        found.append(part)
    return np.stack(found)


def _by_rank(
    name: str, choose: Callable[[Any], Any], summary: str, slopes: str
) -> Callable[..., Any]:
    def by_rank(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        if not holds_tracer((input, cval)):
            return getattr(sn, name)(input, size, footprint, output, mode, cval, origin, axes=axes)
        x, dtype = read_image(input, name, output)
        return _cast(choose(_neighbors(x, size, footprint, mode, cval, origin, axes)), dtype)

    by_rank.__name__ = by_rank.__qualname__ = name
    by_rank.__doc__ = f"""{summary}

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.ndimage import {name}
    >>> grad(lambda x: np.sum({name}(x, 3)))(np.array([1.0, 3.0, 2.0, 0.0]))
    {slopes}
    """
    return by_rank


maximum_filter = _by_rank(
    "maximum_filter",
    lambda stack: np.max(stack, axis=0),
    "The largest neighbor in a box, or in a footprint.",
    "array([0., 3., 1., 0.])",
)
minimum_filter = _by_rank(
    "minimum_filter",
    lambda stack: np.min(stack, axis=0),
    "The smallest neighbor in a box, or in a footprint.",
    "array([2., 0., 0., 2.])",
)
median_filter = _by_rank(
    "median_filter",
    lambda stack: np.sort(stack, axis=0)[math.floor(shape_of(stack)[0] / 2)],
    "The median of the neighbors in a box, or in a footprint; of an even number, the upper one.",
    "array([1., 0., 2., 1.])",
)
