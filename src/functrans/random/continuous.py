"""Continuous distributions, as functions of uniform numbers: derivatives flow to the parameters.

Everything is computed in float64 and rounded once, except `uniform`, which has to stay below its
upper end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.ops.normal import normal_cdf, normal_quantile
from functrans.ops.random_bits import random_bits
from functrans.random.keys import Array, draw_open_unit
from functrans.random.parameters import (
    Shape,
    checked_key,
    common_shape,
    finished,
    float_dtype,
    real_parameter,
    require,
    shape_argument,
)


def uniform(
    key: Array,
    shape: Shape | None = None,
    dtype: Any = np.float64,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Array:
    """Uniform numbers in [minval, maxval); 0 <= u < 1 has all bits of the dtype's mantissa.

    Without a shape, one number is drawn for each entry of the bounds.

    Examples
    --------
    >>> from functrans import random, value_and_grad
    >>> x, slope = value_and_grad(lambda high: random.uniform(random.key(0), maxval=high))(2.0)
    >>> bool(0 <= x < 2), bool(slope == x / 2)
    (True, True)
    """
    wanted = float_dtype(dtype)
    low, high = real_parameter(minval, "minval", wanted), real_parameter(maxval, "maxval", wanted)
    lengths = common_shape(shape, low, high)
    width = 64 if wanted.itemsize == 8 else 32
    mantissa = np.finfo(wanted).nmant + 1
    words = random_bits(checked_key(key), np.uint64(0), shape=lengths, width=width)
    unit = (words >> (width - mantissa)).astype(wanted) * wanted.type(2.0**-mantissa)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return unit
    require("maxval - minval", high - low, lambda span: ~(span < 0), "0 or more")
    value = low + unit * (high - low)
    # Rounding may reach the upper end, which is not part of the interval.
    return finished(np.where(value < high, value, np.nextafter(high, low)), wanted)


def normal(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Standard normal numbers. For others, compute `loc + scale * normal(key, shape)`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, random
    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    >>> grad(lambda loc: np.mean(loc + random.normal(random.key(0), (10,))))(5.0)
    np.float64(1.0)
    """
    wanted = float_dtype(dtype)
    unit = draw_open_unit(key, shape_argument(shape), wanted)
    return finished(normal_quantile(unit), wanted)


def truncated_normal(
    key: Array, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = np.float64
) -> Array:
    """Standard normal numbers between bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (1000,))
    >>> bool(np.all((x > -1) & (x < 2)))
    True
    """
    wanted = float_dtype(dtype)
    low, high = real_parameter(lower, "lower"), real_parameter(upper, "upper")
    lengths = common_shape(shape, low, high)
    require("upper - lower", high - low, lambda span: span > 0, "more than 0")
    unit = draw_open_unit(key, lengths, wanted)
    # In the upper tail, probabilities round to 1: use its mirror image.
    mirrored = low > 0
    below = normal_cdf(np.where(mirrored, -high, low))
    above = normal_cdf(np.where(mirrored, -low, high))
    x = normal_quantile(below + unit * (above - below))
    x = np.where(mirrored, -x, x)
    low, high = low.astype(wanted), high.astype(wanted)
    inside = np.clip(finished(x, wanted), np.nextafter(low, high), np.nextafter(high, low))
    return finished(inside, wanted)


