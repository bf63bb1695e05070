"""How each primitive is written in NumPy: a rule with `@lowers(primitive)`.

A rule gets a `PrimitiveCall`: the texts of the arguments, their specs, the parameters and the spec of the
result, and returns the text of an expression. Operators carry a rank, from which parentheses follow.
Elementwise primitives need no entry: they are calls of their ufunc. A primitive for which nothing is
stated is a call of the function that evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.core.primitive import Rules
from functrans.core.shapes import ArraySpec
from functrans.core.summation import FEW, WIDER
from functrans.graph.graph import Equation
from functrans.ops import (
    contraction,
    determinant,
    factorization,
    fourier,
    indexing,
    reduction,
    running,
    searching,
    singular,
    sorting,
    spectral,
    structure,
)
from functrans.ops import elementwise as ew
from functrans.ops.indexing import ARRAY
from functrans.ops.long_products import LONG_BLOCK

if TYPE_CHECKING:
    from functrans.compiler.numpy.writer import GraphWriter


class Text(NamedTuple):
    """A piece of source and the rank of its outermost operator."""

    code: str
    rank: float = 20

    def within(self, rank: float) -> str:
        """The text as an operand of an operator with this rank."""
        return self.code if self.rank >= rank else f"({self.code})"


class PrimitiveCall(NamedTuple):
    """One equation, as the rules below look at it."""

    args: list[Text]
    specs: list[ArraySpec]
    params: dict[str, Any]
    out: ArraySpec

    def plain(self, k: int = 0) -> str:
        """An argument between commas."""
        return self.args[k].code

    def atom(self, k: int = 0) -> str:
        """An argument before a dot or a bracket."""
        code = self.args[k].within(20)
        return f"({code})" if code[:1].isdigit() or code[:1] == "-" else code


# The spelling of values.


def number_text(value: Any, weak: bool) -> Text:
    """A scalar constant: a Python number as it is, a NumPy scalar with its type."""
    if weak:
        return _plain_number(value)
    item = value.item() if is_plain(value, (np.ndarray, np.generic)) else value
    dtype = np.asarray(value).dtype
    return Text(f"{dtype_text(dtype)}({_plain_number(item).code})")


def _plain_number(value: Any) -> Text:
    if isinstance(value, complex):
        return Text(f"complex({_plain_number(value.real).code}, {_plain_number(value.imag).code})")
    if isinstance(value, float) and value != value:
        return Text("np.nan")
    if isinstance(value, float) and value in (np.inf, -np.inf):
        return Text("np.inf") if value > 0 else Text("-np.inf", 14)
    text = repr(value)
    return Text(text, 14 if text.startswith("-") else 20)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as the name of its scalar type."""
    if not dtype.isnative:
        return f"np.dtype({dtype.str!r}).type"
    name = dtype.name
    return "np.bool_" if name == "bool" else f"np.{name}"


def dtype_name(dtype: np.dtype[Any]) -> str:
    """A dtype as an option of a function that makes an array."""
    return dtype_text(dtype) if dtype.isnative else parameter_text(dtype)


