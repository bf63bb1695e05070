"""The gamma distribution and those derived from it, in logarithms: with small shapes, numbers underflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.ops.normal import normal_quantile
from functrans.ops.rejection import log_gamma_sample
from functrans.random.keys import Array, draw_open_unit, split
from functrans.random.parameters import (
    Shape,
    checked_key,
    common_shape,
    finished,
    float_dtype,
    real_parameter,
    require,
)


def _log_gamma(key: Array, a: Array, shape: tuple[int, ...], name: str) -> Array:
    """Logarithms of gamma numbers in float64, for a parameter that is already checked."""
    require(name, a, lambda a: ~(a < 0), "0 or more")
    return log_gamma_sample(checked_key(key), np.broadcast_to(a, shape))


def loggamma(key: Array, a: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Logarithms of gamma numbers, which are finite even where the numbers underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> bool(np.isfinite(random.loggamma(random.key(0), 1e-5)))
    True
    """
    wanted = float_dtype(dtype)
    a = real_parameter(a, "a")
    return finished(_log_gamma(key, a, common_shape(shape, a), "a"), wanted)


def gamma(key: Array, a: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Gamma numbers with shape parameter a and scale 1. For other scales, multiply.

    The derivative with respect to `a` is that of the quantile: the sample keeps its rank in the distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, random
    >>> grad(lambda a: np.mean(random.gamma(random.key(0), a, (10000,))))(3.0)  # the mean is a
    np.float64(1.00...)
    """
    wanted = float_dtype(dtype)
    a = real_parameter(a, "a")
    return finished(np.exp(_log_gamma(key, a, common_shape(shape, a), "a")), wanted)


def chisquare(key: Array, df: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Chi-square numbers with df degrees of freedom.

    Examples
    --------
    >>> from functrans import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    wanted = float_dtype(dtype)
    df = real_parameter(df, "df")
    return finished(2 * np.exp(_log_gamma(key, df / 2, common_shape(shape, df), "df")), wanted)


def beta(key: Array, a: Any, b: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Beta numbers: X / (X + Y), for X and Y gamma numbers with shapes a and b.

    Examples
    --------
    >>> from functrans import random
    >>> 0 < random.beta(random.key(0), 2.0, 3.0) < 1
    np.True_
    """
    wanted = float_dtype(dtype)
    a, b = real_parameter(a, "a"), real_parameter(b, "b")
    lengths = common_shape(shape, a, b)
    first, second = split(key)
    log_x, log_y = _log_gamma(first, a, lengths, "a"), _log_gamma(second, b, lengths, "b")
    return finished(np.exp(log_x - np.logaddexp(log_x, log_y)), wanted)


def dirichlet(key: Array, alpha: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Random probabilities: gamma numbers with shapes alpha, divided by their sum.

    `shape` is that of the array of vectors; by default it is alpha's without its last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> p = random.dirichlet(random.key(0), np.ones(3), (5,))
    >>> p.shape, bool(np.allclose(p.sum(axis=-1), 1))
    ((5, 3), True)
    """
    wanted = float_dtype(dtype)
    alpha = real_parameter(alpha, "alpha")
    if not shape_of(alpha):
        raise errors.OptionError(
            f"alpha is a scalar, at {errors.user_location()}: it must be a vector, with one "
            "entry for each probability."
        )
    lead = common_shape(shape, alpha[..., 0])
    logs = _log_gamma(key, alpha, lead + shape_of(alpha)[-1:], "alpha")
    # The largest is factored out; as a common factor it has no derivative.
    top = np.max(logs, axis=-1, keepdims=True)
    weights = np.exp(logs - top)
    return finished(weights / np.sum(weights, axis=-1, keepdims=True), wanted)


def student_t(key: Array, df: Any, shape: Shape | None = None, dtype: Any = np.float64) -> Array:
    """Numbers from Student's t distribution with df degrees of freedom.

    Examples
    --------
    >>> from functrans import random
    >>> random.student_t(random.key(0), 5.0, (2,)).shape
    (2,)
    """
    wanted = float_dtype(dtype)
    df = real_parameter(df, "df")
    require("df", df, lambda df: df > 0, "more than 0")
    lengths = common_shape(shape, df)
    first, second = split(key)
    z = normal_quantile(draw_open_unit(first, lengths, wanted))
    # t = z / sqrt(chi^2 / df), and chi^2 / 2 is a gamma number.
    log_chi = _log_gamma(second, df / 2, lengths, "df") + math.log(2)
    return finished(z * np.exp(0.5 * (np.log(df) - log_chi)), wanted)
