"""The laws of eager code hold in native code: every case under every transform, shapes, dtypes, programs.

The values to compare with are those of NumPy, or of the transforms run eagerly, which test_laws.py holds
against numerical derivatives and loops. Elementary functions differ from NumPy's by a few ulps.
"""

import itertools
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import grad, jit, vmap
from functrans.errors import StagingError
from tests.support.cases import CASES
from tests.support.cases_numpy import NUMPY_CASES
from tests.support.marks import of_constants, one_in
from tests.support.oracles import assert_trees_close, map_leaves
from tests.support.random_programs import programs_in_place
from tools.fuzz.programs import Seeded, random_program, whole_arrays

pytest.importorskip("llvmlite")

STAGED = [case for case in [*CASES, *NUMPY_CASES] if not case.needs_values]
DIFFERENTIABLE = [case for case in STAGED if case.differentiable]
CLOSE = {"rtol": 1e-10, "atol": 1e-11, "dtypes": True}


def native(function):
    return jit(function, backend="native")


def draw(case, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    shapes = data.draw(case.shapes, label="shapes")
    return case.sample(rng, shapes), case.sample(rng, shapes), rng


def laid_out(rng, x):
    """The same array in some other order in memory."""
    if x.ndim == 0:
        return x
    way = rng.integers(4)
    if way == 0:
        return np.asfortranarray(x)
    if way == 1:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == 2:
        return np.flip(np.flip(x).copy())
    return x


def direction(rng, tree):
    return map_leaves(lambda x: rng.uniform(-1, 1, np.shape(x)).astype(np.asarray(x).dtype), tree)


def inexact_part(function):
    def inexact(*args):
        return [x for x in ft.tree.leaves(function(*args)) if np.issubdtype(x.dtype, np.inexact)]

    return inexact


def for_each(cases, every=1):
    """A test of each case; only one in `every` by default, and the others with `-m slow`."""
    return pytest.mark.parametrize("case", one_in(every, cases), ids=attrgetter("name"))


once = settings(max_examples=1)


# Cases.


@for_each(STAGED, every=3)
@once
@given(data=st.data())
def test_values_and_lanes(case, data):
    args, others, rng = draw(case, data)
    compiled = native(case.function)
    assert_trees_close(compiled(*args), _arrays(case.function(*args)), **CLOSE)
    # NumPy's own results are those for C order: it has reduced np.power in the order of memory.
    expected = _arrays(case.function(*others))
    for each in (others, [laid_out(rng, x) for x in others]):
        assert_trees_close(compiled(*each), expected, **CLOSE)
    lanes = [np.stack(pair) for pair in zip(args, others, strict=True)]
    expected = vmap(case.function)(*lanes)
    assert_trees_close(native(vmap(case.function))(*lanes), expected, **CLOSE)
    assert_trees_close(vmap(compiled)(*lanes), expected, **CLOSE)


def _arrays(tree):
    """A result as transforms give it: NumPy's own results may be Python numbers."""
    return map_leaves(lambda x: x if isinstance(x, np.generic) else np.asarray(x), tree)


@for_each(DIFFERENTIABLE, every=10)
@once
@given(data=st.data())
def test_derivatives(case, data):
    args, _, rng = draw(case, data)
    function, reals = case.of_reals(args)
    function = inexact_part(function)
    out, pull = ft.vjp(function, *reals)
    cotangent, tangents = direction(rng, out), direction(rng, reals)

    def pulled(cotangent, *xs):
        return ft.vjp(function, *xs)[1](cotangent)

    def pushed(xs, vs):
        return ft.jvp(function, xs, vs)

    assert_trees_close(native(pulled)(cotangent, *reals), pull(cotangent), **CLOSE)
    expected = pushed(reals, tangents)
    assert_trees_close(native(pushed)(reals, tangents), expected, **CLOSE)
    assert_trees_close(ft.jvp(native(function), reals, tangents), expected, **CLOSE)


@for_each(DIFFERENTIABLE[::3], every=3)
@once
@given(data=st.data())
def test_single_precision(case, data):
    args, _, rng = draw(case, data)
    function, reals = case.of_reals(args)
    function = inexact_part(function)
    narrow = tuple(x.astype(np.float32) for x in reals)
    out, pull = ft.vjp(function, *narrow)
    cotangent = direction(rng, out)

    def both(cotangent, *xs):
        out, pull = ft.vjp(function, *xs)
        return out, pull(cotangent)

    close = {"rtol": 3e-4, "atol": 3e-4, "dtypes": True}
    assert_trees_close(native(both)(cotangent, *narrow), (out, pull(cotangent)), **close)


# Shapes.

LENGTHS = [1, 3, 7, 8, 9, 63, 64, 65, 1000]
SHAPES = [(), *((n,) for n in LENGTHS), (3, 7), (9, 1), (1, 65), (65, 3), (2, 3, 9), (8, 1, 17)]


def layouts(x):
    """An array in all orders in memory."""
    yield x
    if x.ndim:
        yield np.asfortranarray(x)
        yield np.repeat(x, 2, axis=-1)[..., ::2]
        yield np.repeat(x, 3, axis=0)[::3]
        yield np.flip(np.flip(x).copy())
        yield np.broadcast_to(x[:1], x.shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_])
