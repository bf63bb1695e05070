"""Creation of tensors: from data, filled with a number, and as ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.torch import dtypes
from functrans.torch.errors import TensorError, TensorTypeError, TensorValueError
from functrans.torch.registry import export
from functrans.torch.tensor import Tensor, cast, check_device, check_unmasked, lower, make


def finished(value: Any, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A value as a tensor, and as a leaf if it requires grad."""
    check_device(device)
    result = make(value[()] if is_plain(value, np.ndarray) and not value.ndim else value)
    return result.requires_grad_() if requires_grad else result


def chosen_dtype(dtype: Any, otherwise: Any) -> np.dtype[Any]:
    """The NumPy dtype of the `dtype` argument, or a default."""
    return otherwise if dtype is None else dtypes.to_numpy(dtype)


def _check_nested(data: Any, depth: int = 0) -> tuple[int, ...]:
    """The shape of nested lists; an error if they are ragged."""
    if depth > 64:
        raise TensorValueError(f"too many dimensions {type(data).__name__!r}")
    if isinstance(data, Tensor):
        return tuple(data.shape)
    if is_plain(data, np.ndarray):
        check_unmasked(data)
        return data.shape  # type: ignore[no-any-return]
    if not isinstance(data, (list, tuple)):
        return ()
    if not data:
        return (0,)
    first = _check_nested(data[0], depth + 1)
    for each in data[1:]:
        shape = _check_nested(each, depth + 1)
        if shape != first:
            expected = first[0] if first else 0
            raise TensorValueError(
                f"expected sequence of length {expected} at dim {depth + 1} "
                f"(got {shape[0] if shape else 0})"
            )
    return (len(data), *first)


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.tolist() if not data.value.shape else np.asarray(data.value)
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data


