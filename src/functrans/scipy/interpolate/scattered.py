"""Interpolation of scattered data: linear in triangles, of the nearest point, and with radial functions."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.interpolate.piecewise import floating, si
from functrans.scipy.interpolate.tables import interp1d
from functrans.scipy.loading import load
from functrans.scipy.stand_ins import StandIn
from functrans.surface.table import as_array, ndim_of

spatial = load("scipy.spatial")


def _coordinates(args: Any) -> Any:
    """Points as an array whose last axis has the coordinates."""
    if isinstance(args, tuple) and len(args) == 1:
        args = args[0]
    if isinstance(args, tuple):
        parts = [as_array(each) for each in args]
        shape = np.broadcast_shapes(*(shape_of(each) for each in parts))
        return np.stack([np.broadcast_to(each, shape) for each in parts], axis=-1)
    return as_array(args)


class _Scattered(StandIn):
    """What interpolators of scattered data have in common."""

    points: Any
    values: Any

    def _read(self, points: Any, values: Any, rescale: bool) -> None:
        self.points, self.values = _coordinates(points).astype(np.float64), floating(values)
        if ndim_of(self.points) == 1:
            self.points = self.points[:, None]
        if shape_of(self.values)[0] != shape_of(self.points)[0]:
            raise ValueError("different number of values and points")
        plain = np.asarray(concrete(stop_gradient(self.points)))
        self._offset = plain.mean(axis=0) if rescale else np.zeros(plain.shape[1])
        size = np.ptp(plain - self._offset, axis=0) if rescale else np.ones(plain.shape[1])
        self._size = np.where(size > 0, size, 1)
        self._plain = (plain - self._offset) / self._size

    def _at(self, args: Any) -> tuple[Any, Any, Any]:
        """Points of evaluation as rows, their plain and scaled values, and the shape of the result."""
        xi = _coordinates(args).astype(np.float64)
        ndim = shape_of(self.points)[1]
        if ndim == 1 and (not ndim_of(xi) or shape_of(xi)[-1] != 1):
            xi = xi[..., None]
        elif ndim_of(xi) == 1 and len(args) == 1 and not isinstance(args[0], tuple):
            xi = xi.reshape((-1, ndim))  # one array is a list of points, even if it has only one
        rows = xi.reshape((-1, ndim))
        plain = (np.asarray(concrete(stop_gradient(rows))) - self._offset) / self._size
        return rows, plain, shape_of(xi)[:-1] + shape_of(self.values)[1:]


class LinearNDInterpolator(_Scattered):
    """Linear interpolation in the triangles, or simplices, between scattered points.

    Points, values and points of evaluation may be traced; the triangulation is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import LinearNDInterpolator
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> grad(lambda v: LinearNDInterpolator(points, v)(0.25, 0.5))(np.ones(3))
    array([0.25, 0.25, 0.5 ])
    """

    stands_for = si.LinearNDInterpolator

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False
    ) -> None:
        self._read(points, values, rescale)
        self.fill_value, self.tri = fill_value, spatial.Delaunay(self._plain)

    def __call__(self, *args: Any) -> Any:
        rows, plain, shape = self._at(args)
        return _in_simplices(
            self.tri, self.points, self.values, rows, plain, self.fill_value
        ).reshape(shape)


def _in_simplices(
    triangulation: Any, points: Any, values: Any, rows: Any, plain: Any, fill_value: Any
) -> Any:
    simplex = triangulation.find_simplex(plain)
    corners = triangulation.simplices[simplex]
    places = points[corners]
    edges = np.swapaxes(places[:, 1:] - places[:, :1], -1, -2)
    shares = np.linalg.solve(edges, (rows - places[:, 0])[..., None])[..., 0]
    weights = np.concatenate([1 - np.sum(shares, axis=-1, keepdims=True), shares], axis=-1)
    trailing = (1,) * (ndim_of(values) - 1)
    weights = weights.reshape(shape_of(weights) + trailing)
    out = np.sum(weights * values[corners], axis=1)
    return np.where((simplex < 0).reshape((-1, *trailing)), fill_value, out)


def linear_call(self: Any, *args: Any) -> Any:
    """`f(points)` of SciPy's `LinearNDInterpolator` for traced points."""
    values = self.values.reshape((len(self.values), *self.values_shape))
    mine = object.__new__(LinearNDInterpolator)
    mine.values, mine.fill_value, mine.tri = values, self.fill_value, self.tri
    scale = np.asarray(1.0 if self.scale is None else self.scale)
    offset = np.asarray(0.0 if self.scale is None else self.offset)
    mine.points = self.points * scale + offset
    mine._offset, mine._size = offset, scale
    return mine(*args)


