"""Sums in single and half precision do not lose digits, whatever adds them up.

NumPy adds in pairs only along the axis whose entries are neighbors in memory. A constant shows what happens
otherwise: every addition rounds in the same direction.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
from functrans.core.accumulate import accumulate
from functrans.core.summation import add_up
from functrans.ops.indexing import Scattered
from functrans.ops.long_products import exact_einsum
from functrans.ops.scatter_add import sum_rows

ROWS = 200_000
TENTH = np.float32(0.1)
# Adding one after the other is wrong by 1e-3 for this many terms, and adding in pairs by 5e-7.
EXACT = 2e-6


def constant(*shape):
    return np.full(shape, TENTH)


def error(found, exact):
    found, exact = np.asarray(found), np.asarray(exact)
    assert found.shape == exact.shape
    return np.max(np.abs(found.astype(exact.dtype) / exact - 1))


def layouts(x):
    """The same matrix in other layouts."""
    yield x
    yield np.asfortranarray(x)
    wide = np.repeat(x, 2, axis=1)
    yield wide[:, ::2]
    yield np.repeat(x, 2, axis=0)[::2]
    yield x[::-1, ::-1]
    yield np.ascontiguousarray(x.T).T
    yield x.astype(x.dtype.newbyteorder())


# The function that all others rest on.


@given(data=st.data())
def test_add_up_is_the_sum_for_all_axes_dtypes_and_layouts(data):
    lengths = st.sampled_from([0, 1, 2, 3, 5, 130, 300])
    shape = tuple(data.draw(st.lists(lengths, min_size=1, max_size=4)))
    if np.prod(shape) > 200_000:
        shape = shape[:2]
    dtype = data.draw(st.sampled_from("efdFDg"))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape).astype(dtype)
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    way = data.draw(st.sampled_from(["whole", "strided", "repeated", "swapped"]))
    if way == "strided":
        x = np.repeat(x, 2, axis=-1)[..., :: data.draw(st.sampled_from([2, -2]))]
    elif way == "repeated":
        axis = data.draw(st.integers(0, x.ndim - 1))
        x = np.broadcast_to(x.take([0] if x.shape[axis] else [], axis), x.shape)
    elif way == "swapped":
        x = x.astype(x.dtype.newbyteorder())
    axis = tuple(data.draw(st.permutations(range(x.ndim))))[: data.draw(st.integers(0, x.ndim))]
    keepdims = data.draw(st.booleans())
    found = add_up(x, axis, keepdims)
    like = np.add.reduce(x, axis=axis, keepdims=keepdims)
    assert type(found) is type(like)
    assert found.dtype == like.dtype.newbyteorder("=")
    assert found.shape == like.shape
    exact = np.add.reduce(x.astype("G"), axis=axis, keepdims=keepdims)
    sizes = np.add.reduce(np.abs(x.astype("G")), axis=axis, keepdims=keepdims)
    assert np.all(np.abs(found - exact) <= 40 * np.finfo(dtype).eps * sizes)


@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1), (1, 0)])
@pytest.mark.parametrize("shape", [(ROWS, 3), (3, ROWS), (70_000, 11), (600, 600), (257, 40)])
def test_add_up_keeps_its_digits(shape, axis):
    for x in layouts(constant(*shape)):
        assert error(add_up(x, axis), np.sum(x.astype(float), axis)) < 4e-6


@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2)])
def test_add_up_keeps_its_digits_in_three_axes(axis):
    for order in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
        x = constant(400, 300, 7).transpose(order)
        assert error(add_up(x, axis), np.sum(x.astype(float), axis)) < 4e-6


def test_half_precision_is_added_up_in_single_precision():
    x = np.full((5000, 2), 0.5, np.float16)  # one after the other, 1024 + 0.5 is 1024
    assert np.array_equal(add_up(x, (0,)), [2500, 2500])
    assert np.array_equal(add_up(x[:200], (0,)), [100, 100])


def test_what_is_repeated_is_added_up_by_a_product():
    x = np.broadcast_to(TENTH, (ROWS, 4))
    assert error(add_up(x, (0,)), np.full(4, ROWS * float(TENTH))) < 1e-7
    found = add_up(np.broadcast_to(np.arange(3.0), (500, 3))[:, ::-1], (0,))
    assert np.array_equal(found, [1000, 500, 0])
    found[0] = 7  # it is not a view of anything
    assert np.array_equal(found, [7, 500, 0])


# Under transforms.

TRANSFORMS = {
    "vjp": lambda f, x: ft.vjp(f, x)[0],
    "jvp": lambda f, x: ft.jvp(f, (x,), (x,))[1],
    "linearize": lambda f, x: ft.linearize(f, x)[1](x),
    "graph": lambda f, x: ft.make_graph(f)(x)(x),
    "jit": lambda f, x: ft.jit(f)(x),
    "jit to NumPy": lambda f, x: ft.jit(f, backend="numpy")(x),
    "vmap": lambda f, x: ft.vmap(f)(x[None])[0],
    "vmap of the last axis": lambda f, x: ft.vmap(f, in_axes=2)(x[..., None])[0],
    "vmap in the middle": lambda f, x: ft.vmap(f, in_axes=1)(np.stack([x, x], axis=1))[1],
    "jit of vmap": lambda f, x: ft.jit(ft.vmap(f, in_axes=2))(x[..., None])[0],
}
# Functions that are linear, so that the tangent along x is the value at x.
SUMS = {
    "sum of the first axis": lambda x: np.sum(x, axis=0),
    "sum of the last axis": lambda x: np.sum(x.T, axis=-1),
    "sum of all": np.sum,
    "sum of all of a part": lambda x: np.sum(x[:, :2]),
    "sum of a transpose": lambda x: np.sum(x.T),
    "sum with kept axes": lambda x: np.sum(x, axis=0, keepdims=True),
    "sum of computed numbers": lambda x: np.sum(2 * x, axis=0),
    "two sums": lambda x: np.sum(x, axis=0) + np.sum(x),
    "mean": lambda x: np.mean(x, axis=0),
    "mean of all": np.mean,
    "add.reduce": np.add.reduce,
    "einsum": lambda x: np.einsum("ij->j", x),
    "einsum with a factor": lambda x: np.einsum("ij,j->j", x, np.ones(3, np.float32)),
    "cumsum": lambda x: np.cumsum(x, axis=0)[-1],
    "trace": lambda x: np.trace(np.broadcast_to(x[:, :1, None], (ROWS, 1, 1))),
    "nansum": lambda x: np.nansum(x, axis=0),
    "average": lambda x: np.average(x, axis=0),
    "where": lambda x: np.sum(x, axis=0, where=x > 0),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", SUMS)
def test_values_and_tangents_keep_their_digits(name, transform):
    x, f = constant(ROWS, 3), SUMS[name]
    found = TRANSFORMS[transform](f, x)
    assert found.dtype == np.float32
    assert error(found, f(x.astype(float))) < EXACT


RULES = {
    "bias": lambda b, x: np.sum((x + b) * x),
    "bias of length one": lambda b, x: np.sum((x + b[:1]) * x),
    "factor": lambda b, x: np.sum(x * b * x),
    "number": lambda b, x: np.sum(x * b[0]),
    "quotient": lambda b, x: np.sum(x / b * x),
    "where": lambda b, x: np.sum(np.where(x > 0, b, x) * x),
    "maximum": lambda b, x: np.sum(np.maximum(x, b) * x),
    "broadcast_to": lambda b, x: np.sum(np.broadcast_to(b, x.shape) * x),
    "tile": lambda b, x: np.sum(np.tile(b, (len(x), 1)) * x),
    "repeat": lambda b, x: np.sum(
        np.repeat(b, len(x) // 2) * x[: 3 * (len(x) // 2) // 3].ravel()[0]
    ),
    "rows": lambda b, x: np.sum(b[np.zeros(len(x), int)] * x[:, 0]),
    "columns": lambda b, x: np.sum(b[None, np.zeros(len(x), int)] * x[:, 0]),
    "take": lambda b, x: np.sum(np.take(b, np.arange(len(x)) % 3) * x[:, 0]),
    "masked": lambda b, x: np.sum(np.stack([b, b])[:, np.arange(len(x)) % 3] * x[:, 0]),
    "einsum": lambda b, x: np.einsum("ij,j->", x * x, b),
    "mean": lambda b, x: np.mean((x + b) * x),
    "var": lambda b, x: np.sum(np.var(x * b, axis=0) + x * b),
    "norm": lambda b, x: np.sum(np.linalg.norm(x * b, axis=0)),
    "log of sum of exp": lambda b, x: np.sum(np.log(np.sum(np.exp(x + b), axis=0))),
    "cumsum": lambda b, x: np.sum(np.cumsum(x * b, axis=0)[-1]),
}
GRADIENTS = {
    "eager": lambda f: ft.grad(f),
    "jit": lambda f: ft.jit(ft.grad(f)),
    "jit to NumPy": lambda f: ft.jit(ft.grad(f), backend="numpy"),
    "jit inside": lambda f: ft.grad(ft.jit(f)),
    "vmap": lambda f: lambda b, x: ft.vmap(ft.grad(f), (0, None))(np.stack([b, b]), x)[1],
    "vmap inside": lambda f: (
        lambda b, x: ft.grad(lambda b: np.sum(ft.vmap(lambda row: f(b, row[None]))(x)))(b)
    ),
    "hessian vector product": lambda f: (
        lambda b, x: (
            ft.jvp(ft.grad(lambda b: f(b, x) + np.sum(b)), (b,), (np.zeros_like(b),))[0] - 1
        )
    ),
}


# Functions that are not a sum over rows, which "vmap inside" takes one by one.
ACROSS_ROWS = {"repeat", "take", "masked", "mean", "var", "norm", "log of sum of exp", "cumsum"}


@pytest.mark.parametrize(
    ("name", "way"),
    [(n, w) for n in RULES for w in GRADIENTS if w != "vmap inside" or n not in ACROSS_ROWS],
)
def test_gradients_of_what_was_broadcast_keep_their_digits(name, way):
    f = RULES[name]
    b, x = np.array([1, 1.25, 0.75], np.float32), constant(ROWS, 3)
    found = GRADIENTS[way](f)(b, x)
    exact = GRADIENTS["eager"](f)(b.astype(float), x.astype(float))
    assert found.dtype == np.float32
    assert np.max(np.abs(found - exact)) <= 4e-6 * np.max(np.abs(exact))


def test_a_large_array_with_gaps_can_be_saved_for_the_sweep():
    x = constant(ROWS, 3)
    found = ft.grad(lambda b: np.sum(b * x[:, 0]))(np.float32(1))
    assert error(found, ROWS * float(TENTH)) < EXACT


# Products.


@pytest.mark.parametrize("rows", [1, 3, 70])
@pytest.mark.parametrize("columns", [None, 1, 4])
@pytest.mark.parametrize("inner", [10_000, 8 * 1024 * 5, ROWS + 1])
def test_products_of_long_rows_keep_their_digits(rows, columns, inner):
    x = np.random.default_rng(0).random((inner, rows), dtype=np.float32)
    y = np.random.default_rng(1).random((inner, columns or 1), dtype=np.float32)
    y = y[:, 0] if columns is None else y
    exact = x.astype(float).T @ y.astype(float)
    for f in (lambda x, y: x.T @ y, lambda x, y: np.einsum("ij,i...->j...", x, y)):
        assert error(ft.vjp(f, x, y)[0], exact) < EXACT
        assert error(ft.jit(f)(x, y), exact) < EXACT
        assert error(ft.jit(f, backend="numpy")(x, y), exact) < EXACT
    weights = np.ones(exact.shape, np.float32)
    gradient = ft.grad(lambda w, x, y: np.sum((x @ w) * y))
    assert error(gradient(weights, x, y), exact) < EXACT
    assert error(ft.jit(gradient)(weights, x, y), exact) < EXACT


SUBSCRIPTS = [
    "ij->j",
    "ij->",
    "ij,ij->j",
    "ij,ij->i",
    "ij,ij->",
    "ij,i->j",
    "ij,j->j",
    "ij,jk->k",
] + [
    "ij,ik->jk",
    "ij,ij,ij->j",
    "ii->",
    "kij,kij->j",
]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_keeps_its_digits(subscripts):
    lengths = {"i": ROWS, "j": 3, "k": 2}
    terms = subscripts.split("->")[0].split(",")
    rng = np.random.default_rng(0)
    if subscripts == "ii->":
        lengths["i"] = 1500
    operands = [rng.random([lengths[x] for x in term], dtype=np.float32) + TENTH for term in terms]
    exact = np.einsum(subscripts, *(x.astype(np.longdouble) for x in operands))
    for transform in (lambda f: lambda *x: ft.vjp(f, *x)[0], ft.jit):
        found = transform(lambda *x: np.einsum(subscripts, *x))(*operands)
        assert found.dtype == np.float32
        assert error(found, exact) < EXACT


@given(data=st.data())
def test_einsum_in_single_and_half_precision_is_einsum(data):
    lengths = {x: data.draw(st.sampled_from([1, 2, 3])) for x in "ijkl"}
    terms = data.draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=4))
    letters = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(letters)))[: data.draw(st.integers(0, len(letters)))]
    dtype = data.draw(st.sampled_from("efF"))
    rng = np.random.default_rng(0)
    operands = tuple(
        rng.integers(-3, 4, [lengths[x] for x in term]).astype(dtype) for term in terms
    )
    subscripts = f"{','.join(terms)}->{output}"
    expected = np.einsum(subscripts, *operands)
    found = exact_einsum(operands, subscripts)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)  # small integers: sums are exact


# Sums over uses, steps and lanes.

STEPS = 20_000


def used_often(x):
    total = np.float32(0)
    for _ in range(STEPS):
        total = total + x * TENTH
    return total


def used_often_in_whole(x):
    total = np.zeros(2, np.float32)
    for _ in range(STEPS):
        total = total + x * TENTH
    return np.sum(total)


def used_often_in_part(x):
    total = np.float32(0)
    for _ in range(STEPS):
        total = total + x[0] * TENTH
    return total


@pytest.mark.parametrize(
    ("f", "x", "exact"),
    [
        (used_often, np.float32(1), 1),
        (used_often_in_whole, np.ones(2, np.float32), [1, 1]),
        (used_often_in_part, np.ones(2, np.float32), [1, 0]),
    ],
)
def test_cotangents_of_many_uses_keep_their_digits(f, x, exact):
    exact = np.array(exact) * STEPS * float(TENTH)
    for found in (ft.grad(f)(x), ft.vmap(ft.grad(f))(np.stack([x, x]))[1]):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, EXACT)


@given(st.lists(st.sampled_from(["whole", "number", "part", "row"]), min_size=2, max_size=300))
def test_an_accumulator_adds_what_it_is_given(kinds):
    for dtype in (np.float16, np.float32, np.float64):
        slot, exact = None, np.zeros((2, 3))
        for k, kind in enumerate(kinds):
            value = dtype(k % 3)
            if kind == "part":
                part = Scattered(value, (2, 3), (1, 2), ())
                exact[1, 2] += value
            elif kind == "row":
                part = Scattered(np.full(3, value), (2, 3), (0,), ())
                exact[0] += value
            else:
                part = np.full((2, 3), value)
                exact += value
            slot = accumulate(slot, part)
        found = slot.settle() if hasattr(slot, "settle") else slot
        if isinstance(found, np.ndarray):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
def test_cotangents_of_what_a_loop_closes_over_keep_their_digits(backend):
    def loss(w, rows):
        return np.sum(ft.scan(lambda carry, row: (carry, np.sum(w * row)), np.float32(0), rows)[1])

    gradient = ft.grad(loss) if backend is None else ft.jit(ft.grad(loss), backend=backend)
    for steps, w in ((STEPS, np.ones(2, np.float32)), (3000, np.ones((), np.complex64))):

        def real(w, rows):
            return np.real(loss(w, rows))

        found = (gradient if w.dtype == np.float32 else ft.grad(real))(w, constant(steps))
        assert found.dtype == w.dtype
        assert error(found, np.full(w.shape, steps * float(TENTH), w.dtype)) < EXACT


def test_half_precision_keeps_what_digits_it_has():
    x = np.full((3000, 2), 0.5, np.float16)
    ones = np.ones(2, np.float16)
    half = np.float16(0.5)

    def uses(b):
        total = half
        for _ in range(3000):
            total = total + np.sum(b[:1] * half)
        return total

    for found, exact in (
        (ft.grad(lambda b: np.sum(x + b))(ones), [3000, 3000]),
        (ft.grad(lambda b: np.sum(x * b))(ones), [1500, 1500]),
        (ft.grad(lambda b: np.sum(b[np.zeros(3000, int)] * x[:, 0]))(ones), [1500, 0]),
        (ft.grad(uses)(ones), [1500, 0]),
        (ft.vjp(lambda x: np.sum(x, axis=0), x)[0], [1500, 1500]),
        (ft.vjp(lambda x: np.cumsum(x, axis=0)[-1], x)[0], [1500, 1500]),
        (ft.vjp(lambda x: np.mean(x, axis=0), x)[0], [0.5, 0.5]),
        (ft.vjp(lambda x: np.einsum("ij->j", x), x)[0], [1500, 1500]),
        (ft.vmap(lambda row: ft.psum(row, "i"), axis_name="i")(x)[0], [1500, 1500]),
        (ft.grad(lambda x: np.mean(x))(np.ones(100_000, np.float16))[:1], [1e-5]),
    ):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, exact, 4e-3)


@pytest.mark.parametrize("collective", [ft.psum, ft.pmean])
def test_collectives_keep_their_digits(collective):
    x = constant(ROWS, 2)
    exact = np.full(2, float(TENTH) * (ROWS if collective is ft.psum else 1))
    over_lanes = ft.vmap(lambda row: collective(row, "i"), axis_name="i")
    for f in (over_lanes, ft.jit(over_lanes), ft.jit(over_lanes, backend="numpy")):
        assert error(f(x)[0], exact) < EXACT


# Many values at few places.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 2), (2, 3)])
def test_values_at_repeated_places_keep_their_digits(shape, dtype):
    count = 20_000
    places = tuple(np.zeros(count, int) for _ in shape[:1])
    values = np.full((count, *shape[1:]), 0.1, dtype)
    found = sum_rows(shape, dtype, places, values)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found[0], values[0].astype("G") * count, 1e-3 if dtype is np.float16 else EXACT
    )
    np.testing.assert_array_equal(found[1:], 0)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("places", [3, 3000])
def test_compiled_gathers_have_exact_transposes(places, backend):
    gradient = ft.jit(ft.grad(lambda x, i, w: np.sum(x[i] * w)), backend=backend)
    for tail in ((), (2,)):
        weights = constant(ROWS, *tail)
        found = gradient(np.ones((places, *tail), np.float32), np.zeros(ROWS, int), weights)
        assert error(found[0], np.full(tail, ROWS * float(TENTH))) < EXACT
        assert not found[1:].any()
