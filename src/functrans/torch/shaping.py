"""Shapes: views of tensors, and copies with entries in other places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.ops import structure
from functrans.torch import dtypes, views
from functrans.torch.errors import TensorError
from functrans.torch.registry import FUNCTIONS, attach, export
from functrans.torch.tape import MODE, lowered, record_call
from functrans.torch.tensor import Size, Tensor, check_dim, lower, make, named, wrap


def view_of(input: Tensor, primitive: Any, params: Any, back: Any, name: str) -> Tensor:
    """A view of a tensor, made by a primitive; `back` is the inverse on the NumPy face."""
    if isinstance(input.value, Tracer):
        result = lower(primitive(input.value, **params))
        return views.link_tensor(  # type: ignore[no-any-return]
            result, input, lambda face: primitive(face, **params), lambda base, view: back(view)
        )
    array = views.memory(input)
    out = primitive.impl(array, **params)
    record = None
    if input.record is not None and MODE.enabled:
        record = record_call(primitive, (array,), (input.record,), params, out)
        if record is not None:
            record.name = name
    result = make(out, record)
    if out.base is None and out.size:  # a copy, because the memory layout allows no view
        return result
    return views.link_tensor(  # type: ignore[no-any-return]
        result, input, lambda face: primitive(face, **params), lambda base, view: back(view)
    )


def linked_view(input: Tensor, memory: Any, read: Any, write: Any, name: str) -> Tensor:
    """A view of a tensor: `memory` makes it for an array; `read` and `write`, for the NumPy face."""
    if isinstance(input.value, Tracer):
        return views.link_tensor(lower(read(input.value)), input, read, write)  # type: ignore[no-any-return]
    array = views.memory(input)
    record = None
    if input.record is not None and MODE.enabled:
        _, record = lowered(read(input.lift()))
    shown = named(make(memory(array), record), name, input)
    return views.link_tensor(shown, input, read, write)  # type: ignore[no-any-return]


def _shape(input: Tensor, size: tuple[Any, ...]) -> tuple[int, ...]:
    """A new shape for the same entries, with -1 replaced by the inferred length."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    wanted = [int(length) for length in size]
    total = input.numel()
    known = math.prod(length for length in wanted if length != -1)
    bad = TensorError(f"shape '{wanted}' is invalid for input of size {total}")
    if wanted.count(-1) > 1:
        raise TensorError("only one dimension can be inferred")
    if -1 in wanted:
        if not known or total % known:
            raise bad
        wanted[wanted.index(-1)] = total // known
    elif known != total:
        raise bad
    return tuple(wanted)


def _reshaped(input: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    before = tuple(input.value.shape)
    return view_of(
        input,
        structure.reshape,
        {"shape": shape},
        lambda view: structure.reshape(view, shape=before),
        name,
    )


@export()
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same entries in another shape, as a view if possible.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.arange(4).reshape(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return _reshaped(input, _shape(input, shape), "ViewBackward0")


@export(function=False)
def view(self: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape, or as another dtype.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.arange(4).view(2, 2).shape
    torch.Size([2, 2])
    """
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return make(views.memory(self).view(shape[0].numpy))
    wanted = _shape(self, shape)
    result = _reshaped(self, wanted, "ViewBackward0")
    plain = is_plain(self.value, np.ndarray) and self.value.size
    if plain and not np.may_share_memory(result.value, self.value):
        raise TensorError(
            "view size is not compatible with input tensor's size and stride (at least one dimension "
            "spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return result


@export(function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.arange(4).view_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return view(self, *other.shape)


@export(function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same entries in the shape of another tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(4).reshape_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return reshape(self, *other.shape)


@export()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge a range of dimensions into one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.flatten(torch.ones(2, 3)).shape
    torch.Size([6])
    """
    shape = tuple(input.value.shape)
    start, end = check_dim(start_dim, len(shape)), check_dim(end_dim, len(shape))
    if start > end:
        raise TensorError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, 1)
    if start == end:
        return input
    return reshape(input, *shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])


@export()
def ravel(input: Tensor) -> Tensor:
    """The same entries as a vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ravel(torch.ones(2, 3)).shape
    torch.Size([6])
    """
    return reshape(input, -1)


@export()
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Split one dimension into several.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.unflatten(torch.ones(6), 0, (2, 3)).shape
    torch.Size([2, 3])
    """
    shape = tuple(input.value.shape)
    axis = check_dim(dim, len(shape))
    known = math.prod(length for length in sizes if length != -1)
    parts = [shape[axis] // known if length == -1 else length for length in sizes]
    return reshape(input, *shape[:axis], *parts, *shape[axis + 1 :])


@export()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Remove all dimensions of length 1, or some of them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.squeeze(torch.ones(1, 3, 1)).shape
    torch.Size([3])
    """
    shape = tuple(input.value.shape)
    if dim is None:
        chosen = set(range(len(shape)))
    else:
        dims = dim if isinstance(dim, (tuple, list)) else (dim,)
        chosen = {check_dim(each, len(shape)) for each in dims}
    kept = tuple(n for k, n in enumerate(shape) if n != 1 or k not in chosen)
    return _reshaped(input, kept, "SqueezeBackward0" if dim is None else "SqueezeBackward1")


@export()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of length 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.unsqueeze(torch.ones(3), 0).shape
    torch.Size([1, 3])
    """
    shape = list(input.value.shape)
    axis = check_dim(dim, len(shape) + 1)
    shape.insert(axis, 1)
    return _reshaped(input, tuple(shape), "UnsqueezeBackward0")


def _permuted(input: Tensor, axes: tuple[int, ...], name: str) -> Tensor:
    inverse = structure.inverse_permutation(axes)
    return view_of(
        input,
        structure.transpose,
        {"axes": axes},
        lambda view: structure.transpose(view, axes=inverse),
        name,
    )


@export()
def permute(input: Tensor, *dims: Any) -> Tensor:
    """Permute the dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    ndim = input.value.ndim
    if len(dims) != ndim:
        raise TensorError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
            f"of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        )
    axes = tuple(check_dim(dim, ndim) for dim in dims)
    if len(set(axes)) != ndim:
        raise TensorError("permute(): duplicate dims are not allowed.")
    return _permuted(input, axes, "PermuteBackward0")


@export("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.transpose(torch.ones(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    ndim = input.value.ndim
    a, b = check_dim(dim0, ndim), check_dim(dim1, ndim)
    if not ndim:
        return input
    axes = list(range(ndim))
    axes[a], axes[b] = b, a
    return _permuted(input, tuple(axes), "TransposeBackward0")


@export()
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])
    """
    if input.value.ndim > 2:
        raise TensorError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.value.ndim}D"
        )
    return named(transpose(input, 0, 1), "TBackward0") if input.value.ndim == 2 else input


def _T(self: Tensor) -> Tensor:
    """The tensor with its dimensions in reverse order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2, 3).T.shape
    torch.Size([3, 2])
    """
    return _permuted(self, tuple(reversed(range(self.value.ndim))), "PermuteBackward0")


def _mT(self: Tensor) -> Tensor:
    """The transposes of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(4, 2, 3).mT.shape
    torch.Size([4, 3, 2])
    """
    if self.value.ndim < 2:
        raise TensorError(
            "tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{self.value.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


def _H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([[1j, 2j]]).H.shape
    torch.Size([2, 1])
    """
    if self.value.ndim not in (0, 2):
        raise TensorError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.value.ndim}-D tensor."
        )
    return transpose(self, 0, 1).conj() if self.is_complex() else transpose(self, 0, 1)


