"""The elementary functions as vector code, by name: what the code generator calls.

`function` gives the function of a vector width in a module. The formulas are in the files by subject;
docs/native-functions.md says how exact and how fast they are.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple

from llvmlite import ir

from functrans.compiler.native import (
    error_function,
    exponential,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    roots,
    trigonometric,
)
from functrans.compiler.native.vectors import FORMATS, Formula, Vector, call, narrowed, widened


class Entry(NamedTuple):
    formula: Formula
    # Whether float32 runs the formula in float32. Else it runs that of float64, and rounds.
    narrow: bool = True


TABLE: dict[str, Entry] = {
    "exp": Entry(exponential.exp),
    "exp2": Entry(exponential.exp2),
    "expm1": Entry(exponential.expm1),
    "expit": Entry(exponential.expit),
    "tanh": Entry(hyperbolic.tanh),
    "sin": Entry(trigonometric.sin),
    "cos": Entry(trigonometric.cos),
    "power": Entry(power.power),
    "sinh": Entry(hyperbolic.sinh),
    "cosh": Entry(hyperbolic.cosh),
    "tan": Entry(trigonometric.tan),
    "arctan": Entry(inverse_trigonometric.arctan),
    "arctan2": Entry(inverse_trigonometric.arctan2),
    "arcsin": Entry(inverse_trigonometric.arcsin),
    "arccos": Entry(inverse_trigonometric.arccos),
    "arcsinh": Entry(inverse_hyperbolic.arcsinh),
    "arccosh": Entry(inverse_hyperbolic.arccosh),
    "arctanh": Entry(inverse_hyperbolic.arctanh),
    "cbrt": Entry(roots.cbrt),
    "hypot": Entry(roots.hypot),
    "erf": Entry(error_function.erf),
    "erfc": Entry(error_function.erfc),
    "log": Entry(logarithm.log),
    "log1p": Entry(logarithm.log1p),
    "log_expit": Entry(logarithm.log_expit),
    "softplus": Entry(logarithm.softplus),
    "log2": Entry(logarithm.log2),
    "log10": Entry(logarithm.log10),
}


def names() -> frozenset[str]:
    """The functions there are."""
    return frozenset(TABLE)


def arity(name: str) -> int:
    """The number of arguments of a function."""
    return len(inspect.signature(TABLE[name].formula).parameters)


def function(module: ir.Module, name: str, kind: str, width: int) -> ir.Function:
    """The function `name` of vectors in a module, made on first use.

    Parameters
    ----------
    module
        Where the function is, and where it becomes internal.
    name
        One of `names()`.
    kind
        "d" for float64, "f" for float32.
    width
        The number of lanes: a power of two up to 16.

    Returns
    -------
    The function `ft_<name>_<kind>x<width>`: as many vectors to one as `arity(name)` says.
    """
    full = f"ft_{name}_{kind}x{width}"
    existing = module.globals.get(full)
    if existing is not None:
        return existing
    form = FORMATS[kind]
    entry = TABLE[name]
    vector = ir.VectorType(form.real, width)
    made = ir.Function(module, ir.FunctionType(vector, [vector] * arity(name)), full)
    made.linkage = "internal"
    made.attributes.add("nounwind")
    made.attributes.add("readnone")
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    arguments = [Vector(builder, form, argument) for argument in made.args]
    if kind == "f" and not entry.narrow:
        wide = FORMATS["d"]
        helper = function(module, name, "d", width)
        result = narrowed(call(helper.name, [widened(x, wide) for x in arguments]), form)
    else:
        result = entry.formula(*arguments)
    builder.ret(result.value)
    return made
