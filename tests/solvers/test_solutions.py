"""linear_solve, custom_root and fixed_point, held against closed forms, unrolled loops and differences."""

import tracemalloc
import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import custom_root, errors, fixed_point, linear_solve
from tests.support.oracles import assert_trees_close, central_difference_jvp, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

MATRIX = np.array([[3.0, 1.0, 0.2], [0.5, 2.0, -0.3], [-0.4, 0.1, 1.5]])
RIGHT = np.array([1.0, 2.0, -0.5])


def by_columns(matvec, b):
    """A direct solver, of stageable operations."""
    columns = ft.vmap(matvec)(np.eye(len(b)))
    return np.linalg.solve(columns.T, b)


def by_steps(matvec, b):
    """A solver with a Python loop that looks at values."""
    x = np.zeros_like(b)
    while np.max(np.abs(b - matvec(x))) > 1e-13:
        x = x + 0.3 * (b - matvec(x))
    return x


def solved(matrix, b, solve=by_columns):
    return linear_solve(lambda x: matrix @ x, b, solve)


def newton(f, x):
    while abs(f(x)) > 1e-13:
        x = x - f(x) / ft.grad(f)(x)
    return x


def newton_in_a_graph(f, x):
    return ft.while_loop(
        lambda x: abs(f(x)) > 1e-13, lambda x: x - f(x) / ft.grad(f)(x), np.float64(x)
    )


def cube_root(a, solve=newton_in_a_graph):
    return custom_root(lambda x: x**3 - a, 1.0, solve)


def kepler(eccentricity, anomaly):
    """The solution of x = anomaly + eccentricity sin x."""
    return fixed_point(lambda x: anomaly + eccentricity * np.sin(x), 0.0)


# linear_solve


@pytest.mark.parametrize("solve", [by_columns, by_steps])
def test_a_linear_solution_has_the_derivatives_of_the_inverse(solve):
    check_derivatives(lambda m, b: solved(m, b, solve), (MATRIX, RIGHT), rtol=1e-7)

    def loss(solution):
        return lambda m, b: np.sum(np.sin(solution(m, b)))

    for transform in (ft.grad, ft.jacfwd, ft.jacrev, ft.hessian):
        ours = transform(loss(lambda m, b: solved(m, b, solve)), (0, 1))(MATRIX, RIGHT)
        assert_trees_close(
            ours, transform(loss(np.linalg.solve), (0, 1))(MATRIX, RIGHT), 1e-9, 1e-11
        )


def test_lanes_and_graphs_of_linear_solutions():
    check_lanes(solved, (MATRIX, RIGHT))
    check_staging(solved, (MATRIX, RIGHT))

    def loss(m):
        return np.sum(solved(m, RIGHT) ** 3)

    expected = ft.grad(lambda m: np.sum(np.linalg.solve(m, RIGHT) ** 3))(MATRIX)
    for gradient in (ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss)), ft.jit(ft.grad(ft.jit(loss)))):
        assert_trees_close(gradient(MATRIX), expected, 1e-10)
    curvature = ft.jit(ft.hessian(loss))(MATRIX)
    assert_trees_close(curvature, ft.hessian(loss)(MATRIX), 1e-10)


def test_what_lanes_share_gets_a_cotangent_from_each():
    rights = np.stack([RIGHT, 2 * RIGHT, RIGHT[::-1]])

    def total(solution):
        return lambda m: np.sum(np.sin(ft.vmap(lambda b: solution(m, b))(rights)))

    expected = ft.grad(total(np.linalg.solve))(MATRIX)
    for gradient in (
        ft.grad,
        ft.jacfwd,
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(ft.jit(f)),
    ):
        assert_trees_close(gradient(total(solved))(MATRIX), expected, 1e-10)
    curvature = ft.hessian(total(solved))(MATRIX)
    assert_trees_close(curvature, ft.hessian(total(np.linalg.solve))(MATRIX), 1e-9)
    anomalies = np.array([0.3, 1.1])
    shared = ft.grad(lambda e: np.sum(ft.vmap(lambda m: kepler(e, m))(anomalies)))(0.6)
    np.testing.assert_allclose(shared, sum(ft.grad(kepler)(0.6, m) for m in anomalies), rtol=1e-9)


