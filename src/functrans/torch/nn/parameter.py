"""Parameter: a tensor that belongs to a module and is trained by an optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import tree
from functrans.torch import dtypes
from functrans.torch.errors import TensorError
from functrans.torch.tensor import Tensor, check_device, leaf_record, lower


class Parameter(Tensor):
    """A tensor that a module registers when it is assigned as an attribute.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            self.value = np.empty(0, dtypes.default.numpy)
        else:
            self.value = data.detach().value
        self.record = None
        if requires_grad:
            if self.dtype.category < 2:
                raise TensorError(
                    "Only Tensors of floating point and complex dtype can require gradients"
                )
            self.record = leaf_record(self)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        found: Any = super().__deepcopy__(memo)
        return found  # type: ignore[no-any-return]


tree.register_box(Parameter, Tensor.lift, lower)


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter of zeros, for a module to initialize."""
    from functrans.torch.creation import zeros

    check_device(device)
    return Parameter(zeros(*shape, dtype=dtype))
