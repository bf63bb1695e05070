"""The ufuncs of scipy.special on traced values, each held against numerical derivatives and loops.

A row of the table is a name and its arguments: a tuple is an array of points to differentiate at, which
avoid singularities; a number is an argument that has no derivative.
"""

import subprocess
import sys

import numpy as np
import pytest
import scipy.special as sc

import functrans as ft
from tests.support.oracles import central_difference_jvp

P = (0.4, 1.3, 2.6)  # positive
R = (-1.7, 0.3, 1.2)  # real
U = (0.15, 0.4, 0.8)  # between 0 and 1
S = (-0.7, 0.1, 0.6)  # between -1 and 1
Q = (1.4, 2.1, 0.7)  # positive, unlike P
BIG = (1.7, 3.2, 7.5)

TABLE = [
    # Powers, exponentials, logarithms.
    ("expm1", R),
    ("log1p", P),
    ("exp2", R),
    ("exp10", S),
    ("cbrt", R),
    ("exprel", (-2.0, 0.0, 1.5)),
    ("powm1", P, R),
    ("expit", R),
    ("log_expit", R),
    ("logit", U),
    ("xlogy", R, P),
    ("xlog1py", R, P),
    ("entr", P),
    ("rel_entr", P, Q),
    ("kl_div", P, Q),
    ("boxcox", P, (-0.5, 0.0, 1.5)),
    ("boxcox1p", P, (-0.5, 0.0, 1.5)),
    ("inv_boxcox", P, (-0.3, 0.0, 1.5)),
    ("inv_boxcox1p", P, (-0.3, 0.0, 1.5)),
    ("huber", (1.0, 1.0, 2.0), (-1.7, 0.3, 1.2)),
    ("pseudo_huber", Q, R),
    ("cosm1", R),
    ("sindg", (10.0, 100.0, -40.0)),
    ("cosdg", (10.0, 100.0, -40.0)),
    ("tandg", (10.0, 100.0, -40.0)),
    ("cotdg", (10.0, 100.0, -40.0)),
    ("radian", P, Q, R),
    ("wrightomega", R),
    # Gamma.
    ("gamma", (-1.4, 0.4, 2.6)),
    ("gammaln", (-1.4, 0.4, 2.6)),
    ("loggamma", P),
    ("rgamma", (-2.0, 0.3, 2.6)),
    ("psi", (-1.4, 0.4, 2.6)),
    ("beta", P, Q),
    ("betaln", P, Q),
    ("binom", (3.3, 4.1, 5.2), (0.7, 1.6, 2.3)),
    ("poch", P, Q),
    ("zeta", (1.4, 2.0, 6.5), P),
    ("zetac", (-1.4, 2.0, 6.5)),
    ("gammainc", Q, P),
    ("gammaincc", Q, P),
    ("gammaincinv", Q, U),
    ("gammainccinv", Q, U),
    ("betainc", Q, P, U),
    ("betaincc", Q, P, U),
    ("betaincinv", Q, P, U),
    ("betainccinv", Q, P, U),
    # Error functions.
    ("erf", R),
    ("erfc", R),
    ("erfcx", (-1.7, 0.3, 60.0)),
    ("erfi", R),
    ("erfinv", S),
    ("erfcinv", (0.3, 0.9, 1.6)),
    ("wofz", R),
    ("dawsn", (-1.7, 0.3, 60.0)),
    ("voigt_profile", R, Q, P),
    ("ndtr", R),
    ("ndtri", U),
    ("log_ndtr", (-30.0, 0.3, 2.0)),
    ("ndtri_exp", (-20.0, -1.3, -0.1)),
    ("owens_t", R, P),
    # Integrals.
    ("exp1", P),
    ("expi", P),
    ("expn", 3, P),
    ("expn", 0, P),
    ("spence", (0.4, 1.0, 3.6)),
    ("sici", P),
    ("shichi", P),
    ("fresnel", R),
    ("modfresnelp", P),
    ("modfresnelm", P),
    # Distributions.
    ("bdtr", 3.0, 7, U),
    ("bdtrc", 3.0, 7, U),
    ("bdtri", 3.0, 7, U),
    ("nbdtr", 3, 4, U),
    ("nbdtrc", 3, 4, U),
    ("nbdtri", 3, 4, U),
    ("pdtr", 2.0, P),
    ("pdtrc", 2.0, P),
    ("pdtri", 2, U),
    ("chdtr", Q, P),
    ("chdtrc", Q, P),
    ("chdtri", Q, U),
    ("chndtr", BIG, 3.3, (0.01, 0.4, 2.1)),
    ("chndtrix", U, 3.3, Q),
    ("fdtr", Q, BIG, P),
    ("fdtrc", Q, BIG, P),
    ("fdtri", Q, BIG, U),
    ("gdtr", Q, BIG, P),
    ("gdtrc", Q, BIG, P),
    ("gdtrix", Q, BIG, U),
    ("gdtria", U, BIG, P),
    ("stdtr", BIG, R),
    ("stdtrit", BIG, U),
    ("nrdtrimn", U, P, R),
    ("nrdtrisd", (-2.0, -1.9, -1.8), (0.6, 0.7, 0.8), R),
    ("tklmbda", (-0.4, 0.1, 0.3), 0.7),
    ("kolmogorov", (0.4, 0.99, 2.6)),
    ("kolmogi", U),
    ("chdtriv", U, BIG),
    ("gdtrib", Q, U, BIG),
    ("btdtria", U, P, (0.3, 0.5, 0.6)),
    ("btdtrib", P, U, (0.3, 0.5, 0.6)),
    ("chndtrinc", (1.7, 3.2, 5.5), 3.3, (0.3, 0.2, 0.4)),
    # Bessel functions.
    *[(name, order, P) for name in ("jv", "yv", "iv", "kv", "jve", "yve") for order in (1.3, 2)],
    *[(name, order, P) for name in ("ive", "kve", "hankel1", "hankel2") for order in (1.3, 2)],
    *[(name, order, P) for name in ("hankel1e", "hankel2e") for order in (1.3, 2)],
    ("yn", 2, P),
    ("kn", 2, P),
    *[(name, R) for name in ("j0", "j1", "i0", "i1", "i0e", "i1e")],
    *[(name, P) for name in ("y0", "y1", "k0", "k1", "k0e", "k1e")],
    ("wright_bessel", 0.7, 1.2, P),
    ("log_wright_bessel", 0.7, 1.2, P),
    ("besselpoly", P, 1.5, 2.0),
    ("struve", 1.3, P),
    ("modstruve", 1.3, P),
    *[(name, P) for name in ("itj0y0", "iti0k0", "it2j0y0", "it2i0k0")],
    *[(name, P) for name in ("itstruve0", "it2struve0", "itmodstruve0")],
    ("itairy", P),
    ("airy", R),
    ("airye", P),
    *[(name, (0.0, 1.3, 2.6)) for name in ("ber", "bei", "berp", "beip")],
    *[(name, P) for name in ("ker", "kei", "kerp", "keip", "kelvin")],
    ("pbdv", 1.3, P),
    ("pbvv", 1.3, P),
    ("pbwa", 1.3, P),
    ("mathieu_cem", 2, 1.5, (10.0, 100.0, 40.0)),
    ("mathieu_sem", 2, 1.5, (10.0, 100.0, 40.0)),
    *[(f"mathieu_mod{kind}", 2, 1.5, P) for kind in ("cem1", "cem2", "sem1", "sem2")],
    # Elliptic integrals.
    ("ellipk", (-2.0, 0.0, 0.7)),
    ("ellipe", (-2.0, 0.0, 0.7)),
    ("ellipkm1", (0.01, 0.4, 1.0)),
    ("ellipkinc", (-0.7, 0.9, 4.0), (-2.0, 0.0, 0.7)),
    ("ellipeinc", (-0.7, 0.9, 4.0), (-2.0, 0.0, 0.7)),
    ("ellipj", (0.7, 1.9, 4.0), (0.2, 0.4, 0.7)),
    ("elliprc", P, Q),
    ("elliprd", (0.4, 1.3, 2.0), (1.4, 1.3, 0.7), (0.9, 1.3, 2.0)),
    ("elliprf", (0.4, 1.3, 2.0), (1.4, 1.3, 0.7), (0.9, 1.3, 2.0)),
    ("elliprg", P, Q, (0.9, 3.0, 1.9)),
    ("elliprj", P, Q, (0.9, 3.0, 1.9), (1.1, 2.4, 0.5)),
    ("elliprj", (1.3, 0.8, 0.7), (0.6, 1.4, 0.7), (1.3, 0.9, 1.9), (1.3, 1.4, 0.7)),
    ("agm", P, (1.4, 1.3, 0.7)),
    # Polynomials and hypergeometric functions.
    *[
        (f"eval_{family}", degree, S)
        for family in ("chebyt", "chebyu", "chebyc", "chebys", "legendre", "laguerre")
        for degree in (0, 3, 2.5)
    ],
    *[
        (f"eval_{family}", degree, S)
        for family in ("sh_chebyt", "sh_chebyu", "sh_legendre", "hermite", "hermitenorm")
        for degree in (1, 4)
    ],
    ("eval_genlaguerre", 3, 1.2, P),
    ("eval_gegenbauer", 3, 1.2, S),
    ("eval_jacobi", 3, 1.2, 0.7, S),
    ("eval_sh_jacobi", 3, 1.7, 1.2, U),
    ("lpmv", 1, 2.5, S),
    ("hyp0f1", 1.7, R),
    ("hyp1f1", 1.2, 2.3, R),
    ("hyp2f1", 1.2, 0.7, 2.3, S),
    ("hyperu", 1.2, 2.3, P),
]
IDS = [f"{name}-{k}" for k, (name, *_) in enumerate(TABLE)]
for_each = pytest.mark.parametrize("name,args", [(row[0], row[1:]) for row in TABLE], ids=IDS)

