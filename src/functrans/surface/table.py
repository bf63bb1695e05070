"""The table behind `np.f(tracer)`, and how functions of it read their arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete
from functrans.core.shapes import shape_of
from functrans.core.tracer import FUNCTIONS, check_fits, deliver, numeric
from functrans.core.tree import too_deep

# Types of arguments in which nothing traced can be, to find this out quickly.
PLAIN = frozenset({np.ndarray, int, float, complex, bool, str, type(None), np.float64, type, slice})

_Function = TypeVar("_Function", bound=Callable[..., Any])


def implements(*numpy_functions: Any) -> Callable[[_Function], _Function]:
    """Register a function as the meaning of NumPy's own on traced values."""

    def register(function: _Function) -> _Function:
        for numpy_function in numpy_functions:
            FUNCTIONS[numpy_function] = function
        return function

    return register


def newer(name: str) -> tuple[Any, ...]:
    """For `implements`: a function that not every supported version of NumPy has, if this one does."""
    return (getattr(np, name),) if hasattr(np, name) else ()


def as_array(x: Any) -> Any:
    """A traced value as it is; anything else as an array (lists may hold traced values)."""
    if isinstance(x, Tracer):
        return x
    if isinstance(x, (list, tuple)) and holds_tracer(x):
        return np.stack([as_array(item) for item in x])
    return np.asarray(numeric(np.asanyarray(x), x))


def without_lists(x: Any) -> Any:
    """A list as an array; anything else as it is, since Python's scalars take the others' dtype."""
    return as_array(x) if isinstance(x, (list, tuple)) else x


def holds_tracer(value: Any) -> bool:
    """Whether a value is traced, or a traced one is somewhere in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        try:
            for item in value:
                if type(item) not in PLAIN and holds_tracer(item):
                    return True
        except RecursionError:
            raise too_deep() from None
        return False
    return isinstance(value, Tracer)


def axis_tuple(axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` as NumPy's reductions take it (None, int or tuple), as non-negative ints."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    return normalize_axis_tuple(axis, ndim)


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The same for functions that take a number for an array of one, as reductions by a ufunc do."""
    return axis_tuple(axis, ndim) if ndim or axis not in (0, -1) else ()


def axis_index(axis: Any, ndim: int) -> int:
    """One axis as a non-negative int."""
    return int(normalize_axis_index(operator.index(axis), ndim))


def static_ints(value: Any) -> Any:
    """Shapes, repeats and shifts must be plain: a traced one asks for its value."""
    if isinstance(value, (tuple, list)):
        return tuple(int(concrete(v)) for v in value)
    return concrete(value)


def known(value: Any) -> Any:
    """A plain value to check, or None where values are not known because a function is staged."""
    try:
        return concrete(value)
    except errors.StagingError:
        return None


def merge_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """The given axes of an array as one last axis."""
    shape = shape_of(x)
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    count = prod(shape[k] for k in axes)
    return np.transpose(x, rest + axes).reshape((*(shape[k] for k in rest), count))


def refuse(name: str, **options: Any) -> None:
    """Refuse options of a NumPy function that traced values do not support."""
    for option, value in options.items():
        if value is not None and value is not np._NoValue:
            raise errors.MissingRuleError(
                f"np.{name} with {option}= has no rule for traced values, at "
                f"{errors.user_location()}. Leave it out; use np.where for a mask, and the "
                "returned array in place of out=."
            )


def into(out: Any, result: Any) -> Any:
    """Write a result into `out`, which a method or a positional argument gave; returns `out`."""
    check_fits(out, result, "a NumPy function")
    return deliver(out, result, "a NumPy function")


def given(value: Any, default: Any = None) -> Any:
    """The value of an option, or `default` if NumPy's marker for "not given" stands there."""
    return default if value is np._NoValue else value


def ndim_of(x: Any) -> int:
    return len(shape_of(x))
