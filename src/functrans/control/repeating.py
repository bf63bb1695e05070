"""The primitives of loops that end by a test: `loop`, and `rewind`, its pullback.

A rewind runs the loop forward once more, with the residuals of every round in a record, and then backward
over the records. The number of rounds is known only when it runs, so no array of a graph could hold them.

Its own derivatives are rewinds again. Let L be the loop, with the derivative L'. For directions v of its
inputs, the pushed loop computes L(x) and L'(x) v. Its pullback with the seeds t and s gives the derivatives
of <t, L(x)> + <s, L'(x) v> by x and by v. The latter is the pullback of L itself, with the seeds s; the
former is the derivative of that pullback along v and t, which is what both modes need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.control.calling import floating_cotangents
from functrans.control.carries import backward_step, checked_counts, parts, summed
from functrans.control.procedures import Procedure, check_fit, checked_outputs, staged
from functrans.core.dispatch import concrete
from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.shapes import ArraySpec, cast, spec_of
from functrans.interpreters.batch import Batch
from functrans.transforms.leaves import (
    Flags,
    agree,
    bare,
    chosen,
    grouped,
    is_known,
    is_moving,
    lanes_of,
    lend,
    moves,
    results_in_lanes,
    select_lanes,
    spread,
    strong,
    tracked,
    ungrouped,
    with_lanes_where,
    zeros,
)

Loop = dict[str, Any]  # the parameters of a loop

# loop(*test_constants, *body_constants, *state, test=, body=, counts=).


def _impl(*args: Any, test: Procedure, body: Procedure, counts: tuple[int, int]) -> Any:
    test_constants, body_constants, state = parts(args, counts)
    while True:
        lanes = lanes_of(test(*test_constants, *state)[0])
        if not agree(lanes):
            rest = (*test_constants, *body_constants, *state)
            return Primitive.__call__(loop, *rest, test=test, body=body, counts=counts)
        if not lanes.flat[0]:
            return tuple(state)
        state = body(*body_constants, *state)


def _push(args: Any, tangents: Any, params: Any) -> Any:
    pushed, groups = _pushed(params, moves(tangents))
    results = compute(loop, *_with_tangents(args, tangents, groups, params), **pushed)
    return ungrouped(results, groups[1:])


def _pushed(params: Loop, moving: Flags) -> tuple[Loop, tuple[Flags, Flags]]:
    """The loop that carries tangents as well; and which constants and which parts of the state have one."""
    test, body, (first, second) = params["test"], params["body"], params["counts"]
    constants, started = moving[first : first + second], moving[first + second :]
    carried = spread(started, lambda flags: body.moved(constants + flags))
    groups = (constants, carried)
    tangent_specs = [strong(spec) for spec in chosen(body.outputs, carried)]
    pushed = {
        "test": staged(
            lambda *leaves: test(*leaves[: len(test.inputs)]), (*test.inputs, *tangent_specs)
        ),
        "body": body.pushed(groups, (carried,)),
        "counts": (first, second + sum(constants)),
    }
    return pushed, groups


def _with_tangents(
    args: Sequence[Any], tangents: Sequence[Any], groups: tuple[Flags, ...], params: Loop
) -> list[Any]:
    """The arguments of a pushed loop. What only the test reads has no tangents."""
    first = params["counts"][0]
    return [*args[:first], *grouped(args[first:], tangents[first:], groups)]


def _trace(mask: int, args: Any, params: Any) -> Any:
    outs = compute(loop, *args, **params)
    if not any(map(is_moving, params["body"].outputs)):
        return outs, None, None
    return outs, _pull, (tracked(mask, len(args)), args, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    active, args, params = saved
    seeds = floating_cotangents(cotangents, params["body"].outputs)
    return bare(_rewound(args, seeds, active, params))


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    leaves, inner, carried = _batched(args, batched, batch, params)
    return results_in_lanes(loop(*leaves, **inner), carried, batch)


def _batched(
    args: Sequence[Any], batched: Flags, batch: Batch, params: Loop
) -> tuple[list[Any], Loop, Flags]:
    """The loop for all lanes, its arguments, and which parts of its state have lanes."""
    test, body, counts = params["test"], params["body"], params["counts"]
    test_constants, body_constants, state = parts(args, counts)
    test_mapped, body_mapped, state_mapped = parts(batched, counts)
    carried = spread(state_mapped, lambda flags: body.batched(body_mapped + flags, batch)[1])
    parted = test.batched(test_mapped + carried, batch)[1] == (True,)
    if parted:
        carried = (True,) * len(state)
    state = with_lanes_where(state, state_mapped, carried, batch.size)
    if parted:
        # The body tests, too: the constants of the test come first, and again before its own.
        inner = _parting(batched, batch, params)
        return [*test_constants, *test_constants, *body_constants, *state], inner, carried
    inner = {
        "test": test.batched(test_mapped + carried, batch)[0],
        "body": body.batched(body_mapped + carried, batch, carried)[0],
        "counts": counts,
    }
    return [*test_constants, *body_constants, *state], inner, carried


def _parting(batched: Flags, batch: Batch, params: Loop) -> Loop:
    """Lanes that are done keep their state; they continue on values borrowed from the other lanes."""
    counts = params["counts"]
    test_mapped, body_mapped, state_mapped = parts(batched, counts)
    every = (True,) * len(state_mapped)
    test = params["test"].batched(test_mapped + every, batch, masked=True)[0]
    body = params["body"].batched(body_mapped + every, batch, every, masked=True)[0]
    first, second = counts

    def going_on(*leaves: Any) -> list[Any]:
        return [np.any(test(*leaves)[0])]

    def step(*leaves: Any) -> list[Any]:
        tested, constants, state = parts(leaves, counts)
        active = test(*tested, *state)[0]
        lent = [
            lend(active, leaf) if maps else leaf
            for leaf, maps in zip((*constants, *state), (*body_mapped, *every), strict=True)
        ]
        return [select_lanes(active, new, old) for new, old in zip(body(*lent), state, strict=True)]

    return {
        "test": staged(going_on, test.inputs),
        "body": staged(step, (*test.inputs[:first], *body.inputs)),
        "counts": (first, first + second),
    }


def _shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    counts = checked_counts(params["counts"], len(specs))
    test_constants, body_constants, state = parts(specs, counts)
    outs = checked_outputs(params["body"], (*body_constants, *state))
    (test,) = checked_outputs(params["test"], (*test_constants, *state))
    if test.shape:
        raise ValueError("the test of a loop gives more than one number")
    check_fit(outs, state)
    return outs


loop = HigherOrder(
    "while_loop",
    _impl,
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=_shape,
    runs=lambda args: all(map(is_known, args)),
    holds_graphs=True,
    form=lambda params: params["body"].arrays,
)


# rewind(*arguments of the loop, *seeds, ...) -> the cotangents of the active arguments. There is one seed for
# each floating part of the state.


def _rewound(args: Sequence[Any], seeds: Sequence[Any], active: Flags, params: Loop) -> Any:
    """The cotangents of the active ones among the arguments of a loop."""
    body, counts = params["body"], params["counts"]
    _, constants, state = parts(active, counts)
    c = len(constants)
    passing = range(c, c + len(state))
    carried = spread(state, lambda flags: body.split(constants + flags, passing).moving)
    split = body.split(constants + carried, passing, carried)
    sums = [summed(strong(spec), None) for spec in chosen(body.inputs[:c], constants)]
    carry = [strong(spec) for spec in chosen(body.inputs[c:], carried)]
    fixed = tuple(source is not None for source in split.sources)
    return rewind(
        *args,
        *seeds,
        test=params["test"],
        body=body,
        forward=split.forward,
        backward=backward_step(split, fixed, sums, carry),
        counts=counts,
        sources=tuple(split.sources),
        active=tuple(active),
        carried=carried,
    )


def _run_back(
    *args: Any,
    test: Procedure,
    body: Procedure,
    forward: Procedure,
    backward: Procedure,
    counts: tuple[int, int],
    sources: tuple[int | None, ...],
    active: Flags,
    carried: Flags,
) -> tuple[Any, ...]:
    count = len(active)
    tested, constants, state = parts(args[:count], counts)
    seeds = chosen(_of_state(args[count:], body), carried)
    records, n = [], len(state)
    while concrete(test(*tested, *state)[0]):
        results = forward(*constants, *state)
        state = results[:n]
        records.append(results[n:])
    fixed = [constants[k] for k in sources if k is not None]
    a = len(backward.outputs) - len(seeds)
    found = [*map(zeros, backward.outputs[:a]), *seeds]
    while records:
        found = backward(*fixed, *found, *records.pop())
    specs = [strong(spec_of(arg)) for arg in args[:count]]
    return tuple(cotangents_in_order(found[:a], found[a:], specs, counts, active, carried))


def _of_state(seeds: Sequence[Any], body: Procedure) -> list[Any]:
    """The seed of each part of the state; None for those that are not floating."""
    each = iter(seeds)
    return [next(each) if is_moving(spec) else None for spec in body.outputs]


def cotangents_in_order(
    sums: Sequence[Any],
    state_cotangents: Sequence[Any],
    specs: Sequence[ArraySpec],
    counts: tuple[int, int],
    active: Flags,
    carried: Flags,
) -> list[Any]:
    """The cotangents of the active arguments: of the test's there are none, so they are zero."""
    of_test, of_constants, _ = parts(tuple(zip(specs, active, strict=True)), counts)
    of_state = active[sum(counts) :]
    each, total = iter(state_cotangents), iter(sums)
    back = [next(each) if flag else None for flag in carried]
    return [
        *(zeros(spec) for spec, flag in of_test if flag),
        *(cast(next(total), spec.dtype) for spec, flag in of_constants if flag),
        *chosen(back, of_state),
    ]


