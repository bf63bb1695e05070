"""Flat lists of arrays as vectors, for solvers: reading them, norms, and convergence warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import lent_copy
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.shapes import ArraySpec, cast, dtype_of, is_inexact, shape_of
from functrans.custom.callbacks import tap
from functrans.transforms.leaves import described, fitted, flat, strong


def floating_leaves(values: Any, what: str) -> tuple[list[Any], Any]:
    """The leaves of a tree as floating arrays, integers as float64; and its structure.

    They are copies: a solver may return its arguments, or change them.
    """
    leaves, structure = flat(values, what)
    specs = [
        ArraySpec(shape_of(leaf), dtype_of(leaf).newbyteorder("=") if is_inexact(leaf) else float)
        for leaf in leaves
    ]
    return [
        fitted(lent_copy(leaf), spec) for leaf, spec in zip(leaves, specs, strict=True)
    ], structure


def leaves_like(found: Any, specs: Sequence[ArraySpec], structure: Any, what: str) -> list[Any]:
    """The leaves of the result of a user's function, which must have these specs.

    Floating dtypes may differ and are converted, but a complex value is refused in place of a real one.
    """
    leaves, found_structure = tree.flatten(found)
    for leaf in leaves:
        tree.check_array(leaf, what)
    if found_structure != structure or any(
        shape_of(leaf) != spec.shape or (dtype_of(leaf).kind == "c" and spec.dtype.kind != "c")
        for leaf, spec in zip(leaves, specs, strict=True)
    ):
        raise errors.RuleError(
            f"{what} has the wrong structure, shape or dtype, at {errors.user_location()}.\n"
            f"  it must be  {tree.unflatten(structure, map(strong, specs))}\n"
            f"  but it is   {described(found)}"
        )
    return [cast(leaf, spec.dtype) for leaf, spec in zip(leaves, specs, strict=True)]


def norm(leaves: Sequence[Any]) -> Any:
    """The Euclidean norm of all entries."""
    parts = []
    for leaf in leaves:
        parts += [leaf.real, leaf.imag] if dtype_of(leaf).kind == "c" else [leaf]
    return np.sqrt(sum(np.sum(part * part) for part in parts))


def joined(leaves: Sequence[Any]) -> Any:
    """All entries as one vector, of a dtype that holds all of them."""
    parts = [np.reshape(leaf, (-1,)) for leaf in leaves]
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def parted(vector: Any, specs: Sequence[ArraySpec]) -> list[Any]:
    """The leaves of these specs, from the vector of their entries."""
    parts, start = [], 0
    for spec in specs:
        size = int(np.prod(spec.shape, dtype=int))
        part = vector if len(specs) == 1 else vector[start : start + size]
        part = cast(np.reshape(part, spec.shape), spec.dtype)
        parts.append(part if spec.shape else part[()])
        start += size
    return parts


def precision(leaves: Sequence[Any]) -> float:
    """The machine epsilon of the least precise leaf."""
    return max((float(np.finfo(dtype_of(leaf)).eps) for leaf in leaves), default=0.0)


def report(values: Sequence[Any], failed: Any, message: str, *numbers: Any) -> list[Any]:
    """The same values, with a ConvergenceWarning if they `failed`, as soon as that is known.

    The message is a sentence, formatted with the numbers, and advice. In a graph, the warning is raised
    each time it runs, and under `vmap` for each lane.
    """

    def warn(seen: Any) -> None:
        failed, numbers, _ = seen
        if failed:
            what, advice = message.format(*map(float, numbers)).split(". ", 1)
            warnings.warn(
                f"{what}, at {errors.user_location()}. {advice}",
                errors.ConvergenceWarning,
                stacklevel=errors.user_depth(),
            )
            _forget_warnings()

    if not isinstance(failed, Tracer):
        warn((failed, numbers, values))
        return list(values)
    return tap((failed, numbers, list(values)), warn, backward=_ignore)[2]  # type: ignore[no-any-return]


_MOST_WARNINGS = 256


def _forget_warnings() -> None:
    """Forget shown warnings: Python remembers the text of each, and ours contain varying numbers."""
    frame = errors.user_frame()
    registry = {} if frame is None else frame.f_globals.get("__warningregistry__", {})
    ours = [
        key for key in list(registry) if type(key) is tuple and errors.ConvergenceWarning in key
    ]
    for key in ours if len(ours) > _MOST_WARNINGS else ():
        registry.pop(key, None)


def _ignore(_: Any) -> None:
    pass


def check_count(value: Any, option: str, name: str) -> int:
    """An option that is a positive number of steps."""
    if not is_plain(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise errors.OptionError(
            f"{name}: {option} must be a positive int, not {value!r}, at {errors.user_location()}."
        )
    return int(value)


def check_tolerance(value: Any, option: str, name: str) -> float:
    """An option that is a non-negative plain number: a solver branches on it, so it cannot be traced."""
    plain = is_plain(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not plain or not value >= 0:
        found = "a traced value" if isinstance(value, Tracer) else repr(value)
        raise errors.OptionError(
            f"{name}: {option} must be a plain non-negative number, not {found}, at "
            f"{errors.user_location()}."
        )
    return float(value)
