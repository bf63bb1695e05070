"""custom_root and fixed_point: roots of equations, which are differentiated by the equation.

The traced values that the user's function closes over are what the root depends on; they are found by
writing the function down.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import is_anything_running, watcher
from functrans.core.shapes import spec_of
from functrans.transforms.arguments import check_callable
from functrans.transforms.implicit import stripped
from functrans.transforms.leaves import is_known, is_staging, strong, zeros
from functrans.transforms.linear import DenseSolver, UserSolver, closed_system
from functrans.transforms.loops import solver_loop
from functrans.transforms.procedures import (
    CuriousStage,
    Procedure,
    close,
    pull_through,
    push_through,
    staged,
)
from functrans.transforms.systems import Root, System
from functrans.transforms.vectors import (
    check_count,
    check_tolerance,
    floating,
    like,
    norm,
    precision,
    report,
)


def custom_root(
    f: Callable[[Any], Any],
    init: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    tol: float = 1e-4,
) -> Any:
    """A root of f, by a solver of your own that is not differentiated.

    The derivative of the root follows from f(x) = 0, by all that `f` closes over, in both modes and to
    every order. It takes the Jacobian of `f` at the root, and no memory of what the solver did.

    Parameters
    ----------
    f : callable
        A function of a pytree like `init`, which returns one like it.
    init : pytree of arrays
        Where the solver starts. The root does not depend on it.
    solve : callable
        solve(f, init) -> x. It sees values without derivatives. It may branch on them in Python where
        they are known; under `jit` it has to be made of `while_loop` and the like.
    tangent_solve : callable, optional
        tangent_solve(matvec, b) -> x solves linear systems with the Jacobian of `f`, or its transpose,
        such as `lambda matvec, b: gmres(matvec, b)[0]`. If it is not given, the Jacobian is computed as a
        matrix; where that is singular, there is a `SingularError`.
    tol : float
        The root is reported by a `ConvergenceWarning` if ‖f(x)‖ > tol (1 + ‖f(init)‖).

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
    check_callable(f, "custom_root")
    check_callable(solve, "custom_root")
    tol = check_tolerance(tol, "tol", "custom_root")
    leaves, structure = floating(init, "custom_root: init")
    specs = [spec_of(leaf) for leaf in leaves]
    of_solver = f"custom_root: what {errors.describe(solve)}"

    def find(function: Callable[..., list[Any]], start: list[Any]) -> list[Any]:
        def given(x: Any) -> Any:
            x = like(x, specs, structure, f"{of_solver} gives to f")
            return tree.unflatten(structure, function(*x))

        found = solve(given, tree.unflatten(structure, start))
        x = stripped(like(found, specs, structure, f"{of_solver} returns"))
        residual, first = norm(stripped(function(*x))), norm(stripped(function(*start)))
        return report(
            x,
            np.logical_not(residual <= tol * (1 + np.where(np.isfinite(first), first, 0.0))),
            f"{of_solver} returns is not a root of {errors.describe(f)}: ‖f(x)‖ is {{:.1e}}, and "
            "{:.1e} at the start. Let the solver go on, or raise tol to accept this.",
            residual,
            first,
        )

    if tangent_solve is None:
        solver: Any = DenseSolver(
            f"custom_root: the Jacobian of {errors.describe(f)} is singular at the root, which has no "
            "derivative then",
            "Solve for as many unknowns as there are independent equations, keep away from multiple "
            "roots, or give a tangent_solve that can do with a singular system, such as "
            "lambda matvec, b: gmres(matvec, b)[0].",
        )
    else:
        check_callable(tangent_solve, "custom_root")
        solver = UserSolver(tangent_solve, structure, "custom_root", tol)
    found = _root("custom_root", f, leaves, structure, find, lambda step: step, solver)
    return tree.unflatten(structure, found)


def fixed_point(
    f: Callable[[Any], Any], x0: Any, tol: float | None = None, maxiter: int = 10_000
) -> Any:
    """The limit of x0, f(x0), f(f(x0)), ...: the x with x = f(x).

    The derivative follows from x = f(x), by all that `f` closes over, in both modes and to every order.
    It is the limit of an iteration as well, and neither stores its steps. A limit that is not reached is
    reported by a `ConvergenceWarning`.

    Parameters
    ----------
    f : callable
        A function of a pytree like `x0`, which returns one like it. It has to be contracting near the
        limit.
    x0 : pytree of arrays
        Where to start. The limit does not depend on it.
    tol : float, optional
        The iteration ends with ‖f(x) - x‖ <= tol (1 + ‖x‖). By default about 2e-12, and 6e-6 in single
        precision.
    maxiter : int
        The largest number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import fixed_point, grad
    >>> def root(a):  # Heron's method
    ...     return fixed_point(lambda x: (x + a / x) / 2, 1.0)
    >>> float(root(4.0)), float(grad(root)(4.0))
    (2.0, 0.25)
    """
    check_callable(f, "fixed_point")
    maxiter = check_count(maxiter, "maxiter", "fixed_point")
    leaves, structure = floating(x0, "fixed_point: x0")
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
    """x = f(x) again and again, for the fixed point of a function and for those of its derivatives."""

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
        # The first step is made anyway: there is no change to look at before it.
        x, change, allowed, count = solver_loop(going_on, body, body(state))
        return report(
            x,
            np.logical_not(np.isfinite(change) & (change <= allowed)),
            f"the fixed-point iteration {what} has not converged by step {{:.0f}}, which changed x by "
            "{:.1e}, and {:.1e} is allowed. Raise maxiter or tol, and see that the function contracts.",
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
    """What `find` finds, with the derivatives of a root of the residual of f.

    `is_seen` says whether `detect_anomaly` looks at what `find` does, because that is to call f.
    """
    specs = [strong(spec_of(leaf)) for leaf in leaves]
    what = f"{name}: the result of {errors.describe(f)}, which should be like its argument,"

    def direct(*x: Any) -> list[Any]:
        return like(f(tree.unflatten(structure, x)), specs, structure, what)

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
        # f branches on values: it runs as it is, and is written down where the root was found.
        found = find(direct, start)
        procedure, captured = written(CuriousStage(f, found))
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
    # What the user's solver closes over is further operands, on which the equation does not depend.
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
    """(operands, x, v) -> J v, with J = ∂f/∂x and so many operands."""
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
    """(operands, x, g) -> J^T g, by reverse mode alone."""
    active = (False,) * count + (True,) * (len(f.inputs) - count)

    def matvec(*leaves: Any) -> list[Any]:
        return pull_through(f, active, list(leaves))

    return staged(matvec, [*f.inputs, *f.inputs[count:]])
