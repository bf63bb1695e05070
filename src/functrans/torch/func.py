"""torch.func: functrans' transforms under PyTorch's names. They accept tensors as well as arrays.

Two things follow PyTorch: the classes of errors, and the convention for complex tensors, where the gradient
of u(x + iy) is du/dx + i du/dy. Arrays keep functrans' convention, the conjugate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.core import errors, tree
from functrans.torch.complex_numbers import conj
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.tensor import Tensor
from functrans.transforms import derivatives, forward_mode, jacobians
from functrans.transforms.batching import vmap as _vmap

# Errors about the form of arguments and results, which PyTorch reports as a RuntimeError.
_FORM_ERRORS = (
    errors.ArgnumsError,
    errors.InputTypeError,
    errors.OutputShapeError,
    errors.OutputTypeError,
    errors.TangentError,
)


class _reported:
    """Raise errors about the form of arguments and results as PyTorch's class."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, _FORM_ERRORS):
            raise TensorError(str(error)) from error


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def _turned(value: Any) -> Any:
    """Convert cotangents of complex tensors to gradients, or gradients to cotangents."""
    return tree.map(lambda t: conj(t) if _is_complex(t) else t, value, is_leaf=_is_tensor)


def _is_complex(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.is_complex()


def _has_tensors(*values: Any) -> bool:
    return any(map(_is_tensor, tree.leaves(values, is_leaf=_is_tensor)))


def _to_scalar(func: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """Wrap a function to check that, given tensors, it returns a scalar."""

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        value = out[0] if has_aux and isinstance(out, tuple) and len(out) == 2 else out
        if _is_tensor(value) or not _has_tensors(args, kwargs):
            if _is_tensor(value) and value.dim():
                raise TensorError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    f"tensor with {value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs "
                    "instead?"
                )
            return out
        raise TensorError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}"
        )

    return checked


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a scalar-valued function.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.grad(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a function together with its value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    both = derivatives.value_and_grad(_to_scalar(func, has_aux), argnums, has_aux)

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        with _reported():
            value, gradient = both(*args, **kwargs)
        return _turned(gradient), value

    return gradient_and_value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its pullback, which maps gradients of results to those of arguments.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> out, pullback = torch.func.vjp(lambda x: x**2, torch.tensor([1.0, 2.0]))
    >>> pullback(torch.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    with _reported():
        out, pull, *aux = derivatives.vjp(func, *primals, has_aux=has_aux)

    def pullback(cotangents: Any) -> Any:
        with _reported():
            return _turned(pull(_turned(cotangents)))

    return (out, pullback, *aux)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """The value of a function, and its directional derivative.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    with _reported():
        return forward_mode.jvp(func, primals, tangents, has_aux)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its derivative at that point as a linear function.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> out, push = torch.func.linearize(lambda x: x**2, torch.tensor(3.0))
    >>> push(torch.tensor(1.0))
    tensor(6.)
    """
    with _reported():
        out, push = forward_mode.linearize(func, *primals)

    def pushforward(*tangents: Any) -> Any:
        with _reported():
            return push(*tangents)

    return out, pushforward


def _real(name: str, transform: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a transform that computes Jacobians: in PyTorch these are for real tensors only."""

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        for k, leaf in enumerate(tree.leaves(args, is_leaf=_is_tensor)):
            if _is_complex(leaf):
                raise TensorError(
                    f"{name}: Expected all inputs to be real but received complex tensor at flattened "
                    f"input idx: {k}"
                )
        with _reported():
            return transform(*args, **kwargs)

    return jacobian


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of a function, using reverse mode.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _real("jacrev", jacobians.jacrev(func, argnums, has_aux, chunk_size))


def jacfwd(
    func: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The Jacobian of a function, using forward mode.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.jacfwd(lambda x: x**2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _real("jacfwd", _with_randomness(jacobians.jacfwd(func, argnums, has_aux), randomness))


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Hessian matrix, using forward over reverse mode.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return _real("hessian", jacobians.hessian(func, argnums))


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Turn a function of one example into a function of a batch of examples.

    By default it is an error to draw random numbers inside. `randomness` allows it, with the same numbers
    in all lanes, or different ones in each.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """

    @functools.wraps(func)
    def lane(*args: Any, **kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        if _has_tensors(args, kwargs):
            for leaf in tree.leaves(out, is_leaf=_is_tensor):
                if not _is_tensor(leaf):
                    name = getattr(func, "__name__", type(func).__name__)
                    raise TensorValueError(
                        f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                        f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
                    )
        return out

    mapped = _vmap(lane, in_axes=in_dims, out_axes=out_dims, chunk_size=chunk_size)
    return _with_randomness(mapped, randomness)


def _with_randomness(mapped: Callable[..., Any], randomness: str) -> Callable[..., Any]:
    """Run a mapped function under a policy for random numbers."""
    if randomness not in ("error", "different", "same"):
        raise TensorError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

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
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given parameters and buffers in place of its own.

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
    with _swapped(module, merged, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


class _swapped:
    """Temporarily replaces tensors of a module."""

    def __init__(self, module: Any, tensors: dict[str, Any], tied: bool, strict: bool) -> None:
        self.before: list[tuple[dict[str, Any], str, Any]] = []
        homes = {
            f"{path}.{name}" if path else name: (home, name)
            for path, owner in module.named_modules(remove_duplicate=False)
            for home in (owner._parameters, owner._buffers)
            for name in home
        }
        unknown = [name for name in tensors if name not in homes]
        missing = [name for name in homes if name not in tensors]
        if strict and (unknown or missing):
            raise TensorError(
                f"Error(s) in functional_call for {type(module).__name__}: unexpected keys {unknown}, "
                f"missing keys {missing}"
            )
        self.swaps = [(*homes[name], new) for name, new in tensors.items() if name in homes]
        if tied:  # a tensor with several names is replaced under all of them
            replaced = {id(home[name]): new for home, name, new in self.swaps}
            self.swaps += [
                (home, name, replaced[id(home[name])])
                for full, (home, name) in homes.items()
                if full not in tensors and home[name] is not None and id(home[name]) in replaced
            ]

    def __enter__(self) -> None:
        for home, name, tensor in self.swaps:
            self.before.append((home, name, home[name]))
            home[name] = tensor

    def __exit__(self, *exc_info: Any) -> None:
        for home, name, tensor in reversed(self.before):
            home[name] = tensor


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and buffers of modules of one class along a new first dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(1, 2) for _ in range(3)])
    >>> params["weight"].shape
    torch.Size([3, 2, 1])
    """
    from functrans.torch.joining import stack

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
