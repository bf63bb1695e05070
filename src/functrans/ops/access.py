"""x[key] and x[key] = value as users write them, and the ways to be a view of an array."""

from __future__ import annotations

import operator
import sys
import warnings
from typing import Any

import numpy as np

from functrans.core import views
from functrans.core.dispatch import Tracer, concrete
from functrans.core.evaluate import OpenArray
from functrans.core.shapes import PYTHON_SCALARS, cast, dtype_of, shape_of
from functrans.core.tracer import as_any_array, as_operand, install_assign, install_method
from functrans.core.views import View, held, is_mutable, link, mark_as_array, overwrite, view_of
from functrans.ops import elementwise, structure
from functrans.ops.indexing import ARRAY, index, update, update_both_in_place, update_in_place

_BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.int32})


# Views.


class IndexView(View):
    """x[template], for a template without arrays."""

    __slots__ = ("template",)

    def __init__(self, template: tuple[Any, ...]) -> None:
        self.template = template

    def read(self, parent: Any) -> Any:
        return index(parent, template=self.template)

    def misses(self, other: View) -> bool:
        """By the first axis: many programs hold all rows of an array and change them one by one."""
        if type(other) is not IndexView or not self.template or not other.template:
            return False
        mine, others = self.template[0], other.template[0]
        if type(mine) is not int or type(others) is not int:
            return False
        length = self.parent.shape[0]
        return bool(mine % length != others % length)

    def write(self, parent: Any, value: Any) -> Any:
        return update(parent, value, template=self.template)


class ReshapeView(View):
    """np.reshape(x, shape), where NumPy need not copy."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def read(self, parent: Any) -> Any:
        return structure.reshape(parent, shape=self.shape)

    def write(self, parent: Any, value: Any) -> Any:
        return structure.reshape(value, shape=shape_of(parent))


class TransposeView(View):
    """np.transpose(x, axes)."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def read(self, parent: Any) -> Any:
        return structure.transpose(parent, axes=self.axes)

    def write(self, parent: Any, value: Any) -> Any:
        return structure.transpose(value, axes=structure.inverse_permutation(self.axes))


class RealView(View):
    """The real part of a complex array."""

    __slots__ = ()

    def read(self, parent: Any) -> Any:
        return elementwise.real(parent)

    def write(self, parent: Any, value: Any) -> Any:
        return cast(value + 1j * elementwise.imag(parent), dtype_of(parent))


class ImagView(View):
    """The imaginary part of a complex array."""

    __slots__ = ()

    def read(self, parent: Any) -> Any:
        return elementwise.imag(parent)

    def write(self, parent: Any, value: Any) -> Any:
        return cast(elementwise.real(parent) + 1j * value, dtype_of(parent))


class ReadOnlyView(View):
    """function(x), which sees changes of x and cannot be written to."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def read(self, parent: Any) -> Any:
        return self.function(parent)


class FlatPlaces(View):
    """function(x), which picks entries of x: those at these flat positions."""

    __slots__ = ("function", "places")

    def __init__(self, function: Any, places: np.ndarray[Any, Any]) -> None:
        self.function = function
        self.places = places

    def read(self, parent: Any) -> Any:
        return self.function(parent)

    def write(self, parent: Any, value: Any) -> Any:
        flat = structure.reshape(parent, shape=(parent.size,))
        changed = update(flat, value, self.places, template=(ARRAY,))
        return structure.reshape(changed, shape=parent.shape)


# Whether NumPy copies depends on how an array lies in memory. A fresh array lies as NumPy laid out its
# value, or in C order if that is not known; an assignment does not change it; a view lies as NumPy would
# lay it out in its parent.


def is_view(out: Any, x: Any) -> bool:
    """Whether NumPy would give a view, for a reshape, which copies if it must."""
    like = layout(x)
    return like is None or np.may_share_memory(like.reshape(out.shape), like)


def has_known_layout(x: Any) -> bool:
    """Whether we know how NumPy's array would lie in memory; not of one that is staged."""
    return held(x) is not None


def is_contiguous(x: Any) -> bool:
    """Whether NumPy's array would be in C order."""
    like = layout(x)
    return like is None or bool(like.flags.c_contiguous)


