"""torch.nn.functional: layers as functions.

Activations, losses, windows and resizing are in separate modules.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.ops import contraction, structure
from functrans.torch import dtypes
from functrans.torch.arithmetic import matmul
from functrans.torch.autograd.modes import no_grad
from functrans.torch.errors import TensorError, TensorIndexError, TensorValueError
from functrans.torch.nn import activations, losses, resizing, windows
from functrans.torch.nn.activations import *  # noqa: F403
from functrans.torch.nn.activations import softmax
from functrans.torch.nn.losses import *  # noqa: F403
from functrans.torch.nn.resizing import *  # noqa: F403
from functrans.torch.nn.windows import *  # noqa: F403
from functrans.torch.random import keep_mask
from functrans.torch.reducing import axes, vector_norm
from functrans.torch.registry import FUNCTIONS, composed
from functrans.torch.tape import MODE, record2, record_call
from functrans.torch.tensor import Tensor, apply, lower, make, named

__all__ = [
    *activations.__all__,
    *losses.__all__,
    *resizing.__all__,
    *windows.__all__,
    "batch_norm",
    "bilinear",
    "cosine_similarity",
    "dropout",
    "dropout1d",
    "dropout2d",
    "embedding",
    "embedding_bag",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "rms_norm",
    "scaled_dot_product_attention",
]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The linear map input @ weight.T + bias.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.eye(2), torch.ones(2))
    tensor([[2., 2.]])
    """
    if weight.record is not None and weight.value.size > _LARGE and _is_plain(input, weight):
        out, turned = _product(input, weight), weight
    else:
        turned = weight
        if weight.value.ndim == 2:
            turned = named(apply(structure.transpose, weight, axes=(1, 0)), "TBackward0")
        if input.value.dtype != weight.value.dtype and MODE.autocast is None:
            raise TensorError(
                f"mat1 and mat2 must have the same dtype, but got {input.dtype.legacy} and "
                f"{weight.dtype.legacy}"
            )
        out = matmul(input, turned)
    if bias is None:
        return out
    if MODE.autocast is not None:
        bias = bias.to(out.dtype)
    out = out + bias
    record = out.record
    if record is not None:
        flat = input.value.ndim == 2
        record.name = "AddmmBackward0" if flat else "ViewBackward0"
        if flat:
            record.edges = (bias.record, input.record, turned.record)
    return out


_LARGE = 4096  # from this size on, the memory order of a gradient matters more than the cost of two records


def _is_plain(input: Tensor, weight: Tensor) -> bool:
    x, w = input.value, weight.value
    return (
        MODE.enabled
        and MODE.autocast is None
        and type(x) is type(w) is np.ndarray
        and x.ndim == w.ndim == 2
        and x.dtype == w.dtype
        and x.shape[1] == w.shape[1]
    )


