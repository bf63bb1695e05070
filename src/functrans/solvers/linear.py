"""linear_solve: the solution of a linear system by a user-supplied solver.

The solver is called with a function and values that carry no derivatives, so it may be any code; the
derivative comes from the equation. The solvers cg, gmres and bicgstab are in krylov.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.calling import call
from functrans.control.procedures import Flattened, Procedure, close, staged
from functrans.core import errors, tree
from functrans.core.custody import lending, own
from functrans.core.dispatch import is_anything_running
from functrans.core.shapes import ArraySpec, dtype_of, spec_of
from functrans.solvers.implicit import stripped
from functrans.solvers.systems import System
from functrans.solvers.vectors import check_tolerance, floating_leaves, leaves_like, norm, report
from functrans.transforms.arguments import check_callable
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import fitted, is_known, lanes_of, strong, zeros


def linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    tol: float = 1e-4,
) -> Any:
    """Solve matvec(x) = b with your own solver, which is not differentiated.

    The derivative is the solution of the same system with another right-hand side; reverse mode solves
    the transposed system. Both modes work, to every order, with respect to `b` and every value that
    `matvec` closes over.

    Parameters
    ----------
    matvec : callable
        A linear function of a pytree like `b`, which returns one like it. Where values are known, it is
        first called with zeros; if it adds a constant, this raises a `LinearityError`.
    b : pytree of arrays
    solve : callable
        solve(matvec, b) -> x. It sees values without derivatives, and may branch on them in Python where
        they are known; under `jit`, use `while_loop` and similar functions. If it does not branch, it
        may close over traced values.
    transpose_solve : callable, optional
        transpose_solve(matvec_transposed, b) -> x for the transposed system; `solve` by default.
    tol : float
        A `ConvergenceWarning` is raised if ‖matvec(x) - b‖ > tol ‖b‖.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, linear_solve
    >>> def diagonal_solve(matvec, b):
    ...     return b / matvec(np.ones(2))
    >>> def loss(d):
    ...     return np.sum(linear_solve(lambda x: d * x, np.array([1.0, 2.0]), diagonal_solve))
    >>> grad(loss)(np.array([1.0, 2.0]))
    array([-1. , -0.5])
    """
    matvec = check_callable(matvec, "linear_solve")
    solve = check_callable(solve, "linear_solve")
    if transpose_solve is not None:
        transpose_solve = check_callable(transpose_solve, "linear_solve")
    tol = check_tolerance(tol, "tol", "linear_solve")
    operator, constants, leaves, structure = linear_operator(matvec, b, "linear_solve")
    solver = UserSolver(solve, structure, "linear_solve", tol)
    if not isinstance(operator, Procedure):
        return tree.unflatten(structure, solver(operator, (), leaves))
    transposed = solver
    if transpose_solve is not None:
        transposed = UserSolver(transpose_solve, structure, "linear_solve", tol)
    system, more = closed_system(System(operator, solver, transposed), constants, leaves)
    return tree.unflatten(structure, system.solution([*more, *constants], leaves)[0])


def linear_operator(matvec: Any, b: Any, name: str) -> tuple[Any, list[Any], list[Any], Any]:
    """(operator, constants, leaves of b, structure): operator(*constants, *leaves) is like the leaves.

    It is a procedure if a transform may be active, and the user's own function otherwise. If it turns real
    values into complex ones, b is made complex. It is called with zeros, which shows its shapes and
    whether it adds a constant.
    """
    leaves, structure = floating_leaves(b, f"{name}: b")
    arguments = tree.structure((tree.unflatten(structure, leaves),))
    flattened = Flattened(matvec, arguments, name)
    what = f"{name}: the result of {errors.describe(matvec)}, which should be like b,"
    traced = is_anything_running()
    while True:
        specs = [spec_of(leaf) for leaf in leaves]
        if traced:
            procedure, constants = close(flattened, specs)
            image = procedure.outputs
        else:
            at_zero = flattened(*map(zeros, specs))
            image = tuple(map(spec_of, at_zero))
        wider = [
            ArraySpec(s.shape, np.result_type(s.dtype, complex))
            if i.dtype.kind == "c" and s.dtype.kind != "c"
            else s
            for i, s in zip(image, specs, strict=False)
        ]
        leaves_like(flattened.rebuild([zeros(spec) for spec in image]), wider, structure, what)
        if wider == specs:
            break
        leaves = list(map(fitted, leaves, wider))
    if traced:
        if all(map(is_known, constants)):
            _check_zero(procedure(*stripped(constants), *map(zeros, specs)), matvec, name)
        return procedure.cast(tuple(specs)), constants, leaves, structure
    _check_zero(at_zero, matvec, name)
    plain = lambda *x: list(map(fitted, flattened(*x), specs))
    return plain, [], leaves, structure


def _check_zero(image: Sequence[Any], matvec: Any, name: str) -> None:
    """Refuse a function that adds a constant. A nan at 0 is left to the solver."""
    largest = max((np.max(np.abs(lanes_of(leaf)), initial=0.0) for leaf in image), default=0.0)
    if largest > 0:
        raise errors.LinearityError(
            f"{name}: {errors.describe(matvec)} is not linear: it maps zeros to values up to {largest:.3g}, "
            f"at {errors.user_location()}. If it is A x + c, leave c out and solve A x = b - c."
        )


class UserSolver:
    """A user's solve(matvec, b) in the form that `System` calls, with its result checked."""

    def __init__(self, function: Any, structure: Any, name: str, tol: float) -> None:
        self.function = function
        self.structure = structure
        self.name = name
        self.tol = tol

    def __call__(self, matvec: Any, constants: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        specs = [strong(spec_of(leaf)) for leaf in b]
        of_solver = f"{self.name}: the value that {errors.describe(self.function)}"

        def operator(x: Any) -> Any:
            leaves = leaves_like(x, specs, self.structure, f"{of_solver} passes to matvec")
            return tree.unflatten(self.structure, matvec(*constants, *leaves))

        run = lambda lent: self.function(operator, tree.unflatten(self.structure, lent))
        found = lending(run, b, self.function)
        x = stripped(own(leaves_like(found, specs, self.structure, f"{of_solver} returns")))
        image = stripped(matvec(*constants, *x))
        residual = norm([one - other for one, other in zip(image, b, strict=True)])
        scale = norm(b)
        return report(
            x,
            np.logical_not(residual <= self.tol * scale),
            f"{of_solver} returns does not solve the linear system: the norm of the residual is "
            "{:.1e}, and of the right-hand side {:.1e}. Let the solver run longer, or raise tol.",
            residual,
            scale,
        )


def closed_system(
    system: System, constants: Sequence[Any], b: Sequence[Any]
) -> tuple[System, list[Any]]:
    """The same system with solvers that close over no traced values: these become the first constants."""
    fixed = len(constants)
    specs = [spec_of(value) for value in (*constants, *b)]

    def written(system: System) -> tuple[Procedure, list[Any]]:
        return close(
            lambda *leaves: system.solve(system.matvec, leaves[:fixed], leaves[fixed:]), specs
        )

    try:
        (forward, first), (backward, second) = written(system), written(system.transposed())
    except errors.FunctransError:
        if not all(map(is_known, (*constants, *b))):
            raise
        return system, []  # it reads values, so it runs on them
    if not first and not second:
        return system, []
    k, count = len(first), len(first) + len(second)

    def solve(matvec: Any, constants: Any, b: Any) -> list[Any]:
        return forward(*constants[:k], *constants[count:], *b)

    def transpose_solve(matvec: Any, constants: Any, b: Any) -> list[Any]:
        return backward(*constants[k:count], *constants[count:], *b)

    captured = [*first, *second]
    matvec = staged(
        lambda *leaves: system.matvec(*leaves[count:]),
        [*map(spec_of, captured), *system.matvec.inputs],
    )
    return System(matvec, solve, transpose_solve), captured


class DenseSolver:
    """Solves with the matrix of the operator, in real coordinates: it need not be complex linear."""

    def __init__(self, singular: str, advice: str) -> None:
        self.singular = singular  # the message if there is no solution
        self.advice = advice

    def __call__(self, matvec: Any, constants: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        specs = [spec_of(leaf) for leaf in b]
        if not sum(spec.size for spec in specs):
            return list(b)
        vector = _coordinates(b)
        basis = np.eye(vector.shape[0], dtype=vector.dtype)
        columns = vmap(lambda e: _coordinates(matvec(*constants, *_from_coordinates(e, specs))))(
            basis
        )
        # One equation of a graph, so that the graph raises the same error when it runs.
        (found,) = call(columns.T, vector, function=self._solved, specs=(spec_of(vector),))
        return _from_coordinates(found, specs)

    def _solved(self, matrix: Any, vector: Any) -> list[Any]:
        try:
            return [np.linalg.solve(matrix, vector)]
        except np.linalg.LinAlgError:
            raise errors.SingularError(
                f"{self.singular}, at {errors.user_location()}. {self.advice}"
            ) from None


def _coordinates(leaves: Sequence[Any]) -> Any:
    """All entries as one real vector."""
    parts: list[Any] = []
    for leaf in leaves:
        flat = np.reshape(leaf, (-1,))
        parts += [flat.real, flat.imag] if dtype_of(leaf).kind == "c" else [flat]
    return np.concatenate(parts)


def _from_coordinates(vector: Any, specs: Sequence[ArraySpec]) -> list[Any]:
    leaves, start = [], 0
    for spec in specs:
        part = vector[start : start + spec.size]
        start += spec.size
        if spec.dtype.kind == "c":
            part = part + 1j * vector[start : start + spec.size]
            start += spec.size
        leaves.append(np.reshape(part, spec.shape).astype(spec.dtype)[()])
    return leaves
