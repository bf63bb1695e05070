"""Discrete Fourier transforms along one axis: three linear primitives, each other's transposes.

With w = exp(-2πi/n), the transform X_k = Σ_j x_j w^(kj) is a symmetric matrix, so it is its own
transpose, and so is its inverse. The transform of real input keeps the frequencies 0 <= k <= n/2;
its inverse counts each of them c_k times: once for k = 0 and k = n/2, which have no mirror image,
and twice otherwise. `norm` is "backward", "ortho" or "forward", as in NumPy, and scales by a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import (
    ArraySpec,
    checked_axis,
    checked_choice,
    checked_flags,
    checked_length,
)
from functrans.ops.families import batch_shifting, linear, result_spec

OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _dft(x: Any, axis: int, inverse: bool, norm: Any) -> Any:
    return (np.fft.ifft if inverse else np.fft.fft)(x, axis=axis, norm=norm)


def _rdft(x: Any, axis: int, norm: Any) -> Any:
    return np.fft.rfft(x, axis=axis, norm=norm)


def _irdft(x: Any, axis: int, n: int, norm: Any) -> Any:
    return np.fft.irfft(x, n, axis=axis, norm=norm)


def _counts(n: int, axis: int, like: Any) -> Any:
    """c_k for 0 <= k <= n/2, lined up with `axis`, in the precision of `like`."""
    counts = np.full(n // 2 + 1, 2, like.real.dtype)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts.reshape((-1,) + (1,) * (like.ndim - axis - 1))


def _rdft_back(g: Any, shape: tuple[int, ...], axis: int, norm: str) -> Any:
    # Σ_k Re(g_k w^(kj)) = Σ_k Re(conj(g_k) w^(-kj)), which is the inverse without its counts
    n = shape[axis]
    return irdft(np.conj(g) / _counts(n, axis, g), axis=axis, n=n, norm=OPPOSITE[norm])


def _irdft_back(g: Any, shape: tuple[int, ...], axis: int, n: int, norm: str) -> Any:
    # Re Σ_j g_j Σ_k c_k x_k w^(-kj), so that c_k conj(Σ_j g_j w^(kj)) flows to x_k
    return np.conj(rdft(g, axis=axis, norm=OPPOSITE[norm])) * _counts(n, axis, g)


def _spec(impl: Rule, length: Rule) -> Rule:
    """The shape rule, from the length of the result as a function of the given one."""

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
        (spec,), axis = specs, checked_axis(params["axis"], specs[0].ndim)
        checked_choice(params["norm"], (None, "backward", "ortho", "forward"))
        checked_flags(params.get("inverse", False))
        checked_length(spec.shape[axis], least=1)
        small = ArraySpec((1,) * spec.ndim, spec.dtype)
        result = spec.shape[:axis] + (length(spec.shape[axis], params),) + spec.shape[axis + 1 :]
        # The trial must be short, whatever the parameter.
        return result_spec(impl, [small], params | ({"n": 1} if "n" in params else {}), result)

    return shape


_shift_axis = batch_shifting("axis")

dft: Primitive = linear(
    "fft",
    _dft,
    lambda g, shape, **params: dft(g, **params),
    batch=_shift_axis,
    shape=_spec(_dft, lambda n, params: n),
    kind="linear algebra",
)
rdft = linear(
    "rfft",
    _rdft,
    _rdft_back,
    batch=_shift_axis,
    shape=_spec(_rdft, lambda n, params: n // 2 + 1),
    kind="linear algebra",
)
irdft = linear(
    "irfft",
    _irdft,
    _irdft_back,
    batch=_shift_axis,
    shape=_spec(_irdft, lambda n, params: checked_length(params["n"], least=1)),
    kind="linear algebra",
)
