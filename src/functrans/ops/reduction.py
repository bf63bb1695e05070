"""Reductions along axes, and running sums and products.

Axes are non-negative here: `axis` is a tuple for reductions and an int for running ones. The NumPy
surface normalizes the user's axes.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, checked_axes, checked_axis, checked_flags, dtype_of
from functrans.core.summation import FEW, WIDER, add_up
from functrans.ops.families import batch_shifting, linear, result_spec

_shift_axis = batch_shifting("axis")


def keep_dims(value: Any, shape: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    """Give a reduced value the axes of length 1 that keepdims=True would have left."""
    kept = tuple(1 if a in axis else n for a, n in enumerate(shape))
    return np.reshape(value, kept)


def _reduced_spec(impl: Rule) -> Rule:
    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
        (spec,) = specs
        if params.keys() != {"axis", "keepdims"}:
            raise TypeError("a reduction needs the parameters axis and keepdims")
        axis, keepdims = checked_axes(params["axis"], spec.ndim), params["keepdims"]
        checked_flags(keepdims)
        reduced = tuple(
            1 if a in axis else n for a, n in enumerate(spec.shape) if keepdims or a not in axis
        )
        # Not every reduction of an empty array has a result.
        small = ArraySpec(tuple([builtins.min(n, 1) for n in spec.shape]), spec.dtype)
        return result_spec(impl, [small], params, reduced)  # type: ignore[no-any-return]

    return shape


def reduction(name: str, impl: Rule, weight: Rule | None) -> Primitive:
    """A reduction from `weight(out, x, axis)`: the derivative of `out` with respect to each element of x.

    `out` has kept dimensions, so that it broadcasts against x. A reduction without a weight has no
    derivative.
    """
    primitive = Primitive(
        name,
        impl,
        batch=_shift_axis,
        shape=_reduced_spec(impl),
        kind="reduction",
        views=False,
    )
    if weight is None:
        return primitive

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        (x,), axis = args, params["axis"]
        weights = weight(keep_dims(out, x.shape, axis), x, axis)
        return sum(weights * tangents[0], axis=axis, keepdims=params["keepdims"])

    def pull(g: Any, saved: Any) -> Any:
        out, x, axis = saved
        return keep_dims(g, x.shape, axis) * weight(keep_dims(out, x.shape, axis), x, axis)

    primitive.jvp = jvp
    primitive.vjp = lambda mask, out, args, params: (pull, (out, args[0], params["axis"]))
    return primitive


_SMALL = 4096  # up to this size, filling an array is faster than making a view


def _spread(g: Any, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Any:
    if type(g) is np.float64:  # the cotangent of a full sum: one number, broadcast
        if math.prod(shape) > _SMALL:
            return np.ndarray(shape, g.dtype, g.tobytes(), 0, (0,) * len(shape))
        filled = np.empty(shape)
        filled.fill(g)
        return filled
    return np.broadcast_to(g if keepdims else keep_dims(g, shape, axis), shape)


sum = linear(
    "sum",
    add_up,
    _spread,
    batch=_shift_axis,
    shape=_reduced_spec(add_up),
    kind="reduction",
    views=False,
)


def _count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    return math.prod([shape[a] for a in axis])


def _mean(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if x.dtype.kind not in "fc":
        return np.mean(x, axis=axis, keepdims=keepdims)
    if x.dtype.itemsize == 2:  # the sum may overflow in half precision
        return _mean(x.astype(np.float32), axis, keepdims).astype(np.float16)
    count = x.size if len(axis) == x.ndim else _count(x.shape, axis)
    return add_up(x, axis, keepdims) / count


_HALF_INTEGERS = 2048  # half precision represents all integers up to this one


def _spread_evenly(g: Any, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Any:
    count = math.prod(shape) if len(axis) == len(shape) else _count(shape, axis)
    if count > _HALF_INTEGERS and dtype_of(g) == np.float16:  # it cannot represent the count
        return _spread((g.astype(np.float32) / count).astype(g.dtype), shape, axis, keepdims)
    return _spread(g / count, shape, axis, keepdims)


mean = linear(
    "mean",
    _mean,
    _spread_evenly,
    batch=_shift_axis,
    shape=_reduced_spec(_mean),
    kind="reduction",
    views=False,
)


def evenly(ties: Any, axis: tuple[int, ...], dtype: Any) -> Any:
    """One, divided evenly among the elements that are True."""
    return ties / ties.sum(axis=axis, keepdims=True).astype(dtype)


def _tied(out: Any, x: Any, axis: tuple[int, ...]) -> Any:
    """Elements equal to the extreme value share its derivative; nan counts as extreme wherever it occurs."""
    return evenly((x == out) | (x != x), axis, x.dtype)


def _quotients(x: Any, axis: tuple[int, ...]) -> Any:
    """The product of all divided by each, or None if that is not the product of the others.

    It is not with zeros, infinities or nan, nor if a product left the range of normal numbers on the way,
    which the processor reports.
    """
    try:
        with np.errstate(divide="raise", over="raise", under="raise", invalid="raise"):
            product = np.multiply.reduce(x, axis, keepdims=True)
            if (product == product).all():
                return product / x
    except FloatingPointError:
        pass
    return None


def _product_of_others(out: Any, x: Any, axis: tuple[int, ...]) -> Any:
    """prod_{j != i} x_j, correct even for zeros: the product before i times the product after i."""
    if type(x) is np.ndarray and x.dtype.kind == "f":
        quotients = _quotients(x, axis)
        if quotients is not None:
            return quotients
    rest = tuple(a for a in range(x.ndim) if a not in axis)
    lined_up = np.transpose(x, rest + axis)
    count = math.prod(x.shape[a] for a in axis)
    flat = lined_up.reshape(tuple(x.shape[a] for a in rest) + (count,))
    ones = np.ones((*flat.shape[:-1], builtins.min(count, 1)), x.dtype)
    left = np.cumprod(np.concatenate([ones, flat[..., :-1]], axis=-1), axis=-1)
    mirrored = np.concatenate([ones, flat[..., :0:-1]], axis=-1)
    right = np.cumprod(mirrored, axis=-1)[..., ::-1]
    inverse = tuple(int(a) for a in np.argsort(rest + axis))
    return np.transpose((left * right).reshape(lined_up.shape), inverse)


max = reduction("max", np.max, _tied)
min = reduction("min", np.min, _tied)
prod = reduction("prod", np.prod, _product_of_others)
any = reduction("any", np.any, None)
all = reduction("all", np.all, None)


def _index_spec(impl: Rule) -> Rule:
    return lambda specs, params: _reduced_spec(impl)(specs, {**params, "axis": (params["axis"],)})


def _index_along(function: Any) -> Rule:
    def impl(x: Any, axis: Any, keepdims: bool) -> Any:
        # The shape rule passes a tuple, as for the other reductions.
        return function(x, axis=axis[0] if isinstance(axis, tuple) else axis, keepdims=keepdims)

    return impl


_argmax, _argmin = _index_along(np.argmax), _index_along(np.argmin)
argmax = Primitive(
    "argmax", _argmax, batch=_shift_axis, shape=_index_spec(_argmax), kind="reduction", views=False
)
argmin = Primitive(
    "argmin", _argmin, batch=_shift_axis, shape=_index_spec(_argmin), kind="reduction", views=False
)


# Running sums and products keep the shape.


def _running_spec(impl: Rule) -> Rule:
    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
        if params.keys() != {"axis"}:
            raise TypeError("a running sum or product needs the parameter axis")
        (spec,) = specs
        checked_axis(params["axis"], spec.ndim)
        small = ArraySpec((1,) * spec.ndim, spec.dtype)
        return result_spec(impl, [small], params, spec.shape)  # type: ignore[no-any-return]

    return shape


def _cumsum_back(g: Any, shape: tuple[int, ...], axis: int) -> Any:
    return np.flip(cumsum(np.flip(g, axis), axis=axis), axis)


def _cumsum(x: Any, axis: int) -> Any:
    wider = WIDER.get(x.dtype)
    if wider is None or (x.shape[axis] <= FEW and x.dtype != np.float16):
        return np.cumsum(x, axis=axis)
    return np.cumsum(x, axis=axis, dtype=wider).astype(x.dtype)  # it would lose digits


cumsum = linear(
    "cumsum",
    _cumsum,
    _cumsum_back,
    batch=_shift_axis,
    shape=_running_spec(_cumsum),
    kind="reduction",
    views=False,
)


def slice_along(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def shifted(x: Any, axis: int, by: int, fill: float) -> Any:
    """x shifted by `by` along an axis; vacated positions get the value `fill`."""
    shape = tuple(builtins.min(by, n) if a == axis else n for a, n in enumerate(x.shape))
    filler = np.full(shape, fill, x.dtype)
    return np.concatenate(
        [filler, slice_along(x, axis, None, builtins.max(x.shape[axis] - by, 0))], axis=axis
    )


def recurrence(factor: Any, term: Any, axis: int) -> Any:
    """s_k = factor_k s_{k-1} + term_k by doubling: log n steps, no division, derivatives of all orders."""
    by = 1
    while by < factor.shape[axis]:
        term = term + factor * shifted(term, axis, by, 0)
        factor = factor * shifted(factor, axis, by, 1)
        by *= 2
    return term


def _cumprod_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    # p_k = x_k p_{k-1}, so dp_k = x_k dp_{k-1} + dx_k p_{k-1}
    (x,), (tangent,), axis = args, tangents, params["axis"]
    return recurrence(x, tangent * shifted(out, axis, 1, 1), axis)


def _cumprod_pull(g: Any, saved: Any) -> Any:
    # The transpose: s_k = x_{k+1} s_{k+1} + g_k run from the end, and s_k p_{k-1} flows to x_k.
    out, x, axis = saved
    factor = shifted(np.flip(x, axis), axis, 1, 0)
    return np.flip(recurrence(factor, np.flip(g, axis), axis), axis) * shifted(out, axis, 1, 1)


cumprod = Primitive(
    "cumprod",
    np.cumprod,
    batch=_shift_axis,
    shape=_running_spec(np.cumprod),
    jvp=_cumprod_jvp,
    vjp=lambda mask, out, args, params: (_cumprod_pull, (out, args[0], params["axis"])),
    kind="reduction",
    views=False,
)
