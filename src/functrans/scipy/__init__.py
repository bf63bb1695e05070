"""SciPy on traced values.

The ufuncs of `scipy.special` do not need this package: import them from SciPy, and `grad(erf)` works. This
package has the functions for which SciPy has no hook, with SciPy's names and arguments, in modules that are
loaded on first use: fft, integrate, interpolate, linalg, ndimage, optimize, signal, spatial, special and
stats.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functrans.scipy import fft as fft
    from functrans.scipy import integrate as integrate
    from functrans.scipy import interpolate as interpolate
    from functrans.scipy import linalg as linalg
    from functrans.scipy import ndimage as ndimage
    from functrans.scipy import optimize as optimize
    from functrans.scipy import signal as signal
    from functrans.scipy import spatial as spatial
    from functrans.scipy import special as special
    from functrans.scipy import stats as stats

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "spatial",
    "special",
    "stats",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"functrans.scipy.{name}")
    raise AttributeError(f"module 'functrans.scipy' has no attribute {name!r}")
