"""NumPy's names: `import functrans.numpy as np` runs the same code, and more of it.

NumPy gives traced values no hook on some calls, above all np.array([traced, traced]),
np.sum([traced, traced]) and y = np.zeros(3); y[0] = traced. Here these work. Functions look at all their
arguments for traced values, lists included, and call NumPy's own if they find none. Constructors return
arrays that may be assigned traced values while a transform runs, and NumPy's own at other times. All
that is not a function is NumPy's.

The namespace follows the Python array API standard; traced values name it in `__array_namespace__`.

Examples
--------
>>> import functrans
>>> import functrans.numpy as np
>>> def rotated_sum(angle):
...     turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
...     return np.sum(turn @ np.ones(2))
>>> functrans.grad(rotated_sum)(0.0)
np.float64(0.0)
>>> functrans.grad(lambda x: np.max([x, x**2, 1.0]))(3.0)
np.float64(6.0)
"""

import sys as _sys
import typing as _typing
from typing import Any as _Any

import numpy as _numpy

from functrans.core.publishing import publish as _publish
from functrans.core.tracer import install_method as _install_method
from functrans.surface import constructors as _constructors
from functrans.surface import functional as _functional
from functrans.surface import standard as _standard
from functrans.surface.unhooked import lookup as _lookup

if _typing.TYPE_CHECKING:  # the names have NumPy's types
    from numpy import *  # noqa: F403
else:
    from functrans.numpy import fft as fft
    from functrans.numpy import linalg as linalg

__array_api_version__ = _standard.VERSIONS[-1]

_OURS = _constructors.CONSTRUCTORS | _standard.FUNCTIONS | {"vectorize": _functional.vectorize}

__all__ = sorted({*_numpy.__all__, *_OURS, *_standard.NEWER, "fft", "linalg"})


_publish(__name__, _OURS.values())


def _find(name: str) -> _Any:
    """A name that has not been asked for before."""
    if name in _OURS:
        return globals().setdefault(name, _OURS[name])
    return _lookup(name, _numpy, globals(), _standard.NEWER)


if not _typing.TYPE_CHECKING:  # where it would be the type of every misspelled name
    __version__ = _numpy.__version__
    __array_namespace_info__ = _standard.Info
    __getattr__ = _find


def __dir__() -> list[str]:
    return __all__


def _namespace(x: _Any, /, *, api_version: str | None = None) -> _Any:
    """The namespace of the standard that a traced value belongs to."""
    if api_version is not None and api_version not in _standard.VERSIONS:
        raise ValueError(
            f"version {api_version!r} of the array API standard is not supported: the versions are "
            f"{', '.join(_standard.VERSIONS)}"
        )
    return _sys.modules[__name__]


_install_method("__array_namespace__", _namespace)