def _shape_back(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    active, body = params["active"], params["body"]
    given, seeds = specs[: len(active)], specs[len(active) :]
    tested, constants, state = parts(given, checked_counts(params["counts"], len(given)))
    outs = checked_outputs(body, (*constants, *state))
    checked_outputs(params["test"], (*tested, *state))
    check_fit(seeds, [spec for spec in outs if is_moving(spec)])
    results = checked_outputs(params["forward"], (*constants, *state))
    check_fit(results[: len(state)], state)
    fixed = [constants[k] for k in params["sources"] if k is not None]
    carry = [strong(spec) for spec in chosen(state, params["carried"])]
    backward = params["backward"]
    sums = backward.outputs[: len(backward.outputs) - len(carry)]
    after = checked_outputs(backward, (*fixed, *sums, *carry, *results[len(state) :]))
    check_fit(after, (*sums, *carry))
    return [strong(spec) for spec in chosen(given, active)]


# Derivatives of rewind.


def _of_pushed(
    args: Sequence[Any],
    directions: Sequence[Any],
    seeds: tuple[Sequence[Any], Sequence[Any]],
    wanted: tuple[Flags, Flags],
    params: Loop,
) -> tuple[list[Any], list[Any]]:
    """The rewind of the pushed loop: the cotangents of its arguments, and of their directions.

    `seeds` are those of values and of tangents, where None is zero; `wanted` says which cotangents to
    compute. The others are None.
    """
    moving = tuple(
        direction is not None or want for direction, want in zip(directions, wanted[1], strict=True)
    )
    pushed, groups = _pushed(params, moving)
    leaves = _with_tangents(args, directions, groups, params)
    values_at, tangents_at = ([(k, kind) for k in range(len(args))] for kind in (False, True))
    places = _with_tangents(values_at, tangents_at, groups, params)
    active = tuple(wanted[is_tangent][k] for k, is_tangent in places)
    body = params["body"]
    values, tangents = (
        [
            zeros(strong(spec)) if seed is None and is_moving(spec) else seed
            for seed, spec in zip(_of_state(each, body), body.outputs, strict=True)
        ]
        for each in seeds
    )
    every = [*(seed for seed in values if seed is not None), *chosen(tangents, groups[1])]
    results = iter(_rewound(leaves, every, active, pushed))
    found: tuple[list[Any], list[Any]] = ([None] * len(args), [None] * len(args))
    for (k, is_tangent), flag in zip(places, active, strict=True):
        if flag:
            found[is_tangent][k] = next(results)
    return found


def _push_back(args: Any, tangents: Any, params: Any) -> Any:
    active = params["active"]
    count = len(active)
    of_values, of_directions = _of_pushed(
        args[:count],
        tangents[:count],
        (tangents[count:], args[count:]),
        (active, active),
        _loop_of(params),
    )
    outs = [  # what only the test reads has no direction
        zeros(strong(spec_of(arg))) if found is None else found
        for arg, found in zip(args, of_directions, strict=False)
    ]
    return chosen(outs, active), chosen(of_values, active)


def _loop_of(params: dict[str, Any]) -> Loop:
    return {name: params[name] for name in ("test", "body", "counts")}


def _trace_back(mask: int, args: Any, params: Any) -> Any:
    outs = compute(rewind, *args, **params)
    return outs, _pull_back, (tracked(mask, len(args)), args, params)


def _pull_back(cotangents: Any, saved: Any) -> Any:
    moving, args, params = saved
    active, inner = params["active"], _loop_of(params)
    count = len(active)
    each = iter(cotangents)
    directions = [next(each) if flag else None for flag in active]
    found: list[Any] = []
    if any(moving[:count]):
        none = [None] * (len(args) - count)
        wanted = moving[:count], (False,) * count
        of_values, _ = _of_pushed(args[:count], directions, (none, args[count:]), wanted, inner)
        found += chosen(of_values, moving[:count])
    if any(moving[count:]):
        # It is linear in its seeds, and its transpose is the forward derivative of the loop.
        pushed, groups = _pushed(inner, moves(directions))
        results = loop(*_with_tangents(args[:count], directions, groups, inner), **pushed)
        _, tangents = ungrouped(results, groups[1:])
        found += chosen(floating_cotangents(tangents, inner["body"].outputs), moving[count:])
    return bare(found)


def _batch_back(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    active, inner = params["active"], _loop_of(params)
    count, size = len(active), batch.size
    # Each lane has its own cotangents, so what they belong to gets lanes.
    mapped = tuple(a or b for a, b in zip(batched[:count], active, strict=True))
    given = with_lanes_where(args[:count], batched[:count], mapped, size)
    leaves, inner, carried = _batched(given, mapped, batch, inner)
    seeds = with_lanes_where(args[count:], batched[count:], (True,) * (len(args) - count), size)
    every = [
        # What has no lanes does not depend on anything active.
        seed if has_lanes else zeros(strong(spec))
        for seed, has_lanes, spec in zip(
            _of_state(seeds, params["body"]), carried, params["body"].outputs, strict=True
        )
        if seed is not None
    ]
    # The constants of the test may come twice; those before the others have no cotangents.
    skipped = len(leaves) - count
    return _rewound(leaves, every, (False,) * skipped + active, inner)


rewind = HigherOrder(
    "rewind",
    _run_back,
    push=_push_back,
    trace=_trace_back,
    batch=_batch_back,
    shape=_shape_back,
    holds_graphs=True,
)
