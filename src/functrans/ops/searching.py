"""Questions about order and bits that NumPy answers for one array at a time: no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, shape_of
from functrans.ops.families import batch_shifting


def _searchsorted_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (a, v), (a_mapped, v_mapped) = args, batched
    if not a_mapped:
        return primitive(a, v, **params)  # all lanes look in the same array
    if not size:
        return np.zeros((0, *shape_of(v)[v_mapped:]), np.intp)
    return np.stack([primitive(a[k], v[k] if v_mapped else v, **params) for k in range(size)])


searchsorted = Primitive(
    "searchsorted",
    lambda a, v, side: np.searchsorted(a, v, side=side),
    batch=_searchsorted_batch,
    shape=lambda specs, params: ArraySpec(specs[1].shape, np.intp),
)


def _constant_of_one(name: str, impl: Rule, shape: Rule) -> Primitive:
    return Primitive(name, impl, batch=batch_shifting("axis"), shape=shape)


argpartition = _constant_of_one(
    "argpartition",
    lambda x, kth, axis: np.argpartition(x, kth, axis=axis),
    lambda specs, params: ArraySpec(specs[0].shape, np.intp),
)


def _bits_spec(impl: Rule) -> Rule:
    def shape(specs: Any, params: Any) -> ArraySpec:
        return ArraySpec(shape_of(impl(np.zeros(specs[0].shape, np.uint8), **params)), np.uint8)

    return shape


def _packbits(x: Any, axis: int, bitorder: Any) -> Any:
    return np.packbits(x, axis=axis, bitorder=bitorder)


def _unpackbits(x: Any, axis: int, count: Any, bitorder: Any) -> Any:
    return np.unpackbits(x, axis=axis, count=count, bitorder=bitorder)


packbits = _constant_of_one("packbits", _packbits, _bits_spec(_packbits))
unpackbits = _constant_of_one("unpackbits", _unpackbits, _bits_spec(_unpackbits))
