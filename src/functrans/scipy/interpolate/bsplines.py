"""B-splines: evaluation with traced knots, coefficients and points, and splines through points."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.interpolate.piecewise import cyclic, floating, pick, require, si, with_axis
from functrans.scipy.stand_ins import StandIn
from functrans.surface.table import as_array, axis_index, in_array, ndim_of


def de_boor(t: Any, c: Any, k: int, x: Any) -> Any:
    """The spline at points x; c has the coefficients along its first axis."""
    n = shape_of(t)[0] - k - 1
    place = np.searchsorted(stop_gradient(t), stop_gradient(x), side="right") - 1
    place = np.clip(place, k, n - 1)
    if k:  # the last interval that is not empty: knots may repeat there
        above = np.searchsorted(stop_gradient(t), stop_gradient(t)[n], side="left") - 1
        place = np.minimum(place, np.maximum(above, k))
    trailing = (1,) * (ndim_of(c) - 1)
    spread: Any = lambda values: values.reshape(shape_of(values) + trailing)
    points = spread(x)
    knots = {j: spread(pick(t, place + j)) for j in range(1 - k, k + 1)}
    rows = [pick(c, place - k + j) for j in range(k + 1)]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left, right = knots[j - k], knots[j + 1 - r]
            part = (points - left) / (right - left)
            rows[j] = (1 - part) * rows[j - 1] + part * rows[j]
    out = rows[k]
    return np.broadcast_to(out, np.broadcast_shapes(shape_of(out), shape_of(points)))


def derived(t: Any, c: Any, k: int) -> tuple[Any, Any, int]:
    """The derivative of a spline, as knots, coefficients and degree."""
    n = shape_of(t)[0] - k - 1
    if k == 0:
        return t, np.zeros_like(c[:n]), 0
    width = t[k + 1 : k + n] - t[1:n]
    empty = stop_gradient(width) == 0
    factor = np.where(empty, 0, k / np.where(empty, 1, width))
    factor = factor.reshape((-1,) + (1,) * (ndim_of(c) - 1))
    return t[1:-1], (c[1:n] - c[: n - 1]) * factor, k - 1


def integrated(t: Any, c: Any, k: int) -> tuple[Any, Any, int]:
    """The antiderivative of a spline, as knots, coefficients and degree."""
    n = shape_of(t)[0] - k - 1
    width = ((t[k + 1 :] - t[:n]) / (k + 1)).reshape((-1,) + (1,) * (ndim_of(c) - 1))
    sums = np.cumsum(c[:n] * width, axis=0)
    c = np.concatenate([np.zeros_like(sums[:1]), sums])
    return np.concatenate([t[:1], t, t[-1:]]), c, k + 1


def differentiated(t: Any, c: Any, k: int, nu: int) -> tuple[Any, Any, int]:
    for _ in range(nu):
        t, c, k = derived(t, c, k)
    return t, c, k


def design(t: Any, k: int, x: Any, nu: int = 0) -> Any:
    """The basis functions, or their derivatives, at points x: a matrix with one row per point."""
    n = shape_of(t)[0] - k - 1
    return de_boor(*_reduced(t, np.eye(n), k, nu), x)


def _reduced(t: Any, c: Any, k: int, nu: int) -> tuple[Any, Any, int]:
    if nu > k:
        return t, np.zeros_like(c), k
    return differentiated(t, c, k, nu)


class BSpline(StandIn):
    """A spline in the B-spline basis, as `scipy.interpolate.BSpline`.

    Knots, coefficients and points may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import BSpline
    >>> knots = np.arange(5.0)
    >>> grad(lambda c: BSpline(knots, c, 1)(2.5))(np.ones(3))
    array([0. , 0.5, 0.5])
    """

    stands_for = si.BSpline

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        degree = operator.index(k)
        knots, coefficients = as_array(t).astype(np.float64), floating(c)
        axis = axis_index(axis, ndim_of(coefficients))
        coefficients = np.moveaxis(coefficients, axis, 0) if axis else coefficients
        n = shape_of(knots)[0] - degree - 1
        if degree < 0:
            raise ValueError("Spline order cannot be negative.")
        if n < degree + 1:
            raise ValueError(f"Need at least {2 * degree + 2} knots for degree {degree}")
        if shape_of(coefficients)[0] < n:
            raise ValueError("Knots, coefficients and degree are inconsistent.")
        require(np.diff(stop_gradient(knots)) >= 0, "Knots must be in a non-decreasing order.")
        self._set(knots, coefficients, degree, extrapolate, axis)

    def _set(self, t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> Any:
        self.t, self.c, self.k, self.axis = t, c, k, axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)
        return self

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Any:
        """A spline from its parts, without checks."""
        return object.__new__(cls)._set(t, c, k, extrapolate, axis)

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        points = as_array(x).astype(np.float64)
        rule = self.extrapolate if extrapolate is None else extrapolate
        n = shape_of(self.t)[0] - self.k - 1
        start, end = self.t[self.k], self.t[n]
        if rule == "periodic":
            points = cyclic(points, start, end)
        out = de_boor(*_reduced(self.t, self.c[:n], self.k, int(nu)), points)
        plain = stop_gradient(points)
        unknown = np.isnan(plain)
        if rule is False:
            unknown = unknown | (plain < stop_gradient(start)) | (plain > stop_gradient(end))
        unknown = unknown.reshape(shape_of(unknown) + (1,) * (ndim_of(self.c) - 1))
        out = np.where(unknown, np.nan, out)
        return in_array(with_axis(out, ndim_of(points), self.axis))

    def derivative(self, nu: int = 1) -> Any:
        """The derivative, as a spline."""
        parts = differentiated(self.t, self.c, self.k, nu)
        return type(self).construct_fast(*parts, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """The antiderivative, as a spline."""
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            t, c, k = integrated(t, c, k)
        rule = False if self.extrapolate == "periodic" else self.extrapolate
        return type(self).construct_fast(t, c, k, rule, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b."""
        rule = self.extrapolate if extrapolate is None else extrapolate
        a, b = (as_array(each).astype(np.float64) for each in (a, b))
        n = shape_of(self.t)[0] - self.k - 1
        start, end = self.t[self.k], self.t[n]
        t, c, k = integrated(self.t, self.c[:n], self.k)
        if rule == "periodic":
            period = end - start
            whole = de_boor(t, c, k, end) - de_boor(t, c, k, start)

            def up_to(x: Any) -> Any:
                turns = np.floor((stop_gradient(x) - stop_gradient(start)) / stop_gradient(period))
                return turns * whole + de_boor(t, c, k, x - turns * period)

            return in_array(up_to(b) - up_to(a))
        if not rule:  # nothing is outside of the base interval
            a, b = (np.clip(each, start, end) for each in (a, b))
        return in_array(de_boor(t, c, k, b) - de_boor(t, c, k, a))


