"""The functions of scipy.special that convert their arguments to arrays, for traced values.

The ufuncs of scipy.special already work on traced values; they can be imported from here as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.publishing import publish
from functrans.core.shapes import dtype_of
from functrans.scipy.harmonics import assoc_legendre_p, legendre_p, sph_harm_y, sph_legendre_p
from functrans.scipy.loading import load
from functrans.scipy.solutions import holds_traced
from functrans.surface.table import as_array
from functrans.transforms.derivatives import stop_gradient

sc = load("scipy.special")

__all__ = [
    "assoc_legendre_p",
    "comb",
    "diric",
    "factorial",
    "legendre_p",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "perm",
    "polygamma",
    "softmax",
    "sph_harm_y",
    "sph_legendre_p",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
]


def __dir__() -> list[str]:
    return __all__


# What works on traced values as it is: the ufuncs, and these functions, which only call them.
_HOOKED = frozenset({"lambertw", "sinc", "softplus", "zeta"})


def __getattr__(name: str) -> Any:
    value = getattr(sc, name, None)
    if isinstance(value, np.ufunc) or (value is not None and name in _HOOKED):
        return value
    raise AttributeError(f"module 'functrans.scipy.special' has no attribute {name!r}")


def _largest(x: Any, axis: Any) -> Any:
    """The largest real part, where finite, held constant: results do not depend on it."""
    top = np.max(np.real(stop_gradient(x)), axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0)


def _floating(x: Any) -> Any:
    x = as_array(x)
    return x if dtype_of(x).kind in "fc" else x.astype(np.float64)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log Σ b exp(a) along axes, without overflow.

    Parameters
    ----------
    a
        The exponents.
    axis
        The axes to sum over; None for all.
    b
        Factors, which broadcast against `a` and may be negative or zero.
    keepdims
        Whether to keep the axes, with length 1.
    return_sign
        Whether to return (log|Σ|, sign) instead.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.special import logsumexp
    >>> grad(logsumexp)(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    x = _floating(a)
    if b is None:
        top = _largest(x, axis)
        weights = np.exp(x - top)
    else:
        x, factor = np.broadcast_arrays(x, as_array(b))
        # Entries without weight do not set the scale; clipped below overflow, they count in d/db.
        top = _largest(np.where(factor == 0, -np.inf, x), axis)
        shifted = x - top
        limit = 700.0 if dtype_of(x).kind == "f" else -np.inf
        weights = factor * np.exp(np.where(factor == 0, np.fmin(shifted, limit), shifted))
    total = np.sum(weights, axis=axis, keepdims=True)
    sign = None
    if return_sign:
        sign = np.sign(total)
        total = np.abs(total)
    out = np.log(total) + top
    if not keepdims:
        out = np.squeeze(out, axis=axis)
        sign = None if sign is None else np.squeeze(sign, axis=axis)
    return (out, sign) if return_sign else out


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / Σ exp(x) along axes; over all entries if `axis` is None.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.special import softmax
    >>> jacfwd(softmax)(np.zeros(2))
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    x = _floating(x)
    weights = np.exp(x - _largest(x, axis))
    return weights / np.sum(weights, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax`, without underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.special import log_softmax
    >>> grad(lambda x: log_softmax(x)[0])(np.array([0.0, -1000.0]))
    array([0., 0.])
    """
    x = _floating(x)
    shifted = x - _largest(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of the digamma function, for plain integers n.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import polygamma
    >>> float(grad(lambda x: polygamma(1, x))(1.0)) == float(polygamma(2, 1.0))
    True
    """
    order, x = np.asarray(n), as_array(x)
    factor = (-1.0) ** (order + 1) * sc.gamma(order + 1.0)
    # (-1)^(n+1) n! ζ(n+1, x); n = 0, the pole of the zeta function, is handled separately.
    high = factor * sc.zeta(np.where(order == 0, 2, order + 1.0), x)
    return np.where(order == 0, sc.psi(x), high)[()]


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension d.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import multigammaln
    >>> round(float(grad(lambda a: multigammaln(a, 3))(2.5)), 6)
    1.162431
    """
    a = as_array(a)
    total: Any = d * (d - 1) * 0.25 * np.log(np.pi)
    for j in range(d):
        total = total + sc.gammaln(a - j / 2)
    return total


def _spherical(kind: str, reflection: int, description: str, at_one: str) -> Any:
    values = getattr(sc._ufuncs, f"_spherical_{kind}")
    slopes = getattr(sc._ufuncs, f"_spherical_{kind}_d")

    def function(n: Any, z: Any, derivative: bool = False) -> Any:
        order, z = np.asarray(n, dtype=np.dtype("long")), as_array(z)
        ufunc = slopes if derivative else values
        if dtype_of(z).kind == "c":
            return ufunc(order, z)
        # SciPy's ufuncs are for z >= 0. Three kinds have f(-z) = ±(-1)^n f(z), and the slope has the
        # other sign; the fourth is real on the negative axis by its complex continuation.
        positive = ufunc(order, np.abs(z))
        if reflection:
            return np.where(z < 0, reflection * (-1) ** (order + bool(derivative)), 1) * positive
        return np.where(z < 0, np.real(ufunc(order, np.where(z < 0, z, 1) + 0j)), positive)

    function.__name__ = function.__qualname__ = f"spherical_{kind}"
    function.__doc__ = f"""{description}, of integer order n, or its derivative; as in SciPy.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import spherical_{kind}
    >>> slope = grad(lambda z: spherical_{kind}(0, z))(1.0)
    >>> round(float(slope), 6), round(float(spherical_{kind}(0, 1.0, derivative=True)), 6)
    ({at_one}, {at_one})
    """
    return function


spherical_jn = _spherical("jn", 1, "The spherical Bessel function of the first kind", "-0.301169")
spherical_yn = _spherical("yn", -1, "The spherical Bessel function of the second kind", "1.381773")
spherical_in = _spherical(
    "in", 1, "The modified spherical Bessel function of the first kind", "0.367879"
)
spherical_kn = _spherical(
    "kn", 0, "The modified spherical Bessel function of the second kind", "-1.155727"
)


def _refuse_exact(name: str, exact: Any) -> None:
    if exact:
        raise errors.OptionError(
            f"{name}: exact=True computes with integers, which have no derivative, at "
            f"{errors.user_location()}. Leave it out."
        )


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of ways to choose k of N, as a function of real numbers; SciPy's `comb`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import comb
    >>> round(float(grad(lambda n: comb(n, 2))(4.0)), 6)  # d/dn n (n - 1) / 2
    3.5
    """
    if not holds_traced(N, k):
        return sc.comb(N, k, exact=exact, repetition=repetition)
    _refuse_exact("comb", exact)
    N, k = as_array(N), as_array(k)
    if repetition:
        N = N + k - 1
    inside = (k <= N) & (N >= 0) & (k >= 0)
    # Outside, the arguments are replaced, so that no derivative there is nan.
    ways = sc.binom(np.where(inside, N, 1.0), np.where(inside, k, 1.0))
    return np.where(inside, ways, 0.0)[()]


def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """The number of sequences of k of N, as a function of real numbers; SciPy's `perm`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import perm
    >>> round(float(grad(lambda n: perm(n, 2))(4.0)), 6)  # d/dn n (n - 1)
    7.0
    """
    if not holds_traced(N, k):
        return sc.perm(N, k, exact)
    _refuse_exact("perm", exact)
    N, k = as_array(N), as_array(k)
    inside = (k <= N) & (N >= 0) & (k >= 0)
    N, k = np.where(inside, N, 1.0), np.where(inside, k, 1.0)
    return np.where(inside, sc.poch(N - k + 1, k), 0.0)[()]


def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """n!, as the gamma function of n + 1; SciPy's `factorial`.

    It is 0 for negative n, unless `extend` is "complex".

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import factorial
    >>> round(float(grad(factorial)(3.0)), 6)
    7.536706
    """
    if not holds_traced(n):
        return sc.factorial(n, exact, **({} if extend == "zero" else {"extend": extend}))
    _refuse_exact("factorial", exact)
    n = _floating(n)
    if extend == "complex":
        return sc.gamma(n + 1)
    return np.where(n < 0, 0.0, sc.gamma(np.where(n < 0, 0.0, n) + 1))[()]


def diric(x: Any, n: Any) -> Any:
    """The periodic sinc function sin(n x / 2) / (n sin(x / 2)), for integers n; SciPy's `diric`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import diric
    >>> round(float(grad(lambda x: diric(x, 3))(0.5)), 6)  # of (1 + 2 cos x) / 3
    -0.319617
    """
    if not holds_traced(x, n):
        return sc.diric(x, n)
    if holds_traced(n):
        raise errors.MissingRuleError(
            f"scipy.special.diric has no rule for a traced n, at {errors.user_location()}. Pass a "
            "plain integer."
        )
    x, numbers = _floating(x), np.asarray(n)
    out: Any = 0.0
    for number in np.unique(numbers).tolist():
        if number <= 0 or number != int(number):
            value = x * np.nan
        else:  # a sum of cosines, which is smooth where both sines vanish
            steps = np.arange(int(number)) - (number - 1) / 2
            value = np.mean(np.cos(x[..., None] * steps), axis=-1)
        out = out + np.where(numbers == number, value, 0.0)
    return out[()]


publish(__name__, [assoc_legendre_p, legendre_p, sph_harm_y, sph_legendre_p])
