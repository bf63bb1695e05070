"""Reductions and cumulative sums."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.core.shapes import dtype_of
from functrans.ops import reduction, structure
from functrans.torch import dtypes
from functrans.torch.errors import TensorError
from functrans.torch.registry import composed, export
from functrans.torch.tensor import Tensor, apply, cast, check_dim, make, named, wrap

_NONE = object()
_np: Any = np  # typed Any: its annotations do not allow tracers


class _Pair(tuple[Any, ...]):
    """Several named results, as PyTorch returns and prints them."""

    kind: str
    fields: tuple[str, ...]

    def __repr__(self) -> str:
        parts = ",\n".join(f"{f}={v!r}" for f, v in zip(self.fields, self, strict=True))
        return f"torch.return_types.{self.kind}(\n{parts})"

    def __reduce__(self) -> Any:
        return results, (self.kind, dict(zip(self.fields, self, strict=True)))


def results(kind: str, fields: dict[str, Any]) -> Any:
    """The results of a function, accessible by position and by name."""
    names: dict[str, Any] = {n: property(itemgetter(k)) for k, n in enumerate(fields)}
    cls = type(kind, (_Pair,), {"kind": kind, "fields": tuple(fields), **names})
    return cls(fields.values())


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as a tuple of nonnegative numbers; None and () mean all of them."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(ndim))
        found = tuple(check_dim(each, ndim) for each in dim)
        if len(set(found)) != len(found):
            raise TensorError(f"dim {found[0]} appears multiple times in the list of dims")
        return found if ndim else ()
    found = (check_dim(dim, ndim),)
    return found if ndim else ()


def _array(input: Tensor) -> Tensor:
    """The tensor with an array as its value: the primitives for reductions do not accept scalars."""
    if is_plain(input.value, np.generic):
        return make(np.asarray(input.value), input.record)
    return input


@export()
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum along some dimensions, or of all entries.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    given = input
    if dtype is not None:
        input = input.to(dtype)
    elif input.dtype.category < 2:
        input = cast(input, np.dtype(np.int64))
    ndim = input.value.ndim
    out = apply(reduction.sum, _array(input), axis=axes(dim, ndim), keepdims=keepdim)
    return out if dim is None or given.record is None else named(out, "SumBackward1")


@export()
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean along some dimensions, or of all entries.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.mean(torch.tensor([1.0, 2.0]))
    tensor(1.5000)
    """
    if dtype is not None:
        input = input.to(dtype)
    if input.dtype.category < 2:
        raise TensorError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {input.dtype.legacy}"
        )
    chosen = axes(dim, input.value.ndim)
    out = apply(reduction.mean, _array(input), axis=chosen, keepdims=keepdim)
    return out if dim is None or out.record is None else named(out, "MeanBackward1")


