"""The primitives behind `functrans.scipy.linalg`, on stacks of matrices in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, dtype_of, shape_of, sum_to_shape
from functrans.ops.families import align_batched, result_spec
from functrans.scipy.loading import load
from functrans.transforms.derivatives import stop_gradient, vjp

sl = load("scipy.linalg")


def swap(x: Any) -> Any:
    """The transpose of each matrix."""
    return np.swapaxes(x, -1, -2)


def dagger(x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return np.conj(swap(x)) if dtype_of(x).kind == "c" else swap(x)


def triangle(x: Any, lower: bool, offset: int = 0) -> Any:
    """The lower or upper triangle; an offset of -1 leaves the diagonal out."""
    rows, columns = shape_of(x)[-2:]
    kept = np.tri(rows, columns, offset) if lower else np.tri(columns, rows, offset).T
    return np.where(kept, x, 0).astype(dtype_of(x))


def _batch_stack(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    """The hidden axis is one more axis of the stack."""
    return primitive(*align_batched(args, batched), **params)


def _over_stack(function: Any, *args: Any, **options: Any) -> Any:
    """Apply a function of single matrices to broadcast stacks of them."""
    lead = np.broadcast_shapes(*(arg.shape[:-2] for arg in args))
    stacks = [
        np.broadcast_to(arg, lead + arg.shape[-2:]).reshape((-1, *arg.shape[-2:])) for arg in args
    ]
    results = [function(*row, **options) for row in zip(*stacks, strict=True)]
    if not results:
        sizes = [np.ones(arg.shape[-2:], arg.dtype) for arg in args]
        example = function(*(np.tri(*one.shape) * one for one in sizes), **options)
        return np.zeros(lead + example.shape, example.dtype)
    return np.stack(results).reshape(lead + results[0].shape)


def _lead_spec(impl: Rule, core: Any) -> Rule:
    """A shape rule: leading axes broadcast, core(*shapes) is the rest, and a small call has the dtype."""

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
        lead = np.broadcast_shapes(*(spec.shape[:-2] for spec in specs))
        small = [ArraySpec((1, 1), spec.dtype) for spec in specs]
        return result_spec(impl, small, params, lead + core(*(spec.shape[-2:] for spec in specs)))

    return shape


def _unbroadcast(cotangents: list[Any], mask: int, args: Any) -> Any:
    """Cotangents for the arguments in the mask, with broadcast leading axes added up."""
    tracked = [k for k in range(len(args)) if mask >> k & 1]
    fitted = [sum_to_shape(cotangents[k], shape_of(args[k])) for k in tracked]
    return tuple(fitted) if len(fitted) > 1 else fitted[0]


def transpose_of_jvp(primitive: Primitive) -> Rule:
    """A vjp rule from the jvp rule of a function of one array: its transpose, found by the tape."""

    def pull(g: Any, saved: Any) -> Any:
        out, x, params = saved

        def pushforward(tangent: Any) -> Any:
            assert primitive.jvp is not None
            tangents = primitive.jvp(out, (x,), (tangent,), params)
            return tangents[0] if primitive.outputs else tangents

        if primitive.outputs:
            g = g[0]
        return vjp(pushforward, np.zeros(shape_of(x), dtype_of(x)))[1](g)[0]

    return lambda mask, out, args, params: (pull, (out, args[0], params))


# Triangular systems: x = T⁻¹ b with T one triangle of a, or its transpose.


def _triangular_solve(a: Any, b: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    options = {"lower": lower, "trans": int(transposed), "unit_diagonal": unit_diagonal}
    if a.ndim == 2 and b.ndim > 2:  # one matrix, many right-hand sides: all are columns
        columns = np.moveaxis(b, -2, 0)
        out = sl.solve_triangular(a, columns.reshape((len(a), -1)), check_finite=False, **options)
        return np.moveaxis(out.reshape(columns.shape), 0, -2)
    if a.ndim == b.ndim == 2:
        return sl.solve_triangular(a, b, check_finite=False, **options)
    return _over_stack(sl.solve_triangular, a, b, check_finite=False, **options)


def _read(a: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    """What of a, or of its tangent, stands in T: without a diagonal of ones, which does not move."""
    part = triangle(a, lower, -1 if unit_diagonal else 0)
    return swap(part) if transposed else part


def _triangular_jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    # T x = b, so T dx = db - dT x.
    (a, _), (a_tangent, b_tangent) = args, tangents
    change = b_tangent
    if a_tangent is not None:
        moved = _read(a_tangent, **params) @ x
        change = -moved if change is None else change - moved
    return triangular_solve(a, change, **params)


def _triangular_pull(g: Any, saved: Any) -> Any:
    mask, x, args, params = saved
    back = triangular_solve(args[0], g, **{**params, "transposed": not params["transposed"]})
    cotangents = [None, back]
    if mask & 1:
        outer = -back @ swap(x)
        outer = swap(outer) if params["transposed"] else outer
        cotangents[0] = _read(outer, params["lower"], False, params["unit_diagonal"])
    return _unbroadcast(cotangents, mask, args)


triangular_solve = Primitive(
    "triangular_solve",
    _triangular_solve,
    jvp=_triangular_jvp,
    vjp=lambda mask, out, args, params: (_triangular_pull, (mask, out, args, params)),
    batch=_batch_stack,
    shape=_lead_spec(_triangular_solve, lambda a, b: (a[0], b[1])),
)


def _solve(a: Any, b: Any, lower: bool, transposed: bool = False, unit: bool = False) -> Any:
    return triangular_solve(a, b, lower=lower, transposed=transposed, unit_diagonal=unit)


# Cholesky, of Hermitian matrices: h = l l^H. With Φ the lower triangle with half of the diagonal,
# dl = l Φ(l⁻¹ dh l^-H) (Murray 2016, arXiv:1602.07527).


def _half_triangle(x: Any) -> Any:
    return triangle(x, True) * (1 - 0.5 * np.eye(shape_of(x)[-1])).astype(dtype_of(x))


def _cholesky_jvp(factor: Any, args: Any, tangents: Any, params: Any) -> Any:
    inner = _solve(factor, tangents[0], lower=True)
    inner = dagger(_solve(factor, dagger(inner), lower=True))
    return factor @ _half_triangle(inner)


def _cholesky_pull(g: Any, factor: Any) -> Any:
    # The transpose of the above: l^-T Φ(l^T g) conj(l)⁻¹.
    inner = _solve(factor, _half_triangle(swap(factor) @ g), lower=True, transposed=True)
    conjugate = np.conj(factor) if dtype_of(factor).kind == "c" else factor
    return swap(_solve(conjugate, swap(inner), lower=True, transposed=True))


cholesky = Primitive(
    "cholesky",
    np.linalg.cholesky,
    jvp=_cholesky_jvp,
    vjp=lambda mask, out, args, params: (_cholesky_pull, out),
    batch=_batch_stack,
    shape=_lead_spec(np.linalg.cholesky, lambda a: a),
)


# LU with row exchanges, packed: the strict lower triangle of l below u. The exchanges do not move.


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
    return a, ArraySpec((*a.shape[:-2], min(a.shape[-2:])), np.int32)


def _lu_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    # With w = l⁻¹ da u⁻¹ of the square part, dl = l strict(w) and du = triu(w) u; then what is below
    # or beside it follows from l₂ u = a₂ or l u₂ = a₂.
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


lu = Primitive("lu", _lu, jvp=_lu_jvp, batch=_batch_stack, shape=_lu_spec, outputs=2)
lu.vjp = transpose_of_jvp(lu)


def _row_order(exchanges: Any, rows: int) -> Any:
    """Row k was exchanged with row exchanges[k], for k = 0, 1, ...: which row is where in the end."""
    order = np.broadcast_to(np.arange(rows), (*exchanges.shape[:-1], rows)).copy()
    for k in range(exchanges.shape[-1]):
        other = exchanges[..., k : k + 1].astype(np.intp)
        moved = np.take_along_axis(order, other, axis=-1)
        np.put_along_axis(order, other, order[..., k : k + 1], axis=-1)
        order[..., k : k + 1] = moved
    return order


def _row_order_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    return ArraySpec((*specs[0].shape[:-1], params["rows"]), np.int64)


row_order = Primitive("row_order", _row_order, batch=_batch_stack, shape=_row_order_spec)


# The exponential. Its derivative L(a, e) stands in the corner of exp [[a, e], [0, a]], and the
# transpose of L(a, ·) is L(a^T, ·) (Higham, Functions of Matrices, 3.6).


def _expm_derivative(a: Any, direction: Any) -> Any:
    # L is linear in e: scale it to the size of a, so that a large one costs no accuracy.
    size = np.max(np.abs(stop_gradient(direction)), axis=(-2, -1), keepdims=True, initial=0)
    size = np.where(size == 0, 1, size).astype(dtype_of(direction))
    n = shape_of(a)[-1]
    direction = direction / size
    lead = np.broadcast_shapes(shape_of(a)[:-2], shape_of(direction)[:-2])
    a, direction = (np.broadcast_to(each, (*lead, n, n)) for each in (a, direction))
    above = np.concatenate([a, direction], axis=-1)
    below = np.concatenate([np.zeros((*lead, n, n), dtype_of(a)), a], axis=-1)
    return size * expm(np.concatenate([above, below], axis=-2))[..., :n, n:]


def _expm(a: Any) -> Any:
    return sl.expm(a)


expm = Primitive(
    "expm",
    _expm,
    jvp=lambda out, args, tangents, params: _expm_derivative(args[0], tangents[0]),
    vjp=lambda mask, out, args, params: (lambda g, a: _expm_derivative(swap(a), g), args[0]),
    batch=_batch_stack,
    shape=_lead_spec(_expm, lambda a: a),
)


# Sylvester's equation a x + x b = q.


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    return _over_stack(sl.solve_sylvester, a, b, q)


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
    return _unbroadcast(cotangents, mask, args)


sylvester = Primitive(
    "sylvester",
    _sylvester,
    jvp=_sylvester_jvp,
    vjp=lambda mask, out, args, params: (_sylvester_pull, (mask, out, args)),
    batch=_batch_stack,
    shape=_lead_spec(_sylvester, lambda a, b, q: q),
)


# The square root x x = a: x dx + dx x = da.


def _sqrtm(a: Any) -> Any:
    root = sl.sqrtm(a)
    if a.dtype.kind != "c" and root.dtype.kind == "c":
        raise ValueError(
            "sqrtm: a real matrix has no real square root. Pass it as a complex matrix, "
            "a.astype(complex)."
        )
    return root


sqrtm = Primitive(
    "sqrtm",
    _sqrtm,
    jvp=lambda out, args, tangents, params: sylvester(out, out, tangents[0]),
    vjp=lambda mask, out, args, params: (lambda g, x: sylvester(swap(x), swap(x), g), out),
    batch=_batch_stack,
    shape=_lead_spec(_sqrtm, lambda a: a),
)
