"""Reading and writing parts of tensors: indexing, gather, scatter and similar functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.shapes import shape_of
from functrans.ops import access, indexing
from functrans.torch import dtypes, views
from functrans.torch.errors import TensorError, TensorIndexError, TensorValueError
from functrans.torch.registry import attach, composed, export
from functrans.torch.tape import MODE, record_call
from functrans.torch.tensor import Tensor, cast, check_dim, lower, make, named, wrap


def _key(key: Any) -> Any:
    """An index as NumPy takes it: tensors become arrays."""
    if isinstance(key, Tensor):
        if isinstance(key.value, Tracer):
            return key.value
        if key.dtype.category > 1:
            raise TensorIndexError(
                "tensors used as indices must be long, int, byte or bool tensors, not "
                f"{key.dtype.legacy.lower()}"
            )
        return key.value
    if isinstance(key, slice):
        if key.step is not None and key.step <= 0:
            raise TensorValueError("step must be greater than zero")
        return slice(*(_bound(each) for each in (key.start, key.stop, key.step)))
    if isinstance(key, (list, range)):
        return np.asarray([_key(each) for each in key]) if len(key) else np.zeros(0, np.int64)
    return key


def _bound(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def numpy_key(key: Any) -> Any:
    """A key, or a tuple of them, as NumPy takes it."""
    return tuple(map(_key, key)) if isinstance(key, tuple) else _key(key)


def _is_basic(key: Any) -> bool:
    entries = key if isinstance(key, tuple) else (key,)
    return all(
        each is None or each is Ellipsis or isinstance(each, (slice, int, np.integer))
        for each in entries
    ) and not any(isinstance(each, (bool, np.bool_)) for each in entries)


def _name(key: Any) -> str:
    """PyTorch's name for the last step of a basic index."""
    for entry in reversed(key if isinstance(key, tuple) else (key,)):
        if entry is None:
            return "UnsqueezeBackward0"
        if isinstance(entry, slice):
            if entry != slice(None):
                return "SliceBackward0"
        elif entry is not Ellipsis:
            return "SelectBackward0"
    return "SliceBackward0" if key is not Ellipsis else "AliasBackward0"


def index_error(error: IndexError, ndim: int) -> IndexError:
    """NumPy's error about an index, in PyTorch's words."""
    text = str(error)
    if "too many indices" in text:
        return TensorIndexError(f"too many indices for tensor of dimension {ndim}")
    if "shape mismatch" in text:
        return TensorIndexError(text)
    return TensorIndexError(re.sub(r"\baxis\b", "dimension", text))


def _getitem(self: Tensor, key: Any) -> Tensor:
    key = numpy_key(key)
    try:
        if _is_basic(key):
            return _basic_view(self, key)
        if self.value.ndim == 0 and not isinstance(key, (bool, np.bool_, np.ndarray, tuple)):
            raise TensorIndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python")
        part, key = _without_basic(self, key)
        face = _face(part)
        template, arrays = access.index_of(face, key)
        return named(lower(indexing.index(face, *arrays, template=template)), "IndexBackward0")
    except IndexError as error:
        raise index_error(error, self.value.ndim) from None


def _without_basic(self: Tensor, key: Any) -> tuple[Tensor, Any]:
    """Split x[key] into a view of x, and a key of tensors and full slices for that view.

    PyTorch first takes the view given by numbers, slices, None and Ellipsis. So, unlike in NumPy, a number
    next to a tensor does not count as a tensor, and an Ellipsis that covers no dimension separates nothing.
    """
    if not isinstance(key, tuple) and not access.is_flag(key):
        return self, key
    entries = key if isinstance(key, tuple) else (key,)
    taken = sum(
        access.axes_taken(entry)
        for entry in entries
        if entry is not None and entry is not Ellipsis and not access.is_flag(entry)
    )
    basic: list[Any] = []
    rest: list[Any] = []
    for entry in entries:
        if access.is_flag(entry):  # one index into a dimension of length 1, or no index
            basic.append(None)
            rest.append(np.zeros(int(bool(entry)), np.intp))
        elif entry is None or isinstance(entry, slice):
            basic.append(entry)
            rest.append(slice(None))
        elif entry is Ellipsis:
            every = [slice(None)] * (self.value.ndim - taken)
            basic += every
            rest += every
        elif _is_number(entry):
            basic.append(int(entry))
        else:
            basic += [slice(None)] * access.axes_taken(entry)
            rest.append(entry)
    whole = all(isinstance(entry, slice) and entry == slice(None) for entry in basic)
    return (self if whole else _basic_view(self, tuple(basic))), tuple(rest)


def _is_number(entry: Any) -> bool:
    """Whether an entry is an integer, including a 0-d tensor of one."""
    if isinstance(entry, Tracer):
        return False
    return isinstance(entry, (int, np.integer)) or (
        is_plain(entry, np.ndarray) and not entry.shape and entry.dtype.kind in "iu"
    )


