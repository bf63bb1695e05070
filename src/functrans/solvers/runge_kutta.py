"""Runge-Kutta methods: the path of a differential equation, from one time to the next.

A method is a table of coefficients. Methods with an error estimate choose their steps by it, and interpolate
at the requested times; the others step from each time to the next. All of it is made of `scan` and
`while_loop`, so that it can be staged, and each lane of a `vmap` takes as many steps as it needs.
Derivatives are elsewhere (ode.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans.control.loops import fori_loop, solver_loop
from functrans.control.scanning import scan
from functrans.core.shapes import cast, dtype_of, shape_of
from functrans.ops.elementwise import safe_ratio
from functrans.solvers.vectors import report

Slope = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Table:
    """The coefficients of a method (E. Hairer, S. Nørsett, G. Wanner, Solving ODEs I, II.1 and II.6).

    Stage i is at the time `nodes[i]`, from the stages before it by `stages[i - 1]`; the step is their sum
    by `weights`, and its error is estimated by `errors`. The last stage of a method with an estimate is
    the slope at the end of the step. `bulge` is the difference between the interpolated path and the cubic
    polynomial that fits its ends.
    """

    order: int
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    errors: tuple[float, ...] = ()
    bulge: tuple[float, ...] = ()

    def polynomials(self) -> np.ndarray[Any, Any]:
        """How much of each stage there is in the path at θ: coefficients of θ, θ², θ³, θ⁴."""
        # y0 + (3θ² - 2θ³) (y1 - y0) + h (θ - 2θ² + θ³) k_first + h (θ³ - θ²) k_last + θ² (1 - θ)² h d·k
        table = np.outer(self.weights, [0.0, 3.0, -2.0, 0.0])
        table[0] += [1.0, -2.0, 1.0, 0.0]
        table[-1] += [0.0, -1.0, 1.0, 0.0]
        if self.bulge:
            table += np.outer(self.bulge, [0.0, 1.0, -2.0, 1.0])
        return table


METHODS = {
    "dopri5": Table(
        5,
        (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1),
        (
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
        (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
        (
            -12715105075 / 11282082432,
            0,
            87487479700 / 32700410799,
            -10690763975 / 1880347072,
            701980252875 / 199316789632,
            -1453857185 / 822651844,
            69997945 / 29380423,
        ),
    ),
    "bosh3": Table(
        3,
        (0, 1 / 2, 3 / 4, 1),
        ((1 / 2,), (0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
        (2 / 9, 1 / 3, 4 / 9, 0),
        (-5 / 72, 1 / 12, 1 / 9, -1 / 8),
    ),
    "rk4": Table(
        4,
        (0, 1 / 2, 1 / 2, 1),
        ((1 / 2,), (0, 1 / 2), (0, 0, 1)),
        (1 / 6, 1 / 3, 1 / 3, 1 / 6),
    ),
    "euler": Table(1, (0,), (), (1,)),
}


@dataclass(frozen=True)
class Options:
    """How to integrate: the method and its limits."""

    method: str
    rtol: float
    atol: float
    mxstep: int  # steps from one time to the next
    hmax: float


def integrate(slope: Slope, y0: Any, t: Any, options: Options) -> Any:
    """The path dy/dt = slope(y, t) of a vector from y(t[0]) = y0, with one row for each of the times.

    After a failure, which is reported, all rows are nan.
    """
    if shape_of(t)[0] == 1 or shape_of(y0)[0] == 0:
        return np.broadcast_to(y0, (shape_of(t)[0], *shape_of(y0)))
    # Time goes forward: the path is followed in s = ±t.
    direction = np.where(t[-1] < t[0], -1.0, 1.0)
    times = t * direction
    sign = cast(direction, _real(y0))

    def forward(y: Any, s: Any) -> Any:
        return sign * slope(y, s * direction)

    table = METHODS[options.method]
    if table.errors:
        start, advance = _adaptive(forward, y0, times, table, options)
    else:
        start, advance = _fixed(forward, y0, times, table, options)
    state, later = scan(advance, start, times[1:])
    time, h, count, failed = state[:4]
    (path,) = report(
        [np.concatenate([y0[None], later])],
        failed,
        f"odeint ({options.method}) stopped at t = {{:.6g}} on the way to {{:.6g}}, {{:.0f}} steps after the "
        f"last time that it reached (mxstep is {options.mxstep}), with step size {{:.1e}}. The rest of "
        "the path is nan. Check that the solution exists there, and raise mxstep, rtol or atol.",
        time * direction,
        times[-1] * direction,
        count,
        h,
    )
    return path


def _real(y: Any) -> Any:
    """The dtype of step sizes for a given y."""
    return np.zeros((), dtype_of(y)).real.dtype


def _stages(slope: Slope, y: Any, s: Any, h: Any, first: Any, table: Table) -> list[Any]:
    """The slopes at the stages of a step; the first is given."""
    slopes = [first]
    step = cast(h, _real(y))
    for node, row in zip(table.nodes[1:], table.stages, strict=True):
        slopes.append(slope(y + step * _combined(row, slopes), s + node * h))
    return slopes


def _combined(weights: tuple[float, ...], slopes: list[Any]) -> Any:
    return sum(w * k for w, k in zip(weights, slopes, strict=False) if w)


# Steps of equal size between the times; as many as hmax requires.


def _fixed(slope: Slope, y0: Any, times: Any, table: Table, options: Options) -> Any:
    def advance(state: Any, target: Any) -> Any:
        s, _, _, failed, y = state
        count = np.maximum(np.ceil((target - s) / options.hmax), 1.0).astype(np.int64)
        h = (target - s) / count

        def step(i: Any, y: Any) -> Any:
            now = s + i * h
            slopes = _stages(slope, y, now, h, slope(y, now), table)
            return y + cast(h, _real(y)) * _combined(table.weights, slopes)

        many = np.minimum(count, options.mxstep)
        y = fori_loop(0, many, step, y)
        failed = failed | (many < count) | (h < 0) | ~np.all(np.isfinite(y))
        y = np.where(failed, np.nan, y)
        return (np.where(failed, s, target), h, many, failed, y), y

    return (times[0], np.float64(0.0), np.int64(0), np.False_, y0), advance


# Steps whose size follows from the estimate of their error; times between them are interpolated.


def _adaptive(slope: Slope, y0: Any, times: Any, table: Table, options: Options) -> Any:
    numbers = np.finfo(dtype_of(y0))
    rtol, atol, tiny = (
        max(options.rtol, 100 * float(numbers.eps)),
        options.atol,
        float(numbers.tiny) ** 0.5,
    )
    polynomials = table.polynomials().astype(_real(y0))
    end = times[-1]
    smallest = 16 * np.finfo(np.float64).eps * np.maximum(np.abs(times[0]), np.abs(end))

    def size(v: Any, y: Any) -> Any:
        """The norm of a vector in units of the error allowed at y."""
        allowed = np.maximum(atol + rtol * y, tiny)
        return np.sqrt(np.mean(np.abs(v / allowed) ** 2)).astype(np.float64)

    def first_step(f0: Any) -> Any:
        # Hairer et al., II.4: a guess from the sizes of y, y' and y'', the last by a step of Euler's.
        scale = np.abs(y0)
        d0, d1 = size(y0, scale), size(f0, scale)
        guess = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * safe_ratio(d0, d1))
        guess = np.minimum(guess, np.abs(end - times[0]))
        small = cast(guess, _real(y0))
        f1 = slope(y0 + small * f0, times[0] + guess)
        d2 = safe_ratio(size(f1 - f0, scale), guess)
        largest = np.maximum(d1, d2)
        better = np.where(
            largest <= 1e-15,
            np.maximum(1e-6, guess * 1e-3),
            safe_ratio(0.01, largest) ** (1 / table.order),
        )
        found = np.minimum(np.minimum(100 * guess, better), options.hmax)
        return np.maximum(found, 1e-12 * (end - times[0]))  # it is 0 where y0 = 0 and atol = 0

    def step(state: Any) -> Any:
        s, h, count, failed, y, last_s, last_h, last_y, slopes = state
        final = h >= end - s
        h = np.where(final, end - s, h)
        after = np.where(final, end, s + h)
        found = _stages(slope, y, s, h, slopes[-1], table)
        here = cast(h, _real(y))
        following = y + here * _combined(table.weights, found)
        error = size(
            here * _combined(table.errors, found), np.maximum(np.abs(y), np.abs(following))
        )
        accepted = error <= 1.0  # nan is not
        growth = 0.9 * np.where(error > 0, error, 1.0) ** (-1 / table.order)
        growth = np.where(error > 0, np.clip(growth, 0.2, np.where(accepted, 10.0, 1.0)), 10.0)
        growth = np.where(np.isfinite(error), growth, 0.2)
        # A step too small to change the time makes no progress; neither does nan.
        failed = ~(h * growth >= smallest) & ~(accepted & final)

        def choose(new: Any, old: Any) -> Any:
            return np.where(accepted, new, old)

        return (
            choose(after, s),
            np.minimum(h * growth, options.hmax),
            count + 1,
            failed,
            choose(following, y),
            choose(s, last_s),
            choose(h, last_h),
            choose(y, last_y),
            choose(np.stack(found), slopes),
        )

    def advance(state: Any, target: Any) -> Any:
        s, h, count, failed, *rest = state
        failed = failed | (target < rest[1]) | (target > end)  # the times are not in order

        def going_on(state: Any) -> Any:
            s, _, count, failed = state[:4]
            return (s < target) & ~failed & (count < options.mxstep)

        count = np.where(failed, count, 0)
        state = solver_loop(going_on, step, (s, h, count, failed, *rest))
        s, h, count, failed, y, last_s, last_h, last_y, slopes = state
        failed = failed | (s < target)
        fraction = cast(safe_ratio(target - last_s, last_h), _real(y))
        powers = np.stack([fraction**k for k in (1, 2, 3, 4)])
        between = last_y + cast(last_h, _real(y)) * ((polynomials @ powers) @ slopes)
        state = (s, h, count, failed, y, last_s, last_h, last_y, slopes)
        return state, np.where(failed, np.nan, between)

    f0 = slope(y0, times[0])
    slopes = np.stack([np.zeros_like(f0)] * (len(table.nodes) - 1) + [f0])
    zero = np.float64(0.0)
    start = (times[0], first_step(f0), np.int64(0), np.False_, y0, times[0], zero, y0, slopes)
    return start, advance
