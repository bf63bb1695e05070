"""Loops and branches as Python source: bodies as functions, and a `for`, a `while` or a choice of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functrans.compiler.expressions import Text, dtype_text, value_text
from functrans.compiler.passes import optimize
from functrans.graph.graph import Equation
from functrans.transforms.branching import branch
from functrans.transforms.loops import loop
from functrans.transforms.procedures import Procedure
from functrans.transforms.scanning import along

if TYPE_CHECKING:
    from functrans.compiler.writer import Writer


def write_control(writer: Writer, equation: Equation) -> bool:
    """Write a loop or a branch as statements; False if the equation is none."""
    write = {along: _scan, branch: _switch, loop: _while}.get(equation.primitive)
    if write is None:
        return False
    write(writer, equation, [writer.texts[v].code for v in equation.inputs])
    return True


def _scan(writer: Writer, equation: Equation, args: list[str]) -> None:
    params = equation.params
    fixed, carried = params["counts"]
    function = _function(writer, "step", params["body"])
    carry, columns = _results(writer, equation, carried)
    row = writer.fresh("k")
    rows = [f"{each}[{row}]" for each in args[fixed + carried :]]
    _assign(writer, carry, args[fixed : fixed + carried])
    for name in columns:
        writer.lines.append(f"{name} = []")
    span = f"range({params['length']})"
    writer.lines.append(f"for {row} in {f'reversed({span})' if params['reverse'] else span}:")
    found = [writer.fresh("row") for _ in columns]
    call = f"{function}({', '.join([*args[:fixed], *carry, *rows])})"
    writer.lines.append(f"    {_targets([*carry, *found])} = {call}")
    for name, entry in zip(columns, found, strict=True):
        writer.lines.append(f"    {name}.append({entry})")
    backward = "[::-1]" if params["reverse"] else ""
    for name, variable in zip(columns, equation.outputs[carried:], strict=True):
        spec = variable.spec
        stacked = f"np.stack({name}{backward})"
        if not params["length"]:
            stacked = f"np.zeros({value_text(spec.shape)}, {dtype_text(spec.dtype)})"
        writer.lines.append(f"{name} = {stacked}  # {spec}")


def _switch(writer: Writer, equation: Equation, args: list[str]) -> None:
    names = [_function(writer, "branch", each) for each in equation.params["branches"]]
    results, _ = _results(writer, equation, len(equation.outputs))
    choice = f"({', '.join(names)}{',' * (len(names) == 1)})[int({args[0]})]"
    specs = ", ".join(str(v.spec) for v in equation.outputs)
    writer.lines.append(f"{_targets(results)} = {choice}({', '.join(args[1:])})  # {specs}")


def _while(writer: Writer, equation: Equation, args: list[str]) -> None:
    params = equation.params
    first, second = params["counts"]
    test = _function(writer, "test", params["test"])
    body = _function(writer, "step", params["body"])
    state, _ = _results(writer, equation, len(equation.outputs))
    _assign(writer, state, args[first + second :])
    writer.lines.append(f"while {test}({', '.join([*args[:first], *state])}):")
    call = f"{body}({', '.join([*args[first : first + second], *state])})"
    writer.lines.append(f"    {_targets(state)} = {call}")


def _function(writer: Writer, base: str, procedure: Procedure) -> str:
    """Write a procedure as a function, which returns a tuple if it has several results; give its name."""
    name = writer.fresh(base)
    graph = optimize(procedure.graph)
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


def _results(writer: Writer, equation: Equation, count: int) -> tuple[list[str], list[str]]:
    """Names for the first so many results, and for the others."""
    names = []
    for k, variable in enumerate(equation.outputs):
        name = writer.fresh("state" if k < count else "column")
        writer.texts[variable] = Text(name)
        names.append(name)
    return names[:count], names[count:]


def _assign(writer: Writer, names: list[str], values: list[str]) -> None:
    if names:
        writer.lines.append(f"{_targets(names)} = {', '.join(values)}")


def _targets(names: list[str]) -> str:
    return ", ".join(names) or "_"
