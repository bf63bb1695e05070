"""`call`: a function as one primitive, which runs again in the backward sweep.

Reverse mode keeps its arguments, and nothing of what happens inside: the sweep runs the function once
more, with a tape. That is what `checkpoint` wants; and it is how a graph holds what cannot be written
down as equations, such as the record of a loop whose length is not known.
"""

from __future__ import annotations

from typing import Any

from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import ArraySpec, spec_of
from functrans.interpreters.batch import Batch
from functrans.transforms.batching import vmap
from functrans.transforms.procedures import (
    Procedure,
    bare,
    chosen,
    is_moving,
    pull_through,
    push_through,
    strong,
    tangents_like,
    tracked,
    zeros,
)

# call(*args, function=, specs=): `function` takes and returns flat arrays, and closes over no traced
# value; `specs` are those of its results.


def _push(args: Any, tangents: Any, params: Any) -> Any:
    function, specs = params["function"], params["specs"]
    moving = tuple(tangent is not None for tangent in tangents)
    wanted = tuple(map(is_moving, specs))

    def push(*leaves: Any) -> list[Any]:
        values, moved = push_through(function, moving, leaves)
        return values + chosen(tangents_like(values, moved), wanted)

    both = (*specs, *map(strong, chosen(specs, wanted)))
    if isinstance(function, Procedure):
        push = function.pushed(moving, wanted)[0]
    results = compute(call, *args, *chosen(tangents, moving), function=push, specs=both)
    moved = iter(results[len(specs) :])
    return results[: len(specs)], tuple(next(moved) if want else None for want in wanted)


def _trace(mask: int, args: Any, params: Any) -> Any:
    outs = compute(call, *args, **params)
    if not any(map(is_moving, params["specs"])):
        return outs, None, None
    return outs, _pull, (tracked(mask, len(args)), args, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    active, args, params = saved
    function = params["function"]
    leaves = [*args, *floating(cotangents, params["specs"])]
    if isinstance(function, Procedure):
        return bare(pull_through(function, active, leaves))
    specs = tuple(strong(spec_of(arg)) for arg in chosen(args, active))
    pull = lambda *leaves: pull_through(function, active, leaves)
    return bare(call(*leaves, function=pull, specs=specs))


def floating(cotangents: Any, specs: Any) -> list[Any]:
    """The cotangents of floating results, without None."""
    return [
        zeros(strong(spec)) if cotangent is None else cotangent
        for cotangent, spec in zip(cotangents, specs, strict=True)
        if is_moving(spec)
    ]


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    function = params["function"]
    specs = tuple(ArraySpec((batch.size, *spec.shape), spec.dtype) for spec in params["specs"])
    if isinstance(function, Procedure):
        mapped: Any = function.batched(batched, batch, (True,) * len(specs))[0]
    else:
        axes = tuple(0 if maps else None for maps in batched)
        mapped = vmap(function, axes, axis_name=batch.axis_name, axis_size=batch.size)
    return call(*args, function=mapped, specs=specs)


call = HigherOrder(
    "call",
    lambda *args, function, specs: tuple(function(*args)),
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=lambda specs, params: params["specs"],
)
