"""Abstract values: what is known of an array without its numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import errors

_WEAK_DTYPES = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
PYTHON_SCALARS = frozenset(_WEAK_DTYPES)
_INT = frozenset({int})
_add_up: Any = np.add.reduce


class ArraySpec:
    """The shape and dtype of an array, without its values.

    `weak` marks a Python scalar, which adapts to the dtype of what it meets (NEP 50).

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ArraySpec
    >>> ArraySpec((3, 2), np.float32)
    float32[3,2]
    """

    __slots__ = ("dtype", "shape", "weak")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: bool

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak: bool = False) -> None:
        self.shape = shape = tuple(shape)
        if not _INT.issuperset(map(type, shape)):
            self.shape = shape = tuple(map(operator.index, shape))
        if shape and min(shape) < 0:
            raise ValueError(f"a shape has no negative lengths: {shape}")
        self.dtype = np.dtype(dtype)
        self.weak = weak

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for length in self.shape:
            total *= length
        return total

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{'*' if self.weak else ''}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArraySpec)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak == other.weak
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak))


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, a tracer, a spec or a Python scalar."""
    if type(value) in PYTHON_SCALARS:
        return ()
    try:
        return value.shape  # type: ignore[no-any-return]
    except AttributeError:
        raise _no_array(value) from None


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an array, a tracer, a spec or a Python scalar."""
    weak = _WEAK_DTYPES.get(type(value))
    try:
        return value.dtype if weak is None else weak
    except AttributeError:
        raise _no_array(value) from None


def no_objects() -> errors.InputTypeError:
    """The error for an array of Python objects among traced values."""
    return errors.InputTypeError(
        "a traced value met an array of Python objects (dtype=object), at "
        f"{errors.user_location()}: these have no derivative. Convert it: array.astype(float)."
    )


def _no_array(value: Any) -> errors.InputTypeError:
    return errors.InputTypeError(
        f"a value of type {type(value).__name__} is not a number or an array of numbers, at "
        f"{errors.user_location()}. Convert it to a NumPy array first."
    )


def spec_of(value: Any) -> ArraySpec:
    """The abstract value of anything a primitive accepts."""
    if type(value) is ArraySpec:
        return value
    weak = _WEAK_DTYPES.get(type(value))
    if weak is not None:
        return ArraySpec((), weak, True)
    spec = getattr(value, "spec", None)  # tracers of the stage interpreter know theirs
    if type(spec) is ArraySpec:
        return spec
    try:
        return ArraySpec(value.shape, value.dtype)
    except AttributeError:
        raise _no_array(value) from None


def is_inexact(value: Any) -> bool:
    """Whether a value is floating or complex, that is, whether it can carry a derivative."""
    return dtype_of(value).kind in "fc"


def stand_in(spec: ArraySpec) -> Any:
    """A value of this spec that takes (almost) no memory, to ask NumPy what it would return."""
    if spec.weak:
        return spec.dtype.type(1).item()
    return np.broadcast_to(np.ones((), spec.dtype), spec.shape)


def sum_to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: add up the axes along which `shape` was repeated to give `value`."""
    given = shape_of(value)
    if given == shape:
        return value
    extra = len(given) - len(shape)
    axes = tuple(range(extra)) + tuple(
        axis + extra for axis, n in enumerate(shape) if n == 1 and given[axis + extra] != 1
    )
    if type(value) is np.ndarray:
        total = _add_up(value, axes)
    else:
        total = value.sum(axis=axes) if axes else value
    return total if shape_of(total) == shape else total.reshape(shape)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert to `dtype`; a complex value loses its imaginary part when `dtype` is real.

    That is the transpose (for the real inner product) of taking a real number as complex, so it is
    what both tangents and cotangents need.
    """
    if type(value) in PYTHON_SCALARS:
        return dtype.type(value if dtype.kind == "c" else value.real)
    if value.dtype == dtype:
        return value
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real
    return value.astype(dtype)


def fit(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Turn a cotangent of a broadcast, promoted argument into one of the argument itself."""
    given = value.shape
    if given != shape:
        if type(value) is np.ndarray and given[1:] == shape:  # a bias beside a batch
            value = _add_up(value, 0)
        else:
            value = sum_to_shape(value, shape)
    return value if value.dtype is dtype else cast(value, dtype)


def conform(tangent: Any, out: Any) -> Any:
    """Give a tangent the shape and dtype of the value it belongs to."""
    if type(out) in PYTHON_SCALARS:
        return cast(tangent, _WEAK_DTYPES[type(out)])
    shape, dtype = out.shape, out.dtype
    if shape_of(tangent) != shape:
        tangent = np.broadcast_to(tangent, shape)
    # A complex number of Python's times a number of NumPy's is one of Python's, without a dtype.
    return tangent if getattr(tangent, "dtype", None) is dtype else cast(tangent, dtype)
