"""What all transforms do with their arguments: choose, check, flatten, and put back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from functrans.core import errors, tree
from functrans.core.accumulate import Accumulator
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import COPIED_BYTES
from functrans.core.shapes import cast, dtype_of, shape_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FLOAT64 = np.dtype(float)
_SINGLE = frozenset({np.ndarray, float, np.float64, np.float32})


def check_callable(function: Any, transform: str) -> None:
    if not callable(function):
        raise errors.InputTypeError(
            f"{transform} needs a function, not {type(function).__name__}. Write "
            f"{transform}(f)(x), not {transform}(f(x))."
        )


def named_like(function: Callable[..., Any], transform: str) -> Callable[[_Function], _Function]:
    """Keep the name and docstring of the function that a transform wraps."""

    def decorate(wrapper: _Function) -> _Function:
        try:
            functools.update_wrapper(wrapper, function)
        except AttributeError:  # an object without __name__: keep the wrapper's own
            wrapper.__name__ = f"{transform}_of_{type(function).__name__}"
        return wrapper

    return decorate


def several(option: Any, kind: type, name: str) -> tuple[Any, ...]:
    """An option that is one int (or str), or several of them, as a tuple."""
    values = (
        tuple(option) if isinstance(option, (tuple, list, set, frozenset, range)) else (option,)
    )
    kinds = (int, np.integer) if kind is int else (kind,)
    for value in values:
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise errors.OptionError(
                f"{name} must be one {kind.__name__} or a tuple of them, not {option!r}."
            )
    return values


def positions_of(argnums: int | Sequence[int], count: int, function: Any) -> tuple[int, ...]:
    """`argnums` as non-negative positions, checked against the number of arguments."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    wanted = tuple(argnums) if isinstance(argnums, (tuple, list, range)) else (argnums,)
    positions = []
    for number in wanted:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise errors.InputTypeError(
                f"argnums must be an int or a tuple of ints, not {argnums!r}. Give the positions of "
                f"the arguments of {errors.describe(function)} to differentiate by."
            )
        if not -count <= number < count:
            raise errors.ArgnumsError(
                f"argnums={argnums!r} names argument {number}, but {errors.describe(function)} was "
                f"called with {count} positional argument{'' if count == 1 else 's'}. Pass the "
                "argument by position, or correct argnums."
            )
        positions.append(int(number) % count)
    if len(set(positions)) != len(positions):
        raise errors.ArgnumsError(f"argnums={argnums!r} names an argument twice.")
    return tuple(positions)


def flatten_argument(argument: Any) -> tuple[list[Any], Any]:
    """The leaves and structure of an argument; None as structure of a bare array."""
    if type(argument) in _SINGLE or isinstance(argument, Tracer):
        return [argument], None
    leaves, structure = tree.flatten(argument)
    return leaves, None if structure.is_leaf() else structure


def unflatten_argument(structure: Any, leaves: list[Any]) -> Any:
    return leaves[0] if structure is None else tree.unflatten(structure, leaves)


def guarded(argument: Any) -> Any:
    """An argument that is handed on as it is, such that the function cannot change the caller's array."""
    if type(argument) is np.ndarray:
        if argument.flags.writeable:
            # np.add.at writes even where it must not, so small arrays are copied.
            small = argument.nbytes <= COPIED_BYTES
            argument = argument.copy("K") if small else argument.view()
            argument.setflags(False)
    elif type(argument) in (tuple, list, dict):
        try:
            if type(argument) is dict:
                return {key: guarded(value) for key, value in argument.items()}
            return type(argument)(map(guarded, argument))
        except RecursionError:
            raise tree.too_deep() from None
    return argument


def leaf_names(argument: Any, name: str) -> list[str]:
    """How messages name the leaves of an argument."""
    return [name + path for path in tree.paths(argument)]


def check_inexact(argument: Any, leaves: list[Any], position: int, transform: str) -> None:
    """Every leaf to differentiate by must be a float or complex array."""
    for k, leaf in enumerate(leaves):
        if type(leaf) is np.ndarray:
            dtype = leaf.dtype
            if dtype is _FLOAT64 or dtype.kind in "fc":
                continue
        elif type(leaf) in _SINGLE:
            continue
        where = leaf_names(argument, f"argument {position}")[k]
        tree.check_array(leaf, f"{transform}: {where}")
        if dtype_of(leaf).kind not in "fc":
            raise errors.InputTypeError(
                f"{transform} differentiates by floating point arguments, but {where} has dtype "
                f"{dtype_of(leaf)}. Convert it (1.0 instead of 1, x.astype(float)), or leave it "
                "out of argnums."
            )


