"""Functions of pytrees that do not use the library's own flattening, so that it can be compared with them.

They support the containers of random programs: tuples, lists and dictionaries, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def leaves(nest: Any) -> list[Any]:
    """The leaves from left to right."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in leaves(nest[key])]
    if isinstance(nest, (tuple, list)):
        return [leaf for part in nest for leaf in leaves(part)]
    return [nest]


def mapped(function: Callable[..., Any], nest: Any, *others: Any) -> Any:
    """The same structure with each leaf replaced by function(leaf, ...)."""
    if isinstance(nest, dict):
        return {
            key: mapped(function, nest[key], *(other[key] for other in others))
            for key in sorted(nest)
        }
    if isinstance(nest, (tuple, list)):
        rows = zip(nest, *others, strict=True)
        return type(nest)([mapped(function, *row) for row in rows])
    return function(nest, *others)


def refilled(nest: Any, values: list[Any]) -> Any:
    """The same structure with these leaves."""
    rest = iter(values)
    return mapped(lambda leaf: next(rest), nest)


def paths(nest: Any, prefix: str) -> list[str]:
    """Expressions for each leaf, from an expression for the whole."""
    if isinstance(nest, dict):
        return [path for key in sorted(nest) for path in paths(nest[key], f"{prefix}[{key!r}]")]
    if isinstance(nest, (tuple, list)):
        return [path for k, part in enumerate(nest) for path in paths(part, f"{prefix}[{k}]")]
    return [prefix]


def structure(nest: Any) -> Any:
    """The structure without the leaves, for comparisons."""
    return mapped(lambda leaf: None, nest)


def is_float(leaf: Any) -> bool:
    """Whether a leaf can be differentiated, or differentiated with respect to."""
    return np.asarray(leaf).dtype.kind == "f"


def written(nest: Any) -> str:
    """Python source for a nest of arrays, which evaluates to exactly the same numbers."""
    if isinstance(nest, dict):
        return "{" + ", ".join(f"{key!r}: {written(nest[key])}" for key in sorted(nest)) + "}"
    if isinstance(nest, list):
        return "[" + ", ".join(map(written, nest)) + "]"
    if isinstance(nest, tuple):
        return "(" + "".join(f"{written(part)}, " for part in nest).strip() + ")"
    if isinstance(nest, (bool, int, float, str)) or nest is None:
        return repr(nest)
    array = np.asarray(nest)
    if array.size == 0:
        return f"np.zeros({array.shape}, np.{array.dtype})"
    return f"np.array({array.tolist()!r}, np.{array.dtype})"
