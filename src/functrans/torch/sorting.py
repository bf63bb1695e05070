"""Sorting and searching: orders, quantiles, distinct entries, indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.torch.errors import TensorError
from functrans.torch.reducing import along, results
from functrans.torch.registry import export
from functrans.torch.tensor import Tensor, cast, check_dim, lower, make, named, wrap

_np: Any = np  # typed Any: its annotations do not allow tracers


@export()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort a tensor along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    axis = check_dim(dim, input.value.ndim)
    if not input.value.ndim:
        return make(np.int64(0))
    keys = input.detach().lift()
    if not descending:
        return wrap(np.argsort(keys, axis=axis, stable=True))
    # Sort the flipped entries, so that equal ones keep their order.
    backward = np.argsort(np.flip(keys, axis), axis=axis, stable=True)
    return wrap(np.flip(keys.shape[axis] - 1 - backward, axis))


@export()
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The sorted entries along a dimension, and their indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.sort(torch.tensor([2.0, 1.0])).indices
    tensor([1, 0])
    """
    places = argsort(input, dim, descending)
    values = named(along(input, dim, places), "SortBackward0", input)
    return results("sort", {"values": values, "indices": places})


@export()
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) entries along a dimension, and their indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.topk(torch.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    axis = check_dim(dim, input.value.ndim)
    if input.value.ndim and k > input.value.shape[axis]:
        raise TensorError("selected index k out of range")
    places = argsort(input, dim, descending=largest).narrow(axis, 0, k)
    values = named(along(input, dim, places), "TopkBackward0", input)
    return results("topk", {"values": values, "indices": places})


@export()
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest entry along a dimension, and its index.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.kthvalue(torch.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    axis = check_dim(dim, input.value.ndim)
    places = argsort(input, dim).narrow(axis, k - 1, 1)
    return _one("kthvalue", input, axis, places, keepdim)


def _one(kind: str, input: Tensor, axis: int, places: Tensor, keepdim: bool) -> Any:
    values = along(input, axis, places)
    if not keepdim:
        values, places = values.squeeze(axis), places.squeeze(axis)
    named(values, f"{kind.capitalize()}Backward0", input)
    return results(kind, {"values": values, "indices": places})


@export()
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median; if there are two middle entries, the lower one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.median(torch.tensor([3.0, 1.0, 2.0]))
    tensor(2.)
    """
    if dim is None:
        flat = input.reshape(-1)
        middle = flat.kthvalue((flat.numel() + 1) // 2, 0).values
        return named(middle, "MedianBackward0", input)
    axis = check_dim(dim, input.value.ndim)
    places = argsort(input, dim).narrow(axis, (input.value.shape[axis] - 1) // 2, 1)
    return _one("median", input, axis, places, keepdim)


@export()
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Quantiles along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.quantile(torch.tensor([1.0, 2.0]), 0.5)
    tensor(1.5000)
    """
    level = q.detach().value if isinstance(q, Tensor) else q
    axis = None if dim is None else check_dim(dim, input.value.ndim)
    out = _np.quantile(input.lift(), level, axis=axis, keepdims=keepdim, method=interpolation)
    return named(cast(lower(out), input.value.dtype), "SqueezeBackward4")


@export()
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero entries, as rows, or as one tensor for each dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nonzero(torch.tensor([0, 5, 0, 7])).T
    tensor([[1, 3]])
    """
    places = np.nonzero(np.atleast_1d(concrete(input.detach().value)))
    if as_tuple:
        return tuple(map(make, places))
    if not input.value.ndim:
        return make(np.zeros((len(places[0]), 0), np.int64))
    return make(np.stack(places, axis=1))


@export()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct entries in ascending order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.unique(torch.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    found = _np.unique(
        concrete(input.detach().value),
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=dim,
    )
    return tuple(map(make, found)) if isinstance(found, tuple) else make(found)


@export()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of each integer.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    given = None if weights is None else weights.detach().value
    return make(np.bincount(input.value, given, minlength))


@export(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, right: bool = False, side: str | None = None
) -> Tensor:
    """The indices at which to insert values into a sorted sequence to keep it sorted.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.searchsorted(torch.tensor([1.0, 3.0]), torch.tensor([2.0]))
    tensor([1])
    """
    values = input.detach().value if isinstance(input, Tensor) else input
    chosen = side or ("right" if right else "left")
    return make(_np.searchsorted(sorted_sequence.detach().value, values, chosen))
