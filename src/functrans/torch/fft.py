"""torch.fft: NumPy's Fourier transforms under PyTorch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch import dtypes
from functrans.torch.registry import composed
from functrans.torch.tensor import Tensor, make, wrap


def _node(name: str) -> str:
    kind = {"r": "R2C", "ir": "C2R"}.get(name.partition("fft")[0], "C2C")
    return f"Fft{kind}Backward0"


def _one(name: str) -> Any:
    transform = getattr(np.fft, name)

    @composed(_node(name))
    def function(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return transform(input, n, dim, norm)

    function.__name__ = name
    function.__doc__ = f"`numpy.fft.{name}` along a dimension."
    return function


def _many(name: str, axes: Any) -> Any:
    transform = getattr(np.fft, name)

    @composed(_node(name))
    def function(input: Any, s: Any = None, dim: Any = axes, norm: Any = None) -> Any:
        return transform(input, s, dim, norm)

    function.__name__ = name
    function.__doc__ = f"`numpy.fft.{name}` along some dimensions."
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fft2, ifft2, rfft2, irfft2 = (_many(n, (-2, -1)) for n in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_many(n, None) for n in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Move the zero frequency to the middle.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.fft.fftshift(torch.tensor([0, 1, 2, 3]))
    tensor([2, 3, 0, 1])
    """
    return wrap(np.fft.fftshift(input.lift(), dim))


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.fft.ifftshift(torch.tensor([2, 3, 0, 1]))
    tensor([0, 1, 2, 3])
    """
    return wrap(np.fft.ifftshift(input.lift(), dim))


def fftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the entries of `fft`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return make(np.fft.fftfreq(n, d).astype(dtypes.default.numpy))


def rfftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the entries of `rfft`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return make(np.fft.rfftfreq(n, d).astype(dtypes.default.numpy))
