"""scan: a loop over the first axis of arrays.

Where values are known, `scan` is a Python loop. Where they are not, because a function is being staged,
the body becomes a procedure, and the loop one primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from functrans.control.carries import (
    backward_step,
    check_carry,
    checked_counts,
    close_body,
    fitted_carry,
    in_order,
    parts,
    summed,
    takes_other_dtypes,
)
from functrans.control.procedures import (
    Flattened,
    Procedure,
    check_fit,
    checked_outputs,
    close,
    close_all,
)
from functrans.core import errors, tree
from functrans.core.custody import kept_in_tracer, lent_copy, own, own_place
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import (
    ArraySpec,
    cast,
    checked_flags,
    checked_length,
    dtype_of,
    shape_of,
    spec_of,
)
from functrans.core.views import in_form
from functrans.interpreters.batch import Batch
from functrans.transforms.arguments import (
    check_callable,
    flatten_argument,
    unflatten_argument,
    what_it_is,
)
from functrans.transforms.leaves import (
    bare,
    cast_up,
    chosen,
    fitted,
    flat,
    group_sizes,
    grouped,
    is_known,
    is_staging,
    moves,
    results_in_lanes,
    spread,
    strong,
    tracked,
    ungrouped,
    with_lanes_where,
    zeros,
)

_ndarray = np.ndarray
_NUMBERS = (np.generic, float, int)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    """Loop over the first axis of `xs`, carrying a state: (state, y) = f(state, x) for each x.

    Outside of staging this is a Python loop. In a graph it is one equation that holds the body, and so
    is its derivative in either mode; reverse mode stores the residuals of every step.

    Parameters
    ----------
    f : callable
        f(carry, x) -> (carry, y), with a carry of the same structure, shapes and dtypes. A Python number in
        `init` takes the dtype that f gives it.
    init : pytree of arrays
        The initial carry.
    xs : pytree of arrays, or None
        The arrays to loop over, all of the same length. If None, each x is None.
    length : int, optional
        The number of steps; needed if `xs` is None.
    reverse : bool
        Whether to run from last to first. The ys are in the order of the xs either way.
    unroll : int
        How many steps a compiled loop may run at a time. It does not change the result.

    Returns
    -------
    tuple
        The final carry, and the stacked ys.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import scan
    >>> total, sums = scan(lambda total, x: (total + x, total + x), 0.0, np.arange(4.0))
    >>> float(total), sums
    (6.0, array([0., 1., 3., 6.]))
    """
    f = check_callable(f, "scan")
    if not is_plain(unroll, (int, np.integer)) or unroll < 1:
        raise errors.OptionError(
            f"scan: unroll must be a positive int, not {unroll!r}, at {errors.user_location()}."
        )
    leaves, structure = flat(init, "scan: the initial carry")
    rows, row_structure = flat(xs, "scan: an array of xs")
    steps = length_of(rows, length, "scan")
    known = all(map(is_known, (*leaves, *rows)))
    if is_staging() or not known or steps == 0:
        try:
            settings = {"length": steps, "reverse": bool(reverse), "unroll": int(unroll)}
            return _staged_scan(f, leaves, structure, rows, row_structure, settings)
        except errors.StagingError:  # the body reads values: perhaps they can be computed
            if steps == 0:
                raise
    return _eager_scan(f, leaves, structure, rows, row_structure, steps, reverse)


def length_of(rows: list[Any], length: int | None, name: str) -> int:
    lengths = [shape_of(row)[0] if shape_of(row) else None for row in rows]
    if None in lengths:
        raise errors.MappedAxisError(
            f"{name}: a leaf of xs is a number, which has no axis to loop over, at "
            f"{errors.user_location()}. Close over values that all steps share."
        )
    if length is not None:
        if not is_plain(length, (int, np.integer)) or length < 0:
            raise errors.OptionError(
                f"{name}: length must be a non-negative int, not {length!r}, at "
                f"{errors.user_location()}."
            )
        lengths.append(int(length))
    if not lengths:
        raise errors.OptionError(
            f"{name} needs the number of steps if there are no xs, at {errors.user_location()}. Pass "
            "length=n."
        )
    if len(set(lengths)) > 1:
        found = ", ".join(str(spec_of(row)) for row in rows)
        given = "" if length is None else f", and length is {length}"
        raise errors.MappedAxisError(
            f"{name}: the first axes of xs have different lengths: {found}{given}, at "
            f"{errors.user_location()}. Give all of them the same length."
        )
    return int(lengths[0])  # type: ignore[arg-type]


def _eager_scan(
    f: Callable[..., Any],
    leaves: list[Any],
    structure: Any,
    rows: list[Any],
    row_structure: Any,
    steps: int,
    reverse: bool,
) -> Any:
    place = [tree.unflatten(structure, [lent_copy(leaf) for leaf in leaves])]  # holds the carry
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    entries = _entries([_read_only(row) for row in rows], row_structure, order)
    # The first step shows what the others do, so the loop itself looks at little.
    before, first = place[0], next(entries)
    place[0], y = _pair(f(before, first), f)
    if not check_carry("scan", f, before, place[0]):
        place[0], f = in_order(place[0], structure), _in_order(f, structure)
    retyped = y is not None and takes_other_dtypes(leaves, place[0])
    if retyped and steps == 1:  # no other step shows of which dtype the y is
        place[0], y = f(fitted_carry(leaves, place[0], structure), first)
    del before, first
    if y is None:
        own_place(place)
        for x in entries:
            place[0], y = f(place[0], x)
            if y is not None:
                raise _unlike(None, y, f)
            own_place(place)
        return place[0], None
    ys = [_kept(y)]
    keep = ys.append
    number = type(y) if is_plain(y, _NUMBERS) else None
    y = None
    own_place(place)
    for x in entries:
        place[0], y = f(place[0], x)
        if type(y) is _ndarray:
            keep(y.copy())
        else:
            keep(
                y if type(y) is number else kept_in_tracer(y) if isinstance(y, Tracer) else _kept(y)
            )
        y = None
        own_place(place)
    if retyped and steps > 1:
        ys[0] = _typed_like(ys[0], ys[1])
    return place[0], _stacked(ys[::-1] if reverse else ys, f)


def _in_order(f: Callable[..., Any], structure: Any) -> Callable[..., Any]:
    """The body, with the keys of the carry that it returns in the order of the structure."""

    @wraps(f)
    def body(carry: Any, x: Any) -> Any:
        following, y = _pair(f(carry, x), f)
        return in_order(following, structure), y

    return body


def _entries(rows: list[Any], structure: Any, order: range) -> Iterator[Any]:
    """The xs of the steps, one after another."""
    if not rows:
        return (tree.unflatten(structure, ()) for _ in order)
    if structure.is_leaf():
        (row,) = rows
        if isinstance(row, Tracer):
            traced: Any = row
            return (traced[k] for k in order)
        return iter(row[::-1] if order.step < 0 else row)
    return (tree.unflatten(structure, [row[k] for row in rows]) for k in order)


def _stacked(ys: list[Any], f: Callable[..., Any]) -> Any:
    """Trees of the same structure, stacked into one whose arrays have one more axis."""
    first, structure = flatten_argument(ys[0])
    if not first:
        return ys[0]
    for leaf in first:
        tree.check_array(leaf, "scan: a y")
    if structure is None and len(kinds := set(map(type, ys))) == 1:  # the common case
        if kinds <= {np.float64, np.ndarray}:
            with suppress(ValueError):  # different shapes, which np.stack explains better
                return np.array(ys)  # several times faster
        return np.stack(ys)
    columns = [[leaf] for leaf in first]
    for y in ys[1:]:
        leaves, found = flatten_argument(y)
        if found != structure:
            raise _unlike(ys[0], y, f)
        for column, leaf in zip(columns, leaves, strict=True):
            column.append(leaf)
    return unflatten_argument(structure, [np.stack(column) for column in columns])


def _typed_like(y: Any, following: Any) -> Any:
    """The y of the first step, in the dtypes of the next one's.

    In the first step a Python number was carried, which then took another dtype. In a graph all steps carry
    that dtype.
    """
    first, structure = tree.flatten(y)
    later, other = tree.flatten(following)
    if structure != other:
        return y  # which `_stacked` refuses
    return tree.unflatten(
        structure, [cast_up(one, dtype_of(two)) for one, two in zip(first, later, strict=True)]
    )


def _unlike(one: Any, other: Any, f: Callable[..., Any]) -> errors.CarryError:
    return errors.CarryError(
        f"scan: {errors.describe(f)} returns ys of different structures: "
        f"{tree.shown(tree.structure(other))} and {tree.shown(tree.structure(one))}, at "
        f"{errors.user_location()}. Return the same containers in every step."
    )


def _pair(out: Any, f: Callable[..., Any]) -> Any:
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise errors.CarryError(
            f"scan: {errors.describe(f)} must return a pair (carry, y), but returned "
            f"{what_it_is(out)}, at {errors.user_location()}. Return (carry, None) if there is no y."
        )
    return out


def _read_only(row: Any) -> Any:
    """Rows that the body cannot change in the caller's arrays."""
    if isinstance(row, Tracer):
        return row.snapshot()
    row = np.asarray(row).view()
    row.flags.writeable = False
    return row


