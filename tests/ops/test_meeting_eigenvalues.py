"""Derivatives where eigenvalues or singular values meet, or almost do: accurate or nan, never noise.

What they should be is computed by mpmath with 50 digits, of the very matrix that is given.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import linalg

import functrans as ft
from functrans.scipy import linalg as matrices
from tests.support.oracles import assert_trees_close, numerical_gradient, numerical_jvp

FUNCTIONS = {
    "exp": (np.exp, mpmath.exp),
    "log": (np.log, mpmath.log),  # zero at the eigenvalue 1, where cotangents vanish
    "x^3 - x": (lambda x: x**3 - x, lambda x: x**3 - x),
}
GAPS = [0.0, 1e-15, 1e-12, 1e-9, 1e-8, 1e-7, 1e-5, 1e-3]


def symmetric(x):
    return (x + np.swapaxes(x, -1, -2)) / 2


def rotation(rng, n):
    return linalg.qr(rng.normal(size=(n, n)))[0]


def meeting(gap, seed, n=3, turned=True):
    """A symmetric matrix with the eigenvalues 1, 1 + gap and others, and symmetric directions."""
    rng = np.random.default_rng(seed)
    values = np.array([1.0, 1.0 + gap, *(2.5 + 0.7 * k for k in range(n - 2))])
    q = rotation(rng, n) if turned else np.eye(n)
    return symmetric((q * values) @ q.T), *symmetric(rng.normal(size=(3, n, n)))


# --- the oracle ----------------------------------------------------------------------------------


def exactly(x):
    return mpmath.matrix([[mpmath.mpf(float(entry)) for entry in row] for row in x])


def rounded(x):
    return np.array([[float(x[i, j]) for j in range(x.cols)] for i in range(x.rows)])


def divided_difference(f, points):
    points = sorted(points)
    order, spread = len(points) - 1, points[-1] - points[0]
    if not order:
        return f(points[0])
    if spread > mpmath.mpf(10) ** -12:
        return (divided_difference(f, points[1:]) - divided_difference(f, points[:-1])) / spread
    center = sum(points) / len(points)
    sums = [mpmath.mpf(1)] + [mpmath.mpf(0)] * 3  # complete symmetric polynomials
    for point in points:
        for k in range(1, 4):
            sums[k] += (point - center) * sums[k - 1]
    terms = mpmath.taylor(f, center, order + 3)[order:]
    return sum(term * each for term, each in zip(terms, sums, strict=True))


def derivative(f, a, *directions):
    """The derivative of V f(w) V^T along one or two symmetric directions."""
    with mpmath.workdps(50):
        w, v = mpmath.eigsy(exactly(a))
        first, *second = (v.T * exactly(each) * v for each in directions)
        n = len(a)
        inner = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                if not second:
                    inner[i, j] = divided_difference(f, [w[i], w[j]]) * first[i, j]
                    continue
                inner[i, j] = sum(
                    divided_difference(f, [w[i], w[k], w[j]])
                    * (first[i, k] * second[0][k, j] + second[0][i, k] * first[k, j])
                    for k in range(n)
                )
        return rounded(v * inner * v.T)


def assert_accurate_or_nan(found, expected, rtol):
    """Whether it was accurate."""
    if np.any(np.isnan(found)):
        return False
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.max(np.abs(expected)))
    return True


def ways(composed, a, along, other):
    """The derivative along a direction, by both modes, and the second ones by all pairs of modes.

    The derivative of <other, composed> is the derivative of `composed` along `other`.
    """
    loss = lambda a: np.sum(other * composed(symmetric(a)))
    slope = lambda a: ft.jvp(lambda x: composed(symmetric(x)), (a,), (other,))[1]
    first = [
        ft.jvp(composed, (a,), (other,))[1],
        ft.grad(loss)(a),
    ]
    second = [
        ft.jvp(slope, (a,), (along,))[1],
        ft.jvp(ft.grad(loss), (a,), (along,))[1],
        ft.grad(lambda a: np.sum(along * ft.grad(loss)(a)))(a),
        ft.grad(lambda a: np.sum(along * slope(a)))(a),
    ]
    return first, second


# --- spectral functions --------------------------------------------------------------------------


def by_eigh(f):
    def composed(a):
        w, v = linalg.eigh(a)
        return (v * f(w)) @ v.T

    return composed


def by_inverse(f):
    def composed(a):
        w, v = linalg.eigh(a)
        return (v * f(w)) @ linalg.inv(v)

    return composed


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_spectral_functions_are_accurate_at_every_gap(name, gap, turned):
    f, exact = FUNCTIONS[name]
    a, along, other, _ = meeting(gap, 1, turned=turned)
    first, second = ways(lambda a: ft.spectral_function(f, a), a, along, other)
    expected = derivative(exact, a, other)
    for found in first:
        assert_trees_close(found, expected, rtol=1e-12, atol=1e-12)
    expected = derivative(exact, a, along, other)
    for found in second:
        assert_trees_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("composition", [by_eigh, by_inverse])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compositions_of_eigh_are_accurate_or_nan_at_every_gap(name, composition, gap, turned):
    f, exact = FUNCTIONS[name]
    a, along, other, _ = meeting(gap, 2, turned=turned)
    first, second = ways(composition(f), a, along, other)
    expected = derivative(exact, a, other)
    accurate = [assert_accurate_or_nan(found, expected, 1e-6) for found in first]
    assert all(accurate) or gap < 1e-7
    assert not any(accurate) or gap > 1e-11
    expected = derivative(exact, a, along, other)
    accurate = [assert_accurate_or_nan(found, expected, 1e-6) for found in second]
    assert all(accurate) or gap < 1e-3
    assert not any(accurate) or gap > 1e-6


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(FUNCTIONS)),
    exponent=st.floats(-17, -1),
    n=st.integers(2, 4),
    turned=st.booleans(),
)
def test_compositions_are_accurate_or_nan_for_random_matrices(seed, name, exponent, n, turned):
    f, exact = FUNCTIONS[name]
    a, along, other, _ = meeting(10.0**exponent, seed, n, turned)
    expected = derivative(exact, a, other)
    second = derivative(exact, a, along, other)
    for composed in (by_eigh(f), lambda a: ft.spectral_function(f, a)):
        found, found_second = ways(composed, a, along, other)
        for each in found:
            assert_accurate_or_nan(each, expected, 1e-6)
        for each in found_second:
            assert_accurate_or_nan(each, second, 1e-5)


def test_a_direction_between_equal_eigenvalues():
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    for f, slope in ((np.sqrt, 0.5), (np.log, 1.0), (np.exp, np.e)):
        composed, whole = by_eigh(f), lambda a, f=f: ft.spectral_function(f, a)
        assert np.all(np.isnan(ft.jvp(composed, (np.eye(2),), (swap,))[1]))
        # The cotangents of log(w) and of its vectors vanish at the identity: that says nothing.
        for cotangent in (swap, np.eye(2), np.ones((2, 2))):
            _, pull = ft.vjp(lambda a, f=composed: f(symmetric(a)), np.eye(2))
            assert np.all(np.isnan(pull(cotangent)[0]))
            _, pull = ft.vjp(lambda a, f=whole: f(symmetric(a)), np.eye(2))
            assert_trees_close(pull(cotangent)[0], slope * cotangent, rtol=1e-13)
        assert_trees_close(ft.jvp(whole, (np.eye(2),), (swap,))[1], slope * swap, rtol=1e-13)


def test_directions_that_leave_equal_eigenvalues_alone_have_a_derivative():
    # They are known in forward mode only: the matrix is scaled, or moved elsewhere.
    for a in (np.eye(3), meeting(0.0, 5)[0]):
        moved = ft.jvp(lambda s, a=a: by_eigh(np.sqrt)(s * a), (4.0,), (1.0,))[1]
        assert_trees_close(moved, by_eigh(np.sqrt)(a) / 4, rtol=1e-12)
    moved = ft.jvp(by_eigh(np.exp), (np.diag([1.0, 1.0, 2.0]),), (np.diag([0.0, 0.0, 1.0]),))[1]
    assert_trees_close(moved, np.diag([0.0, 0.0, np.exp(2.0)]))
    # Coupled to a third value, they part at second order.
    coupled = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    a = np.diag([1.0, 1.0, 2.0])
    slope = lambda f: lambda a: ft.jvp(f, (a,), (coupled,))[1]
    assert_trees_close(slope(by_eigh(np.exp))(a), derivative(mpmath.exp, a, coupled))
    assert np.any(np.isnan(ft.jvp(slope(by_eigh(np.exp)), (a,), (coupled,))[1]))
    assert_trees_close(
        ft.jvp(slope(lambda a: ft.spectral_function(np.exp, a)), (a,), (coupled,))[1],
        derivative(mpmath.exp, a, coupled, coupled),
        rtol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_matrices_in_general_position_have_finite_derivatives(dtype):
    rng = np.random.default_rng(0)
    for n in (2, 5, 20, 60):
        x = rng.normal(size=(n, n))
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.normal(size=(n, n))
        # eigenvalues from 1 down to 1e-3 for single precision, and to 1e-8 for double
        low = -3 if np.finfo(dtype).eps > 1e-10 else -8
        q = linalg.qr(x)[0]
        a = ((q * np.logspace(low, 0, n)) @ np.conj(q.T)).astype(dtype)
        c = rng.normal(size=(n, n))
        losses = (
            lambda a, c=c: np.sum(c * (by_hermitian(np.sqrt, a)).real),
            lambda a, c=c: np.sum(c * np.abs(linalg.eigh(a)[1]) ** 2),
            # a constant, of which nothing but rounding flows back
            lambda a, c=c: np.sum(c * (by_hermitian(np.ones_like, a)).real),
            lambda a, c=c: np.sum(c * svd_function(np.sqrt, a).real),
            lambda a, c=c: np.sum(c * (linalg.qr(a)[0] * a).real),
        )
        for loss in losses:
            assert np.all(np.isfinite(ft.grad(loss)(a)))


def by_hermitian(f, a):
    w, v = linalg.eigh(a)
    return (v * f(w)) @ np.conj(v.T)


# --- vectors that are not used -------------------------------------------------------------------


def leading(a):
    """Something of the leading eigenvector, and its eigenvalue, as the vector gives it."""
    v = linalg.eigh(symmetric(a))[1][:, -1]
    return (v @ np.arange(1.0, len(v) + 1)) ** 2 * (v @ a @ v)


def test_a_vector_apart_does_not_mind_how_the_others_coincide():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    for a in (np.diag([1.0, 1.0, 1.0, 4.0]), np.outer(x, x), np.eye(4) + np.outer(x, x)):
        assert_trees_close(ft.grad(leading)(a), numerical_gradient(leading, (a,))[0], atol=1e-6)
        along = np.sin(np.arange(16.0)).reshape(4, 4)
        moved = ft.jvp(leading, (a,), (along,))[1]
        assert_trees_close(moved, numerical_jvp(leading, (a,), (along,)), atol=1e-6)
        # one that is used has no derivative
        other = lambda a: np.sum(np.square(linalg.eigh(symmetric(a))[1][:, 0]) * x)
        assert np.any(np.isnan(ft.grad(other)(a)))


def test_hessians_of_the_largest_eigenvalue_where_others_coincide():
    x = np.array([1.0, 2.0, 3.0])
    along = symmetric(np.sin(np.arange(9.0)).reshape(3, 3))
    for a in (np.diag([1.0, 1.0, 4.0]), np.outer(x, x)):
        largest = lambda a: linalg.eigvalsh(symmetric(a))[-1]
        w, v = linalg.eigh(a)
        # d²w = 2 Σ (v_i^T E v_n)² / (w_n - w_i)
        expected = 2 * np.sum((v[:, :-1].T @ along @ v[:, -1]) ** 2 / (w[-1] - w[:-1]))
        twice = ft.jvp(lambda a, f=largest: ft.jvp(f, (a,), (along,))[1], (a,), (along,))[1]
        np.testing.assert_allclose(twice, expected, rtol=1e-9)
        slopes = ft.jvp(ft.grad(largest), (a,), (along,))[1]
        np.testing.assert_allclose(np.sum(slopes * along), expected, rtol=1e-9)
        back = ft.grad(lambda a, f=largest: np.sum(along * ft.grad(f)(a)))(a)
        np.testing.assert_allclose(np.sum(back * along), expected, rtol=1e-9)


@pytest.mark.parametrize("gap", GAPS)
def test_second_derivatives_of_sums_over_eigenvalues(gap):
    # Σ exp(w) is the trace of exp(A), and its gradient exp(A).
    a, along, _, _ = meeting(gap, 3)
    expected = derivative(mpmath.exp, a, along)
    gradient = ft.grad(lambda a: np.sum(np.exp(linalg.eigvalsh(symmetric(a)))))
    by_values = ft.grad(lambda a: np.sum(np.exp(linalg.svdvals(symmetric(a)))))
    found = [
        ft.jvp(gradient, (a,), (along,))[1],
        ft.grad(lambda a: np.sum(along * gradient(a)))(a),
        ft.jvp(by_values, (a,), (along,))[1],
        ft.grad(lambda a: np.sum(along * by_values(a)))(a),
    ]
    accurate = [assert_accurate_or_nan(each, expected, 1e-6) for each in found]
    assert all(accurate) or gap < 1e-7
    trace = ft.grad(lambda a: np.sum(linalg.eigvalsh(symmetric(a))))
    np.testing.assert_array_equal(ft.jvp(trace, (a,), (along,))[1], 0)


def test_second_derivatives_at_equal_values_are_nan_where_they_depend_on_the_function():
    shifted = lambda a: np.sum((linalg.eigvalsh(symmetric(a)) - 1) ** 2)
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    gradient, squares = ft.grad(shifted), ft.grad(lambda a: np.sum(linalg.svdvals(a) ** 2))
    assert np.any(np.isnan(ft.jvp(gradient, (np.eye(2),), (swap,))[1]))
    assert np.any(np.isnan(ft.grad(lambda a: np.sum(swap * gradient(a)))(np.eye(2))))
    assert_trees_close(ft.jvp(gradient, (np.eye(2),), (np.eye(2),))[1], 2 * np.eye(2))
    # Σ s² = |A|², even where singular values vanish; their slopes do not show it there.
    corner, a = np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    assert np.any(np.isnan(ft.jvp(squares, (a,), (corner,))[1]))
    assert_trees_close(ft.jvp(squares, (a,), (a,))[1], 2 * a)


# --- singular values and other factorizations ----------------------------------------------------


def svd_function(f, a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return (u * f(s)) @ vh


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_functions_of_singular_values(shape, gap):
    rng = np.random.default_rng(7)
    m, n = shape
    u, v = linalg.qr(rng.normal(size=(m, 3)))[0], linalg.qr(rng.normal(size=(n, 3)))[0]
    a = (u * np.array([1.0, 1.0 + gap, 2.5])) @ v.T
    along, other = rng.normal(size=(2, *shape))
    odd = lambda x: x**3  # U s³ V^T is A A^T A
    cube = lambda a: a @ a.T @ a
    expected = ft.jvp(cube, (a,), (along,))[1]
    found = ft.jvp(lambda a: svd_function(odd, a), (a,), (along,))[1]
    accurate = [assert_accurate_or_nan(found, expected, 1e-6)]
    pulled = ft.grad(lambda a: np.sum(other * svd_function(odd, a)))(a)
    accurate += [
        assert_accurate_or_nan(pulled, ft.grad(lambda a: np.sum(other * cube(a)))(a), 1e-6)
    ]
    assert all(accurate) or gap < 1e-7
    assert not any(accurate) or gap > 1e-11


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1.0])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_the_polar_factor_is_accurate_at_every_gap(shape, gap):
    rng = np.random.default_rng(8)
    m, n = shape
    k = min(m, n)
    u, v = linalg.qr(rng.normal(size=(m, k)))[0], linalg.qr(rng.normal(size=(n, k)))[0]
    a = (u * (1.0 + gap * np.arange(k))) @ v.T
    for side in ("right", "left"):
        f = lambda a, side=side: matrices.polar(a, side)
        ft.check_derivatives(f, (a,), order=2)
        factor, stretch = f(a)
        product = factor @ stretch if side == "right" else stretch @ factor
        assert_trees_close(product, a, rtol=1e-13)


def test_singular_values_that_vanish():
    # U s³ V^T once more: its cotangents vanish with s, and do not tell what they would be.
    for shape in ((3, 3), (4, 2), (2, 4)):
        a = np.zeros(shape)
        a[0, 0] = 1.0
        loss = lambda a: np.sum(np.cos(np.arange(a.size)) * svd_function(np.sin, a).ravel())
        assert np.any(np.isnan(ft.grad(loss)(a)))


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-13, 1e-10, 1e-7, 1e-4])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3)])
def test_columns_that_almost_depend_on_others(shape, gap):
    rng = np.random.default_rng(9)
    a, along = rng.normal(size=(2, *shape))
    a[:, 1] = 0.7 * a[:, 0] + gap * a[:, 1]
    q, r = linalg.qr(a)
    dq, dr = ft.jvp(lambda a: tuple(linalg.qr(a)), (a,), (along,))[1]
    # A = Q R and Q^T Q = 1, so their derivatives vanish or agree.
    if gap >= 1e-7:
        assert_trees_close(dq @ r + q @ dr, along, atol=1e-6)
        assert_trees_close(q.T @ dq + dq.T @ q, np.zeros((3, 3)), atol=1e-12 / gap)
    if gap <= 1e-10:
        assert np.all(np.isnan(dq[:, 1:]))
    # The first column and row are what they are.
    first = lambda a: (a[:, 0] / linalg.norm(a[:, 0]), a[:, 0] @ a / linalg.norm(a[:, 0]))
    sign = np.sign(r[0, 0])
    expected = ft.jvp(first, (a,), (along,))[1]
    assert_trees_close((sign * dq[:, 0], sign * dr[0]), expected)
    for k, f in enumerate((lambda a: linalg.qr(a)[0][:, 0], lambda a: linalg.qr(a)[1][0])):
        pulled = ft.grad(lambda a, f=f: sign * np.sum(f(a) * np.arange(1.0, f(a).size + 1)))(a)
        loss = lambda a, k=k: np.sum(first(a)[k] * np.arange(1.0, first(a)[k].size + 1))
        assert_trees_close(pulled, ft.grad(loss)(a), rtol=1e-9, atol=1e-9)


def test_the_last_column_of_a_square_q_is_perpendicular_to_the_others():
    a = np.ones((2, 2))
    along = np.array([[1.0, 0.0], [2.0, 0.0]])
    f = lambda a: linalg.qr(a)[0]
    assert_trees_close(ft.jvp(f, (a,), (along,))[1], numerical_jvp(f, (a,), (along,)))


def test_eigenvalues_that_branch_have_no_derivative():
    for a in ([[1.0, 1.0], [0.0, 1.0]], [[1.0, 1.0], [1e-14, 1.0]], [[0.0, 1.0], [0.0, 0.0]]):
        a = np.array(a)
        for f in (lambda a: linalg.eigvals(a)[0], lambda a: np.sum(linalg.eigvals(a) ** 2)):
            assert np.all(np.isnan(ft.grad(lambda a, f=f: f(a).real)(a)))
    assert np.all(np.isnan(ft.grad(lambda c: np.roots(c)[0].real)(np.array([1.0, -2.0, 1.0]))))
    a = np.array([[1.0, 1.0], [1e-4, 1.0]])  # 1 ± 0.01
    slope = ft.grad(lambda a: np.max(linalg.eigvals(a)))(a)[1, 0]
    np.testing.assert_allclose(slope, 50.0, rtol=1e-9)


@pytest.mark.parametrize("gap", GAPS)
def test_compositions_of_eig(gap):
    rng = np.random.default_rng(11)
    basis = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    a = (basis * np.array([1.0, 1.0 + gap, 2.5])) @ linalg.inv(basis)
    along = rng.normal(size=(3, 3))

    def composed(a):
        w, v = linalg.eig(a)
        return ((v * w**3) @ linalg.inv(v)).real

    expected = ft.jvp(lambda a: a @ a @ a, (a,), (along,))[1]
    accurate = assert_accurate_or_nan(ft.jvp(composed, (a,), (along,))[1], expected, 1e-6)
    assert accurate or gap < 1e-6
    cube = ft.grad(lambda a: np.sum(along * (a @ a @ a)))(a)
    found = ft.grad(lambda a: np.sum(along * composed(a)))(a)
    assert assert_accurate_or_nan(found, cube, 1e-6) or gap < 1e-6
    # sums over eigenvalues do not mind
    traced = ft.grad(lambda a: np.sum(linalg.eigvals(a) ** 3).real)(a)
    assert_trees_close(traced, 3 * (a @ a).T, rtol=1e-9)


def test_the_pseudoinverse_has_a_derivative_along_directions_that_keep_the_rank():
    left, right = np.array([[1.0], [2.0], [2.0]]), np.array([[3.0, 4.0]])
    a = left @ right
    keeping = left @ np.array([[1.0, -1.0]])
    f = lambda t: linalg.pinv(left @ (right + t * np.array([[1.0, -1.0]])), rcond=1e-10)
    moved = ft.jvp(lambda a: linalg.pinv(a, rcond=1e-10), (a,), (keeping,))[1]
    assert_trees_close(moved, numerical_jvp(f, (0.0,), (1.0,)))
    growing = np.ones((3, 2))
    moved = ft.jvp(lambda a: linalg.pinv(a, rcond=1e-10), (a,), (growing,))[1]
    assert np.all(np.isnan(moved))


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("derivative", [ft.jacfwd, ft.jacrev])
def test_high_derivatives_of_a_pseudoinverse_are_those_of_the_inverse(derivative, hermitian):
    # Here, 1 - A P is zero. Its rounding errors made third derivatives wrong by a percent.
    a = 1 / (np.arange(4.0)[:, None] + np.arange(1.0, 5.0))
    along = a @ np.cos(np.arange(16.0)).reshape(4, 4) @ a
    along = along + along.T

    def third(f):
        return derivative(derivative(derivative(f)))(0.0)

    found = third(lambda t: linalg.pinv(a + t * along, hermitian=hermitian))
    expected = third(lambda t: linalg.inv(a + t * along))
    assert_trees_close(found, expected, rtol=1e-8, atol=1e-8 * np.max(np.abs(expected)))


# --- square roots --------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", GAPS)
def test_sqrtm_is_accurate_at_every_gap(gap):
    a, along, other, _ = meeting(gap, 12)
    first, second = ways(matrices.sqrtm, a, along, other)
    for found in first:
        assert_trees_close(found, derivative(mpmath.sqrt, a, other), rtol=1e-11, atol=1e-12)
    for found in second:
        expected = derivative(mpmath.sqrt, a, along, other)
        assert_trees_close(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.filterwarnings("ignore:Matrix is singular")
def test_sqrtm_of_singular_matrices_has_no_derivative():
    for a in (np.zeros((2, 2)), np.diag([1.0, 0.0, 0.0]), np.ones((2, 2))):
        along = np.ones_like(a)
        assert np.any(np.isnan(ft.jvp(matrices.sqrtm, (a,), (along,))[1]))
        assert np.any(np.isnan(ft.grad(lambda a: np.sum(matrices.sqrtm(a)))(a)))
