"""The names of `np.fft`, for lists of traced values too; see `functrans.numpy`.

Examples
--------
>>> import functrans
>>> import functrans.numpy as np
>>> functrans.grad(lambda x: np.abs(np.fft.fft([x, 1.0])[0]))(3.0)
np.float64(1.0)
"""

from typing import Any

import numpy as _numpy

from functrans.surface.standard import fftfreq as fftfreq
from functrans.surface.standard import rfftfreq as rfftfreq
from functrans.surface.unhooked import lookup as _lookup

__all__ = list(_numpy.fft.__all__)


def __getattr__(name: str) -> Any:
    return _lookup(name, _numpy.fft, globals())


def __dir__() -> list[str]:
    return sorted({*dir(_numpy.fft), *globals()})