def _kept(y: Any) -> Any:
    """A y that later steps cannot change: they may change the carry in place."""
    if is_plain(y, _NUMBERS):
        return y
    return tree.map(
        lambda leaf: leaf.copy() if type(leaf) is np.ndarray else kept_in_tracer(leaf), y
    )


def _staged_scan(
    f: Callable[..., Any],
    leaves: list[Any],
    structure: Any,
    rows: list[Any],
    row_structure: Any,
    settings: dict[str, Any],
) -> Any:
    arguments = tree.structure(
        (tree.unflatten(structure, leaves), tree.unflatten(row_structure, rows))
    )
    step = Flattened(lambda carry, x: tuple(_pair(f(carry, x), f)), arguments, "scan", f)
    body, constants, specs = close_body(
        "scan",
        f,
        step,
        [spec_of(leaf) for leaf in leaves],
        [ArraySpec(shape_of(row)[1:], row.dtype) for row in rows],
        structure,
        leaves,
        # Without a step, nothing of the body is to be computed, not even what is the same in all steps.
        close if settings["length"] else close_all,
    )
    results = along(
        *constants,
        *map(fitted, leaves, specs),
        *rows,
        body=body,
        counts=(len(constants), len(leaves)),
        **settings,
    )
    # Without a step the carry is still of the form that steps give it.
    results = [
        in_form(leaf, k in body.arrays) if k < len(leaves) and not specs[k].shape else leaf
        for k, leaf in enumerate(results)
    ]
    results = own(results)
    return tree.unflatten(structure, results[: len(leaves)]), step.rebuild(results)[1]


