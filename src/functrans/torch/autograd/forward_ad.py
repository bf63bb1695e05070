"""torch.autograd.forward_ad: dual numbers within a level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.interpreters.dual import Dual, DualTracer
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.tensor import Tensor, lower, wrap


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


_levels: list[Dual] = []


def enter_dual_level() -> int:
    """Begin a level; see `dual_level`."""
    if _levels:
        raise TensorError("Nested forward mode AD is not supported at the moment")
    _levels.append(Dual().__enter__())
    return len(_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level."""
    if not _levels:
        raise TensorError(
            "Trying to exit a forward AD level which was not the last one that was created. This is "
            "not supported."
        )
    _levels.pop().leave(None)


class dual_level:
    """Within it, tensors can carry tangents.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> import functrans.torch.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     fwAD.unpack_dual(x**2).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc_info: Any) -> None:
        exit_dual_level()


def _level() -> Dual:
    if not _levels:
        raise TensorError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    return _levels[-1]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor that carries a tangent."""
    dual = _level()
    if tensor.dtype.category < 2:
        raise TensorValueError(
            f"Expected primal to be floating point or complex, but got: {tensor.dtype}"
        )
    if tensor.shape != tangent.shape:
        raise TensorError(
            f"Expected tangent to have the same shape as the primal: {list(tangent.shape)} and "
            f"{list(tensor.shape)}"
        )
    if tensor.dtype is not tangent.dtype:
        raise TensorError(
            f"Expected tangent to have the dtype of the primal: {tangent.dtype} and {tensor.dtype}"
        )
    return wrap(DualTracer(dual, tensor.lift(), tangent.lift()))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent; the tangent is None if there is none."""
    value = tensor.value
    if _levels and type(value) is DualTracer and value.interpreter is _levels[-1]:
        tangent = value.tangent
        if isinstance(tangent, np.ndarray) and not tangent.flags.writeable:
            tangent = tangent.copy()
        return UnpackedDualTensor(lower(value.value), lower(tangent))
    if isinstance(value, Tracer) and not _levels:
        value.interpreter.concrete(value)  # it says that the level is over
    return UnpackedDualTensor(tensor, None)
