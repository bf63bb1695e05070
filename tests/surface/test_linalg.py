"""np.linalg on traced values: NumPy's results, derivatives by two oracles, lanes, graphs, and edges.

Eigenvectors and singular vectors are unique up to phases only, so the functions that are compared
with finite differences do not depend on these.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy import linalg

import functrans as ft
import functrans.numpy as fnp
from functrans.ops.factorization import solve as solve_primitive
from tests.support.marks import of_constants
from tests.support.oracles import (
    assert_trees_close,
    inner_product,
    leaves,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jvp,
)


def dagger(x):
    return np.conj(x.mT)


def hermitian(x):
    return (x + dagger(x)) / 2


def definite(x):
    """A Hermitian positive definite matrix for any square one."""
    return x @ dagger(x) + np.eye(x.shape[-1])


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A function of matrices of these shapes, whose result does not depend on a choice of phases.

    shift: this much of the identity is added, to stay away from singular matrices.
    stacks: also takes stacks of matrices.
    staged: its shapes and dtypes do not depend on values.
    """

    function: Any
    shapes: tuple[tuple[int, ...], ...]
    shift: float = 0.0
    stacks: bool = True
    staged: bool = True
    complexes: bool = True

    def sample(self, seed, lead=(), complexes=False):
        rng = np.random.default_rng(seed)

        def draw(shape):
            x = rng.uniform(-1, 1, lead + shape)
            if complexes:
                x = x + 1j * rng.uniform(-1, 1, lead + shape)
            return x + self.shift * np.eye(*shape) if len(shape) == 2 else x

        return tuple(draw(shape) for shape in self.shapes)


CASES: dict[str, Case] = {}


def add(name, function, *shapes, **facts):
    CASES[name] = Case(function, shapes, **facts)


SQUARE = (3, 3)
add("det", linalg.det, SQUARE)
add("det of order 1", linalg.det, (1, 1))
add("det of order 2", linalg.det, (2, 2))
add("det of order 4", linalg.det, (4, 4))
add("slogdet", lambda a: tuple(linalg.slogdet(a)), SQUARE)
add("inv", linalg.inv, SQUARE, shift=2.0)
add("solve", linalg.solve, SQUARE, (3, 2), shift=2.0)
add("solve for a vector", linalg.solve, SQUARE, (3,), shift=2.0, stacks=False)
add("solve stacks", lambda a, b: linalg.solve(a[None], b), SQUARE, (2, 3, 1), shift=2.0)
add("solve many", lambda a, b: linalg.solve(a, b[0]), (2, 3, 3), (2, 3, 2), stacks=False)
add("pinv tall", linalg.pinv, (4, 2))
add("pinv wide", linalg.pinv, (2, 4))
add("pinv square", linalg.pinv, SQUARE, shift=2.0)
add("pinv hermitian", lambda a: linalg.pinv(hermitian(a), hermitian=True), SQUARE, shift=2.0)
add("pinv of rank 1", lambda a, b: linalg.pinv(a @ b, rcond=1e-4), (3, 1), (1, 4))
add("pinv rtol", lambda a: linalg.pinv(a, rtol=None), (3, 2))
TUPLE_OF_THREE = lambda a, b: [linalg.lstsq(a, b)[k] for k in (0, 1, 3)]
add("lstsq tall", TUPLE_OF_THREE, (4, 2), (4, 3), stacks=False, staged=False)
add("lstsq tall vector", TUPLE_OF_THREE, (4, 2), (4,), stacks=False, staged=False)
add("lstsq wide", TUPLE_OF_THREE, (2, 4), (2, 3), stacks=False)
add("lstsq square", TUPLE_OF_THREE, SQUARE, (3,), shift=2.0, stacks=False)
add("cholesky", lambda a: linalg.cholesky(definite(a)), SQUARE)
add("cholesky upper", lambda a: linalg.cholesky(definite(a), upper=True), SQUARE)
for mode in ("reduced", "complete"):
    qr = lambda a, mode=mode: tuple(linalg.qr(a, mode))
    add(f"qr {mode} square", qr, SQUARE, shift=2.0)
    add(f"qr {mode} wide", qr, (2, 4))
add("qr tall", lambda a: tuple(linalg.qr(a)), (4, 2))
add("qr r tall", lambda a: linalg.qr(a, "r"), (4, 2))
add("qr r wide", lambda a: linalg.qr(a, "r"), (2, 3))


def qr_complete(a):
    q, r = linalg.qr(a, "complete")
    n = a.shape[-1]
    rest = q[..., n:]
    return q[..., :n], r, rest @ dagger(rest)


add("qr complete tall", qr_complete, (4, 2))


def svd_parts(a, **options):
    """The singular values, and what of the vectors does not depend on phases."""
    u, s, vh = linalg.svd(a, **options)
    k = s.shape[-1]
    more_u, more_vh = u[..., k:], vh[..., k:, :]
    return (
        s,
        (u[..., :k] * np.sin(s)[..., None, :]) @ vh[..., :k, :],
        np.abs(u[..., :k]) ** 2,
        np.abs(vh[..., :k, :]) ** 2,
        more_u @ dagger(more_u),
        dagger(more_vh) @ more_vh,
    )


