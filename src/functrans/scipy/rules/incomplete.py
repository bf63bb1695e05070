"""Incomplete gamma and beta integrals by their shape parameters.

SciPy has no such functions. With a power of logarithms under the integral,

    gamma_moment(a, x, n)      = 1/Γ(a)   ∫_0^x t^(a-1) exp(-t) (log t)^n dt
    beta_moment(a, b, x, m, n) = 1/B(a,b) ∫_0^x t^(a-1) (1-t)^(b-1) (log t)^m (log(1-t))^n dt

have derivatives of the same form, so all orders follow. They are computed by Gauss' quadrature in log t, or
log t/(1-t), where the integrand is smooth, has one hump, and decays on both sides: panels on each side of
the hump, as long as it takes to decay to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from functrans.core.primitive import Elementwise
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.families import elementwise
from functrans.transforms.forward_mode import jvp

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)
_DECAY = 45.0  # exp(-45) is below rounding


# Densities. Near the ends of the interval, where unbounded terms cancel or vanish, a slope is the density
# times that of its logarithm.


def _gamma_density(a: Any, x: Any) -> Any:
    out = sc.gammasgn(a) * np.exp(sc.xlogy(a - 1, x) - x - sc.gammaln(a))
    vanishes = np.isposinf(x) | ((a <= 0) & (a == np.floor(a)))
    return np.where(vanishes, 0, out).astype(out.dtype)[()]


def _gamma_density_by_a(d: Any, a: Any, x: Any) -> Any:
    return d * np.where(d == 0, 0, np.log(x) - sc.psi(a))


def _gamma_density_by_x(a: Any, x: Any) -> Any:
    """d ((a - 1)/x - 1), and at 0 by x^(a-2)/Γ(a-1), which is the density for a - 1."""
    end = x == 0
    inner, a_end, x_end = np.where(end, 1, x), np.where(end, a, 3), np.where(end, x, 1)
    return np.where(
        end,
        gamma_density(a_end - 1, x_end) - gamma_density(a_end, x_end),
        gamma_density(a, inner) * ((a - 1) / inner - 1),
    )


# x^(a-1) exp(-x) / Γ(a).
gamma_density: Elementwise = elementwise(
    None,
    lambda out, x, y: _gamma_density_by_a(out, x, y),
    lambda x, y: _gamma_density_by_x(x, y),
    impl=_gamma_density,
    name="gamma_density",
)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return np.exp(sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - sc.betaln(a, b))


def _beta_density_by_a(d: Any, a: Any, b: Any, x: Any) -> Any:
    return d * np.where(d == 0, 0, np.log(x) - sc.psi(a) + sc.psi(a + b))


def _beta_density_by_b(d: Any, a: Any, b: Any, x: Any) -> Any:
    return d * np.where(d == 0, 0, np.log1p(-x) - sc.psi(b) + sc.psi(a + b))


def _beta_density_by_x(a: Any, b: Any, x: Any) -> Any:
    """d ((a - 1)/x - (b - 1)/(1 - x)); at an end its own term, or the other if that is 0 (a or b is 1)."""
    end = (x == 0) | (x == 1)
    inner, outer = np.where(end, 0.5, x), np.where(end, x, 0.5)
    scale = sc.betaln(a, b)
    left = np.exp(sc.xlogy(a - 2, outer) + sc.xlog1py(b - 1, -outer) - scale)
    right = np.exp(sc.xlogy(a - 1, outer) + sc.xlog1py(b - 2, -outer) - scale)
    return np.where(
        end,
        np.where(np.where(x == 0, a != 1, b == 1), (a - 1) * left, (1 - b) * right),
        beta_density(a, b, inner) * ((a - 1) / inner - (b - 1) / (1 - inner)),
    )


# x^(a-1) (1-x)^(b-1) / B(a, b).
beta_density: Elementwise = elementwise(
    None,
    lambda out, x, y, z: _beta_density_by_a(out, x, y, z),
    lambda out, x, y, z: _beta_density_by_b(out, x, y, z),
    lambda x, y, z: _beta_density_by_x(x, y, z),
    impl=_beta_density,
    name="beta_density",
)


def _derivative(function: Any, place: int, *args: Any) -> Any:
    """The derivative of an elementwise function of arrays with respect to one of its arguments."""
    spread = np.broadcast_to(args[place], np.broadcast_shapes(*map(shape_of, args)))

    def of_one(x: Any) -> Any:
        return function(*args[:place], x, *args[place + 1 :])

    return jvp(of_one, (spread,), (np.ones(shape_of(spread), dtype_of(spread)),))[1]


def _panel(integrand: Any, left: Any, right: Any) -> Any:
    """The integral between two arrays of limits."""
    half = (right - left)[..., None] / 2
    points = left[..., None] + half * (1 + _NODES)
    return np.sum(half * _WEIGHTS * integrand(points), axis=-1)


def _distance(slope: Any, curvature: Any) -> Any:
    """Where slope d + curvature d² reaches _DECAY."""
    return 2 * _DECAY / (slope + np.sqrt(slope * slope + 4 * _DECAY * curvature))


def _columns(*args: Any) -> list[Any]:
    return [np.asarray(arg, np.float64)[..., None] for arg in args]


def _left_tail(integrand: Any, begin: Any, reach: Any) -> Any:
    """The integral from begin - reach to begin; a long tail has its structure near its end."""
    left = begin - reach
    middle = np.maximum(left, begin - 10)
    return _panel(integrand, left, middle) + _panel(integrand, middle, begin)


# With v = log t/a the logarithm of the integrand is a (v - exp(v)), with its hump at v = 0.


def _log_peak(a: Any) -> Any:
    """log(a^a exp(-a) / Γ(a)), by Stirling's series where its terms would cancel."""
    large = a > 30
    c = np.where(large, a, 1.0)
    series = np.log(c / (2 * np.pi)) / 2 - (1 - (1 / 30 - 1 / (105 * c * c)) / (c * c)) / (12 * c)
    return np.where(large, series, sc.xlogy(a, a) - a - sc.gammaln(a))


