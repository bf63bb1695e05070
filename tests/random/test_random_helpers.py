"""The special functions behind functrans.random, with their derivatives, held against SciPy's."""

from functools import partial

import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import quad

import functrans as ft
from functrans import random
from functrans.ops.gamma import _moment, gamma_slope, polygamma
from functrans.ops.normal import normal_cdf, normal_quantile
from tests.support.oracles import central_difference_jvp

PACE = np.array([0.7, -1.0, 0.4, 1.6])  # how fast each entry of an argument moves
SHAPES, LOGS = np.array([0.6, 1.1, 2.4, 5.0]), np.log([0.4, 1.5, 1.2, 6.0])


def moment_by_quadrature(k, a, y):
    """∫ u^k exp(a u - x (e^u - 1)) du with x = e^y, from 0 to the side of 0 where y is, seen from ψ(a)."""
    end = 30.0 if y >= special.psi(a) else -200.0
    integrand = lambda u: u**k * np.exp(a * u - np.exp(y) * np.expm1(u))
    return quad(integrand, 0, end, points=[np.sign(end), 4 * np.sign(end)], epsabs=1e-13)[0]


def slope_by_differences(a, y):
    """d log x/da at constant P(a, x), which is -(dP/da) / (x p(x))."""
    x = np.exp(y)
    by_shape = central_difference_jvp(
        lambda a: special.gammainc(a, x), (a,), (np.ones_like(a),), step=1e-3
    )
    return -by_shape / stats.gamma.pdf(x, a) / x


CASES = {
    "normal_cdf": (normal_cdf, special.ndtr, (np.array([-2.1, -0.3, 0.4, 1.7]),)),
    "normal_quantile": (normal_quantile, special.ndtri, (np.array([0.02, 0.3, 0.6, 0.99]),)),
    "gamma_slope": (gamma_slope, slope_by_differences, (SHAPES, LOGS)),
}
for k in range(3):
    CASES[f"polygamma{k}"] = (polygamma(k), partial(special.polygamma, k), (SHAPES,))
    integral = np.vectorize(partial(moment_by_quadrature, k))
    CASES[f"gamma_moment{k}"] = (_moment(k), integral, (SHAPES, LOGS))


@pytest.mark.parametrize("name", CASES)
def test_special_functions_and_their_derivatives(name):
    function, theirs, points = CASES[name]
    np.testing.assert_allclose(function(*points), theirs(*points), rtol=1e-8)
    weights = np.array([0.6, 1.0, -1.3, 0.2])
    pulled = ft.vjp(function, *points)[1](weights)
    for place in range(len(points)):
        tangents = tuple(PACE * (place == k) for k in range(len(points)))
        expected = central_difference_jvp(theirs, points, tangents, step=1e-3)
        np.testing.assert_allclose(ft.jvp(function, points, tangents)[1], expected, rtol=1e-5)
        np.testing.assert_allclose(pulled[place] * PACE, weights * expected, rtol=1e-5)
        # By one argument alone, as where the other is a constant.
        alone = lambda x, place=place: function(*points[:place], x, *points[place + 1 :])
        np.testing.assert_allclose(ft.vjp(alone, points[place])[1](weights)[0], pulled[place])
    lanes = [function(*lane) for lane in zip(*points, strict=True)]
    np.testing.assert_allclose(ft.vmap(function)(*points), lanes, rtol=1e-13)


def test_every_gamma_sample_moves_with_its_own_shape():
    sample = lambda a: random.loggamma(random.key(5), a)
    logs, slopes = ft.jvp(sample, (SHAPES,), (PACE,))
    probabilities = special.gammainc(SHAPES, np.exp(logs))
    path = lambda a: np.log(special.gammaincinv(a, probabilities))
    np.testing.assert_allclose(slopes, central_difference_jvp(path, (SHAPES,), (PACE,)), rtol=1e-6)
    np.testing.assert_allclose(ft.vjp(sample, SHAPES)[1](PACE)[0], slopes)
