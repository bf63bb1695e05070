"""A graph as Python source of plain NumPy calls, for people (`source`) and for `jit`."""

from __future__ import annotations

import keyword
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import numpy as np

from functrans.compiler.numpy.helpers import Helpers
from functrans.compiler.numpy.lowering import (
    PrimitiveCall,
    Text,
    dtype_name,
    number_text,
    parameter_text,
    result_names,
    states,
    written,
)
from functrans.core.primitive import Collective
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable

_LITERAL_SIZE = 32  # larger arrays are not written out
_RESERVED = {"np", "special", "abs", "complex", *keyword.kwlist}


class GraphWriter:
    """Writes the equations of a graph as statements.

    A value that is used once is written inside the expression that uses it, up to `width`
    characters. With `helpers`, the text is self-contained; without, it refers to functions in
    `bound`.
    """

    def __init__(self, graph: Graph, width: int, helpers: Helpers | None) -> None:
        self.graph = graph
        self.width = width
        self.helpers = helpers
        self.texts: dict[Variable, Text] = {}
        self.lines: list[str] = []
        self.bound: dict[str, Any] = {}  # names that the text uses but does not define
        self.taken: set[str] = set(_RESERVED)
        self.numbers: dict[str, int] = defaultdict(lambda: 1)  # the last of each numbered name
        self.uses = Counter(v for equation in graph.equations for v in equation.inputs)
        self.uses.update(graph.outputs)
        self.sizes: dict[str, int] = {}  # bytes of every named result
        self.waiting: dict[Variable, Equation] = {}  # values to be written inside later expressions

    def fresh(self, base: str) -> str:
        """A name that is not in use."""
        name = base
        while name in self.taken:
            self.numbers[base] += 1
            name = f"{base}{self.numbers[base]}"
        self.taken.add(name)
        return name

    def name_input(self, variable: Variable, base: str) -> str:
        name = self.fresh(base)
        self.texts[variable] = Text(name)
        return name

    def write(self) -> None:
        """All constants and equations; the inputs have their names already."""
        for variable, value in self.graph.constants.items():
            self.texts[variable] = self._constant(value, variable.spec)
        for equation in self.graph.equations:
            for variable in equation.inputs:
                self.waiting.pop(variable, None)
            state = states.of(equation.primitive)
            if state is None or not state(self, equation):
                self._write_expression(equation)

    def inside(self, graph: Graph) -> GraphWriter:
        """A writer for a function within this one: their names are different."""
        inner = GraphWriter(graph, self.width, self.helpers)
        inner.taken, inner.numbers, inner.bound = self.taken, self.numbers, self.bound
        return inner

    # Constants.

    def _constant(self, value: Any, spec: ArraySpec) -> Text:
        if not spec.shape:
            return number_text(value, spec.weak)
        name = self.fresh("constant")
        text = None if self.helpers is None else array_text(value)
        if text is None:
            self.bound[name] = value
        else:
            self.lines.append(f"{name} = {text}  # {spec}")
        return Text(name)

    # Equations.

    def _write_expression(self, equation: Equation) -> None:
        call = PrimitiveCall(
            [self.texts[v] for v in equation.inputs],
            [v.spec for v in equation.inputs],
            equation.params,
            equation.outputs[0].spec,
        )
        text = self._expression(equation, call) or self._call(equation, call)
        if equation.primitive.outputs:
            names = [self.result(equation, v) for v in equation.outputs]
            specs = ", ".join(str(v.spec) for v in equation.outputs)
            targets = ", ".join(names) + ("," if len(names) == 1 else "")
            self.lines.append(f"{targets} = {text.code}  # {specs}")
            return
        (out,) = equation.outputs
        if self.uses[out] == 1 and len(text.code) <= self.width:
            self.texts[out] = text
            self.waiting[out] = equation
            return
        self.lines.append(f"{self.result(equation, out)} = {text.code}  # {out.spec}")

    def _expression(self, equation: Equation, call: PrimitiveCall) -> Text | None:
        return written(equation.primitive, call)

    def result(self, equation: Equation, variable: Variable) -> str:
        name = self.fresh(result_names.of(equation.primitive) or "result")
        self.texts[variable] = Text(name)
        self.sizes[name] = variable.spec.size * variable.spec.dtype.itemsize
        return name

    def _call(self, equation: Equation, call: PrimitiveCall) -> Text:
        """A call of a function: one above the source, or the primitive's own."""
        primitive = equation.primitive
        arguments = [text.code for text in call.args]
        if self.helpers is not None and not isinstance(primitive, Collective):
            name = self.helpers.add(primitive)
            arguments += [f"{key}={parameter_text(value)}" for key, value in call.params.items()]
            return Text(f"{name}({', '.join(arguments)})")
        base = primitive.name if primitive.name.isidentifier() else "call"
        name = self.fresh(f"{base}_impl")
        impl = primitive.impl
        self.bound[name] = partial(impl, **call.params) if call.params else impl
        return Text(f"{name}({', '.join(arguments)})")

    def start(self, equation: Equation) -> str:
        """The array that an update changes in place: a copy of its argument."""
        return f"np.array({self.texts[equation.inputs[0]].code}, order='K')"


def array_text(value: np.ndarray[Any, Any]) -> str | None:
    """An array as an expression, if there is a short one."""
    dtype = dtype_name(value.dtype)
    if value.size:
        first = value.reshape(-1)[0]
        if _same(value, np.full(value.shape, first)):
            number = number_text(first.item(), True).code
            return f"np.full({parameter_text(value.shape)}, {number}, {dtype})"
        if value.ndim == 2 and _same(value, np.eye(*value.shape, dtype=value.dtype)):
            shape = parameter_text(value.shape) if value.shape[0] != value.shape[1] else ""
            size = shape[1:-1] or str(value.shape[0])
            return f"np.eye({size}, dtype={dtype})"
        if value.ndim == 1 and value.dtype.kind in "iu" and _same(value, np.arange(value.size)):
            return f"np.arange({value.size}, dtype={dtype})"
    if value.size > _LITERAL_SIZE:
        return None
    rows = _nested(value.tolist())
    return f"np.array({rows}, {dtype})" + ("" if value.size else f".reshape({value.shape})")


def _same(value: Any, other: Any) -> bool:
    """Whether two arrays of the same shape hold the same numbers, including the signs of zeros."""
    if not np.array_equal(value, other, equal_nan=value.dtype.kind in "fc"):
        return False
    return value.dtype.kind not in "f" or np.array_equal(np.signbit(value), np.signbit(other))


def _nested(rows: Any) -> str:
    if isinstance(rows, list):
        return f"[{', '.join(map(_nested, rows))}]"
    return number_text(rows, True).code
