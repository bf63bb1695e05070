"""Piecewise polynomials: `PPoly` and `BPoly`, with traced coefficients, breakpoints and points."""

from __future__ import annotations

from math import comb, factorial
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, concrete
from functrans.core.evaluate import open_array
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.loading import load
from functrans.scipy.stand_ins import StandIn
from functrans.solvers.roots import custom_root
from functrans.surface.table import as_array, axis_index, in_array, known, ndim_of

si = load("scipy.interpolate")


def floating(x: Any) -> Any:
    """An array of double precision, real or complex, as SciPy's interpolators compute with."""
    array = as_array(x)
    return array.astype(np.complex128 if dtype_of(array).kind == "c" else np.float64)


def require(condition: Any, message: str) -> None:
    """Raise SciPy's error if a condition on values does not hold, where they are known."""
    holds = known(np.all(condition))
    if holds is not None and not holds:
        raise ValueError(message)


def cyclic(x: Any, start: Any, end: Any) -> Any:
    """x moved by whole periods into [start, end)."""
    period = end - start
    return x - period * np.floor((stop_gradient(x) - stop_gradient(start)) / stop_gradient(period))


def interval_of(breaks: Any, x: Any) -> Any:
    """For each x, the number of the interval between breakpoints that it is in, or next to."""
    count = shape_of(breaks)[0] - 1
    place = np.searchsorted(stop_gradient(breaks), stop_gradient(x), side="right") - 1
    return np.clip(place, 0, count - 1)


def pick(x: Any, *index: Any) -> Any:
    """x[index], where the index may be traced even if x is not."""
    if isinstance(x, Tracer) or not any(isinstance(each, Tracer) for each in index):
        return x[index]
    return open_array(np.asarray(x))[index]