class NearestNDInterpolator(_Scattered):
    """The value at the nearest of scattered points.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import NearestNDInterpolator
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> grad(lambda v: NearestNDInterpolator(points, v)(0.25, 0.8))(np.ones(3))
    array([0., 0., 1.])
    """

    stands_for = si.NearestNDInterpolator

    def __init__(
        self, x: Any, y: Any, rescale: bool = False, tree_options: dict[str, Any] | None = None
    ) -> None:
        self._read(x, y, rescale)
        self.tree = spatial.cKDTree(self._plain, **(tree_options or {}))

    def __call__(self, *args: Any, **query_options: Any) -> Any:
        _, plain, shape = self._at(args)
        distances, nearest = self.tree.query(plain, **query_options)
        far = ~np.isfinite(distances)
        out = self.values[np.where(far, 0, nearest)]
        out = np.where(far.reshape((-1,) + (1,) * (ndim_of(self.values) - 1)), np.nan, out)
        return out.reshape(shape)


@delegates(si.griddata)
def griddata(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    fill_value: Any = np.nan,
    rescale: bool = False,
) -> Any:
    """Interpolation of scattered data at points xi: "linear" or "nearest".

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import griddata
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> grad(lambda v: griddata(points, v, (0.25, 0.5)))(np.ones(3))
    array([0.25, 0.25, 0.5 ])
    """
    places = _coordinates(points)
    if ndim_of(places) < 2 or shape_of(places)[-1] == 1:
        return _along_line(places, values, xi, method, fill_value)
    if method not in ("linear", "nearest"):
        refuse_option("scipy.interpolate.griddata", "Use 'linear' or 'nearest'.", method=method)
    if method == "linear":
        linear = object.__new__(LinearNDInterpolator)
        linear.__init__(places, values, fill_value, rescale)  # type: ignore[misc]
        return linear(xi)
    nearest = object.__new__(NearestNDInterpolator)
    nearest.__init__(places, values, rescale)  # type: ignore[misc]
    return nearest(xi)


def _along_line(points: Any, values: Any, xi: Any, method: str, fill_value: Any) -> Any:
    if method not in ("linear", "nearest", "cubic"):
        raise ValueError(f"Unknown interpolation method {method!r} for 1 dimensional data")
    x = points.reshape(-1)
    order = np.argsort(stop_gradient(x))
    if method == "nearest":
        fill_value = "extrapolate"
    made = object.__new__(interp1d)
    made.__init__(  # type: ignore[misc]
        x[order], as_array(values)[order], method, 0, True, False, fill_value, True
    )
    places = xi[0] if isinstance(xi, tuple) else xi
    return made(places)


# Radial functions, of squared distances.


def _root(squares: Any) -> Any:
    """The square root, with derivative 0 at 0: points that coincide do not move apart."""
    zero = stop_gradient(squares) == 0
    return np.where(zero, 0, np.sqrt(np.where(zero, 1, squares)))


def _thin_plate(squares: Any) -> Any:
    zero = stop_gradient(squares) == 0
    return np.where(zero, 0, squares * np.log(np.where(zero, 1, squares)) / 2)


_KERNELS: dict[str, Any] = {
    "linear": lambda s: -_root(s),
    "thin_plate_spline": _thin_plate,
    "cubic": lambda s: s * _root(s),
    "quintic": lambda s: -s * s * _root(s),
    "multiquadric": lambda s: -np.sqrt(s + 1),
    "inverse_multiquadric": lambda s: 1 / np.sqrt(s + 1),
    "inverse_quadratic": lambda s: 1 / (s + 1),
    "gaussian": lambda s: np.exp(-s),
}
_LEAST_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
_SCALE_FREE = ("linear", "thin_plate_spline", "cubic", "quintic")


