"""while_loop and fori_loop: loops of any length that a graph can hold.

Where values are known, they run as Python loops. Where they are not, because a function is being staged,
or where the lanes of a `vmap` leave at different times, test and body become procedures, and the loop one
primitive. Loops of known length are in scanning.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.calling import Pullback, call, floating_cotangents
from functrans.control.carries import (
    check_carry,
    checked_counts,
    close_body,
    in_order,
    parts,
)
from functrans.control.procedures import (
    Flattened,
    Procedure,
    check_fit,
    checked_outputs,
    close,
    close_all,
    staged,
)
from functrans.control.scanning import scan
from functrans.core import errors, tree
from functrans.core.custody import lent_copy, own, own_place
from functrans.core.dispatch import concrete
from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.shapes import ArraySpec, dtype_of, shape_of, spec_of
from functrans.interpreters.batch import Batch
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import (
    agree,
    bare,
    chosen,
    described,
    fitted,
    flat,
    grouped,
    is_known,
    is_moving,
    is_staging,
    lanes_of,
    lend,
    moves,
    select_lanes,
    spread,
    strong,
    tracked,
    ungrouped,
    with_lanes_where,
)


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """`while cond(state): state = body(state)`, from state = init, even where values are not known.

    Outside of staging this is Python's `while`. In a graph it is one equation that holds test and body.
    It can be differentiated in both modes; in a graph, reverse mode runs the loop a second time and
    stores the residuals of every step. Under `vmap`, each lane stops when its test is false.

    Parameters
    ----------
    cond : callable
        cond(state) -> one bool.
    body : callable
        body(state) -> the next state, of the same structure, shapes and dtypes.
    init : pytree of arrays

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, vmap, while_loop
    >>> def root(x):  # Newton's method
    ...     far = lambda y: np.abs(y * y - x) > 1e-12 * x
    ...     return while_loop(far, lambda y: (y + x / y) / 2, x)
    >>> vmap(grad(root))(np.array([1.0, 4.0, 100.0])).round(6)
    array([1.  , 0.25, 0.05])
    """
    return _while(cond, body, init, close_all)


def solver_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The same for the loops of solvers, which are not differentiated.

    In a graph, operations on values from outside the loop alone are hoisted: they run once, before it.
    """
    return _while(cond, body, init, close)


def _while(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, closing: Callable[..., Any]
) -> Any:
    cond = check_callable(cond, "while_loop")
    body = check_callable(body, "while_loop")
    leaves, structure = flat(init, "while_loop: the initial state")
    place = [
        tree.unflatten(structure, map(lent_copy, leaves))
    ]  # holds the state; nothing else refers to it
    refused: errors.StagingError | None = None  # set if the functions read values
    if is_staging() or not all(map(is_known, leaves)):
        try:
            return _staged_loop(cond, body, place[0], closing)
        except errors.StagingError as error:
            refused = error
    keeps_order: bool | None = None
    while True:
        truth = cond(place[0])
        if type(truth) is not bool and type(truth) is not np.bool_:
            truth = _truth(truth, cond)
            if not agree(lanes_of(truth)) and refused is None:
                try:
                    return _staged_loop(cond, body, place[0], closing)
                except errors.StagingError as error:
                    refused = error
            try:
                truth = concrete(truth)  # lanes of a vmap that disagree split here
            except errors.StagingError as error:
                raise refused or error from None
        if not truth:
            return place[0]
        if keeps_order is None:
            before = place[0]
            place[0] = body(before)
            keeps_order = check_carry("while_loop", body, before, place[0])
            del before
        else:
            place[0] = body(place[0])
        if not keeps_order:
            place[0] = in_order(place[0], structure)
        own_place(place)


def _truth(value: Any, cond: Callable[..., Any]) -> Any:
    value, _ = tree.unboxed(value)
    if not tree.is_array(value) or shape_of(value) != ():
        found = described(value) if tree.is_array(value) else type(value).__name__
        raise errors.CarryError(
            f"while_loop: {errors.describe(cond)} must return one bool, but returned {found}, at "
            f"{errors.user_location()}. Reduce it with np.any or np.all."
        )
    return value if dtype_of(value).kind == "b" else np.not_equal(value, 0)


