"""Orderings. Only the order is a primitive: sorted values are taken by it, which differentiates."""

from __future__ import annotations

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec
from functrans.ops.families import batch_shifting

argsort = Primitive(
    "argsort",
    lambda x, axis, kind: np.argsort(x, axis=axis, kind=kind),
    batch=batch_shifting("axis"),
    shape=lambda specs, params: ArraySpec(specs[0].shape, np.intp),
)
