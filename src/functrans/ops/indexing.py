"""Reading parts of an array, and its transpose: adding values into parts of zeros.

An index is a `template`, a tuple as one writes it between brackets in which `ARRAY` stands where an
integer array goes, and the integer arrays, which are operands because they may be traced. Boolean
masks become integer arrays first, as in NumPy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core.accumulate import Deposit
from functrans.core.dispatch import Tracer, concrete
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, dtype_of, shape_of
from functrans.core.shared import install
from functrans.core.tracer import install_method


class _Array:
    """The place of an integer array in a template."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "array"


ARRAY = _Array()
_BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.int32})


def _fill(template: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that NumPy takes."""
    if not arrays:
        return template
    remaining = iter(arrays)
    return tuple(next(remaining) if entry is ARRAY else entry for entry in template)


# Where the axes of an indexed array come from.


def _array_block(template: tuple[Any, ...]) -> tuple[bool, int]:
    """Whether the integer arrays stand side by side, and how many result axes come before them.

    NumPy puts the axes of the arrays where the arrays stand if they stand side by side, and first
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
        a.reshape(a.shape[:1] + (1,) * (ndim + 1 - len(a.shape)) + a.shape[1:]) if m else a
        for a, m in zip(arrays, mapped, strict=True)
    )
    if not x_mapped:
        if before:
            source, destination = (before,), (0,)
        return template, arrays, source, destination
    # One more array says which lane: it stands first, so the array axes move behind `before`
    # others if the arrays did not stand first before.
    lanes = np.arange(size).reshape((size,) + (1,) * ndim)
    if before:
        source = tuple(range(1, ndim + 1))
        destination = tuple(range(before + 1, before + ndim + 1))
    return (ARRAY, *template), (lanes, *arrays), source, destination


def _moveaxis(x: Any, source: tuple[int, ...], destination: tuple[int, ...]) -> Any:
    return np.moveaxis(x, source, destination) if source else x


# Reading.


