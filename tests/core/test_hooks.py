"""Plain NumPy, math and SciPy code as people have it, under every transform."""

import array as bytes_of_numbers
import cmath
import functools
import linecache
import math
import random
import sys
import threading
from math import cos, exp
from math import pi as half_turn

import numpy
import numpy as np
import pytest
from numpy import array, zeros
from numpy import asarray as as_an_array

import functrans as ft
from functrans.core import hooks
from functrans.core.dispatch import is_plain
from tests.support.oracles import assert_trees_close

TABLE = np.arange(9.0).reshape(3, 3) / 10
WEIGHTS = np.array([1.0, 2.0, 3.0])
POINT = np.array([0.7, 1.3, 0.4])


def differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


# Each takes a vector of three entries and returns a number.


def list_of_values(x):
    return np.sum(np.array([x[0] * x[1], np.sin(x[2]), 1.0]) ** 2)


def nested_lists(x):
    c, s = cos(x[0]), math.sin(x[0])
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0, 0, 1]])
    return np.sum((turn @ x) ** 3)


def comprehension(x):
    return array([value**2 for value in x]) @ np.array([1.0, 2.0, 3.0])


def conversions(x):
    x = np.asarray(x, dtype=float)
    y = np.atleast_1d(np.ascontiguousarray(np.asanyarray(x)))
    return np.sum(as_an_array(y) * np.array(x)) + np.float64(x[0]) * np.float32(2.0)


def functions_of_math(x):
    a, b, c = x
    return (
        math.sin(a) * exp(b) + math.sqrt(c) + math.log(a, 3) + math.atan2(b, c) + math.pow(a, 3)
        + math.hypot(a, b, c) + math.fsum([a, b * b]) + math.erf(c) + math.lgamma(b) + half_turn * b
        + math.dist([a, b], [c, 0.0]) + math.prod([a, b, 2.0]) + math.degrees(c) / 100
    )  # fmt: skip


def functions_of_cmath(x):
    return (
        abs(cmath.exp(x[0] + 1j * x[1])) + cmath.phase(complex(x[0], x[1])) + cmath.sqrt(x[2]).real
    )


def builtins(x):
    a, b, c = x
    largest, smallest = max(a, b, c), min(x)
    quotient, rest = divmod(b, 0.5)
    return abs(-a) + pow(b, 3) + sum(x) + largest * smallest + sorted([c, a])[0] + rest + quotient


def filled(x):
    out = np.zeros(4)
    for i in range(4):
        out[i] = x[i % 3] ** 2 * (i + 1)
    return np.sum(out**2)


def filled_by_another_name(x):
    out = zeros(3)
    out[1:] = array([x[0], x[1] * x[2]])
    return out @ out


def made_by_a_helper(n):
    return numpy.zeros((n, n))


def assembled(x):
    matrix = made_by_a_helper(3)
    places = [0, 2]
    matrix[np.ix_(places, places)] += np.array([[x[0], x[1]], [x[1], x[2]]])
    matrix[1, 1] = 1.0
    return np.linalg.det(matrix) + np.trace(matrix @ matrix)


def recursion(x):
    variances = np.empty(6)
    variances[0] = 0.5
    for t in range(1, 6):
        variances[t] = x[0] + x[1] * 0.1 * variances[t - 1] + x[2] * 0.2 * variances[t - 1] ** 2
    return np.sum(np.log(variances))


def every_constructor(x):
    total = 0.0
    for made in (np.ones(3), np.full(3, 2.0), np.eye(3)[0], np.identity(3)[1], np.arange(3.0)):
        view = made[::-1]
        view[0] = x[0] * 2
        total = total + made @ np.array([1.0, 2.0, 3.0])
    for made in (
        np.linspace(0, 1, 3),
        np.zeros_like(POINT),
        np.copy(TABLE[0]),
        np.array([1.0, 2, 3]),
    ):
        made[1] += x[1] ** 2
        total = total + made @ made
    return total


