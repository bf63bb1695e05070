"""How Python and native code meet: arguments of every kind, memory, references, threads, processes."""

import ctypes
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import functrans as ft
from functrans import grad, jit
from functrans.errors import InputTypeError, StagingError
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")


def native(function):
    return jit(function, backend="native")


def mixed(x):
    return np.sin(x) * x + np.sum(x), x.T * 2, np.max(np.reshape(x, -1)[::-1])


# Arrays of every kind.

BASE = np.arange(1.0, 25.0).reshape(4, 6) / 10


def odd_arrays():
    yield "C order", BASE.copy()
    yield "Fortran order", np.asfortranarray(BASE)
    yield "transposed", BASE.T
    yield "steps", BASE[::2, ::3]
    yield "negative steps", BASE[::-1, ::-2]
    yield "broadcast", np.broadcast_to(BASE[0], (3, 6))
    yield "windows that overlap", np.lib.stride_tricks.sliding_window_view(BASE[0], 3)
    yield "entries that overlap", np.lib.stride_tricks.as_strided(BASE, (4, 6), (8, 8))
    yield "misaligned", misaligned(BASE)
    yield "other byte order", BASE.astype(BASE.dtype.newbyteorder())
    yield "read-only", read_only(BASE)
    yield "a field of a record", np.rec.fromarrays([BASE, BASE], names="a, b")["a"]
    yield "dtype with metadata", BASE.astype(np.dtype(np.float64, metadata={"unit": "m"}))
    yield "an array without axes", np.array(1.5)
    for dtype in (np.float32, np.int64, np.int32, np.longlong, np.intc, np.int8, np.uint64):
        yield f"{np.dtype(dtype).char}", (BASE * 10).astype(dtype)
        yield f"{np.dtype(dtype).char} misaligned", misaligned((BASE * 10).astype(dtype))
    for dtype in (np.float16, np.complex64, np.complex128, np.longdouble, np.uint8):
        yield f"{np.dtype(dtype).char}", BASE.astype(dtype)


def misaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


ODD = dict(odd_arrays())


def check(compiled, function, x):
    before = x.copy()
    expected = function(x)
    narrow = np.asarray(expected[0]).dtype in (np.float32, np.float16, np.complex64)
    with np.errstate(all="ignore"):
        for one, other in zip(compiled(x), expected, strict=True):
            assert one.dtype == other.dtype.newbyteorder("=")
            np.testing.assert_allclose(one, other, rtol=3e-3 if narrow else 1e-12)
            assert not np.shares_memory(one, x)
    assert x.tobytes() == before.tobytes()


@pytest.mark.parametrize("kind", ODD)
def test_arrays_of_every_kind(kind):
    compiled = native(mixed)
    check(compiled, mixed, ODD[kind])
    check(compiled, mixed, ODD[kind])


