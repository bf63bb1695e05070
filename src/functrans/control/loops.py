"""while_loop and fori_loop: loops of any length that a graph can hold.

Where values are known, they run as Python loops. Where they are not, because a function is being staged,
or where the lanes of a `vmap` leave at different times, test and body become procedures, and the loop one
primitive of repeating.py. Loops of known length are in scanning.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.carries import (
    check_carry,
    close_body,
    in_order,
)
from functrans.control.procedures import (
    Flattened,
    close,
    close_all,
)
from functrans.control.repeating import loop
from functrans.control.scanning import scan
from functrans.core import errors, tree
from functrans.core.custody import lent_copy, own, own_place
from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of, spec_of
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import (
    agree,
    described,
    fitted,
    flat,
    is_known,
    is_staging,
    lanes_of,
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
