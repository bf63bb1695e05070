"""The names of FITPACK: splines through points as (t, c, k), and `UnivariateSpline` and its relatives.

The coefficients c are followed by k + 1 zeros, as SciPy's are. A smoothing spline chooses its knots by the
data; of traced data, only interpolating splines (s=0) and splines with given knots are available.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates, is_traced, refuse_option
from functrans.scipy.interpolate import bsplines
from functrans.scipy.interpolate.bsplines import (
    BSpline,
    de_boor,
    design,
    differentiated,
    integrated,
)
from functrans.scipy.interpolate.piecewise import require, si
from functrans.scipy.stand_ins import StandIn
from functrans.surface.table import as_array, in_array, ndim_of


def _no_smoothing(name: str) -> None:
    raise errors.MissingRuleError(
        f"{name} of traced data smooths them with knots that depend on the data, at "
        f"{errors.user_location()}, and has no derivative. Pass s=0 to interpolate."
    )


def _interpolated(x: Any, y: Any, k: int, ends: tuple[Any, Any]) -> tuple[Any, Any]:
    """The knots and coefficients of the spline through points."""
    knots = bsplines.not_a_knot(x, k)
    n = shape_of(knots)[0]
    for place, end in ((slice(0, k + 1), ends[0]), (slice(n - k - 1, n), ends[1])):
        if end is not None:
            moved = np.zeros(n, bool)
            moved[place] = True
            knots = np.where(moved, end, knots)
    return knots, np.linalg.solve(design(knots, k, x), y[:, None])[:, 0]


def _padded(c: Any, k: int) -> Any:
    return np.concatenate([c, np.zeros((k + 1, *shape_of(c)[1:]))])


@delegates(si.splrep)
def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: Any = 0,
    per: Any = 0,
    quiet: Any = 1,
) -> Any:
    """The spline (t, c, k) of degree k through points, or the nearest one with interior knots t.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import splev, splrep
    >>> x = np.arange(4.0)
    >>> grad(lambda y: splev(1.5, splrep(x, y)))(x**2)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    name = "scipy.interpolate.splrep"
    if per:
        refuse_option(name, "Use CubicSpline with bc_type='periodic'.", per=per)
    if full_output:
        refuse_option(name, "Leave it out.", full_output=full_output)
    k = operator.index(k)
    nodes, values = (as_array(each).astype(np.float64) for each in (x, y))
    if t is not None:
        ends = [nodes[:1] if xb is None else xb, nodes[-1:] if xe is None else xe]
        ends = [np.repeat(np.reshape(as_array(each), (1,)), k + 1) for each in ends]
        knots = np.concatenate([ends[0], as_array(t), ends[1]])
        found = bsplines.make_lsq_spline(nodes, values, knots, k, w)
        return knots, _padded(found.c, k), k
    if task != 0:
        refuse_option(name, "Leave it out.", task=task)
    if s is None:
        s = 0.0 if w is None else 1.0
    if is_traced(s) or s != 0:
        _no_smoothing(name)
    knots, c = _interpolated(nodes, values, k, (xb, xe))
    return knots, _padded(c, k), k


def _parts(tck: Any) -> tuple[Any, Any, int]:
    """Knots, coefficients without the padding, and the degree."""
    t, c, k = tck.tck if isinstance(tck, si.BSpline) else tck
    knots, degree = as_array(t), operator.index(k)
    return knots, as_array(c)[: shape_of(knots)[0] - degree - 1], degree


def evaluate(x: Any, t: Any, c: Any, k: int, nu: int, ext: Any) -> Any:
    """A spline or its derivative; `ext` says what is outside: its continuation, 0, an error, or the end."""
    points = as_array(x).astype(np.float64)
    n = shape_of(t)[0] - k - 1
    start, end = t[k], t[n]
    plain = stop_gradient(points)
    outside = (plain < stop_gradient(start)) | (plain > stop_gradient(end))
    rule = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}.get(ext, ext)
    if rule not in (0, 1, 2, 3):
        raise ValueError(f"ext = {ext} not in (0, 1, 2, 3)")
    if rule == 2:
        require(~outside, "Some x values are not in the base interval of the spline.")
    if rule == 3:
        points = np.clip(points, start, end)
    out = de_boor(*differentiated(t, c, k, nu), points)
    if rule == 1:
        out = np.where(outside.reshape(shape_of(outside) + (1,) * (ndim_of(c) - 1)), 0, out)
    return in_array(out)


