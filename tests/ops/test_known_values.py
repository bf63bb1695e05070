"""Rules that take a shorter way where the values allow it: they still give the same answers."""

import numpy as np
import pytest

import functrans as ft


def cofactors(a):
    """By their definition, in exact minors of small integers and well scaled numbers."""
    n = len(a)
    minor = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)
    return np.array(
        [[(-1) ** (i + j) * np.linalg.det(minor(i, j)) for j in range(n)] for i in range(n)]
    )


def nearly_singular(distance):
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    v, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    return u @ np.diag([3.0, 2.0, 1.5, 1.0, distance]) @ v


@pytest.mark.parametrize("distance", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0])
def test_gradients_of_determinants_keep_their_digits_near_singular_matrices(distance):
    a = nearly_singular(distance)
    np.testing.assert_allclose(ft.grad(np.linalg.det)(a), cofactors(a), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("distance", [1.0, 1e-3, 1e-6, 1e-9, 0.0])
def test_second_derivatives_of_determinants_keep_their_digits_too(distance):
    a, (v, w) = nearly_singular(distance), np.random.default_rng(1).normal(size=(2, 5, 5))
    along = lambda s, t: np.linalg.det(a + s * v + t * w)
    second = ft.grad(lambda s: ft.grad(lambda t: along(s, t))(0.0))(0.0)
    pushed = ft.jvp(ft.grad(np.linalg.det), (a,), (v,))[1]
    h = 0.5 ** np.arange(4)
    steps = [(along(h, h) - along(h, -h) - along(-h, h) + along(-h, -h)) / (4 * h * h) for h in h]
    expected = np.polyfit(h**2, steps, 3)[-1]  # det is a polynomial, and this its coefficient
    np.testing.assert_allclose(second, expected, rtol=1e-10)
    np.testing.assert_allclose(np.sum(pushed * w), expected, rtol=1e-10)


@pytest.mark.parametrize("distance", [1.0, 1e-3, 1e-6, 1e-9, 0.0])
def test_third_derivatives_of_determinants_keep_their_digits_too(distance):
    a, (v, w, u) = nearly_singular(distance), np.random.default_rng(1).normal(size=(3, 5, 5))
    along = lambda s: np.linalg.det(a + s[0] * v + s[1] * w + s[2] * u)
    # det is a polynomial of degree 5 in s, and mixed differences of it are exact up to degree 4
    third = ft.grad(lambda p: ft.grad(lambda q: ft.grad(lambda r: along((p, q, r)))(0.0))(0.0))(0.0)
    h = 0.25
    corners = np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    step = lambda h: sum(np.prod(c) * along(h * c) for c in corners) / (2 * h) ** 3
    expected = (4 * step(h / 2) - step(h)) / 3  # removes the term of degree 5
    np.testing.assert_allclose(third, expected, rtol=1e-6, atol=1e-6)


def test_a_stack_of_regular_and_singular_matrices_has_all_cofactors():
    stack = np.stack([nearly_singular(1.0), nearly_singular(0.0), np.zeros((5, 5)), np.eye(5)])
    gradient = ft.grad(lambda a: np.linalg.det(a).sum())(stack)
    np.testing.assert_allclose(gradient, [cofactors(a) for a in stack], atol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.grad(np.linalg.det))(stack), gradient, atol=1e-12)
    with np.errstate(all="raise"):
        regular = ft.grad(lambda a: np.linalg.det(a).sum())(stack[::3])
    np.testing.assert_allclose(regular, gradient[::3], atol=1e-12)


def test_cofactors_are_right_where_the_determinant_is_out_of_range():
    a = np.diag([1e-200, 1e-200, 1.0])  # det = 1e-400 is 0 in double precision
    np.testing.assert_allclose(np.diag(ft.grad(np.linalg.det)(a)), [1e-200, 1e-200, 0], rtol=1e-12)
    scaled = np.diag([1e-160, 1e-160, 1e10, 1.0])  # and 1e-310 has lost most of its digits
    expected = [1e-150, 1e-150, 0, 1e-310]
    np.testing.assert_allclose(
        np.diag(ft.grad(np.linalg.det)(scaled)), expected, rtol=1e-12, atol=1e-300
    )


def test_determinants_of_nan_have_gradients_of_nan():
    a = np.array([[1.0, 2, 3], [0, np.nan, 1], [2, 0, 1]])
    with np.errstate(invalid="ignore"):
        assert np.isnan(ft.grad(np.linalg.det)(a)).all()


@pytest.mark.parametrize(
    "x",
    [
        [2.0, 3.0, 5.0],
        [2.0, 0.0, 5.0],
        [0.0, 0.0, 5.0],
        [0.0, 0.0, 0.0],
        [-2.0, -0.0, 5.0],
        [np.nan, 2.0, 3.0],
        [np.inf, 2.0, 3.0],
        [1e-160, 1e-160, 1e140, 1e140],  # the product on the way has three digits
        [1e-310, 1.0, 2.0],
    ],
)
def test_gradients_of_products_are_the_products_of_the_others(x):
    x = np.array(x)
    with np.errstate(all="ignore"):
        expected = np.array([np.prod(np.sort(np.delete(x, k))[::-1]) for k in range(len(x))])
        gradient = ft.grad(np.prod)(x)
        rows = ft.grad(lambda x: np.prod(x, axis=1).sum())(np.stack([x, np.ones_like(x)]))
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-100)
    np.testing.assert_allclose(rows[0], expected, rtol=1e-12, atol=1e-100)


def test_the_second_derivative_of_a_product_with_respect_to_one_factor_is_exactly_zero():
    x = np.array([0.3, 0.7, 1.1])
    np.testing.assert_array_equal(np.diag(ft.hessian(np.prod)(x)), 0)
