"""More idioms of plain code under every transform: type tests, stored functions, containers, numbers."""

import functools
import math
import pickle
import re
import statistics
import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.polynomial import Chebyshev, Legendre, Polynomial
from scipy.fftpack import dct

import functrans as ft
import functrans.numpy
from functrans.core.dispatch import is_plain

POINT = 0.7
MATRIX = np.array([[1.0, 2.0], [0.5, 1.0]])
TABLES = {"plain": {"matrix": MATRIX.copy()}, "rows": [MATRIX.copy(), np.ones(2)]}
FUNCTIONS = {"sin": math.sin, "array": np.array, "cholesky": scipy.linalg.cholesky}


class Model:
    matrix = MATRIX.copy()

    def __init__(self, solve=np.linalg.solve, root=scipy.linalg.cholesky):
        self.solve, self.root = solve, root
        self.weights = {"w": np.array([1.0, 2.0])}

    @classmethod
    def of_class(cls, x):
        return np.sum(cls.matrix.dot([x, x * x]))

    def of_instance(self, x):
        return np.sum(self.matrix.dot([x, 1.0]) * self.weights["w"])

    def of_stored_functions(self, x):
        lower = self.root(np.array([[1 + x * x, 0.1], [0.1, x]]))
        return np.sum(self.solve(np.array([[x, 0.2], [0.1, 1.0]]), [x, 1.0])) + lower[0, 0]


MODEL = Model()


# Each takes a number and returns a number.


def identity_of_type(x):
    if type(x) is float or type(x) is np.float64:
        return 3 * x
    return x * 100


def equality_of_type(x):
    y = np.array([x, x * x])
    if type(y) == np.ndarray and type(x) in (float, np.float64) and type(y) is type(MATRIX):  # noqa: E721
        return np.sum(y)
    return x * 100


def attributes_of_numbers(x):
    value = x.item() if hasattr(x, "item") else x
    return value * 2 if hasattr(x, "__getitem__") or hasattr(x, "reshape") else value * 2 + 0 * x


def array_times_list(x):
    return np.sum(MATRIX[0] * [x, 1]) + np.sum([x, x * x] - MATRIX[1]) + MATRIX[1] @ [x, 2 * x]


def list_added_in_place(x):
    out = np.sqrt(np.arange(2.0) + 1)
    out += [x, 1]
    return np.sum(out**2)


def name_from_a_string(x):
    return np.sum(getattr(np, "array")([x, x * x]))  # noqa: B009


def another_name(x):
    return np.sum(np.abs([x, -x * x])) + np.double(x) * np.sum(np.absolute([x]))


def function_in_a_dict(x):
    return FUNCTIONS["sin"](x) * np.sum(FUNCTIONS["array"]([x, 1.0]))


def array_in_containers(x):
    return np.sum(TABLES["plain"]["matrix"].dot([x, 1.0])) + TABLES["rows"][1].dot([x, x * x])


def _scaled(x, function=math.exp, weights=MATRIX[0]):
    return function(x) * np.sum(weights * [x, 1.0])


def function_as_default(x):
    return _scaled(x)


def _closing(sin, array):
    return lambda x: np.sum(array([sin(x), x]))


_KERNEL = _closing(math.sin, np.array)


def function_in_a_closure(x):
    return _KERNEL(x)


def iterator(x):
    return np.sum(np.fromiter((x * k for k in range(3)), float)) + np.fromiter([x], float, 1)[0]


def filled_like_a_list(x):
    return np.sum(np.full_like([1.0, 2.0], x) * [1.0, x])


def closure_along_an_axis(x):
    return np.sum(np.apply_along_axis(lambda row: row * x, 0, np.ones((2, 3))) ** 2)


def closure_in_pieces(x):
    points = np.array([-1.0, 0.5, 2.0])
    return np.sum(np.piecewise(points, [points < 0], [lambda p: p * x, lambda p: p * x * x]))


def broadcast_object(x):
    both = np.broadcast(np.array([x, 1.0]), np.ones((2, 1)))
    out = np.empty(both.shape)
    out[...] = x
    return np.sum(out) + sum(a * b for a, b in both) * both.size


def samples(x):
    data = [x, 2 * x, 1.0, x * x]
    return (
        statistics.mean(data) + statistics.fmean(iter(data)) * statistics.median(data)
        + statistics.stdev(data) + statistics.pvariance(data) * statistics.variance(data, 0.5)
        + statistics.geometric_mean(data) * statistics.harmonic_mean(data)
        + statistics.covariance(data, [1.0, x, 3.0, 2.5]) + statistics.correlation(data, range(4))
    )  # fmt: skip


