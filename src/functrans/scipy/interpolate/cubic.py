"""Cubic splines through points, from the derivatives there: smooth, monotone, and Akima's."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.bands import banded_solve
from functrans.scipy.delegation import delegates
from functrans.scipy.interpolate.piecewise import PPoly, floating, require, si
from functrans.surface.table import as_array, axis_index, ndim_of


def _column(x: Any, like: Any) -> Any:
    return x.reshape((-1,) + (1,) * (ndim_of(like) - 1))


def read_data(x: Any, y: Any, axis: Any, others: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The nodes, the axis, and the data with the interpolated axis first."""
    nodes = as_array(x)
    if dtype_of(nodes).kind == "c":
        raise ValueError("`x` must contain real values.")
    nodes = nodes.astype(np.float64)
    values = [floating(each) for each in (y, *others)]
    axis = axis_index(axis, ndim_of(values[0]))
    if ndim_of(nodes) != 1:
        raise ValueError("`x` must be 1-dimensional.")
    if shape_of(nodes)[0] < 2:
        raise ValueError("`x` must contain at least 2 elements.")
    for each in values:
        if shape_of(each)[axis] != shape_of(nodes)[0]:
            raise ValueError(f"The length of `y` along axis={axis} doesn't match the length of `x`")
    require(np.diff(stop_gradient(nodes)) > 0, "`x` must be strictly increasing sequence.")
    return nodes, axis, *(np.moveaxis(each, axis, 0) for each in values)


def hermite(x: Any, y: Any, slopes: Any) -> Any:
    """The coefficients of the cubic polynomials with these values and derivatives at both ends."""
    step = _column(np.diff(x), y)
    secant = np.diff(y, axis=0) / step
    t = (slopes[:-1] + slopes[1:] - 2 * secant) / step
    return np.stack([t / step, (secant - slopes[:-1]) / step - t, slopes[:-1], y[:-1]])


class CubicHermiteSpline(PPoly):
    """A piecewise cubic function with given values and derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import CubicHermiteSpline
    >>> x, y, slopes = np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.zeros(2)
    >>> grad(lambda y: CubicHermiteSpline(x, y, slopes)(0.5))(y)
    array([0.5, 0.5])
    """

    stands_for = si.CubicHermiteSpline

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        nodes, axis, values, slopes = read_data(x, y, axis, (dydx,))
        rule = True if extrapolate is None else extrapolate
        self._set(hermite(nodes, values, slopes), nodes, rule, axis)


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through points, twice continuously differentiable.

    Values, nodes, boundary values and points of evaluation may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import CubicSpline
    >>> x = np.arange(4.0)
    >>> grad(lambda y: CubicSpline(x, y)(1.5))(x**2)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    stands_for = si.CubicSpline

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: Any = None,
    ) -> None:
        nodes, axis, values = read_data(x, y, axis)
        ends = _boundary(bc_type, values, axis)
        if extrapolate is None:
            extrapolate = "periodic" if ends[0] == "periodic" else True
        slopes = _spline_slopes(nodes, values, ends)
        self._set(hermite(nodes, values, slopes), nodes, extrapolate, axis)


def _boundary(bc_type: Any, y: Any, axis: int) -> list[Any]:
    """The condition at each end: "periodic", "not-a-knot", or (order, value)."""
    if isinstance(bc_type, str):
        if bc_type == "periodic":
            close = np.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * np.abs(y[-1])
            require(
                close,
                "The first and last `y` point along axis 0 must be identical (within machine "
                "precision) when bc_type='periodic'.",
            )
        bc_type = (bc_type, bc_type)
    elif len(bc_type) != 2:
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions.")
    elif any(isinstance(each, str) and each == "periodic" for each in bc_type):
        raise ValueError("'periodic' `bc_type` is defined for both curve ends.")
    zero = np.zeros(shape_of(y)[1:], dtype_of(y))
    ends: list[Any] = []
    for each in bc_type:
        if isinstance(each, str):
            named = {
                "clamped": (1, zero),
                "natural": (2, zero),
                "not-a-knot": "not-a-knot",
                "periodic": "periodic",
            }
            if each not in named:
                raise ValueError(f"bc_type={each} is not allowed.")
            ends.append(named[each])
            continue
        order, value = each
        if order not in (1, 2):
            raise ValueError("The specified derivative order must be 1 or 2.")
        value = as_array(value)
        if shape_of(value) != shape_of(y)[1:]:
            raise ValueError(
                f"`deriv_value` shape {shape_of(value)} is not the expected one {shape_of(y)[1:]}."
            )
        ends.append((int(order), value))
    return ends


