"""Entry-by-entry primitives as vector instructions: a table by name.

A rule gets the vectors of the arguments, converted to the kind in which NumPy computes, and writes the
instructions of the result. What is more than a few instructions is a call of a vector function from
`mathematics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.compiler.native import mathematics
from functrans.compiler.native.kinds import BOOL, FLOAT64, Kind, common_kind, kind_of, literal
from functrans.compiler.native.writer import FunctionWriter
from functrans.graph.graph import Equation


class Lanes:
    """Writes operations on vectors of `width` lanes."""

    def __init__(self, writer: FunctionWriter, width: int) -> None:
        self.writer = writer
        self.width = width

    def type(self, kind: Kind) -> str:
        return f"<{self.width} x {kind.register}>"

    def constant(self, value: Any, kind: Kind) -> str:
        return f"splat ({kind.register} {literal(value, kind)})"

    def op(self, name: str, kind: Kind, *args: str) -> str:
        """An instruction whose operands and result are of one kind."""
        return self.writer.op(f"{name} {self.type(kind)} {', '.join(args)}")

    def intrinsic(self, name: str, kind: Kind, *args: str) -> str:
        full = f"llvm.{name}.v{self.width}{_suffix(kind)}"
        vector = self.type(kind)
        return self.writer.call(vector, full, [(vector, arg) for arg in args])

    def function(self, name: str, kind: Kind, *args: str) -> str:
        """A call of a vector function."""
        self.writer.functions.add((name, kind.letter, self.width))
        vector = self.type(kind)
        full = f"ft_{name}_{kind.letter}x{self.width}"
        return self.writer.call(vector, full, [(vector, arg) for arg in args])

    def select(self, mask: str, kind: Kind, yes: str, no: str) -> str:
        vector = self.type(kind)
        return self.writer.op(f"select <{self.width} x i1> {mask}, {vector} {yes}, {vector} {no}")

    def convert(self, value: str, kind: Kind, to: Kind) -> str:
        """What NumPy's astype does between these kinds."""
        if kind is to:
            return value
        if to.is_bool:
            return self.op("fcmp une" if kind.is_float else "icmp ne", kind, value, _zero(kind))
        if kind.is_float and to.is_float:
            name = "fpext" if to.size > kind.size else "fptrunc"
        elif kind.is_float:
            # NumPy gives the least integer for what does not fit, as the processor does.
            return self._to_integer(value, kind, to)
        elif to.is_float:
            name = "uitofp" if kind.is_bool else "sitofp"
        elif kind.is_bool:
            name = "zext"
        else:
            name = "sext" if to.size > kind.size else "trunc"
        return self.writer.op(f"{name} {self.type(kind)} {value} to {self.type(to)}")

    def _to_integer(self, value: str, kind: Kind, to: Kind) -> str:
        bound = 2.0 ** (8 * to.size - 1)
        high = self.op("fcmp olt", kind, value, self.constant(bound, kind))
        low = self.op("fcmp oge", kind, value, self.constant(-bound, kind))
        fits = self.op("and", BOOL, high, low)
        safe = self.select(fits, kind, value, _zero(kind))
        number = self.writer.op(f"fptosi {self.type(kind)} {safe} to {self.type(to)}")
        return self.select(fits, to, number, self.constant(-(2 ** (8 * to.size - 1)), to))


def _suffix(kind: Kind) -> str:
    return {"double": "f64", "float": "f32"}.get(kind.register, kind.register)


def _zero(kind: Kind) -> str:
    return "zeroinitializer"


Rule = Callable[..., str]  # (lanes, kind, *vectors) -> vector


def _either(real: str, integer: str) -> Rule:
    return lambda lanes, kind, *args: lanes.op(real if kind.is_float else integer, kind, *args)


def _intrinsic(name: str) -> Rule:
    return lambda lanes, kind, *args: lanes.intrinsic(name, kind, *args)


def _function(name: str) -> Rule:
    return lambda lanes, kind, *args: lanes.function(name, kind, *args)


def _absolute(lanes: Lanes, kind: Kind, x: str) -> str:
    if kind.is_float:
        return lanes.intrinsic("fabs", kind, x)
    negated = lanes.op("sub", kind, _zero(kind), x)
    return lanes.select(lanes.op("icmp slt", kind, x, _zero(kind)), kind, negated, x)


def _negative(lanes: Lanes, kind: Kind, x: str) -> str:
    return lanes.op("fneg", kind, x) if kind.is_float else lanes.op("sub", kind, _zero(kind), x)