# SciPy computes these to less than full accuracy, or by iteration, so differences of values are noisy.
NOISY = {"chndtr": 1e-6, "chndtrix": 1e-4, "itairy": 1e-3, "it2i0k0": 1e-5, "it2j0y0": 1e-6}


def moving(name, args):
    """The function of the differentiated arguments alone, as one real array, and these arguments."""
    ufunc = getattr(sc, name)
    places = [k for k, arg in enumerate(args) if isinstance(arg, tuple)]

    def function(*points):
        full = list(args)
        for place, point in zip(places, points, strict=True):
            full[place] = point
        out = ufunc(*full)
        parts = out if isinstance(out, tuple) else (out,)
        return np.stack([f(part) for part in parts for f in (np.real, np.imag)])

    return function, tuple(np.array(args[place]) for place in places)


PACE = np.array([0.6, 1.0, 1.5])  # how fast each entry of an argument moves


def directions(points):
    """One argument at a time moves."""
    for k in range(len(points)):
        yield tuple(PACE * (j == k) for j in range(len(points)))


@for_each
def test_first_derivatives_are_the_numerical_ones(name, args):
    function, points = moving(name, args)
    for tangents in directions(points):
        out, tangent = ft.jvp(function, points, tangents)
        np.testing.assert_array_equal(out, function(*points))
        assert np.isfinite(tangent).all()
        step = 1e-2 if name in NOISY else 1e-3
        expected = central_difference_jvp(function, points, tangents, step)
        np.testing.assert_allclose(tangent, expected, rtol=NOISY.get(name, 1e-8), atol=1e-9)