def test_python_loops_in_solvers_part_the_lanes():
    scales = np.array([1.0, 0.5, 0.8])
    gradient = ft.grad(lambda s: np.sum(solved(s * MATRIX, RIGHT, by_steps) ** 2))
    assert_trees_close(ft.vmap(gradient)(scales), loop_vmap(gradient)(scales), 1e-9)


def test_the_transposed_system_has_its_own_solver():
    calls = []

    def forward(matvec, b):
        calls.append("solve")
        return np.linalg.solve(MATRIX, b)

    def transposed(matvec, b):
        calls.append("transpose_solve")
        np.testing.assert_allclose(matvec(np.eye(3)[0]), MATRIX[0])
        return np.linalg.solve(MATRIX.T, b)

    found = linear_solve(lambda x: MATRIX @ x, RIGHT, forward, transposed)
    np.testing.assert_allclose(found, np.linalg.solve(MATRIX, RIGHT))
    assert calls == ["solve"]
    _, pullback = ft.vjp(
        lambda b: linear_solve(lambda x: MATRIX @ x, b, forward, transposed), RIGHT
    )
    calls.clear()
    np.testing.assert_allclose(pullback(np.ones(3))[0], np.linalg.solve(MATRIX.T, np.ones(3)))
    assert calls == ["transpose_solve"]


def test_solvers_may_close_over_traced_values():
    def solution(scale):
        matrix = scale * MATRIX
        solve = lambda matvec, b: np.linalg.inv(matrix) @ b
        transposed = lambda matvec, b: np.linalg.inv(matrix).T @ b
        return np.sum(np.sin(linear_solve(lambda x: matrix @ x, RIGHT, solve, transposed)))

    exact = lambda scale: np.sum(np.sin(np.linalg.solve(MATRIX, RIGHT) / scale))
    for transform in (ft.grad, ft.hessian, ft.jacfwd):
        np.testing.assert_allclose(transform(solution)(1.3), transform(exact)(1.3), rtol=1e-10)
        np.testing.assert_allclose(
            ft.jit(transform(solution))(1.3), transform(exact)(1.3), rtol=1e-10
        )
        lanes = np.array([1.0, 1.3])
        mapped = ft.vmap(transform(solution))(lanes)
        np.testing.assert_allclose(mapped, [transform(exact)(s) for s in lanes], rtol=1e-10)
        np.testing.assert_allclose(
            transform(ft.jit(solution))(1.3), transform(exact)(1.3), rtol=1e-10
        )


def test_a_linear_system_of_a_tree():
    def matvec(x):
        return {"a": 2 * x["a"] + np.sum(x["b"]), "b": 3 * x["b"] - x["a"]}

    def jacobi(matvec, b):
        x = b
        for _ in range(80):
            image = matvec(x)
            x = {"a": x["a"] + (b["a"] - image["a"]) / 2, "b": x["b"] + (b["b"] - image["b"]) / 3}
        return x

    b = {"a": np.float64(1.0), "b": np.array([2.0, 3.0])}
    dense = np.array([[2.0, 1.0, 1.0], [-1.0, 3.0, 0.0], [-1.0, 0.0, 3.0]])
    jacobian = ft.jacrev(lambda b: linear_solve(matvec, b, jacobi)["b"])(b)
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(jacobian["a"], inverse[1:, 0], rtol=1e-10)
    np.testing.assert_allclose(jacobian["b"], inverse[1:, 1:], rtol=1e-10)


def test_complex_linear_systems():
    matrix = MATRIX + 1j * MATRIX.T
    solve = lambda matvec, b: np.linalg.solve(matrix, b)

    def loss(solution):
        return lambda b: np.sum(np.abs(solution(b)) ** 2)

    ours = loss(lambda b: linear_solve(lambda x: matrix @ x, b, solve, _transposed(matrix)))
    theirs = loss(lambda b: np.linalg.solve(matrix, b))
    for b in (RIGHT, RIGHT + 1j):  # a real b is made complex
        np.testing.assert_allclose(ft.grad(ours)(b), ft.grad(theirs)(b), rtol=1e-12)
    assert linear_solve(lambda x: matrix @ x, RIGHT, solve).dtype == complex