for shape in ((3, 3), (4, 2), (2, 4)):
    for full in (True, False):
        add(f"svd {shape} full={full}", partial(svd_parts, full_matrices=full), shape)
    add(f"svdvals {shape}", linalg.svdvals, shape)
    add(f"svd {shape} values", lambda a: linalg.svd(a, compute_uv=False), shape)
add("svd hermitian", lambda a: svd_parts(hermitian(a), hermitian=True), SQUARE)
add(
    "svd hermitian values",
    lambda a: linalg.svd(hermitian(a), compute_uv=False, hermitian=True),
    SQUARE,
)


def eigh_parts(a, uplo):
    w, v = linalg.eigh(hermitian(a), uplo)
    return w, (v * np.exp(w)[..., None, :]) @ dagger(v), np.abs(v) ** 2


for uplo in "LU":
    add(f"eigh {uplo}", partial(eigh_parts, uplo=uplo), SQUARE)
    add(f"eigvalsh {uplo}", lambda a, uplo=uplo: linalg.eigvalsh(hermitian(a), uplo), SQUARE)


# The same of matrices that are not Hermitian: what is read is one triangle, and a real diagonal.


def svd_of_hermitian(a):
    u, s, vh = linalg.svd(a, hermitian=True)
    return s, (u * np.sin(s)[..., None, :]) @ vh


def spectral(a, uplo):
    return ft.spectral_function(np.tanh, a, uplo)


for uplo in "LU":
    add(f"eigh {uplo} as read", lambda a, uplo=uplo: linalg.eigvalsh(a, uplo), SQUARE)
    add(
        f"eigenvectors {uplo} as read",
        lambda a, uplo=uplo: np.abs(linalg.eigh(a, uplo)[1]) ** 2,
        SQUARE,
    )
    add(f"spectral_function {uplo}", partial(spectral, uplo=uplo), SQUARE)
add("cholesky as read", linalg.cholesky, SQUARE, shift=6.0)
add("cholesky upper as read", lambda a: linalg.cholesky(a, upper=True), SQUARE, shift=6.0)
add("pinv hermitian as read", lambda a: linalg.pinv(a, hermitian=True), SQUARE, shift=2.0)
add("svd hermitian as read", svd_of_hermitian, SQUARE)


def real_eigenvalues(a):
    """A matrix similar to a symmetric one, so that its eigenvalues are real."""
    scale = np.arange(1.0, a.shape[-1] + 1)
    return hermitian(a) * scale[:, None] / scale


# Before NumPy 2.5, whether results are real or complex depends on the values.
ALWAYS_COMPLEX = linalg.eigvals(np.eye(1)).dtype.kind == "c"
add("eig", lambda a: tuple(linalg.eig(a)), SQUARE, staged=ALWAYS_COMPLEX)
add("eigvals", linalg.eigvals, SQUARE, staged=ALWAYS_COMPLEX)
add("eig of complex", lambda a: tuple(linalg.eig(a + 0.5j * a.mT)), SQUARE)
add("eig real", lambda a: tuple(linalg.eig(real_eigenvalues(a))), SQUARE, staged=ALWAYS_COMPLEX)
add("eigvals real", lambda a: linalg.eigvals(real_eigenvalues(a)), SQUARE, staged=ALWAYS_COMPLEX)

