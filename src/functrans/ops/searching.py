"""Searching, partitioning and packing bits, which have no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, checked_axis, checked_choice, shape_of
from functrans.ops.families import batch_shifting


def _searchsorted_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (a, v), (a_mapped, v_mapped) = args, batched
    if not a_mapped:
        return primitive(a, v, **params)  # all lanes look in the same array
    if not size:
        return np.zeros((0, *shape_of(v)[v_mapped:]), np.intp)
    return np.stack([primitive(a[k], v[k] if v_mapped else v, **params) for k in range(size)])


def _searchsorted_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    a, v = specs
    checked_choice(params["side"], ("left", "right"))
    if a.ndim != 1:
        raise ValueError("the sorted array must have one axis")
    return ArraySpec(v.shape, np.intp)


searchsorted = Primitive(
    "searchsorted",
    lambda a, v, side: np.searchsorted(a, v, side=side),
    batch=_searchsorted_batch,
    shape=_searchsorted_spec,
    kind="shape",
)


def _constant_of_one(name: str, impl: Rule, shape: Rule) -> Primitive:
    return Primitive(name, impl, batch=batch_shifting("axis"), shape=shape, kind="shape")


def _argpartition_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (spec,), kth = specs, params["kth"]
    length = spec.shape[checked_axis(params["axis"], spec.ndim)]
    if np.size(kth) == 0:
        raise ValueError("partition needs at least one index")
    for k in kth if isinstance(kth, (tuple, list)) else np.ravel(kth).tolist():
        if type(k) is not int or not -length <= k < length:
            raise ValueError(f"kth(={k!r}) out of bounds ({length})")
    return ArraySpec(spec.shape, np.intp)


argpartition = _constant_of_one(
    "argpartition",
    lambda x, kth, axis: np.argpartition(x, kth, axis=axis),
    _argpartition_spec,
)


def _bits_spec(kinds: str, length: Callable[[int, dict[str, Any]], int]) -> Rule:
    """The shape rule, from the length of the result as a function of the given one."""

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
        (spec,) = specs
        axis = checked_axis(params["axis"], spec.ndim)
        checked_choice(params["bitorder"], ("big", "little"))
        if spec.dtype.kind not in kinds or (kinds == "u" and spec.dtype != np.uint8):
            raise TypeError(f"bits of dtype {spec.dtype} cannot be packed or unpacked")
        n = length(spec.shape[axis], params)
        return ArraySpec((*spec.shape[:axis], n, *spec.shape[axis + 1 :]), np.uint8)

    return shape


def _unpacked(n: int, params: dict[str, Any]) -> int:
    count = params["count"]
    if count is None:
        return 8 * n
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool):
        raise TypeError("the number of bits must be an integer")
    return int(count) if count >= 0 else 8 * n + int(count)


def _packbits(x: Any, axis: int, bitorder: Any) -> Any:
    return np.packbits(x, axis=axis, bitorder=bitorder)


def _unpackbits(x: Any, axis: int, count: Any, bitorder: Any) -> Any:
    return np.unpackbits(x, axis=axis, count=count, bitorder=bitorder)


packbits = _constant_of_one(
    "packbits", _packbits, _bits_spec("biu", lambda n, params: (n + 7) // 8)
)
unpackbits = _constant_of_one("unpackbits", _unpackbits, _bits_spec("u", _unpacked))
