"""Implicit differentiation: derivatives of a solution that do not depend on how it was found.

`implicit` is one primitive. It takes the values that a solution depends on as operands, and the solution
itself, without derivatives, which it returns. Its rules give the derivative with respect to the operands:
for a root from the equation that it satisfies (systems.py), for a path from its differential equation
(sensitivities.py). So the memory for a derivative does not depend on the number of steps of the solver.
Rules use only functions that can be transformed, including this primitive, so there are derivatives of
every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.interpreters.batch import Batch
from functrans.ops import reduction
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


class SolutionRules:
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

    def batched(self, mapped: Flags, batch: Batch) -> SolutionRules:
        """The same for all lanes at once; every `out` has the lanes as first axis."""
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
                g if maps else reduction.sum(g, axis=(0,), keepdims=False)
                for g, maps in zip(found, chosen(mapped, active), strict=True)
            ]

        return SolutionRules(push, pull, self.name)


# The primitive: implicit(*operands, *found, rules=, count=), with `count` operands.


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