@for_each
def test_reverse_mode_is_the_transpose_of_forward_mode(name, args):
    function, points = moving(name, args)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, function(*points).shape)
    cotangents = ft.vjp(function, *points)[1](weights)
    for cotangent, tangents in zip(cotangents, directions(points), strict=True):
        # Entry i of the result depends on entry i of each argument alone.
        tangent = ft.jvp(function, points, tangents)[1]
        np.testing.assert_allclose(cotangent * PACE, (weights * tangent).sum(axis=0), rtol=1e-12)


@for_each
def test_second_derivatives_are_the_numerical_ones_of_the_first(name, args):
    function, points = moving(name, args)

    def gradient(*points):
        return ft.grad(lambda *p: np.sum(function(*p)), tuple(range(len(points))))(*points)

    for tangents in directions(points):
        second = ft.jvp(gradient, points, tangents)[1]
        expected = central_difference_jvp(gradient, points, tangents, 1e-3)
        for one, other in zip(second, expected, strict=True):
            assert np.isfinite(one).all()
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@for_each
def test_vmap_is_a_loop_also_over_derivatives(name, args):
    function, points = moving(name, args)

    def gradient(*points):
        return ft.grad(lambda *p: np.sum(function(*p)), tuple(range(len(points))))(*points)

    one_by_one = [function(*(p[i] for p in points)) for i in range(3)]
    np.testing.assert_allclose(ft.vmap(function)(*points), np.stack(one_by_one), rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(gradient)(*points), gradient(*points), rtol=1e-12)
    # Some arguments mapped, some shared.
    if len(points) > 1:
        shared = points[0][1]
        mapped = ft.vmap(lambda *rest: function(shared, *rest))(*points[1:])
        looped = [function(shared, *(p[i] for p in points[1:])) for i in range(3)]
        np.testing.assert_allclose(mapped, np.stack(looped), rtol=1e-12)


