"""Functions that change the size of images and sequences: padding, interpolation, pixel shuffling."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.nn.windows import as_tuple
from functrans.torch.tensor import Tensor, lower, named

__all__ = ["interpolate", "pad", "pixel_shuffle", "upsample"]


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Pad the last dimensions at both ends: pad = (left, right, top, bottom, ...).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.pad(torch.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    """
    pairs = [(int(pad[k]), int(pad[k + 1])) for k in range(0, len(pad), 2)]
    widths = [(0, 0)] * (input.value.ndim - len(pairs)) + pairs[::-1]
    face = input.lift()
    crop = tuple(
        slice(-min(a, 0), n + min(b, 0)) for (a, b), n in zip(widths, input.shape, strict=True)
    )
    grown = [(max(a, 0), max(b, 0)) for a, b in widths]
    face = face[crop] if any(a < 0 or b < 0 for a, b in widths) else face
    if mode == "constant":
        out = np.pad(face, grown, constant_values=0 if value is None else value)
        return named(lower(out), "ConstantPadNdBackward0", input)
    kinds: dict[str, Any] = {
        "reflect": ("reflect", f"ReflectionPad{len(pairs)}DBackward0"),
        "replicate": ("edge", f"ReplicationPad{len(pairs)}DBackward0"),
        "circular": ("wrap", "CopySlices"),
    }
    if mode not in kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    kind, name = kinds[mode]
    return named(lower(np.pad(face, grown, mode=kind)), name, input)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize sequences or images, with the nearest entry or linear interpolation.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    count = input.dim() - 2
    modes = {"nearest": count, "linear": 1, "bilinear": 2}
    if modes.get(mode) != count:
        raise NotImplementedError(
            f"interpolate supports the modes nearest, linear (3D) and bilinear (4D): got {mode!r} for a "
            f"{input.dim()}D input"
        )
    if (size is None) == (scale_factor is None):
        raise TensorValueError("only one of size or scale_factor should be defined")
    if mode == "nearest" and align_corners is not None:
        raise TensorValueError("align_corners option can only be set with the interpolating modes")
    lengths = input.shape[2:]
    if size is not None:
        sizes = as_tuple(size, count)
        scales = [n / m for n, m in zip(lengths, sizes, strict=True)]
    else:
        factors = (
            scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count
        )
        sizes = tuple(int(n * f) for n, f in zip(lengths, factors, strict=True))
        scales = [1 / f for f in factors]
    out: Any = input.lift()
    for axis, (n, m, scale) in enumerate(zip(lengths, sizes, scales, strict=True), start=2):
        if mode == "nearest":
            places = np.minimum(np.floor(np.arange(m) * scale).astype(int), n - 1)
            out = np.take(out, places, axis=axis)
        else:
            out = _along_lines(out, axis, n, m, scale, bool(align_corners))
    name = "Nearest" if mode == "nearest" else mode.capitalize()
    return named(lower(out), f"Upsample{name}{count}DBackward0", input)


def _along_lines(x: Any, axis: int, n: int, m: int, scale: float, corners: bool) -> Any:
    """Interpolate linearly along one axis."""
    if corners:
        at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
    else:
        at = np.maximum((np.arange(m) + 0.5) * scale - 0.5, 0.0)
    low = np.minimum(np.floor(at).astype(int), n - 1)
    high = np.minimum(low + 1, n - 1)
    shape = (-1, *(1,) * (x.ndim - 1 - axis))
    weight = (at - low).astype(x.dtype).reshape(shape)
    return np.take(x, low, axis=axis) * (1 - weight) + np.take(x, high, axis=axis) * weight


upsample = interpolate


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into a finer grid of pixels.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.pixel_shuffle(torch.arange(4.0).view(1, 4, 1, 1), 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    *batch, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise TensorError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    parts = input.reshape(-1, channels // (r * r), r, r, height, width).permute(0, 1, 4, 2, 5, 3)
    out = parts.reshape(*batch, channels // (r * r), height * r, width * r)
    return named(out, "PixelShuffleBackward0", input)
