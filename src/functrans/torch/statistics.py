"""Statistics and sets: running extremes, modes, histograms, covariances, membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.ops import access, indexing
from functrans.torch import dtypes
from functrans.torch.indexing import numpy_key
from functrans.torch.reducing import along, results
from functrans.torch.registry import composed, export
from functrans.torch.sorting import searchsorted
from functrans.torch.tensor import Tensor, check_dim, make, named, wrap


def _running_extreme(name: str, accumulate: Any) -> None:
    def function(input: Tensor, dim: int) -> Any:
        """The cumulative extreme along a dimension, and its index; the last one for ties."""
        axis = check_dim(dim, input.value.ndim)
        values = np.atleast_1d(concrete(input.detach().value))
        at_record = values == accumulate(values, axis=axis)
        numbers = np.arange(values.shape[axis]).reshape((-1, *(1,) * (values.ndim - 1 - axis)))
        places = np.maximum.accumulate(np.where(at_record, numbers, 0), axis=axis)
        indices = make(places.reshape(input.value.shape))
        found = named(along(input, dim, indices), f"{name.capitalize()}Backward0")
        return results(name, {"values": found, "indices": indices})

    export(name)(function)


_running_extreme("cummax", np.maximum.accumulate)
_running_extreme("cummin", np.minimum.accumulate)


@export()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent entry along a dimension, the smallest for ties, and the index of its last occurrence.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.mode(torch.tensor([1, 2, 2])).values
    tensor(2)
    """
    axis = check_dim(dim, input.value.ndim)
    rows = np.moveaxis(np.atleast_1d(concrete(input.detach().value)), axis, -1)
    places = np.empty(rows.shape[:-1], np.int64)
    for index in np.ndindex(places.shape):
        kinds, counts = np.unique(rows[index], return_counts=True)
        places[index] = np.flatnonzero(rows[index] == kinds[counts.argmax()])[-1]
    indices = make(np.expand_dims(places, axis))
    values = along(input, dim, indices)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return results("mode", {"values": named(values, "ModeBackward0"), "indices": indices})


@export()
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The number of entries in each of several equal bins between min and max.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.histc(torch.tensor([0.0, 1.0, 1.0]), 2)
    tensor([1., 2.])
    """
    values = np.asarray(concrete(input.detach().value)).reshape(-1)
    low, high = (values.min(), values.max()) if min == max == 0 else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = np.histogram(values, bins, (low, high))
    return make(counts.astype(values.dtype))


@export()
def isin(elements: Any, test_elements: Any, *, invert: bool = False) -> Tensor:
    """Whether each entry is in a set of values.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    x, y = (
        concrete(each.detach().value) if isinstance(each, Tensor) else each
        for each in (elements, test_elements)
    )
    return make(np.isin(x, y, invert=invert))


@export("bucketize", method=False)
def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """The index of the interval between boundaries that contains each entry.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.bucketize(torch.tensor([0.5, 2.5]), torch.tensor([1.0, 2.0]))
    tensor([0, 2])
    """
    return searchsorted(boundaries, input, right=right)


@export()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.dist(torch.zeros(2), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return named((input - other).norm(p), "DistBackward0", input, other)


@export("cov")
@composed("SqueezeBackward0")
def cov(x: Any, *, correction: int = 1) -> Any:
    """The covariance matrix of variables in rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cov(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    return np.cov(x, ddof=correction).astype(np.result_type(x.dtype, np.float32))


@export("corrcoef")
@composed("DivBackward0")
def corrcoef(x: Any) -> Any:
    """The correlation matrix of variables in rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.corrcoef(torch.tensor([[1.0, 2.0], [2.0, 4.0]])).shape
    torch.Size([2, 2])
    """
    return np.corrcoef(x).astype(np.result_type(x.dtype, np.float32))


@export("trapezoid", "trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along a dimension, computed with the trapezoidal rule.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    places = None if x is None else x.lift()
    return named(wrap(np.trapezoid(y.lift(), places, dx, dim)), "MulBackward1")


@export("cartesian_prod", method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of entries, one per row.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3])).shape
    torch.Size([2, 2])
    """
    if len(tensors) == 1:
        return tensors[0]
    grids = np.meshgrid(*[each.lift() for each in tensors], indexing="ij")
    columns = np.stack([np.reshape(grid, (-1,)) for grid in grids], axis=1)
    return named(wrap(columns), "StackBackward0")


@export("result_type", method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of the result of an operation with two operands.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.result_type(torch.tensor([1]), 2.5)
    torch.float32
    """
    both = (tensor1, tensor2)
    arrays = [each.value for each in both if isinstance(each, Tensor)]
    numbers = [each for each in both if not isinstance(each, Tensor)]
    return dtypes.of_numpy(dtypes.joint_dtype(arrays, numbers))


@export(function=False)
def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Write values at the given indices in place, or add them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(3).index_put_((torch.tensor([1]),), torch.tensor(5.0))
    tensor([0., 5., 0.])
    """
    key = tuple(indices)
    if not accumulate:
        self[key] = values
        return self
    template, arrays = access.index_of(self.value, numpy_key(key))
    part = values.lift() if isinstance(values, Tensor) else self.value.dtype.type(values)
    spread = np.broadcast_to(part, self[key].shape)
    shape = tuple(self.value.shape)
    added = indexing.scatter(spread, *arrays, shape=shape, template=template)
    return named(self.add_(wrap(added)), "IndexPutBackward0")
