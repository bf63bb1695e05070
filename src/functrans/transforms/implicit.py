"""Solutions with derivatives that do not ask how they were found.

`implicit` is one primitive. Its operands are what a solution depends on, and beside them it is given
the solution itself, as it was found, without derivatives; it returns that. Its rules give the derivative
by the operands: for a root by the equation that it satisfies (systems.py), for a path by its
differential equation (sensitivities.py). So the memory that a derivative takes does not depend on how
many steps a solver made. Rules are written with functions that can be transformed, among them the same
primitive, so there are derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.interpreters.batch import Batch
from functrans.ops.structure import stop_gradient
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import (
    Flags,
    bare,
    chosen,
    grouped,
    moves,
    tracked,
    ungrouped,
    with_lanes_where,
    zero_tangent,
)


def stripped(values: Sequence[Any]) -> list[Any]:
    """Values as a solver sees them: without derivatives."""
    return [
        stop_gradient(value) if isinstance(value, Tracer) else value
        for value in map(as_constant, values)
    ]


class Rules:
    """How a solution depends on its operands; all are flat lists.

    push(operands, out, tangents)           the tangents of `out`; a tangent of None stands for zero
    pull(operands, out, cotangents, active) the cotangents of the active operands
    """

    def __init__(self, push: Callable[..., Any], pull: Callable[..., Any], name: str) -> None:
        self.push = push
        self.pull = pull
        self.name = name

    def __repr__(self) -> str:
        return f"[{self.name}]"

    def batched(self, mapped: Flags, batch: Batch) -> Rules:
        """The same for all lanes at once, which all of `out` has as first axis."""
        count = len(mapped)

        def over_lanes(function: Any, flags: Flags, leaves: Sequence[Any]) -> Any:
            axes = tuple(0 if flag else None for flag in flags)
            mapping = vmap(function, axes, axis_name=batch.axis_name, axis_size=batch.size)
            return mapping(*leaves)

        def push(operands: Any, out: Any, tangents: Any) -> Any:
            moving, n = moves(tangents), len(out)

            def run(*leaves: Any) -> Any:
                values, moved = ungrouped(leaves[n:], (moving,))
                return self.push(values, list(leaves[:n]), moved)

            flags = (True,) * n + mapped + tuple(chosen(mapped, moving))
            leaves = [*out, *grouped(operands, tangents, (moving,))]
            return over_lanes(run, flags, leaves)

        def pull(operands: Any, out: Any, cotangents: Any, active: Flags) -> Any:
            n = len(out)

            def run(*leaves: Any) -> Any:
                values, outs, given = leaves[:count], leaves[count : count + n], leaves[count + n :]
                return self.pull(list(values), list(outs), list(given), active)

            flags = mapped + (True,) * (2 * n)
            found = over_lanes(run, flags, [*operands, *out, *cotangents])
            # An operand that all lanes share gets a cotangent from each.
            return [
                g if maps else np.sum(g, axis=0)
                for g, maps in zip(found, chosen(mapped, active), strict=True)
            ]

        return Rules(push, pull, self.name)


# The primitive: implicit(*operands, *found, rules=, count=), with so many operands.


def _push(args: Any, tangents: Any, params: Any) -> Any:
    out = compute(implicit, *args, **params)
    count = params["count"]
    if not any(moves(tangents[:count])):
        return out, (None,) * len(out)
    return out, params["rules"].push(list(args[:count]), list(out), list(tangents[:count]))


def _trace(mask: int, args: Any, params: Any) -> Any:
    out = compute(implicit, *args, **params)
    active = tracked(mask, len(args))
    if not any(active[: params["count"]]):
        return out, None, None
    return out, _pull, (active, args, out, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    active, args, out, params = saved
    count = params["count"]
    given = [
        zero_tangent(like) if cotangent is None else cotangent
        for cotangent, like in zip(cotangents, out, strict=True)
    ]
    found = params["rules"].pull(list(args[:count]), list(out), given, active[:count])
    return bare([*found, *(None for flag in active[count:] if flag)])


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    count = params["count"]
    found = with_lanes_where(
        args[count:], batched[count:], (True,) * (len(args) - count), batch.size
    )
    rules = params["rules"].batched(batched[:count], batch)
    return implicit(*args[:count], *found, rules=rules, count=count)


implicit = HigherOrder(
    "implicit",
    lambda *args, rules, count: args[count:],
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=lambda specs, params: specs[params["count"] :],
)
