"""Whether matrix products run in half precision, in this thread."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from functrans.torch import dtypes
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])


def in_full_precision(function: _F) -> _F:
    """Wrap a function so that under autocast it computes in float32."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if MODE.autocast is None:
            return function(*args, **kwargs)
        return function(
            *[_widened(arg) for arg in args], **{k: _widened(v) for k, v in kwargs.items()}
        )

    return cast(_F, wrapper)


def _widened(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype is dtypes.float16:
        return value.to(dtypes.float32)
    return value


def in_low_precision(function: _F) -> _F:
    """Wrap a function so that under autocast it computes in the lower precision."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if MODE.autocast is None:
            return function(*args, **kwargs)
        return function(
            *[narrowed(arg) for arg in args], **{k: narrowed(v) for k, v in kwargs.items()}
        )

    return cast(_F, wrapper)


def narrowed(value: Any) -> Any:
    """A tensor, converted to the precision of autocast."""
    if isinstance(value, Tensor) and value.dtype is dtypes.float32:
        return value.to(MODE.autocast)
    return value
