"""The carry of a loop: its structure, shapes and dtypes stay the same from step to step."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.procedures import Flattened, Procedure, Split, close, staged
from functrans.core import errors, tree
from functrans.core.custody import lent_copy
from functrans.core.likeness import is_weak
from functrans.core.shapes import PYTHON_SCALARS, ArraySpec, checked_length, dtype_of, spec_of
from functrans.core.summation import FEW, WIDER
from functrans.core.views import is_array_not_number
from functrans.transforms.leaves import Flags, cast_up, chosen, common_spec, described

_NUMBERS = frozenset({float, np.float64, np.float32})  # for which the type is all there is to check


def check_carry(name: str, body: Callable[..., Any], before: Any, after: Any) -> bool:
    """Refuse a step that changes the structure, a shape or a dtype, except the dtype of a Python scalar.

    Returns whether the step keeps the order of keys. If not, `in_order` has to restore it after each step,
    so that all steps see the same order, as they do in a graph.
    """
    if type(before) is type(after) and type(before) in _NUMBERS:
        return True
    given, structure = tree.flatten(before)
    found, new_structure = tree.flatten(after)
    for leaf in found:
        if not tree.is_array(leaf):
            tree.check_array(leaf, f"{name}: the carry that {errors.describe(body)} returns")
    if structure != new_structure or None in map(
        common_spec, map(spec_of, given), map(spec_of, found)
    ):
        raise _mismatch(name, body, before, after)
    return tree.keys_in_order(before) == tree.keys_in_order(after)


def in_order(carry: Any, structure: Any) -> Any:
    """A carry with its keys in the order that they have in an equal structure."""
    return tree.unflatten(structure, tree.leaves(carry))


def takes_other_dtypes(start: list[Any], after: Any) -> bool:
    """Whether a Python number that the loop starts with has another dtype after a step."""
    if not any(map(is_weak, start)):
        return False
    pairs = zip(start, tree.leaves(after), strict=True)
    return any(is_weak(one) and dtype_of(one) != dtype_of(other) for one, other in pairs)


def fitted_carry(start: list[Any], after: Any, structure: Any) -> Any:
    """The start with its Python numbers in the dtypes that they have after a step."""
    pairs = zip(start, tree.leaves(after), strict=True)
    return tree.unflatten(
        structure,
        [_converted(one, other) if is_weak(one) else lent_copy(one) for one, other in pairs],
    )


def _converted(number: Any, like: Any) -> Any:
    """A Python number as one of the type or dtype of another value."""
    if type(like) in PYTHON_SCALARS and type(number) in PYTHON_SCALARS:
        return type(like)(number)
    return cast_up(number, dtype_of(like))


def _mismatch(name: str, body: Callable[..., Any], before: Any, after: Any) -> errors.CarryError:
    return errors.CarryError(
        f"{name}: {errors.describe(body)} changes the structure, shapes or dtypes of the values that the "
        f"loop carries, at {errors.user_location()}.\n"
        f"  it takes     {described(before)}\n"
        f"  and returns  {described(after)}\n"
        "Start with an initial value of the form that the body returns."
    )


def close_body(
    name: str,
    body: Callable[..., Any],
    flattened: Flattened,
    carry: list[ArraySpec],
    rest: Sequence[ArraySpec],
    structure: Any,
    start: Sequence[Any],
    closing: Callable[..., Any] = close,
) -> tuple[Procedure, list[Any], list[ArraySpec]]:
    """A body as a procedure, made by `closing`, the values it closes over, and the specs of the carry.

    `flattened` returns a pair, the carry and the rest. Python scalars take the dtype that the body
    gives them, so it may have to be written down again for that; and the body sees an array without axes
    only if the loop starts with one, and the body returns one.
    """
    given: list[Any] = [*start, *rest]
    while True:
        procedure, captured = closing(flattened, [*carry, *rest], given=given)
        found = procedure.outputs
        after = flattened.out_structure.child(0)
        joint = list(map(common_spec, carry, found))
        if after != structure or None in joint:
            before = tree.unflatten(structure, carry)
            raise _mismatch(name, body, before, flattened.rebuild(found)[0])
        numbers = [
            k
            for k, spec in enumerate(carry)
            if not spec.shape and is_array_not_number(given[k]) and k not in procedure.arrays
        ]
        for k in numbers:
            given[k] = carry[k]
        if joint == carry and not numbers:
            specs = (*carry, *found[len(carry) :])
            return procedure.cast(specs), captured, carry
        carry = [spec for spec in joint if spec is not None]


def checked_counts(counts: Any, total: int) -> tuple[int, int]:
    """The sizes of two groups among this many arguments."""
    if type(counts) is not tuple or sum(map(checked_length, counts)) > total:
        raise ValueError(f"{counts!r} are not the sizes of groups of {total} arguments")
    first, second = counts
    return first, second


def parts(values: Any, counts: tuple[int, int]) -> tuple[Any, Any, Any]:
    """The arguments of a loop: two groups of these sizes, and the rest."""
    first, second = counts[0], sum(counts)
    return values[:first], values[first:second], values[second:]


# The backward steps of loops.


def summed(spec: ArraySpec, length: int | None) -> ArraySpec:
    """The spec of a running sum of `length` arrays, or of an unknown number of them."""
    many = length is None or length > FEW or spec.dtype == np.float16
    wider = WIDER.get(spec.dtype) if many else None
    return spec if wider is None else ArraySpec(spec.shape, wider)


def backward_step(
    split: Split, fixed: Flags, sums: Sequence[ArraySpec], carry: Sequence[ArraySpec]
) -> Procedure:
    """One step backward: the second half of a body, and the running sums of what it gives to constants.

    It takes the `fixed` residuals, which are the same in all steps, then the sums, the cotangents of the
    carry, the other residuals, and the cotangents of what the step has given out. It returns new sums, new
    cotangents of the carry, and cotangents of the rows.
    """
    known, a, b = sum(fixed), len(sums), len(carry)

    def step(*leaves: Any) -> list[Any]:
        once, totals = iter(leaves[:known]), leaves[known : known + a]
        cotangents, each = leaves[known + a : known + a + b], iter(leaves[known + a + b :])
        residuals = [next(once) if is_fixed else next(each) for is_fixed in fixed]
        found = split.backward(*residuals, *cotangents, *each)
        return [*map(operator.add, totals, found[:a]), *found[a:]]

    given = split.backward.inputs
    residual_specs = given[: len(fixed)]
    varying = tuple(not is_fixed for is_fixed in fixed)
    inputs = [
        *chosen(residual_specs, fixed),
        *sums,
        *carry,
        *chosen(residual_specs, varying),
        *given[len(fixed) + b :],
    ]
    return staged(step, inputs)
