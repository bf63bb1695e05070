"""scipy.ndimage for traced values: filters of images, and images between their points.

What is not traced goes to SciPy.
"""

from __future__ import annotations

from functrans.core.publishing import publish as _publish
from functrans.scipy.filtering import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    maximum_filter,
    median_filter,
    minimum_filter,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from functrans.scipy.resampling import affine_transform, map_coordinates, shift, zoom

__all__ = [
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "laplace",
    "map_coordinates",
    "maximum_filter",
    "median_filter",
    "minimum_filter",
    "prewitt",
    "shift",
    "sobel",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])
