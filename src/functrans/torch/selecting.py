"""Selecting and clamping entries, and comparisons with a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.ops import structure
from functrans.torch import arithmetic, dtypes
from functrans.torch.errors import TensorError
from functrans.torch.pointwise import clamped
from functrans.torch.registry import FUNCTIONS, attach, composed, export
from functrans.torch.tensor import Tensor, cast, lower, make, named


@export("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Clamp the entries to the range from min to max.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise TensorError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    arrays = [input.value, *(b.value for b in bounds if isinstance(b, Tensor))]
    wanted = dtypes.joint_dtype(arrays, [b for b in bounds if not isinstance(b, Tensor)])
    return _clamp(cast(input, wanted), min, max)  # type: ignore[no-any-return]


@composed("ClampBackward1")
def _clamp(x: Any, low: Any, high: Any) -> Any:
    return clamped(x, low, high)


@export("clamp_min", "clip_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Clamp the entries from below.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.clamp_min(torch.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    return clamp(input, min)


@export("clamp_max", "clip_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Clamp the entries from above.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.clamp_max(torch.tensor([-1.0, 2.0]), 0.0)
    tensor([-1.,  0.])
    """
    return clamp(input, None, max)


@export("where", method=False)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """The entries of `input` where the condition holds, and those of `other` elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    if condition.dtype is not dtypes.bool_:
        raise TensorError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.legacy}"
        )
    arrays = [each.value for each in (input, other) if isinstance(each, Tensor)]
    numbers = [each for each in (input, other) if not isinstance(each, Tensor)]
    wanted = dtypes.joint_dtype(arrays, numbers)
    x, y = (
        cast(each, wanted).lift() if isinstance(each, Tensor) else wanted.type(each)
        for each in (input, other)
    )
    try:
        out = lower(structure.where(condition.lift(), x, y))
        return named(out, "WhereBackward0", *((input, other) if len(arrays) == 2 else ()))
    except ValueError:
        raise arithmetic.shape_error(x, y) from None


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """The entries of this tensor where the condition holds, and those of another elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1.0, 2.0]).where(torch.tensor([True, False]), 0.0)
    tensor([1., 0.])
    """
    return where(condition, self, other)


attach(where=_where_method)


@export()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of the tensor, filled with one number where the mask is True.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.masked_fill(torch.tensor([1.0, 2.0]), torch.tensor([True, False]), 0.0)
    tensor([0., 2.])
    """
    if mask.dtype is not dtypes.bool_:
        raise TensorError(
            "masked_fill only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.legacy.lower()}"
        )
    filled = value.to(input.dtype) if isinstance(value, Tensor) else value
    return named(where(mask, filled, input).to(input.dtype), "MaskedFillBackward0", input)


@export()
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether entries are equal to within atol + rtol * |other|.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return make(np.isclose(input.detach().value, other.detach().value, rtol, atol, equal_nan))


@export()
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all entries are equal to within atol + rtol * |other|.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-9)
    True
    """
    return bool(np.all(isclose(input, other, rtol, atol, equal_nan).value))


@export()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and entries.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.equal(torch.ones(2), torch.ones(2))
    True
    """
    return input.shape == other.shape and bool(np.all(input.detach().value == other.detach().value))


@export("nan_to_num")
@composed("NanToNumBackward0")
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace nan and infinities with finite numbers.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nan_to_num(torch.tensor([1.0, torch.nan]))
    tensor([1., 0.])
    """
    info = np.finfo(dtype_of(x))
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    kind = dtype_of(x).type
    x = np.where(np.isnan(x), kind(nan), x)
    x = np.where(x == np.inf, kind(high), x)
    return np.where(x == -np.inf, kind(low), x)