# The primitive: along(*constants, *carry, *rows, body=, counts=, length=, reverse=, unroll=).


def _impl(
    *args: Any, body: Procedure, counts: tuple[int, int], length: int, reverse: bool, unroll: int
) -> tuple[Any, ...]:
    constants, carry, rows = parts(args, counts)
    # Plain results are written into the output directly; traced ones are collected first.
    plain = length == 0 or not any(isinstance(arg, Tracer) for arg in args)
    columns: list[Any] = [
        np.empty((length, *y.shape), y.dtype) if plain else [None] * length
        for y in body.outputs[len(carry) :]
    ]
    for k in range(length - 1, -1, -1) if reverse else range(length):
        results = body(*constants, *carry, *[row[k] for row in rows])
        carry = results[: len(carry)]
        for column, y in zip(columns, results[len(carry) :], strict=True):
            column[k] = y
    return (*carry, *(columns if plain else map(np.stack, columns)))


def _shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    body, length = params["body"], checked_length(params["length"])
    checked_flags(params["reverse"])
    checked_length(params["unroll"])
    constants, carry, rows = parts(specs, checked_counts(params["counts"], len(specs)))
    if any(row.shape[:1] != (length,) for row in rows):
        raise ValueError(f"a scan of {length} steps goes along arrays of another length")
    entries = [ArraySpec(row.shape[1:], row.dtype) for row in rows]
    carried, outs = len(carry), checked_outputs(body, (*constants, *carry, *entries))
    check_fit(outs[:carried], carry)
    return (
        *outs[:carried],
        *(ArraySpec((length, *spec.shape), spec.dtype) for spec in outs[carried:]),
    )


def _push(args: Any, tangents: Any, params: Any) -> Any:
    body, counts = params["body"], params["counts"]
    constants, carry, rows = parts(moves(tangents), counts)
    n = counts[1]
    carried = spread(carry, lambda flags: body.moved(constants + flags + rows)[:n])
    groups = (constants, carried, rows)
    wanted = (carried, body.moved(constants + carried + rows)[n:])
    sizes = group_sizes(groups)
    results = compute(
        along,
        *grouped(args, tangents, groups),
        **{**params, "body": body.pushed(groups, wanted), "counts": (sizes[0], sizes[1])},
    )
    return ungrouped(results, wanted)


