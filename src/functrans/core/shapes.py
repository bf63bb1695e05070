"""Abstract values: the shape and dtype of an array, without its numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.summation import FEW, add_up

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

    `weak` marks a Python scalar, which adapts to the dtype of the other operand (NEP 50).

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
            raise ValueError(f"the lengths in a shape must not be negative: {shape}")
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
        _python_number(value)
        return ()


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an array, a tracer, a spec or a Python scalar."""
    weak = _WEAK_DTYPES.get(type(value))
    try:
        return value.dtype if weak is None else weak
    except AttributeError:
        return _WEAK_DTYPES[_python_number(value)]


def _python_number(value: Any) -> type:
    """The type of numbers of which a value's type is a subclass, such as `class Meters(float)`."""
    for kind in PYTHON_SCALARS:
        if issubclass(type(value), kind):
            return kind
    raise _no_array(value)


def no_objects() -> errors.InputTypeError:
    """The error for an array of Python objects among traced values."""
    return errors.InputTypeError(
        "a traced value met an array of Python objects (dtype=object), which have no derivative, at "
        f"{errors.user_location()}. Convert it: array.astype(float)."
    )


def _no_array(value: Any) -> errors.InputTypeError:
    return errors.InputTypeError(
        f"a value of type {type(value).__name__} is not a number or an array of numbers, at "
        f"{errors.user_location()}. Convert it: np.asarray(x, dtype=float)."
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
        return ArraySpec((), _WEAK_DTYPES[_python_number(value)], True)


def is_python_number(spec: ArraySpec) -> bool:
    """Whether a number of Python's can have this shape and dtype."""
    return not spec.shape and spec.dtype in _WEAK_DTYPES.values()


def is_inexact(value: Any) -> bool:
    """Whether a value is floating or complex, that is, whether it can carry a derivative."""
    return dtype_of(value).kind in "fc"


def stand_in(spec: ArraySpec) -> Any:
    """A value of this spec that takes (almost) no memory, to find out what NumPy would return."""
    if spec.weak:
        return spec.dtype.type(1).item()
    return np.broadcast_to(np.ones((), spec.dtype), spec.shape)


# What shape rules ask of parameters. They must not trust these: a graph may come from a file, and what
# a shape rule lets pass is compiled.


def checked_axis(axis: Any, ndim: int) -> int:
    """An axis of an array with this many, counted from the front."""
    if not _is_integer(axis) or not 0 <= axis < ndim:
        raise ValueError(f"axis {axis!r} is not one of an array with {ndim} axes")
    return axis  # type: ignore[no-any-return]


def checked_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Different axes of an array with this many."""
    if type(axes) is not tuple or len(set(axes)) < len(axes):
        raise ValueError(f"{axes!r} are not different axes")
    return tuple([checked_axis(axis, ndim) for axis in axes])


def checked_shape(shape: Any) -> tuple[int, ...]:
    """A tuple of lengths."""
    if type(shape) is not tuple:
        raise TypeError(f"a shape is a tuple of integers, not {type(shape).__name__}")
    return tuple([checked_length(n) for n in shape])


def checked_choice(value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ValueError unless a parameter is one of these, and not merely equal to it."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"a parameter must be one of {choices}")


def checked_flags(*flags: Any) -> None:
    """Raise TypeError unless these are True or False."""
    if not {bool, np.bool_}.issuperset(map(type, flags)):
        raise TypeError("a parameter must be True or False")


def checked_kinds(kinds: str, *specs: ArraySpec) -> None:
    """Raise TypeError unless the dtypes are of these kinds."""
    if any(spec.dtype.kind not in kinds for spec in specs):
        raise TypeError(f"the dtypes {', '.join(str(spec.dtype) for spec in specs)} are not taken")


def broadcasts_to(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be broadcast to another one."""
    lengths = zip(shape[::-1], wanted[::-1], strict=False)
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in lengths)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def checked_length(value: Any, least: int = 0) -> int:
    """A number of entries."""
    if not _is_integer(value) or value < least:
        raise ValueError(f"{value!r} must be an integer of at least {least}")
    return value  # type: ignore[no-any-return]


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
        total = add_up(value, axes)
    else:
        total = value.sum(axis=axes) if axes else value
    return total if shape_of(total) == shape else total.reshape(shape)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert to `dtype`; a complex value loses its imaginary part when `dtype` is real.

    This is the transpose (for the real inner product) of converting a real number to complex, so both
    tangents and cotangents need it.
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
        if type(value) is np.ndarray and given[1:] == shape:  # a bias added to a batch
            few = given[0] <= FEW and value.itemsize > 2
            value = _add_up(value, 0) if few else add_up(value, (0,))
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
    # A Python complex number times a NumPy number is a Python number, without a dtype.
    return tangent if getattr(tangent, "dtype", None) is dtype else cast(tangent, dtype)
