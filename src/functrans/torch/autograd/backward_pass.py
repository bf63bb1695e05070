"""backward and grad: the public functions, and how gradients reach the leaves."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.errors import user_depth
from functrans.torch.autograd import engine
from functrans.torch.autograd.nodes import Handle, add_hook, hooks_of, new_table
from functrans.torch.errors import TensorError, TensorTypeError, TensorValueError
from functrans.torch.registry import attach
from functrans.torch.tape import MODE
from functrans.torch.tensor import Size, Tensor, lower, make
from functrans.transforms.arguments import own_all


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, Tensor) or value is None else tuple(value)


def _tensors(value: Any) -> tuple[Tensor, ...]:
    """One tensor or several, as a tuple."""
    if not isinstance(value, (Tensor, Iterable)):
        raise TensorTypeError(
            f"expected a Tensor or several of them, but got {type(value).__name__}"
        )
    values = _as_tuple(value)
    for k, each in enumerate(values):
        if not isinstance(each, Tensor):
            raise TensorTypeError(f"expected Tensor as element {k}, but got {type(each).__name__}")
    return values


def _seeds(outputs: tuple[Tensor, ...], gradients: tuple[Any, ...], create: bool) -> list[Any]:
    """The cotangents that the sweep starts from."""
    seeds: list[Any] = []
    if len(gradients) != len(outputs):
        raise TensorError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    for k, (out, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if gradient is None:
            if out.record is not None and out.value.size != 1:
                raise TensorError("grad can be implicitly created only for scalar outputs")
            seeds.append(np.ones(out.value.shape, out.value.dtype)[()])
            continue
        if not isinstance(gradient, Tensor):
            raise TensorTypeError(
                f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
            )
        if gradient.value.shape != out.value.shape:
            raise TensorError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {Size(gradient.value.shape)} and "
                f"output[{k}] has a shape of {Size(out.value.shape)}."
            )
        if gradient.is_complex() != out.is_complex():
            raise TensorError(
                "For complex Tensors, both grad_output and output are required to have the same dtype."
                f" Mismatch in dtype: grad_output[{k}] has a dtype of {gradient.dtype} and output[{k}]"
                f" has a dtype of {out.dtype}."
            )
        face = engine.turned(gradient.lift() if create else gradient.value)
        seeds.append(face if face.dtype == out.value.dtype else face.astype(out.value.dtype))
    for k, out in enumerate(outputs):
        if out.record is None:
            if isinstance(out.value, Tracer):
                raise TensorError(
                    "backward() was called inside a function being transformed: use torch.func.grad or "
                    "torch.func.vjp there."
                )
            raise TensorError(
                f"element {k} of tensors does not require grad and does not have a grad_fn"
            )
    return seeds


_warned: list[bool] = []


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to the `.grad` of the leaves that they were computed from.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward(x**2)
    >>> x.grad
    tensor(6.)
    """
    outputs = _tensors(tensors)
    gradients = (None,) * len(outputs) if grad_tensors is None else _as_tuple(grad_tensors)
    seeds = _seeds(outputs, gradients, create_graph)
    if create_graph and not _warned:
        _warned.append(True)
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this function, "
            "make sure to reset the .grad fields of your parameters to None after use to break the "
            "cycle and avoid the leak.",
            stacklevel=user_depth(),
        )
    targets: Any = None
    if inputs is not None:
        targets = _tensors(inputs)
        if not targets:
            raise TensorError("`inputs` argument to `backward()` cannot be empty.")
        _check_targets(targets)
    retain = create_graph if retain_graph is None else retain_graph
    roots = [out.record for out in outputs]
    records = None if targets is None else [target.record for target in targets]
    cotangents, leaves = engine.run(roots, seeds, records, retain, create_graph)
    if targets is None:
        chosen = [(record, record.tensor()) for record in leaves.values()]
    else:
        chosen = [(target.record, target) for target in targets]
    _accumulate(cotangents, chosen, seeds, create_graph)


def _check_targets(targets: tuple[Any, ...]) -> None:
    for target in targets:
        if target.record is None:
            raise TensorError("One of the differentiated Tensors does not require grad")


