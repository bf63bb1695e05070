"""Parts and conjugates of complex tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.torch.errors import TensorError
from functrans.torch.registry import FUNCTIONS, attach, composed, export
from functrans.torch.tensor import Tensor


@export("conj", "conj_physical")
@composed("ConjBackward0")
def conj(x: Any) -> Any:
    """The complex conjugate.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return np.conj(x) if dtype_of(x).kind == "c" else x


@composed("ViewAsRealBackward0")
def _real(x: Any) -> Any:
    return np.real(x)


@composed("ViewAsRealBackward0")
def _imag(x: Any) -> Any:
    return np.imag(x)


@export("angle")
@composed("AngleBackward0")
def angle(x: Any) -> Any:
    """The angle of complex numbers.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.angle(torch.tensor([1j]))
    tensor([1.5708])
    """
    return np.angle(x)


def _real_part(self: Tensor) -> Tensor:
    """The real part.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return _real(self) if self.is_complex() else self


def _imaginary_part(self: Tensor) -> Tensor:
    """The imaginary part.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if not self.is_complex():
        raise TensorError("imag is not implemented for tensors with non-complex dtypes.")
    return _imag(self)  # type: ignore[no-any-return]


FUNCTIONS["real"], FUNCTIONS["imag"] = _real_part, _imaginary_part
attach(real=property(_real_part), imag=property(_imaginary_part))