def test_reductions_over_every_set_of_axes(dtype, shape):
    names = ("any", "all") if dtype is np.bool_ else ("sum", "mean", "max", "min", "prod")
    names = (*names, "sum", "mean") if dtype is np.bool_ else (*names, "any", "all")
    sets = itertools.chain.from_iterable(
        itertools.combinations(range(len(shape)), k) for k in range(len(shape) + 1)
    )
    ways = list(itertools.product(names, sets, (True, False)))

    def function(x):
        return [getattr(np, name)(x, axis=axis, keepdims=keep) for name, axis, keep in ways]

    compiled = native(function)
    rng = np.random.default_rng(len(shape))
    values = rng.uniform(0.9, 1.1, shape) if dtype(0.5) == 0.5 else rng.integers(-2, 3, shape)
    for x in layouts(np.asarray(values, dtype)):
        found, expected = compiled(x), function(x)
        for way, one, other in zip(ways, found, expected, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, way
            np.testing.assert_allclose(
                one, other, rtol=1e-4 if dtype is np.float32 else 1e-12, err_msg=str(way)
            )


def broadcast_pairs():
    for shape in [(9,), (3, 17), (2, 5, 8)]:
        for mask in itertools.product([False, True], repeat=len(shape)):
            thin = tuple(1 if one else n for n, one in zip(shape, mask, strict=True))
            yield shape, thin
        for start in range(1, len(shape) + 1):
            yield shape, shape[start:]
    yield (3, 1, 8), (1, 5, 1)
    yield (7, 1), (1, 9)


@pytest.mark.parametrize("pair", list(broadcast_pairs()), ids=str)
def test_broadcasts_of_every_kind(pair):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.uniform(0.5, 1.5, shape)) for shape in pair)

    def function(x, y):
        z = x * y + np.sqrt(y)
        return z, np.sum(z / y), np.max(y - x, axis=-1), y + 1.0, np.sum(np.exp(-x) * y, axis=0)

    gradient = grad(lambda x, y: sum(np.sum(np.sin(z)) for z in function(x, y)), (0, 1))
    compiled, of_gradient = native(function), native(gradient)
    for args in itertools.zip_longest(layouts(x), layouts(y), fillvalue=y):
        assert_trees_close(compiled(*args), function(*args), **CLOSE)
        assert_trees_close(of_gradient(*args), gradient(*args), **CLOSE)


@pytest.mark.parametrize("length", range(2, 36))
def test_quotients_of_what_is_left_over_of_vectors(length):
    # LLVM has taken 0 / 0 for 0 in the lanes past the end, and summed what the processor gives.
    x = np.linspace(1.0, 2.0, 3 * length).reshape(3, length)
    share = native(lambda x: np.sum(x / np.sum(x, axis=0)))
    np.testing.assert_allclose(share(x), length, rtol=1e-13)


def test_quotients_whose_divisors_are_kept():
    # A random program in which LLVM has done the same.
    def function(x):
        share = x / (2 + np.abs(x))
        total = np.sum(share)
        roots = np.sqrt(np.abs(2 * share))
        means = np.mean(roots, axis=0, keepdims=True)
        back = share[:, 3:0:-1]
        quotient = np.mean(2 * share / (2 + np.abs(means)))
        return total, quotient, roots, means, np.where(back < total, back, total * 0.5)

    x = np.random.default_rng(85).uniform(-2, 2, (33, 17))
    assert_trees_close(native(function)(x), function(x), **CLOSE)
    gradient = grad(lambda x: sum(np.sum(np.sin(value)) for value in function(x)))
    assert_trees_close(native(gradient)(x), gradient(x), **CLOSE)


MATRICES = [(1, 1, 1), (1, 5, 7), (4, 8, 16), (5, 9, 17), (3, 33, 1), (31, 32, 33), (65, 40, 66)]


@pytest.mark.parametrize("sizes", MATRICES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrix_products_however_their_operands_lie(dtype, sizes):
    m, k, n = sizes
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)

    def function(a, b, at, bt, wide):
        return (
            a @ b,
            a[0] @ b,
            a[1].T.T @ bt.T,
            at.T @ b,
            (at.T @ bt.T).T,
            a[0, ::-1, ::-1] @ b[::-1, ::-1],
            wide[:, ::2] @ b,
            a[0, 0] @ b,
            a[0] @ b[:, 0],
            a[1, -1] @ b[:, -1],
            np.sum(a[0] @ b + 1.0, axis=0),
            (a * 2.0) @ (b + 1.0),
        )

    args = (a, b, a[0].T.copy(), b.T.copy(), np.repeat(a[0], 2, axis=1))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    assert_trees_close(native(function)(*args), function(*args), **close, dtypes=True)


# Dtypes.

