"""PyTorch's dtypes on top of NumPy's: names, categories, promotion, and the default for floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch.errors import TensorTypeError


class dtype:
    """The type of a tensor's entries, such as `torch.float32`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.float64, torch.float64.itemsize, torch.float64.is_floating_point
    (torch.float64, 8, True)
    """

    __slots__ = ("category", "itemsize", "legacy", "name", "numpy")

    def __init__(self, name: str, legacy: str) -> None:
        self.name = name
        self.legacy = legacy  # the word in error messages and in torch.FloatTensor
        self.numpy = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        # bool < integers < floats < complex numbers: promotion goes up in this order
        self.category = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}[self.numpy.kind]

    @property
    def is_floating_point(self) -> bool:
        return self.category == 2

    @property
    def is_complex(self) -> bool:
        return self.category == 3

    @property
    def is_signed(self) -> bool:
        return self.numpy.kind not in "bu"

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


float16 = dtype("float16", "Half")
float32 = dtype("float32", "Float")
float64 = dtype("float64", "Double")
complex64 = dtype("complex64", "ComplexFloat")
complex128 = dtype("complex128", "ComplexDouble")
uint8 = dtype("uint8", "Byte")
int8 = dtype("int8", "Char")
int16 = dtype("int16", "Short")
int32 = dtype("int32", "Int")
int64 = dtype("int64", "Long")
bool_ = dtype("bool", "Bool")

ALL = (
    float16,
    float32,
    float64,
    complex64,
    complex128,
    uint8,
    int8,
    int16,
    int32,
    int64,
    bool_,
)
_BY_NUMPY = {each.numpy: each for each in ALL}
_COMPLEX_OF = {float16: complex64, float32: complex64, float64: complex128}


class _Default:
    """The default dtype for floats."""

    torch = float32
    numpy = float32.numpy


default = _Default()


def set_default_dtype(d: dtype) -> None:
    """Set the default dtype of tensors made from Python floats; initially float32.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(1.5).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TensorTypeError(
            f"only floating-point types are supported as the default type, not {d!r}"
        )
    default.torch, default.numpy = d, d.numpy


def get_default_dtype() -> dtype:
    """The default dtype of tensors made from Python floats.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.get_default_dtype()
    torch.float32
    """
    return default.torch


def of_numpy(given: Any) -> dtype:
    """The torch dtype of a NumPy one."""
    try:
        return _BY_NUMPY[given]
    except KeyError:
        raise TensorTypeError(
            f"can't convert np.ndarray of type numpy.{given}. The only supported types are: "
            f"{', '.join(each.name for each in ALL)}."
        ) from None


def to_numpy(given: Any) -> np.dtype[Any]:
    """The NumPy dtype of a `torch.dtype`."""
    if isinstance(given, dtype):
        return given.numpy
    if given in _PYTHON:
        return _PYTHON[given]()  # type: ignore[no-any-return]
    raise TensorTypeError(f"dtype must be a torch.dtype, not {type(given).__name__}")


_PYTHON: dict[Any, Any] = {
    float: lambda: default.numpy,
    int: lambda: int64.numpy,
    bool: lambda: bool_.numpy,
    complex: lambda: _COMPLEX_OF[default.torch].numpy,
}


def complex_default() -> dtype:
    """The complex dtype that corresponds to the default for floats."""
    return _COMPLEX_OF[default.torch]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype of the higher category that holds both.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.promote_types(torch.int64, torch.float32)
    torch.float32
    """
    if type1.category == type2.category:
        return of_numpy(np.promote_types(type1.numpy, type2.numpy))
    low, high = sorted((type1, type2), key=lambda each: each.category)
    if high.category == 3 and low.category == 2:
        return of_numpy(np.promote_types(_COMPLEX_OF[low].numpy, high.numpy))
    return high


_SCALARS: dict[type, dtype] = {bool: bool_, int: int64}


def of_scalar(value: Any) -> dtype:
    """The dtype of a Python number as an operand."""
    known = _SCALARS.get(type(value))
    if known is not None:
        return known
    return complex_default() if isinstance(value, complex) else default.torch


def joint_dtype(arrays: list[Any], numbers: list[Any]) -> np.dtype[Any]:
    """The dtype in which PyTorch computes with arrays (or NumPy scalars) and Python numbers.

    Arrays with axes determine it. Arrays without axes count only if their category is higher, and numbers
    only if theirs is higher still.
    """
    found: dtype | None = None
    ranks = (
        [_BY_NUMPY[a.dtype] for a in arrays if a.shape],
        [_BY_NUMPY[a.dtype] for a in arrays if not a.shape],
        [of_scalar(number) for number in numbers],
    )
    for rank in ranks:
        if rank:
            joint = rank[0]
            for each in rank[1:]:
                joint = promote_types(joint, each)
            if found is None:
                found = joint
            elif joint.category > found.category:
                found = promote_types(found, joint) if joint.category == 3 else joint
    assert found is not None
    return found.numpy


class finfo:
    """The numerical limits of a floating point dtype.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.finfo(torch.float64).eps
    2.220446049250313e-16
    """

    def __init__(self, type: dtype | None = None) -> None:
        chosen = type or default.torch
        if chosen.category < 2:
            raise TensorTypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{chosen!r}'"
            )
        info = np.finfo(chosen.numpy)
        self.bits = info.bits
        self.eps, self.max, self.min = (
            info.eps.item(),
            info.max.item(),
            info.min.item(),
        )
        self.tiny = self.smallest_normal = info.tiny.item()
        self.resolution = info.resolution.item()
        self.dtype = chosen.name

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        parts = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({parts}, dtype={self.dtype})"


class iinfo:
    """The numerical limits of an integer dtype.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.iinfo(torch.int8).max
    127
    """

    def __init__(self, type: dtype) -> None:
        info = np.iinfo(type.numpy)
        self.bits, self.max, self.min = info.bits, info.max, info.min
        self.dtype = type.name