@for_each
def test_graphs_give_the_same_values_and_derivatives(name, args):
    function, points = moving(name, args)

    def gradient(*points):
        return ft.grad(lambda *p: np.sum(function(*p)), tuple(range(len(points))))(*points)

    np.testing.assert_allclose(ft.make_graph(function)(*points)(*points), function(*points))
    np.testing.assert_allclose(ft.make_graph(gradient)(*points)(*points), gradient(*points))


@pytest.mark.filterwarnings("ignore:non-integer arg n")
@for_each
def test_arguments_without_a_derivative_are_refused(name, args):
    ufunc = getattr(sc, name)
    for place, held in enumerate(args):
        if isinstance(held, tuple) or name in ("eval_hermite", "eval_hermitenorm"):
            continue  # the degree of Hermite's polynomials is an integer to SciPy
        plain = [float(np.mean(arg)) for arg in args]

        def function(order, place=place, plain=plain):
            out = ufunc(*plain[:place], order, *plain[place + 1 :])
            return out[0] if isinstance(out, tuple) else np.real(out)

        for differentiate in (ft.grad(function), lambda v: ft.jvp(function, (v,), (1.0,))):
            with pytest.raises(
                ft.errors.MissingRuleError, match=f"{name} has no derivative with respect to its"
            ):
                differentiate(plain[place])


def slopes(name, *point):
    """The derivative with respect to each argument."""
    with np.errstate(all="ignore"):
        return ft.grad(getattr(sc, name), tuple(range(len(point))))(*map(np.float64, point))


