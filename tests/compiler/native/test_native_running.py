"""Running sums, products and extremes in machine code: exactly those of NumPy."""

import numpy as np
import pytest

from functrans import grad, jit, scan
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

OPERATIONS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "maximum": np.maximum.accumulate,
    "minimum": np.minimum.accumulate,
}
SHAPES = [(1,), (2,), (7,), (300,), (5, 1), (3, 5), (4, 17), (300, 19), (2, 3, 11), (2, 9, 3)]


def native(f, *args):
    """The results of a function in machine code alone."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize("shape", SHAPES)
def test_values(name, dtype, shape):
    x = np.random.default_rng(len(shape)).normal(loc=1, scale=2, size=shape).astype(dtype)
    for axis in range(-1, len(shape)):
        f = lambda x: OPERATIONS[name](x, axis=axis)  # noqa: B023
        found, expected = native(f, x), f(x)
        assert found.dtype == expected.dtype
        if name == "cumsum" and dtype == np.float32 and shape[axis] > 256:
            expected = np.cumsum(x, axis, np.float64).astype(dtype)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values(name, dtype):
    specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, np.finfo(dtype).max], dtype)
    x = np.array(np.meshgrid(specials, specials, specials), dtype).reshape(3, -1)
    f = lambda x: OPERATIONS[name](x, axis=0)
    with np.errstate(all="ignore"):
        expected = f(x)
    found = native(f, x)
    np.testing.assert_array_equal(found, expected)
    if name.startswith("cum"):  # which of two zeros is larger, NumPy leaves to the processor
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_integers_wrap_and_bools_are_counted(name):
    f = OPERATIONS[name]
    large = np.array([2**62, 2**62, 3, 2**62])
    np.testing.assert_array_equal(native(f, large), f(large))
    truth = np.array([True, False, True, True])
    found = native(f, truth)
    assert found.dtype == f(truth).dtype
    np.testing.assert_array_equal(found, f(truth))


VIEWS = {
    "flipped": lambda x: np.cumsum(x[::-1]),
    "transposed": lambda x: np.cumsum(x.T, axis=1),
    "flat": lambda x: np.cumsum(x),
    "computed": lambda x: np.cumsum(np.sin(x) * 2, axis=0) + x,
    "broadcast": lambda x: np.cumprod(np.broadcast_to(x[:1], x.shape), axis=0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    x = np.linspace(-1, 1, 24).reshape(4, 6)
    np.testing.assert_allclose(native(VIEWS[name], x), VIEWS[name](x), rtol=1e-14)


LOSSES = {
    "cumsum": lambda x: (np.cumsum(x, axis=0) ** 2).sum(),
    "cumprod": lambda x: np.cumprod(x, axis=1).sum(),
    "prod": lambda x: np.prod(x, axis=1).sum(),
    "prod of all": lambda x: np.prod(x),
    "maximum": lambda x: np.sin(np.maximum.accumulate(x, axis=1)).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name):
    x = np.random.default_rng(3).normal(size=(3, 5))
    x[1, 2] = 0.0
    f = LOSSES[name]
    assert_trees_close(native(grad(f), x), grad(f)(x), rtol=1e-12, atol=1e-13)
    second = grad(lambda x: (grad(f)(x) ** 2).sum())
    assert_trees_close(native(second, x), second(x), rtol=1e-12, atol=1e-13)


def test_a_loop_with_running_sums_is_native():
    def f(x):
        def step(x, _):
            x = np.tanh(np.cumsum(x) / 4)
            return x, np.prod(x)

        x, ys = scan(step, x, None, length=5)
        return x.sum() + ys.sum()

    x = np.linspace(0.1, 0.9, 6)
    assert_trees_close(native(f, x), f(x), rtol=1e-13)
    assert_trees_close(native(grad(f), x), grad(f)(x), rtol=1e-12)
