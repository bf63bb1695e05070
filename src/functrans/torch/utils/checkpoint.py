"""torch.utils.checkpoint: recompute parts of a model in the backward pass, to save memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.accumulate import settled
from functrans.core.dispatch import Tracer
from functrans.interpreters.tape import next_key
from functrans.torch.autograd import engine
from functrans.torch.autograd.modes import enable_grad
from functrans.torch.random import default_generator
from functrans.torch.tape import MODE, new_record, results_of
from functrans.torch.tensor import Tensor, make


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call function(*args, **kwargs), and recompute its intermediate values in the backward pass.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> from functrans.torch.utils.checkpoint import checkpoint
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor(3.3129)
    """
    if any(isinstance(arg, Tensor) and isinstance(arg.value, Tracer) for arg in args):
        from functrans.custom.checkpointing import checkpoint as functional

        return functional(lambda *tensors: function(*tensors, **kwargs))(*args)
    if not MODE.enabled:
        return function(*args, **kwargs)
    start = next_key()
    state = default_generator.get_state() if preserve_rng_state else None
    out = function(*args, **kwargs)
    several = isinstance(out, tuple)
    outputs = out if several else (out,)
    tensors = [each for each in outputs if isinstance(each, Tensor)]
    tracked = [each.record for each in tensors if each.record is not None]
    boundary = _boundary(tracked, start)
    if not boundary:
        return out

    def pull(g: Any, _: Any) -> Any:
        """Run the function again, and sweep over the records."""
        create = MODE.enabled
        later = default_generator.get_state()
        if state is not None:
            default_generator.set_state(state)
        with enable_grad():
            again = function(*args, **kwargs)
        if state is not None:
            default_generator.set_state(later)
        found = again if isinstance(again, tuple) else (again,)
        pairs = [
            (each.record, cotangent)
            for each, cotangent in zip(
                [each for each in found if isinstance(each, Tensor)], g, strict=True
            )
            if cotangent is not None and each.record is not None
        ]
        del again, found
        cotangents, _leaves = engine.run(
            [record for record, _ in pairs],
            [cotangent for _, cotangent in pairs],
            boundary,
            create,
            create,
        )
        parts = tuple(settled(cotangents.get(record[0])) for record in boundary)
        return parts if len(parts) > 1 else parts[0]

    operation = new_record("CheckpointFunction", pull, None, None, *boundary)
    operation.name = "CheckpointFunctionBackward"
    values = [each.value for each in tensors]
    flags = [each.record is not None for each in tensors]
    del out, tensors, tracked
    pairs = results_of(values, operation)
    made = iter(
        make(value, record if flag else None)
        for (value, record), flag in zip(pairs, flags, strict=True)
    )
    merged = tuple(next(made) if isinstance(each, Tensor) else each for each in outputs)
    return merged if several else merged[0]


def _boundary(roots: list[Any], start: int) -> list[Any]:
    """The records from before `start` that these depend on: the inputs, including closed-over ones."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        record = stack.pop()
        if record[0] in seen:
            continue
        seen.add(record[0])
        if record[0] < start:
            found[record[0]] = record
        else:
            stack.extend(record[4:])
    return list(found.values())


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **options: Any
) -> Any:
    """Run a sequence of modules in segments, each of which is checkpointed.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> from functrans.torch.utils.checkpoint import checkpoint_sequential
    >>> model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU())
    >>> checkpoint_sequential(model, 2, torch.ones(1), use_reentrant=False)
    tensor([1.])
    """
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(1, len(modules) // segments)

    def segment(part: list[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for module in part:
                x = module(x)
            return x

        return run

    starts = range(0, len(modules), size)[:segments]
    for k, start in enumerate(starts, 1):
        part = modules[start : start + size if k < segments else None]
        input = checkpoint(segment(part), input, use_reentrant=use_reentrant, **options)
    return input