def memory_order(like: Any) -> tuple[int, ...]:
    """The axes of an array from the slowest in memory to the fastest, which is order='K'.

    As NumPy's iterators sort them: along an axis that does not move in memory, any place will do.
    """
    strides = [0 if n == 1 else abs(step) for n, step in zip(like.shape, like.strides, strict=True)]
    fastest_first: list[int] = []
    for axis in reversed(range(len(strides))):
        place = len(fastest_first)
        for k in reversed(range(place)):
            other = strides[fastest_first[k]]
            if strides[axis] and other:
                if strides[axis] >= other:
                    break
                place = k
        fastest_first.insert(place, axis)
    return tuple(fastest_first[::-1])


def layout(x: Any) -> Any:
    """An array that lies in memory as NumPy's would; None for C order, or a scalar."""
    ways = []
    while (view := view_of(x)) is not None:
        ways.append(view)
        x = view.parent
    like = getattr(x, "layout", _UNSET)
    if like is _UNSET:
        like = _root_layout(x)
    if ways and like is None:
        like = np.empty(x.shape, x.dtype)
    for view in reversed(ways):
        like = view.read(like)
    return like


_UNSET = object()


def _root_layout(x: Any) -> Any:
    value = held(x)
    if not isinstance(value, np.ndarray) or 0 in value.shape:
        return None
    hidden = value.ndim - len(x.shape)
    lane = value[(0,) * hidden]  # of all lanes, one
    if hidden:
        # Between the entries of one lane lie those of the others; by itself it would have no gaps.
        lane = np.empty_like(lane)
    return None if lane.flags.c_contiguous else lane


# Keys.


def _plain_slice(entry: slice) -> slice:
    """A slice whose ends are ints: a traced end asks for its value."""
    ends = (entry.start, entry.stop, entry.step)
    if all(end is None or type(end) is int for end in ends):
        return entry
    return slice(*(None if end is None else operator.index(end) for end in ends))


def _basic(key: Any) -> tuple[Any, ...] | None:
    """The template of a key without arrays, or None."""
    entries = key if type(key) is tuple else (key,)
    for entry in entries:
        if type(entry) not in _BASIC:
            return None
        if type(entry) is slice and (type(entry.start) is not int or type(entry.stop) is not int):
            entries = tuple(_plain_slice(e) if type(e) is slice else e for e in entries)
    return entries


def _advanced(x: Any, key: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """The template and arrays of any key without flags."""
    expanded: list[Any] = []
    for entry in key if type(key) is tuple else (key,):
        if type(entry) is slice:
            entry = _plain_slice(entry)
        elif type(entry) is OpenArray:
            entry = entry.value
        elif entry is not None and entry is not Ellipsis and not isinstance(entry, Tracer):
            if isinstance(entry, (list, tuple)):
                entry = _operand(entry)
            if isinstance(entry, np.ndarray) and not entry.size and entry.dtype.kind == "f":
                entry = entry.astype(np.intp)  # an empty list
            elif not isinstance(entry, Tracer):
                entry = np.asarray(entry)
        if isinstance(entry, (np.ndarray, Tracer)):
            kind = dtype_of(entry).kind
            if kind == "b":  # its shape decides the result's: ask for the values
                mask = np.asarray(concrete(entry))
                _check_mask(mask, shape_of(x), expanded)
                expanded += list(mask.nonzero())
                continue
            if kind not in "iu":
                raise IndexError("arrays used as indices must be of integer (or boolean) type")
        expanded.append(entry)
    shape = shape_of(x)
    return _template(_without_ellipsis(expanded, len(shape)), shape, held(x) is None)


def _is_flag(entry: Any) -> bool:
    """Whether an entry of a key is True or False, which stand for no axis."""
    if isinstance(entry, (bool, np.bool_)):
        return True
    is_array = isinstance(entry, (np.ndarray, Tracer))
    return is_array and dtype_of(entry).kind == "b" and not shape_of(entry)


def without_flags(x: Any, key: Any) -> tuple[Any, Any]:
    """x[key] as a key of a view of x, without True and False.

    A flag is an array of one index, or of none, into an axis of length 1 that stands in its place.
    """
    entries = key if type(key) is tuple else (key,)
    if not any(map(_is_flag, entries)):
        return x, key
    axes: list[Any] = []  # which make the view
    places: list[Any] = []
    for entry in entries:
        if _is_flag(entry):
            axes.append(None)
            places.append(np.zeros(int(bool(entry)), np.intp))
            continue
        if entry is Ellipsis:
            axes.append(Ellipsis)
        elif entry is not None:
            axes += [slice(None)] * _axes_taken(entry)
        places.append(entry)
    return x[tuple(axes)], tuple(places)


def _axes_taken(entry: Any) -> int:
    """How many axes an entry of a key stands for."""
    if isinstance(entry, list):
        entry = as_operand(entry)
    is_array = isinstance(entry, (np.ndarray, Tracer))
    return len(shape_of(entry)) if is_array and dtype_of(entry).kind == "b" else 1


def _check_mask(mask: Any, shape: tuple[int, ...], before: list[Any]) -> None:
    """NumPy refuses a mask whose shape differs from the axes it stands for."""
    if any(entry is Ellipsis for entry in before):
        return
    axis = sum(entry is not None for entry in before)
    for n, length in zip(mask.shape, shape[axis:], strict=False):
        if n != length:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is "
                f"{length} but size of corresponding boolean axis is {n}"
            )
        axis += 1


