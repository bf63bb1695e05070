"""The expectation of a function under a distribution: `expect` of SciPy's distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.scipy.integrate import quad
from functrans.scipy.solutions import arguments, plain
from functrans.surface.table import as_array


def expect(
    self: Any,
    pdf: Callable[..., Any],
    cdf: Callable[..., Any],
    func: Callable[[Any], Any] | None = None,
    args: Any = (),
    loc: Any = 0,
    scale: Any = 1,
    lb: Any = None,
    ub: Any = None,
    conditional: bool = False,
    **kwds: Any,
) -> Any:
    """The integral of func(x) pdf(x) between lb and ub; `pdf` and `cdf` take traced parameters."""
    shapes = arguments(args)
    ends = [
        # An end at infinity does not depend on the location and the scale.
        given if given is not None else end if np.isinf(concrete(end)) else loc + end * scale
        for given, end in zip((lb, ub), self._get_support(*shapes), strict=True)
    ]

    def integrand(x: Any) -> Any:
        value = x if func is None else func(x)
        return value * pdf(x, *shapes, loc=loc, scale=scale)

    masses = [_mass(cdf, end, shapes, loc, scale) for end in ends]
    # As SciPy does, integrate the tails separately. Where they begin does not matter.
    below, above = (float(plain(mass)) for mass in masses)
    inner = below + (above - below) * np.array([0.05, 0.95])
    edges = [ends[0], *self.ppf(inner, *plain(shapes), loc=plain(loc), scale=plain(scale)), ends[1]]
    total = sum(quad(integrand, edges[k], edges[k + 1], **kwds)[0] for k in range(3))
    return total / (masses[1] - masses[0]) if conditional else total


def _mass(cdf: Any, end: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    """The distribution function at an end, which is constant at infinity."""
    if np.isinf(concrete(end)):
        return 1.0 if concrete(end) > 0 else 0.0
    return as_array(cdf(end, *shapes, loc=loc, scale=scale))
