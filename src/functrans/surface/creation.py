"""Arrays from traced values, and arrays like traced ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, concrete, running_interpreters
from functrans.core.evaluate import open_array
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import in_numpy
from functrans.core.views import is_mutable, view_of
from functrans.ops import access, structure
from functrans.surface.table import as_array, holds_tracer, implements, in_array, newer


def array(value: Any, dtype: Any = None) -> Any:
    """Make an array from nested lists, which may hold traced values."""
    if not holds_tracer(value):
        return opened(np.array(value, dtype=dtype))
    if dtype is not None and np.dtype(dtype).kind in "iuf":
        _refuse_complex_numbers(value, np.dtype(dtype).type)
    result: Any = copy(value) if isinstance(value, Tracer) else as_array(value)
    return result if dtype is None else result.astype(np.dtype(dtype))


def _refuse_complex_numbers(value: Any, target: Any) -> None:
    """Refuse complex numbers of Python's, in lists, too, for an array of real numbers, as NumPy does."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _refuse_complex_numbers(item, target)
    elif isinstance(value, Tracer) or type(value) is complex:
        access.refuse_python_complex(value, target)


def asarray(value: Any, dtype: Any = None) -> Any:
    """Like `array`, but arrays are not copied."""
    if isinstance(value, Tracer) and (dtype is None or dtype_of(value) == np.dtype(dtype)):
        return in_array(value)
    if holds_tracer(value):
        return array(value, dtype)
    return opened(np.asarray(value, dtype=dtype))


def opened(value: Any) -> Any:
    """A new array, which accepts traced values inside a transform."""
    return open_array(value) if running_interpreters() else value