def _index(x: Any, *arrays: Any, template: tuple[Any, ...]) -> Any:
    return x[_fill(template, arrays)]


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

    def new_buffer(self) -> np.ndarray[Any, Any]:
        return np.zeros(self.shape, self.value.dtype)

    def add_to(self, buffer: np.ndarray[Any, Any]) -> None:
        if self.arrays:  # an entry may be named more than once
            np.add.at(buffer, _fill(self.template, self.arrays), self.value)
        else:
            buffer[self.template] += self.value

    @staticmethod
    def merge(deposits: list[Any]) -> Any:
        basic = [d for d in deposits if not d.arrays]
        total = None
        if basic:
            total = scatter_sum(
                *(d.value for d in basic),
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
    if any(isinstance(array, Tracer) for array in arrays):
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


def _index_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    x, arrays, template = specs[0], specs[1:], params["template"]
    if not arrays:
        view = np.broadcast_to(np.zeros((), x.dtype), x.shape)[template]
        return ArraySpec(view.shape, x.dtype)
    block = np.broadcast_shapes(*(a.shape for a in arrays))
    _, before = _array_block(template)
    axis, rest = 0, []
    for entry in template:
        if entry is None:
            rest.append(1)
            continue
        if entry is not ARRAY:
            rest.append(len(range(*entry.indices(x.shape[axis]))))
        axis += 1
    lengths = rest[:before] + list(block) + rest[before:]
    return ArraySpec(tuple(lengths), x.dtype)


index = Primitive(
    "index", _index, jvp=_index_jvp, vjp=_index_vjp, batch=_index_batch, shape=_index_spec
)


# Adding into zeros: the transpose of reading.


def _scatter(value: Any, *arrays: Any, shape: tuple[int, ...], template: tuple[Any, ...]) -> Any:
    buffer = np.zeros(shape, dtype_of(value))
    if arrays:
        np.add.at(buffer, _fill(template, arrays), value)
    else:
        buffer[template] = value
    return buffer


def _scatter_pull(g: Any, saved: Any) -> Any:
    template, arrays = saved
    return index(g, *arrays, template=template)


def _scatter_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    value, arrays = args[0], args[1:]
    template, arrays, source, destination = _batched_index(
        True, params["template"], arrays, batched[1:], size
    )
    if not batched[0]:
        value = np.broadcast_to(value, (size, *shape_of(value)))
    value = _moveaxis(value, destination, source)
    return scatter(value, *arrays, shape=(size, *params["shape"]), template=template)


scatter: Primitive = Primitive(
    "scatter",
    _scatter,
    jvp=lambda out, args, tangents, params: scatter(tangents[0], *args[1:], **params),
    vjp=lambda mask, out, args, params: (_scatter_pull, (params["template"], args[1:])),
    batch=_scatter_batch,
    shape=lambda specs, params: ArraySpec(params["shape"], specs[0].dtype),
)


# Many values into one array, at indices without arrays: one call for all the reads of a sweep.


def _scatter_sum(*values: Any, shape: tuple[int, ...], templates: tuple[Any, ...]) -> Any:
    buffer = np.zeros(shape, np.result_type(*map(dtype_of, values)))
    for value, template in zip(values, templates, strict=True):
        buffer[template] += value
    return buffer


def _scatter_sum_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    moving = [(t, p) for t, p in zip(tangents, params["templates"], strict=True) if t is not None]
    values, templates = zip(*moving, strict=True)
    return scatter_sum(*values, shape=params["shape"], templates=templates)


def _scatter_sum_pull(g: Any, templates: Any) -> Any:
    parts = tuple(index(g, template=template) for template in templates)
    return parts if len(parts) > 1 else parts[0]


def _scatter_sum_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    return _scatter_sum_pull, [t for k, t in enumerate(params["templates"]) if mask >> k & 1]


def _scatter_sum_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    templates = tuple((slice(None), *template) for template in params["templates"])
    args = [
        arg if mapped else np.broadcast_to(arg, (size, *shape_of(arg)))
        for arg, mapped in zip(args, batched, strict=True)
    ]
    return scatter_sum(*args, shape=(size, *params["shape"]), templates=templates)


scatter_sum = Primitive(
    "scatter_sum",
    _scatter_sum,
    jvp=_scatter_sum_jvp,
    vjp=_scatter_sum_vjp,
    batch=_scatter_sum_batch,
    shape=lambda specs, params: ArraySpec(
        params["shape"], np.result_type(*(spec.dtype for spec in specs))
    ),
)


# x[...] as users write it.


def _plain_slice(entry: slice) -> slice:
    """A slice whose ends are ints: a traced end asks for its value."""
    ends = (entry.start, entry.stop, entry.step)
    if all(end is None or type(end) is int for end in ends):
        return entry
    return slice(*(None if end is None else operator.index(end) for end in ends))


def getitem(x: Any, key: Any) -> Any:
    """x[key] for every key that NumPy takes; x or parts of the key may be traced."""
    entries = key if type(key) is tuple else (key,)
    for entry in entries:
        if type(entry) not in _BASIC:
            return _advanced(x, entries)
        if type(entry) is slice and (type(entry.start) is not int or type(entry.stop) is not int):
            entries = tuple(_plain_slice(e) if type(e) is slice else e for e in entries)
    return index(x, template=entries)


def _advanced(x: Any, entries: tuple[Any, ...]) -> Any:
    expanded: list[Any] = []
    for entry in entries:
        if type(entry) is slice:
            entry = _plain_slice(entry)
        elif isinstance(entry, (bool, np.bool_)):
            entry = np.asarray(entry)
        elif entry is not None and entry is not Ellipsis and not isinstance(entry, Tracer):
            entry = np.asarray(entry) if np.size(entry) else np.asarray(entry, np.intp)
        if isinstance(entry, (np.ndarray, Tracer)):
            kind = dtype_of(entry).kind
            if kind == "b":  # its shape decides the result's: ask for the values
                mask = np.asarray(concrete(entry))
                if not mask.ndim:
                    return _index_by_truth(x, bool(mask), entries)
                _check_mask(mask, shape_of(x), expanded)
                expanded += list(mask.nonzero())
                continue
            if kind not in "iu":
                raise IndexError("arrays used as indices must be of integer (or boolean) type")
        expanded.append(entry)
    return _index_full(x, _without_ellipsis(expanded, len(shape_of(x))))


def _index_by_truth(x: Any, truth: bool, entries: tuple[Any, ...]) -> Any:
    """x[True] is x with a new first axis of length 1, x[False] one of length 0."""
    if len(entries) > 1:
        raise IndexError("True and False can only be the whole index of a traced array")
    widened = index(x, template=(None,))
    return widened if truth else index(widened, template=(slice(0, 0),))


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


def _index_full(x: Any, entries: list[Any]) -> Any:
    template: list[Any] = []
    arrays: list[Any] = []
    for entry in entries:
        if entry is None or type(entry) is slice:
            template.append(entry)
        else:  # beside arrays, NumPy takes integers as arrays too
            template.append(ARRAY)
            arrays.append(entry if isinstance(entry, Tracer) else np.asarray(entry))
    return index(x, *arrays, template=tuple(template))


install_method("__getitem__", getitem)
install(getitem=getitem)