def _transposed(matrix):
    return lambda matvec, b: np.linalg.solve(matrix.T, b)


# custom_root


@pytest.mark.parametrize("solve", [newton, newton_in_a_graph])
def test_derivatives_of_a_root_are_those_of_the_closed_form(solve):
    root = lambda a: cube_root(a, solve)
    np.testing.assert_allclose(root(8.0), 2.0)
    np.testing.assert_allclose(ft.grad(root)(8.0), 1 / 12)
    np.testing.assert_allclose(ft.jvp(root, (8.0,), (3.0,))[1], 1 / 4)
    for second in (ft.hessian, lambda f: ft.grad(ft.grad(f)), lambda f: ft.jacfwd(ft.jacfwd(f))):
        np.testing.assert_allclose(second(root)(8.0), -2 / 9 * 8 ** (-5 / 3))
    third = ft.grad(ft.grad(ft.grad(root)))(8.0)
    np.testing.assert_allclose(third, 10 / 27 * 8 ** (-8 / 3), rtol=1e-10)
    lanes = np.array([0.5, 8.0, 300.0])  # as many steps as each needs
    np.testing.assert_allclose(ft.vmap(root)(lanes), np.cbrt(lanes))
    np.testing.assert_allclose(ft.vmap(ft.grad(root))(lanes), np.cbrt(lanes) / lanes / 3)


def test_roots_in_graphs():
    expected = np.array([1 / 12, -2 / 9 * 8 ** (-5 / 3)])
    found = [
        (ft.jit(ft.grad(cube_root))(8.0), ft.jit(ft.grad(ft.grad(cube_root)))(8.0)),
        (ft.grad(ft.jit(cube_root))(8.0), ft.hessian(ft.jit(cube_root))(8.0)),
        (
            ft.jit(ft.vmap(ft.grad(cube_root)))(np.full(2, 8.0))[1],
            ft.vmap(ft.jit(ft.hessian(cube_root)))(np.full(2, 8.0))[0],
        ),
    ]
    for pair in found:
        np.testing.assert_allclose(pair, expected, rtol=1e-10)


def equilibrium(params, solve=None):
    """A root of a system of a tree, by Newton's method with the dense Jacobian, or with `solve`."""

    def f(state):
        x, y = state["x"], state["y"]
        mixed = params["w"] @ x
        return {"x": x**3 + x - mixed - y, "y": y + np.sum(x) * params["s"] - 1.0}

    def find(f, state):
        flat, unravel = ft.ravel_pytree(state)
        residual = lambda v: ft.ravel_pytree(f(unravel(v)))[0]
        step = lambda v: v - np.linalg.solve(ft.jacfwd(residual)(v), residual(v))
        return unravel(ft.fori_loop(0, 12, lambda i, v: step(v), flat))

    return custom_root(f, {"x": np.ones(2), "y": np.zeros(())}, find, solve)


PARAMS = {"w": np.array([[0.2, -0.5], [0.3, 0.1]]), "s": np.float64(0.7)}


@pytest.mark.parametrize(
    "tangent_solve", [None, lambda matvec, b: ft.gmres(matvec, b, tol=1e-13)[0]]
)
def test_roots_of_systems(tangent_solve):
    def components(params):
        out = equilibrium(params, tangent_solve)
        return [out["x"], out["y"]]

    check_derivatives(components, (PARAMS,), rtol=1e-6)
    check_lanes(lambda p: tuple(components(p)), (PARAMS,), rtol=1e-8)
    check_staging(lambda p: tuple(components(p)), (PARAMS,))


def test_the_solver_of_a_root_is_not_differentiated():
    seen = []

    def solve(f, x):
        x = newton(f, x)
        seen.append(x)
        return x

    ft.grad(ft.grad(lambda a: cube_root(a, solve)))(8.0)
    assert len(seen) == 1 and type(seen[0]) in (float, np.float64)
    # The values that it closes over do not matter either.
    closing = lambda a: custom_root(lambda x: x * x - a, 1.0, lambda f, x: np.sqrt(a))
    np.testing.assert_allclose(ft.hessian(closing)(4.0), -1 / 32)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(closing)))(np.array([4.0, 1.0])), [0.25, 0.5])


