"""The elementary functions as vector code, by name, for the code generator.

`function` adds a function for a vector width to a module. The formulas are in one file per subject;
docs/native-functions.md has their accuracy and speed.
"""

from __future__ import annotations

import inspect

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
from functrans.compiler.native.vectors import FORMATS, Formula, Vector

TABLE: dict[str, Formula] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "expit": exponential.expit,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "softplus": logarithm.softplus,
    "log_expit": logarithm.log_expit,
    "power": power.power,
    "cbrt": roots.cbrt,
    "hypot": roots.hypot,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "arcsin": inverse_trigonometric.arcsin,
    "arccos": inverse_trigonometric.arccos,
    "arctan": inverse_trigonometric.arctan,
    "arctan2": inverse_trigonometric.arctan2,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "arcsinh": inverse_hyperbolic.arcsinh,
    "arccosh": inverse_hyperbolic.arccosh,
    "arctanh": inverse_hyperbolic.arctanh,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
}


def names() -> frozenset[str]:
    """The names of all functions."""
    return frozenset(TABLE)


def arity(name: str) -> int:
    """The number of arguments of a function."""
    return len(inspect.signature(TABLE[name]).parameters)


def function(module: ir.Module, name: str, kind: str, width: int) -> ir.Function:
    """The vector function `name` of a module, created on first use.

    Parameters
    ----------
    module
        The module, in which the function is internal.
    name
        One of `names()`.
    kind
        "d" for float64, "f" for float32.
    width
        The number of lanes: a power of two up to 16.

    Returns
    -------
    The function `ft_<name>_<kind>x<width>`, from `arity(name)` vectors to one.
    """
    full = f"ft_{name}_{kind}x{width}"
    existing = module.globals.get(full)
    if existing is not None:
        return existing
    form = FORMATS[kind]
    vector = ir.VectorType(form.real, width)
    made = ir.Function(module, ir.FunctionType(vector, [vector] * arity(name)), full)
    made.linkage = "internal"
    made.attributes.add("nounwind")
    made.attributes.add("readnone")
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    arguments = [Vector(builder, form, argument) for argument in made.args]
    builder.ret(TABLE[name](*arguments).value)
    return made
