"""Pytrees: nested containers of arrays, flattened by optree.

`functrans.tree` is this module under its public name. Dictionaries, lists, tuples, named tuples,
dataclasses, `None` (a container of nothing) and registered classes are containers; everything else
is a leaf.
"""

from __future__ import annotations

import builtins
import functools
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from functrans.core import errors, labelled
from functrans.core.dispatch import Tracer, check_alive, is_plain
from functrans.core.frozen import Metadata, frozen, metadata_key
from functrans.core.loading import later
from functrans.core.subclasses import computes_plainly, in_plain, no_plain_array

if TYPE_CHECKING:
    import optree

    TreeDef = optree.PyTreeSpec
else:
    optree = later("optree", globals())

Tree = Any
_Class = TypeVar("_Class", bound=type)

_NAMESPACE = "functrans"
_registering = threading.RLock()
# Dataclasses that were registered automatically on first sight, oldest first. A function may define a new one
# on each call, so only the most recent are kept; a dropped one is registered again when it reappears.
_met: dict[type, None] = {}
_MOST_MET = 1024
_PLAIN_LEAVES = frozenset({np.ndarray, np.float64, np.float32, float, int, bool, complex, str})


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name != "TreeDef":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, optree.PyTreeSpec)


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
    if not _PLAIN_LEAVES.issuperset(builtins.map(type, leaves)):
        if _register_dataclasses_of(leaves, is_leaf):
            return flatten(tree, is_leaf)
        check_alive(leaves)
        if labelled.may_occur():
            leaves = [labelled.bare(leaf) for leaf in leaves]
    return leaves, structure


def labels_of(tree: Tree) -> list[Any] | None:
    """The labels of Series, DataFrames and DataArrays, for every leaf; None if there are none."""
    if not labelled.may_occur():
        return None
    labels = [labelled.labels_of(leaf) for leaf in optree.tree_leaves(tree, namespace=_NAMESPACE)]
    return labels if labels.count(None) < len(labels) else None


def relabelled(result: Tree, labels: list[Any] | None) -> Tree:
    """A result in the form of a tree, with the labels of that tree."""
    if labels is None:
        return result
    leaves, structure = optree.tree_flatten(result, namespace=_NAMESPACE)
    if len(leaves) != len(labels):
        return result
    pairs = zip(labels, leaves, strict=True)
    return unflatten(structure, [leaf if label is None else label(leaf) for label, leaf in pairs])


_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict})
_SEQUENCES = frozenset({tuple, list, deque})
_STRINGS = frozenset({str})
_flattening: dict[type, Callable[[Any], Any]] = {}  # of the classes that were registered


def flatten_as_seen(tree: Tree) -> tuple[list[Any], TreeDef, tuple[Any, ...]]:
    """The leaves, the structure, and everything else that a function can see of the containers.

    Structures are equal if dictionaries have equal keys. A function can see more: the order of the keys, and
    whether a key is 1 or True. It also sees metadata, here with their current values.
    """
    leaves, structure = flatten(tree)  # first: it refuses containers that never end
    seen: list[Any] = []
    _look_into(tree, seen, metadata_key)
    return leaves, structure, tuple(seen)


def keys_in_order(tree: Tree) -> list[Any]:
    """The keys of all dictionaries in a tree."""
    seen: list[Any] = []
    _look_into(tree, seen, lambda aux: None)
    return seen


def _look_into(node: Any, seen: list[Any], stand_in: Callable[[Any], Any]) -> None:
    """Record the keys, and stand-ins for the metadata, of all containers that `flatten` opens."""
    kind = type(node)
    if kind in _DICTIONARIES:
        keys = tuple(node)
        seen.append(keys if _STRINGS.issuperset(builtins.map(type, keys)) else frozen(keys))
        node = tuple(node.values())
    elif kind not in _SEQUENCES:
        known = _flattening.get(kind)
        if known is not None:
            node, aux, *_ = known(node)
            if aux is not None:
                seen.append(stand_in(aux))
        elif isinstance(node, (Tracer, np.generic)) or optree.tree_is_leaf(
            node, namespace=_NAMESPACE
        ):
            return
        else:  # a named tuple, or of a class that was registered with optree
            node, aux, *_ = optree.tree_flatten_one_level(node, namespace=_NAMESPACE)
            seen.append(stand_in(aux))
    if _PLAIN_LEAVES.issuperset(builtins.map(type, node)):
        return
    for entry in node:
        if type(entry) not in _PLAIN_LEAVES:
            _look_into(entry, seen, stand_in)


