"""First derivatives of all ufuncs of scipy.special that have a rule, over the whole real domain.

The points are negative, zero, tiny, whole, next to whole and large, in all combinations or many of them. A
derivative is held against central differences of fourth order wherever these settle. It is the right one, or
not a number: never another number.
"""

import numpy as np
import pytest
import scipy.special as sc

import functrans as ft
from functrans.errors import MissingRuleError

POINTS = np.array(
    [*(-30.3, -20.5, -5.2, -3.0, -1.7, -1.0, -0.6, -0.05, -1e-6, 0.0, 1e-6, 0.03, 0.3)]
    + [*(0.5, 0.77, 1.0, 1.0001, 1.9, 2.0, 3.0, 7.3, 25.1, 120.0, 900.0)]
)
STEPS = np.array([1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5])
MOST = 300  # combinations of points per ufunc

# Ufuncs that SciPy computes by search, to few digits, or in minutes, at points like these; and the spheroidal
# functions, which write outside of their memory there. Those in UNSAFE have no rule.
SLOW = {"chndtr", "chndtrix", "chndtridf", "chndtrinc", "btdtria", "btdtrib", "gdtrib"}
UNSAFE = (
    "obl_",
    "pro_",
    "bdtrik",
    "bdtrin",
    "nbdtrik",
    "nbdtrin",
    "ncfdtr",
    "nctdtr",
    "fdtridfd",
    "pdtrik",
)

# Where differences of SciPy's values are not reliable: they jump, overflow, or are rounding, or the function
# is not defined there.
NOT_KNOWN_TO_SCIPY = {
    "besselpoly": lambda a, v, n: (np.abs(a) > 25) | (v < 0),
    "chdtri": lambda df, y: df == 0,
    "eval_genlaguerre": lambda n, a, x: np.abs(x) > 100,
    "eval_laguerre": lambda n, x: np.abs(x) > 100,
    "eval_sh_jacobi": lambda n, p, q, x: (n < 0) | (np.abs(q) < 1e-3),
    "fdtri": lambda d1, d2, p: d2 < 0.01,
    "gammainccinv": lambda a, y: a == 0,
    "gammaincinv": lambda a, y: a == 0,
    "hankel1": lambda v, x: x < 1e-3,
    "hankel2": lambda v, x: x < 1e-3,
    "hankel1e": lambda v, x: v == 0.5,  # the real part is zero up to rounding
    "hankel2e": lambda v, x: v == 0.5,
    "hyp1f1": lambda a, b, x: np.abs(a) > 100,
    "hyperu": lambda a, b, x: (np.abs(a) < 1e-3) | (a > 3) | (b < 1e-3) | (x < 1e-3),
    "it2i0k0": lambda x: x > 20,
    "itairy": lambda x: np.abs(x) > 2,
    "itstruve0": lambda x: np.abs(x) > 25,
    "kl_div": lambda x, y: x == y,  # zero up to rounding
    "log_wright_bessel": lambda a, b, x: a > 20,
    "lpmv": lambda m, v, x: np.abs(x) > 1,
    "mathieu_modcem1": lambda m, q, x: (x < 0) | (q == 0),
    "mathieu_modcem2": lambda m, q, x: (x < 0) | (q == 0),
    "mathieu_modsem1": lambda m, q, x: (x < 0) | (q == 0),
    "mathieu_modsem2": lambda m, q, x: (x < 0) | (q == 0),
    "nrdtrimn": lambda p, sd, x: p == 0.5,  # zero up to rounding
    "nrdtrisd": lambda m, p, x: p == 0.5,
    "pbvv": lambda v, x: (np.abs(v) < 1e-3) | (np.abs(v) > 25) | (x < -10),
    "poch": lambda x, m: np.abs(m) < 1e-3,
    "stdtr": lambda df, t: np.abs(t) < 1e-3,
    "stdtrit": lambda df, p: df < 0.1,
    "tklmbda": lambda x, lam: (np.abs(x) * lam == 1) | (np.abs(x) > 10),
    "voigt_profile": lambda x, sigma, gamma: (sigma < 0) | (gamma < 0),
}
NAMES = [
    name
    for name in dir(sc)
    if isinstance(getattr(sc, name), np.ufunc)
    and not name.startswith(UNSAFE)
    and name not in SLOW | {"eval_hermite", "eval_hermitenorm"}  # SciPy refuses a float as degree
]


