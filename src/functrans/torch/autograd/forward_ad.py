"""torch.autograd.forward_ad: dual numbers within a level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.interpreters.dual import Dual, DualTracer
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.printing import forward_levels as _levels
from functrans.torch.tensor import Tensor, lower, wrap


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.forward_ad.unpack_dual(torch.ones(1))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level; see `dual_level`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> level = torch.autograd.forward_ad.enter_dual_level()
    >>> torch.autograd.forward_ad.exit_dual_level()
    """
    if _levels:
        raise TensorError("Nested forward mode AD is not supported at the moment")
    _levels.append(Dual().__enter__())
    return len(_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the level.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> level = torch.autograd.forward_ad.enter_dual_level()
    >>> torch.autograd.forward_ad.exit_dual_level()
    """
    if not _levels:
        raise TensorError(
            "Trying to exit a forward AD level which was not the last one that was created. This is "
            "not supported."
        )
    _levels.pop().leave()


class dual_level:
    """A context in which tensors can carry tangents: one level of forward mode.

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
    return _levels[-1]  # type: ignore[no-any-return]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Make a dual tensor: one that carries a tangent.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autograd.forward_ad.dual_level():
    ...     torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1)) * 3
    tensor([3.], tangent=tensor([3.]))
    """
    dual = _level()
    if tensor.dtype.category < 2:
        raise TensorValueError(
            f"Expected primal to be floating point or complex, but got: {tensor.dtype}"
        )
    if tensor.shape != tangent.shape:
        raise TensorError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the given "
            f"forward gradient is of size {list(tangent.shape)}."
        )
    if tensor.dtype is not tangent.dtype:
        raise TensorError(
            f"Expected tangent to have the dtype of the primal: {tangent.dtype} and {tensor.dtype}"
        )
    return wrap(DualTracer(dual, tensor.lift(), tangent.lift()))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None if the tensor has none.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.autograd.forward_ad.unpack_dual(torch.ones(1)).tangent is None
    True
    """
    value = tensor.value
    if _levels and type(value) is DualTracer and value.interpreter is _levels[-1]:
        tangent = value.tangent
        if is_plain(tangent, np.ndarray) and not tangent.flags.writeable:
            tangent = tangent.copy()
        return UnpackedDualTensor(lower(value.value), lower(tangent))
    if type(value) is DualTracer and value.interpreter.closed:  # the level has ended
        return UnpackedDualTensor(lower(value.value), None)
    return UnpackedDualTensor(tensor, None)
