"""grad_fn: the records of the tape as the objects that PyTorch shows."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.primitive import Primitive
from functrans.interpreters.tape import Share, TapeTracer
from functrans.torch.errors import TensorError
from functrans.torch.registry import attach
from functrans.torch.tape import Record, table_of, with_links
from functrans.torch.tensor import Tensor, make

# What PyTorch calls the operation of a primitive, where it is not the same word.
_NAMES = {
    "power": "PowBackward0",
    "subtract": "SubBackward0",
    "multiply": "MulBackward0",
    "divide": "DivBackward0",
    "negative": "NegBackward0",
    "absolute": "AbsBackward0",
    "matmul": "MmBackward0",
    "arcsin": "AsinBackward0",
    "arccos": "AcosBackward0",
    "arctan": "AtanBackward0",
    "arcsinh": "AsinhBackward0",
    "arccosh": "AcoshBackward0",
    "arctanh": "AtanhBackward0",
    "arctan2": "Atan2Backward0",
    "astype": "ToCopyBackward0",
    "copy": "CloneBackward0",
    "transpose": "PermuteBackward0",
    "reshape": "ViewBackward0",
    "broadcast_to": "ExpandBackward0",
    "concatenate": "CatBackward0",
    "index": "IndexBackward0",
    "update": "CopySlices",
    "max": "AmaxBackward0",
    "min": "AminBackward0",
    "root_of_squares": "SqrtBackward0",
    "log1p": "Log1PBackward0",
}


class Handle:
    """What registering a hook returns; `remove()` takes the hook away."""

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
    """Add a hook behind the others, or before them."""
    key = _number()
    hooks[key] = hook
    if first:
        hooks.move_to_end(key, last=False)
    return Handle(hooks, key)


class Hooks:
    """What is to run when the sweep comes to a record."""

    def __init__(self) -> None:
        self.tensor = _Table()  # hook(grad), may return another
        self.before = _Table()  # hook(grad_outputs), may return others
        self.after = _Table()  # hook(grad_inputs, grad_outputs), may return other grad_inputs
        self.keeper: Any = None  # a weak reference to the tensor that keeps its gradient


def hooks_of(record: Any) -> Hooks:
    """The hooks of a record."""
    if record.hooks is None:
        record.hooks = Hooks()
    return record.hooks  # type: ignore[no-any-return]


def new_table() -> Any:
    """An empty table of hooks."""
    return _Table()


def name_of(record: Any) -> str:
    """What a record's operation is called."""
    if len(record) == 1:
        return "AccumulateGrad"
    if record.name is not None:
        return record.name  # type: ignore[no-any-return]
    primitive = record.primitive
    name = primitive.name if isinstance(primitive, Primitive) else str(primitive)
    words = name.split("_")
    return _NAMES.get(name) or "".join(word.capitalize() for word in words) + "Backward0"


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
        """What the operation is called, such as PowBackward0.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).exp().grad_fn.name()
        'ExpBackward0'
        """
        return name_of(self._record)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The operations that the gradient flows to, each with the number of its result.

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
        if hasattr(context, "saved_tensors"):  # of a Function
            return context.saved_tensors  # type: ignore[no-any-return]
        return tuple(map(_shown, _saved_values(self._record)))

    def _sequence_nr(self) -> int:
        return int(self._record[0])

    def __getattr__(self, name: str) -> Any:
        # _saved_self, _saved_other, _saved_result, as the rules name what they keep.
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
        """Call hook(grad_inputs, grad_outputs) after the operation; it may return other grad_inputs.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> node = torch.ones(1, requires_grad=True).exp().grad_fn
        >>> node.register_hook(lambda inputs, outputs: None).remove()
        """
        return add_hook(hooks_of(self._record).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call hook(grad_outputs) before the operation; it may return others.

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
    """The pullback of a record whose saved values are gone."""
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
    return make(saved) if isinstance(saved, (np.ndarray, np.generic)) else saved


def as_saved(value: Any, record: Any) -> Tensor:
    """The tensor of a value that was saved, if possible the one that the user has."""
    leaf = record.tensor() if len(record) == 1 else None
    return leaf if leaf is not None and leaf.value is value else make(value, record)


@functools.cache
def _kind(name: str) -> type[Node]:
    """The class of all nodes of one name, as PyTorch has one for each."""
    return type(name, (Node,), {})


def node_of(record: Any) -> Any:
    """The object that stands for a record, the same one while anyone holds it."""
    if len(record) > 1 and record[1] is Share:
        record = record[4]  # one of several results: the operation is what PyTorch shows
    known = record.node() if record.node is not None else None
    if known is None:
        known = _kind(name_of(record))(record)
        record.node = weakref.ref(known)
    return known


def in_slots(record: Any, values: Any) -> tuple[Any, ...]:
    """What belongs to the parents of a record, and None for arguments that are not tracked.

    PyTorch counts these, too.
    """
    table = table_of(record.primitive) if hasattr(record.primitive, "rules") else ()
    for mask, rule in enumerate(table):
        if rule is not None and rule[1] is record[1] and name_of(record) != "PowBackward0":
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
    """The operation that made this tensor, or None.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> (torch.ones(1, requires_grad=True) * 2).grad_fn.name()
    'MulBackward0'
    """
    record = self.record
    return None if record is None or len(record) == 1 else node_of(record)


attach(grad_fn=property(_grad_fn))