def _sign(lanes: Lanes, kind: Kind, x: str) -> str:
    less, more = ("fcmp olt", "fcmp ogt") if kind.is_float else ("icmp slt", "icmp sgt")
    one, minus = lanes.constant(1, kind), lanes.constant(-1, kind)
    zero = lanes.op("fmul", kind, x, _zero(kind)) if kind.is_float else _zero(kind)  # nan stays
    if kind.is_float:
        zero = lanes.intrinsic("fabs", kind, zero)
    result = lanes.select(lanes.op(less, kind, x, _zero(kind)), kind, minus, zero)
    return lanes.select(lanes.op(more, kind, x, _zero(kind)), kind, one, result)


def _larger(lanes: Lanes, kind: Kind, x: str, y: str) -> str:
    return lanes.intrinsic("maximum" if kind.is_float else "smax", kind, x, y)


def _smaller(lanes: Lanes, kind: Kind, x: str, y: str) -> str:
    return lanes.intrinsic("minimum" if kind.is_float else "smin", kind, x, y)


def _clip(lanes: Lanes, kind: Kind, x: str, low: str, high: str) -> str:
    return _smaller(lanes, kind, _larger(lanes, kind, x, low), high)


def _is_infinite(lanes: Lanes, kind: Kind, x: str) -> str:
    size = lanes.intrinsic("fabs", kind, x)
    return lanes.op("fcmp oeq", kind, size, lanes.constant(np.inf, kind))


def _is_finite(lanes: Lanes, kind: Kind, x: str) -> str:
    size = lanes.intrinsic("fabs", kind, x)
    return lanes.op("fcmp olt", kind, size, lanes.constant(np.inf, kind))


def _signbit(lanes: Lanes, kind: Kind, x: str) -> str:
    one = lanes.intrinsic("copysign", kind, lanes.constant(1, kind), x)
    return lanes.op("fcmp olt", kind, one, _zero(kind))


def _logical_not(lanes: Lanes, kind: Kind, x: str) -> str:
    return lanes.op("xor", BOOL, x, lanes.constant(True, BOOL))


def _invert(lanes: Lanes, kind: Kind, x: str) -> str:
    return lanes.op("xor", kind, x, lanes.constant(True if kind.is_bool else -1, kind))


def _heaviside(lanes: Lanes, kind: Kind, x: str, y: str) -> str:
    step = lanes.select(
        lanes.op("fcmp ogt", kind, x, _zero(kind)), kind, lanes.constant(1, kind), _zero(kind)
    )
    step = lanes.select(lanes.op("fcmp oeq", kind, x, _zero(kind)), kind, y, step)
    return lanes.select(lanes.op("fcmp uno", kind, x, x), kind, x, step)


def _logaddexp(lanes: Lanes, kind: Kind, x: str, y: str) -> str:
    """max(x, y) + log(1 + exp(-|x - y|)); of equal infinities the difference is 0."""
    apart = lanes.op("fneg", kind, lanes.intrinsic("fabs", kind, lanes.op("fsub", kind, x, y)))
    apart = lanes.select(lanes.op("fcmp oeq", kind, x, y), kind, _zero(kind), apart)
    return lanes.op(
        "fadd", kind, _larger(lanes, kind, x, y), lanes.function("softplus", kind, apart)
    )


