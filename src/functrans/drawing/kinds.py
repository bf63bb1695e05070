"""What kind of operation a primitive is, by the room that it lives in."""

from __future__ import annotations

import sys
from typing import Any

from functrans.core.primitive import Collective, Elementwise, HigherOrder

# The rooms of `functrans.ops`; one that others import from comes before them.
_ROOMS = {
    "indexing": "shape",
    "structure": "shape",
    "contraction": "linear algebra",
    "reduction": "reduction",
    "running": "reduction",
    "collective": "reduction",
    "access": "shape",
    "searching": "shape",
    "sorting": "shape",
    "convolution": "linear algebra",
    "determinant": "linear algebra",
    "factorization": "linear algebra",
    "fourier": "linear algebra",
    "spectral": "linear algebra",
}


def kind_of(primitive: Any) -> str:
    """One of the kinds that have a color."""
    if isinstance(primitive, Elementwise):
        return "elementwise"
    if isinstance(primitive, HigherOrder):
        return "control flow"
    if isinstance(primitive, Collective):
        return "reduction"
    for room, kind in _ROOMS.items():
        module = sys.modules.get(f"functrans.ops.{room}")
        # The module that defines a primitive has a name for it; others may have imported it.
        if module is not None and any(value is primitive for value in vars(module).values()):
            return kind
    matrices = sys.modules.get("functrans.scipy.matrices")
    if matrices is not None and any(value is primitive for value in vars(matrices).values()):
        return "linear algebra"
    return "elementwise" if primitive.broadcasts else "operation"
