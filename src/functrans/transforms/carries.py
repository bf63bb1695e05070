"""What a loop carries from step to step: its structure, shapes and dtypes stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.shapes import ArraySpec, spec_of
from functrans.transforms.leaves import common_spec, described
from functrans.transforms.procedures import Flattened, Procedure, close

_NUMBERS = frozenset({float, np.float64, np.float32})  # whose type says all there is to check


def owned(leaf: Any) -> Any:
    """A start that the body may change in place without changing the caller's."""
    if type(leaf) is np.ndarray:
        return leaf.copy()
    return leaf.snapshot() if isinstance(leaf, Tracer) else leaf


def check_carry(name: str, body: Callable[..., Any], before: Any, after: Any) -> None:
    """Refuse a step that changes the structure, a shape or a dtype; a Python scalar may change its."""
    if type(before) is type(after) and type(before) in _NUMBERS:
        return
    given, structure = tree.flatten(before)
    found, new_structure = tree.flatten(after)
    for leaf in found:
        if not tree.is_array(leaf):
            tree.check_array(leaf, f"{name}: the carry that {errors.describe(body)} returns")
    if structure != new_structure or None in map(
        common_spec, map(spec_of, given), map(spec_of, found)
    ):
        raise _mismatch(name, body, before, after)


def _mismatch(name: str, body: Callable[..., Any], before: Any, after: Any) -> errors.CarryError:
    return errors.CarryError(
        f"{name}: {errors.describe(body)} changes what the loop carries, at {errors.user_location()}.\n"
        f"  it is given  {described(before)}\n"
        f"  and returns  {described(after)}\n"
        "Structure, shapes and dtypes have to stay the same: change the initial value, or convert "
        "with .astype or np.reshape in the body."
    )


def close_body(
    name: str,
    body: Callable[..., Any],
    flattened: Flattened,
    carry: list[ArraySpec],
    rest: Sequence[ArraySpec],
    structure: Any,
    closing: Callable[..., Any] = close,
) -> tuple[Procedure, list[Any], list[ArraySpec]]:
    """A body as a procedure, by `closing`, what it closes over, and the specs of the carry.

    `flattened` returns a pair, the carry and the rest. Python scalars take the dtype that the body
    gives them, so it may have to be written down again for that.
    """
    while True:
        procedure, captured = closing(flattened, [*carry, *rest])
        found = procedure.outputs
        after = flattened.out_structure.child(0)
        joint = list(map(common_spec, carry, found))
        if after != structure or None in joint:
            before = tree.unflatten(structure, carry)
            raise _mismatch(name, body, before, flattened.rebuild(found)[0])
        if joint == carry:
            specs = (*carry, *found[len(carry) :])
            return procedure.cast(specs), captured, carry
        carry = [spec for spec in joint if spec is not None]


def parts(values: Any, counts: tuple[int, int]) -> tuple[Any, Any, Any]:
    """The arguments of a loop: two groups of these sizes, and the rest."""
    first, second = counts[0], sum(counts)
    return values[:first], values[first:second], values[second:]
