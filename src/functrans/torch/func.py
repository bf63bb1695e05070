"""torch.func: functrans' transforms under PyTorch's names. They take tensors and arrays alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.torch.errors import TensorError
from functrans.torch.tensor import Tensor
from functrans.transforms.batching import vmap as _vmap
from functrans.transforms.derivatives import grad as grad
from functrans.transforms.derivatives import jvp as jvp
from functrans.transforms.derivatives import linearize as linearize
from functrans.transforms.derivatives import value_and_grad
from functrans.transforms.derivatives import vjp as vjp
from functrans.transforms.jacobians import hessian as hessian
from functrans.transforms.jacobians import jacfwd as jacfwd
from functrans.transforms.jacobians import jacrev as jacrev


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a function together with its value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    both = value_and_grad(func, argnums, has_aux)

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return gradient_and_value


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function of one example, as a function of a batch.

    Random numbers that are drawn inside are the same in all lanes, as with randomness="same".

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise TensorError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    mapped = _vmap(func, in_axes=in_dims, out_axes=out_dims, chunk_size=chunk_size)

    def batched(*args: Any, **kwargs: Any) -> Any:
        from functrans.torch import random

        before = random.lanes.policy
        random.lanes.policy = randomness
        try:
            return mapped(*args, **kwargs)
        finally:
            random.lanes.policy = before

    return batched


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    **options: Any,
) -> Any:
    """Call a module with other parameters and buffers than its own.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layer = torch.nn.Linear(1, 1)
    >>> ones = {"weight": torch.ones(1, 1), "bias": torch.ones(1)}
    >>> torch.func.functional_call(layer, ones, torch.tensor([2.0]))
    tensor([3.])
    """
    given = parameter_and_buffer_dicts
    dicts = given if isinstance(given, (tuple, list)) else (given,)
    merged = {name: value for each in dicts for name, value in each.items()}
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, merged):
        return module(*positional, **(kwargs or {}))


class _swapped:
    """Other tensors in the place of a module's own, for a while."""

    def __init__(self, module: Any, tensors: dict[str, Any]) -> None:
        self.module = module
        self.tensors = tensors
        self.before: list[tuple[dict[str, Any], str, Any]] = []

    def __enter__(self) -> None:
        for name, tensor in self.tensors.items():
            path, _, last = name.rpartition(".")
            owner = self.module.get_submodule(path)
            home = next((h for h in (owner._parameters, owner._buffers) if last in h), None)
            if home is None:
                raise KeyError(f"{name} is no parameter or buffer of the module")
            self.before.append((home, last, home[last]))
            home[last] = tensor

    def __exit__(self, *exc_info: Any) -> None:
        for home, last, tensor in reversed(self.before):
            home[last] = tensor


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and buffers of modules of one kind, stacked along a new first dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(1, 2) for _ in range(3)])
    >>> params["weight"].shape
    torch.Size([3, 2, 1])
    """
    from functrans.torch.shaping import stack

    models = list(models)
    if not models:
        raise TensorError("stack_module_state: Expected at least one model, got 0.")
    if any(type(each) is not type(models[0]) for each in models):
        raise TensorError("stack_module_state: Expected all models to be of the same class.")

    def stacked(kind: str) -> dict[str, Tensor]:
        states = [dict(getattr(each, kind)()) for each in models]
        found = {}
        for name, first in states[0].items():
            joint = stack([state[name].detach() for state in states])
            found[name] = joint.requires_grad_() if first.requires_grad else joint
        return found

    return stacked("named_parameters"), stacked("named_buffers")
