"""functrans.scipy.spatial.distance, held against SciPy and against the laws."""

import numpy as np
import pytest
from scipy.spatial import distance as reference

import functrans as ft
from functrans.scipy.spatial import distance
from tests.support.oracles import assert_trees_close, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(0)
U, V, W = RNG.uniform(0.2, 2.0, size=(3, 4))
A, B = RNG.uniform(0.2, 2.0, size=(6, 4)), RNG.uniform(0.2, 2.0, size=(3, 4))
INVERSE = np.linalg.inv(np.cov(A.T) + np.eye(4))
WEIGHTED = (
    "euclidean",
    "sqeuclidean",
    "cityblock",
    "cosine",
    "correlation",
    "canberra",
    "braycurtis",
)
PAIRS = {
    **{name: (name, (U, V), {}) for name in (*WEIGHTED, "chebyshev", "minkowski", "jensenshannon")},
    **{f"{name} w": (name, (U, V, W), {}) for name in WEIGHTED},
    "minkowski p": ("minkowski", (U, V, np.float64(2.7), W), {}),
    "minkowski 1": ("minkowski", (U, V), {"p": 1}),
    "minkowski inf": ("minkowski", (U, V), {"p": np.inf}),
    "correlation raw": ("correlation", (U, V), {"centered": False}),
    "seuclidean": ("seuclidean", (U, V, W), {}),
    "mahalanobis": ("mahalanobis", (U, V, INVERSE), {}),
    "jensenshannon base": ("jensenshannon", (U, V), {"base": 2.0}),
    "jensenshannon axis": ("jensenshannon", (A, A[::-1]), {"axis": 1, "keepdims": True}),
}


def traced(function, *args):
    return ft.jvp(function, args, tuple(np.zeros_like(arg) for arg in args))[0]


@pytest.mark.parametrize("case", PAIRS)
def test_two_vectors(case):
    name, args, options = PAIRS[case]
    ours = lambda *args: getattr(distance, name)(*args, **options)
    theirs = lambda *args: getattr(reference, name)(*args, **options)
    np.testing.assert_allclose(traced(ours, *args), theirs(*args), rtol=1e-12)
    check_derivatives(ours, args)
    check_lanes(ours, args)
    single = tuple(np.asarray(arg, np.float32)[()] for arg in args)
    if "w" not in case and len(args) == 2:
        got, expected = traced(ours, *single), theirs(*single)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5)


ROWS = [
    *[
        (name, {})
        for name in (*WEIGHTED, "chebyshev", "jensenshannon", "seuclidean", "mahalanobis")
    ],
    *[(name, {"w": W}) for name in (*WEIGHTED, "chebyshev")],
    ("minkowski", {"p": 3.5}),
    ("minkowski", {"p": 3.5, "w": W}),
    ("seuclidean", {"V": W}),
    ("mahalanobis", {"VI": INVERSE}),
    *[(name, {}) for name in ("e", "cb", "cos", "js", "SQE", "cheb")],
]


@pytest.mark.parametrize("metric,options", ROWS, ids=[f"{m} {'+'.join(o)}" for m, o in ROWS])
def test_all_pairs(metric, options):
    for name, arrays in (("cdist", (A, B)), ("pdist", (A,))):
        names, count = list(options), len(arrays)
        ours = lambda *xs, n=name, k=count, o=names: getattr(distance, n)(
            *xs[:k], metric, **dict(zip(o, xs[k:], strict=True))
        )
        theirs = getattr(reference, name)(*arrays, metric, **options)
        args = (*arrays, *(np.asarray(value)[()] for value in options.values()))
        np.testing.assert_allclose(traced(ours, *args), theirs, rtol=1e-11, atol=1e-13)
        if metric == "chebyshev" and options:
            continue
        check_derivatives(ours, args)
        check_lanes(ours, args)