def array_of(data: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Convert data of any kind to a new array, with floats in the default dtype."""
    check_unmasked(data)
    if isinstance(data, (list, tuple, range)):
        data = list(data) if isinstance(data, range) else data
        _check_nested(data)
        array = np.array(_plain(data))
        numbers = array.dtype.kind in "fc" and not _has_arrays(data)
    elif isinstance(data, Tensor):
        array, numbers = np.array(data.value), False
    else:
        array = np.array(data)
        numbers = not is_plain(data, (np.ndarray, np.generic))
    if array.dtype.kind not in "biufc":
        if array.dtype.kind in "US":
            raise TensorTypeError("new(): invalid data type 'str'")
        raise TensorError(f"Could not infer dtype of {type(data).__name__}")
    if dtype is not None:
        return array.astype(dtypes.to_numpy(dtype))
    if numbers and array.dtype.kind == "f":
        return array.astype(dtypes.default.numpy)
    if numbers and array.dtype.kind == "c":
        return array.astype(dtypes.complex_default().numpy)
    if isinstance(data, (list, tuple)) and not array.size:
        return array.astype(dtypes.default.numpy)
    dtypes.of_numpy(array.dtype)
    return array


def _has_arrays(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(map(_has_arrays, data))
    return is_plain(data, (np.ndarray, np.generic))


@export(method=False)
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a new tensor from data.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> torch.tensor([1, 2], dtype=torch.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(data, Tracer) or (isinstance(data, Tensor) and isinstance(data.value, Tracer)):
        traced = data.clone() if isinstance(data, Tensor) else lower(data)
        return traced.detach() if dtype is None else traced.detach().to(dtype)  # type: ignore[no-any-return]
    return finished(array_of(data, dtype), requires_grad, device)


@export(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Convert data to a tensor, sharing memory with an array if the dtype allows it.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, Tracer):
        found: Tensor = lower(data)
        return found if dtype is None else cast(found, dtypes.to_numpy(dtype))
    if is_plain(data, np.ndarray) and (dtype is None or data.dtype == dtypes.to_numpy(dtype)):
        return from_numpy(data)
    return finished(array_of(data, dtype))


asarray = export("asarray", method=False)(as_tensor)


@export(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares its memory with an array.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans.torch as torch
    >>> a = np.zeros(2)
    >>> t = torch.from_numpy(a)
    >>> a[0] = 5.0
    >>> t
    tensor([5., 0.], dtype=torch.float64)
    """
    if not is_plain(ndarray, np.ndarray):
        raise TensorTypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    check_unmasked(ndarray)
    dtypes.of_numpy(ndarray.dtype)
    return make(np.asarray(ndarray))  # not of a subclass, such as np.matrix


def lengths(size: tuple[Any, ...], name: str = "zeros") -> tuple[int, ...]:
    """A shape, given as numbers or as one sequence of them."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    shape = []
    for length in size:
        if isinstance(length, Tensor):
            length = length.item()
        if not isinstance(length, (int, np.integer)) or isinstance(length, bool):
            raise TensorTypeError(
                f"{name}(): argument 'size' must be tuple of ints, but found element of type "
                f"{type(length).__name__}"
            )
        if length < 0:
            raise TensorError(f"{name}: Dimension size must be non-negative.")
        shape.append(int(length))
    return tuple(shape)


def _filler(name: str, fill: Any) -> Any:
    def function(
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = lengths(size, name)
        return finished(
            fill(shape, chosen_dtype(dtype, dtypes.default.numpy)), requires_grad, device
        )

    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        wanted = chosen_dtype(dtype, input.value.dtype)
        return finished(fill(tuple(input.value.shape), wanted), requires_grad, device)

    def new(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        wanted = chosen_dtype(dtype, self.value.dtype)
        return finished(fill(lengths(size, name), wanted), **options)

    function.__name__, like.__name__, new.__name__ = name, f"{name}_like", f"new_{name}"
    function.__doc__ = f"A tensor of {name} with the given shape." if name != "empty" else None
    export(method=False)(function)
    export(method=False)(like)
    export(function=False)(new)
    return function


zeros = _filler("zeros", np.zeros)
ones = _filler("ones", np.ones)
empty = _filler("empty", np.zeros)  # zeros: never show what was in memory before


@export(method=False)
def full(size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor filled with one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    wanted = chosen_dtype(dtype, dtypes.of_scalar(value).numpy)
    return finished(np.full(lengths((size,), "full"), value, wanted), **options)


@export(method=False)
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor filled with one number, with the shape and dtype of another.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.full_like(torch.tensor([1.0, 2.0]), 7.0)
    tensor([7., 7.])
    """
    wanted = chosen_dtype(dtype, input.value.dtype)
    return finished(np.full(tuple(input.value.shape), fill_value, wanted), **options)


@export(function=False)
def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """A tensor filled with one number, with the dtype of this one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    options.setdefault("dtype", self.dtype)
    return full(size, fill_value, **options)


@export(function=False)
def new_tensor(self: Tensor, data: Any, **options: Any) -> Tensor:
    """Make a new tensor from data, with the dtype of this one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    options.setdefault("dtype", self.dtype)
    return tensor(data, **options)


@export(method=False)
def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A 0-d tensor: it has no dimensions and holds one number.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.scalar_tensor(3.0)
    tensor(3.)
    """
    options.setdefault("dtype", dtypes.default.torch)
    return tensor(s, **options)


@export(method=False)
def arange(*bounds: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Evenly spaced numbers from start up to, but not including, end: arange(end), arange(start, end, step).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    named = [options.pop(key) for key in ("start", "end", "step") if key in options]
    numbers = [each.item() if isinstance(each, Tensor) else each for each in (*bounds, *named)]
    start, end, step = (
        (0, numbers[0], 1) if len(numbers) == 1 else (*numbers[:2], *(numbers[2:] or [1]))
    )
    if step == 0:
        raise TensorError("step must be nonzero")
    if (end - start) / step < 0:
        raise TensorError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(each, (int, np.integer)) for each in (start, end, step))
    wanted = chosen_dtype(dtype, dtypes.int64.numpy if whole else dtypes.default.numpy)
    count = math.ceil((end - start) / step)
    return finished((start + step * np.arange(count)).astype(wanted), **options)


@export(method=False)
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any) -> Tensor:
    """`steps` evenly spaced numbers from start to end, including both.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    wanted = chosen_dtype(dtype, dtypes.default.numpy)
    return finished(np.linspace(float(start), float(end), steps).astype(wanted), **options)


@export(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """Powers of `base` with evenly spaced exponents from start to end.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    wanted = chosen_dtype(dtype, dtypes.default.numpy)
    values = np.logspace(float(start), float(end), steps, base=base)
    return finished(values.astype(wanted), **options)


@export(method=False)
def eye(n: int, m: int | None = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """The identity matrix.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return finished(np.eye(n, m, dtype=chosen_dtype(dtype, dtypes.default.numpy)), **options)


@export("tril_indices", method=False)
def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The indices of the entries on and below a diagonal, as two rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return make(np.stack(np.tril_indices(row, offset, col)))


@export("triu_indices", method=False)
def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The indices of the entries on and above a diagonal, as two rows.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return make(np.stack(np.triu_indices(row, offset, col)))


@export("complex", method=False)
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """A complex tensor from its real and imaginary parts.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.complex(torch.tensor(1.0), torch.tensor(2.0))
    tensor(1.+2.j)
    """
    return real + 1j * imag


def _legacy(dtype: dtypes.dtype) -> None:
    """The legacy constructors, which take data or a shape."""
    name = f"{dtype.legacy}Tensor"

    def function(*data: Any) -> Tensor:
        if data and isinstance(data[0], (int, np.integer)) and not isinstance(data[0], bool):
            return empty(*data, dtype=dtype)  # type: ignore[no-any-return]
        return tensor(data[0] if data else [], dtype=dtype)

    function.__doc__ = f"""Make a {dtype} tensor from data, or of a given shape.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.{name}([1, 0]).dtype
    {dtype}
    """
    export(name, method=False)(function)


for _dtype in dtypes.ALL:
    if not _dtype.is_complex:
        _legacy(_dtype)