def parameter_text(value: Any) -> str:
    """A parameter: numbers, names, shapes."""
    if isinstance(value, tuple):
        inner = ", ".join(map(parameter_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, (np.integer, np.bool_)):
        return repr(value.item())
    return repr(value)


def index_text(template: tuple[Any, ...], arrays: list[str]) -> str:
    """The text between the brackets."""
    remaining = iter(arrays)
    entries = []
    for entry in template:
        if entry is ARRAY:
            entries.append(next(remaining))
        elif isinstance(entry, slice):
            ends = ["" if end is None else str(end) for end in (entry.start, entry.stop)]
            entries.append(":".join(ends) + ("" if entry.step is None else f":{entry.step}"))
        else:
            entries.append("..." if entry is Ellipsis else str(entry))
    return ", ".join(entries) if entries else "()"


# Rules.

Expression = Callable[[PrimitiveCall], str | Text]


def _as_it_is_evaluated(primitive: Any) -> Expression | None:
    """A call of the function of NumPy or SciPy that evaluates the primitive."""
    path = numpy_path(primitive.impl)
    if path is None and isinstance(primitive.impl, np.ufunc):
        path = f"special.{primitive.impl.__name__}"
    return None if path is None else lambda call: _call(path, call, *call.params)


def numpy_path(function: Any) -> str | None:
    """The name of a NumPy function as users write it, such as np.sin or np.linalg.inv; None for others."""
    name = getattr(function, "__name__", "")
    for module, prefix in ((np, "np"), (np.linalg, "np.linalg")):
        if function is not None and getattr(module, name, None) is function:
            return f"{prefix}.{name}"
    return None


lowers: Rules[Expression] = Rules(_as_it_is_evaluated)


def written(primitive: Any, call: PrimitiveCall) -> Text | None:
    """The primitive's call as an expression of NumPy, or None if it takes more than one."""
    rule = lowers.of(primitive)
    found = None if rule is None else rule(call)
    return Text(found) if isinstance(found, str) else found


def _call(path: str, call: PrimitiveCall, *keys: str) -> str:
    """A call with the arrays, and with keywords that are parameters of the primitive."""
    keywords = "".join(f", {key}={parameter_text(call.params[key])}" for key in keys)
    return f"{path}({', '.join(arg.code for arg in call.args)}{keywords})"


def _function(path: str, *keys: str) -> Expression:
    return lambda call: _call(f"np.{path}", call, *keys)


# Operators.


def _is_pythons(call: PrimitiveCall) -> bool:
    """Whether Python would compute with NumPy's number: a np.float64 is a float to `complex`."""
    left, right = call.specs
    return left.weak and left.dtype.kind == "c" and right.dtype == np.float64 and not right.weak


def _infix(function: str, sign: str, rank: float) -> Expression:
    def expression(call: PrimitiveCall) -> Text:
        if _is_pythons(call):
            return Text(_call(f"np.{function}", call))
        # Arithmetic associates to the left; comparisons must not be chained.
        left = call.args[0].within(rank + (rank == _COMPARISON))
        return Text(f"{left} {sign} {call.args[1].within(int(rank) + 1)}", rank)

    return expression


_COMPARISON = 6
for _primitive, _sign, _rank in (
    (ew.add, "+", 12),
    (ew.subtract, "-", 12),
    (ew.multiply, "*", 13),
    (ew.divide, "/", 13),
    (ew.floor_divide, "//", 13),
    (ew.remainder, "%", 13),
    (
        contraction.matmul,
        "@",
        13.5,
    ),  # as strong as *, but (a * b) @ c reads better with parentheses
    (ew.left_shift, "<<", 11),
    (ew.right_shift, ">>", 11),
    (ew.bitwise_and, "&", 10),
    (ew.bitwise_xor, "^", 9),
    (ew.bitwise_or, "|", 8),
    (ew.less, "<", _COMPARISON),
    (ew.less_equal, "<=", _COMPARISON),
    (ew.greater, ">", _COMPARISON),
    (ew.greater_equal, ">=", _COMPARISON),
    (ew.equal, "==", _COMPARISON),
    (ew.not_equal, "!=", _COMPARISON),
):
    lowers(_primitive)(_infix(_primitive.name, _sign, _rank))


def _prefix(sign: str) -> Expression:
    return lambda call: Text(sign + call.args[0].within(14), 14)


lowers(ew.negative)(_prefix("-"))
lowers(ew.positive)(_prefix("+"))
lowers(ew.invert)(_prefix("~"))


@lowers(ew.power)
def _power(call: PrimitiveCall) -> Text:
    if _is_pythons(call):
        return Text(_call("np.power", call))
    return Text(f"{call.args[0].within(16)} ** {call.args[1].within(14)}", 15)


# Elementwise functions that are not evaluated by one of NumPy's.

lowers(ew.absolute)(lambda c: f"{'abs' if c.specs[0].weak else 'np.abs'}({c.plain()})")
lowers(ew.relu)(lambda call: f"np.maximum({call.plain()}, 0)")
lowers(ew.exponent)(lambda call: f"np.frexp({call.plain()})[1]")


# Reductions and running sums.


def _axes(call: PrimitiveCall) -> str:
    """, axis=..., keepdims=True of a reduction, as short as it can be."""
    axis, keepdims = call.params["axis"], call.params.get("keepdims", False)
    ndim = call.specs[0].ndim
    text = ""
    if isinstance(axis, tuple):
        if len(axis) != ndim or not axis:
            text = f", axis={axis[0] if len(axis) == 1 else parameter_text(axis)}"
    elif ndim != 1:
        text = f", axis={axis}"
    return text + (", keepdims=True" if keepdims else "")


for _primitive in (
    reduction.sum,
    reduction.mean,
    reduction.max,
    reduction.min,
    reduction.prod,
    reduction.any,
    reduction.all,
    reduction.argmax,
    reduction.argmin,
):

    @lowers(_primitive)
    def _reduction(call: PrimitiveCall, name: str = _primitive.name) -> str:
        return f"np.{name}({call.plain()}{_axes(call)})"


lowers(reduction.cumsum)(_function("cumsum", "axis"))
lowers(reduction.cumprod)(_function("cumprod", "axis"))
lowers(running.running_max)(_function("maximum.accumulate", "axis"))
lowers(running.running_min)(_function("minimum.accumulate", "axis"))

# Shapes and indexing.


@lowers(structure.reshape)
def _reshape(call: PrimitiveCall) -> str:
    old, new = call.specs[0].shape, call.out.shape
    if call.specs[0].weak:
        return f"np.reshape({call.plain()}, {parameter_text(new)})"
    with_axes = _inserted_axes(old, new)
    if with_axes is not None:
        return f"{call.atom()}[{with_axes}]"
    shape = parameter_text(new[0]) if len(new) == 1 else parameter_text(new)
    return f"{call.atom()}.reshape({shape})"


def _inserted_axes(old: tuple[int, ...], new: tuple[int, ...]) -> str | None:
    """x[:, None] for a reshape that only inserts axes of length 1."""
    if not old or len(new) <= len(old) or 1 in old:
        return None
    entries: list[str] = []
    remaining = list(old)
    for length in new:
        if remaining and length == remaining[0]:
            entries.append(":")
            remaining.pop(0)
        elif length == 1:
            entries.append("None")
        else:
            return None
    if remaining:
        return None
    while entries and entries[-1] == ":":
        entries.pop()
    return ", ".join(entries)


@lowers(structure.transpose)
def _transpose(call: PrimitiveCall) -> str:
    axes = tuple(map(int, call.params["axes"]))
    ndim = len(axes)
    if axes == tuple(range(ndim))[::-1]:
        return f"{call.atom()}.T"
    if axes == (*range(ndim - 2), ndim - 1, ndim - 2):
        return f"np.swapaxes({call.plain()}, -1, -2)"
    return f"np.transpose({call.plain()}, {parameter_text(axes)})"


@lowers(structure.astype)
def _astype(call: PrimitiveCall) -> str:
    if call.specs[0].weak:
        return f"{dtype_text(call.params['dtype'])}({call.plain()})"
    return f"{call.atom()}.astype({dtype_name(call.params['dtype'])})"


lowers(structure.broadcast_to)(_function("broadcast_to", "shape"))
lowers(structure.where)(_function("where"))
lowers(structure.copy)(lambda call: f"np.array({call.plain()})")
lowers(structure.conjugate)(_function("conj"))
lowers(structure.stop_gradient)(lambda call: call.args[0].within(20))


@lowers(structure.concatenate)
def _concatenate(call: PrimitiveCall) -> str:
    axis = f", axis={call.params['axis']}" if call.params["axis"] else ""
    return f"np.concatenate([{', '.join(arg.code for arg in call.args)}]{axis})"


@lowers(indexing.index)
def _index(call: PrimitiveCall) -> str:
    return (
        f"{call.atom()}[{index_text(call.params['template'], [arg.code for arg in call.args[1:]])}]"
    )


lowers(sorting.argsort)(_function("argsort", "axis", "kind"))
lowers(searching.argpartition)(_function("argpartition", "kth", "axis"))
lowers(searching.searchsorted)(_function("searchsorted", "side"))
lowers(searching.packbits)(_function("packbits", "axis", "bitorder"))
lowers(searching.unpackbits)(_function("unpackbits", "axis", "count", "bitorder"))

# Linear algebra.


@lowers(contraction.einsum)
def _einsum(call: PrimitiveCall) -> str:
    operands = ", ".join(arg.code for arg in call.args)
    large = sum(spec.size for spec in call.specs) > 4096 or len(call.args) > 2
    option = ", optimize=True" if large else ""
    return f"np.einsum({call.params['subscripts']!r}, {operands}{option})"


lowers(factorization.complement)(lambda call: call.args[1].within(20))
lowers(factorization.qr)(_function("linalg.qr"))
lowers(determinant.slogdet)(_function("linalg.slogdet"))
lowers(singular.svd)(lambda call: f"np.linalg.svd({call.plain()}, full_matrices=False)")
lowers(singular.pinv)(lambda call: _call("np.linalg.pinv", call, *call.params))
lowers(spectral.eigh)(lambda call: f"np.linalg.eigh({call.plain()}, {call.params['uplo']!r})")
lowers(spectral.eigvalsh)(
    lambda call: f"np.linalg.eigvalsh({call.plain()}, {call.params['uplo']!r})"
)

# Fourier transforms.


@lowers(fourier.dft)
def _fft(call: PrimitiveCall) -> str:
    name = "ifft" if call.params["inverse"] else "fft"
    return f"np.fft.{name}({call.plain()}, axis={call.params['axis']}{_norm(call)})"


def _norm(call: PrimitiveCall) -> str:
    return "" if call.params["norm"] is None else f", norm={call.params['norm']!r}"


@lowers(fourier.rdft)
def _rfft(call: PrimitiveCall) -> str:
    return f"np.fft.rfft({call.plain()}, axis={call.params['axis']}{_norm(call)})"


@lowers(fourier.irdft)
def _irfft(call: PrimitiveCall) -> str:
    params = call.params
    return f"np.fft.irfft({call.plain()}, {params['n']}, axis={params['axis']}{_norm(call)})"


# Statements, for primitives that change a new array in place. A rule writes them with the writer and returns
# whether it did; if not, the primitive is written as an expression.

Statement = Callable[["GraphWriter", Equation], bool]
states: Rules[Statement] = Rules()


@states(indexing.update)
def _update(writer: GraphWriter, equation: Equation) -> bool:
    _, value, *arrays = (writer.texts[v].code for v in equation.inputs)
    (out,) = equation.outputs
    start = writer.start(equation)
    target = writer.result(equation, out)
    writer.lines.append(f"{target} = {start}  # {out.spec}")
    place = index_text(equation.params["template"], arrays)
    writer.lines.append(f"{target}[{place}] = {value}")
    return True


@states(indexing.scatter)
def _scatter(writer: GraphWriter, equation: Equation) -> bool:
    value, *arrays = (writer.texts[v].code for v in equation.inputs)
    if arrays and writer.helpers is None:
        return False  # there are faster ways than np.add.at
    target = _zeros(writer, equation)
    template = equation.params["template"]
    if not arrays:
        writer.lines.append(f"{target}[{index_text(template, [])}] = {value}")
        return True
    place = index_text(template, arrays)
    if len(template) > 1:  # slices cannot stand outside brackets
        place = f"np.s_[{place}]"
    writer.lines.append(f"np.add.at({target}, {place}, {value})")
    return True


@states(indexing.scatter_sum)
def _scatter_sum(writer: GraphWriter, equation: Equation) -> bool:
    target = _zeros(writer, equation)
    for variable, template in zip(equation.inputs, equation.params["templates"], strict=True):
        value = writer.texts[variable].code
        writer.lines.append(f"{target}[{index_text(template, [])}] += {value}")
    return True


def _zeros(writer: GraphWriter, equation: Equation) -> str:
    """Write down an array of zeros for the result, and give its name."""
    (out,) = equation.outputs
    dtype = out.spec.dtype
    option = "" if dtype == np.float64 and dtype.isnative else f", {dtype_name(dtype)}"
    target = writer.result(equation, out)
    writer.lines.append(
        f"{target} = np.zeros({parameter_text(out.spec.shape)}{option})  # {out.spec}"
    )
    return target


# Code that is not meant to be read, faster or more accurate than the expressions above. If a rule returns
# None, the function that evaluates the primitive is called.

quick: Rules[Callable[[PrimitiveCall], str | None]] = Rules()
quick(reduction.mean, reduction.cumsum, contraction.einsum)(lambda call: None)


@quick(reduction.sum)
def _quick_sum(call: PrimitiveCall) -> str | None:
    """NumPy's sum, where it is as exact as the library's own."""
    axis, spec = call.params["axis"], call.specs[0]
    terms = prod([spec.shape[a] for a in axis])
    if spec.ndim > 1 and spec.dtype.kind in "fc" and (terms > FEW or spec.dtype.itemsize == 2):
        return None
    shape = str(axis[0]) if len(axis) == 1 else parameter_text(axis)
    kept = ", None, None, True" if call.params["keepdims"] else ""
    return f"np.add.reduce({call.plain()}, {shape}{kept})"


@quick(contraction.matmul)
def _quick_matmul(call: PrimitiveCall) -> str | None:
    """NumPy's product, where it is as exact as the library's own."""
    if call.specs[0].shape[-1] > LONG_BLOCK and call.out.dtype in WIDER:
        return None
    if call.specs[0].ndim == call.specs[1].ndim == 2:
        return f"{call.atom()}.dot({call.plain(1)})"
    product = written(contraction.matmul, call)
    return None if product is None else f"({product.code})"


# Names of results, where there is a better one than the primitive's.

result_names: Rules[str] = Rules(
    lambda primitive: (
        primitive.name if primitive.name.isidentifier() and primitive.name[0] != "_" else None
    )
)
for _name, _primitives in {
    "total": (ew.add, reduction.sum),
    "difference": (ew.subtract,),
    "product": (ew.multiply, contraction.matmul, contraction.einsum),
    "ratio": (ew.divide,),
    "negated": (ew.negative,),
    "powers": (ew.power,),
    "part": (indexing.index,),
    "joined": (structure.concatenate,),
    "reshaped": (structure.reshape,),
    "transposed": (structure.transpose,),
    "spread": (structure.broadcast_to,),
    "converted": (structure.astype,),
    "chosen": (structure.where,),
    "updated": (indexing.update,),
    "scattered": (indexing.scatter, indexing.scatter_sum),
    "mask": (ew.less, ew.less_equal, ew.greater, ew.greater_equal, ew.equal, ew.not_equal),
    "solution": (factorization.solve,),
}.items():
    result_names.state(*_primitives, entry=_name)