def _without_ellipsis(entries: list[Any], ndim: int) -> list[Any]:
    """Write the Ellipsis, or the missing end of an index, as full slices."""
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if used > ndim:
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed"
        )
    missing = [slice(None)] * (ndim - used)
    places = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not places:
        return entries + missing
    return entries[: places[0]] + missing + entries[places[0] + 1 :]


def _template(
    entries: list[Any], shape: tuple[int, ...], unknown: bool
) -> tuple[tuple[Any, ...], list[Any]]:
    template: list[Any] = []
    arrays: list[Any] = []
    axis = 0
    for entry in entries:
        axis += entry is not None
        if entry is None or type(entry) is slice:
            template.append(entry)
        else:  # beside arrays, NumPy takes integers as arrays too
            template.append(ARRAY)
            arrays.append(entry if isinstance(entry, Tracer) else np.asarray(entry))
            if unknown and not isinstance(entry, Tracer):
                np.take(
                    np.broadcast_to(np.False_, shape[axis - 1]), entry
                )  # NumPy checks the range
    return tuple(template), arrays


def index_of(x: Any, key: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """The template and arrays of any key without flags."""
    template = _basic(key)
    return _advanced(x, key) if template is None else (template, [])


# Reading.


def getitem(x: Any, key: Any) -> Any:
    """x[key] for every key that NumPy takes; x is traced, and parts of the key may be."""
    template = (key,) if type(key) is int else _basic(key)
    if template is None:
        x, key = without_flags(x, key)
        template, arrays = _advanced(x, key)
        return index(x, *arrays, template=template)
    out = x.interpreter.process(index, (x,), {"template": template})
    if slice in map(type, template):
        return link(out, IndexView(template), x, scalars=False)
    if out.shape:  # otherwise it is a scalar, which is a copy
        return link(out, IndexView(template), x)
    if Ellipsis in template and isinstance(out, Tracer):
        mark_as_array(link(out, IndexView(template), x))
    return out


# Writing.


def setitem(x: Any, key: Any, value: Any) -> None:
    """x[key] = value for a traced x, and for every key that NumPy takes."""
    if not is_mutable(x):
        raise TypeError(f"a scalar ({x.dtype}) does not support item assignment")
    value = _assigned(value, x)
    if isinstance(key, list):
        key = _operand(key)
    template = _basic(key)
    arrays: list[Any] = []
    if template is None:
        mask = _mask(x, key)
        if mask is not None and not shape_of(value):
            # Without asking which entries they are: it works on values that are not known.
            overwrite(x, structure.where(mask, _cast_like(value, x), x))
            return
        x, key = without_flags(x, key)
        template, arrays = _advanced(x, key)
    elif isinstance(value, Tracer):
        view = view_of(value)
        if type(view) is IndexView and view.parent is x and view.template == template:
            return  # the end of x[key] += y: the view has written already
    shape = shape_of(value)
    if shape and shape[0] == 1:  # NumPy ignores extra ones in front
        extra = len(shape) - shape_only(x, template, arrays).ndim
        if extra > 0 and shape[:extra] == (1,) * extra:
            value = structure.reshape(value, shape=shape[extra:])
    if dtype_of(value).kind == "c" and x.dtype.kind != "c" and held(x) is None:
        warnings.warn(  # as NumPy will when the graph runs
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=2,
        )
    alone = x.interpreter.bottom and _is_private(x) and not _is_foreign(value, x)
    if alone and arrays:
        alone = not any(_is_foreign(array, x) for array in arrays)
    change = update
    if alone:
        change = update_both_in_place if _is_tangent_private(x) else update_in_place
    overwrite(x, change(x, value, *arrays, template=template))


def shape_only(x: Any, template: tuple[Any, ...], arrays: list[Any]) -> Any:
    """Something with the shape of x[index], for any values."""
    zeros = [np.zeros(shape_of(a), int) if shape_of(x) else a for a in arrays]
    remaining = iter(zeros)
    like = np.broadcast_to(np.zeros((), bool), shape_of(x))
    return like[tuple(next(remaining) if entry is ARRAY else entry for entry in template)]


def assign_all(x: Any, value: Any, casting: Any = "unsafe") -> Any:
    """x[...] = value, as `out=` has it; returns x."""
    value = _operand(value)
    if not np.can_cast(dtype_of(value), x.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(value)} to {x.dtype} according to {casting!r}"
        )
    if isinstance(value, Tracer) and shape_of(value) == x.shape and dtype_of(value) == x.dtype:
        overwrite(x, value)
    else:
        setitem(x, Ellipsis, value)
    return x


