"""In-place operations: they write to the memory of a tensor, and give it a new record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.torch import (
    changes,
    diagonals,
    indexing,
    pointwise,
    reducing,
    selecting,
    shaping,
    views,
)
from functrans.torch.errors import TensorError
from functrans.torch.registry import FUNCTIONS, export
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, cast, make, named


def write_result(self: Tensor, result: Tensor) -> Tensor:
    """Write a result into the memory of a tensor that its computation started from."""
    if result.value.shape != self.value.shape:
        shape, wide = list(self.value.shape), list(result.value.shape)
        raise TensorError(f"output with shape {shape} doesn't match the broadcast shape {wide}")
    if result.dtype is not self.dtype:
        if result.dtype.category > self.dtype.category:
            raise TensorError(
                f"result type {result.dtype.legacy} can't be cast to the desired output type "
                f"{self.dtype.legacy}"
            )
        result = cast(result, self.value.dtype)
    if isinstance(result.value, Tracer) or isinstance(self.value, Tracer):
        views.assign_tensor(self, result.lift())
        return self
    if is_plain(self.value, np.generic):
        changes.note_replaced(self)
    array = views.memory(self)
    if not array.flags.writeable:
        raise TensorError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )
    array[...] = result.value
    return views.written(self, result.record if MODE.enabled else None)  # type: ignore[no-any-return]


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method that writes function(self, ...) into self."""

    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        views.check_in_place(self)
        source = self
        if self.record is not None and MODE.enabled and not isinstance(self.value, Tracer):
            # Records save the operand, which is about to change.
            source = make(np.array(self.value)[()], self.record)
        return write_result(self, function(source, *args, **options))

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


_NAMES = """
add sub subtract mul multiply div divide true_divide pow square abs neg negative exp exp2 expm1 log log2
log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh sigmoid relu floor ceil round
trunc frac sign clamp clip clamp_min clamp_max lerp addcmul addcdiv masked_fill masked_scatter remainder
fmod floor_divide scatter scatter_add index_add index_copy index_fill tril triu erf erfc erfinv logit
nan_to_num cumsum cumprod logical_not logical_and logical_or logical_xor eq ne lt le gt ge
bitwise_and bitwise_or bitwise_xor bitwise_not float_power digamma lgamma
"""
_HOME = (
    diagonals,
    indexing,
    pointwise,
    reducing,
    selecting,
    shaping,
)  # imported before their functions are looked up
for _name in _NAMES.split():
    export(f"{_name}_", function=False)(in_place(FUNCTIONS[_name]))
for _name in ("relu", "exp", "sigmoid", "tanh", "sqrt", "clamp", "abs", "neg", "log", "sin", "cos"):
    FUNCTIONS[f"{_name}_"] = getattr(Tensor, f"{_name}_")
for _operator, _name in {
    "iadd": "add",
    "isub": "sub",
    "imul": "mul",
    "itruediv": "div",
    "ifloordiv": "floor_divide",
    "imod": "remainder",
    "ipow": "pow",
    "iand": "bitwise_and",
    "ior": "bitwise_or",
    "ixor": "bitwise_xor",
}.items():
    setattr(Tensor, f"__{_operator}__", getattr(Tensor, f"{_name}_"))


def _filled(self: Tensor, value: Any) -> Tensor:
    """A tensor filled with one number; the gradient of the old entries is zero."""
    if isinstance(value, Tensor):
        if value.value.ndim:
            raise TensorError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.value.ndim} dimensions."
            )
        filled = value.expand(*self.shape)
    else:
        filled = make(np.full(self.value.shape, value, self.value.dtype)[()])
    return named(_in_its_place(self, filled), "FillBackward2", self)


def _in_its_place(self: Tensor, new: Tensor) -> Tensor:
    if self.record is None or isinstance(self.value, Tracer):
        return new if new.record is None else new.clone()
    result = self * 0 + new
    result.value = new.value
    return result


@export(function=False)
def fill_(self: Tensor, value: Any) -> Tensor:
    """Fill the tensor with one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(2).fill_(3.0)
    tensor([3., 3.])
    """
    return in_place(_filled)(self, value)  # type: ignore[no-any-return]


@export(function=False)
def zero_(self: Tensor) -> Tensor:
    """Fill the tensor with zeros.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    return in_place(_zeroed)(self)  # type: ignore[no-any-return]


def _zeroed(self: Tensor) -> Tensor:
    return named(_filled(self, 0), "ZeroBackward0", self)


def _copied(self: Tensor, src: Tensor) -> Tensor:
    copied = _in_its_place(self, cast(src, self.value.dtype).expand(*self.shape))
    return named(copied, "CopyBackwards", self, src)


@export(function=False)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy the entries of another tensor into this one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(2).copy_(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return in_place(_copied)(self, src)  # type: ignore[no-any-return]


@export(function=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the diagonal with one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(2, 2).fill_diagonal_(1.0).trace()
    tensor(2.)
    """
    marked = np.zeros(self.value.shape, bool)
    np.fill_diagonal(marked, True, wrap=wrap)
    return self.masked_fill_(make(marked), fill_value)  # type: ignore[no-any-return]


def _reshaping(name: str, function: Callable[..., Tensor]) -> None:
    def method(self: Tensor, *args: Any) -> Tensor:
        views.check_in_place(self)
        changed = function(self, *args)
        self.value, self.record, self.origin = changed.value, changed.record, changed.origin
        return self

    export(name, function=False)(method)


_reshaping("squeeze_", shaping.squeeze)
_reshaping("unsqueeze_", shaping.unsqueeze)
_reshaping("transpose_", shaping.transpose)
_reshaping("t_", shaping.t)


@export(function=False)
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Make this tensor use the memory of another.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(2).set_(torch.ones(3))
    tensor([1., 1., 1.])
    """
    self.value = source.value
    return self
