"""The table behind `np.f(tracer)`, and how its functions read their arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete
from functrans.core.shapes import shape_of
from functrans.core.tracer import FUNCTIONS, check_fits, deliver, in_numpy, numeric, refuse_endless
from functrans.core.tree import too_deep
from functrans.core.views import is_mutable
from functrans.ops.structure import copy

# Types of arguments that cannot contain traced values, for a quick check.
PLAIN = frozenset(
    {np.ndarray, int, float, complex, bool, str, type(None), type, slice, type(Ellipsis), np.dtype}
    | {np.dtype(code).type for code in "?bhilqBHILQefdFD"}
)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def implements(*numpy_functions: Any) -> Callable[[_Function], _Function]:
    """Register a function as the implementation of a NumPy function for traced values."""

    def register(function: _Function) -> _Function:
        for numpy_function in numpy_functions:
            FUNCTIONS[numpy_function] = function
        return function

    return register


def newer(name: str) -> tuple[Any, ...]:
    """For `implements`: a function that only some supported versions of NumPy have, or nothing."""
    return (getattr(np, name),) if hasattr(np, name) else ()


# Results without axes are numbers for most of NumPy's functions, and arrays for some.


def as_number(x: Any) -> Any:
    """The result, but a number instead of a zero-dimensional array."""
    is_array = is_mutable(x) if isinstance(x, Tracer) else isinstance(x, np.ndarray)
    traced: Any = x
    return traced[()] if is_array and not shape_of(x) else x


def in_array(x: Any) -> Any:
    """The result, but a zero-dimensional array instead of a number."""
    if isinstance(x, Tracer):
        return x if is_mutable(x) else copy(in_numpy(x))
    return np.asarray(x)


def returns_numbers(function: _Function) -> _Function:
    """A function that returns numbers where its rule returns zero-dimensional arrays."""
    return wraps(function)(lambda *args, **kwargs: as_number(function(*args, **kwargs)))  # type: ignore[return-value]


def returns_arrays(function: _Function) -> _Function:
    """A function that always returns arrays, even zero-dimensional ones."""
    return wraps(function)(lambda *args, **kwargs: in_array(function(*args, **kwargs)))  # type: ignore[return-value]


def as_array(x: Any) -> Any:
    """A traced value unchanged; anything else as an array (lists may hold traced values)."""
    if isinstance(x, Tracer):
        return x
    if isinstance(x, (list, tuple)) and holds_tracer(x):
        return np.stack([as_array(item) for item in x])
    refuse_endless(x)
    return np.asarray(numeric(np.asanyarray(x), x))


def without_lists(x: Any) -> Any:
    """A list as an array; anything else unchanged, since Python scalars adopt the other operands' dtype."""
    return as_array(x) if isinstance(x, (list, tuple)) else x


def holds_tracer(value: Any) -> bool:
    """Whether a value is traced, or nested lists and tuples contain a traced value."""
    if isinstance(value, (list, tuple)):
        if PLAIN.issuperset(map(type, value)):  # quick for long lists of numbers
            return False
        try:
            for item in value:
                if type(item) not in PLAIN and holds_tracer(item):
                    return True
        except RecursionError:
            raise too_deep() from None
        return False
    return isinstance(value, Tracer)


def axis_tuple(axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` as NumPy's reductions accept it (None, int or tuple), as non-negative ints."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if type(axis) is tuple or type(axis) is list:
        axes = tuple([k % ndim for k in axis if type(k) is int and -ndim <= k < ndim])
        if len(axes) == len(axis) == len(set(axes)):  # the common case, without the calls
            return axes
    return normalize_axis_tuple(axis, ndim)


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The same for functions that treat a number as an array of one element, as ufunc.reduce does."""
    return axis_tuple(axis, ndim) if ndim or axis not in (0, -1) else ()


def axis_index(axis: Any, ndim: int) -> int:
    """One axis as a non-negative int."""
    return int(normalize_axis_index(operator.index(axis), ndim))


def static_ints(value: Any) -> Any:
    """Shapes, repeats and shifts must be plain: the value of a traced one is read."""
    if isinstance(value, (tuple, list)):
        return tuple(int(concrete(v)) for v in value)
    return concrete(value)


def known(value: Any) -> Any:
    """A plain value to check, or None if values are not known because a function is being staged."""
    try:
        return concrete(value)
    except errors.StagingError:
        return None


def decided(condition: Any, what: str, remedy: str) -> bool:
    """Whether a condition holds on which the shape or dtype of a result depends."""
    truth = known(condition)
    if truth is None:
        raise errors.StagingError(
            f"{what}, depending on values that are not known while a function is traced, at "
            f"{errors.user_location()}. {remedy}"
        )
    return bool(truth)


def merge_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """Move the given axes of an array to the end, and flatten them into one."""
    shape = shape_of(x)
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    count = prod(shape[k] for k in axes)
    return np.transpose(x, rest + axes).reshape((*(shape[k] for k in rest), count))


_OTHERWISE = {"where": ", and choose entries of the result with np.where."}


def refuse(name: str, **options: Any) -> None:
    """Refuse options of a NumPy function that traced values do not support."""
    for option, value in options.items():
        if value is not None and value is not np._NoValue:
            raise errors.MissingRuleError(
                f"np.{name} with {option}= has no rule for traced values, at "
                f"{errors.user_location()}. Leave it out"
                + (
                    ", and use the returned array."
                    if option == "out"
                    else _OTHERWISE.get(option, ".")
                )
            )


def into(out: Any, result: Any) -> Any:
    """Write a result into `out`, an argument of a method or a positional argument; returns `out`."""
    check_fits(out, result, "a NumPy function")
    return deliver(out, result, "a NumPy function")


def given(value: Any, default: Any = None) -> Any:
    """The value of an option, or `default` if it is NumPy's marker for "not given"."""
    return default if value is np._NoValue else value


def ndim_of(x: Any) -> int:
    return len(shape_of(x))
