"""odeint of functrans.scipy.integrate, and the primitive that stands for it in graphs.

Both are held against closed forms and numerical derivatives.
"""

import numpy as np
import pytest
import scipy.integrate as si

import functrans as ft
from functrans.scipy import integrate
from functrans.scipy.adjoint import staged_path
from tests.support.oracles import assert_trees_close, central_difference_jvp, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

TIGHT = {"rtol": 1e-11, "atol": 1e-11}
TIMES = np.array([0.1, 0.5, 1.2])


def odeint(f, y0, t, *args, rtol=1e-8, atol=1e-8):
    """The primitive, which takes trees."""
    return staged_path(f, y0, t, args, rtol, atol)


def pendulum(y, t, params):
    return {"angle": y["speed"], "speed": -params["k"] * np.sin(y["angle"]) + params["drive"] * t}


def path(angle, speed, t, k, drive):
    out = odeint(pendulum, {"angle": angle, "speed": speed}, t, {"k": k, "drive": drive}, **TIGHT)
    return np.stack([out["angle"], out["speed"]])


POINT = (np.float64(0.4), np.float64(-0.3), TIMES, np.float64(1.7), np.float64(0.6))


def test_values_are_those_of_the_closed_form():
    out = odeint(lambda y, t, a: a * y, np.array([1.0, 2.0]), TIMES, -0.7)
    np.testing.assert_allclose(out, np.exp(-0.7 * (TIMES - 0.1))[:, None] * [1.0, 2.0], rtol=1e-7)
    backward = odeint(lambda y, t: -y, 1.0, TIMES[::-1])
    np.testing.assert_allclose(backward, np.exp(1.2 - TIMES[::-1]), rtol=1e-7)
    assert odeint(lambda y, t: -y, 3.0, [0.5]) == [3.0]
    assert odeint(lambda y, t: -y, np.float32(3.0), TIMES).dtype == np.float32


def test_derivatives_by_start_times_and_arguments():
    check_derivatives(path, POINT, rtol=1e-6, atol=1e-7, step=2e-3)


def test_derivatives_by_arguments_with_several_entries():
    def final(start, rates, drives):  # y' = d - r y is solved by d/r + (y0 - d/r) exp(-r t)
        return odeint(lambda y, t, r, d: d - r * y, start, TIMES, rates, drives, **TIGHT)

    def closed(start, rates, drives):
        rest = drives / rates
        return rest + (start - rest) * np.exp(-rates * (TIMES[:, None] - 0.1))

    point = (np.array([1.0, 0.4, -0.7]), np.array([0.5, 1.2, 0.8]), np.array([0.3, -0.2, 1.1]))
    tangents = tuple(np.array([0.6, -1.0, 1.5]) + k for k in range(3))
    pushed = ft.jvp(final, point, tangents)
    assert_trees_close(pushed, ft.jvp(closed, point, tangents), rtol=1e-7)
    assert_trees_close(pushed[1], central_difference_jvp(closed, point, tangents), rtol=1e-7)
    weights = np.arange(9.0).reshape(3, 3) - 2
    pulled = ft.vjp(final, *point)[1](weights)
    assert_trees_close(pulled, ft.vjp(closed, *point)[1](weights), rtol=1e-7)


def test_third_derivative_of_a_closed_form():
    def final(rate):
        return odeint(lambda y, t, r: -r * y, 1.0, np.array([0.0, 2.0]), rate, **TIGHT)[-1]

    np.testing.assert_allclose(ft.grad(ft.grad(ft.grad(final)))(0.5), -8 * np.exp(-1), rtol=1e-7)
    forward = ft.jacfwd(ft.jacrev(ft.jacfwd(final)))(0.5)
    np.testing.assert_allclose(forward, -8 * np.exp(-1), rtol=1e-7)