def mantissa(x):
    m, e = math.frexp(3 * x)
    return math.ldexp(m, e) * m


def vectorized_scipy(x):
    exponential = np.vectorize(scipy.linalg.expm, signature="(m,m)->(m,m)")
    return np.sum(exponential(np.array([[x, 0.1], [0.2, x * x]])))


def fftpack(x):
    return np.sum(dct(np.array([x, 1.0, x * x]), norm="ortho") ** 2)


def rounded_beyond_all_digits(x):
    return round(x, 50) * np.round(x * x, 30)


def mask_without_axes(x):
    x = np.asarray(x)
    out = np.empty(x.shape)
    small = x < 0.5
    out[small] = x[small] ** 2
    out[~small] = np.sin(x[~small])
    out[np.asarray(out > 5)] = 5
    return out * 1.0


def number_as_array(x):
    sign = np.array(np.sign(x))
    sign[sign == 0] = 1
    total = np.asarray(np.sum([x, x]))
    total[...] = total * sign
    return total * x


IDIOMS = [
    *(identity_of_type, equality_of_type, attributes_of_numbers, array_times_list),
    *(list_added_in_place, name_from_a_string, another_name, function_in_a_dict),
    *(array_in_containers, function_as_default, function_in_a_closure, iterator),
    *(filled_like_a_list, closure_along_an_axis, closure_in_pieces, broadcast_object),
    *(samples, mantissa, vectorized_scipy, fftpack, rounded_beyond_all_digits, mask_without_axes),
    *(number_as_array, Model.of_class, MODEL.of_instance, MODEL.of_stored_functions),
]
# Their shapes depend on values, which are not known while a function is staged.
NOT_STAGED = (mask_without_axes,)


