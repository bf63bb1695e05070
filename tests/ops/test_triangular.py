"""Triangular systems, in all layouts, with BLAS and without, and their derivatives."""

import itertools

import numpy as np
import pytest

import functrans as ft
from functrans.ops import triangular
from functrans.ops.triangular import triangular_solve

FLAGS = list(itertools.product([False, True], repeat=3))
N = 37  # more than _FEW_ROWS


@pytest.fixture(params=["blas", "general"])
def way(request, monkeypatch):
    if request.param == "general":
        monkeypatch.setattr(triangular, "numpy_blas", lambda *names: None)
    return request.param


def matrix_and_columns(char, *lead, columns=3):
    rng = np.random.default_rng(0)
    imaginary = 1j if char in "FD" else 0
    draw = lambda *shape: (rng.normal(size=shape) + imaginary * rng.normal(size=shape)).astype(char)
    return draw(*lead, N, N) / N + 2 * np.eye(N, dtype=char), draw(*lead, N, columns)


def whole(a, lower, transposed, unit_diagonal):
    t = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        t = t - t * np.eye(N) + np.eye(N)
    return t.mT if transposed else t


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize(("lower", "transposed", "unit_diagonal"), FLAGS)
def test_solutions_solve_the_system_in_all_layouts(way, char, lower, transposed, unit_diagonal):
    flags = {"lower": lower, "transposed": transposed, "unit_diagonal": unit_diagonal}
    a, b = matrix_and_columns(char)
    wide = np.zeros((2 * N, 2 * N), char)
    wide[::2, ::2] = a
    tolerance = 1e-4 if char in "fF" else 1e-11
    for left in (a, np.asfortranarray(a), wide[::2, ::2], a[::-1, ::-1].copy()[::-1, ::-1]):
        for right in (b, np.asfortranarray(b), b[:, ::-1].copy()[:, ::-1], b[:, :1], b[:, :0]):
            before = left.copy(), right.copy()
            x = triangular_solve(left, right, **flags)
            assert x.dtype == char and x.shape == right.shape
            np.testing.assert_allclose(whole(a, **flags) @ x, right, atol=tolerance)
            np.testing.assert_array_equal(left, before[0])
            np.testing.assert_array_equal(right, before[1])


@pytest.mark.parametrize(("lower", "transposed", "unit_diagonal"), FLAGS)
def test_derivatives_are_those_of_the_general_solver(way, lower, transposed, unit_diagonal):
    flags = {"lower": lower, "transposed": transposed, "unit_diagonal": unit_diagonal}
    a, b = matrix_and_columns("d")
    ours = lambda a, b: np.sum(np.sin(triangular_solve(a, b, **flags)))
    theirs = lambda a, b: np.sum(np.sin(np.linalg.solve(whole(a, **flags), b)))
    v, w = np.cos(3 * a), np.cos(5 * b)
    for mine, other in zip(ft.grad(ours, (0, 1))(a, b), ft.grad(theirs, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)
    twice = [ft.jvp(ft.grad(f, (0, 1)), (a, b), (v, w))[1] for f in (ours, theirs)]
    for mine, other in zip(*twice, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mapped", [(0, 0), (0, None), (None, 0)])
def test_vmap_equals_a_loop(way, mapped):
    a, b = matrix_and_columns("d", 4)
    given = [x if axis == 0 else x[0] for x, axis in zip((a, b), mapped, strict=True)]
    solved = lambda a, b: triangular_solve(a, b, lower=True, transposed=True, unit_diagonal=False)
    expected = [
        np.linalg.solve(np.tril(a[k if mapped[0] == 0 else 0]).T, b[k if mapped[1] == 0 else 0])
        for k in range(4)
    ]
    np.testing.assert_allclose(ft.vmap(solved, mapped)(*given), expected, atol=1e-11)


def test_jit_equals_eager():
    a, b = matrix_and_columns("d")
    loss = lambda a, b: np.sum(
        triangular_solve(a, b, lower=True, transposed=False, unit_diagonal=False) ** 2
    )
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(a, b), ft.grad(loss)(a, b), rtol=1e-10)


def test_a_zero_on_the_diagonal_raises_an_error(way):
    a, b = matrix_and_columns("d")
    a[5, 5] = 0
    with pytest.raises(np.linalg.LinAlgError, match="diagonal 5"):
        triangular_solve(a, b, lower=True, transposed=False, unit_diagonal=False)
    triangular_solve(a, b, lower=True, transposed=False, unit_diagonal=True)


@pytest.mark.parametrize("char", "dD")
@pytest.mark.parametrize("lead", [(), (2,)])
def test_derivatives_of_large_cholesky_factors(way, char, lead):
    a, _ = matrix_and_columns(char, *lead)
    a = a @ np.conj(a.mT)
    v = np.conj(a.mT) @ np.cos(a.real)
    v = v + np.conj(v.mT)
    pushed = ft.jvp(np.linalg.cholesky, (a,), (v,))[1]
    h = 1e-6
    expected = (np.linalg.cholesky(a + h * v) - np.linalg.cholesky(a - h * v)) / (2 * h)
    np.testing.assert_allclose(pushed, expected, rtol=1e-5, atol=1e-6)
    g = np.tril(np.sin(np.arange(a.size)).reshape(a.shape)).astype(char)
    pulled = ft.vjp(np.linalg.cholesky, a)[1](g)[0]
    lower = np.tril(np.ones((N, N)))  # the triangle that is read
    assert not np.any(pulled[..., lower == 0])
    np.testing.assert_allclose(np.sum(pulled * v).real, np.sum(g * pushed).real, rtol=1e-9)
