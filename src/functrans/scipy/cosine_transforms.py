"""Discrete cosine and sine transforms along one axis, without normalization: one linear primitive.

With c = 2 except for the terms that a transform counts once, the matrices of the types are
    cosine I    c_n cos(π k n / (N - 1)),            c = 1 for the first and the last n
    cosine II   2 cos(π k (2n + 1) / 2N)
    cosine III  c_n cos(π (2k + 1) n / 2N),          c = 1 for the first n
    sine II     2 sin(π (k + 1) (2n + 1) / 2N)
    sine III    c_n sin(π (2k + 1) (n + 1) / 2N),    c = 1 for the last n
and those of the others are symmetric. Types II and III are transposes of each other but for c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import (
    ArraySpec,
    checked_axis,
    checked_choice,
    checked_flags,
    checked_length,
    dtype_of,
    shape_of,
)
from functrans.ops.families import batch_shifting, linear, result_spec
from functrans.scipy.loading import load

sf = load("scipy.fft")

PARTNER = {1: 1, 2: 3, 3: 2, 4: 4}


def _transform(x: Any, axis: int, kind: int, sine: bool) -> Any:
    return (sf.dst if sine else sf.dct)(x, kind, axis=axis, norm="backward", orthogonalize=False)


def ends(n: int, factor: float, first: bool, last: bool) -> Any:
    """Ones, with a factor at the first or the last place."""
    out = np.ones(n)
    if first:
        out[0] *= factor
    if last:
        out[-1] *= factor
    return out


def along(values: Any, x: Any, axis: int) -> Any:
    """x times values that belong to an axis, in the precision of x."""
    values = values.reshape((-1,) + (1,) * (len(shape_of(x)) - axis - 1))
    return x * values.astype(dtype_of(x).type(0).real.dtype)


def _back(g: Any, shape: tuple[int, ...], axis: int, kind: int, sine: bool) -> Any:
    n = shape[axis]
    other = {"axis": axis, "kind": PARTNER[kind], "sine": sine}
    if kind == 4 or (sine and kind == 1):
        return transform(g, **other)
    if kind == 1:
        once = ends(n, 0.5, True, True)
        return along(once, transform(along(1 / once, g, axis), **other), axis)
    once = ends(n, 0.5, not sine, sine)
    if kind == 2:
        return transform(along(1 / once, g, axis), **other)
    return along(once, transform(g, **other), axis)


def _spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    (spec,), axis = specs, checked_axis(params["axis"], specs[0].ndim)
    checked_choice(params["kind"], (1, 2, 3, 4))
    checked_flags(params["sine"])
    checked_length(spec.shape[axis], least=1)
    small = ArraySpec((2,) * spec.ndim, spec.dtype)
    return result_spec(_transform, [small], params, spec.shape)


transform: Primitive = linear(
    "cosine_transform",
    _transform,
    _back,
    batch=batch_shifting("axis"),
    shape=_spec,
    kind="linear algebra",
)
