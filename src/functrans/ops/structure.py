"""Shape and layout: operations that move entries and compute nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Elementwise, Primitive
from functrans.core.shapes import ArraySpec, shape_of, sum_to_shape
from functrans.core.views import held
from functrans.ops.families import align_batched, batch_shifting, linear


def _batch_reshape(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(args[0], shape=(args[0].shape[0], *params["shape"]))


reshape = linear(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    lambda g, x_shape, shape: np.reshape(g, x_shape),
    batch=_batch_reshape,
    shape=lambda specs, params: ArraySpec(params["shape"], specs[0].dtype),
)


def _batch_transpose(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(args[0], axes=(0, *(axis + 1 for axis in params["axes"])))


def inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


transpose = linear(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    lambda g, x_shape, axes: np.transpose(g, inverse_permutation(axes)),
    batch=_batch_transpose,
    shape=lambda specs, params: ArraySpec(
        tuple(specs[0].shape[axis] for axis in params["axes"]), specs[0].dtype
    ),
)


def _batch_broadcast(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (x,), shape = args, params["shape"]
    missing = len(shape) - x.ndim + 1
    if missing:
        x = x.reshape(x.shape[:1] + (1,) * missing + x.shape[1:])
    return primitive(x, shape=(x.shape[0], *shape))


broadcast_to = linear(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    lambda g, x_shape, shape: sum_to_shape(g, x_shape),
    batch=_batch_broadcast,
    shape=lambda specs, params: ArraySpec(params["shape"], specs[0].dtype),
)

# A change of dtype is linear; the cotangent is cast back by the tape, which minds every dtype.
astype = linear(
    "astype",
    lambda x, dtype: x.astype(dtype) if isinstance(x, (np.ndarray, np.generic)) else dtype.type(x),
    lambda g, x_shape, dtype: g,
    batch=batch_shifting(),
    shape=lambda specs, params: ArraySpec(specs[0].shape, params["dtype"]),
)

# In NumPy a copy is contiguous, which decides whether a reshape of it is a view.
copy = linear(
    "copy",
    lambda x: np.array(x, order="C"),
    lambda g, x_shape: g,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
)

conjugate = linear(
    "conjugate",
    np.conjugate,
    # Re(g conj(t)) = Re(conj(g) t)
    lambda g, x_shape: np.conjugate(g),
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
)


# Concatenation is linear in all its arrays together.


def _concatenate(*arrays: Any, axis: int) -> Any:
    return np.concatenate(arrays, axis=axis)


def _concatenate_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    parts = [
        np.zeros(shape_of(arg), out.dtype) if tangent is None else tangent
        for arg, tangent in zip(args, tangents, strict=True)
    ]
    return concatenate(*parts, **params)


def _concatenate_pull(g: Any, saved: Any) -> Any:
    axis, spans = saved
    parts = tuple(g[(slice(None),) * axis + (slice(a, b),)] for a, b in spans)
    return parts if len(parts) > 1 else parts[0]


def _concatenate_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    axis, start, spans = params["axis"], 0, []
    for k, arg in enumerate(args):
        stop = start + shape_of(arg)[axis]
        if mask >> k & 1:
            spans.append((start, stop))
        start = stop
    return _concatenate_pull, (axis, spans)


def _concatenate_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    parts = [
        arg if mapped else np.broadcast_to(arg, (size, *shape_of(arg)))
        for arg, mapped in zip(args, batched, strict=True)
    ]
    mapped_parts = [part for part, mapped in zip(parts, batched, strict=True) if mapped]
    if all(map(_lanes_are_slowest, mapped_parts)):
        return primitive(*parts, axis=params["axis"] + 1)
    # NumPy sorts the axes of the result by strides, one after another, so that one of length 1 stays at
    # those before it. To let the lanes have no say in the order of the others, they come last.
    out = primitive(*(np.moveaxis(part, 0, -1) for part in parts), axis=params["axis"])
    return np.moveaxis(out, -1, 0)


def _lanes_are_slowest(x: Any) -> bool:
    """Whether the entries of the first axis are the furthest apart in memory, as far as that is known."""
    value = held(x)
    if not isinstance(value, np.ndarray):
        return True
    lanes, *others = value.strides[value.ndim - len(shape_of(x)) :]
    return all(abs(lanes) >= abs(stride) for stride in others)


def _concatenate_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    axis = params["axis"]
    # NumPy checks the other axes; lengths along the axis do not matter to it, so use them as is.
    for spec in specs[1:]:
        if spec.shape[:axis] + spec.shape[axis + 1 :] != (
            specs[0].shape[:axis] + specs[0].shape[axis + 1 :]
        ):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match "
                f"exactly, but the shapes are {', '.join(str(s.shape) for s in specs)}"
            )
    length = sum(spec.shape[axis] for spec in specs)
    shape = specs[0].shape[:axis] + (length,) + specs[0].shape[axis + 1 :]
    return ArraySpec(shape, np.result_type(*(spec.dtype for spec in specs)))


concatenate = Primitive(
    "concatenate",
    _concatenate,
    jvp=_concatenate_jvp,
    vjp=_concatenate_vjp,
    batch=_concatenate_batch,
    shape=_concatenate_spec,
)


# where(condition, x, y) is linear in x and y. It selects, and never multiplies by zero: an infinite
# cotangent stays on its branch. (The branch not taken still receives zeros, and 0 * inf further up
# is nan: guard the argument, np.sqrt(np.where(x > 0, x, 1)), as in every such system.)


def _where_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    condition, _, _ = args
    _, x_tangent, y_tangent = tangents
    if x_tangent is None and y_tangent is None:
        return None
    zero = out.dtype.type(0)
    return where(
        condition,
        zero if x_tangent is None else x_tangent,
        zero if y_tangent is None else y_tangent,
    )


def _where_pull(g: Any, saved: Any) -> Any:
    condition, mask = saved
    zero = g.dtype.type(0)
    parts: list[Any] = []
    if mask & 1:
        parts.append(None)
    if mask & 2:
        parts.append(where(condition, g, zero))
    if mask & 4:
        parts.append(where(condition, zero, g))
    return tuple(parts) if len(parts) > 1 else parts[0]


def _where_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(*align_batched(args, batched))


def _where_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    shape = np.broadcast_shapes(*(spec.shape for spec in specs))
    scalars = [s.dtype.type(0).item() if s.weak else s.dtype for s in specs[1:]]
    return ArraySpec(shape, np.result_type(*scalars))


where = Elementwise(
    "where",
    lambda condition, x, y: np.where(condition, x, y),
    jvp=_where_jvp,
    vjp=lambda mask, out, args, params: (_where_pull, (args[0], mask)) if mask & 6 else None,
    batch=_where_batch,
    shape=_where_spec,
)


# The identity to values, a wall to derivatives.
stop_gradient = Primitive(
    "stop_gradient",
    lambda x: x,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
)
