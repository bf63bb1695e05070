"""Linear systems and roots of equations, on flat lists of arrays, with their derivatives.

The derivative of a root is the solution of a linear system, and the solution of a linear system is a root:
each is made of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.procedures import Procedure, pull_through, push_through, staged
from functrans.solvers.implicit import SolutionRules, implicit, stripped
from functrans.transforms.leaves import Flags, zero_tangent


class System:
    """A linear operator and its solvers, on flat lists of arrays.

    matvec(*constants, *x)           a Procedure; the result is like x
    solve(matvec, constants, b)      a list like b, followed by anything else the solver reports
    transpose_solve                  the same for the transposed operator
    """

    def __init__(
        self,
        matvec: Procedure,
        solve: Callable[..., Any],
        transpose_solve: Callable[..., Any],
    ) -> None:
        self.matvec = matvec
        self.solve = solve
        self.transpose_solve = transpose_solve
        self._transposed: System | None = None

    def transposed(self) -> System:
        if self._transposed is None:
            specs = self.matvec.outputs
            fixed = len(self.matvec.inputs) - len(specs)
            active = (False,) * fixed + (True,) * len(specs)

            def transpose(*leaves: Any) -> list[Any]:
                # It is linear, so its pullback is the same everywhere: the graph drops the point.
                point = [np.zeros(spec.shape, spec.dtype) for spec in specs]
                return pull_through(self.matvec, active, [*leaves[:fixed], *point, *leaves[fixed:]])

            matvec = staged(transpose, self.matvec.inputs)
            self._transposed = System(matvec, self.transpose_solve, self.solve)
            self._transposed._transposed = self
        return self._transposed

    def solution(
        self, constants: Sequence[Any], b: Sequence[Any], solve: Callable[..., Any] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """x with A x = b, and anything else the solver reports.

        A solver passed here is used for this solution only, not for its derivatives.
        """
        solve = solve or self.solve
        found = stripped(solve(self.matvec, stripped(constants), stripped(b)))
        fixed, n = len(constants), len(b)
        root = Root(
            self.equation,
            lambda operands, x: (self, operands[:fixed]),
            lambda operands, x: (self.transposed(), operands[:fixed]),
        )
        return root.attached([*constants, *b], found[:n], "linear_solve"), found[n:]

    def equation(self) -> Procedure:
        """(constants, b, x) -> A x - b."""
        vector = self.matvec.outputs
        n = len(vector)
        fixed = len(self.matvec.inputs) - n

        def residual(*leaves: Any) -> list[Any]:
            image = self.matvec(*leaves[:fixed], *leaves[fixed + n :])
            return [
                one - other for one, other in zip(image, leaves[fixed : fixed + n], strict=True)
            ]

        return staged(residual, [*self.matvec.inputs[:fixed], *vector, *vector])


class Root:
    """x with f(operands, x) = 0, as a function of the operands.

    `equation()` is f, when a derivative needs it, and `jacobian(operands, x)` is the system whose
    operator is J = ∂f/∂x, with its constants; `adjoint(operands, x)` is that of its transpose. Each mode
    uses only its own system, so that f needs the rules of that mode only.
    """

    def __init__(
        self,
        equation: Callable[[], Procedure],
        jacobian: Callable[..., Any],
        adjoint: Callable[..., Any],
    ) -> None:
        self.equation = equation
        self.jacobian = jacobian
        self.adjoint = adjoint

    def attached(self, operands: Sequence[Any], found: Sequence[Any], name: str) -> list[Any]:
        """The root as found, with its derivatives with respect to the operands."""
        rules = SolutionRules(self.push, self.pull, name)
        return list(implicit(*operands, *found, rules=rules, count=len(operands)))

    # J dx + (∂f/∂θ) dθ = 0

    def push(self, operands: list[Any], x: list[Any], tangents: list[Any]) -> list[Any]:
        _, moved = push_through(self.equation(), [*operands, *x], [*tangents, *(None for _ in x)])
        rhs = [
            zero_tangent(like) if each is None else -each
            for each, like in zip(moved, x, strict=True)
        ]
        system, constants = self.jacobian(operands, x)
        return system.solution(constants, rhs)[0]  # type: ignore[no-any-return]

    # J^T λ = g, and the cotangent of θ is -(∂f/∂θ)^T λ

    def pull(
        self, operands: list[Any], x: list[Any], cotangents: list[Any], active: Flags
    ) -> list[Any]:
        system, constants = self.adjoint(operands, x)
        multipliers = system.solution(constants, cotangents)[0]
        back = [-each for each in multipliers]
        flags = active + (False,) * len(x)
        return pull_through(self.equation(), flags, [*operands, *x, *back])