def _operand(value: Any) -> Any:
    """A value to assign: lists may hold traced values."""
    if isinstance(value, Tracer) or type(value) in PYTHON_SCALARS:
        return value
    return as_operand(value)


def _assigned(value: Any, x: Any) -> Any:
    """A value to assign into x; NumPy converts what is not a number, such as None to nan."""
    if isinstance(value, Tracer) or type(value) in PYTHON_SCALARS:
        return value
    array = as_any_array(value)
    return array if dtype_of(array).kind in "biufc" else array.astype(x.dtype)


def _mask(x: Any, key: Any) -> Any:
    """A key that is one boolean array, as it broadcasts against x; None for other keys."""
    if isinstance(key, (bool, np.bool_)):
        return key
    if not isinstance(key, (np.ndarray, Tracer)) or dtype_of(key).kind != "b":
        return None
    mask: Any = key
    missing = len(shape_of(x)) - mask.ndim
    if mask.shape != shape_of(x)[: mask.ndim]:
        return None
    return mask.reshape(mask.shape + (1,) * missing) if missing else mask


def _cast_like(value: Any, x: Any) -> Any:
    """A scalar as NumPy would store it in x."""
    if type(value) is complex and dtype_of(x).kind != "c":
        raise TypeError("a complex number cannot be assigned into an array of real numbers")
    return cast(value, dtype_of(x))


def _is_foreign(value: Any, x: Any) -> bool:
    return isinstance(value, Tracer) and value.interpreter is not x.interpreter


def _references(x: Any) -> int:
    value = x.value
    return sys.getrefcount(value)


_ALONE = _references(OpenArray(np.zeros(1)))


def _is_private(x: Any) -> bool:
    """Whether nobody but this tracer can see its array: no record, no view, no user."""
    value = getattr(x, "value", None)
    if type(value) is not np.ndarray or value.base is not None or not value.flags.writeable:
        return False
    del value
    return _references(x) <= _ALONE


def _is_tangent_private(x: Any) -> bool:
    """Whether nobody but a dual number can see its tangent."""
    tangent = getattr(x, "detail", None)
    if type(tangent) is not np.ndarray or tangent.base is not None or not tangent.flags.writeable:
        return False
    del tangent
    return _tangent_references(x) <= _ALONE


def _tangent_references(x: Any) -> int:
    tangent = x.detail
    return sys.getrefcount(tangent)


install_assign(assign_all)
views.install(layout_of=layout)
install_method("__getitem__", getitem)
install_method("__setitem__", setitem)
