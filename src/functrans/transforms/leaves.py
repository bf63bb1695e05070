"""Flat lists of values: what is known of them, their specs, and which of them are meant.

Loops and branches work on the leaves of the user's trees. A `Flags` says of each whether it moves, is
differentiated, or is mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from functrans.core import tree
from functrans.core.dispatch import Tracer, running_interpreters
from functrans.core.evaluate import as_constant
from functrans.core.shapes import ArraySpec, cast, dtype_of, shape_of, spec_of
from functrans.interpreters.batch import BatchTracer
from functrans.interpreters.stage import Stage, StageTracer, TangentStage
from functrans.ops.access import getitem

Flags = tuple[bool, ...]
Specs = tuple[ArraySpec, ...]


def flat(values: Any, what: str) -> tuple[list[Any], Any]:
    """The leaves of a tree of arrays, and its structure."""
    leaves, structure = tree.flatten(values)
    for leaf in leaves:
        tree.check_array(leaf, what)
    return [as_constant(leaf) for leaf in leaves], structure


def described(values: Any) -> str:
    """A tree of values as a message shows it: (float64[3], int64[])."""
    return str(tree.map(lambda leaf: strong(spec_of(leaf)), values))


# What is known of a value.


def lanes_of(value: Any) -> Any:
    """The plain values behind a tracer, those of all lanes; None if they are not known."""
    while isinstance(value, Tracer):
        if value.interpreter.closed:
            value.interpreter.escaped()
        if type(value) is StageTracer:
            return None
        value = value.interpreter.hidden(value) if type(value) is BatchTracer else value.value
    return np.asarray(value)


def is_known(value: Any) -> bool:
    """Whether no graph that is being written holds this value as a variable."""
    while isinstance(value, Tracer):
        if type(value) is StageTracer:
            return False
        value = value.value
    return True


def agree(lanes: Any) -> bool:
    """Whether values are known and the same in all lanes."""
    return lanes is not None and lanes.size > 0 and bool((lanes == lanes.flat[0]).all())


def is_staging() -> bool:
    """Whether a function is being written down as a graph in this thread."""
    return any(
        isinstance(interpreter, Stage) and not isinstance(interpreter, TangentStage)
        for interpreter in running_interpreters()
    )


# Specs.


def strong(spec: ArraySpec) -> ArraySpec:
    """The spec of a tangent or cotangent of such a value."""
    return ArraySpec(spec.shape, spec.dtype)


def is_moving(spec: ArraySpec) -> bool:
    return spec.dtype.kind in "fc"


def common_spec(one: ArraySpec, other: ArraySpec) -> ArraySpec | None:
    """A spec that holds values of both, or None: only a Python scalar changes its dtype."""
    if one.shape != other.shape:
        return None
    if one.dtype == other.dtype:
        return one if not one.weak else other
    order = "biufc".index
    for weak, kept in ((one, other), (other, one)):
        if weak.weak and order(weak.dtype.kind) <= order(kept.dtype.kind):
            return kept
    return None


def fitted(value: Any, spec: ArraySpec) -> Any:
    """A value as one of this spec, which is its own but for a Python scalar's dtype."""
    given = spec_of(value)
    if given == spec or spec.weak:
        return value
    # A traced Python scalar needs an operation to become an array's entry, even of its own dtype.
    traced: Any = value
    return traced.astype(spec.dtype) if isinstance(value, Tracer) else cast(value, spec.dtype)


def zeros(spec: ArraySpec) -> Any:
    return np.zeros(spec.shape, spec.dtype)[()]


def zero_tangent(like: Any) -> Any:
    """Zeros for the tangent or cotangent of a value; floating ones, if it is an integer."""
    dtype = dtype_of(like)
    return np.zeros(shape_of(like), dtype if dtype.kind in "fc" else float)[()]


def bare(cotangents: Sequence[Any]) -> Any:
    """Cotangents as a `pull` returns them: a tuple, or the only one."""
    return cotangents[0] if len(cotangents) == 1 else tuple(cotangents)


def tracked(mask: int, count: int) -> Flags:
    return tuple(bool(mask >> k & 1) for k in range(count))


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


# Tangents beside values.


def grouped(values: Iterable[Any], tangents: Iterable[Any], groups: tuple[Flags, ...]) -> list[Any]:
    """Groups of values, each with the tangents of those that are flagged behind it."""
    pairs = iter(zip(values, tangents, strict=True))
    leaves = []
    for group in groups:
        part = list(islice(pairs, len(group)))
        leaves += [value for value, _ in part]
        leaves += [
            zeros(strong(spec_of(value))) if tangent is None else tangent
            for value, tangent in chosen(part, group)
        ]
    return leaves


def ungrouped(leaves: Iterable[Any], groups: tuple[Flags, ...]) -> tuple[list[Any], list[Any]]:
    """All values, and all tangents, None for those that are not flagged."""
    each = iter(leaves)
    values: list[Any] = []
    tangents: list[Any] = []
    for group in groups:
        values += islice(each, len(group))
        tangents += [next(each) if flag else None for flag in group]
    return values, tangents


def group_sizes(groups: tuple[Flags, ...]) -> list[int]:
    return [len(group) + sum(group) for group in groups]


def moves(tangents: Iterable[Any]) -> Flags:
    return tuple(tangent is not None for tangent in tangents)


def spread(flags: Flags, step: Callable[[Flags], Flags]) -> Flags:
    """What a flag of a loop's carry reaches in any number of steps."""
    while True:
        after = tuple(a or b for a, b in zip(flags, step(flags), strict=True))
        if after == flags:
            return flags
        flags = after


# Lanes.


def with_lanes(value: Any, size: int) -> Any:
    """The same value in every lane."""
    return np.broadcast_to(value, (size, *shape_of(value)))


def with_lanes_where(
    values: Sequence[Any], mapped: Sequence[bool], wanted: Sequence[bool], size: int
) -> list[Any]:
    """All values, the wanted ones with lanes, whether they had them or not."""
    return [
        with_lanes(value, size) if want and not maps else value
        for value, maps, want in zip(values, mapped, wanted, strict=True)
    ]


def lend(mask: Any, value: Any) -> Any:
    """The value with that of a lane in the mask for all lanes that are not in it.

    A function is thus never asked for values, or for derivatives, where it was not meant to be: a
    zero cotangent times an infinite derivative would be nan.
    """
    lane = np.argmax(mask)
    # A plain array cannot be indexed by a traced number: that is for the primitive.
    lent = getitem(value, (lane,)) if isinstance(lane, Tracer) else value[lane]
    return select(mask, value, lent)


def select(mask: Any, one: Any, other: Any) -> Any:
    """Lane by lane one or the other."""
    ndim = max(len(shape_of(one)), len(shape_of(other)))
    return np.where(np.reshape(mask, shape_of(mask) + (1,) * (ndim - 1)), one, other)
