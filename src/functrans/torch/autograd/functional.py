"""torch.autograd.functional: derivatives of functions, computed with functrans' transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.torch.errors import TensorError, TensorTypeError
from functrans.torch.tensor import Tensor, make
from functrans.transforms import derivatives, forward_mode, jacobians


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _prepared(inputs: Any, create_graph: bool) -> tuple[Any, ...]:
    for each in _tuple(inputs):
        if not isinstance(each, Tensor):
            raise TensorTypeError(
                "The inputs given to the function must be either a Tensor or a tuple of Tensors but "
                f"the value has type {type(each).__name__}."
            )
    return tuple(x if create_graph else x.detach() for x in _tuple(inputs))


def _finished(value: Any, create_graph: bool) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_finished(each, create_graph) for each in value)
    return value if create_graph or not isinstance(value, Tensor) else value.detach()


def _shaped(value: Any, single: bool) -> Any:
    return value[0] if single else value


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function of tensors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    given = _prepared(inputs, create_graph)
    transform = jacobians.jacfwd if strategy == "forward-mode" else jacobians.jacrev
    found = transform(func, argnums=tuple(range(len(given))))(*given)
    single = isinstance(inputs, Tensor)
    if isinstance(found, tuple) and found and isinstance(found[0], tuple):  # several outputs
        return _finished(tuple(_shaped(each, single) for each in found), create_graph)
    return _finished(_shaped(found, single), create_graph)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian matrix of a scalar-valued function.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    given = _prepared(inputs, create_graph)
    numbers = tuple(range(len(given)))

    def gradient(*xs: Any) -> Any:
        out = func(*xs)
        if isinstance(out, tuple) or out.numel() != 1:
            raise TensorError(
                "The Tensor returned by the function given to hessian should contain a single element"
            )
        return out.reshape(())

    found = jacobians.jacfwd(derivatives.grad(gradient, numbers), numbers)(*given)
    if isinstance(inputs, Tensor):
        return _finished(found[0][0], create_graph)
    return _finished(found, create_graph)


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value of a function, and a vector times its Jacobian.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.vjp(lambda x: x**2, torch.tensor([3.0]), torch.ones(1))
    (tensor([9.]), tensor([6.]))
    """
    given = _prepared(inputs, create_graph)
    out, pullback = derivatives.vjp(func, *given)
    if v is None:
        if isinstance(out, tuple) or out.numel() != 1:
            raise TensorError(
                "The vector v can only be None if the user-provided function returns a single Tensor "
                "with a single element."
            )
        v = make(np.ones(out.value.shape, out.value.dtype)[()])
    pulled = pullback(tuple(v) if isinstance(out, tuple) else v)
    return (
        _finished(out, create_graph),
        _finished(_shaped(pulled, isinstance(inputs, Tensor)), create_graph),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value of a function, and its Jacobian times a vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.jvp(lambda x: x**2, torch.tensor([3.0]), torch.ones(1))
    (tensor([9.]), tensor([6.]))
    """
    given = _prepared(inputs, create_graph)
    moving = _directions(given, v)
    out, tangent = forward_mode.jvp(func, given, moving)
    return _finished(out, create_graph), _finished(tangent, create_graph)


def _directions(given: tuple[Any, ...], v: Any) -> tuple[Any, ...]:
    if v is not None:
        for given_one, direction in zip(given, _tuple(v), strict=True):
            if given_one.shape != direction.shape:
                raise TensorError(
                    f"v has invalid size: should be {given_one.shape} but got {direction.shape}."
                )
        return _tuple(v)
    if len(given) != 1 or given[0].numel() != 1:
        raise TensorError(
            "The vector v can only be None if the input to the user-provided function is a single "
            "Tensor with a single element."
        )
    return (make(np.ones(given[0].value.shape, given[0].value.dtype)[()]),)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value of a function, and its Hessian times a vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([2.0]), torch.ones(1))
    (tensor(8.), tensor([12.]))
    """
    given = _prepared(inputs, create_graph)
    moving = _directions(given, v)
    numbers = tuple(range(len(given)))
    _, product = forward_mode.jvp(derivatives.grad(func, numbers), given, moving)
    single = isinstance(inputs, Tensor)
    return (
        _finished(func(*given), create_graph),
        _finished(_shaped(product, single), create_graph),
    )


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value of a function, and a vector times its Hessian.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([2.0]), torch.ones(1))
    (tensor(8.), tensor([12.]))
    """
    given = _prepared(inputs, create_graph)
    moving = _directions(given, v)
    numbers = tuple(range(len(given)))
    _, pullback = derivatives.vjp(derivatives.grad(func, numbers), *given)
    pulled = pullback(moving)
    single = isinstance(inputs, Tensor)
    return (
        _finished(func(*given), create_graph),
        _finished(_shaped(pulled, single), create_graph),
    )