# Rules whose operands are converted to the dtype of the result.
ARITHMETIC: dict[str, Rule] = {
    "add": _either("fadd", "add"),
    "subtract": _either("fsub", "sub"),
    "multiply": _either("fmul", "mul"),
    "negative": _negative,
    "positive": lambda lanes, kind, x: x,
    "absolute": _absolute,
    "fabs": _absolute,
    "sign": _sign,
    "square": lambda lanes, kind, x: lanes.op("fmul" if kind.is_float else "mul", kind, x, x),
    "maximum": _larger,
    "minimum": _smaller,
    "clip": _clip,
    "relu": lambda lanes, kind, x: _larger(lanes, kind, x, _zero(kind)),
    "minimum_zero": lambda lanes, kind, x: _smaller(lanes, kind, x, _zero(kind)),
    "stop_gradient": lambda lanes, kind, x: x,
    "real": lambda lanes, kind, x: x,
    "conjugate": lambda lanes, kind, x: x,
    "copy": lambda lanes, kind, x: x,
    "bitwise_and": lambda lanes, kind, x, y: lanes.op("and", kind, x, y),
    "bitwise_or": lambda lanes, kind, x, y: lanes.op("or", kind, x, y),
    "bitwise_xor": lambda lanes, kind, x, y: lanes.op("xor", kind, x, y),
    "invert": _invert,
}
# The same for results that are floating point numbers.
FLOATING: dict[str, Rule] = {
    "divide": lambda lanes, kind, x, y: lanes.op("fdiv", kind, x, y),
    "reciprocal": lambda lanes, kind, x: lanes.op("fdiv", kind, lanes.constant(1, kind), x),
    "sqrt": _intrinsic("sqrt"),
    "root_of_squares": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "copysign": _intrinsic("copysign"),
    "heaviside": _heaviside,
    "logaddexp": _logaddexp,
    "deg2rad": lambda lanes, kind, x: lanes.op("fmul", kind, x, lanes.constant(np.pi / 180, kind)),
    "rad2deg": lambda lanes, kind, x: lanes.op("fmul", kind, x, lanes.constant(180 / np.pi, kind)),
}
FLOATING.update({name: _function(name) for name in mathematics.names()})
FLOATING["float_power"] = FLOATING["power"]
# Rules whose operands are converted to one kind, and whose result is true or false.
COMPARISONS: dict[str, Rule] = {
    "less": _either("fcmp olt", "icmp slt"),
    "less_equal": _either("fcmp ole", "icmp sle"),
    "greater": _either("fcmp ogt", "icmp sgt"),
    "greater_equal": _either("fcmp oge", "icmp sge"),
    "equal": _either("fcmp oeq", "icmp eq"),
    "not_equal": _either("fcmp une", "icmp ne"),
    "isnan": lambda lanes, kind, x: lanes.op("fcmp uno", kind, x, x),
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "signbit": _signbit,
}
# Rules of truth values.
LOGIC: dict[str, Rule] = {
    "logical_not": _logical_not,
    "logical_and": lambda lanes, kind, x, y: lanes.op("and", BOOL, x, y),
    "logical_or": lambda lanes, kind, x, y: lanes.op("or", BOOL, x, y),
    "logical_xor": lambda lanes, kind, x, y: lanes.op("xor", BOOL, x, y),
}
# Python raises where a number is divided by zero; NumPy's arithmetic does not.
_RAISES_ON_NUMBERS = frozenset({"divide", "power", "reciprocal"})
_ONLY_INTEGERS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "invert"})
_ONLY_FLOATS = frozenset({"isnan", "isinf", "isfinite", "signbit"})


def operand_kinds(equation: Equation) -> list[Kind] | None:
    """The kinds to which the operands are converted first; None if the equation is not one of ours."""
    name = equation.primitive.name
    specs = [v.spec for v in equation.inputs]
    out = kind_of(equation.outputs[0].spec.dtype)
    kinds = [kind_of(spec.dtype) for spec in specs]
    if out is None or None in kinds:
        return None
    count = len(specs)
    if name == "where":
        return [BOOL, out, out]
    if name == "astype":
        return [out]
    if name in LOGIC:
        return [BOOL] * count
    if name in COMPARISONS:
        common = common_kind(specs)
        if common is None or (common.is_bool and name not in ("equal", "not_equal")):
            return None
        return None if name in _ONLY_FLOATS and not common.is_float else [common] * count
    if name in FLOATING:
        weak = name in _RAISES_ON_NUMBERS and all(spec.weak for spec in specs)
        return [out] * count if out.is_float and not weak else None
    if name in ARITHMETIC:
        if out.is_float:
            return None if name in _ONLY_INTEGERS else [out] * count
        return None if out.is_bool and name not in _BOOLEAN else [out] * count
    return None


_BOOLEAN = _ONLY_INTEGERS | {"stop_gradient", "copy", "real", "conjugate", "positive"}


def emit(lanes: Lanes, equation: Equation, args: list[str]) -> str:
    """Write the result, from operands that have the kinds of `operand_kinds`."""
    name = equation.primitive.name
    out = kind_of(equation.outputs[0].spec.dtype) or FLOAT64
    if name == "where":
        return lanes.select(args[0], out, args[1], args[2])
    if name == "astype":
        return args[0]
    for table in (ARITHMETIC, FLOATING):
        if name in table:
            return table[name](lanes, out, *args)
    if name in LOGIC:
        return LOGIC[name](lanes, BOOL, *args)
    kinds = operand_kinds(equation) or [FLOAT64]
    return COMPARISONS[name](lanes, kinds[0], *args)
