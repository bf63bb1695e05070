"""The methods and attributes of np.ndarray on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.tracer import ArrayTracer, install_method
from functrans.core.views import view_of
from functrans.ops import structure
from functrans.surface import creation, entrywise, products, reductions, searching, shaping


def _reshape(x: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    return shaping.reshape(x, shape[0] if len(shape) == 1 else shape, order)


def _transpose(x: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return shaping.transpose(x)
    return shaping.transpose(x, axes[0] if len(axes) == 1 else axes)


def _astype(
    x: Any,
    dtype: Any,
    order: Any = "K",
    casting: Any = "unsafe",
    subok: Any = True,
    copy: Any = True,
) -> Any:
    wanted = np.dtype(dtype)
    if wanted == x.dtype and not copy:
        return x
    if not np.can_cast(x.dtype, wanted, casting):
        raise TypeError(
            f"Cannot cast array data from {x.dtype} to {wanted} according to {casting!r}"
        )
    if wanted.kind not in "biufc":
        raise TypeError(f"a traced value cannot have dtype {wanted}")
    return structure.astype(x, dtype=wanted)


def _view(x: Any, dtype: Any = None) -> Any:
    """The same numbers; complex ones as pairs of real ones, and back. Bits have no derivative."""
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    if wanted == x.dtype:
        return x[...]
    narrow, wide = sorted((wanted, x.dtype), key=lambda each: each.itemsize)
    pairs = (np.dtype(np.float32), np.dtype(np.complex64)), (np.dtype(float), np.dtype(complex))
    if (narrow, wide) not in pairs or not x.shape:
        raise errors.MissingRuleError(
            f"x.view({dtype!r}) reads the bytes of an array as another type, which has no "
            f"derivative, at {errors.user_location()}. Use x.astype to convert the values."
        )
    *lead, last = x.shape
    if wanted == narrow:
        return np.stack([x.real, x.imag], axis=-1).reshape((*lead, 2 * last))
    if last % 2:
        raise ValueError("the last axis must have an even length to be viewed as complex")
    parts = x.reshape((*lead, last // 2, 2))
    return (parts[..., 0] + 1j * parts[..., 1]).astype(wide)


for _name, _function in {
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "sum": reductions.sum,
    "prod": reductions.prod,
    "mean": reductions.mean,
    "var": reductions.var,
    "std": reductions.std,
    "max": reductions.max,
    "min": reductions.min,
    "any": reductions.any,
    "all": reductions.all,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "cumsum": reductions.cumsum,
    "cumprod": reductions.cumprod,
    "ravel": shaping.ravel,
    "flatten": lambda x, order="C": creation.copy(shaping.ravel(x, order), "C"),
    "squeeze": shaping.squeeze,
    "swapaxes": shaping.swapaxes,
    "repeat": shaping.repeat,
    "take": shaping.take,
    "argsort": shaping.argsort,
    "argpartition": searching.argpartition,
    "searchsorted": searching.searchsorted,
    "choose": searching.choose,
    "compress": lambda x, condition, axis=None, out=None: searching.compress(
        condition, x, axis, out
    ),
    "nonzero": searching.nonzero,
    "view": _view,
    "diagonal": shaping.diagonal,
    "trace": shaping.trace,
    "dot": products.dot,
    "clip": entrywise.clip,
    "round": entrywise.round_,
    # Python's round, math.floor and their kin give plain ints, which loops and ranges need.
    "__round__": lambda x, ndigits=None: (
        int(np.rint(x)) if ndigits is None else entrywise.round_(x, ndigits)
    ),
    "__floor__": lambda x: int(np.floor(x)),
    "__ceil__": lambda x: int(np.ceil(x)),
    "__trunc__": lambda x: int(np.trunc(x)),
    "conj": lambda x: np.conjugate(x) if x.dtype.kind == "c" else x,
    "conjugate": lambda x: np.conjugate(x) if x.dtype.kind == "c" else x,
    "copy": lambda x, order="C": creation.copy(x, order),
    "__contains__": lambda x, value: bool(np.any(x == value)),
}.items():
    install_method(_name, _function)


def _base(x: Any) -> Any:
    """The array that a view leads back to."""
    base = None
    while (view := view_of(x)) is not None:
        base = x = view.parent
    return base


for _name, _get in {
    "T": shaping.transpose,
    "mT": shaping.matrix_transpose,
    "device": lambda x: "cpu",
    "base": _base,
}.items():
    setattr(ArrayTracer, _name, property(_get))


def _refuse_memory(name: str) -> errors.MemoryAccessError:
    return errors.MemoryAccessError(
        f"a traced array has no memory for x.{name} to show or change, at "
        f"{errors.user_location()}. It may stand for many lanes, or for values that are not known "
        "yet, and bytes have no derivative. Work with plain arrays here: return x from the "
        "transformed function first, or use functrans.stop_gradient and has_aux=True."
    )


def _memory_method(name: str) -> Any:
    def method(x: Any, *args: Any, **options: Any) -> Any:
        raise _refuse_memory(name)

    return method


def _memory_attribute(name: str) -> Any:
    def get(x: Any) -> Any:
        raise _refuse_memory(name)

    return property(get)


_FILES = ("dump", "dumps", "tobytes", "tofile")
_BYTES = ("byteswap", "getfield", "setfield", "setflags", "__dlpack__", "__dlpack_device__")
for _name in _FILES + _BYTES:
    install_method(_name, _memory_method(_name))
for _name in ("ctypes", "data", "flags", "strides"):
    setattr(ArrayTracer, _name, _memory_attribute(_name))