def in_place(x):
    out = np.zeros((2, 2))
    out.flat[3] = x[0]
    out += x[1]
    np.add(out, x[2], out=out)
    np.fill_diagonal(out, x[0] * x[1])
    np.put(out, [1], x[2] ** 2)
    other = np.ones(2)
    other.fill(x[2])
    other[np.array([True, False])] = x[0]
    return np.sum(out**2) + other @ other


def lists_as_arguments(x):
    return (
        np.sum([x[0], x[1]]) + np.linalg.norm([x[0], x[2], 1.0]) + np.dot([x[0], 1.0], [2.0, x[1]])
        + np.max([x[0], x[1] ** 2]) + np.concatenate([[x[0]], [1.0]]) @ np.ones(2)
        + np.sum(np.diag([x[0], 1.0])) + np.sum(np.r_[x[0], 1.0, x[1:]] ** 2) + np.sum(np.c_[x, x])
        + np.sum(np.full(3, x[0])) + np.sum(np.sin([x[0], x[1]])) + np.mean((x[0], x[1]))
    )  # fmt: skip


doubled_or_negated = np.vectorize(lambda t: 2 * t * t if t > 0.5 else -t)


def vectorized(x):
    return np.sum(doubled_or_negated(x)) + np.sum(np.vectorize(lambda t: t**3)(x))


def methods_of_plain_arrays(x):
    local = np.ones((3, 3))
    return np.sum(TABLE.dot(x) ** 2) + local.dot(x)[0] ** 2 + (TABLE * 2).dot(x)[1]


def copy_of_a_global(x):
    changed = TABLE.copy()
    changed[0, 1] = x[0] * x[1]
    return np.sum(changed @ changed)


def plain_numbers(x):
    return float(np.sum(x**2)) * x[0].item() + sum(x.tolist()) + sum(map(float, x))


def imports_inside(x):
    from math import tan

    import numpy as other

    out = other.zeros(2)
    out[0] = tan(x[0])
    return other.sum(out * other.array([x[1], 1.0]))


def type_tests(x):
    if not isinstance(x, np.ndarray) or np.isscalar(x) or not isinstance(x[0], float):
        raise TypeError(type(x).__name__)
    return np.sum(np.array([v if isinstance(v, (int, float)) else 0.0 for v in x]) ** 2)


def refused_and_caught(x):
    try:
        first = math.sin(x[0]) + np.sum([x[1], x[2]])
    except Exception:
        first = 0.0
    return first * x[1]


FUNCTIONS = [
    *(list_of_values, nested_lists, comprehension, conversions, functions_of_math),
    *(functions_of_cmath, builtins, filled, filled_by_another_name, assembled, recursion),
    *(every_constructor, in_place, lists_as_arguments, vectorized, methods_of_plain_arrays),
    *(copy_of_a_global, plain_numbers, imports_inside, type_tests, refused_and_caught),
]
BRANCHING = (builtins, vectorized)  # on values, which are not known while staging


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", FUNCTIONS)
class TestCodeAsItIs:
    def test_gradient(self, f):
        value, gradient = ft.value_and_grad(f)(POINT)
        assert_trees_close(value, f(POINT), rtol=1e-14)
        np.testing.assert_allclose(gradient, differences(f, POINT), rtol=1e-5, atol=1e-7)

    def test_forward_mode(self, f):
        direction = np.array([0.3, -1.0, 0.5])
        _, tangent = ft.jvp(f, (POINT,), (direction,))
        np.testing.assert_allclose(tangent, differences(f, POINT) @ direction, rtol=1e-5, atol=1e-7)

    def test_lanes(self, f):
        lanes = np.stack([POINT, POINT + 0.05, POINT * 1.1])
        np.testing.assert_allclose(ft.vmap(f)(lanes), [f(lane) for lane in lanes], rtol=1e-12)
        in_a_loop = [ft.grad(f)(lane) for lane in lanes]
        np.testing.assert_allclose(ft.vmap(ft.grad(f))(lanes), in_a_loop, rtol=1e-9, atol=1e-12)

    def test_second_order(self, f):
        gradient = ft.grad(f)
        expected = np.array(
            [(gradient(POINT + e) - gradient(POINT - e)) / 2e-6 for e in np.eye(3) * 1e-6]
        )
        np.testing.assert_allclose(ft.hessian(f)(POINT), expected, rtol=1e-4, atol=1e-5)

    def test_compiled(self, f):
        if f in BRANCHING:
            with pytest.raises(ft.errors.StagingError):
                ft.jit(ft.grad(f))(POINT)
        else:
            compiled = ft.jit(ft.grad(f))(POINT)
            np.testing.assert_allclose(compiled, ft.grad(f)(POINT), rtol=1e-9, atol=1e-12)

    def test_nothing_is_left_behind(self, f):
        before = (np.array, np.zeros, array, zeros, math.sin, exp, np.sum, np.float64, TABLE)
        ft.grad(f)(POINT)
        after = (np.array, np.zeros, array, zeros, math.sin, exp, np.sum, np.float64, TABLE)
        assert all(a is b for a, b in zip(before, after, strict=True))
        assert "float" not in globals() and not hooks._users
        assert type(TABLE) is np.ndarray