def _like(make: Any, make_like: Any) -> Any:
    """np.zeros_like and similar functions: an array with the shape and dtype of a traced one."""

    def like(
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: Any = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        wanted = dtype_of(a) if dtype is None else dtype
        if shape is None and (held := access.layout(a)) is not None:
            return open_array(make_like(held, dtype=wanted, order=order))
        return open_array(make(shape_of(a) if shape is None else shape, dtype=wanted))

    return like


for _function, _make in (
    (np.zeros_like, np.zeros),
    (np.ones_like, np.ones),
    (np.empty_like, np.zeros),  # never show uninitialized memory
):
    implements(_function)(_like(_make, np.ones_like if _make is np.ones else np.zeros_like))


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    a = as_array(a) if isinstance(a, (list, tuple)) else a
    chosen = shape_of(a) if shape is None else shape
    if shape is None and not holds_tracer(fill_value):
        held = access.layout(a)
        if held is not None:
            wanted = dtype_of(a) if dtype is None else dtype
            return open_array(np.full_like(held, fill_value, dtype=wanted, order=order))
    filled = in_array(np.broadcast_to(fill_value, chosen))
    return open_array(filled.astype(dtype_of(a) if dtype is None else np.dtype(dtype)))


def _opened(make: Any) -> Any:
    """A NumPy function that creates an array, in the form that np.f(..., like=x) calls."""
    return lambda *args, **kwargs: open_array(make(*args, **kwargs))


_constructor: Any
for _constructor in (
    np.zeros,
    np.ones,
    np.empty,
    np.eye,
    np.identity,
    np.tri,
    np.frombuffer,
):
    implements(_constructor)(_opened(_constructor))


@implements(np.arange)
def arange_of(*args: Any, dtype: Any = None, device: Any = None, **named: Any) -> Any:
    """np.arange(..., like=x); its length depends on values, which must be known."""
    bounds = {**dict(zip(("start", "stop", "step"), args, strict=False)), **named}
    if bounds.get("stop") is None:
        bounds["start"], bounds["stop"] = 0, bounds["start"]
    start, step = bounds.get("start", 0), bounds.get("step")
    step = 1 if step is None else step
    numbers = np.arange(concrete(start), concrete(bounds["stop"]), concrete(step), dtype=dtype)
    if holds_tracer((start, step)):
        return (start + step * np.arange(len(numbers))).astype(numbers.dtype)
    return open_array(numbers)


@implements(np.full)
def full_of(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **options: Any
) -> Any:
    filled = np.broadcast_to(fill_value, shape)
    return open_array(filled.astype(filled.dtype if dtype is None else np.dtype(dtype)))


@implements(np.array)
def array_like(object: Any, dtype: Any = None, **options: Any) -> Any:
    return open_array(array(object, dtype))


@implements(np.asarray, np.asanyarray, np.require)
def asarray_like(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    return open_array(asarray(a, dtype))


def _with_an_axis(x: Any) -> Any:
    return x if shape_of(x) else np.reshape(x, (1,))


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    x = _with_an_axis(asarray_like(a, dtype))
    return x if access.is_contiguous(x) else x.copy()


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> Any:
    x = _with_an_axis(asarray_like(a, dtype))
    return x if access.is_contiguous(np.transpose(x)) else x.copy(order="F")


@implements(np.shape)
def shape(a: Any) -> Any:
    return shape_of(a)


@implements(np.ndim)
def ndim(a: Any) -> Any:
    return len(shape_of(a))


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    lengths = shape_of(a)
    if axis is None:
        return int(np.prod(lengths, dtype=int))
    return int(np.prod([lengths[k] for k in np.atleast_1d(axis)], dtype=int))


@implements(np.result_type)
def result_type(*values: Any) -> Any:
    return np.result_type(*(_typed(value) for value in values))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    return np.can_cast(dtype_of(from_) if isinstance(from_, Tracer) else from_, to, casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty((), dtype_of(a)) for a in arrays))


def _typed(value: Any) -> Any:
    if not isinstance(value, Tracer):
        return value
    spec = getattr(value, "spec", None)
    if spec is not None and spec.weak:
        return spec.dtype.type(0).item()
    return dtype_of(value)


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> Any:
    return dtype_of(x).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> Any:
    return dtype_of(x).kind != "c"


@implements(np.copy)
def copy(a: Any, order: Any = "K", subok: Any = False) -> Any:
    # Assignments are functional, so a copy is a second name for the same value.
    x: Any = a
    if order == "F" or (order == "A" and access.is_contiguous(np.transpose(x))):
        return np.transpose(copy(np.transpose(x), "C"))
    if not isinstance(a, Tracer):
        return structure.copy(a)
    if not a.shape and not is_mutable(a):  # type: ignore[attr-defined]
        return structure.copy(in_numpy(a))  # of a number, an array without axes
    if access.is_contiguous(a):
        return a.snapshot()
    if order != "K":
        return structure.copy(a)
    axes = access.memory_order(np.empty_like(access.layout(x)))
    return np.transpose(structure.copy(np.transpose(x, axes)), np.argsort(axes))


@implements(np.array_repr)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> Any:
    return repr(arr)


@implements(np.array_str)
def array_str(a: Any, *args: Any, **kwargs: Any) -> Any:
    return str(a)


@implements(np.array2string)
def array2string(a: Any, *args: Any, **kwargs: Any) -> Any:
    return str(a)


@implements(*newer("astype"))
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    dtype = np.dtype(dtype)
    return x.astype(dtype, copy=copy)


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    """The dtype of an array; for a scalar it depends on the value."""
    return np.min_scalar_type(np.empty(1, dtype_of(a)) if shape_of(a) else concrete(a))


@implements(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether an assignment to one would change the other."""
    (owner, places), (other, others) = _memory(a), _memory(b)
    return owner is other and bool(np.isin(places, others).any())


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    (owner, places), (other, others) = _memory(a), _memory(b)
    if owner is not other or not places.size or not others.size:
        return False
    return bool(places.min() <= others.max() and others.min() <= places.max())


def _memory(x: Any) -> tuple[Any, Any]:
    """The base array of a view, and the places in it that the view shows."""
    x, views = as_array(x), []
    while (view := view_of(x)) is not None:
        views.append(view)
        x = view.parent
    places = np.arange(np.size(x)).reshape(shape_of(x))
    if dtype_of(x).kind == "c":  # the real and imaginary parts have separate positions
        places = 2 * places + 1j * (2 * places + 1)
    for view in reversed(views):
        places = np.asarray(view.read(places))
    return x, np.append(places.real, places.imag) if places.dtype.kind == "c" else places
