"""The methods and attributes of np.ndarray on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.conversions import learn
from functrans.core.floating_point import real_part
from functrans.core.tracer import ArrayTracer, install_method
from functrans.core.views import is_mutable, view_of
from functrans.ops import elementwise as ew
from functrans.ops import structure
from functrans.surface import creation, elementwise, products, reductions, searching, shaping


def _reshape(x: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    return shaping.reshape(x, shape[0] if len(shape) == 1 else shape, order, copy=copy)


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
    if x.dtype.kind == "c" and wanted.kind in "iuf":
        x = real_part(x)
    return structure.astype(x, dtype=wanted)


def _copy(x: Any, order: str = "C") -> Any:
    # A number gives a number, whereas np.copy gives an array without axes.
    return creation.copy(x, order) if x.shape or is_mutable(x) else x.snapshot()


def _view(x: Any, dtype: Any = None) -> Any:
    """The same numbers, or complex numbers as pairs of real ones, and back. Bits have no derivative."""
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    if wanted == x.dtype:
        return x[...] if is_mutable(x) else x.snapshot()
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
    return ew.from_parts(parts[..., 0], parts[..., 1]).astype(wide)


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
    "clip": elementwise.clip,
    "round": elementwise.round_,
    # Python's round, math.floor and similar functions give plain ints, which loops and ranges need.
    "__round__": lambda x, ndigits=None: (
        int(np.rint(x)) if ndigits is None else elementwise.round_(x, ndigits)
    ),
    "__floor__": lambda x: int(np.floor(x)),
    "__ceil__": lambda x: int(np.ceil(x)),
    "__trunc__": lambda x: int(np.trunc(x)),
    "conj": lambda x: np.conjugate(x) if x.dtype.kind == "c" else x,
    "conjugate": lambda x: np.conjugate(x) if x.dtype.kind == "c" else x,
    "copy": _copy,
    "__contains__": lambda x, value: bool(np.any(x == value)),
}.items():
    install_method(_name, _function)


def _base(x: Any) -> Any:
    """The base array of a view."""
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


# Attributes that need an array in memory, and what to write instead.

_RETURN = "Return x, with has_aux=True if it is an extra result, and call {name} there."
_CALL = "Pass the plain array on with functrans.pure_callback(f, result_shape, x)."
_METHODS = {
    "dump": _RETURN,
    "tofile": _RETURN,
    "dumps": _RETURN,
    "tobytes": _RETURN,
    "byteswap": _CALL,
    "getfield": _CALL,
    "setfield": _CALL,
    "setflags": "Leave it out, and use x.copy() where x must not change.",
    "__dlpack__": _CALL,
    "__dlpack_device__": _CALL,
}
_ATTRIBUTES = {
    "ctypes": _CALL,
    "data": _CALL,
    "flags": "Leave it out: np.ascontiguousarray(x) and x.copy() work without checking flags.",
    "strides": "Take parts by indexing, or with np.lib.stride_tricks.sliding_window_view(x, n).",
}


def _refuse_memory(name: str, remedy: str) -> errors.MemoryAccessError:
    learn()
    return errors.MemoryAccessError(
        f"a traced array has no memory for x.{name} to show or change, at {errors.user_location()}. "
        + remedy.format(name=name)
    )


def _memory_method(name: str, remedy: str) -> Any:
    def method(x: Any, *args: Any, **options: Any) -> Any:
        raise _refuse_memory(name, remedy)

    return method


def _memory_attribute(name: str, remedy: str) -> Any:
    def get(x: Any) -> Any:
        raise _refuse_memory(name, remedy)

    def change(x: Any, value: Any) -> None:
        raise _refuse_memory(name, remedy)

    return property(get, change)


for _name, _remedy in _METHODS.items():
    install_method(_name, _memory_method(_name, _remedy))
for _name, _remedy in _ATTRIBUTES.items():
    setattr(ArrayTracer, _name, _memory_attribute(_name, _remedy))


# x.shape = shape, and x.dtype = dtype.


def _set_shape(x: Any, shape: Any) -> None:
    """Reshape x itself, which is one object under all its names. Views of it would no longer match."""
    views = any(viewer() is not None for viewer in getattr(x, "viewers", ()))
    if views or view_of(x) is not None or not is_mutable(x):
        raise errors.AssignmentError(
            "x.shape = ... cannot change a traced number, or an array that is a view or has views, at "
            f"{errors.user_location()}. Write x = np.reshape(x, shape)."
        )
    shaping.reshape(x.snapshot(), shape).copy_to(x)
    if hasattr(x, "layout"):
        del x.layout  # that of the old shape


def _set_dtype(x: Any, dtype: Any) -> None:
    raise errors.MemoryAccessError(
        "a traced array has no memory for x.dtype = ... to reinterpret, at "
        f"{errors.user_location()}. Convert the values: x = x.astype(dtype)."
    )


install_method("_set_shape", _set_shape)
install_method("_set_dtype", _set_dtype)
