"""scipy.optimize with derivatives: of solutions with respect to everything that the function depends on."""

from __future__ import annotations

from functrans.core.publishing import publish
from functrans.scipy.fitting import (
    curve_fit,
    least_squares,
    leastsq,
    lsq_linear,
    nnls,
)
from functrans.scipy.minima import (
    brent,
    fminbound,
    golden,
    minimize,
    minimize_scalar,
)
from functrans.scipy.nonlinear import (
    anderson,
    broyden1,
    broyden2,
    diagbroyden,
    excitingmixing,
    linearmixing,
    newton_krylov,
)
from functrans.scipy.programs import (
    linprog,
)
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
from functrans.scipy.searches import (
    approx_fprime,
    basinhopping,
    brute,
    check_grad,
    differential_evolution,
    direct,
    dual_annealing,
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_cobyla,
    fmin_l_bfgs_b,
    fmin_ncg,
    fmin_powell,
    fmin_slsqp,
    fmin_tnc,
    linear_sum_assignment,
    shgo,
)

__all__ = [
    "anderson",
    "approx_fprime",
    "basinhopping",
    "bisect",
    "brent",
    "brenth",
    "brentq",
    "broyden1",
    "broyden2",
    "brute",
    "check_grad",
    "curve_fit",
    "diagbroyden",
    "differential_evolution",
    "direct",
    "dual_annealing",
    "excitingmixing",
    "fixed_point",
    "fmin",
    "fmin_bfgs",
    "fmin_cg",
    "fmin_cobyla",
    "fmin_l_bfgs_b",
    "fmin_ncg",
    "fmin_powell",
    "fmin_slsqp",
    "fmin_tnc",
    "fminbound",
    "fsolve",
    "golden",
    "least_squares",
    "leastsq",
    "linear_sum_assignment",
    "linearmixing",
    "linprog",
    "lsq_linear",
    "minimize",
    "minimize_scalar",
    "newton",
    "newton_krylov",
    "nnls",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
    "shgo",
    "toms748",
]

# Functions that take functions, which may close over traced values.
CLOSES_OVER = frozenset(__all__) - {
    "linear_sum_assignment",
    "linprog",
    "lsq_linear",
    "nnls",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
}


def __dir__() -> list[str]:
    return __all__


publish(__name__, [globals()[name] for name in __all__])
