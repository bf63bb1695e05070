"""check_derivatives: right derivatives pass, wrong ones are named with their entry and both numbers."""

import dataclasses

import numpy as np
import pytest

import functrans
from functrans import (
    check_derivatives,
    cond,
    custom_jvp,
    custom_vjp,
    define_primitive,
    scan,
    stop_gradient,
)
from functrans.errors import (
    DerivativeError,
    InputTypeError,
    MissingRuleError,
    OptionError,
    OutputTypeError,
)
from functrans.testing.differences import Differences

RNG = np.random.default_rng(3)
X = RNG.normal(size=3)
Z = RNG.normal(size=3) + 1j * RNG.normal(size=3)
A = RNG.normal(size=(3, 3))


@dataclasses.dataclass
class Point:
    x: object
    y: object


RIGHT = {
    "several arguments": (lambda x, y: np.sin(x) * y, (X, 3.0)),
    "containers": (
        lambda p, q: {"out": [np.tanh(p["w"] @ p["b"]), q.x * q.y], "count": 3, "name": "n"},
        ({"w": A, "b": X}, Point(X, 2)),
    ),
    "integers are constants": (lambda x, n: x**n, (X, 3)),
    "absolute values": (lambda x: np.abs(x) * np.linalg.norm(x), (X,)),
    "a Python branch": (lambda x: x**2 if x[0] > 0 else np.sin(x), (X,)),
    "branches": (
        lambda x: scan(lambda s, y: (cond(y > 0, np.sin, np.cos, s * y), None), 0.5, x)[0],
        (X,),
    ),
    "a scan": (lambda x: scan(lambda s, y: (np.sin(s * y), s * s), 0.5, x), (X,)),
    "linear algebra": (np.linalg.inv, (A,)),
    "complex to real": (lambda z: np.abs(z) ** 2, (Z,)),
    "complex, not holomorphic": (lambda z: np.exp(z) * np.conj(z), (Z,)),
    "holomorphic": (lambda z: z**2 * np.sin(z), (Z,)),
    "real to complex": (lambda x: np.exp(1j * x), (X,)),
    "real and complex": (lambda x, z: (x * z, np.real(z)), (X, Z)),
    "large and small numbers": (np.log, (np.array([1e-3, 1.0, 1e4]),)),
    "many entries": (lambda x: np.sum(np.cumsum(x) ** 2), (RNG.normal(size=200),)),
    "many outputs": (lambda x: np.outer(x, np.ones(70)), (X,)),
    "a branch cut": (np.emath.sqrt, (np.array([-2.0, -0.5, 1.0]),)),
    "a kink nearby": (lambda x: np.abs(x - 1.0), (np.array([1.001, 0.9999]),)),
    "an oscillation": (lambda x: np.abs(np.sin(20 * x)), (X,)),
    "a constant": (lambda x: np.floor(x) + 0.0 * x, (X,)),
    "empty arrays": (lambda x, y: np.sum(x) * y, (np.zeros(0), X)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name):
    f, args = RIGHT[name]
    assert check_derivatives(f, args) is None


def test_third_order():
    check_derivatives(lambda x: np.exp(np.sin(x)) @ x, (X,), order=3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_single_precision(dtype):
    x = (Z if dtype is np.complex64 else X).astype(dtype)
    check_derivatives(lambda x: np.sin(x) * x, (x,))
    check_derivatives(lambda x: np.sum(np.sqrt(1 + np.real(x * np.conj(x)))), (x,), order=1)
    with pytest.raises(DerivativeError):
        check_derivatives(wrong_factor(1.2), (x,))


def wrong_factor(factor):
    """x^2 whose derivative is wrong by a factor."""
    square = custom_jvp(lambda x: x * x)
    square.defjvp(lambda primals, ts: (primals[0] ** 2, factor * 2 * primals[0] * ts[0]))
    return square


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_factor(mode):
    with pytest.raises(DerivativeError) as caught:
        check_derivatives(wrong_factor(1.5), (np.array([[1.0, 2.0]]),), modes=(mode,))
    name = {"fwd": "forward", "rev": "reverse"}[mode]
    message = str(caught.value)
    assert message.startswith(
        "check_derivatives: the derivative of `<lambda>` (test_check_derivatives"
    )
    assert f"differs from finite differences in {name} mode, order 1" in message
    assert "the output[0, 1] with respect to argument 0[0, 1]:" in message
    assert "functrans gives         6\n" in message
    assert "complex step            4\n" in message
    assert "relative error 0.333 (rtol=1e-06, atol=1e-08)" in message
    assert "2 of the compared entries differ" in message
    assert "kink" not in message


def test_the_error_is_an_assertion():
    with pytest.raises(AssertionError):
        check_derivatives(wrong_factor(1.5), (2.0,))


@pytest.mark.parametrize("factor", [1 + 1e-5, 1 - 1e-5, 0.0, -1.0, np.nan, np.inf])
def test_small_and_large_mistakes(factor):
    with pytest.raises(DerivativeError):
        check_derivatives(wrong_factor(factor), (X,), order=1)


def test_the_tolerance_can_be_chosen():
    check_derivatives(wrong_factor(1 + 1e-5), (X,), order=1, rtol=1e-4)
    with pytest.raises(DerivativeError):
        check_derivatives(wrong_factor(1 + 1e-8), (X,), order=1, rtol=1e-10, atol=1e-12)


def test_a_wrong_custom_vjp():
    @custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, g: (g * saved[1], g * saved[1]))
    with pytest.raises(DerivativeError) as caught:
        check_derivatives(
            lambda p: {"z": product(p["x"], p["y"])}, ({"x": 2 * X, "y": X},), modes=("rev",)
        )
    assert "the output['z']" in str(caught.value)
    assert "with respect to argument 0['y']" in str(caught.value)


def test_a_missing_term():
    @custom_jvp
    def f(x):
        return x * np.sin(x)

    f.defjvp(lambda p, t: (f(p[0]), np.sin(p[0]) * t[0]))  # and x cos x
    for mode in ("fwd", "rev"):
        with pytest.raises(DerivativeError):
            check_derivatives(f, (X,), order=1, modes=(mode,))


def test_a_mistake_in_one_entry_of_many():
    @custom_jvp
    def f(x):
        return np.sum(x**2)

    keep = np.ones(500)
    keep[321] = 0.0
    f.defjvp(lambda p, t: (f(p[0]), np.sum(2 * p[0] * keep * t[0])))
    with pytest.raises(DerivativeError, match=r"the output with respect to argument 0\[321\]"):
        check_derivatives(f, (np.ones(500),), order=1)


def test_a_mistake_in_one_mode_only():
    f = define_primitive(
        "square",
        lambda x: x * x,
        jvp=lambda out, x, t: 2 * x[0] * t[0],
        vjp=lambda out, x, g: 3 * x[0] * g,
    )
    check_derivatives(f, (X,), modes=("fwd",))
    with pytest.raises(DerivativeError, match="in reverse mode, order 1"):
        check_derivatives(f, (X,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_mistake_that_shows_in_second_order_only(mode):
    square = custom_jvp(lambda x: x * x)
    square.defjvp(lambda p, t: (p[0] ** 2, 2 * stop_gradient(p[0]) * t[0]))
    check_derivatives(square, (X,), order=1)
    with pytest.raises(DerivativeError) as caught:
        check_derivatives(square, (X,), modes=(mode,))
    name = {"fwd": "forward", "rev": "reverse"}[mode]
    assert f"in {name} over {name} mode, order 2" in str(caught.value)
    assert "functrans gives         0\n" in str(caught.value)
    assert "derivative one order lower" in str(caught.value)


def wrong_in(derivative):
    """2 x t, whose derivative with respect to x is wrong in one mode."""
    right = lambda p, t: 2 * p[0] * t[1] + 2 * p[1] * t[0]
    wrong = lambda p, t: 2 * p[0] * t[1] + 5 * p[1] * t[0]
    return define_primitive(
        "twice_the_product",
        lambda x, y: 2 * x * y,
        jvp=lambda out, p, t: (wrong if derivative == "fwd" else right)(p, t),
        vjp=lambda out, p, g: ((5 if derivative == "rev" else 2) * p[1] * g, 2 * p[0] * g),
    )


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [("rev", "fwd", "forward over reverse"), ("fwd", "rev", "reverse over forward")],
)
def test_all_combinations_of_modes_are_tried(first, second, text):
    product = lambda x, y: 2 * x * y
    in_jvp, in_vjp = (wrong_in(second), product) if first == "fwd" else (product, wrong_in(second))
    f = define_primitive(
        "square",
        lambda x: x * x,
        jvp=lambda out, x, t: in_jvp(x[0], t[0]),
        vjp=lambda out, x, g: in_vjp(x[0], g),
    )
    check_derivatives(f, (X,), order=1)
    with pytest.raises(DerivativeError, match=f"in {text} mode, order 2"):
        check_derivatives(f, (X,))


def test_a_wrong_derivative_of_a_complex_function():
    f = custom_jvp(lambda z: z * z)
    f.defjvp(lambda p, t: (p[0] ** 2, 2 * np.conj(p[0]) * t[0]))
    for mode in ("fwd", "rev"):
        with pytest.raises(DerivativeError, match="central differences"):
            check_derivatives(f, (Z,), modes=(mode,))


def test_an_imaginary_part():
    f = custom_jvp(lambda z: np.real(z) + 2 * np.imag(z))
    f.defjvp(lambda p, t: (f(p[0]), np.real(t[0]) + 3 * np.imag(t[0])))
    for mode in ("fwd", "rev"):
        with pytest.raises(DerivativeError) as caught:
            check_derivatives(f, (np.array([2.0 + 1.0j]),), order=1, modes=(mode,))
        assert "the output[0] with respect to the imaginary part of argument 0[0]:" in str(
            caught.value
        )
        assert "functrans gives         3\n" in str(caught.value)
    conjugate = custom_jvp(lambda z: np.conj(z))
    conjugate.defjvp(lambda p, t: (np.conj(p[0]), t[0]))
    with pytest.raises(
        DerivativeError, match="imaginary part of the output with respect to the imaginary"
    ):
        check_derivatives(conjugate, (2.0 + 1.0j,), order=1, modes=("rev",))


def test_a_kink_is_explained():
    with pytest.raises(DerivativeError) as caught:
        check_derivatives(lambda x: np.clip(x, 0.0, 9.0), (np.array([1.0, 0.0, -1.0]),))
    message = str(caught.value)
    assert "the output[1] with respect to argument 0[1]:" in message
    assert "central differences     0.5\n" in message
    assert "no derivative at this point: the slope is 0 on the left and 1 on the" in message
    assert "choose a point away from the kink" in message


def test_a_mistake_is_named_before_a_kink():
    def f(x):
        return np.stack([np.clip(x[0], 0.0, 9.0), wrong_factor(1.001)(x[1])])

    with pytest.raises(
        DerivativeError, match=r"the output\[1\] with respect to argument 0\[1\]"
    ) as caught:
        check_derivatives(f, (np.array([0.0, 1.0]),))
    assert "kink" not in str(caught.value)


def test_the_edge_of_a_domain_is_explained():
    with pytest.raises(DerivativeError, match="at the edge of its\n    domain"):
        check_derivatives(np.sqrt, (np.array([1.0, 0.0]),))


def test_a_point_where_the_function_is_not_finite():
    with (
        pytest.raises(DerivativeError, match=r"the output of .* is not finite at this point"),
        np.errstate(all="ignore"),
    ):
        check_derivatives(np.log, (np.array([1.0, -1.0]),))


def test_a_missing_rule_is_said():
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    check_derivatives(f, (X,), modes=("rev",))
    with pytest.raises(MissingRuleError, match="custom_vjp"):
        check_derivatives(f, (X,))


def test_what_it_cannot_check():
    with pytest.raises(InputTypeError, match="needs the arguments as a tuple"):
        check_derivatives(np.sin, X)
    with pytest.raises(InputTypeError, match="no argument is a floating point array"):
        check_derivatives(np.sin, (1,))
    with pytest.raises(OutputTypeError, match="returns no floating point array"):
        check_derivatives(np.argmax, (X,))
    with pytest.raises(OptionError, match="order must be a positive int"):
        check_derivatives(np.sin, (X,), order=0)
    with pytest.raises(OptionError, match='modes must be some of "fwd" and "rev"'):
        check_derivatives(np.sin, (X,), modes=("forward",))


def test_the_method_fits_the_function():
    def method(f, x=X):
        return Differences(lambda x: [f(x)], [x], np.random.default_rng(0)).method

    assert method(np.sin) == "complex step"
    assert method(lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3))) == "complex step"
    assert method(np.abs) == "central differences"
    assert method(lambda x: np.sin(x.astype(float))) == "central differences"
    assert method(lambda x: np.asarray([float(y) for y in x])) == "central differences"
    assert method(lambda z: z * z, Z) == "central differences"
    assert method(lambda x: 1j * x) == "central differences"
    assert method(lambda x: np.imag(np.emath.sqrt(x)), -np.abs(X)) == "central differences"