def _staged_loop(
    cond: Callable[..., Any], body: Callable[..., Any], state: Any, closing: Callable[..., Any]
) -> Any:
    """The loop as one primitive, applied to the values its functions close over, and the state."""
    leaves, structure = tree.flatten(state)
    arguments = tree.structure((state,))
    step = Flattened(lambda state: (body(state), None), arguments, "while_loop", body)
    run, run_captured, specs = close_body(
        "while_loop", body, step, [spec_of(leaf) for leaf in leaves], (), structure, leaves, closing
    )
    test, test_captured = close(
        Flattened(lambda state: _truth(cond(state), cond), arguments, "while_loop"), specs
    )
    results = loop(
        *test_captured,
        *run_captured,
        *map(fitted, leaves, specs),
        test=test,
        body=run,
        counts=(len(test_captured), len(run_captured)),
    )
    results = list(results)
    return tree.unflatten(structure, own(results))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """`for i in range(lower, upper): state = body(i, state)`, from state = init.

    Outside of staging this is Python's `for`. The limits may be traced; the loop is then a `while_loop`.
    If they are plain numbers, it becomes a `scan` in a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import fori_loop, grad, vmap
    >>> def power(x, n):
    ...     return fori_loop(0, n, lambda i, y: y * x, 1.0)
    >>> vmap(grad(power))(np.array([2.0, 2.0]), np.array([3, 5]))
    array([12., 80.])
    """
    body = check_callable(body, "fori_loop")
    limits = []
    for limit, what in ((lower, "lower"), (upper, "upper")):
        tree.check_array(limit, f"fori_loop: the {what} limit")
        if shape_of(limit) != () or dtype_of(limit).kind not in "iu":
            raise errors.InputTypeError(
                f"fori_loop: the {what} limit must be one integer, not {described(limit)}, at "
                f"{errors.user_location()}. Convert it: int(n), or n.astype(int)."
            )
        if type(limit) is int and not -(2**63) <= limit < 2**63:
            raise errors.InputTypeError(
                f"fori_loop: the {what} limit {limit} has more than 64 bits, at "
                f"{errors.user_location()}."
            )
        lanes = lanes_of(limit)
        limits.append(int(lanes.flat[0]) if agree(lanes) else None)
    start, stop = limits
    if start is not None and stop is not None:
        if is_staging() or not all(map(is_known, tree.leaves(init))):
            step = lambda carry, _: ((carry[0] + 1, body(*carry)), None)
            return scan(step, (start, init), None, length=max(stop - start, 0))[0][1]
        leaves, structure = flat(init, "fori_loop: the initial state")
        place = [tree.unflatten(structure, map(lent_copy, leaves))]  # holds the state
        keeps_order = True
        if start < stop:
            before = place[0]
            place[0] = body(start, before)
            keeps_order = check_carry("fori_loop", body, before, place[0])
            del before
        for i in range(start + 1, stop):
            if not keeps_order:
                place[0] = in_order(place[0], structure)
            own_place(place)
            place[0] = body(i, place[0])
        if not keeps_order:
            place[0] = in_order(place[0], structure)
        own_place(place)
        return place[0]
    in_range = lambda carry: carry[0] < upper
    return while_loop(in_range, lambda carry: (carry[0] + 1, body(*carry)), (lower, init))[1]


# The primitive: loop(*test_constants, *body_constants, *state, test=, body=, counts=).


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


def _unrolled(*args: Any, test: Procedure, body: Procedure, counts: tuple[int, int]) -> list[Any]:
    """The same with Python's own test: lanes that disagree split."""
    test_constants, body_constants, state = parts(args, counts)
    while concrete(test(*test_constants, *state)[0]):
        state = body(*body_constants, *state)
    return list(state)


def _push(args: Any, tangents: Any, params: Any) -> Any:
    test, body, (first, second) = params["test"], params["body"], params["counts"]
    moving, started = moves(tangents[first : first + second]), moves(tangents[first + second :])
    carried = spread(started, lambda flags: body.moved(moving + flags))
    groups = (moving, carried)
    tangent_specs = [strong(spec) for spec in chosen(body.outputs, carried)]
    results = compute(
        loop,
        *args[:first],
        *grouped(args[first:], tangents[first:], groups),
        test=staged(
            lambda *leaves: test(*leaves[: len(test.inputs)]), (*test.inputs, *tangent_specs)
        ),
        body=body.pushed(groups, (carried,)),
        counts=(first, second + sum(moving)),
    )
    return ungrouped(results, (carried,))


def _trace(mask: int, args: Any, params: Any) -> Any:
    outs = compute(loop, *args, **params)
    if not any(map(is_moving, params["body"].outputs)):
        return outs, None, None
    return outs, _pull, (tracked(mask, len(args)), args, params)


def _pull(cotangents: Any, saved: Any) -> Any:
    # The number of residuals is known only when the steps run, so the loop runs again, on a tape.
    active, args, params = saved

    def while_loop(*leaves: Any) -> list[Any]:
        return _unrolled(*leaves, **params)

    specs = tuple(strong(spec_of(arg)) for arg in chosen(args, active))
    leaves = [*args, *floating_cotangents(cotangents, params["body"].outputs)]
    return bare(call(*leaves, function=Pullback(while_loop, active), specs=specs))


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    test, body, counts = params["test"], params["body"], params["counts"]
    test_constants, body_constants, state = parts(args, counts)
    test_mapped, body_mapped, state_mapped = parts(batched, counts)
    carried = spread(state_mapped, lambda flags: body.batched(body_mapped + flags, batch)[1])
    size = batch.size
    if test.batched(test_mapped + carried, batch)[1] == (True,):
        every = (True,) * len(state)
        state = with_lanes_where(state, state_mapped, every, size)
        return _batch_parting(test_constants, body_constants, state, batched, batch, params)
    state = with_lanes_where(state, state_mapped, carried, size)
    results = loop(
        *test_constants,
        *body_constants,
        *state,
        test=test.batched(test_mapped + carried, batch)[0],
        body=body.batched(body_mapped + carried, batch, carried)[0],
        counts=counts,
    )
    return with_lanes_where(results, carried, (True,) * len(state), size)


def _batch_parting(
    test_constants: Any, body_constants: Any, state: Any, batched: Any, batch: Batch, params: Any
) -> Any:
    """Lanes that are done keep their state; they continue on values borrowed from the other lanes."""
    counts = params["counts"]
    test_mapped, body_mapped, _ = parts(batched, counts)
    every = (True,) * len(state)
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

    tested, stepped = test.inputs, body.inputs
    return loop(
        *test_constants,
        *test_constants,
        *body_constants,
        *state,
        test=staged(going_on, tested),
        body=staged(step, (*tested[:first], *stepped)),
        counts=(first, first + second),
    )


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