def _product(input: Tensor, weight: Tensor) -> Tensor:
    """x W^T, recorded as (W x^T)^T, so that the gradient of W has the memory order of W."""
    turned = apply(structure.transpose, input, axes=(1, 0))
    out = input.value.dot(weight.value.T)
    product = record2(
        contraction.matmul, weight.value, turned.value, out.T, weight.record, turned.record
    )
    record = record_call(structure.transpose, (out.T,), (product,), {"axes": (1, 0)}, out)
    return named(make(out, record), "MmBackward0")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set entries to zero with probability p, and scale up the others.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.dropout(torch.ones(2), training=False)
    tensor([1., 1.])
    """
    if not 0 <= p <= 1:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    return _dropped(input, tuple(input.value.shape), p, inplace)


def _dropped(input: Tensor, shape: tuple[int, ...], p: float, inplace: bool) -> Tensor:
    """Set entries, or whole parts of the tensor, to zero with a mask of this shape."""
    mask = lower(keep_mask(shape, 1 - p, input.value.dtype)) / (1 - p) if p < 1 else 0.0
    return input.mul_(mask) if inplace else input * mask


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set whole channels of sequences to zero with probability p, and scale up the others.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 2), training=False).sum()
    tensor(4.)
    """
    return _channels_dropped(input, p, training, inplace, 1)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set whole channels of images to zero with probability p, and scale up the others.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 2, 2), training=False).sum()
    tensor(8.)
    """
    return _channels_dropped(input, p, training, inplace, 2)


def _channels_dropped(input: Tensor, p: float, training: bool, inplace: bool, count: int) -> Tensor:
    if not 0 <= p <= 1:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    shape = (*input.shape[: input.value.ndim - count], *(1,) * count)
    return _dropped(input, shape, p, inplace)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of a matrix by index.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if input.dtype.category > 1:
        raise TensorError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{input.dtype.legacy}Tensor instead (while checking arguments for "
            "embedding)"
        )
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    rows = weight
    if scale_grad_by_freq:  # divide the gradient of each row by how often it is used
        counts = np.bincount(np.asarray(input.value).reshape(-1), minlength=weight.shape[0])
        share = make((1 / np.maximum(counts, 1)).astype(weight.value.dtype)[:, None])
        rows = weight * share + (weight * (1 - share)).detach()
    if padding_idx is not None:  # its row gets no gradient
        kept = np.ones((weight.shape[0], 1), bool)
        kept[padding_idx] = False
        rows = FUNCTIONS["where"](make(kept), rows, rows.detach())
    try:
        return named(rows[input], "EmbeddingBackward0", weight)
    except IndexError:
        raise TensorIndexError("index out of range in self") from None


def _shorten_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows in use down to a maximum norm, in place."""
    used = np.unique(np.asarray(input.value))
    with no_grad():
        chosen = weight[make(used)]
        lengths = chosen.norm(norm_type, 1, keepdim=True)
        scales = FUNCTIONS["where"](lengths > max_norm, max_norm / (lengths + 1e-7), 1.0)
        weight.data[make(used)] = chosen * scales


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, *, mode: str = "mean"
) -> Tensor:
    """Sums, means or maxima of rows of a matrix, with one bag for each row of the input, or each offset.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> bags = torch.tensor([0, 1, 1]), torch.eye(2), torch.tensor([0, 1])
    >>> torch.nn.functional.embedding_bag(*bags, mode="sum")
    tensor([[1., 0.],
            [0., 2.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise TensorValueError("mode has to be one of sum, mean or max")
    if input.dim() == 2:
        bags = list(embedding(input, weight).unbind(0))
    elif offsets is None:
        raise TensorValueError("offsets has to be a 1D Tensor but got None")
    else:
        rows, starts = embedding(input, weight), offsets.tolist()
        ends = [*starts[1:], input.shape[0]]
        bags = [rows[a:b] for a, b in zip(starts, ends, strict=True)]
    summed: Any = {
        "sum": lambda bag: bag.sum(0),
        "mean": lambda bag: bag.sum(0) / max(bag.shape[0], 1),
        "max": lambda bag: bag.amax(0) if bag.shape[0] else bag.sum(0),
    }[mode]
    return named(FUNCTIONS["stack"]([summed(bag) for bag in bags]), "EmbeddingBagBackward0", weight)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot rows: a one at the index, and zeros elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype is not dtypes.int64:
        raise TensorError("one_hot is only applicable to index tensor of type LongTensor.")
    count = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    if tensor.numel() and int(tensor.max()) >= count:
        raise TensorError("Class values must be smaller than num_classes.")
    return make((np.asarray(tensor.value)[..., None] == np.arange(count)).astype(np.int64))


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize the last dimensions to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    shape = (
        tuple(normalized_shape) if not isinstance(normalized_shape, int) else (normalized_shape,)
    )
    if tuple(input.value.shape[-len(shape) :]) != shape:
        raise TensorError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    out = _normalized(input, tuple(range(-len(shape), 0)), eps)
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return named(out, "NativeLayerNormBackward0", input, weight, bias)


@composed("NativeLayerNormBackward0")
def _normalized(x: Any, axis: tuple[int, ...], eps: float) -> Any:
    centered = x - np.mean(x, axis=axis, keepdims=True)
    return centered / np.sqrt(np.mean(centered * centered, axis=axis, keepdims=True) + eps)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide the last dimensions by their root mean square.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([2.0, -2.0]), (2,), eps=0.0)
    tensor([ 1., -1.])
    """
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    small = dtypes.finfo(input.dtype).eps if eps is None else eps
    dims = tuple(range(-count, 0))
    out = input * (input * input).mean(dims, keepdim=True).add(small).rsqrt()
    return out if weight is None else out * weight  # type: ignore[no-any-return]