def test_a_tangent_solver_may_close_over_traced_values():
    def root(a):
        slope = lambda matvec, b: b / (3 * np.cbrt(a) ** 2)
        return custom_root(lambda x: x**3 - a, 1.0, newton_in_a_graph, slope)

    for gradient in (ft.grad(root), ft.jit(ft.grad(root)), ft.grad(ft.jit(root)), ft.jacfwd(root)):
        np.testing.assert_allclose(gradient(8.0), 1 / 12)
    np.testing.assert_allclose(ft.vmap(ft.grad(root))(np.array([8.0, 1.0])), [1 / 12, 1 / 3])
    np.testing.assert_allclose(ft.hessian(root)(8.0), -2 / 9 * 8 ** (-5 / 3), rtol=1e-10)


def test_roots_do_not_depend_on_where_the_search_begins():
    assert ft.grad(lambda x0: custom_root(lambda x: x * x - 4.0, x0, newton))(3.0) == 0.0
    assert ft.grad(lambda x0: fixed_point(lambda x: np.cos(x), x0))(1.0) == 0.0


def test_complex_roots_need_not_be_of_holomorphic_functions():
    def holomorphic(a):  # z² = a
        return custom_root(lambda z: z * z - a, 1.0 + 0j, lambda f, z: np.sqrt(a + 0j))

    np.testing.assert_allclose(ft.grad(lambda a: holomorphic(a).imag)(-4.0), -0.25)

    def other(a):  # conj(z) = i a, next to 1 + 2i
        f = lambda z: np.conj(z) - 1j * a + 0.5 * (z + 1j * a)
        return custom_root(f, 1.0 + 0j, lambda f, z: -1j * a)

    for jacobian in (ft.jacfwd, ft.jacrev):
        np.testing.assert_allclose(jacobian(lambda a: other(a).imag)(2.0), -1.0)
        np.testing.assert_allclose(jacobian(lambda a: other(a).real)(2.0), 0.0, atol=1e-15)


# fixed_point


def test_a_fixed_point_has_the_derivatives_of_the_closed_form():
    root = lambda a: fixed_point(lambda x: (x + a / x) / 2, 1.0)
    np.testing.assert_allclose(root(4.0), 2.0)
    np.testing.assert_allclose(ft.grad(root)(4.0), 0.25)
    np.testing.assert_allclose(ft.hessian(root)(4.0), -1 / 32)
    np.testing.assert_allclose(ft.grad(ft.grad(ft.grad(root)))(4.0), 3 / 8 * 4**-2.5)
    np.testing.assert_allclose(ft.jit(ft.grad(root))(4.0), 0.25)
    np.testing.assert_allclose(ft.grad(ft.jit(root))(4.0), 0.25)


def test_fixed_points_have_the_derivatives_of_the_unrolled_iteration():
    def unrolled(eccentricity, anomaly):
        x = 0.0
        for _ in range(120):
            x = anomaly + eccentricity * np.sin(x)
        return x

    point = (0.6, 1.1)
    for transform in (ft.grad, ft.hessian, ft.jacfwd, ft.jacrev):
        ours, theirs = transform(kepler, (0, 1))(*point), transform(unrolled, (0, 1))(*point)
        assert_trees_close(ours, theirs, 1e-9)
    check_derivatives(kepler, (np.float64(0.6), np.float64(1.1)))
    check_lanes(kepler, (np.float64(0.6), np.float64(1.1)))
    check_staging(kepler, (np.float64(0.6), np.float64(1.1)))
    lanes = np.array([0.05, 0.5, 0.95])  # from a few iterations to hundreds
    gradient = ft.grad(lambda e: kepler(e, 1.1))
    assert_trees_close(ft.vmap(gradient)(lanes), loop_vmap(gradient)(lanes), 1e-9)
    assert_trees_close(ft.jit(ft.vmap(gradient))(lanes), loop_vmap(gradient)(lanes), 1e-9)


