"""Legendre functions and spherical harmonics of scipy.special, as polynomials in traced values.

Degrees n and orders m are plain integers. The recurrences are those of normalized functions, which do not
overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of
from functrans.scipy.loading import load
from functrans.scipy.solutions import holds_traced
from functrans.surface.table import as_array, known

sc = load("scipy.special")


def _normalized(n: int, m: int, cosine: Any, sine: Any) -> Any:
    """The function of order |m| whose square has the integral 1 over the sphere, of degree n >= |m|."""
    order = abs(m)
    factor = sqrt(1 / (4 * pi))
    for k in range(1, order + 1):
        factor *= -sqrt((2 * k + 1) / (2 * k))
    before: Any = 0.0
    value = factor * sine**order if order else factor * np.ones_like(cosine)
    for degree in range(order + 1, n + 1):
        a = sqrt((4 * degree**2 - 1) / (degree**2 - order**2))
        b = sqrt(((degree - 1) ** 2 - order**2) / (4 * (degree - 1) ** 2 - 1))
        before, value = value, a * (cosine * value - b * before)
    return (-1) ** order * value if m < 0 else value


def _for_each(n: Any, m: Any, compute: Callable[[int, int], Any]) -> Any:
    """The results for arrays of plain degrees and orders, which broadcast against the other arguments."""
    n, m = np.broadcast_arrays(np.asarray(n, dtype=int), np.asarray(m, dtype=int))
    if n.ndim == 0:
        return _or_zero(int(n), int(m), compute)
    out: Any = 0.0
    for degree, order in sorted(set(zip(n.ravel().tolist(), m.ravel().tolist(), strict=True))):
        out = out + np.where((n == degree) & (m == order), _or_zero(degree, order, compute), 0.0)
    return out


def _or_zero(n: int, m: int, compute: Callable[[int, int], Any]) -> Any:
    if n < 0:
        raise errors.MissingRuleError(
            f"scipy.special: Legendre functions of negative degree, here {n}, have no rule for traced "
            f"values, at {errors.user_location()}. Use the degree -n - 1."
        )
    value = compute(n, m) if abs(m) <= n else compute(abs(m), m)
    return value if abs(m) <= n else 0 * value


def _refuse(name: str, diff_n: int, *integers: Any) -> None:
    if diff_n:
        raise errors.OptionError(
            f"{name}: diff_n= is not available for traced values, at {errors.user_location()}. Leave "
            "it out, and differentiate with jvp or grad."
        )
    if holds_traced(*integers):
        raise errors.MissingRuleError(
            f"scipy.special.{name} has no rule for a traced degree or order, at "
            f"{errors.user_location()}. Pass plain integers."
        )


def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """The Legendre polynomial of degree n; SciPy's `legendre_p`.

    As in SciPy, the first axis of the result has length 1.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import legendre_p
    >>> float(grad(lambda z: legendre_p(2, z)[0])(0.5))  # of (3z² - 1) / 2
    1.5
    """
    if not holds_traced(n, z):
        return sc.legendre_p(n, z, diff_n=diff_n)
    _refuse("legendre_p", diff_n, n)
    z = as_array(z)

    def polynomial(n: int, _: int) -> Any:
        before, value = 0.0 * z, 1.0 + 0.0 * z
        for k in range(n):
            before, value = value, ((2 * k + 1) * z * value - k * before) / (k + 1)
        return value

    return _for_each(n, np.zeros_like(n), polynomial)[None]


def assoc_legendre_p(
    n: Any, m: Any, z: Any, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """The associated Legendre function of degree n and order m; SciPy's `assoc_legendre_p`.

    As in SciPy, the first axis of the result has length 1. Traced values must be real and between -1 and 1.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import assoc_legendre_p
    >>> round(float(grad(lambda z: assoc_legendre_p(2, 2, z)[0])(0.5)), 6)  # of 3 (1 - z²)
    -3.0
    """
    if not holds_traced(n, m, z):
        return sc.assoc_legendre_p(n, m, z, branch_cut=branch_cut, norm=norm, diff_n=diff_n)
    _refuse("assoc_legendre_p", diff_n, n, m)
    z = as_array(z)
    value = known(z)
    if dtype_of(z).kind == "c" or (value is not None and np.any(np.abs(value) > 1)):
        raise errors.MissingRuleError(
            "scipy.special.assoc_legendre_p has no rule for traced values that are complex or beyond "
            f"1, at {errors.user_location()}. Use values between -1 and 1."
        )
    square = 1 - z * z

    def function(n: int, m: int) -> Any:
        order = abs(m)
        sine = np.sqrt(square) if order % 2 else 1.0
        # sine^m is square^(m // 2), times a root if m is odd.
        factor = _normalized(n, order, z, np.ones_like(z)) * square ** (order // 2) * sine
        if norm:
            factor = factor * sqrt(2 * pi)
        else:
            factor = factor * sqrt(
                4 * pi / (2 * n + 1) * factorial(n + order) / factorial(n - order)
            )
        if m >= 0:
            return factor
        ratio = 1.0 if norm else factorial(n - order) / factorial(n + order)
        return (-1) ** order * ratio * factor

    return _for_each(n, m, function)[None]


def sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Any:
    """The spherical Legendre function of degree n and order m at a polar angle; SciPy's `sph_legendre_p`.

    As in SciPy, the first axis of the result has length 1.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.special import sph_legendre_p
    >>> round(float(grad(lambda theta: sph_legendre_p(1, 0, theta)[0])(0.5)), 6)  # of √(3/4π) cos θ
    -0.234249
    """
    if not holds_traced(n, m, theta):
        return sc.sph_legendre_p(n, m, theta, diff_n=diff_n)
    _refuse("sph_legendre_p", diff_n, n, m)
    return _spherical(n, m, theta)[None]


def _spherical(n: Any, m: Any, theta: Any) -> Any:
    theta = as_array(theta)
    # SciPy's function is even in θ, also for odd orders.
    cosine, sine = np.cos(theta), np.abs(np.sin(theta))
    return _for_each(n, m, lambda n, m: _normalized(n, m, cosine, sine))


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """The spherical harmonic of degree n and order m at a polar and an azimuthal angle; SciPy's `sph_harm_y`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.special import sph_harm_y
    >>> round(float(grad(lambda phi: np.real(sph_harm_y(1, 1, 0.5, phi)))(0.3)), 6)
    0.04895
    """
    if not holds_traced(n, m, theta, phi):
        return sc.sph_harm_y(n, m, theta, phi, diff_n=diff_n)
    _refuse("sph_harm_y", diff_n, n, m)
    return _spherical(n, m, theta) * np.exp(1j * (np.asarray(m) * as_array(phi)))
