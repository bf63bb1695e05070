"""Tensors as text: PyTorch's layout of the numbers, and the notes that follow them."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.interpreters.batch import BatchTracer
from functrans.interpreters.dual import DualTracer
from functrans.interpreters.tape import TapeTracer
from functrans.torch import dtypes
from functrans.torch.registry import export
from functrans.torch.tensor import Tensor, lower

forward_levels: list[Any] = []  # the levels of forward_ad that are open


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


OPTIONS = _Options()
_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


@export(method=False)
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: the number of digits, and how much of a long tensor is shown.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor(1.23456)
    tensor(1.23)
    >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        for name, value in _PROFILES[profile].items():
            setattr(OPTIONS, name, value)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, number in given.items():
        if number is not None:
            setattr(OPTIONS, name, number)
    OPTIONS.sci_mode = sci_mode


class _Formatter:
    """Formats the numbers of one tensor, all to the same width."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.floating = values.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max((len(str(each)) for each in values.tolist()), default=1)
            return
        wide = values.astype(np.float64)
        shown = wide[np.isfinite(wide) & (wide != 0)]
        if not shown.size:
            return
        sizes = np.abs(shown)
        largest, smallest = sizes.max(), sizes.min()
        self.whole = bool((shown == np.ceil(shown)).all())
        spread = largest / smallest > 1000.0 or largest > 1.0e8
        self.scientific = bool(spread or (not self.whole and smallest < 1.0e-4))
        if OPTIONS.sci_mode is not None:
            self.scientific = OPTIONS.sci_mode
        self.width = max(len(self._number(each)) for each in shown.tolist())

    def _number(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{OPTIONS.precision}f}"

    def text(self, value: Any) -> str:
        return self._number(value).rjust(self.width)


class _ComplexFormatter:
    """Formats complex numbers, with one width for each part."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.real, self.imag = _Formatter(values.real), _Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def text(self, value: complex) -> str:
        imag = self.imag.text(value.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{self.real.text(value.real)}{sign}{imag}j"


def _summarized(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The entries shown in a summary."""
    edge = OPTIONS.edgeitems
    for axis in range(values.ndim):
        if values.shape[axis] > 2 * edge:
            places = np.r_[:edge, values.shape[axis] - edge : values.shape[axis]]
            values = np.take(values, places, axis=axis)
    return values


def _body(values: np.ndarray[Any, Any], indent: int, summary: bool, formatter: Any) -> str:
    if not values.ndim:
        return formatter.text(values.item())  # type: ignore[no-any-return]
    edge = OPTIONS.edgeitems
    shorten = summary and len(values) > 2 * edge
    if values.ndim == 1:
        per_line = max(1, math.floor((OPTIONS.linewidth - indent) / (formatter.width + 2)))
        if shorten:
            texts = [formatter.text(each) for each in values[:edge].tolist()] + [" ..."]
            texts += [formatter.text(each) for each in values[len(values) - edge :].tolist()]
        else:
            texts = [formatter.text(each) for each in values.tolist()]
        lines = [", ".join(texts[k : k + per_line]) for k in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    if shorten:
        parts = [_body(each, indent + 1, summary, formatter) for each in values[:edge]] + ["..."]
        parts += [
            _body(each, indent + 1, summary, formatter) for each in values[len(values) - edge :]
        ]
    else:
        parts = [_body(each, indent + 1, summary, formatter) for each in values]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _traced_text(value: Tracer) -> str:
    """The text of a tensor inside a transform: the kind of transform around the text of the inner value."""
    if isinstance(value, DualTracer) and value.interpreter in forward_levels:
        parts = tensor_text(lower(value.value)), tensor_text(lower(value.tangent))
        return f"{parts[0][:-1]}, tangent={parts[1]})"
    if isinstance(value, BatchTracer):
        head = "BatchedTensor(lvl={}, bdim=0, value=\n"
    elif isinstance(value, (DualTracer, TapeTracer)):
        head = "GradTrackingTensor(lvl={}, value=\n"
    else:
        return f"tensor({value!r})"
    depth = 0
    inner: Any = value
    while isinstance(inner, Tracer):
        depth, inner = depth + 1, getattr(inner, "value", None)
    text = tensor_text(lower(value.value))
    return head.format(depth) + textwrap.indent(text, "    ") + "\n)"


def tensor_text(tensor: Tensor) -> str:
    """The text that `print` shows for a tensor."""
    value = tensor.value
    if isinstance(value, Tracer):
        return _traced_text(value)
    values = np.asarray(value)
    prefix = "tensor("
    suffixes = []
    kind = tensor.dtype
    usual = kind in (
        dtypes.default.torch,
        dtypes.complex_default(),
        dtypes.int64,
        dtypes.bool_,
    )
    if not values.size:
        if values.ndim != 1:
            suffixes.append(f"size={tuple(values.shape)}")
        if kind is not dtypes.default.torch:
            suffixes.append(f"dtype={kind}")
        body = "[]"
    else:
        if not usual:
            suffixes.append(f"dtype={kind}")
        summary = values.size > OPTIONS.threshold
        shown = (_summarized(values) if summary else values).reshape(-1)
        formatter = (_ComplexFormatter if values.dtype.kind == "c" else _Formatter)(shown)
        body = _body(values, len(prefix), summary, formatter)
    record = tensor.record
    if record is not None and len(record) > 1:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif record is not None:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + body, suffixes, len(prefix))


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    parts = [text]
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        length = len(suffix)
        if last + length + 2 > OPTIONS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + length
        else:
            parts.append(", " + suffix)
            last += length + 2
    parts.append(")")
    return "".join(parts)
