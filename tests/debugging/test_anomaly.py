"""detect_anomaly: the first nan or inf raises, with the line of the forward operation that made it."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import functrans
from functrans import (
    checkpoint,
    cond,
    custom_vjp,
    detect_anomaly,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    make_graph,
    scan,
    value_and_grad,
    vjp,
    vmap,
)
from functrans.core.dispatch import running_interpreters, watcher
from functrans.errors import AnomalyError
from functrans.interpreters.tape import Tape

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def message_of(function, *args):
    with pytest.raises(AnomalyError) as caught, detect_anomaly():
        function(*args)
    assert watcher() is None and not running_interpreters()
    return str(caught.value)


def line_of(function, source):
    """How a message names a line of a function."""
    code = function.__code__
    lines = Path(code.co_filename).read_text(encoding="utf-8").split("\n")
    number = next(k for k in range(code.co_firstlineno, len(lines)) if source in lines[k - 1])
    return f"test_anomaly.py, line {number}, in {code.co_name}: `{lines[number - 1].strip()}`"


def log_loss(x):
    shifted = x - 1.0
    return np.sum(np.log(shifted))


def sqrt_loss(x):
    y = np.sqrt(x)
    scaled = y * 2.0
    return np.sum(scaled)


def test_a_forward_inf_names_the_operation_its_line_its_inputs_and_the_transforms():
    message = message_of(grad(log_loss), np.array([1.0, 3.0]))
    first = log_loss.__code__.co_firstlineno
    assert message.split("\n")[:4] == [
        f"log made an inf, forward, at {line_of(log_loss, 'np.log')}",
        "  the result: float64[2], from 0.693147 to 0.693147, 1 inf, the first at index [0]",
        "  input 0: float64[2], from 0 to 2",
        f"  transforms: grad of `log_loss` (test_anomaly.py, line {first})",
    ]
    assert "np.where" in message


def test_a_backward_inf_names_the_forward_line():
    message = message_of(grad(sqrt_loss), np.array([4.0, 0.0]))
    assert message.split("\n")[:4] == [
        f"sqrt made an inf, backward. Its forward line is {line_of(sqrt_loss, 'np.sqrt')}",
        "  the cotangent of the inputs: float64[2], from 0.5 to 0.5, 1 inf, the first at index [1]",
        "  the cotangent of the result: float64[2], from 2 to 2",
        "  input 0: float64[2], from 0 to 4",
    ]
    assert "np.where on the result alone does not help" in message


def test_the_error_is_what_numpy_users_expect():
    with pytest.raises(FloatingPointError), detect_anomaly():
        grad(sqrt_loss)(np.array([4.0, 0.0]))


@pytest.mark.parametrize(
    "transformed",
    [
        value_and_grad(sqrt_loss),
        jacrev(sqrt_loss),
        lambda x: vjp(sqrt_loss, x)[1](1.0),
        jit(grad(sqrt_loss)),
        grad(jit(sqrt_loss)),
        grad(checkpoint(sqrt_loss)),
        lambda x: grad(lambda x: scan(lambda s, _: (s + sqrt_loss(x), None), 0.0, np.ones(3))[0])(
            x
        ),
        lambda x: grad(lambda x: fori_loop(0, 2, lambda i, s: s + sqrt_loss(x), 0.0))(x),
        lambda x: grad(lambda x: cond(True, sqrt_loss, np.sum, x))(x),
    ],
    ids=["value_and_grad", "jacrev", "vjp", "jit of grad", "grad of jit", "checkpoint", "scan"]
    + ["fori_loop", "cond"],
)
def test_the_forward_line_is_found_through(transformed):
    message = message_of(transformed, np.array([4.0, 0.0]))
    assert message.startswith("sqrt made an inf, backward")
    assert line_of(sqrt_loss, "np.sqrt") in message


def test_jit_of_plain_values():
    message = message_of(jit(log_loss), np.array([1.0, 3.0]))
    assert line_of(log_loss, "np.log") in message
    assert "transforms: jit of `log_loss`" in message


def test_jit_with_static_arguments_gives_the_same_inside():
    power = jit(lambda x, n: np.sum(x**n), static_argnums=1)
    with detect_anomaly():
        assert power(np.array([1.0, 2.0]), 3) == 9.0


def test_forward_mode_looks_at_tangents():
    message = message_of(lambda x: jvp(sqrt_loss, (x,), (np.ones(2),)), np.array([4.0, 0.0]))
    assert f"sqrt made an inf, forward, at {line_of(sqrt_loss, 'np.sqrt')}" in message
    assert "the tangent of the result: float64[2], from 0.25 to 0.25, 1 inf" in message
    assert "the tangent of input 0: float64[2], from 1 to 1" in message
    message = message_of(jacfwd(sqrt_loss), np.array([4.0, 0.0]))
    assert f"sqrt made a nan, forward, at {line_of(sqrt_loss, 'np.sqrt')}" in message  # 0 * inf


@pytest.mark.parametrize(
    "second",
    [hessian, lambda f: lambda x: hvp(f, (x,), (np.ones(2),)), lambda f: jacrev(jacrev(f))],
)
def test_second_derivatives_name_the_line_of_the_function(second):
    def loss(x):
        powers = x**1.5
        return np.sum(powers)

    with detect_anomaly():
        grad(loss)(np.array([4.0, 0.0]))  # fine in first order
    message = message_of(second(loss), np.array([4.0, 0.0]))
    assert message.startswith("power made") and "backward" in message.split("\n")[0]
    assert line_of(loss, "x**1.5") in message


def test_the_lane_is_named():
    message = message_of(vmap(grad(sqrt_loss)), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]))
    assert "float64[2] in 3 lanes" in message
    assert "the first at index [1] in lane 2" in message
    assert re.search(r"transforms: vmap of `sqrt_loss` .* > grad of `sqrt_loss`", message)
    message = message_of(grad(lambda x: np.sum(vmap(np.log)(x))), np.array([1.0, 0.0]))
    assert "the result: float64[] in 2 lanes, from 0 to 0, 1 inf, the first in lane 1" in message
    nested = vmap(vmap(lambda x: np.log(x)))
    message = message_of(nested, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]))
    assert "in 3 x 2 lanes" in message and "in lane 2, 1" in message


def test_lanes_keep_their_numbers_when_they_part():
    def f(x):
        return np.log(x) if x <= 0.5 else x

    message = message_of(vmap(f), np.array([1.0, 2.0, 0.5, 0.0]))
    assert "in 2 lanes" in message and "in lane 3" in message


def test_a_nan_that_came_in():
    def loss(x):
        return np.sum(x * np.array([np.nan, 1.0]))

    message = message_of(grad(loss), np.ones(2))
    assert message.startswith(f"multiply was given a nan, forward, at {line_of(loss, 'np.sum')}")
    assert "input 1: float64[2], from 1 to 1, 1 nan, the first at index [0]" in message


def test_a_cotangent_that_came_in():
    with detect_anomaly():
        _, pullback = vjp(np.sin, np.ones(2))
        with pytest.raises(AnomalyError, match="sin was given a nan, backward"):
            pullback(np.array([1.0, np.nan]))


def test_cotangents_that_add_up_to_an_inf():
    def loss(x):
        y = 1.0 * x
        return 1e308 * y + 1e308 * y

    message = message_of(grad(loss), 0.5)
    assert message.startswith("multiply was given an inf, backward")
    assert line_of(loss, "1.0 * x") in message and "add up" in message


def test_an_inf_that_was_put_there_is_meant():
    def masked(x):
        scores = np.where(np.array([True, True, False]), x, -np.inf)
        weights = np.exp(scores - np.max(scores))
        return np.sum((weights / np.sum(weights))[:2] ** 2)

    x = np.array([0.3, 0.1, 5.0])
    expected = grad(masked)(x)
    with detect_anomaly():
        np.testing.assert_array_equal(grad(masked)(x), expected)


def test_what_rules_do_inside_is_their_own_affair():
    # The rule of power has an infinite intermediate value at 0 that it does not use.
    with detect_anomaly():
        assert vmap(grad(lambda x: x**2.0))(np.array([0.0, 1.0])).tolist() == [0.0, 2.0]
        assert vmap(grad(lambda x: 2.0 * x**0.0))(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]


def test_what_to_look_for_can_be_chosen():
    x = np.array([0.0, 1.0])
    with detect_anomaly(inf=False):
        assert np.isinf(grad(lambda x: np.sum(np.log(x)))(x)).any()
        with pytest.raises(AnomalyError, match="log made a nan"):
            grad(lambda x: np.sum(np.log(x)))(-1.0 - x)
    with detect_anomaly(nan=False):
        assert np.isnan(grad(lambda x: np.sum(np.sqrt(x)))(-1.0 - x)).all()
        with pytest.raises(AnomalyError, match="log made an inf"):
            grad(lambda x: np.sum(np.log(x)))(x)


def test_a_rule_of_the_users():
    @custom_vjp
    def double(x):
        return x * 2.0

    double.defvjp(lambda x: (x * 2.0, x), lambda x, g: (g / x,))

    def loss(x):
        return np.sum(double(x))

    message = message_of(grad(loss), np.array([1.0, 0.0]))
    assert message.startswith("custom made an inf, backward. Its forward line is ")
    assert line_of(loss, "double(x)") in message


def test_a_line_of_a_users_rule_where_it_is_traced():
    double = custom_vjp(lambda x: x * 2.0)

    def backward(x, g):
        return (g / x,)

    double.defvjp(lambda x: (x * 2.0, x), backward)

    def loss(x):
        return double(x)

    message = message_of(vmap(grad(loss)), np.array([1.0, 0.0]))
    assert message.startswith(
        f"divide made an inf, backward, at {line_of(backward, 'g / x')}, for "
    )
    assert line_of(loss, "double(x)") in message
    assert "in lane 1" in message


def test_a_line_inside_a_custom_function_is_found():
    def risky(x):
        shifted = x - 1.0
        return np.log(shifted)

    function = custom_vjp(risky)
    function.defvjp(lambda x: (risky(x), x), lambda x, g: (g / x,))
    message = message_of(grad(lambda x: np.sum(function(x))), np.array([1.0, 2.0]))
    assert message.startswith("log made an inf, forward")
    assert line_of(risky, "np.log") in message


def test_operations_with_several_results():
    def loss(matrix):
        values, vectors = np.linalg.eigh(matrix)
        return np.sum(np.log(values)) + np.sum(vectors[0] ** 2)

    message = message_of(grad(loss), np.diag([1.0, 0.0]))
    assert message.startswith("log made an inf, forward")
    with detect_anomaly():
        found = grad(loss)(np.diag([1.0, 2.0]))
    np.testing.assert_array_equal(found, grad(loss)(np.diag([1.0, 2.0])))


def test_complex_numbers():
    def loss(z):
        return np.abs(np.sum(np.log(z)))

    message = message_of(grad(loss), np.array([1j, 0.0]))
    assert "input 0: complex128[2], absolute values from 0 to 1" in message


def test_assignment_and_views():
    def loss(x):
        y = np.zeros_like(x)
        y[0] = x[1]
        y[1:] += np.log(x[:1])
        return np.sum(y)

    assert line_of(loss, "np.log") in message_of(grad(loss), np.array([0.0, 2.0]))
    x = np.array([3.0, 2.0])
    with detect_anomaly():
        np.testing.assert_array_equal(grad(loss)(x), np.array([1 / 3, 1.0]))


PROGRAMS = {
    "mlp": lambda x: np.sum(np.tanh(x @ np.ones((3, 2)) + 0.1) ** 2),
    "softmax": lambda x: np.sum(np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x)))) + x[0],
    "branch": lambda x: np.sum(x) if x[0] > 0 else np.prod(x),
    "scan": lambda x: scan(lambda s, y: (np.sin(s * y), s), 1.0, x)[0],
    "cumprod": lambda x: np.cumprod(x)[-1] + np.sort(x)[0],
    "solve": lambda x: np.sum(np.linalg.solve(np.eye(3) + np.outer(x, x), x)),
    "checkpoint": lambda x: checkpoint(lambda x: np.sum(np.sin(x) ** 2))(x),
    "integers": lambda x: np.sum(x[np.argsort(x)[:2]]) * np.floor(x[0] + 3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_else_changes(name):
    f = PROGRAMS[name]
    x = np.array([0.3, -0.2, 0.7])
    batch = np.stack([x, x[::-1], -x])
    transforms = [grad(f), hessian(f), jit(f), lambda x: vmap(grad(f))(batch), jacfwd(f)]
    if name == "branch":
        del transforms[2]
    for transformed in transforms:
        expected = transformed(x)
        with detect_anomaly():
            found = transformed(x)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_graphs_can_be_made_inside():
    with detect_anomaly():
        graph = make_graph(grad(jit(log_loss)))(np.ones(2))
    assert graph(np.array([2.0, 3.0])).tolist() == [1.0, 0.5]


def test_it_is_a_decorator_also_of_recursive_functions():
    @detect_anomaly()
    def slope(x, depth=2):
        return grad(sqrt_loss)(x) if depth == 0 else slope(x, depth - 1)

    assert slope(np.array([4.0])).tolist() == [0.5]
    for _ in range(2):
        with pytest.raises(AnomalyError):
            slope(np.array([0.0]))
        assert watcher() is None


def test_contexts_nest():
    x = np.array([0.0])
    with detect_anomaly():
        outer = watcher()
        with detect_anomaly(inf=False):
            grad(sqrt_loss)(x)
        assert watcher() is outer
        with pytest.raises(ZeroDivisionError), detect_anomaly(inf=False):
            raise ZeroDivisionError
        assert watcher() is outer
        with pytest.raises(AnomalyError):
            grad(sqrt_loss)(x)
    assert watcher() is None
    assert np.isinf(grad(sqrt_loss)(x)).all()


def test_inside_a_running_transform():
    def loss(x, shift):
        y = np.log(x)  # an inf, which nobody looks for
        with detect_anomaly():
            z = np.log(x + shift)
        return np.sum(y + z)

    assert np.isinf(grad(loss)(np.array([0.0, 1.0]), 1.0)).any()
    with pytest.raises(AnomalyError, match=r"log made a nan, forward.*np.log\(x \+ shift\)"):
        grad(loss)(np.array([0.0, 1.0]), -1.0)


def test_the_running_transforms_get_their_classes_back():
    kinds = []

    def loss(x):
        with detect_anomaly():
            kinds.append(type(running_interpreters()[0]))
        kinds.append(type(running_interpreters()[0]))
        return np.sin(x)

    grad(loss)(1.0)
    assert kinds[0] is not Tape and issubclass(kinds[0], Tape)
    assert kinds[1] is Tape


def test_a_pullback_outside_of_the_context_is_not_looked_at():
    with detect_anomaly():
        _, pullback = vjp(sqrt_loss, np.array([0.0]))
    assert np.isinf(pullback(1.0)[0]).all()


def test_other_threads_are_not_looked_at():
    found = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(grad(sqrt_loss)(np.array([0.0]))))
        thread.start()
        thread.join()
    assert np.isinf(found[0]).all()


def test_it_is_a_public_name():
    assert functrans.detect_anomaly is detect_anomaly
    assert issubclass(AnomalyError, functrans.errors.FunctransError)


def growing(a):
    def step(x):
        y = np.exp(x)
        return a * y + 1.0

    return step


@pytest.mark.parametrize(
    "transform", [grad, jacfwd, jit, lambda f: jit(grad(f)), lambda f: lambda a: vmap(f)(a[None])]
)
def test_a_fixed_point_that_diverges_names_the_line_of_the_iteration(transform):
    message = message_of(transform(lambda a: functrans.fixed_point(growing(a), 3.0)), np.float64(2))
    assert message.startswith("exp made an inf, forward, at ")
    assert line_of(growing(1.0), "np.exp(x)") in message
    assert "a search" in message


def test_a_fixed_point_that_converges_is_let_through():
    kepler = lambda e: functrans.fixed_point(lambda x: 1.0 + e * np.sin(x), 0.0)
    with detect_anomaly():
        found = grad(kepler)(0.5)
    assert found == grad(kepler)(0.5)


def test_a_path_that_ends_is_named():
    def path(a):
        return functrans.odeint(lambda y, t: a * y**2, 1.0, np.array([0.0, 2.0]))[-1]

    message = message_of(grad(path), 1.0)
    assert message.startswith("odeint of <lambda> made a nan, forward, at ")
    assert line_of(path, "odeint") in message
