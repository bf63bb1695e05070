"""Sums over nodes for integrals whose values are known: their derivatives are those of the integrals.

QUADPACK finds the value, and intervals on which the integrand is smooth, except perhaps at their ends. On
each, the substitution x = tanh(π/2 sinh t) (Takahasi and Mori 1974) makes the integrand decay so fast at
both ends that the trapezoidal rule in t converges exponentially, even where the integrand or its
derivatives are singular there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import concrete
from functrans.core.shapes import shape_of
from functrans.scipy.solutions import derivative_order, plain
from functrans.surface.table import as_array
from functrans.transforms.batching import vmap

Array = np.ndarray[Any, Any]

_REACH = 4.5  # the largest t: there the distance to the end is 1e-61 of the interval


class Subintervals:
    """Intervals of a variable s, and x as a function of it.

    `map_to_x(s)` returns x and dx/ds; by default x = s. All weights have the factor `sign`.
    """

    def __init__(
        self,
        edges: Sequence[tuple[float, float]],
        map_to_x: Callable[[Array], tuple[Array, Array]] | None = None,
        sign: float = 1.0,
    ) -> None:
        self.low, self.high = (np.array([edge[k] for edge in edges], float) for k in (0, 1))
        self.map_to_x = map_to_x
        self.sign = sign

    def nodes(self, density: int) -> Any:
        """Nodes, weights, and whether each node is also one of half the density."""
        count = int(_REACH * density)
        k = np.arange(-count, count + 1)
        t = k / density
        above = 1 / (1 + np.exp(np.pi * np.sinh(t)))  # the distance to the upper end
        below = above[::-1]
        weight = np.pi * np.cosh(t) * above * below / density
        length = (self.high - self.low)[:, None]
        s = np.where(
            below <= above, self.low[:, None] + length * below, self.high[:, None] - length * above
        )
        weights = self.sign * length * weight
        # A node that is rounded to the end itself would meet its singularity.
        weights = np.where((s > self.low[:, None]) & (s < self.high[:, None]), weights, 0.0)
        even = np.broadcast_to(k % 2 == 0, s.shape)
        return self._mapped(s.ravel(), weights.ravel(), even.ravel())

    def gauss(self, count: int) -> Any:
        """The nodes and weights of Gauss and Legendre."""
        at, weight = np.polynomial.legendre.leggauss(count)
        length = (self.high - self.low)[:, None]
        s = self.low[:, None] + length * (at + 1) / 2
        return self._mapped(s.ravel(), (self.sign * length * weight / 2).ravel())

    def _mapped(self, s: Array, weights: Array, *more: Array) -> Any:
        keep = weights != 0
        s, weights = s[keep], weights[keep]
        if self.map_to_x is not None:
            s, slope = self.map_to_x(s)
            weights = weights * slope
        return (s, weights, *(each[keep] for each in more))


def values_at(function: Callable[[Any], Any], x: Any, one_by_one: bool) -> Any:
    """The values of a user's function at an array of nodes, along the first axis."""
    if not one_by_one and shape_of(x)[0] > 1:
        try:
            return vmap(lambda x: as_array(function(x)))(x)
        except Exception:  # it needs numbers: it is called with them, and raises its own errors
            pass
    return np.stack([as_array(function(x[k])) for k in range(shape_of(x)[0])])


def integral(
    function: Callable[[Any], Any],
    value_only: Callable[[Any], Any],
    pieces: Subintervals,
    result: Any,
    tolerance: float,
    name: str,
    one_by_one: bool = False,
) -> Any:
    """The sum over nodes that has the derivatives of the integral; `result` is its value.

    `value_only` is the function without derivatives.
    """
    with np.errstate(all="ignore"):
        x, weights = _enough(value_only, pieces, result, tolerance, name, one_by_one)
        if not len(x):
            return 0.0 * np.asarray(result)
        return np.tensordot(weights, values_at(function, x, one_by_one), 1)


def _enough(
    function: Any, pieces: Subintervals, result: Any, tolerance: float, name: str, one_by_one: bool
) -> tuple[Array, Array]:
    """Nodes and weights that are enough for the value, without those that do not matter."""
    if one_by_one:
        # In a nested integral, each node is an integral: few suffice where the integrand is smooth.
        x, weights = pieces.gauss(20)
        parts = _parts(function, x, weights, True)
        if np.max(np.abs(parts.sum(0) - result)) <= 1e-11 * _scale(parts, result):
            return x, weights
    for density in (8, 16, 32, 64):
        x, weights, even = pieces.nodes(density)
        parts = _parts(function, x, weights, one_by_one)
        finite = np.isfinite(parts.reshape(len(x), -1)).all(1)
        parts = np.where(finite.reshape(-1, *[1] * (parts.ndim - 1)), parts, 0.0)
        scale = _scale(parts, result)
        total = parts.sum(0)
        change = np.max(np.abs(total - 2 * parts[even].sum(0)))
        # The error is about the square of the change from half the density.
        if change <= 1e-8 * scale:
            break
    difference = float(np.max(np.abs(total - result)))
    if not difference <= max(10 * tolerance, 1e-6 * scale):
        warnings.warn(
            f"{name}: the derivative of the integral is inaccurate, at {errors.user_location()}: the "
            f"sum that it is computed from differs from the integral by {difference:.1e}. Pass the "
            "points where the integrand is not smooth as points=.",
            errors.ConvergenceWarning,
            stacklevel=errors.user_depth(),
        )
    keep = finite & (np.abs(parts.reshape(len(x), -1)).max(1) > 1e-22 * scale)
    return x[keep], weights[keep]


def _parts(function: Any, x: Array, weights: Array, one_by_one: bool) -> Array:
    values = np.asarray(plain(values_at(function, x, one_by_one)))
    return values * weights.reshape(-1, *[1] * (values.ndim - 1))


def _scale(parts: Array, result: Any) -> float:
    return float(max(np.max(np.abs(parts).sum(0), initial=0.0), np.max(np.abs(result)), 1e-300))


def beyond(function: Callable[[Any], Any], edge: Any) -> Any:
    """∫ from the plain value of a traced limit to the limit: zero, with the derivatives of the integral.

    With m nodes of Gauss and Legendre, derivatives up to order 2m are exact.
    """
    start = concrete(edge)
    width = edge - start
    at, weight = np.polynomial.legendre.leggauss(max((derivative_order() + 1) // 2, 1))
    total = sum(
        w / 2 * as_array(function(start + (s + 1) / 2 * width))
        for s, w in zip(at, weight, strict=True)
    )
    return total * width
