"""scipy.optimize with derivatives: of solutions with respect to everything that the function depends on."""

from __future__ import annotations

from functrans.core.publishing import publish
from functrans.scipy.minima import brent, fminbound, golden, minimize, minimize_scalar
from functrans.scipy.roots import (
    bisect,
    brenth,
    brentq,
    fixed_point,
    fsolve,
    newton,
    ridder,
    root,
    root_scalar,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
    toms748,
)

__all__ = [
    "bisect",
    "brent",
    "brenth",
    "brentq",
    "fixed_point",
    "fminbound",
    "fsolve",
    "golden",
    "minimize",
    "minimize_scalar",
    "newton",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
    "toms748",
]


def __dir__() -> list[str]:
    return __all__


publish(__name__, [globals()[name] for name in __all__])
