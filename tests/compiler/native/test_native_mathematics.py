"""The vector functions of the native backend are exact to 2 ulp, and right at the ends of their range."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("mpmath")

from llvmlite import ir

from functrans.compiler.native import mathematics
from tests.support.native_runner import DTYPES, Compiled
from tools import native_functions as native

NAMES = sorted(mathematics.names())
BINARY = [name for name in NAMES if mathematics.arity(name) == 2]
each_function = pytest.mark.parametrize("name", NAMES)
each_kind = pytest.mark.parametrize("kind", DTYPES)

extended = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no more exact than double here"
)


@extended
@each_kind
@each_function
def test_at_most_two_ulps_from_the_exact_value(name, kind):
    distance, where = native.worst(name, kind, 40_000, seed=7)
    assert distance <= 2, f"{name}{tuple(where)} is off by {distance} ulps"


def specials(kind):
    limits = np.finfo(DTYPES[kind])
    numbers = [0.0, 0.5, 1, 1.5, 2, 3, 4, 1000, 1001, 2.0**24 - 1, 2.0**60, np.inf]
    numbers += [limits.smallest_subnormal, limits.tiny / 4, limits.tiny, limits.eps]
    numbers += [1 - limits.epsneg, limits.max]
    return np.array([*numbers, *(-number for number in numbers), np.nan], DTYPES[kind])


@extended
@each_kind
@each_function
def test_special_values(name, kind):
    x = specials(kind)
    arrays = [array.ravel() for array in np.meshgrid(*[x] * mathematics.arity(name))]
    result = Compiled(name, kind)(*arrays)
    exact = native.exact(name, *arrays)
    with np.errstate(all="ignore"):
        expected = exact.astype(result.dtype)
    for trait in (np.isnan, np.isposinf, np.isneginf, lambda y: (y == 0) & np.signbit(y)):
        different = np.flatnonzero(trait(result) != trait(expected))
        assert different.size == 0, [
            (*(array[i] for array in arrays), result[i], expected[i]) for i in different
        ]
    assert native.ulps(result, exact).max() <= 2


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(np, name)])
def test_special_values_are_those_of_numpy(name):
    function = getattr(np, name)
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan])
    arrays = [array.ravel() for array in np.meshgrid(*[x] * mathematics.arity(name))]
    with np.errstate(all="ignore"):
        expected = function(*arrays)
    result = Compiled(name, "d")(*arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    np.testing.assert_array_equal(
        np.signbit(result)[~np.isnan(result)], np.signbit(expected)[~np.isnan(expected)]
    )


@each_kind
@pytest.mark.parametrize("name", [*NAMES[::5], "sin", "power"])
def test_every_width_gives_the_same_bits(name, kind):
    arrays = native.sample(name, kind, 2_000, seed=3)
    expected = Compiled(name, kind)(*arrays)
    for width in (1, 2, 4, 8, 16):
        np.testing.assert_array_equal(Compiled(name, kind, width)(*arrays), expected)


@each_kind
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_one_huge_argument_leaves_its_neighbors_as_they_are(name, kind):
    x = np.linspace(-3, 3, 64).astype(DTYPES[kind])
    with_huge = x.copy()
    with_huge[5::7] = 1e30
    huge = with_huge == DTYPES[kind](1e30)
    compiled = Compiled(name, kind)
    distances = native.ulps(compiled(with_huge), native.exact(name, with_huge))
    assert distances.max() <= 2
    assert huge.sum() == 9
    np.testing.assert_array_equal(compiled(with_huge)[~huge], compiled(x)[~huge])


def test_a_module_has_each_function_once():
    module = ir.Module()
    first = mathematics.function(module, "exp", "d", 4)
    assert mathematics.function(module, "exp", "d", 4) is first
    assert mathematics.function(module, "exp", "f", 8) is not first
    assert first.name == "ft_exp_dx4"
    assert first.linkage == "internal"
    assert {"nounwind", "readnone"} <= set(first.attributes)
    assert "alwaysinline" not in first.attributes
    assert str(first.function_type) == "<4 x double> (<4 x double>)"


def test_arity_and_names():
    assert {"exp", "log", "tanh", "sin", "cos", "power", "erf"} <= mathematics.names()
    assert set(BINARY) == {"arctan2", "hypot", "power"}


def test_the_page_lists_every_function_within_two_ulps():
    listed = {}
    for line in native.PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            listed[cells[0].strip("`")] = (float(cells[1]), float(cells[4]))
    assert set(listed) == mathematics.names()
    assert max(max(row) for row in listed.values()) <= 2
