"""A traced value answers questions about its type as the value that it stands for."""

import collections.abc
import functools
import numbers
import sys
import typing
import warnings

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans import (
    checkpoint,
    cond,
    grad,
    jit,
    jvp,
    linearize,
    make_graph,
    scan,
    use_hooks,
    value_and_grad,
    vjp,
    vmap,
)
from functrans.errors import DerivativeWarning, EscapedTracerError, StagingError, TypeTestError

CLASSES = [
    np.ndarray,
    np.generic,
    np.number,
    np.inexact,
    np.floating,
    np.complexfloating,
    np.integer,
    np.float64,
    np.float32,
    bool,
    int,
    float,
    complex,
    str,
    list,
    tuple,
    numbers.Number,
    numbers.Complex,
    numbers.Real,
    numbers.Integral,
    collections.abc.Iterable,
    collections.abc.Sized,
    collections.abc.Container,
    collections.abc.Collection,
    collections.abc.Sequence,
    collections.abc.Hashable,
    collections.abc.Callable,
    collections.abc.Mapping,
]

if sys.version_info < (3, 12):  # later ones look for methods in a way that nothing can answer
    CLASSES += [
        typing.SupportsIndex,
        typing.SupportsInt,
        typing.SupportsFloat,
        typing.SupportsComplex,
    ]

VALUES = {
    "float": 1.5,
    "complex": 1.5 + 2j,
    "np.float64": np.float64(1.5),
    "np.float32": np.float32(1.5),
    "np.complex128": np.complex128(1.5j),
    "0-d": np.array(1.5),
    "1-d": np.array([1.5, 2.0]),
    "2-d": np.ones((2, 3), np.float32),
    "no entries": np.ones((0, 2)),
}


def answers(x):
    """All that code may ask of a value."""
    return {
        **{cls.__name__: isinstance(x, cls) for cls in CLASSES},
        "class": x.__class__,
        "isscalar": np.isscalar(x),
        "iterable": np.iterable(x),
        "ndim": np.ndim(x),
        "shape": np.shape(x),
        "iscomplexobj": np.iscomplexobj(x),
        "len": hasattr(x, "__len__"),
        "iter": hasattr(x, "__iter__"),
        "getattr": getattr(x, "__len__", None) is None,
        **{
            name: hasattr(x, name)
            for name in (
                *("shape", "dtype", "ndim", "size", "item", "__array__"),
                *("__index__", "__int__", "__float__", "__complex__", "__bool__"),
                *("is_integer", "as_integer_ratio", "hex", "fromhex", "bit_length", "numerator"),
                *("upper", "keys", "real", "conjugate"),
            )
        },
        "dispatched": kind(x),
        "matched": matched(x),
        "length": outcome(len, x),
        "entries": outcome(lambda x: sum(1 for _ in x), x),
    }


@functools.singledispatch
def kind(x):
    return "something else"


kind.register(np.ndarray)(lambda x: "array")
kind.register(float)(lambda x: "float")
kind.register(complex)(lambda x: "complex")
kind.register(np.generic)(lambda x: "generic")


def matched(x):
    match x:
        case float():
            return "float"
        case np.ndarray():
            return "array"
        case np.generic():
            return "generic"
    return "other"


def outcome(function, x):
    try:
        return function(x)
    except TypeError as error:
        return str(error)


def seen(transform, value):
    """The properties of its argument that a function sees under a transform."""
    found = []

    def f(x):
        found.append(answers(x))
        return x

    transform(f, value)
    return found


