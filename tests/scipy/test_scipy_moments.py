"""The integrals behind the derivatives of incomplete gamma and beta functions by their shapes.

No function of SciPy moves all their limits, so their rules are held against quadrature here.
"""

import numpy as np
import pytest
import scipy.special as sc
from scipy.integrate import quad

import functrans as ft
from functrans.scipy.rules.incomplete import beta_moment, gamma_moment, upper_gamma_moment
from tests.support.oracles import central_difference_jvp


def gamma_integrand(t, a, n):
    return t ** (a - 1) * np.exp(-t) / sc.gamma(a) * np.log(t) ** n


def beta_integrand(t, a, b, m, n):
    return t ** (a - 1) * (1 - t) ** (b - 1) / sc.beta(a, b) * np.log(t) ** m * np.log1p(-t) ** n


def below(a, x, n):
    return quad(gamma_integrand, 0, x, args=(a, n), epsabs=1e-13)[0]


def above(a, x, n):
    return quad(gamma_integrand, x, np.inf, args=(a, n), epsabs=1e-13)[0]


def of_beta(a, b, x, m, n):
    return quad(beta_integrand, 0, x, args=(a, b, m, n), epsabs=1e-13)[0]


A, B = np.array([1.7, 2.4, 3.1]), np.array([2.9, 1.6, 2.2])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("moment", "integral", "points", "orders"),
    [
        (gamma_moment, below, (A, np.array([0.8, 2.9, 4.0])), 1),
        (upper_gamma_moment, above, (A, np.array([2.2, 2.9, 5.0])), 1),
        (beta_moment, of_beta, (A, B, np.array([0.3, 0.5, 0.8])), 2),
    ],
    ids=["gamma", "upper gamma", "beta"],
)
def test_moments_have_the_derivatives_of_their_integrals(moment, integral, points, orders, order):
    powers = (order, 1)[:orders]
    function = lambda *points: moment(*points, *powers)
    integrals = np.vectorize(lambda *points: integral(*points, *powers))
    np.testing.assert_allclose(function(*points), integrals(*points), rtol=1e-9)
    weights, pace = np.array([0.6, -1.1, 1.4]), np.array([0.7, 1.0, 1.6])
    pulled = ft.vjp(function, *points)[1](weights)
    for place in range(len(points)):
        tangents = tuple(pace * (place == k) for k in range(len(points)))
        expected = central_difference_jvp(integrals, points, tangents, 1e-3)
        np.testing.assert_allclose(ft.jvp(function, points, tangents)[1], expected, rtol=1e-7)
        np.testing.assert_allclose(pulled[place] * pace, weights * expected, rtol=1e-7)
        alone = ft.grad(function, place)(*(point[1] for point in points))  # at the pace 1
        np.testing.assert_allclose(alone, expected[1], rtol=1e-7)
    np.testing.assert_allclose(ft.vmap(function)(*points), integrals(*points), rtol=1e-9)