def own_all(
    cotangents: dict[int, Any], keys: list[int], likes: list[Any], seen: set[int]
) -> list[Any]:
    """The cotangents of some leaves as the user may keep them, like the leaves and no one else's."""
    values: list[Any] = list(map(cotangents.get, keys))
    addresses = set(map(id, values))
    unique = len(addresses) == len(values) and seen.isdisjoint(addresses)
    for k, value in enumerate(values):
        if (
            unique
            and type(value) is np.ndarray
            and value.base is None
            and value.ndim
            and value.dtype is likes[k].dtype
        ):
            continue  # the common case: it is nobody else's
        values[k] = _own(value, likes[k], seen)
    seen |= addresses
    return values


def own_distinct(values: list[Any], given: list[Any]) -> list[Any]:
    """The values as the user may keep them: none is one of `given`, or the same as another."""
    seen = set(map(id, given))
    results = []
    for value in values:
        if id(value) in seen:
            if isinstance(value, Tracer):
                value = value.snapshot()
            elif type(value) is np.ndarray:
                value = value.copy()
        seen.add(id(value))
        results.append(value)
    return results


def _own(value: Any, like: Any, seen: set[int]) -> Any:
    """A derivative of the shape and dtype of `like`.

    A view, or an array that was returned before, is copied, so that `g *= 2` changes only g.
    """
    if type(value) is Accumulator:
        value = value.settle()
    shape, dtype = shape_of(like), dtype_of(like)
    if value is None:
        return np.zeros(shape, dtype)[()]
    value = cast(value, dtype)
    if type(value) is np.ndarray:
        if not shape:
            return value[()]
        if id(value) in seen or not _sole_owner(value):
            value = value.copy()
        seen.add(id(value))
    return value


def _sole_owner(value: np.ndarray[Any, Any]) -> bool:
    """Whether nobody else can see the memory of an array: it is its own, or the only view of it."""
    base = value.base
    if base is None:
        return True
    # Three references: the array's own, the local one here, and the argument of getrefcount.
    alone = type(base) is np.ndarray and base.base is None and sys.getrefcount(base) == 3
    return alone and base.nbytes == value.nbytes and value.flags.writeable


def check_matching(
    values: list[Any], likes: list[Any], names: Callable[[], list[str]], what: str, of: str
) -> list[Any]:
    """Check tangents or cotangents against the values they belong to, leaf by leaf."""
    matched = []
    for k, (value, like) in enumerate(zip(values, likes, strict=True)):
        if not tree.is_array(value):
            tree.check_array(value, f"the {what} of {names()[k]}")
        if shape_of(value) != shape_of(like):
            name = names()[k]
            raise errors.TangentError(
                f"the {what} of {name} has shape {shape_of(value)}, but the {of} has shape "
                f"{shape_of(like)}. They must be equal: use np.broadcast_to or np.ones_like."
            )
        dtype = dtype_of(like)
        if dtype.kind in "fc":
            weak = type(value) in (bool, int, float, complex)
            fits = dtype.kind == "c" or type(value) is not complex if weak else True
            if not fits or (not weak and dtype_of(value) != dtype):
                name = names()[k]
                raise errors.TangentError(
                    f"the {what} of {name} has dtype {dtype_of(value)}, but the {of} has dtype "
                    f"{dtype}. They must be equal: use .astype({str(dtype)!r})."
                )
            value = cast(value, dtype)
        matched.append(value)
    return matched


def check_structure(found: Any, expected: Any, what: str, of: str) -> None:
    if found != expected:
        raise errors.TangentError(
            f"the {what} have another structure than the {of}: {found} instead of {expected}. "
            f"Give one {what.rstrip('s')} for every array, in the same containers."
        )


def what_it_is(value: Any) -> str:
    """What a function has returned, for a message: traced values are arrays to a user."""
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    if tree.is_array(value):
        return f"an array of shape {shape_of(value)}" if shape_of(value) else "one number"
    return "None" if value is None else type(value).__name__
