"""scipy.interpolate for traced values: derivatives with respect to points, data and nodes.

The classes make SciPy's objects if nothing is traced; with traced data, they make objects with the same
attributes and methods. `METHODS` has the methods of SciPy's own objects for traced points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.publishing import publish as _publish
from functrans.scipy.interpolate import (
    bsplines,
    fitpack,
    piecewise,
    polynomials,
    scattered,
    tables,
)
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline, make_lsq_spline
from functrans.scipy.interpolate.cubic import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    pchip_interpolate,
)
from functrans.scipy.interpolate.fitpack import (
    InterpolatedUnivariateSpline,
    RectBivariateSpline,
    UnivariateSpline,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)
from functrans.scipy.interpolate.piecewise import BPoly, PPoly, si
from functrans.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
    lagrange,
)
from functrans.scipy.interpolate.scattered import (
    LinearNDInterpolator,
    NearestNDInterpolator,
    RBFInterpolator,
    griddata,
)
from functrans.scipy.interpolate.tables import RegularGridInterpolator, interp1d, interpn

__all__ = [
    "Akima1DInterpolator",
    "BPoly",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "LinearNDInterpolator",
    "NearestNDInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "RectBivariateSpline",
    "RegularGridInterpolator",
    "UnivariateSpline",
    "barycentric_interpolate",
    "griddata",
    "interp1d",
    "interpn",
    "krogh_interpolate",
    "lagrange",
    "make_interp_spline",
    "make_lsq_spline",
    "pchip_interpolate",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]

_POWERS = (
    si.PPoly,
    si.CubicHermiteSpline,
    si.CubicSpline,
    si.PchipInterpolator,
    si.Akima1DInterpolator,
)
_SPLINES = (si.UnivariateSpline, si.InterpolatedUnivariateSpline, si.LSQUnivariateSpline)
_SURFACES = (si.RectBivariateSpline, si.SmoothBivariateSpline, si.LSQBivariateSpline)

METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    **{(kind, "__call__"): piecewise.call for kind in (*_POWERS, si.BPoly)},
    **{(kind, "integrate"): piecewise.integrate for kind in (*_POWERS, si.BPoly)},
    **{(kind, "solve"): piecewise.solve for kind in _POWERS},
    (si.BSpline, "__call__"): bsplines.call,
    (si.BSpline, "integrate"): bsplines.integrate,
    **{(kind, "__call__"): fitpack.call for kind in _SPLINES},
    **{(kind, "integral"): fitpack.integral for kind in _SPLINES},
    **{(kind, "__call__"): fitpack.on_grid for kind in _SURFACES},
    **{(kind, "ev"): fitpack.at_points for kind in _SURFACES},
    (si.interp1d, "__call__"): tables.call,
    (si.RegularGridInterpolator, "__call__"): tables.on_regular_grid,
    (si.BarycentricInterpolator, "__call__"): polynomials.barycentric_call,
    (si.BarycentricInterpolator, "derivative"): polynomials.barycentric_derivative,
    (si.KroghInterpolator, "__call__"): polynomials.krogh_call,
    (si.KroghInterpolator, "derivative"): polynomials.krogh_derivative,
    (si.LinearNDInterpolator, "__call__"): scattered.linear_call,
    (si.RBFInterpolator, "__call__"): scattered.rbf_call,
}

_publish(__name__, [globals()[name] for name in __all__])


def __dir__() -> list[str]:
    return __all__
