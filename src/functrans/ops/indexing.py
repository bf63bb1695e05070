"""Reading and replacing parts of an array, and adding values into parts of zeros.

An index is a `template` and integer arrays. The template is the tuple between the brackets, with `ARRAY` in
place of each integer array. The arrays are operands, because they may be traced. Boolean masks become integer
arrays first, as in NumPy. In a template with arrays, every axis has an entry, and an Ellipsis stands for no
axis: it only separates the arrays.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from functrans.core.accumulate import Accumulator, Deposit
from functrans.core.dispatch import Tracer
from functrans.core.primitive import AS_ARRAY, AS_NUMBER, Primitive, always_array, bare
from functrans.core.shapes import (
    PYTHON_SCALARS,
    ArraySpec,
    broadcasts_to,
    checked_shape,
    dtype_of,
    shape_of,
    sum_to_shape,
)
from functrans.core.summation import FEW, WIDER
from functrans.ops.families import insert_ones, spread_lanes, with_lanes
from functrans.ops.scatter_add import sum_rows


class _Array:
    """The place of an integer array in a template."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "array"


ARRAY = _Array()


def _fill(template: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index in NumPy's form."""
    if not arrays:
        return template
    remaining = iter(arrays)
    return tuple(next(remaining) if entry is ARRAY else entry for entry in template)


# Where the axes of an indexed array come from.


def _array_block(template: tuple[Any, ...]) -> tuple[bool, int]:
    """Whether the integer arrays are adjacent, and how many result axes come before them.

    NumPy puts the axes of the arrays at the position of the arrays if they are adjacent, and first
    otherwise.
    """
    places = [k for k, entry in enumerate(template) if entry is ARRAY]
    adjacent = places[-1] - places[0] + 1 == len(places)
    return adjacent, places[0] if adjacent else 0


def _batched_index(
    x_mapped: bool,
    template: tuple[Any, ...],
    arrays: tuple[Any, ...],
    mapped: tuple[bool, ...],
    size: int,
    writes: bool = False,
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[int, ...], tuple[int, ...]]:
    """The index for arrays with a hidden first axis, and the axes to move in its result.

    Returns (template, arrays, source, destination): np.moveaxis(x[index], source, destination)
    has the hidden axis first and all others as the index without batching has them.
    """
    source: tuple[int, ...] = ()
    destination: tuple[int, ...] = ()
    if not arrays:
        return (slice(None), *template), (), (), ()
    ndim = max(len(shape_of(a)) - m for a, m in zip(arrays, mapped, strict=True))
    adjacent, before = _array_block(template)
    if not any(mapped):
        # x[:, ...]: the hidden axis stays first unless NumPy puts the array axes there.
        if not adjacent:
            source, destination = (ndim,), (0,)
        return (slice(None), *template), arrays, source, destination
    arrays = tuple(
        insert_ones(a, ndim + 1 - len(a.shape)) if m else a
        for a, m in zip(arrays, mapped, strict=True)
    )
    if not x_mapped:
        if before:
            source, destination = (before,), (0,)
        return template, arrays, source, destination
    # One more array, in front, selects the lane. The array axes then come first, so they move
    # behind `before` others if they were not first without it.
    lanes = np.arange(size).reshape((size,) + (1,) * ndim)
    if writes:
        # If an element is written more than once, the last value must remain. NumPy walks through arrays
        # backwards if all of them lie backwards in memory, like i[::-1]; this one never does.
        shapes = [
            shape_of(a)[1:] if m else shape_of(a) for a, m in zip(arrays, mapped, strict=True)
        ]
        lanes = np.array(np.broadcast_to(lanes, (size, *np.broadcast_shapes(*shapes))), order="C")
    if before:
        source = tuple(range(1, ndim + 1))
        destination = tuple(range(before + 1, before + ndim + 1))
    return (ARRAY, *template), (lanes, *arrays), source, destination


def _moveaxis(x: Any, source: tuple[int, ...], destination: tuple[int, ...]) -> Any:
    return np.moveaxis(x, source, destination) if source else x


# Reading.


def _index(x: Any, *arrays: Any, template: tuple[Any, ...]) -> Any:
    try:
        return x[_fill(template, arrays)] if arrays else x[template]
    except TypeError:
        if type(x) not in PYTHON_SCALARS:
            raise
        return _index(np.asarray(x), *arrays, template=template)  # of Python arithmetic


_MANY = 1000  # with at least this many values, it is better to sum them separately


class Scattered(Deposit):
    """The cotangent of `x[index]`: it belongs at `index` of an array of x's shape."""

    __slots__ = ("arrays", "shape", "template")

    def __init__(
        self, value: Any, shape: tuple[int, ...], template: tuple[Any, ...], arrays: Any
    ) -> None:
        self.value = value
        self.shape = shape
        self.template = template
        self.arrays = arrays

    def new_buffer(self) -> Any:
        return _scatter(self.value, *self.arrays, shape=self.shape, template=self.template)

    def add_to(self, buffer: np.ndarray[Any, Any]) -> None:
        if self.arrays:  # an index may occur more than once
            if self.value.size > _MANY:
                np.add(buffer, self.new_buffer(), out=buffer)
            else:
                np.add.at(buffer, _fill(self.template, self.arrays), self.value)
        else:
            buffer[self.template] += self.value

    @staticmethod
    def merge(deposits: list[Any]) -> Any:
        basic = [d for d in deposits if not d.arrays]
        total = None
        if basic:
            total = scatter_sum(
                *[d.value for d in basic],
                shape=basic[0].shape,
                templates=tuple(d.template for d in basic),
            )
        for d in deposits:
            if d.arrays:
                term = scatter(d.value, *d.arrays, shape=d.shape, template=d.template)
                total = term if total is None else total + term
        return total


def _index_pull(g: Any, saved: Any) -> Any:
    shape, template, arrays = saved
    if arrays and any(isinstance(array, Tracer) for array in arrays):
        return scatter(g, *arrays, shape=shape, template=template)
    return Scattered(g, shape, template, arrays)


def _index_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    return _index_pull, (shape_of(args[0]), params["template"], args[1:])


def _index_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    return index(tangents[0], *args[1:], **params)


def _index_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    template, arrays, source, destination = _batched_index(
        batched[0], params["template"], args[1:], batched[1:], size
    )
    return _moveaxis(index(args[0], *arrays, template=template), source, destination)


def _check_index(template: Any, arrays: tuple[ArraySpec, ...]) -> None:
    """Raise TypeError unless a template has valid entries, and an `ARRAY` for each array."""
    if type(template) is not tuple or sum(entry is ARRAY for entry in template) != len(arrays):
        raise TypeError(f"the index {template!r} does not have {len(arrays)} arrays")
    for entry in template:
        ends = (entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,)
        for end in ends:
            if end is not None and end is not ARRAY and end is not Ellipsis:
                operator.index(end)
            if isinstance(end, (bool, np.bool_)) or (type(entry) is slice and end is Ellipsis):
                raise TypeError(f"{end!r} is not part of an index")
    if any(array.dtype.kind not in "iu" for array in arrays):
        raise TypeError("an array in an index must have an integer dtype")


def _index_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    x, arrays, template = specs[0], specs[1:], params["template"]
    _check_index(template, arrays)
    if not arrays:
        view = np.broadcast_to(np.zeros((), x.dtype), x.shape)[template]
        return ArraySpec(view.shape, x.dtype)
    if sum(entry is Ellipsis for entry in template) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    block = np.broadcast_shapes(*(a.shape for a in arrays))
    _, before = _array_block(template)
    axis, rest = 0, []
    for entry in template:
        if entry is None:
            rest.append(1)
            continue
        if entry is Ellipsis:
            continue
        if entry is not ARRAY:
            rest.append(len(range(*entry.indices(x.shape[axis]))))
        axis += 1
    if axis != x.ndim:
        raise IndexError(f"an index of {axis} axes does not match an array with {x.ndim} axes")
    lengths = rest[:before] + list(block) + rest[before:]
    return ArraySpec(tuple(lengths), x.dtype)


index = Primitive(
    "index",
    _index,
    jvp=_index_jvp,
    vjp=_index_vjp,
    batch=_index_batch,
    shape=_index_spec,
    kind="shape",
    views=True,
    # x[...] is a view, which an array without axes has as well.
    form=lambda params: AS_ARRAY if Ellipsis in params["template"] else AS_NUMBER,
)


# Adding into zeros: the transpose of reading.


def _scatter(value: Any, *arrays: Any, shape: tuple[int, ...], template: tuple[Any, ...]) -> Any:
    count = len(arrays)
    if count and template == (ARRAY,) * count + (slice(None),) * (len(template) - count):
        return sum_rows(shape, dtype_of(value), arrays, value)
    dtype = dtype_of(value)
    if not arrays:
        buffer = np.zeros(shape, dtype)
        buffer[template] = value
        return buffer
    size = prod(shape)
    many = value.size > (FEW if dtype in WIDER else _MANY)
    if many and 20 * value.size > size:
        place = np.arange(size).reshape(shape)[_fill(template, arrays)]
        return sum_rows((size, 1), dtype, (place.reshape(-1),), value.reshape(-1)).reshape(shape)
    buffer = np.zeros(shape, np.float32 if dtype == np.float16 else dtype)
    np.add.at(buffer, _fill(template, arrays), value)
    return buffer.astype(dtype, copy=False)


def _scatter_pull(g: Any, saved: Any) -> Any:
    template, arrays = saved
    return index(g, *arrays, template=template)


def _scatter_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    value, arrays = args[0], args[1:]
    template, arrays, source, destination = _batched_index(
        True, params["template"], arrays, batched[1:], size
    )
    if not batched[0]:
        value = with_lanes(value, size)
    value = _moveaxis(value, destination, source)
    return scatter(value, *arrays, shape=(size, *params["shape"]), template=template)


def _scatter_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    value, *arrays = specs
    out = ArraySpec(checked_shape(params["shape"]), value.dtype)
    _check_part(value, _index_spec((out, *arrays), params))
    return out


def _check_part(value: ArraySpec, part: ArraySpec) -> None:
    if value.shape != part.shape:
        raise ValueError(f"values of shape {value.shape} do not match a part of shape {part.shape}")


scatter: Primitive = Primitive(
    "scatter",
    _scatter,
    jvp=lambda out, args, tangents, params: scatter(tangents[0], *args[1:], **params),
    vjp=lambda mask, out, args, params: (_scatter_pull, (params["template"], args[1:])),
    batch=_scatter_batch,
    shape=_scatter_spec,
    kind="shape",
    views=False,
    form=always_array,
)


# Many values into one array, at indices without arrays: one call for all the reads of a sweep.


def _scatter_sum(*values: Any, shape: tuple[int, ...], templates: tuple[Any, ...]) -> Any:
    dtype = np.result_type(*map(dtype_of, values))
    few = len(values) <= FEW and dtype != np.float16
    buffer = np.zeros(shape, dtype if few else WIDER.get(dtype, dtype))
    for value, template in zip(values, templates, strict=True):
        buffer[template] += value
    return buffer.astype(dtype, copy=False)


def _scatter_sum_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    moving = [(t, p) for t, p in zip(tangents, params["templates"], strict=True) if t is not None]
    values, templates = zip(*moving, strict=True)
    return scatter_sum(*values, shape=params["shape"], templates=templates)


def _scatter_sum_pull(g: Any, templates: Any) -> Any:
    parts = [index(g, template=template) for template in templates]
    return bare(parts)


def _scatter_sum_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    return _scatter_sum_pull, [t for k, t in enumerate(params["templates"]) if mask >> k & 1]


def _scatter_sum_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    templates = tuple((slice(None), *template) for template in params["templates"])
    args = spread_lanes(args, batched, size)
    return scatter_sum(*args, shape=(size, *params["shape"]), templates=templates)


def _scatter_sum_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    dtype = np.result_type(*(spec.dtype for spec in specs))
    out = ArraySpec(checked_shape(params["shape"]), dtype)
    if type(params["templates"]) is not tuple:
        raise TypeError("the indices of scatter_sum must be a tuple")
    for value, template in zip(specs, params["templates"], strict=True):
        _check_part(value, _index_spec((out,), {"template": template}))
    return out


scatter_sum = Primitive(
    "scatter_sum",
    _scatter_sum,
    jvp=_scatter_sum_jvp,
    vjp=_scatter_sum_vjp,
    batch=_scatter_sum_batch,
    shape=_scatter_sum_spec,
    kind="shape",
    views=False,
    form=always_array,
)


# Writing: x with the elements at an index replaced. An assignment to x makes x refer to this result.


def _update(x: Any, value: Any, *arrays: Any, template: tuple[Any, ...]) -> Any:
    out = np.array(x, order="K")
    out[_fill(template, arrays)] = value
    return out


def _update_in_place(x: Any, value: Any, *arrays: Any, template: tuple[Any, ...]) -> Any:
    x[_fill(template, arrays)] = value
    return x


def _update_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    x_tangent, value_tangent = tangents[:2]
    if x_tangent is None:
        x_tangent = np.zeros(shape_of(out), dtype_of(out))
    if value_tangent is None:
        value_tangent = dtype_of(out).type(0)
    return update(x_tangent, value_tangent, *args[2:], **params)


def _update_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    return _update_pull, (mask, shape_of(args[1]), params["template"], args[2:])


def _update_pull(g: Any, saved: Any) -> Any:
    """The replaced entries get no cotangent; the value gets theirs."""
    mask, value_shape, template, arrays = saved
    owned = None
    if type(g) is Accumulator:  # the sum may be changed in place: n assignments cost O(n)
        owned = g.only_buffer()
        g = g.settle()
    in_place = type(g) is np.ndarray and not any(isinstance(a, Tracer) for a in arrays)
    part: Any = None
    if mask & 2:
        part = index(g, *arrays, template=template)
        if arrays:  # of several values for one entry, the last one stays
            stays = last_writers(*arrays, shape=shape_of(g), template=template)
            part = np.where(stays, part, dtype_of(part).type(0))
        elif in_place:
            part = part.copy()
        part = sum_to_shape(part, value_shape)
    if not mask & 1:
        return part
    rest: Any
    if in_place:
        rest = Accumulator(None)
        rest.buffer = g.copy() if owned is None else owned
        rest.buffer[_fill(template, arrays)] = 0
    else:
        rest = update(g, dtype_of(g).type(0), *arrays, template=template)
    return (rest, part) if mask & 2 else rest


_update_pull.owns = True  # type: ignore[attr-defined]  # the sweep hands it accumulators as they are


def _update_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    x, value, *arrays = args
    x_spec = _unbatched(x, batched[0])
    specs = tuple(_unbatched(a, m) for a, m in zip(arrays, batched[2:], strict=True))
    part = _index_spec((x_spec, *specs), params)
    template, moved_arrays, source, destination = _batched_index(
        True, params["template"], tuple(arrays), batched[2:], size, writes=True
    )
    if batched[1]:
        value = insert_ones(value, part.ndim + 1 - len(value.shape))
    if source:
        value = _moveaxis(np.broadcast_to(value, (size, *part.shape)), destination, source)
    if not batched[0]:
        x, primitive = with_lanes(x, size), update
    return primitive(x, value, *moved_arrays, template=template)


def _unbatched(value: Any, mapped: bool) -> ArraySpec:
    return ArraySpec(shape_of(value)[1:] if mapped else shape_of(value), dtype_of(value))


def _update_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    x, value, *arrays = specs
    if value.weak and value.dtype.kind == "c" and x.dtype.kind != "c":
        raise TypeError("a complex number cannot be assigned into an array of real numbers")
    part = _index_spec((x, *arrays), params).shape
    if not broadcasts_to(value.shape, part):
        raise ValueError(
            f"could not broadcast input array from shape {value.shape} into shape {part}"
        )
    return ArraySpec(x.shape, x.dtype)


def _update_in_place_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    value = tangents[1]
    if value is None:
        value = dtype_of(out).type(0)
    return _update_in_place(tangents[0], value, *args[2:], **params)


def _update_primitive(name: str, impl: Any, jvp: Any, views: bool) -> Primitive:
    return Primitive(
        name,
        impl,
        jvp=jvp,
        vjp=_update_vjp,
        batch=_update_batch,
        shape=_update_spec,
        kind="shape",
        views=views,
        form=always_array,
    )


update = _update_primitive("update", _update, _update_jvp, False)
# The same for an array that nothing else can see, which avoids a copy, including that of its tangent.
update_in_place = _update_primitive("update_in_place", _update_in_place, _update_jvp, True)
update_both_in_place = _update_primitive(
    "update_both_in_place", _update_in_place, _update_in_place_jvp, True
)


def _last_writers(*arrays: Any, shape: tuple[int, ...], template: tuple[Any, ...]) -> Any:
    place = _fill(template, arrays)
    writer = np.zeros(shape, np.intp)
    written = writer[place]
    number = np.arange(written.size).reshape(written.shape)
    writer[place] = number
    return writer[place] == number


def _last_writers_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    template, arrays, source, destination = _batched_index(
        True, params["template"], args, batched, size, writes=True
    )
    lanes = primitive(*arrays, shape=(size, *params["shape"]), template=template)
    return _moveaxis(lanes, source, destination)


# Which values of x[index] = values remain if an element is indexed more than once.
last_writers = Primitive(
    "last_writers",
    _last_writers,
    batch=_last_writers_batch,
    shape=lambda specs, params: _index_spec(
        (ArraySpec(checked_shape(params["shape"]), bool), *specs), params
    ),
    kind="shape",
)