def _accumulate(
    cotangents: dict[int, Any], chosen: list[Any], seeds: list[Any], create: bool
) -> None:
    chosen = [
        (record, tensor)
        for record, tensor in chosen
        if tensor is not None and record[0] in cotangents
    ]
    keys = [record[0] for record, _ in chosen]
    likes = [tensor.value for _, tensor in chosen]
    values = own_all(cotangents, keys, likes, set(map(id, seeds)))
    for (record, tensor), value in zip(chosen, values, strict=True):
        if type(value) is np.ndarray and value.dtype.kind == "f":  # most are
            gradient = make(value)
        else:
            gradient = lower(engine.turned(value))
        if record.hooks is not None and len(record) == 1:
            before, MODE.enabled = MODE.enabled, create
            try:
                gradient = engine.run_tensor_hooks(record, gradient)
            finally:
                MODE.enabled = before
        previous = tensor._grad
        if previous is None:
            tensor._grad = gradient
        elif create or isinstance(value, Tracer) or previous.record is not None:
            tensor._grad = previous + gradient
        elif is_plain(previous.value, np.ndarray):
            previous.value += gradient.value
        else:
            previous.value = previous.value + gradient.value
        if tensor.post_hooks is not None:
            for hook in list(tensor.post_hooks.values()):
                hook(tensor)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs, without changing any `.grad`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x**2 + 2 * x, x)
    (tensor(8.),)
    """
    if materialize_grads and allow_unused is False:
        raise TensorValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    outs, targets = _tensors(outputs), _tensors(inputs)
    _check_targets(targets)
    given = (None,) * len(outs) if grad_outputs is None else _as_tuple(grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    allowed = bool(allow_unused) or materialize_grads

    def pulled(gradients: tuple[Any, ...], keep: bool) -> tuple[Any, ...]:
        seeds = _seeds(outs, gradients, create_graph)
        records = [target.record for target in targets]
        roots = [out.record for out in outs]
        cotangents, _ = engine.run(roots, seeds, records, keep, create_graph)
        keys = [record[0] for record in records]
        for k, key in enumerate(keys):
            if key not in cotangents and not allowed:
                raise TensorError(
                    f"The differentiated Tensor at index {k} appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior."
                )
        likes = [target.value for target in targets]
        unused = [key not in cotangents for key in keys]
        values = own_all(cotangents, keys, likes, set(map(id, seeds)))
        results: list[Any] = []
        for record, value, missing in zip(records, values, unused, strict=True):
            if missing and not materialize_grads:
                results.append(None)
            elif len(record) == 1:
                results.append(engine.run_tensor_hooks(record, lower(engine.turned(value))))
            else:
                results.append(lower(engine.turned(value)))
        return tuple(results)

    if not is_grads_batched:
        return pulled(given, retain)
    from functrans.transforms.batching import vmap

    batched = tuple(None if each is None else each.lift() for each in given)

    def lane(*parts: Any) -> tuple[Any, ...]:
        return pulled(tuple(None if part is None else lower(part) for part in parts), True)

    return tuple(
        lower(each) if not isinstance(each, Tensor) else each for each in vmap(lane)(*batched)
    )


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the `.grad` of the leaves that it was computed from.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor(2.0, requires_grad=True).backward() is None
    True
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


def _get_grad(self: Tensor) -> Any:
    """The gradient accumulated by backward passes, or None.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor(2.0, requires_grad=True).grad is None
    True
    """
    computed = self.record is not None and len(self.record) > 1
    if self._grad is None and computed and not self.retains_grad:
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
            "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
            "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
            "instead.",
            stacklevel=user_depth(),
        )
    return self._grad


def _set_grad(self: Tensor, gradient: Any) -> None:
    if gradient is not None:
        if not isinstance(gradient, Tensor):
            raise TensorTypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(gradient).__name__}"
            )
        if gradient.value.shape != self.value.shape:
            raise TensorError(
                f"attempting to assign a gradient of size '{list(gradient.value.shape)}' to a tensor "
                f"of size '{list(self.value.shape)}'. Please ensure that the gradient and the tensor "
                "are the same size"
            )
        if gradient.value.dtype != self.value.dtype:
            raise TensorError(
                f"attempting to assign a gradient with dtype '{gradient.dtype.legacy.lower()}' to a "
                f"tensor with dtype '{self.dtype.legacy}'. The gradient must match the tensor's dtype."
            )
    self._grad = gradient


def _del_grad(self: Tensor) -> None:
    self._grad = None


def _retain_grad(self: Tensor) -> None:
    """Keep the gradient of this tensor in `.grad`, even though it is not a leaf.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1, requires_grad=True).retain_grad() is None
    True
    """
    if self.record is None:
        raise TensorError("can't retain_grad on Tensor that has requires_grad=False")
    if len(self.record) > 1 and not self.retains_grad:
        self.retains_grad = True
        hooks_of(self.record).keeper = weakref.ref(self)


def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> Handle:
    """Call hook(grad) when the gradient of this tensor is computed; the hook may return a replacement.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1, requires_grad=True).register_hook(print).remove()
    """
    if self.record is None:
        raise TensorError("cannot register a hook on a tensor that doesn't require gradient")
    return add_hook(hooks_of(self.record).tensor, hook)


def _register_post_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """Call hook(tensor) after a gradient has been added to the `.grad` of this leaf.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1, requires_grad=True).register_post_accumulate_grad_hook(print).remove()
    """
    if self.record is None:
        raise TensorError("cannot register a hook on a tensor that doesn't require gradient")
    if len(self.record) > 1:
        raise TensorError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self.post_hooks is None:
        self.post_hooks = new_table()
    return add_hook(self.post_hooks, hook)


attach(
    backward=_backward,
    grad=property(_get_grad, _set_grad, _del_grad),
    retain_grad=_retain_grad,
    register_hook=_register_hook,
    register_post_accumulate_grad_hook=_register_post_hook,
)
