"""odeint: the solution of an ordinary differential equation, differentiated by the equation.

The path is found by runge_kutta.py without derivatives; those are paths of other equations, by
sensitivities.py, and are attached by `implicit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer, is_anything_running
from functrans.core.evaluate import as_constant
from functrans.core.shapes import cast, dtype_of, shape_of, spec_of
from functrans.transforms.arguments import check_callable
from functrans.transforms.batching import vmap
from functrans.transforms.implicit import Rules, implicit, stripped
from functrans.transforms.leaves import described, flat, is_known, lanes_of, strong
from functrans.transforms.procedures import close
from functrans.transforms.runge_kutta import METHODS, Options, integrate
from functrans.transforms.sensitivities import (
    Equation,
    cotangents_of_path,
    tangent_of_path,
)
from functrans.transforms.vectors import check_count, check_tolerance, floating, joined, parted


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
    """The solution of dy/dt = f(y, t, *args) from y(t[0]) = y0, at the times t.

    It is differentiated by y0, t, args and all that `f` closes over, in both modes and to every order:
    forward mode solves the equation of the tangents, and reverse mode the adjoint equation, backward in
    time. Neither stores the steps that were made. Under `vmap` every lane makes its own steps.

    Parameters
    ----------
    f : callable
        f(y, t, *args) -> dy/dt, of the structure and shapes of y.
    y0 : pytree of arrays
        The start.
    t : array
        The times, increasing or decreasing; times may be repeated.
    *args
        Pytrees of arrays that `f` depends on.
    method : str
        "dopri5" or "bosh3", of order 5 and 3, which choose their steps; or "rk4" or "euler", which go from
        each time to the next in one step, or in as many as `hmax` asks for.
    rtol, atol : float
        The error that is allowed in a step is atol + rtol abs(y), by the root of the mean square.
    mxstep : int
        The largest number of steps from one time to the next.
    hmax : float
        The largest step.

    Returns
    -------
    pytree of arrays
        Like y0, with the times as the first axis of each leaf. Where the solver gave up, which is reported
        by a `ConvergenceWarning`, it is nan.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, odeint
    >>> def final(rate):
    ...     return odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 2.0]))[-1]
    >>> round(float(grad(final)(0.5)), 6)  # d/dr exp(-2r) = -2 exp(-2r)
    -0.735759
    """
    check_callable(f, "odeint")
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise errors.OptionError(f"odeint: method must be one of {known}, not {method!r}.")
    options = Options(
        method,
        check_tolerance(rtol, "rtol", "odeint"),
        check_tolerance(atol, "atol", "odeint"),
        check_count(mxstep, "mxstep", "odeint"),
        check_tolerance(hmax, "hmax", "odeint"),
    )
    if not options.hmax:
        raise errors.OptionError("odeint: hmax must be positive.")
    equation, start, times, parameters, rebuild = read_problem(f, y0, t, args)
    _check_order(times)
    operands = [start, times, *parameters]
    if not is_anything_running():
        slope = lambda y, s: equation(y, s, *parameters)
        return rebuild(integrate(slope, start, times, options))
    equation, captured = _written(equation, operands)
    operands = [start, times, *captured, *parameters]
    return rebuild(_Solver(options)(equation, *operands))


def read_problem(
    f: Callable[..., Any], y0: Any, t: Any, args: Sequence[Any]
) -> tuple[Equation, Any, Any, list[Any], Callable[[Any], Any]]:
    """A user's problem on pytrees as one on vectors.

    Returns the equation, the start, the times and the parameters, and the way back: path -> pytree with
    the times as first axis.
    """
    leaves, form = floating(y0, "odeint: the start")
    specs = [spec_of(leaf) for leaf in leaves]
    start = joined(leaves) if leaves else np.zeros(0)
    times = _times(t)
    parameters, structure = flat(tuple(args), "odeint: an argument of the equation")
    dtype = dtype_of(start)

    def slope(y: Any, time: Any, *parameters: Any) -> Any:
        out = f(
            tree.unflatten(form, parted(y, specs)), time, *tree.unflatten(structure, parameters)
        )
        found, found_form = tree.flatten(out)
        for leaf in found:
            tree.check_array(leaf, f"odeint: the result of {errors.describe(f)}")
        if found_form != form or any(
            shape_of(leaf) != spec.shape for leaf, spec in zip(found, specs, strict=True)
        ):
            raise errors.InputTypeError(
                f"odeint: {errors.describe(f)} returns {described(out)}, and y is "
                f"{tree.unflatten(form, specs)}. It has to return dy/dt, of the structure and shapes "
                "of y."
            )
        if any(
            dtype_of(leaf).kind == "c" and spec.dtype.kind != "c"
            for leaf, spec in zip(found, specs, strict=True)
        ):
            raise errors.InputTypeError(
                f"odeint: {errors.describe(f)} returns complex values for a real y. Start from a "
                "complex y0."
            )
        return cast(joined(found), dtype) if found else y

    def rebuild(path: Any) -> Any:
        return tree.unflatten(form, vmap(lambda y: parted(y, specs))(path))

    return Equation(slope, getattr(f, "__name__", "f")), start, times, parameters, rebuild


def _times(t: Any) -> Any:
    if isinstance(t, (list, tuple)) and t:
        t = np.stack(list(t))
    tree.check_array(t, "odeint: the times")
    if len(shape_of(t)) != 1 or shape_of(t)[0] == 0:
        raise errors.OptionError(f"odeint: the times have the shape {shape_of(t)}, not one axis.")
    if dtype_of(t).kind not in "fiu":
        raise errors.InputTypeError(f"odeint: the times are real numbers, not {dtype_of(t)}.")
    return cast(as_constant(t), np.dtype(np.float64))


def _check_order(times: Any) -> None:
    """Refuse times that go back and forth, if they are known; if not, the integration will report them."""
    lanes = lanes_of(times)
    if lanes is not None:
        steps = np.diff(lanes, axis=-1)
        if not np.all(np.all(steps >= 0, axis=-1) | np.all(steps <= 0, axis=-1)):
            raise errors.OptionError(
                f"odeint: the times must increase, or decrease, from first to last, not {times!r}."
            )


def _written(equation: Equation, operands: list[Any]) -> tuple[Equation, list[Any]]:
    """An equation as a procedure, with what it closes over as first parameters, if it can be written."""
    y0, t, *parameters = operands
    specs = [strong(spec_of(y0)), spec_of(t[0]), *map(spec_of, parameters)]
    try:
        procedure, captured = close(lambda *leaves: [equation(*leaves)], specs)
    except errors.StagingError:
        slope = equation(*stripped([y0, t[0], *parameters]))
        if not all(map(is_known, (*operands, slope))):
            raise
        # It branches on values, which is well as long as it closes over none that is differentiated.
        if _is_differentiated(slope):
            raise errors.ClosureError(
                f"odeint: the equation {equation} looks at values in a Python branch, and depends on a "
                "traced value that is not among its arguments. Pass that through args, "
                "odeint(f, y0, t, *args), or use functrans.cond or np.where in place of the branch."
            ) from None
        return equation, []
    count = len(captured)

    def written(y: Any, time: Any, *parameters: Any) -> Any:
        return procedure(*parameters[:count], y, time, *parameters[count:])[0]

    return Equation(written, equation.name), captured


def _is_differentiated(value: Any) -> bool:
    while isinstance(value, Tracer):
        if value.interpreter.differentiates:
            return True
        value = value.value
    return False


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

        rules = Rules(push, pull, f"odeint of {equation}")
        return implicit(*operands, found, rules=rules, count=len(operands))[0]

    def derived(self, equation: Equation, *operands: Any) -> Any:
        """The same for an equation of our own: written down once, it runs faster."""
        written, captured = _written(equation, list(operands))
        y0, t, *parameters = operands
        return self(written, y0, t, *captured, *parameters)