def test_one_function_takes_arrays_of_all_kinds_in_turn():
    compiled = native(mixed)
    with pytest.warns(ft.errors.RetraceWarning):
        for _ in range(2):
            for x in ODD.values():
                check(compiled, mixed, x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_arrays_without_entries(shape):
    def function(x):
        return x * 2, np.sum(x), np.prod(x), np.any(x > 0), np.sum(x, axis=0), np.exp(x).T

    found, expected = native(function)(np.ones(shape)), function(np.ones(shape))
    assert_trees_close(found, expected, rtol=0, atol=0, dtypes=True)
    with pytest.raises(ValueError, match="zero-size array"):
        native(np.max)(np.ones(shape))
    joined = native(lambda x, y: np.concatenate([x, y]) * 2.0)(np.ones(0), np.ones(3))
    np.testing.assert_array_equal(joined, np.full(3, 2.0))


def test_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", BASE)
    for mode in ("r", "c", "r+"):
        check(native(mixed), mixed, np.load(tmp_path / "x.npy", mmap_mode=mode))


def test_arguments_that_overlap():
    x = np.arange(10.0)
    function = native(lambda a, b: (a * 2 + b, np.sum(a * b)))
    for a, b in ((x[:8], x[2:]), (x[:8], x[:8]), (x[7::-1], x[2:])):
        assert_trees_close(function(a, b), (a * 2 + b, np.sum(a * b)))


@pytest.mark.parametrize("scalar", [np.dtype(c).type(1) for c in "?bBhHiIlLqQefdgFDG"], ids=repr)
def test_scalars_of_every_dtype(scalar):
    def function(x):
        return np.exp(x) + x, x * 2

    for x in (scalar, np.array(scalar)):
        for one, other in zip(native(function)(x), function(scalar), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-3 if one.dtype.itemsize < 4 else 1e-6)


def test_python_numbers():
    function = native(lambda x: (x * 2.0, x + x, x))
    for number in (True, 3, 2.5, 1j, -0.0, float("inf"), 2**62):
        found = function(number)
        assert found == (number * 2.0, number + number, number)
        assert [type(x) for x in found[::2]] == [type(number * 2.0), type(number)]
    assert type(native(lambda x: x > 1.0)(2.5)) is bool


def test_python_integers_have_no_end():
    x = np.ones(3)
    assert native(lambda x, n: (x * 2.0, n))(x, 10**30)[1] == 10**30
    assert native(lambda x: (x * 2.0, 10**30))(x)[1] == 10**30
    for dtype in (np.int64, np.int32):
        numbers = np.array([-1, 0, 1], dtype)
        for bound in (2**70, -(2**70), 2**63, 2**40, -(2**31) - 1):
            np.testing.assert_array_equal(
                native(lambda n, b=bound: (n < b, n == b))(numbers), (numbers < bound, [False] * 3)
            )


def test_subclasses_that_compute_in_their_own_way_are_refused():
    function = native(lambda x: x * x)
    plain = np.array([[1.0, 2.0], [3.0, 4.0]])
    masked = np.ma.array(plain, mask=[[0, 1], [0, 0]])
    for x in (plain.view(np.matrix), masked):
        with pytest.raises(InputTypeError, match=f"class {type(x).__name__}, which computes"):
            function(x)
        np.testing.assert_array_equal(function(plain), [[1.0, 4.0], [9.0, 16.0]])


@pytest.mark.parametrize(
    "wrong",
    ["text", b"bytes", print, np.array(["a"]), np.array([1.0], object), np.datetime64("2020")]
    + [np.zeros(2, "M8[s]"), np.zeros(2, "m8[s]"), np.zeros(2, [("a", float)]), range(3)],
    ids=repr,
)
def test_what_is_no_number_is_refused(wrong):
    function = native(lambda x: x * 2.0)
    for _ in range(2):
        with pytest.raises(InputTypeError):
            function(wrong)
        np.testing.assert_array_equal(function(np.ones(2)), [2.0, 2.0])


def test_any_byte_but_zero_is_true():
    x = np.array([2, 0, 1, 255, 128, 0, 4], np.uint8).view(np.bool_)

    def function(x):
        return ~x, np.sum(x), np.where(x, 1.0, 2.0), x * 1.5, np.all(x), x[0] & x

    assert_trees_close(native(function)(x), function(x), rtol=0, atol=0, dtypes=True)


def _memory_is_short(gigabytes):
    try:
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return True
    return available < gigabytes * 2**30


@pytest.mark.slow
@pytest.mark.skipif(_memory_is_short(9), reason="there are not 9 GB of free memory")
def test_arrays_over_two_gigabytes():
    n = 2**29 + 16
    x = np.zeros(n, np.float32)  # pages that nobody writes to take no memory
    x[-3:] = 1.0, 2.0, -4.0
    total, largest, end, half = native(
        lambda x: (np.sum(x), np.max(x), x[-3:] * 2, np.sum(x.reshape(2, -1), axis=1))
    )(x)
    assert total == -1.0 and largest == 2.0
    np.testing.assert_array_equal(end, [2.0, 4.0, -8.0])
    np.testing.assert_array_equal(half, [0.0, -1.0])
    doubled = native(lambda x: x + x)(x)
    np.testing.assert_array_equal(doubled[-3:], [2.0, 4.0, -8.0])


# Containers.

Pair = namedtuple("Pair", "a b")


@ft.tree.register_dataclass
@dataclass
class Point:
    x: object
    y: object


def test_wrong_numbers_of_arguments():
    function = native(lambda x, y: x * y)
    x = np.ones(3)
    for _ in range(2):
        for wrong in ((), (x,), (x, x, x)):
            with pytest.raises(TypeError, match="positional argument"):
                function(*wrong)
        np.testing.assert_array_equal(function(x, x), x)
    np.testing.assert_array_equal(function(x, y=x), x)
    with pytest.raises(TypeError):
        function(x, z=x)


def test_other_containers_than_before():
    function = native(lambda pair: pair[0] * 2.0 + pair[1])
    x, y = np.ones(3), np.arange(3.0)
    expected = x * 2 + y
    for _ in range(2):
        for pair in ((x, y), [x, y], Pair(x, y), (x, y, x), [x, y, [], None], {0: x, 1: y}):
            np.testing.assert_array_equal(function(pair), expected)
    for wrong, error in (((x,), IndexError), ([], IndexError), ((x, None), TypeError)):
        with pytest.raises(error):
            function(wrong)


def test_other_dicts_than_before():
    function = native(lambda d: d["a"] * 2.0 + d["b"])
    x, y = np.ones(3), np.arange(3.0)
    for _ in range(2):
        for d in ({"a": x, "b": y}, {"b": y, "a": x}, OrderedDict(b=y, a=x)):
            np.testing.assert_array_equal(function(d), x * 2 + y)
        np.testing.assert_array_equal(function({"a": x, "b": y, "c": x}), x * 2 + y)
        with pytest.raises(KeyError):
            function({"a": x, "c": y})
    keys = native(lambda d: {key: value * 2.0 for key, value in d.items()})
    assert list(keys({"b": x, "a": y})) == ["b", "a"]
    assert native(lambda d: {1: d[1] * 2.0, (2, "x"): d["k"] * 1.0})({1: 2.0, "k": 3.0}) == {
        1: 4.0,
        (2, "x"): 3.0,
    }


def test_none_namedtuples_and_dataclasses():
    x = np.arange(3.0)
    function = native(
        lambda tree: (Pair(tree.a * 2.0, None), [{"p": Point(tree.b.x, tree.b.y * x)}])
    )
    for _ in range(2):
        pair, (inside,) = function(Pair(x, Point(1.0, x)))
        assert type(pair) is Pair and pair.b is None and type(inside["p"]) is Point
        np.testing.assert_array_equal(pair.a, x * 2)
        np.testing.assert_array_equal(inside["p"].y, x * x)
        assert inside["p"].x == 1.0 and type(inside["p"].x) is float


def test_deep_and_wide_containers():
    x = np.ones(2)
    deep = [x]
    for _ in range(30):
        deep = [(deep, 1.0)]
    double = native(lambda tree: ft.tree.map(lambda leaf: leaf * 2.0, tree))
    assert_trees_close(double(deep), ft.tree.map(lambda leaf: leaf * 2.0, deep))
    wide = tuple(np.full(1, float(k)) for k in range(200))
    assert_trees_close(double(wide), tuple(leaf * 2.0 for leaf in wide))


# Numbers.

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e300, -1e300, 1e-310, -5e-324, 2.0**53, 710.0]
    + [np.inf, -np.inf, np.nan, np.pi, 1.5, 2.5, 1e22, np.nextafter(1, 2), -0.3, 100.0]
)
ELEMENTWISE = (
    "negative positive absolute fabs sign square reciprocal sqrt cbrt floor ceil trunc rint "
)
ELEMENTWISE += (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
)
ELEMENTWISE += "arcsinh arccosh arctanh deg2rad rad2deg isnan isinf isfinite signbit logical_not"
PAIRS = (
    "add subtract multiply divide maximum minimum power arctan2 hypot copysign logaddexp heaviside "
)
PAIRS += "less less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor "
PAIRS += "fmax fmin fmod remainder floor_divide nextafter float_power"


