"""grad_fn: records of the tape, shown as PyTorch's graph nodes."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.primitive import Primitive
from functrans.interpreters.tape import Share, TapeTracer
from functrans.ops import contraction, indexing, reduction, structure
from functrans.ops import elementwise as ew
from functrans.torch.errors import TensorError
from functrans.torch.registry import attach
from functrans.torch.tape import Record, table_of, with_links
from functrans.torch.tensor import Tensor, make

# PyTorch's names for the operations of primitives, where the two differ.
_NAMES: dict[Primitive, str] = {
    ew.power: "PowBackward0",
    ew.subtract: "SubBackward0",
    ew.multiply: "MulBackward0",
    ew.divide: "DivBackward0",
    ew.negative: "NegBackward0",
    ew.absolute: "AbsBackward0",
    contraction.matmul: "MmBackward0",
    ew.arcsin: "AsinBackward0",
    ew.arccos: "AcosBackward0",
    ew.arctan: "AtanBackward0",
    ew.arcsinh: "AsinhBackward0",
    ew.arccosh: "AcoshBackward0",
    ew.arctanh: "AtanhBackward0",
    ew.arctan2: "Atan2Backward0",
    structure.astype: "ToCopyBackward0",
    structure.copy: "CloneBackward0",
    structure.transpose: "PermuteBackward0",
    structure.reshape: "ViewBackward0",
    structure.broadcast_to: "ExpandBackward0",
    structure.concatenate: "CatBackward0",
    indexing.index: "IndexBackward0",
    indexing.update: "CopySlices",
    indexing.update_in_place: "CopySlices",
    indexing.update_both_in_place: "CopySlices",
    reduction.max: "AmaxBackward0",
    reduction.min: "AminBackward0",
    ew.root_of_squares: "SqrtBackward0",
    ew.log1p: "Log1PBackward0",
}


class Handle:
    """Returned when a hook is registered; `remove()` removes the hook."""

    def __init__(self, hooks: _Table, key: int) -> None:
        self._hooks = weakref.ref(hooks)
        self.id = key

    def remove(self) -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.remove()


class _Table(OrderedDict[int, Any]):
    """Hooks in the order in which they run."""


_number = iter(range(1 << 62)).__next__


def add_hook(hooks: Any, hook: Any, first: bool = False) -> Handle:
    """Add a hook after the others, or before them."""
    key = _number()
    hooks[key] = hook
    if first:
        hooks.move_to_end(key, last=False)
    return Handle(hooks, key)


class Hooks:
    """The hooks that run when the sweep reaches a record."""

    def __init__(self) -> None:
        self.tensor = _Table()  # hook(grad), may return a replacement
        self.before = _Table()  # hook(grad_outputs), may return replacements
        self.after = _Table()  # hook(grad_inputs, grad_outputs), may return new grad_inputs
        self.keeper: Any = None  # a weak reference to the tensor that retains its gradient


def hooks_of(record: Any) -> Hooks:
    """The hooks of a record."""
    if record.hooks is None:
        record.hooks = Hooks()
    return record.hooks  # type: ignore[no-any-return]


def new_table() -> Any:
    """An empty table of hooks."""
    return _Table()


def operation_name(record: Any) -> str:
    """What a record's operation is called."""
    if len(record) == 1:
        return "AccumulateGrad"
    if record.name is not None:
        return record.name  # type: ignore[no-any-return]
    primitive = record.primitive
    if primitive in _NAMES:
        return _NAMES[primitive]
    name = primitive.name if isinstance(primitive, Primitive) else str(primitive)
    words = name.split("_")
    return "".join(word.capitalize() for word in words) + "Backward0"


