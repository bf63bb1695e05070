"""Hooks of modules, which run before and after `forward`, and in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.torch.autograd.nodes import Handle, add_hook
from functrans.torch.tensor import Tensor


class WithKwargs:
    """A hook that is called with the keyword arguments as well."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook


class _Before(WithKwargs):
    """A hook that is called with the gradients of outputs, before they flow into the module."""


class Hooked:
    """The part of `Module` that registers hooks."""

    _forward_pre_hooks: Any
    _forward_hooks: Any
    _backward_hooks: Any

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call hook(module, args) before `forward`; the hook may return new arguments.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> layer = torch.nn.ReLU()
        >>> _ = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        >>> layer(torch.zeros(1))
        tensor([1.])
        """
        wrapped = WithKwargs(hook) if with_kwargs else hook
        return add_hook(self._forward_pre_hooks, wrapped, prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call hook(module, args, output) after `forward`; the hook may return a new output.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> layer = torch.nn.ReLU()
        >>> _ = layer.register_forward_hook(lambda module, args, output: print(output.shape))
        >>> _ = layer(torch.zeros(2))
        torch.Size([2])
        """
        wrapped = WithKwargs(hook) if with_kwargs else hook
        return add_hook(self._forward_hooks, wrapped, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call hook(module, grad_input, grad_output) when the gradient of the input is known.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> layer = torch.nn.Tanh()
        >>> _ = layer.register_full_backward_hook(lambda module, into, out: print(into, out))
        >>> layer(torch.zeros(1, requires_grad=True)).backward()
        (tensor([1.]),) (tensor([1.]),)
        """
        return add_hook(self._backward_hooks, hook)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call hook(module, grad_output) before the backward pass; the hook may return a new grad_output.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> layer, x = torch.nn.Tanh(), torch.zeros(1, requires_grad=True)
        >>> _ = layer.register_full_backward_pre_hook(lambda module, out: (out[0] * 5,))
        >>> layer(x).backward()
        >>> x.grad
        tensor([5.])
        """
        return add_hook(self._backward_hooks, _Before(hook))


class BackwardWatcher:
    """Collects the gradients of a module's outputs and inputs in one backward pass, for its hooks."""

    def __init__(self, module: Hooked) -> None:
        self.module = module
        self.grad_outputs: list[Any] = []
        self.grad_inputs: list[Any] = []
        self.waiting = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        watched = []
        for arg in args:
            if isinstance(arg, Tensor) and arg.record is not None:
                place = len(self.grad_inputs)
                arg = arg.view_as(arg)
                arg.register_hook(lambda g, place=place: self._input(place, g))
                self.waiting += 1
            self.grad_inputs.append(None)
            watched.append(arg)
        return tuple(watched)

    def _input(self, place: int, gradient: Tensor) -> Any:
        self.grad_inputs[place] = gradient
        self.waiting -= 1
        return self._run(place) if not self.waiting else None

    def _run(self, place: int) -> Any:
        replaced = None
        for hook in list(self.module._backward_hooks.values()):
            if isinstance(hook, _Before):
                continue
            found = hook(self.module, tuple(self.grad_inputs), tuple(self.grad_outputs))
            replaced = found if found is not None else replaced
        return None if replaced is None else replaced[place]

    def outputs(self, out: Any) -> Any:
        results = out if isinstance(out, tuple) else (out,)
        self.grad_outputs = [None] * len(results)
        for place, each in enumerate(results):
            if isinstance(each, Tensor) and each.record is not None:
                each.register_hook(lambda g, place=place: self._output(place, g))
        return out

    def _output(self, place: int, gradient: Tensor) -> Any:
        self.grad_outputs[place] = gradient
        for hook in list(self.module._backward_hooks.values()):
            if isinstance(hook, _Before):
                found = hook.hook(self.module, tuple(self.grad_outputs))
                if found is not None:
                    given = found if isinstance(found, tuple) else (found,)
                    self.grad_outputs[place] = given[place]
        if not self.waiting:  # no input requires grad
            self._run(0)
        return self.grad_outputs[place]
