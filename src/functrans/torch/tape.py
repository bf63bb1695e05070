"""The tape that is always on: grad mode, records, and the two faces of a tracked value.

A `Tensor` is a value and its record, with PyTorch's methods. Its NumPy face is the same pair as a
`TapeTracer` of `ALWAYS_ON`, with NumPy's methods; `lift` and `lower` convert between the two. NumPy's
functions, and the rules of primitives, work on the NumPy face and are recorded like everything else.

Records here are lists rather than tuples, because a backward pass frees their saved values. They refer
only to older records, and only tensors and newer records refer to them: the others are freed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import ALWAYS_ON as LEVEL
from functrans.core.dispatch import is_plain
from functrans.core.evaluate import as_constant, open_array
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.shapes import PYTHON_SCALARS, dtype_of, shape_of
from functrans.interpreters.tape import Share, Tape, TapeTracer, fit_of, next_key
from functrans.ops.contraction import matmul
from functrans.ops.families import saver


class Record(list[Any]):
    """[key, pull, saved, fits, *parents], as in `functrans.interpreters.tape`, with attributes for PyTorch.

    `name` is the name of `grad_fn`, if it is not that of the primitive, and `edges` are the records in
    `next_functions`, if the operation is composed of several. `links` says which of the saved values are
    tracked: it maps the id of a value to the index of the parent that computed it, or to -1 - k for
    result k of the operation. Rules of elementwise primitives have no links: they name their saved values.
    """

    __slots__ = ("__dict__", "__weakref__", "primitive")

    primitive: Any
    name: str | None = None
    edges: tuple[Any, ...] | None = None
    node: Any = None  # a weak reference to the node that shows this record as grad_fn
    hooks: Any = None
    packing: Any = None  # how saved values are packed: see functrans.torch.autograd.graph
    trace: Any = None  # where the operation was recorded, in anomaly mode
    links: dict[int, int] | None = None
    tensor: Any = None  # a weak reference to the tensor whose record this is, if it is a leaf
    results: int = 1


class Mode(threading.local):
    """The modes of the current thread."""

    enabled = True  # whether operations are recorded
    silenced = 0  # if they are not, reverse mode is off for transforms up to this level as well
    inference = False  # whether new tensors are inference tensors
    autocast: Any = None  # the dtype of matrix products, while autocast is on
    observers: tuple[Callable[[Record], None], ...] = ()  # called with every new record


MODE = Mode()


def new_record(primitive: Any, pull: Any, saved: Any, fits: Any, *parents: Any) -> Record:
    """A record with a new key; observers are called with it."""
    record = Record((next_key(), pull, saved, fits, *parents))
    record.primitive = primitive
    if MODE.observers:
        for observer in MODE.observers:
            observer(record)
    return record


# Elementwise primitives and matmul name the values they save: (save, pull) for each mask.

_tables: dict[Primitive, tuple[Any, ...]] = {
    matmul: (
        None,
        (lambda out, x, y: (x.shape, y), matmul.rules[1][1]),
        (lambda out, x, y: (x, y.shape), matmul.rules[2][1]),
        (lambda out, x, y: (x, y), matmul.rules[3][1]),
    )
}


def table_of(primitive: Any) -> tuple[Any, ...]:
    """The primitive's rules, without copies of untracked values: the versions of tensors are checked."""
    table = _tables.get(primitive)
    if table is None:
        arity = len(primitive.rules).bit_length() - 1
        table = tuple(
            None if rule is None else (saver(rule[1].needs, arity), rule[1])
            for rule in primitive.rules
        )
        _tables[primitive] = table
    return table


def record1(primitive: Any, x: Any, out: Any, parent: Any) -> Any:
    """The record of primitive(x), or None if no gradient flows."""
    rule = table_of(primitive)[1]
    if rule is None:
        return None
    save, pull = rule
    saved = None if save is None else save(out, x)
    return new_record(primitive, pull, saved, fit_of(x, out, primitive.broadcasts), parent)