def combinations(count):
    """Arguments for a ufunc, one row each."""
    grid = (len(POINTS),) * count
    everything = np.prod(grid)
    chosen = np.arange(everything)
    if everything > MOST:
        chosen = np.random.default_rng(0).choice(everything, MOST, replace=False)
    return POINTS[np.array(np.unravel_index(chosen, grid))]


def differences(function, x):
    """Elementwise derivatives, and bounds of their errors, from the two steps that agree best."""
    size = np.where(np.abs(x) < 1e-3, np.abs(x), np.maximum(np.abs(x), 1e-2))
    size = np.where(x == 0, 1e-2, size)
    found = []
    for step in STEPS:
        h = step * size
        narrow, wide = function(x + h) - function(x - h), function(x + 2 * h) - function(x - 2 * h)
        found.append((8 * narrow - wide) / (12 * h))
    gaps = np.abs(np.diff(found, axis=0))
    gaps = np.where(np.isfinite(gaps), gaps, np.inf)
    best = np.argmin(gaps, axis=0)
    rounding = 3e-16 * np.abs(function(x)) / (STEPS[best + 1] * size)
    pick = lambda values, k: np.take_along_axis(np.array(values), k[None], 0)[0]
    return pick(found, best + 1), pick(gaps, best) + rounding


def compared(name):
    """For each result and argument the points, the derivatives, the differences, and where these count."""
    ufunc = getattr(sc, name)
    args = combinations(ufunc.nin)
    known = ~NOT_KNOWN_TO_SCIPY.get(name, lambda *args: np.zeros(args[0].shape, bool))(*args)
    for part in range(ufunc.nout):
        for place in range(ufunc.nin):

            def function(x, part=part, place=place):
                out = ufunc(*args[:place], x, *args[place + 1 :])
                return np.real(out[part] if ufunc.nout > 1 else out)

            x = args[place]
            try:
                slope = ft.jvp(function, (x,), (np.ones_like(x),))[1]
            except MissingRuleError:
                continue
            expected, error = differences(function, x)
            value = function(x)
            scale = np.maximum(np.abs(expected), 1e-6 * np.abs(value) / np.maximum(np.abs(x), 1e-3))
            scale = np.maximum(scale, 1e-260)
            settled = np.isfinite(value) & np.isfinite(expected) & (error <= 1e-5 * scale)
            yield args, slope, expected, scale, settled & known


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_derivative_is_right_or_not_a_number(name):
    wrong = []
    with np.errstate(all="ignore"):
        for args, slope, expected, scale, counts in compared(name):
            off = counts & ~np.isnan(slope) & ~(np.abs(slope - expected) <= 1e-4 * scale)
            wrong += [(*args[:, k], slope[k], expected[k]) for k in np.flatnonzero(off)]
            # Not a number is the exception: at poles, at ends, and at negative whole degrees.
            assert np.isnan(slope[counts]).sum() <= 0.5 * counts.sum() + 2
    assert not wrong, wrong[:5]


@pytest.mark.filterwarnings("ignore")
def test_the_sweep_compares_derivatives_in_many_places():
    with np.errstate(all="ignore"):
        counts = {name: sum(part[-1].sum() for part in compared(name)) for name in NAMES}
    differentiated = [name for name, count in counts.items() if count]
    assert len(differentiated) > 150
    assert sum(counts.values()) > 20_000


# With all digits, by mpmath: where differences of SciPy's values have few.


@pytest.mark.parametrize("s", [-250.3, -171.0, -100.5, -20.5, -20.0, -8.5, -1.7, -1e-6, 0.3, 1.9])
def test_zeta_has_all_digits(s):
    mpmath = pytest.importorskip("mpmath")
    for function in (sc.zeta, sc.zetac):
        first, second = ft.grad(function)(s), ft.grad(ft.grad(function))(s)
        np.testing.assert_allclose(first, float(mpmath.zeta(s, 1, 1)), rtol=1e-12)
        np.testing.assert_allclose(second, float(mpmath.zeta(s, 1, 2)), rtol=1e-12)


@pytest.mark.parametrize("q", [1e-6, 0.3, 7.3, 1e5])
@pytest.mark.parametrize("s", [1.0001, 3.0, 25.0])
def test_hurwitz_zeta_has_all_digits(s, q):
    mpmath = pytest.importorskip("mpmath")
    by_s, by_q = ft.grad(sc.zeta, (0, 1))(s, q)
    np.testing.assert_allclose(by_s, float(mpmath.zeta(s, q, 1)), rtol=1e-12)
    np.testing.assert_allclose(by_q, float(-s * mpmath.zeta(s + 1, q)), rtol=1e-12)


