"""The names of `np.linalg`, for lists of traced values too; see `functrans.numpy`.

Examples
--------
>>> import functrans
>>> import functrans.numpy as np
>>> functrans.grad(lambda x: np.linalg.det([[x, 1.0], [2.0, x]]))(3.0)
np.float64(6.0)
"""

import typing as _typing
from functools import partial as _partial

import numpy as _numpy

from functrans.surface.unhooked import lookup as _lookup

__all__ = list(_numpy.linalg.__all__)


if _typing.TYPE_CHECKING:  # the names have NumPy's types
    from numpy.linalg import *  # noqa: F403
else:
    __getattr__ = _partial(_lookup, numpy=_numpy.linalg, namespace=globals())


def __dir__() -> list[str]:
    return __all__
