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
from oracles import (
    assert_trees_close,
    inner_product,
    leaves,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jvp,
)

import functrans as ft


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
    return q[..., :n], r, rest @ dagger(rest), q @ (r + 1)[..., :n]


add("qr complete tall", lambda a: qr_complete(a)[:3], (4, 2))


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


def real_eigenvalues(a):
    """A matrix similar to a symmetric one, so that its eigenvalues are real."""
    scale = np.arange(1.0, a.shape[-1] + 1)
    return hermitian(a) * scale[:, None] / scale


add("eig", lambda a: tuple(linalg.eig(a)), SQUARE, staged=False)
add("eigvals", linalg.eigvals, SQUARE, staged=False)
add("eig of complex", lambda a: tuple(linalg.eig(a + 0.5j * a.mT)), SQUARE)
add("eig real", lambda a: tuple(linalg.eig(real_eigenvalues(a))), SQUARE, staged=False)
add("eigvals real", lambda a: linalg.eigvals(real_eigenvalues(a)), SQUARE, staged=False)

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
add("multi_dot of 5", lambda *xs: linalg.multi_dot(xs), (2, 3), (3, 1), (1, 2), (2, 3), (3, 2),
    stacks=False)  # fmt: skip
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
def test_second_derivatives_by_both_orders_of_modes(name):
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
