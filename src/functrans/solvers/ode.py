"""odeint: the solution of an ordinary differential equation, differentiated implicitly.

runge_kutta.py finds the path, without derivatives. The derivatives are solutions of other equations, found
in sensitivities.py and attached by `implicit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.control.procedures import close
from functrans.core import errors, tree
from functrans.core.custody import lending, own
from functrans.core.dispatch import is_anything_running, is_traced_for_derivatives
from functrans.core.evaluate import as_constant
from functrans.core.shapes import cast, dtype_of, shape_of, spec_of
from functrans.solvers.implicit import SolutionRules, implicit, stripped
from functrans.solvers.runge_kutta import METHODS, Options, integrate
from functrans.solvers.sensitivities import (
    RightHandSide,
    cotangents_of_path,
    tangent_of_path,
)
from functrans.solvers.vectors import check_count, check_tolerance, floating_leaves, joined, parted
from functrans.transforms.arguments import check_callable
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import described, flat, is_known, lanes_of, strong


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "dopri5",
    rtol: float = 1e-8,
    atol: float = 1e-8,
    mxstep: int = 10_000,
    hmax: float = np.inf,
) -> Any:
    """Solve dy/dt = f(y, t, *args) from y(t[0]) = y0, at the times t.

    It can be differentiated with respect to y0, t, args and every value that `f` closes over, in both
    modes and to every order: forward mode solves the linearized equation, and reverse mode the adjoint
    equation, backward in time. Neither stores the steps. Under `vmap`, each lane takes its own steps.

    Parameters
    ----------
    f : callable
        f(y, t, *args) -> dy/dt, with the structure and shapes of y.
    y0 : pytree of arrays
        The initial value.
    t : array
        The times, increasing or decreasing; they may repeat.
    *args
        Pytrees of arrays that `f` depends on.
    method : str
        "dopri5" or "bosh3", of order 5 and 3, with adaptive steps; or "rk4" or "euler", which take one
        step from each time to the next, or as many as `hmax` requires.
    rtol, atol : float
        The error allowed per step is atol + rtol abs(y), as a root mean square.
    mxstep : int
        The maximum number of steps from one time to the next.
    hmax : float
        The maximum step size.

    Returns
    -------
    pytree of arrays
        Like y0, with the times as the first axis of each leaf. If the solver gives up, the rest is nan,
        and a `ConvergenceWarning` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, odeint
    >>> def final(rate):
    ...     return odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 2.0]))[-1]
    >>> round(float(grad(final)(0.5)), 6)  # d/dr exp(-2r) = -2 exp(-2r)
    -0.735759
    """
    f = check_callable(f, "odeint")
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise errors.OptionError(
            f"odeint: method must be one of {known}, not {method!r}, at {errors.user_location()}."
        )
    options = Options(
        method,
        check_tolerance(rtol, "rtol", "odeint"),
        check_tolerance(atol, "atol", "odeint"),
        check_count(mxstep, "mxstep", "odeint"),
        check_tolerance(hmax, "hmax", "odeint"),
    )
    if not options.hmax:
        raise errors.OptionError(f"odeint: hmax must be positive, at {errors.user_location()}.")
    equation, start, times, parameters, rebuild = read_problem(f, y0, t, args)
    _check_order(times)
    operands = [start, times, *parameters]
    if not is_anything_running():
        slope = lambda y, s: equation(y, s, *parameters)
        return rebuild(integrate(slope, start, times, options))
    equation, captured = closed_equation(equation, operands)
    operands = [start, times, *captured, *parameters]
    return rebuild(_Solver(options)(equation, *operands))


def read_problem(
    f: Callable[..., Any], y0: Any, t: Any, args: Sequence[Any]
) -> tuple[RightHandSide, Any, Any, list[Any], Callable[[Any], Any]]:
    """A user's problem on pytrees as one on vectors.

    Returns the equation, the initial value, the times and the parameters, and a function from the path to a
    pytree with the times as first axis.
    """
    leaves, form = floating_leaves(y0, "odeint: the initial value")
    specs = [spec_of(leaf) for leaf in leaves]
    start = joined(leaves) if leaves else np.zeros(0)
    times = _times(t)
    parameters, structure = flat(tuple(args), "odeint: an argument of the equation")
    dtype = dtype_of(start)

    def run(time: Any, lent: list[Any]) -> Any:
        y, given = lent[: len(specs)], lent[len(specs) :]
        return f(tree.unflatten(form, y), time, *tree.unflatten(structure, given))

    def slope(y: Any, time: Any, *parameters: Any) -> Any:
        out = lending(partial(run, time), [*parted(y, specs), *parameters], f)
        found, found_form = tree.flatten(out)
        for leaf in found:
            tree.check_array(leaf, f"odeint: the result of {errors.describe(f)}")
        if found_form != form or any(
            shape_of(leaf) != spec.shape for leaf, spec in zip(found, specs, strict=True)
        ):
            raise errors.InputTypeError(
                f"odeint: {errors.describe(f)} returns {described(out)}, but y is "
                f"{tree.unflatten(form, specs)}, at {errors.user_location()}. Return dy/dt, with the "
                "structure and shapes of y."
            )
        if any(
            dtype_of(leaf).kind == "c" and spec.dtype.kind != "c"
            for leaf, spec in zip(found, specs, strict=True)
        ):
            raise errors.InputTypeError(
                f"odeint: {errors.describe(f)} returns complex values for a real y, at "
                f"{errors.user_location()}. Start from a complex y0: y0.astype(complex)."
            )
        if not found:
            return y
        del leaf, out
        return cast(joined(own(found)), dtype)

    def rebuild(path: Any) -> Any:
        return tree.unflatten(form, vmap(lambda y: parted(y, specs))(path))

    return RightHandSide(slope, getattr(f, "__name__", "f")), start, times, parameters, rebuild


def _times(t: Any) -> Any:
    if isinstance(t, (list, tuple)) and t:
        t = np.stack(list(t))
    tree.check_array(t, "odeint: the times")
    if len(shape_of(t)) != 1 or shape_of(t)[0] == 0:
        raise errors.OptionError(
            f"odeint: the times must be a non-empty 1-D array, not one of shape {shape_of(t)}, at "
            f"{errors.user_location()}. "
            "Pass np.array([t0, t1, ...])."
        )
    if dtype_of(t).kind not in "fiu":
        raise errors.InputTypeError(
            f"odeint: the times must be real, not {dtype_of(t)}, at {errors.user_location()}. Pass "
            "np.real(t)."
        )
    return cast(as_constant(t), np.dtype(np.float64))


def _check_order(times: Any) -> None:
    """Refuse times that are not monotonic, if they are known; otherwise the integration reports them."""
    lanes = lanes_of(times)
    if lanes is not None:
        steps = np.diff(lanes, axis=-1)
        if not np.all(np.all(steps >= 0, axis=-1) | np.all(steps <= 0, axis=-1)):
            raise errors.OptionError(
                f"odeint: the times must increase, or decrease, from first to last, not {times!r}, at "
                f"{errors.user_location()}. Sort them with np.sort."
            )


def closed_equation(
    equation: RightHandSide, operands: list[Any]
) -> tuple[RightHandSide, list[Any]]:
    """An equation as a procedure, if it can be staged; values it closes over become first parameters."""
    y0, t, *parameters = operands
    specs = [strong(spec_of(y0)), spec_of(t[0]), *map(spec_of, parameters)]
    try:
        procedure, captured = close(lambda *leaves: [equation(*leaves)], specs)
    except errors.StagingError:
        slope = equation(*stripped([y0, t[0], *parameters]))
        if not all(map(is_known, (*operands, slope))):
            raise
        # It branches on values, which is fine as long as it closes over none that is differentiated.
        if is_traced_for_derivatives(slope):
            raise errors.ClosureError(
                f"odeint: the equation {equation} branches on values in Python, and depends on a traced "
                f"value that is not among its arguments, at {errors.user_location()}. Pass that value "
                "through args: odeint(f, y0, t, *args)."
            ) from None
        return equation, []
    count = len(captured)

    def written(y: Any, time: Any, *parameters: Any) -> Any:
        return procedure(*parameters[:count], y, time, *parameters[count:])[0]

    return RightHandSide(written, equation.name), captured


class _Solver:
    """Paths with derivatives: solver(equation, y0, t, *parameters)."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, equation: Any, *operands: Any) -> Any:
        y0, t, *parameters = stripped(operands)
        found = integrate(lambda y, s: equation(y, s, *parameters), y0, t, self.options)

        def push(operands: Any, out: Any, tangents: Any) -> list[Any]:
            return [tangent_of_path(self.derived, equation, out[0], operands, tangents)]

        def pull(operands: Any, out: Any, cotangents: Any, active: Any) -> list[Any]:
            return cotangents_of_path(
                self.derived, equation, out[0], operands, active, cotangents[0]
            )

        rules = SolutionRules(push, pull, f"odeint of {equation}")
        return implicit(*operands, found, rules=rules, count=len(operands))[0]

    def derived(self, equation: RightHandSide, *operands: Any) -> Any:
        """The same for an equation made by the library: staged once, it runs faster."""
        written, captured = closed_equation(equation, list(operands))
        y0, t, *parameters = operands
        return self(written, y0, t, *captured, *parameters)
