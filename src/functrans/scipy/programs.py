"""Linear programs of scipy.optimize."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import holds_traced, is_differentiated, plain, with_value
from functrans.surface.table import as_array

so = load("scipy.optimize")


def linprog(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Any = None,
    options: Any = None,
    x0: Any = None,
    integrality: Any = None,
) -> Any:
    """Minimize c x with A_ub x <= b_ub, A_eq x = b_eq and bounds; SciPy's `linprog`.

    The solution is a vertex: as many constraints are active as there are unknowns. `x`, `fun`, `slack`,
    `con` and the marginals have the derivatives of the solution of these equations. Where more or fewer
    are active, the solution has no derivative, and a `SingularError` is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.optimize import linprog
    >>> a_ub = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> jacfwd(lambda b: linprog([-2.0, -1.0], a_ub, b).x)(np.array([4.0, 1.0]))
    array([[ 0.5,  0.5],
           [ 0.5, -0.5]])
    """
    given = {"c": c, "A_ub": A_ub, "b_ub": b_ub, "A_eq": A_eq, "b_eq": b_eq}
    given = {key: as_array(v) if holds_traced(v) else v for key, v in given.items()}
    result = so.linprog(
        **plain(given),
        bounds=plain(bounds),
        method=method,
        callback=callback,
        options=options,
        x0=plain(x0),
        integrality=integrality,
    )
    if result.x is None or not is_differentiated(*given.values(), bounds):
        return result
    if integrality is not None and np.any(integrality):
        raise errors.MissingRuleError(
            f"linprog with integrality= has no rule for traced values, at {errors.user_location()}. "
            "Solve the program with plain values."
        )
    return _differentiated(result, given, bounds)


def _differentiated(result: Any, given: dict[str, Any], bounds: Any) -> Any:
    size = len(result.x)
    cost = np.reshape(as_array(given["c"]), (-1,))
    low, high = _bounds(bounds, size)
    rows: list[Any] = []
    targets: list[Any] = []
    count = {}

    def hold(kind: str, matrix: Any, right: Any, gaps: Any) -> None:
        allowed = 1e-7 * (1 + np.abs(plain(right)))
        near = np.flatnonzero(np.isfinite(gaps) & (np.abs(gaps) <= allowed))
        count[kind] = near
        if len(near):
            rows.append(matrix[near])
            targets.append(right[near])

    x = result.x
    if given["A_eq"] is not None:
        matrix, right = _dense(given["A_eq"]), np.reshape(as_array(given["b_eq"]), (-1,))
        hold("eqlin", matrix, right, np.zeros(shape_of(right)))
    if given["A_ub"] is not None:
        matrix, right = _dense(given["A_ub"]), np.reshape(as_array(given["b_ub"]), (-1,))
        hold("ineqlin", matrix, right, result.slack)
    hold("lower", np.eye(size), low, np.where(np.isfinite(plain(low)), x - plain(low), np.inf))
    hold("upper", np.eye(size), high, np.where(np.isfinite(plain(high)), x - plain(high), np.inf))
    system = np.concatenate(rows) if rows else np.zeros((0, size))
    if shape_of(system)[0] != size or np.linalg.matrix_rank(plain(system)) < size:
        raise errors.SingularError(
            f"linprog: {shape_of(system)[0]} constraints are active at the solution for {size} "
            f"unknowns, so the solution has no derivative, at {errors.user_location()}. Remove "
            "constraints that follow from others, or change the costs slightly."
        )
    found = np.linalg.solve(system, np.concatenate(targets))
    result.x = with_value(x, found)
    result.fun = with_value(result.fun, cost @ found)
    if given["A_ub"] is not None:
        right = np.reshape(as_array(given["b_ub"]), (-1,))
        result.slack = with_value(result.slack, right - _dense(given["A_ub"]) @ found)
    if given["A_eq"] is not None:
        right = np.reshape(as_array(given["b_eq"]), (-1,))
        result.con = with_value(result.con, right - _dense(given["A_eq"]) @ found)
    # The marginals are the multipliers: c = Σ marginal · row.
    factors, start = np.linalg.solve(system.T, cost), 0
    for kind, near in count.items():
        if kind not in result:
            continue
        part = factors[start : start + len(near)]
        start += len(near)
        total = np.size(result[kind].marginals)
        spread = (np.arange(total)[:, None] == near).astype(float) @ part if len(near) else 0.0
        result[kind].marginals = with_value(result[kind].marginals, spread + np.zeros(total))
        name = {"ineqlin": "slack", "eqlin": "con"}.get(kind)
        side = {"lower": result.x - low, "upper": high - result.x}.get(kind)
        result[kind].residual = result[name] if name else side
    return result


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.atleast_2d(as_array(matrix))


def _bounds(bounds: Any, size: int) -> tuple[Any, Any]:
    if bounds is None:
        bounds = (0, None)
    pairs = list(bounds)
    if len(pairs) == 2 and all(pair is None or shape_of(pair) == () for pair in pairs):
        pairs = [tuple(pairs)] * size
    elif len(pairs) == 1:
        pairs = pairs * size
    low = [-np.inf if pair[0] is None else pair[0] for pair in pairs]
    high = [np.inf if pair[1] is None else pair[1] for pair in pairs]
    return as_array(low), as_array(high)
