"""The primitives behind `functrans.scipy.linalg`, on stacks of matrices in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.primitive import Primitive, Rule, bare
from functrans.core.shapes import (
    ArraySpec,
    checked_flags,
    checked_kinds,
    checked_length,
    dtype_of,
    shape_of,
    sum_to_shape,
)
from functrans.ops.contraction import swap
from functrans.ops.factorization import H
from functrans.ops.families import batch_elementwise, result_spec
from functrans.ops.gaps import smallest_gap
from functrans.ops.triangular import triangular_solve
from functrans.scipy.loading import load
from functrans.transforms.derivatives import stop_gradient, vjp

sl = load("scipy.linalg")


def triangle(x: Any, lower: bool, offset: int = 0) -> Any:
    """The lower or upper triangle; an offset of -1 leaves the diagonal out."""
    rows, columns = shape_of(x)[-2:]
    kept = np.tri(rows, columns, offset) if lower else np.tri(columns, rows, offset).T
    return np.where(kept, x, 0).astype(dtype_of(x))


def over_stack(function: Any, *args: Any, **options: Any) -> Any:
    """Apply a function of single matrices to broadcast stacks of them."""
    lead = np.broadcast_shapes(*(arg.shape[:-2] for arg in args))
    stacks = [
        np.broadcast_to(arg, lead + arg.shape[-2:]).reshape((-1, *arg.shape[-2:])) for arg in args
    ]
    results = [function(*row, **options) for row in zip(*stacks, strict=True)]
    if not results:
        sizes = [np.ones(arg.shape[-2:], arg.dtype) for arg in args]
        example = function(*[np.tri(*one.shape) * one for one in sizes], **options)
        return np.zeros(lead + example.shape, example.dtype)
    return np.stack(results).reshape(lead + results[0].shape)


def lead_spec(impl: Rule, core: Any) -> Rule:
    """A shape rule: leading axes broadcast, core(*shapes) is the rest, and a small call gives the dtype."""

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
        checked_flags(*params.values())
        check_matrices(*specs)
        lead = np.broadcast_shapes(*(spec.shape[:-2] for spec in specs))
        small = [ArraySpec((1, 1), spec.dtype) for spec in specs]
        return result_spec(impl, small, params, lead + core(*(spec.shape[-2:] for spec in specs)))

    return shape


def check_matrices(*specs: ArraySpec) -> None:
    """Raise an error unless these are stacks of matrices of dtypes that SciPy keeps."""
    if any(spec.ndim < 2 for spec in specs):
        raise ValueError("a matrix has two axes")
    if any(spec.dtype.itemsize < 4 for spec in specs):
        raise TypeError(
            f"the dtypes {', '.join(str(spec.dtype) for spec in specs)} are too narrow; convert with "
            "a.astype(float)"
        )


def square_shape(*shapes: tuple[int, int], sides: tuple[int, ...] = ()) -> tuple[int, int]:
    """The shape of the first of several square matrices, whose lengths must be those of the sides."""
    for (rows, columns), side in zip(shapes, sides or [a[0] for a in shapes], strict=True):
        if rows != columns or rows != side:
            raise ValueError(f"a matrix of shape {(rows, columns)} is not square, or does not fit")
    return shapes[0]


def unbroadcast(cotangents: list[Any], mask: int, args: Any) -> Any:
    """Cotangents for the arguments in the mask, with broadcast leading axes added up."""
    tracked = [k for k in range(len(args)) if mask >> k & 1]
    fitted = [sum_to_shape(cotangents[k], shape_of(args[k])) for k in tracked]
    return bare(fitted)


def transpose_of_jvp(primitive: Primitive) -> Rule:
    """A vjp rule from the jvp rule: its transpose, using the tape. Of several results, it is the first."""

    def pull(g: Any, saved: Any) -> Any:
        mask, out, args, params = saved
        tracked = [k for k in range(len(args)) if mask >> k & 1]

        def pushforward(*moved: Any) -> Any:
            assert primitive.jvp is not None
            tangents = [None] * len(args)
            for k, tangent in zip(tracked, moved, strict=True):
                tangents[k] = tangent
            pushed = primitive.jvp(out, args, tuple(tangents), params)
            return pushed[0] if primitive.outputs else pushed

        if primitive.outputs:
            g = g[0]
        zeros = [np.zeros(shape_of(args[k]), dtype_of(args[k])) for k in tracked]
        return bare(vjp(pushforward, *zeros)[1](g))

    return lambda mask, out, args, params: (pull, (mask, out, args, params))


def _solve(a: Any, b: Any, lower: bool, transposed: bool = False, unit: bool = False) -> Any:
    return triangular_solve(a, b, lower=lower, transposed=transposed, unit_diagonal=unit)


# Cholesky, of Hermitian matrices: h = l l^H. With Φ the lower triangle with half of the diagonal,
# dl = l Φ(l⁻¹ dh l^-H) (Murray 2016, arXiv:1602.07527).


def _half_triangle(x: Any) -> Any:
    return triangle(x, True) * (1 - 0.5 * np.eye(shape_of(x)[-1])).astype(dtype_of(x))


def _cholesky_jvp(factor: Any, args: Any, tangents: Any, params: Any) -> Any:
    inner = _solve(factor, tangents[0], lower=True)
    inner = H(_solve(factor, H(inner), lower=True))
    return factor @ _half_triangle(inner)


def _cholesky_pull(g: Any, factor: Any) -> Any:
    # The transpose of the above: l^-T Φ(l^T g) conj(l)⁻¹.
    inner = _solve(factor, _half_triangle(swap(factor) @ g), lower=True, transposed=True)
    conjugate = np.conj(factor) if dtype_of(factor).kind == "c" else factor
    return swap(_solve(conjugate, swap(inner), lower=True, transposed=True))


cholesky = Primitive(
    "cholesky_of_triangle",
    np.linalg.cholesky,
    jvp=_cholesky_jvp,
    vjp=lambda mask, out, args, params: (_cholesky_pull, out),
    batch=batch_elementwise,
    shape=lead_spec(np.linalg.cholesky, square_shape),
    kind="linear algebra",
)


# LU with pivoting, packed: the strict lower triangle of l below u. The row exchanges are constant.


def _lu(a: Any) -> Any:
    if a.ndim == 2:
        return sl.lu_factor(a, check_finite=False)
    rows, columns = a.shape[-2:]
    lead = a.shape[:-2]
    factors = [sl.lu_factor(each, check_finite=False) for each in a.reshape((-1, rows, columns))]
    packed = np.array([each for each, _ in factors], a.dtype).reshape(a.shape)
    exchanges = np.array([each for _, each in factors], np.int32)
    return packed, exchanges.reshape((*lead, min(rows, columns)))


def _lu_spec(specs: tuple[ArraySpec, ...], params: Any) -> tuple[ArraySpec, ArraySpec]:
    (a,) = specs
    checked_kinds("fc", a)
    check_matrices(a)
    return a, ArraySpec((*a.shape[:-2], min(a.shape[-2:])), np.int32)


def _lu_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    # With w = l⁻¹ da u⁻¹ of the square part, dl = l strict(w) and du = triu(w) u; then the part below
    # it or to its right follows from l₂ u = a₂ or l u₂ = a₂.
    packed, exchanges = out
    rows, columns = shape_of(packed)[-2:]
    rank = min(rows, columns)
    order = row_order(exchanges, rows=rows)
    change = np.take_along_axis(tangents[0], order[..., None], axis=-2)
    square = packed[..., :rank, :rank]
    lower = triangle(square, True, -1) + np.eye(rank, dtype=dtype_of(packed))
    upper = triangle(square, False)
    inner = _solve(square, change[..., :rank, :rank], lower=True, unit=True)
    inner = swap(_solve(square, swap(inner), lower=False, transposed=True))
    lower_change = lower @ triangle(inner, True, -1)
    upper_change = triangle(inner, False) @ upper
    total = triangle(lower_change, True, -1) + upper_change
    if rows > rank:
        rest = change[..., rank:, :] - packed[..., rank:, :] @ upper_change
        below = swap(_solve(square, swap(rest), lower=False, transposed=True))
        total = np.concatenate([total, below], axis=-2)
    if columns > rank:
        rest = change[..., rank:] - lower_change @ packed[..., rank:]
        beside = _solve(square, rest, lower=True, unit=True)
        total = np.concatenate([total, beside], axis=-1)
    return total, None


lu = Primitive(
    "lu",
    _lu,
    jvp=_lu_jvp,
    batch=batch_elementwise,
    shape=_lu_spec,
    outputs=2,
    kind="linear algebra",
)
lu.vjp = transpose_of_jvp(lu)


def _row_order(exchanges: Any, rows: int) -> Any:
    """The final order of rows, after exchanging row k with row exchanges[k], for k = 0, 1, ..."""
    order = np.broadcast_to(np.arange(rows), (*exchanges.shape[:-1], rows)).copy()
    for k in range(exchanges.shape[-1]):
        other = exchanges[..., k : k + 1].astype(np.intp)
        moved = np.take_along_axis(order, other, axis=-1)
        np.put_along_axis(order, other, order[..., k : k + 1], axis=-1)
        order[..., k : k + 1] = moved
    return order


def _row_order_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    (exchanges,), rows = specs, checked_length(params["rows"])
    checked_kinds("i", exchanges)
    if exchanges.shape[-1] > rows:
        raise ValueError("more rows are exchanged than there are")
    return ArraySpec((*exchanges.shape[:-1], rows), np.int64)


row_order = Primitive(
    "row_order", _row_order, batch=batch_elementwise, shape=_row_order_spec, kind="linear algebra"
)


# Of an analytic function f, such as the exponential, the derivative L(a, e) is the corner of
# f([[a, e], [0, a]]), and the transpose of L(a, ·) is L(a^T, ·) (Higham, Functions of Matrices, 3.2).


def corner(function: Rule, a: Any, direction: Any) -> Any:
    """The derivative of a function of matrices at a, in a direction."""
    # L is linear in e: scale it to the size of a, so that a large one costs no accuracy.
    size = np.max(np.abs(stop_gradient(direction)), axis=(-2, -1), keepdims=True, initial=0)
    size = np.where(size == 0, 1, size).astype(dtype_of(direction))
    n = shape_of(a)[-1]
    direction = direction / size
    lead = np.broadcast_shapes(shape_of(a)[:-2], shape_of(direction)[:-2])
    a, direction = (np.broadcast_to(each, (*lead, n, n)) for each in (a, direction))
    above = np.concatenate([a, direction], axis=-1)
    below = np.concatenate([np.zeros((*lead, n, n), dtype_of(a)), a], axis=-1)
    return size * function(np.concatenate([above, below], axis=-2))[..., :n, n:]


def _expm(a: Any) -> Any:
    return sl.expm(a)


expm: Primitive = Primitive(
    "expm",
    _expm,
    jvp=lambda out, args, tangents, params: corner(expm, args[0], tangents[0]),
    vjp=lambda mask, out, args, params: (lambda g, a: corner(expm, swap(a), g), args[0]),
    batch=batch_elementwise,
    shape=lead_spec(_expm, square_shape),
    kind="linear algebra",
)


# Sylvester's equation a x + x b = q.


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    return over_stack(sl.solve_sylvester, a, b, q)


def _sylvester_jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, b, _), (a_tangent, b_tangent, change) = args, tangents
    for moved in (
        None if a_tangent is None else a_tangent @ x,
        None if b_tangent is None else x @ b_tangent,
    ):
        if moved is not None:
            change = -moved if change is None else change - moved
    return sylvester(a, b, change)


def _sylvester_pull(g: Any, saved: Any) -> Any:
    mask, x, args = saved
    back = sylvester(swap(args[0]), swap(args[1]), g)
    cotangents = [
        -back @ swap(x) if mask & 1 else None,
        -swap(x) @ back if mask & 2 else None,
        back,
    ]
    return unbroadcast(cotangents, mask, args)


sylvester = Primitive(
    "sylvester",
    _sylvester,
    jvp=_sylvester_jvp,
    vjp=lambda mask, out, args, params: (_sylvester_pull, (mask, out, args)),
    batch=batch_elementwise,
    shape=lead_spec(_sylvester, lambda a, b, q: square_shape(a, b, sides=q) and q),
    kind="linear algebra",
)


# The square root x x = a: x dx + dx x = da. If x is singular, the equation has no solution: the root has
# an infinite slope.


def _sqrtm(a: Any) -> Any:
    root = sl.sqrtm(a)
    if a.dtype.kind != "c" and root.dtype.kind == "c":
        raise errors.StagingError(
            "sqrtm: a real matrix has no real square root, but a real result was staged, at "
            f"{errors.user_location()}. Pass it as a complex matrix: a.astype(complex)."
        )
    return root


def _sqrtm_derivative(root: Any, change: Any) -> Any:
    # eigenvalues of the root are uncertain by the root of what those of the matrix are
    eps = float(np.finfo(dtype_of(root)).eps)
    exists = regularity(root) > ((10 + shape_of(root)[-1]) * eps) ** 0.5
    safe = np.where(exists, root, np.eye(shape_of(root)[-1], dtype=dtype_of(root)))
    return np.where(exists, sylvester(safe, safe, change), np.nan)


def _regularity(x: Any) -> Any:
    """The ratio of the smallest eigenvalue to the largest, by size; 0 for a matrix that is not finite."""
    finite = np.all(np.isfinite(x), axis=(-2, -1), keepdims=True)
    sizes = np.abs(np.linalg.eigvals(np.where(finite, x, 0)))[..., None]
    largest = np.max(sizes, axis=-2, keepdims=True, initial=0)
    smallest = np.min(sizes, axis=-2, keepdims=True, initial=np.inf)
    return np.where(largest > 0, smallest / np.where(largest > 0, largest, 1), 0)


regularity = Primitive(
    "regularity",
    _regularity,
    batch=batch_elementwise,
    shape=lead_spec(_regularity, lambda a: square_shape(a) and (1, 1)),
    kind="linear algebra",
)

sqrtm = Primitive(
    "sqrtm",
    _sqrtm,
    jvp=lambda out, args, tangents, params: _sqrtm_derivative(out, tangents[0]),
    vjp=lambda mask, out, args, params: (lambda g, x: _sqrtm_derivative(swap(x), g), out),
    batch=batch_elementwise,
    shape=lead_spec(_sqrtm, square_shape),
    kind="linear algebra",
)


# The unitary factor of a = u p, for matrices that are not wide; p = u^H a is Hermitian. With Ω = u^H du,
# p Ω + Ω p = u^H da - da^H u; the part of du outside the space of u is (1 - u u^H) da p⁻¹. Where singular
# values coincide, nothing is divided by their differences.


def _polar(a: Any) -> Any:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return u @ vh


def _polar_jvp(u: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a,), (change,) = args, tangents
    rows, columns = shape_of(a)[-2:]
    p = H(u) @ a
    exists = regularity(p) > smallest_gap(dtype_of(p))
    safe = np.where(exists, p, np.eye(columns, dtype=dtype_of(p)))
    along = H(u) @ change
    moved = u @ sylvester(safe, safe, along - H(along))
    if rows > columns:
        moved = moved + swap(np.linalg.solve(swap(safe), swap(change - u @ along)))
    return np.where(exists, moved, np.nan)


polar = Primitive(
    "polar",
    _polar,
    jvp=_polar_jvp,
    batch=batch_elementwise,
    shape=lead_spec(_polar, lambda a: a),
    kind="linear algebra",
)
polar.vjp = transpose_of_jvp(polar)


# The order of columns in a QR factorization with pivoting. It is constant.


def _pivots(a: Any) -> Any:
    lead, (rows, columns) = a.shape[:-2], a.shape[-2:]
    each = [
        sl.qr(one, mode="r", pivoting=True, check_finite=False)[1]
        for one in a.reshape((-1, rows, columns))
    ]
    return np.array(each, np.int32).reshape((*lead, columns))


def _pivots_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    (a,) = specs
    check_matrices(a)
    return ArraySpec((*a.shape[:-2], a.shape[-1]), np.int32)


pivots = Primitive(
    "qr_pivots", _pivots, batch=batch_elementwise, shape=_pivots_spec, kind="linear algebra"
)