def _face(self: Tensor) -> Any:
    if is_plain(self.value, np.generic):
        views.memory(self)
    return self.lift()


def _basic_view(self: Tensor, key: Any) -> Tensor:
    entries = key if isinstance(key, tuple) else (key,)
    if self.value.ndim == 0 and any(isinstance(each, (int, np.integer)) for each in entries):
        raise TensorIndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
            "C++ to convert a 0-dim tensor to a number"
        )
    # An ellipsis at the end lets NumPy return a view where it would return a scalar.
    template = entries if Ellipsis in entries else (*entries, Ellipsis)

    def read(face: Any) -> Any:
        return indexing.index(face, template=template)

    def write(base: Any, view: Any) -> Any:
        return indexing.update(base, view, template=template)

    if isinstance(self.value, Tracer):
        return views.link_tensor(lower(read(self.value)), self, read, write)  # type: ignore[no-any-return]
    array = views.memory(self)
    out = array[template]
    record = None
    if self.record is not None and MODE.enabled:
        params = {"template": template}
        record = record_call(indexing.index, (array,), (self.record,), params, out)
        if record is not None:
            record.name = _name(key)
    return views.link_tensor(make(out, record), self, read, write)  # type: ignore[no-any-return]


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    if self.record is not None and len(self.record) == 1 and MODE.enabled:
        raise TensorError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )
    key = numpy_key(key)
    if not _is_basic(key):
        try:
            self, key = _without_basic(self, key)
        except IndexError as error:
            raise index_error(error, self.value.ndim) from None
    views.check_in_place(self)
    if not isinstance(value, Tensor):
        value = make(np.asarray(value, self.value.dtype)[()])
    value = cast(value, self.value.dtype)
    if isinstance(self.value, Tracer) or isinstance(value.value, Tracer):
        template, arrays = access.index_of(self.value, key)
        views.assign_tensor(
            self, indexing.update(_face(self), value.lift(), *arrays, template=template)
        )
        return
    array = views.memory(self)
    record = None
    try:
        if MODE.enabled and (self.record is not None or value.record is not None):
            template, arrays = access.index_of(array, key)
            operands = (array, _trimmed(value.value, array, template, arrays), *arrays)
            parents = (self.record, value.record, *(None for _ in arrays))
            record = record_call(indexing.update, operands, parents, {"template": template}, array)
            if record is not None and arrays:
                record.name = "IndexPutBackward0"
        array[key] = value.value
    except IndexError as error:
        raise index_error(error, array.ndim) from None
    except ValueError as error:
        part = list(np.shape(array[key]))
        raise TensorError(
            f"shape mismatch: value tensor of shape {list(np.shape(value.value))} cannot be broadcast "
            f"to indexing result of shape {part}"
        ) from error
    views.written(self, record)


def _trimmed(value: Any, array: Any, template: Any, arrays: Any) -> Any:
    """Drop extra leading dimensions of length 1, which NumPy ignores."""
    extra = np.ndim(value) - access.shape_only(array, template, arrays).ndim
    return np.reshape(value, np.shape(value)[extra:]) if extra > 0 else value


attach(__getitem__=_getitem, __setitem__=_setitem)


# Indexing along one dimension: by an index tensor in that dimension, and by position in the others.


def _check_index(index: Tensor, name: str) -> None:
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise TensorError(f"{name}(): Expected dtype int64 for index")


def _check_range(index: Any, length: int, axis: int) -> None:
    if isinstance(index, Tracer):  # the indices may be unknown, or differ between lanes
        return
    plain = np.asarray(index)
    if plain.size and (plain.min() < 0 or plain.max() >= length):
        wrong = plain[(plain < 0) | (plain >= length)].reshape(-1)[0]
        raise TensorError(f"index {wrong} is out of bounds for dimension {axis} with size {length}")


def _places(index: Any, axis: int) -> tuple[Any, ...]:
    """Integer arrays that together select one entry for each entry of the index."""
    shape = shape_of(index)
    grid = []
    for k, length in enumerate(shape):
        if k == axis:
            grid.append(index)
        else:
            grid.append(np.arange(length).reshape((1,) * k + (-1,) + (1,) * (len(shape) - k - 1)))
    return tuple(grid)


def _template(ndim: int) -> tuple[Any, ...]:
    return (indexing.ARRAY,) * ndim


@export()
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Gather entries along a dimension: for dim 0, out[i][j] = input[index[i][j]][j].

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    _check_index(index, "gather")
    axis = check_dim(dim, input.value.ndim)
    if index.value.ndim != input.value.ndim:
        raise TensorError("Index tensor must have the same number of dimensions as input tensor")
    _check_range(index.value, input.value.shape[axis], axis)
    places = _places(index.value, axis)
    out = indexing.index(input.lift(), *places, template=_template(len(places)))
    return named(lower(out), "GatherBackward0", input)


