"""Tensor: a value, and the record of how it was made.

This module defines what every tensor has: its place in the graph, and its conversions. The modules for the
various kinds of functions attach operators and other methods.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import tree
from functrans.core.dispatch import Tracer, concrete, is_plain, is_traced_for_derivatives
from functrans.core.tracer import ArrayTracer
from functrans.interpreters.tape import Share, next_key
from functrans.ops import structure
from functrans.torch import changes, dtypes, views
from functrans.torch.attributes import Described
from functrans.torch.attributes import check_dim as check_dim
from functrans.torch.devices import Size as Size
from functrans.torch.devices import check_device as check_device
from functrans.torch.devices import device as device
from functrans.torch.errors import (
    TensorError,
    TensorTypeError,
    TensorValueError,
)
from functrans.torch.tape import MODE, Record, lowered, record_call, tracer

_new = object.__new__
_ndarray = np.ndarray


class Tensor(Described):
    """An array that remembers how it was made; see `torch.tensor`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # `value` is an array, a NumPy scalar if there are no axes, or a tracer of a running transform;
    # `record` is None if no gradient is required, and [key] for a leaf.
    __slots__ = ("__dict__", "__weakref__", "record", "value")

    value: Any
    record: Any

    origin: Any = None  # how this tensor is a view of another, if it is one
    viewers: Any = None  # weak references to the views of this tensor
    inference = False
    retains_grad = False
    post_hooks: Any = None  # hooks that run after a gradient has been added to that of a leaf
    _grad: Any = None

    if TYPE_CHECKING:
        # Other modules attach methods and operators.
        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...

    def __init__(self, *data: Any) -> None:
        if len(data) == 1 and not isinstance(data[0], int):
            given = data[0]
            check_unmasked(given)
            plain = given.value if isinstance(given, Tensor) else np.asarray(given)
            self.value = np.array(plain, dtypes.default.numpy)
        else:
            self.value = np.empty(data if data else (0,), dtypes.default.numpy)
        self.record = None

    # The NumPy face.

    def lift(self) -> Any:
        """The value that NumPy's functions use in place of this tensor.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor([1.0, 2.0]).lift().tolist()
        [1.0, 2.0]
        """
        return self.value if self.record is None else tracer(self.value, self.record)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            return NotImplemented
        with np.errstate(all="ignore"):
            return lower(getattr(ufunc, method)(*[face_of(each) for each in inputs], **kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        def lift_all(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return type(value)(map(lift_all, value))
            return value.lift() if isinstance(value, Tensor) else value

        return lower(function(*lift_all(args), **{k: lift_all(v) for k, v in kwargs.items()}))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __len__(self) -> int:
        if not self.value.shape:
            raise TensorTypeError("len() of a 0-d tensor")
        return self.value.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        if not self.value.shape:
            raise TensorTypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    # Its place in the graph.

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).requires_grad
        True
        """
        return self.record is not None or is_traced_for_derivatives(self.value)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make this tensor a leaf that accumulates gradients, or stop it from doing so.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor([1.0]).requires_grad_()
        tensor([1.], requires_grad=True)
        """
        if isinstance(self.value, Tracer):
            raise TensorError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using "
                "torch.autograd.functional.* APIs) inside of a function being transformed. This is "
                "unsupported, please attempt to use the transforms' own arguments instead."
            )
        if self.record is not None and len(self.record) > 1:
            if not requires_grad:
                raise TensorError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a "
                    "computed variable in a subgraph that doesn't require differentiation use "
                    "var_no_grad = var.detach()."
                )
            return self
        if requires_grad and self.record is None:
            if self.dtype.category < 2:
                raise TensorError(
                    "only Tensors of floating point and complex dtype can require gradients"
                )
            if self.inference and not MODE.inference:
                raise TensorError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed."
                )
            self.record = leaf_record(self)
        elif not requires_grad:
            self.record = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is a leaf: it was not computed from tensors that require grad.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).is_leaf
        True
        """
        return self.record is None or len(self.record) == 1

    @property
    def _version(self) -> int:
        if self.inference:
            raise TensorError("Inference tensors do not track version counter.")
        return changes.version(self.value)

    @property
    def _base(self) -> Any:
        base = self if self.origin is None else self.origin.base
        while base.origin is not None:
            base = base.origin.base
        return None if base is self else base

    def _is_view(self) -> bool:
        return self.origin is not None

    @property
    def data(self) -> Tensor:
        """A tensor with the same memory, detached from the graph; autograd does not notice changes to it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).data
        tensor([1.])
        """
        if isinstance(self.value, Tracer):
            return self.detach()
        # An array made from the buffer owns its memory, and so has separate versions.
        return make(np.asarray(memoryview(views.memory(self))))

    @data.setter
    def data(self, other: Tensor) -> None:
        self.value = other.value

    def detach(self) -> Tensor:
        """A tensor with the same memory, detached from the graph: no gradient flows through it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(1, requires_grad=True).detach()
        tensor([1.])
        """
        if isinstance(self.value, Tracer):
            return make(structure.stop_gradient(self.value))
        views.memory(self)
        return make(self.value)

    def detach_(self) -> Tensor:
        """Detach this tensor from the graph, in place.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> (torch.ones(1, requires_grad=True) * 2).detach_()
        tensor([2.])
        """
        if self.origin is not None and self.record is not None:
            raise TensorError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients."
            )
        self.record = None
        return self

    # Conversions.

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """This tensor as a NumPy array; the two share memory.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor([1.5, 2.5]).numpy().tolist()
        [1.5, 2.5]
        """
        if force:
            return self.detach().numpy()
        if isinstance(self.value, Tracer):
            raise TensorError(
                "Cannot access data pointer of Tensor (e.g. numpy()) inside of a function being "
                "transformed: it may stand for many values, or its value may not be known yet."
            )
        if self.record is not None and MODE.enabled:
            raise TensorError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        return views.memory(self)  # type: ignore[no-any-return]

    def item(self) -> Any:
        """The single entry of this tensor, as a Python number.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor(2.5).item()
        2.5
        """
        value = concrete(self.value)
        if value.size != 1:
            raise TensorError(f"a Tensor with {value.size} elements cannot be converted to Scalar")
        return value.item()

    def tolist(self) -> Any:
        """The entries as nested lists of Python numbers.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.tensor([1, 2]).tolist()
        [1, 2]
        """
        return concrete(self.value).tolist()

    def __bool__(self) -> bool:
        count = self.numel()
        if count > 1:
            raise TensorError("Boolean value of Tensor with more than one value is ambiguous")
        if not count:
            raise TensorError("Boolean value of Tensor with no values is ambiguous")
        if isinstance(self.value, ArrayTracer) and not self.value.shape:
            return bool(self.value)
        return bool(self.item())

    def _number(self) -> Any:
        if self.numel() != 1:
            raise TensorValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.category > 1:
            raise TensorTypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self.item())

    def __format__(self, spec: str) -> str:
        if not self.value.shape and not isinstance(self.value, Tracer):
            # Without a format spec, show a tensor, as lessons do. PyTorch itself shows the number.
            return format(self.item(), spec) if spec else repr(self)
        return format(repr(self), spec)

    def __repr__(self) -> str:
        from functrans.torch.printing import tensor_text

        return tensor_text(self)

    def __contains__(self, element: Any) -> bool:
        return bool(np.any(concrete((self == element).value)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise TensorError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        other = _new(type(self))
        memo[id(self)] = other
        other.value = self.value.copy()
        other.record = None
        if self._grad is not None:
            other._grad = self._grad.__deepcopy__(memo)
        if self.record is not None:
            other.record = leaf_record(other)
        return other

    def __copy__(self) -> Tensor:
        """A tensor with the same memory, as a separate leaf."""
        return self.detach().requires_grad_(self.requires_grad)

    def __reduce__(self) -> Any:
        return _rebuilt, (self.detach().numpy(), self.requires_grad)


def _rebuilt(array: Any, requires_grad: bool) -> Tensor:
    """Rebuild a tensor from its pickled parts."""
    return make(array).requires_grad_(requires_grad)


# Making tensors.


def make(value: Any, record: Any = None) -> Tensor:
    """A tensor with this value and record."""
    tensor = _new(Tensor)
    tensor.value = value
    tensor.record = record
    if MODE.inference:
        tensor.inference = True
    return tensor


def lower(value: Any) -> Any:
    """Convert a result on the NumPy face to a tensor, including those in tuples and lists."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(lower, value)) if type(value) in (tuple, list) else value
    if value is None or isinstance(value, Tensor):
        return value
    return make(*lowered(value))


