"""torch.autograd.graph: nodes of the graph, and hooks on the values that it saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.interpreters.tape import TapeTracer
from functrans.torch.autograd.nodes import Node as Node
from functrans.torch.autograd.nodes import as_saved
from functrans.torch.tape import MODE, Packed, Record, with_links
from functrans.torch.tensor import Tensor, make


class _Packing:
    """Unpacks the saved values of a record."""

    def __init__(self, unpack: Callable[[Any], Any]) -> None:
        self.unpack = unpack

    def unpacked(self, saved: Any, links: Any) -> tuple[Any, Any]:
        """The saved values, and which of them are tracked."""
        found: dict[int, int] = {}

        def walk(each: Any) -> Any:
            if type(each) is Packed:
                tensor = self.unpack(each.value)
                value = tensor.value if isinstance(tensor, Tensor) else tensor
                if links is not None and each.address in links:
                    found[id(value)] = links[each.address]
                return value
            return type(each)(map(walk, each)) if type(each) in (tuple, list) else each

        return walk(saved), found if links is not None else None

    def lazily(self, pull: Callable[..., Any]) -> Callable[..., Any]:
        """A pullback that unpacks its saved values when it runs."""
        return lambda g, saved: pull(g, self.unpacked(saved, None)[0])


class saved_tensors_hooks:
    """Call `pack_hook` on every value saved inside, and `unpack_hook` when it is needed again.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(
    ...     lambda t: t.item(), lambda v: torch.tensor(v)
    ... ):
    ...     y = x.exp()
    >>> y.backward()
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._before: Any = None

    def __enter__(self) -> saved_tensors_hooks:
        self._before = MODE.observers
        # The innermost pair of hooks takes effect.
        others = tuple(o for o in self._before if not isinstance(o, _Packer))
        MODE.observers = (*others, _Packer(self.pack_hook, self.unpack_hook))
        return self

    def __exit__(self, *exc_info: Any) -> None:
        MODE.observers = self._before


class _Packer:
    """An observer of new records that packs their saved values."""

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self.pack = pack
        self.unpack = unpack

    def __call__(self, record: Record) -> None:
        observers, enabled = MODE.observers, MODE.enabled
        MODE.observers, MODE.enabled = (), False  # the hook's own computations are not recorded
        try:
            packed = self._packed(record[2], _tracked(record))
        finally:
            MODE.observers, MODE.enabled = observers, enabled
        if packed is not record[2]:
            record[2] = packed
            record.packing = _Packing(self.unpack)

    def _packed(self, saved: Any, tracked: dict[int, Any]) -> Any:
        if is_plain(saved, (np.ndarray, np.generic)):
            parent = tracked.get(id(saved))
            tensor = make(saved) if parent is None else as_saved(saved, parent)
            return Packed(self.pack(tensor), id(saved))
        if type(saved) in (tuple, list):
            parts = [self._packed(each, tracked) for each in saved]
            changed = any(a is not b for a, b in zip(parts, saved, strict=True))
            return type(saved)(parts) if changed else saved
        return saved


def _tracked(record: Record) -> dict[int, Any]:
    """The records of the tracked arguments among the saved values, by the id of the value.

    Results are left out: a packed value must not hold the record that holds it.
    """
    if not getattr(record[1], "needs", None):
        return {}
    linked = with_links(record, record[2], None)
    pairs = (
        [(linked, record[2])] if type(linked) is not tuple else zip(linked, record[2], strict=True)
    )
    return {
        id(value): link.record
        for link, value in pairs
        if isinstance(link, TapeTracer) and link.record is not record
    }


class save_on_cpu:
    """Keep saved values on the CPU. They always are, so this has no effect.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autograd.graph.save_on_cpu():
    ...     _ = torch.ones(2, requires_grad=True).exp()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        pass

    def __enter__(self) -> save_on_cpu:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        pass
