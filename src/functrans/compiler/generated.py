"""Graphs as compiled Python functions of plain NumPy calls: the backend "numpy" of `jit`."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.expressions import Call, Text, expression, value_text
from functrans.compiler.vocabulary import is_ours
from functrans.compiler.writer import Writer
from functrans.core.primitive import Collective, Elementwise, Primitive
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable

_WIDTH = 100
_numbers = itertools.count(1)


class Compiled(NamedTuple):
    """A function of flat inputs that returns flat outputs, and what it is made of."""

    function: Callable[..., tuple[Any, ...]]
    code: str
    structure: Any  # of the results; None if it is one bare array
    cost: tuple[int, int, int]
    # The same on arguments and results as the user sees them: then `function` gives those, too.
    direct: Callable[..., Any] | None = None


class NativeCall(Primitive):
    """A step of generated code that is native; its results are new arrays, in a tuple."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any], outputs: int) -> None:
        super().__init__(
            "native", function, batch=_not_batched, shape=_not_batched, outputs=outputs
        )


def _not_batched(*_: Any) -> Any:
    raise NotImplementedError("generated code is not traced")


class _FastWriter(Writer):
    """The same source, with the quicker of two ways to say a thing."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, _WIDTH, None)
        self.owners = _owners(graph)
        self.last_use: dict[Variable, Equation | None] = {}
        for equation in graph.equations:
            for variable in equation.inputs:
                for owner in self.owners[variable]:
                    self.last_use[owner] = equation
        for variable in graph.outputs:
            for owner in self.owners[variable]:
                self.last_use[owner] = None  # it must outlive every equation

    def _start(self, equation: Equation) -> str:
        """The array itself, if it is ours and nobody looks at its memory again."""
        x, out = equation.inputs[0], equation.outputs[0]
        foreign = self.graph.constants.keys() | set(self.graph.inputs)
        dying = self.owners[x] == {x} and x not in foreign and self.last_use[x] is equation
        if not dying or not out.spec.shape:
            return super()._start(equation)
        name = self.texts[x].code
        if name not in self.sizes:
            return name  # an expression whose value nobody else has
        for variable, waiting in list(self.waiting.items()):  # they may read what is changed now
            text = self.texts[variable].code
            self.lines.append(f"{self._result(waiting, variable)} = {text}")
        self.waiting.clear()
        return name

    def _expression(self, equation: Equation, call: Call) -> Text | None:
        primitive = equation.primitive
        if is_ours(primitive):
            fast = _FAST.get(primitive.name)
            found = None if fast is None else fast(call)
            if found is not None:
                return Text(found)
            if primitive.name in _OWN:
                return None  # the library's own function knows a faster way
        text = expression(primitive, call)
        # SciPy's functions are bound, not imported.
        return None if text is None or text.code.startswith("special.") else text


def _fast_sum(call: Call) -> str:
    axis = call.params["axis"]
    shape = str(axis[0]) if len(axis) == 1 else value_text(axis)
    kept = ", None, None, True" if call.params["keepdims"] else ""
    return f"np.add.reduce({call.plain()}, {shape}{kept})"


def _fast_matmul(call: Call) -> str | None:
    if call.specs[0].ndim == call.specs[1].ndim == 2:
        return f"{call.atom()}.dot({call.plain(1)})"
    return None


_FAST: dict[str, Callable[[Call], str | None]] = {"sum": _fast_sum, "matmul": _fast_matmul}
_OWN = frozenset({"mean"})


def compile_graph(graph: Graph) -> Compiled:
    """Write, compile and load a graph."""
    writer = _FastWriter(graph)
    parameters = [writer.name_input(v, f"x{k}") for k, v in enumerate(graph.inputs)]
    writer.write()
    copied = _shared_outputs(graph)
    results = [
        f"np.array({writer.texts[v].code})" if copy else writer.texts[v].code
        for v, copy in zip(graph.outputs, copied, strict=True)
    ]
    end = "," if len(results) == 1 else ""
    body = [*writer.lines, f"return ({', '.join(results)}{end})"]
    body = _freeing([line.partition("  # ")[0] for line in body], writer.sizes)
    code = f"def compiled({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    namespace: dict[str, Any] = dict(writer.bound)
    code = _bind_functions(code, namespace)
    for value in writer.bound.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    name = f"<functrans jit {next(_numbers)}>"
    exec(compile(code, name, "exec"), namespace)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = graph.out_tree
    single = tree is not None and tree.is_leaf()
    return Compiled(namespace["compiled"], code, None if single else tree, cost_of(graph))


_LARGE = 1 << 16  # bytes; what is smaller is freed on return


def _freeing(lines: list[str], sizes: dict[str, int]) -> list[str]:
    """The statements, and `del` where a large result is used for the last time."""
    last: dict[str, int] = {}
    for number, line in enumerate(lines[:-1]):
        last.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", line), number))
    for name in re.findall(r"[A-Za-z_]\w*", lines[-1]):
        last.pop(name, None)
    ends: dict[int, list[str]] = {}
    for name, number in last.items():
        if sizes.get(name, 0) >= _LARGE:
            ends.setdefault(number, []).append(name)
    freeing = []
    for number, line in enumerate(lines):
        freeing.append(line)
        if number in ends:
            freeing.append(f"del {', '.join(ends[number])}")
    return freeing


def _bind_functions(code: str, namespace: dict[str, Any]) -> str:
    """np.sin as one global name, which is found sooner than an attribute of a module."""

    def bound(match: re.Match[str]) -> str:
        path = match.group(1)
        value: Any = np
        for attribute in path.split("."):
            value = getattr(value, attribute)
        name = "np_" + path.replace(".", "_")
        namespace[name] = value
        return name

    return re.sub(r"\bnp\.([a-z_A-Z][\w.]*\w)", bound, code)


# Results are the caller's own: what may share memory with an input, a constant or another result is
# copied.


def _owners(graph: Graph) -> dict[Variable, frozenset[Variable]]:
    """For each variable, those in whose memory it may lie, itself included."""
    owners = {variable: frozenset((variable,)) for variable in (*graph.inputs, *graph.constants)}
    for equation in graph.equations:
        for out in equation.outputs:
            owners[out] = frozenset((out,))
            if _may_view(equation):
                owners[out] = owners[out].union(*(owners[v] for v in equation.inputs))
    return owners


def _shared_outputs(graph: Graph) -> list[bool]:
    owners = _owners(graph)
    foreign = {*graph.inputs, *graph.constants}
    shared = []
    seen: set[Variable] = set()
    for variable in graph.outputs:
        memory = owners[variable]
        shares = not memory.isdisjoint(foreign) or not memory.isdisjoint(seen)
        seen |= memory
        shared.append(shares and bool(variable.spec.shape))
    return shared


_VIEWS = frozenset(
    {"reshape", "transpose", "broadcast_to", "index", "real", "imag"}
    | {"stop_gradient", "complement", "einsum"}
)


def _may_view(equation: Equation) -> bool:
    """Whether a result may lie in the memory of an argument."""
    primitive = equation.primitive
    if isinstance(primitive, NativeCall):
        return False
    if isinstance(primitive, Collective):
        return True
    if is_ours(primitive):
        return primitive.name in _VIEWS
    return not isinstance(primitive.impl, np.ufunc)


# What a call costs.


def cost_of(graph: Graph) -> tuple[int, int, int]:
    """The number of kernels, and estimates of floating point operations and bytes moved."""
    kernels = flops = moved = 0
    for equation in graph.equations:
        if is_ours(equation.primitive) and equation.primitive.name in _VIEWS - {"einsum"}:
            continue
        kernels += 1
        flops += _flops(equation)
        moved += sum(_bytes(v.spec) for v in (*equation.inputs, *equation.outputs))
    return kernels, flops, moved


def _bytes(spec: ArraySpec) -> int:
    return spec.size * spec.dtype.itemsize if spec.shape else 0


def _flops(equation: Equation) -> int:
    name, (out, *_) = equation.primitive.name, equation.outputs
    specs = [v.spec for v in equation.inputs]
    if name == "matmul":
        return 2 * out.spec.size * specs[0].shape[-1]
    if name == "einsum":
        inputs, _, _ = equation.params["subscripts"].partition("->")
        lengths: dict[str, int] = {}
        for term, spec in zip(inputs.split(","), specs, strict=True):
            for letter, n in zip(term, spec.shape, strict=True):
                lengths[letter] = max(n, lengths.get(letter, 1))
        return len(specs) * prod(lengths.values())
    if name in ("solve", "cholesky", "qr", "eigh", "svd", "det", "inv"):
        return 2 * specs[0].size * specs[0].shape[-1]
    if isinstance(equation.primitive, Elementwise):
        return out.spec.size
    return max((spec.size for spec in specs), default=0) if "axis" in equation.params else 0