def _trace(mask: int, args: Any, params: Any) -> Any:
    body, counts = params["body"], params["counts"]
    constants, carry, _ = parts(args, counts)
    active = parts(tracked(mask, len(args)), counts)
    c, n = len(constants), len(carry)
    passing = range(c, c + n)
    carried = spread(
        active[1], lambda flags: body.split(active[0] + flags + active[2], passing).moving[:n]
    )
    flags = active[0] + carried + active[2]
    wanted = carried + body.split(flags, passing).moving[n:]
    if not any(wanted):
        return compute(along, *args, **params), None, None
    split = body.split(flags, passing, wanted)
    results = compute(along, *args, **{**params, "body": split.forward})
    outs, computed = results[: len(wanted)], iter(results[len(wanted) :])
    # Residuals that are constants are stored once, and those that are rows are stored already.
    fixed = [None if k is None or k >= c else args[k] for k in split.sources]
    stepped = [
        next(computed) if k is None else args[k] for k in split.sources if k is None or k >= c
    ]
    specs = [strong(spec_of(arg)) for arg in (*constants, *carry)]
    return outs, _pull, (split, fixed, stepped, (active, carried, wanted), specs, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    """The backward steps, which carry the carry's cotangents and the sums of those of the constants."""
    split, fixed, stepped, (active, carried, wanted), specs, params = saved
    body, length, n = params["body"], params["length"], len(carried)
    c = len(active[0])
    constants = [value for value in fixed if value is not None]
    carry_specs = chosen(specs[c:], carried)
    sum_specs = chosen(specs[:c], active[0])
    given = [
        zeros(spec) if cotangent is None else cotangent
        for cotangent, spec in zip(chosen(cotangents[:n], carried), carry_specs, strict=True)
    ]
    rows = [
        np.zeros((length, *spec.shape), spec.dtype) if cotangent is None else cotangent
        for cotangent, spec, want in zip(cotangents[n:], body.outputs[n:], wanted[n:], strict=True)
        if want
    ]
    # Sums over many steps are carried in a dtype wide enough not to lose digits.
    wide_specs = [summed(spec, length) for spec in sum_specs]
    a, b = len(sum_specs), len(carry_specs)
    is_fixed = tuple(value is not None for value in fixed)
    results = along(
        *constants,
        *map(zeros, wide_specs),
        *given,
        *stepped,
        *rows,
        body=backward_step(split, is_fixed, wide_specs, carry_specs),
        counts=(len(constants), a + b),
        length=length,
        reverse=not params["reverse"],
        unroll=params["unroll"],
    )
    sums = [cast(total, spec.dtype) for total, spec in zip(results[:a], sum_specs, strict=True)]
    from_carry = iter(results[a : a + b])
    back = [next(from_carry) if flag else None for flag in carried]
    return bare([*sums, *chosen(back, active[1]), *results[a + b :]])


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    body, counts = params["body"], params["counts"]
    constants, carry, rows = parts(args, counts)
    mapped = parts(batched, counts)
    n = len(carry)
    carried = spread(
        mapped[1], lambda flags: body.batched(mapped[0] + flags + mapped[2], batch)[1][:n]
    )
    flags = mapped[0] + carried + mapped[2]
    outs = carried + body.batched(flags, batch)[1][n:]
    started = with_lanes_where(carry, mapped[1], carried, batch.size)
    # The scanned axis comes first, the lanes second.
    turned = [
        np.swapaxes(row, 0, 1) if maps else row for row, maps in zip(rows, mapped[2], strict=True)
    ]
    results = along(
        *constants,
        *started,
        *turned,
        **{**params, "body": body.batched(flags, batch, outs)[0]},
    )
    columns = [
        np.swapaxes(ys, 0, 1) if maps else ys
        for ys, maps in zip(results[n:], outs[n:], strict=True)
    ]
    return results_in_lanes([*results[:n], *columns], outs, batch)


along = HigherOrder(
    "scan",
    _impl,
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=_shape,
    runs=lambda args: all(map(is_known, args)),
    holds_graphs=True,
    form=lambda params: [k for k in params["body"].arrays if k < params["counts"][1]],
)
