"""How functions become names of `functrans.torch` and methods of `Tensor`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from functrans.torch import dtypes
from functrans.torch.tensor import Tensor, cast, lower, named

_Function = TypeVar("_Function", bound=Callable[..., Any])

FUNCTIONS: dict[str, Any] = {}  # the functions of the torch namespace, by name


def export(
    *names: str, method: bool = True, function: bool = True
) -> Callable[[_Function], _Function]:
    """Register a function under these names, or under its own."""

    def decorate(each: _Function) -> _Function:
        for name in names or (each.__name__,):
            if function:
                FUNCTIONS[name] = each
            if method:
                setattr(Tensor, name, each)
        return each

    return decorate


def attach(**members: Any) -> None:
    """Attach these methods and properties to `Tensor`."""
    for name, member in members.items():
        setattr(Tensor, name, member)


def composed(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of tensors from one written with NumPy, which gets their NumPy faces.

    `name` is the name of the `grad_fn` of its results.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with np.errstate(all="ignore"):
                result = lower(
                    function(
                        *[lift(arg) for arg in args], **{k: lift(v) for k, v in kwargs.items()}
                    )
                )
            tensors = [each for each in args if isinstance(each, Tensor)]
            if any(each.dtype.category < 2 for each in tensors):
                result = _narrowed(result, tensors)
            for each in result if isinstance(result, (tuple, list)) else (result,):
                named(each, name, args)
            return result

        return wrapper

    return decorate


def _narrowed(result: Any, tensors: list[Tensor]) -> Any:
    """Convert a result to PyTorch's precision for integers; NumPy computes in double precision."""
    if isinstance(result, (tuple, list)):
        return type(result)(_narrowed(each, tensors) for each in result)
    if not isinstance(result, Tensor) or result.value.dtype not in (np.float64, np.complex128):
        return result
    joint = dtypes.of_numpy(dtypes.joint_dtype([each.value for each in tensors], []))
    joint = joint if joint.category > 1 else dtypes.get_default_dtype()
    if result.dtype.category == 3:
        joint = dtypes.promote_types(joint, dtypes.complex64)
    return cast(result, joint.numpy)


def lift(value: Any) -> Any:
    """The NumPy face of a tensor, including tensors in a list or tuple."""
    if isinstance(value, Tensor):
        return value.lift()
    if type(value) in (tuple, list):
        return type(value)(map(lift, value))
    return value