def check_unmasked(data: Any) -> None:
    """Refuse a masked array: a tensor has no mask, and must not reveal the masked entries."""
    if isinstance(data, np.ma.MaskedArray):
        raise TensorTypeError(
            "a masked array cannot become a tensor, which has no mask. Pass x.filled(...) with a number "
            "for the masked entries, or x.compressed() without them."
        )


wrap: Callable[[Any], Tensor] = lower  # for one result


def leaf_record(tensor: Tensor) -> Record:
    """The record of a tensor that was not computed."""
    record = Record((next_key(),))
    record.primitive = None
    record.tensor = weakref.ref(tensor)
    return record


def named(tensor: Tensor, name: str, *operands: Any) -> Tensor:
    """Set the name of the `grad_fn` of a result, and its operands; returns the result.

    If the operation is composed of several, the operands are those of the whole. None stands for an
    argument that was not given, which PyTorch counts as well.
    """
    record = tensor.record
    if record is not None and len(record) > 1:
        if record[1] is Share:  # one of several results: PyTorch shows their operation
            record = record[4]
        record.name = name
        if operands:
            edges: list[Any] = []
            for operand in operands:
                edges.append(None) if operand is None else _add_edges(operand, edges)
            record.edges = tuple(edges)
    return tensor


def _add_edges(operand: Any, edges: list[Any]) -> None:
    """Add the records of the floating point tensors in an operand; None for one that is not tracked."""
    if isinstance(operand, Tensor):
        if operand.value.dtype.kind in "fc":
            edges.append(operand.record)
    elif isinstance(operand, (tuple, list)):
        for each in operand:
            _add_edges(each, edges)


def cast(tensor: Tensor, wanted: np.dtype[Any]) -> Tensor:
    """Convert a tensor to another dtype, with the primitive."""
    if tensor.value.dtype == wanted:
        return tensor
    with np.errstate(all="ignore"):
        return apply(structure.astype, tensor, dtype=wanted)


def apply(primitive: Any, tensor: Tensor, **params: Any) -> Tensor:
    """Apply a primitive to one tensor."""
    value = tensor.value
    if isinstance(value, Tracer):
        return wrap(primitive(value, **params))
    out = primitive.impl(value, **params)
    if tensor.record is None or not MODE.enabled:
        return make(out)
    return make(out, record_call(primitive, (value,), (tensor.record,), params, out))


def face_of(value: Any) -> Any:
    """The NumPy face of a tensor; a NumPy scalar becomes a Python number, which has no dtype here."""
    if isinstance(value, Tensor):
        return value.lift()
    return value.item() if is_plain(value, np.generic) else value


# To functrans' transforms, a tensor is a container of its array. So all of them accept tensors, and call
# the function with tensors whose values are traced.

tree.register_box(Tensor, Tensor.lift, lower)
