"""custom_root and fixed_point: roots of equations, differentiated implicitly.

The root depends on the traced values that the user's function closes over, which are found by staging it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.loops import solver_loop
from functrans.control.procedures import (
    CuriousStage,
    Procedure,
    close,
    pull_through,
    push_through,
    staged,
)
from functrans.core import errors, tree
from functrans.core.custody import lending, own
from functrans.core.dispatch import is_anything_running, watcher
from functrans.core.shapes import spec_of
from functrans.solvers.implicit import stripped
from functrans.solvers.linear import DenseSolver, UserSolver, closed_system
from functrans.solvers.systems import Root, System
from functrans.solvers.vectors import (
    check_count,
    check_tolerance,
    floating_leaves,
    leaves_like,
    norm,
    precision,
    report,
)
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import is_known, is_staging, strong, zeros


def custom_root(
    f: Callable[[Any], Any],
    init: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    tol: float = 1e-4,
) -> Any:
    """Find a root of `f` with your own solver, which is not differentiated.

    The derivative of the root with respect to the values that `f` closes over follows from f(x) = 0, in
    both modes and to every order. It needs the Jacobian of `f` at the root, and none of the solver's steps.

    Parameters
    ----------
    f : callable
        A function of a pytree like `init`, which returns one like it.
    init : pytree of arrays
        The initial guess. The root does not depend on it.
    solve : callable
        solve(f, init) -> x. It sees values without derivatives, and may branch on them in Python where
        they are known; under `jit`, use `while_loop` and similar functions.
    tangent_solve : callable, optional
        tangent_solve(matvec, b) -> x solves linear systems with the Jacobian of `f`, or its transpose,
        such as `lambda matvec, b: gmres(matvec, b)[0]`. If it is not given, the Jacobian is computed as a
        matrix; if that is singular, a `SingularError` is raised.
    tol : float
        A `ConvergenceWarning` is raised if ‖f(x)‖ > tol (1 + ‖f(init)‖).

    Examples
    --------
    >>> from functrans import custom_root, grad
    >>> def bisect(f, interval):
    ...     low, high = 0.0, 10.0
    ...     while high - low > 1e-12:
    ...         middle = (low + high) / 2
    ...         low, high = (middle, high) if f(middle) < 0 else (low, middle)
    ...     return low
    >>> def cube_root(a):
    ...     return custom_root(lambda x: x**3 - a, 1.0, bisect)
    >>> round(float(grad(cube_root)(8.0)), 9)  # 1/12
    0.083333333
    """
    f = check_callable(f, "custom_root")
    solve = check_callable(solve, "custom_root")
    tol = check_tolerance(tol, "tol", "custom_root")
    leaves, structure = floating_leaves(init, "custom_root: init")
    specs = [spec_of(leaf) for leaf in leaves]
    of_solver = f"custom_root: the value that {errors.describe(solve)}"

    def find(function: Callable[..., list[Any]], start: list[Any]) -> list[Any]:
        def given(x: Any) -> Any:
            x = leaves_like(x, specs, structure, f"{of_solver} passes to f")
            return tree.unflatten(structure, function(*x))

        run = lambda lent: solve(given, tree.unflatten(structure, lent))
        found = leaves_like(lending(run, start, solve), specs, structure, f"{of_solver} returns")
        x = stripped(own(found))
        residual, first = norm(stripped(function(*x))), norm(stripped(function(*start)))
        return report(
            x,
            np.logical_not(residual <= tol * (1 + np.where(np.isfinite(first), first, 0.0))),
            f"{of_solver} returns is not a root of {errors.describe(f)}: ‖f(x)‖ is {{:.1e}}, and "
            "{:.1e} at the start. Let the solver run longer, or raise tol.",
            residual,
            first,
        )

    if tangent_solve is None:
        solver: Any = DenseSolver(
            f"custom_root: the Jacobian of {errors.describe(f)} is singular at the root, so the root "
            "has no derivative",
            "Solve for as many unknowns as there are independent equations, avoid multiple roots, "
            "or pass a tangent_solve that can handle a singular system, such as "
            "lambda matvec, b: gmres(matvec, b)[0].",
        )
    else:
        tangent_solve = check_callable(tangent_solve, "custom_root")
        solver = UserSolver(tangent_solve, structure, "custom_root", tol)
    found = _root("custom_root", f, leaves, structure, find, lambda step: step, solver)
    return tree.unflatten(structure, found)


def fixed_point(
    f: Callable[[Any], Any], x0: Any, tol: float | None = None, maxiter: int = 10_000
) -> Any:
    """The limit of x0, f(x0), f(f(x0)), ...: the x with x = f(x).

    The derivative with respect to the values that `f` closes over follows from x = f(x), in both modes and
    to every order. It is computed by an iteration as well, and neither iteration stores its steps. Failure
    to converge raises a `ConvergenceWarning`.

    Parameters
    ----------
    f : callable
        A function of a pytree like `x0`, which returns one like it. It must be a contraction near the
        limit.
    x0 : pytree of arrays
        The initial guess. The limit does not depend on it.
    tol : float, optional
        The iteration stops when ‖f(x) - x‖ <= tol (1 + ‖x‖). By default about 2e-12, and 6e-6 in single
        precision.
    maxiter : int
        The maximum number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import fixed_point, grad
    >>> def root(a):  # Heron's method
    ...     return fixed_point(lambda x: (x + a / x) / 2, 1.0)
    >>> float(root(4.0)), float(grad(root)(4.0))
    (2.0, 0.25)
    """
    f = check_callable(f, "fixed_point")
    maxiter = check_count(maxiter, "maxiter", "fixed_point")
    leaves, structure = floating_leaves(x0, "fixed_point: x0")
    if tol is None:
        tol = precision(leaves) ** 0.75
    iteration = _Iteration(check_tolerance(tol, "tol", "fixed_point"), maxiter, errors.describe(f))

    def residual(step: Procedure) -> Procedure:
        def difference(*operands: Any) -> list[Any]:
            out = step(*operands)
            return [x - y for x, y in zip(operands[-len(out) :], out, strict=True)]

        return staged(difference, step.inputs) if step.outputs else step

    found = _root(
        "fixed_point", f, leaves, structure, iteration.find, residual, iteration.solve, is_seen=True
    )
    return tree.unflatten(structure, found)


class _Iteration:
    """Iterates x = f(x), for the fixed point of a function and for those of its derivatives."""

    def __init__(self, tol: float, maxiter: int, described: str) -> None:
        self.tol = tol
        self.maxiter = maxiter
        self.described = described

    def find(self, function: Callable[..., list[Any]], start: list[Any]) -> list[Any]:
        return self._limit(lambda x: function(*x), start, 1.0, f"of {self.described}")

    def solve(self, matvec: Any, constants: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """(I - J) x = b, as the fixed point of x = J x + b, which contracts where f does."""

        def step(x: list[Any]) -> list[Any]:
            image = matvec(*constants, *x)
            return [x - y + c for x, y, c in zip(x, image, b, strict=True)]

        return self._limit(step, list(b), norm(b), f"for a derivative of that of {self.described}")

    def _limit(self, step: Any, start: list[Any], scale: Any, what: str) -> list[Any]:
        tol, maxiter = self.tol, self.maxiter

        def going_on(state: Any) -> Any:
            _, change, allowed, count = state
            return (count < maxiter) & (change > allowed) & np.isfinite(change)

        def body(state: Any) -> Any:
            x, _, _, count = state
            following = stripped(step(x))
            change = norm([new - old for new, old in zip(following, x, strict=True)])
            return following, change, tol * (scale + norm(following)), count + 1

        state = (start, np.float64(np.inf), np.float64(0.0), 0)
        # The first step is always taken: before it, there is no change to measure.
        x, change, allowed, count = solver_loop(going_on, body, body(state))
        return report(
            x,
            np.logical_not(np.isfinite(change) & (change <= allowed)),
            f"the fixed-point iteration {what} did not converge by step {{:.0f}}: that step changed x "
            "by {:.1e}, and {:.1e} is allowed. Raise maxiter or tol, and check that f is a contraction.",
            count,
            change,
            allowed,
        )


def _root(
    name: str,
    f: Callable[[Any], Any],
    leaves: list[Any],
    structure: Any,
    find: Callable[..., list[Any]],
    residual: Callable[[Procedure], Procedure],
    tangent_solver: Any,
    is_seen: bool = False,
) -> list[Any]:
    """The result of `find`, with the derivatives of a root of the residual of f.

    `is_seen` says whether `detect_anomaly` inspects what `find` does, because it calls f.
    """
    specs = [strong(spec_of(leaf)) for leaf in leaves]
    what = f"{name}: the result of {errors.describe(f)}, which should be like its argument,"

    def direct(*x: Any) -> list[Any]:
        out = lending(lambda lent: f(tree.unflatten(structure, lent)), x, f)
        return own(leaves_like(out, specs, structure, what), x)

    def written(stage: Any = None) -> tuple[Procedure, list[Any]]:
        return close(direct, specs, stage)

    start = stripped(leaves)
    if not is_anything_running():
        return find(direct, start)
    try:
        procedure, captured = written()
    except errors.StagingError:
        if not all(map(is_known, leaves)):
            raise
        # f branches on values: it runs as it is, and is staged once the root is known.
        found = find(direct, start)
        procedure, captured = written(CuriousStage(f, found, [True] * len(found)))
    else:
        fixed = stripped(captured)
        tool = watcher()
        if is_seen and tool is not None and not is_staging():
            found = tool.look_on(lambda *x: find(direct, list(x)), start)  # on the user's own lines
        else:
            found = find(lambda *x: procedure(*fixed, *x), start)
    count = len(captured)

    @functools.cache
    def equation() -> Procedure:
        return residual(procedure)

    @functools.cache
    def jacobian() -> System:
        try:
            matvec = _linearized(equation(), count)
        except errors.MissingRuleError:
            return adjoint().transposed()  # J = (J^T)^T: reverse mode twice
        return System(matvec, tangent_solver, tangent_solver)

    @functools.cache
    def adjoint() -> System:
        return System(_pulled_back(equation(), count), tangent_solver, tangent_solver)

    if not isinstance(tangent_solver, UserSolver):
        root = Root(
            equation,
            lambda operands, x: (jacobian(), [*operands, *x]),
            lambda operands, x: (adjoint(), [*operands, *x]),
        )
        return root.attached(captured, found, name)
    # Values that the user's solver closes over are extra operands; the equation does not depend on them.
    system, more = closed_system(jacobian(), [*captured, *found], found)
    specs = [*map(spec_of, more), *equation().inputs]
    widened = functools.cache(lambda: staged(lambda *x: equation()(*x[len(more) :]), specs))
    root = Root(
        widened,
        lambda operands, x: (system, [*operands, *x]),
        lambda operands, x: (system.transposed(), [*operands, *x]),
    )
    return root.attached([*more, *captured], found, name)


def _linearized(f: Procedure, count: int) -> Procedure:
    """(operands, x, v) -> J v, with J = ∂f/∂x and `count` operands."""
    point = len(f.inputs)

    def matvec(*leaves: Any) -> list[Any]:
        tangents = [*(None for _ in range(count)), *leaves[point:]]
        _, moved = push_through(f, leaves[:point], tangents)
        return [
            zeros(strong(spec)) if tangent is None else tangent
            for tangent, spec in zip(moved, f.outputs, strict=True)
        ]

    return staged(matvec, [*f.inputs, *f.inputs[count:]])


def _pulled_back(f: Procedure, count: int) -> Procedure:
    """(operands, x, g) -> J^T g, using reverse mode only."""
    active = (False,) * count + (True,) * (len(f.inputs) - count)

    def matvec(*leaves: Any) -> list[Any]:
        return pull_through(f, active, list(leaves))

    return staged(matvec, [*f.inputs, *f.inputs[count:]])
