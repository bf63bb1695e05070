"""Program: a random function as source code, with points at which it is smooth.

The text uses the names `np`, `ft` and NARROW. The caller decides what they mean: NumPy and functrans, or
loops and finite differences, or another library. NARROW is the dtype float32, or float64 to run the same
program in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np

from tools.fuzz.nests import leaves, mapped, paths

# Evaluations that a statement may not support.
STAGING, COMPLEX_STEPS, JAX, TORCH = "staging", "complex steps", "jax", "torch"


@dataclass(frozen=True)
class Statement:
    """Some lines of a program, and their properties."""

    text: str
    defines: tuple[str, ...]
    reads: frozenset[str]
    lacks: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ()
    # The lines with checks that no branch is a close call, and a condition that must hold before they run.
    checked: str = ""
    guard: str = ""
    # Whether they change arrays of earlier statements in place.
    changes: bool = False


@dataclass(frozen=True, repr=False)
class Program:
    """A function of some pytrees of arrays.

    parameters: for each parameter, a pytree of the names of its leaves in the body.
    points:     for each point, the values by name; the program is smooth around all points.
    shared:     the positions of the parameters that are the same at all points.
    constants:  the values that the function closes over.
    watched:    whether it returns a list of all arrays as they are after every statement, not `results`.

    Examples
    --------
    >>> from tools.fuzz.programs import Seeded, random_program
    >>> program = random_program(Seeded(1))
    >>> len(program.points) > 0
    True
    """

    parameters: tuple[Any, ...]
    points: tuple[dict[str, Any], ...]
    shared: frozenset[int]
    constants: dict[str, Any]
    statements: tuple[Statement, ...] = ()
    results: Any = ()
    lacking: frozenset[str] = field(default=frozenset())
    watched: bool = False

    def __repr__(self) -> str:
        values = self.points[0].items()
        lines = [f"# {name}: {np.asarray(value).dtype}{np.shape(value)}" for name, value in values]
        lines += [line for line in self.source.splitlines() if not line.startswith("    seen")]
        return "\n".join(["", *lines, ""])

    @property
    def lacks(self) -> frozenset[str]:
        """The evaluations that the program as a whole does not support."""
        return self.lacking.union(*(statement.lacks for statement in self.statements))

    @property
    def kinds(self) -> list[str]:
        """The kinds of its statements, for statistics."""
        return [kind for statement in self.statements for kind in statement.kinds]

    @cached_property
    def narrow(self) -> bool:
        """Whether part of it is computed in single precision."""
        values = [*self.points[0].values(), *self.constants.values()]
        single = any(np.asarray(value).dtype == np.float32 for value in values)
        return single or any("NARROW" in statement.text for statement in self.statements)

    @cached_property
    def source(self) -> str:
        """The function `f0`, as text."""
        names = ", ".join(f"x{k}" for k in range(len(self.parameters)))
        lines = [f"def f0({names}):"]
        for k, parameter in enumerate(self.parameters):
            lines += [
                f"    {name} = {path}"
                for name, path in zip(leaves(parameter), paths(parameter, f"x{k}"), strict=True)
                if name != path
            ]
        if self.watched:
            lines.append("    seen = []")
        made: dict[str, None] = {}
        for statement in self.statements:
            lines += [f"    {line}" for line in statement.text.splitlines()]
            if self.watched:
                made |= dict.fromkeys(statement.defines)
                lines.append(f"    seen += [{', '.join(f'{name}.copy()' for name in made)}]")
        results = "seen" if self.watched else _written_names(self.results)
        return "\n".join([*lines, f"    return {results}", ""])

    @cached_property
    def code(self) -> CodeType:
        return compile(self.source, "<random program>", "exec")

    @cached_property
    def run(self) -> Callable[..., Any]:
        """The function on NumPy; for programs that use only NumPy."""
        scope: dict[str, Any] = {"np": np, "NARROW": np.float32, **self.constants}
        exec(self.code, scope)
        function: Callable[..., Any] = scope["f0"]
        return function

    def arguments(self, point: int) -> tuple[Any, ...]:
        """The arguments at a point."""
        values = self.points[point]
        return tuple(mapped(lambda name: values[name], tree) for tree in self.parameters)


def _written_names(tree: Any) -> str:
    """A pytree of names as an expression."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_written_names(tree[key])}" for key in tree) + "}"
    if isinstance(tree, (tuple, list)):
        inside = ", ".join(map(_written_names, tree))
        return f"[{inside}]" if isinstance(tree, list) else f"({inside},)"
    return str(tree)
