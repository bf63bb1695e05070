"""Graphs as readable text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from string import ascii_lowercase
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain


def letters(taken: set[str]) -> Iterator[str]:
    """a, b, ..., z, aa, ab, ... without the names that are taken."""
    for length in count(1):
        for word in product(ascii_lowercase, repeat=length):
            name = "".join(word)
            if name not in taken:
                yield name


def readable(name: str) -> str:
    """params['w'][0] as an identifier: params_w_0."""
    kept = "".join(c if c.isalnum() or c == "_" else " " for c in name)
    return "_".join(kept.split()) or "x"


def variable_names(graph: Any) -> dict[Any, str]:
    """The names of a graph's variables: inputs have their own names, numbers their digits."""
    names: dict[Any, str] = {}
    wanted = graph.input_names or ["x"] * len(graph.inputs)
    for variable, name in zip(graph.inputs, wanted, strict=True):
        base = readable(name)
        number = count(2)
        unique = base
        while unique in names.values():
            unique = f"{base}{next(number)}"
        names[variable] = unique
    unused = letters(set(names.values()))
    numbers = count()
    for variable, value in graph.constants.items():
        if is_written_out(value):
            names[variable] = repr(value.item() if is_plain(value, np.generic) else value)
        else:
            names[variable] = f"constant{next(numbers)}"
    for equation in graph.equations:
        for variable in equation.outputs:
            names[variable] = next(unused)
    return names


def is_written_out(constant: Any) -> bool:
    """Whether a constant is a number, which is printed as such."""
    return np.ndim(constant) == 0 and not isinstance(constant, Tracer)


def format_graph(graph: Any) -> str:
    """The graph as `graph(inputs) -> types:` and one line for each equation."""
    names = variable_names(graph)
    header = ", ".join(f"{names[v]}: {v.spec}" for v in graph.inputs)
    results = ", ".join(str(v.spec) for v in graph.outputs)
    lines = [f"graph({header}) -> {results}:"]
    for variable, value in graph.constants.items():
        if not is_written_out(value):
            lines.append(f"    {names[variable]}: {variable.spec}")
    for equation in graph.equations:
        left = ", ".join(f"{names[v]}: {v.spec}" for v in equation.outputs)
        arguments = [names[v] for v in equation.inputs]
        arguments += [f"{key}={format_param(value)}" for key, value in equation.params.items()]
        lines.append(f"    {left} = {equation.primitive.name}({', '.join(arguments)})")
    lines.append(f"    return {', '.join(names[v] for v in graph.outputs)}")
    return "\n".join(lines)


def format_param(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(format_param, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, slice):
        ends = ["" if end is None else str(end) for end in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step}")
    if value is Ellipsis:
        return "..."
    return str(value)