@export("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int) -> Tensor:
    """The entries at the indices along a dimension, with broadcasting.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.take_along_dim(torch.tensor([[3, 1]]), torch.tensor([[1]]), 1)
    tensor([[1]])
    """
    return wrap(np.take_along_axis(input.lift(), indices.value, dim))


def _source(src: Any, index: Tensor, dtype: Any) -> Any:
    """The part of a source that matches the index, or a number broadcast to its shape."""
    if not isinstance(src, Tensor):
        return np.broadcast_to(np.asarray(src, dtype), index.value.shape)
    part = tuple(slice(length) for length in index.value.shape)
    return src.lift()[part] if src.shape != index.shape else src.lift()


@export()
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Tensor:
    """A copy of the input with entries of `src` written at the indices: the reverse of `gather`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2]), torch.tensor([5.0]))
    tensor([0., 0., 5.])
    """
    if reduce == "add":
        return scatter_add(input, dim, index, value if src is None else src)
    _check_index(index, "scatter")
    axis = check_dim(dim, input.value.ndim)
    _check_range(index.value, input.value.shape[axis], axis)
    places = _places(index.value, axis)
    part = _source(value if src is None else src, index, input.value.dtype)
    if reduce == "multiply":
        part = part * indexing.index(input.lift(), *places, template=_template(len(places)))
    out = indexing.update(input.lift(), part, *places, template=_template(len(places)))
    name = "ScatterBackward0" if isinstance(src, Tensor) else "ScatterBackward1"
    return named(lower(out), name, input, *(() if src is None else (src,)))


@export()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """A copy of the input with entries of `src` added at the indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    _check_index(index, "scatter_add")
    axis = check_dim(dim, input.value.ndim)
    _check_range(index.value, input.value.shape[axis], axis)
    places = _places(index.value, axis)
    part = _source(src, index, input.value.dtype)
    shape = tuple(input.value.shape)
    added = indexing.scatter(part, *places, shape=shape, template=_template(len(places)))
    return named(lower(input.lift() + added), "ScatterAddBackward0", input, src)


@export()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of the input at the indices along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.index_select(torch.tensor([1.0, 2.0, 3.0]), 0, torch.tensor([2, 0]))
    tensor([3., 1.])
    """
    axis = check_dim(dim, input.value.ndim)
    try:
        if input.value.ndim:
            _check_range(index.value, input.value.shape[axis], axis)
    except RuntimeError:
        raise TensorIndexError("index out of range in self") from None
    return named(
        lower(np.take(input.lift(), index.value, axis=axis)), "IndexSelectBackward0", input
    )


def _slices(ndim: int, axis: int) -> tuple[Any, ...]:
    return tuple(indexing.ARRAY if k == axis else slice(None) for k in range(ndim))


@export()
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of the input with slices of `source` added at the indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.index_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.ones(2))
    tensor([0., 2.])
    """
    axis = check_dim(dim, input.value.ndim)
    shape, template = tuple(input.value.shape), _slices(input.value.ndim, axis)
    added = indexing.scatter((source * alpha).lift(), index.value, shape=shape, template=template)
    return named(lower(input.lift() + added), "IndexAddBackward0", input, source)


@export()
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of the input with slices of `source` written at the indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2]), torch.tensor([5.0]))
    tensor([0., 0., 5.])
    """
    axis = check_dim(dim, input.value.ndim)
    template = _slices(input.value.ndim, axis)
    out = indexing.update(input.lift(), source.lift(), index.value, template=template)
    return named(lower(out), "IndexCopyBackward0", input, source)


@export()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of the input with the slices at the indices filled with one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    axis = check_dim(dim, input.value.ndim)
    number = value.lift() if isinstance(value, Tensor) else input.value.dtype.type(value)
    template = _slices(input.value.ndim, axis)
    out = indexing.update(input.lift(), number, index.value, template=template)
    return named(lower(out), "IndexFillBackward0", input)


@export()
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The entries where a mask is True, as a vector.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.masked_select(torch.tensor([1.0, 2.0]), torch.tensor([False, True]))
    tensor([2.])
    """
    if mask.dtype is not dtypes.bool_:
        raise TensorError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(input.value.shape, mask.value.shape)
    wide = np.broadcast_to(mask.value, shape)
    out = np.broadcast_to(input.lift(), shape)[wide]
    return named(lower(out), "MaskedSelectBackward0", input)


@export()
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of the input with entries of `source` written, in order, where a mask is True.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.masked_scatter(torch.zeros(2), torch.tensor([False, True]), torch.tensor([5.0]))
    tensor([0., 5.])
    """
    wide = np.broadcast_to(mask.value, input.value.shape)
    places = np.nonzero(wide)
    part = np.reshape(source.lift(), (-1,))[: len(places[0])]
    out = indexing.update(input.lift(), part, *places, template=_template(len(places)))
    return named(lower(out), "MaskedScatterBackward0", input, source)


@export("take")
@composed("TakeBackward0")
def take(x: Any, index: Any) -> Any:
    """The entries at the given indices of the flattened tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])
    """
    return np.take(np.reshape(x, (-1,)), index)
