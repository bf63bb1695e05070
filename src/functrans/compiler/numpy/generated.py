"""Graphs as compiled Python functions of plain NumPy calls: the backend "numpy" of `jit`."""

from __future__ import annotations

import itertools
import linecache
import re
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.costs import cost_of
from functrans.compiler.numpy.lowering import PrimitiveCall, Text, quick, written
from functrans.compiler.numpy.writer import GraphWriter
from functrans.core import errors
from functrans.core.custody import own_apart
from functrans.core.dispatch import is_plain
from functrans.core.primitive import AS_NUMBER, HigherOrder, Primitive
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops.elementwise import power
from functrans.ops.structure import broadcast_to

_WIDTH = 100
_numbers = itertools.count(1)
_unused: list[int] = []  # the numbers of deleted functions, for reuse


class Compiled(NamedTuple):
    """A function from flat inputs to flat outputs, and its source code."""

    function: Callable[..., tuple[Any, ...]]
    code: str
    structure: Any  # of the results; None for one bare array
    cost: tuple[int, int, int]
    # The same function on the user's containers; if it is given, `function` returns containers, too.
    direct: Callable[..., Any] | None = None


class NativeCall(Primitive):
    """A native step in generated code; it returns a tuple of new arrays."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any], outputs: int) -> None:
        super().__init__(
            "native",
            function,
            batch=_not_batched,
            shape=_not_batched,
            outputs=outputs,
            views=False,
            register=False,
        )


def _not_batched(*_: Any) -> Any:
    raise NotImplementedError("generated code is not traced")


class _FastWriter(GraphWriter):
    """The same source, with the quicker of two ways to say a thing."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, _WIDTH, None)
        self.owners = _owners(graph, _may_view)
        self.last_use: dict[Variable, Equation | None] = {}
        for equation in graph.equations:
            for variable in equation.inputs:
                for owner in self.owners[variable]:
                    self.last_use[owner] = equation
        for variable in graph.outputs:
            for owner in self.owners[variable]:
                self.last_use[owner] = None  # it must outlive every equation

    def start(self, equation: Equation) -> str:
        """The array itself, if the code owns its memory and does not read it again."""
        x, out = equation.inputs[0], equation.outputs[0]
        foreign = self.graph.constants.keys() | set(self.graph.inputs)
        dying = self.owners[x] == {x} and x not in foreign and self.last_use[x] is equation
        if not dying or not out.spec.shape:
            return super().start(equation)
        name = self.texts[x].code
        if name not in self.sizes:
            return name  # an expression whose value nothing else refers to
        for variable, waiting in list(self.waiting.items()):  # they may read the array
            text = self.texts[variable].code
            self.lines.append(f"{self.result(waiting, variable)} = {text}")
        self.waiting.clear()
        return name

    def _expression(self, equation: Equation, call: PrimitiveCall) -> Text | None:
        if equation.primitive is power and call.out.weak and call.out.dtype.kind == "f":
            name = self.fresh("real_power")
            self.bound[name] = real_power
            return Text(f"{name}({call.plain(0)}, {call.plain(1)})")
        rule = quick.of(equation.primitive)
        if rule is not None:
            found = rule(call)
            return None if found is None else Text(found)
        text = written(equation.primitive, call)
        # SciPy's functions are bound, not imported.
        return None if text is None or text.code.startswith("special.") else text


def real_power(x: Any, y: Any) -> Any:
    """A power of Python's numbers that was real when the function was traced."""
    result = x**y
    if isinstance(result, complex):
        raise errors.GraphError(
            f"a step of this function returned the complex number {result}, but was traced for real "
            f"numbers, at {errors.user_location()}. Python's (-1.0) ** 0.5 is complex: pass np.float64(x), "
            "whose power is nan."
        )
    return result


def compile_graph(graph: Graph) -> Compiled:
    """Write, compile and load a graph."""
    writer = _FastWriter(graph)
    parameters = [writer.name_input(v, f"x{k}") for k, v in enumerate(graph.inputs)]
    writer.write()
    namespace: dict[str, Any] = {}
    body = [*writer.lines, f"return {_results(writer, parameters, namespace)}"]
    body = _freeing([line.partition("  # ")[0] for line in body], writer.sizes)
    code = f"def compiled({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    namespace |= writer.bound
    code = _bind_functions(code, namespace)
    for value in writer.bound.values():
        if is_plain(value, np.ndarray):
            value.flags.writeable = False
    function = _loaded(code, namespace)
    tree = graph.out_tree
    single = tree is not None and tree.is_leaf()
    return Compiled(function, code, None if single else tree, cost_of(graph))


