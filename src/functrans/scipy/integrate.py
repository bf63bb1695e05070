"""Ordinary differential equations, with derivatives by the equation itself.

The solution is one primitive, `odeint`, of the start, the times and the arguments. Its tangent solves the
equation linearized along the solution, and its cotangent the adjoint equation, backward in time (Chen et
al. 2018, arXiv:1806.07366). Both are again solutions of differential equations, found by the same
primitive, so there are derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, cast, dtype_of, is_inexact, shape_of
from functrans.scipy.loading import load
from functrans.surface.table import as_array
from functrans.transforms.batching import vmap
from functrans.transforms.derivatives import jvp, vjp
from functrans.tree import ravel_pytree

si = load("scipy.integrate")

__all__ = ["odeint"]


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1e-8,
    atol: float = 1e-8,
) -> Any:
    """The solution of dy/dt = f(y, t, *args) from y(t[0]) = y0, at the times t.

    It can be differentiated by y0, t and args, in forward and reverse mode and to any order. Whatever `f`
    depends on and is to be differentiated, or mapped over, has to be among `args`: `f` must not close
    over traced values.

    Parameters
    ----------
    f
        f(y, t, *args) -> dy/dt, of the structure and shapes of y.
    y0
        The start: an array, or a pytree of arrays.
    t
        The times, increasing or decreasing; a time may be repeated.
    *args
        Pytrees of arrays that `f` depends on.
    rtol, atol
        Relative and absolute tolerance of a step.

    Returns
    -------
    array or pytree
        Like y0, with the times as the first axis of each leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import odeint
    >>> def decay(y, t, rate):
    ...     return -rate * y
    >>> def final(rate):
    ...     return odeint(decay, 1.0, np.array([0.0, 2.0]), rate)[-1]
    >>> round(float(grad(final)(0.5)), 6)  # d/dr exp(-2r) = -2 exp(-2r)
    -0.735759
    """
    start, unravel = ravel_pytree(tree.map(_inexact, y0))
    times = _inexact(t)
    if len(shape_of(times)) != 1 or shape_of(times)[0] == 0:
        raise ValueError(f"odeint: the times have the shape {shape_of(times)}, not one axis")
    leaves, structure = tree.flatten(args)
    for leaf in leaves:
        tree.check_array(leaf, "odeint: an argument of the equation")
    shapes = [shape_of(leaf) for leaf in tree.leaves(y0)]
    form = tree.structure(y0)

    def slope(y: Any, time: Any, *leaves: Any) -> Any:
        out = f(unravel(y), time, *tree.unflatten(structure, leaves))
        _check_slope(out, form, shapes, f)
        return ravel_pytree(out)[0].astype(dtype_of(y))

    equation = _Equation(slope, getattr(f, "__name__", "f"))
    path = solution(start, times, *leaves, equation=equation, rtol=rtol, atol=atol)
    return vmap(unravel)(path)


def _inexact(x: Any) -> Any:
    x = as_array(x)
    return x if is_inexact(x) else x.astype(np.float64)


def _check_slope(out: Any, form: Any, shapes: list[Any], f: Callable[..., Any]) -> None:
    found = [shape_of(as_array(leaf)) for leaf in tree.leaves(out)]
    if tree.structure(out) != form or found != shapes:
        raise errors.InputTypeError(
            f"odeint: {errors.describe(f)} returns {tree.structure(out)} with shapes {found}, and y is "
            f"{form} with shapes {shapes}. It has to return dy/dt, of the structure and shapes of y."
        )


class _Equation:
    """The right-hand side as a function of vectors: equation(y, t, *leaves) -> dy/dt."""

    __slots__ = ("name", "slope")

    def __init__(self, slope: Callable[..., Any], name: str) -> None:
        self.slope = slope
        self.name = name

    def __call__(self, y: Any, t: Any, *leaves: Any) -> Any:
        return self.slope(y, t, *leaves)

    def __repr__(self) -> str:
        return self.name


def _solve(y0: Any, t: Any, *leaves: Any, equation: Any, rtol: float, atol: float) -> Any:
    """All of it by NumPy and SciPy: a Runge-Kutta method of order 8 with adaptive steps."""

    def slope(time: float, y: Any) -> Any:
        out = equation(y, time, *leaves)
        if isinstance(out, Tracer):
            raise errors.InputTypeError(
                f"odeint: the equation {equation} depends on a value that is traced by "
                f"{out.interpreter.transform} and is not among its arguments. Pass it through args, "
                "odeint(f, y0, t, *args), so that its derivative is known."
            )
        return out

    y0, t = np.asarray(y0), np.asarray(t)
    fresh = np.append(True, t[1:] != t[:-1])  # a time may be repeated, though not for SciPy
    times = t[fresh]
    steps = np.sign(np.diff(times))
    if np.any(steps != steps[:1]):
        turn = int(np.argmax(steps != steps[0]))
        raise ValueError(
            f"odeint: the times must increase throughout, or decrease; {times[turn - 1]}, "
            f"{times[turn]}, {times[turn + 1]} do neither. Sort them with np.sort."
        )
    if len(times) == 1 or y0.size == 0:
        return np.broadcast_to(y0, (len(t), *y0.shape)).copy()
    found = si.solve_ivp(
        slope,
        (times[0], times[-1]),
        y0,
        method="DOP853",
        t_eval=times,
        rtol=max(rtol, 100 * np.finfo(np.float64).eps),
        atol=atol,
    )
    if not found.success:
        raise FloatingPointError(f"odeint: the equation {equation} was not solved: {found.message}")
    return found.y.T[np.cumsum(fresh) - 1].astype(y0.dtype)


def _spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    y0, t = specs[:2]
    return ArraySpec((t.shape[0], *y0.shape), y0.dtype)


def _slopes_along(equation: Any, path: Any, t: Any, leaves: Any) -> Any:
    """dy/dt at each time."""
    in_axes = (0, 0, *[None] * len(leaves))
    return vmap(equation, in_axes)(path, t, *leaves)


# Forward: s = dy obeys s' = (∂f/∂y) s + (∂f/∂θ) dθ. A change of the first time moves the start along the
# slope, backward, and a change of a later time moves its point along the slope.


def _forward(path: Any, args: Any, tangents: Any, params: Any) -> Any:
    (y0, t, *leaves), (y0_tangent, t_tangent, *leaf_tangents) = args, tangents
    equation = params["equation"]
    moving = [k for k, tangent in enumerate(leaf_tangents) if tangent is not None]
    size, count = shape_of(y0)[0], len(leaves)

    def linearized(state: Any, time: Any, *both: Any) -> Any:
        values, changes = both[:count], both[count:]

        def slope(y: Any, *moved: Any) -> Any:
            full = list(values)
            for k, each in zip(moving, moved, strict=True):
                full[k] = each
            return equation(y, time, *full)

        primals = (state[:size], *(values[k] for k in moving))
        return np.concatenate(jvp(slope, primals, (state[size:], *changes)))

    along = None if t_tangent is None else _slopes_along(equation, path, t, leaves)
    change = np.zeros(size, dtype_of(y0)) if y0_tangent is None else y0_tangent
    if along is not None:
        change = change - along[0] * t_tangent[0]
    both = solution(
        np.concatenate([y0, change]),
        t,
        *leaves,
        *(leaf_tangents[k] for k in moving),
        **{**params, "equation": _Equation(linearized, f"{equation} linearized")},
    )
    total = both[:, size:]
    return total if along is None else total + along * t_tangent[:, None]


# Reverse: a = ∂L/∂y obeys a' = -(∂f/∂y)^T a, and ∂L/∂θ is the integral of (∂f/∂θ)^T a. Going backward,
# each time adds the cotangent of its own point to a. y is solved for again from the point that is known.


def _backward(g: Any, saved: Any) -> Any:
    mask, path, (y0, t, *leaves), params = saved
    equation = params["equation"]
    size, count = shape_of(y0)[0], shape_of(t)[0]
    tracked = [k for k in range(len(leaves)) if mask >> (k + 2) & 1]
    zeros = [np.zeros(shape_of(leaves[k]), dtype_of(leaves[k])) for k in tracked]
    integral, unravel = ravel_pytree(zeros)
    integral_dtype = dtype_of(integral)
    dtype = np.result_type(dtype_of(y0), integral_dtype) if tracked else dtype_of(y0)

    def adjoint(state: Any, time: Any, *values: Any) -> Any:
        y, a = cast(state[:size], dtype_of(y0)), cast(state[size : 2 * size], dtype_of(y0))

        def slope(y: Any, *moved: Any) -> Any:
            full = list(values)
            for k, each in zip(tracked, moved, strict=True):
                full[k] = each
            return equation(y, time, *full)

        out, pullback = vjp(slope, y, *(values[k] for k in tracked))
        y_change, *changes = pullback(a)
        parts = [out, -y_change, *([-ravel_pytree(changes)[0]] if tracked else [])]
        return np.concatenate(parts).astype(dtype)

    backward = {**params, "equation": _Equation(adjoint, f"adjoint of {equation}")}
    a = g[count - 1]
    for k in range(count - 1, 0, -1):
        start = np.concatenate([path[k], a, *([integral] if tracked else [])]).astype(dtype)
        state = solution(start, t[k - 1 : k + 1][::-1], *leaves, **backward)[1]
        a, integral = cast(state[size : 2 * size], dtype_of(y0)), state[2 * size :]
        if k > 1:
            a = a + g[k - 1]
    cotangents = []
    if mask & 1:
        cotangents.append(a + g[0] if count > 1 else a)
    if mask & 2:
        along = _slopes_along(equation, path, t, leaves)
        later = np.sum(g[1:] * along[1:], axis=1)
        first = -np.sum(a * along[0], keepdims=True) if count > 1 else np.zeros(1)
        cotangents.append(np.concatenate([first, later]))
    if tracked:
        cotangents.extend(unravel(cast(integral, integral_dtype)))
    return tuple(cotangents) if len(cotangents) > 1 else cotangents[0]


# Lanes that share their times are one large system; the tolerance is that of each lane by itself.


def _batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    y0, t, *leaves = args
    equation = params["equation"]
    if batched[1]:
        lanes = [
            primitive(
                *(x[k] if mapped else x for x, mapped in zip(args, batched, strict=True)), **params
            )
            for k in range(size)
        ]
        return np.stack(lanes)
    if not batched[0]:
        y0 = np.broadcast_to(y0, (size, *shape_of(y0)))
    length = shape_of(y0)[1]
    mapped = vmap(equation, (0, None, *(0 if each else None for each in batched[2:])))

    def lanes_slope(y: Any, time: Any, *leaves: Any) -> Any:
        return mapped(y.reshape((size, length)), time, *leaves).reshape(-1)

    tighter = {name: params[name] / size**0.5 for name in ("rtol", "atol")}
    path = primitive(
        y0.reshape(-1),
        t,
        *leaves,
        equation=_Equation(lanes_slope, f"{equation} in lanes"),
        **tighter,
    )
    return np.moveaxis(path.reshape((shape_of(t)[0], size, length)), 1, 0)


solution = Primitive(
    "odeint",
    _solve,
    jvp=_forward,
    vjp=lambda mask, out, args, params: (_backward, (mask, out, args, params)),
    batch=_batch,
    shape=_spec,
)
