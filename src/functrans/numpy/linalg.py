"""The names of `np.linalg`, for lists of traced values too; see `functrans.numpy`.

Examples
--------
>>> import functrans
>>> import functrans.numpy as np
>>> functrans.grad(lambda x: np.linalg.det([[x, 1.0], [2.0, x]]))(3.0)
np.float64(6.0)
"""

from typing import Any

import numpy as _numpy

from functrans.surface.unhooked import lookup as _lookup

__all__ = list(_numpy.linalg.__all__)


def __getattr__(name: str) -> Any:
    return _lookup(name, _numpy.linalg, globals())


def __dir__() -> list[str]:
    return sorted({*dir(_numpy.linalg), *globals()})
