"""einsum in machine code: products, sums, diagonals and matrix products of any letters."""

import numpy as np
import pytest

from functrans import grad, jit, scan, vmap
from tests.support.oracles import assert_trees_close

pytest.importorskip("llvmlite")

LENGTHS = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1}
SUBSCRIPTS = [
    # one operand
    "ab->ba",
    "ab->a",
    "ab->",
    "abc->ca",
    "aa->a",
    "aa->",
    "aab->ab",
    "abab->ba",
    "aaab->b",
    # two operands
    "a,a->",
    "a,b->ab",
    "a,b->ba",
    "a,b->",
    ",ab->ba",
    "ab,b->a",
    "b,ab->a",
    "ab,bc->ac",
    "ab,bc->ca",
    "ba,cb->ac",
    "ab,ab->ab",
    "ab,ab->a",
    "ab,ba->",
    "ab,bc->",
    "ab,cd->bd",
    "dab,dbc->dac",
    "abd,bcd->acd",
    "dab,db->da",
    "abc,abd->cd",
    "abc,bcd->ad",
    "abcd,cd->ab",
    "abcd,dcb->a",
    "ab,aa->b",
    "aba,bcc->ac",
    "ea,ab->eb",
    # more
    "a,ab,b->",
    "ab,bc,cd->ad",
    "ab,ac,ad->bcd",
    "aa,bb,cc->",
]


def operands(subscripts, dtype=np.float64):
    draw = np.random.default_rng(len(subscripts))
    terms = subscripts.split("->")[0].split(",")
    return [
        draw.normal(scale=3, size=[LENGTHS[letter] for letter in term]).astype(dtype)
        for term in terms
    ]


def native(f, *args):
    """The results of a function in machine code alone."""
    compiled = jit(f, backend="native")
    assert "def compiled" not in compiled.trace(*args).code
    return compiled(*args)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_values(subscripts, dtype):
    args = operands(subscripts, dtype)
    expected = np.einsum(subscripts, *args)
    found = native(lambda *args: np.einsum(subscripts, *args), *args)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind == "f":
        eps = np.finfo(dtype).eps
        scale = np.einsum(subscripts, *map(np.abs, args))
        assert np.all(np.abs(found - expected) <= 8 * eps * scale)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_gradients(subscripts):
    args = operands(subscripts)

    def f(args):
        return (np.einsum(subscripts, *args) ** 2).sum()

    assert_trees_close(native(grad(f), args), grad(f)(args), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("subscripts", ["ab,bc->ac", "ab,ab->b", "aa->a", "ab,b->a"])
def test_lanes(subscripts):
    args = [np.stack([x, 2 * x, x**2]) for x in operands(subscripts)]
    f = vmap(lambda *args: np.einsum(subscripts, *args))
    assert_trees_close(native(f, *args), f(*args), rtol=1e-13, atol=1e-13)


def test_mixed_dtypes_are_those_of_numpy():
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.linspace(0, 1, 3, dtype=np.float32)
    for f in (
        lambda x, y: np.einsum("ab,b->a", x, y),
        lambda x, y: np.einsum("ab,ab->ba", x, x),
        lambda x, y: np.einsum("b,ab->", y, x),
    ):
        expected, found = f(x, y), native(f, x, y)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_integers_wrap_as_in_numpy():
    x = np.full((3, 4), 2**30, np.int32)
    for subscripts in ("ab,ab->a", "ab,ab->ab", "ab,cb->ac"):
        f = lambda x: np.einsum(subscripts, x, x)  # noqa: B023
        np.testing.assert_array_equal(native(f, x), f(x))
    np.testing.assert_array_equal(native(lambda x: np.einsum("ab->a", x), x), np.einsum("ab->a", x))


def test_a_length_of_1_is_broadcast():
    x, y = np.arange(1.0, 4.0).reshape(3, 1), np.arange(12.0).reshape(3, 4)
    for subscripts in ("ab,ab->a", "ab,ab->ab", "ab,ab->"):
        f = lambda x, y: np.einsum(subscripts, x, y)  # noqa: B023
        np.testing.assert_allclose(native(f, x, y), f(x, y), rtol=1e-14)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", ((300, 200), (200, 100))),
        ("ij,kj->ki", ((300, 200), (100, 200))),
        ("nij,njk->nik", ((40, 70, 30), (40, 30, 50))),
        ("ni,nj->ij", ((5000, 8), (5000, 6))),
        ("ni,ni->n", ((500, 300), (500, 300))),
        ("ijk,klm->ijlm", ((8, 9, 30), (30, 7, 6))),
        ("i,i->", ((100_000,), (100_000,))),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_operands(subscripts, shapes, dtype):
    draw = np.random.default_rng(0)
    args = [draw.normal(size=shape) for shape in shapes]
    exact = np.einsum(subscripts, *args, optimize=True)
    scale = np.einsum(subscripts, *map(np.abs, args), optimize=True)
    found = native(lambda *args: np.einsum(subscripts, *args), *[x.astype(dtype) for x in args])
    assert found.dtype == dtype
    assert np.all(np.abs(found - exact) <= 16 * np.finfo(dtype).eps * scale)


def test_a_loop_with_einsum_is_native():
    def f(x, w):
        def step(x, w):
            x = np.tanh(np.einsum("ij,j->i", w, x))
            return x, np.einsum("i,i->", x, x)

        x, sizes = scan(step, x, w)
        return x.sum() + sizes.sum()

    draw = np.random.default_rng(1)
    x, w = draw.normal(size=4), draw.normal(size=(6, 4, 4))
    assert_trees_close(native(f, x, w), f(x, w), rtol=1e-12)
    assert_trees_close(native(grad(f), x, w), grad(f)(x, w), rtol=1e-12)
