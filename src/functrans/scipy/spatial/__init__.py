"""scipy.spatial for traced values: distances between vectors, and rotations."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from functrans.scipy.loading import load

if TYPE_CHECKING:
    from functrans.scipy.spatial import distance as distance
    from functrans.scipy.spatial import transform as transform

load("scipy.spatial")

__all__ = ["distance", "transform"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"functrans.scipy.spatial.{name}")
    raise AttributeError(f"module 'functrans.scipy.spatial' has no attribute {name!r}")
