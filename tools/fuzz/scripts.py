"""Failures as standalone scripts."""

from __future__ import annotations

from typing import Any

from tools.fuzz.cases import Failure
from tools.fuzz.nests import written
from tools.fuzz.programs.stack import Stack

_CALLS = {
    "jit numpy": 'ft.jit({f}, backend="numpy")(*args)',
    "jit native": 'ft.jit({f}, backend="native")(*args)',
    "source": "ft.source({f})(*args).function(*args)",
    "graph": "ft.make_graph({f})(*args)(*args)",
    "tape": "ft.vjp({f}, *args)[0]",
    "dual": "ft.jvp({f}, args, args)[0]",
}


def script(failure: Failure, library: Any, origin: str = "") -> str:
    """A failure as a standalone script, which needs only NumPy and functrans."""
    stack = Stack(failure.program, library)
    for layer in failure.layers:
        stack.push(layer)
    message = str(failure.error).replace("\\", "\\\\").replace('"""', "'''")
    oracle = failure.error.oracle.removeprefix("error in ")
    lines = [f'"""{origin}', "", *message.splitlines(), '"""', ""]
    lines += ["import numpy as np", "", "import functrans as ft", ""]
    single = oracle in ("single precision", "dtypes")
    lines.append(f"NARROW = np.{'float32' if single else 'float64'}")
    constants = dict(failure.program.constants)
    for layer in failure.layers:
        constants |= layer.constants
    space = stack.own if single else stack.wide
    text = failure.program.source + "\n".join(layer.text for layer in failure.layers)
    lines += [f"{name} = {written(space[name])}" for name in constants if name in text]
    lines += ["", "", text, "", ""]
    args = stack.points[-1][0] if single else stack.args
    lines.append(f"args = {written(args)}")
    f = f"f{len(failure.layers)}"
    lines.append(f"print({f}(*args))")
    other = _CALLS.get(
        oracle, f"f{len(failure.layers) - 1}(*args)" if oracle == "the layer below" else ""
    )
    if other:
        lines.append(f"print({other.format(f=f)})")
    return "\n".join([*lines, ""])
