"""Interpolation in tables: `interp1d` along an axis, and on regular grids of any dimension."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.interpolate.bsplines import BSpline, design, make_interp_spline
from functrans.scipy.interpolate.piecewise import (
    floating,
    interval_of,
    pick,
    require,
    si,
    with_axis,
)
from functrans.scipy.stand_ins import StandIn
from functrans.surface.table import as_array, axis_index, in_array, known, ndim_of

_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


class interp1d(StandIn):
    """Interpolation along an axis, as `scipy.interpolate.interp1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import interp1d
    >>> x = np.arange(3.0)
    >>> grad(lambda y: interp1d(x, y)(1.25))(x)
    array([0.  , 0.75, 0.25])
    """

    stands_for = si.interp1d

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        nodes, values = as_array(x), as_array(y)
        if ndim_of(nodes) != 1:
            raise ValueError("the x array must have exactly one dimension.")
        if ndim_of(values) == 0:
            raise ValueError("the y array must have at least one dimension.")
        nodes, values = floating(nodes), floating(values)
        self.axis = axis_index(axis, ndim_of(values))
        if shape_of(nodes)[0] != shape_of(values)[self.axis]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        rows = np.moveaxis(values, self.axis, 0)
        if not assume_sorted:
            order = np.argsort(stop_gradient(nodes), kind="mergesort")
            nodes, rows = nodes[order], rows[order]
            values = np.moveaxis(rows, 0, self.axis)
        self.x, self.y, self.fill_value = nodes, values, fill_value
        self._rows = rows
        self._kind = "spline" if kind in _ORDERS or isinstance(kind, (int, np.integer)) else kind
        self._extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self._extrapolates and bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        self.bounds_error = not self._extrapolates if bounds_error is None else bounds_error
        if self._kind == "spline":
            order = _ORDERS.get(kind, kind)
            self._spline = make_interp_spline(nodes, rows, int(order))
        elif self._kind not in ("linear", *_STEPS):
            raise NotImplementedError(
                f"{kind} is unsupported: Use fitpack routines for other types."
            )

    def __call__(self, x: Any) -> Any:
        points = as_array(x)
        points = points.astype(np.float64) if dtype_of(points).kind not in "fc" else points
        plain = stop_gradient(points)
        below, above = plain < stop_gradient(self.x[0]), plain > stop_gradient(self.x[-1])
        if self.bounds_error:
            require(~below, "A value in x_new is below the interpolation range's minimum value.")
            require(~above, "A value in x_new is above the interpolation range's maximum value.")
        out = self._values(points)
        trailing = (1,) * (ndim_of(self._rows) - 1)
        spread: Any = lambda each: each.reshape(shape_of(each) + trailing)
        if not self._extrapolates:
            low, high = _fill_values(self.fill_value, self._rows, self.axis)
            out = np.where(spread(below), low, np.where(spread(above), high, out))
        out = np.where(spread(np.isnan(plain)), np.nan, out)
        return in_array(with_axis(out, ndim_of(points), self.axis))

    def _values(self, points: Any) -> Any:
        if self._kind == "spline":
            return self._spline(points)
        x, rows = self.x, self._rows
        if self._kind in _STEPS:
            return pick(rows, _step(self._kind, stop_gradient(x), stop_gradient(points)))
        place = interval_of(x, points)
        trailing = (1,) * (ndim_of(rows) - 1)
        left, right = pick(x, place), pick(x, place + 1)
        part = ((points - left) / (right - left)).reshape(shape_of(points) + trailing)
        before, after = pick(rows, place), pick(rows, place + 1)
        return before + part * (after - before)


def _step(kind: str, x: Any, points: Any) -> Any:
    """The number of the node whose value a step function has."""
    last = shape_of(x)[0] - 1
    if kind == "previous":
        place = np.searchsorted(x, points, side="right") - 1
    elif kind == "next":
        place = np.searchsorted(x, points, side="left")
    else:
        middles = (x[1:] + x[:-1]) / 2
        place = np.searchsorted(middles, points, side="left" if kind == "nearest" else "right")
    return np.clip(place, 0, last)


def _fill_values(fill_value: Any, rows: Any, axis: int) -> tuple[Any, Any]:
    """What is below and above, in the layout of one row."""
    shape = shape_of(rows)[1:]
    if isinstance(fill_value, tuple) and len(fill_value) == 2:
        low, high = (as_array(each) for each in fill_value)
    else:
        low = high = as_array(fill_value)
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def call(self: Any, x: Any) -> Any:
    """`f(x)` of SciPy's `interp1d` for traced points."""
    mine = object.__new__(interp1d)
    mine.x, mine.y, mine.axis, mine.fill_value = self.x, self.y, self.axis, self.fill_value
    mine._rows = np.moveaxis(self.y, self.axis, 0)
    mine._extrapolates, mine.bounds_error = self._extrapolate, self.bounds_error
    mine._kind = self._kind
    if self._kind == "spline":
        spline = self._spline
        c = spline.c.reshape((len(spline.c), *mine._rows.shape[1:]))
        mine._spline = BSpline.construct_fast(spline.t, c, spline.k)
    elif self._kind in ("nearest", "nearest-up"):
        mine._kind = "nearest" if self._side == "left" else "nearest-up"
    elif self._kind not in _STEPS:  # linear data that SciPy hands to another routine
        mine._kind = "linear"
    return mine(x)


# Regular grids.

_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


class RegularGridInterpolator(StandIn):
    """Interpolation of values on a regular or rectilinear grid.

    Methods "linear", "nearest", "slinear", "cubic" and "quintic" are available for traced values.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import RegularGridInterpolator
    >>> x = np.arange(2.0)
    >>> f = lambda values: RegularGridInterpolator((x, x), values)([[0.5, 0.25]])[0]
    >>> grad(f)(np.ones((2, 2)))
    array([[0.375, 0.125],
           [0.375, 0.125]])
    """

    stands_for = si.RegularGridInterpolator

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        self.values = floating(values)
        self.grid = tuple(as_array(each).astype(np.float64) for each in points)
        if len(self.grid) > ndim_of(self.values):
            raise ValueError(
                f"There are {len(self.grid)} point arrays, but values has "
                f"{ndim_of(self.values)} dimensions"
            )
        flipped = list(self.grid)
        for k, nodes in enumerate(self.grid):
            if shape_of(nodes)[0] != shape_of(self.values)[k]:
                raise ValueError(
                    f"There are {shape_of(nodes)[0]} points and {shape_of(self.values)[k]} "
                    f"values on dimension {k}"
                )
            if _descends(nodes):
                flipped[k], self.values = nodes[::-1], np.flip(self.values, k)
            steps = np.diff(stop_gradient(flipped[k]))
            require(
                steps > 0,
                f"The points in dimension {k} must be strictly ascending or descending",
            )
        self.grid = tuple(flipped)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        return on_regular_grid(self, xi, method, nu=nu)


def _descends(nodes: Any) -> bool:
    if shape_of(nodes)[0] < 2:
        return False
    down = known(stop_gradient(nodes)[1] < stop_gradient(nodes)[0])
    return bool(down)  # where values are not known, they must ascend


def _as_points(xi: Any, ndim: int) -> Any:
    """The points as an array whose last axis has the coordinates."""
    if isinstance(xi, tuple):
        parts = [as_array(each) for each in xi]
        shape = np.broadcast_shapes(*(shape_of(each) for each in parts))
        out = np.stack([np.broadcast_to(each, shape) for each in parts], axis=-1)
    else:
        out = as_array(xi)
        if ndim_of(out) == 1:
            out = out[:, None] if ndim == 1 else out.reshape((-1, ndim))
    if not ndim_of(out) or shape_of(out)[-1] != ndim:
        raise ValueError(
            f"The requested sample points xi have dimension {shape_of(out)[-1:]}, but this "
            f"RegularGridInterpolator has dimension {ndim}"
        )
    return out.astype(np.float64)


def on_regular_grid(self: Any, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
    """`f(xi)` of `RegularGridInterpolator` for traced points."""
    method = self.method if method is None else method
    grid, values = [as_array(each) for each in self.grid], as_array(self.values)
    ndim = len(grid)
    points = _as_points(xi, ndim)
    lead = shape_of(points)[:-1]
    rows = [points[..., k].reshape(-1) for k in range(ndim)]
    outside: Any = False
    for nodes, row in zip(grid, rows, strict=True):
        plain = stop_gradient(row)
        away = (plain < stop_gradient(nodes)[0]) | (plain > stop_gradient(nodes)[-1])
        outside = outside | away
    if self.bounds_error:
        require(~outside, "One of the requested xi is out of bounds")
    trailing = shape_of(values)[ndim:]
    spread: Any = lambda each: each.reshape(shape_of(each) + (1,) * len(trailing))
    if method in ("linear", "nearest"):
        if nu is not None:
            raise ValueError(f"Specifying derivatives `nu` is not allowed for method {method}")
        out = _corners(grid, values, rows, spread, method == "nearest")
    elif method in _DEGREES:
        orders = (0,) * ndim if nu is None else tuple(nu)
        out = _products(grid, values, rows, _DEGREES[method], orders)
    else:
        refuse_option(
            "scipy.interpolate.RegularGridInterpolator",
            "Use 'linear', 'nearest', 'slinear', 'cubic' or 'quintic'.",
            method=method,
        )
    if not self.bounds_error and self.fill_value is not None:
        out = np.where(spread(outside), self.fill_value, out)
    missing = np.any(np.isnan(stop_gradient(np.stack(rows))), axis=0)
    out = np.where(spread(missing), np.nan, out)
    return in_array(out.reshape(lead + trailing))


def _corners(grid: Any, values: Any, rows: Any, spread: Any, nearest: bool) -> Any:
    """Values at the corners of the cells, weighted with distances."""
    places, parts = [], []
    for nodes, row in zip(grid, rows, strict=True):
        if shape_of(nodes)[0] == 1:
            places.append((np.zeros(shape_of(row), int), np.zeros(shape_of(row), int)))
            parts.append(np.zeros(shape_of(row)))
            continue
        place = interval_of(nodes, row)
        left, right = pick(nodes, place), pick(nodes, place + 1)
        places.append((place, place + 1))
        parts.append((row - left) / (right - left))
    if nearest:
        chosen = [
            np.where(stop_gradient(part) <= 0.5, low, high)
            for (low, high), part in zip(places, parts, strict=True)
        ]
        return pick(values, *chosen)
    total: Any = 0.0
    for corner in product((0, 1), repeat=len(grid)):
        weight: Any = 1.0
        for side, part in zip(corner, parts, strict=True):
            weight = weight * (part if side else 1 - part)
        place = tuple(each[side] for side, each in zip(corner, places, strict=True))
        total = total + spread(weight) * pick(values, *place)
    return total


def _products(grid: Any, values: Any, rows: Any, k: int, orders: tuple[int, ...]) -> Any:
    """Splines along all axes: the values as coefficients, one axis at a time, then at the points."""
    tables, c = [], values
    for axis, (nodes, row, nu) in enumerate(zip(grid, rows, orders, strict=True)):
        if shape_of(nodes)[0] <= k:
            raise ValueError(
                f"There are {shape_of(nodes)[0]} points in dimension {axis}, but a spline of degree "
                f"{k} requires at least {k + 1} points per dimension."
            )
        spline = make_interp_spline(nodes, c, k, axis=axis)
        c = np.moveaxis(spline.c, 0, axis)
        tables.append(design(spline.t, k, row, nu))
    out = np.tensordot(tables[0], c, axes=1)
    for table in tables[1:]:
        weights = table.reshape(shape_of(table) + (1,) * (ndim_of(out) - 2))
        out = np.sum(weights * out, axis=1)
    return out


@delegates(si.interpn)
def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Interpolation of values on a regular or rectilinear grid, at points xi.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import interpn
    >>> x = np.arange(3.0)
    >>> grad(lambda t: interpn((x,), x**2, t)[0])(np.array([1.5]))
    array([3.])
    """
    if method == "splinef2d":
        remedy = "Use RectBivariateSpline(x, y, z).ev."
        raise errors.MissingRuleError(
            f"scipy.interpolate.interpn with method='splinef2d' has no rule for traced values, at "
            f"{errors.user_location()}. {remedy}"
        )
    grid = object.__new__(RegularGridInterpolator)
    grid.__init__(points, values, method, bounds_error, fill_value)  # type: ignore[misc]
    return on_regular_grid(grid, xi)