def assert_same_specials(found, expected, ulps, name):
    """The same nans, infinities, zeros and signs; numbers as close as `ulps`."""
    assert found.dtype == expected.dtype, name
    if found.dtype == np.bool_:
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=name)
    number = ~np.isnan(expected)
    eps = np.finfo(found.dtype).eps
    np.testing.assert_allclose(
        found[number],
        expected[number],
        rtol=ulps * eps,
        atol=0 if ulps < 1 else 1e-323,
        err_msg=name,
    )
    if name not in ("maximum", "minimum", "fmax", "fmin"):  # of 0 and -0 either is the larger
        signs = np.signbit(found[number]), np.signbit(expected[number])
        np.testing.assert_array_equal(*signs, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ELEMENTWISE.split())
def test_special_values_of_functions(name, dtype):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        expected = getattr(np, name)(x)
        assert_same_specials(native(getattr(np, name))(x), expected, 4, name)
        one_by_one = native(getattr(np, name))
        found = np.array([one_by_one(number) for number in x])
        assert_same_specials(found, expected, 4, name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PAIRS.split())
def test_special_values_of_functions_of_two(name, dtype):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        x, y = np.repeat(x, x.size), np.tile(x, x.size)
        function = getattr(np, name)
        ulps = 8 if dtype is np.float64 else 4
        assert_same_specials(native(function)(x, y), function(x, y), ulps, name)


