"""The cost of a call of compiled code: kernels, floating point operations, and bytes moved."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from functrans.core.primitive import Rules
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph
from functrans.ops.contraction import einsum, matmul

Cost = Callable[[Equation], int]


def cost_of(graph: Graph) -> tuple[int, int, int]:
    """The number of kernels, and estimates of floating point operations and bytes moved."""
    kernels = flops = moved = 0
    for equation in graph.equations:
        primitive = equation.primitive
        if primitive.views and primitive.kind != "linear algebra":
            continue  # it costs nothing
        kernels += 1
        flops += (operations.of(primitive) or _by_size)(equation)
        moved += sum(_bytes(v.spec) for v in (*equation.inputs, *equation.outputs))
    return kernels, flops, moved


def _bytes(spec: ArraySpec) -> int:
    return spec.size * spec.dtype.itemsize if spec.shape else 0


def _by_kind(primitive: Any) -> Cost | None:
    return {"elementwise": _one_for_each, "linear algebra": _cubic}.get(primitive.kind)


def _one_for_each(equation: Equation) -> int:
    return equation.outputs[0].spec.size


def _cubic(equation: Equation) -> int:
    spec = equation.inputs[0].spec
    return 2 * spec.size * spec.shape[-1] if spec.shape else 0


def _by_size(equation: Equation) -> int:
    if "axis" not in equation.params:
        return 0
    return max((variable.spec.size for variable in equation.inputs), default=0)


operations: Rules[Cost] = Rules(_by_kind)


@operations(matmul)
def _matmul(equation: Equation) -> int:
    return 2 * equation.outputs[0].spec.size * equation.inputs[0].spec.shape[-1]


@operations(einsum)
def _einsum(equation: Equation) -> int:
    inputs, _, _ = equation.params["subscripts"].partition("->")
    lengths: dict[str, int] = {}
    for term, variable in zip(inputs.split(","), equation.inputs, strict=True):
        for letter, n in zip(term, variable.spec.shape, strict=True):
            lengths[letter] = max(n, lengths.get(letter, 1))
    return len(equation.inputs) * prod(lengths.values())
