"""Keys of traces: everything that a function can see of a call while it is traced.

A trace is reused for calls with an equal key, so anything missing here gives wrong answers. Values of globals
and closures are not in the key, as `jit` documents.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.frozen import SINGLE_DTYPES, dtype_key, frozen
from functrans.core.shapes import ArraySpec, spec_of
from functrans.core.views import is_mutable

_STRINGS = frozenset({str})
_NUMBERS = frozenset({float, int, bool, complex})
_PLAIN = frozenset({np.ndarray, np.float64, np.float32, *_NUMBERS})


def containers_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Hashable]:
    """The leaves of the arguments, and everything a function can see of their containers."""
    if kwargs:
        leaves, structure, seen = tree.flatten_as_seen((args, kwargs))
        return leaves, ("keywords", structure, seen)
    if _PLAIN.issuperset(map(type, args)):
        return args, len(args)
    leaves = []
    try:
        containers = _opened(args, leaves)
    except RecursionError:
        raise tree.too_deep() from None
    if containers is None:
        leaves, *containers = tree.flatten_as_seen(args)
        containers = tuple(containers)
    return leaves, containers


def _opened(node: Any, leaves: list[Any]) -> Any:
    """Append the leaves of tuples, lists and dicts, and return their form; None for other containers.

    `flatten_as_seen` would do the same in twice the time.
    """
    kind: Any = type(node)
    if kind is dict:
        keys = tuple(node)
        if not _STRINGS.issuperset(map(type, keys)):
            return None
        kind, entries = keys, [node[key] for key in _sorted(keys)]
    elif kind is tuple or kind is list:
        entries = node
    else:
        return () if node is None else None
    if _PLAIN.issuperset(map(type, entries)):
        leaves += entries
        return kind, len(entries)
    parts: list[Any] = [kind]
    for entry in entries:
        if type(entry) in _PLAIN:
            leaves.append(entry)
            parts.append(0)
        else:
            part = _opened(entry, leaves)
            if part is None:
                return None
            parts.append(part)
    return tuple(parts)


_orders: dict[tuple[str, ...], list[str]] = {}


def _sorted(keys: tuple[str, ...]) -> list[str]:
    """The keys in the order of leaves, looked up where it is known."""
    order = _orders.get(keys)
    if order is None:
        if len(_orders) > 4096:
            _orders.clear()
        order = _orders[keys] = sorted(keys)
    return order


def keep(containers: Any) -> None:
    """Freeze the result of `containers_of`, so that it can be part of a stored key."""
    for part in containers if isinstance(containers, tuple) else ():
        if isinstance(part, tree.TreeDef):
            tree.seal(part)


def are_traced(leaves: Any) -> bool:
    """Whether some of the leaves of arguments are traced."""
    return not _PLAIN.issuperset(map(type, leaves)) and any(isinstance(x, Tracer) for x in leaves)


def leaf_kind(leaf: Any) -> Any:
    """What a function can see of a traced leaf: the type of a number, the shape and dtype of an array."""
    kind = type(leaf)
    if kind is np.ndarray:
        address = id(leaf.dtype)
        return leaf.shape, address if address in SINGLE_DTYPES else dtype_key(leaf.dtype)
    if kind in _NUMBERS:
        return kind
    if isinstance(leaf, (Tracer, ArraySpec)):
        spec = spec_of(leaf)
        if not spec.shape and isinstance(leaf, Tracer) and is_mutable(leaf):
            return (), dtype_key(spec.dtype)  # an array without axes
        return _spec_kind(spec)
    if issubclass(kind, (np.ndarray, np.generic)):
        tree.check_array(leaf, "jit: an argument")
        if issubclass(kind, np.generic):
            return kind
        return kind, leaf.shape, dtype_key(leaf.dtype)
    if tree.is_array(leaf):
        return kind
    if isinstance(leaf, (str, bytes, type)) or callable(leaf):
        text = repr(leaf)
        shown = f" ({text})" if len(text) < 40 else ""
        raise errors.InputTypeError(
            f"jit: an argument is {tree.with_article(leaf)}{shown}, not a number or an array of numbers, "
            f"at {errors.user_location()}. Make it static: jit(f, static_argnums=...), with its position."
        )
    tree.check_array(leaf, "jit: an argument")
    raise AssertionError("an array is of a known kind")


def _spec_kind(spec: ArraySpec) -> Any:
    if spec.weak:
        return type(spec.dtype.type(0).item())
    if not spec.shape:  # a NumPy number rather than an array without axes
        return spec.dtype.type
    return spec.shape, dtype_key(spec.dtype)


def is_taken(leaf: Any) -> bool:
    """Whether machine code made for this leaf accepts it, and nothing that looks different to a function.

    Numbers that are not float64 look different from arrays without axes, which the code accepts for them.
    """
    kind = type(leaf)
    if kind is np.ndarray:
        return bool(leaf.shape) or leaf.dtype != np.float64
    return kind is float or kind is np.float64


class Static:
    """A static value as part of a key."""

    __slots__ = ("frozen", "value")

    def __init__(self, value: Any, what: str) -> None:
        try:
            hash(value)
            self.frozen: Hashable = frozen(value)
        except TypeError as error:
            raise _not_static(value, what, error) from None
        self.value = value

    def __hash__(self) -> int:
        return hash(self.frozen)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.frozen == other.frozen


def _not_static(value: Any, what: str, error: TypeError) -> errors.InputTypeError:
    if any(isinstance(leaf, Tracer) for leaf in tree.leaves(value)):
        return errors.InputTypeError(
            f"jit: the static {what} is traced by an outer transform, at "
            f"{errors.user_location()}: its value is not known, or differs between lanes. Do not "
            "make it static."
        )
    inside = "" if type(value).__name__ in str(error) else f" ({error})"
    return errors.InputTypeError(
        f"jit: the static {what} must be hashable, but is {tree.with_article(value)}{inside}, at "
        f"{errors.user_location()}. "
        + _HASHABLE.get(type(value), "Leave it out of the static arguments.")
    )


_HASHABLE: dict[Any, str] = {
    list: "Pass tuple(x).",
    dict: "Pass tuple(x.items()).",
    set: "Pass frozenset(x).",
}
