"""The texts in boxes and on edges: operations, shapes and values in a few characters."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Variable
from functrans.graph.printing import format_param

_LONGEST = 34  # characters in a line of a box


def equation_lines(equation: Equation, names: dict[Variable, str]) -> tuple[str, ...]:
    """b = multiply(a, 2.0), and the parameters below."""
    results = ", ".join(names[v] for v in equation.outputs)
    arguments = ", ".join(names[v] for v in equation.inputs)
    return call_lines(results, equation.primitive.name, arguments, equation.params)


def call_lines(results: str, name: str, arguments: str, params: dict[str, Any]) -> tuple[str, ...]:
    first = short_text(f"{results} = {name}({arguments})")
    options = ", ".join(f"{key}={format_param(value)}" for key, value in params.items())
    return (first, short_text(options)) if options else (first,)


def short_text(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def spec_text(spec: ArraySpec) -> str:
    """The shape of an array, and its dtype if it is not the default."""
    return str(spec).rstrip("*").removeprefix("float64")


def value_text(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, Tracer):
        return "traced"
    array = np.asarray(value)
    if array.ndim == 0:
        return _number_text(array[()])
    if array.ndim == 1 and array.size <= 4:
        return f"[{' '.join(map(_number_text, array))}]"
    if array.ndim == 2 and array.size <= 4 and array.size:
        return f"[{' '.join(value_text(row) for row in array)}]"
    if array.size == 0 or array.dtype.kind not in "biuf":
        return spec_text(ArraySpec(array.shape, array.dtype))
    low, high = _number_text(array.min()), _number_text(array.max())
    return f"{low} … {high}"


def _number_text(number: Any) -> str:
    if isinstance(number, (bool, np.bool_, int, np.integer)):
        return str(number)
    return f"{number:.4g}"