def record2(primitive: Any, x: Any, y: Any, out: Any, x_parent: Any, y_parent: Any) -> Any:
    """The record of primitive(x, y); the parent of an argument that is not tracked is None."""
    if y_parent is None:
        mask = 1
    else:
        mask = 2 if x_parent is None else 3
    rule = table_of(primitive)[mask]
    if rule is None:
        return None
    save, pull = rule
    saved = None if save is None else save(out, x, y)
    broadcasts = primitive.broadcasts
    if mask == 1:
        return new_record(primitive, pull, saved, fit_of(x, out, broadcasts), x_parent)
    if mask == 2:
        return new_record(primitive, pull, saved, fit_of(y, out, broadcasts), y_parent)
    x_fit, y_fit = fit_of(x, out, broadcasts), fit_of(y, out, broadcasts)
    fits = None if x_fit is None and y_fit is None else (x_fit, y_fit)
    return new_record(primitive, pull, saved, fits, x_parent, y_parent)


def record_call(
    primitive: Any, values: tuple[Any, ...], parents: tuple[Any, ...], params: Any, out: Any
) -> Any:
    """The record of primitive(*values, **params); the parents of arguments not tracked are None."""
    if primitive.vjp is None or (not primitive.outputs and dtype_of(out).kind not in "fc"):
        return None
    mask = sum(1 << k for k, parent in enumerate(parents) if parent is not None)
    if len(values) > 1:
        values = _distinct(values, parents)
    rule = primitive.vjp(mask, out, values, params)
    if rule is None:
        return None
    pull, saved = rule
    return _linked(primitive, pull, saved, values, parents, out)


def holds_values(saved: Any) -> bool:
    """Whether the saved values include arrays or NumPy scalars."""
    if type(saved) is tuple or type(saved) is list:
        return any(map(holds_values, saved))
    return is_plain(saved, (np.ndarray, np.generic, Packed))


class Packed:
    """A saved value after `pack`, and the id it had before; see functrans.torch.autograd.graph."""

    __slots__ = ("address", "value")

    def __init__(self, value: Any, address: int) -> None:
        self.value = value
        self.address = address


def _distinct(values: Any, parents: Any) -> tuple[Any, ...]:
    """Make arguments with different records different objects, since links go by identity.

    Two tensors may share one array, such as x and x.detach().
    """
    first: dict[int, int] = {}
    result = list(values)
    for k, value in enumerate(values):
        if parents[first.setdefault(id(value), k)] is not parents[k]:
            result[k] = value.view() if is_plain(value, np.ndarray) else np.array(value)[()]
    return tuple(result)


def _linked(primitive: Any, pull: Any, saved: Any, values: Any, parents: Any, out: Any) -> Record:
    ours = [k for k, parent in enumerate(parents) if parent is not None]
    if primitive.outputs:
        fits: Any = [(shape_of(values[k]), dtype_of(values[k])) for k in ours]
    else:
        fits = [fit_of(values[k], out, primitive.broadcasts) for k in ours]
        if fits.count(None) == len(fits):
            fits = None
    if fits is not None and len(ours) == 1:
        fits = fits[0]
    record = new_record(primitive, pull, saved, fits, *[parents[k] for k in ours])
    if not holds_values(saved):  # nothing to link
        return record
    results = out if primitive.outputs else (out,)
    record.results = len(results)
    record.links = {id(result): -1 - k for k, result in enumerate(results)}
    record.links |= {id(values[k]): place for place, k in enumerate(ours)}
    return record


def results_of(values: Any, operation: Any) -> list[tuple[Any, Any]]:
    """The results of one operation, each with a record that passes its cotangent on to it."""
    pairs = []
    for k, value in enumerate(values):
        record = None
        if operation is not None and dtype_of(value).kind in "fc":
            share = (k, len(values))
            record = new_record(operation.primitive, Share, share, None, operation)
            record.name = operation.name
        pairs.append((value, record))
    return pairs


