"""Pytrees: nested containers of arrays, flattened by optree.

`functrans.tree` is this module under its public name. Dictionaries, lists, tuples, named tuples,
dataclasses, `None` (a container of nothing) and registered classes are containers; everything else
is a leaf.
"""

from __future__ import annotations

import builtins
import dataclasses
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import optree

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.subclasses import computes_plainly, no_plain_array

Tree = Any
TreeDef = optree.PyTreeSpec
_Class = TypeVar("_Class", bound=type)

_NAMESPACE = "functrans"
_registering = threading.RLock()
_met: set[type] = set()  # dataclasses that were registered when they were met
_PLAIN_LEAVES = frozenset({np.ndarray, np.float64, np.float32, float, int, bool, complex, str})


def flatten(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, in order, and its structure.

    Examples
    --------
    >>> import functrans
    >>> leaves, structure = functrans.tree.flatten({"a": 1, "b": (2, 3)})
    >>> leaves
    [1, 2, 3]
    """
    try:
        leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)
    except RecursionError:
        raise too_deep() from None
    if not _PLAIN_LEAVES.issuperset(builtins.map(type, leaves)) and _register_dataclasses_of(
        leaves, is_leaf
    ):
        return flatten(tree, is_leaf)
    return leaves, structure


def too_deep() -> errors.InputTypeError:
    """The error for containers that never end."""
    return errors.InputTypeError(
        "containers are nested too deeply: one of them holds itself, or there are about a thousand "
        "around each other. Use flat containers: a list of arrays, or one array of them all."
    )


def _register_dataclasses_of(leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> bool:
    """Register the dataclasses that are met for the first time; whether there were any."""
    unknown = set(builtins.map(type, leaves)) - _PLAIN_LEAVES
    found = [cls for cls in unknown if hasattr(cls, "__dataclass_fields__")]
    if is_leaf is not None:
        found = [c for c in found if any(type(x) is c and not is_leaf(x) for x in leaves)]
    with _registering:
        for cls in found:
            if cls not in _met:
                register_dataclass(cls)
                _met.add(cls)
    return bool(found)


def unflatten(structure: TreeDef, leaves: Iterable[Any]) -> Tree:
    """The tree of this structure with these leaves; the inverse of `flatten`.

    Examples
    --------
    >>> import functrans
    >>> leaves, structure = functrans.tree.flatten([1, (2,)])
    >>> functrans.tree.unflatten(structure, [10, 20])
    [10, (20,)]
    """
    return optree.tree_unflatten(structure, leaves)


def leaves(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, in order.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.leaves({"a": 1, "b": [2, None]})
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree, without its leaves.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.structure([1, 2]) == functrans.tree.structure([3, 4])
    True
    """
    return flatten(tree, is_leaf)[1]


def map(
    function: Callable[..., Any],
    tree: Tree,
    *rest: Tree,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Apply a function to every leaf, or to the matching leaves of several trees.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.map(lambda a, b: a + b, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    leaves, structure = flatten(tree, is_leaf)
    others = [structure.flatten_up_to(other) for other in rest]
    return unflatten(structure, [function(*each) for each in zip(leaves, *others, strict=True)])


_NOTHING = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Tree,
    initial: Any = _NOTHING,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Fold the leaves of a tree into one value.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]})
    6
    """
    found = leaves(tree, is_leaf)
    if initial is not _NOTHING:
        found = [initial, *found]
    if not found:
        raise ValueError("reduce of a tree with no leaves needs an initial value")
    result = found[0]
    for leaf in found[1:]:
        result = function(result, leaf)
    return result


def all(tree: Tree) -> bool:
    """Whether every leaf is true.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.all({"a": True, "b": [True]})
    True
    """
    return not any(not leaf for leaf in leaves(tree))


def register(
    cls: _Class,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Iterable[Any]], Any],
) -> _Class:
    """Make a class a container: `flatten(obj)` is (children, aux), `unflatten(aux, children)`.

    Examples
    --------
    >>> import functrans
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> Pair = functrans.tree.register(
    ...     Pair, lambda p: ((p.a, p.b), None), lambda aux, children: Pair(*children)
    ... )
    >>> functrans.tree.leaves(Pair(1, 2))
    [1, 2]
    """
    optree.register_pytree_node(cls, flatten, unflatten, namespace=_NAMESPACE)
    return cls


_boxes: set[type] = set()


def register_box(cls: _Class, unwrap: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> _Class:
    """Make a class a container of one array that counts as an array itself: `wrap(unwrap(obj))`."""
    _boxes.add(cls)
    return register(
        cls, lambda box: ((unwrap(box),), None), lambda _, children: wrap(next(iter(children)))
    )


def unboxed(value: Any) -> tuple[Any, TreeDef | None]:
    """The array in a box, and the structure to put it back; any other value as it is, and None."""
    if type(value) not in _boxes:
        return value, None
    (array,), box = flatten(value)
    return array, box


def register_dataclass(cls: _Class, meta_fields: Iterable[str] = ()) -> _Class:
    """Make a dataclass a container of its fields, except those named in `meta_fields`.

    A dataclass that was not registered is taken as a container of all its fields when it is met.
    Register it to keep fields that are not arrays (names, settings) out of the leaves.

    Examples
    --------
    >>> import dataclasses, functrans
    >>> @functrans.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Line:
    ...     slope: float
    ...     offset: float
    >>> functrans.tree.map(lambda leaf: 2 * leaf, Line(1.0, 3.0))
    Line(slope=2.0, offset=6.0)
    """
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(f"register_dataclass needs a dataclass, not {cls!r}")
    meta = tuple(meta_fields)
    names = [field.name for field in dataclasses.fields(cls)]
    unknown = [name for name in meta if name not in names]
    if unknown:
        raise ValueError(f"{cls.__name__} has no field named {', '.join(unknown)}")
    data = [name for name in names if name not in meta]

    def split(obj: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(obj, n) for n in data], tuple(getattr(obj, n) for n in meta)

    def join(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        # Not through __init__: a dataclass may check or derive its fields there, and the children
        # may be tracers, axes or None.
        obj = object.__new__(cls)
        for name, value in zip((*data, *meta), (*children, *aux), strict=True):
            object.__setattr__(obj, name, value)
        return obj

    with _registering:
        if cls in _met:  # met before it was registered: what is said now counts
            optree.unregister_pytree_node(cls, namespace=_NAMESPACE)
            _met.discard(cls)
        return register(cls, split, join)


def paths(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> list[str]:
    """The path of every leaf, as it would be written after the tree's name.

    Examples
    --------
    >>> import functrans
    >>> functrans.tree.paths({"w": [1, 2]})
    ["['w'][0]", "['w'][1]"]
    """
    flatten(tree, is_leaf)  # so that new dataclasses are known
    return [
        accessor.codify("")
        for accessor in optree.tree_accessors(tree, is_leaf, namespace=_NAMESPACE)
    ]


def broadcast_prefix(prefix: Tree, tree: Tree) -> list[Any]:
    """The leaves of `prefix`, each repeated for the leaves of `tree` it stands for.

    None in the prefix is a leaf here: that is how axis specifications write "not mapped".
    """
    found: list[Any] = []

    def spread(leaf: Any, subtree: Tree) -> None:
        found.extend([leaf] * len(leaves(subtree)))

    flatten(prefix, lambda node: node is None)  # so that new dataclasses are known
    flatten(tree)
    optree.tree_map_(spread, prefix, tree, is_leaf=lambda node: node is None, namespace=_NAMESPACE)
    return found


def is_array(leaf: Any) -> bool:
    """Whether a leaf is something that arithmetic works on: an array, a number or a tracer."""
    if isinstance(leaf, Tracer):
        return True
    if isinstance(leaf, (np.ndarray, np.generic)):
        plain = type(leaf) is np.ndarray or isinstance(leaf, np.generic)
        return leaf.dtype.kind in "biufc" and (plain or computes_plainly(type(leaf)))
    return isinstance(leaf, (bool, int, float, complex))


def check_array(leaf: Any, what: str) -> None:
    """Refuse a leaf that is no array, naming where it was found."""
    if not is_array(leaf):
        if isinstance(leaf, np.ndarray) and not computes_plainly(type(leaf)):
            raise errors.InputTypeError(f"{what} is {no_plain_array(leaf)}")
        kind = (
            f"array of dtype {leaf.dtype}" if isinstance(leaf, np.ndarray) else type(leaf).__name__
        )
        raise errors.InputTypeError(
            f"{what} is a value of type {kind}, not a number or an array of numbers. Convert it to "
            "a NumPy array, register its class with functrans.tree.register, or close over it."
        )