OPERANDS = {
    "float64": np.array([1.5, -2.5, 0.25, 7.0, -0.5]),
    "float32": np.array([1.5, -2.5, 0.25, 7.0, -0.5], np.float32),
    "int64": np.array([3, -2, 2**40, 1, 2**63 - 1]),
    "int32": np.array([3, -2, 0, 1, 2**31 - 1], np.int32),
    "bool": np.array([True, False, True, True, False]),
    "a Python float": 0.75,
    "a Python int": 5,
    "a Python bool": True,
    "a scalar of float32": np.float32(0.75),
    "a scalar of int64": np.int64(-3),
    "a scalar of bool": np.bool_(True),
}
BINARY = [np.add, np.multiply, np.maximum, np.minimum, np.less, np.less_equal, np.greater]
BINARY += [np.greater_equal, np.equal, np.not_equal, np.logical_and, np.logical_xor, np.divide]
BINARY += [np.subtract, np.logical_or, np.copysign, np.bitwise_and, np.bitwise_xor, np.hypot]


@pytest.mark.parametrize("first", OPERANDS)
@pytest.mark.parametrize("second", list(OPERANDS)[:5])
def test_every_pair_of_dtypes_gives_the_dtype_and_values_of_numpy(first, second):
    args = (OPERANDS[first], OPERANDS[second])
    known = []
    with np.errstate(all="ignore"):
        for ufunc in BINARY:
            try:
                ufunc(*args)
            except TypeError:
                continue
            known.append(ufunc)

        def function(x, y):
            where = (np.where(x > 0, x, y), np.where(y, x, 1))
            return *(ufunc(x, y) for ufunc in known), *where, np.concatenate([y, y])

        expected = function(*args)
        close = 1e-6 if "float32" in (first, second) else 1e-14
        assert_trees_close(native(function)(*args), expected, rtol=close, atol=0, dtypes=True)


@pytest.mark.parametrize("source", list(OPERANDS)[:5])
def test_conversions(source):
    x = OPERANDS[source]
    targets = [np.float64, np.float32, np.int64, np.int32, np.bool_, np.int8, np.complex64]

    def function(x):
        return [x.astype(target) for target in targets]

    with np.errstate(all="ignore"):
        assert_trees_close(native(function)(x), function(x), rtol=0, atol=0, dtypes=True)


# Programs.


@of_constants
@settings(max_examples=25)
@given(program=programs_in_place())
def test_programs_with_assignments_and_views(program):
    (x,) = program.arguments(0)

    def loss(x):
        return np.sum(program.run(x)[-1] ** 2)

    try:
        found = native(program.run)(x)
    except StagingError:  # the program looks at a value
        return
    assert_trees_close(found, program.run(x.copy()), rtol=1e-12, atol=1e-12)
    expected = grad(loss)(x)
    assert_trees_close(native(grad(loss))(x), expected, rtol=1e-9, atol=1e-10)
    assert_trees_close(grad(native(loss))(x), expected, rtol=1e-9, atol=1e-10)


FLOATS = whole_arrays("double")
EVERY_DTYPE = whole_arrays("double", "single", "int64", "int32", "bool")


def check_program(seed, rtol=1e-9, style=FLOATS):
    program = random_program(Seeded(seed), style, length=12)
    args = program.arguments(0)
    assert_trees_close(native(program.run)(*args), program.run(*args), rtol, rtol, True)

    def loss(*args):
        return sum(np.sum(np.sin(value)) for value in ft.tree.leaves(program.run(*args)))

    if style is FLOATS:
        gradient = grad(loss, tuple(range(len(args))))
        assert_trees_close(native(gradient)(*args), gradient(*args), rtol, rtol, True)


@of_constants
@pytest.mark.parametrize("seed", range(80))
def test_programs_of_arrays(seed):
    check_program(seed)


@pytest.mark.parametrize("seed", range(100, 150))
def test_programs_of_arrays_of_every_dtype(seed):
    check_program(seed, 2e-3, EVERY_DTYPE)


@of_constants
@pytest.mark.parametrize("size", [16, 32])
def test_programs_with_narrower_vectors(size, monkeypatch):
    monkeypatch.setattr("functrans.compiler.native.steps.vector_bytes", lambda: size)
    for seed in range(200, 220):
        check_program(seed)


@of_constants
def test_programs_on_three_threads(monkeypatch):
    monkeypatch.setattr("functrans.compiler.native.threads._WORTH", 0)
    monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda: 3)
    for seed in range(300, 330):
        check_program(seed)


def test_long_arrays_on_threads_give_the_values_of_one_thread(monkeypatch):
    def function(x, y):
        z = np.exp(-x * x) * np.sin(y) + x
        return z, np.sum(z), np.max(z), np.any(z > 2), np.sum(z * y), np.min(x), z > y

    rng = np.random.default_rng(0)
    for length in (99_999, 100_000, 250_007):
        args = rng.standard_normal((2, length))
        for count in (1, 2, 5):
            monkeypatch.setattr("functrans.compiler.native.threads.thread_count", lambda n=count: n)
            compiled = native(function)
            found = compiled(*args)
            assert ("ft_run" in compiled.trace(*args).code) == (count > 1)
            assert_trees_close(found, function(*args), rtol=1e-10, atol=1e-11, dtypes=True)
