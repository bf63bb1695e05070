"""solve_ivp of functrans.scipy.integrate, held against closed forms and accurate numerical derivatives."""

import numpy as np
import pytest
import scipy.integrate as si

import functrans as ft
from functrans.scipy import integrate
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes

F = np.float64
START = np.array([0.4, -0.3])
METHODS = {
    "RK45": 1e-9,
    "RK23": 1e-6,
    "DOP853": 1e-10,
    "Radau": 1e-8,
    "BDF": 1e-7,
    "LSODA": 1e-9,
}
SHARP = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}


def pendulum(t, y, k):
    return np.stack([y[1], -k * np.sin(y[0]) + 0.1 * t])


def options(method):
    return {"method": method, "rtol": METHODS[method], "atol": METHODS[method] / 100}


def close(ours, function, args, tangents, tolerance, step=1e-2):
    """The derivative of ours is that of an accurate function."""
    expected = central_difference_jvp(function, args, tangents, step)
    np.testing.assert_allclose(ft.jvp(ours, args, tangents)[1], expected, atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_the_end_with_respect_to_everything(method):
    def end(y0, k, t0, t1, settings):
        return integrate.solve_ivp(pendulum, (t0, t1), y0, args=(k,), **settings).y[:, -1]

    ours = lambda *args: end(*args, options(method))
    sharp = lambda *args: end(*args, SHARP)
    args = (START, F(1.7), F(0.1), F(1.5))
    tangents = (np.array([0.3, 0.5]), F(0.7), F(-0.4), F(0.8))
    tolerance = 30 * METHODS[method]
    close(ours, sharp, args, tangents, tolerance)
    plain = si.solve_ivp(pendulum, (0.1, 1.5), START, args=(1.7,), **options(method)).y[:, -1]
    np.testing.assert_array_equal(ft.jvp(ours, args, tangents)[0], plain)
    forward = lambda function: lambda *args: central_difference_jvp(function, args, tangents, 2e-2)
    second = lambda *args: ft.jvp(ours, args, tangents)[1]
    close(second, forward(sharp), args, tangents, max(10 * tolerance, 1e-6), 2e-2)
    reverse = ft.vjp(ours, *args)[1](np.array([1.0, -2.0]))
    forward_mode = ft.jvp(ours, args, tangents)[1] @ np.array([1.0, -2.0])
    pulled = sum(np.sum(g * t) for g, t in zip(reverse, tangents, strict=True))
    np.testing.assert_allclose(pulled, forward_mode, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_chosen_times_and_dense_output(method):
    times = np.linspace(0.2, 1.4, 5)

    def path(y0, k, t, settings):
        slope = lambda t, y: pendulum(t, y, k)
        return integrate.solve_ivp(slope, (0.1, 1.5), y0, t_eval=t, dense_output=True, **settings)

    args = (START, F(1.7), times)
    tangents = (np.array([0.3, 0.5]), F(0.7), np.linspace(-1, 1, 5))
    sharp = lambda *args: path(*args, SHARP).y
    tolerance = 30 * METHODS[method]
    ours = lambda *args: path(*args, options(method))
    close(lambda *args: ours(*args).y, sharp, args, tangents, tolerance)
    close(lambda *args: ours(*args).sol(args[2]), sharp, args, tangents, 10 * tolerance)
    between = lambda k: ours(START, k, times).sol(0.77)
    expected = lambda k: path(START, k, times, SHARP).sol(0.77)
    close(between, expected, (F(1.7),), (F(1.0),), 100 * tolerance)
    assert isinstance(ours(*args).sol, si.OdeSolution)


@pytest.mark.parametrize("method", METHODS)
def test_events(method):
    def hit(k, c, settings):
        level = lambda t, y: y[0] - c
        level.terminal = True
        turn = lambda t, y: y[1]
        turn.direction = 1.0
        slope = lambda t, y: pendulum(t, y, k)
        found = integrate.solve_ivp(slope, (0.0, 9.0), START, events=[level, turn], **settings)
        assert found.status == 1
        return np.concatenate(
            [found.t[-1:], found.y[:, -1], found.t_events[0], found.y_events[0][0]]
        )

    tolerance = 100 * METHODS[method]
    args, tangents = (F(1.7), F(0.1)), (F(0.4), F(-0.6))
    sharp = lambda *args: hit(*args, SHARP)
    close(lambda *args: hit(*args, options(method)), sharp, args, tangents, tolerance)


def test_the_time_of_an_impact():
    def impact(height, gravity):  # √(2 h / g)
        ground = lambda t, y: y[0]
        ground.terminal, ground.direction = True, -1
        fall = lambda t, y: np.stack([y[1], -gravity])
        start = np.stack([height, 0.0])
        return integrate.solve_ivp(fall, (0.0, 10.0), start, events=ground).t_events[0][0]

    closed = lambda h, g: np.sqrt(2 * h / g)
    for order in (ft.grad, ft.hessian):
        expected = order(closed, (0, 1))(5.0, 9.81)
        assert_trees_close(order(impact, (0, 1))(5.0, 9.81), expected, rtol=1e-8)


def robertson(t, y, k):
    slow, fast = k * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.stack([-slow, slow - fast, fast])


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method):
    def end(k, **settings):
        return integrate.solve_ivp(robertson, (0, 40.0), [1.0, 0, 0], args=(k,), **settings).y[
            :, -1
        ]

    ours = lambda k: end(k, method=method, rtol=1e-5, atol=1e-9)
    sharp = lambda k: end(k, method="Radau", rtol=1e-11, atol=1e-14)
    expected = central_difference_jvp(sharp, (F(0.04),), (F(1.0),), 2e-3)
    np.testing.assert_allclose(ft.jacfwd(ours)(0.04), expected, rtol=1e-4)
    np.testing.assert_allclose(ft.jacrev(ours)(0.04), expected, rtol=1e-4)


def test_lanes_and_several_transforms():
    def path(y0, k):
        times = np.array([0.5, 1.0])
        return integrate.solve_ivp(pendulum, (0.0, 1.0), y0, t_eval=times, args=(k,), rtol=1e-6).y

    check_lanes(path, (START, F(1.7)), rtol=1e-8)
    third = ft.grad(ft.grad(ft.grad(lambda r: integrate.solve_ivp(
        lambda t, y: -r * y, (0.0, 2.0), [1.0], rtol=1e-10, atol=1e-12
    ).y[0, -1])))  # fmt: skip
    np.testing.assert_allclose(third(0.5), -8 * np.exp(-1), rtol=1e-7)


def test_complex_states():
    def parts(w):
        y = integrate.solve_ivp(lambda t, y: 1j * w * y, (0, 1), [1 + 0j], rtol=1e-9, atol=1e-11).y
        return np.stack([y[0, -1].real, y[0, -1].imag])

    np.testing.assert_allclose(ft.jacfwd(parts)(2.0), [-np.sin(2), np.cos(2)], rtol=1e-6)
    with pytest.raises(ft.errors.MissingRuleError, match="complex states"):
        ft.jacfwd(lambda w: integrate.solve_ivp(
            lambda t, y: 1j * w * y, (0, 1), [1 + 0j], method="BDF"
        ).y.real)(2.0)  # fmt: skip


def test_backward_in_time_and_without_axes():
    end = lambda r: integrate.solve_ivp(lambda t, y: -r * y, (2.0, 0.0), [1.0], rtol=1e-9).y[0, -1]
    np.testing.assert_allclose(ft.grad(end)(0.5), 2 * np.e, rtol=1e-5)
    list_result = lambda r: integrate.solve_ivp(lambda t, y: [-r * y[0]], (0.0, 2.0), [1.0]).y[
        0, -1
    ]
    np.testing.assert_allclose(ft.grad(list_result)(0.5), -2 / np.e, rtol=1e-2)


def test_plain_calls_are_scipys():
    for method in METHODS:
        ours = integrate.solve_ivp(pendulum, (0, 1), START, method, args=(1.7,))
        plain = si.solve_ivp(pendulum, (0, 1), START, method, args=(1.7,))
        np.testing.assert_array_equal(ours.y, plain.y)
        assert (ours.nfev, ours.status, ours.sol) == (plain.nfev, plain.status, plain.sol)


def test_an_event_without_a_slope_has_no_derivative():
    def touch(c):
        event = lambda t, y: np.sign(y[0] - c) + 0 * c
        return integrate.solve_ivp(lambda t, y: 0 * y + 1.0, (0, 1), [0.0], events=event).t_events[
            0
        ]

    with pytest.raises(ft.errors.SingularError, match="does not cross zero"):
        ft.jacfwd(touch)(0.5)


def test_a_plain_solution_at_traced_times():
    at = integrate.METHODS[si.OdeSolution, "__call__"]
    for method in METHODS:
        solution = si.solve_ivp(
            lambda t, y: -y, (0, 2), [1.0, 2.0], dense_output=True, **options(method)
        ).sol
        path = lambda t, solution=solution: at(solution, t)
        check_derivatives(path, (np.array([0.3, 1.3]),), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ft.jacfwd(path)(1.3), -solution(1.3), rtol=1e-4)
