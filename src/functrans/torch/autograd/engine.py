"""The backward pass: collect the records that a tensor depends on, and sweep over them.

Keys increase as operations are recorded, so sorting by key gives a topological order. The sweep is that of
`functrans.interpreters.tape`. This module adds what is specific to PyTorch: which records take part, hooks,
freed graphs, version checks and the search for nan.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from functrans.core.accumulate import Accumulator, Deposit, accumulate, settled
from functrans.core.errors import user_depth
from functrans.core.shapes import dtype_of, fit
from functrans.interpreters.tape import Share, sweep
from functrans.torch import changes, dtypes
from functrans.torch.autograd.nodes import FREED, freed, in_slots, operation_name
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.tape import MODE, holds_values, with_links
from functrans.torch.tensor import Tensor, lower

_key = itemgetter(0)
_VALUES = (np.ndarray, np.generic)


class Anomaly:
    """Whether the origin of operations is noted, and whether backward passes check for nan."""

    enabled = False
    check_nan = True


class PullbackWatch:
    """Who measures pullbacks: watch(name, pull) is what runs in place of pull."""

    profiler: Any = None


def turned(value: Any) -> Any:
    """Convert a gradient to a cotangent, or a cotangent to a gradient.

    For u(z) with z = x + iy, PyTorch's gradient is du/dx + i du/dy; the sweep computes its conjugate.
    """
    if value is None or dtype_of(value).kind != "c":
        return value
    return np.conj(value)


def collect(roots: list[Any]) -> tuple[list[Any], dict[int, Any]]:
    """All records that these depend on, oldest first, and separately the leaves, by key."""
    found: list[Any] = []
    leaves: dict[int, Any] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        record = stack.pop()
        key = record[0]
        if key in seen:
            continue
        seen.add(key)
        if len(record) == 1:
            leaves[key] = record
        else:
            found.append(record)
            stack.extend(record[4:])
    found.sort(key=_key)
    return found, leaves


def _leading_to(found: list[Any], targets: list[Any]) -> list[Any]:
    """The records through which a gradient flows to one of the targets."""
    useful = {record[0] for record in targets}
    chosen = []
    for record in found:
        if any(parent[0] in useful for parent in record[4:]):
            useful.add(record[0])
            chosen.append(record)
    return chosen


def run(
    roots: list[Any],
    seeds: list[Any],
    targets: list[Any] | None,
    retain: bool,
    create: bool,
) -> tuple[dict[int, Any], dict[int, Any]]:
    """The cotangents of all leaves, or of the targets, by key; and the leaves."""
    found, leaves = collect(roots)
    if targets is not None:
        found = _leading_to(found, targets)
    _check(found)
    wanted = set() if targets is None else {record[0] for record in targets}
    captured: dict[int, Any] = {}
    copies: list[Any] = []
    for record in found:
        key, pull, saved, fits, *parents = record
        links = record.links
        if record.packing is not None:
            if create:
                saved, links = record.packing.unpacked(saved, links)
            else:
                pull = record.packing.lazily(pull)
        if create:
            saved = with_links(record, saved, links)
        if record.hooks is not None or key in wanted or Anomaly.enabled:
            if pull is Share:  # handled separately by the sweep: put the hooks before it
                copies.append((key - 0.5, Share, saved, None, *parents))
                pull, saved, parents = _identity, None, [(key - 0.5,)]
            pull = _observed(record, pull, fits, len(parents), captured if key in wanted else None)
        if PullbackWatch.profiler is not None and pull is not Share:
            pull = PullbackWatch.profiler._around(operation_name(record), pull)
        copies.append((key, pull, saved, fits, *parents))
    contexts: list[Any] = []
    if not retain:
        for record in found:
            if record[2] is not None:
                _free(record, contexts)
    cotangents: dict[int, Any] = {}
    for record, seed in zip(roots, seeds, strict=True):
        slot = cotangents.get(record[0])
        cotangents[record[0]] = seed if slot is None else slot + seed
    del found, roots
    before = MODE.enabled
    MODE.enabled = create
    try:
        with np.errstate(all="ignore"):
            sweep(copies, cotangents)
            for record in targets or ():
                if record[0] not in captured and record[0] in cotangents and len(record) > 1:
                    value = turned(settled(cotangents[record[0]]))
                    cotangents[record[0]] = turned(run_tensor_hooks(record, lower(value)).lift())
    finally:
        MODE.enabled = before
    for context in contexts:
        context.free()
    return cotangents | captured, leaves


def _identity(g: Any, saved: Any) -> Any:
    return g


def _free(record: Any, contexts: list[Any]) -> None:
    """Free the values that a record saved."""
    pull, saved = record[1], record[2]
    if pull is Share:
        return
    if getattr(pull, "needs", None) or holds_values(saved):
        record[1], record[2] = freed, None
    elif type(saved) is not tuple and hasattr(saved, "free"):
        contexts.append(saved)  # the context of a Function, which its backward still needs


def _check(found: list[Any]) -> None:
    """Refuse freed records, and values that were changed in place since they were saved."""
    look = bool(found) and changes.LAST.change > found[0][0]
    for record in found:
        if record[1] is freed:
            raise TensorError(FREED)
        if look:
            value = changes.changed_since(record[2], record[0])
            if value is not None:
                raise _version_error(record, value)


def _version_error(record: Any, value: Any) -> RuntimeError:
    kind = dtypes.of_numpy(value.dtype).legacy
    sizes = ", ".join(map(str, value.shape))
    source = _maker(record, value)
    if source is not record:  # an argument: now the result of the operation that changed it
        source = changes.writer(value) or source
    made = f", which is output 0 of {_bare_name(source)}," if source is not None else ""
    if Anomaly.enabled:
        _show_forward(record)
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable in question was changed in there or anywhere later. Good luck!"
        )
    else:
        hint = (
            "Hint: enable anomaly detection to find the operation that failed to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return TensorError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{kind}Tensor [{sizes}]]{made} is at version {changes.version(value)}; "
        f"expected version {changes.version(value, record[0])} instead. {hint}"
    )


def _bare_name(record: Any) -> str:
    name = operation_name(record).partition("Backward")[0]
    return f"torch::autograd::{name}" if name == "CopySlices" else name


def _maker(record: Any, value: Any) -> Any:
    """The record of the operation that computed a saved value; None if the value is not tracked."""
    linked, saved = with_links(record, record[2], record.links), record[2]

    def search(link: Any, plain: Any) -> Any:
        if plain is value:
            return getattr(link, "record", None)
        if isinstance(plain, (tuple, list)):
            for each, other in zip(link, plain, strict=True):
                found = search(each, other)
                if found is not None:
                    return found
        return None

    found = search(linked, saved)
    return found if found is not None and len(found) > 1 else None


def run_tensor_hooks(record: Any, gradient: Tensor) -> Tensor:
    """Apply the hooks of a tensor to its gradient, and keep the result if the tensor retains it."""
    hooks = record.hooks
    if hooks is None:
        return gradient
    for hook in list(hooks.tensor.values()):
        replaced = hook(gradient)
        if replaced is not None:
            gradient = _accepted(hook, replaced, gradient)
    keeper = hooks.keeper() if hooks.keeper is not None else None
    if keeper is not None:
        previous = keeper._grad
        keeper._grad = gradient if previous is None else previous + gradient
    return gradient


def _accepted(hook: Any, replaced: Any, gradient: Tensor) -> Tensor:
    """Check a gradient that a hook returned as a replacement."""
    if not isinstance(replaced, Tensor):
        raise TensorTypeError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    name = _name(hook)
    if replaced.value.shape != gradient.value.shape:
        raise TensorError(f"hook '{name}' has changed the size of value")
    if replaced.dtype is not gradient.dtype:
        raise TensorError(f"hook '{name}' has changed the type of value")
    return replaced


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _observed(
    record: Any, pull: Callable[..., Any], fits: Any, count: int, captured: Any
) -> Callable[..., Any]:
    """The pullback of a record, wrapped in its hooks."""
    hooks = record.hooks
    slots = in_slots(record, range(count))  # now, because a freed record no longer has them

    def observed(g: Any, saved: Any) -> Any:
        if hooks is not None and (hooks.tensor or hooks.keeper is not None):
            g = turned(run_tensor_hooks(record, lower(turned(g))).lift())
        if captured is not None:
            captured[record[0]] = g
        outputs = (g,) if not isinstance(g, list) else tuple(g)
        for hook in list(hooks.before.values()) if hooks is not None else ():
            replaced = hook(_shown(outputs))
            if replaced is not None:
                outputs = _taken(replaced)
                g = outputs[0] if not isinstance(g, list) else list(outputs)
        result = pull(g, saved)
        if (hooks is not None and hooks.after) or Anomaly.enabled:
            parts = (result,) if count == 1 else result
            places = (fits,) if count == 1 else fits or (None,) * count
            parts = tuple(map(_fitted, parts, places))
            parts = _after(record, parts, outputs, slots)
            result = parts[0] if count == 1 else parts
        return result

    return observed


def _fitted(cotangent: Any, place: Any) -> Any:
    if issubclass(type(cotangent), Deposit):
        cotangent = accumulate(None, cotangent)
    if type(cotangent) is Accumulator:
        cotangent = cotangent.settle()
    return cotangent if cotangent is None or place is None else fit(cotangent, *place)


def _after(
    record: Any, parts: tuple[Any, ...], outputs: tuple[Any, ...], slots: tuple[Any, ...]
) -> tuple[Any, ...]:
    if Anomaly.enabled and Anomaly.check_nan:
        for k, part in enumerate(parts):
            if isinstance(part, _VALUES) and np.isnan(part).any():
                _show_forward(record)
                raise TensorError(
                    f"Function '{operation_name(record)}' returned nan values in its {k}th output."
                )
    for hook in list(record.hooks.after.values()) if record.hooks is not None else ():
        inputs = tuple(None if slot is None else parts[slot] for slot in slots)
        replaced = hook(_shown(inputs), _shown(outputs))
        if replaced is not None:
            given = _taken(replaced)
            if len(given) != len(slots):
                raise TensorError(
                    f"hook '{_name(hook)}' has returned an incorrect number of values (got "
                    f"{len(given)}, but expected {len(slots)})"
                )
            pairs = zip(given, slots, strict=True)
            parts = tuple(each for each, slot in pairs if slot is not None)
    return parts


def _shown(cotangents: Any) -> tuple[Any, ...]:
    """Cotangents as the gradients that a hook sees."""
    return tuple(None if each is None else lower(turned(each)) for each in cotangents)


def _taken(gradients: Any) -> tuple[Any, ...]:
    """Gradients that a hook returned, as cotangents."""
    given = gradients if isinstance(gradients, tuple) else (gradients,)
    return tuple(None if each is None else turned(each.lift()) for each in given)


def _show_forward(record: Any) -> None:
    """Warn with the place where the failing operation was recorded."""
    trace = record.trace
    name = operation_name(record)
    if trace is None:
        text = (
            f"Error detected in {name}. No forward pass information available. Enable detect anomaly "
            "during forward pass for more information."
        )
    else:
        text = (
            f"Error detected in {name}. Traceback of forward call that caused the error:\n"
            + "".join(trace)
        )
    warnings.warn(text, stacklevel=user_depth())
