"""torch.cuda: what programs ask before they use a GPU. There is none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is a GPU: never.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> "cuda" if torch.cuda.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count() -> int:
    """The number of GPUs: none.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cuda.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the GPU, which there is not: nothing happens, as in PyTorch.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cuda.manual_seed(0)
    """


manual_seed_all = manual_seed
