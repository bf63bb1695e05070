"""Functions of matrices that SciPy computes: logarithms, powers, and solutions of Riccati equations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, dtype_of, shape_of
from functrans.ops.contraction import swap
from functrans.ops.factorization import H
from functrans.ops.families import batch_elementwise, result_spec
from functrans.scipy.matrices import (
    check_matrices,
    corner,
    lead_spec,
    over_stack,
    sl,
    square_shape,
    sylvester,
    transpose_of_jvp,
)

# Their derivatives are corners of functions of larger matrices: see `corner`.


def _of_matrices(name: str, evaluate: Rule) -> Primitive:
    """A primitive from an analytic function of single matrices: evaluate(a, **params)."""

    def one(a: Any, **params: Any) -> Any:
        with warnings.catch_warnings():  # about errors of 1e-13, in matrices the user has not seen
            warnings.simplefilter("ignore", RuntimeWarning)
            out = np.asarray(evaluate(a, **params))
        if a.dtype.kind != "c" and out.dtype.kind == "c":
            roots = np.linalg.eigvals(a)
            if np.any((roots.imag == 0) & (roots.real < 0)):
                raise errors.StagingError(
                    f"{name}: the result for a real matrix is complex, but a real one was staged, at "
                    f"{errors.user_location()}. Pass it as a complex matrix: a.astype(complex)."
                )
            out = out.real
        return out.astype(a.dtype)

    def push(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        return corner(lambda x: primitive(x, **params), args[0], tangents[0])

    def pull(g: Any, saved: Any) -> Any:
        a, params = saved
        return corner(lambda x: primitive(x, **params), swap(a), g)

    def shape(specs: tuple[ArraySpec, ...], params: Any) -> Any:
        (a,) = specs
        check_matrices(a)
        square_shape((a.shape[-2], a.shape[-1]))
        return result_spec(lambda x: x, specs, {}, a.shape)

    primitive = Primitive(
        name,
        lambda a, **params: over_stack(one, a, **params),
        jvp=push,
        vjp=lambda mask, out, args, params: (pull, (args[0], params)),
        batch=batch_elementwise,
        shape=shape,
        kind="linear algebra",
    )
    return primitive


logm = _of_matrices("logm", lambda a: sl.logm(a))
matrix_power = _of_matrices(
    "fractional_matrix_power", lambda a, power: sl.fractional_matrix_power(a, power)
)


# Riccati's equations. If X changes by dX and everything else by what makes the residual change by dF, then
# C^H dX + dX C = -dF in continuous time, and dX = C^H dX C + dF in discrete time, where C = a - b k is the
# closed loop, with the feedback k.


def _residual_change(terms: list[Any]) -> Any:
    there = [term for term in terms if term is not None]
    return sum(there[1:], there[0])


def _quadratic(x: Any) -> Any:
    return x + H(x)


def _continuous_jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    # a^H x + x a - x b r⁻¹ b^H x + q = 0
    (a, b, _, r), (da, db, dq, dr) = args, tangents
    gain = np.linalg.solve(r, H(b) @ x)
    change = _residual_change(
        [
            None if da is None else _quadratic(x @ da),
            None if db is None else -_quadratic(x @ db @ gain),
            dq,
            None if dr is None else H(gain) @ dr @ gain,
        ]
    )
    loop = a - b @ gain
    return sylvester(H(loop), loop, -change)


def _discrete_jvp(x: Any, args: Any, tangents: Any, params: Any) -> Any:
    # x = a^H x a - a^H x b (r + b^H x b)⁻¹ b^H x a + q, in which k minimizes over feedbacks, so that
    # changes of k do not count: x = (a - b k)^H x (a - b k) + k^H r k + q
    (a, b, _, r), (da, db, dq, dr) = args, tangents
    gain = np.linalg.solve(r + H(b) @ x @ b, H(b) @ x @ a)
    loop = a - b @ gain
    change = _residual_change(
        [
            None if da is None else _quadratic(H(loop) @ x @ da),
            None if db is None else -_quadratic(H(loop) @ x @ db @ gain),
            dq,
            None if dr is None else H(gain) @ dr @ gain,
        ]
    )
    return discrete_lyapunov(H(loop), change)


def discrete_lyapunov(a: Any, q: Any) -> Any:
    """The solution of x = a x a^H + q, as a linear system for all entries of x."""
    n = shape_of(a)[-1]
    products = a[..., :, None, :, None] * np.conj(a)[..., None, :, None, :]
    products = products.reshape((*shape_of(a)[:-2], n * n, n * n))
    system = np.eye(n * n, dtype=dtype_of(products)) - products
    entries = q.reshape((*shape_of(q)[:-2], n * n, 1))
    out = np.linalg.solve(system, entries)
    return out.reshape((*shape_of(out)[:-2], n, n))


def _are_shape(a: Any, b: Any, q: Any, r: Any) -> Any:
    square_shape(a, q, sides=(b[0], b[0]))
    square_shape(r, sides=b[1:])
    return q


def _riccati(name: str, solver: Rule, jvp: Rule) -> Primitive:
    def impl(a: Any, b: Any, q: Any, r: Any) -> Any:
        return over_stack(solver, a, b, q, r)

    primitive = Primitive(
        name,
        impl,
        jvp=jvp,
        batch=batch_elementwise,
        shape=lead_spec(impl, _are_shape),
        kind="linear algebra",
    )
    primitive.vjp = transpose_of_jvp(primitive)
    return primitive


continuous_are = _riccati(
    "continuous_are", lambda *args: sl.solve_continuous_are(*args), _continuous_jvp
)
discrete_are = _riccati("discrete_are", lambda *args: sl.solve_discrete_are(*args), _discrete_jvp)