@delegates(si.splev)
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Values of a spline (t, c, k), or of its derivative of order `der`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import splev, splrep
    >>> x = np.arange(4.0)
    >>> tck = splrep(x, x**2)
    >>> float(grad(lambda t: splev(t, tck))(1.5).round(6))
    3.0
    """
    if (
        isinstance(tck, (tuple, list))
        and isinstance(tck[1], (list, tuple))
        and ndim_of(as_array(tck[1][0]))
    ):  # a curve, from splprep
        return [splev(x, (tck[0], each, tck[2]), der, ext) for each in tck[1]]
    t, c, k = _parts(tck)
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    return evaluate(x, t, c, k, der, ext)


def _integral(t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """The integral of a spline that is 0 outside of its base interval."""
    n = shape_of(t)[0] - k - 1
    start, end = t[k], t[n]
    parts = integrated(t, c, k)
    a, b = (np.clip(as_array(each).astype(np.float64), start, end) for each in (a, b))
    return (de_boor(*parts, b) - de_boor(*parts, a))[()]


@delegates(si.splint)
def splint(a: Any, b: Any, tck: Any, full_output: Any = 0) -> Any:
    """The integral of a spline (t, c, k) from a to b; it is 0 outside of its base interval.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import splint, splrep
    >>> x = np.arange(4.0)
    >>> float(grad(lambda b: splint(0.0, b, splrep(x, x**2)))(2.0).round(6))
    4.0
    """
    if full_output:
        refuse_option("scipy.interpolate.splint", "Leave it out.", full_output=full_output)
    return _integral(*_parts(tck), a, b)


def _as_given(tck: Any, t: Any, c: Any, k: int) -> Any:
    if isinstance(tck, si.BSpline):
        return BSpline.construct_fast(t, c, k, tck.extrapolate, tck.axis)
    return t, _padded(c, k), k


@delegates(si.splder)
def splder(tck: Any, n: int = 1) -> Any:
    """The derivative of a spline, as a spline.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import splder, splev, splrep
    >>> x = np.arange(4.0)
    >>> f = lambda y: splev(1.0, splder(splrep(x, y)))
    >>> grad(f)(x**2).round(6)
    array([-0.333333, -0.5     ,  1.      , -0.166667])
    """
    t, c, k = _parts(tck)
    if n > k:
        raise ValueError(f"Order of derivative (n = {n!r}) must be <= order of spline (k = {k!r})")
    return _as_given(tck, *differentiated(t, c, k, n))


@delegates(si.splantider)
def splantider(tck: Any, n: int = 1) -> Any:
    """The antiderivative of a spline, as a spline.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import splantider, splev, splrep
    >>> x = np.arange(4.0)
    >>> float(grad(lambda t: splev(t, splantider(splrep(x, t * x))))(1.0).round(6))
    1.5
    """
    parts = _parts(tck)
    for _ in range(n):
        parts = integrated(*parts)
    if isinstance(tck, si.BSpline):
        return _as_given(tck, *parts)
    t, c, k = parts
    rest = np.broadcast_to(c[-1:], (k + 1, *shape_of(c)[1:]))  # SciPy repeats the last coefficient
    return t, np.concatenate([c, rest]), k


class UnivariateSpline(StandIn):
    """A spline through points, as `scipy.interpolate.UnivariateSpline` with s=0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import UnivariateSpline
    >>> x = np.arange(4.0)
    >>> grad(lambda y: UnivariateSpline(x, y, s=0)(1.5))(x**2)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    stands_for = si.UnivariateSpline

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        s: Any = None,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        if s is None or is_traced(s) or s != 0:
            _no_smoothing("scipy.interpolate.UnivariateSpline")
        self._interpolate(x, y, bbox, k, ext)

    def _interpolate(self, x: Any, y: Any, bbox: Any, k: int, ext: Any) -> None:
        nodes, values = (as_array(each).astype(np.float64) for each in (x, y))
        require(np.diff(stop_gradient(nodes)) > 0, "x must be strictly increasing if s = 0")
        low, high = bbox
        self._eval_args = (*_interpolated(nodes, values, operator.index(k), (low, high)), k)
        self.ext = ext

    @classmethod
    def _of(cls, t: Any, c: Any, k: int, ext: Any) -> Any:
        new = object.__new__(cls)
        new._eval_args, new.ext = (t, c, k), ext
        return new

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        return evaluate(x, *self._eval_args, nu, self.ext if ext is None else ext)

    def derivative(self, n: int = 1) -> Any:
        """The derivative, as a spline."""
        ext = 1 if self.ext == 3 else self.ext  # the derivative of a constant continuation
        return UnivariateSpline._of(*differentiated(*self._eval_args, n), ext)

    def antiderivative(self, n: int = 1) -> Any:
        """The antiderivative, as a spline."""
        parts = self._eval_args
        for _ in range(n):
            parts = integrated(*parts)
        return UnivariateSpline._of(*parts, self.ext)

    def integral(self, a: Any, b: Any) -> Any:
        """The integral from a to b; the spline is 0 outside of its base interval."""
        return _integral(*self._eval_args, a, b)

    def derivatives(self, x: Any) -> Any:
        """All derivatives at one point."""
        return np.stack([self(x, nu) for nu in range(self._eval_args[2] + 1)])

    def get_knots(self) -> Any:
        """The interior knots and the two ends."""
        t, _, k = self._eval_args
        return t[k : shape_of(t)[0] - k]

    def get_coeffs(self) -> Any:
        """The coefficients."""
        return self._eval_args[1]

    def get_residual(self) -> Any:
        """The weighted sum of squared residuals: 0, since the spline goes through all points."""
        return 0.0


