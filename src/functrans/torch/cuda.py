"""torch.cuda: queries for GPUs. There are none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether a GPU is available: always False.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> "cuda" if torch.cuda.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count() -> int:
    """The number of GPUs: always 0.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cuda.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current GPU; as in PyTorch, this does nothing without a GPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cuda.manual_seed(0)
    """


manual_seed_all = manual_seed