@pytest.mark.parametrize(
    "name,point,expected",
    [
        ("xlogy", (0, 0), (-np.inf, 0)),
        ("xlogy", (0, 2), (np.log(2), 0)),
        ("xlog1py", (0, -1), (-np.inf, 0)),
        ("entr", (0,), (np.inf,)),
        ("rel_entr", (0, 0), (0, 0)),
        ("rel_entr", (0, 1), (0, 0)),
        ("kl_div", (0, 0), (-1, 1)),
        ("kl_div", (0, 1), (-1, 1)),
        ("logit", (0,), (np.inf,)),
        ("expit", (-800,), (0,)),
        ("expit", (800,), (0,)),
        ("log_ndtr", (-1e5,), (1e5 + 1e-5,)),
        ("log_ndtr", (60,), (0,)),
        ("i0e", (0,), (0,)),
        ("i1e", (0,), (0.5,)),
        ("j1", (0,), (0.5,)),
        ("spence", (1,), (-1,)),
        ("exprel", (0,), (0.5,)),
        ("rgamma", (-3,), (-6,)),
        ("ellipk", (0,), (np.pi / 8,)),
        ("agm", (2, 2), (0.5, 0.5)),
        ("elliprf", (1, 1, 1), (-1 / 6, -1 / 6, -1 / 6)),
        ("elliprd", (1, 1, 1), (-0.3, -0.3, -0.9)),
        ("elliprj", (1, 1, 1, 1), (-0.3, -0.3, -0.3, -0.6)),
        ("erfcx", (1e9,), (-1e-18 / np.sqrt(np.pi),)),
        ("dawsn", (-1e9,), (-0.5e-18,)),
        ("powm1", (0, 2), (0, 0)),
        ("boxcox", (np.e, 0), (1 / np.e, 0.5)),
        ("inv_boxcox", (1, 0), (np.e, -np.e / 2)),
        ("huber", (1, 1), (0, 1)),
        ("ellipj", (0, 0), None),
    ],
)
def test_limits_and_conventions(name, point, expected):
    if expected is None:
        out, tangent = ft.jvp(sc.ellipj, tuple(map(float, point)), (1.0, 0.0))
        np.testing.assert_allclose(out, (0, 1, 1, 0))
        np.testing.assert_allclose(tangent, (1, 0, 0, 1))
    else:
        np.testing.assert_allclose(slopes(name, *point), expected, rtol=1e-9, atol=1e-200)


@pytest.mark.parametrize("a", [0.02, 0.7, 30.0, 2e3, 1e5])
@pytest.mark.parametrize("distance", [-6.0, -1.0, 0.5, 5.0])
def test_integrals_by_their_shape_are_accurate_in_both_tails(a, distance):
    def slope(function, step):
        return central_difference_jvp(function, (a,), (1.0,), step * min(a, np.sqrt(a)))

    x = a * np.exp(distance / np.sqrt(a))
    upper = x > a
    tail = sc.gammaincc if upper else sc.gammainc
    expected = slope(lambda a: tail(a, x), 0.01)
    np.testing.assert_allclose(ft.grad(tail)(a, x), expected, rtol=1e-8)
    b = 3.3
    x = sc.expit(np.log(a / b) + distance * np.sqrt(1 / a + 1 / b) / 2)
    tail = sc.betaincc if x > a / (a + b) else sc.betainc
    expected = slope(lambda a: tail(a, b, x), 0.01)
    np.testing.assert_allclose(ft.grad(tail)(a, b, x), expected, rtol=1e-7)
    mirrored = sc.betainc if tail is sc.betaincc else sc.betaincc
    expected = slope(lambda a: mirrored(b, a, 1 - x), 0.01)
    np.testing.assert_allclose(ft.grad(mirrored, 1)(b, a, 1 - x), expected, rtol=1e-7)


@pytest.mark.parametrize("x", [60.0, -60.0])
def test_the_curvature_of_log_ndtr_is_finite_in_both_tails(x):
    np.testing.assert_allclose(
        ft.grad(ft.grad(sc.log_ndtr))(x), 0.0 if x > 0 else -1 + 1 / x**2, atol=1e-6
    )


