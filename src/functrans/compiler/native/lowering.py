"""How each primitive is written in a native kernel: an entry with `lowers`.

There are six forms of entries. A primitive without one is a NumPy step between native parts.

VectorRule  elementwise: instructions on vectors, and the kinds to which operands are converted before
Reduction   instructions that join two partial results
Strides     the same memory, seen with other strides
Parts       a new array that is assembled from parts
MATMUL      a matrix product
Control     a loop or a branch (see control.py)

Elementwise primitives need no entry if `mathematics` has their function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.native import mathematics
from functrans.compiler.native.divisions import (
    division_fails,
    floor_divide,
    remainder,
    truncated_remainder,
)
from functrans.compiler.native.kinds import BOOL, FLOAT64, NumberKind, common_kind, number_kind_of
from functrans.compiler.native.lanes import ZERO, LaneWriter
from functrans.compiler.native.strides import BufferView, broadcast, indexed, reshaped, transposed
from functrans.core.primitive import Elementwise, Primitive, Rules
from functrans.graph.graph import Equation
from functrans.ops import contraction, indexing, reduction, structure
from functrans.ops import elementwise as ew

Rule = Callable[..., str]  # (lanes, kind, *vectors) -> vector
Operands = Callable[[Equation, NumberKind], list[NumberKind] | None]


class VectorRule(NamedTuple):
    """An elementwise operation."""

    rule: Rule
    operands: Operands  # given the kind of the result; None if the operands are not supported
    by_numbers: Rule | None = (
        None  # for arguments after the first that are all numbers, where that differs
    )
    # (lanes, kind, result, *vectors) -> mask of the lanes in which Python's own numbers raise an error
    raises: Rule | None = None
    warns: bool = False  # whether NumPy warns in these lanes if the numbers are integers


class Reduction(NamedTuple):
    """The instruction that combines two results, and the intrinsic that reduces a vector."""

    real: str
    integer: str  # of signed ones: see `of_kind`
    across_real: str
    across_integer: str
    identity: Callable[[NumberKind], Any]  # the value that changes nothing
    takes_bool: bool = False


def of_kind(name: str, kind: NumberKind) -> str:
    """The name of an instruction on integers, if it is that for signed ones."""
    return f"u{name[1:]}" if name in ("smax", "smin") and kind.is_unsigned else name


class Strides(NamedTuple):
    """A view; `see` returns None if the elements are not laid out for it and must be copied."""

    see: Callable[[BufferView, Equation], BufferView | None]


class Parts(NamedTuple):
    """A result that is written part by part, or at indexed places."""


class Control(NamedTuple):
    """A loop or a branch: whether it can be native, and how it becomes a step of a plan."""

    takes: Callable[..., bool]  # (equation, bounds of Python integers)
    plan: Callable[[Any, Equation], None]


MATMUL = "matmul"

Entry = VectorRule | Reduction | Strides | Parts | Control | str


def _from_its_function(primitive: Primitive) -> Entry | None:
    """The call of a vector function, if there is one for the primitive's ufunc."""
    ufunc = primitive.ufunc if isinstance(primitive, Elementwise) else None
    name = getattr(ufunc, "__name__", None)
    return VectorRule(_function(name), _floating) if name in mathematics.names() else None


lowers: Rules[Entry] = Rules(_from_its_function)
_primitive: Primitive


# The kinds of operands.


