"""The backend "native" of `jit`: graphs as machine code, with NumPy for other operations.

If every equation of a graph is native, the graph becomes one function that Python calls directly. Otherwise,
the native equations are grouped into as few segments as the dependencies allow; each is one call among the
NumPy statements of the generated code.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from functrans.compiler.costs import cost_of
from functrans.compiler.native.blocks import in_blocks
from functrans.compiler.native.cache import load_code
from functrans.compiler.native.control import ready
from functrans.compiler.native.kinds import is_python_integer, number_kind_of
from functrans.compiler.native.module import NativeModule
from functrans.compiler.native.plan import Plan, is_native
from functrans.compiler.native.python_call import python_function
from functrans.compiler.native.python_integers import KEPT, bounded
from functrans.compiler.numpy.generated import Compiled, NativeCall, compile_graph
from functrans.compiler.rolling import rolled
from functrans.compiler.subroutines import with_subroutines
from functrans.core import errors, tree
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable


def rolled_up(graph: Graph) -> Graph:
    """The graph with repeated equations as loops, where these are native."""
    return rolled(graph, lambda loop: is_native(loop, {}))


def compile_native(graph: Graph, slow: Any) -> Compiled:
    """Compile a graph. `slow` is called with arguments that the code does not accept."""
    graph, native = _prepared(graph)
    if all(native) and _is_plain(graph):
        return _whole(graph, slow)
    return _in_segments(graph, native)


def _prepared(graph: Graph) -> tuple[Graph, list[bool]]:
    """A graph ready to be compiled, and which of its equations are native."""
    graph = ready(graph)
    # Python integers with more digits than the bounds are left to NumPy when the code is called.
    given = {v: KEPT for v in graph.inputs if is_python_integer(v.spec)}
    integers = bounded(graph, given) or {}
    native = [is_native(equation, graph.constants, integers) for equation in graph.equations]
    return with_subroutines(graph, _flat, native), native


def _flat(graph: Graph) -> Any:
    """A graph as a function from flat inputs to flat outputs."""
    graph, native = _prepared(graph)
    if all(native) and _is_plain(graph):
        return _on_values(graph)[0]
    return _in_segments(graph, native).function


def _in_segments(graph: Graph, native: list[bool]) -> Compiled:
    """Native parts between NumPy statements."""
    if not any(native):
        return compile_graph(graph)
    texts: list[str] = []
    compiled = compile_graph(_with_segments(graph, native, texts))
    code = "\n\n".join([compiled.code, *texts])
    return compiled._replace(code=code, cost=(compiled.cost[0], *cost_of(graph)[1:]))


def _is_plain(graph: Graph) -> bool:
    outside = (*graph.inputs, *graph.outputs)
    return (
        bool(graph.equations)
        and all(number_kind_of(v.spec.dtype) and v.spec.size for v in (*outside, *graph.constants))
        and not any(is_python_integer(v.spec) and v in graph.constants for v in graph.outputs)
    )


def _whole(graph: Graph, slow: Any) -> Compiled:
    """Compile a whole graph into one function, which takes and returns simple containers."""
    numbers = list(range(len(graph.inputs)))
    arguments, keywords = tree.unflatten(graph.in_tree, numbers)
    results = tree.unflatten(graph.out_tree, list(range(len(graph.outputs))))
    direct = not keywords and _is_simple(arguments) and _is_simple(results)
    if not direct:
        arguments, results = tuple(numbers), tuple(range(len(graph.outputs)))
    function, module = _function(graph, arguments, results, slow if direct else _refuse)
    specs = [variable.spec for variable in graph.inputs]

    def on_leaves(*leaves: Any) -> Any:
        given = native_arguments(leaves, specs)
        return function(*(tree.unflatten(graph.in_tree, given)[0] if direct else given))

    _, flops, moved = cost_of(graph)
    structure = None if graph.out_tree is not None and graph.out_tree.is_leaf() else graph.out_tree
    return Compiled(
        on_leaves,
        module.text,
        structure,
        (len(module.plan.steps), flops, moved),
        function if direct else None,
    )


def _refuse(*_: Any) -> Any:
    raise errors.GraphError("native code was called with arguments that it was not compiled for.")


def _is_simple(part: Any) -> bool:
    """Whether a tree consists of tuples, lists and dicts with string keys."""
    if type(part) is int:
        return True
    if type(part) is dict:
        return all(type(key) is str for key in part) and all(map(_is_simple, part.values()))
    return type(part) in (tuple, list) and all(map(_is_simple, part))


def _function(graph: Graph, arguments: Any, results: Any, slow: Any) -> tuple[Any, NativeModule]:
    plan = in_blocks(Plan(graph))

    @cache
    def generated() -> Any:
        return compile_graph(graph).function

    def in_numpy(*args: Any) -> Any:
        """The same in NumPy, which raises the error for an index out of range."""
        found = generated()(*tree.leaves(args))
        return tree.map(lambda k: found[k], results)

    module = NativeModule(plan, arguments, results, slow, in_numpy)
    code = load_code(module.text)
    module.context.fill(code.address("context"))
    return python_function(code.address("entry"), (code, module.context)), module


def _on_values(graph: Graph) -> tuple[Any, NativeModule]:
    """A function of flat values of any form, which returns a tuple."""
    specs = [variable.spec for variable in graph.inputs]
    functions: list[Any] = []

    def in_another_form(*leaves: Any) -> Any:
        return functions[0](*native_arguments(leaves, specs))

    numbers = tuple(range(len(graph.inputs)))
    function, module = _function(graph, numbers, tuple(range(len(graph.outputs))), in_another_form)
    functions.append(function)
    return function, module


# Arguments.


def native_arguments(leaves: Any, specs: list[ArraySpec]) -> list[Any]:
    """Arguments in the one form that native code takes: own dtype and byte order, C order, aligned."""
    return [
        leaf if _fits(leaf, spec) else _converted(leaf, spec)
        for leaf, spec in zip(leaves, specs, strict=True)
    ]


def _fits(leaf: Any, spec: ArraySpec) -> bool:
    if not spec.shape and spec.dtype == np.float64:
        return type(leaf) is (float if spec.weak else np.float64)
    if is_python_integer(spec):
        return type(leaf) is int
    return (
        type(leaf) is np.ndarray
        and leaf.dtype is spec.dtype
        and leaf.shape == spec.shape
        and leaf.flags.c_contiguous
        and leaf.flags.aligned
    )


def _converted(leaf: Any, spec: ArraySpec) -> Any:
    if np.shape(leaf) != spec.shape:
        raise errors.GraphError(
            f"native code for {spec} was given an array of shape {np.shape(leaf)}."
        )
    if np.iscomplexobj(leaf) and spec.dtype.kind != "c":
        raise errors.GraphError(
            f"a step of this function returned the complex number {leaf}, but was traced for real numbers, "
            f"at {errors.user_location()}. Python's (-1.0) ** 0.5 is complex: pass np.float64(x), whose "
            "power is nan."
        )
    if not spec.shape and spec.dtype == np.float64:
        return float(leaf) if spec.weak else np.float64(leaf)
    if is_python_integer(spec):
        return int(leaf)
    array = np.empty(spec.shape, spec.dtype)
    array[...] = leaf
    return array


# Segments.


def _with_segments(graph: Graph, native: list[bool], texts: list[str]) -> Graph:
    """The graph with its native equations grouped into calls."""
    # A value's stage is even if NumPy computes it, odd if native code does, and never decreases.
    stages: dict[Variable, int] = {}
    groups: dict[int, list[Equation]] = {}
    for equation, is_one in zip(graph.equations, native, strict=True):
        stage = max((stages.get(v, 0) for v in equation.inputs), default=0)
        if stage % 2 != is_one:
            stage += 1
        stages.update(dict.fromkeys(equation.outputs, stage))
        groups.setdefault(stage, []).append(equation)
    needed = {v: len(groups) for v in graph.outputs}
    readers: dict[Variable, set[int]] = {}
    for stage, equations in groups.items():
        for equation in equations:
            for variable in equation.inputs:
                readers.setdefault(variable, set()).add(stage)
    result: list[Equation] = []
    for stage in sorted(groups):
        if stage % 2:
            result.append(_segment(graph, groups[stage], stage, readers, needed, texts))
        else:
            result += groups[stage]
    return Graph(
        graph.inputs,
        graph.constants,
        result,
        graph.outputs,
        graph.in_tree,
        graph.out_tree,
        graph.input_names,
        arrays=graph.arrays,
    ).pruned()


def _segment(
    graph: Graph,
    equations: list[Equation],
    stage: int,
    readers: dict[Variable, set[int]],
    needed: dict[Variable, int],
    texts: list[str],
) -> Equation:
    made = {v for equation in equations for v in equation.outputs}
    used = dict.fromkeys(v for equation in equations for v in equation.inputs if v not in made)
    constants = {v: graph.constants[v] for v in used if v in graph.constants}
    inputs = [v for v in used if v not in constants]
    outputs = [
        v
        for equation in equations
        for v in equation.outputs
        if v in needed or readers.get(v, set()) - {stage}
    ]
    function, module = _on_values(Graph(inputs, constants, equations, outputs))
    texts.append(module.text)
    call = NativeCall(function, len(outputs))
    return Equation(call, tuple(inputs), {}, tuple(outputs))
