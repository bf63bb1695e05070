"""Convolutions and pooling: what looks at a tensor through a moving window."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from functrans.torch.amp.state import in_low_precision
from functrans.torch.errors import TensorError
from functrans.torch.registry import composed
from functrans.torch.tensor import Tensor, named

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "conv1d",
    "conv2d",
    "max_pool1d",
    "max_pool2d",
    "unfold",
]


def as_tuple(value: Any, count: int) -> tuple[int, ...]:
    """A number for each of some dimensions."""
    return (int(value),) * count if isinstance(value, (int, np.integer)) else tuple(value)


def _slices(x: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[list[Any], tuple[int, ...]]:
    """What each place of the window sees, over all positions of the window."""
    count = len(kernel)
    lengths = x.shape[-count:]
    sizes = tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(lengths, kernel, stride, dilation, strict=True)
    )
    if min(sizes) <= 0:
        raise TensorError(
            f"Calculated output size {sizes} is too small: the kernel {tuple(kernel)} does not fit "
            f"into the padded input {tuple(lengths)}"
        )
    seen = []
    for place in itertools.product(*map(range, kernel)):
        steps = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilation, sizes, stride, strict=True)
        )
        seen.append(x[(Ellipsis, *steps)])
    return seen, sizes


def _padded(x: Any, padding: tuple[int, ...], fill: float = 0.0) -> Any:
    if not any(padding):
        return x
    widths = [(0, 0)] * (x.ndim - len(padding)) + [(p, p) for p in padding]
    return np.pad(x, widths, constant_values=fill)


@composed("ConvolutionBackward0")
def _convolve(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    kernel, out_channels = weight.shape[2:], weight.shape[0]
    x = _padded(x, padding)
    seen, sizes = _slices(x, kernel, stride, dilation)
    batch, channels = x.shape[:2]
    # One product of matrices: a column for every position of the window, a row for all it sees.
    columns = np.stack(seen, axis=2).reshape((batch, groups, channels // groups * len(seen), -1))
    rows = weight.reshape((groups, out_channels // groups, channels // groups * len(seen)))
    out = (rows @ columns).reshape((batch, out_channels, *sizes))
    return out if bias is None else out + bias.reshape((-1, *(1,) * len(sizes)))


def _convolution(name: str, count: int) -> Any:
    @in_low_precision
    def convolution(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        if input.value.ndim == count + 1:  # one example
            single = convolution(
                input.unsqueeze(0), weight, bias, stride, padding, dilation, groups
            )
            return single.squeeze(0)  # type: ignore[no-any-return]
        if input.value.ndim != count + 2:
            raise TensorError(
                f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
                f"input of size: {list(input.shape)}"
            )
        if input.shape[1] != weight.shape[1] * groups:
            raise TensorError(
                f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
                f"input{list(input.shape)} to have {weight.shape[1] * groups} channels, but got "
                f"{input.shape[1]} channels instead"
            )
        spacing = as_tuple(dilation, count)
        if padding == "same":
            total = [d * (k - 1) for d, k in zip(spacing, weight.shape[2:], strict=True)]
            padding = tuple(t // 2 for t in total)
        elif padding == "valid":
            padding = 0
        return _convolve(  # type: ignore[no-any-return]
            input, weight, bias, as_tuple(stride, count), as_tuple(padding, count), spacing, groups
        )

    convolution.__name__ = name
    return convolution


conv1d = _convolution("conv1d", 1)
conv2d = _convolution("conv2d", 2)


@composed("MaxPool2DWithIndicesBackward0")
def _largest(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    x = _padded(x, padding, -np.inf)
    seen, _ = _slices(x, kernel, stride, dilation)
    stacked = np.stack(seen)
    # The first of equal entries has the derivative, so it is chosen by its place.
    places = np.argmax(stacked, axis=0)[None]
    return np.take_along_axis(stacked, places, axis=0)[0]


@composed("AvgPool2DBackward0")
def _average(x: Any, kernel: Any, stride: Any, padding: Any) -> Any:
    seen, _ = _slices(_padded(x, padding), kernel, stride, (1,) * len(kernel))
    return np.mean(np.stack(seen), axis=0)


def _pooling(name: str, count: int, largest: bool) -> Any:
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        if ceil_mode:
            raise NotImplementedError(f"{name} with ceil_mode=True")
        kernel = as_tuple(kernel_size, count)
        steps = kernel if stride is None else as_tuple(stride, count)
        edge = as_tuple(padding, count)
        if any(2 * p > k for p, k in zip(edge, kernel, strict=True)):
            raise TensorError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={edge[0]}, kernel_size={kernel[0]}"
            )
        if largest:
            return _largest(input, kernel, steps, edge, as_tuple(dilation, count))  # type: ignore[no-any-return]
        return _average(input, kernel, steps, edge)  # type: ignore[no-any-return]

    pool.__name__ = name
    return pool


max_pool1d, max_pool2d = _pooling("max_pool1d", 1, True), _pooling("max_pool2d", 2, True)
avg_pool1d, avg_pool2d = _pooling("avg_pool1d", 1, False), _pooling("avg_pool2d", 2, False)


def _adaptive(name: str, count: int) -> Any:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        sizes = as_tuple(output_size, count)
        out = input
        for place, size in enumerate(sizes):
            axis = out.value.ndim - count + place
            total = out.shape[axis]
            cuts = [(total * k // size, -(-total * (k + 1) // size)) for k in range(size)]
            parts = [out.narrow(axis, a, b - a).mean(axis, keepdim=True) for a, b in cuts]
            from functrans.torch.shaping import cat

            out = cat(parts, axis)
        return named(out, "MeanBackward1")

    pool.__name__ = name
    return pool


adaptive_avg_pool1d = _adaptive("adaptive_avg_pool1d", 1)
adaptive_avg_pool2d = _adaptive("adaptive_avg_pool2d", 2)


@composed("Im2ColBackward0")
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Windows of images as columns."""
    kernel = as_tuple(kernel_size, 2)
    seen, _ = _slices(
        _padded(x, as_tuple(padding, 2)), kernel, as_tuple(stride, 2), as_tuple(dilation, 2)
    )
    return np.stack(seen, axis=2).reshape((x.shape[0], x.shape[1] * len(seen), -1))
