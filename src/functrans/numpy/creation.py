"""Arrays from traced values, and arrays like traced ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.numpy.table import holds_tracer, implements, newer
from functrans.ops import structure


def array(value: Any, dtype: Any = None) -> Any:
    """An array from nested lists, which may hold traced values.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans
    >>> import functrans.numpy
    >>> functrans.grad(lambda x: np.sum(functrans.numpy.array([x, x * x])))(3.0)
    np.float64(7.0)
    """
    if not holds_tracer(value):
        return np.array(value, dtype=dtype)
    result: Any = value
    if not isinstance(value, Tracer):
        result = np.stack([array(item) for item in value])
    return result if dtype is None else result.astype(np.dtype(dtype))


def asarray(value: Any, dtype: Any = None) -> Any:
    """Like `array`, but without a copy of what is an array already.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans.numpy
    >>> x = np.ones(2)
    >>> functrans.numpy.asarray(x) is x
    True
    """
    return array(value, dtype) if holds_tracer(value) else np.asarray(value, dtype=dtype)


def _like(make: Any) -> Any:
    """np.zeros_like and its kin: a plain array with the shape and dtype of a traced one."""

    def like(
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: Any = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        chosen = shape_of(a) if shape is None else shape
        return make(chosen, dtype=dtype_of(a) if dtype is None else dtype)

    return like


for _function, _make in (
    (np.zeros_like, np.zeros),
    (np.ones_like, np.ones),
    (np.empty_like, np.zeros),
):
    implements(_function)(_like(_make))


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    chosen = shape_of(a) if shape is None else shape
    filled = np.broadcast_to(fill_value, chosen)
    return filled.astype(dtype_of(a) if dtype is None else np.dtype(dtype))


@implements(np.shape)
def shape(a: Any) -> Any:
    return shape_of(a)


@implements(np.ndim)
def ndim(a: Any) -> Any:
    return len(shape_of(a))


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    lengths = shape_of(a)
    if axis is None:
        return int(np.prod(lengths, dtype=int))
    return int(np.prod([lengths[k] for k in np.atleast_1d(axis)], dtype=int))


@implements(np.result_type)
def result_type(*values: Any) -> Any:
    return np.result_type(*(_typed(value) for value in values))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    return np.can_cast(dtype_of(from_) if isinstance(from_, Tracer) else from_, to, casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty((), dtype_of(a)) for a in arrays))


def _typed(value: Any) -> Any:
    if not isinstance(value, Tracer):
        return value
    spec = getattr(value, "spec", None)
    if spec is not None and spec.weak:
        return spec.dtype.type(0).item()
    return dtype_of(value)


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> Any:
    return dtype_of(x).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> Any:
    return dtype_of(x).kind != "c"


@implements(np.isscalar)
def isscalar(element: Any) -> Any:
    return shape_of(element) == ()


@implements(np.copy)
def copy(a: Any, order: Any = "K", subok: Any = False) -> Any:
    return structure.astype(a, dtype=dtype_of(a))


@implements(np.array_repr)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> Any:
    return repr(arr)


@implements(np.array_str)
def array_str(a: Any, *args: Any, **kwargs: Any) -> Any:
    return str(a)


@implements(np.array2string)
def array2string(a: Any, *args: Any, **kwargs: Any) -> Any:
    return str(a)


@implements(*newer("astype"))
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(np.dtype(dtype))


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    """For an array its dtype; for a scalar it depends on the value."""
    return np.min_scalar_type(np.empty(1, dtype_of(a)) if shape_of(a) else concrete(a))


@implements(np.shares_memory, np.may_share_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> Any:
    """Traced values are never changed in place, so only a value itself is its own memory."""
    return a is b