def _loaded(code: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function that the code defines. Tracebacks find its lines under a name that is removed with it."""
    try:
        number = _unused.pop()
    except IndexError:
        number = next(_numbers)
    name = f"<functrans jit {number}>"
    exec(compile(code, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["compiled"]
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    weakref.finalize(function, _unload, number, name).atexit = False
    return function


def _unload(number: int, name: str) -> None:
    linecache.cache.pop(name, None)
    _unused.append(number)


_LARGE = 1 << 16  # bytes; smaller arrays are freed on return


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
    """np.sin as one global name, which is faster to look up than an attribute of a module."""

    def bound(match: re.Match[str]) -> str:
        path = match.group(1)
        value: Any = np
        for attribute in path.split("."):
            value = getattr(value, attribute)
        name = "np_" + path.replace(".", "_")
        namespace[name] = value
        return name

    return re.sub(r"\bnp\.([a-z_A-Z][\w.]*\w)", bound, code)


# Results belong to the caller and are in C order: a result that shares memory with an input, a constant or
# another result is copied. For most primitives it is known in advance whether their results do. All others
# are checked when the code runs, so any new primitive is safe.


def _copied(value: Any) -> Any:
    return value.copy() if type(value) is np.ndarray else value


def _results(writer: GraphWriter, parameters: list[str], namespace: dict[str, Any]) -> str:
    """The tuple of the results, as an expression."""
    graph = writer.graph
    results = []
    certain = shared_outputs(graph)
    possible = _shared_outputs(graph, _owners(graph, _may_view))
    origins = {v: equation for equation in graph.equations for v in equation.outputs}
    for k, (variable, shares) in enumerate(zip(graph.outputs, certain, strict=True)):
        code = writer.texts[variable].code
        if shares and variable.spec.shape:
            code = f"np.array({code}, order='C')"
        elif shares:  # a number, or a zero-dimensional array, which stays one
            name = writer.fresh("copied")
            namespace[name] = _copied
            code = f"{name}({code})"
        elif variable.spec.ndim > 1:
            code = f"np.ascontiguousarray({code})"
        if graph.arrays is not None and not variable.spec.shape and not variable.spec.weak:
            if k in graph.arrays:
                code = f"np.asarray({code})"
            elif not _is_number(origins.get(variable)):
                code = f"({code})[()]"
        results.append(code)
    pairs = enumerate(zip(certain, possible, strict=True))
    unsure = [k for k, (shares, may) in pairs if may and not shares]
    every = f"({', '.join(results)}{',' * (len(results) == 1)})"
    if not unsure:
        return every
    name = writer.fresh("apart")
    namespace[name] = own_apart
    return f"{name}({every}, {tuple(unsure)}, ({''.join(f'{each}, ' for each in parameters)}))"


def _is_number(equation: Equation | None) -> bool:
    """Whether a result without axes is certain to be a number and not an array."""
    if equation is None or isinstance(equation.primitive, HigherOrder):
        return False
    return bool(equation.primitive.form(equation.params) == AS_NUMBER)


def _owners(
    graph: Graph, is_view: Callable[[Equation], bool]
) -> dict[Variable, frozenset[Variable]]:
    """For each variable, the variables whose memory it may share, itself included."""
    owners = {variable: frozenset((variable,)) for variable in (*graph.inputs, *graph.constants)}
    for equation in graph.equations:
        for out in equation.outputs:
            owners[out] = frozenset((out,))
            if is_view(equation):
                owners[out] = owners[out].union(*(owners[v] for v in equation.inputs))
    return owners


def _shared_outputs(
    graph: Graph,
    owners: dict[Variable, frozenset[Variable]],
    spread: frozenset[Variable] = frozenset(),
) -> list[bool]:
    """Which outputs share memory with an input, a constant or another output, or are `spread`."""
    foreign = {*graph.inputs, *graph.constants}
    shared = []
    seen: set[Variable] = set()
    for variable in graph.outputs:
        memory = owners[variable]
        shares = not memory.isdisjoint(foreign) or not memory.isdisjoint(seen)
        seen |= memory
        shared.append((shares or variable in spread) and not variable.spec.weak)
    return shared


def shared_outputs(graph: Graph) -> list[bool]:
    """Which outputs lie in the memory of an input, a constant or another output."""
    return _shared_outputs(graph, _owners(graph, _views), _spread(graph))


def _spread(graph: Graph) -> frozenset[Variable]:
    """The variables with several elements at one address: broadcasts, and views of them."""
    found: set[Variable] = set()
    for equation in graph.equations:
        if _views(equation) and (
            equation.primitive is broadcast_to or not found.isdisjoint(equation.inputs)
        ):
            found.update(equation.outputs)
    return frozenset(found)


def _views(equation: Equation) -> bool:
    """Whether a result is known to share memory with an argument."""
    return equation.primitive.views is True


def _may_view(equation: Equation) -> bool:
    """Whether a result may share memory with an argument."""
    return equation.primitive.views is not False