@export()
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of all entries, or along one dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.prod(torch.tensor([2.0, 3.0]))
    tensor(6.)
    """
    if dtype is not None:
        input = input.to(dtype)
    elif input.dtype.category < 2:
        input = cast(input, np.dtype(np.int64))
    chosen = axes(dim, input.value.ndim)
    out = apply(reduction.prod, _array(input), axis=chosen, keepdims=keepdim)
    return out if dim is None else named(out, "ProdBackward1")


def _truth(name: str, primitive: Any) -> None:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        chosen = axes(dim, input.value.ndim)
        return apply(primitive, _array(input), axis=chosen, keepdims=keepdim)

    export(name)(function)


_truth("any", reduction.any)
_truth("all", reduction.all)


def _positions(name: str, function: Any) -> Any:
    def search(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        x = input.detach().lift()
        ndim = input.value.ndim
        if dim is None:
            out = function(np.reshape(x, (-1,)), axis=0)
            return wrap(np.reshape(out, (1,) * ndim) if keepdim else out)
        axis = check_dim(dim, ndim)
        if not ndim:
            return make(np.int64(0))
        return wrap(function(x, axis=axis, keepdims=keepdim))

    export(name)(search)
    return search


argmax = _positions("argmax", np.argmax)
argmin = _positions("argmin", np.argmin)


def _extreme(name: str, primitive: Any, search: Any, pairwise: str) -> Any:
    def function(input: Tensor, *args: Any, **options: Any) -> Any:
        other = options.pop("other", args[0] if args and isinstance(args[0], Tensor) else None)
        if other is not None:
            return getattr(input, pairwise)(other)
        dim = options.pop("dim", options.pop("axis", _NONE))
        keepdim = options.pop("keepdim", options.pop("keepdims", False))
        if args:
            dim, keepdim = args[0], (args[1] if len(args) > 1 else keepdim)
        if dim is _NONE:
            if not input.numel():
                raise TensorError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            every = tuple(range(input.value.ndim))
            out = apply(primitive, _array(input), axis=every, keepdims=False)
            return named(out, f"{name.capitalize()}Backward1")
        places = search(input, dim, keepdim=True)
        values = along(input, dim, places)
        if not keepdim:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return results(
            name,
            {"values": named(values, f"{name.capitalize()}Backward0", input), "indices": places},
        )

    function.__name__ = name
    return export(name)(function)


def along(input: Tensor, dim: int, places: Tensor) -> Tensor:
    """The entries at the given indices along a dimension."""
    if not input.value.ndim:
        return input.clone()  # type: ignore[no-any-return]
    axis = check_dim(dim, input.value.ndim)
    return wrap(np.take_along_axis(input.lift(), places.lift(), axis))


max = _extreme("max", reduction.max, argmax, "maximum")
min = _extreme("min", reduction.min, argmin, "minimum")


def _amount(name: str, primitive: Any) -> None:
    def function(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        chosen = axes(dim, input.value.ndim)
        return apply(primitive, _array(input), axis=chosen, keepdims=keepdim)

    export(name)(function)


_amount("amax", reduction.max)
_amount("amin", reduction.min)


@export("aminmax")
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The minimum and the maximum.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.aminmax(torch.tensor([1.0, 3.0])).max
    tensor(3.)
    """
    ends = {"min": input.amin(dim, keepdim), "max": input.amax(dim, keepdim)}
    return results("aminmax", {k: named(v, "AminmaxBackward0", input) for k, v in ends.items()})


