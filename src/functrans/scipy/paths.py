"""Ordinary differential equations: solve_ivp and odeint of scipy.integrate.

SciPy solves the equation on plain values, and chooses the steps. To differentiate the path, the steps are
taken again on traced values: see replay.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.adjoint import staged_path
from functrans.scipy.loading import load
from functrans.scipy.replay import Path, event_time, moved
from functrans.scipy.solutions import (
    arguments,
    is_differentiated,
    plain,
    plainly,
    with_value,
)
from functrans.surface.table import as_array
from functrans.transforms.leaves import is_known, is_staging

si = load("scipy.integrate")

_METHODS = {name: getattr(si, name) for name in ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")}


class _Slope:
    """The right-hand side for SciPy, which notes whether its values are differentiated."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], tfirst: bool = True
    ) -> None:
        self.function, self.args, self.tfirst = function, args, tfirst
        self.seen = False

    def raw(self, t: Any, y: Any) -> Any:
        return self.function(*((t, y) if self.tfirst else (y, t)), *self.args)

    def traced(self, t: Any, y: Any) -> Any:
        """dy/dt as a vector like y."""
        out = as_array(self.raw(t, y))
        return np.reshape(out, shape_of(y)) if shape_of(out) != shape_of(y) else out

    def __call__(self, *given: Any) -> Any:
        out = self.function(*given, *self.args)
        self.seen = self.seen or is_differentiated(out)
        return plain(out)


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """Solve dy/dt = fun(t, y) from y(t_span[0]) = y0; SciPy's `solve_ivp`.

    The path, the times of events and the values there have derivatives with respect to y0, the times, the
    values that the functions close over, and those in `args`. They are those of the steps that SciPy
    takes, and as accurate as the solution. The methods for stiff equations differentiate implicit steps.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import solve_ivp
    >>> def final(rate):
    ...     return solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-8).y[0, -1]
    >>> round(float(grad(final)(0.5)), 5)  # d/dr exp(-2r)
    -0.73576
    """
    given = () if args is None else tuple(args)
    slope = _Slope(fun, given)
    conditions = _Events(events, given)
    start, stop = t_span
    initial = as_array(y0)
    if dtype_of(initial).kind not in "fc":
        initial = initial.astype(float)
    settings: dict[str, Any] = {
        "method": method,
        "t_eval": plain(as_array(t_eval)) if t_eval is not None else None,
        "events": conditions.plain,
        "vectorized": vectorized,
        **{
            key: plainly(each, *given) if key == "jac" else plain(each)
            for key, each in options.items()
        },
    }
    plain_y0 = plain(initial)
    run = partial(si.solve_ivp, slope, (plain(start), plain(stop)), plain_y0, **settings)
    times = () if t_eval is None else as_array(t_eval)
    wanted = is_differentiated(initial, start, stop, times)
    if not wanted and np.ndim(plain_y0) == 1:
        wanted = is_differentiated(slope.raw(plain(start), plain_y0))
    result = run(dense_output=bool(dense_output or wanted))
    if slope.seen or wanted or conditions.seen:
        if result.sol is None:
            result = run(dense_output=True)
        if plain_y0.size:
            _differentiate(
                result, slope, conditions, (start, stop), initial, t_eval, method, options
            )
    if not dense_output:
        result.sol = None
    return result


class _Events:
    """The event functions, for SciPy and on traced values."""

    def __init__(self, events: Any, args: tuple[Any, ...]) -> None:
        self.seen = False
        given = [] if events is None else [events] if callable(events) else list(events)
        self.traced = [lambda t, y, each=each: each(t, y, *args) for each in given]
        self.plain = [self._for_scipy(each, args) for each in given] if given else None

    def _for_scipy(self, event: Any, args: tuple[Any, ...]) -> Any:
        def call(t: Any, y: Any) -> Any:
            out = event(t, y, *args)
            self.seen = self.seen or is_differentiated(out)
            return plain(out)

        for name in ("terminal", "direction"):
            if hasattr(event, name):
                setattr(call, name, plain(getattr(event, name)))
        return call


def _differentiate(
    result: Any,
    slope: _Slope,
    conditions: _Events,
    span: Any,
    y0: Any,
    t_eval: Any,
    method: Any,
    options: Any,
) -> None:
    """Give the result of SciPy the derivatives of the path."""
    if not result.sol.interpolants:
        return
    solver = _METHODS.get(method, method)
    at_events = [] if result.t_events is None else [t for times in result.t_events for t in times]
    path = Path(
        slope.traced, span[0], y0, solver, _Guess(result.sol), [*result.t, *at_events], "solve_ivp"
    )
    found: dict[float, tuple[Any, Any]] = {}
    if result.t_events is not None:
        times, states = [], []
        for event, plain_times, plain_states in zip(
            conditions.traced, result.t_events, result.y_events, strict=True
        ):
            pairs = [event_time(event, path, float(t), "solve_ivp") for t in plain_times]
            found.update(zip(plain_times.tolist(), pairs, strict=True))
            if pairs:
                times.append(with_value(plain_times, np.stack([t for t, _ in pairs])))
                states.append(with_value(plain_states, np.stack([y for _, y in pairs])))
            else:
                times.append(plain_times)
                states.append(plain_states)
        result.t_events, result.y_events = times, states
    plain_t = result.t
    if t_eval is not None:
        given = as_array(t_eval)[: len(plain_t)]
        at = [given[k] for k in range(len(plain_t))]
        states = [path.near(t) for t in at]
    else:
        at = list(plain_t)
        states = [path.at(float(t)) for t in at]
        if is_differentiated(span[0]):
            at[0], states[0] = span[0], path.near(span[0])
        if result.status == 1:
            at[-1], states[-1] = found[float(plain_t[-1])]
        elif result.status == 0 and is_differentiated(span[1]):
            at[-1], states[-1] = span[1], path.near(span[1])
    if is_differentiated(*at):
        result.t = with_value(plain_t, np.stack([as_array(t) for t in at]))
    if states:
        result.y = with_value(result.y, np.stack(states, axis=-1))
    result.sol = TracedOdeSolution(result.sol, path)


