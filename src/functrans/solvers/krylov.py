"""cg, bicgstab and gmres: iterative solvers of linear systems, which need only matrix-vector products.

Each solver works on one vector and is made of `while_loop`, so that it can be staged and batched. Reading
the arguments and attaching the derivatives is common to all of them: see `_solution`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.loops import fori_loop, solver_loop
from functrans.control.procedures import Procedure, staged
from functrans.core import errors, tree
from functrans.core.shapes import dtype_of, shape_of, spec_of
from functrans.ops.elementwise import safe_ratio
from functrans.solvers.implicit import stripped
from functrans.solvers.linear import linear_operator
from functrans.solvers.systems import System
from functrans.solvers.vectors import (
    check_count,
    check_tolerance,
    floating_leaves,
    joined,
    leaves_like,
    norm,
    parted,
    report,
)
from functrans.transforms.leaves import strong

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
    """Solve A x = b for a Hermitian positive definite A, by conjugate gradients.

    It can be differentiated with respect to `b` and every value that `A` depends on or closes over:
    forward mode solves the same system again, and reverse mode the transposed one, with the same
    tolerances.

    Parameters
    ----------
    A : callable or matrix
        A linear function of a pytree like `b`; or a 2-D array, if `b` is a vector.
    b : pytree of arrays
        All real, or all complex.
    x0 : pytree of arrays, optional
        The initial guess; zeros by default. The solution does not depend on it.
    tol, atol : float
        The iteration stops when ‖A x - b‖ <= max(tol ‖b‖, atol).
    maxiter : int, optional
        The maximum number of iterations, by default ten times the size of `b`.
    M : callable or matrix, optional
        A preconditioner: an approximation of the inverse of A, of the same kind.

    Returns
    -------
    tuple
        x, like `b`; and info, which is 0 on success, and otherwise the number of iterations. Failure to
        converge also raises a `ConvergenceWarning`; for a derivative, the warning is the only report.

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
    """Solve A x = b for any A, by stabilized biconjugate gradients.

    Arguments, results and derivatives are those of `cg`. The iteration can break down, which is
    reported like a failure to converge; `gmres` cannot break down.

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
    """Solve A x = b for any A, by generalized minimal residuals.

    Arguments, results and derivatives are those of `cg`, except as noted here.

    Parameters
    ----------
    A, b, x0, tol, atol, M
        As for `cg`. The preconditioner is applied from the right.
    restart : int
        The number of vectors to keep: the iteration restarts after `restart` steps.
    maxiter : int, optional
        The maximum number of such cycles, by default ten times the size of `b`. `info` counts cycles
        too.

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
            f"{name}: b has both real and complex leaves, at {errors.user_location()}. Make all of them "
            "complex: b.astype(complex)."
        )
    preconditioner: Any = _identity
    more: list[Any] = []
    if M is not None and leaves:
        like_b = tree.unflatten(structure, leaves)
        preconditioner, more, wider, _ = linear_operator(_function(M, name, "M"), like_b, name)
        if dtype_of(wider[0]) != dtype_of(leaves[0]):
            raise errors.InputTypeError(
                f"{name}: M turns real values into complex ones, at {errors.user_location()}, but A does "
                "not. Make b complex: b.astype(complex)."
            )
    specs = [strong(spec_of(leaf)) for leaf in leaves]
    start = None
    if x0 is not None:
        given, form = floating_leaves(x0, f"{name}: x0")
        what = f"{name}: x0, which should be like b,"
        start = stripped(leaves_like(tree.unflatten(form, given), specs, structure, what))
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
    first = solver(preconditioner, start)  # derivatives do not depend on the initial guess
    x, (info,) = system.solution([*constants, *more], leaves, first)
    return tree.unflatten(structure, x), info


def _identity(*leaves: Any) -> list[Any]:
    return list(leaves)