def test_fixed_points_of_trees():
    def settled(w):
        step = lambda s: {"u": np.tanh(w @ s["u"] + s["v"]), "v": 0.5 * np.sum(s["u"]) - 0.1}
        out = fixed_point(step, {"u": np.zeros(2), "v": 0.0})
        return [out["u"], out["v"]]

    check_derivatives(settled, (np.array([[0.3, -0.2], [0.1, 0.4]]),))
    check_lanes(lambda w: tuple(settled(w)), (np.array([[0.3, -0.2], [0.1, 0.4]]),))


def test_a_fixed_point_of_two_arrays_that_depends_on_many():
    rng = np.random.default_rng(3)
    operands = tuple(rng.uniform(0.2, 0.8, 3) for _ in range(7))
    tangents = tuple(rng.uniform(-1, 1, 3) for _ in range(7))

    def step(state, a, b, c, d, e, f, g):
        u, v = state
        return a * np.cos(v * b) * 0.4 + c, d * np.sin(e * u[::-1]) * 0.5 + f * g

    def settled(*operands):
        return fixed_point(lambda state: step(state, *operands), (np.zeros(3), np.zeros(3)))

    def unrolled(*operands):
        state = np.zeros(3), np.zeros(3)
        for _ in range(80):
            state = step(state, *operands)
        return state

    tangent = ft.jvp(settled, operands, tangents)[1]
    assert_trees_close(tangent, ft.jvp(unrolled, operands, tangents)[1], 1e-9)
    assert_trees_close(tangent, central_difference_jvp(unrolled, operands, tangents), 1e-7)
    weights = (np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.3, -0.7]))
    pulled = ft.vjp(settled, *operands)[1](weights)
    assert_trees_close(pulled, ft.vjp(unrolled, *operands)[1](weights), 1e-9)


def test_nested_solutions():
    """A fixed point inside a root, and a root inside a fixed point."""

    def outer(a):  # x² = a + y, with y = 0.1 cos(x y)
        inner = lambda x: fixed_point(lambda y: 0.1 * np.cos(x * y), 0.0)
        return custom_root(lambda x: x * x - a - inner(x), 1.0, newton_in_a_graph)

    def swapped(a):
        return fixed_point(lambda y: 0.1 * np.cos(y * cube_root(a + y)), 0.0)

    for function in (outer, swapped):
        numeric = central_difference_jvp(function, (np.float64(2.0),), (np.float64(1.0),))
        np.testing.assert_allclose(ft.grad(function)(2.0), numeric, rtol=1e-7)
        np.testing.assert_allclose(ft.jacfwd(function)(2.0), numeric, rtol=1e-7)
        np.testing.assert_allclose(ft.jit(ft.grad(function))(2.0), numeric, rtol=1e-7)


def test_python_branches_in_the_function_itself():
    def root(a):
        return fixed_point(lambda x: (x + a / x) / 2 if x > 1.5 else x + 1, -1.0)

    np.testing.assert_allclose(ft.grad(root)(4.0), 0.25)
    np.testing.assert_allclose(ft.vmap(ft.grad(root))(np.array([4.0, 9.0])), [0.25, 1 / 6])


def test_a_limit_of_zero_is_reached():
    assert warned(lambda: fixed_point(lambda x: 0.5 * x, 1.0, maxiter=50)) == []
    np.testing.assert_allclose(
        ft.grad(lambda a: fixed_point(lambda x: a * x, 1.0))(0.5), 0, atol=1e-9
    )


def test_worker_threads_may_close_over_traced_values():
    from concurrent.futures import ThreadPoolExecutor

    def in_a_thread(function):
        def run(a):
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(function, a).result()

        return run

    def diagonal(a):
        return np.sum(
            linear_solve(lambda x: a * x, RIGHT, lambda matvec, b: b / matvec(np.ones(3)))
        )

    decay = lambda a: ft.odeint(lambda y, t: -a * y, 1.0, np.array([0.0, 1.0]))[-1]
    gmres = lambda a: np.sum(ft.gmres(lambda x: a * x, RIGHT)[0])
    for function in (cube_root, lambda a: kepler(a, 1.1), diagonal, decay, gmres):
        np.testing.assert_allclose(
            ft.grad(in_a_thread(function))(0.4), ft.grad(function)(0.4), rtol=1e-12
        )


