"""cg, bicgstab and gmres: linear systems solved by products with their operator alone.

Each solver works on one vector and is made of `while_loop`, so that it can be staged and batched. What
they have in common, reading arguments and derivatives, is `_solution`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.shapes import dtype_of, shape_of, spec_of
from functrans.transforms.implicit import stripped
from functrans.transforms.leaves import strong
from functrans.transforms.linear import linear_operator
from functrans.transforms.loops import fori_loop, solver_loop
from functrans.transforms.procedures import Procedure, staged
from functrans.transforms.systems import System
from functrans.transforms.vectors import (
    check_count,
    check_tolerance,
    floating,
    joined,
    like,
    norm,
    parted,
    quotient,
    report,
)

Operator = Callable[[Any], Any]


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """The solution of A x = b for a Hermitian positive definite A, by conjugate gradients.

    The derivative solves the same system again, and reverse mode the transposed one, with the same
    tolerances; by `b` and all that `A` depends on or closes over.

    Parameters
    ----------
    A : callable or matrix
        A linear function of a pytree like `b`; or an array of two axes, if `b` is a vector.
    b : pytree of arrays
        All real, or all complex.
    x0 : pytree of arrays, optional
        Where to start: zeros, if not given. The solution does not depend on it.
    tol, atol : float
        The iteration ends with ‖A x - b‖ <= max(tol ‖b‖, atol).
    maxiter : int, optional
        The largest number of iterations, by default ten times the size of `b`.
    M : callable or matrix, optional
        A preconditioner: an approximation of the inverse of A, of the same kind.

    Returns
    -------
    tuple
        x, like `b`; and info, which is 0 on success, and otherwise the number of iterations that were
        made. A solution that is not found is also reported by a `ConvergenceWarning`, and this alone
        when it happens for a derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import cg, grad
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = cg(A, np.array([1.0, 2.0]))
    >>> x.round(4), int(info)
    (array([0.0909, 0.6364]), 0)
    >>> grad(lambda b: cg(A, b)[0][0])(np.array([1.0, 2.0])).round(4)
    array([ 0.2727, -0.0909])
    """
    return _solution("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """The solution of A x = b for any A, by stabilized biconjugate gradients.

    Arguments, results and derivatives are those of `cg`. The iteration can break down, which is
    reported like a solution that is not found; `gmres` cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import bicgstab
    >>> x, info = bicgstab(np.array([[4.0, 1.0], [-1.0, 3.0]]), np.array([1.0, 2.0]))
    >>> x.round(4), int(info)
    (array([0.0769, 0.6923]), 0)
    """
    return _solution("bicgstab", _stabilized, A, b, x0, tol, atol, maxiter, M)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """The solution of A x = b for any A, by generalized minimal residuals.

    Arguments, results and derivatives are those of `cg`, but for those named here.

    Parameters
    ----------
    A, b, x0, tol, atol, M
        As for `cg`. The preconditioner is applied from the right.
    restart : int
        How many vectors to keep: the iteration starts again after so many.
    maxiter : int, optional
        The largest number of such cycles, by default ten times the size of `b`. It is also what info
        counts.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import gmres, jacrev
    >>> A = np.array([[0.0, 1.0], [-1.0, 3.0]])
    >>> jacrev(lambda b: gmres(A, b)[0])(np.array([1.0, 2.0])).round(4)
    array([[ 3., -1.],
           [ 1.,  0.]])
    """
    restart = check_count(restart, "restart", "gmres")
    method = functools.partial(_minimal_residuals, restart)
    return _solution("gmres", method, A, b, x0, tol, atol, maxiter, M)


def _solution(
    name: str,
    method: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    tol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
) -> tuple[Any, Any]:
    operator, constants, leaves, structure = linear_operator(_function(A, name, "A"), b, name)
    if len({dtype_of(leaf).kind for leaf in leaves}) > 1:
        raise errors.InputTypeError(
            f"{name}: b has real leaves and complex ones, at {errors.user_location()}. Make all "
            "complex, or split the complex ones into their real and imaginary parts."
        )
    preconditioner: Any = _identity
    more: list[Any] = []
    if M is not None and leaves:
        like_b = tree.unflatten(structure, leaves)
        preconditioner, more, wider, _ = linear_operator(_function(M, name, "M"), like_b, name)
        if dtype_of(wider[0]) != dtype_of(leaves[0]):
            raise errors.InputTypeError(
                f"{name}: M makes complex values of real ones, at {errors.user_location()}, and A does "
                "not. Make b complex."
            )
    specs = [strong(spec_of(leaf)) for leaf in leaves]
    start = None
    if x0 is not None:
        given, form = floating(x0, f"{name}: x0")
        what = f"{name}: x0, which should be like b,"
        start = stripped(like(tree.unflatten(form, given), specs, structure, what))
    size = sum(int(np.prod(spec.shape, dtype=int)) for spec in specs)
    limits = (
        check_tolerance(tol, "tol", name),
        check_tolerance(atol, "atol", name),
        max(10 * size, 1) if maxiter is None else check_count(maxiter, "maxiter", name),
    )
    if not size:
        return tree.unflatten(structure, leaves), 0
    fixed = len(constants)

    def solver(preconditioner: Any, start: Any = None) -> Any:
        def solve(matvec: Any, constants: Any, b: Any) -> list[Any]:
            def apply(function: Any, given: Any) -> Operator:
                return lambda v: joined(stripped(function(*given, *parted(v, specs))))

            vector = joined(b)
            first = np.zeros_like(vector) if start is None else joined(start)
            x, *state = method(
                apply(matvec, constants),
                vector,
                first,
                apply(preconditioner, constants[fixed:]),
                limits,
            )
            return _reported(name, parted(x, specs), *state)

        return solve

    if not isinstance(operator, Procedure):
        *x, info = solver(preconditioner, start)(operator, (), leaves)
        return tree.unflatten(structure, x), info
    transposed = preconditioner
    if isinstance(preconditioner, Procedure):
        transposed = System(preconditioner, _identity, _identity).transposed().matvec
    widened = [*map(spec_of, constants), *map(spec_of, more), *operator.outputs]
    count = fixed + len(more)
    matvec = staged(lambda *args: operator(*args[:fixed], *args[count:]), widened)
    system = System(matvec, solver(preconditioner), solver(transposed))
    first = solver(preconditioner, start)  # derivatives have nothing to do with where it starts
    x, (info,) = system.solution([*constants, *more], leaves, first)
    return tree.unflatten(structure, x), info


def _identity(*leaves: Any) -> list[Any]:
    return list(leaves)


def _function(A: Any, name: str, what: str) -> Callable[[Any], Any]:
    """An operator that is given as a function or as a matrix."""
    if callable(A):
        return A  # type: ignore[no-any-return]
    if not tree.is_array(A) or len(shape_of(A)) != 2 or shape_of(A)[0] != shape_of(A)[1]:
        found = spec_of(A) if tree.is_array(A) else type(A).__name__
        raise errors.InputTypeError(
            f"{name}: {what} must be a linear function, or a square matrix, not {found}."
        )

    def product(x: Any) -> Any:
        if not tree.is_array(x) or shape_of(x) != shape_of(A)[1:]:
            found = spec_of(x) if tree.is_array(x) else type(x).__name__
            raise errors.InputTypeError(
                f"{name}: {what} is a matrix of shape {shape_of(A)}, so b must be a vector of shape "
                f"{shape_of(A)[1:]}, not {found}."
            )
        return A @ x

    return product


def _reported(name: str, x: list[Any], residual: Any, target: Any, count: Any) -> list[Any]:
    failed = np.logical_not(residual <= target)
    x = report(
        x,
        failed,
        f"{name} has not converged by iteration {{:.0f}}: the residual has the norm {{:.1e}}, and "
        "{:.1e} is allowed. Raise maxiter or tol, give a preconditioner M, or take another method.",
        count,
        residual,
        target,
    )
    return [*x, np.where(failed, np.maximum(count, 1), 0)[()]]


# The methods: method(A, b, x, M, (tol, atol, maxiter)) -> (x, ‖A x - b‖, what is allowed, iterations).


def _allowed(b: Any, limits: tuple[float, float, int]) -> Any:
    tol, atol, _ = limits
    return np.maximum(tol * norm([b]), atol)


def _conjugate_gradients(A: Operator, b: Any, x: Any, M: Operator, limits: Any) -> Any:
    target, maxiter = _allowed(b, limits), limits[2]

    def going_on(state: Any) -> Any:
        _, r, _, rz, count = state
        # rz = 0 with r ≠ 0 is a breakdown: M is not definite
        return (norm([r]) > target) & (rz != 0) & (count < maxiter)

    def step(state: Any) -> Any:
        x, r, p, rz, count = state
        Ap = A(p)
        alpha = quotient(rz, np.vdot(p, Ap).real)
        x, r = x + alpha * p, r - alpha * Ap
        z = M(r)
        following = np.vdot(r, z).real
        return x, r, z + quotient(following, rz) * p, following, count + 1

    r = b - A(x)
    z = M(r)
    x, r, _, _, count = solver_loop(going_on, step, (x, r, z, np.vdot(r, z).real, 0))
    return x, norm([r]), target, count


def _stabilized(A: Operator, b: Any, x: Any, M: Operator, limits: Any) -> Any:
    target, maxiter = _allowed(b, limits), limits[2]
    r = b - A(x)
    shadow = r

    def going_on(state: Any) -> Any:
        _, r, _, rho, omega, count = state
        return (norm([r]) > target) & (rho != 0) & (omega != 0) & (count < maxiter)

    def step(state: Any) -> Any:
        x, r, p, rho, _, count = state
        preconditioned = M(p)
        v = A(preconditioned)
        alpha = quotient(rho, np.vdot(shadow, v))
        s = r - alpha * v
        z = M(s)
        t = A(z)
        omega = quotient(np.vdot(t, s), np.vdot(t, t).real)
        x = x + alpha * preconditioned + omega * z
        r = s - omega * t
        following = np.vdot(shadow, r)
        beta = quotient(following, rho) * quotient(alpha, omega)
        return x, r, r + beta * (p - omega * v), following, omega, count + 1

    rho = np.vdot(shadow, r)
    state = (x, r, r, rho, np.ones_like(rho), 0)
    x, r, *_, count = solver_loop(going_on, step, state)
    return x, norm([r]), target, count


def _minimal_residuals(restart: int, A: Operator, b: Any, x: Any, M: Operator, limits: Any) -> Any:
    target, maxiter = _allowed(b, limits), limits[2]
    n = shape_of(b)[0]
    m = min(restart, n)
    rows, columns = np.arange(m + 1), np.arange(m)
    eps = np.finfo(dtype_of(b)).eps

    def arnoldi(k: Any, state: Any) -> Any:
        """One more vector of the basis V of the Krylov space, and a column of H: A M V = V H."""
        V, H = state
        w = A(M(np.sum(np.where((rows == k)[:, None], V, 0), axis=0)))
        scale = norm([w])
        h = np.conj(V) @ w
        w = w - h @ V
        again = np.conj(V) @ w  # orthogonal to rounding only after a second time
        w = w - again @ V
        length = norm([w])
        length = np.where(length > 10 * eps * scale, length, 0)  # the space is complete
        V = np.where((rows == k + 1)[:, None], quotient(w, length), V)
        column = h + again + np.where(rows == k + 1, length, 0)
        return V, np.where(columns == k, column[:, None], H)

    def going_on(state: Any) -> Any:
        _, r, before, count = state
        length = norm([r])
        return (length > target) & (length < before) & (count < maxiter)

    def cycle(state: Any) -> Any:
        x, r, _, count = state
        length = norm([r])
        V = np.where((rows == 0)[:, None], quotient(r, length), 0)
        H = np.zeros((m + 1, m), dtype_of(b))
        V, H = fori_loop(0, m, arnoldi, (V, H))
        y = np.linalg.pinv(H) @ np.where(rows == 0, length, 0).astype(dtype_of(b))
        x = x + M(y @ V[:-1])
        return x, b - A(x), length, count + 1

    r = b - A(x)
    x, r, _, count = solver_loop(going_on, cycle, (x, r, np.full_like(norm([r]), np.inf), 0))
    return x, norm([r]), target, count