for order in (None, "fro", "f", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    norm = partial(linalg.norm, ord=order)
    add(f"norm {order} of a matrix", partial(norm, axis=(-2, -1)), (3, 2))
    add(f"norm {order} axes swapped", partial(norm, axis=(-1, -2), keepdims=True), (3, 2))
    add(f"norm {order} no axis", norm, (2, 3), stacks=False)
    add(f"norm {order} outer axes", partial(norm, axis=(2, 0)), (2, 2, 3), stacks=False)
for order in (None, 0.5, 1, 2, 3, 3.5, -1, -2, -3, np.inf, -np.inf):
    norm = partial(linalg.norm, ord=order)
    add(f"norm {order} of a vector", norm, (4,), stacks=False)
    add(f"norm {order} along an axis", partial(norm, axis=-2, keepdims=True), (3, 2))
    add(
        f"vector_norm {order}",
        lambda x, order=order: linalg.vector_norm(x, ord=order, axis=(-1, -2), keepdims=True),
        (3, 2),
    )
add("vector_norm", linalg.vector_norm, (3, 2), stacks=False)
add("matrix_norm", linalg.matrix_norm, (3, 2))
add("matrix_norm nuc", lambda x: linalg.matrix_norm(x, ord="nuc", keepdims=True), (3, 2))
for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    add(f"cond {order}", partial(linalg.cond, p=order), SQUARE, shift=1.0)
add("cond tall", linalg.cond, (4, 3))

for power in (0, 1, 2, 3, 5, -1, -2):
    add(
        f"matrix_power {power}",
        lambda a, n=power: linalg.matrix_power(a, n) + a,
        SQUARE,
        shift=2.0,
    )
add("multi_dot", lambda *xs: linalg.multi_dot(xs), (2, 3), (3, 4), (4, 2), stacks=False)
add("multi_dot of 2", lambda *xs: linalg.multi_dot(xs), (2, 3), (3, 4), stacks=False)
FIVE = ((2, 3), (3, 1), (1, 2), (2, 3), (3, 2))
add("multi_dot of 5", lambda *xs: linalg.multi_dot(xs), *FIVE, stacks=False)
add("multi_dot vectors", lambda *xs: linalg.multi_dot(xs), (2,), (2, 3), (3,), stacks=False)
add("multi_dot row", lambda *xs: linalg.multi_dot(xs), (2,), (2, 3), (3, 4), stacks=False)
add("tensorinv", partial(linalg.tensorinv, ind=2), (2, 3, 6), stacks=False)
add("tensorinv 1", partial(linalg.tensorinv, ind=1), (6, 3, 2), stacks=False)
add("tensorsolve", linalg.tensorsolve, (2, 3, 6), (2, 3), stacks=False)
add(
    "tensorsolve axes",
    partial(linalg.tensorsolve, axes=(0, 2)),
    (2, 2, 2, 2),
    (2, 2),
    stacks=False,
)
add("vecdot", np.vecdot, (2, 3), (2, 3))
add("vecdot axis", lambda x, y: np.vecdot(x, y, axis=-2), (2, 3), (2, 3))
add("linalg.vecdot", lambda x, y: linalg.vecdot(x, y, axis=0), (2, 3), (2, 3), stacks=False)
add("vecdot broadcast", np.vecdot, (2, 1, 3), (4, 3), stacks=False)
if hasattr(np, "matvec"):  # since NumPy 2.2
    add("matvec", np.matvec, (2, 3), (3,))
    add("matvec stacks", np.matvec, (2, 1, 2, 3), (4, 3), stacks=False)
    add("vecmat", np.vecmat, (2,), (2, 3))
    add("vecmat stacks", np.vecmat, (4, 2), (3, 1, 2, 3), stacks=False)
add("linalg.matmul", linalg.matmul, (2, 3), (3, 2))
add("linalg.outer", linalg.outer, (2,), (3,), stacks=False)
add("linalg.trace", lambda x: linalg.trace(x, offset=1), (3, 3))
add("linalg.diagonal", lambda x: linalg.diagonal(x, offset=-1), (3, 3))
add("linalg.cross", lambda x, y: linalg.cross(x, y, axis=-2), (3, 2), (3, 2))
add("linalg.cross broadcast", linalg.cross, (2, 3), (3,), stacks=False)
add("linalg.tensordot", lambda x, y: linalg.tensordot(x, y, axes=1), (2, 3), (3, 2), stacks=False)
add("linalg.matrix_transpose", linalg.matrix_transpose, (2, 3))

EVERY_CASE = pytest.mark.parametrize("name", CASES)
SEED = 3


def variants(case):
    """Arguments of every kind that the case takes."""
    yield case.sample(SEED)
    if case.complexes:
        yield case.sample(SEED, complexes=True)
    if case.stacks:
        yield case.sample(SEED, (2,))
        yield case.sample(SEED, (2,), complexes=True)


def direction(seed, tree):
    rng = np.random.default_rng(seed)

    def along(leaf):
        x = rng.uniform(-1, 1, np.shape(leaf))
        return x + 1j * rng.uniform(-1, 1, np.shape(leaf)) if np.iscomplexobj(leaf) else x

    return map_leaves(along, tree)


# --- laws ----------------------------------------------------------------------------------------


@EVERY_CASE
def test_values_are_those_of_numpy_and_tangents_numerical(name):
    f = CASES[name].function
    for args in variants(CASES[name]):
        tangents = direction(1, args)
        value, pushed = ft.jvp(f, args, tangents)
        assert_trees_close(value, f(*args), rtol=1e-11, atol=1e-12, dtypes=True)
        assert_trees_close(pushed, numerical_jvp(f, args, tangents), rtol=1e-6, atol=1e-7)
        _, pushforward = ft.linearize(f, *args)
        assert_trees_close(pushforward(*tangents), pushed, rtol=1e-10, atol=1e-12)


@EVERY_CASE
def test_pullbacks_are_transposes_and_numerical_gradients(name):
    f = CASES[name].function
    for k, args in enumerate(variants(CASES[name])):
        out, pull = ft.vjp(f, *args)
        g = direction(2, out)
        pulled = pull(g)
        assert [x.dtype for x in pulled] == [x.dtype for x in args]
        tangents = direction(3, args)
        pushed = ft.jvp(f, args, tangents)[1]
        np.testing.assert_allclose(
            inner_product(pushed, g).real,
            inner_product(tangents, pulled).real,
            rtol=1e-8,
            atol=1e-9,
        )
        if k == 0:
            loss = lambda *args, g=g: inner_product(f(*args), g).real
            assert_trees_close(pulled, numerical_gradient(loss, args), rtol=1e-6, atol=1e-7)


def loss_of(f):
    def loss(*args):
        return sum(np.sum(np.abs(leaf) ** 2 * (1 + leaf.real)) for leaf in leaves(f(*args)))

    return loss


@EVERY_CASE
def test_second_derivatives_by_all_orders_of_modes(name):
    case = CASES[name]
    for complexes in (False, True):
        args = case.sample(SEED, complexes=complexes)
        loss = loss_of(case.function)
        everything = tuple(range(len(args)))
        gradient = ft.grad(loss, everything)
        along = direction(4, args)
        expected = numerical_jvp(gradient, args, along)
        assert_trees_close(ft.jvp(gradient, args, along)[1], expected, rtol=1e-5, atol=1e-6)
        slope = lambda *args, along=along, loss=loss: ft.jvp(loss, args, along)[1]
        assert_trees_close(ft.grad(slope, everything)(*args), expected, rtol=1e-5, atol=1e-6)

        def towards(*args, along=along, gradient=gradient):  # the slope, by reverse mode
            parts = zip(gradient(*args), along, strict=True)
            return sum(np.sum((part * tangent).real) for part, tangent in parts)

        assert_trees_close(ft.grad(towards, everything)(*args), expected, rtol=1e-5, atol=1e-6)


@EVERY_CASE
def test_higher_derivatives_by_forward_mode_alone(name):
    """Of the results themselves, along lines: the second and the third derivative."""
    f = CASES[name].function
    for args in variants(CASES[name]):
        u, v = direction(5, args), direction(6, args)
        first = lambda *args, u=u: ft.jvp(f, args, u)[1]
        second = lambda *args, v=v, first=first: ft.jvp(first, args, v)[1]
        assert_trees_close(second(*args), numerical_jvp(first, args, v), rtol=1e-5, atol=1e-6)
        third = ft.jvp(second, args, u)[1]
        assert_trees_close(third, numerical_jvp(second, args, u), rtol=1e-4, atol=1e-5)


@EVERY_CASE
def test_lanes_are_a_loop(name):
    case = CASES[name]
    f = case.function
    lanes = [case.sample(seed) for seed in (SEED, SEED + 1, SEED + 2)]
    loss = loss_of(f)
    count = len(case.shapes)
    for axis in (0, -1):
        stacked = tuple(np.stack(column, axis) for column in zip(*lanes, strict=True))
        ways = [(axis,) * count] + [
            tuple(axis if j == k else None for j in range(count)) for k in range(count)
        ]
        for in_axes in ways:
            args = tuple(
                x if way is not None else one
                for x, one, way in zip(stacked, lanes[0], in_axes, strict=True)
            )
            expected = loop_vmap(f, in_axes)(*args)
            mapped = ft.vmap(f, in_axes)(*args)
            assert_trees_close(mapped, expected, rtol=1e-9, atol=1e-11, dtypes=True)
            gradient = ft.grad(loss, tuple(range(count)))
            assert_trees_close(
                ft.vmap(gradient, in_axes)(*args),
                loop_vmap(gradient, in_axes)(*args),
                rtol=1e-7,
                atol=1e-9,
            )


@EVERY_CASE
def test_graphs_compute_the_function_and_its_gradient(name):
    case = CASES[name]
    f = case.function
    args, others = case.sample(SEED), case.sample(SEED + 5)
    if not case.staged:
        with pytest.raises(ft.errors.StagingError):
            ft.make_graph(f)(*args)
        return
    graph = ft.make_graph(f)(*args)
    graph.check()
    expected = f(*others)
    assert_trees_close(graph(*others), expected, rtol=1e-11, atol=1e-12, dtypes=True)
    foreseen = [(leaf.shape, leaf.dtype) for leaf in leaves(ft.eval_shape(f, *args))]
    assert foreseen == [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves(expected)]
    gradient = ft.grad(loss_of(f))
    of_gradient = ft.make_graph(gradient)(*args)
    of_gradient.check()
    assert_trees_close(of_gradient(*others), gradient(*others), rtol=1e-7, atol=1e-9)


@EVERY_CASE
def test_single_precision_stays(name):
    case = CASES[name]
    f = case.function
    for complexes in (False, True):
        dtype = np.complex64 if complexes else np.float32
        args = tuple(x.astype(dtype) for x in case.sample(SEED, complexes=complexes))
        out, pull = ft.vjp(f, *args)
        assert_trees_close(out, f(*args), rtol=1e-3, atol=1e-3, dtypes=True)
        g = map_leaves(np.ones_like, out)
        pulled = pull(g)
        assert all(x.dtype == dtype for x in pulled)
        wide = tuple(x.astype(np.result_type(dtype, np.float64)) for x in args)
        out, pull = ft.vjp(f, *wide)
        assert_trees_close(pulled, pull(map_leaves(np.ones_like, out)), rtol=2e-2, atol=2e-2)


# --- what NumPy returns and raises ---------------------------------------------------------------

MATRIX = np.array([[2.0, -1.0, 0.5], [0.3, 1.5, -0.7], [0.9, 0.2, 1.1]])


@pytest.mark.parametrize("name", ["eig", "eigh", "qr", "svd", "slogdet"])
def test_results_are_the_named_tuples_of_numpy(name):
    f = getattr(linalg, name)
    expected = f(MATRIX)
    for result in (
        ft.jvp(f, (MATRIX,), (MATRIX,))[0],
        ft.vjp(f, MATRIX)[0],
        ft.vmap(f)(MATRIX[None]),
    ):
        assert type(result) is type(expected)
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(np.reshape(one, np.shape(other)), other, atol=1e-14)


def test_vectors_are_those_of_numpy():
    stack = np.random.default_rng(0).uniform(-1, 1, (2, 5, 3))
    for f in (
        linalg.svd,
        lambda a: linalg.svd(a, full_matrices=False),
        lambda a: linalg.svd(a.mT),
        lambda a: linalg.svd(a @ a.mT, hermitian=True),
        linalg.qr,
        lambda a: linalg.qr(a, "complete"),
        lambda a: linalg.qr(a.mT, "complete"),
        lambda a: linalg.eigh(a @ a.mT),
        lambda a: linalg.eig(a[..., :3, :]),
        lambda a: linalg.eig(a @ a.mT),
    ):
        for x in (stack, stack * (1 + 0.5j)):
            value = ft.jvp(f, (x,), (x,))[0]
            assert_trees_close(value, f(x), rtol=1e-12, atol=1e-13, dtypes=True)


def test_the_rank_is_constant():
    stack = np.stack([np.ones((3, 3)), np.eye(3), np.zeros((3, 3))])
    np.testing.assert_array_equal(ft.vmap(linalg.matrix_rank)(stack), [1, 3, 0])
    np.testing.assert_array_equal(ft.vmap(linalg.matrix_rank, 1)(stack), [2, 2, 2])
    for options in ({"tol": 0.5}, {"rtol": 0.4}, {"hermitian": True}):
        rank = partial(linalg.matrix_rank, **options)
        np.testing.assert_array_equal(ft.vmap(rank)(stack), loop_vmap(rank)(stack))
    gradient = ft.grad(lambda a: np.sum(a) * linalg.matrix_rank(a))(np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, np.ones((2, 3)))
    vectors = np.array([[0.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(ft.vmap(linalg.matrix_rank)(vectors), [0, 1])
    assert linalg.matrix_rank(vectors[0]) == 0


def test_least_squares_gives_rank_and_residuals_as_numpy():
    rng = np.random.default_rng(1)
    for a, b in (
        (rng.uniform(-1, 1, (5, 3)), rng.uniform(-1, 1, (5, 2))),
        (np.ones((4, 2)), rng.uniform(-1, 1, 4)),
        (np.zeros((3, 0)), np.ones(3)),
        (np.zeros((0, 3)), np.ones((0, 2))),
        (rng.uniform(-1, 1, (5, 3)).astype(np.float32), np.ones(5)),
    ):
        expected = linalg.lstsq(a, b)
        result = ft.vjp(linalg.lstsq, a, b)[0]
        assert_trees_close(result, expected, rtol=1e-6, atol=1e-6, dtypes=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: linalg.inv(a * 0),
        lambda a: linalg.solve(np.ones((3, 3)), a),
        lambda a: linalg.cholesky(-definite(a)),
        lambda a: linalg.inv(a[:2]),
        lambda a: linalg.det(a[0]),
        lambda a: linalg.svd(a[0]),
        lambda a: linalg.eigh(a[:2]),
        lambda a: linalg.qr(a[0]),
        lambda a: linalg.qr(a, "thin"),
        lambda a: linalg.eigvalsh(a, "X"),
        lambda a: linalg.solve(a, np.ones(2)),
        lambda a: linalg.lstsq(a, np.ones(2)),
        lambda a: linalg.lstsq(a[None], np.ones((1, 3))),
        lambda a: linalg.norm(a, 3),
        lambda a: linalg.norm(a, "fro", axis=0),
        lambda a: linalg.norm(a[None], 2),
        lambda a: linalg.norm(a, axis=(0, 0)),
        lambda a: linalg.norm(a, axis="x"),
        lambda a: linalg.cond(a[:0]),
        lambda a: linalg.cond(a[:2], 1),
        lambda a: linalg.matrix_power(a, 0.5),
        lambda a: linalg.multi_dot([a]),
        lambda a: linalg.multi_dot([a, a[None], a]),
        lambda a: linalg.tensorinv(a, 0),
        lambda a: linalg.tensorsolve(a, np.ones(2)),
        lambda a: linalg.outer(a, a),
        lambda a: linalg.cross(a[:, :2], a[:, :2]),
        lambda a: linalg.pinv(a, rcond=1e-3, rtol=1e-3),
        lambda a: linalg.matrix_rank(a, 1.0, rtol=1.0),
        lambda a: linalg.eig(a * np.nan),
        lambda a: linalg.det(a.astype(np.float16)),
    ],
)
def test_what_numpy_refuses_is_refused_with_the_same_error(call):
    with pytest.raises(Exception) as expected:
        call(MATRIX)
    for transform in (lambda f: ft.vjp(f, MATRIX), lambda f: ft.vmap(f)(MATRIX[None])):
        with pytest.raises(type(expected.value)):
            transform(call)


def test_raw_qr_is_refused_with_advice():
    with pytest.raises(ft.errors.MissingRuleError, match=r"mode='raw'.*Use mode='reduced'"):
        ft.vmap(lambda a: linalg.qr(a, "raw"))(MATRIX[None])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (3, 0), (0, 3)])
@pytest.mark.parametrize(
    "name",
    [
        "det",
        "slogdet",
        "inv",
        "cholesky",
        "eigh",
        "eig",
        "eigvalsh",
        "eigvals",
        "qr",
        "svd",
        "svdvals",
        "pinv",
    ],
)
def test_empty_matrices(name, shape):
    f, a = getattr(linalg, name), np.zeros(shape)
    try:
        expected = f(a)
    except linalg.LinAlgError:
        with pytest.raises(linalg.LinAlgError):
            ft.vjp(f, a)
        return
    value, pushed = ft.jvp(f, (a,), (a,))
    assert_trees_close(value, expected, dtypes=True)
    assert_trees_close(pushed, map_leaves(np.zeros_like, expected), dtypes=True)
    out, pull = ft.vjp(f, a)
    assert_trees_close(pull(out)[0], a, dtypes=True)
    assert_trees_close(ft.vmap(f)(np.zeros((2, *shape))), f(np.zeros((2, *shape))), dtypes=True)


def test_integers_become_floats_in_lanes():
    lanes = np.array([[[1, 2], [3, 4]], [[2, 0], [0, 5]]])
    for f in (linalg.det, linalg.inv, linalg.eigvals, linalg.svdvals, linalg.norm, linalg.cond):
        assert_trees_close(ft.vmap(f)(lanes), loop_vmap(f)(lanes), dtypes=True)


def test_lanes_with_real_and_complex_eigenvalues_part_ways():
    lanes = np.array([[[0.0, 1.0], [-1.0, 0.0]], [[1.0, 0.5], [0.0, 2.0]]])
    assert_trees_close(ft.vmap(linalg.eigvals)(lanes), np.array([[1j, -1j], [1, 2]]))


def test_lanes_of_right_sides_share_one_factorization(monkeypatch):
    seen = []
    original = solve_primitive.impl
    monkeypatch.setattr(
        solve_primitive, "impl", lambda a, b: seen.append((a.shape, b.shape)) or original(a, b)
    )
    lanes = np.random.default_rng(2).uniform(-1, 1, (6, 3, 2))
    solved = ft.vmap(lambda b: linalg.solve(MATRIX, b))(lanes)
    assert seen == [((3, 3), (3, 12))]
    assert_trees_close(solved, original(MATRIX, lanes), rtol=1e-12)


# --- conventions ---------------------------------------------------------------------------------


def test_gradients_of_symmetric_compositions_are_symmetric():
    # Σ w^3 = tr A^3, and log det A = 2 Σ log l_ii
    a = definite(MATRIX)
    for f, expected in (
        (lambda a: np.sum(linalg.eigvalsh(a) ** 3), 3 * a @ a),
        (lambda a: np.sum(linalg.eigh(a)[0] ** 3), 3 * a @ a),
        (lambda a: np.trace(ft.spectral_function(lambda w: w**3, a)), 3 * a @ a),
        (lambda a: 2 * np.sum(np.log(np.diag(linalg.cholesky(a)))), linalg.inv(a)),
        (
            lambda a: 2 * np.sum(np.log(np.diag(linalg.cholesky(a, upper=True)))),
            linalg.inv(a),
        ),
    ):
        gradient = ft.grad(lambda a, f=f: f(hermitian(a)))(a)
        assert_trees_close(gradient, expected, rtol=1e-11, atol=1e-12)
        # By the matrix itself it is that of the triangle that is read, which stands for both.
        read = ft.grad(f)(a)
        assert_trees_close(hermitian(read), expected, rtol=1e-11, atol=1e-12)


def test_the_triangle_that_is_not_read_may_hold_anything():
    a = definite(MATRIX)
    for f, lower in (
        (linalg.eigvalsh, True),
        (lambda a: linalg.eigvalsh(a, "U"), False),
        (lambda a: np.abs(linalg.eigh(a)[1]), True),
        (lambda a: np.abs(linalg.eigh(a, "U")[1]), False),
        (linalg.cholesky, True),
        (lambda a: linalg.cholesky(a, upper=True), False),
        (lambda a: ft.spectral_function(np.sqrt, a), True),
        (lambda a: ft.spectral_function(np.sqrt, a, "U"), False),
    ):
        read = np.tri(3, dtype=bool) if lower else np.tri(3, dtype=bool).T
        given = np.where(read, a, np.nan)
        loss = lambda a, f=f: np.sum(np.sin(np.arange(9.0)[: f(a).size]) * f(a).ravel())
        assert_trees_close(ft.value_and_grad(loss)(given), ft.value_and_grad(loss)(a))
        np.testing.assert_array_equal(ft.grad(loss)(a)[~read], 0)
        # which moves nothing
        tangent = np.where(read, 0.0, 1.0)
        np.testing.assert_array_equal(ft.jvp(loss, (a,), (tangent,))[1], 0)


@pytest.mark.parametrize(
    "above", [0.0, 0.5]
)  # of a matrix that is not symmetric, and of one that is
def test_one_triangle_alone_has_the_whole_derivative(above):
    def smallest(below):
        return linalg.eigvalsh(fnp.array([[1.0, above], [below, 3.0]]))[0]

    expected = -1 / np.sqrt(5)  # w = 2 - sqrt(1 + b^2) at 1/2
    np.testing.assert_allclose(ft.grad(smallest)(0.5), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.jvp(smallest, (0.5,), (1.0,))[1], expected, rtol=1e-12)


@of_constants
def test_norms_have_derivative_zero_at_zero():
    for order in (None, 0, 0.5, 1, 2, 3, np.inf, -np.inf, -1, -3):
        gradient = ft.grad(lambda x, p=order: linalg.norm(x, p))(np.zeros(3))
        np.testing.assert_array_equal(gradient, np.zeros(3))
    for order in (None, "fro", "nuc", 1, 2, np.inf, -1, -2, -np.inf):
        gradient = ft.grad(lambda x, p=order: linalg.norm(x, p))(np.zeros((2, 3)))
        np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


def test_norms_of_vectors_with_a_zero_entry():
    x = np.array([0.0, 3.0, 4.0])
    for order in (1.5, 3, 4):
        assert_trees_close(
            ft.grad(lambda x, p=order: linalg.norm(x, p))(x),
            x ** (order - 1) / np.sum(x**order) ** (1 - 1 / order),
        )
    for order in (-1, -3):
        value, gradient = ft.value_and_grad(lambda x, p=order: linalg.norm(x, p))(x)
        assert value == 0
        np.testing.assert_array_equal(gradient, np.zeros(3))


def test_norms_of_nothing():
    for order in (None, 1, 2, 3, np.inf):
        norm = partial(linalg.norm, ord=order, axis=1, keepdims=True)
        empty = np.zeros((2, 0))
        assert_trees_close(ft.vjp(norm, empty)[0], norm(empty), dtypes=True)


# --- repeated eigenvalues and singular values ----------------------------------------------------


def rotated(values, seed=0):
    """A symmetric matrix with these eigenvalues, which come out equal up to rounding only."""
    q = linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    return hermitian((q * np.array(values)) @ q.T)


DEGENERATE = [np.eye(4), rotated([2.0, 2.0, 2.0, 5.0]), rotated([1.0, 1.0, 3.0, 3.0], 1)]


@pytest.mark.parametrize("a", DEGENERATE)
def test_symmetric_functions_of_repeated_values_have_their_derivative(a):
    inverse = linalg.inv(a)
    for f, expected in (
        (lambda a: np.sum(linalg.eigvalsh(a)), np.eye(4)),
        (lambda a: np.sum(linalg.eigh(a)[0]), np.eye(4)),
        (lambda a: np.sum(linalg.svdvals(a)), np.eye(4)),
        (lambda a: np.sum(linalg.svd(a)[1]), np.eye(4)),
        (lambda a: linalg.norm(a, "nuc"), np.eye(4)),
        (lambda a: np.sum(linalg.eigvals(a)).real, np.eye(4)),
        (lambda a: linalg.det(a), linalg.det(a) * inverse),
    ):
        assert_trees_close(ft.grad(f)(a), expected, atol=1e-12)
        along = np.arange(16.0).reshape(4, 4)
        np.testing.assert_allclose(
            ft.jvp(f, (a,), (along,))[1], np.sum(expected * along), rtol=1e-11
        )


def test_squares_of_repeated_values_are_right_where_they_are_all_equal():
    for f in (linalg.eigvalsh, linalg.svdvals):
        gradient = ft.grad(lambda a, f=f: np.sum(np.log(f(a))))(3 * np.eye(3))
        assert_trees_close(gradient, np.eye(3) / 3, atol=1e-14)


# --- determinants of singular matrices -----------------------------------------------------------


def of_rank(rank, n=4, complexes=False):
    rng = np.random.default_rng(rank)
    left, right = rng.uniform(-1, 1, (2, n, rank))
    if complexes:
        left = left + 1j * rng.uniform(-1, 1, (n, rank))
    return left @ right.T


def cofactors(a):
    n = len(a)
    rest = lambda i: [k for k in range(n) if k != i]
    return np.array(
        [[(-1) ** (i + j) * linalg.det(a[rest(i)][:, rest(j)]) for j in range(n)] for i in range(n)]
    )


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("complexes", [False, True])
def test_the_gradient_of_det_is_the_matrix_of_cofactors_at_any_rank(n, complexes):
    for rank in range(n + 1):
        a = of_rank(rank, n, complexes)
        gradient = ft.vjp(linalg.det, a)[1](np.ones((), a.dtype))[0]
        assert_trees_close(gradient, cofactors(a), rtol=1e-9, atol=1e-13)
        along = a.T + 1
        np.testing.assert_allclose(
            ft.jvp(linalg.det, (a,), (along,))[1], np.sum(gradient * along), atol=1e-12
        )


def det_written_out(a):
    """The determinant as a polynomial, by expansion along rows: right to all orders."""
    n = a.shape[-1]
    if n == 1:
        return a[0, 0]
    rest = lambda j: [k for k in range(n) if k != j]
    return sum((-1) ** j * a[0, j] * det_written_out(a[1:][:, rest(j)]) for j in range(n))


@pytest.mark.parametrize("n", [3, 4])
def test_second_derivatives_of_det_are_right_at_any_rank(n):
    for rank in range(n + 1):
        a = of_rank(rank, n)
        expected = ft.hessian(det_written_out)(a)
        assert_trees_close(ft.hessian(linalg.det)(a), expected, rtol=1e-8, atol=1e-10)
        reverse_twice = ft.jacrev(ft.jacrev(linalg.det))(a)
        assert_trees_close(reverse_twice, expected, rtol=1e-8, atol=1e-10)


def test_third_derivatives_of_det_are_right_down_to_rank_two_below():
    n = 4
    along = np.random.default_rng(5).uniform(-1, 1, (n, n))
    third = lambda f: ft.jacfwd(ft.jacfwd(ft.jacfwd(f)))
    for rank in (4, 3, 2):
        a = of_rank(rank, n)
        line = lambda f, a=a: third(lambda t: f(a + t * along))(0.0)
        np.testing.assert_allclose(line(linalg.det), line(det_written_out), rtol=1e-8, atol=1e-10)


def test_det_of_lanes_of_all_ranks():
    lanes = np.stack([of_rank(rank) for rank in range(5)])
    assert_trees_close(
        ft.vmap(ft.grad(linalg.det))(lanes), np.stack([cofactors(a) for a in lanes]), atol=1e-13
    )
    total = ft.grad(lambda lanes: np.sum(linalg.det(lanes)))(lanes)
    assert_trees_close(total, np.stack([cofactors(a) for a in lanes]), atol=1e-13)


def test_det_at_other_scales():
    for scale in (1e-8, 1e8):
        for rank in (2, 3, 4):
            a = scale * of_rank(rank)
            assert_trees_close(
                ft.grad(linalg.det)(a) / scale**3, cofactors(of_rank(rank)), rtol=1e-9, atol=1e-13
            )


def test_det_of_regular_matrices_of_mixed_scales():
    q = linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    weights = np.arange(25.0).reshape(5, 5)
    for scales in ([1e-10, 1e10, 1e-10, 2e-10, 1.0], [1e9, 1e-9, 1e9, 1.0, 1e-9]):
        a = q * np.array(scales)
        expected = lambda a: linalg.det(a) * linalg.inv(a).T
        assert_trees_close(ft.grad(linalg.det)(a), expected(a), rtol=1e-6, atol=0)
        second = ft.grad(lambda a: np.sum(weights * ft.grad(linalg.det)(a)))(a)
        by_formula = ft.grad(lambda a, f=expected: np.sum(weights * f(a)))(a)
        largest = np.max(np.abs(by_formula))
        assert_trees_close(second / largest, by_formula / largest, rtol=1e-6, atol=1e-9)


def test_not_a_number_gives_not_a_number():
    with np.errstate(invalid="ignore"):
        gradient = ft.grad(linalg.det)(np.where(np.eye(3) > 0, np.nan, 1.0))
    assert np.all(np.isnan(gradient))


def test_the_logarithm_of_a_singular_determinant_has_no_derivative():
    lanes = np.stack([np.ones((2, 2)), np.eye(2)])
    values, gradients = ft.vmap(ft.value_and_grad(lambda a: linalg.slogdet(a)[1]))(lanes)
    np.testing.assert_array_equal(values, [-np.inf, 0])
    assert np.all(np.isnan(gradients[0]))
    np.testing.assert_array_equal(gradients[1], np.eye(2))


# --- the same in JAX -----------------------------------------------------------------------------


@pytest.mark.peers
def test_tangents_are_those_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    theirs = jax.numpy.linalg
    symmetric, moved = definite(MATRIX), hermitian(MATRIX @ MATRIX)
    for name, a, along in (
        ("cholesky", symmetric, moved),  # JAX takes the symmetric part of a matrix
        ("eigh", symmetric, moved),
        ("svd", MATRIX, moved),
        ("qr", MATRIX, moved),
        ("pinv", MATRIX[:, :2], moved[:, :2]),
        ("det", np.ones((3, 3)) + np.diag([0.0, 0.0, 1.0]), moved),
    ):
        values, tangents = ft.jvp(getattr(linalg, name), (a,), (along,))
        their_values, their_tangents = jax.jvp(getattr(theirs, name), (a,), (along,))
        ours, others = leaves((values, tangents)), leaves((their_values, their_tangents))
        for one, other in zip(ours, others, strict=True):
            np.testing.assert_allclose(one, np.asarray(other), rtol=1e-9, atol=1e-11, err_msg=name)
    a = MATRIX + 0.5j * MATRIX.T
    for name in ("inv", "cond", "norm"):
        _, tangent = ft.jvp(getattr(linalg, name), (a,), (MATRIX * 1j,))
        _, expected = jax.jvp(getattr(theirs, name), (a,), (MATRIX * 1j,))
        np.testing.assert_allclose(tangent, np.asarray(expected), rtol=1e-10)
