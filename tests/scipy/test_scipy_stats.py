"""functrans.scipy.stats: every distribution and statistic, held against SciPy and against the laws."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import functrans as ft
from functrans.scipy import stats
from functrans.scipy.distributions.family import KNOWN, Continuous
from tests.support.oracles import assert_trees_close, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes

RNG = np.random.default_rng(0)

# Shape parameters, and points in standard form: inside the support, on both sides of the mode.
CONTINUOUS = {
    "norm": ((), [-0.7, 0.3, 1.9]),
    "uniform": ((), [0.1, 0.4, 0.8]),
    "expon": ((), [0.2, 1.4, 3.1]),
    "gamma": ((2.3,), [0.4, 1.3, 3.6]),
    "chi2": ((3.4,), [0.4, 1.3, 5.6]),
    "invgamma": ((5.2,), [0.1, 0.2, 0.6]),
    "loggamma": ((1.7,), [-0.8, 0.4, 1.3]),
    "beta": ((2.1, 3.3), [0.15, 0.4, 0.8]),
    "t": ((5.1,), [-0.7, 0.3, 1.9]),
    "f": ((3.2, 6.3), [0.4, 1.3, 2.6]),
    "lognorm": ((0.8,), [0.4, 1.3, 2.6]),
    "weibull_min": ((1.7,), [0.4, 1.3, 1.9]),
    "weibull_max": ((1.7,), [-1.9, -1.3, -0.4]),
    "exponweib": ((2.1, 1.7), [0.4, 1.3, 1.9]),
    "dweibull": ((1.7,), [-0.7, 0.3, 1.6]),
    "pareto": ((3.2,), [1.1, 1.6, 2.4]),
    "powerlaw": ((2.2,), [0.15, 0.4, 0.8]),
    "cauchy": ((), [-0.7, 0.3, 1.9]),
    "halfcauchy": ((), [0.2, 1.4, 3.1]),
    "laplace": ((), [-0.7, 0.3, 1.9]),
    "logistic": ((), [-0.7, 0.3, 1.9]),
    "gumbel_r": ((), [-0.7, 0.3, 1.9]),
    "gumbel_l": ((), [-1.7, 0.3, 0.9]),
    "rayleigh": ((), [0.2, 1.1, 2.1]),
    "maxwell": ((), [0.4, 1.1, 2.1]),
    "halfnorm": ((), [0.4, 1.1, 2.1]),
    "truncnorm": ((-1.1, 2.2), [-0.6, 0.3, 1.9]),
    "triang": ((0.65,), [0.15, 0.45, 0.8]),
    "skewnorm": ((2.2,), [-0.3, 0.3, 1.9]),
    "genextreme": ((0.2,), [-0.7, 0.3, 1.9]),
    "genpareto": ((0.2,), [0.2, 1.4, 3.1]),
    "invgauss": ((1.5,), [0.3, 1.1, 2.4]),
    "vonmises": ((2.1,), [-1.7, 0.3, 1.2]),
}
DISCRETE = {
    "poisson": (2.3,),
    "binom": (5, 0.4),
    "bernoulli": (0.3,),
    "geom": (0.3,),
    "nbinom": (2.5, 0.4),
    "randint": (2, 7),
}
POINTS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
QUANTILES = ("ppf", "isf")
MOMENTS = ("mean", "var", "std", "median", "entropy")
WHOLE = {"binom": 1, "randint": 2}  # how many parameters must be whole
NO_FORMULA = {
    *((name, "entropy") for name in ("exponweib", "skewnorm", "invgauss", "poisson")),
    *((name, "entropy") for name in ("binom", "nbinom")),
    *((name, moment) for name in ("exponweib", "vonmises") for moment in ("var", "std")),
    ("exponweib", "mean"),
}


def traced(function, *args):
    """The value that our formula gives, under a transform."""
    args = tuple(np.asarray(arg, float) for arg in args)
    return ft.jvp(function, args, tuple(np.zeros_like(arg) for arg in args))[0]


def lanes(function, *args):
    """The same for arguments without a derivative."""
    size = max(np.size(arg) for arg in args)
    return ft.vmap(function)(*(np.broadcast_to(np.asarray(a, float), (size,)).copy() for a in args))


def near(values):
    """Parameters that vary along the points."""
    return tuple(value * np.array([0.95, 1.0, 1.1]) for value in values)


def continuous_case(name, method):
    shapes, points = CONTINUOUS[name]
    place = (np.array([0.1, -0.2, 0.3]), np.array([0.7, 1.2, 1.6]))
    if method in QUANTILES:
        return (np.array([0.15, 0.4, 0.8]), *near(shapes), *place)
    if method in MOMENTS:
        return (*near(shapes), *place)
    return (np.array(points) * place[1] + place[0], *near(shapes), *place)


def test_the_tables_have_the_same_names():
    assert {*CONTINUOUS, *DISCRETE} == set(KNOWN)
    assert {name for name, each in KNOWN.items() if issubclass(each, Continuous)} == set(CONTINUOUS)
    assert {*KNOWN} < set(stats.__all__)


@pytest.mark.parametrize("method", [*POINTS, *QUANTILES, *MOMENTS])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, method):
    ours, theirs = (
        getattr(getattr(stats, name), method),
        getattr(getattr(scipy.stats, name), method),
    )
    args = continuous_case(name, method)
    if (name, method) in NO_FORMULA:
        with pytest.raises(ft.errors.MissingRuleError, match=f"{name}.*no formula"):
            traced(ours, *args)
        return
    expected = theirs(*args)
    got = traced(ours, *args)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    if name == "cauchy" and method in ("mean", "var", "std"):
        return
    if name == "halfcauchy" and method in ("mean", "var", "std"):
        return
    check_derivatives(ours, args, rtol=2e-6, atol=2e-8)
    check_lanes(ours, args, rtol=1e-8)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_graphs_of_densities_and_distribution_functions(name):
    for method in ("logpdf", "cdf", "ppf"):
        ours, args = getattr(getattr(stats, name), method), continuous_case(name, method)
        graph = ft.make_graph(ours)(*args)
        np.testing.assert_allclose(graph(*args), ours(*args), rtol=1e-10)


@pytest.mark.parametrize("method", [*POINTS, *QUANTILES])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_edges_are_those_of_scipy(name, method):
    """Outside the support, at its ends, at nan, and with parameters that do not exist."""
    shapes, points = CONTINUOUS[name]
    far = [-50.0, -3.3, -1.0, 0.0, 1.0, 1.0 + 1e-6, 4.1, 60.0, np.nan, *points]
    edges = np.array([0.0, 1.0, -0.1, 1.1, np.nan, 0.5] if method in QUANTILES else far)
    ours, theirs = (
        getattr(getattr(stats, name), method),
        getattr(getattr(scipy.stats, name), method),
    )
    with np.errstate(all="ignore"):
        got, expected = lanes(ours, edges, *shapes, 0.0, 1.0), theirs(edges, *shapes)
        finer = np.isinf(expected) & np.isfinite(got) & (got < -700)  # where SciPy's underflows
        np.testing.assert_allclose(got[~finer], expected[~finer], rtol=1e-9, atol=1e-280)
        assert np.isnan(lanes(ours, edges, *shapes, 0.0, -1.0)).all()
        if shapes and name not in ("skewnorm", "genextreme", "genpareto"):
            wrong = (2.0, 1.0) if name == "truncnorm" else (-0.5,) * len(shapes)
            assert np.isnan(lanes(ours, edges, *wrong, 0.0, 1.0)).all()
            assert np.isnan(theirs(edges, *wrong)).all()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_outside_of_the_support_all_derivatives_are_zero(name):
    shapes, _ = CONTINUOUS[name]
    low, high = getattr(scipy.stats, name).support(*shapes)
    outside = [end + step for end, step in ((low, -1.0), (high, 1.0)) if np.isfinite(end)]
    for x in outside:
        for method in POINTS:
            function = getattr(getattr(stats, name), method)
            slopes = ft.grad(function, tuple(range(3 + len(shapes))))(x, *shapes, 0.0, 1.0)
            np.testing.assert_array_equal(slopes, 0)
            np.testing.assert_array_equal(ft.grad(ft.grad(function))(x, *shapes), 0)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_nan_has_the_derivative_nan(name):
    shapes, _ = CONTINUOUS[name]
    if name in ("uniform", "expon", "triang"):  # whose formulas are linear
        return
    for method in (*POINTS, *QUANTILES):
        function = getattr(getattr(stats, name), method)
        assert np.isnan(ft.grad(function)(np.nan, *shapes)), method


@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles_invert_distribution_functions_in_all_arguments(name):
    """q = F(F⁻¹(q, s), s): the derivative of the right hand side is 1 in q, and 0 in s."""
    shapes, _ = CONTINUOUS[name]
    ours = getattr(stats, name)
    for back, forth in (("ppf", "cdf"), ("isf", "sf")):
        there = lambda q, *s, b=back, f=forth: getattr(ours, f)(getattr(ours, b)(q, *s), *s)
        slopes = ft.grad(there, tuple(range(3 + len(shapes))))(0.3, *shapes, 0.2, 1.3)
        np.testing.assert_allclose(slopes, [1, *[0] * (2 + len(shapes))], atol=1e-8)


def test_tails_keep_their_digits():
    for name, args in {
        "norm": (-30.0,),
        "logistic": (-700.0,),
        "laplace": (-700.0,),
        "truncnorm": (-6.5, -7.0, -6.0),
        "skewnorm": (-3.0, 2.0),
        "invgauss": (0.01, 1.5),
    }.items():
        for method in ("logcdf", "cdf"):
            ours = traced(getattr(getattr(stats, name), method), *args)
            expected = getattr(getattr(scipy.stats, name), method)(*args)
            np.testing.assert_allclose(ours, expected, rtol=1e-9)
    far = traced(stats.truncnorm.logpdf, 10.5, 10.0, 11.0)
    np.testing.assert_allclose(far, scipy.stats.truncnorm.logpdf(10.5, 10.0, 11.0), rtol=1e-12)
    assert np.isfinite(ft.grad(stats.norm.logcdf)(-1e5))


def test_shapes_at_which_a_formula_changes():
    for c in (0.0, 1e-9, -1e-9, 0.019, 0.021, -0.3):
        for name in ("genextreme", "genpareto"):
            ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
            for method in ("logpdf", "cdf", "ppf"):
                np.testing.assert_allclose(
                    traced(getattr(ours, method), 0.4, c),
                    getattr(theirs, method)(0.4, c),
                    rtol=1e-7,
                )
            step = 1e-5
            for method in ("logpdf", "mean", "var"):
                point = (0.4,) if method == "logpdf" else ()
                at = lambda c, m=method, o=ours, p=point: traced(getattr(o, m), *p, c)
                numerical = (at(c + step) - at(c - step)) / (2 * step)
                slope = ft.grad(getattr(ours, method), len(point))(*point, c)
                np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(traced(stats.t.logpdf, 0.4, np.inf), stats.norm.logpdf(0.4))
    for kappa in (1.0, 1e2, 1e4):
        density = lambda x, k=kappa: ft.grad(stats.vonmises.pdf, 1)(x, k)
        expected = scipy.integrate.quad(density, 0, 0.01, epsabs=1e-15)[0]
        np.testing.assert_allclose(ft.grad(stats.vonmises.cdf, 1)(0.01, kappa), expected, rtol=1e-9)


# Discrete distributions.


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name, method):
    shapes = DISCRETE[name]
    ours, theirs = (
        getattr(getattr(stats, name), method),
        getattr(getattr(scipy.stats, name), method),
    )
    k = np.array([-2.0, 0, 1, 2, 3, 4, 5, 7, 9, 2.5, np.nan])
    with np.errstate(all="ignore"):
        expected = theirs(k, *shapes, 1)
        np.testing.assert_allclose(lanes(ours, k, *shapes, 1), expected, rtol=1e-11, atol=1e-15)
        assert np.isnan(lanes(ours, k, *(-1.5,) * len(shapes), 0)).all()
    whole, free = shapes[: WHOLE.get(name, 0)], shapes[WHOLE.get(name, 0) :]
    if not free:
        return
    count = np.array([1, 2, 4] if name != "bernoulli" else [0, 0, 0])
    function = lambda *free: ours(count, *whole, *free)
    check_derivatives(function, near(free))
    check_lanes(function, near(free))
    with pytest.raises(ft.errors.MissingRuleError, match=r"count.*stop_gradient"):
        ft.grad(lambda k: ours(k, *shapes))(2.0)
    with pytest.raises(ft.errors.MissingRuleError, match=r"count.*stop_gradient"):
        ft.jvp(lambda loc: ours(2, *shapes, loc), (0.0,), (1.0,))


@pytest.mark.parametrize("name", DISCRETE)
def test_quantiles_and_moments_of_discrete_distributions(name):
    shapes = DISCRETE[name]
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    q = np.array([0.0, 0.2, 0.5, 0.9, 1.0, np.nan, 2.0])
    for method in QUANTILES:
        expected = getattr(theirs, method)(q, *shapes, 1)
        np.testing.assert_array_equal(lanes(getattr(ours, method), q, *shapes, 1), expected)
        slope = ft.grad(lambda q, loc, m=method: getattr(ours, m)(q, *shapes, loc), (0, 1))(
            0.3, 1.0
        )
        assert slope == (0, 1)
    for method in MOMENTS:
        if (name, method) in NO_FORMULA:
            continue
        function = getattr(ours, method)
        expected = getattr(theirs, method)(*shapes, 1)
        np.testing.assert_allclose(lanes(function, *shapes, 1)[0], expected, rtol=1e-12)
        whole, free = shapes[: WHOLE.get(name, 0)], shapes[WHOLE.get(name, 0) :]
        if method != "median" and free:
            free = tuple(np.float64(each) for each in free)
            check_derivatives(lambda *free, f=function, w=whole: f(*w, *free), free)
        if method != "median" and whole:
            with pytest.raises(ft.errors.MissingRuleError, match="whole number"):
                ft.grad(function)(2.0, *shapes[1:])


# Parameters that are held, options, and SciPy's own objects.


def test_distributions_hold_parameters():
    def loss(mean, scale):
        held = stats.norm(mean, scale=scale)
        low, high = held.interval(confidence=0.9)
        return held.logpdf(0.3) + held.cdf(1.0) + held.mean() * held.std() + high - low**2

    reference = scipy.stats.norm(0.2, 1.3)
    low, high = reference.interval(0.9)
    expected = reference.logpdf(0.3) + reference.cdf(1.0) + 0.2 * 1.3 + high - low**2
    np.testing.assert_allclose(traced(loss, 0.2, 1.3), expected, rtol=1e-12)
    check_derivatives(loss, (np.float64(0.2), np.float64(1.3)))
    held = stats.gamma(2.0, scale=3.0)
    assert held.support() == scipy.stats.gamma(2.0, scale=3.0).support()
    assert held.stats() == scipy.stats.gamma(2.0, scale=3.0).stats()
    assert (held.a, held.b) == (0.0, np.inf)
    with pytest.raises(ft.errors.MissingRuleError, match=r"functrans\.random"):
        ft.grad(lambda m: stats.norm(m).rvs())(0.1)
    with pytest.raises(ft.errors.MissingRuleError, match="moments"):
        ft.grad(lambda m: stats.norm.stats(m, moments="mvsk"))(0.1)
    with pytest.raises(AttributeError):
        held.nothing


def test_parameters_are_read_as_scipy_reads_them():
    for wrong in ((1.0, 2.0, 3.0, 4.0, 5.0), (1.0,)):
        with pytest.raises(TypeError):
            ft.grad(lambda x, w=wrong: stats.beta.logpdf(x, *w))(0.3)
    with pytest.raises(TypeError, match="no parameter 'b'"):
        ft.grad(lambda x: stats.norm.logpdf(x, b=1.0))(0.3)
    with pytest.raises(TypeError, match="two values"):
        ft.grad(lambda x: stats.norm.logpdf(x, 1.0, loc=1.0))(0.3)
    got = ft.grad(lambda s: stats.gamma.logpdf(0.3, scale=s, a=[2.0, 3.0]).sum())(1.4)
    np.testing.assert_allclose(
        got, ft.grad(lambda s: np.sum(stats.gamma.logpdf(0.3, [2.0, 3.0], 0, s)))(1.4)
    )
    single = traced(stats.norm.logpdf, np.float32(0.3))
    assert single.dtype == scipy.stats.norm.logpdf(np.float32(0.3)).dtype


def test_methods_stand_in_for_those_of_scipy():
    methods = stats.METHODS
    logpdf = methods[scipy.stats.rv_continuous, "logpdf"]
    assert ft.grad(lambda x: logpdf(scipy.stats.norm, x, 0.0, 2.0))(1.0) == -0.25
    frozen = scipy.stats.gamma(2.0, scale=3.0)
    held = methods[type(frozen), "logpdf"]
    np.testing.assert_allclose(traced(lambda x: held(frozen, x), 1.3), frozen.logpdf(1.3))
    freeze = methods[scipy.stats.rv_continuous.__mro__[1], "__call__"]
    slope = ft.grad(lambda s: freeze(scipy.stats.norm, 0.0, s).logpdf(2.0))(1.0)
    np.testing.assert_allclose(slope, 3.0)
    mean = methods[scipy.stats.rv_continuous.__mro__[1], "mean"]
    np.testing.assert_allclose(ft.grad(lambda mu: mean(scipy.stats.poisson, mu))(2.0), 1.0)
    with pytest.raises(ft.errors.MissingRuleError, match=r"scipy\.stats\.kappa3\.logpdf.*norm"):
        ft.grad(lambda x: logpdf(scipy.stats.kappa3, x, 1.0))(0.3)
    for (kind, name), function in methods.items():
        assert callable(getattr(kind, name)) and callable(function)


# Distributions of vectors and matrices.


def positive(size):
    x = RNG.normal(size=(size, size))
    return x @ x.T + 2 * np.eye(size)


POINT = np.array([0.2, 0.5, 0.3])
VECTORS = [
    ("multivariate_normal", "logpdf", (RNG.normal(size=(4, 3)), RNG.normal(size=3), positive(3))),
    ("multivariate_normal", "pdf", (RNG.normal(size=3), RNG.normal(size=3), positive(3))),
    ("multivariate_normal", "logpdf", (RNG.normal(size=(2, 4, 3)), POINT, POINT + 1)),
    ("multivariate_normal", "entropy", (POINT, positive(3))),
    ("multivariate_t", "logpdf", (RNG.normal(size=(4, 3)), POINT, positive(3), np.float64(3.2))),
    ("multivariate_t", "pdf", (RNG.normal(size=3), POINT, positive(3), np.float64(3.2))),
    ("multivariate_t", "entropy", (POINT, positive(3), np.float64(3.2))),
    ("dirichlet", "logpdf", (POINT, POINT + 1)),
    ("dirichlet", "pdf", (np.stack([POINT, POINT[::-1]], axis=1), POINT + 1)),
    *[("dirichlet", method, (POINT + 1,)) for method in ("mean", "var", "cov", "entropy")],
    ("wishart", "logpdf", (positive(3), np.float64(4.3), positive(3))),
    ("wishart", "pdf", (np.stack([positive(2), positive(2)], -1), np.float64(4.3), positive(2))),
    *[("wishart", method, (np.float64(4.3), positive(3))) for method in ("mean", "var")],
]


@pytest.mark.parametrize("name,method,args", VECTORS, ids=[f"{a}.{b}" for a, b, _ in VECTORS])
def test_distributions_of_vectors(name, method, args):
    function, reference = getattr(getattr(stats, name), method), getattr(scipy.stats, name)
    expected = getattr(reference, method)(*args)
    np.testing.assert_allclose(traced(function, *args), expected, rtol=1e-9)
    assert np.shape(traced(function, *args)) == np.shape(expected)
    held = getattr(stats, name)(*args[1:]) if "pdf" in method else getattr(stats, name)(*args)
    own = args[:1] if "pdf" in method else ()
    np.testing.assert_allclose(getattr(held, method)(*own), expected, rtol=1e-9)
    if own:
        np.testing.assert_allclose(traced(getattr(held, method), *own), expected, rtol=1e-9)

    def symmetric(*args):
        """SciPy reads one triangle of a matrix, or checks what is not perturbed alone."""
        square = [
            k for k, each in enumerate(args) if each.ndim == 2 and each.shape[0] == each.shape[1]
        ]
        square = [k for k in square if (name, k) != ("dirichlet", 0)]
        args = [(each + each.T) / 2 if k in square else each for k, each in enumerate(args)]
        if name == "wishart" and args[0].ndim == 3:
            args[0] = (args[0] + np.swapaxes(args[0], 0, 1)) / 2
        if name == "dirichlet" and "pdf" in method:
            args[0] = args[0][:-1]
        return function(*args)

    check_derivatives(symmetric, args)
    check_lanes(symmetric, args)


@pytest.mark.parametrize(
    "x,mean,cov",
    [
        (0.3, 0.1, 2.0),
        (POINT, None, 2.0),
        (POINT, None, np.eye(3)),
        (np.ones((2, 3)), None, np.eye(3)),
    ]
    + [(POINT, POINT, 2.0), (np.ones((1, 3)), POINT, POINT), (POINT, [0.0], [[2.0]])],
)
def test_multivariate_normal_takes_what_scipy_takes(x, mean, cov):
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    got = traced(lambda x: stats.multivariate_normal.logpdf(x, mean, cov), x)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert np.shape(got) == np.shape(expected)
    got = traced(lambda x: stats.multivariate_t.logpdf(x, mean, cov, 2.5), x)
    np.testing.assert_allclose(
        got, scipy.stats.multivariate_t.logpdf(x, mean, cov, 2.5), rtol=1e-12
    )


def test_multivariate_normal_on_a_plane():
    cov = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    on, off = np.array([0.5, 0.5, 1.0]), np.array([0.5, 0.6, 1.0])
    for x in (on, off, np.stack([on, off])):
        logpdf = lambda x: stats.multivariate_normal.logpdf(
            x, np.zeros(3), cov, allow_singular=True
        )
        expected = scipy.stats.multivariate_normal.logpdf(x, np.zeros(3), cov, allow_singular=True)
        np.testing.assert_allclose(traced(logpdf, x), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(logpdf, 0)(on), [-0.25, -0.25, -0.5], rtol=1e-12)
    with pytest.raises(ft.errors.MissingRuleError, match="singular"):
        ft.grad(lambda c: stats.multivariate_normal.logpdf(on, None, c, True))(cov)
    with pytest.raises(np.linalg.LinAlgError):
        ft.grad(lambda c: stats.multivariate_normal.logpdf(on, None, c))(cov)
    full = positive(3)
    slope = ft.grad(lambda c: stats.multivariate_normal.logpdf(on, None, c, True))(full)
    np.testing.assert_allclose(
        slope, ft.grad(lambda c: stats.multivariate_normal.logpdf(on, None, c))(full)
    )
    held = scipy.stats.multivariate_normal(np.ones(3), full)
    logpdf = stats.METHODS[type(held), "logpdf"]
    np.testing.assert_allclose(traced(lambda x: logpdf(held, x), on), held.logpdf(on))
    covariance = scipy.stats.Covariance.from_diagonal([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        traced(lambda x: stats.multivariate_normal.logpdf(x, np.ones(3), covariance), on),
        scipy.stats.multivariate_normal.logpdf(on, np.ones(3), covariance),
    )
    with pytest.raises(ft.errors.MissingRuleError, match="cdf"):
        ft.grad(lambda m: stats.multivariate_normal(m, full).cdf(on))(np.ones(3))


# Statistics of samples.

SAMPLE = RNG.uniform(0.5, 3.0, size=(5, 3))
OTHER = RNG.uniform(0.5, 3.0, size=(5, 3))
WEIGHTS = RNG.uniform(0.5, 3.0, size=5)
STATISTICS = {
    "zscore": ("zscore", (SAMPLE,), [{}, {"axis": 1, "ddof": 1}, {"axis": None}]),
    "zmap": ("zmap", (SAMPLE, OTHER), [{}, {"axis": None}]),
    "gmean": ("gmean", (SAMPLE,), [{}, {"axis": None}, {"axis": 1, "keepdims": True}]),
    "gmean weights": ("gmean", (SAMPLE[:, 0], 0, None, WEIGHTS), [{}]),
    "hmean": ("hmean", (SAMPLE,), [{}, {"axis": None}]),
    "pmean": ("pmean", (SAMPLE, np.array(2.5)), [{}, {"axis": 1}]),
    "skew": ("skew", (SAMPLE,), [{}, {"bias": False}, {"axis": None}, {"keepdims": True}]),
    "kurtosis": ("kurtosis", (SAMPLE,), [{}, {"bias": False}, {"fisher": False}, {"axis": None}]),
    "moment": ("moment", (SAMPLE,), [{"order": 3}, {"order": [1, 2]}, {"center": 0.4}]),
    "sem": ("sem", (SAMPLE,), [{}, {"ddof": 0, "axis": 1}, {"axis": None}]),
    "variation": ("variation", (SAMPLE,), [{}, {"ddof": 1, "axis": 1}, {"axis": None}]),
    "trim_mean": (
        "trim_mean",
        (SAMPLE,),
        [{"proportiontocut": 0.2}, {"proportiontocut": 0.1, "axis": None}]
        + [{"proportiontocut": 0.2, "keepdims": True}],
    ),
    "iqr": ("iqr", (SAMPLE,), [{}, {"axis": 0}, {"axis": 1, "rng": (10, 90), "scale": "normal"}]),
    "entropy": ("entropy", (SAMPLE,), [{}, {"base": 2, "axis": 1}]),
    "relative entropy": ("entropy", (SAMPLE, OTHER), [{}, {"axis": 1, "keepdims": True}]),
    "boxcox_llf": ("boxcox_llf", (np.array(0.7), SAMPLE), [{}, {"axis": 1}]),
}


@pytest.mark.parametrize("case", STATISTICS)
def test_statistics(case):
    name, args, variants = STATISTICS[case]
    for options in variants:
        call = lambda f, *xs, o=options: f(*_filled(args, xs), **o)
        ours = lambda *xs, c=call: c(getattr(stats, name), *xs)
        reals = tuple(x for x in args if isinstance(x, np.ndarray))
        if name == "pmean":
            expected = scipy.stats.pmean(SAMPLE, 2.5, **options)
        else:
            expected = call(getattr(scipy.stats, name), *reals)
        got = traced(ours, *reals)
        np.testing.assert_allclose(got, expected, rtol=1e-11)
        assert np.shape(got) == np.shape(expected)
        always = lambda *xs, o=ours: ft.vmap(o)(*(x[None] for x in xs))[0]  # SciPy checks types
        check_derivatives(always if name == "pmean" else ours, reals)
        if name != "pmean":
            check_lanes(ours, reals)
        single = tuple(x.astype(np.float32) for x in reals if x.ndim)
        if len(single) == len(reals):
            found = np.asarray(ft.jvp(ours, single, single)[0])
            assert found.dtype == np.asarray(call(getattr(scipy.stats, name), *single)).dtype


def _filled(args, arrays):
    """The arguments with their arrays replaced."""
    arrays = iter(arrays)
    return [next(arrays) if isinstance(x, np.ndarray) else x for x in args]


def test_statistics_refuse_what_has_no_rule():
    with pytest.raises(ft.errors.MissingRuleError, match="nan_policy"):
        ft.grad(lambda x: stats.skew(x, nan_policy="omit"))(SAMPLE[:, 0])
    with pytest.raises(ft.errors.MissingRuleError, match="method="):
        method = scipy.stats.PermutationMethod()
        ft.grad(lambda x: stats.pearsonr(x, x, method=method).statistic)(SAMPLE[:, 0])
    assert np.isnan(traced(stats.skew, np.ones(4)))
    np.testing.assert_allclose(traced(lambda x: stats.pmean(x, 0), SAMPLE), stats.gmean(SAMPLE))


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_pearsonr(alternative):
    x, y = SAMPLE[:, 0], OTHER[:, 0]
    for part in ("statistic", "pvalue"):
        ours = lambda x, y, p=part: getattr(stats.pearsonr(x, y, alternative=alternative), p)
        expected = getattr(scipy.stats.pearsonr(x, y, alternative=alternative), part)
        np.testing.assert_allclose(traced(ours, x, y), expected, rtol=1e-10)
        check_derivatives(ours, (x, y))
        check_lanes(ours, (x, y))


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("bandwidth", [None, "silverman", 0.4])
def test_kernel_density(dimension, bandwidth):
    sample = SAMPLE.T[:dimension] if dimension > 1 else SAMPLE[:, 0]
    points = OTHER.T[:dimension, :2]
    for method in ("evaluate", "pdf", "logpdf", "__call__"):
        ours = lambda s, w, x, m=method: getattr(stats.gaussian_kde(s, bandwidth, w), m)(x)
        theirs = scipy.stats.gaussian_kde(sample, bandwidth, WEIGHTS)
        expected = getattr(theirs, method)(points)
        np.testing.assert_allclose(traced(ours, sample, WEIGHTS, points), expected, rtol=1e-10)
        own = stats.METHODS[scipy.stats.gaussian_kde, method]
        np.testing.assert_allclose(
            traced(lambda x, o=own, t=theirs: o(t, x), points), expected, rtol=1e-10
        )
    check_derivatives(ours, (sample, WEIGHTS, points))
    check_lanes(ours, (sample, WEIGHTS, points))


def test_lanes_of_parameters_and_points():
    mean, x = np.array([0.1, 0.5]), np.array([1.0, -2.0])
    slopes = ft.vmap(ft.grad(stats.norm.logpdf, (0, 1)))(x, mean)
    expected = loop_vmap(ft.grad(stats.norm.logpdf, (0, 1)), 0, (0, 0))(x, mean)
    assert_trees_close(slopes, expected, 1e-13)
