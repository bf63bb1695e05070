"""Arguments and results as plain data: JSON, vectors of floats, and leaves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Vector = np.ndarray


def smooth(x: Any, *rest: Any) -> Any:
    """The function that is passed where a package expects one."""
    return np.sin(x) + 0.3 * x * x


FUNCTIONS: dict[str, Callable[..., Any]] = {"smooth": smooth}


def encode(value: Any) -> Any:
    """An argument as JSON. Lists, numbers, strings and None stand for themselves."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    for name, function in FUNCTIONS.items():
        if value is function:
            return {"function": name}
    return value


def decode(data: Any) -> Any:
    """A new argument from its JSON: a function may write into its arguments."""
    if isinstance(data, dict):
        if "array" in data:
            return np.array(data["array"], dtype=float)
        if "tuple" in data:
            return tuple(decode(item) for item in data["tuple"])
        return FUNCTIONS[data["function"]]
    if isinstance(data, list):
        return [decode(item) for item in data]
    return data


def is_floating(value: Any) -> bool:
    """Whether an argument consists of floats only, and so can be differentiated."""
    if isinstance(value, float):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == float and value.size > 0
    return isinstance(value, (list, tuple)) and bool(value) and all(map(is_floating, value))


def to_vector(value: Any) -> Vector:
    """The floats of an argument."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([to_vector(item) for item in value])
    return np.ravel(np.asarray(value, dtype=float))


def from_vector(vector: Vector, like: Any) -> Any:
    """An argument of the same kind as `like`, with other floats."""
    if isinstance(like, (list, tuple)):
        items = []
        for item in like:
            size = to_vector(item).size
            items.append(from_vector(vector[:size], item))
            vector = vector[size:]
        return type(like)(items)
    if isinstance(like, np.ndarray):
        return np.array(vector, dtype=float).reshape(like.shape)
    return float(vector[0])


def split(vector: Vector, likes: Sequence[Any]) -> list[Any]:
    """Several arguments from one vector."""
    values = []
    for like in likes:
        size = to_vector(like).size
        values.append(from_vector(vector[:size], like))
        vector = vector[size:]
    return values


def map_floats(function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to the floats and arrays of arguments of the same kind."""
    first = values[0]
    if isinstance(first, (list, tuple)):
        return type(first)(map_floats(function, *items) for items in zip(*values, strict=True))
    return function(*values)


def leaves(result: Any) -> list[Any]:
    """The numbers and arrays of a result; of traced results, too, so types are not asked for."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def is_float_leaf(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind == "f" and leaf.size > 0
    return isinstance(leaf, (float, np.floating))
