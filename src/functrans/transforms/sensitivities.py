"""How the path of a differential equation depends on its start, its times and its parameters.

An equation is a function equation(y, t, *parameters) -> dy/dt of vectors. `solve(equation, y0, t,
*parameters)` is its path, one row for each time. Tangents and cotangents of a path are paths of other
equations, found by the same `solve`; so if that has these derivatives, it has those of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.evaluate import as_constant
from functrans.core.shapes import cast, dtype_of, shape_of, spec_of
from functrans.transforms.batching import vmap
from functrans.transforms.derivatives import jvp, vjp
from functrans.transforms.leaves import Flags, chosen, described, flat, moves, strong, zeros
from functrans.transforms.scanning import scan
from functrans.transforms.vectors import floating, joined, parted

Solve = Callable[..., Any]


class Equation:
    """The right-hand side as a function of vectors, with a name: equation(y, t, *parameters) -> dy/dt."""

    __slots__ = ("name", "slope")

    def __init__(self, slope: Callable[..., Any], name: str) -> None:
        self.slope = slope
        self.name = name

    def __call__(self, y: Any, t: Any, *parameters: Any) -> Any:
        return self.slope(y, t, *parameters)

    def __repr__(self) -> str:
        return self.name


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
        if dtype.kind != "c" and any(dtype_of(leaf).kind == "c" for leaf in found):
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


def _along(equation: Any, path: Any, t: Any, parameters: Sequence[Any]) -> Any:
    """dy/dt at each time."""
    return vmap(equation, (0, 0, *[None] * len(parameters)))(path, t, *parameters)


def _of_some(equation: Any, time: Any, parameters: Sequence[Any], flags: Flags) -> Any:
    """The slope at a time as a function of y and of the flagged parameters."""

    def slope(y: Any, *given: Any) -> Any:
        each = iter(given)
        full = [next(each) if flag else p for p, flag in zip(parameters, flags, strict=True)]
        return equation(y, time, *full)

    return slope


# Forward: s = dy obeys s' = (∂f/∂y) s + (∂f/∂θ) dθ. A change of the first time moves the start along the
# slope, backward, and a change of a later time moves its point along the slope.


def tangent_of_path(
    solve: Solve, equation: Any, path: Any, operands: Sequence[Any], tangents: Sequence[Any]
) -> Any:
    """The tangent of a path by those of (y0, t, *parameters), where None stands for zero."""
    (y0, t, *parameters), (y0_tangent, t_tangent, *changes) = operands, tangents
    moving = moves(changes)
    size, count = shape_of(y0)[0], len(parameters)

    def linearized(state: Any, time: Any, *both: Any) -> Any:
        values, moved = both[:count], both[count:]
        slope = _of_some(equation, time, values, moving)
        primals = (state[:size], *chosen(values, moving))
        return np.concatenate(jvp(slope, primals, (state[size:], *moved)))

    along = None if t_tangent is None else _along(equation, path, t, parameters)
    change = np.zeros(size, dtype_of(y0)) if y0_tangent is None else y0_tangent
    if along is not None:
        change = change - along[0] * t_tangent[0]
    both = solve(
        Equation(linearized, f"{equation} linearized"),
        np.concatenate([y0, change]),
        t,
        *parameters,
        *chosen(changes, moving),
    )
    total = both[:, size:]
    return total if along is None else total + along * t_tangent[:, None]


# Reverse: a = ∂L/∂y obeys a' = -(∂f/∂y)^T a, and ∂L/∂θ is the integral of (∂f/∂θ)^T a (Chen et al. 2018,
# arXiv:1806.07366). Going backward, each time adds the cotangent of its own point to a. y is solved for
# again from the point that is known.


def cotangents_of_path(
    solve: Solve, equation: Any, path: Any, operands: Sequence[Any], active: Flags, g: Any
) -> list[Any]:
    """The cotangents of the active ones of (y0, t, *parameters), from that of the path."""
    y0, t, *parameters = operands
    flags = active[2:]
    size, dtype = shape_of(y0)[0], dtype_of(y0)
    wanted = [strong(spec_of(p)) for p in chosen(parameters, flags)]
    none = joined([zeros(spec) for spec in wanted]) if wanted else np.zeros(0, dtype)
    common = np.result_type(dtype, none.dtype)

    def adjoint(state: Any, time: Any, *values: Any) -> Any:
        y, a = cast(state[:size], dtype), cast(state[size : 2 * size], dtype)
        out, pullback = vjp(_of_some(equation, time, values, flags), y, *chosen(values, flags))
        parts = [out, *(-np.reshape(change, (-1,)) for change in pullback(a))]
        return np.concatenate(parts).astype(common)

    backward = Equation(adjoint, f"adjoint of {equation}")

    def interval(carry: Any, step: Any) -> Any:
        a, integral = carry
        y, cotangent, start, stop = step
        state = np.concatenate([y, a + cotangent, integral]).astype(common)
        state = solve(backward, state, np.stack([start, stop]), *parameters)[1]
        a, integral = state[size : 2 * size], state[2 * size :]
        return (cast(a, dtype), cast(integral, none.dtype)), None

    a, integral = np.zeros(size, dtype), none
    if shape_of(t)[0] > 1:
        steps = (path[1:], g[1:], t[1:], t[:-1])
        (a, integral), _ = scan(interval, (a, integral), steps, reverse=True)
    cotangents = [a + g[0]] if active[0] else []
    if active[1]:
        along = _along(equation, path, t, parameters)
        later = np.sum(g[1:] * along[1:], axis=1)
        first = -np.sum(a * along[0], keepdims=True)
        cotangents.append(cast(np.concatenate([first, later]), dtype_of(t)))
    return cotangents + parted(integral, wanted)