def seal(structure: TreeDef) -> None:
    """Give a structure that is kept the current values of its metadata."""

    def keep(kind: Any, data: Any, children: Any) -> None:
        if isinstance(data, Metadata):
            data.seal()

    structure.walk(range(structure.num_leaves), f_node=keep)


def too_deep() -> errors.InputTypeError:
    """The error for containers that never end."""
    return errors.InputTypeError(
        "containers are nested too deeply: one of them holds itself, or they are about a thousand levels "
        f"deep, at {errors.user_location()}. Use flat containers, such as one list of arrays."
    )


def _register_dataclasses_of(leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> bool:
    """Register dataclasses that are seen for the first time; return whether there were any."""
    unknown = set(builtins.map(type, leaves)) - _PLAIN_LEAVES
    found = [cls for cls in unknown if hasattr(cls, "__dataclass_fields__")]
    if is_leaf is not None:
        found = [c for c in found if any(type(x) is c and not is_leaf(x) for x in leaves)]
    with _registering:
        for cls in found:
            if cls not in _met:
                register_dataclass(cls)
                _met[cls] = None
        while len(_met) > max(_MOST_MET, len(found)):
            oldest = next(iter(_met))
            del _met[oldest], _flattening[oldest]
            optree.unregister_pytree_node(oldest, namespace=_NAMESPACE)
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
    if labelled.may_occur():
        others = [[labelled.bare(leaf) for leaf in other] for other in others]
    results = [function(*each) for each in zip(leaves, *others, strict=True)]
    return relabelled(unflatten(structure, results), labels_of(tree))


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
        raise ValueError(
            "reduce of a tree with no leaves needs an initial value: reduce(f, tree, 0)"
        )
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

    `aux` is the data of an object other than its children, such as names and settings. It is None, a
    hashable value, or lists, dicts and arrays of such. Two structures are equal only if their `aux` has the
    same types and bits; `jit` traces again for a different one.

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

    def take_apart(obj: Any) -> tuple[Any, ...]:
        parts: tuple[Any, ...] = flatten(obj)
        children, aux, *names = parts
        return children, None if aux is None else Metadata(aux), *names

    def put_together(metadata: Metadata | None, children: Iterable[Any]) -> Any:
        return unflatten(None if metadata is None else metadata.get(), children)

    _flattening[cls] = flatten
    optree.register_pytree_node(cls, take_apart, put_together, namespace=_NAMESPACE)  # type: ignore[arg-type]
    return cls


_boxes: set[type] = set()


def register_box(cls: _Class, unwrap: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> _Class:
    """Make a class a container of one array that counts as an array itself: `wrap(unwrap(obj))`."""
    _boxes.add(cls)
    register(
        cls, lambda box: ((unwrap(box),), None), lambda _, children: wrap(next(iter(children)))
    )
    _flattening[cls] = lambda box: ((), None)
    return cls


def unboxed(value: Any) -> tuple[Any, TreeDef | None]:
    """The array in a box, and the structure to put it back; any other value as it is, and None."""
    if type(value) not in _boxes:
        return value, None
    (array,), box = flatten(value)
    return array, box


@overload
def register_dataclass(cls: _Class, meta_fields: Iterable[str] = ()) -> _Class: ...
@overload
def register_dataclass(*, meta_fields: Iterable[str] = ()) -> Callable[[_Class], _Class]: ...
def register_dataclass(cls: Any = None, meta_fields: Iterable[str] = ()) -> Any:
    """Make a dataclass a container of its fields, except those named in `meta_fields`.

    Use it as a class decorator, with or without options: `@register_dataclass(meta_fields=("name",))`.

    An unregistered dataclass is treated as a container of all its fields. Register it to keep fields that
    are not arrays (names, settings) out of the leaves.

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
    import dataclasses  # which is slow to import

    if cls is None:
        return functools.partial(register_dataclass, meta_fields=meta_fields)
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(
            f"register_dataclass needs a dataclass, not {cls!r}. Decorate it with @dataclasses.dataclass "
            "first, or use register."
        )
    meta = tuple(meta_fields)
    names = [field.name for field in dataclasses.fields(cls)]
    unknown = [name for name in meta if name not in names]
    if unknown:
        raise ValueError(
            f"{cls.__name__} has no field named {', '.join(unknown)}: its fields are {', '.join(names)}"
        )
    data = [name for name in names if name not in meta]

    def split(obj: Any) -> tuple[list[Any], tuple[Any, ...] | None]:
        aux = tuple(getattr(obj, n) for n in meta) if meta else None
        return [getattr(obj, n) for n in data], aux

    def join(aux: tuple[Any, ...] | None, children: Iterable[Any]) -> Any:
        # Not through __init__: a dataclass may check or derive its fields there, and the children
        # may be tracers, axes or None.
        obj = object.__new__(cls)
        for name, value in zip((*data, *meta), (*children, *(aux or ())), strict=True):
            object.__setattr__(obj, name, value)
        return obj

    with _registering:
        if cls in _met:  # seen before it was registered: this registration counts
            optree.unregister_pytree_node(cls, namespace=_NAMESPACE)
            del _met[cls]
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
    """Whether arithmetic works on a leaf: an array, a number or a tracer."""
    if isinstance(leaf, Tracer):
        return True
    if is_plain(leaf, (np.ndarray, np.generic)):
        plain = type(leaf) is np.ndarray or is_plain(leaf, np.generic)
        return leaf.dtype.kind in "biufc" and (plain or computes_plainly(type(leaf)))
    return isinstance(leaf, (bool, int, float, complex))


def check_array(leaf: Any, what: str) -> None:
    """Refuse a leaf that is not an array, naming where it was found."""
    if not is_array(leaf):
        if is_plain(leaf, np.ndarray) and not computes_plainly(type(leaf)):
            raise errors.InputTypeError(
                f"{what} is {no_plain_array(leaf)}, at {errors.user_location()}. {in_plain(leaf)}"
            )
        kind, remedy = labelled.refusal(leaf) or (with_article(leaf), _as_numbers(leaf))
        raise errors.InputTypeError(
            f"{what} is {kind}, not a number or an array of numbers, at {errors.user_location()}. "
            + ("Return numbers and arrays only." if "output" in what else remedy)
        )


def with_article(value: Any) -> str:
    """The type of a value, for a message: a str, an array of dtype object."""
    if value is None:
        return "None"
    if is_plain(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if isinstance(value, type):
        return f"the class {name}"
    return f"{'an' if name[:1].lower() in tuple('aeio') else 'a'} {name}"


def _as_numbers(leaf: Any) -> str:
    """What to do about a value that is not made of numbers."""
    if leaf is None:
        return "Pass a number, or an array."
    if is_plain(leaf, (np.ndarray, np.generic)):
        if leaf.dtype.names:
            return f"Pass a field of it: x[{leaf.dtype.names[0]!r}]."
        return "Convert it: array.astype(float)."
    if isinstance(leaf, (str, bytes, type)) or callable(leaf):
        return "Close over it: lambda x: f(x, option); or convert it to a number."
    if hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__"):
        return "Convert it: np.asarray(x)."
    if isinstance(leaf, Iterable):
        return "Convert it: np.array(list(x))."
    if hasattr(leaf, "__float__"):
        return "Convert it: float(x)."
    return (
        "Make its class a container of arrays: functrans.tree.register(cls, flatten, unflatten), or a "
        "dataclass."
    )


def shown(structure: TreeDef | None) -> str:
    """A structure as Python would print a value of it; None stands for the structure of a bare array."""
    if structure is None or structure.is_leaf():
        return "array"
    parts = builtins.map(shown, structure.children())
    kind: Any = structure.type
    if kind is type(None) or kind is None:
        return "None"
    if issubclass(kind, dict):
        return (
            "{"
            + ", ".join(f"{k!r}: {v}" for k, v in zip(structure.entries(), parts, strict=True))
            + "}"
        )
    inner = list(parts)
    if kind is list:
        return f"[{', '.join(inner)}]"
    if kind is tuple:
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    names: Any = getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", ())
    if len(names) == len(inner):
        inner = [f"{name}={part}" for name, part in zip(names, inner, strict=True)]
    return f"{kind.__name__}({', '.join(inner)})"
