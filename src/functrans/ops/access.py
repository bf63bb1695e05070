"""x[key] and x[key] = value as users write them, and the kinds of views of an array."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import views
from functrans.core.custody import is_private
from functrans.core.dispatch import Tracer, concrete, is_plain
from functrans.core.evaluate import OpenArray
from functrans.core.floating_point import real_part
from functrans.core.likeness import is_weak
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
        """Compares the first axis: many programs keep views of all rows, and change them one by one."""
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
        return cast(elementwise.from_parts(value, elementwise.imag(parent)), dtype_of(parent))


class ImagView(View):
    """The imaginary part of a complex array."""

    __slots__ = ()

    def read(self, parent: Any) -> Any:
        return elementwise.imag(parent)

    def write(self, parent: Any, value: Any) -> Any:
        return cast(elementwise.from_parts(elementwise.real(parent), value), dtype_of(parent))


class ReadOnlyView(View):
    """function(x), a read-only view that shows changes of x."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def read(self, parent: Any) -> Any:
        return self.function(parent)


class FlatPlaces(View):
    """function(x), which selects the elements of x at these flat positions."""

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


# Whether NumPy copies depends on the memory layout of an array. A new array has the layout of its NumPy
# value, or C order if that is not known; an assignment does not change the layout; a view has the layout that
# NumPy's view of its parent would have.


def is_view(out: Any, x: Any) -> bool:
    """Whether NumPy would return a view for this reshape, rather than a copy."""
    like = layout(x)
    return like is None or np.may_share_memory(like.reshape(out.shape), like)


def has_known_layout(x: Any) -> bool:
    """Whether the memory layout of NumPy's array is known; it is not for a staged array."""
    return held(x) is not None


def is_contiguous(x: Any) -> bool:
    """Whether NumPy's array would be in C order."""
    like = layout(x)
    return like is None or bool(like.flags.c_contiguous)


def memory_order(like: Any) -> tuple[int, ...]:
    """The axes of an array from the slowest in memory to the fastest, which is order='K'.

    The order is that of NumPy's iterators: an axis with stride 0 may be anywhere.
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
    """An array with the memory layout that NumPy's would have; None for C order, or a scalar."""
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
    if not is_plain(value, np.ndarray) or 0 in value.shape:
        return None
    hidden = value.ndim - len(x.shape)
    lane = value[(0,) * hidden]  # one of the lanes
    if hidden:
        # The elements of the lanes are interleaved; a single lane's array would have no gaps.
        lane = np.empty_like(lane)
    return None if lane.flags.c_contiguous else lane


# Keys.


def _plain_slice(entry: slice) -> slice:
    """A slice whose ends are ints: the value of a traced end is read."""
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
            if is_plain(entry, np.ndarray) and not entry.size and entry.dtype.kind == "f":
                entry = entry.astype(np.intp)  # an empty list
            elif not isinstance(entry, Tracer):
                entry = np.asarray(entry)
        if isinstance(entry, (np.ndarray, Tracer)):
            kind = dtype_of(entry).kind
            if kind == "b":  # the shape of the result depends on its values: read them
                mask = np.asarray(concrete(entry))
                _check_mask(mask, shape_of(x), expanded)
                expanded += list(mask.nonzero())
                continue
            if kind not in "iu":
                raise IndexError("arrays used as indices must be of integer (or boolean) type")
        expanded.append(entry)
    shape = shape_of(x)
    return _template(_without_ellipsis(expanded, len(shape)), shape, held(x) is None)


def is_flag(entry: Any) -> bool:
    """Whether an entry of a key is True or False, which consume no axis."""
    if isinstance(entry, (bool, np.bool_)):
        return True
    is_array = isinstance(entry, (np.ndarray, Tracer))
    return is_array and dtype_of(entry).kind == "b" and not shape_of(entry)


def without_flags(x: Any, key: Any) -> tuple[Any, Any]:
    """x[key] as a key of a view of x, without True and False.

    A flag becomes an array of one index, or of none, into a new axis of length 1 at its position.
    """
    entries = key if type(key) is tuple else (key,)
    if not any(map(is_flag, entries)):
        return x, key
    axes: list[Any] = []  # which make the view
    places: list[Any] = []
    for entry in entries:
        if is_flag(entry):
            axes.append(None)
            places.append(np.zeros(int(bool(concrete(entry))), np.intp))
            continue
        if entry is Ellipsis:
            axes.append(Ellipsis)
        elif entry is not None:
            axes += [slice(None)] * axes_taken(entry)
        places.append(entry)
    return x[tuple(axes)], tuple(places)


def axes_taken(entry: Any) -> int:
    """How many axes an entry of a key stands for."""
    if isinstance(entry, list):
        entry = as_operand(entry)
    is_array = isinstance(entry, (np.ndarray, Tracer))
    return len(shape_of(entry)) if is_array and dtype_of(entry).kind == "b" else 1


