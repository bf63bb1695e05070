"""`call`: a function as one primitive, which runs again in the backward sweep.

Reverse mode keeps only its arguments: the backward pass runs the function once more, with a tape. This is
what `checkpoint` needs; and it is how a graph holds a computation that cannot be written as equations, such
as the tape of a loop of unknown length.
"""

from __future__ import annotations

from typing import Any

from functrans.control.procedures import Procedure, pull_through, push_through
from functrans.core import errors
from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import ArraySpec, spec_of
from functrans.interpreters.batch import Batch
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import (
    Flags,
    bare,
    chosen,
    grouped,
    is_known,
    is_moving,
    moves,
    strong,
    tracked,
    ungrouped,
    zeros,
)

# call(*args, function=, specs=): `function` takes and returns flat arrays, and closes over no traced
# value; `specs` are those of its results.


def _push(args: Any, tangents: Any, params: Any) -> Any:
    function, specs = params["function"], params["specs"]
    moving = moves(tangents)
    wanted = tuple(map(is_moving, specs))

    def push(*leaves: Any) -> list[Any]:
        return grouped(*push_through(function, *ungrouped(leaves, (moving,))), (wanted,))

    pushed: Any = push
    if isinstance(function, Procedure):
        try:
            pushed = function.pushed((moving,), (wanted,))
        except errors.StagingError:
            # A custom rule with a Python branch cannot be staged, but it runs where values are known.
            if not all(map(is_known, args)):
                raise
    results = compute(
        call,
        *grouped(args, tangents, (moving,)),
        function=pushed,
        specs=tuple(grouped(specs, map(strong, specs), (wanted,))),
    )
    return ungrouped(results, (wanted,))


def _trace(mask: int, args: Any, params: Any) -> Any:
    outs = compute(call, *args, **params)
    if not any(map(is_moving, params["specs"])):
        return outs, None, None
    return outs, _pull, (tracked(mask, len(args)), args, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    active, args, params = saved
    function = params["function"]
    leaves = [*args, *floating_cotangents(cotangents, params["specs"])]
    if isinstance(function, Procedure):
        return bare(pull_through(function, active, leaves))
    specs = tuple(strong(spec_of(arg)) for arg in chosen(args, active))
    return bare(call(*leaves, function=Pullback(function, active), specs=specs))


class Pullback:
    """A function, forward and backward: (arguments, cotangents of floating results) -> cotangents."""

    __slots__ = ("active", "function")

    def __init__(self, function: Any, active: Flags) -> None:
        self.function = function
        self.active = active

    def __call__(self, *leaves: Any) -> list[Any]:
        return pull_through(self.function, self.active, leaves)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return f"[pullback of {name}]"


def floating_cotangents(cotangents: Any, specs: Any) -> list[Any]:
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
    form=lambda params: getattr(params["function"], "arrays", ()),
)
