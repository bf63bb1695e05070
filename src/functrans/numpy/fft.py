"""The names of `np.fft`, for lists of traced values too; see `functrans.numpy`.

Examples
--------
>>> import functrans
>>> import functrans.numpy as np
>>> functrans.grad(lambda x: np.abs(np.fft.fft([x, 1.0])[0]))(3.0)
np.float64(1.0)
"""

import typing as _typing
from functools import partial as _partial

import numpy as _numpy

from functrans.core.publishing import publish as _publish
from functrans.surface import standard as _standard
from functrans.surface.unhooked import lookup as _lookup

__all__ = list(_numpy.fft.__all__)

_publish(__name__, [_standard.fftfreq, _standard.rfftfreq])


if _typing.TYPE_CHECKING:  # the names have NumPy's types
    from numpy.fft import *  # noqa: F403
else:
    fftfreq, rfftfreq = _standard.fftfreq, _standard.rfftfreq
    __getattr__ = _partial(_lookup, numpy=_numpy.fft, namespace=globals())


def __dir__() -> list[str]:
    return __all__
