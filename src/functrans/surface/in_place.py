"""NumPy's functions and methods that change an array in place, on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer, concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import FUNCTIONS, ArrayTracer, check_targets, install_method
from functrans.core.views import overwrite
from functrans.ops import access, indexing, structure
from functrans.surface import shaping
from functrans.surface.table import as_array, axis_index, implements, ndim_of


def _target(x: Any, name: str) -> Any:
    if not isinstance(x, (Tracer, np.ndarray)):
        raise TypeError(f"np.{name} changes an array in place, not {type(x).__name__}.")
    check_targets((x,), f"np.{name}")
    return x


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    _target(dst, "copyto")
    if where is True:
        access.assign_all(dst, src, casting)
        return
    source = as_array(src)
    if not np.can_cast(dtype_of(source), dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(source)} to {dst.dtype} according to {casting!r}"
        )
    access.assign_all(dst, np.where(where, source, dst))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    _target(a, "put")
    flat = shaping.ravel(a)
    places = shaping.ravel(as_array(ind))
    if mode == "wrap":
        places = places % a.size
    elif mode == "clip":
        places = np.clip(places, 0, a.size - 1)
    values = shaping.ravel(as_array(v))
    count = shape_of(places)[0]
    if count:
        _set_flat(a, flat, places, _cycled(values, count))


def _cycled(values: Any, count: int) -> Any:
    """The first `count` values, repeated if there are fewer."""
    length = shape_of(values)[0]
    return values if length == count else values[np.arange(count) % length]


def _set_flat(x: Any, flat: Any, places: Any, values: Any) -> None:
    """x.flat[places] = values."""
    fresh = flat.snapshot()
    access.setitem(fresh, places, values)
    overwrite(x, structure.reshape(fresh, shape=x.shape))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    _target(arr, "place")
    if np.size(as_array(mask)) != arr.size:
        raise ValueError("place: mask and data must be the same size")
    chosen = np.flatnonzero(np.asarray(concrete(as_array(mask))))
    if len(chosen):
        put(arr, chosen, vals)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    _target(a, "putmask")
    values = as_array(values)
    spread = values
    if ndim_of(values):
        spread = shaping.reshape(_cycled(shaping.ravel(values), a.size), a.shape)
    copyto(a, spread, "unsafe", as_array(mask))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    _target(arr, "put_along_axis")
    if axis is None:
        places = shaping.ravel(as_array(indices))
        spread = np.broadcast_to(as_array(values), shape_of(indices))
        _set_flat(arr, shaping.ravel(arr), places, shaping.ravel(spread))
        return
    axis = axis_index(axis, arr.ndim)
    access.setitem(arr, shaping.along_axis(arr, as_array(indices), axis), values)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    _target(a, "fill_diagonal")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    # NumPy determines the positions of the diagonal.
    marked = np.zeros(a.shape, bool)
    np.fill_diagonal(marked, True, wrap=wrap)
    put(a, np.flatnonzero(marked), val)


_ADDING = (np.add, np.subtract)  # whose names may be hooked when they are read


def _at(ufunc: Any, a: Any, indices: Any, b: Any = None) -> None:
    """ufunc.at: like a[indices] = ufunc(a[indices], b), but an element indexed twice is changed twice."""
    _target(a, f"{ufunc.__name__}.at")
    if b is None:
        for place in np.unique(_flat_places(a, indices)):
            count = int(np.sum(_flat_places(a, indices) == place))
            key = np.unravel_index(place, a.shape)
            for _ in range(count):
                a[key] = ufunc(a[key])
        return
    if ufunc in _ADDING:
        a, indices = access.without_flags(a, indices)
        template, arrays = access.index_of(a, indices)
        part = np.broadcast_to(as_array(b), shape_of(access.shape_only(a, template, arrays)))
        change = indexing.scatter(part.astype(a.dtype), *arrays, shape=a.shape, template=template)
        access.assign_all(a, ufunc(a, change))
        return
    places = _flat_places(a, indices)
    values = np.broadcast_to(as_array(b), places.shape)
    for k in np.ndindex(places.shape):
        key = np.unravel_index(places[k], a.shape)
        a[key] = ufunc(a[key], values[k])


def _flat_places(a: Any, indices: Any) -> Any:
    """The flat positions that an index names."""
    if isinstance(indices, Tracer):
        indices = concrete(indices)
    return np.arange(a.size).reshape(a.shape)[indices]


FUNCTIONS["at"] = _at


# Methods.


def fill(x: Any, value: Any) -> None:
    """x.fill(value)."""
    access.setitem(x, Ellipsis, value)


def sort(x: Any, axis: int = -1, kind: Any = None, order: Any = None, **options: Any) -> None:
    """x.sort(): in place."""
    overwrite(x, np.sort(x, axis, kind, order, **options))


def partition(
    x: Any, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None
) -> None:
    """x.partition(k): in place."""
    overwrite(x, np.partition(x, kth, axis, kind, order))


def resize(x: Any, *new_shape: Any, refcheck: bool = True) -> None:
    """x.resize would change the size of memory that views see."""
    raise errors.AssignmentError(
        f"a traced array cannot be resized in place, at {errors.user_location()}. Write "
        "x = np.resize(x, shape), or np.concatenate to append zeros."
    )


class FlatView:
    """x.flat: reads and writes by flat position, and iterates."""

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Any:
        return iter(shaping.ravel(self.base))

    def __getitem__(self, key: Any) -> Any:
        return shaping.ravel(self.base).snapshot()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        places = np.arange(self.base.size)[key]
        if np.ndim(places):
            put(self.base, places, value)
        else:
            _set_flat(self.base, shaping.ravel(self.base), places, value)

    def copy(self) -> Any:
        return shaping.ravel(self.base).copy()


_function: Any
for _name, _function in {
    "fill": fill,
    "sort": sort,
    "partition": partition,
    "put": put,
    "resize": resize,
}.items():
    install_method(_name, _function)


def _set_flat_attribute(x: Any, values: Any) -> None:
    put(x, np.arange(x.size), values)


def _set_real(x: Any, value: Any) -> None:
    access.setitem(x.real, Ellipsis, value)


def _set_imag(x: Any, value: Any) -> None:
    if x.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    access.setitem(x.imag, Ellipsis, value)


setattr(ArrayTracer, "flat", property(FlatView, _set_flat_attribute))  # noqa: B010
setattr(ArrayTracer, "real", property(np.real, _set_real))  # noqa: B010
setattr(ArrayTracer, "imag", property(np.imag, _set_imag))  # noqa: B010