def group_norm(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0]]), 1, eps=0.0)
    tensor([[-1.,  1.]])
    """
    batch, channels, *rest = input.shape
    parts = input.reshape(batch, num_groups, -1)
    out = _normalized(parts, (-1,), eps).reshape(batch, channels, *rest)
    return named(_affine(out, weight, bias), "NativeGroupNormBackward0", input, weight, bias)


def _affine(out: Tensor, weight: Any, bias: Any) -> Tensor:
    shape = (1, -1, *(1,) * (out.value.ndim - 2))
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize channels to mean 0 and variance 1, over the batch or with running statistics.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.batch_norm(
    ...     torch.tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0
    ... )
    tensor([[-1.],
            [ 1.]])
    """
    ndim = input.value.ndim
    dims = (0, *range(2, ndim))
    shape = (1, -1, *(1,) * (ndim - 2))
    if training or running_mean is None or running_var is None:
        count = input.numel() // input.shape[1]
        if training and count == 1:
            raise TensorValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}"
            )
        out = _normalized(input, dims, eps)
        if training and running_mean is not None and running_var is not None:
            still = input.detach()
            mean, var = still.mean(dims), still.var(dims, unbiased=True)
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
            running_var.mul_(1 - momentum).add_(var, alpha=momentum)
    else:
        out = (input - running_mean.reshape(shape)) / (running_var.reshape(shape) + eps).sqrt()
    return named(_affine(out, weight, bias), "NativeBatchNormBackward0", input, weight, bias)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize the channels of each example to mean 0 and variance 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]), eps=0.0)
    tensor([[[-1.,  1.]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    dims = tuple(range(2, input.value.ndim))
    if running_mean is not None and running_var is not None:
        still = input.detach()
        running_mean.mul_(1 - momentum).add_(still.mean(dims).mean(0), alpha=momentum)
        running_var.mul_(1 - momentum).add_(still.var(dims).mean(0), alpha=momentum)
    return named(_affine(_normalized(input, dims, eps), weight, bias), "ViewBackward0")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The bilinear map x1^T A x2 + b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(4, 2, 3))
    tensor([[6., 6., 6., 6.]])
    """
    out = FUNCTIONS["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias  # type: ignore[no-any-return]


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The distances between vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.pairwise_distance(torch.zeros(1, 4), torch.ones(1, 4))
    tensor([2.0000])
    """
    return named((x1 - x2 + eps).norm(p, -1, keepdim), "NormBackward1")


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Divide vectors by their norm.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = vector_norm(input, p, axes(dim, input.value.ndim), True)
    return input / length.clamp_min(eps)  # type: ignore[no-any-return]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.cosine_similarity(torch.ones(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([0.7071])
    """
    lengths = (x1.norm(2, dim).clamp_min(eps)) * (x2.norm(2, dim).clamp_min(eps))
    return named((x1 * x2).sum(dim) / lengths, "SumBackward1")


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attention: softmax(query key^T / sqrt(d)) value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> q = k = v = torch.ones(1, 3, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, k, v).shape
    torch.Size([1, 3, 4])
    """
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    return matmul(dropout(weights, dropout_p), value)  # type: ignore[no-any-return]


def attention_weights(
    query: Tensor, key: Tensor, mask: Any, is_causal: bool, scale: float | None
) -> Tensor:
    """The attention weights of each query over the keys."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = matmul(query * factor, key.mT)
    if is_causal:
        n, m = scores.shape[-2:]
        scores = scores.masked_fill(make(np.triu(np.ones((n, m), bool), 1)), -math.inf)
    if mask is not None:
        if mask.dtype is dtypes.bool_:
            scores = scores.masked_fill(~mask, -math.inf)
        else:
            scores = scores + mask
    return softmax(scores, -1)