@pytest.mark.parametrize(
    "in_axes",
    [
        (0, None, None, None, None),
        (None, None, None, 0, None),
        (0, 0, 0, 0, 0),
        (None, None, 0, None, None),
    ],
)
def test_vmap_is_a_loop(in_axes):
    shift = np.array([0.0, 0.1, 0.3])
    args = tuple(
        x if axis is None else np.asarray(x) + shift.reshape(3, *[1] * np.ndim(x))
        for x, axis in zip(POINT, in_axes, strict=True)
    )
    assert_trees_close(ft.vmap(path, in_axes)(*args), loop_vmap(path, in_axes)(*args), rtol=1e-8)
    gradient = ft.grad(lambda *args: np.sum(path(*args) ** 2), (0, 2, 3))
    looped = loop_vmap(gradient, in_axes, (0, 0, 0))(*args)
    assert_trees_close(ft.vmap(gradient, in_axes)(*args), looped, rtol=1e-7)


def test_jacobians_by_both_modes_are_equal():
    forward = ft.jacfwd(lambda k: path(*POINT[:3], k, POINT[4]))(1.7)
    backward = ft.jacrev(lambda k: path(*POINT[:3], k, POINT[4]))(1.7)
    np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-9)


def test_graphs_compute_the_same():
    check_staging(path, POINT)
    assert "odeint" in str(ft.make_graph(path)(*POINT))


@pytest.mark.filterwarnings("error")
def test_complex_states_with_real_arguments():
    def slope(y, t, turn, mix):
        return 1j * turn * y + mix * np.conj(y)

    def final(real, imag, turn, mix):
        y = odeint(slope, real + 1j * imag, TIMES, turn, mix, **TIGHT)
        return np.stack([np.real(y), np.imag(y)])

    check_derivatives(final, tuple(map(np.float64, (1.0, 0.5, 0.8, 0.3))), step=2e-3)


def test_integer_arguments_and_python_branches():
    def slope(y, t, power, rate):
        return -rate * y**power if t < 0.6 else -rate * y

    def final(rate):
        return odeint(slope, 1.0, np.array([0.0, 1.0]), 2, rate, **TIGHT)[-1]

    def closed(rate):
        return np.exp(-0.4 * rate) / (1 + 0.6 * rate)

    np.testing.assert_allclose(final(0.7), closed(0.7), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(final)(0.7), ft.grad(closed)(0.7), rtol=1e-5)


def test_the_primitive_closes_over_traced_values():
    def final(rate):
        return odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 2.0]))[-1]

    np.testing.assert_allclose(ft.grad(final)(0.5), -2 / np.e, rtol=1e-6)
    np.testing.assert_allclose(ft.jvp(final, (0.5,), (1.0,))[1], -2 / np.e, rtol=1e-6)
    rates = np.array([0.5, 0.6])
    np.testing.assert_allclose(ft.vmap(final)(rates), np.exp(-2 * rates), rtol=1e-6)


def test_a_slope_of_another_shape_is_refused():
    with pytest.raises(ft.errors.InputTypeError, match="Return dy/dt"):
        odeint(lambda y, t: np.ones(3), np.ones(2), TIMES)
    with pytest.raises(ft.errors.InputTypeError, match="Return dy/dt"):
        odeint(lambda y, t: (y, y), np.ones(2), TIMES)
    with pytest.raises(ValueError, match="non-empty 1-D array"):
        odeint(lambda y, t: y, 1.0, 2.0)


def test_an_equation_without_a_solution_says_so():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="was not solved"):
        odeint(lambda y, t: y * y, 1.0, np.array([0.0, 2.0]))


def test_times_may_be_repeated():
    def decay(y, t, rate):
        return -rate * y

    times = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    path = lambda rate, start, t: odeint(decay, start, t, rate)
    np.testing.assert_allclose(path(0.5, 2.0, times), 2 * np.exp(-0.5 * times), atol=1e-7)
    by_rate, by_start, by_time = ft.jacrev(path, (0, 1, 2))(0.5, 2.0, times)
    np.testing.assert_allclose(by_rate, -2 * times * np.exp(-0.5 * times), atol=1e-6)
    np.testing.assert_allclose(by_start, np.exp(-0.5 * times), atol=1e-6)
    slope = -np.exp(-0.5 * times)
    np.testing.assert_allclose(by_time[1:, 1:], np.diag(slope[1:]), atol=1e-6)
    np.testing.assert_allclose(by_time[1:, 0], -slope[1:], atol=1e-6)
    np.testing.assert_allclose(ft.jacfwd(path)(0.5, 2.0, times), by_rate, atol=1e-6)
    assert path(0.5, 2.0, np.array([1.0, 1.0])).tolist() == [2.0, 2.0]