# How functions are given.


class Filter:
    scale = 2.0

    def __init__(self):
        self.matrix = np.arange(9.0).reshape(3, 3)
        self.state = np.eye(3)

    def cost(self, x):
        state = self.state.copy()
        state[0, 1] = x[0]
        return np.sum((state @ self.matrix.dot(x)) ** 2) * math.exp(-self.scale)

    def __call__(self, x):
        return np.sum(np.array([self.cost(x), x[0]]))

    def remember(self, x):
        self.state[0, 0] = x[0]
        return np.sum(self.state)


def test_methods_and_callable_objects():
    model = Filter()
    for f in (model.cost, model, functools.partial(Filter.cost, model), lambda x: model.cost(x)):
        np.testing.assert_allclose(ft.grad(f)(POINT), differences(f, POINT), rtol=1e-5)
    assert type(model.matrix) is np.ndarray and "matrix" not in vars(Filter)


def test_an_object_cannot_keep_a_traced_value_in_its_array():
    model = Filter()
    with pytest.raises(ft.errors.AssignmentError, match="outlive the transform"):
        ft.grad(model.remember)(POINT)
    np.testing.assert_array_equal(model.state, np.eye(3))


def test_closures_decorators_and_defaults():
    base = np.ones(3)

    def decorated(f):
        @functools.wraps(f)
        def call(x):
            return math.exp(-0.1) * f(x)

        return call

    @decorated
    def closure(x, weights=WEIGHTS):
        changed = base.copy()
        changed[1] = x[1] ** 2
        return changed @ np.array([x[0], 1.0, x[2]]) + weights.dot(x)

    np.testing.assert_allclose(ft.grad(closure)(POINT), differences(closure, POINT), rtol=1e-5)
    np.testing.assert_array_equal(base, np.ones(3))


def test_functions_of_packages_given_directly():
    assert ft.grad(math.exp)(0.0) == 1.0
    assert repr(ft.grad(math.exp)) == "grad(exp)"
    np.testing.assert_allclose(ft.vmap(math.sin)(POINT), np.sin(POINT))
    special = pytest.importorskip("scipy.special")
    np.testing.assert_allclose(ft.grad(special.logsumexp)(POINT), special.softmax(POINT))


def test_an_argument_that_is_not_differentiated_is_copied_and_changed():
    def f(x, start):
        state = start.copy()
        state[0] = x[0]
        return state @ state

    start = np.arange(3.0)
    np.testing.assert_allclose(ft.grad(f)(POINT, start), [2 * POINT[0], 0, 0])
    np.testing.assert_allclose(ft.jit(ft.grad(f))(POINT, start), [2 * POINT[0], 0, 0])
    np.testing.assert_array_equal(start, np.arange(3.0))