def _function(A: Any, name: str, what: str) -> Callable[[Any], Any]:
    """An operator, given as a function or as a matrix."""
    if callable(A):
        return A  # type: ignore[no-any-return]
    if not tree.is_array(A) or len(shape_of(A)) != 2 or shape_of(A)[0] != shape_of(A)[1]:
        found = spec_of(A) if tree.is_array(A) else type(A).__name__
        raise errors.InputTypeError(
            f"{name}: {what} must be a linear function, or a square matrix, not {found}, at "
            f"{errors.user_location()}."
        )

    def product(x: Any) -> Any:
        if not tree.is_array(x) or shape_of(x) != shape_of(A)[1:]:
            found = spec_of(x) if tree.is_array(x) else type(x).__name__
            raise errors.InputTypeError(
                f"{name}: {what} is a matrix of shape {shape_of(A)}, so b must be a vector of shape "
                f"{shape_of(A)[1:]}, not {found}, at {errors.user_location()}. For a tree, pass A as a "
                "function."
            )
        return A @ x

    return product


def _reported(name: str, x: list[Any], residual: Any, target: Any, count: Any) -> list[Any]:
    failed = np.logical_not(residual <= target)
    x = report(
        x,
        failed,
        f"{name} did not converge by iteration {{:.0f}}: the norm of the residual is {{:.1e}}, and "
        "{:.1e} is allowed. Raise maxiter or tol, pass a preconditioner M, or use another method.",
        count,
        residual,
        target,
    )
    return [*x, np.where(failed, np.maximum(count, 1), 0)[()]]


# The methods: method(A, b, x, M, (tol, atol, maxiter)) -> (x, ‖A x - b‖, its tolerance, iterations).


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
        alpha = safe_ratio(rz, np.vdot(p, Ap).real)
        x, r = x + alpha * p, r - alpha * Ap
        z = M(r)
        following = np.vdot(r, z).real
        return x, r, z + safe_ratio(following, rz) * p, following, count + 1

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
        alpha = safe_ratio(rho, np.vdot(shadow, v))
        s = r - alpha * v
        z = M(s)
        t = A(z)
        omega = safe_ratio(np.vdot(t, s), np.vdot(t, t).real)
        x = x + alpha * preconditioned + omega * z
        r = s - omega * t
        following = np.vdot(shadow, r)
        beta = safe_ratio(following, rho) * safe_ratio(alpha, omega)
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
        """Add a vector to the basis V of the Krylov space, and a column to H: A M V = V H."""
        V, H = state
        w = A(M(np.sum(np.where((rows == k)[:, None], V, 0), axis=0)))
        scale = norm([w])
        h = np.conj(V) @ w
        w = w - h @ V
        again = np.conj(V) @ w  # only a second pass makes it orthogonal to rounding
        w = w - again @ V
        length = norm([w])
        length = np.where(length > 10 * eps * scale, length, 0)  # the space is complete
        V = np.where((rows == k + 1)[:, None], safe_ratio(w, length), V)
        column = h + again + np.where(rows == k + 1, length, 0)
        return V, np.where(columns == k, column[:, None], H)

    def going_on(state: Any) -> Any:
        _, r, before, count = state
        length = norm([r])
        return (length > target) & (length < before) & (count < maxiter)

    def cycle(state: Any) -> Any:
        x, r, _, count = state
        length = norm([r])
        V = np.where((rows == 0)[:, None], safe_ratio(r, length), 0)
        H = np.zeros((m + 1, m), dtype_of(b))
        V, H = fori_loop(0, m, arnoldi, (V, H))
        y = np.linalg.pinv(H) @ np.where(rows == 0, length, 0).astype(dtype_of(b))
        x = x + M(y @ V[:-1])
        return x, b - A(x), length, count + 1

    r = b - A(x)
    x, r, _, count = solver_loop(going_on, cycle, (x, r, np.full_like(norm([r]), np.inf), 0))
    return x, norm([r]), target, count