@pytest.mark.parametrize(
    "function",
    [
        sc.erf,
        sc.wofz,
        sc.loggamma,
        lambda z: sc.jv(1.5, z),
        lambda z: sc.kve(1.5, z),
        lambda z: sc.hyp1f1(1.2, 2.3, z),
        lambda z: sc.airy(z)[2],
        sc.lambertw,
        sc.dawsn,
        sc.rgamma,
    ],
)
def test_holomorphic_functions_have_their_complex_derivative(function):
    z, h = np.array([0.4 + 0.7j, 1.3 - 0.2j]), 1e-4
    derivative = np.diagonal(ft.jacrev(function, holomorphic=True)(z))
    difference = (function(z + h) - function(z - h)) / (2 * h)
    vertical = (function(z + 1j * h) - function(z - 1j * h)) / (2j * h)
    np.testing.assert_allclose(derivative, difference, rtol=1e-6)
    np.testing.assert_allclose(derivative, vertical, rtol=1e-6)


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_scaled_functions_that_are_not_holomorphic_refuse_complex_numbers(name):
    function = getattr(sc, name)
    with pytest.raises(ft.errors.MissingRuleError, match="no complex derivative"):
        ft.jvp(lambda z: function(1.5, z), (1.0 + 2.0j,), (1.0 + 0.0j,))


def test_functions_behind_which_ufuncs_stand_work_as_they_are():
    np.testing.assert_allclose(ft.grad(lambda q: sc.zeta(2.5, q))(0.7), -2.5 * sc.zeta(3.5, 0.7))
    np.testing.assert_allclose(ft.grad(sc.softplus)(0.7), sc.expit(0.7))
    w = sc.lambertw(0.7).real
    np.testing.assert_allclose(ft.grad(lambda z: sc.lambertw(z).real)(0.7), w / (0.7 * (1 + w)))
    np.testing.assert_allclose(ft.grad(lambda x: sc.jvp(2, x))(0.7), sc.jvp(2, 0.7, 2))
    # ζ'(2) = (γ + log 2π - 12 log A) π²/6, with Glaisher's constant A
    expected = np.pi**2 / 6 * (np.euler_gamma + np.log(2 * np.pi) - 12 * np.log(1.2824271291006226))
    np.testing.assert_allclose(ft.grad(sc.zeta)(2.0), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(sc.zeta)(0.0), -np.log(2 * np.pi) / 2, rtol=1e-12)


def test_ufuncs_without_a_derivative_batch_and_stage_but_refuse_to_differentiate():
    x = np.array([0.3, 0.9])
    for function in (lambda x: sc.smirnov(3, x), lambda x: sc.pro_ang1(1, 2, 0.5, x)[1]):
        np.testing.assert_array_equal(ft.vmap(function)(x), function(x))
        np.testing.assert_array_equal(ft.make_graph(function)(x)(x), function(x))
        for differentiate in (ft.grad(function), lambda x, f=function: ft.jvp(f, (x,), (1.0,))):
            with pytest.raises(
                ft.errors.MissingRuleError, match=r"has no derivative with respect to its"
            ):
                differentiate(0.9)


def test_orders_may_be_mapped_and_lists_are_arrays():
    orders, x = np.array([0, 1, 2]), 1.3
    np.testing.assert_array_equal(ft.vmap(lambda n: sc.jv(n, x))(orders), sc.jv(orders, x))
    slope = ft.vmap(lambda n: ft.grad(lambda x: sc.eval_legendre(n, x))(0.3))(orders)
    np.testing.assert_allclose(slope, [0, 1, 0.9])
    out = ft.vmap(lambda x: sc.betainc([1.0, 2.0], 3.0, x))(np.array([0.2, 0.4]))
    np.testing.assert_array_equal(out, sc.betainc([1.0, 2.0], 3.0, [[0.2], [0.4]]))


def test_rules_of_single_precision_do_not_overflow():
    x = np.float32(20.0)
    assert ft.grad(ft.grad(sc.log_ndtr))(x) == 0
    assert ft.grad(sc.log_ndtr)(x) < 1e-30
    for function in (sc.zetac, sc.kolmogorov, lambda x: sc.gammainc(x, x)):
        assert ft.grad(ft.grad(function))(np.float32(1.5)).dtype == np.float32


