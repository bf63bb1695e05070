"""Polynomials through points, in Lagrange's form, which has no division by x - x_j."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates
from functrans.scipy.interpolate.piecewise import floating, require, si, with_axis
from functrans.scipy.stand_ins import StandIn
from functrans.surface.table import as_array, axis_index, in_array, ndim_of
from functrans.transforms.forward_mode import jvp


def _basis(nodes: Any, x: Any) -> Any:
    """L_j(x) = Π_(k≠j) (x - x_k) / (x_j - x_k), in the last axis."""
    n = shape_of(nodes)[0]
    own = np.eye(n, dtype=bool)
    distances = np.where(own, 1, nodes[:, None] - nodes)
    return np.prod(np.where(own, 1, x[..., None, None] - nodes) / distances, axis=-1)


def _polynomial(nodes: Any, rows: Any, x: Any, order: int) -> Any:
    """The polynomial through points, or a derivative; the data are along the first axis of `rows`."""

    def value(x: Any) -> Any:
        return np.tensordot(_basis(nodes, x), rows, axes=1)

    def derivative(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (np.ones(shape_of(x)),))[1]

    for _ in range(order):
        value = derivative(value)
    return value(x)


class _Polynomial(StandIn):
    """What the classes of polynomials through points have in common."""

    def _read(self, xi: Any, yi: Any, axis: Any) -> None:
        nodes = as_array(xi).astype(np.float64)
        gaps = np.diff(np.sort(stop_gradient(nodes)))
        require(
            gaps > 0, "traced nodes must be distinct: derivatives in repeated ones are not read"
        )
        self.xi, self._axis = nodes, axis
        if yi is not None:
            self.set_yi(yi, axis)

    def set_yi(self, yi: Any, axis: Any = None) -> None:
        """Set the values to interpolate."""
        values = floating(yi)
        axis = axis_index(self._axis if axis is None else axis, ndim_of(values))
        self._axis, self._rows = axis, np.moveaxis(values, axis, 0)
        if shape_of(self._rows)[0] != shape_of(self.xi)[0]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")

    def __call__(self, x: Any) -> Any:
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """A derivative of the polynomial at x."""
        points = as_array(x).astype(np.float64)
        out = _polynomial(self.xi, self._rows, points, der)
        return in_array(with_axis(out, ndim_of(points), self._axis))

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The value and the first derivatives of the polynomial at x."""
        count = shape_of(self.xi)[0] if der is None else der
        return np.stack([self.derivative(x, order) for order in range(count)])


class BarycentricInterpolator(_Polynomial):
    """The polynomial through points, as `scipy.interpolate.BarycentricInterpolator`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import BarycentricInterpolator
    >>> x = np.arange(3.0)
    >>> grad(lambda y: BarycentricInterpolator(x, y)(0.5))(x)
    array([ 0.375,  0.75 , -0.125])
    """

    stands_for = si.BarycentricInterpolator

    def __init__(
        self,
        xi: Any,
        yi: Any = None,
        axis: int = 0,
        *,
        wi: Any = None,
        rng: Any = None,
        random_state: Any = None,
    ) -> None:
        self._read(xi, yi, axis)


class KroghInterpolator(_Polynomial):
    """The polynomial through points with distinct nodes, as `scipy.interpolate.KroghInterpolator`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import KroghInterpolator
    >>> x = np.arange(3.0)
    >>> grad(lambda y: KroghInterpolator(x, y)(0.5))(x)
    array([ 0.375,  0.75 , -0.125])
    """

    stands_for = si.KroghInterpolator

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        self._read(xi, yi, axis)


def _at(xi: Any, yi: Any, x: Any, der: Any, axis: int) -> Any:
    made = object.__new__(_Polynomial)
    made._read(xi, yi, axis)
    if isinstance(der, (list, tuple, np.ndarray)):
        return np.stack([made.derivative(x, order) for order in der])
    return made.derivative(x, der)


@delegates(si.barycentric_interpolate)
def barycentric_interpolate(
    xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None
) -> Any:
    """The polynomial through points, or a derivative of it, at x.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import barycentric_interpolate
    >>> nodes = np.arange(3.0)
    >>> float(grad(lambda t: barycentric_interpolate(nodes, nodes**2, t))(1.0))
    2.0
    """
    return _at(xi, yi, x, der, axis)


@delegates(si.krogh_interpolate)
def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """The polynomial through points, or a derivative of it, at x.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import krogh_interpolate
    >>> nodes = np.arange(3.0)
    >>> float(grad(lambda t: krogh_interpolate(nodes, nodes**2, t))(1.0))
    2.0
    """
    return _at(xi, yi, x, der, axis)


@delegates(si.lagrange)
def lagrange(x: Any, w: Any) -> Any:
    """The polynomial through points (x, w), as an np.poly1d with traced coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.interpolate import lagrange
    >>> nodes = np.arange(3.0)
    >>> grad(lambda y: lagrange(nodes, y)(0.5))(nodes)
    array([ 0.375,  0.75 , -0.125])
    """
    nodes, values = as_array(x).astype(np.float64), as_array(w)
    n = shape_of(nodes)[0]
    total: Any = 0.0
    for j in range(n):
        others = np.concatenate([nodes[:j], nodes[j + 1 :]])
        total = total + values[j] * np.poly(others) / np.prod(nodes[j] - others)
    polynomial = np.poly1d([0.0])
    # np.poly1d(total) would leave out leading zeros, and with them their derivatives
    polynomial.__dict__["coeffs"] = total
    return polynomial


def barycentric_call(self: Any, x: Any) -> Any:
    """`polynomial(x)` of SciPy's `BarycentricInterpolator` for traced points."""
    return barycentric_derivative(self, x, 0)


def barycentric_derivative(self: Any, x: Any, der: int = 1) -> Any:
    """`polynomial.derivative(x)` of SciPy's `BarycentricInterpolator` for traced points."""
    points = as_array(x).astype(np.float64)
    rows = self.yi.reshape((len(self.xi), *self._y_extra_shape))
    out = _polynomial(self.xi, rows, points, der)
    return in_array(with_axis(out, ndim_of(points), self._y_axis))


def krogh_call(self: Any, x: Any) -> Any:
    """`polynomial(x)` of SciPy's `KroghInterpolator` for traced points, in Newton's form."""
    return krogh_derivative(self, x, 0)


def krogh_derivative(self: Any, x: Any, der: int = 1) -> Any:
    """`polynomial.derivative(x)` of SciPy's `KroghInterpolator` for traced points."""
    points = as_array(x).astype(np.float64)
    c = self.c[: len(self.xi)].reshape((len(self.xi), *self._y_extra_shape))
    trailing = (1,) * (c.ndim - 1)

    def value(x: Any) -> Any:
        total: Any = np.zeros(shape_of(x) + c.shape[1:]) + c[-1]
        for k in range(len(self.xi) - 2, -1, -1):
            total = total * (x - self.xi[k]).reshape(shape_of(x) + trailing) + c[k]
        return total

    def derivative(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (np.ones(shape_of(x)),))[1]

    for _ in range(der):
        value = derivative(value)
    return in_array(with_axis(value(points), ndim_of(points), self._y_axis))