@pytest.mark.parametrize(
    ("f", "slope"),
    [(np.sin, np.cos), (np.exp, np.exp), (lambda x: np.abs(x) ** 3, lambda x: 3 * x * np.abs(x))],
)
def test_differences_against_the_closed_form(f, slope):
    for x in (np.array([0.7, -2.0, 3.0]), np.array([1e-3, 50.0])):
        numbers = Differences(lambda x: [f(x)], [x], np.random.default_rng(0))
        found, error = numbers.along([numbers.scales[0]])
        expected = slope(x) * numbers.scales[0]
        np.testing.assert_allclose(found[0], expected, rtol=1e-9)
        assert np.all(np.abs(found[0] - expected) <= 100 * error[0] + 1e-12 * np.abs(expected))


def test_it_is_a_public_name():
    assert functrans.check_derivatives is functrans.testing.check_derivatives


def test_a_rule_that_returns_another_value_is_found():
    def sine(x):
        return np.sin(x)

    by_jvp = custom_jvp(sine)
    by_jvp.defjvp(
        lambda primals, tangents: (np.sin(primals[0]) + 0.5, np.cos(primals[0]) * tangents[0])
    )
    by_vjp = custom_vjp(sine)
    by_vjp.defvjp(lambda x: (np.sin(x) + np.array([0.0, 0.5]), x), lambda x, g: (g * np.cos(x),))
    with pytest.raises(
        DerivativeError, match=r"the output of `sine` .* is 0, but 0\.5 under forward mode"
    ):
        check_derivatives(by_jvp, (0.0,))
    with pytest.raises(
        DerivativeError, match=r"the output\[1\] of `sine` .* is 0, but 0\.5 under reverse mode"
    ):
        check_derivatives(by_vjp, (np.zeros(2),), modes=("rev",))