def test_code_without_a_module():
    names = {}
    exec(
        "from numpy import zeros\ndef f(x):\n    y = zeros(2)\n    y[0] = x\n    return y @ y",
        names,
    )
    assert ft.grad(names["f"])(3.0) == 6.0
    assert names["zeros"] is np.zeros


def test_control_flow_takes_code_as_it_is():
    def step(carry, _):
        new = np.array([carry[1], -carry[0]]) * math.exp(-0.1)
        return carry + 0.1 * new, new[0]

    def f(x):
        last, _ = ft.scan(step, np.array([x, 1.0]), None, length=5)
        return ft.cond(x > 0, lambda y: np.array([y[0], 2.0])[0], lambda y: y[1], last)

    expected = (f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6
    np.testing.assert_allclose(ft.grad(f)(0.5), expected, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(0.5), expected, rtol=1e-6)


# What stays as it was.


def test_arrays_that_receive_no_traced_value_stay_plain():
    kinds = []

    def f(x):
        table = np.zeros(50)
        for i in range(50):
            table[i] = 0.5 * i
        out = np.zeros(2)
        out[0] = x * table[3]
        kinds.append((is_plain(table, np.ndarray), is_plain(out, np.ndarray)))
        return out @ out

    ft.grad(f)(2.0)
    assert kinds[-1] == (True, False)


def test_compiled_code_that_makes_arrays_gets_plain_ones():
    def f(x):
        out = np.empty(3)
        out[0] = x
        draws = np.random.default_rng(0).uniform(size=3) + np.random.RandomState(0).uniform(size=3)
        out[1:] = draws[1:] * x
        return np.sum(out)

    expected = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(ft.grad(f)(2.0), expected, rtol=1e-6)


def test_other_threads_get_plain_results():
    tracing, checked = threading.Event(), threading.Event()
    seen = []

    def other():
        tracing.wait()
        made = np.zeros(3)
        made[0] = math.sin(1.0)
        seen.append((type(made), type(math.sin(1.0)), type(np.array([1.0, 2.0])), type(float(2))))
        checked.set()

    def f(x):
        out = np.zeros(2)
        out[0] = float(math.sin(x))
        if not seen:
            tracing.set()
            checked.wait(10)
        return np.sum(np.array([out[0], x]))

    worker = threading.Thread(target=other)
    worker.start()
    np.testing.assert_allclose(ft.grad(f)(0.5), np.cos(0.5) + 1)
    worker.join()
    assert seen == [(np.ndarray, float, np.ndarray, float)]


def test_two_threads_trace_at_once():
    def f(x):
        out = np.zeros(3)
        for i in range(3):
            out[i] = math.sin(x[i]) * TABLE.dot(x)[i]
        return np.sum(out)

    expected, results = ft.grad(f)(POINT), []
    work = lambda: results.extend(ft.grad(f)(POINT) for _ in range(30))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(results) == 120
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert type(TABLE) is np.ndarray and not hooks._users


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_nothing_behind(error):
    before = (np.zeros, math.sin)

    def f(x):
        out = np.zeros(2)
        out[0] = math.sin(x)
        raise error("stop")

    with pytest.raises(error, match="stop"):
        ft.grad(f)(1.0)
    assert (np.zeros, math.sin) == before and not hooks._users


def test_an_interruption_at_any_line_leaves_nothing_behind():
    before = (np.zeros, array, math.sin, TABLE)

    def f(x):
        out = np.zeros(2)
        out[0] = math.sin(x)
        out[1] = array([x, TABLE.dot(np.ones(3))[0]])[0]
        return np.sum(out)

    expected = ft.grad(f)(0.5)
    for stop in range(0, 400, 7):
        count = 0

        def interrupt(frame, event, argument, stop=stop):
            nonlocal count
            if event == "line" and frame.f_globals.get("__name__", "").startswith("functrans.core"):
                # At the end of `with _lock`, Python reports its line again, but looks for signals only after
                # the lock is released.
                line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
                if line.startswith("with _lock") and hooks._lock._is_owned():
                    return interrupt
                count += 1
                if count == stop:
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            ft.grad(f)(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert ft.grad(f)(0.5) == expected
        assert all(a is b for a, b in zip((np.zeros, array, math.sin, TABLE), before, strict=True))
        assert not hooks._users and not hooks._lock._is_owned()


def test_errors_of_math_are_raised():
    with pytest.raises(ValueError, match="math domain error"):
        ft.grad(lambda x: math.sqrt(x))(-1.0)
    with pytest.raises(ValueError, match="math domain error"):
        ft.vmap(lambda x: math.log(x))(np.array([1.0, -1.0]))
    with pytest.raises(OverflowError):
        ft.grad(lambda x: math.exp(x))(1e4)
    assert ft.grad(lambda x: math.sqrt(x) if x > 0 else x)(-1.0) == 1.0


def test_types_of_numbers_remain_types():
    def f(x):
        assert isinstance(np.float64(1.0), np.float64) and np.issubdtype(x.dtype, np.float64)
        assert np.zeros(2, np.float64).dtype == np.float64 == np.dtype(float)
        assert isinstance(1.0, float) and not isinstance(1, float) and float("2") == 2.0
        assert np.ones(2, dtype=float).astype(float).dtype == float
        return np.float64(x[0]) * float(x[1])

    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ft.grad(f)(POINT), [POINT[1], POINT[0], 0.0])


def test_it_can_be_turned_off():
    f = lambda x: np.sum(np.array([x, x]))
    with ft.use_hooks(False), pytest.raises(ft.errors.ArrayConversionError):
        ft.grad(f)(1.0)
    assert ft.grad(f)(1.0) == 2.0
    ft.use_hooks(False)
    try:
        with pytest.raises(ft.errors.ArrayConversionError):
            ft.grad(math.sin)(1.0)
    finally:
        ft.use_hooks(True)
    assert ft.grad(math.sin)(0.0) == 1.0


def test_what_cannot_work_names_the_line():
    with pytest.raises(ft.errors.FunctransError, match=r"test_hooks\.py, line"):
        ft.grad(lambda x: bytes_of_numbers.array("d", [x])[0])(1.0)


def test_plans_do_not_keep_functions_alive():
    import gc
    import weakref

    def made():
        names = {"np": np}
        exec("def f(x):\n    y = np.zeros(2)\n    y[0] = x\n    return y @ y", names)
        ft.grad(names["f"])(3.0)
        return weakref.ref(names["f"].__code__)

    references = [made() for _ in range(3 * hooks._MOST_PASSING)]
    gc.collect()
    assert sum(each() is not None for each in references) <= hooks._MOST_PASSING


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, random.Random])
def test_a_run_that_is_repeated_draws_the_same_numbers(make):
    """The first run of a function may show that it needs more hooks; its draws must not count."""

    def drawn(generator):
        def noisy(x):
            noise = generator.gauss(0, 1) if make is random.Random else generator.normal()
            size = {"float": float}["float"](x)  # seen only when it runs
            return size * noise + statistics_of(np.sum, [x, x])

        return noisy

    def statistics_of(function, values):
        return function(values)

    plain, traced = drawn(make(0)), drawn(make(0))
    values = [(plain(1.0), plain(1.0)), tuple(ft.jvp(traced, (1.0,), (1.0,))[0] for _ in range(2))]
    np.testing.assert_allclose(*values)


def test_a_run_that_is_repeated_draws_the_same_numbers_from_the_global_generator():
    noisy = lambda x: np.sum(
        [x, np.random.normal()]
    )  # the first run shows that np.sum needs a hook
    np.random.seed(3)
    expected = noisy(1.0)
    np.random.seed(3)
    assert ft.value_and_grad(noisy)(1.0) == (expected, 1.0)
