"""Quotients rounded down, remainders and powers of integers: exactly NumPy's, with its warnings."""

import warnings

import numpy as np
import pytest

from functrans import fori_loop, grad, jit, scan
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float64", "float32"]
DIVISIONS = [np.floor_divide, np.remainder, np.fmod]


def native(f, *args):
    """The results of a function in machine code alone."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


def same(found, expected):
    """Whether all bits are the same, but for those of nan."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def pairs(x, y):
    return tuple(np.ascontiguousarray(part).ravel() for part in np.meshgrid(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", DIVISIONS)
def test_floats(dtype, f):
    info = np.finfo(dtype)
    special = [0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 3.0, 7.0, 1e10, 1e30, np.pi, np.inf, np.nan]
    special += [info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg]
    both = np.array([*special, *(-x for x in special)], dtype)
    x, y = pairs(both, both)
    with np.errstate(all="ignore"):
        same(native(f, x, y), f(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", DIVISIONS)
def test_quotients_near_integers(dtype, f):
    """There, a rounded quotient may be the integer that the exact one is just below."""
    draw = np.random.default_rng(0)
    y = draw.normal(size=20_000).astype(dtype)
    x = y * draw.integers(-2_000, 2_000, 20_000).astype(dtype)
    for near in (x, np.nextafter(x, np.zeros_like(x)), x + y / 3):
        same(native(f, near, y), f(near, y))
    wide = (draw.normal(size=20_000) * 10.0 ** draw.uniform(-25, 25, 20_000)).astype(dtype)
    same(native(f, wide, y), f(wide, y))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("f", DIVISIONS[:2])
def test_integers(dtype, f):
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 1, 2, 3, 7, 100]
    if info.min:
        numbers += [-1, -2, -3, -7, -100]
    x, y = pairs(np.array([*numbers, 0], dtype), np.array(numbers, dtype))
    kept = y != 0
    if info.min:
        kept &= (x != info.min) | (y != -1)
    x, y = x[kept], y[kept]
    same(native(f, x, y), f(x, y))
    for divisor in (1, 2, 7, 64, *((-1, -5) if info.min else ())):
        g = lambda x: f(x, divisor)  # noqa: B023
        rest = x[x != info.min]
        same(native(g, rest), g(rest))


@pytest.mark.parametrize("f", DIVISIONS[:2])
def test_division_by_zero_is_numpys(f):
    x, y = np.arange(-5, 6), np.arange(-3, 8)
    g = jit(f, backend="native")
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        found = g(x, y)
    with np.errstate(all="ignore"):
        same(found, f(x, y))
    least = np.array([-(2**63), 4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(g(least, np.array([-1, 3])), f(least, np.array([-1, 3])))
    z = np.array([0, 3], np.uint8)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.testing.assert_array_equal(g(np.array([4, 5], np.uint8), z)[1:], f(np.uint8(5), z[1:]))


def test_mixed_dtypes():
    x, y = np.arange(1, 9, dtype=np.int8), np.arange(2, 10, dtype=np.uint16)
    for f in DIVISIONS[:2]:
        same(native(f, x, y), f(x, y))
        same(native(f, -x, y * 0.75), f(-x, y * 0.75))
        same(native(lambda x: f(x, 2.5), x), f(x, 2.5))  # noqa: B023


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("exponent", [1, 2, 3, 5, 10, 63])
def test_powers(dtype, exponent):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 2, 3, 5, 10], dtype)
    f = lambda x: (x + x[::-1]) ** exponent
    same(native(f, x), f(x))
    wider = lambda x: (x + x[::-1]) ** np.int64(exponent)
    if dtype != "uint64":  # their power is a float
        same(native(wider, x), wider(x))


def test_gradients():
    x, y = np.array([5.5, -3.2, 7.0, 0.3]), np.array([2.0, 1.5, -3.1, 0.7])
    for f in (np.remainder, np.fmod):
        loss = lambda x, y: (f(x, y) ** 2).sum()  # noqa: B023
        for argnum in (0, 1):
            g = grad(loss, argnum)
            assert_trees_close(native(g, x, y), g(x, y), rtol=1e-13)


def test_loops():
    def collatz(n):
        def step(n, _):
            n = np.where(n % 2 == 0, n // 2, 3 * n + 1)
            return n, n

        return scan(step, n, None, length=30)[1]

    n = np.arange(1, 12)
    same(native(collatz, n), collatz(n))

    def f(x):  # with a Python integer that counts
        return fori_loop(0, 9, lambda i, x: x + np.sin(x) * (i % 3) - i // 4, x)

    x = np.linspace(-1, 1, 5)
    assert_trees_close(native(f, x), f(x), rtol=1e-14)
    loss = grad(lambda x: f(x).sum())
    assert_trees_close(native(loss, x), loss(x), rtol=1e-13)


def test_python_numbers_raise():
    def f(x):
        return fori_loop(0, 3, lambda i, x: x + 7 % (i - 1), x)

    with pytest.raises(ZeroDivisionError):
        jit(f, backend="native")(np.ones(2))
    with pytest.raises(ZeroDivisionError):
        jit(lambda x, y: x % y, backend="native")(1.0, 0.0)