def test_times_that_turn_are_refused():
    with pytest.raises(ValueError, match=r"0\.0, 2\.0, 1\.0 do neither.*np\.sort"):
        odeint(lambda y, t: -y, 1.0, np.array([0.0, 2.0, 1.0]))


# SciPy's function.

F = np.float64


def driven(y, t, k):
    return np.stack([y[1], -k * np.sin(y[0]) + 0.1 * t])


def test_odeint_with_respect_to_everything():
    def path(y0, k, t):
        return integrate.odeint(driven, y0, t, args=(k,), **TIGHT)

    point = (np.array([0.4, -0.3]), F(1.7), TIMES)
    np.testing.assert_array_equal(path(*point), si.odeint(driven, *point[::2], (1.7,), **TIGHT))
    check_derivatives(path, point, rtol=1e-5, atol=1e-6, step=2e-3)
    check_lanes(path, point, rtol=1e-6, atol=1e-7)


def test_odeint_closes_over_traced_values():
    times = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    path = lambda rate: integrate.odeint(lambda y, t: -rate * y, 1.0, times)[:, 0]
    np.testing.assert_allclose(ft.jacrev(path)(0.5), -times * np.exp(-0.5 * times), atol=1e-7)
    np.testing.assert_allclose(ft.hessian(lambda r: path(r)[-1])(0.5), 4 / np.e, rtol=1e-6)
    rates = np.array([0.5, 1.0])
    np.testing.assert_allclose(ft.vmap(path)(rates), np.stack([path(r) for r in rates]))
    assert path(0.5).shape == (5,)
    back = lambda rate: integrate.odeint(lambda y, t: -rate * y, 1.0, times[::-1])[-1, 0]
    np.testing.assert_allclose(ft.grad(back)(0.5), 2 * np.e, rtol=1e-6)


def test_options_of_odeint():
    slope = lambda t, y, k: driven(y, t, k)
    start = np.array([0.4, -0.3])
    jacobian = lambda t, y, k: np.stack([np.stack([0.0, 1.0]), np.stack([-k * np.cos(y[0]), 0.0])])

    def end(k):
        values, info = integrate.odeint(
            slope, start, TIMES, (k,), Dfun=jacobian, full_output=True, tfirst=True, hmax=0.2
        )
        assert info["message"] == "Integration successful."
        return values[-1]

    usual = lambda k: integrate.odeint(driven, start, TIMES, (k,), **TIGHT)[-1]
    np.testing.assert_allclose(ft.jacfwd(end)(1.7), ft.jacfwd(usual)(1.7), rtol=1e-6)
    assert integrate.odeint(lambda y, t: -y, 3.0, [0.5]).tolist() == [[3.0]]


def test_odeint_in_graphs():
    def final(y0, k):
        return integrate.odeint(driven, y0, TIMES, (k,), **TIGHT)[-1]

    point = (np.array([0.4, -0.3]), F(1.7))
    graph = ft.make_graph(final)(*point)
    np.testing.assert_allclose(graph(*point), final(*point), rtol=1e-8)
    assert "odeint" in str(graph)
    closed = ft.jit(lambda k: integrate.odeint(lambda y, t: driven(y, t, k), point[0], TIMES)[-1])
    np.testing.assert_allclose(closed(F(1.7)), final(*point), rtol=1e-6)
    gradient = ft.jacrev(final, 1)
    np.testing.assert_allclose(ft.jit(gradient)(*point), gradient(*point), rtol=1e-6)
    with pytest.raises(ft.errors.OptionError, match="full_output="):
        ft.make_graph(
            lambda k: integrate.odeint(driven, [0.4, 0.1], TIMES, (k,), full_output=1)[0]
        )(1.7)