def slope(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.parametrize("f", IDIOMS, ids=lambda f: f.__name__)
class TestIdioms:
    def test_grad(self, f):
        value, found = ft.value_and_grad(f)(POINT)
        assert value == pytest.approx(f(POINT), rel=1e-12)
        assert found == pytest.approx(slope(f, POINT), rel=1e-6, abs=1e-8)

    def test_jvp(self, f):
        value, found = ft.jvp(f, (POINT,), (2.0,))
        assert value == pytest.approx(f(POINT), rel=1e-12)
        assert found == pytest.approx(2 * slope(f, POINT), rel=1e-6, abs=1e-8)

    def test_hessian(self, f):
        expected = slope(ft.grad(f), POINT)
        assert ft.hessian(f)(POINT) == pytest.approx(expected, rel=1e-5, abs=1e-7)

    def test_vmap(self, f):
        lanes = np.array([0.7, 0.3, 1.1])
        np.testing.assert_allclose(ft.vmap(f)(lanes), [f(lane) for lane in lanes], rtol=1e-12)

    def test_vmap_of_grad(self, f):
        lanes = np.array([0.7, 0.3, 1.1])
        expected = [ft.grad(f)(lane) for lane in lanes]
        np.testing.assert_allclose(ft.vmap(ft.grad(f))(lanes), expected, rtol=1e-9)

    def test_jit(self, f):
        if f in NOT_STAGED:
            with pytest.raises(ft.errors.StagingError):
                ft.jit(f)(POINT)
            return
        assert ft.jit(f)(POINT) == pytest.approx(f(POINT), rel=1e-12)
        assert ft.jit(ft.grad(f))(POINT) == pytest.approx(ft.grad(f)(POINT), rel=1e-9)

    def test_nothing_is_left_behind(self, f):
        def state():
            held = (*FUNCTIONS.values(), *TABLES["plain"].values(), *TABLES["rows"], Model.matrix)
            return [
                MATRIX,
                MODEL.solve,
                MODEL.root,
                *held,
                *_scaled.__defaults__,
                np.double,
                np.abs,
            ]

        before = state()
        ft.grad(f)(POINT)
        ft.vmap(f)(np.array([0.3, 0.7]))
        assert all(a is b for a, b in zip(before, state(), strict=True))
        assert "type" not in globals() and "hasattr" not in globals()


def test_type_is_a_class_as_before_while_a_transform_runs():
    def f(x):
        class Meta(type):
            pass

        class Made(metaclass=Meta):
            pass

        assert isinstance(Meta, type) and issubclass(Meta, type) and type(Made) is Meta
        assert type("T", (), {}).__name__ == "T" and type(None) is type(None)
        assert isinstance(type, type) and type in (type(Meta), int)
        return 2 * x

    assert ft.grad(f)(1.0) == 2.0


def test_float_is_a_class_as_before_while_a_transform_runs():
    class Meters(float):
        def __new__(cls, value):
            return float.__new__(cls, value)

    def f(x):
        y = float(x)  # after which the name is hooked
        assert isinstance(Meters(2.0), float) and float.fromhex("0x1p3") == 8.0

        class Feet(float):
            pass

        assert np.zeros(2, dtype=float).dtype == np.float64 and float("2") == 2.0
        return y * Meters(2.0) * Feet(1.5)

    assert ft.grad(f)(1.0) == 3.0


def test_an_object_of_a_subclass_of_float_is_a_number():
    class Meters(float):
        pass

    def f(x):
        return x * Meters(3.0) + Meters(1.0)

    assert ft.grad(f)(2.0) == 3.0 and ft.jit(f)(2.0) == 7.0
    np.testing.assert_array_equal(ft.vmap(lambda x: Meters(2 * x))(np.array([1.0, 2.0])), [2, 4])
    with pytest.raises(ft.errors.ArrayConversionError):
        ft.grad(lambda x: Meters(x) * 2)(1.0)


def test_an_object_may_convert_itself_to_a_traced_number():
    class Total:
        def __init__(self, value):
            self.value = value

        def __float__(self):
            return self.value

    assert ft.grad(lambda x: float(Total(x * x)) * float(Total(2.0)))(3.0) == 12.0


def test_an_iterator_without_end_is_read_as_far_as_needed():
    from itertools import count

    def f(x):
        return np.sum(np.fromiter((x * k for k in count()), float, 4))

    assert ft.grad(f)(2.0) == 6.0


def test_integers_of_numpy_are_conversions_without_a_derivative():
    assert ft.grad(lambda x: x * np.int_(x))(2.5) == 2.0
    np.testing.assert_array_equal(
        ft.vmap(lambda x: x * np.int64(x))(np.array([1.5, 2.5])), [1.5, 5]
    )


class TestErrorsAreThoseOfThePlainCode:
    def outcomes(self, f, x):
        found = []
        for call in (f, ft.grad(f), lambda x: ft.vmap(f)(np.array([x, x]))):
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                try:
                    call(x)
                    found.append("value")
                except Exception as error:
                    found.append(type(error))
            found.append({each.category for each in heard})
        return found

    @pytest.mark.parametrize(
        "f",
        [
            lambda x: float(np.array([x, x])),
            lambda x: math.sin(np.array([x, x])),
            lambda x: statistics.stdev([x]),
            lambda x: statistics.geometric_mean([x, -x]),
        ],
        ids=["float", "math.sin", "stdev", "geometric_mean"],
    )
    def test_same_type(self, f):
        expected, _, *rest = self.outcomes(f, 0.5)
        assert isinstance(expected, type) and all(each == expected for each in rest[::2])

    def test_complex_numbers_in_real_arrays(self):
        def stored(key, number):
            def f(x):
                out = np.zeros(2)
                out[key] = number(x)
                return np.sum(out)

            return f

        def listed(number):
            return lambda x: np.sum(np.array([number(x), 1.0], dtype=float))

        keys = (0, slice(None), [0], np.array([True, False]))
        for f in (*(stored(key, lambda x: x * 1j) for key in keys), listed(lambda x: x * 1j)):
            for call in (f, ft.grad(f), ft.jit(f)):  # Python's numbers
                with pytest.raises(TypeError, match="not 'complex'"):
                    call(0.5)
        number = lambda x: np.exp(1j * x)
        for f in (*(stored(key, number) for key in keys), listed(number)):
            for call in (f, ft.grad(f), ft.jit(f), lambda x: ft.vmap(f)(np.array([x, x]))):  # noqa: B023
                with pytest.warns(np.exceptions.ComplexWarning):
                    call(0.5)
            with pytest.warns(np.exceptions.ComplexWarning):
                assert ft.grad(f)(0.5) == pytest.approx(slope(f, 0.5), rel=1e-6)


def test_a_power_of_a_negative_python_number_is_complex():
    def f(x):
        return abs((-x) ** 0.5) + ((-x) ** 1.5).imag + ((-2.0) ** x).real

    assert ft.value_and_grad(f)(0.5) == pytest.approx((f(0.5), slope(f, 0.5)), rel=1e-6)
    assert ft.hessian(f)(0.5) == pytest.approx(slope(ft.grad(f), 0.5), rel=1e-6)
    with pytest.raises(ft.errors.GraphError):
        ft.jit(f)(0.5)


def test_arrays_beside_a_stored_function_stay_plain():
    kinds = []

    def f(x):
        kinds.append(is_plain(MODEL.weights["w"], np.ndarray))
        return FUNCTIONS["sin"](x) * MODEL.weights["w"][0]

    ft.grad(f)(0.5)
    assert all(kinds)


@functools.lru_cache
def cached_table(n):
    table = np.zeros(n)
    for i in range(n):
        table[i] = i + 1
    return table


class WithCache:
    @functools.lru_cache  # noqa: B019
    def table(self):
        return np.eye(2)

    def __call__(self, x):
        return np.sum(self.table().dot([x, x * x]))


class TestCaches:
    def test_a_cache_keeps_plain_arrays(self):
        def f(x):
            y = cached_table(3).copy()
            y[0] = x
            return np.sum(y * y) + cached_table(3).dot([x, x * x, 1.0])

        for _ in range(2):
            cached_table.cache_clear()
            assert ft.grad(f)(2.0) == pytest.approx(slope(f, 2.0))
            assert ft.hessian(f)(2.0) == pytest.approx(6.0)
            np.testing.assert_allclose(ft.vmap(f)(np.array([1.0, 2.0])), [f(1.0), f(2.0)])
            assert is_plain(cached_table(3), np.ndarray)
        cached = WithCache()
        assert ft.grad(cached)(2.0) == 5.0
        assert is_plain(cached.table(), np.ndarray)

    def test_a_traced_value_is_not_left_in_a_cache(self):
        def f(x):
            table = cached_table(3)
            table[0] = x
            return np.sum(table)

        with pytest.raises(ft.errors.AssignmentError, match=re.escape("table[0] = x")):
            ft.grad(f)(2.0)
        np.testing.assert_array_equal(cached_table(3), [1.0, 2.0, 3.0])


def test_the_error_for_an_array_from_outside_names_the_assignment():
    class Filter:
        def __init__(self):
            self.a = np.zeros((2, 2))

        def update(self, x):
            self.a[0, 0] = x
            return np.sum(self.a)

    with pytest.raises(ft.errors.AssignmentError, match=re.escape("self.a[0, 0] = x")):
        ft.grad(Filter().update)(1.0)


def test_an_open_array_is_pickled_as_a_plain_one():
    def f(x):
        loaded = pickle.loads(pickle.dumps(functrans.numpy.arange(3.0)))
        assert is_plain(loaded, np.ndarray)
        return x * loaded[1]

    assert ft.grad(f)(2.0) == 1.0


class TestTexts:
    def test_a_number_that_is_written_with_all_digits_and_read_again_keeps_its_derivative(self):
        def f(x):
            return float(f"{x * x:.18f}") + float(f"{2 * x:.20f}")

        assert ft.value_and_grad(f)(0.7) == pytest.approx((f(0.7), 3.4))
        assert ft.jvp(f, (0.7,), (1.0,))[1] == pytest.approx(3.4)
        assert ft.hessian(f)(0.7) == pytest.approx(2.0)
        np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([0.7, 0.8])), [3.4, 3.6])
        np.testing.assert_allclose(ft.vmap(f)(np.array([0.7, 0.8])), [f(0.7), f(0.8)])

    def test_fewer_digits_are_a_rounding(self):
        with pytest.warns(ft.errors.DerivativeWarning, match="of the text"):
            assert ft.grad(lambda x: float(f"{x:.3f}") + x)(0.7) == 1.0

    def test_a_text_that_is_not_read_loses_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ft.grad(lambda x: (f"{x:.3f}", float("2.5") * x)[1])(0.7) == 2.5