def _gamma_integrand(a: Any, n: Any) -> Any:
    a, n, log_a, peak = _columns(a, n, np.log(a), _log_peak(a))
    return lambda v: np.exp(a * (v - np.expm1(v)) + peak) * (v + log_a) ** n


def _gamma_moment(a: Any, x: Any, n: Any) -> Any:
    a, x, n = np.broadcast_arrays(a, x, n)
    empty = x <= 0
    x = np.where(empty, 1.0, x)
    begin = np.minimum(x, a)
    # Left of it the integrand decays by (a - begin) d + begin (d - 1 + exp(-d)).
    near = _distance(a - begin, begin / 3)
    reach = np.where(near <= 1, near, (_DECAY + begin) / a)
    start = np.log(begin / a)
    end = np.log(np.clip(x, begin, a + 10 * np.sqrt(a) + 60) / a)
    integrand = _gamma_integrand(a, n)
    total = _left_tail(integrand, start, reach) + _panel(integrand, start, end)
    return np.where(empty, 0.0, total)[()]


def _upper_gamma_moment(a: Any, x: Any, n: Any) -> Any:
    """The same from x >= a to infinity. With t = x + d it decays by d - a log(1 + d/x)."""
    a, x, n = np.broadcast_arrays(a, x, n)
    near = _distance(1 - a / x, a / (6 * x * x))
    reach = np.where(near <= x, near, 150.0)
    return _panel(_gamma_integrand(a, n), np.log(x / a), np.log((x + reach) / a))[()]


gamma_moment: Elementwise = elementwise(
    None,
    lambda out, x, y, z: gamma_moment(x, y, z + 1) - sc.psi(x) * out,
    lambda x, y, z: gamma_density(x, y) * np.log(y) ** z,
    None,
    impl=_gamma_moment,
    name="gamma_moment",
)
upper_gamma_moment: Elementwise = elementwise(
    None,
    lambda out, x, y, z: upper_gamma_moment(x, y, z + 1) - sc.psi(x) * out,
    lambda x, y, z: -gamma_density(x, y) * np.log(y) ** z,
    None,
    impl=_upper_gamma_moment,
    name="upper_gamma_moment",
)


def _gammainc_by_a(a: Any, x: Any) -> Any:
    """From the smaller of the two tails; 0 at both ends."""
    end = (x == 0) | np.isposinf(x)
    x = np.where(end, 1, x)
    lower = x < a
    left = np.where(lower, x, a)
    right = np.where(lower, a, x)
    below = gamma_moment(a, left, 1) - sc.psi(a) * sc.gammainc(a, left)
    above = upper_gamma_moment(a, right, 1) - sc.psi(a) * sc.gammaincc(a, right)
    return np.where(end, 0, np.where(lower, below, -above))[()]