def call(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """`spline(x)` for traced points."""
    mine = BSpline.construct_fast(self.t, self.c, self.k, self.extrapolate, self.axis)
    return mine(x, nu, extrapolate)


def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """`spline.integrate(a, b)` for traced limits."""
    mine = BSpline.construct_fast(self.t, self.c, self.k, self.extrapolate, self.axis)
    return mine.integrate(a, b, extrapolate)


# Splines through points: the coefficients solve a linear system.


def not_a_knot(x: Any, k: int) -> Any:
    """Knots for which the spline of degree k through points at x is determined."""
    if k % 2:
        inner = x[(k + 1) // 2 : shape_of(x)[0] - (k + 1) // 2]
    else:
        inner = ((x[1:] + x[:-1]) / 2)[k // 2 : shape_of(x)[0] - 1 - k // 2]
    return np.concatenate([np.repeat(x[:1], k + 1), inner, np.repeat(x[-1:], k + 1)])


def _conditions(bc: Any, trailing: tuple[int, ...]) -> list[tuple[int, Any]]:
    """The derivatives at one end: (order, value)."""
    if bc is None or (isinstance(bc, str) and bc == "not-a-knot"):
        return []
    if isinstance(bc, str):
        named = {"clamped": 1, "natural": 2}
        if bc not in named:
            raise ValueError(f"Unknown boundary condition: {bc}")
        return [(named[bc], np.zeros(trailing))]
    return [(int(order), as_array(value)) for order, value in bc]


@delegates(si.make_interp_spline)
def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> Any:
    """The spline of degree k through points.

    Traced data are interpolated with a dense system of equations, of the size of the number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import make_interp_spline
    >>> x = np.arange(4.0)
    >>> grad(lambda y: make_interp_spline(x, y)(1.5))(x**2)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    k = operator.index(k)
    nodes, values = as_array(x).astype(np.float64), floating(y)
    axis = axis_index(axis, ndim_of(values))
    values = np.moveaxis(values, axis, 0)
    if shape_of(nodes)[0] != shape_of(values)[0]:
        raise ValueError(f"Shapes of x {shape_of(nodes)} and y {shape_of(values)} are incompatible")
    require(np.diff(stop_gradient(nodes)) > 0, "Expect x to not have duplicates, and to be sorted")
    trailing = shape_of(values)[1:]
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if periodic and t is None:
        return _periodic_spline(nodes, values, k, axis)
    if periodic:
        refuse_option("scipy.interpolate.make_interp_spline", "Leave t out.", bc_type=bc_type)
    left, right = bc_type if isinstance(bc_type, tuple) else (bc_type, bc_type)
    first, last = _conditions(left, trailing), _conditions(right, trailing)
    if k == 0:
        if first or last:
            raise ValueError("Too much info for k=0: t and bc_type can only be None.")
        knots = np.concatenate([nodes, nodes[-1:]])
        return BSpline.construct_fast(knots, values, 0, axis=axis)
    if k == 1 and t is None and not first and not last:
        knots = np.concatenate([nodes[:1], nodes, nodes[-1:]])
        return BSpline.construct_fast(knots, values, 1, axis=axis)
    if t is not None:
        knots = as_array(t).astype(np.float64)
    elif first or last:
        if k == 2:
            refuse_option("scipy.interpolate.make_interp_spline", "Use k=3.", bc_type=bc_type)
        knots = np.concatenate([np.repeat(nodes[:1], k), nodes, np.repeat(nodes[-1:], k)])
    else:
        knots = not_a_knot(nodes, k)
    if shape_of(knots)[0] - k - 1 != shape_of(nodes)[0] + len(first) + len(last):
        raise ValueError(
            f"The number of derivatives at boundaries does not match: expected "
            f"{shape_of(knots)[0] - k - 1 - shape_of(nodes)[0]}, got {len(first)}+{len(last)}"
        )
    rows = [design(knots, k, nodes[:1], order) for order, _ in first]
    rows += [design(knots, k, nodes)]
    rows += [design(knots, k, nodes[-1:], order) for order, _ in last]
    targets = [np.broadcast_to(value, trailing)[None] for _, value in first]
    targets += [values]
    targets += [np.broadcast_to(value, trailing)[None] for _, value in last]
    target = np.concatenate([each.astype(dtype_of(values)) for each in targets])
    c = np.linalg.solve(np.concatenate(rows), target.reshape((shape_of(target)[0], -1)))
    return BSpline.construct_fast(knots, c.reshape(shape_of(target)), k, axis=axis)


def _periodic_spline(x: Any, y: Any, k: int, axis: int) -> Any:
    if k % 2 == 0:
        refuse_option("scipy.interpolate.make_interp_spline", "Use an odd k.", k=k)
    require(
        np.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * np.abs(y[-1]),
        "First and last points does not match while periodic case expected",
    )
    n = shape_of(x)[0]
    period = x[-1] - x[0]
    turns = np.arange(-k, n + k) // (n - 1)
    knots = x[np.arange(-k, n + k) % (n - 1)] + turns * period
    whole = design(knots, k, x[:-1])  # n + k - 1 basis functions, of which k are repeated
    folded = np.zeros((n + k - 1, n - 1))
    folded[np.arange(n + k - 1), np.arange(n + k - 1) % (n - 1)] = 1
    c = np.linalg.solve(whole @ folded, y[:-1].reshape((n - 1, -1)))
    c = (folded @ c).reshape((n + k - 1, *shape_of(y)[1:]))
    return BSpline.construct_fast(knots, c, k, "periodic", axis)


@delegates(si.make_lsq_spline)
def make_lsq_spline(
    x: Any,
    y: Any,
    t: Any,
    k: int = 3,
    w: Any = None,
    axis: int = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> Any:
    """The spline with knots t that is nearest to points, in the sense of weighted least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import make_lsq_spline
    >>> x, t = np.arange(3.0), np.array([0.0, 0.0, 2.0, 2.0])
    >>> grad(lambda y: make_lsq_spline(x, y, t, k=1)(1.0))(x).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    nodes, knots, values = as_array(x).astype(float), as_array(t).astype(float), floating(y)
    axis = axis_index(axis, ndim_of(values))
    values = np.moveaxis(values, axis, 0)
    k = operator.index(k)
    weights = np.ones(shape_of(nodes)) if w is None else as_array(w)
    matrix = design(knots, k, nodes) * weights[:, None]
    target = values.reshape((shape_of(values)[0], -1)) * weights[:, None]
    q, r = np.linalg.qr(matrix)
    c = np.linalg.solve(r, np.swapaxes(q, -1, -2) @ target)
    c = c.reshape((shape_of(c)[0], *shape_of(values)[1:]))
    return BSpline.construct_fast(knots, c, k, axis=axis)
