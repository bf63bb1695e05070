"""The plainest meaning: compute.

It needs no tracers. When no argument of a primitive is traced, `Primitive.__call__` calls its NumPy
implementation, so running equations on plain arrays computes, and running them on tracers does what
those tracers' interpreters say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def run_equations(equations: Iterable[Any], environment: dict[Any, Any]) -> None:
    """Run equations in order; `environment` maps variables to values and is filled in place."""
    for equation in equations:
        args = [environment[variable] for variable in equation.inputs]
        result = equation.primitive(*args, **equation.params)
        if equation.primitive.outputs:
            environment.update(zip(equation.outputs, result, strict=True))
        else:
            environment[equation.outputs[0]] = result
