"""Loops and branches as Python source: bodies as functions, and a `for`, a `while` or a choice of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from functrans.compiler.numpy.lowering import Statement, Text, dtype_text, parameter_text, states
from functrans.compiler.passes import optimize
from functrans.compiler.subroutines import inlined
from functrans.control.branching import branch
from functrans.control.procedures import Procedure
from functrans.control.repeating import loop
from functrans.control.scanning import along
from functrans.graph.graph import Equation, Variable

if TYPE_CHECKING:
    from functrans.compiler.numpy.writer import GraphWriter


def _for_people(write: Callable[[GraphWriter, Equation], None]) -> Statement:
    """A rule for `source`; in the code of `jit`, bodies are functions that are compiled by themselves."""

    def state(writer: GraphWriter, equation: Equation) -> bool:
        if writer.helpers is None:
            return False
        write(writer, equation)
        return True

    return state


def _texts(writer: GraphWriter, variables: Iterable[Variable]) -> list[str]:
    return [writer.texts[variable].code for variable in variables]


def _named(writer: GraphWriter, variable: Variable) -> str:
    """The name of a value, or a number: an expression would be computed in each step again."""
    text = writer.texts[variable].code
    if text.isidentifier() or variable in writer.graph.constants:
        return text
    name = writer.fresh("values")
    writer.lines.append(f"{name} = {text}  # {variable.spec}")
    writer.texts[variable] = Text(name)
    return name


@states(along)
@_for_people
def _scan(writer: GraphWriter, equation: Equation) -> None:
    params, inputs = equation.params, equation.inputs
    fixed, carried = params["counts"]
    shared = [_named(writer, v) for v in inputs[:fixed]]
    stacks = [_named(writer, v) for v in inputs[fixed + carried :]]
    function = _function(writer, "step", params["body"])
    carry, columns = _results(writer, equation, carried)
    row = writer.fresh("k")
    rows = [f"{each}[{row}]" for each in stacks]
    _assign(writer, carry, _texts(writer, inputs[fixed : fixed + carried]))
    for name in columns:
        writer.lines.append(f"{name} = []")
    span = f"range({params['length']})"
    writer.lines.append(f"for {row} in {f'reversed({span})' if params['reverse'] else span}:")
    found = [writer.fresh("row") for _ in columns]
    call = f"{function}({', '.join([*shared, *carry, *rows])})"
    writer.lines.append(f"    {_targets([*carry, *found])} = {call}")
    for name, entry in zip(columns, found, strict=True):
        writer.lines.append(f"    {name}.append({entry})")
    backward = "[::-1]" if params["reverse"] else ""
    for name, variable in zip(columns, equation.outputs[carried:], strict=True):
        spec = variable.spec
        stacked = f"np.stack({name}{backward})"
        if not params["length"]:
            stacked = f"np.zeros({parameter_text(spec.shape)}, {dtype_text(spec.dtype)})"
        writer.lines.append(f"{name} = {stacked}  # {spec}")


@states(branch)
@_for_people
def _switch(writer: GraphWriter, equation: Equation) -> None:
    which, *args = _texts(writer, equation.inputs)
    names = [_function(writer, "branch", each) for each in equation.params["branches"]]
    results, _ = _results(writer, equation, len(equation.outputs))
    choice = f"({', '.join(names)}{',' * (len(names) == 1)})[int({which})]"
    specs = ", ".join(str(v.spec) for v in equation.outputs)
    writer.lines.append(f"{_targets(results)} = {choice}({', '.join(args)})  # {specs}")


@states(loop)
@_for_people
def _while(writer: GraphWriter, equation: Equation) -> None:
    params = equation.params
    first, second = params["counts"]
    shared = [_named(writer, v) for v in equation.inputs[: first + second]]
    test = _function(writer, "test", params["test"])
    body = _function(writer, "step", params["body"])
    state, _ = _results(writer, equation, len(equation.outputs))
    _assign(writer, state, _texts(writer, equation.inputs[first + second :]))
    writer.lines.append(f"while {test}({', '.join([*shared[:first], *state])}):")
    call = f"{body}({', '.join([*shared[first:], *state])})"
    writer.lines.append(f"    {_targets(state)} = {call}")


def _function(writer: GraphWriter, base: str, procedure: Procedure) -> str:
    """Write a procedure as a function, which returns a tuple if it has several results; give its name."""
    name = writer.fresh(base)
    graph = inlined(optimize(procedure.graph))
    inner = writer.inside(graph)
    parameters = [inner.name_input(variable, "x") for variable in graph.inputs]
    inner.write()
    if writer.lines and writer.lines[-1]:
        writer.lines.append("")
    writer.lines.append(f"def {name}({', '.join(parameters)}):")
    described = ", ".join(f"{p}: {v.spec}" for p, v in zip(parameters, graph.inputs, strict=True))
    writer.lines += [f"    # {described}"] if described else []
    writer.lines += [f"    {line}" for line in inner.lines]
    outputs = [inner.texts[v].code for v in graph.outputs]
    writer.lines += [f"    return {', '.join(outputs) or '()'}", ""]
    return name


def _results(writer: GraphWriter, equation: Equation, count: int) -> tuple[list[str], list[str]]:
    """Names for the first `count` results, and for the others."""
    names = []
    for k, variable in enumerate(equation.outputs):
        name = writer.fresh("state" if k < count else "column")
        writer.texts[variable] = Text(name)
        names.append(name)
    return names[:count], names[count:]


def _assign(writer: GraphWriter, names: list[str], values: list[str]) -> None:
    if names:
        writer.lines.append(f"{_targets(names)} = {', '.join(values)}")


def _targets(names: list[str]) -> str:
    return ", ".join(names) or "_"
