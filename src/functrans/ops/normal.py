"""The normal distribution's cumulative distribution function and its inverse, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.ops.families import elementwise

_BLOCK = 16384  # elements processed at a time, so that intermediate results stay in the cache
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_erfc = np.frompyfunc(math.erfc, 1, 1)

# Rational approximations of the inverse, highest power first, with a relative error of about 1e-16.
# Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
_CENTER = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4)
    + (4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3)
    + (1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4)
    + (2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2)
    + (4.2313330701600911252e1, 1.0),
)
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1)
    + (1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0)
    + (4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2)
    + (1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0)
    + (2.05319162663775882187e0, 1.0),
)
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3)
    + (2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0)
    + (5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5)
    + (7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1)
    + (5.99832206555887937690e-1, 1.0),
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    total = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total


def _ratio(coefficients: Any, x: Any) -> Any:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def _quantile_of_block(p: Any) -> Any:
    centered = p - 0.5
    out = _ratio(_CENTER, 0.180625 - centered * centered)
    out *= centered
    (outside,) = np.nonzero(np.abs(centered) > 0.425)
    if len(outside):
        below = p[outside]
        upper = below > 0.5
        distance = np.sqrt(-np.log(np.where(upper, 1 - below, below)))
        tail = _ratio(_TAIL, distance - 1.6)
        (far,) = np.nonzero(distance > 5)
        if len(far):
            tail[far] = _ratio(_FAR_TAIL, distance[far] - 5)
            tail[distance == np.inf] = np.inf
        out[outside] = np.where(upper, tail, -tail)
    return out


def _quantile(p: Any) -> Any:
    flat = np.asarray(p, np.float64).reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, len(flat), _BLOCK):
            out[start : start + _BLOCK] = _quantile_of_block(flat[start : start + _BLOCK])
    return out.reshape(np.shape(p))[()]


def _cdf(x: Any) -> Any:
    return np.asarray(0.5 * _erfc(np.asarray(x, np.float64) / -math.sqrt(2)), np.float64)[()]


normal_cdf = elementwise(
    None, lambda x: np.exp(-0.5 * x * x) / _ROOT_TWO_PI, impl=_cdf, name="normal_cdf"
)
# The derivative of the inverse is 1 over the derivative of the function, at the result.
normal_quantile = elementwise(
    None, lambda out: np.exp(0.5 * out * out) * _ROOT_TWO_PI, impl=_quantile, name="normal_quantile"
)