def exponential(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Exponential numbers with mean 1. For others, multiply by the mean.

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.exponential(random.key(0)) > 0)
    True
    """
    wanted = float_dtype(dtype)
    return finished(-np.log1p(-draw_open_unit(key, shape_argument(shape), wanted)), wanted)


def laplace(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Laplace numbers with location 0 and scale 1, exponential on both sides.

    Examples
    --------
    >>> from functrans import random
    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    wanted = float_dtype(dtype)
    centered = 2 * draw_open_unit(key, shape_argument(shape), wanted) - 1
    return finished(np.sign(centered) * np.log1p(-np.abs(centered)), wanted)


def logistic(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Logistic numbers with location 0 and scale 1.

    Examples
    --------
    >>> from functrans import random
    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    wanted = float_dtype(dtype)
    unit = draw_open_unit(key, shape_argument(shape), wanted)
    return finished(np.log(unit) - np.log1p(-unit), wanted)


def gumbel(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Gumbel numbers with location 0 and scale 1: -log of exponential ones.

    Examples
    --------
    >>> from functrans import random
    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    wanted = float_dtype(dtype)
    return finished(-np.log(-np.log(draw_open_unit(key, shape_argument(shape), wanted))), wanted)


def cauchy(key: Array, shape: Shape = (), dtype: Any = np.float64) -> Array:
    """Cauchy numbers with location 0 and scale 1.

    Examples
    --------
    >>> from functrans import random
    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    wanted = float_dtype(dtype)
    unit = draw_open_unit(key, shape_argument(shape), wanted)
    return finished(np.tan(math.pi * (unit - 0.5)), wanted)


def lognormal(
    key: Array, sigma: Any = 1.0, shape: Shape | None = None, dtype: Any = np.float64
) -> Array:
    """Numbers whose logarithm is normal, with standard deviation sigma.

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.lognormal(random.key(0), 0.5) > 0)
    True
    """
    wanted = float_dtype(dtype)
    deviation = real_parameter(sigma, "sigma")
    unit = draw_open_unit(key, common_shape(shape, deviation), wanted)
    return finished(np.exp(deviation * normal_quantile(unit)), wanted)


def pareto(key: Array, b: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Pareto numbers, from 1 upward, with density b / x^(b + 1).

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.pareto(random.key(0), 3.0) > 1)
    True
    """
    wanted = float_dtype(dtype)
    power = real_parameter(b, "b")
    require("b", power, lambda b: b > 0, "more than 0")
    unit = draw_open_unit(key, common_shape(shape, power), wanted)
    return finished(np.exp(-np.log1p(-unit) / power), wanted)


def rayleigh(key: Array, scale: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Rayleigh numbers: lengths of pairs of normal numbers with standard deviation `scale`.

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.rayleigh(random.key(0), 2.0) > 0)
    True
    """
    wanted = float_dtype(dtype)
    factor = real_parameter(scale, "scale")
    unit = draw_open_unit(key, common_shape(shape, factor), wanted)
    return finished(factor * np.sqrt(-2 * np.log1p(-unit)), wanted)


def weibull_min(
    key: Array, scale: Any, concentration: Any, shape: Shape | None = None, dtype: Any = np.float64
) -> Array:
    """Weibull numbers: scale * E ** (1 / concentration) with exponential E.

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.weibull_min(random.key(0), 1.0, 2.0) > 0)
    True
    """
    wanted = float_dtype(dtype)
    factor, power = real_parameter(scale, "scale"), real_parameter(concentration, "concentration")
    require("concentration", power, lambda c: c > 0, "more than 0")
    unit = draw_open_unit(key, common_shape(shape, factor, power), wanted)
    return finished(factor * (-np.log1p(-unit)) ** (1 / power), wanted)


def multivariate_normal(
    key: Array, mean: Any, cov: Any, shape: Shape | None = None, dtype: Any = np.float64
) -> Array:
    """Normal vectors with a mean and a covariance matrix, using its Cholesky factor.

    `shape` is that of the array of vectors; by default it follows from mean and cov.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> cov = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> random.multivariate_normal(random.key(0), np.zeros(2), cov, (100,)).shape
    (100, 2)
    """
    wanted = float_dtype(dtype)
    center, matrix = real_parameter(mean, "mean"), real_parameter(cov, "cov")
    length = shape_of(center)[-1:]
    if not length or shape_of(matrix)[-2:] != length * 2:
        raise errors.OptionError(
            f"a mean of shape {shape_of(center)} does not match a covariance of shape "
            f"{shape_of(matrix)}, at {errors.user_location()}: they must be (..., n) and (..., n, n)."
        )
    lead = common_shape(shape, center[..., 0], matrix[..., 0, 0])
    unit = normal_quantile(draw_open_unit(key, lead + length, wanted))
    moved = (np.linalg.cholesky(matrix) @ unit[..., None])[..., 0]
    return finished(center + moved, wanted)
