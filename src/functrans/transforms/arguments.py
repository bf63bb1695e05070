"""Arguments of transforms: choose, check, flatten, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.accumulate import Accumulator
from functrans.core.custody import own_distinct
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.hooks import meant_by
from functrans.core.shapes import cast, dtype_of, shape_of
from functrans.core.subclasses import plain_array

_FLOAT64 = np.dtype(float)
_SINGLE = frozenset({np.ndarray, float, np.float64, np.float32})


class _Later:
    """The default in place of the function, for a transform used as a decorator: @grad(argnums=1)."""

    def __repr__(self) -> str:
        return "..."


LATER: Any = _Later()


# How to call those that do not return a function.
_CALLED = {
    "vjp": "vjp(f, x)",
    "jvp": "jvp(f, (x,), (t,))",
    "hvp": "hvp(f, (x,), (v,))",
    "linearize": "linearize(f, x)",
    "linear_transpose": "linear_transpose(f, x)",
    "eval_shape": "eval_shape(f, x)",
    "trace_steps": "trace_steps(f, x)",
    "check_derivatives": "check_derivatives(f, (x,))",
    "cond": "cond(condition, f, g, x)",
    "switch": "switch(index, [f, g, h], x)",
    "while_loop": "while_loop(cond, body, init)",
    "fori_loop": "fori_loop(lower, upper, body, init)",
    "scan": "scan(f, init, xs)",
    "map": "map(f, xs)",
    "associative_scan": "associative_scan(f, xs)",
    "pure_callback": "pure_callback(f, result_shape, x)",
    "tap": "tap(x, f)",
    "define_primitive": "define_primitive(name, f)",
    "defjvp": "g.defjvp(rule)",
    "defvjp": "g.defvjp(fwd, bwd)",
    "linear_solve": "linear_solve(matvec, b, solve)",
    "custom_root": "custom_root(f, init, solve)",
    "fixed_point": "fixed_point(f, x0)",
    "odeint": "odeint(f, y0, t)",
}


def check_callable(function: Any, transform: str) -> Any:
    """The function to trace: a hook for math.sin and similar ones, which nobody calls by name here."""
    if not callable(function):
        option = isinstance(function, (int, str, tuple, list, dict))
        other = f"{transform}(f, ...)" if option else f"{transform}(f)(x), not {transform}(f(x))"
        raise errors.InputTypeError(
            f"{transform} needs a function, not {tree.with_article(function)}, at "
            f"{errors.user_location()}. Write {_CALLED.get(transform, other)}."
        )
    return meant_by(function)


def several_values(option: Any, kind: type, name: str) -> tuple[Any, ...]:
    """An option that is one int (or str), or several of them, as a tuple."""
    values = (
        tuple(option) if isinstance(option, (tuple, list, set, frozenset, range)) else (option,)
    )
    kinds = (int, np.integer) if kind is int else (kind,)
    for value in values:
        if not is_plain(value, kinds) or isinstance(value, bool):
            raise errors.OptionError(
                f"{name} must be one {kind.__name__} or a tuple of them, not {option!r}, at "
                f"{errors.user_location()}."
            )
    return values


def positions_of(argnums: int | Sequence[int], count: int, function: Any) -> tuple[int, ...]:
    """`argnums` as non-negative positions, checked against the number of arguments."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    wanted = tuple(argnums) if isinstance(argnums, (tuple, list, range)) else (argnums,)
    positions = []
    for number in wanted:
        if not is_plain(number, (int, np.integer)) or isinstance(number, bool):
            raise errors.InputTypeError(
                f"argnums must be an int or a tuple of ints, not {argnums!r}, at "
                f"{errors.user_location()}. Give the positions of arguments of "
                f"{errors.describe(function)}: 0 is the first."
            )
        if not -count <= number < count:
            raise errors.ArgnumsError(
                f"argnums={argnums!r} names argument {number}, but {errors.describe(function)} was "
                f"called with {count} positional argument{'' if count == 1 else 's'}, at "
                f"{errors.user_location()}. Pass the argument by position, and count from 0."
            )
        positions.append(int(number) % count)
    if len(set(positions)) != len(positions):
        raise errors.ArgnumsError(
            f"argnums={argnums!r} names an argument twice, at {errors.user_location()}. Name each once."
        )
    return tuple(positions)


def flatten_argument(argument: Any) -> tuple[list[Any], Any]:
    """The leaves and structure of an argument; the structure of a bare array is None."""
    if type(argument) in _SINGLE:
        return [argument], None
    if isinstance(argument, Tracer):
        if argument.interpreter.closed:
            argument.interpreter.escaped()
        return [argument], None
    leaves, structure = tree.flatten(argument)
    return leaves, None if structure.is_leaf() else structure


def unflatten_argument(structure: Any, leaves: list[Any]) -> Any:
    return leaves[0] if structure is None else tree.unflatten(structure, leaves)


def leaf_names(argument: Any, name: str) -> list[str]:
    """The names of an argument's leaves, for messages."""
    return [name + path for path in tree.paths(argument)]


def check_inexact(argument: Any, leaves: list[Any], position: int, transform: str) -> None:
    """Check that every leaf to differentiate with respect to is a float or complex array."""
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
                f"{transform} differentiates with respect to floating point numbers, but {where} has "
                f"dtype {dtype_of(leaf)}, at {errors.user_location()}. {as_float(leaf)}"
            )


def as_float(leaf: Any) -> str:
    """A remedy for an integer argument, for messages."""
    if isinstance(leaf, (bool, int)):
        return f"Write {float(leaf)} instead of {leaf}."
    return "Convert it: x.astype(float)."


def own_all(
    cotangents: dict[int, Any], keys: list[int], likes: list[Any], seen: set[int]
) -> list[Any]:
    """The cotangents of some leaves, with their shapes and dtypes, in memory that the user owns."""
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
            continue  # the common case: nothing else refers to it
        values[k] = _own(value, likes[k], seen)
    seen |= addresses
    return values


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
    if type(value) is np.ndarray and not shape:
        return value[()]
    return own_distinct(value, seen)


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
                f"{shape_of(like)}, at {errors.user_location()}. They must be equal: "
                f"np.broadcast_to({what}, {shape_of(like)})."
            )
        if is_plain(value, np.ndarray):
            value = plain_array(value)
        dtype = dtype_of(like)
        if dtype.kind in "fc":
            weak = type(value) in (bool, int, float, complex)
            fits = dtype.kind == "c" or type(value) is not complex if weak else True
            if not fits or (not weak and dtype_of(value) != dtype):
                name = names()[k]
                raise errors.TangentError(
                    f"the {what} of {name} has dtype {dtype_of(value)}, but the {of} has dtype "
                    f"{dtype}, at {errors.user_location()}. They must be equal: "
                    f"{what}.astype({str(dtype)!r})."
                )
            value = cast(value, dtype)
        matched.append(value)
    return matched


def check_structure(found: Any, expected: Any, what: str, of: str) -> None:
    if found != expected:
        raise errors.TangentError(
            f"the {what} do not have the structure of the {of}: {tree.shown(found)} instead of "
            f"{tree.shown(expected)}, at {errors.user_location()}. Pass one {what.rstrip('s')} for every "
            "array, in the same containers."
        )


def what_it_is(value: Any) -> str:
    """Describe a function's result, for messages: traced values are arrays to a user."""
    if isinstance(value, (tuple, list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    if tree.is_array(value):
        return f"an array of shape {shape_of(value)}" if shape_of(value) else "one number"
    return "None" if value is None else tree.with_article(value)
