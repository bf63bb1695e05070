"""Flat lists of values: whether their values are known, their specs, and flags that choose some of them.

Loops and branches work on the leaves of the user's trees. A `Flags` has one bool per leaf: whether it has a
tangent, is differentiated, or is mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from functrans.core import tree
from functrans.core.dispatch import Tracer, is_plain, running_interpreters
from functrans.core.evaluate import as_constant
from functrans.core.primitive import InAllLanes
from functrans.core.primitive import bare as bare
from functrans.core.shapes import ArraySpec, cast, dtype_of, shape_of, spec_of
from functrans.core.subclasses import plain_array
from functrans.interpreters.batch import BatchTracer
from functrans.interpreters.stage import Stage, StageTracer, TangentStage
from functrans.ops.access import getitem
from functrans.ops.families import with_lanes

Flags = tuple[bool, ...]
Specs = tuple[ArraySpec, ...]


def flat(values: Any, what: str) -> tuple[list[Any], Any]:
    """The leaves of a tree of arrays, and its structure."""
    leaves, structure = tree.flatten(values)
    for leaf in leaves:
        tree.check_array(leaf, what)
    plain = [plain_array(x) if is_plain(x, np.ndarray) else as_constant(x) for x in leaves]
    return plain, structure


def described(values: Any) -> str:
    """A tree of values as a message shows it: (float64[3], int64[])."""
    return str(tree.map(lambda leaf: strong(spec_of(leaf)), values))


# Known values.


def lanes_of(value: Any) -> Any:
    """The plain values behind a tracer, for all lanes; None if they are not known."""
    while isinstance(value, Tracer):
        if value.interpreter.closed:
            value.interpreter.escaped()
        if type(value) is StageTracer:
            return None
        value = value.interpreter.hidden(value) if type(value) is BatchTracer else value.value
    return np.asarray(value)


def is_known(value: Any) -> bool:
    """Whether the value is not a variable of a graph that is being traced."""
    while isinstance(value, Tracer):
        if type(value) is StageTracer:
            return False
        value = value.value
    return True


def agree(lanes: Any) -> bool:
    """Whether values are known and the same in all lanes."""
    return lanes is not None and lanes.size > 0 and bool((lanes == lanes.flat[0]).all())


def is_staging() -> bool:
    """Whether this thread is tracing a function into a graph."""
    return any(
        isinstance(interpreter, Stage) and not isinstance(interpreter, TangentStage)
        for interpreter in running_interpreters()
    )


# Specs.


def strong(spec: ArraySpec) -> ArraySpec:
    """The spec of a tangent or cotangent of a value with this spec."""
    return ArraySpec(spec.shape, spec.dtype)


def is_moving(spec: ArraySpec) -> bool:
    return spec.dtype.kind in "fc"


def common_spec(one: ArraySpec, other: ArraySpec) -> ArraySpec | None:
    """A spec that holds values of both, or None. Only a Python scalar may change its dtype."""
    if one.shape != other.shape:
        return None
    if one.dtype == other.dtype:
        return one if not one.weak else other
    order = "biufc".index
    for weak, kept in ((one, other), (other, one)):
        if weak.weak and order(weak.dtype.kind) <= order(kept.dtype.kind):
            return kept
    return None


def cast_up(value: Any, dtype: np.dtype[Any]) -> Any:
    """Cast a value to a dtype of the same or a more general kind; for other dtypes, leave it unchanged."""
    order = "biufc".index
    given = dtype_of(value)
    fits = given != dtype and order(given.kind) <= order(dtype.kind)
    return cast(value, dtype) if fits else value


def fitted(value: Any, spec: ArraySpec) -> Any:
    """Convert a value to this spec, which may differ from its own only in a Python scalar's dtype."""
    given = spec_of(value)
    if given == spec:
        return value
    if spec.weak:  # a Python number of another type, such as the int that True becomes
        number = type(spec.dtype.type(0).item())
        return value * number(1) if isinstance(value, Tracer) else number(value)
    # A traced Python scalar needs an operation to become an array element, even of the same dtype.
    traced: Any = value
    return traced.astype(spec.dtype) if isinstance(value, Tracer) else cast(value, spec.dtype)


def zeros(spec: ArraySpec) -> Any:
    return np.zeros(spec.shape, spec.dtype)[()]


def zero_tangent(like: Any) -> Any:
    """Zeros for the tangent or cotangent of a value; floating point zeros for an integer."""
    dtype = dtype_of(like)
    return np.zeros(shape_of(like), dtype if dtype.kind in "fc" else float)[()]


def tracked(mask: int, count: int) -> Flags:
    return tuple(bool(mask >> k & 1) for k in range(count))


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


# Tangents next to values.


def grouped(values: Iterable[Any], tangents: Iterable[Any], groups: tuple[Flags, ...]) -> list[Any]:
    """Groups of values, each followed by the tangents of its flagged values."""
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
    """All values, and all tangents; None for values that are not flagged."""
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
    """The flags of a loop's carry after any number of steps."""
    while True:
        after = tuple(a or b for a, b in zip(flags, step(flags), strict=True))
        if after == flags:
            return flags
        flags = after


# Lanes.


def with_lanes_where(
    values: Sequence[Any], mapped: Sequence[bool], wanted: Sequence[bool], size: int
) -> list[Any]:
    """All values; those that are flagged get a mapped axis if they have none."""
    return [
        with_lanes(value, size) if want and not maps else value
        for value, maps, want in zip(values, mapped, wanted, strict=True)
    ]


def results_in_lanes(values: Sequence[Any], mapped: Sequence[bool], batch: Any) -> list[Any]:
    """The results of a batch rule; those that are the same in all lanes may stay without an axis."""
    if not batch.shares_results:
        return with_lanes_where(values, mapped, (True,) * len(mapped), batch.size)
    return [
        value if maps else InAllLanes(value) for value, maps in zip(values, mapped, strict=True)
    ]


def lend(mask: Any, value: Any) -> Any:
    """Replace the lanes outside the mask by a lane inside it.

    The function is then evaluated and differentiated only at points that the user's code reaches.
    Otherwise, a zero cotangent times an infinite derivative would be nan.
    """
    lane = np.argmax(mask)
    # A plain array cannot be indexed with a traced number; the primitive can.
    lent = getitem(value, (lane,)) if isinstance(lane, Tracer) else value[lane]
    return select_lanes(mask, value, lent)


def select_lanes(mask: Any, one: Any, other: Any) -> Any:
    """Lane by lane one or the other."""
    ndim = max(len(shape_of(one)), len(shape_of(other)))
    return np.where(np.reshape(mask, shape_of(mask) + (1,) * (ndim - 1)), one, other)