class Node:
    """An operation in the graph, as `tensor.grad_fn` and `next_functions` show it.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1, requires_grad=True).exp().grad_fn
    <ExpBackward0>
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self.metadata: dict[Any, Any] = {}

    def name(self) -> str:
        """The name of the operation, such as PowBackward0.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).exp().grad_fn.name()
        'ExpBackward0'
        """
        return operation_name(self._record)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The operations that the gradient flows to next, each with the index of its result.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).exp().grad_fn.next_functions
        ((<AccumulateGrad>, 0),)
        """
        record = self._record
        if record.edges is not None:
            return tuple(map(_edge, record.edges))
        return tuple(map(_edge, in_slots(record, record[4:])))

    @property
    def variable(self) -> Any:
        """The leaf that an AccumulateGrad belongs to.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> x.exp().grad_fn.next_functions[0][0].variable is x
        True
        """
        if len(self._record) > 1:
            raise AttributeError(f"{self.name()} has no variable: it is not a leaf")
        return self._record.tensor()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values that the backward pass will use.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.zeros(1, requires_grad=True).exp().grad_fn.saved_tensors
        (tensor([1.], grad_fn=<ExpBackward0>),)
        """
        context: Any = self._record[2] if len(self._record) > 1 else None
        if hasattr(context, "saved_tensors"):  # the context of a Function
            return context.saved_tensors  # type: ignore[no-any-return]
        return tuple(map(_shown, _saved_values(self._record)))

    def _sequence_nr(self) -> int:
        return int(self._record[0])

    def __getattr__(self, name: str) -> Any:
        # _saved_self, _saved_other and _saved_result, translated to the names in the rules.
        if name.startswith("_saved_") and len(self._record) > 1:
            needs = getattr(self._record[1], "needs", ())
            words = {"x": "self", "y": "other", "out": "result"}
            called = [words.get(each, each) for each in needs]
            wanted = name.removeprefix("_saved_")
            wanted = {"exponent": "other"}.get(wanted, wanted)
            if wanted in called:
                _refuse_freed(self._record)
                saved = with_links(self._record, self._record[2], None)
                return _shown(saved if len(needs) == 1 else saved[called.index(wanted)])
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call hook(grad_inputs, grad_outputs) after the operation; the hook may return new grad_inputs.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> node = torch.ones(1, requires_grad=True).exp().grad_fn
        >>> node.register_hook(lambda inputs, outputs: None).remove()
        """
        return add_hook(hooks_of(self._record).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call hook(grad_outputs) before the operation; the hook may return replacements.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> node = torch.ones(1, requires_grad=True).exp().grad_fn
        >>> node.register_prehook(lambda outputs: None).remove()
        """
        return add_hook(hooks_of(self._record).before, hook)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


def freed(g: Any, saved: Any) -> Any:
    """The pullback of a record whose saved values have been freed."""
    raise TensorError(FREED)


def _refuse_freed(record: Any) -> None:
    if record[1] is freed:
        raise TensorError(FREED)


def _saved_values(record: Any) -> list[Any]:
    _refuse_freed(record)

    def found(saved: Any) -> list[Any]:
        if isinstance(saved, (tuple, list)):
            return [value for each in saved for value in found(each)]
        return [saved] if isinstance(saved, (np.ndarray, np.generic, Tracer)) else []

    return found(with_links(record, record[2], record.links)) if len(record) > 1 else []


def _shown(saved: Any) -> Any:
    """A saved value as a tensor: the leaf itself, if it is one."""
    if isinstance(saved, TapeTracer):
        return as_saved(saved.value, saved.record)
    return make(saved) if is_plain(saved, (np.ndarray, np.generic)) else saved


def as_saved(value: Any, record: Any) -> Tensor:
    """A saved value as a tensor, if possible the user's own."""
    leaf = record.tensor() if len(record) == 1 else None
    return leaf if leaf is not None and leaf.value is value else make(value, record)


@functools.cache
def _kind(name: str) -> type[Node]:
    """The class of the nodes with one name: PyTorch has a class for each operation."""
    return type(name, (Node,), {})


def node_of(record: Any) -> Any:
    """The node of a record, the same object for as long as anyone holds it."""
    if len(record) > 1 and record[1] is Share:
        record = record[4]  # one of several results: PyTorch shows their operation
    known = record.node() if record.node is not None else None
    if known is None:
        known = _kind(operation_name(record))(record)
        record.node = weakref.ref(known)
    return known


def in_slots(record: Any, values: Any) -> tuple[Any, ...]:
    """The values for the parents of a record, with None for arguments that are not tracked.

    PyTorch counts those arguments as well.
    """
    table = table_of(record.primitive) if hasattr(record.primitive, "rules") else ()
    for mask, rule in enumerate(table):
        if rule is not None and rule[1] is record[1] and operation_name(record) != "PowBackward0":
            found = iter(values)
            arity = len(table).bit_length() - 1
            return tuple(next(found) if mask >> k & 1 else None for k in range(arity))
    return tuple(values)


def _edge(parent: Any) -> tuple[Any, int]:
    if parent is None:
        return None, 0
    place = parent[2][0] if len(parent) > 1 and parent[1] is Share else 0
    return node_of(parent), place


def _grad_fn(self: Tensor) -> Any:
    """The operation that computed this tensor, or None.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> (torch.ones(1, requires_grad=True) * 2).grad_fn.name()
    'MulBackward0'
    """
    record = self.record
    return None if record is None or len(record) == 1 else node_of(record)


attach(grad_fn=property(_grad_fn))
