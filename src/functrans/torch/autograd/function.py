"""autograd.Function: operations with a user-defined backward."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.primitive import bare
from functrans.custom.rules import custom_vjp
from functrans.interpreters.batch import Batch, BatchTracer
from functrans.torch import changes, random, views
from functrans.torch.autograd.engine import turned
from functrans.torch.autograd.modes import no_grad
from functrans.torch.autograd.nodes import FREED
from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.tape import MODE, new_record, results_of
from functrans.torch.tensor import Tensor, lower, make, wrap


class Context:
    """Passes values from `forward` to `backward`: saved tensors, and any attributes."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] | None = ()
        self._versions: list[int] = []
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._outputs: list[Any] = []  # (value, weak reference to its record)
        self._specs: list[Any] = []

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors for `backward`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TensorTypeError(
                    f"save_for_backward can only save variables, but argument is of type "
                    f"{type(tensor).__name__}"
                )
        self._saved = tensors
        self._versions = [
            0 if t is None or isinstance(t.value, Tracer) else changes.version(t.value)
            for t in tensors
        ]

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for `jvp`."""
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors; an error if one of them has been changed in place since."""
        if self._saved is None:
            raise TensorError(FREED)
        for tensor, before in zip(self._saved, self._versions, strict=False):
            if tensor is None or isinstance(tensor.value, Tracer):
                continue
            now = changes.version(tensor.value)
            if now != before:
                raise TensorError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: [torch.{tensor.dtype.legacy}Tensor {list(tensor.shape)}] is "
                    f"at version {now}; expected version {before} instead."
                )
        return tuple(self._with_record(tensor) for tensor in self._saved)

    def _with_record(self, tensor: Any) -> Any:
        """Give a saved result its record back, which the context itself must not hold."""
        for value, record in self._outputs:
            if tensor is not None and tensor.value is value:
                return make(value, record())
        return tensor

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare the inputs that `forward` changed in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare the outputs through which no gradient flows."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` gets missing gradients as zeros or as None."""
        self._materialize = value

    def free(self) -> None:
        self._saved = None


