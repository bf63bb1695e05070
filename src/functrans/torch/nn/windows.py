"""Functions with a sliding window: convolutions and pooling."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from functrans.ops import indexing
from functrans.torch.amp.state import in_low_precision
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.registry import composed
from functrans.torch.tensor import Tensor, named

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "max_pool1d",
    "max_pool2d",
    "unfold",
]


def as_tuple(value: Any, count: int) -> tuple[int, ...]:
    """One number for each dimension, repeated if only one is given."""
    return (int(value),) * count if isinstance(value, (int, np.integer)) else tuple(value)


def _slices(x: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[list[Any], tuple[int, ...]]:
    """For each entry of the window, a slice of x over all positions of the window; and the output sizes."""
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


def _padded(x: Any, edges: Any, fill: float = 0.0) -> Any:
    """Pad the last dimensions at both ends; a negative number crops instead."""
    edges = [(e, e) if isinstance(e, int) else e for e in edges]
    if any(min(pair) < 0 for pair in edges):
        cut = [slice(-min(a, 0), n + min(b, 0)) for (a, b), n in _paired(edges, x)]
        x = x[(Ellipsis, *cut)]
    widths = [(0, 0)] * (x.ndim - len(edges)) + [(max(a, 0), max(b, 0)) for a, b in edges]
    return np.pad(x, widths, constant_values=fill) if np.any(widths) else x


def _paired(edges: Any, x: Any) -> Any:
    return zip(edges, x.shape[x.ndim - len(edges) :], strict=True)


@composed("ConvolutionBackward0")
def _convolve(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    return _convolved(_padded(x, padding), weight, bias, stride, dilation, groups)


def _convolved(x: Any, weight: Any, bias: Any, stride: Any, dilation: Any, groups: int) -> Any:
    kernel, out_channels = weight.shape[2:], weight.shape[0]
    seen, sizes = _slices(x, kernel, stride, dilation)
    batch, channels = x.shape[:2]
    # One matrix product, with a column for each position of the window and a row for each entry in it.
    columns = np.stack(seen, axis=2).reshape((batch, groups, channels // groups * len(seen), -1))
    rows = weight.reshape((groups, out_channels // groups, channels // groups * len(seen)))
    out = (rows @ columns).reshape((batch, out_channels, *sizes))
    return out if bias is None else out + bias.reshape((-1, *(1,) * len(sizes)))


@composed("ConvolutionBackward0")
def _convolve_back(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    extra: Any,
    dilation: Any,
    groups: int,
) -> Any:
    """The transposed convolution: entries spread out by the stride, then convolved with W reversed."""
    kernel = weight.shape[2:]
    lengths = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], stride, strict=True)]
    template = (slice(None),) * 2 + tuple(slice(None, None, s) for s in stride)
    apart = indexing.scatter(x, shape=(*x.shape[:2], *lengths), template=template)
    edges = [
        (d * (k - 1) - p, d * (k - 1) - p + e)
        for k, p, e, d in zip(kernel, padding, extra, dilation, strict=True)
    ]
    # reshape (in, out / groups, ...) to (out, in / groups, ...), and reverse
    parts = weight.reshape((groups, weight.shape[0] // groups, *weight.shape[1:]))
    turned = np.flip(np.swapaxes(parts, 1, 2), tuple(range(3, parts.ndim)))
    turned = turned.reshape((-1, weight.shape[0] // groups, *kernel))
    ones = (1,) * len(kernel)
    return _convolved(_padded(apart, edges), turned, bias, ones, dilation, groups)


def _in_batches(name: str, count: int, input: Tensor, run: Any) -> Tensor:
    """Call a function of a batch, or of a single example as a batch of one."""
    if input.value.ndim == count + 1:
        return run(input.unsqueeze(0)).squeeze(0)  # type: ignore[no-any-return]
    if input.value.ndim != count + 2:
        raise TensorError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {list(input.shape)}"
        )
    return run(input)  # type: ignore[no-any-return]


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
        spacing, steps = as_tuple(dilation, count), as_tuple(stride, count)
        edges: Any = padding
        if padding == "same":
            if max(steps) > 1:
                raise TensorError("padding='same' is not supported for strided convolutions")
            total = [d * (k - 1) for d, k in zip(spacing, weight.shape[2:], strict=True)]
            edges = [(t // 2, t - t // 2) for t in total]
        else:
            edges = as_tuple(0 if padding == "valid" else padding, count)

        def run(batch: Tensor) -> Tensor:
            if batch.shape[1] != weight.shape[1] * groups:
                raise TensorError(
                    f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
                    f"input{list(batch.shape)} to have {weight.shape[1] * groups} channels, but got "
                    f"{batch.shape[1]} channels instead"
                )
            return _convolve(batch, weight, bias, steps, edges, spacing, groups)  # type: ignore[no-any-return]

        return _in_batches(name, count, input, run)

    convolution.__name__ = name
    convolution.__doc__ = f"""Convolution of {_SUBJECTS[count]} with weights.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(1, 1{", 4" * count})
    >>> torch.nn.functional.{name}(x, torch.ones(2, 1{", 3" * count})).shape
    torch.Size([1, 2{", 2" * count}])
    """
    return convolution


_SUBJECTS = {1: "sequences", 2: "images"}
conv1d = _convolution("conv1d", 1)
conv2d = _convolution("conv2d", 2)


def _transposed(name: str, count: int) -> Any:
    @in_low_precision
    def convolution(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        options = [as_tuple(o, count) for o in (stride, padding, output_padding, dilation)]

        def run(batch: Tensor) -> Tensor:
            if batch.shape[1] != weight.shape[0]:
                raise TensorError(
                    f"Given transposed=1, weight of size {list(weight.shape)}, expected "
                    f"input{list(batch.shape)} to have {weight.shape[0]} channels, but got "
                    f"{batch.shape[1]} channels instead"
                )
            return _convolve_back(batch, weight, bias, *options, groups)  # type: ignore[no-any-return]

        return _in_batches(name, count, input, run)

    convolution.__name__ = name
    convolution.__doc__ = f"""The transposed convolution of {_SUBJECTS[count]}, which makes them larger.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(1, 1{", 2" * count})
    >>> torch.nn.functional.{name}(x, torch.ones(1, 3{", 2" * count}), stride=2).shape
    torch.Size([1, 3{", 4" * count}])
    """
    return convolution


conv_transpose1d = _transposed("conv_transpose1d", 1)
conv_transpose2d = _transposed("conv_transpose2d", 2)


def _edges(
    lengths: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> list[tuple[int, int]]:
    """The padding on both sides; with `ceil`, the end gets as much more as the last window needs."""
    edges = []
    for n, k, s, p, d in zip(lengths, kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        count = -(-(n + 2 * p - reach) // s) + 1 if ceil else 0
        if ceil and (count - 1) * s >= n + p:  # a window must begin before the end
            count -= 1
        edges.append((p, max(p, (count - 1) * s + reach - n - p)))
    return edges


@composed("MaxPool2DWithIndicesBackward0")
def _largest(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Any, Any]:
    lengths = x.shape[-len(kernel) :]
    edges = _edges(lengths, kernel, stride, padding, dilation, ceil)
    seen, sizes = _slices(_padded(x, edges, -np.inf), kernel, stride, dilation)
    stacked = np.stack(seen)
    # Among equal entries the first one gets the derivative, so it is selected by index.
    places = np.argmax(stacked, axis=0)
    values = np.take_along_axis(stacked, places[None], axis=0)[0]
    # Its index in the whole input: in each dimension, the start of the window plus the offset in it.
    window = np.array(list(itertools.product(*map(range, kernel))))
    flat: Any = 0
    for axis, (n, s, p, d) in enumerate(zip(lengths, stride, padding, dilation, strict=True)):
        starts = (np.arange(sizes[axis]) * s - p).reshape((-1, *(1,) * (len(sizes) - 1 - axis)))
        flat = flat * n + starts + np.take(window[:, axis] * d, places)
    return values, flat


@composed("AvgPool2DBackward0")
def _average(
    x: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, with_padding: bool, divisor: Any
) -> Any:
    ones = (1,) * len(kernel)
    lengths = x.shape[-len(kernel) :]
    edges = _edges(lengths, kernel, stride, padding, ones, ceil)
    seen, sizes = _slices(_padded(x, edges), kernel, stride, ones)
    total = np.sum(np.stack(seen), axis=0)
    if divisor is not None:
        return total / x.dtype.type(divisor)
    counts: Any = 1
    for axis, (n, k, s, p) in enumerate(zip(lengths, kernel, stride, padding, strict=True)):
        starts = np.arange(sizes[axis]) * s - p
        low, high = (-p, n + p) if with_padding else (0, n)
        inside = np.minimum(starts + k, high) - np.maximum(starts, low)
        counts = counts * inside.reshape((-1, *(1,) * (len(sizes) - 1 - axis)))
    return total / counts.astype(x.dtype)


def _window(count: int, kernel_size: Any, stride: Any, padding: Any) -> tuple[Any, Any, Any]:
    kernel = as_tuple(kernel_size, count)
    steps = kernel if stride is None else as_tuple(stride, count)
    edge = as_tuple(padding, count)
    if any(2 * p > k for p, k in zip(edge, kernel, strict=True)):
        raise TensorError(
            "pad should be at most half of effective kernel size, but got "
            f"pad={edge[0]}, kernel_size={kernel[0]}"
        )
    return kernel, steps, edge


def _max_pooling(name: str, count: int) -> Any:
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        window = _window(count, kernel_size, stride, padding)
        values, indices = _largest(input, *window, as_tuple(dilation, count), ceil_mode)
        if count == 1:
            named(values, "SqueezeBackward1", input)
        return (values, indices) if return_indices else values

    pool.__name__ = name
    pool.__doc__ = f"""The largest entry in each window of {_SUBJECTS[count]}.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.{name}(torch.arange({4**count}.0).view(1{", 4" * count}), 2).flatten()
    {"tensor([1., 3.])" if count == 1 else "tensor([ 5.,  7., 13., 15.])"}
    """
    return pool


def _mean_pooling(name: str, count: int) -> Any:
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        window = _window(count, kernel_size, stride, padding)
        out = _average(input, *window, ceil_mode, count_include_pad, divisor_override)
        return named(out, "SqueezeBackward1", input) if count == 1 else out

    pool.__name__ = name
    pool.__doc__ = f"""The mean of each window of {_SUBJECTS[count]}.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.{name}(torch.arange({4**count}.0).view(1{", 4" * count}), 2).flatten()
    {"tensor([0.5000, 2.5000])" if count == 1 else "tensor([ 2.5000,  4.5000, 10.5000, 12.5000])"}
    """
    return pool


max_pool1d, max_pool2d = _max_pooling("max_pool1d", 1), _max_pooling("max_pool2d", 2)
avg_pool1d, avg_pool2d = _mean_pooling("avg_pool1d", 1), _mean_pooling("avg_pool2d", 2)


def _adaptive(name: str, count: int, largest: bool) -> Any:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        from functrans.torch.joining import cat

        out = input
        for place, size in enumerate(
            output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
        ):
            axis = out.value.ndim - count + place
            total = out.shape[axis]
            parts = total if size is None else size
            if parts >= 2**63:
                raise TensorValueError(f"{name}(): an output size of {parts} is too large")
            cuts = [(total * k // parts, -(-total * (k + 1) // parts)) for k in range(parts)]
            pieces = [out.narrow(axis, a, b - a) for a, b in cuts]
            out = cat(
                [
                    p.amax(axis, keepdim=True) if largest else p.mean(axis, keepdim=True)
                    for p in pieces
                ],
                axis,
            )
        if largest:
            return named(out, f"AdaptiveMaxPool{count}DBackward0", input)
        whole = math.prod(out.shape[-count:]) == 1
        return named(out, "MeanBackward1" if whole else "AdaptiveAvgPool2DBackward0", input)

    pool.__name__ = name
    kind = "largest entries" if largest else "means"
    pool.__doc__ = f"""Divide {_SUBJECTS[count]} into a given number of parts, and take the {kind} of them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.{name}(torch.ones(1{", 5" * count}), 2).shape
    torch.Size([1{", 2" * count}])
    """
    return pool


adaptive_avg_pool1d = _adaptive("adaptive_avg_pool1d", 1, largest=False)
adaptive_avg_pool2d = _adaptive("adaptive_avg_pool2d", 2, largest=False)
adaptive_max_pool1d = _adaptive("adaptive_max_pool1d", 1, largest=True)
adaptive_max_pool2d = _adaptive("adaptive_max_pool2d", 2, largest=True)


@composed("Im2ColBackward0")
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The sliding windows of images, as columns.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    kernel = as_tuple(kernel_size, 2)
    seen, _ = _slices(
        _padded(x, as_tuple(padding, 2)), kernel, as_tuple(stride, 2), as_tuple(dilation, 2)
    )
    return np.stack(seen, axis=2).reshape((x.shape[0], x.shape[1] * len(seen), -1))
