"""cg, bicgstab and gmres, held against NumPy's direct solution and its derivatives, SciPy and JAX."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
from functrans import bicgstab, cg, errors, gmres
from tests.support.oracles import assert_trees_close, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

TIGHT = {"tol": 1e-13}
METHODS = [cg, bicgstab, gmres]


def system(size=5, seed=0, kind=float, definite=False):
    rng = np.random.default_rng(seed)
    matrix, b = rng.normal(size=(size, size)), rng.normal(size=size)
    if kind is complex:
        matrix, b = matrix + 1j * rng.normal(size=(size, size)), b + 1j * rng.normal(size=size)
    if definite:
        matrix = matrix @ matrix.conj().T
    return matrix + 2 * size**0.5 * np.eye(size), b


def system_for(method, **options):
    return system(definite=method is cg, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [float, complex])
@given(size=st.integers(1, 40), seed=st.integers(0, 1000))
def test_solutions_are_those_of_the_direct_method(method, kind, size, seed):
    matrix, b = system_for(method, size=size, seed=seed, kind=kind)
    for operator in (matrix, lambda x: matrix @ x):
        x, info = method(operator, b, tol=1e-11)
        assert info == 0
        np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=1e-7, atol=1e-9)
    # The promise is about the residual.
    loose, info = method(matrix, b, tol=1e-3)
    assert info == 0 and np.linalg.norm(matrix @ loose - b) <= 1.001e-3 * np.linalg.norm(b)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_by_the_matrix_and_the_right_hand_side(method):
    matrix, b = system_for(method)
    if method is cg:  # which stays symmetric when the triangle below changes
        function = lambda m, b: cg(np.tril(m) + np.tril(m, -1).T, b, **TIGHT)[0]
    else:
        function = lambda m, b: method(m, b, **TIGHT)[0]
    check_derivatives(function, (matrix, b), rtol=1e-6)
    check_lanes(function, (matrix, b))
    check_staging(function, (matrix, b))
    direct = lambda m, b: np.linalg.solve(np.tril(m) + np.tril(m, -1).T if method is cg else m, b)
    for transform in (ft.jacfwd, ft.jacrev, ft.hessian):
        ours, theirs = (
            transform(lambda m, b, f=f: np.sum(f(m, b) ** 3), (0, 1))(matrix, b)
            for f in (function, direct)
        )
        assert_trees_close(ours, theirs, 1e-8, 1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_complex_derivatives(method):
    matrix, b = system_for(method, kind=complex)

    def loss(solution):
        return lambda s, b: np.sum(np.abs(solution(s * matrix, b)) ** 2)

    ours = ft.grad(loss(lambda m, b: method(m, b, **TIGHT)[0]), (0, 1))
    theirs = ft.grad(loss(np.linalg.solve), (0, 1))
    assert_trees_close(ours(1.3, b), theirs(1.3, b), 1e-9)
    assert_trees_close(ft.jit(ours)(1.3, b), theirs(1.3, b), 1e-9)
    x, info = method(matrix, b.real)  # a real right-hand side is made complex
    assert info == 0 and x.dtype == complex


@pytest.mark.parametrize("method", METHODS)
def test_preconditioners_are_part_of_the_derivative(method):
    """They may depend on what is differentiated, and are transposed with the operator."""
    matrix, b = system_for(method, size=8)
    matrix = (
        matrix * np.outer(10.0 ** np.arange(-2, 2, 0.5), np.ones(8)) if method is gmres else matrix
    )

    def loss(scale, b):
        diagonal = np.diag(scale * matrix)
        x, _ = method(scale * matrix, b, M=lambda v: v / diagonal, **TIGHT)
        return np.sum(np.sin(x))

    exact = lambda scale, b: np.sum(np.sin(np.linalg.solve(scale * matrix, b)))
    expected = ft.grad(exact, (0, 1))(1.3, b)
    for gradient in (ft.grad(loss, (0, 1)), ft.jit(ft.grad(loss, (0, 1)))):
        assert_trees_close(gradient(1.3, b), expected, 1e-8)
    assert_trees_close(ft.grad(ft.jit(loss), (0, 1))(1.3, b), expected, 1e-8)
    assert_trees_close(ft.hessian(loss)(1.3, b), ft.hessian(exact)(1.3, b), 1e-7)
    lanes = np.array([1.0, 1.3])
    gradient = ft.grad(loss)
    assert_trees_close(
        ft.vmap(lambda s: gradient(s, b))(lanes), np.stack([gradient(s, b) for s in lanes]), 1e-8
    )


@pytest.mark.parametrize("method", [bicgstab, gmres])
def test_the_transposed_system_has_the_transposed_preconditioner(method):
    """The inverse is found at once with itself for preconditioner, but not with another."""
    matrix, b = system(30)
    inverse = np.linalg.inv(matrix)
    once = {"maxiter": 1, "tol": 1e-9, **({"restart": 1} if method is gmres else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = ft.grad(lambda b: np.sum(method(matrix, b, M=inverse, **once)[0]))(b)
    np.testing.assert_allclose(gradient, np.ones(30) @ inverse, rtol=1e-7)


def test_starts_that_are_traced_do_not_reach_the_derivative():
    matrix, b = system(definite=True)

    def loss(scale, starts):
        run = lambda x0: np.sum(np.sin(cg(scale * matrix, b, x0, **TIGHT)[0]))
        return np.sum(ft.vmap(run)(starts))

    starts = np.stack([b, 2 * b])
    exact = lambda scale: 2 * np.sum(np.sin(np.linalg.solve(scale * matrix, b)))
    expected = ft.grad(exact)(1.3)
    for derivative in (ft.grad, ft.jacfwd):
        for gradient in (derivative(loss), ft.jit(derivative(loss)), derivative(ft.jit(loss))):
            np.testing.assert_allclose(gradient(1.3, starts), expected, rtol=1e-9)


def test_a_preconditioner_saves_iterations():
    scales = np.geomspace(1.0, 1e6, 60)
    matrix = np.diag(scales) + 0.1
    b = np.ones(60)
    plain = cg(matrix, b, tol=1e-9, maxiter=1000)[0]
    np.testing.assert_allclose(matrix @ plain, b, atol=1e-7)
    assert cg(matrix, b, tol=1e-9, maxiter=30, M=np.diag(1 / scales))[1] == 0
    with pytest.warns(errors.ConvergenceWarning):
        assert cg(matrix, b, tol=1e-9, maxiter=30)[1] == 30


@pytest.mark.parametrize("method", METHODS)
def test_trees_and_functions_that_close_over_traced_values(method):
    def solution(k):
        def stiffness(u):
            inner = (2 + k) * u["inner"] - u["edge"]
            return {"inner": inner, "edge": 3 * u["edge"] - np.sum(u["inner"], axis=0)}

        b = {"inner": np.ones((2, 2)), "edge": np.array([1.0, -1.0])}
        x, _ = method(stiffness, b, **TIGHT)
        return [x["inner"], x["edge"]]

    check_derivatives(solution, (np.float64(0.7),), rtol=1e-6)
    check_lanes(lambda k: tuple(solution(k)), (np.float64(0.7),))


@pytest.mark.filterwarnings("ignore::functrans.errors.ConvergenceWarning")
@pytest.mark.parametrize("method", METHODS)
def test_lanes_make_as_many_iterations_as_they_need(method):
    spectra = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0], [1e-2, 1.0, 5.0, 30.0]])
    rotation = np.linalg.qr(system(4)[0])[0]

    def solution(spectrum, b):
        x, info = method(rotation @ np.diag(spectrum) @ rotation.T, b, **TIGHT)
        return x, info

    b = np.arange(1.0, 5.0)
    x, info = ft.vmap(solution, (0, None))(spectra, b)
    np.testing.assert_allclose(x, loop_vmap(solution, (0, None))(spectra, b)[0], rtol=1e-9)
    np.testing.assert_array_equal(info, [0, 0, 0])
    gradient = ft.grad(lambda s, b: np.sum(solution(s, b)[0] ** 2), (0, 1))
    looped = loop_vmap(gradient, (0, None), (0, 0))(spectra, b)
    assert_trees_close(ft.vmap(gradient, (0, None))(spectra, b), looped, 1e-8)
    assert_trees_close(ft.jit(ft.vmap(gradient, (0, None)))(spectra, b), looped, 1e-8)


def test_gmres_starts_again():
    matrix, b = system(60)
    x, info = gmres(matrix, b, tol=1e-10, restart=5)
    assert info == 0
    np.testing.assert_allclose(matrix @ x, b, atol=1e-8)
    with pytest.warns(errors.ConvergenceWarning, match="by iteration 1:"):
        assert gmres(matrix, b, tol=1e-10, restart=5, maxiter=1)[1] == 1
    # A space that is complete before its time.
    x, info = gmres(np.diag([1.0, 2.0, 2.0, 2.0]), np.array([1.0, 2.0, 0.0, 0.0]), tol=1e-12)
    np.testing.assert_allclose(x, [1, 1, 0, 0], atol=1e-14)


def test_the_start_is_used_and_has_no_derivative():
    matrix, b = system(definite=True)
    exact = np.linalg.solve(matrix, b)
    x, info = cg(matrix, b, exact, maxiter=1)
    assert info == 0
    np.testing.assert_array_equal(x, exact)
    gradient = ft.grad(lambda x0, b: np.sum(cg(matrix, b, x0, **TIGHT)[0]), (0, 1))
    by_start, by_right = gradient(exact + 1.0, b)
    np.testing.assert_array_equal(by_start, np.zeros(5))
    np.testing.assert_allclose(by_right, np.linalg.solve(matrix, np.ones(5)), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_single_precision(method):
    matrix, b = (part.astype(np.float32) for part in system_for(method))
    x, info = method(matrix, b)
    assert x.dtype == np.float32 and info == 0
    np.testing.assert_allclose(matrix @ x, b, atol=1e-4)
    assert ft.grad(lambda b: np.sum(method(matrix, b)[0]))(b).dtype == np.float32


def test_zero_and_empty_right_hand_sides():
    for method in METHODS:
        x, info = method(np.eye(3), np.zeros(3))
        np.testing.assert_array_equal(x, np.zeros(3))
        assert info == 0
        assert method(lambda x: x, {"a": np.zeros(0)})[1] == 0
        assert ft.grad(lambda s, m=method: np.sum(m(np.eye(3), s * np.ones(3))[0]))(0.0) == 3.0


# Reports and errors.


def warned(function, *args):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        out = function(*args)
    return out, [str(w.message) for w in record if w.category is errors.ConvergenceWarning]


def test_solutions_that_are_not_found_are_reported():
    matrix, b = system(12, definite=True)
    stopped = lambda b: cg(matrix, b, tol=1e-12, maxiter=2)
    for function in (stopped, ft.jit(stopped)):
        (_, info), (message,) = warned(function, b)
        assert info == 2
        assert message.startswith("cg did not converge by iteration 2: the norm of the residual is")
        assert "at test_krylov.py, line" in message and "preconditioner" in message
    (_, info), messages = warned(ft.vmap(stopped), np.stack([b, 0 * b, 2 * b]))
    np.testing.assert_array_equal(info, [2, 0, 2])
    assert len(messages) == 2
    gradient = ft.grad(lambda b: np.sum(stopped(b)[0] ** 2))
    for function in (gradient, ft.jit(gradient)):
        assert len(warned(function, b)[1]) == 2  # the solution's, and the derivative's


def test_breakdowns_are_reported():
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])
    b = np.array([1.0, 0.0])
    for method, matrix in ((bicgstab, rotation), (cg, np.abs(rotation))):
        (x, info), messages = warned(method, matrix, b)
        assert info > 0 and len(messages) == 1 and np.all(np.isfinite(x))
    np.testing.assert_allclose(gmres(rotation, b)[0], [0, 1], atol=1e-15)
    for method in METHODS:  # singular
        (x, info), messages = warned(method, np.diag([1.0, 0.0]), np.ones(2))
        assert info > 0 and len(messages) == 1
        (x, info), messages = warned(method, np.eye(2), np.array([1.0, np.nan]))
        assert info > 0 and len(messages) == 1


@pytest.mark.parametrize("solve", [*METHODS, ft.linear_solve])
def test_functions_that_add_a_constant_are_refused(solve):
    matrix, b = system(3, definite=True)
    more = (lambda matvec, b: np.linalg.solve(matrix, b),) if solve is ft.linear_solve else ()
    solution = lambda b, c: solve(lambda x: matrix @ x + c, b, *more)
    match = "is not linear: it maps zeros to values up to 2.*leave c out"
    for transform in (
        lambda f: f,
        ft.jacrev,
        ft.jacfwd,
        lambda f: lambda b, c: ft.vmap(f, (0, None))(b[None], c),
    ):
        with pytest.raises(errors.LinearityError, match=match):
            transform(solution)(b, 2.0)
    with pytest.raises(errors.LinearityError, match=match):
        ft.jit(lambda b: solution(b, 2.0))(b)
    solution(b, 0.0)
    if solve is not ft.linear_solve:
        with pytest.raises(errors.LinearityError, match=match):
            solve(matrix, b, M=lambda x: x + 2.0)


def test_arguments_of_another_kind_are_refused():
    matrix, b = system()
    with pytest.raises(
        errors.InputTypeError, match=r"A must be a linear function, or a square matrix"
    ):
        cg(np.ones((2, 3)), b)
    with pytest.raises(errors.InputTypeError, match="M must be a linear function"):
        cg(matrix, b, M="none")
    with pytest.raises(errors.InputTypeError, match=r"so b must be a vector of shape \(5,\)"):
        gmres(matrix, np.ones(4))
    with pytest.raises(errors.InputTypeError, match="so b must be a vector"):
        gmres(matrix, {"b": b})
    with pytest.raises(errors.InputTypeError, match="b has both real and complex leaves"):
        bicgstab(lambda x: x, (1.0, 1j))
    with pytest.raises(errors.RuleError, match="which should be like b, has the wrong structure"):
        cg(lambda x: x[1:], b)
    with pytest.raises(
        errors.RuleError, match="x0, which should be like b, has the wrong structure"
    ):
        cg(matrix, b, np.zeros(4))
    with pytest.raises(errors.InputTypeError, match="M turns real values into complex ones"):
        cg(matrix, b, M=lambda x: 1j * x)
    with pytest.raises(errors.OptionError, match="cg: tol must be a plain non-negative number"):
        cg(matrix, b, tol=-1.0)
    with pytest.raises(errors.OptionError, match="gmres: restart must be a positive int, not 0"):
        gmres(matrix, b, restart=0)


# Other libraries.


@pytest.mark.parametrize("method", METHODS)
def test_scipy_gives_the_same_solutions(method):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix, b = system_for(method, size=30)
    theirs, info = getattr(linalg, method.__name__)(matrix, b, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(method(matrix, b, tol=1e-10)[0], theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.peers
@pytest.mark.parametrize("method", METHODS)
def test_jax_gives_the_same_derivatives(method):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = getattr(pytest.importorskip("jax.scipy.sparse.linalg"), method.__name__)
    matrix, b = system_for(method)

    def loss(np, solver, s, b):
        return np.sum(np.sin(solver(lambda x: s * (matrix @ x), b, tol=1e-12)[0]))

    ours = ft.grad(lambda *args: loss(np, method, *args), (0, 1))(1.3, b)
    expected = jax.grad(lambda *args: loss(jax.numpy, theirs, *args), (0, 1))(1.3, b)
    assert_trees_close(ours, tuple(np.asarray(each) for each in expected), 1e-8, 1e-12)