def test_special_values_of_where_and_clip():
    x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    assert_same_specials(
        native(lambda x, y: np.where(x, x, y))(x, y), np.where(x, x, y), 0, "where"
    )
    expected = np.clip(x, -1.0, y)
    found = native(lambda x, y: np.clip(x, -1.0, y))(x, y)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values_of_reductions(dtype):
    def function(x):
        return np.sum(x, 1), np.max(x, 1), np.min(x, 1), np.prod(x, 1), np.mean(x, 1), np.any(x, 1)

    compiled = {}
    rng = np.random.default_rng(0)
    for n in (1, 3, 8, 9, 33, 2000):
        x = rng.choice([0.0, -0.0, 1.0, -1.0, 2.0], (40, n)).astype(dtype)
        special = rng.random((40, n)) < 2 / n
        x[special] = rng.choice([np.inf, -np.inf, np.nan], np.sum(special))
        compiled[n] = native(function)
        with np.errstate(all="ignore"):
            for one, other in zip(compiled[n](x), function(x), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)
                one, other = native(np.sum)(x), np.sum(x)
                np.testing.assert_array_equal(np.isnan(one), np.isnan(other))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_integers_wrap_around(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, high, low + 1, -1, 0, 1, 7, high // 2], dtype)
    x, y = np.repeat(x, x.size), np.tile(x, x.size)

    def function(x, y):
        sums = np.sum(x, dtype=dtype), np.prod(x, dtype=dtype), np.max(x), np.min(y)
        signs = -x, np.abs(x), np.sign(x), np.square(x), ~x, x & y, x | y, x ^ y
        return x + y, x - y, x * y, np.maximum(x, y), x < y, x == y, *signs, *sums

    with np.errstate(all="ignore"):
        expected = function(x, y)
    assert_trees_close(native(function)(x, y), expected, rtol=0, atol=0, dtypes=True)


@pytest.mark.parametrize("source", [np.float64, np.float32])
@pytest.mark.parametrize("target", [np.int64, np.int32, np.bool_])
def test_numbers_that_no_integer_holds(source, target):
    edge = [
        2.0**31,
        -(2.0**31),
        2.0**31 - 1,
        -(2.0**31) - 1,
        2.0**63,
        -(2.0**63),
        2.0**62,
        0.9,
        -0.9,
    ]
    with np.errstate(all="ignore"):
        x = np.array([*edge, *SPECIAL], source)
        expected = x.astype(target)
    np.testing.assert_array_equal(native(lambda x: x.astype(target))(x), expected)


# Results.


def test_results_are_the_callers_own():
    table = np.arange(3.0)

    def function(x):
        y = np.sin(x)
        return x, x.T, x[0], x * 1, table, table[::-1], y, y, y.T, y[0], y.reshape(-1), y * 1, x[:1]

    compiled = native(function)
    x = np.ones((2, 3))
    expected = function(x)
    for _ in range(2):
        results = compiled(x)
        for k, (result, other) in enumerate(zip(results, expected, strict=True)):
            np.testing.assert_allclose(result, other, rtol=1e-15)
            assert not np.shares_memory(result, x) and not np.shares_memory(result, table)
            assert not any(np.shares_memory(result, one) for one in results[k + 1 :])
            assert result.flags.writeable and result.flags.owndata
        for result in results:
            result[...] = 99.0
        np.testing.assert_array_equal(x, 1.0)
        np.testing.assert_array_equal(table, [0.0, 1.0, 2.0])


def test_constants_in_any_order_of_memory():
    x = np.ones((4, 6))
    constants = [k for k in ODD.values() if k.dtype == float and k.shape == x.shape]
    assert len(constants) > 5
    for constant in constants:
        found = native(lambda x, k=constant: (x * k, k, np.sum(x + k)))(x)
        expected = (x * constant, np.asarray(constant, float), np.sum(x + constant))
        assert_trees_close(found, expected, rtol=1e-15)


def test_constants_are_those_of_the_trace():
    table = np.arange(3.0)
    for backend in ("native", "numpy"):
        function = jit(lambda x: x * table, backend=backend)
        before = function(np.ones(3))
        table[0] = 5.0
        np.testing.assert_array_equal(function(np.ones(3)), before)
        table[0] = 0.0


def test_errors_from_the_slow_way_come_through():
    function = native(lambda x: x * 2.0)
    function(np.ones(3))

    class Odd:
        def __array__(self, *_):
            raise RuntimeError

    for _ in range(3):
        with pytest.raises(InputTypeError):
            function(Odd())
    branches = native(lambda x: x if x.ndim == 1 or x[0, 0] > 0 else -x)
    branches(np.ones(3))
    with pytest.raises(StagingError):
        branches(np.ones((3, 3)))
    with pytest.raises(np.linalg.LinAlgError):
        native(lambda x: np.linalg.cholesky(x * 2.0) + 1.0)(-np.eye(2))


def test_too_little_memory_is_an_error():
    spread = native(lambda x: np.exp(np.broadcast_to(x, (2**31, 2**21))))
    with pytest.raises(MemoryError):
        spread(np.ones(2**21))


# References.


def busy(x, y, rest):
    z = np.sin(x) * y + rest["b"][0]
    return {"z": z, "sum": [np.sum(z), y * 2.0]}, (x > 0.0, rest["a"] + 1.0)


def busy_arguments():
    return np.ones(5), 2.0, {"a": np.float64(1.0), "b": [np.arange(5.0)]}


def test_references_are_counted_right():
    compiled = native(busy)
    x, y, rest = busy_arguments()
    watched = [x, y, rest, rest["a"], rest["b"], rest["b"][0], x.dtype, np.dtype(bool), "sum", "z"]
    watched += [np.float64, float, np.ndarray]
    compiled(x, y, rest)
    compiled(x.astype(">f8"), y, rest)
    odd = x[::-1]
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(10_000):
        compiled(x, y, rest)
    for _ in range(500):
        compiled(odd, y, rest)
        with pytest.raises(TypeError):
            compiled(x)
    gc.collect()
    after = [sys.getrefcount(each) for each in watched]
    assert all(abs(one - other) < 50 for one, other in zip(before, after, strict=True))


def test_large_calls_count_references_right():
    compiled = native(lambda d: np.sum(np.exp(d["x"][0])))
    x = np.ones(100_000)
    holder = {"x": [x]}
    assert "PyEval_SaveThread" in compiled.trace(holder).code
    compiled(holder)
    before = sys.getrefcount(x)
    for _ in range(200):
        compiled(holder)
    assert sys.getrefcount(x) == before


def test_calls_leave_no_memory_behind():
    compiled = native(busy)
    args = busy_arguments()
    for _ in range(100):
        compiled(*args)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20_000):
            compiled(*args)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_many_calls_do_not_grow_the_process():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    compiled, large = native(busy), native(lambda x: np.sum(np.exp(np.cumsum(x)) * x))
    args, x = busy_arguments(), np.full(5_000, 1e-4)
    for _ in range(1000):
        compiled(*args), large(x)
    before = resident()
    for _ in range(100_000):
        compiled(*args)
    for _ in range(2000):
        large(x)
    assert resident() - before < 8 * 2**20