class InterpolatedUnivariateSpline(UnivariateSpline):
    """A spline through points, as `scipy.interpolate.InterpolatedUnivariateSpline`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import InterpolatedUnivariateSpline
    >>> x = np.arange(4.0)
    >>> grad(lambda y: InterpolatedUnivariateSpline(x, y)(1.5))(x**2)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    stands_for = si.InterpolatedUnivariateSpline

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        self._interpolate(x, y, bbox, k, ext)


def call(self: Any, x: Any, nu: int = 0, ext: Any = None) -> Any:
    """`spline(x)` for traced points."""
    t, c, k = _parts(self._eval_args)
    return evaluate(x, t, c, k, nu, self.ext if ext is None else ext)


def integral(self: Any, a: Any, b: Any) -> Any:
    """`spline.integral(a, b)` for traced limits."""
    return _integral(*_parts(self._eval_args), a, b)


# Splines of two variables.


class RectBivariateSpline(StandIn):
    """A spline of two variables through the points of a grid, with s=0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import RectBivariateSpline
    >>> x = np.arange(4.0)
    >>> grad(lambda z: RectBivariateSpline(x, x, z).ev(1.5, 0.0))(np.ones((4, 4))).round(6)[:, 0]
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    stands_for = si.RectBivariateSpline

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        bbox: Any = (None, None, None, None),
        kx: int = 3,
        ky: int = 3,
        s: Any = 0,
        maxit: int = 20,
    ) -> None:
        if is_traced(s) or s != 0:
            _no_smoothing("scipy.interpolate.RectBivariateSpline")
        if any(each is not None for each in bbox):
            refuse_option("scipy.interpolate.RectBivariateSpline", "Leave it out.", bbox=bbox)
        rows, columns, values = (as_array(each).astype(np.float64) for each in (x, y, z))
        tx, ty = bsplines.not_a_knot(rows, kx), bsplines.not_a_knot(columns, ky)
        half = np.linalg.solve(design(tx, kx, rows), values)
        c = np.linalg.solve(design(ty, ky, columns), half.T).T
        self.tck, self.degrees = (tx, ty, c.reshape(-1)), (kx, ky)
        self.fp = 0.0

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        return on_grid(self, x, y, dx, dy, grid)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Values at points, or partial derivatives."""
        return at_points(self, xi, yi, dx, dy)

    def get_knots(self) -> tuple[Any, Any]:
        """The knots of both variables."""
        return self.tck[0], self.tck[1]

    def get_coeffs(self) -> Any:
        """The coefficients."""
        return self.tck[2]


def _tables(self: Any, x: Any, y: Any, dx: int, dy: int) -> tuple[Any, Any, Any]:
    """The coefficients as a matrix, and the basis functions at points: outside, those at the border."""
    (tx, ty, c), (kx, ky) = self.tck[:3], self.degrees
    tx, ty = as_array(tx), as_array(ty)
    matrix = as_array(c).reshape((shape_of(tx)[0] - kx - 1, shape_of(ty)[0] - ky - 1))
    tables = []
    for points, t, k, nu in ((x, tx, kx, dx), (y, ty, ky, dy)):
        inside = np.clip(as_array(points).astype(np.float64), t[k], t[shape_of(t)[0] - k - 1])
        tables.append(design(t, k, inside, nu))
    return matrix, tables[0], tables[1]


def at_points(self: Any, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
    """`spline.ev(x, y)` for traced points."""
    xi, yi = (as_array(each) for each in (xi, yi))
    shape = np.broadcast_shapes(shape_of(xi), shape_of(yi))
    matrix, left, right = _tables(
        self, np.broadcast_to(xi, shape), np.broadcast_to(yi, shape), dx, dy
    )
    return in_array(np.sum((left @ matrix) * right, axis=-1))


def on_grid(self: Any, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
    """`spline(x, y)` for traced points."""
    if not grid:
        return at_points(self, x, y, dx, dy)
    x, y = (np.atleast_1d(as_array(each)) for each in (x, y))
    matrix, left, right = _tables(self, x, y, dx, dy)
    return left @ matrix @ right.T