def test_options_that_are_not_traced():
    check_derivatives(lambda a: distance.cdist(a, B, "minkowski", p=3, w=W), (A,))
    check_staging(lambda a, b: distance.cdist(a, b), (A, B))
    single = traced(lambda a: distance.cdist(a, B), A.astype(np.float32))
    assert single.dtype == reference.cdist(A.astype(np.float32), B).dtype == np.float64
    with pytest.raises(ValueError, match="Unknown Distance Metric"):
        ft.grad(lambda a: np.sum(distance.cdist(a, B, "nothing")))(A)
    with pytest.raises(ft.errors.MissingRuleError, match=r"'hamming'.*euclidean"):
        ft.grad(lambda a: np.sum(distance.cdist(a, B, "hamming")))(A)
    with pytest.raises(ft.errors.MissingRuleError, match="out="):
        ft.grad(lambda a: np.sum(distance.cdist(a, B, out=np.zeros((6, 3)))))(A)
    with pytest.raises(ValueError, match="columns"):
        ft.grad(lambda a: np.sum(distance.cdist(a, B[:, :2])))(A)
    with pytest.raises(ValueError, match="too small"):
        ft.grad(lambda a: np.sum(distance.pdist(a, "mahalanobis")))(A[:3])


def test_metrics_that_users_write():
    def metric(u, v, power=2):
        return np.sum(np.abs(u - v) ** power)

    for name, arrays in (("cdist", (A, B)), ("pdist", (A,))):
        ours = lambda *xs, n=name: getattr(distance, n)(*xs, metric, power=3)
        expected = getattr(reference, name)(*arrays, metric, power=3)
        np.testing.assert_allclose(traced(ours, *arrays), expected, rtol=1e-12)
        check_derivatives(ours, arrays)
    scaled = ft.grad(lambda s: np.sum(distance.cdist(A, B, lambda u, v: s * np.sum(u * v))))(2.0)
    np.testing.assert_allclose(scaled, np.sum(A @ B.T))


@pytest.mark.parametrize(
    "metric", ["euclidean", "minkowski", "mahalanobis", "seuclidean", "canberra"]
)
def test_where_vectors_coincide_the_derivative_is_zero(metric):
    options = {"p": 3} if metric == "minkowski" else {}
    gradient = ft.grad(lambda a: np.trace(distance.cdist(a, a, metric, **options)))(A)
    np.testing.assert_array_equal(gradient, 0)
    zeros = np.zeros(4)
    np.testing.assert_array_equal(ft.grad(lambda u: distance.canberra(u, zeros))(zeros), 0)
    np.testing.assert_allclose(ft.grad(distance.jensenshannon)(U, 2 * U), 0, atol=1e-7)


def test_squareform():
    vector, matrix = RNG.uniform(size=6), RNG.uniform(size=(4, 4))
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    for x in (vector, matrix, np.zeros(0)):
        np.testing.assert_array_equal(traced(distance.squareform, x), reference.squareform(x))
        if x.size:
            check_staging(distance.squareform, (x,))
    check_derivatives(distance.squareform, (vector,))
    upper = ft.grad(lambda m: distance.squareform(m, checks=False) @ vector)(matrix)
    np.testing.assert_array_equal(upper, np.triu(reference.squareform(vector)))
    both = lambda v: distance.squareform(distance.squareform(v))
    np.testing.assert_array_equal(ft.jacrev(both)(vector), np.eye(6))
    lanes = RNG.uniform(size=(3, 6))
    assert_trees_close(
        ft.vmap(distance.squareform)(lanes), loop_vmap(reference.squareform)(lanes), 1e-15
    )
    for wrong, message in ((np.zeros(4), "binomial"), (np.zeros((2, 3)), "square")):
        with pytest.raises(ValueError, match=message):
            ft.jvp(distance.squareform, (wrong,), (wrong,))
    with pytest.raises(ValueError, match="Forcing"):
        ft.jvp(lambda v: distance.squareform(v, "tovector"), (vector,), (vector,))


def test_plain_values_go_to_scipy():
    assert distance.cdist(A, B, "hamming").shape == (6, 3)
    assert distance.euclidean([1, 2], [4, 6]) == 5.0