def test_memory_does_not_depend_on_the_number_of_iterations():
    def peak(rate):
        def loss(theta):
            f = lambda x: np.arcsinh(rate * np.sinh(x) + (1 - rate) * theta)
            return np.sum(fixed_point(f, np.zeros(1000)))

        gradient = ft.grad(loss)
        gradient(np.linspace(0, 1, 1000))
        tracemalloc.start()
        gradient(np.linspace(0, 1, 1000))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(0.97)  # what is made once, for many iterations only, is not part of it
    assert peak(0.97) < 1.3 * peak(0.1)  # some 900 iterations, and some 12


def test_single_precision_stays_single():
    gradient = ft.grad(lambda a: fixed_point(lambda x: (x + a / x) / 2, np.float32(1.0)))
    assert gradient(np.float32(4.0)).dtype == np.float32
    np.testing.assert_allclose(gradient(np.float32(4.0)), 0.25, rtol=1e-5)


def test_solutions_without_entries():
    assert fixed_point(lambda x: x, {}) == {}
    assert custom_root(lambda x: x, (), lambda f, x: x) == ()
    assert linear_solve(lambda x: x, [], lambda f, x: x) == []
    empty = ft.grad(lambda a: a + np.sum(fixed_point(lambda x: a * x, np.zeros(0))))
    assert empty(2.0) == 1.0
    empty = ft.grad(lambda a: a + np.sum(custom_root(lambda x: a * x, np.zeros(0), lambda f, x: x)))
    assert empty(2.0) == 1.0


def test_results_belong_to_the_caller():
    start = np.ones(2)
    for solution in (
        lambda: custom_root(lambda x: x - start, start, lambda f, x: x),
        lambda: fixed_point(lambda x: x, start),
        lambda: linear_solve(lambda x: x, start, lambda matvec, b: b),
        lambda: ft.cg(np.eye(2), start, start)[0],
        lambda: ft.grad(lambda b: np.sum(linear_solve(lambda x: x, b, lambda matvec, b: b)))(start),
    ):
        out = solution()
        out *= 3.0
        np.testing.assert_array_equal(start, [1, 1])


def test_integers_are_taken_as_floats():
    assert fixed_point(lambda x: x / 2 + 1, 3).dtype == float
    np.testing.assert_allclose(
        linear_solve(lambda x: 2 * x, np.arange(3), lambda m, b: b / 2), [0, 0.5, 1]
    )


# Reports.


def warned(function, *args):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        function(*args)
    return [str(w.message) for w in record if w.category is errors.ConvergenceWarning]


def test_a_fixed_point_that_is_not_reached_is_reported():
    slow = lambda a: fixed_point(lambda x: a * x + 1.0, 0.0, maxiter=100)
    (message,) = warned(slow, 0.99)
    assert "the fixed-point iteration of `<lambda>` (test_solutions.py" in message
    assert "did not converge by step 100: that step changed x by 3.7e-01" in message
    assert "at test_solutions.py, line" in message and "Raise maxiter or tol" in message
    assert warned(slow, 0.5) == []
    for gradient in (ft.grad(slow), ft.jit(ft.grad(slow)), ft.grad(ft.jit(slow))):
        first, second = warned(gradient, 0.99)
        assert "for a derivative of that of" in second and "for a derivative" not in first
    compiled = ft.jit(slow)
    assert len(warned(compiled, 0.99)) == 1
    assert len(warned(compiled, 0.99)) == 1  # whenever it runs, not when it is traced
    assert warned(compiled, 0.5) == []
    assert len(warned(ft.vmap(slow), np.array([0.5, 0.99, 0.9]))) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.ConvergenceWarning)
        assert np.isfinite(slow(0.99))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid:RuntimeWarning")