class _Guess:
    """A solution of SciPy's, as a guess for implicit steps."""

    def __init__(self, solution: Any) -> None:
        self.solution = solution
        self.interpolants = solution.interpolants

    def __call__(self, t: float) -> Any:
        # Beyond a terminal event, the last interpolant is still right.
        return self.solution(t)


class TracedOdeSolution(si.OdeSolution):  # type: ignore[misc, name-defined]
    """SciPy's `OdeSolution` for a path that is differentiated."""

    def __init__(self, solution: Any, path: Path) -> None:
        self.__dict__.update(vars(solution))
        self._solution, self._path = solution, path

    def __call__(self, t: Any) -> Any:
        """The path at a time, or at an array of times."""
        t = as_array(t)
        if not shape_of(t):
            value = float(concrete(t))
            return with_value(self._solution(value), self._near(t, value))
        values = concrete(t)
        found = [self._near(t[k], float(value)) for k, value in enumerate(values)]
        return with_value(self._solution(values), np.stack(found, axis=-1))

    def _near(self, t: Any, value: float) -> Any:
        y = self._path.at(value)
        return moved(self._path.slope, value, y, t - value) if is_differentiated(t) else y


def at_times(solution: Any, t: Any) -> Any:
    """A plain `OdeSolution` at traced times: on each step, it is a polynomial in t."""
    t = as_array(t)
    if shape_of(t):
        return np.stack([at_times(solution, t[k]) for k in range(shape_of(t)[0])], axis=-1)
    value = float(concrete(t))
    here = solution(value)
    ts = np.sort(solution.ts)
    k = int(np.clip(np.searchsorted(ts, value) - 1, 0, len(ts) - 2))
    low, high = ts[k], ts[k + 1]
    # Through Chebyshev points, whose number exceeds the order of all of SciPy's methods.
    inside = np.cos((2 * np.arange(_POINTS) + 1) * np.pi / (2 * _POINTS))
    samples = solution(low + (high - low) * (inside + 1) / 2)
    coefficients = np.polynomial.chebyshev.chebfit(inside, samples.T, _POINTS - 1)
    return with_value(
        here, np.polynomial.chebyshev.chebval((t - low) / (high - low) * 2 - 1, coefficients)
    )


_POINTS = 13


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: Any = 0,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
) -> Any:
    """Solve dy/dt = func(y, t, *args) from y(t[0]) = y0, at the times t; SciPy's `odeint`.

    It has derivatives with respect to y0, t, the values that `func` closes over, and those in `args`.
    Under `jit`, another method is used, of order 8, which is not for stiff equations. For pytrees, and for
    derivatives in constant memory, use `functrans.odeint`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import odeint
    >>> def final(rate):
    ...     return odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 2.0]))[-1, 0]
    >>> round(float(grad(final)(0.5)), 6)  # d/dr exp(-2r)
    -0.735759
    """
    given = arguments(args)
    initial, times = np.atleast_1d(as_array(y0)), as_array(t)
    if dtype_of(initial).kind != "f":
        initial = initial.astype(float)
    tolerances = {
        name: _TOLERANCE if value is None else plain(value)
        for name, value in (("rtol", rtol), ("atol", atol))
    }
    slope = _Slope(func, given, bool(tfirst))
    leaves = (initial, times, *tree.leaves(given))
    unknown = not all(map(is_known, leaves))
    if unknown or (is_staging() and not is_known(slope.raw(plain(times)[0], plain(initial)))):
        if full_output:
            raise errors.OptionError(
                "odeint: full_output= is not available while a function is staged, at "
                f"{errors.user_location()}. Leave it out."
            )
        return staged_path(
            lambda y, t, *rest: _Slope(func, rest, bool(tfirst)).traced(t, y),
            initial,
            times,
            given,
            **{name: float(np.min(value)) for name, value in tolerances.items()},
        )
    plain_y0, plain_t = plain(initial), plain(times)
    out = si.odeint(
        slope,
        plain_y0,
        plain_t,
        (),
        plainly(Dfun, *given),
        col_deriv,
        full_output,
        ml,
        mu,
        rtol if rtol is None else tolerances["rtol"],
        atol if atol is None else tolerances["atol"],
        tcrit,
        h0,
        hmax,
        hmin,
        ixpr,
        mxstep,
        mxhnil,
        mxordn,
        mxords,
        printmessg,
        tfirst,
    )
    if (
        not (slope.seen or is_differentiated(initial, times))
        or len(plain_t) < 2
        or not plain_y0.size
    ):
        return out
    values = out[0] if full_output else out
    again = si.solve_ivp(
        lambda t, y: plain(slope.raw(t, y)),
        (plain_t[0], plain_t[-1]),
        plain_y0,
        method="LSODA",
        dense_output=True,
        max_step=hmax or np.inf,
        **{name: float(np.min(value)) for name, value in tolerances.items()},
    )
    if plain_t[0] == plain_t[-1]:
        states = [initial] * len(plain_t)
    else:
        path = Path(
            slope.traced, times[0], initial, si.LSODA, _Guess(again.sol), list(plain_t), "odeint"
        )
        states = [path.near(times[k]) for k in range(len(plain_t))]
    traced = with_value(values, np.stack(states))
    return (traced, *out[1:]) if full_output else traced


_TOLERANCE = 1.49012e-8