def _mH(self: Tensor) -> Tensor:
    """The conjugate transposes of matrices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([[1j, 2j]]).mH.shape
    torch.Size([2, 1])
    """
    return _mT(self).conj()  # type: ignore[no-any-return]


attach(T=property(_T), mT=property(_mT), H=property(_H), mH=property(_mH))


@export("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move some dimensions to other positions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.movedim(torch.ones(2, 3, 4), 0, 2).shape
    torch.Size([3, 4, 2])
    """
    ndim = input.value.ndim
    sources = [check_dim(s, ndim) for s in ([source] if isinstance(source, int) else source)]
    targets = [
        check_dim(d, ndim) for d in ([destination] if isinstance(destination, int) else destination)
    ]
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permuted(input, tuple(order), "PermuteBackward0")


@export(function=False)
def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Repeat dimensions of length 1 without copying; -1 keeps the length of a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([[1.0], [2.0]]).expand(2, 3).shape
    torch.Size([2, 3])
    """
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    shape = tuple(self.value.shape)
    extra = len(sizes) - len(shape)
    if extra < 0:
        raise TensorError(
            f"expand(torch.{self.dtype.legacy}Tensor{{{list(shape)}}}, size={list(sizes)}): the number "
            f"of sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(shape)})"
        )
    wanted = [int(n) if n != -1 else shape[k - extra] for k, n in enumerate(sizes)]
    for k, n in enumerate(shape):
        if n != 1 and wanted[k + extra] != n:
            raise TensorError(
                f"The expanded size of the tensor ({wanted[k + extra]}) must match the existing size "
                f"({n}) at non-singleton dimension {k + extra}.  Target sizes: {list(sizes)}.  Tensor "
                f"sizes: {list(shape)}"
            )
    return view_of(
        self, structure.broadcast_to, {"shape": tuple(wanted)}, refuse_overlap, "ExpandBackward0"
    )


def refuse_overlap(view: Any) -> Any:
    raise TensorError(
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation."
    )


@export(function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).expand_as(torch.zeros(3))
    tensor([1., 1., 1.])
    """
    return expand(self, *other.shape)


@export()
def broadcast_to(input: Tensor, *size: Any) -> Tensor:
    """`expand` to a shape.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.broadcast_to(torch.tensor([1.0]), (3,))
    tensor([1., 1., 1.])
    """
    return expand(input, *size)


@export(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast tensors to a common shape.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))[0].shape
    torch.Size([2, 3])
    """
    shape = np.broadcast_shapes(*(each.value.shape for each in tensors))
    return tuple(expand(each, *shape) for each in tensors)


@export(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that these shapes broadcast to.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    return Size(np.broadcast_shapes(*shapes))


@export(function=False)
def repeat(self: Tensor, *sizes: Any) -> Tensor:
    """Repeat the tensor along each dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([1, 2]).repeat(2)
    tensor([1, 2, 1, 2])
    """
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    if len(sizes) < self.value.ndim:
        raise TensorError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    return named(lower(np.tile(_with_axes(self), sizes)), "RepeatBackward0", self)


def _with_axes(tensor: Tensor) -> Any:
    face = tensor.lift()
    return face if tensor.value.ndim else np.reshape(face, (1,))


@export()
def tile(input: Tensor, *dims: Any) -> Tensor:
    """Repeat the tensor; missing dimensions count as 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    dims = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return named(lower(np.tile(_with_axes(input), dims)), "RepeatBackward0", input)


@export()
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Repeat each entry.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    count = repeats.value if isinstance(repeats, Tensor) else repeats
    name = "IndexSelectBackward0" if isinstance(repeats, Tensor) else "ViewBackward0"
    return named(wrap(np.repeat(input.lift(), count, axis=dim)), name)


FUNCTIONS["numel"] = Tensor.numel
FUNCTIONS["is_floating_point"] = Tensor.is_floating_point
FUNCTIONS["is_complex"] = Tensor.is_complex
