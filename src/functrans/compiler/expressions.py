"""How each primitive is written in NumPy: a table from names of primitives to expressions.

A rule gets a `Call`: the texts of the arguments, their specs, the parameters and the spec of the
result, and returns the text of an expression. Operators carry a rank, from which parentheses follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.vocabulary import is_numpys, is_ours
from functrans.core.shapes import ArraySpec
from functrans.ops.indexing import ARRAY


class Text(NamedTuple):
    """A piece of source and the rank of its outermost operator."""

    code: str
    rank: float = 20

    def within(self, rank: float) -> str:
        """The text as an operand of an operator of this rank."""
        return self.code if self.rank >= rank else f"({self.code})"


class Call(NamedTuple):
    """One equation, as the rules below look at it."""

    args: list[Text]
    specs: list[ArraySpec]
    params: dict[str, Any]
    out: ArraySpec

    def plain(self, k: int = 0) -> str:
        """An argument that stands between commas."""
        return self.args[k].code

    def atom(self, k: int = 0) -> str:
        """An argument that a dot or a bracket follows."""
        code = self.args[k].within(20)
        return f"({code})" if code[:1].isdigit() or code[:1] == "-" else code


_BINARY: dict[str, tuple[str, float]] = {
    "add": ("+", 12),
    "subtract": ("-", 12),
    "multiply": ("*", 13),
    "divide": ("/", 13),
    "floor_divide": ("//", 13),
    "remainder": ("%", 13),
    "matmul": ("@", 13.5),  # as strong as *, but (a * b) @ c reads better with parentheses
    "left_shift": ("<<", 11),
    "right_shift": (">>", 11),
    "bitwise_and": ("&", 10),
    "bitwise_xor": ("^", 9),
    "bitwise_or": ("|", 8),
    "less": ("<", 6),
    "less_equal": ("<=", 6),
    "greater": (">", 6),
    "greater_equal": (">=", 6),
    "equal": ("==", 6),
    "not_equal": ("!=", 6),
}
_UNARY = {"negative": "-", "positive": "+", "invert": "~"}


def infix(name: str, call: Call) -> Text | None:
    """The expression of a primitive that Python writes as an operator."""
    if name in _UNARY:
        return Text(_UNARY[name] + call.args[0].within(14), 14)
    if name == "power":
        return Text(f"{call.args[0].within(16)} ** {call.args[1].within(14)}", 15)
    if name not in _BINARY:
        return None
    sign, rank = _BINARY[name]
    # Arithmetic associates to the left; comparisons must not be chained.
    left = call.args[0].within(rank + (rank == 6))
    return Text(f"{left} {sign} {call.args[1].within(int(rank) + 1)}", rank)


# The spelling of values.


def number_text(value: Any, weak: bool) -> Text:
    """A scalar constant: a Python number as it is, a NumPy scalar with its type."""
    if weak:
        return _plain_number(value)
    item = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
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
    """A dtype by the name of its scalar type."""
    if not dtype.isnative:
        return f"np.dtype({dtype.str!r}).type"
    name = dtype.name
    return "np.bool_" if name == "bool" else f"np.{name}"


def value_text(value: Any) -> str:
    """A parameter: numbers, names, shapes."""
    if isinstance(value, tuple):
        inner = ", ".join(map(value_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, (np.integer, np.bool_)):
        return repr(value.item())
    return repr(value)


def index_text(template: tuple[Any, ...], arrays: list[str]) -> str:
    """What stands between the brackets."""
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

Expression = Callable[[Call], str]


def _axes(call: Call) -> str:
    """, axis=..., keepdims=True of a reduction, as short as it can be."""
    axis, keepdims = call.params["axis"], call.params.get("keepdims", False)
    ndim = call.specs[0].ndim
    text = ""
    if isinstance(axis, tuple):
        if len(axis) != ndim or not axis:
            text = f", axis={axis[0] if len(axis) == 1 else value_text(axis)}"
    elif ndim != 1:
        text = f", axis={axis}"
    return text + (", keepdims=True" if keepdims else "")


def _reduction(name: str) -> Expression:
    return lambda call: f"np.{name}({call.plain()}{_axes(call)})"


def _along(name: str, *keys: str) -> Expression:
    """A function of one array and keywords that are its parameters."""

    def expression(call: Call) -> str:
        keywords = "".join(f", {key}={value_text(call.params[key])}" for key in keys)
        return f"np.{name}({', '.join(arg.code for arg in call.args)}{keywords})"

    return expression


def _reshape(call: Call) -> str:
    old, new = call.specs[0].shape, call.out.shape
    if call.specs[0].weak:
        return f"np.reshape({call.plain()}, {value_text(new)})"
    with_axes = _inserted_axes(old, new)
    if with_axes is not None:
        return f"{call.atom()}[{with_axes}]"
    shape = value_text(new[0]) if len(new) == 1 else value_text(new)
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


def _transpose(call: Call) -> str:
    axes = tuple(map(int, call.params["axes"]))
    ndim = len(axes)
    if axes == tuple(range(ndim))[::-1]:
        return f"{call.atom()}.T"
    if axes == (*range(ndim - 2), ndim - 1, ndim - 2):
        return f"np.swapaxes({call.plain()}, -1, -2)"
    return f"np.transpose({call.plain()}, {value_text(axes)})"


def _astype(call: Call) -> str:
    if call.specs[0].weak:
        return f"{dtype_text(call.params['dtype'])}({call.plain()})"
    dtype = call.params["dtype"]
    name = dtype_text(dtype) if dtype.isnative else value_text(dtype)
    return f"{call.atom()}.astype({name})"


def _einsum(call: Call) -> str:
    operands = ", ".join(arg.code for arg in call.args)
    large = sum(spec.size for spec in call.specs) > 4096 or len(call.args) > 2
    option = ", optimize=True" if large else ""
    return f"np.einsum({call.params['subscripts']!r}, {operands}{option})"


def _fft(call: Call) -> str:
    name = "ifft" if call.params["inverse"] else "fft"
    return f"np.fft.{name}({call.plain()}, axis={call.params['axis']}{_norm(call)})"


def _norm(call: Call) -> str:
    return "" if call.params["norm"] is None else f", norm={call.params['norm']!r}"


def _with_options(call: Call) -> str:
    options = [f"{key}={value_text(value)}" for key, value in call.params.items()]
    return ", ".join([call.plain(), *options])


EXPRESSIONS: dict[str, Expression] = {
    "absolute": lambda c: f"{'abs' if c.specs[0].weak else 'np.abs'}({c.plain()})",
    "relu": lambda c: f"np.maximum({c.plain()}, 0)",
    "minimum_zero": lambda c: f"np.minimum({c.plain()}, 0)",
    "root_of_squares": lambda c: f"np.sqrt({c.plain()})",
    "exponent": lambda c: f"np.frexp({c.plain()})[1]",
    "angle": _along("angle"),
    "real": lambda c: f"np.real({c.plain()})",
    "imag": lambda c: f"np.imag({c.plain()})",
    "clip": _along("clip"),
    "where": _along("where"),
    "conjugate": _along("conj"),
    "copy": lambda c: f"np.array({c.plain()})",
    "stop_gradient": lambda c: c.args[0].within(20),
    "complement": lambda c: c.args[1].within(20),
    "pinv": lambda c: f"np.linalg.pinv({_with_options(c)})",
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _along("broadcast_to", "shape"),
    "astype": _astype,
    "concatenate": lambda c: (
        f"np.concatenate([{', '.join(arg.code for arg in c.args)}]"
        + (f", axis={c.params['axis']})" if c.params["axis"] else ")")
    ),
    "index": lambda c: (
        f"{c.atom()}[{index_text(c.params['template'], [arg.code for arg in c.args[1:]])}]"
    ),
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "prod": _reduction("prod"),
    "any": _reduction("any"),
    "all": _reduction("all"),
    "argmax": _reduction("argmax"),
    "argmin": _reduction("argmin"),
    "cumsum": _along("cumsum", "axis"),
    "cumprod": _along("cumprod", "axis"),
    "running_max": _along("maximum.accumulate", "axis"),
    "running_min": _along("minimum.accumulate", "axis"),
    "argsort": _along("argsort", "axis", "kind"),
    "argpartition": _along("argpartition", "kth", "axis"),
    "searchsorted": _along("searchsorted", "side"),
    "packbits": _along("packbits", "axis", "bitorder"),
    "unpackbits": _along("unpackbits", "axis", "count", "bitorder"),
    "einsum": _einsum,
    "slogdet": _along("linalg.slogdet"),
    "qr": _along("linalg.qr"),
    "eigh": lambda c: f"np.linalg.eigh({c.plain()}, {c.params['uplo']!r})",
    "eigvalsh": lambda c: f"np.linalg.eigvalsh({c.plain()}, {c.params['uplo']!r})",
    "svd": lambda c: f"np.linalg.svd({c.plain()}, full_matrices=False)",
    "fft": _fft,
    "rfft": lambda c: f"np.fft.rfft({c.plain()}, axis={c.params['axis']}{_norm(c)})",
    "irfft": lambda c: (
        f"np.fft.irfft({c.plain()}, {c.params['n']}, axis={c.params['axis']}{_norm(c)})"
    ),
}


def expression(primitive: Any, call: Call) -> Text | None:
    """The primitive's call as an expression of NumPy, or None if it takes more than one."""
    name: str = primitive.name
    impl: Any = primitive.impl
    arguments = ", ".join(arg.code for arg in call.args)
    if isinstance(impl, np.ufunc) and not call.params:
        if is_numpys(impl):
            return Text(f"np.{impl.__name__}({arguments})")
        return Text(f"special.{impl.__name__}({arguments})")
    if is_numpys(impl) and not call.params:
        return Text(f"np.{impl.__name__}({arguments})")
    if getattr(np.linalg, name, None) is impl and not call.params:
        return Text(f"np.linalg.{name}({arguments})")
    if not is_ours(primitive):
        return None
    rule = EXPRESSIONS.get(name)
    return infix(name, call) if rule is None else Text(rule(call))