def _spline_slopes(x: Any, y: Any, ends: list[Any]) -> Any:
    """The derivatives at the nodes for which the second derivative is continuous."""
    n = shape_of(x)[0]
    steps = np.diff(x)
    h = _column(steps, y)
    secant = np.diff(y, axis=0) / h
    if ends[0] == "periodic":
        return _periodic_slopes(steps, h, secant, n)
    if n == 2:
        ends = [(1, secant[0]) if each == "not-a-knot" else each for each in ends]
    if n == 3 and ends[0] == ends[1] == "not-a-knot":  # the parabola
        middle = (h[1] * secant[0] + h[0] * secant[1]) / (h[0] + h[1])
        return np.stack([2 * secant[0] - middle, middle, 2 * secant[1] - middle])
    one, nothing = np.ones(1), np.zeros(1)
    if n > 2:
        inner = 3 * (h[1:] * secant[:-1] + h[:-1] * secant[1:])
    else:
        inner = np.zeros((0, *shape_of(y)[1:]), dtype_of(y))
    sides = []
    for end, (first, second) in zip(ends, ((0, 1), (-1, -2)), strict=True):
        sign = 1 if first == 0 else -1
        if end == "not-a-knot":
            both = steps[first] + steps[second]
            own = steps[second][None]
            other = both[None]
            right = (
                (steps[first] + 2 * both) * steps[second] * secant[first]
                + steps[first] ** 2 * secant[second]
            ) / both
        elif end[0] == 1:
            own, other, right = one, nothing, end[1]
        else:
            own, other = 2 * steps[first][None], steps[first][None]
            right = 3 * secant[first] * steps[first] - sign * 0.5 * end[1] * steps[first] ** 2
        sides.append((own, other, right[None].astype(dtype_of(y))))
    (own_first, other_first, right_first), (own_last, other_last, right_last) = sides
    diagonal = np.concatenate([own_first, 2 * (steps[:-1] + steps[1:]), own_last])
    above = np.concatenate([nothing, other_first, steps[:-1]])
    below = np.concatenate([steps[1:], other_last, nothing])
    bands = np.stack([above, diagonal, below])
    target = np.concatenate([right_first, inner, right_last]).reshape((n, -1))
    out = banded_solve(bands.astype(dtype_of(target)), target, below=1, above=1, definite=False)
    return out.reshape(shape_of(y))


def _periodic_slopes(steps: Any, h: Any, secant: Any, n: int) -> Any:
    """The same for a closed curve: a cyclic system, from two banded ones (Sherman and Morrison)."""
    if n == 2:
        return np.concatenate([secant, secant])
    if n == 3:
        slope = np.sum(secant / h, axis=0) / np.sum(1 / h, axis=0)
        return np.stack([slope, slope, slope])
    before, before_secant = np.roll(steps, 1), np.roll(secant, 1, axis=0)
    column = _column(before, secant)
    target = (3 * (h * before_secant + column * secant)).reshape((n - 1, -1))
    # Row i: h_i s_(i-1) + 2 (h_(i-1) + h_i) s_i + h_(i-1) s_(i+1); the corners are h_0 and h_(n-3).
    diagonal = 2 * (before + steps)
    first, last = steps[0], before[-1]
    gamma = -diagonal[0]
    ends = np.zeros(n - 1)
    top, bottom = ends.copy(), ends.copy()
    top[0], bottom[-1] = 1, 1
    adjusted = diagonal - top * gamma - bottom * (first * last / gamma)
    zero = np.zeros(1)
    bands = np.stack(
        [
            np.concatenate([zero, before[:-1]]),
            adjusted,
            np.concatenate([steps[1:], zero]),
        ]
    )
    corner = (top * gamma + bottom * last).reshape((-1, 1)).astype(dtype_of(target))
    both = np.concatenate([target, corner], axis=1)
    solved = banded_solve(bands.astype(dtype_of(both)), both, below=1, above=1, definite=False)
    found, z = solved[:, :-1], solved[:, -1:]
    along: Any = lambda values: values[0] + (first / gamma) * values[-1]
    found = found - z * (along(found) / (1 + along(z)))
    found = found.reshape((n - 1, *shape_of(secant)[1:]))
    return np.concatenate([found, found[:1]])