# ∂P(a, x)/∂a. Its slope in x is that of the density in a: as a sum it would be ∞ - ∞ at 0.
gammainc_by_a: Elementwise = elementwise(
    None,
    lambda x, y: _derivative(_gammainc_by_a, 0, x, y),
    lambda x, y: _gamma_density_by_a(gamma_density(x, y), x, y),
    impl=_gammainc_by_a,
    name="gammainc_by_a",
)


# With u = log t/(1-t) it is a log σ(u) + b log σ(-u), with its hump at u = log a/b.


def _beta_reach(a: Any, b: Any, u: Any) -> Any:
    """How far left of u, which is not right of the hump, the integrand decays."""
    t = sc.expit(u)
    near = _distance(np.maximum(a - (a + b) * t, 0), (a + b) * t * (1 - t) / 3)
    far = (_DECAY - (a + b) * sc.log_expit(-u)) / a
    return np.where(near <= 1, near, far)


def _beta_moment(a: Any, b: Any, x: Any, m: Any, n: Any) -> Any:
    a, b, x, m, n = np.broadcast_arrays(a, b, x, m, n)
    empty = x <= 0
    x = np.where(empty, 0.5, x)
    with np.errstate(divide="ignore"):
        limit = sc.logit(x)
    hump = np.log(a / b)
    begin = np.minimum(limit, hump)
    end = np.maximum(begin, np.minimum(limit, hump + _beta_reach(b, a, -hump)))
    reach = _beta_reach(a, b, begin)
    a, b, m, n, scale = _columns(a, b, m, n, sc.betaln(a, b))

    def integrand(u: Any) -> Any:
        log_t, log_rest = sc.log_expit(u), sc.log_expit(-u)
        return np.exp(a * log_t + b * log_rest - scale) * log_t**m * log_rest**n

    total = _left_tail(integrand, begin, reach) + _panel(integrand, begin, end)
    return np.where(empty, 0.0, total)[()]


beta_moment: Elementwise = elementwise(
    None,
    lambda out, x, y, z, w, v: beta_moment(x, y, z, w + 1, v) - (sc.psi(x) - sc.psi(x + y)) * out,
    lambda out, x, y, z, w, v: beta_moment(x, y, z, w, v + 1) - (sc.psi(y) - sc.psi(x + y)) * out,
    lambda x, y, z, w, v: beta_density(x, y, z) * np.log(z) ** w * np.log1p(-z) ** v,
    None,
    None,
    impl=_beta_moment,
    name="beta_moment",
)


def _betainc_by_shape(a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    """The derivative of I_x(a, b) by a (m, n = 1, 0) or b (0, 1), from the smaller of the two tails.

    I_x(a, b) = 1 - I_{1-x}(b, a).
    """
    end = (x == 0) | (x == 1)
    x = np.where(end, 0.5, x)
    mode = a / (a + b)
    lower = x < mode
    left, right = np.where(lower, x, mode), np.where(lower, 1 - mode, 1 - x)
    expected = sc.psi(a if m else b) - sc.psi(a + b)  # of log t, or of log(1 - t)
    below = beta_moment(a, b, left, m, n) - expected * sc.betainc(a, b, left)
    above = beta_moment(b, a, right, n, m) - expected * sc.betainc(b, a, right)
    return np.where(end, 0, np.where(lower, below, -above))[()]


def _betainc_by_a(a: Any, b: Any, x: Any) -> Any:
    return _betainc_by_shape(a, b, x, 1, 0)


def _betainc_by_b(a: Any, b: Any, x: Any) -> Any:
    return _betainc_by_shape(a, b, x, 0, 1)


# ∂I_x(a, b)/∂a and ∂I_x(a, b)/∂b.
betainc_by_a: Elementwise = elementwise(
    None,
    lambda x, y, z: _derivative(_betainc_by_a, 0, x, y, z),
    lambda x, y, z: _derivative(_betainc_by_a, 1, x, y, z),
    lambda x, y, z: _beta_density_by_a(beta_density(x, y, z), x, y, z),
    impl=_betainc_by_a,
    name="betainc_by_a",
)
betainc_by_b: Elementwise = elementwise(
    None,
    lambda x, y, z: _derivative(_betainc_by_b, 0, x, y, z),
    lambda x, y, z: _derivative(_betainc_by_b, 1, x, y, z),
    lambda x, y, z: _beta_density_by_b(beta_density(x, y, z), x, y, z),
    impl=_betainc_by_b,
    name="betainc_by_b",
)
