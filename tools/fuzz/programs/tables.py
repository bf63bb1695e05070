"""The vocabulary of random programs: forms of expressions, each with a condition for it to be smooth.

A form is (text, guard, lacks). `{a}`, `{b}` and so on stand for arrays. A guard is an expression that must
be true at every point; it keeps the arguments away from kinks and poles by a margin. LARGEST is the size of
the largest array that is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.fuzz.programs.program import COMPLEX_STEPS, JAX, STAGING, TORCH

MARGIN = 0.03

Form = tuple[str, str, tuple[str, ...]]


def away(x: Any) -> bool:
    """No entry is close to 0."""
    return bool(np.all(np.abs(x) > MARGIN))


def apart(x: Any, axis: int | None = None) -> bool:
    """No two entries are close to each other, along one axis or in the whole array."""
    values, along = (np.ravel(x), 0) if axis is None else (np.asarray(x), axis)
    return bool(np.all(np.diff(np.sort(values, along), axis=along) > MARGIN))


REAL = (COMPLEX_STEPS,)


def _forms(*entries: Any) -> list[Form]:
    """Forms from texts, or from tuples (text, guard, lacks)."""
    rows = [(entry, "") if isinstance(entry, str) else entry for entry in entries]
    return [(text, guard, tuple(lacks)) for text, guard, *lacks in rows]


UNARY = _forms(
    "np.sin({a})",
    "-{a}",
    "0.5 * {a}",
    "{a} * {a}",
    "{a} - 0.3",
    "1.5 + {a}",
    "np.cos({a})",
    "np.tanh({a})",
    ("np.exp({a})", "np.all({a} < 2.5)"),
    "np.arctan({a})",
    "np.square({a})",
    "{a} ** 2",
    "{a} ** 3",
    "{a} / 2.5",
    "np.log1p({a} * {a})",
    "np.sqrt(1.5 + {a} ** 2)",
    "1.0 / (1.5 + {a} * {a})",
    "np.sinh(0.5 * {a})",
    "np.cosh(0.5 * {a})",
    "np.arcsinh({a})",
    "np.expm1(0.5 * {a})",
    "np.exp2(0.5 * {a})",
    "np.exp(-{a} ** 2)",
    ("np.tan({a})", "np.all(np.cos({a}) > 0.3)"),
    ("np.log({a})", "np.all({a} > 0.2)"),
    "np.log(2.0 + np.sin({a}))",
    "np.log2(1.5 + np.sin({a}))",
    "np.log10(1.5 + {a} ** 2)",
    ("np.sqrt({a})", "np.all({a} > 0.2)"),
    "(1.5 + np.sin({a})) ** 1.3",
    "(1.5 + {a} ** 2) ** -1",
    ("2.0 ** {a}", "np.all({a} < 3.0)"),
    ("np.reciprocal({a})", "np.all(np.abs({a}) > 0.3)"),
    "np.arcsin(0.7 * np.sin({a}))",
    "np.arccos(0.7 * np.tanh({a}))",
    "np.arctanh(0.6 * np.cos({a}))",
    "np.arccosh(1.5 + {a} ** 2)",
    ("np.abs({a})", "away({a})", *REAL),
    ("abs({a})", "away({a})", *REAL),
    ("np.fabs({a})", "away({a})", *REAL, TORCH),
    ("np.cbrt({a})", "np.all(np.abs({a}) > 0.2)", *REAL, TORCH),
    ("np.sign({a}) * {a}", "away({a})", *REAL),
    ("np.floor({a}) * {a}", "away({a} - np.rint({a}))", *REAL),
    ("np.floor({a})", "away({a} - np.rint({a}))", *REAL),
    ("np.sign({a})", "away({a})", *REAL),
    ("np.sqrt(np.abs({a}))", "away({a})", *REAL),
    ("np.exp(-np.abs({a}))", "away({a})", *REAL),
    ("np.logaddexp({a}, 0.2)", "", *REAL),
    ("np.maximum({a}, 0.1)", "away({a} - 0.1)"),
    ("np.minimum(0.4, {a})", "away({a} - 0.4)"),
    ("np.clip({a}, -0.6, 0.9)", "away({a} + 0.6) and away({a} - 0.9)"),
    ("np.where({a} > 0.1, np.sin({a}), 0.5 * {a})", "away({a} - 0.1)"),
    ("np.deg2rad(40.0 * {a})", "", *REAL),
    ("np.mod({a}, 0.7)", "away(np.sin({a} * np.pi / 0.7))", *REAL),
    ("np.hypot({a}, 0.5)", "", *REAL),
    ("np.real(np.exp(1j * {a}))", "", *REAL),
    ("np.abs(np.exp(0.3j * {a}) + 2.0)", "", *REAL),
    ("np.imag(np.conj({a} * (0.3 + 0.8j)) ** 2)", "", *REAL),
    ("np.sinc(1.5 + np.sin({a}))", "", TORCH),
    ("({a} > 0.1) * {a}", "away({a} - 0.1)"),
    ("{a}.astype(NARROW)", "", TORCH),
    ("NARROW(0.5) * {a}", "", TORCH),
)
BINARY = _forms(
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    ("{a} / {b}", "np.all(np.abs({b}) > 0.3)"),
    ("np.divide({a}, 1.5 + np.sin({b}))", ""),
    ("np.exp({a}) ** {b}", "np.all(np.abs({a}) < 1.0) and np.all(np.abs({b}) < 2.0)"),
    ("np.power({a}, {b})", "np.all({a} > 0.3) and np.all(np.abs({b}) < 2.0)"),
    ("np.maximum({a}, {b})", "away({a} - {b})"),
    ("np.minimum({a}, {b})", "away({a} - {b})"),
    ("np.fmax({a}, {b})", "away({a} - {b})"),
    ("np.where({a} > {b}, {a} * {b}, np.sin({a}))", "away({a} - {b})"),
    ("np.where({a} < {b}, 0.3, {b})", "away({a} - {b})"),
    ("({a} > {b}) * 1.5", "away({a} - {b})"),
    ("{a} / (2.0 + np.abs({b}))", "away({b})", *REAL),
    ("np.arctan2({a}, {b})", "np.all({a} ** 2 + {b} ** 2 > 0.05) and away({a})", *REAL),
    ("np.hypot({a}, {b})", "np.all({a} ** 2 + {b} ** 2 > 0.05)", *REAL),
    ("np.logaddexp({a}, {b})", "", *REAL),
    ("np.copysign({a}, {b})", "away({a}) and away({b})", *REAL),
    ("np.float_power(1.2 + np.sin({a}), {b})", "np.all(np.sin({a}) > -0.8)", JAX),
)
# Of one array; {x} is an axis of it, {k} whether the axis is kept, {n} the size along the axis, {s} some axes
# or None.
REDUCTIONS = _forms(
    "np.sum({a}, axis={x}, keepdims={k})",
    "np.mean({a}, axis={x}, keepdims={k})",
    "np.sum({a})",
    "np.mean({a})",
    "{a}.sum({x})",
    ("np.max({a}, axis={x}, keepdims={k})", "apart({a}, {x})"),
    ("np.min({a}, axis={x}, keepdims={k})", "apart({a}, {x})"),
    ("np.max({a})", "apart({a})"),
    "np.prod({a}, axis={x}, keepdims={k})",
    ("np.sum({a}, axis={s}, keepdims={k})", "", TORCH),
    ("np.mean({a}, axis={s}, keepdims={k})", "", TORCH),
    ("np.max({a}, axis={s}, keepdims={k})", "apart({a})", TORCH),
    ("np.min({a}, axis={s}, keepdims={k})", "apart({a})", TORCH),
    ("np.prod(np.sin({a}) + 1.0, axis={s}, keepdims={k})", "", TORCH),
)
# Also of one array, along an axis {x}: statistics, sorts, running sums, Fourier transforms.
ALONG_AXES = _forms(
    ("np.var({a}, axis={x}, keepdims={k})", "", *REAL),
    ("np.std({a}, axis={x}, keepdims={k})", "np.all(np.var({a}, axis={x}) > 0.01)", *REAL),
    ("np.linalg.norm({a}, axis={x})", "np.all(np.sum({a} ** 2, axis={x}) > 0.05)", *REAL, TORCH),
    ("np.log(np.sum(np.exp({a}), axis={x}))", "np.all({a} < 2.5)"),
    # In half precision, NumPy rounds the sums after every step.
    ("np.cumsum({a}, axis={x})", "{a}.dtype != np.float16"),
    ("np.cumprod({a}, axis={x})", "{a}.dtype != np.float16"),
    ("np.sort({a}, axis={x})", "apart({a}, {x})", TORCH),
    ("np.median({a}, axis={x})", "apart({a}, {x})", *REAL, TORCH),
    ("np.ptp({a}, axis={x})", "apart({a}, {x})", TORCH),
    ("np.diff({a}, axis={x})", "", TORCH),
    ("np.average({a}, axis={x}, weights=np.exp(0.3 * {a}))", "np.all({a} < 5.0)", TORCH),
    ("np.quantile({a}, 0.3, axis={x})", "apart({a}, {x})", *REAL, TORCH),
    ("np.take_along_axis({a}, np.argsort({a}, axis={x}), axis={x})", "apart({a}, {x})", TORCH),
    ("np.take({a}, np.argmax({a}, axis={x}), axis={x})", "apart({a}, {x})", TORCH),
    ("np.maximum.accumulate({a}, axis={x})", "apart({a}, {x})", JAX, TORCH),
    ("np.add.reduceat({a}, [0], axis={x})", "", JAX, TORCH),
    ("np.nansum({a}, axis={x})", "", TORCH),
    ("np.trapezoid({a}, axis={x})", "", TORCH),
    ("np.abs(np.fft.fft({a}, axis={x}) + 5.0)", "", *REAL, TORCH),
    ("np.fft.irfft(np.fft.rfft({a}, axis={x}) * (0.5 + 0.2j), n={n}, axis={x})", "", *REAL, TORCH),
    ("np.real(np.fft.ifft({a} * (1.0 + 0.5j), axis={x}))", "", *REAL, TORCH),
)
# Of one array; {i} is an index along axis {x}, {l} the colons before it, {p} a permutation of all axes.
SHAPING = _forms(
    "{a}.reshape(-1)",
    "{a}.T",
    "{a}[None]",
    ("np.transpose({a}, {p})", ""),
    "np.expand_dims({a}, {x})",
    "np.swapaxes({a}, {x}, 0)",
    "np.moveaxis({a}, {x}, 0)",
    "np.flip({a}, {x})",
    "np.roll({a}, 1, axis={x})",
    "np.concatenate([{a}, 2.0 * {a}], axis={x})",
    "np.stack([{a}, np.sin({a})], axis={x})",
    "np.ravel({a})",
    "np.squeeze({a})",
    # NumPy does not check the indices of an array without entries.
    ("np.take({a}, [{i}, 0], axis={x})", "{n} > {i}"),
    ("np.pad({a}, 1)", "", TORCH),
    ("np.repeat({a}, 2, axis={x})", "", TORCH),
    ("np.tile({a}, 2)", "", TORCH),
    ("np.split({a}, [1], axis={x})[0]", "", TORCH),
    ("np.delete({a}, {i}, axis={x})", "", TORCH),
    ("np.append({a}, {a}[:1], axis=0)", "", TORCH),
    ("np.rollaxis({a}, {x})", "", TORCH),
    ("np.array_split({a}, 2, axis={x})[1]", "", TORCH),
    ("np.atleast_2d({a})", "", TORCH),
    ("np.vstack([{a}, {a}])", "", TORCH),
    ("np.broadcast_to({a}, (2,) + {a}.shape)", ""),
    ("np.reshape({a}, {a}.shape[::-1])", "", TORCH),
    ("{a}.reshape(2, -1)", "{a}.size % 2 == 0"),
    ("{a}.reshape(-1, 3)", "{a}.size % 3 == 0"),
    ("np.pad({a}, [({i}, 1)] + [(0, 2)] * ({a}.ndim - 1))", "", TORCH),
)
INDEXING = _forms(
    "{a}[{i}]",
    "{a}[1:]",
    "{a}[:-1]",
    ("{a}[::-1]", "", TORCH),
    ("{a}[::2]", ""),
    "{a}[..., {i}]",
    "{a}[..., :1]",
    "{a}[..., None]",
    "{a}[{l}{i}]",
    "{a}[{l}-1]",
    "{a}[{l}1:]",
    ("{a}[{l}None]", ""),
    ("{a}[{l}::-1]", "", TORCH),
    ("{a}[{l}::2]", ""),
    ("{a}[{l}::-2]", "", TORCH),
    ("{a}[{l}3:0:-1]", "", TORCH),
    ("{a}[[{i}, 0, {i}]]", ""),
    ("{a}[..., [0, {i}]]", ""),
    ("{a}[{a} > 0.1]", "away({a} - 0.1)", STAGING, JAX),
    ("{a}[np.argmax(np.sum({a}.reshape({a}.shape[0], -1), axis=1))]", "", TORCH),
    ("np.where(np.arange({a}.shape[-1]) % 2 == 0, {a}, -1.0)", "", TORCH),
    (
        "np.select([{a} > 0.5, {a} > -0.2], [{a}, {a} ** 2], 0.1)",
        "away({a} - 0.5) and away({a} + 0.2)",
        TORCH,
    ),
    (
        "np.interp({a}, [-2.0, 0.1, 2.0], [0.0, 1.0, -1.0])",
        "away({a} - 0.1) and away({a} - 2.0) and away({a} + 2.0)",
        *REAL,
        TORCH,
    ),
    ("np.sum(list({a})[-1])", "", TORCH),
)
# Of a square matrix; SPD stands for a well-conditioned positive definite one made of it.
SPD = "({a} @ {a}.T + 1.5 * np.eye({n}))"
SQUARE = _forms(
    "{a} @ {a}",
    "np.trace({a})",
    "np.diagonal({a})",
    "np.diag({a})",
    "np.tril({a})",
    "np.triu({a}, 1)",
    f"np.linalg.inv{SPD}",
    f"np.linalg.det{SPD}",
    f"np.linalg.solve({SPD}, {{a}})",
    (f"np.linalg.slogdet{SPD}[1]", "", *REAL, TORCH),
    (f"np.linalg.cholesky{SPD}", "", *REAL),
    (f"np.linalg.eigvalsh{SPD}", f"apart(np.linalg.eigvalsh{SPD})", *REAL),
    (f"np.linalg.svd({SPD}, compute_uv=False)", f"apart(np.linalg.eigvalsh{SPD})", *REAL, TORCH),
    (f"np.linalg.qr{SPD}[1]", "", *REAL, TORCH),
    (f"np.linalg.qr{SPD}[0]", "", *REAL, TORCH),
    (f"np.linalg.eigh{SPD}[1] ** 2", f"apart(np.linalg.eigvalsh{SPD})", *REAL, TORCH),
    (f"np.linalg.pinv{SPD}", "", *REAL, TORCH),
    ("np.linalg.matrix_power({a}, 3)", "", TORCH),
    ("np.linalg.det({a})", ""),
    ("np.kron({a}, {a}[:1])", "", TORCH),
)
# Of two arrays; the writer checks whether they fit.
PRODUCTS = _forms(
    "{a} @ {b}",
    "np.dot({a}, {b})",
    "np.matmul({a}, {b})",
    ("{a}.T @ {a}", "{a}.ndim == 2"),
    ("np.inner({a}, {b})", "", TORCH),
    ("np.outer({a}, {b})", "{a}.size * {b}.size <= LARGEST"),
    ("np.tensordot({a}, {b}, axes=1)", "", TORCH),
    ("np.vdot({a}, {b})", "", *REAL, TORCH),
    ("np.einsum('i...,i...->...', {a}, {b})", "", TORCH),
    ("np.einsum('...i,...i->...', {a}, {b})", "", TORCH),
    ("np.einsum('ij,jk->ki', {a}, {b})", "", TORCH),
    ("np.convolve({a}, {b})", "", TORCH),
    ("np.cross({a}, {b})", "{a}.shape[-1] == {b}.shape[-1] == 3", TORCH),
    "np.concatenate([{a}, {b}])",
    "np.stack([{a}, {b}], axis=-1)",
    ("np.hstack([{a}, {b}])", "", TORCH),
)
