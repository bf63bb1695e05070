"""Sorting. Only the order is a primitive; the values are indexed with it, which has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, checked_axis, checked_choice
from functrans.ops.families import batch_shifting

_KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def _argsort_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (spec,) = specs
    checked_axis(params["axis"], spec.ndim)
    checked_choice(params["kind"], _KINDS)
    return ArraySpec(spec.shape, np.intp)


argsort = Primitive(
    "argsort",
    lambda x, axis, kind: np.argsort(x, axis=axis, kind=kind),
    batch=batch_shifting("axis"),
    shape=_argsort_spec,
    kind="shape",
)
