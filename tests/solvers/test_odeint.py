"""functrans.odeint, held against closed forms, numerical derivatives, SciPy and JAX."""

import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import errors, odeint
from tests.support.oracles import assert_trees_close, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_staging

TIGHT = {"rtol": 1e-11, "atol": 1e-11}
TIMES = np.array([0.1, 0.5, 1.2])


def path(angle, speed, t, k, drive, **options):
    """A driven pendulum; k is among the arguments, and the drive is closed over."""

    def pendulum(y, t, k):
        return {"angle": y["speed"], "speed": -k * np.sin(y["angle"]) + drive * t}

    out = odeint(pendulum, {"angle": angle, "speed": speed}, t, k, **{**TIGHT, **options})
    return np.stack([out["angle"], out["speed"]])


POINT = (np.float64(0.4), np.float64(-0.3), TIMES, np.float64(1.7), np.float64(0.6))


def decay(rate, t=(0.0, 2.0), **options):
    return odeint(lambda y, t: -rate * y, 1.0, np.array(t), **options)


# Values.


@pytest.mark.parametrize("method", ["dopri5", "bosh3"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_the_error_follows_the_tolerance(method, tolerance):
    t = np.linspace(0.0, 6.0, 50)  # more times than steps: most are interpolated
    options = {"method": method, "rtol": tolerance, "atol": tolerance}
    out = odeint(lambda y, t: np.stack([y[1], -y[0]]), np.array([0.0, 1.0]), t, **options)
    error = np.max(np.abs(out - np.stack([np.sin(t), np.cos(t)], 1)))
    assert 0.01 * tolerance < error < 30 * tolerance


@pytest.mark.parametrize(
    ("method", "order"), [("rk4", 4), ("euler", 1), ("dopri5", 5), ("bosh3", 3)]
)
def test_methods_have_their_order(method, order):
    """Halving the step divides the error by 2^order."""
    exact = np.exp(np.sin(3.0))
    errors = []
    for hmax in (0.1, 0.05):
        # Tolerances so wide that hmax decides.
        options = {"method": method, "hmax": hmax, "rtol": 1e3, "atol": 1e3}
        errors.append(
            abs(odeint(lambda y, t: y * np.cos(t), 1.0, [0.0, 3.0], **options)[-1] - exact)
        )
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.35


def test_the_interpolation_of_dopri5_has_order_four():
    errors = []
    for hmax in (0.2, 0.1):
        t = np.linspace(0.0, 3.0, 301)
        out = odeint(lambda y, t: y * np.cos(t), 1.0, t, hmax=hmax, rtol=1e3, atol=1e3)
        errors.append(np.max(np.abs(out - np.exp(np.sin(t)))))
    assert np.log2(errors[0] / errors[1]) > 3.8


def test_times_that_decrease_or_repeat_or_are_alone():
    for t in ([0.0, 0.0, 1.0, 1.0, 1.0], [1.0, 0.3, 0.3, -1.0], [2.0], [2.0, 2.0], [0, 1, 2]):
        out = decay(0.5, t, **TIGHT)
        np.testing.assert_allclose(out, np.exp(-0.5 * (np.array(t) - t[0])), rtol=1e-9)
        for jacobian in (ft.jacfwd, ft.jacrev):
            found = jacobian(lambda t: odeint(lambda y, t: -0.5 * y, 1.0, t, **TIGHT))(
                np.array(t, float)
            )
            slope = -0.5 * np.exp(-0.5 * (np.array(t) - t[0]))
            expected = np.diag(slope)
            expected[:, 0] -= slope
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_times_that_are_neighbors():
    t = np.array([1.0, np.nextafter(1.0, 2.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(odeint(lambda y, t: -y, 1.0, t), [1, 1])


def test_the_equation_is_not_asked_beyond_the_last_time():
    seen = []

    def slope(y, t):
        seen.append(float(t))
        return -np.sqrt(2 - t) * y

    out = odeint(slope, 1.0, [0.0, 2.0])
    np.testing.assert_allclose(out[-1], np.exp(-(2**1.5) * 2 / 3), rtol=1e-6)
    assert max(seen) <= 2.0 and min(seen) >= 0.0


def test_kinds_of_start():
    assert decay(np.float32(0.5)).dtype == np.float64
    single = odeint(lambda y, t: -y, np.float32(1.0), [0.0, 1.0])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[1], np.exp(-1), rtol=1e-4)
    assert (
        ft.grad(lambda y: odeint(lambda y, t: -y, y, [0.0, 1.0])[1])(np.float32(1)).dtype
        == np.float32
    )
    assert odeint(lambda y, t: -y, 1, [0, 1]).dtype == np.float64
    assert odeint(lambda y, t: y, {}, TIMES) == {}
    assert odeint(lambda y, t: y, np.zeros((0, 3)), TIMES).shape == (3, 0, 3)
    zero = odeint(lambda y, t: np.stack([y[1], -y[0]]), np.array([0.0, 1.0]), [0.0, 1.0], atol=0.0)
    np.testing.assert_allclose(zero[1], [np.sin(1), np.cos(1)], rtol=1e-7)


def test_results_belong_to_the_caller():
    y0 = np.ones(2)
    for t in ([0.0], [0.0, 1.0]):
        out = odeint(lambda y, t: -y, y0, t)
        out[0] = 5.0
        np.testing.assert_array_equal(y0, [1, 1])


def test_complex_paths():
    turn = lambda w: odeint(lambda y, t: 1j * w * y, 1.0 + 0j, [0.0, 1.0], **TIGHT)[-1]
    np.testing.assert_allclose(turn(1.3), np.exp(1.3j), rtol=1e-9)
    for jacobian in (ft.jacfwd, ft.jacrev):
        np.testing.assert_allclose(jacobian(lambda w: turn(w).real)(1.3), -np.sin(1.3), rtol=1e-8)
    second = ft.hessian(lambda w: turn(w).real)(1.3)
    np.testing.assert_allclose(second, -np.cos(1.3), rtol=1e-7)


# Derivatives.


def test_derivatives_by_start_times_arguments_and_closed_over_values():
    check_derivatives(path, POINT, rtol=1e-6, atol=1e-7, step=2e-3)


def test_the_third_derivative_of_a_closed_form():
    final = lambda rate: decay(rate, **TIGHT)[-1]
    expected = -8 * np.exp(-1)
    np.testing.assert_allclose(ft.grad(ft.grad(ft.grad(final)))(0.5), expected, rtol=1e-7)
    np.testing.assert_allclose(ft.jacfwd(ft.jacrev(ft.jacfwd(final)))(0.5), expected, rtol=1e-7)


def test_jacobians_by_both_modes_are_equal():
    forward = ft.jacfwd(path, (0, 2, 3, 4))(*POINT)
    backward = ft.jacrev(path, (0, 2, 3, 4))(*POINT)
    assert_trees_close(forward, backward, 1e-8, 1e-9)


@pytest.mark.parametrize("method", ["bosh3", "rk4", "euler"])
def test_derivatives_by_other_methods(method):
    accuracy = {"bosh3": 1e-5, "rk4": 1e-8, "euler": 2e-2}[method]
    options = {"rtol": 1e-7, "atol": 1e-7} if method == "bosh3" else {"hmax": 0.01}
    final = lambda rate: decay(rate, [0.0, 1.0, 2.0], method=method, **options)[-1]
    for gradient in (ft.grad(final), ft.jacfwd(final), ft.jit(ft.grad(final))):
        np.testing.assert_allclose(gradient(0.5), -2 * np.exp(-1), rtol=accuracy)
    np.testing.assert_allclose(ft.hessian(final)(0.5), 4 * np.exp(-1), rtol=accuracy)
    lanes = ft.vmap(ft.grad(final))(np.array([0.5, 1.0]))
    np.testing.assert_allclose(lanes, -2 * np.exp([-1.0, -2.0]), rtol=accuracy)


def test_a_network_as_the_equation():
    """Parameters in a tree, some of which are data that is not differentiated."""
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(3, 3)) / 2, "b": rng.normal(size=3)}
    data, kinds = rng.normal(size=(4, 3)), np.array([0, 1, 1, 0])

    def final(params):
        f = lambda y, t, p, kinds: np.tanh(y @ p["w"] + p["b"]) * (1 + kinds[:, None]) - y
        return odeint(f, data, np.array([0.0, 0.5]), params, kinds, **TIGHT)[-1]

    check_derivatives(final, (params,), step=1e-3)


def test_python_branches_in_the_equation():
    """They are taken as they come; what is differentiated has to be among the arguments."""
    f = lambda y, t, a: -a * y if t < 1 else -2 * a * y
    final = lambda a: odeint(f, 1.0, [0.0, 1.0, 2.0], a)[-1]
    np.testing.assert_allclose(ft.grad(final)(0.3), -3 * np.exp(-0.9), rtol=1e-5)
    with pytest.raises(errors.ClosureError, match=r"odeint\(f, y0, t, \*args\)"):
        ft.grad(lambda a: odeint(lambda y, t: f(y, t, a), 1.0, [0.0, 2.0])[-1])(0.3)
    with pytest.raises(errors.StagingError):
        ft.jit(final)(0.3)


# Lanes and graphs.


@pytest.mark.parametrize(
    "in_axes", [(0, None, None, None, None), (None, None, 0, None, 0), (0, 0, 0, 0, 0)]
)
def test_vmap_is_a_loop(in_axes):
    shift = np.array([0.0, 0.1, 0.3])
    args = tuple(
        x if axis is None else np.asarray(x) + shift.reshape(3, *[1] * np.ndim(x))
        for x, axis in zip(POINT, in_axes, strict=True)
    )
    assert_trees_close(ft.vmap(path, in_axes)(*args), loop_vmap(path, in_axes)(*args), 1e-9)
    gradient = ft.grad(lambda *args: np.sum(path(*args) ** 2), (0, 2, 3, 4))
    looped = loop_vmap(gradient, in_axes, (0, 0, 0, 0))(*args)
    assert_trees_close(ft.vmap(gradient, in_axes)(*args), looped, 1e-8)


def test_what_lanes_share_gets_a_cotangent_from_each():
    starts = np.array([0.5, 1.0, 3.0])
    final = lambda rate, y: odeint(lambda y, t: -rate * y, y, np.array([0.0, 2.0]), **TIGHT)[-1]
    total = lambda rate: np.sum(ft.vmap(lambda y: final(rate, y))(starts) ** 2)
    exact = -4 * np.sum(starts**2) * np.exp(-4 * 0.5)
    for gradient in (
        ft.grad(total),
        ft.jacfwd(total),
        ft.jit(ft.grad(total)),
        ft.grad(ft.jit(total)),
    ):
        np.testing.assert_allclose(gradient(0.5), exact, rtol=1e-8)


def test_lanes_make_their_own_steps():
    """A slow lane next to a fast one: each has the same result as alone."""
    rates = np.array([0.01, 1.0, 100.0])
    t = np.array([0.0, 1.0])
    mapped = ft.vmap(lambda r: decay(r, t))(rates)
    np.testing.assert_allclose(
        mapped, np.stack([decay(r, t) for r in rates]), rtol=1e-12, atol=1e-14
    )
    gradient = ft.grad(lambda r: decay(r, t)[-1])
    for found in (ft.vmap(gradient)(rates[:2]), ft.jit(ft.vmap(gradient))(rates[:2])):
        np.testing.assert_allclose(found, [gradient(r) for r in rates[:2]], rtol=1e-9)


def test_graphs_compute_the_same():
    function = lambda *args: path(*args, rtol=1e-7, atol=1e-7)
    check_staging(function, POINT)
    loss = lambda *args: np.sum(np.sin(function(*args)))
    expected = ft.grad(loss, (0, 2, 3, 4))(*POINT)
    for gradient in (ft.jit(ft.grad(loss, (0, 2, 3, 4))), ft.grad(ft.jit(loss), (0, 2, 3, 4))):
        assert_trees_close(gradient(*POINT), expected, 1e-9)
    curvature = ft.hessian(loss, 3)
    np.testing.assert_allclose(ft.jit(curvature)(*POINT), curvature(*POINT), rtol=1e-7)


# Reports and errors.


def warned(function, *args):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        out = function(*args)
    return out, [str(w.message) for w in record if w.category is errors.ConvergenceWarning]


def test_too_many_steps_are_reported():
    wave = lambda w: odeint(lambda y, t: np.sin(w * t), 1.0, [0.0, 0.01, 1.0, 2.0], mxstep=20)
    for function in (wave, ft.jit(wave)):
        out, (message,) = warned(function, 50.0)
        np.testing.assert_array_equal(np.isnan(out), [False, False, True, True])
        assert message.startswith("odeint (dopri5) stopped at t = 0.")
        assert "on the way to 2, 20 steps after" in message and "(mxstep is 20)" in message
        assert "at test_odeint.py, line" in message and "The rest of the path is nan" in message
    out, messages = warned(ft.vmap(wave), np.array([1.0, 50.0]))
    assert np.all(np.isfinite(out[0])) and np.any(np.isnan(out[1])) and len(messages) == 1
    out, (message,) = warned(lambda: decay(1.0, [0.0, 1.0], method="rk4", hmax=0.1, mxstep=5))
    assert "odeint (rk4) stopped at t = 0" in message and np.isnan(out[1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_paths_that_end_are_reported():
    def blow_up(y0):  # y = 1 / (1/y0 - t)
        return odeint(lambda y, t: y * y, y0, [0.0, 0.5, 2.0])

    for function in (blow_up, ft.jit(blow_up)):
        out, (message,) = warned(function, 1.0)
        np.testing.assert_allclose(out, [1, 2, np.nan], rtol=1e-6)
        assert "stopped at t = 1 on the way to 2" in message
    for start in (np.nan, np.inf):
        out, messages = warned(blow_up, start)
        assert len(messages) == 1 and np.isnan(out[1])
    out, messages = warned(
        lambda: odeint(lambda y, t: y * y, 1.0, [0.0, 2.0], method="euler", hmax=1e-2)
    )
    assert np.isnan(out[1]) and len(messages) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", [{"method": "dopri5"}, {"method": "rk4", "hmax": 0.01}])
def test_what_a_path_reached_before_it_ended_has_derivatives(method):
    times = np.array([0.0, 0.25, 0.5, 2.0, 3.0])

    def row(k):  # y = 1 / (1 - a t): dy/da = t y², d²y/da² = 2 t² y³, dy/dt = a y²
        return lambda a, t=times: odeint(lambda y, t: a * y**2, 1.0, t, **method)[k]

    for transform in (lambda f: f, ft.jit):
        for first in (ft.grad, ft.jacfwd):
            np.testing.assert_allclose(transform(first(row(2)))(1.0), 2.0, rtol=1e-6)
        np.testing.assert_allclose(transform(ft.grad(ft.grad(row(2))))(1.0), 4.0, rtol=1e-6)
    short = lambda a: odeint(lambda y, t: a * y**2, 1.0, times[:3], **method)[2]  # does not end
    np.testing.assert_allclose(ft.grad(row(2))(1.0), ft.grad(short)(1.0), rtol=1e-6)
    lanes = np.array([1.0, 0.1])  # one of them ends
    expected = 0.5 / (1 - 0.5 * lanes) ** 2
    np.testing.assert_allclose(ft.vmap(ft.grad(row(2)))(lanes), expected, rtol=1e-6)
    by_times = ft.grad(row(2), 1)(1.0, times)
    np.testing.assert_allclose(by_times, [-4, 0, 4, 0, 0], atol=1e-6)
    # Times that it did not reach have none.
    assert np.isnan(ft.grad(row(3))(1.0)) and np.isnan(ft.grad(row(3), 1)(1.0, times)[3])


def test_arguments_of_another_kind_are_refused():
    slope = lambda y, t: -y
    refused = {
        "must increase, or decrease": lambda: odeint(slope, 1.0, [0.0, 1.0, 0.5]),
        r"not one of shape \(\)": lambda: odeint(slope, 1.0, 2.0),
        r"not one of shape \(0,\)": lambda: odeint(slope, 1.0, np.zeros(0)),
        "method must be one of 'dopri5', 'bosh3', 'rk4', 'euler'": lambda: decay(
            1.0, method="lsoda"
        ),
        "mxstep must be a positive int": lambda: decay(1.0, mxstep=0),
        "hmax must be positive": lambda: decay(1.0, hmax=0.0),
        "rtol must be a plain non-negative number": lambda: ft.grad(
            lambda r: decay(1.0, rtol=r)[-1]
        )(1e-3),
    }
    for match, call in refused.items():
        with pytest.raises(errors.OptionError, match=match):
            call()
    wrong = {
        "odeint needs a function": lambda: odeint(1.0, 1.0, TIMES),
        r"returns float64\[2\], but y is float64\[\]": lambda: odeint(
            lambda y, t: np.ones(2), 1.0, TIMES
        ),
        "Return dy/dt": lambda: odeint(lambda y, t: (y, y), 1.0, TIMES),
        "complex values for a real y": lambda: odeint(lambda y, t: 1j * y, 1.0, TIMES),
        "returns complex values": lambda: odeint(lambda y, t: (1j, 1.0), (1.0, 1j), TIMES),
        "the times must be real, not complex128": lambda: odeint(slope, 1.0, TIMES + 0j),
        "an argument of the equation is a value of type str": lambda: odeint(
            slope, 1.0, TIMES, "x"
        ),
    }
    for match, call in wrong.items():
        with pytest.raises(errors.InputTypeError, match=match):
            call()


def test_times_that_turn_back_in_a_graph_are_reported():
    turning = ft.jit(lambda t: odeint(lambda y, t: -y, 1.0, t))
    for t in ([0.0, 1.0, 0.5], [0.0, 0.3, 0.2, 1.0], [0.0, 1.0, 0.5, 1.0]):
        out, messages = warned(turning, np.array(t))
        assert np.isnan(out[-1]) and len(messages) == 1
    assert ", 0 steps after" in warned(turning, np.array([0.0, 1.0, 0.5]))[1][0]


# Other libraries.


def test_scipy_gives_the_same_path():
    integrate = pytest.importorskip("scipy.integrate")

    def lorenz(t, y):
        return np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    t = np.linspace(0.0, 2.0, 9)
    theirs = integrate.solve_ivp(lorenz, (0, 2), np.ones(3), t_eval=t, rtol=1e-12, atol=1e-12).y.T
    ours = odeint(lambda y, t: lorenz(t, y), np.ones(3), t, **TIGHT)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_gradient_is_that_of_scipys_solver():
    integrate = pytest.importorskip("functrans.scipy.integrate")

    def loss(solve):
        f = lambda y, t, a: np.stack([a[0] * y[0] - y[0] * y[1], -a[1] * y[1] + y[0] * y[1]])
        return lambda a, t: np.sum(np.log(solve(f, np.array([1.0, 2.0]), t, a, **TIGHT)))

    point = (np.array([1.1, 0.4]), TIMES)
    ours, theirs = (ft.grad(loss(s), (0, 1))(*point) for s in (odeint, integrate.odeint))
    assert_trees_close(ours, theirs, 1e-8)


@pytest.mark.peers
def test_jax_gives_the_same_gradient():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = pytest.importorskip("jax.experimental.ode").odeint

    def loss(np, solve, y0, t, k):
        f = lambda y, t, k: np.stack([y[1], -k * np.sin(y[0]) + 0.3 * t])
        return np.sum(np.cos(solve(f, y0, t, k, rtol=1e-11, atol=1e-11)))

    point = (np.array([0.4, -0.3]), TIMES, 1.7)
    ours = ft.grad(lambda *args: loss(np, odeint, *args), (0, 1, 2))(*point)
    expected = jax.grad(lambda *args: loss(jax.numpy, theirs, *args), (0, 1, 2))(
        *map(jax.numpy.asarray, point)
    )
    assert_trees_close(ours, tuple(np.asarray(each) for each in expected), 1e-7)