def with_axis(out: Any, ndim: int, axis: int) -> Any:
    """The first `ndim` axes, those of the points, moved behind `axis` axes of the data."""
    order = list(range(ndim_of(out)))
    return np.transpose(out, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


class Pieces(StandIn):
    """What piecewise polynomials in any basis have in common: breakpoints, an axis, and extrapolation.

    `c` has the axes (coefficient, interval, ...): those of the data follow.
    """

    c: Any
    x: Any
    extrapolate: Any
    axis: int

    def _set(self, c: Any, x: Any, extrapolate: Any, axis: int) -> Any:
        self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis
        return self

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Any:
        """An object from coefficients and breakpoints, without checks."""
        new = object.__new__(cls)
        return new._set(c, x, True if extrapolate is None else extrapolate, axis)

    def _read(self, c: Any, x: Any, extrapolate: Any, axis: Any) -> None:
        coefficients, breaks = floating(c), as_array(x).astype(np.float64)
        if ndim_of(coefficients) < 2:
            raise ValueError("Coefficients array must be at least 2-dimensional.")
        axis = axis_index(axis, ndim_of(coefficients) - 1)
        if axis:
            coefficients = np.moveaxis(coefficients, (axis, axis + 1), (0, 1))
        if ndim_of(breaks) != 1 or shape_of(breaks)[0] < 2:
            raise ValueError("x must be one-dimensional, with at least 2 breakpoints")
        if shape_of(coefficients)[1] != shape_of(breaks)[0] - 1:
            raise ValueError("number of coefficients != len(x)-1")
        steps = np.diff(stop_gradient(breaks))
        rising = known(np.all(steps >= 0))
        if rising is not None and not rising:
            require(steps <= 0, "`x` must be strictly increasing or decreasing.")
            breaks, coefficients = self._reversed(breaks, coefficients)
        self._set(coefficients, breaks, True if extrapolate is None else extrapolate, axis)

    def _reversed(self, breaks: Any, coefficients: Any) -> Any:
        raise ValueError("`x` must be strictly increasing.")

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        points = as_array(x)
        points = points.astype(np.float64) if dtype_of(points).kind != "f" else points
        rule = self.extrapolate if extrapolate is None else extrapolate
        start, end = self.x[0], self.x[-1]
        if rule == "periodic":
            points = cyclic(points, start, end)
        place = interval_of(self.x, points)
        trailing = (1,) * (ndim_of(self.c) - 2)
        spread: Any = lambda values: values.reshape(shape_of(values) + trailing)
        out = self._evaluate(
            pick(self.c, slice(None), place), spread(points), place, spread, int(nu)
        )
        unknown = np.isnan(stop_gradient(points))
        if rule is False:
            outside = (stop_gradient(points) < stop_gradient(start)) | (
                stop_gradient(points) > stop_gradient(end)
            )
            unknown = unknown | outside
        out = np.where(spread(unknown), np.nan, out)
        return in_array(with_axis(out, ndim_of(points), self.axis))

    def _evaluate(self, c: Any, x: Any, place: Any, spread: Any, nu: int) -> Any:
        raise NotImplementedError

    def derivative(self, nu: int = 1) -> Any:
        """The derivative, as an object of the same class."""
        if nu < 0:
            return self.antiderivative(-nu)
        new = self
        for _ in range(nu):
            new = new._derived()
        return new

    def antiderivative(self, nu: int = 1) -> Any:
        """The antiderivative that is 0 at the first breakpoint, as an object of the same class."""
        if nu < 0:
            return self.derivative(-nu)
        new = self
        for _ in range(nu):
            new = new._integrated()
        return new

    def _derived(self) -> Any:
        raise NotImplementedError

    def _integrated(self) -> Any:
        raise NotImplementedError

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from a to b."""
        rule = self.extrapolate if extrapolate is None else extrapolate
        whole = self._integrated()
        start, end = self.x[0], self.x[-1]
        period = end - start

        def from_start(place: Any) -> Any:
            if rule != "periodic":
                return whole(place, extrapolate=True)
            turns = np.floor((stop_gradient(place) - stop_gradient(start)) / stop_gradient(period))
            return turns * whole(end, extrapolate=True) + whole(
                place - turns * period, extrapolate=True
            )

        a, b = (as_array(each).astype(np.float64) for each in (a, b))
        out = from_start(b) - from_start(a)
        if rule is False:
            low, high = np.minimum(a, b), np.maximum(a, b)
            out = np.where((low < start) | (high > end), np.nan, out)
        return in_array(out)


class PPoly(Pieces):
    """A piecewise polynomial in the power basis, as `scipy.interpolate.PPoly`.

    Its value in interval i is Σ_m c[m, i] (x - x[i])^(k-m). All of c, x and the points may be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import PPoly
    >>> grad(lambda c: PPoly(c, np.array([0.0, 1.0]))(0.5))(np.array([[1.0], [2.0]]))
    array([[0.5],
           [1. ]])
    """

    stands_for = si.PPoly

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self._read(c, x, extrapolate, axis)

    def _reversed(self, breaks: Any, coefficients: Any) -> Any:
        # The powers are of x - x[i], where x[i] is the right end now: expand about the left one.
        breaks, coefficients = breaks[::-1], coefficients[:, ::-1]
        trailing = (1,) * (ndim_of(coefficients) - 2)
        shift = (breaks[:-1] - breaks[1:]).reshape((-1, *trailing))
        k = shape_of(coefficients)[0]
        rows = []
        for m in range(k):  # of the power p = k - 1 - m
            p, total = k - 1 - m, 0.0
            for higher in range(p, k):
                factor = comb(higher, p) * shift ** (higher - p)
                total = total + coefficients[k - 1 - higher] * factor
            rows.append(total)
        return breaks, np.stack(rows)

    def _evaluate(self, c: Any, x: Any, place: Any, spread: Any, nu: int) -> Any:
        s = x - spread(pick(self.x, place))
        k = shape_of(self.c)[0]
        total = np.zeros(np.broadcast_shapes(shape_of(c)[1:], shape_of(s)), dtype_of(c))
        for m in range(k - nu):
            power = k - 1 - m
            total = total * s + (factorial(power) // factorial(power - nu)) * c[m]
        return total

    def _derived(self) -> Any:
        k = shape_of(self.c)[0]
        if k == 1:
            c = np.zeros_like(self.c)
        else:
            powers = np.arange(k - 1, 0, -1.0)
            c = self.c[:-1] * powers.reshape((-1,) + (1,) * (ndim_of(self.c) - 1))
        return type(self).construct_fast(c, self.x, self.extrapolate, self.axis)

    def _integrated(self) -> Any:
        k, trailing = shape_of(self.c)[0], ndim_of(self.c) - 2
        powers = np.arange(k, 0, -1.0).reshape((-1,) + (1,) * (ndim_of(self.c) - 1))
        raised = self.c / powers
        steps = np.diff(self.x).reshape((-1,) + (1,) * trailing)
        ends: Any = 0.0
        for m in range(k):
            ends = (ends + raised[m]) * steps
        first = np.zeros_like(ends[:1])
        constants = np.concatenate([first, np.cumsum(ends, axis=0)[:-1]])
        c = np.concatenate([raised, constants[None]])
        rule = False if self.extrapolate == "periodic" else self.extrapolate
        return type(self).construct_fast(c, self.x, rule, self.axis)

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The points where the piecewise polynomial of one variable is equal to y, in ascending order."""
        rule = self.extrapolate if extrapolate is None else extrapolate
        plain = si.PPoly(
            np.array(concrete(stop_gradient(self.c))),
            np.array(concrete(stop_gradient(self.x))),
            self.extrapolate,
            self.axis,
        )
        found = plain.solve(concrete(stop_gradient(as_array(y))), discontinuity, rule)
        if found.dtype == object or np.any(np.isnan(found)):
            raise ValueError("solve: only isolated roots of one function have derivatives")
        if not len(found):
            return found
        # a root lies in one interval, whose polynomial has the derivative
        return custom_root(lambda x: self(x, extrapolate=rule) - y, found, lambda f, start: start)

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """The zeros of the piecewise polynomial of one variable, in ascending order."""
        return self.solve(0.0, discontinuity, extrapolate)


class BPoly(Pieces):
    """A piecewise polynomial in the Bernstein basis, as `scipy.interpolate.BPoly`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import BPoly
    >>> grad(lambda c: BPoly(c, np.array([0.0, 1.0]))(0.5))(np.array([[1.0], [2.0]]))
    array([[0.5],
           [0.5]])
    """

    stands_for = si.BPoly

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self._read(c, x, extrapolate, axis)

    def _evaluate(self, c: Any, x: Any, place: Any, spread: Any, nu: int) -> Any:
        width = spread(pick(self.x, place + 1) - pick(self.x, place))
        s = (x - spread(pick(self.x, place))) / width
        k = shape_of(self.c)[0] - 1
        rows: Any = c
        for step in range(nu):
            if k - step <= 0:
                return np.zeros(np.broadcast_shapes(shape_of(c)[1:], shape_of(s)), dtype_of(c))
            rows = (k - step) * (rows[1:] - rows[:-1]) / width
        while shape_of(rows)[0] > 1:  # de Casteljau
            rows = (1 - s) * rows[:-1] + s * rows[1:]
        return rows[0]

    def _derived(self) -> Any:
        k = shape_of(self.c)[0] - 1
        widths = np.diff(self.x).reshape((-1,) + (1,) * (ndim_of(self.c) - 2))
        c = k * (self.c[1:] - self.c[:-1]) / widths if k else np.zeros_like(self.c)
        return type(self).construct_fast(c, self.x, self.extrapolate, self.axis)

    def _integrated(self) -> Any:
        k = shape_of(self.c)[0]
        widths = np.diff(self.x).reshape((-1,) + (1,) * (ndim_of(self.c) - 2))
        rows = np.cumsum(self.c, axis=0) * widths / k
        ends = np.cumsum(rows[-1], axis=0)
        before = np.concatenate([np.zeros_like(ends[:1]), ends[:-1]])
        c = np.concatenate([np.zeros_like(rows[:1]), rows]) + before
        rule = False if self.extrapolate == "periodic" else self.extrapolate
        return type(self).construct_fast(c, self.x, rule, self.axis)


def ours(self: Any) -> Any:
    """Our object for one of SciPy's that is used with traced values."""
    kind = BPoly if isinstance(self, si.BPoly) else PPoly
    return kind.construct_fast(self.c, self.x, self.extrapolate, self.axis)


def call(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """`spline(x)` for traced points."""
    return ours(self)(x, nu, extrapolate)


def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """`spline.integrate(a, b)` for traced limits."""
    return ours(self).integrate(a, b, extrapolate)


def solve(self: Any, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
    """`spline.solve(y)` for a traced y."""
    return ours(self).solve(y, discontinuity, extrapolate)