def _spread(name: str, root: bool) -> Any:
    def function(
        input: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Tensor:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        if input.dtype.category < 2:
            raise TensorError(f"{name} only support floating point and complex dtypes")
        return _deviation(input, axes(dim, input.value.ndim), correction, keepdim, root)  # type: ignore[no-any-return]

    name_of_record = "StdBackward0" if root else "VarBackward0"

    @composed(name_of_record)
    def _deviation(x: Any, axis: Any, correction: Any, keepdim: bool, root: bool) -> Any:
        count = math.prod(x.shape[a] for a in axis)
        from_mean = x - np.mean(x, axis=axis, keepdims=True)
        left = count - correction
        total = np.sum(np.abs(from_mean) ** 2, axis=axis, keepdims=keepdim)
        variance = total / (left if left > 0 else 0.0)
        return np.sqrt(variance) if root else variance

    function.__name__ = name
    return export(name)(function)


var = _spread("var", False)
std = _spread("std", True)


@export("var_mean", method=False)
def var_mean(input: Tensor, dim: Any = None, **options: Any) -> tuple[Tensor, Tensor]:
    """The variance and the mean.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.var_mean(torch.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    return _and_mean("VarMeanBackward0", var, input, dim, options)


@export("std_mean", method=False)
def std_mean(input: Tensor, dim: Any = None, **options: Any) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.std_mean(torch.tensor([1.0, 3.0]))
    (tensor(1.4142), tensor(2.))
    """
    return _and_mean("StdMeanBackward0", std, input, dim, options)


def _and_mean(
    name: str, spread: Any, input: Tensor, dim: Any, options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    middle = mean(input, dim, options.get("keepdim", False))
    return named(spread(input, dim, **options), name, input), named(middle, name, input)


def highest(x: Any, axis: Any) -> Any:
    """The largest entries, to subtract before exp: constants, and 0 where they are infinite."""
    peak = np.max(structure.stop_gradient(x), axis=axis, keepdims=True)
    return np.where(np.isfinite(peak), peak, dtype_of(peak).type(0))


@export()
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exp(x), computed without overflow.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.logsumexp(torch.tensor([1000.0, -1000.0]), dim=0)
    tensor(1000.)
    """
    return _logsumexp(_float(input), axes(dim, input.value.ndim), keepdim)  # type: ignore[no-any-return]


def _float(input: Tensor) -> Tensor:
    return input if input.dtype.category > 1 else cast(input, dtypes.default.numpy)


@composed("LogsumexpBackward0")
def _logsumexp(x: Any, axis: Any, keepdim: bool) -> Any:
    peak = highest(x, axis)
    total = np.log(np.sum(np.exp(x - peak), axis=axis, keepdims=True)) + peak
    return total if keepdim else np.squeeze(total, axis)


@export("softmax")
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The softmax along a dimension: exp(x) / sum exp(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input if dtype is None else input.to(dtype), axes(dim, input.value.ndim))  # type: ignore[no-any-return]


@composed("SoftmaxBackward0")
def _softmax(x: Any, axis: Any) -> Any:
    weights = np.exp(x - highest(x, axis))
    return weights / np.sum(weights, axis=axis, keepdims=True)


@export("log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    return _log_softmax(input if dtype is None else input.to(dtype), axes(dim, input.value.ndim))  # type: ignore[no-any-return]


@composed("LogSoftmaxBackward0")
def _log_softmax(x: Any, axis: Any) -> Any:
    moved = x - highest(x, axis)
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))


@export()
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of vectors along some dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    if dtype is not None:
        input = input.to(dtype)
    if input.dtype.category < 2:
        raise TensorError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.legacy}"
        )
    if p == "nuc":
        return wrap(_np.linalg.norm(input.lift(), "nuc", keepdims=keepdim))
    order = 2 if p == "fro" or p is None else p
    return vector_norm(input, order, axes(dim, input.value.ndim), keepdim)  # type: ignore[no-any-return]


@composed("LinalgVectorNormBackward0")
def vector_norm(x: Any, order: Any, axis: Any, keepdim: bool) -> Any:
    """The norm along some axes, computed on the NumPy face of a tensor."""
    if not len(axis):
        return np.abs(x)
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdim, ord=order)


# Cumulative reductions.


@export()
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The cumulative sum.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    return _running(reduction.cumsum, input, dim, dtype)


@export()
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The cumulative product.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cumprod(torch.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    return _running(reduction.cumprod, input, dim, dtype)


def _running(primitive: Any, input: Tensor, dim: int, dtype: Any) -> Tensor:
    if dtype is not None:
        input = input.to(dtype)
    elif input.dtype.category < 2:
        input = cast(input, np.dtype(np.int64))
    axis = check_dim(dim, input.value.ndim)
    return apply(primitive, input, axis=axis) if input.value.ndim else input.clone()


@export()
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the cumulative sum of exp(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.logcumsumexp(torch.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    return _log_cumulative(input, check_dim(dim, input.value.ndim))  # type: ignore[no-any-return]


@composed("LogcumsumexpBackward0")
def _log_cumulative(x: Any, axis: int) -> Any:
    return np.logaddexp.accumulate(x, axis=axis)


@export()
def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """Differences between neighbors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.diff(torch.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    axis = check_dim(dim, input.value.ndim)
    if input.value.ndim and n > input.value.shape[axis]:
        n = input.value.shape[axis]  # the maximum number of times
    return wrap(np.diff(input.lift(), n, axis))


# Sorting and searching.


@export()
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """The number of nonzero entries.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.count_nonzero(torch.tensor([0, 5, 0, 7]))
    tensor(2)
    """
    return sum(input != 0, dim)


@export("nansum")
@composed("NansumBackward0")
def nansum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the entries that are not nan.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nansum(torch.tensor([1.0, torch.nan]))
    tensor(1.)
    """
    return np.nansum(x, axis=None if dim is None else axes(dim, x.ndim), keepdims=keepdim)


@export("nanmean")
@composed("DivBackward0")
def nanmean(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The mean of the entries that are not nan.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nanmean(torch.tensor([1.0, torch.nan]))
    tensor(1.)
    """
    return np.nanmean(x, axis=None if dim is None else axes(dim, x.ndim), keepdims=keepdim)