class AlwaysOn(Tape):
    """Records operations on the NumPy face while grad mode is enabled."""

    __slots__ = ()

    transform = "functrans.torch"

    def __init__(self) -> None:
        super().__init__()
        self.level = LEVEL
        self.bottom = True  # values are plain arrays: tracers of transforms wrap ours

    def process1(self, primitive: Any, x: Any) -> Any:
        value = x.value
        out = primitive.impl(value)
        record = record1(primitive, value, out, x.record) if MODE.enabled else None
        return open_array(out) if record is None else TapeTracer(self, out, record)

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        x, x_parent = self._parts(x)
        y, y_parent = self._parts(y)
        out = primitive.impl(x, y)
        record = record2(primitive, x, y, out, x_parent, y_parent) if MODE.enabled else None
        return open_array(out) if record is None else TapeTracer(self, out, record)

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values, parents = zip(*[self._parts(arg) for arg in args], strict=True)
        if not MODE.enabled:
            out = primitive.impl(*values, **params)
            return tuple(map(open_array, out)) if primitive.outputs else open_array(out)
        if type(primitive) is HigherOrder:
            mask = sum(1 << k for k, parent in enumerate(parents) if parent is not None)
            values = _distinct(values, parents)
            out, pull, saved = primitive.trace(mask, values, params)
            record: Any = None
            if pull is not None:
                record = _linked(primitive, pull, saved, values, parents, out)
        else:
            out = primitive.impl(*values, **params)
            record = record_call(primitive, values, parents, params, out)
        if primitive.outputs:
            return tuple(
                open_array(value) if share is None else TapeTracer(self, value, share)
                for value, share in results_of(out, record)
            )
        return open_array(out) if record is None else TapeTracer(self, out, record)

    def _parts(self, arg: Any) -> tuple[Any, Any]:
        """The value of an argument, and its record if it has one."""
        if type(arg) is TapeTracer and arg.interpreter is self:
            return arg.value, arg.record
        return as_constant(arg), None


TAPE = AlwaysOn()


def tracer(value: Any, record: Any) -> TapeTracer:
    """The NumPy face of a tracked value."""
    return TapeTracer(TAPE, value, record)


def with_links(record: Any, saved: Any, links: dict[int, int] | None) -> Any:
    """The saved values of a record, the tracked ones as tracers, so that the pullback is recorded."""
    pull = record[1]
    needs = getattr(pull, "needs", None)
    if needs is None:
        return saved if links is None else _relinked(record, saved, links)
    if not needs:
        return saved
    table = table_of(record.primitive)
    mask = next(k for k, rule in enumerate(table) if rule is not None and rule[1] is pull)
    values = (saved,) if len(needs) == 1 else saved
    linked = tuple(_own(record, mask, n, v) for n, v in zip(needs, values, strict=True))
    return linked[0] if len(needs) == 1 else linked


_PLACES = {"x": 1, "y": 2, "z": 4, "w": 8, "v": 16}


def _own(record: Any, mask: int, name: str, value: Any) -> Any:
    if name == "out":
        return tracer(value, record)
    bit = _PLACES[name]
    return tracer(value, record[4 + (mask & (bit - 1)).bit_count()]) if mask & bit else value


def _relinked(record: Any, saved: Any, links: dict[int, int]) -> Any:
    place = links.get(id(saved))
    if place is None:
        if type(saved) is tuple or type(saved) is list:
            return type(saved)(_relinked(record, each, links) for each in saved)
        return saved
    if place >= 0:
        return tracer(saved, record[4 + place])
    if record.primitive.outputs:
        share = (-1 - place, record.results)
        return tracer(saved, new_record(record.primitive, Share, share, None, record))
    return tracer(saved, record)


def lowered(value: Any) -> tuple[Any, Any]:
    """Convert a result on the NumPy face to a value and a record."""
    if type(value) is TapeTracer and value.interpreter is TAPE:
        return value.value, value.record
    value = as_constant(value)
    if type(value) in PYTHON_SCALARS:
        value = np.asarray(value)[()]
    elif not MODE.enabled:  # no_grad inside a differentiated function: a constant
        while type(value) is TapeTracer and LEVEL < value.interpreter.level <= MODE.silenced:
            value = value.value
    return value, None
