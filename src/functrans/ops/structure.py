"""Shape and layout: operations that move elements without arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.core.primitive import Elementwise, Primitive, always_array, as_first_argument, bare
from functrans.core.shapes import (
    ArraySpec,
    broadcasts_to,
    checked_axes,
    checked_axis,
    checked_shape,
    shape_of,
    sum_to_shape,
)
from functrans.core.views import held
from functrans.ops.families import (
    batch_elementwise,
    batch_shifting,
    insert_ones,
    linear,
    spread_lanes,
)


def _batch_reshape(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(args[0], shape=(args[0].shape[0], *params["shape"]))


def _reshape_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    out = ArraySpec(checked_shape(params["shape"]), specs[0].dtype)
    if out.size != specs[0].size:
        raise ValueError(
            f"cannot reshape array of size {specs[0].size} into shape {params['shape']}"
        )
    return out


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if type(x) is np.ndarray else np.reshape(x, shape)


reshape = linear(
    "reshape",
    _reshape,
    lambda g, x_shape, shape: _reshape(g, x_shape),
    batch=_batch_reshape,
    shape=_reshape_spec,
    kind="shape",
    views=True,
    form=always_array,
)


def _batch_transpose(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    return primitive(args[0], axes=(0, *(axis + 1 for axis in params["axes"])))


def inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


def _transpose_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (spec,) = specs
    axes = checked_axes(params["axes"], spec.ndim)
    if len(axes) != spec.ndim:
        raise ValueError(f"axes {axes} do not match an array with {spec.ndim} axes")
    return ArraySpec(tuple([spec.shape[axis] for axis in axes]), spec.dtype)


def _transpose(x: Any, axes: tuple[int, ...]) -> Any:
    return x.transpose(axes) if type(x) is np.ndarray else np.transpose(x, axes)


transpose = linear(
    "transpose",
    _transpose,
    lambda g, x_shape, axes: _transpose(g, inverse_permutation(axes)),
    batch=_batch_transpose,
    shape=_transpose_spec,
    kind="shape",
    views=True,
)


def _batch_broadcast(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (x,), shape = args, params["shape"]
    return primitive(insert_ones(x, len(shape) + 1 - x.ndim), shape=(x.shape[0], *shape))


def _broadcast_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (spec,), shape = specs, checked_shape(params["shape"])
    if not broadcasts_to(spec.shape, shape):
        raise ValueError(f"an array of shape {spec.shape} cannot be broadcast to shape {shape}")
    return ArraySpec(shape, spec.dtype)


broadcast_to = linear(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    lambda g, x_shape, shape: sum_to_shape(g, x_shape),
    batch=_batch_broadcast,
    shape=_broadcast_spec,
    kind="shape",
    views=True,
    form=always_array,
)


def _astype_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (spec,), dtype = specs, params["dtype"]
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc":
        raise TypeError(f"{dtype!r} is not a dtype of numbers")
    if spec.weak and spec.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("a Python complex number cannot be converted to a real dtype")
    return ArraySpec(spec.shape, dtype)


# A change of dtype is linear; the tape casts the cotangent back, as it does for every value.
astype = linear(
    "astype",
    lambda x, dtype: x.astype(dtype) if is_plain(x, (np.ndarray, np.generic)) else dtype.type(x),
    lambda g, x_shape, dtype: g,
    batch=batch_shifting(),
    shape=_astype_spec,
    kind="shape",
    views=False,
    form=as_first_argument,
)

# In NumPy a copy is contiguous, so that a reshape of it is a view.
copy = linear(
    "copy",
    lambda x: np.array(x, order="C"),
    lambda g, x_shape: g,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
    kind="shape",
    views=False,
    form=always_array,
)

conjugate = linear(
    "conjugate",
    np.conjugate,
    # Re(g conj(t)) = Re(conj(g) t)
    lambda g, x_shape: np.conjugate(g),
    batch=batch_shifting(),
    # Bools become integers.
    shape=lambda specs, params: (
        ArraySpec(specs[0].shape, np.int8) if specs[0].dtype.kind == "b" else specs[0]
    ),
    kind="shape",
    views=False,
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
    parts = [g[(slice(None),) * axis + (slice(a, b),)] for a, b in spans]
    return bare(parts)


def _concatenate_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    axis, start, spans = params["axis"], 0, []
    for k, arg in enumerate(args):
        stop = start + shape_of(arg)[axis]
        if mask >> k & 1:
            spans.append((start, stop))
        start = stop
    return _concatenate_pull, (axis, spans)


def _concatenate_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    parts = spread_lanes(args, batched, size)
    mapped_parts = [part for part, mapped in zip(parts, batched, strict=True) if mapped]
    if all(map(_lanes_are_slowest, mapped_parts)):
        return primitive(*parts, axis=params["axis"] + 1)
    # NumPy sorts the axes of the result by strides, one after another, so that an axis of length 1 stays next
    # to those before it. The lanes come last, so that they do not influence the order of the others.
    out = primitive(*[np.moveaxis(part, 0, -1) for part in parts], axis=params["axis"])
    return np.moveaxis(out, -1, 0)


def _lanes_are_slowest(x: Any) -> bool:
    """Whether the first axis is known to have the largest stride."""
    value = held(x)
    if not is_plain(value, np.ndarray):
        return True
    lanes, *others = value.strides[value.ndim - len(shape_of(x)) :]
    return all(abs(lanes) >= abs(stride) for stride in others)


def _concatenate_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    axis = checked_axis(params["axis"], specs[0].ndim)
    # NumPy checks the other axes, whatever the lengths along this one.
    for spec in specs[1:]:
        if spec.ndim != specs[0].ndim or spec.shape[:axis] + spec.shape[axis + 1 :] != (
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
    kind="shape",
    views=False,
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
    return bare(parts)


def _where_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    shape = np.broadcast_shapes(*(spec.shape for spec in specs))
    scalars = [s.dtype.type(0).item() if s.weak else s.dtype for s in specs[1:]]
    return ArraySpec(shape, np.result_type(*scalars))


where = Elementwise(
    "where",
    lambda condition, x, y: np.where(condition, x, y),
    jvp=_where_jvp,
    vjp=lambda mask, out, args, params: (_where_pull, (args[0], mask)) if mask & 6 else None,
    batch=batch_elementwise,
    shape=_where_spec,
    views=False,
    form=always_array,
)


# The identity to values, a wall to derivatives.
stop_gradient = Primitive(
    "stop_gradient",
    lambda x: x,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
    kind="shape",
    views=True,
    form=as_first_argument,
)
