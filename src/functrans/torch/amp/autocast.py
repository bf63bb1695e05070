"""autocast: matrix products in half precision, and float32 where range or precision matters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.torch import dtypes
from functrans.torch.errors import TensorError
from functrans.torch.tape import MODE


class autocast:
    """Compute matrix products and convolutions inside the block in float16, but losses in float32.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autocast("cpu"):
    ...     (torch.eye(2) @ torch.eye(2)).dtype
    torch.float16
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type not in ("cpu", "cuda"):
            raise TensorError(f"User specified an unsupported autocast device_type {device_type!r}")
        self.dtype = dtypes.float16 if dtype is None else dtype
        if self.dtype not in (dtypes.float16, dtypes.float32):
            raise TensorError(f"autocast to {dtype} is not supported: use torch.float16")
        self.enabled = enabled
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        self._before.append(MODE.autocast)
        MODE.autocast = self.dtype if self.enabled else None
        return self

    def __exit__(self, *exc_info: Any) -> None:
        MODE.autocast = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether autocast is on in this thread.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.amp.is_autocast_enabled()
    False
    """
    return MODE.autocast is not None