TRANSFORMS = {
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "linearize": lambda f, x: linearize(f, x),
    "make_graph": lambda f, x: make_graph(f)(x),
    "jit": lambda f, x: jit(f)(x),
    "checkpoint": lambda f, x: vjp(checkpoint(f), x),
    "cond": lambda f, x: vjp(lambda x: cond(True, f, f, x), x),
    "vjp of vjp": lambda f, x: vjp(lambda y: vjp(f, y)[0], x),
    "jvp of vjp": lambda f, x: jvp(lambda y: vjp(f, y)[0], (x,), (x,)),
    "jit of vjp": lambda f, x: jit(lambda y: vjp(f, y)[0])(x),
}
LANES = {
    "vmap": lambda f, x: vmap(f)(x),
    "vmap of vjp": lambda f, x: vmap(lambda y: vjp(f, y)[0])(x),
    "vjp of vmap": lambda f, x: vjp(vmap(f), x),
    "jit of vmap": lambda f, x: jit(vmap(f))(x),
    "scan": lambda f, x: scan(lambda c, y: (c, f(y)), 0.0, x),
    "jit of scan": lambda f, x: jit(lambda x: scan(lambda c, y: (c, f(y)), 0.0, x))(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_traced_argument_is_what_the_caller_passed(transform, value):
    expected = answers(value)
    # The last is the run itself: cond also writes its branches down, to compare them.
    assert seen(transform, value)[-1] == expected


@pytest.mark.parametrize("transform", LANES.values(), ids=LANES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, complex, int])
@pytest.mark.parametrize("shape", [(2,), (2, 3)], ids=str)
def test_a_lane_is_what_iteration_would_give(transform, shape, dtype):
    if "vjp" in str(transform) and dtype is int:
        pytest.skip("integers have no derivative")
    lanes = np.ones(shape, dtype)
    try:
        found = seen(transform, lanes)
    except TypeError as error:  # vjp of integers
        assert dtype is int, error
        return
    for each in found:
        assert each == answers(lanes[0])


def test_results_are_what_numpy_gives():
    def f(x):
        results = [
            x[0],
            x[:1],
            np.sum(x),
            x * 2,
            x[0] * 2.0,
            np.add.reduce(x),
            x.mean(),
            x.reshape(2, 1),
        ]
        return [answers(each) for each in results]

    x = np.array([1.5, 2.0])
    expected = f(x)
    for transform in TRANSFORMS.values():
        found = []
        transform(lambda x: (found.append(f(x)), x)[1], x)  # noqa: B023
        assert found[0] == expected


def test_arithmetic_of_python_numbers_gives_python_numbers():
    def f(x):
        return [answers(each) for each in (x + 1, 2 * x, -x, x**2, abs(x))]

    found = []
    grad(lambda x: (found.append(f(x)), x)[1])(1.5)
    assert found[0] == f(1.5)


def test_a_branch_on_the_type_is_the_one_that_the_plain_call_takes():
    def f(x):
        return x * x if np.isscalar(x) else np.sum(x)

    assert value_and_grad(f)(3.0) == (9.0, 6.0)
    np.testing.assert_array_equal(grad(f)(np.ones(3)), np.ones(3))
    np.testing.assert_array_equal(vmap(f)(np.array([2.0, 3.0])), [4.0, 9.0])
    assert jit(f)(3.0) == 9.0
    assert jit(f)(np.array(3.0)) == f(np.array(3.0))
    assert grad(jit(f))(3.0) == 6.0


def test_an_array_that_may_be_assigned_traced_values_is_an_array():
    def f(x):
        out = fnp.zeros(2)
        assert isinstance(out, np.ndarray)
        out[0] = x
        assert isinstance(out, np.ndarray)
        assert not isinstance(out, float)
        return np.sum(out * out)

    assert grad(f)(3.0) == 6.0


def test_comparing_types_is_refused_where_it_would_mislead():
    with use_hooks(False):
        _compare_types()


def _compare_types():
    for compared in (np.ndarray, float, np.float64):
        with pytest.raises(TypeTestError, match="isinstance"):
            grad(lambda x: x if type(x) == compared else 2 * x)(1.0)  # noqa: B023, E721
        with pytest.raises(TypeTestError, match=r"test_type_tests\.py"):
            vmap(lambda x: x if type(x) in (compared, list) else 2 * x)(np.ones(2))  # noqa: B023
    assert grad(lambda x: x if type(x) == list else 2 * x)(1.0) == 2.0  # noqa: E721
    assert grad(lambda x: x if type(x) is type(x) else 2 * x)(1.0) == 1.0


def test_scalars_have_no_length_and_are_not_iterated():
    for value in (1.5, np.float64(1.5)):
        with pytest.raises(TypeError, match="no len"):
            grad(lambda x: x * len(x))(value)
        with pytest.raises(TypeError, match="not iterable"):
            grad(lambda x: sum(x))(value)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert grad(lambda x: x if np.iterable(x) else 3 * x)(value) == 3.0


def test_methods_of_numbers_are_conversions():
    def f(x):
        return 3 * x if x.is_integer() else x

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the answer loses no derivative
        for number in (float, np.float64, np.float32):
            assert grad(f)(number(2.0)) == 3.0
            assert grad(f)(number(2.5)) == 1.0
        assert jvp(f, (2.0,), (1.0,)) == (6.0, 3.0)
        np.testing.assert_array_equal(vmap(f)(np.array([2.0, 4.0])), [6.0, 12.0])
    for method in ("as_integer_ratio", "hex"):
        with pytest.warns(DerivativeWarning, match=method):
            assert grad(lambda x: (getattr(x, method)(), x)[1])(2.5) == 1.0  # noqa: B023
    with pytest.warns(DerivativeWarning, match=r"as_integer_ratio\(\)"):
        assert grad(lambda x: x * x.as_integer_ratio()[0])(2.5) == 5.0
    for method in ("is_integer", "as_integer_ratio", "hex"):
        with pytest.raises(StagingError):
            jit(lambda x: (getattr(x, method)(), x)[1])(2.5)  # noqa: B023
    kept = []
    grad(lambda x: kept.append(x) or x)(2.0)
    with pytest.raises(EscapedTracerError):
        kept[0].is_integer()
    with pytest.raises(AttributeError, match="'ndarray' object has no attribute 'is_integer'"):
        grad(lambda x: np.sum(x) * x.is_integer())(np.ones(2))


@pytest.mark.parametrize("number", [int, np.int64, bool])
def test_methods_of_integers(number):
    def f(n, y):
        seen.append((n.bit_length() if hasattr(n, "bit_length") else None, n.denominator))
        return n.numerator * y

    seen = []
    n = number(1)
    expected = f(n, 3.0)
    assert grad(f, 1)(n, 3.0) == 1.0
    assert vmap(f, in_axes=(None, 0))(n, np.ones(2)).tolist() == [1.0, 1.0]
    assert expected == 3.0
    assert seen == seen[:1] * len(seen)
    with pytest.raises((StagingError, AttributeError)):
        jit(lambda n: n.bit_length() * n)(n)
