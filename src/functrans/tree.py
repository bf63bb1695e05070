"""Pytrees: flatten, map and rebuild nested containers of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import errors
from functrans.core import tree as _core
from functrans.core.publishing import publish as _publish
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tree import (
    Tree,
    all,
    check_array,
    flatten,
    leaves,
    map,
    paths,
    reduce,
    register,
    register_dataclass,
    structure,
    unflatten,
)

if TYPE_CHECKING:
    from functrans.core.tree import TreeDef as TreeDef
else:

    def __getattr__(name: str) -> Any:
        if name != "TreeDef":  # which loads optree
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _core.TreeDef)


__all__ = [
    "TreeDef",
    "all",
    "flatten",
    "leaves",
    "map",
    "paths",
    "ravel_pytree",
    "reduce",
    "register",
    "register_dataclass",
    "structure",
    "unflatten",
]


def __dir__() -> list[str]:
    return __all__


def ravel_pytree(tree: Tree) -> tuple[Any, Callable[[Any], Tree]]:
    """All leaves of a tree as one vector, and a function that restores the tree.

    Leaves of different dtypes are promoted to a common dtype; the inverse restores the original ones.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": np.ones(2), "b": 3.0})
    >>> vector
    array([1., 1., 3.])
    >>> unravel(vector * 2)
    {'a': array([2., 2.]), 'b': np.float64(6.0)}
    """
    found, treedef = flatten(tree)
    for leaf in found:
        check_array(leaf, "ravel_pytree: a leaf")
    shapes = [shape_of(leaf) for leaf in found]
    dtypes = [dtype_of(leaf) for leaf in found]
    sizes = [int(np.prod(shape, dtype=int)) for shape in shapes]
    total = sum(sizes)
    if not found:
        vector: Any = np.zeros(0)
    else:
        vector = np.concatenate([np.reshape(leaf, (-1,)) for leaf in found])

    def unravel(flat: Any) -> Tree:
        if shape_of(flat) != (total,):
            raise errors.InputTypeError(
                f"the tree has {total} entries, so its vector must have shape ({total},), not "
                f"{shape_of(flat)}, at {errors.user_location()}."
            )
        parts, start = [], 0
        for shape, dtype, size in zip(shapes, dtypes, sizes, strict=True):
            part = np.reshape(flat[start : start + size], shape)
            converts = dtype.kind in "fc" or dtype_of(flat).kind not in "fc"
            part = part.astype(dtype) if converts else part.copy()
            parts.append(part[()])
            start += size
        return unflatten(treedef, parts)

    return vector, unravel


_publish(__name__, [globals().get(name) for name in __all__])
