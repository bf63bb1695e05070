"""Sorting of a few entries in machine code: stable, with nan last."""

import numpy as np
import pytest

from functrans import grad, jit, scan
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

FEW = 32
DTYPES = ["float64", "float32", "int64", "int8", "uint8", "uint64", "bool"]


def native(f, *args):
    """The results of a function in machine code alone."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


def entries(shape, dtype):
    """Numbers among which some are equal."""
    draw = np.random.default_rng(sum(shape))
    x = draw.integers(-4, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        specials = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5], dtype)
        mask = draw.random(shape) < 0.4
        x[mask] = draw.choice(specials, int(mask.sum()))
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (16,), (FEW,), (3, 7), (9, 4), (2, 5, 6)])
def test_values(shape, dtype):
    x = entries(shape, dtype)
    for axis in range(-1, len(shape)):
        order = native(lambda x: np.argsort(x, axis=axis, kind="stable"), x)  # noqa: B023
        assert order.dtype == np.intp
        np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))
        values = native(lambda x: np.sort(x, axis=axis), x)  # noqa: B023
        assert values.dtype == x.dtype
        np.testing.assert_array_equal(values, np.sort(x, axis=axis))


@pytest.mark.parametrize("shape", [(FEW + 1,), (1000, FEW)])
def test_many_entries_are_numpys(shape):
    x = entries(shape, "float64")
    f = jit(lambda x: np.sort(x), backend="native")
    assert "def compiled" in f.trace(x).code
    np.testing.assert_array_equal(f(x), np.sort(x))


def test_gradients_and_loops():
    x, weights = np.random.default_rng(0).normal(size=(4, 6)), np.arange(6.0)

    def loss(x):
        return (np.sort(x, axis=1) * weights).sum() ** 2

    assert_trees_close(native(grad(loss), x), grad(loss)(x), rtol=1e-13)

    def f(x):
        def step(x, _):
            x = np.sort(np.sin(3 * x), axis=1)
            return x, x[:, 0]

        return scan(step, x, None, length=4)[1].sum()

    assert_trees_close(native(f, x), f(x), rtol=1e-13)
    assert_trees_close(native(grad(f), x), grad(f)(x), rtol=1e-12)


STATISTICS = {
    "median": lambda x: np.median(x, axis=-1),
    "of an even number": lambda x: np.median(x[..., :4], axis=-1),
    "along the first axis": lambda x: np.median(x, axis=0),
    "quantiles": lambda x: np.quantile(x, [0.0, 0.3, 0.75, 1.0], axis=-1),
    "percentile": lambda x: np.percentile(x, 40, method="lower"),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_order_statistics(name, dtype):
    f = STATISTICS[name]
    for x in (
        entries((3, 5), dtype),
        entries((1, 9), dtype),
        np.arange(12, dtype=dtype).reshape(2, 6),
    ):
        with np.errstate(invalid="ignore"):
            expected = f(x)
            found = native(f, x)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_gradients_of_order_statistics():
    x = np.random.default_rng(2).normal(size=(3, 5))
    x[1, 1] = x[1, 2]
    for f in STATISTICS.values():
        loss = grad(lambda x: (f(x) ** 2).sum())  # noqa: B023
        assert_trees_close(native(loss, x), loss(x), rtol=1e-13)
