"""np.pad in all its modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import indexing
from functrans.ops.reduction import slice_along
from functrans.surface.shaping import broadcast_to, concatenate, take
from functrans.surface.table import (
    as_array,
    axis_index,
    holds_tracer,
    implements,
    ndim_of,
    returns_arrays,
)

_INDEX_MODES = ("edge", "reflect", "symmetric", "wrap")


@implements(np.pad)
@returns_arrays
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    x = as_array(array)
    shape = shape_of(x)
    widths = _pad_widths(pad_width, len(shape))
    if mode == "constant":
        values = options.pop("constant_values", 0)
        _no_options("pad", options)
        return _pad_constant(x, widths, values)
    odd = options.pop("reflect_type", "even") == "odd"
    if mode in _INDEX_MODES:
        _no_options("pad", options)
        for axis, width in enumerate(widths):
            if any(width):
                x = _pad_by_position(x, axis, width, mode, odd)
        return x
    if mode == "linear_ramp":
        ends = np.broadcast_to(as_array(options.pop("end_values", 0)), (len(shape), 2))
        _no_options("pad", options)
        for axis, width in enumerate(widths):
            x = _pad_ramp(x, axis, width, ends[axis])
        return x
    if mode in _STATISTICS:
        lengths = options.pop("stat_length", None)
        _no_options("pad", options)
        spans = [(n, n) for n in shape] if lengths is None else _pad_widths(lengths, len(shape))
        for axis, width in enumerate(widths):
            x = _pad_statistic(x, axis, width, spans[axis], _STATISTICS[mode])
        return x
    if mode == "empty":
        return _pad_constant(x, widths, 0)
    raise errors.MissingRuleError(
        f"np.pad with mode={mode!r} has no rule for traced values, at {errors.user_location()}. Use "
        "one of NumPy's named modes, or np.concatenate."
    )


def _pad_by_position(x: Any, axis: int, width: tuple[int, int], mode: str, odd: bool) -> Any:
    """NumPy pads the positions; the entries follow, mirrored at the edge values if `odd`."""
    n = shape_of(x)[axis]
    positions = np.pad(np.arange(n), width, mode=mode)  # type: ignore[call-overload]
    padded = take(x, positions, axis)
    if not odd:
        return padded
    if max(width) > n - (mode == "reflect"):
        # Mirrored more than once: padding is linear, so NumPy pads the unit vectors.
        units = np.pad(np.eye(n, dtype=dtype_of(x)), (width, (0, 0)), mode, reflect_type="odd")  # type: ignore[call-overload]
        return np.moveaxis(np.tensordot(units, x, (1, axis)), 0, axis)
    before = width[0]
    left = 2 * slice_along(x, axis, 0, 1) - slice_along(padded, axis, 0, before)
    right = 2 * slice_along(x, axis, n - 1, n) - slice_along(padded, axis, before + n, None)
    return concatenate([left, x, right], axis)


def _pad_ramp(x: Any, axis: int, width: tuple[int, int], ends: Any) -> Any:
    """Equal steps from each edge to its end value; the end value itself is outermost."""
    n = shape_of(x)[axis]
    column = (-1,) + (1,) * (ndim_of(x) - axis - 1)
    computed = np.result_type(dtype_of(x), 1.0)
    parts = []
    for side, (edge, end) in enumerate(
        ((slice_along(x, axis, 0, 1), ends[0]), (slice_along(x, axis, n - 1, n), ends[1]))
    ):
        steps = np.arange(1, width[side] + 1, dtype=computed) / max(width[side], 1)
        steps = (steps[::-1] if side == 0 else steps).reshape(column)
        ramp = edge.astype(computed) + (end.astype(computed) - edge.astype(computed)) * steps
        parts.append((np.floor(ramp) if dtype_of(x).kind in "iu" else ramp).astype(dtype_of(x)))
    return concatenate([parts[0], x, parts[1]], axis)


_STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _pad_statistic(x: Any, axis: int, width: tuple[int, int], span: Any, statistic: Any) -> Any:
    n = shape_of(x)[axis]
    parts = []
    for side, region in enumerate((slice(0, min(span[0], n)), slice(n - min(span[1], n), n))):
        value = statistic(slice_along(x, axis, region.start, region.stop), axis=axis, keepdims=True)
        value = (np.round(value) if dtype_of(x).kind in "iu" else value).astype(dtype_of(x))
        shape = (*shape_of(x)[:axis], width[side], *shape_of(x)[axis + 1 :])
        parts.append(broadcast_to(value, shape))
    return concatenate([parts[0], x, parts[1]], axis)


def _no_options(name: str, options: dict[str, Any]) -> None:
    if options:
        raise ValueError(f"unsupported keyword arguments for np.{name}: {', '.join(options)}")


def _pad_widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            before, after = np.broadcast_to(width, (2,)).tolist()
            widths[axis_index(axis, ndim)] = (before, after)
        return widths
    pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
    return [(int(before), int(after)) for before, after in pairs]


def _pad_constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    if holds_tracer(values) or np.any(np.asarray(values) != 0):
        fills = np.broadcast_to(as_array(values), (len(widths), 2)).astype(dtype_of(x))
        for axis, width in enumerate(widths):
            parts = []
            for side in (0, 1):
                shape = (*shape_of(x)[:axis], width[side], *shape_of(x)[axis + 1 :])
                parts.append(broadcast_to(fills[axis, side], shape))
            x = concatenate([parts[0], x, parts[1]], axis)
        return x
    shape = tuple(
        n + before + after for n, (before, after) in zip(shape_of(x), widths, strict=True)
    )
    inside = tuple(
        slice(before, before + n) for n, (before, _) in zip(shape_of(x), widths, strict=True)
    )
    return indexing.scatter(x, shape=shape, template=inside)