POLYNOMIALS = {
    "list": lambda x: np.poly1d([x, 1.0, 2.0])(3.0),
    "array": lambda x: np.poly1d(np.array([x, 1.0, 2.0]))(3.0),
    "zero at the point": lambda x: np.poly1d(np.array([x - POINT, 1.0, 2.0]))(3.0),
    "zeros in front": lambda x: np.poly1d([0, x, 2.0])(3.0) * np.poly1d([0, x, 2.0]).order,
    "product of zero at the point": lambda x: (np.poly1d([x - POINT, 1]) * np.poly1d([x, 2]))(3.0),
    "from roots": lambda x: np.poly1d([x, 2.0], True)(3.0),
    "arithmetic": lambda x: ((np.poly1d([x, 1.0]) + np.poly1d([1.0, 2.0]) * 2 - x) / 2.0)(1.5),
    "power": lambda x: (np.poly1d([x, 1.0]) ** 3)(2.0) + (np.poly1d([x, 1.0]) ** 0)(2.0),
    "derivative": lambda x: np.poly1d([x, 1.0, x * x]).deriv()(2.0) + np.poly1d([x]).integ()(2.0),
    "coefficients": lambda x: np.sum(np.poly1d([x, 1.0, x * x]).coeffs) + np.poly1d([x, 1.0])[1],
    "composition": lambda x: np.poly1d([x, 1.0])(np.poly1d([1.0, x]))(2.0),
    "at a point": lambda x: np.poly1d([1.0, 2.0])(x),
    "Polynomial": lambda x: Polynomial([x, 1.0, 2.0])(3.0) + Polynomial([1.0, 2.0, 3.0])(x),
    "Polynomial, zero": lambda x: (Polynomial([1, 1, x - POINT]) * Polynomial([1.0, x]))(3.0),
    "Polynomial, arithmetic": lambda x: ((Polynomial([x, 1]) + Polynomial([1, x, 2])) * 2 - 1)(1.5),
    "Polynomial, calculus": lambda x: (
        Polynomial([x, 1, x * x]).deriv()(2.0) + Polynomial([x, 1.0]).integ()(2.0)
    ),
    "Polynomial, conversion": lambda x: Polynomial([x, 1.0, 2.0]).convert(kind=Chebyshev)(0.3),
    "Chebyshev": lambda x: Chebyshev([x, 1.0, 2.0])(0.5) * Legendre([1.0, x])(x),
    "functions": lambda x: (
        np.polynomial.polynomial.polyval(2.0, [x, 1.0])
        + np.sum(np.polynomial.polynomial.polymul([x, 1.0], [1.0, x]))
    ),
}