def test_iterations_that_leave_for_infinity_are_reported():
    assert len(warned(lambda: fixed_point(lambda x: x * x + 1, 2.0))) == 1
    assert len(warned(lambda: fixed_point(lambda x: x * np.nan, 2.0))) == 1
    assert len(warned(lambda: fixed_point(lambda x: x / 2, np.inf))) == 1


def test_a_root_that_is_none_is_reported():
    stuck = lambda a: custom_root(lambda x: x * x - a, 1.0, lambda f, x: x)
    for function in (stuck, ft.jit(stuck), ft.grad(stuck), ft.hessian(stuck)):
        (message,) = warned(function, 4.0)
        assert "is not a root of `<lambda>` (test_solutions.py" in message
        assert "‖f(x)‖ is 3.0e+00, and 3.0e+00 at the start" in message
    assert len(warned(ft.vmap(stuck), np.array([4.0, 1.0, np.nan]))) == 2
    accepted = lambda a: custom_root(lambda x: x * x - a, 1.0, lambda f, x: x, tol=1.0)
    assert warned(accepted, 4.0) == []


def test_a_linear_solution_that_is_none_is_reported():
    wrong = lambda b: linear_solve(lambda x: 2 * x, b, lambda matvec, b: b)
    (message,) = warned(wrong, RIGHT)
    assert "does not solve the linear system: the norm of the residual is 2.3e+00" in message
    assert len(warned(ft.jit(wrong), RIGHT)) == 1
    halves = lambda matvec, b: b / 2
    half_wrong = lambda b: linear_solve(lambda x: 2 * x, b, halves, lambda matvec, b: b)
    assert warned(half_wrong, RIGHT) == []
    assert len(warned(ft.vjp(half_wrong, RIGHT)[1], RIGHT)) == 1  # only the transposed one is wrong


def test_a_singular_jacobian_is_an_error():
    def double_root(a):
        return custom_root(lambda x: (x - a) ** 2, 1.0, lambda f, x: 2.0)

    derivatives = (
        lambda: ft.grad(double_root)(2.0),
        lambda: ft.jacfwd(double_root)(2.0),
        lambda: ft.jit(ft.grad(double_root))(2.0),
        lambda: ft.vmap(ft.grad(double_root))(np.array([2.0, 2.0])),
    )
    for derivative in derivatives:
        with pytest.raises(
            errors.SingularError, match=r"custom_root: the Jacobian of `<lambda>`.*gmres"
        ):
            derivative()
    with pytest.raises(np.linalg.LinAlgError):
        derivatives[0]()


# Errors.


@pytest.mark.parametrize("transform", [lambda f: f, ft.grad, ft.jit])
def test_results_of_another_kind_are_refused(transform):
    def refused(function, match):
        with pytest.raises(errors.RuleError, match=match):
            transform(lambda a: np.sum(function(a)))(0.5)

    both = r"shape or dtype, at test_solutions.py.*\n  it must be  float64\[2\]\n  but it is   "
    start = np.ones(2)
    refused(lambda a: fixed_point(lambda x: a * x[0], start), both + r"float64\[\]")
    refused(lambda a: fixed_point(lambda x: (x, a), start), both + r"\(float64\[2\], float64\[\]\)")
    refused(lambda a: fixed_point(lambda x: 1j * a * x, start), both + r"complex128\[2\]")
    refused(
        lambda a: custom_root(lambda x: x - a, start, lambda f, x: 1.0), "the value that .* returns"
    )
    refused(
        lambda a: custom_root(lambda x: x - a, start, lambda f, x: f(x[0])),
        "the value that .* passes to f",
    )
    refused(
        lambda a: linear_solve(lambda x: a * x[:1], start, by_columns), "which should be like b"
    )
    refused(lambda a: linear_solve(lambda x: a * x, start, lambda f, b: {"x": b}), "returns")
    refused(lambda a: linear_solve(lambda x: a * x, start, lambda f, b: f(1.0)), "passes to matvec")


