"""Native sums are no less accurate than NumPy's.

The error is measured against exact sums, in units of eps times the sum of the sizes of all entries: what
one rounding of a sum without cancellation may cost. Below one such unit, it is a matter of luck who is
closer; above it, native sums may be at most twice as far off as those of NumPy.
"""

import math

import numpy as np
import pytest

from functrans import jit

pytest.importorskip("llvmlite")

DTYPES = [np.float64, np.float32]


def random_entries(rng, shape):
    return rng.random(shape)


def normal_entries(rng, shape):
    return rng.standard_normal(shape)


def alternating_entries(rng, shape):
    signs = np.where(np.arange(math.prod(shape)) % 2, 1.0, -1.0).reshape(shape)
    return (1.0 + rng.random(shape)) * signs


def ill_scaled_entries(rng, shape):
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-6, 6, shape)


def cancelling_entries(rng, shape):
    half = rng.standard_normal(math.prod(shape)) * 1e4
    half[1::2] = -half[0 : half.size - half.size % 2 : 2] + rng.random(half[1::2].size)
    return half.reshape(shape)


ENTRIES = [random_entries, normal_entries, alternating_entries, ill_scaled_entries]
ENTRIES += [cancelling_entries]


def errors(found, entries):
    """How far off sums are; `entries` has a row for each."""
    eps = float(np.finfo(entries.dtype).eps)
    off = []
    for value, row in zip(np.ravel(found).tolist(), entries.tolist(), strict=True):
        unit = eps * math.fsum(map(abs, row))
        off.append(abs(value - math.fsum(row)) / unit)
    return max(off)


def assert_no_worse(found, numpys, entries):
    assert found.dtype == numpys.dtype and found.shape == numpys.shape
    assert errors(found, entries) <= max(1.0, 2.0 * errors(numpys, entries))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize("size", [10, 100, 1000, 4096, 9999, 100_003, 1_000_000])
def test_sums_of_all_entries(size, entries, dtype):
    x = entries(np.random.default_rng(size), (size,)).astype(dtype)
    total, mean = jit(lambda x: (np.sum(x), np.mean(x)), backend="native")(x)
    assert_no_worse(total, np.sum(x), x[None])
    # The division rounds once more.
    average = math.fsum(x.tolist()) / size
    unit = float(np.finfo(dtype).eps) * math.fsum(map(abs, x.tolist())) / size
    assert abs(float(mean) - average) <= max(1.5 * unit, 2 * abs(float(np.mean(x)) - average))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_ten_million_entries(dtype):
    x = random_entries(np.random.default_rng(0), (10_000_000,)).astype(dtype)
    assert_no_worse(jit(np.sum, backend="native")(x), np.sum(x), x[None])


SHAPES = [(1000, 37), (37, 1000), (7, 20_000), (20_000, 7)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_along_axes(shape, entries, dtype):
    x = entries(np.random.default_rng(0), shape).astype(dtype)
    for axis, rows in ((0, x.T), (1, x), (None, x.reshape(1, -1))):
        found = jit(lambda x, axis=axis: np.sum(x, axis=axis), backend="native")(x)
        assert_no_worse(found, np.sum(x, axis=axis), rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_sums_along_several_axes(axis, dtype):
    x = random_entries(np.random.default_rng(0), (40, 60, 50)).astype(dtype)
    axes = (axis,) if isinstance(axis, int) else axis
    rows = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(
        -1, math.prod(x.shape[a] for a in axes)
    )
    found = jit(lambda x: np.sum(x, axis=axis), backend="native")(x)
    assert_no_worse(found, np.sum(x, axis=axis), rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(200_000, 2), (30_000, 10), (3, 100_000), (300, 100, 7)], ids=str
)
def test_sums_of_what_is_computed_on_the_way(shape, dtype):
    # The broadcast sum is never in memory, so its entries are not added up in one row as NumPy does.
    rng = np.random.default_rng(0)
    a = rng.random((*shape[:-1], 1)).astype(dtype)
    b = rng.random(shape[-1]).astype(dtype)
    entries = a + b
    total, first = jit(lambda a, b: (np.sum(a + b), np.sum(a + b, axis=0)), backend="native")(a, b)
    assert_no_worse(total, np.sum(entries), entries.reshape(1, -1))
    assert_no_worse(first, np.sum(entries, axis=0), entries.reshape(shape[0], -1).T)
    if len(shape) == 3:
        found = jit(lambda a, b: np.sum(a + b, axis=(1, 2)), backend="native")(a, b)
        assert_no_worse(found, np.sum(entries, axis=(1, 2)), entries.reshape(shape[0], -1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_on_several_threads(dtype, monkeypatch):
    x = alternating_entries(np.random.default_rng(0), (500_001,)).astype(dtype)
    monkeypatch.setattr("functrans.compiler.native.threads._WORTH", 0)
    for count in (1, 2, 3, 8):
        monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda n=count: n)
        assert_no_worse(jit(np.sum, backend="native")(x), np.sum(x), x[None])