def test_dtypes_are_those_of_scipy():
    x = np.array([0.3, 0.9], np.float32)
    for function in (sc.erf, lambda x: sc.jv(2, x), lambda x: sc.betainc(1.5, 2.5, x), sc.sici):
        expected = [np.asarray(leaf).dtype for leaf in ft.tree.leaves(function(x))]
        for traced in (ft.jvp(function, (x,), (x,))[1], ft.vmap(function)(x)):
            assert [leaf.dtype for leaf in ft.tree.leaves(traced)] == expected
        assert [spec.dtype for spec in ft.tree.leaves(ft.eval_shape(function, x))] == expected
    assert ft.grad(lambda x: np.sum(sc.gammaln(x)))(x).dtype == np.float32


def test_scipy_is_not_imported_before_it_is_used():
    program = (
        "import sys, functrans, numpy as np\n"
        "functrans.grad(np.sin)(1.0)\n"
        "import functrans.scipy\n"
        "assert not any(name.split('.')[0] == 'scipy' for name in sys.modules)\n"
        "import scipy.special\n"
        "assert 'functrans.scipy.rules' not in sys.modules\n"
        "assert abs(functrans.grad(scipy.special.erf)(0.0) - 2 / np.pi**0.5) < 1e-15\n"
        "assert 'functrans.scipy.rules' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def scaled_slopes(name, x):
    """The first two derivatives of e^-x I_v and e^x K_v, by y'' = (1 + v²/x²) y - y'/x and SciPy's values."""
    sign, v = (1, int(name[1])) if name[0] == "i" else (-1, int(name[1]))
    zeroth, first = getattr(sc, f"{name[0]}0e")(x), getattr(sc, f"{name[0]}1e")(x)
    value = (zeroth, first)[v]
    slope = sign * first if v == 0 else sign * zeroth - first / x
    curvature = (1 + v * v / x**2) * value - slope / x
    return [slope - sign * value, curvature - 2 * sign * slope + value]


@pytest.mark.parametrize("name", ["i0e", "i1e", "k0e", "k1e"])
def test_scaled_bessel_functions_have_derivatives_far_out(name):
    function = getattr(sc, name)
    of_order = getattr(sc, name[0] + "ve")
    for x in (0.7, 8.0, 49.0, 53.0, 300.0):
        for f in (function, lambda x: of_order(int(name[1]), x)):
            found = [ft.grad(f)(x), ft.grad(ft.grad(f))(x)]
            np.testing.assert_allclose(found, scaled_slopes(name, x), rtol=1e-9)
    # Far out e^-x I_v and e^x K_v are c x^-½ to the last digits.
    for x in (1e10, 1e100):
        np.testing.assert_allclose(ft.grad(function)(x), -function(x) / (2 * x), rtol=1e-9)
        if name[0] == "i":
            sign = 1 if name == "i1e" else -1
            assert ft.grad(function)(-x) == sign * ft.grad(function)(x)


@pytest.mark.parametrize("name", ["hankel1e", "hankel2e"])
def test_scaled_hankel_functions_have_derivatives_far_out(name):
    turn = 1j if name == "hankel1e" else -1j
    function = getattr(sc, name)
    for x in (30.0, 54.0, 70.0, 400.0):
        slope = ft.jvp(lambda x: function(1.0, x), (x,), (1.0,))[1]
        near = (function(0.0, x) - function(2.0, x)) / 2 - turn * function(1.0, x)
        np.testing.assert_allclose(slope, near, rtol=1e-11)


END_SHAPES = (0.5, 1.0, 1.5, 2.0, 3.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("a", END_SHAPES)
def test_second_derivatives_of_gammainc_at_its_ends(a):
    # x^(a-1) exp(-x)/Γ(a) has the slope (a-1) x^(a-2)/Γ(a) - ... at 0.
    by_x = {0.5: -np.inf, 1.0: -1.0, 1.5: np.inf, 2.0: 1.0, 3.0: 0.0}[a]
    by_a = 0.0 if a > 1 else -np.inf  # log 0 times the density
    for sign, function in ((1, sc.gammainc), (-1, sc.gammaincc)):
        slopes = [[ft.grad(ft.grad(function, i), j)(a, 0.0) for j in (0, 1)] for i in (0, 1)]
        np.testing.assert_array_equal(slopes, [[0.0, sign * by_a], [sign * by_a, sign * by_x]])
        slopes = [[ft.grad(ft.grad(function, i), j)(a, np.inf) for j in (0, 1)] for i in (0, 1)]
        np.testing.assert_array_equal(slopes, np.zeros((2, 2)))
        forward = ft.jvp(ft.grad(function, 1), (a, 0.0), (0.0, 1.0))[1] if a > 1 else None
        assert forward is None or forward == sign * by_x


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_third_derivatives_of_gammainc_at_zero():
    third = ft.grad(ft.grad(ft.grad(sc.gammainc, 1), 1), 1)
    assert [third(a, 0.0) for a in (2.0, 3.0, 4.0)] == pytest.approx([-2.0, 1.0, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("end", [0.0, 1.0])
@pytest.mark.parametrize("a", END_SHAPES)
@pytest.mark.parametrize("b", END_SHAPES)
def test_second_derivatives_of_betainc_at_its_ends(a, b, end):
    # By I_x(a, b) = 1 - I_{1-x}(b, a), the end 1 is the end 0 with the shapes exchanged.
    own, other = (a, b) if end == 0 else (b, a)
    sign = 1 if end == 0 else -1
    scale = 1 / sc.beta(a, b)
    by_x = {0.5: -np.inf, 1.0: -(other - 1) * scale, 1.5: np.inf, 2.0: scale, 3.0: 0.0}[own]
    density = {0.5: np.inf, 1.0: scale}.get(own, 0.0)
    by_other = density * (sc.psi(a + b) - sc.psi(other)) if density else 0.0
    by_own = 0.0 if own > 1 else -np.inf
    expected = np.zeros((3, 3))
    places = (0, 1) if end == 0 else (1, 0)
    for place, value in zip(places, (by_own, by_other), strict=True):
        expected[place, 2] = expected[2, place] = value
    expected[2, 2] = sign * by_x
    for factor, function in ((1, sc.betainc), (-1, sc.betaincc)):
        slopes = [[ft.grad(ft.grad(function, i), j)(a, b, end) for j in range(3)] for i in range(3)]
        np.testing.assert_allclose(slopes, factor * expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("n", "k"), [(0.0, 1.0), (3.0, 5.0), (2.0, -1.0), (5.0, 2.0), (0.5, 2.5)])
def test_binomial_coefficients_have_slopes_where_they_vanish(n, k):
    h = 1e-5
    for place in (0, 1):
        step = (h, 0.0) if place == 0 else (0.0, h)
        up, down = sc.binom(n + step[0], k + step[1]), sc.binom(n - step[0], k - step[1])
        slope = ft.grad(sc.binom, place)(n, k)
        np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("m", [1, 2, 3])
def test_rising_factorials_have_slopes_at_whole_numbers(m):
    polynomial = np.poly1d([1.0])
    for k in range(m):
        polynomial = polynomial * np.poly1d([1.0, k])
    for x in (-4.0, -2.0, -1.0, 0.0, 1.0, 2.5):
        slope = ft.grad(sc.poch)(x, float(m))
        np.testing.assert_allclose(slope, polynomial.deriv()(x), rtol=1e-12)


def test_integrals_over_the_argument_have_slopes_at_zero():
    assert ft.grad(lambda x: sc.it2j0y0(x)[0])(0.0) == 0.0
    assert ft.grad(lambda x: sc.it2i0k0(x)[0])(0.0) == 0.0
    assert ft.grad(sc.it2struve0)(0.0) == pytest.approx(-2 / np.pi)
