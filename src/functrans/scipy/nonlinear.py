"""Solvers of scipy.optimize for large systems of equations: Broyden's methods, mixing, Newton-Krylov."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.scipy.roots import vector_root
from functrans.scipy.searches import like_scipys
from functrans.scipy.solutions import is_differentiated, plain, plainly
from functrans.surface.table import as_array


def _solver(name: str, title: str) -> Any:
    def run(solver: Any, given: dict[str, Any]) -> Any:
        function = given["F"]
        given["F"] = plainly(function)
        given["xin"] = plain(given["xin"])
        out = solver(**given)
        several = isinstance(out, tuple)  # full_output
        found = np.asarray(out[0] if several else out)
        x = vector_root(lambda x: as_array(function(x)), found, name)
        if not is_differentiated(x):
            return out
        x = x if found.shape else x[()]
        return (x, *out[1:]) if several else x

    return like_scipys(
        name,
        run,
        f"""{title}; SciPy's `{name}`.

    The root has derivatives with respect to the values that the function closes over.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.optimize import {name}
    >>> def solution(a):
    ...     return {name}(lambda x: 0.2 * (a - x**3), np.ones(1), f_tol=1e-6)[0]
    >>> round(float(grad(solution)(1.5)), 4)
    0.2544
    """,
    )


anderson = _solver("anderson", "Solve equations by Anderson mixing")
broyden1 = _solver("broyden1", "Solve equations by Broyden's first method")
broyden2 = _solver("broyden2", "Solve equations by Broyden's second method")
diagbroyden = _solver("diagbroyden", "Solve equations with a diagonal Broyden approximation")
excitingmixing = _solver("excitingmixing", "Solve equations with a tuned diagonal approximation")
linearmixing = _solver("linearmixing", "Solve equations by scalar mixing")
newton_krylov = _solver("newton_krylov", "Solve equations by Newton's method with Krylov solvers")
