"""functrans.scipy: the functions on which SciPy gives no hook, held against SciPy and against the laws."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

import functrans as ft
from functrans.scipy import linalg, optimize, special
from tests.support.marks import one_in
from tests.support.oracles import assert_trees_close, central_difference_jvp, leaves, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


WEIGHTS = normal(2, 3)
SQUARE = normal(3, 3) + 2 * np.eye(3)

# A name, a function of differentiated arrays, the same from SciPy, and the arrays.
CASES = {
    "logsumexp": (special.logsumexp, scipy.special.logsumexp, [normal(2, 3)]),
    "logsumexp axis": (
        lambda x: special.logsumexp(x, axis=1, keepdims=True),
        lambda x: scipy.special.logsumexp(x, axis=1, keepdims=True),
        [normal(2, 3)],
    ),
    "logsumexp weights": (
        lambda x, b: special.logsumexp(x, axis=0, b=b, return_sign=True),
        lambda x, b: scipy.special.logsumexp(x, axis=0, b=b, return_sign=True),
        [normal(2, 3), WEIGHTS],
    ),
    "softmax": (
        lambda x: special.softmax(x, axis=-1),
        lambda x: scipy.special.softmax(x, axis=-1),
        [normal(2, 3)],
    ),
    "log_softmax": (special.log_softmax, scipy.special.log_softmax, [normal(2, 3)]),
    "polygamma": (
        lambda x: special.polygamma([0, 1, 2], x),
        lambda x: scipy.special.polygamma([0, 1, 2], x),
        [np.array([0.4, 1.3, 2.6])],
    ),
    "multigammaln": (
        lambda x: special.multigammaln(x, 3),
        lambda x: scipy.special.multigammaln(x, 3),
        [np.array([1.4, 2.3, 3.6])],
    ),
    **{
        f"spherical_{kind} {derivative}": (
            lambda x, k=kind, d=derivative: getattr(special, f"spherical_{k}")(2, x, d),
            lambda x, k=kind, d=derivative: getattr(scipy.special, f"spherical_{k}")(2, x, d),
            [np.array([-1.3, 0.9, 2.6])],
        )
        for kind in ("jn", "yn", "in", "kn")
        for derivative in (False, True)
    },
    **{
        f"solve_triangular {trans} {lower} {unit}": (
            lambda a, b, o=(trans, lower, unit): linalg.solve_triangular(a, b, *o),
            lambda a, b, o=(trans, lower, unit): scipy.linalg.solve_triangular(a, b, *o),
            [normal(3, 3) + 3 * np.eye(3), normal(3, 2)],
        )
        for trans, lower, unit in ((0, False, False), ("T", True, False), (1, False, True))
    },
    "solve_triangular vector": (
        lambda a, b: linalg.solve_triangular(a, b, lower=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
        [normal(3, 3) + 3 * np.eye(3), normal(3)],
    ),
    "solve_triangular stack": (
        linalg.solve_triangular,
        scipy.linalg.solve_triangular,
        [normal(2, 1, 3, 3) + 3 * np.eye(3), normal(2, 3, 2)],
    ),
    "cholesky": (linalg.cholesky, scipy.linalg.cholesky, [positive(3, 3)]),
    "cholesky lower": (
        lambda a: linalg.cholesky(a, lower=True),
        lambda a: scipy.linalg.cholesky(a, lower=True),
        [positive(2, 3, 3)],
    ),
    "cho_solve": (
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b),
        [positive(3, 3), normal(3)],
    ),
    "cho_solve lower": (
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower=True), b),
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower=True), b),
        [positive(3, 3), normal(3, 2)],
    ),
    "lu": (linalg.lu, scipy.linalg.lu, [normal(3, 3)]),
    "lu tall": (
        lambda a: linalg.lu(a, permute_l=True),
        lambda a: scipy.linalg.lu(a, permute_l=True),
        [normal(4, 2)],
    ),
    "lu wide": (
        lambda a: linalg.lu(a, p_indices=True),
        lambda a: scipy.linalg.lu(a, p_indices=True),
        [normal(2, 2, 4)],
    ),
    "lu_factor": (linalg.lu_factor, scipy.linalg.lu_factor, [normal(3, 3)]),
    **{
        f"lu_solve {trans}": (
            lambda a, b, t=trans: linalg.lu_solve(linalg.lu_factor(a), b, t),
            lambda a, b, t=trans: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, t),
            [normal(3, 3), normal(3, 2)],
        )
        for trans in (0, 1)
    },
    "lu_solve stack": (
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
        lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b),
        [normal(2, 3, 3), normal(3)],
    ),
    "expm": (linalg.expm, scipy.linalg.expm, [normal(3, 3)]),
    "expm stack": (linalg.expm, scipy.linalg.expm, [normal(2, 2, 2)]),
    "sqrtm": (linalg.sqrtm, scipy.linalg.sqrtm, [SQUARE @ SQUARE]),
    "solve_sylvester": (
        linalg.solve_sylvester,
        scipy.linalg.solve_sylvester,
        [positive(3, 3), positive(2, 2), normal(3, 2)],
    ),
    "block_diag": (
        linalg.block_diag,
        scipy.linalg.block_diag,
        [normal(2, 3), normal(2), normal(1, 1)],
    ),
    "toeplitz": (linalg.toeplitz, scipy.linalg.toeplitz, [normal(3), normal(4)]),
    "toeplitz symmetric": (linalg.toeplitz, scipy.linalg.toeplitz, [normal(3)]),
}
for_each = pytest.mark.parametrize("function,reference,args", CASES.values(), ids=CASES)


@for_each
def test_values_are_those_of_scipy(function, reference, args):
    assert_trees_close(function(*args), reference(*args), rtol=1e-10, dtypes=True)


@for_each
def test_single_precision_stays_what_scipy_makes_of_it(function, reference, args):
    args = tuple(arg.astype(np.float32) for arg in args)
    expected = [np.asarray(leaf).dtype for leaf in leaves(reference(*args))]
    traced = leaves(ft.jvp(function, args, args)[0])
    assert [np.asarray(leaf).dtype for leaf in traced] == expected
    assert [spec.dtype for spec in ft.tree.leaves(ft.eval_shape(function, *args))] == expected


@for_each
def test_derivatives(function, reference, args):
    check_derivatives(function, tuple(args))


@for_each
def test_vmap_is_a_loop(function, reference, args):
    check_lanes(function, tuple(args))


@for_each
def test_graphs_compute_the_same(function, reference, args):
    check_staging(function, tuple(args))


def test_factorizations_of_complex_matrices():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    h = a @ a.conj().T + np.eye(3)
    b = rng.normal(size=3) + 1j * rng.normal(size=3)

    def solved(parts):
        matrix = parts[0] + 1j * parts[1]
        x = linalg.cho_solve(linalg.cho_factor(matrix), b)
        y = linalg.lu_solve(linalg.lu_factor(matrix), b, trans=2)
        z = linalg.sqrtm(matrix) @ linalg.expm(matrix / 5) @ b
        return np.real(x) + np.imag(y) + np.abs(z)

    parts = np.stack([h.real, h.imag])
    reference = scipy.linalg.solve(h, b).real + scipy.linalg.solve(h.conj().T, b).imag
    reference = reference + np.abs(scipy.linalg.sqrtm(h) @ scipy.linalg.expm(h / 5) @ b)
    np.testing.assert_allclose(solved(parts), reference, rtol=1e-9)
    check_derivatives(solved, (parts,))
    np.testing.assert_allclose(
        linalg.cholesky(h, lower=True), scipy.linalg.cholesky(h, lower=True), rtol=1e-12
    )


def test_the_derivative_of_expm_does_not_depend_on_the_size_of_the_tangent():
    a = 0.1 * SQUARE
    for size in (1e-12, 1e12):
        tangent = ft.jvp(linalg.expm, (a,), (size * SQUARE,))[1]
        expected = scipy.linalg.expm_frechet(a, SQUARE, compute_expm=False)
        np.testing.assert_allclose(tangent / size, expected, rtol=1e-12)


def test_sqrtm_without_a_real_root_is_complex():
    a = np.diag([-4.0, 2.0]) + 0.1
    value, tangent = ft.jvp(linalg.sqrtm, (a,), (SQUARE[:2, :2],))
    np.testing.assert_allclose(value, scipy.linalg.sqrtm(a), rtol=1e-13)
    assert value.dtype == tangent.dtype == complex
    ft.check_derivatives(linalg.sqrtm, (a,), order=2)
    lanes = np.stack([a, np.eye(2)])
    np.testing.assert_allclose(ft.vmap(linalg.sqrtm)(lanes), scipy.linalg.sqrtm(lanes), rtol=1e-13)
    loss = lambda a: np.sum(np.abs(linalg.sqrtm(a)))
    expected = np.stack([ft.grad(loss)(each) for each in lanes])
    np.testing.assert_allclose(ft.vmap(ft.grad(loss))(lanes), expected, rtol=1e-10)
    single = a.astype(np.float32)
    assert ft.vjp(linalg.sqrtm, single)[0].dtype == scipy.linalg.sqrtm(single).dtype == np.complex64


def test_sqrtm_that_was_staged_as_real_says_what_to_do():
    root = ft.jit(linalg.sqrtm)
    np.testing.assert_allclose(root(4 * np.eye(2)), 2 * np.eye(2))
    with pytest.raises(ft.errors.StagingError, match=r"no real square root.*astype\(complex\)"):
        root(-np.eye(2))
    complexes = ft.jit(lambda a: linalg.sqrtm(a.astype(complex)))
    np.testing.assert_allclose(complexes(-np.eye(2)), 1j * np.eye(2))


ONE_TRIANGLE = {
    "cholesky": lambda a: linalg.cholesky(a),
    "cholesky lower": lambda a: linalg.cholesky(a, lower=True),
    "cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor(a), np.arange(1.0, 4.0)),
    "cho_solve lower": lambda a: linalg.cho_solve(linalg.cho_factor(a, True), np.arange(1.0, 4.0)),
    "solve_triangular": lambda a: linalg.solve_triangular(a, np.arange(1.0, 4.0)),
    "solve_triangular lower": lambda a: linalg.solve_triangular(
        a, np.arange(1.0, 4.0), "T", lower=True, unit_diagonal=True
    ),
}


@pytest.mark.parametrize("name", one_in(6, ONE_TRIANGLE))
def test_one_triangle_is_read_and_has_the_derivative(name):
    f, lower = ONE_TRIANGLE[name], "lower" in name
    read = np.tri(3, dtype=bool) if lower else np.tri(3, dtype=bool).T
    for a in (SQUARE + 6 * np.eye(3), (1 + 0.2j) * SQUARE + 6 * np.eye(3)):
        ft.check_derivatives(f, (a,), order=2)
        junk = np.where(read, a, 1e3)
        np.testing.assert_allclose(f(junk), f(a), rtol=1e-13)
        loss = lambda a: np.sum(np.abs(f(a)) ** 2)
        np.testing.assert_allclose(ft.grad(loss)(junk), ft.grad(loss)(a), rtol=1e-12)
        np.testing.assert_array_equal(ft.grad(loss)(a)[~read], 0)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_is_that_of_numpy(upper):
    for a in (SQUARE + 6 * np.eye(3), (1 + 0.2j) * SQUARE + 6 * np.eye(3)):
        ours = lambda a: np.sum(
            np.abs(linalg.cholesky(a, lower=not upper)) * np.arange(9).reshape(3, 3)
        )
        theirs = lambda a: np.sum(
            np.abs(np.linalg.cholesky(a, upper=upper)) * np.arange(9).reshape(3, 3)
        )
        np.testing.assert_allclose(ft.grad(ours)(a), ft.grad(theirs)(a), rtol=1e-11, atol=1e-12)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="square"):
        ft.eval_shape(linalg.expm, np.ones((2, 3)))
    with pytest.raises(ValueError, match="right-hand side"):
        ft.eval_shape(linalg.solve_triangular, np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="do not match"):
        ft.eval_shape(linalg.solve_sylvester, np.eye(2), np.eye(2), np.ones((2, 3)))


def test_logsumexp_at_infinity_and_with_zero_weights():
    x = np.array([-np.inf, 1.0])
    np.testing.assert_array_equal(ft.grad(special.logsumexp)(x), [0, 1])
    slope = ft.grad(lambda b: special.logsumexp(np.array([0.0, 1.0]), b=b))(np.array([0.0, 1.0]))
    np.testing.assert_allclose(slope, [np.exp(-1), 1])
    with np.errstate(divide="ignore"):
        assert special.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
        assert special.logsumexp(np.array([1e5, 1.0]), b=np.array([0.0, 2.0])) == 1 + np.log(2)


# Optimization.


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize(
    "method",
    [None, "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "dogleg", "trust-ncg"]
    + ["trust-krylov", "trust-exact", "trust-constr", "Nelder-Mead", "Powell"],
)
def test_minimize_by_every_method(method):
    start = np.array([0.8, 1.2]) if method != "dogleg" else np.array([0.9, 0.8])
    result = optimize.minimize(rosenbrock, start, method=method)
    assert result.success
    np.testing.assert_allclose(result.x, 1.0, atol=2e-3)
    if method not in ("Nelder-Mead", "Powell"):
        assert result.nfev < 60  # with gradients it takes few calls


def test_minimize_takes_pytrees_and_arguments():
    def loss(params, scale):
        return (params["a"] - 2.0) ** 2 + scale * np.sum((params["b"] - params["a"]) ** 2)

    result = optimize.minimize(loss, {"a": 0.0, "b": np.zeros((2, 2))}, args=(3.0,))
    np.testing.assert_allclose(result.x["a"], 2.0, atol=1e-5)
    np.testing.assert_allclose(result.x["b"], np.full((2, 2), 2.0), atol=1e-5)
    assert result.jac["b"].shape == (2, 2)
    np.testing.assert_allclose(
        optimize.minimize(lambda x: np.sum(x**2), [1.0, 2.0]).x, 0, atol=1e-6
    )
    assert np.shape(optimize.minimize(lambda x: x**2, 3.0).x) == (1,)  # as in SciPy


def test_minimize_with_bounds_and_constraints():
    result = optimize.minimize(rosenbrock, np.zeros(2), bounds=[(0, 0.5), (0, 1)])
    np.testing.assert_allclose(result.x, [0.5, 0.25], atol=1e-5)
    circle = {"type": "eq", "fun": lambda p, r: p["x"] ** 2 + p["y"] ** 2 - r, "args": (2.0,)}
    start = {"x": 2.0, "y": 0.5}
    result = optimize.minimize(lambda p: p["x"] + p["y"], start, method="SLSQP", constraints=circle)
    np.testing.assert_allclose([result.x["x"], result.x["y"]], [-1, -1], atol=1e-5)
    disk = scipy.optimize.NonlinearConstraint(lambda p: p["x"] ** 2 + p["y"] ** 2, 0, 2.0)
    result = optimize.minimize(
        lambda p: p["x"] + p["y"], start, method="trust-constr", constraints=[disk]
    )
    np.testing.assert_allclose([result.x["x"], result.x["y"]], [-1, -1], atol=1e-3)


def test_least_squares():
    time = np.linspace(0, 3, 8)

    def residuals(params, shift, scale=1.0):
        curve = params["height"] * np.exp(-params["rate"] * time) + shift
        return scale * (curve - 2 * np.exp(-0.5 * time) - shift)

    result = optimize.least_squares(
        residuals, {"height": 1.0, "rate": 1.0}, args=(0.3,), kwargs={"scale": 2.0}, method="lm"
    )
    np.testing.assert_allclose([result.x["height"], result.x["rate"]], [2.0, 0.5], rtol=1e-7)
    assert result.jac.shape == (8, 2)
    wide = optimize.least_squares(
        lambda x: np.stack([x[0] * x[1] - 2, x[2] - x[0]]), np.array([1.0, 1.0, 0.5])
    )
    np.testing.assert_allclose([wide.x[0] * wide.x[1], wide.x[2]], [2, wide.x[0]], rtol=1e-6)


def test_derivatives_of_a_tree_are_not_taken_from_the_user():
    with pytest.raises(ft.errors.OptionError, match="supplied by functrans"):
        optimize.minimize(lambda p: p["x"] ** 2, {"x": 1.0}, jac=True)


# Without SciPy.


def test_without_scipy_the_package_imports_and_its_modules_say_what_to_install():
    program = (
        "import sys\n"
        "sys.modules['scipy'] = None\n"
        "import functrans, functrans.scipy\n"
        "for name in functrans.scipy.__all__:\n"
        "    try:\n"
        "        getattr(functrans.scipy, name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        assert 'functrans[scipy]' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(name)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_are_loaded_by_name():
    assert ft.scipy.special is special
    assert special.erf is scipy.special.erf
    with pytest.raises(AttributeError, match="no attribute 'roots_legendre'"):
        special.roots_legendre
    with pytest.raises(AttributeError, match="no attribute 'odr'"):
        ft.scipy.odr


def test_lanes_of_lu_may_exchange_different_rows():
    lanes = np.stack([SQUARE, SQUARE[::-1], SQUARE[[1, 2, 0]]])
    orders = [scipy.linalg.lu_factor(lane)[1].tolist() for lane in lanes]
    assert orders[0] != orders[2] or orders[0] != orders[1]
    weights = np.arange(9.0).reshape(3, 3) - 3

    def upper(a):
        return linalg.lu(a, permute_l=True)[1]

    gradient = ft.grad(lambda a: np.sum(weights * upper(a)))
    assert_trees_close(ft.vmap(gradient)(lanes), loop_vmap(gradient)(lanes), 1e-9)
    tangents = np.cos(np.arange(27.0)).reshape(3, 3, 3)
    push = lambda a, t: ft.jvp(upper, (a,), (t,))[1]
    found = ft.vmap(push)(lanes, tangents)
    for k in range(3):
        expected = central_difference_jvp(upper, (lanes[k],), (tangents[k],))
        np.testing.assert_allclose(found[k], expected, rtol=1e-6, atol=1e-8)