class PchipInterpolator(CubicHermiteSpline):
    """The monotone cubic interpolant of Fritsch and Carlson.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import PchipInterpolator
    >>> x = np.arange(3.0)
    >>> grad(lambda y: PchipInterpolator(x, y)(0.5))(x).round(6)
    array([ 0.375,  0.75 , -0.125])
    """

    stands_for = si.PchipInterpolator

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        nodes, axis, values = read_data(x, y, axis)
        rule = True if extrapolate is None else extrapolate
        self._set(hermite(nodes, values, _monotone_slopes(nodes, values)), nodes, rule, axis)


def _monotone_slopes(x: Any, y: Any) -> Any:
    h = _column(np.diff(x), y)
    secant = np.diff(y, axis=0) / h
    if shape_of(x)[0] == 2:
        return np.concatenate([secant, secant])
    signs = np.sign(stop_gradient(secant))
    flat = (signs[1:] != signs[:-1]) | (signs[1:] == 0) | (signs[:-1] == 0)
    left, right = np.where(flat, 1, secant[:-1]), np.where(flat, 1, secant[1:])
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = np.where(flat, 0, (w1 + w2) / (w1 / left + w2 / right))
    first = _end_slope(h[0], h[1], secant[0], secant[1])
    last = _end_slope(h[-1], h[-2], secant[-1], secant[-2])
    return np.concatenate([first[None], inner, last[None]])


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The derivative at an end from three points, changed where it would not be monotone."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(slope) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3 * np.abs(m0))
    return np.where(turned, 0, np.where(steep, 3 * m0, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's interpolant, and the modified one for method "makima".

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import Akima1DInterpolator
    >>> x = np.arange(5.0)
    >>> float(grad(lambda s: Akima1DInterpolator(x, s * x)(1.5))(1.0))
    1.5
    """

    stands_for = si.Akima1DInterpolator

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: Any = None,
    ) -> None:
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        nodes, axis, values = read_data(x, y, axis)
        slopes = _akima_slopes(nodes, values, method)
        rule = False if extrapolate is None else extrapolate
        self._set(hermite(nodes, values, slopes), nodes, rule, axis)


def _akima_slopes(x: Any, y: Any, method: str) -> Any:
    secant = np.diff(y, axis=0) / _column(np.diff(x), y)
    if shape_of(x)[0] == 2:
        return np.concatenate([secant, secant])
    # two more secants at each end
    m1 = 2 * secant[0] - secant[1]
    m0 = 2 * m1 - secant[0]
    n1 = 2 * secant[-1] - secant[-2]
    n0 = 2 * n1 - secant[-1]
    m = np.concatenate([np.stack([m0, m1]), secant, np.stack([n1, n0])])
    change = np.abs(np.diff(m, axis=0))
    if method == "makima":
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    f1, f2 = change[2:], change[:-2]
    total = f1 + f2
    size = stop_gradient(total)
    used = size > 1e-9 * np.max(size, initial=-np.inf)
    weighted = (f1 * m[1:-2] + f2 * m[2:-1]) / np.where(used, total, 1)
    return np.where(used, weighted, 0.5 * (m[3:] + m[:-3]))


@delegates(si.pchip_interpolate)
def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Values or derivatives of `PchipInterpolator(xi, yi)` at x.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import pchip_interpolate
    >>> nodes = np.arange(3.0)
    >>> float(grad(lambda t: pchip_interpolate(nodes, nodes, t))(0.5))
    1.0
    """
    nodes, axis, values = read_data(xi, yi, axis)
    made = PPoly.construct_fast(
        hermite(nodes, values, _monotone_slopes(nodes, values)), nodes, True, axis
    )
    if isinstance(der, (list, tuple, np.ndarray)):
        return [made(x, nu) for nu in der]
    return made(x, der)
