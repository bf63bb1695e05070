"""torch.accelerator: queries for other devices than the CPU. There are none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether an accelerator is available: always False.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.is_available()
    False
    """
    return False


def current_accelerator(check_available: bool = False) -> None:
    """The current accelerator: always None.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.current_accelerator() is None
    True
    """


def device_count() -> int:
    """The number of accelerators: always 0.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.device_count()
    0
    """
    return 0