def _arithmetic(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    """The dtype of the result, unless these are truth values."""
    return None if out.is_bool else [out] * len(equation.inputs)


def _moved(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    """The dtype of the result, whatever it is: entries are moved, not computed."""
    return [out] * len(equation.inputs)


def _bits(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    """The dtype of the result, unless it is one of floats."""
    return None if out.is_float else [out] * len(equation.inputs)


def _floating(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    return [out] * len(equation.inputs) if out.is_float else None


def _compared(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    kinds = _compared_for_equality(equation, out)
    return None if kinds is None or kinds[0].is_bool else kinds


def _compared_for_equality(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    """The kind in which NumPy compares."""
    common = common_kind([variable.spec for variable in equation.inputs])
    if common is None:
        return None
    if common.is_float and all(v.spec.dtype.kind in "iu" for v in equation.inputs):
        return None  # no integers hold both; NumPy compares them exactly
    return [common] * len(equation.inputs)


def _asked(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    """Of a question about a floating point number."""
    common = common_kind([variable.spec for variable in equation.inputs])
    return [common] if common is not None and common.is_float else None


def _truth(equation: Equation, out: NumberKind) -> list[NumberKind] | None:
    return [BOOL] * len(equation.inputs)


def operand_kinds(equation: Equation) -> list[NumberKind] | None:
    """The kinds to which the operands are converted first; None if the equation is not elementwise."""
    entry = lowers.of(equation.primitive)
    out = number_kind_of(equation.outputs[0].spec.dtype)
    if not isinstance(entry, VectorRule) or out is None:
        return None
    if any(number_kind_of(variable.spec.dtype) is None for variable in equation.inputs):
        return None
    return entry.operands(equation, out)


def emit(lanes: LaneWriter, equation: Equation, args: list[str]) -> str:
    """Write the result, from operands that have the kinds of `operand_kinds`."""
    entry = lowers.of(equation.primitive)
    assert isinstance(entry, VectorRule)
    out = number_kind_of(equation.outputs[0].spec.dtype) or FLOAT64
    if entry.by_numbers is not None and _are_numbers(equation):
        return entry.by_numbers(lanes, out, *args)
    kind = out if not out.is_bool else (operand_kinds(equation) or [FLOAT64])[0]
    return entry.rule(lanes, kind, *args)


def errors_of(lanes: LaneWriter, equation: Equation, result: str, args: list[str]) -> str | None:
    """The lanes in which Python raises an error; None if it does so in none."""
    if not may_raise(equation):
        return None
    entry = lowers.of(equation.primitive)
    assert isinstance(entry, VectorRule) and entry.raises is not None
    kind = number_kind_of(equation.outputs[0].spec.dtype) or FLOAT64
    return entry.raises(lanes, kind, result, *args)


def may_raise(equation: Equation) -> bool:
    """Whether Python may raise an error, or NumPy warn of integers."""
    entry = lowers.of(equation.primitive)
    if not isinstance(entry, VectorRule) or entry.raises is None:
        return False
    if entry.warns and equation.outputs[0].spec.dtype.kind in "iu":
        return True
    return all(variable.spec.weak for variable in equation.inputs)


def _are_numbers(equation: Equation) -> bool:
    first, *others = (v.spec for v in equation.inputs)
    if equation.primitive is ew.power and not first.shape:
        return False
    return all(not spec.shape or spec.size == 1 < first.size for spec in others)


# Elementwise operations.


def _either(real: str, integer: str) -> Rule:
    return lambda lanes, kind, *args: lanes.op(real if kind.is_float else integer, kind, *args)


def _intrinsic(name: str) -> Rule:
    return lambda lanes, kind, *args: lanes.intrinsic(name, kind, *args)


def _function(name: str) -> Rule:
    return lambda lanes, kind, *args: lanes.function(name, kind, *args)


def _ordering(real: str, integer: str) -> Rule:
    """A comparison of sizes; that of integers is named by the suffix of `icmp`."""

    def rule(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
        sign = "u" if kind.is_unsigned else "s"
        return lanes.op(real if kind.is_float else f"icmp {sign}{integer}", kind, x, y)

    return rule


def _absolute(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    if kind.is_float:
        return lanes.intrinsic("fabs", kind, x)
    if kind.is_unsigned:
        return x
    negated = lanes.op("sub", kind, ZERO, x)
    return lanes.select(lanes.op("icmp slt", kind, x, ZERO), kind, negated, x)


def _negative(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    return lanes.op("fneg", kind, x) if kind.is_float else lanes.op("sub", kind, ZERO, x)


def _sign(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    if kind.is_unsigned:
        return lanes.convert(lanes.convert(x, kind, BOOL), BOOL, kind)
    less, more = ("fcmp olt", "fcmp ogt") if kind.is_float else ("icmp slt", "icmp sgt")
    one, minus = lanes.constant(1, kind), lanes.constant(-1, kind)
    zero = lanes.op("fmul", kind, x, ZERO) if kind.is_float else ZERO  # nan stays
    if kind.is_float:
        zero = lanes.intrinsic("fabs", kind, zero)
    result = lanes.select(lanes.op(less, kind, x, ZERO), kind, minus, zero)
    return lanes.select(lanes.op(more, kind, x, ZERO), kind, one, result)


# Between -0.0 and 0.0 NumPy chooses as the processor does: the second one, or 0.0 as the larger.
_TAKES_SECOND = bool(np.signbit(np.maximum(np.zeros(8), -np.zeros(8))).all())


def _extreme(lanes: LaneWriter, kind: NumberKind, x: str, y: str, wins: str) -> str:
    """x if it wins, or is nan, else y."""
    winner = lanes.select(lanes.op(f"fcmp {wins}", kind, x, y), kind, x, y)
    return lanes.select(lanes.op("fcmp uno", kind, x, x), kind, x, winner)


def _larger(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    if kind.is_float and _TAKES_SECOND:
        return _extreme(lanes, kind, x, y, "ogt")
    return lanes.intrinsic(of_kind("smax", kind) if not kind.is_float else "maximum", kind, x, y)


def _smaller(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    if kind.is_float and _TAKES_SECOND:
        return _extreme(lanes, kind, x, y, "olt")
    return lanes.intrinsic(of_kind("smin", kind) if not kind.is_float else "minimum", kind, x, y)


def _clip(lanes: LaneWriter, kind: NumberKind, x: str, low: str, high: str) -> str:
    return _smaller(lanes, kind, _larger(lanes, kind, x, low), high)


def _clip_by_numbers(lanes: LaneWriter, kind: NumberKind, x: str, low: str, high: str) -> str:
    """The same for limits that are numbers, which leave what is equal to them."""
    if not kind.is_float:
        return _clip(lanes, kind, x, low, high)
    return _extreme(lanes, kind, _extreme(lanes, kind, x, low, "oge"), high, "ole")


def _power_by_number(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    """A power with one exponent for all: that with 0.5 is a square root in NumPy, also at -0.0 and -inf."""
    is_root = lanes.op("fcmp oeq", kind, y, lanes.constant(0.5, kind))
    root, power = lanes.intrinsic("sqrt", kind, x), lanes.function("power", kind, x, y)
    return lanes.select(is_root, kind, root, power)


def _is_infinite(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    size = lanes.intrinsic("fabs", kind, x)
    return lanes.op("fcmp oeq", kind, size, lanes.constant(np.inf, kind))


def _is_finite(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    size = lanes.intrinsic("fabs", kind, x)
    return lanes.op("fcmp olt", kind, size, lanes.constant(np.inf, kind))


def _signbit(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    one = lanes.intrinsic("copysign", kind, lanes.constant(1, kind), x)
    return lanes.op("fcmp olt", kind, one, ZERO)


def _logical_not(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    return lanes.op("xor", BOOL, x, lanes.constant(True, BOOL))


def _invert(lanes: LaneWriter, kind: NumberKind, x: str) -> str:
    return lanes.op("xor", kind, x, lanes.constant(True if kind.is_bool else -1, kind))


def _shifted(name: str) -> Rule:
    """A shift of bits. By as many as there are, or more, it leaves zeros, or copies of the sign."""

    def rule(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
        inside = lanes.op("icmp ult", kind, y, lanes.constant(8 * kind.size, kind))
        gone = ZERO
        if name == "ashr" and not kind.is_unsigned:
            gone = lanes.op("ashr", kind, x, lanes.constant(8 * kind.size - 1, kind))
        instruction = "lshr" if name == "ashr" and kind.is_unsigned else name
        moved = lanes.op(instruction, kind, x, lanes.select(inside, kind, y, ZERO))
        return lanes.select(inside, kind, moved, gone)

    return rule


def _heaviside(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    step = lanes.select(lanes.op("fcmp ogt", kind, x, ZERO), kind, lanes.constant(1, kind), ZERO)
    step = lanes.select(lanes.op("fcmp oeq", kind, x, ZERO), kind, y, step)
    return lanes.select(lanes.op("fcmp uno", kind, x, x), kind, x, step)


def _logaddexp(lanes: LaneWriter, kind: NumberKind, x: str, y: str) -> str:
    """max(x, y) + log(1 + exp(-|x - y|)); of equal infinities the difference is 0."""
    apart = lanes.op("fneg", kind, lanes.intrinsic("fabs", kind, lanes.op("fsub", kind, x, y)))
    apart = lanes.select(lanes.op("fcmp oeq", kind, x, y), kind, ZERO, apart)
    return lanes.op(
        "fadd", kind, _larger(lanes, kind, x, y), lanes.function("softplus", kind, apart)
    )


for _primitive, _rule in (
    (ew.add, _either("fadd", "add")),
    (ew.subtract, _either("fsub", "sub")),
    (ew.multiply, _either("fmul", "mul")),
    (ew.square, lambda lanes, kind, x: lanes.op("fmul" if kind.is_float else "mul", kind, x, x)),
    (ew.negative, _negative),
    (ew.absolute, _absolute),
    (ew.fabs, _absolute),
    (ew.sign, _sign),
    (ew.maximum, _larger),
    (ew.minimum, _smaller),
    (ew.clip_low, _larger),
    (ew.clip_high, _smaller),
    (ew.relu, lambda lanes, kind, x: _larger(lanes, kind, x, ZERO)),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _arithmetic))
lowers.state(ew.clip, entry=VectorRule(_clip, _arithmetic, _clip_by_numbers))

for _primitive, _rule in (
    (ew.bitwise_and, lambda lanes, kind, x, y: lanes.op("and", kind, x, y)),
    (ew.bitwise_or, lambda lanes, kind, x, y: lanes.op("or", kind, x, y)),
    (ew.bitwise_xor, lambda lanes, kind, x, y: lanes.op("xor", kind, x, y)),
    (ew.invert, _invert),
    (ew.left_shift, _shifted("shl")),
    (ew.right_shift, _shifted("ashr")),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _bits))

lowers.state(
    ew.positive,
    ew.real,
    structure.stop_gradient,
    structure.conjugate,
    structure.copy,
    structure.astype,
    entry=VectorRule(lambda lanes, kind, x: x, _moved),
)
lowers.state(
    structure.where,
    entry=VectorRule(
        lambda lanes, kind, mask, x, y: lanes.select(mask, kind, x, y),
        lambda equation, out: [BOOL, out, out],
    ),
)

for _primitive, _rule in (
    (ew.sqrt, _intrinsic("sqrt")),
    (ew.root_of_squares, _intrinsic("sqrt")),
    (ew.floor, _intrinsic("floor")),
    (ew.ceil, _intrinsic("ceil")),
    (ew.trunc, _intrinsic("trunc")),
    (ew.rint, _intrinsic("rint")),
    (ew.copysign, _intrinsic("copysign")),
    (ew.heaviside, _heaviside),
    (ew.logaddexp, _logaddexp),
    (
        ew.deg2rad,
        lambda lanes, kind, x: lanes.op("fmul", kind, x, lanes.constant(np.pi / 180, kind)),
    ),
    (
        ew.rad2deg,
        lambda lanes, kind, x: lanes.op("fmul", kind, x, lanes.constant(180 / np.pi, kind)),
    ),
    (ew.float_power, _function("power")),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _floating))


def _by_zero(lanes: LaneWriter, kind: NumberKind, result: str, *args: str) -> str:
    return lanes.op("fcmp oeq", kind, args[-1], ZERO)


def _not_finite(lanes: LaneWriter, kind: NumberKind, result: str, *args: str) -> str:
    """Of a power: Python raises an error, or returns a complex number."""
    return _logical_not(lanes, BOOL, _is_finite(lanes, kind, result))


for _primitive, _rule in (
    (ew.divide, lambda lanes, kind, x, y: lanes.op("fdiv", kind, x, y)),
    (ew.reciprocal, lambda lanes, kind, x: lanes.op("fdiv", kind, lanes.constant(1, kind), x)),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _floating, raises=_by_zero))
lowers.state(
    ew.power, entry=VectorRule(_function("power"), _floating, _power_by_number, _not_finite)
)

for _primitive, _rule in ((ew.floor_divide, floor_divide), (ew.remainder, remainder)):
    lowers.state(
        _primitive, entry=VectorRule(_rule, _arithmetic, raises=division_fails, warns=True)
    )
lowers.state(ew.fmod, entry=VectorRule(truncated_remainder, _floating))

for _primitive, _rule in (
    (ew.less, _ordering("fcmp olt", "lt")),
    (ew.less_equal, _ordering("fcmp ole", "le")),
    (ew.greater, _ordering("fcmp ogt", "gt")),
    (ew.greater_equal, _ordering("fcmp oge", "ge")),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _compared))
lowers.state(ew.equal, entry=VectorRule(_either("fcmp oeq", "icmp eq"), _compared_for_equality))
lowers.state(ew.not_equal, entry=VectorRule(_either("fcmp une", "icmp ne"), _compared_for_equality))

for _primitive, _rule in (
    (ew.isnan, lambda lanes, kind, x: lanes.op("fcmp uno", kind, x, x)),
    (ew.isinf, _is_infinite),
    (ew.isfinite, _is_finite),
    (ew.signbit, _signbit),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _asked))

for _primitive, _rule in (
    (ew.logical_not, _logical_not),
    (ew.logical_and, lambda lanes, kind, x, y: lanes.op("and", BOOL, x, y)),
    (ew.logical_or, lambda lanes, kind, x, y: lanes.op("or", BOOL, x, y)),
    (ew.logical_xor, lambda lanes, kind, x, y: lanes.op("xor", BOOL, x, y)),
):
    lowers.state(_primitive, entry=VectorRule(_rule, _truth))


# Reductions.


def _least(kind: NumberKind) -> Any:
    return -np.inf if kind.is_float else np.iinfo(kind.dtype).min


def _greatest(kind: NumberKind) -> Any:
    return np.inf if kind.is_float else np.iinfo(kind.dtype).max


SUM = Reduction("fadd", "add", "fadd", "add", lambda kind: 0)
lowers.state(reduction.sum, reduction.mean, entry=SUM)
lowers.state(reduction.prod, entry=Reduction("fmul", "mul", "fmul", "mul", lambda kind: 1))
lowers.state(reduction.max, entry=Reduction("maximum", "smax", "fmaximum", "smax", _least))
lowers.state(reduction.min, entry=Reduction("minimum", "smin", "fminimum", "smin", _greatest))
lowers.state(reduction.any, entry=Reduction("", "or", "", "or", lambda kind: 0, True))
lowers.state(reduction.all, entry=Reduction("", "and", "", "and", lambda kind: 1, True))

# Views, arrays assembled from parts, products.

for _primitive, _see in (
    (structure.reshape, lambda view, equation: reshaped(view, equation.outputs[0].spec.shape)),
    (structure.transpose, lambda view, equation: transposed(view, equation.params["axes"])),
    (
        structure.broadcast_to,
        lambda view, equation: broadcast(view, equation.outputs[0].spec.shape),
    ),
    (indexing.index, lambda view, equation: indexed(view, equation.params["template"])),
):
    lowers.state(_primitive, entry=Strides(_see))

lowers.state(
    structure.concatenate,
    indexing.scatter,
    indexing.scatter_sum,
    indexing.update,
    entry=Parts(),
)
lowers.state(contraction.matmul, entry=MATMUL)
