"""functrans.scipy.linalg: all names against SciPy, finite differences, loops over lanes, and graphs."""

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
from functrans.scipy import linalg
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


A = normal(3, 3) + 3 * np.eye(3)
SMALL = 0.15 * normal(3, 3)
BANDS = np.array(
    [[0.0, 0.0, 0.7, -0.4, 0.3], [0.0, 1, -1, 0.5, 0.6], [4.0, 5, 6, 5, 4], [1.0, 0.5, 0.2, 1, 0]]
)
RIGHT = 0.1 * normal(3, 2)
HALF = np.array([[0.0, 0.0, 0.7, -0.4, 0.3], [0.0, 1, -1, 0.5, 0.6], [4.0, 5, 6, 5, 4]])


def case(name, args, call=None):
    """The same function of the same name in both modules."""
    call = call or (lambda f, *args: f(*args))
    ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    return lambda *args: call(ours, *args), lambda *args: call(theirs, *args), args


CASES = {
    "solve": case("solve", [A, normal(3)]),
    "solve stack": case("solve", [np.stack([A, A.T]), normal(3)]),
    "solve transposed": case("solve", [A, normal(3, 2)], lambda f, a, b: f(a, b, transposed=True)),
    **{
        f"solve {kind} {lower}": case(
            "solve",
            [positive(3, 3), normal(3, 2)],
            lambda f, a, b, k=kind, o=lower: f(a, b, lower=o, assume_a=k),
        )
        for kind in ("gen", "sym", "her", "pos", "upper triangular", "tridiagonal", "diagonal")
        for lower in (False, True)
    },
    "inv": case("inv", [A]),
    "inv pos": case("inv", [positive(3, 3)], lambda f, a: f(a, assume_a="pos", lower=True)),
    "det": case("det", [A]),
    "det stack": case("det", [normal(2, 3, 3)]),
    "solve_banded": case("solve_banded", [BANDS, normal(5)], lambda f, ab, b: f((1, 2), ab, b)),
    "solve_banded columns": case(
        "solve_banded", [BANDS, normal(5, 2)], lambda f, ab, b: f((1, 2), ab, b)
    ),
    "solveh_banded": case("solveh_banded", [HALF, normal(5)]),
    "solveh_banded lower": case(
        "solveh_banded", [BANDS[2:], normal(5, 2)], lambda f, ab, b: f(ab, b, lower=True)
    ),
    "cholesky_banded": case("cholesky_banded", [HALF]),
    "cholesky_banded lower": case("cholesky_banded", [BANDS[2:]], lambda f, ab: f(ab, lower=True)),
    "cho_solve_banded": case(
        "cho_solve_banded", [HALF, normal(5)], lambda f, c, b: f((c, False), b)
    ),
    "cho_solve_banded lower": case(
        "cho_solve_banded", [BANDS[2:], normal(5)], lambda f, c, b: f((c, True), b)
    ),
    "toeplitz stack": case("toeplitz", [normal(2, 3), normal(4)]),
    "solve_toeplitz": case("solve_toeplitz", [np.array([4.0, 1.0, 0.5]), normal(3)]),
    "solve_toeplitz row": case(
        "solve_toeplitz",
        [np.array([4.0, 1.0, 0.5]), np.array([4.0, -1.0, 0.2]), normal(3, 2)],
        lambda f, c, r, b: f((c, r), b),
    ),
    "matmul_toeplitz": case(
        "matmul_toeplitz", [normal(4), normal(3), normal(3)], lambda f, c, r, x: f((c, r), x)
    ),
    "solve_circulant": case("solve_circulant", [np.array([4.0, 1.0, 0.5]), normal(3)]),
    "solve_circulant lstsq": case(
        "solve_circulant",
        [np.array([4.0, 1.0, 0.5]), normal(3, 2)],
        lambda f, c, b: f(c, b, singular="lstsq"),
    ),
    "lstsq": case("lstsq", [normal(4, 2), normal(4)], lambda f, a, b: f(a, b)[:2]),
    "lstsq wide": case("lstsq", [normal(2, 4), normal(2, 3)], lambda f, a, b: f(a, b)[0]),
    "pinv": case("pinv", [normal(4, 2)]),
    "pinvh": case("pinvh", [positive(3, 3)]),
    "cho_factor": case(
        "cho_solve", [np.triu(positive(3, 3)), normal(3)], lambda f, c, b: f((c, False), b)
    ),
    "qr": case("qr", [normal(3, 3)]),
    "qr tall": case("qr", [normal(4, 2)], lambda f, a: f(a, mode="economic")),
    "qr r": case("qr", [normal(4, 2)], lambda f, a: f(a, mode="r")),
    "qr wide": case("qr", [normal(2, 4)]),
    "qr pivoting": case("qr", [normal(3, 3)], lambda f, a: f(a, pivoting=True)),
    "orthogonal_procrustes": case("orthogonal_procrustes", [normal(4, 3), normal(4, 3)]),
    "eigh": case("eigh", [positive(4, 4)]),
    "eigh upper": case("eigh", [positive(3, 3)], lambda f, a: f(a, lower=False)),
    "eigh stack": case("eigh", [positive(2, 3, 3)]),
    **{
        f"eigh b {kind}": case(
            "eigh", [positive(3, 3), positive(3, 3)], lambda f, a, b, k=kind: f(a, b, type=k)
        )
        for kind in (1, 2, 3)
    },
    "eigh subset": case("eigh", [positive(4, 4)], lambda f, a: f(a, subset_by_index=[1, 2])),
    "eigvalsh": case("eigvalsh", [positive(4, 4)]),
    "eigvalsh b": case(
        "eigvalsh",
        [positive(3, 3), positive(3, 3)],
        lambda f, a, b: f(a, b, subset_by_index=[2, 2]),
    ),
    "eigh_tridiagonal": case("eigh_tridiagonal", [normal(4), normal(3)]),
    "eigvalsh_tridiagonal": case("eigvalsh_tridiagonal", [normal(4), normal(3)]),
    "svd": case("svd", [normal(3, 3)]),
    "svd thin": case("svd", [normal(4, 2)], lambda f, a: f(a, full_matrices=False)),
    "svd values": case("svd", [normal(4, 2)], lambda f, a: f(a, compute_uv=False)),
    "svdvals": case("svdvals", [normal(2, 4)]),
    "diagsvd": case("diagsvd", [normal(3)], lambda f, s: f(s, 3, 5)),
    "diagsvd tall": case("diagsvd", [normal(3)], lambda f, s: f(s, 5, 3)),
    "subspace_angles": case("subspace_angles", [normal(5, 2), normal(5, 2)]),
    "norm": case("norm", [normal(3)]),
    **{
        f"norm {order}": case("norm", [normal(3, 2)], lambda f, a, o=order: f(a, o, axis=(0, 1)))
        for order in ("fro", "nuc", 1, 2, np.inf)
    },
    "norm rows": case("norm", [normal(3, 2)], lambda f, a: f(a, 3, axis=1, keepdims=True)),
    "logm": case("logm", [A @ A.T + 0.3 * normal(3, 3)]),
    "fractional_matrix_power": case(
        "fractional_matrix_power", [A @ A.T + 0.1 * SMALL], lambda f, a: f(a, 0.3)
    ),
    "fractional_matrix_power whole": case("fractional_matrix_power", [A], lambda f, a: f(a, -2)),
    "expm_frechet": case("expm_frechet", [SMALL, normal(3, 3)]),
    "expm_frechet alone": case(
        "expm_frechet", [SMALL, normal(3, 3)], lambda f, a, e: f(a, e, compute_expm=False)
    ),
    **{name: case(name, [SMALL]) for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")},
    "solve_continuous_lyapunov": case("solve_continuous_lyapunov", [A, normal(3, 3)]),
    "solve_lyapunov": case("solve_lyapunov", [A, normal(3, 3)]),
    "solve_discrete_lyapunov": case("solve_discrete_lyapunov", [SMALL, normal(3, 3)]),
    "solve_discrete_lyapunov bilinear": case(
        "solve_discrete_lyapunov", [SMALL, normal(3, 3)], lambda f, a, q: f(a, q, "bilinear")
    ),
    **{
        f"{name} {form}": case(
            name,
            [*(normal(3, n) for n in (3, 2, 3)), normal(2, 2), 3 * np.eye(3) + SMALL, RIGHT],
            lambda f, a, b, q, r, e, s, o=options: f(
                a,
                b,
                q @ q.T,  # q and r must be symmetric
                r @ r.T + np.eye(2),
                **{"e": {"e": e}, "s": {"s": s}, "es": {"e": e, "s": s}}.get(o, {}),
                balanced=False,  # with e and s, SciPy 1.17 scales the latter wrongly
            ),
        )
        for name in ("solve_continuous_are", "solve_discrete_are")
        for form, options in (("plain", ""), ("s", "s"), ("e", "e"), ("es", "es"))
    },
    "block_diag": case("block_diag", [normal(2, 3), normal(2), normal(1, 1)]),
    "block_diag stack": case("block_diag", [normal(2, 2, 3), normal(1, 1)]),
    "circulant": case("circulant", [normal(4)]),
    "circulant stack": case("circulant", [normal(2, 4)]),
    "hankel": case("hankel", [normal(3), normal(4)]),
    "hankel alone": case("hankel", [normal(3)]),
    "companion": case("companion", [np.array([2.0, 1.0, 3.0, -1.0])]),
    "companion stack": case("companion", [2 + normal(2, 3) ** 2]),
    "leslie": case("leslie", [normal(3), normal(2)]),
    "fiedler": case("fiedler", [normal(3)]),
    **{
        f"convolution_matrix {mode} {n}": case(
            "convolution_matrix", [normal(3)], lambda f, a, m=mode, n=n: f(a, n, m)
        )
        for mode in ("full", "same", "valid")
        for n in (2, 3, 4, 5)
    },
    "khatri_rao": case("khatri_rao", [normal(2, 3), normal(4, 3)]),
}
for_each = pytest.mark.parametrize("function,reference,args", CASES.values(), ids=CASES)


@for_each
def test_values_are_those_of_scipy(function, reference, args):
    expected = reference(*args)
    assert_trees_close(function(*args), expected, 0, 0, dtypes=True)
    traced = ft.jvp(function, tuple(args), tuple(np.zeros_like(arg) for arg in args))[0]
    if isinstance(expected, list):  # of stacks, SciPy returns lists
        traced = list(traced)
    assert_trees_close(traced, expected, 1e-10, 1e-11, dtypes=True)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    function, _, args = CASES[name]

    def smooth(*args):  # LAPACK's signs of eigenvectors jump
        w, v = function(*args)
        return w, np.abs(v)

    checked = smooth if name.startswith("eigh") else function
    check_derivatives(checked, tuple(args), rtol=2e-6, atol=1e-7)


@for_each
def test_lanes(function, reference, args):
    as_tuple = lambda out: tuple(out) if isinstance(out, list) else out
    check_lanes(lambda *args: as_tuple(function(*args)), tuple(args), rtol=1e-8, atol=1e-9)


UNSTAGED = ("lstsq",)  # the shape of the residuals depends on the rank


@pytest.mark.parametrize("name", [name for name in CASES if name not in UNSTAGED])
def test_graphs(name):
    function, _, args = CASES[name]
    as_tuple = lambda out: tuple(out) if isinstance(out, list) else out
    check_staging(lambda *args: as_tuple(function(*args)), tuple(args))


def test_every_name_has_a_case():
    tested = {name.split()[0] for name in CASES}
    others = {
        *("solve_triangular", "cholesky", "cho_factor", "cho_solve", "lu", "lu_factor", "lu_solve"),
        *("expm", "sqrtm", "polar", "solve_sylvester", "toeplitz"),  # test_scipy.py
        *("eig", "eigvals", "null_space", "orth", "bandwidth", "issymmetric", "ishermitian"),
    }
    assert set(linalg.__all__) <= tested | others


# What depends on values, and bases that are not unique.


def test_eigenvalues_of_any_matrix():
    a, t = normal(4, 4), normal(4, 4)
    out, tangent = ft.jvp(linalg.eigvals, (a,), (t,))
    assert_trees_close(out, scipy.linalg.eigvals(a), 1e-10, dtypes=True)
    assert_trees_close(tangent, central_difference_jvp(scipy.linalg.eigvals, (a,), (t,)), 1e-6)
    real = np.diag([1.0, 2.0, 3.0]) + 0.1 * normal(3, 3)
    for matrix in (a, real):
        found = ft.jvp(linalg.eig, (matrix,), (np.ones_like(matrix),))
        assert_trees_close(found[0], scipy.linalg.eig(matrix), 1e-9, dtypes=True)
        expected = central_difference_jvp(scipy.linalg.eig, (matrix,), (np.ones_like(matrix),))
        assert_trees_close(found[1], expected, 1e-5)
    b = positive(4, 4)
    found = ft.jvp(linalg.eigvals, (a, b), (t, t))
    by_place = lambda w: w[np.argsort(w.real + 0.1 * w.imag)]
    assert_trees_close(by_place(found[0]), by_place(scipy.linalg.eigvals(a, b)), 1e-9)
    lanes = np.stack([a, a + 0.1, a - 0.1])
    assert_trees_close(ft.vmap(linalg.eigvals)(lanes), scipy.linalg.eigvals(lanes), 1e-9)


def test_eigh_by_value():
    a = positive(4, 4)
    w = scipy.linalg.eigvalsh(a)
    limits = [(w[0] + w[1]) / 2, (w[2] + w[3]) / 2]
    f = lambda a: linalg.eigh(a, subset_by_value=limits)
    assert_trees_close(
        ft.jvp(f, (a,), (a,))[0], scipy.linalg.eigh(a, subset_by_value=limits), 1e-9, dtypes=True
    )
    check_derivatives(f, (a,))


def test_bases_of_spaces():
    a = normal(2, 4)
    for ours, theirs in (
        (linalg.null_space, scipy.linalg.null_space),
        (linalg.orth, scipy.linalg.orth),
    ):
        project = lambda a, basis=ours: basis(a) @ basis(a).T
        assert_trees_close(ft.jvp(ours, (a,), (a,))[0], theirs(a), 1e-10, dtypes=True)
        if ours is linalg.null_space:
            check_derivatives(project, (a,))
            check_lanes(project, (a,))
    tall = normal(4, 2)
    check_derivatives(lambda a: linalg.orth(a) @ linalg.orth(a).T, (tall,))


def test_questions_about_values():
    a = np.triu(positive(3, 3))
    seen = []

    def f(a):
        seen.append((linalg.bandwidth(a), linalg.issymmetric(a), linalg.ishermitian(a)))
        return np.sum(a)

    ft.grad(f)(a)
    ft.vmap(f)(np.stack([a, a + a.T]))
    assert seen == [((0, 2), False, False)] * 2 + [((2, 2), True, True)]


def test_powers_with_respect_to_the_exponent():
    a = A @ A.T
    f = lambda t: linalg.fractional_matrix_power(a, t)
    check_derivatives(f, (0.7,))
    check_derivatives(lambda a, t: linalg.fractional_matrix_power(a, t), (a, 1.3))


def test_functions_that_leave_the_real_numbers():
    a = np.diag([-1.0, -2.0]) + 0.1
    for f, g in (
        (linalg.logm, scipy.linalg.logm),
        (
            lambda a: linalg.fractional_matrix_power(a, 0.5),
            lambda a: scipy.linalg.fractional_matrix_power(a, 0.5),
        ),
    ):
        found = ft.jvp(f, (a,), (np.ones((2, 2)),))
        assert_trees_close(found[0], g(a), 1e-10, dtypes=True)
        assert_trees_close(found[1], central_difference_jvp(g, (a,), (np.ones((2, 2)),)), 1e-6)


def test_complex_matrices():
    a = normal(3, 3) + 1j * normal(3, 3) + 3 * np.eye(3)
    b = normal(3) + 1j * normal(3)
    h = a @ a.conj().T
    half = HALF * (1 + 0.3j * (np.arange(3) < 2)[:, None])
    q = lambda c: c @ np.conj(np.swapaxes(c, -1, -2))
    functions = {
        "solve": (lambda a, b: linalg.solve(a, b), (a, b)),
        "solve her": (lambda a, b: linalg.solve(a, b, assume_a="her"), (h, b)),
        "solve sym": (lambda a, b: linalg.solve(a, b, assume_a="sym", lower=True), (a + a.T, b)),
        "banded": (lambda a: linalg.solveh_banded(a, np.arange(5.0)), (half,)),
        "cosm": (linalg.cosm, (0.3 * a,)),
        "sinm": (linalg.sinm, (0.3 * a,)),
        "logm": (linalg.logm, (h,)),
        "lyapunov": (linalg.solve_continuous_lyapunov, (a, a.T)),
        "discrete": (linalg.solve_discrete_lyapunov, (0.1 * a, a.T)),
        "riccati": (
            lambda a, b, c: linalg.solve_continuous_are(a, b, q(c), np.eye(3)),
            (a, a.T, a),
        ),
        "discrete riccati": (
            lambda a, b, c: linalg.solve_discrete_are(a, b, q(c), np.eye(3)),
            (0.3 * a, a.T, a),
        ),
        "toeplitz": (lambda c, b: linalg.solve_toeplitz(c, b), (np.array([4, 1j, 1 + 1j]), b)),
    }
    for f, args in functions.values():
        args = tuple(np.asarray(arg, complex) for arg in args)
        ft.check_derivatives(f, args, order=2)


def test_eigenvectors_of_complex_pencils():
    a = normal(3, 3) + 1j * normal(3, 3)
    a, b = a @ a.conj().T, positive(3, 3) + 0j
    found = ft.jvp(lambda a: linalg.eigh(a, b), (a,), (a,))[0]
    assert_trees_close(found, scipy.linalg.eigh(a, b), 1e-9, dtypes=True)


def test_single_precision_is_kept():
    a = positive(3, 3).astype(np.float32)
    b = np.ones(3, np.float32)
    for f in (
        lambda a: linalg.solve(a, b),
        lambda a: linalg.inv(a),
        lambda a: linalg.eigh(a, subset_by_index=[0, 1]),
        lambda a: linalg.solveh_banded(a[:1] ** 2 + 1, b),
        lambda a: linalg.qr(a),
        lambda a: linalg.cosm(a),
    ):
        assert_trees_close(ft.jvp(f, (a,), (a,))[0], f(a), 1e-3, 1e-4, dtypes=True)


def test_integers_are_read_as_numbers():
    a = np.array([[2, 1], [1, 3]])
    assert_trees_close(ft.vmap(linalg.det)(np.stack([a, a])), np.array([5.0, 5.0]))
    assert_trees_close(
        ft.grad(lambda b: np.sum(linalg.solve(a, b)))(np.ones(2)), np.array([0.4, 0.2])
    )


def test_what_has_no_rule_says_so():
    with pytest.raises(ft.errors.MissingRuleError, match=r"mode='raw'.*mode='full'"):
        ft.grad(lambda a: np.sum(linalg.qr(a, mode="raw")[1]))(A)
    with pytest.raises(ft.errors.MissingRuleError, match="left=True"):
        ft.grad(lambda a: np.sum(linalg.eig(a, left=True)[1].real))(A)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        ft.grad(lambda b: np.sum(linalg.solve_circulant(np.ones(3), b)))(np.ones(3))
    with pytest.raises(ValueError, match="diagonals"):
        ft.grad(lambda b: np.sum(linalg.solve_banded((1, 1), BANDS, b)))(np.ones(5))
    with pytest.raises(ValueError, match="structure"):
        ft.grad(lambda b: np.sum(linalg.solve(A, b, assume_a="odd")))(np.ones(3))
    with pytest.raises(np.linalg.LinAlgError):
        ft.grad(lambda b: np.sum(linalg.solveh_banded(-HALF, b)))(np.ones(5))


def test_cholesky_factors_with_junk_in_the_other_triangle_solve():
    a, b = positive(3, 3), normal(3)
    c, lower = scipy.linalg.cho_factor(a)
    assert np.any(np.tril(c, -1))
    found = ft.grad(lambda b: np.sum(linalg.cho_solve((c, lower), b)))(b)
    assert_trees_close(found, np.linalg.solve(a, np.ones(3)), 1e-10)
    loss = lambda a: np.sum(linalg.cho_solve(linalg.cho_factor(a), b))
    full = lambda a: np.sum(np.linalg.solve(a, b))
    symmetric = lambda g: g + g.T - np.diag(np.diag(g))
    assert_trees_close(np.triu(symmetric(ft.grad(full)(a))), ft.grad(loss)(a), 1e-9)


def test_pinv_with_an_absolute_cutoff():
    a = np.diag([3.0, 2.0, 0.1])
    f = lambda a: linalg.pinv(a, atol=0.5, rtol=0.0)
    assert_trees_close(ft.jvp(f, (a,), (a,))[0], scipy.linalg.pinv(a, atol=0.5, rtol=0.0), 1e-12)
    ranked = lambda a: linalg.pinv(a, return_rank=True)
    out = ft.jvp(ranked, (a,), (a,))[0]
    assert out[1] == 3
    stack = np.stack([a, 2 * a])
    assert_trees_close(ft.vmap(f)(stack), scipy.linalg.pinv(stack, atol=0.5, rtol=0.0), 1e-12)


def test_entries_of_lists_may_be_traced():
    def f(a, b):
        first = linalg.det([[a, b], [1.0, 2.0]]) + linalg.norm([a, b])
        return (
            first + linalg.solve([[a, b], [1.0, 2.0]], [1.0, a])[0] + linalg.toeplitz([a, b])[0, 1]
        )

    check_derivatives(f, (3.0, 1.0))
    check_lanes(f, (3.0, 1.0))


def test_compiled_functions_compute_the_same():
    a, b = positive(3, 3), normal(3)
    for f in (
        lambda a: linalg.solve(a, b, assume_a="pos"),
        lambda a: linalg.eigh(a, subset_by_index=[0, 1])[0],
        lambda a: linalg.cho_solve(linalg.cho_factor(a), b),
        lambda a: linalg.logm(a),
    ):
        assert_trees_close(ft.jit(f)(a), f(a), 1e-9)
        loss = lambda a, f=f: np.sum(f(a) ** 2)
        assert_trees_close(ft.jit(ft.grad(loss))(a), ft.grad(loss)(a), 1e-9)
