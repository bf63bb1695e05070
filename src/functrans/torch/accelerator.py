"""torch.accelerator: what programs ask before they use other devices. There are none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is an accelerator: never.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.is_available()
    False
    """
    return False


def current_accelerator(check_available: bool = False) -> None:
    """The accelerator: None.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.current_accelerator() is None
    True
    """


def device_count() -> int:
    """The number of accelerators: none.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.accelerator.device_count()
    0
    """
    return 0
