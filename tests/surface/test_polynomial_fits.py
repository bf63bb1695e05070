"""Polynomial functions that solve linear problems: roots, polyfit, and poly of a matrix."""

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import assert_trees_close, loop_vmap, numerical_gradient, numerical_jvp

RNG = np.random.default_rng(3)
X = np.linspace(-1.0, 2.0, 7) + 0.1 * RNG.normal(size=7)
Y = RNG.normal(size=7)
W = RNG.uniform(0.5, 2.0, 7)


def check(function, *args, rtol=1e-6):
    """Values, both modes against finite differences, and second derivatives against first."""
    assert_trees_close(ft.vjp(function, *args)[0], function(*args), rtol=1e-9)
    loss = lambda *xs: np.sum(np.sin(function(*xs)))
    numbers = tuple(range(len(args)))
    expected = numerical_gradient(loss, args)
    assert_trees_close(ft.grad(loss, numbers)(*args), expected, rtol=rtol)
    tangents = tuple(np.cos(np.arange(arg.size)).reshape(arg.shape) for arg in args)
    pushed = ft.jvp(loss, args, tangents)[1]
    np.testing.assert_allclose(
        pushed, sum(np.sum(g * t) for g, t in zip(expected, tangents, strict=True)), rtol=rtol
    )
    gradient = ft.grad(loss, numbers)
    assert_trees_close(
        ft.jvp(gradient, args, tangents)[1], numerical_jvp(gradient, args, tangents), rtol=1e-5
    )


def test_roots_move_with_the_coefficients():
    check(lambda p: np.sort(np.roots(p).real), np.array([1.0, -6.5, 11.0, -5.0]))
    check(lambda p: np.sort(np.roots(p).imag), np.array([1.0, 2.0, 5.0]))


def test_roots_beside_zeros():
    p = np.array([0.0, 2.0, -3.0, 1.0, 0.0])
    np.testing.assert_allclose(ft.vjp(lambda q: np.roots(q).real, p)[0], np.roots(p), atol=1e-12)
    assert ft.vjp(np.roots, np.zeros(3))[0].shape == (0,)
    assert ft.vjp(np.roots, np.array([2.0, 0.0]))[0].tolist() == [0.0]


def test_poly_of_a_matrix_is_its_characteristic_polynomial():
    check(np.poly, RNG.normal(size=(3, 3)) + np.diag([1.0, 4.0, 9.0]))


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_polyfit_in_points_values_and_weights(degree):
    check(lambda x, y: np.polyfit(x, y, degree), X, Y)
    check(lambda x, y, w: np.polyfit(x, y, degree, w=w), X, Y, W)


def test_polyfit_of_several_columns():
    check(lambda x, y: np.polyfit(x, y, 2, w=W), X, RNG.normal(size=(7, 2)))


@pytest.mark.parametrize("cov", [True, "unscaled"])
def test_polyfit_with_its_covariance(cov):
    check(lambda x, y: np.polyfit(x, y, 1, cov=cov)[1], X, Y)
    many = RNG.normal(size=(7, 2))
    function = lambda y: np.polyfit(X, y, 1, cov=cov)
    assert_trees_close(ft.vjp(function, many)[0], function(many))


def test_polyfit_full():
    function = lambda x, y: np.polyfit(x, y, 2, full=True)
    found, expected = ft.jvp(function, (X, Y), (Y, X))[0], function(X, Y)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_polyfit_in_lanes():
    ys = RNG.normal(size=(4, 7))
    fit = lambda y: np.polyfit(X, y, 2)
    np.testing.assert_allclose(ft.vmap(fit)(ys), loop_vmap(fit, 0)(ys))


def test_mistakes_in_polyfit():
    for args, kind in [
        ((X, Y, -1), ValueError),
        ((X[None], Y, 1), TypeError),
        ((X, Y[:3], 1), TypeError),
        ((X[:0], Y[:0], 1), TypeError),
    ]:
        with pytest.raises(kind):
            np.polyfit(*args)
        with pytest.raises(kind):
            ft.jvp(lambda x, y, d=args[2]: np.polyfit(x, y, d), args[:2], args[:2])