@pytest.mark.parametrize("f", POLYNOMIALS.values(), ids=POLYNOMIALS)
def test_polynomials(f):
    assert ft.value_and_grad(f)(POINT) == pytest.approx((f(POINT), slope(f, POINT)), rel=1e-6)
    assert ft.hessian(f)(POINT) == pytest.approx(slope(ft.grad(f), POINT), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(ft.vmap(f)(np.array([0.7, 0.3])), [f(0.7), f(0.3)], rtol=1e-12)
    assert ft.jit(f)(POINT) == pytest.approx(f(POINT))


def test_divisions_and_roots_of_polynomials():
    def f(x):
        quotient, remainder = np.poly1d([x, 1.0, 3.0]) / np.poly1d([1.0, x])
        return quotient(1.0) * remainder(2.0) + np.sum(np.poly1d([1.0, x, -2.0]).roots ** 3)

    assert ft.grad(f)(POINT) == pytest.approx(slope(f, POINT), rel=1e-6)


@pytest.mark.parametrize("name", ["poly1d", "isclose", "vander", "array", "nosuch"])
def test_a_remedy_names_a_function_that_exists(name):
    from functrans.core.conversions import _has_counterpart

    ours = getattr(functrans.numpy, name, None)
    assert _has_counterpart("numpy", name) == (ours is not None and ours is not getattr(np, name))


def test_objects_that_each_run_makes_anew_are_no_reason_to_run_for_ever():
    class Made:
        def __init__(self):
            self.tables = {"w": np.ones(2)}

    def f(x):
        made, rows = Made(), [np.ones(2), np.ones(2)]
        return np.sum(np.ones(2, int).choose([rows[0], x * made.tables["w"]]))

    with pytest.raises(ft.errors.FunctransError), ft.use_hooks(False):
        ft.grad(f)(1.0)
    assert ft.grad(f)(1.0) == 2.0


def test_hooks_in_closures_keep_their_originals():
    """A hook that stands in a closure is a function with a closure of its own, which holds the original."""
    make = np.frombuffer

    def f(x, place):
        values = [x, b"12345678"]
        return make(values[place]) * x

    for _ in range(3):
        with pytest.raises((TypeError, ValueError, ft.errors.FunctransError)):
            ft.jvp(lambda x: f(x, 0), (2.0,), (1.0,))
        assert ft.grad(lambda x: f(x, 1)[0])(2.0) == np.frombuffer(b"12345678")[0]
    assert make is np.frombuffer
