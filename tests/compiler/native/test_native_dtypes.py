"""Integers of all sizes in machine code: values and dtypes are exactly those of NumPy."""

import numpy as np
import pytest

from functrans import fori_loop, grad, jit

pytest.importorskip("llvmlite")

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*INTEGERS, "bool", "float32", "float64"]


def native(f, *args):
    """The results of a function in machine code alone."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


def edges(dtype):
    """The numbers at which something may go wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        return np.array(
            [0, -0.0, 0.5, -1, 1, 2.5, -3.5, 100, 127, -128, 1e3, np.inf, np.nan], dtype
        )
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, info.max // 2, info.max // 2 + 1, info.max - 1, info.max]
    small = [-100, -3, -2, -1, 0, 1, 2, 3, 7, 100]
    return np.array([*near, *(n for n in small if info.min <= n)], dtype)


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "where": lambda x, y: np.where(x > y, x, y),
}
# Between zeros of both signs, NumPy chooses as the processor does.
CHOOSING = ("maximum", "minimum")


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_pairs(left, right):
    x, y = (part.ravel() for part in np.meshgrid(edges(left), edges(right)))
    for name, f in BINARY.items():
        with np.errstate(all="ignore"):
            try:
                expected = f(x, y)
            except TypeError:  # no bits of floats
                continue
            compiled = jit(f, backend="native")
            found = compiled(x, y)
        if np.result_type(x, y).kind in "iu":
            assert "def compiled" not in compiled.trace(x, y).code
        if name in CHOOSING and expected.dtype.kind == "f":
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        else:
            same(found, expected)


UNARY = {
    "negative": np.negative,
    "absolute": np.absolute,
    "sign": np.sign,
    "square": np.square,
    "invert": np.invert,
    "logical_not": np.logical_not,
    "clip": lambda x: np.clip(x, 2, 100),
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "mean": np.mean,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "running maximum": np.maximum.accumulate,
    "running minimum": np.minimum.accumulate,
    "add a number": lambda x: x + 7,
    "multiply by a float": lambda x: x * 2.5,
    "compare with a number": lambda x: x > 3,
    "flip": lambda x: x[::-1],
    "concatenate": lambda x: np.concatenate([x, x[:3]]),
    "take": lambda x: x[np.array([3, -1, 0])],
    "einsum": lambda x: np.einsum("i,i->", x, x),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("times", [1, 37])
def test_one_operand(name, dtype, times):
    x = np.roll(np.tile(edges(dtype), times), 5)
    f = UNARY[name]
    with np.errstate(all="ignore"):
        expected = f(x)
        found = native(f, x)
    if name == "mean":
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        same(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_rows_and_columns(dtype):
    x = np.resize(edges(dtype), (5, 13))
    for f in (np.sum, np.max, np.min, np.argmax):
        for axis in (0, 1):
            g = lambda x: f(x, axis=axis)  # noqa: B023
            same(native(g, x), g(x))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "uint64"])
def test_reductions_in_threads(dtype):
    x = np.resize(edges(dtype), 3_000_001)
    for f in (np.sum, np.max, np.min):
        same(native(f, x), f(x))


@pytest.mark.parametrize("start", DTYPES)
@pytest.mark.parametrize("end", DTYPES)
def test_conversions(start, end):
    x = edges(start)
    if x.dtype.kind == "f" and end in INTEGERS:  # of numbers that fit; C leaves others undefined
        x = x[np.isfinite(x)]
        bounds = np.iinfo(end)
        x = x[(x > bounds.min - 1.0) & (x < bounds.max + 1.0)]
    f = lambda x: np.append(x, x[:2]).astype(end)
    same(native(f, x), f(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("end", INTEGERS)
def test_large_floats(dtype, end):
    bounds = np.iinfo(end)
    last = np.nextafter(np.array(bounds.max + 1.0, dtype), np.array(0, dtype))
    x = np.array([bounds.min, last, last / 3, -0.75], dtype)
    f = lambda x: np.append(x, x[:2]).astype(end)
    same(native(f, x), f(x))


def test_constants_are_converted():
    x = np.arange(5, dtype=np.uint8)
    for f in (
        lambda x: np.where(x > 2, x, np.uint8(255)),
        lambda x: x + np.uint8(250),
        lambda x: ~x,
        lambda x: np.maximum(x, np.int8(-3)),
        lambda x: x * np.array(3, np.uint16),
        lambda x: np.full(5, 200, np.uint8) + x,
    ):
        same(native(f, x), f(x))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32"])
def test_images(dtype):
    """Small integers in, floats out, and back."""
    image = np.arange(48, dtype=dtype).reshape(6, 8)

    def f(image, gain):
        bright = image / 255 * gain
        return np.clip(bright * 255, 0, 120).astype(image.dtype), bright.sum()

    for found, expected in zip(native(f, image, 1.5), f(image, 1.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert found.dtype == expected.dtype
    loss = lambda gain, image: f(image, gain)[1]
    np.testing.assert_allclose(native(grad(loss), 1.5, image), grad(loss)(1.5, image), rtol=1e-13)


def test_a_loop_over_small_integers_is_native():
    def f(x):  # a generator of pseudorandom bits
        def step(i, x):
            return x * np.uint32(1664525) + np.uint32(1013904223) ^ (x & np.uint32(255))

        return fori_loop(0, 20, step, x)

    x = np.arange(4, dtype=np.uint32)
    same(native(f, x), f(x))


def test_indices_of_all_dtypes():
    x = np.linspace(0, 1, 9)
    for dtype in INTEGERS:
        places = np.array([0, 8, 3], dtype)
        np.testing.assert_array_equal(native(lambda x, k: x[k], x, places), x[places])


def test_numbers_without_axes():
    for dtype in INTEGERS:
        number = np.dtype(dtype).type(100)
        with np.errstate(all="ignore"):
            found, expected = native(lambda x: x + x, number), number + number
        assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("number", [300, -1, 2**70])
def test_python_integers_that_do_not_fit(number):
    """NumPy raises an error, unless it compares."""

    def assigned(x, place):
        y = x + x
        y[place] = number
        return y

    x = np.arange(4, dtype=np.uint8)
    for f in (
        lambda x: assigned(x, 0),
        lambda x: assigned(x, slice(1, None)),
        lambda x: assigned(x, np.array([0, 2])),
        lambda x: x + number,
        lambda x: np.maximum(x, number),
    ):
        with pytest.raises(OverflowError):
            f(x)
        with pytest.raises(OverflowError):
            jit(f, backend="native")(x)
    same(jit(lambda x: x < number, backend="native")(x), x < number)