@pytest.mark.parametrize(
    "point",
    [(1.0, 1.0, 1.0), (1.0, 0.1, 1.0), (1.0, 0.05, 1.0), (17.0, 1.0, 0.5), (-17.0, 1.0, 1.5)]
    + [(20.0, 1.0, 1e-30), (30.0, 1.0, 1e-8), (100.0, 1.0, 1.0), (35.0, 1.0, 0.1)],
)
def test_voigt_profile_has_its_digits_on_both_sides_of_its_series(point):
    mpmath = pytest.importorskip("mpmath")

    def profile(x, sigma, gamma):
        z = (x + 1j * gamma) / (sigma * mpmath.sqrt(2))
        w = mpmath.exp(-z * z) * mpmath.erfc(-1j * z)
        return (w / (sigma * mpmath.sqrt(2 * mpmath.pi))).real

    with mpmath.workdps(200):
        at = tuple(map(mpmath.mpf, point))
        expected = [mpmath.diff(profile, at, n) for n in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    found = ft.grad(sc.voigt_profile, (0, 1, 2))(*point)
    np.testing.assert_allclose(found, [float(each) for each in expected], rtol=1e-10)


@pytest.mark.parametrize("sigma", [0.0, 1e-300, 1e-8, 1e-5])
def test_a_narrow_voigt_profile_is_lorentzian(sigma):
    x, gamma = 1.0, 2.0
    by_x, by_sigma, by_gamma = ft.grad(sc.voigt_profile, (0, 1, 2))(x, sigma, gamma)
    square = x * x + gamma * gamma
    np.testing.assert_allclose(by_x, -2 * x * gamma / np.pi / square**2, rtol=1e-8)
    np.testing.assert_allclose(by_gamma, (x * x - gamma * gamma) / np.pi / square**2, rtol=1e-8)
    curvature = -np.imag(2 / (x + 1j * gamma) ** 3) / np.pi
    np.testing.assert_allclose(by_sigma, sigma * curvature, rtol=1e-8)


@pytest.mark.filterwarnings("ignore")
def test_orders_that_scipy_truncates_are_truncated():
    for slope, whole in [
        (ft.grad(sc.yn, 1)(1.9, 0.7), ft.grad(sc.yn, 1)(1.0, 0.7)),
        (ft.grad(sc.kn, 1)(0.5, 0.7), ft.grad(sc.kn, 1)(0.0, 0.7)),
        (ft.grad(sc.expn, 1)(0.5, 0.7), ft.grad(sc.expn, 1)(0.0, 0.7)),
        (ft.grad(sc.nbdtr, 2)(3.0, 1.9, 0.5), ft.grad(sc.nbdtr, 2)(3.0, 1.0, 0.5)),
        (ft.grad(sc.bdtr, 2)(1.0, 7.3, 0.3), ft.grad(sc.bdtr, 2)(1.0, 7.0, 0.3)),
        (ft.grad(sc.pdtri, 1)(7.3, 0.5), ft.grad(sc.pdtri, 1)(7.0, 0.5)),
    ]:
        assert slope == whole


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_quantiles_and_singular_ends_have_slopes():
    step = 0.77e-5
    expected = (sc.fdtri(0.5, 0.03, 0.77 + step) - sc.fdtri(0.5, 0.03, 0.77 - step)) / (2 * step)
    np.testing.assert_allclose(ft.grad(sc.fdtri, 2)(0.5, 0.03, 0.77), expected, rtol=1e-5)
    slope = ft.grad(sc.eval_sh_legendre, 1)(0.03, 1e-6)
    mpmath = pytest.importorskip("mpmath")
    exact = mpmath.diff(lambda x: mpmath.legendre(mpmath.mpf("0.03"), 2 * x - 1), mpmath.mpf(1e-6))
    np.testing.assert_allclose(slope, float(exact), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_boxcox_of_zero_returns():
    # SciPy's 1F1 of infinity, which the rule used, does not.
    assert ft.grad(sc.boxcox, 1)(0.0, 2.0) == 0.25
    assert ft.grad(sc.boxcox, 1)(0.0, -20.0) == np.inf