def test_arguments_of_another_kind_are_refused():
    with pytest.raises(errors.InputTypeError, match="fixed_point needs a function, not an int"):
        fixed_point(1, 2.0)
    with pytest.raises(errors.InputTypeError, match="custom_root needs a function"):
        custom_root(lambda x: x, 2.0, None)
    with pytest.raises(errors.InputTypeError, match="linear_solve needs a function"):
        linear_solve(MATRIX, RIGHT, by_columns)
    with pytest.raises(errors.InputTypeError, match="fixed_point: x0 is a str"):
        fixed_point(lambda x: x, "zero")
    with pytest.raises(
        errors.OptionError, match="fixed_point: maxiter must be a positive int, not 0"
    ):
        fixed_point(lambda x: x, 1.0, maxiter=0)
    with pytest.raises(
        errors.OptionError, match=r"tol must be a plain non-negative number, not a traced value"
    ):
        ft.grad(lambda tol: fixed_point(lambda x: x / 2, 1.0, tol=tol))(1e-3)
    with pytest.raises(errors.StagingError, match="which is not known while jit traces"):
        ft.jit(lambda a: cube_root(a, newton))(8.0)


@pytest.mark.peers
def test_jax_gives_the_same_derivatives():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def theirs(a):
        def solve(f, x):
            step = lambda _, x: x - f(x) / jax.grad(f)(x)
            return jax.lax.fori_loop(0, 30, step, x)

        tangent = lambda g, y: y / g(1.0)
        return jax.lax.custom_root(lambda x: x**3 + a * x - 2.0, 1.0, solve, tangent)

    def ours(a):
        return custom_root(lambda x: x**3 + a * x - 2.0, 1.0, newton_in_a_graph)

    for a in (0.5, 3.0):
        np.testing.assert_allclose(ft.grad(ours)(a), jax.grad(theirs)(a), rtol=1e-9)
        np.testing.assert_allclose(ft.hessian(ours)(a), jax.hessian(theirs)(a), rtol=1e-9)

    def linear(library, np, m, b):
        dense = lambda matvec, b: np.linalg.solve(library.vmap(matvec)(np.eye(3)).T, b)
        return np.sum(np.sin(_linear_solve(library)(lambda x: m @ x, b, dense, dense)))

    def _linear_solve(library):
        return linear_solve if library is ft else jax.lax.custom_linear_solve

    for transform in ("grad", "hessian"):
        one = getattr(ft, transform)(lambda m: linear(ft, np, m, RIGHT))(MATRIX)
        other = getattr(jax, transform)(lambda m: linear(jax, jnp, m, jnp.asarray(RIGHT)))(
            jnp.asarray(MATRIX)
        )
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_reverse_mode_of_a_root_needs_the_rules_of_reverse_mode_only():
    @ft.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))

    def heron(f, x):
        return ft.fori_loop(0, 30, lambda i, x: x - f(x) / (2 * x), x)

    def root(a):
        return custom_root(lambda x: square(x) - a, 1.0, heron)

    def root_by_products(a):
        solve = lambda matvec, b: b / matvec(np.ones_like(b))
        return custom_root(lambda x: square(x) - a, 1.0, heron, tangent_solve=solve)

    # The way to J by forward mode is reverse mode twice.
    np.testing.assert_allclose(ft.jacfwd(root)(2.0), 0.5 * 2**-0.5, rtol=1e-9)
    np.testing.assert_allclose(ft.jacfwd(root_by_products)(2.0), 0.5 * 2**-0.5, rtol=1e-9)

    def limit(a):  # x = x - (x² - a)/4
        return fixed_point(lambda x: x - (square(x) - a) / 4, 1.0)

    for solution in (root, root_by_products, limit):
        for transform in (lambda f: f, ft.jit):
            first = transform(ft.grad(solution))
            second = transform(ft.grad(ft.grad(solution)))
            np.testing.assert_allclose(first(2.0), 0.5 * 2**-0.5, rtol=1e-9)
            np.testing.assert_allclose(second(2.0), -0.25 * 2**-1.5, rtol=1e-9)
        mapped = ft.vmap(ft.grad(solution))(np.array([2.0, 3.0]))
        np.testing.assert_allclose(mapped, 0.5 * np.array([2.0, 3.0]) ** -0.5, rtol=1e-9)