class Function:
    """An operation with a custom backward: subclass it, and call `apply`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad_output
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results of the operation; override it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> class Twice(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        >>> Twice.apply(torch.ones(1))
        tensor([2.])
        """
        raise NotImplementedError("You must implement the forward function for custom Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs; override it if `forward` takes no context.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> class Twice(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         return grad_output * 2
        >>> torch.func.grad(Twice.apply)(torch.tensor(3.0))
        tensor(2.)
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs; override it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> class Same(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.clone()
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         return grad_output * 5
        >>> x = torch.ones(1, requires_grad=True)
        >>> Same.apply(x).backward()
        >>> x.grad
        tensor([5.])
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function "
            "to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and record the operation for the backward pass.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> class Twice(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        >>> Twice.apply(torch.ones(1))
        tensor([2.])
        """
        if any(isinstance(arg, Tensor) and isinstance(arg.value, Tracer) for arg in args):
            return _apply_traced(cls, args)
        tracked = [isinstance(arg, Tensor) and arg.record is not None for arg in args]
        recording = MODE.enabled and any(tracked)
        context = Context(tuple(flag and recording for flag in tracked))
        with no_grad():
            out = _forward(cls, context, args)
        if not recording:
            return out
        if any(each.record is not None and len(each.record) == 1 for each in context._dirty):
            raise TensorError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        places = [k for k, flag in enumerate(tracked) if flag]
        parents = [args[k].record for k in places]
        fits: Any = [(tuple(args[k].value.shape), args[k].value.dtype) for k in places]
        shapes = [shape for shape, _ in fits]
        pull = functools.partial(_pull, cls, len(args), places, shapes)
        operation = new_record(
            cls.__name__, pull, context, fits if len(fits) > 1 else fits[0], *parents
        )
        operation.name = f"{cls.__name__}Backward"
        outputs = out if isinstance(out, tuple) else (out,)
        tensors = [each for each in outputs if isinstance(each, Tensor)]
        context._specs = [(tuple(t.value.shape), t.value.dtype) for t in tensors]
        results: list[Any] = []
        for tensor, (value, record) in zip(
            tensors, results_of([t.value for t in tensors], operation), strict=True
        ):
            if any(tensor is each for each in context._constant) or record is None:
                results.append(tensor)
                continue
            context._outputs.append((value, weakref.ref(record)))
            if any(tensor is each for each in context._dirty):
                results.append(views.written(tensor, record))
            elif any(tensor is arg for arg in args):
                results.append(make(value, record))  # an input that was returned unchanged
            else:
                tensor.record = record
                results.append(tensor)
        # Saved results must not hold their record, because it holds the context.
        context._saved = tuple(
            make(each.value) if any(each is tensor for tensor in tensors) else each
            for each in context._saved or ()
        )
        found = iter(results)
        merged = tuple(next(found) if isinstance(each, Tensor) else each for each in outputs)
        return merged if isinstance(out, tuple) else merged[0]


def _forward(cls: Any, context: Context, args: tuple[Any, ...]) -> Any:
    if cls.setup_context is Function.setup_context:
        return cls.forward(context, *args)
    out = cls.forward(*args)
    cls.setup_context(context, args, out)
    return out


def _gradients(cls: Any, context: Context, count: int, grads: list[Any]) -> tuple[Any, ...]:
    """Run the user's backward and check its result: one gradient for each input."""
    if context._materialize:
        grads = [
            make(_zeros(*spec)) if each is None else each
            for each, spec in zip(grads, context._specs, strict=True)
        ]
    backward = (
        cls.backward if cls.backward is not Function.backward else getattr(cls, "vjp", cls.backward)
    )
    returned = backward(context, *grads)
    given = returned if isinstance(returned, tuple) else (returned,)
    if len(given) > count and all(each is None for each in given[count:]):
        given = given[:count]
    if len(given) != count:
        raise TensorError(
            f"function {cls.__name__}Backward returned an incorrect number of gradients (expected "
            f"{count}, got {len(given)})"
        )
    for each in given:
        if each is not None and not isinstance(each, Tensor):
            raise TensorError(f"expected Variable or None (got {type(each).__name__})")
    return given


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.zeros(shape, dtype)[()]


def _pull(
    cls: Any, count: int, places: list[int], shapes: list[Any], g: Any, context: Context
) -> Any:
    grads = [lower(turned(each)) for each in (g if isinstance(g, list) else [g])]
    given = _gradients(cls, context, count, grads)
    wanted: list[Any] = []
    for k, shape in zip(places, shapes, strict=True):
        each = given[k]
        if each is None:
            wanted.append(None)
            continue
        _check_shape(cls, k, each, shape)
        wanted.append(turned(each.lift() if MODE.enabled else each.value))
    return bare(wanted)


def _check_shape(cls: Any, k: int, gradient: Tensor, shape: tuple[int, ...]) -> None:
    """Check the shape of a gradient, which may be that of an argument after broadcasting."""
    got = tuple(gradient.value.shape)
    try:
        fits = np.broadcast_shapes(shape, got) == got
    except ValueError:
        fits = False
    if not fits:
        raise TensorError(
            f"Function {cls.__name__}Backward returned an invalid gradient at index {k} - got "
            f"{list(got)} but expected shape compatible with {list(shape)}"
        )


class VmapInfo(NamedTuple):
    """The information passed to a user-defined `vmap`."""

    batch_size: int
    randomness: str


def _apply_batched(cls: Any, batch: Batch, args: tuple[Any, ...]) -> Any:
    """Apply the user-defined `vmap` to whole batches, whose lanes are along a dimension."""

    def mapped(arg: Any) -> bool:
        value = arg.value if isinstance(arg, Tensor) else None
        return type(value) is BatchTracer and value.interpreter is batch

    in_dims = tuple(0 if mapped(arg) else None for arg in args)
    whole = [lower(batch.hidden(arg.value)) if mapped(arg) else arg for arg in args]
    out, out_dims = cls.vmap(VmapInfo(batch.size, random.lanes.policy), in_dims, *whole)

    def lanes(tensor: Tensor, dim: int | None) -> Tensor:
        if dim is None:
            return tensor
        return wrap(BatchTracer(batch, tensor.movedim(dim, 0).lift()))

    if not isinstance(out, tuple):
        return lanes(out, out_dims)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(out)
    return tuple(map(lanes, out, dims))


def _apply_traced(cls: Any, args: tuple[Any, ...]) -> Any:
    """Apply the operation inside a transform, as a function with a custom rule of functrans."""
    places = [k for k, arg in enumerate(args) if isinstance(arg, Tensor)]
    tracers = [args[k].value for k in places if isinstance(args[k].value, Tracer)]
    top = max((tracer.interpreter for tracer in tracers), key=lambda each: each.level)
    if isinstance(top, Batch) and hasattr(cls, "vmap"):
        return _apply_batched(cls, top, args)
    held: list[Context] = []

    def rebuilt(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        each = iter(tensors)
        return tuple(next(each) if k in places else arg for k, arg in enumerate(args))

    def run(*tensors: Any) -> Any:
        return _below(cls, Context((True,) * len(args)), rebuilt(tensors))

    def forward(*tensors: Any) -> Any:
        context = Context((True,) * len(args))
        out = _below(cls, context, rebuilt(tensors))
        outputs = out if isinstance(out, tuple) else (out,)
        context._specs = [(tuple(t.value.shape), t.value.dtype) for t in outputs]
        held[:] = [context]
        return out, context._saved

    def backward(saved: Any, cotangent: Any) -> Any:
        context = held[0]
        context._saved, context._versions = tuple(saved), []
        grads = list(cotangent) if isinstance(cotangent, tuple) else [cotangent]
        given = _gradients(cls, context, len(args), grads)
        return tuple(given[k] for k in places)

    function = custom_vjp(run)
    function.defvjp(forward, backward)
    if hasattr(cls, "jvp"):
        function.defjvp(functools.partial(_jvp, cls, rebuilt, places, len(args)))
    return function(*(args[k] for k in places))


def _below(cls: Any, context: Context, args: tuple[Any, ...]) -> Any:
    """Run `forward` on the values below a transform that differentiates.

    If there is a `vmap` around it, the user-defined rule for `vmap` is used.
    """
    traced = any(isinstance(arg, Tensor) and isinstance(arg.value, Tracer) for arg in args)
    if not traced or not hasattr(cls, "vmap"):
        return _forward(cls, context, args)
    out = cls.apply(*args)
    cls.setup_context(context, args, out)
    return out


def _jvp(cls: Any, rebuilt: Any, places: list[int], count: int, primals: Any, tangents: Any) -> Any:
    context = Context((True,) * count)
    out = _below(cls, context, rebuilt(primals))
    moving = dict(zip(places, tangents, strict=True))
    saved = getattr(context, "saved_for_forward", None)
    if saved is not None:
        context._saved, context._versions = saved, []
    return out, cls.jvp(context, *(moving.get(k) for k in range(count)))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that cannot itself be differentiated.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @torch.autograd.function.once_differentiable
    ...     def backward(ctx, grad_output):
    ...         return grad_output * 2
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            returned = backward(ctx, *grads)
        tracked = [g for g in grads if isinstance(g, Tensor) and g.record is not None]
        if not MODE.enabled or not tracked:
            return returned
        parents = [g.record for g in tracked]

        def refuse(g: Any, saved: Any) -> Any:
            raise TensorError(
                "trying to differentiate twice a function that was marked with @once_differentiable"
            )

        def barred(tensor: Any) -> Any:
            if not isinstance(tensor, Tensor):
                return tensor
            record = new_record("Error", refuse, None, None, *parents)
            return make(tensor.value, record)

        return tuple(map(barred, returned)) if isinstance(returned, tuple) else barred(returned)

    return wrapper
