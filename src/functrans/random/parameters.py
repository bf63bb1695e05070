"""How the functions of `functrans.random` read their arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete, is_plain
from functrans.core.shapes import shape_of
from functrans.core.tracer import ConcreteTracer
from functrans.surface.creation import asarray

Shape = int | Sequence[int]


def checked_key(key: Any) -> Any:
    """Return a key, after checking that it is a uint32 array of shape (2,), plain or traced."""
    shape, dtype = getattr(key, "shape", None), getattr(key, "dtype", None)
    if shape == (2,) and dtype == np.uint32:
        return key
    given = type(key).__name__ if dtype is None else f"{dtype}[{','.join(map(str, shape or ()))}]"
    raise errors.InputTypeError(
        f"a key must be a uint32 array of shape (2,), but this one is {given}, at {errors.user_location()}. "
        + (
            "It is a stack of keys: map the function over it with vmap."
            if dtype == np.uint32 and shape and shape[-1] == 2
            else "Make one from an integer: functrans.random.key(seed)."
        )
    )


def shape_argument(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints."""
    shape = concrete(shape)
    try:
        if isinstance(shape, (Sequence, np.ndarray)) and not isinstance(shape, str):
            lengths = tuple(operator.index(n) for n in shape)
        else:
            lengths = (operator.index(shape),)
    except TypeError:
        lengths = (-1,)
    if any(n < 0 for n in lengths):
        raise errors.OptionError(
            f"a shape must be a tuple of non-negative integers, not {shape!r}, at "
            f"{errors.user_location()}."
        )
    return lengths


def common_shape(shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of the result: `shape`, to which the parameters broadcast; or theirs if it is None."""
    shapes = [shape_of(parameter) for parameter in parameters]
    if shape is None:
        return np.broadcast_shapes(*shapes)
    wanted = shape_argument(shape)
    try:
        if np.broadcast_shapes(wanted, *shapes) == wanted:
            return wanted
    except ValueError:
        pass
    raise errors.OptionError(
        f"parameters of shape {', '.join(map(str, shapes))} do not broadcast to shape={wanted}, at "
        f"{errors.user_location()}. Each number needs its own parameters: put the parameters' axes "
        "last in the shape, or leave shape out to draw one number for each."
    )


def float_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of real floating point numbers."""
    wanted: np.dtype[Any] = np.dtype(dtype)
    if wanted.kind == "f" and wanted.itemsize <= 8:
        return wanted
    raise errors.OptionError(
        f"dtype={wanted} at {errors.user_location()}: these random numbers must be float16, float32 or "
        "float64. Draw one of these and convert it with .astype(...)."
    )


def integer_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of integers."""
    wanted: np.dtype[Any] = np.dtype(dtype)
    if wanted.kind in "iu":
        return wanted
    raise errors.OptionError(
        f"dtype={wanted} at {errors.user_location()}: these random numbers must be integers. Draw an "
        "integer type and convert it with .astype(...)."
    )


def real_parameter(value: Any, name: str, dtype: Any = np.float64) -> Any:
    """A parameter of a distribution, plain or traced, as an array of floating point numbers."""
    array = asarray(value)
    if array.dtype.kind not in "biuf":
        raise errors.InputTypeError(
            f"the parameter {name} has dtype {array.dtype}, at {errors.user_location()}: it must be "
            "a real number or an array of real numbers."
        )
    return array if array.dtype == dtype else array.astype(dtype)


def require(name: str, value: Any, valid: Any, what: str) -> None:
    """Refuse a parameter that does not satisfy `valid`, where its value is known.

    Values that are known only later (in a graph), or that differ between lanes, are not checked.
    """
    while isinstance(value, ConcreteTracer):
        value = value.value
    if isinstance(value, Tracer) or np.all(valid(value)):
        return
    raise errors.OptionError(f"{name} must be {what}, at {errors.user_location()}.")


def finished(value: Any, dtype: Any) -> Any:
    """A result in the requested dtype; a scalar if it has no axes."""
    value = value if value.dtype == dtype else value.astype(dtype)
    return value[()] if is_plain(value, np.ndarray) and not value.shape else value
