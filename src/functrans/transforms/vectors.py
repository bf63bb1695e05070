"""Flat lists of arrays as vectors, for solvers: reading them, their norms, and what a solver reports."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.shapes import ArraySpec, cast, dtype_of, is_inexact, shape_of, spec_of
from functrans.transforms.callbacks import tap
from functrans.transforms.carries import owned
from functrans.transforms.leaves import described, fitted, flat, strong


def floating(values: Any, what: str) -> tuple[list[Any], Any]:
    """The leaves of a tree as floating arrays, integers as float64; and its structure.

    They are copies: a solver may return what it was given, or change it.
    """
    leaves, structure = flat(values, what)
    specs = [
        strong(spec_of(leaf)) if is_inexact(leaf) else ArraySpec(shape_of(leaf), np.dtype(float))
        for leaf in leaves
    ]
    return [fitted(owned(leaf), spec) for leaf, spec in zip(leaves, specs, strict=True)], structure


def like(found: Any, specs: Sequence[ArraySpec], structure: Any, what: str) -> list[Any]:
    """The leaves of what a user's function returned, which has to have these specs.

    Floating dtypes may differ and are converted, but a complex value is none where a real one is due.
    """
    leaves, found_structure = tree.flatten(found)
    for leaf in leaves:
        tree.check_array(leaf, what)
    if found_structure != structure or any(
        shape_of(leaf) != spec.shape or (dtype_of(leaf).kind == "c" and spec.dtype.kind != "c")
        for leaf, spec in zip(leaves, specs, strict=True)
    ):
        raise errors.RuleError(
            f"{what} does not fit, at {errors.user_location()}.\n"
            f"  it has to be  {tree.unflatten(structure, map(strong, specs))}\n"
            f"  and it is     {described(found)}"
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


def quotient(one: Any, other: Any) -> Any:
    """one / other, and 0 where other is 0, without a warning of NumPy's."""
    return np.where(other == 0, 0, one / np.where(other == 0, 1, other))


def precision(leaves: Sequence[Any]) -> float:
    """The relative distance between neighboring numbers, of the least precise leaf."""
    return max((float(np.finfo(dtype_of(leaf)).eps) for leaf in leaves), default=0.0)


def report(values: Sequence[Any], failed: Any, message: str, *numbers: Any) -> list[Any]:
    """The same values, and a ConvergenceWarning if they `failed`, as soon as that is known.

    The message is a sentence, formatted with the numbers, and advice. In a graph this happens
    whenever it runs, and under `vmap` for each lane.
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

    if not isinstance(failed, Tracer):
        warn((failed, numbers, values))
        return list(values)
    return tap((failed, numbers, list(values)), warn, backward=_ignore)[2]  # type: ignore[no-any-return]


def _ignore(_: Any) -> None:
    pass


def check_count(value: Any, option: str, name: str) -> int:
    """An option that is a positive number of steps."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise errors.OptionError(f"{name}: {option} must be a positive int, not {value!r}.")
    return int(value)


def check_tolerance(value: Any, option: str, name: str) -> float:
    """An option that is a number, not negative and not traced: a solver branches on it."""
    plain = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not plain or not value >= 0:
        found = "a traced value" if isinstance(value, Tracer) else repr(value)
        raise errors.OptionError(
            f"{name}: {option} must be a plain number that is not negative, not {found}."
        )
    return float(value)
