"""Small matrices in machine code: as NumPy, up to rounding, and its errors."""

import numpy as np
import pytest

from functrans import grad, jit, scan
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

LARGEST = 16
OPERATIONS = {
    "solve": np.linalg.solve,
    "a shared matrix": lambda a, b: np.linalg.solve(a.reshape(-1, *a.shape[-2:])[0], b),
    "a shared right-hand side": lambda a, b: np.linalg.solve(a, b.reshape(-1, *b.shape[-2:])[0]),
    "transposed": lambda a, b: np.linalg.solve(a.mT, b),
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: np.linalg.slogdet(a),
    "cholesky": lambda a, b: np.linalg.cholesky(a @ a.mT + np.eye(a.shape[-1], dtype=a.dtype)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 3, 7, LARGEST, LARGEST + 1])
@pytest.mark.parametrize("stack", [(), (3,), (2, 3)])
def test_operations_agree_with_numpy(name, dtype, n, stack):
    draw = np.random.default_rng(n)
    a = draw.normal(size=(*stack, n, n)).astype(dtype) + 2 * np.eye(n, dtype=dtype)
    b = draw.normal(size=(*stack, n, 4)).astype(dtype)
    f = jit(OPERATIONS[name], backend="native")
    tolerance = 1e-9 if dtype == np.float64 else 1e-2
    assert_trees_close(f(a, b), OPERATIONS[name](a, b), rtol=tolerance, atol=tolerance)
    assert ("def compiled" in f.trace(a, b).code) == (n > LARGEST)


def test_errors_are_those_of_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        jit(np.linalg.inv, backend="native")(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        jit(np.linalg.cholesky, backend="native")(-np.eye(3))


def test_singular_matrices_have_determinants():
    for matrix in (np.zeros((3, 3)), np.ones((2, 2)), np.outer([1.0, 2, 3], [4.0, 5, 6])):
        assert jit(np.linalg.det, backend="native")(matrix) == pytest.approx(0.0, abs=1e-14)
    sign, log = jit(np.linalg.slogdet, backend="native")(np.zeros((3, 3)))
    assert sign == 0 and log == -np.inf


def test_pivoting():
    matrix = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [3.0, 0.0, 1e-12]])
    found = jit(np.linalg.solve, backend="native")(matrix, np.eye(3))
    np.testing.assert_allclose(found, np.linalg.inv(matrix), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        jit(np.linalg.det, backend="native")(matrix), np.linalg.det(matrix), rtol=1e-12
    )


def test_a_kalman_filter_is_native():
    step, seen, noise = np.eye(2) + np.diag([0.1], 1), np.eye(1, 2), np.eye(2) * 0.01

    def likelihood(scale, ys):
        def update(carry, y):
            mean, cov, total = carry
            mean, cov = step @ mean, step @ cov @ step.T + noise * scale
            spread = seen @ cov @ seen.T + 0.1
            error = y - seen @ mean
            gain = np.linalg.solve(spread, seen @ cov).T
            total = total - error @ np.linalg.solve(spread, error) - np.log(np.linalg.det(spread))
            return (mean + gain @ error, cov - gain @ seen @ cov, total), None

        return scan(update, (np.zeros(2), np.eye(2), 0.0), ys)[0][2]

    ys = np.random.default_rng(0).normal(size=(20, 1))
    f = jit(grad(likelihood), backend="native")
    assert "def compiled" not in f.trace(1.5, ys).code
    np.testing.assert_allclose(f(1.5, ys), grad(likelihood)(1.5, ys), rtol=1e-10)
