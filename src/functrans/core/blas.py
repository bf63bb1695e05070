"""The BLAS that NumPy's wheels ship: functions that NumPy has no name for."""

from __future__ import annotations

import ctypes
from functools import cache
from glob import glob
from os.path import dirname, join
from typing import Any

import numpy as np


@cache
def numpy_blas(*names: str) -> tuple[Any, ...] | None:
    """These functions of the library in NumPy's wheel, or None if it does not have them.

    They follow Fortran's conventions: all arguments are pointers, and integers have 64 bits.
    """
    for path in glob(join(dirname(np.__file__), "..", "numpy.libs", "*openblas*")):
        try:
            library = ctypes.CDLL(path)
            return tuple([getattr(library, f"scipy_{name}_64_") for name in names])
        except (OSError, AttributeError):
            continue
    return None