class RBFInterpolator(StandIn):
    """Interpolation with radial basis functions, as `scipy.interpolate.RBFInterpolator`.

    Positions, data, smoothing, epsilon and points of evaluation may be traced. `neighbors` may not be given.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import RBFInterpolator
    >>> y = np.arange(4.0)[:, None]
    >>> float(grad(lambda s: RBFInterpolator(y, s * y[:, 0])([[0.5]])[0])(2.0).round(6))
    0.5
    """

    stands_for = si.RBFInterpolator

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        if neighbors is not None:
            refuse_option("scipy.interpolate.RBFInterpolator", "Leave it out.", neighbors=neighbors)
        self.y, self.d = as_array(y).astype(np.float64), floating(d)
        self._prepare(smoothing, kernel, epsilon, degree)

    def _prepare(self, smoothing: Any, kernel: str, epsilon: Any, degree: int | None) -> None:
        kernel = kernel.lower()
        if kernel not in _KERNELS:
            raise ValueError(f"`kernel` must be one of {set(_KERNELS)}.")
        if epsilon is None:
            if kernel not in _SCALE_FREE:
                raise ValueError(
                    f"`epsilon` must be specified if `kernel` is not one of {set(_SCALE_FREE)}."
                )
            epsilon = 1.0
        least = _LEAST_DEGREES.get(kernel, -1)
        degree = max(least, 0) if degree is None else int(degree)
        count, ndim = shape_of(self.y)
        self.smoothing, self.kernel, self.epsilon = smoothing, kernel, epsilon
        self.powers = np.array(
            [
                [choice.count(k) for k in range(ndim)]
                for total in range(degree + 1)
                for choice in combinations_with_replacement(range(ndim), total)
            ]
        ).reshape((-1, ndim))
        fixed = stop_gradient(self.y)
        low, high = np.min(fixed, axis=0), np.max(fixed, axis=0)
        size = (high - low) / 2
        self._shift, self._scale = (high + low) / 2, np.where(size == 0, 1, size)
        matrix = self._kernel(self.y) + np.eye(count) * smoothing
        beside = self._monomials(self.y)
        terms = shape_of(beside)[1]
        above = np.concatenate([matrix, beside], axis=1)
        below = np.concatenate([beside.T, np.zeros((terms, terms))], axis=1)
        rows = self.d.reshape((count, -1))
        target = np.concatenate([rows, np.zeros((terms, shape_of(rows)[1]), dtype_of(rows))])
        self._coeffs = np.linalg.solve(np.concatenate([above, below]), target)

    def _kernel(self, x: Any) -> Any:
        apart = (x[:, None, :] - self.y[None, :, :]) * self.epsilon
        return _KERNELS[self.kernel](np.sum(apart * apart, axis=-1))

    def _monomials(self, x: Any) -> Any:
        scaled = (x - self._shift) / self._scale
        columns: list[Any] = []
        for powers in self.powers:
            term: Any = np.ones(shape_of(x)[0])
            for k, power in enumerate(powers):
                for _ in range(power):
                    term = term * scaled[:, k]
            columns.append(term)
        return np.stack(columns, axis=1) if columns else np.zeros((shape_of(x)[0], 0))

    def __call__(self, x: Any) -> Any:
        points = as_array(x).astype(np.float64)
        if ndim_of(points) != 2 or shape_of(points)[1] != shape_of(self.y)[1]:
            raise ValueError(
                f"Expected the second axis of `x` to have length {shape_of(self.y)[1]}."
            )
        both = np.concatenate([self._kernel(points), self._monomials(points)], axis=1)
        out = both @ self._coeffs
        return out.reshape((shape_of(points)[0], *shape_of(self.d)[1:]))


def rbf_call(self: Any, x: Any) -> Any:
    """`f(x)` of SciPy's `RBFInterpolator` for traced points."""
    if self.neighbors is not None:
        refuse_option(
            "scipy.interpolate.RBFInterpolator", "Leave it out.", neighbors=self.neighbors
        )
    mine = object.__new__(RBFInterpolator)
    mine.y, mine.d = self.y, self.d.view(self.d_dtype).reshape((len(self.d), *self.d_shape))
    degree = int(np.max(np.sum(self.powers, axis=1))) if len(self.powers) else -1
    mine._prepare(np.asarray(self.smoothing), self.kernel, self.epsilon, degree)
    return mine(x)