def test_compiled_code_is_freed_with_its_function():
    class Witness:
        pass

    def make():
        witness = Witness()

        def function(x):
            assert witness is not None
            return np.sin(x) * 2.0

        compiled = native(function)
        compiled(np.ones(3))
        return compiled, weakref.ref(witness)

    compiled, witness = make()
    kept = compiled._direct  # the code alone
    del compiled
    gc.collect()
    assert witness() is None
    np.testing.assert_allclose(kept(np.ones(3)), np.full(3, np.sin(1.0) * 2))
    del kept
    gc.collect()


@pytest.mark.slow
def test_code_stays_while_it_runs_and_others_are_freed():
    other = native(lambda x: np.cos(x) + 1.0)
    x = np.linspace(0, 1, 7)
    for k in range(20):
        made = native(lambda x, k=k: np.sin(x) * float(k))
        np.testing.assert_allclose(made(x), np.sin(x) * k, rtol=1e-14)
        del made
        gc.collect()
        np.testing.assert_allclose(other(x), np.cos(x) + 1.0, rtol=1e-14)


# Threads and processes.


def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


ARGS = (np.linspace(-1, 1, 3), np.linspace(0, 1, 15).reshape(5, 3), np.linspace(1, 2, 5))


def run_in_eight_threads(work):
    start, failures = threading.Barrier(8), []

    def guarded(number):
        try:
            start.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.filterwarnings("ignore::functrans.errors.RetraceWarning")