def _check_mask(mask: Any, shape: tuple[int, ...], before: list[Any]) -> None:
    """Raise NumPy's error for a mask whose shape differs from the axes that it indexes."""
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
    """Write the Ellipsis, or the missing end of an index, as full slices.

    An Ellipsis between arrays stays even if it stands for no axis: to NumPy it separates the arrays, so that
    their axes come first.
    """
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
    before, after = entries[: places[0]], entries[places[0] + 1 :]
    if not missing and any(map(_is_place, before)) and any(map(_is_place, after)):
        return entries
    return before + missing + after


def _is_place(entry: Any) -> bool:
    """Whether an entry is an integer, or an array of them."""
    return entry is not None and entry is not Ellipsis and type(entry) is not slice


def _template(
    entries: list[Any], shape: tuple[int, ...], unknown: bool
) -> tuple[tuple[Any, ...], list[Any]]:
    # Next to arrays, NumPy treats integers as arrays, too.
    arrays = [
        entry if isinstance(entry, Tracer) else np.asarray(entry)
        for entry in entries
        if _is_place(entry)
    ]
    if unknown:
        _check_range(entries, shape)
    return tuple(ARRAY if _is_place(entry) else entry for entry in entries), arrays


def _check_range(entries: list[Any], shape: tuple[int, ...]) -> None:
    """Raise NumPy's error for integers that are out of range; there is none if no element is read."""
    axes = [entry for entry in entries if entry is not None and entry is not Ellipsis]
    if any(_is_place(entry) and 0 in shape_of(entry) for entry in axes):
        return
    for entry, length in zip(axes, shape, strict=True):
        if _is_place(entry) and not isinstance(entry, Tracer):
            np.take(np.broadcast_to(np.False_, length), entry)


def index_of(x: Any, key: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """The template and arrays of any key without flags."""
    template = _basic(key)
    return _advanced(x, key) if template is None else (template, [])


# Reading.


def getitem(x: Any, key: Any) -> Any:
    """x[key] for every key that NumPy accepts; x is traced, and parts of the key may be."""
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
    """x[key] = value for a traced x, and every key that NumPy accepts."""
    if not is_mutable(x):
        raise TypeError(f"a scalar ({x.dtype}) does not support item assignment")
    value = _real_if_stored_so(_assigned(value, x), x)
    if isinstance(key, list):
        key = _operand(key)
    template = _basic(key)
    arrays: list[Any] = []
    if template is None:
        mask = _mask(x, key)
        if mask is not None and not shape_of(value):
            # Without reading the mask, so that it works on unknown values.
            overwrite(x, structure.where(mask, cast(value, dtype_of(x)), x))
            return
        x, key = without_flags(x, key)
        template, arrays = _advanced(x, key)
    elif isinstance(value, Tracer):
        view = view_of(value)
        if type(view) is IndexView and view.parent is x and view.template == template:
            return  # the end of x[key] += y: the view has already written
    shape = shape_of(value)
    if shape and shape[0] == 1:  # NumPy ignores extra ones in front
        extra = len(shape) - shape_only(x, template, arrays).ndim
        if extra > 0 and shape[:extra] == (1,) * extra:
            value = structure.reshape(value, shape=shape[extra:])
    # A view may refuse, after its own array has changed.
    alone = x.interpreter.bottom and view_of(x) is None and is_private(x, "value")
    alone = alone and not _is_foreign(value, x)
    if alone and arrays:
        alone = not any(_is_foreign(array, x) for array in arrays)
    change = update
    if alone:
        change = update_both_in_place if is_private(x, "detail") else update_in_place
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
    """A value to assign into x; NumPy converts other objects, such as None to nan."""
    if isinstance(value, Tracer) or type(value) in PYTHON_SCALARS:
        return value
    array = as_any_array(value)
    return array if dtype_of(array).kind in "biufc" else array.astype(x.dtype)


def _mask(x: Any, key: Any) -> Any:
    """A key that is one boolean array, as it broadcasts against x; None for other keys."""
    if is_plain(key, (bool, np.bool_)):
        return key
    if not isinstance(key, (np.ndarray, Tracer)) or dtype_of(key).kind != "b":
        return None
    mask: Any = key
    missing = len(shape_of(x)) - mask.ndim
    if mask.shape != shape_of(x)[: mask.ndim]:
        return None
    return mask.reshape(mask.shape + (1,) * missing) if missing else mask


def _real_if_stored_so(value: Any, x: Any) -> Any:
    """The real part of a complex value for a real array, with NumPy's warning, or its error."""
    if dtype_of(value).kind != "c" or dtype_of(x).kind not in "biuf":
        return value
    refuse_python_complex(value, dtype_of(x).type)
    return real_part(value)


def refuse_python_complex(value: Any, target: Any) -> None:
    """Raise the error with which NumPy refuses to make a real number of a complex one of Python's."""
    if is_weak(value) and dtype_of(value).kind == "c":
        name = "int" if issubclass(target, np.integer) else "float"
        raise TypeError(f"{name}() argument must be a string or a real number, not 'complex'")


def _is_foreign(value: Any, x: Any) -> bool:
    return isinstance(value, Tracer) and value.interpreter is not x.interpreter


install_assign(assign_all)
views.install(layout_of=layout)
install_method("__getitem__", getitem)
install_method("__setitem__", setitem)