def test_eight_threads_compile_and_call_the_same_functions():
    functions = [native(grad(loss)), native(loss), native(mixed), native(np.exp)]
    slope, value = grad(loss)(*ARGS), loss(*ARGS)

    def work(number):
        for k in range(15):
            np.testing.assert_allclose(functions[0](*ARGS), slope)
            np.testing.assert_allclose(functions[1](*ARGS), value)
            x = np.linspace(0, 1, 2 + (k + number) % 10)  # a new trace, in some order
            assert_trees_close(functions[2](x), mixed(x))
            big = np.full(60_000 + number, 0.5)
            np.testing.assert_allclose(functions[3](big), np.exp(0.5))
            np.testing.assert_allclose(native(lambda x: x * float(number))(x), x * number)

    run_in_eight_threads(work)


RACE = """
import threading, time
import numpy as np
import functrans as ft
f = ft.jit(lambda d: np.sum(np.tanh(np.exp(np.sin(d["x"][0])))), backend="native")
holder, done = {"x": [np.ones(5_000_000)]}, []
f(holder)
def replace():
    while not done:
        time.sleep(0.002)
        holder["x"][0] = np.ones(5_000_000)
thread = threading.Thread(target=replace)
thread.start()
for _ in range(15):
    f(holder)
done.append(True)
thread.join()
print("fine")
"""


def run_python(source, **variables):
    return subprocess.run(
        [sys.executable, "-c", source],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_arguments_live_while_another_thread_takes_them_out_of_their_list():
    done = run_python(RACE)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


COUNT = """
import numpy as np
import functrans as ft
from functrans.compiler.native.threads import thread_count
code = ft.jit(np.tanh, backend="native").trace(np.ones(2_000_000)).code
print(thread_count(), "ft_run" in code)
"""


@pytest.mark.parametrize("wanted, found", [("1", "1 False\n"), ("3", "3 True\n")])
def test_the_number_of_threads_can_be_set(wanted, found):
    assert run_python(COUNT, FUNCTRANS_NUM_THREADS=wanted).stdout == found


@pytest.mark.parametrize("odd", ["0", "many"])
def test_odd_numbers_of_threads_are_as_if_not_set(odd):
    usual = run_python(COUNT, FUNCTRANS_NUM_THREADS="")
    done = run_python(COUNT, FUNCTRANS_NUM_THREADS=odd)
    assert (done.returncode, done.stdout) == (0, usual.stdout), done.stderr


def test_long_columns_on_threads():
    # Totals for a reduction along an axis of length 1 were written past the end of the stack.
    x = np.linspace(0, 1, 400_000)[:, None]
    done = native(lambda x: (np.sum(np.exp(np.sin(x)), axis=1), np.max(np.sin(x)), np.min(x, 1)))
    expected = (np.exp(np.sin(x[:, 0])), np.sin(1.0), x[:, 0])
    assert_trees_close(done(x), expected, rtol=1e-14, atol=0)


def _child(connection):
    compiled = native(mixed)
    connection.send((slope(*ARGS), compiled(BASE), large(np.full(300_000, 0.5))))


slope = native(grad(loss))
large = native(lambda x: np.sum(np.exp(np.sin(x)) * x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_goes_on_with_what_was_compiled_and_compiles():
    expected = slope(*ARGS), mixed(BASE), large(np.full(300_000, 0.5))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_child, args=(there,))
    process.start()
    assert here.poll(60)
    assert_trees_close(here.recv(), expected, rtol=1e-13)
    process.join(60)
    assert process.exitcode == 0


@jit(backend="native")
def decorated(x):
    return np.sin(x) * 2


def test_pickling():
    decorated(np.ones(2))
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    again = pickle.loads(pickle.dumps(jit(loss, backend="native")))
    assert again._backend == "native"
    np.testing.assert_allclose(again(*ARGS), loss(*ARGS))


def test_addresses_are_never_in_the_text_of_the_code():
    # The same text is the same code: it is kept on disk.
    texts = [native(busy).trace(*busy_arguments()).code for _ in range(2)]
    assert texts[0] == texts[1]
    assert ctypes.sizeof(ctypes.c_void_p) == 8
