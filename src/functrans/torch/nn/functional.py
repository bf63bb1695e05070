"""torch.nn.functional: layers and activations as functions. Losses are in `losses`, windows in `windows`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.shapes import dtype_of
from functrans.ops import contraction, structure
from functrans.torch import dtypes
from functrans.torch.arithmetic import matmul
from functrans.torch.errors import TensorError, TensorIndexError, TensorValueError
from functrans.torch.nn.losses import *  # noqa: F403
from functrans.torch.nn.windows import *  # noqa: F403
from functrans.torch.pointwise import relu as relu
from functrans.torch.pointwise import scipy_special
from functrans.torch.pointwise import sigmoid as sigmoid
from functrans.torch.random import keep_mask
from functrans.torch.reducing import axes, vector_norm
from functrans.torch.reducing import log_softmax as _log_softmax
from functrans.torch.reducing import softmax as _softmax
from functrans.torch.registry import FUNCTIONS, composed
from functrans.torch.tape import MODE, record2, record_call
from functrans.torch.tensor import Tensor, apply, lower, make, named

tanh: Any = FUNCTIONS["tanh"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias."""
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


_LARGE = 4096  # from here on the order of a gradient in memory costs more than two more records


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
    """x W^T, recorded as (W x^T)^T, so that the gradient of W lies in memory as W does."""
    turned = apply(structure.transpose, input, axes=(1, 0))
    out = input.value.dot(weight.value.T)
    product = record2(
        contraction.matmul, weight.value, turned.value, out.T, weight.record, turned.record
    )
    record = record_call(structure.transpose, (out.T,), (product,), {"axes": (1, 0)}, out)
    return named(make(out, record), "MmBackward0")


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x) / sum exp(x) along a dimension."""
    return _softmax(input, _implicit(input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _log_softmax(input, _implicit(input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`softmax` of the negative."""
    return softmax(-input, dim, dtype)


def _implicit(input: Tensor, dim: int | None) -> int:
    """The dimension that PyTorch chooses if none is given."""
    return dim if dim is not None else (0 if input.value.ndim in (0, 1, 3) else 1)


@composed("LeakyReluBackward0")
def leaky_relu(x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x where it is positive, and a part of it elsewhere."""
    return np.where(x > 0, x, x * negative_slope)


@composed("EluBackward0")
def elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where it is positive, and alpha (exp(x) - 1) elsewhere."""
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, dtype_of(x).type(0), x)))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalizing exponential linear unit."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return named(scale * elu(input, alpha), "EluBackward0", input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return named(input * sigmoid(input), "SiluBackward0", input)


@composed("GeluBackward0")
def gelu(x: Any, approximate: str = "none") -> Any:
    """x times the cumulative function of the normal distribution."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + np.tanh(inner))
    if approximate != "none":
        raise TensorError("approximate argument must be either none or tanh.")
    from functrans.ops.normal import normal_cdf

    return x * scipy_special("ndtr", x, normal_cdf)


@composed("SoftplusBackward0")
def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta."""
    inside = np.where(x * beta > threshold, dtype_of(x).type(0), x)
    return np.where(x * beta > threshold, x, np.logaddexp(0, inside * beta) / beta)


@composed("LogSigmoidBackward0")
def logsigmoid(x: Any) -> Any:
    """The logarithm of the sigmoid."""
    return -np.logaddexp(0, -x)


@composed("HardtanhBackward0")
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """x moved between two bounds."""
    return np.clip(x, dtype_of(x).type(min_val), dtype_of(x).type(max_val))


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x moved between 0 and 6."""
    return hardtanh(input, 0.0, 6.0)  # type: ignore[no-any-return]


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return named(input * tanh(softplus(input)), "MishBackward0", input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (1 + input.abs())  # type: ignore[no-any-return]


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other."""
    first, second = input.chunk(2, dim)
    return named(first * sigmoid(second), "GluBackward0", input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a slope that is learned."""
    if weight.numel() > 1 and input.value.ndim > 1:
        weight = weight.reshape(-1, *(1,) * (input.value.ndim - 2))
    slope = FUNCTIONS["where"](input > 0, input, input * weight)
    return named(slope, "PreluKernelBackward0", input, weight)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Entries set to zero with probability p, and the others scaled up."""
    if not 0 <= p <= 1:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0.0
    mask = keep_mask(tuple(input.value.shape), 1 - p, input.value.dtype)
    return named(input * (lower(mask) / (1 - p)), "MulBackward0")


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, **options: Any
) -> Tensor:
    """Rows of a matrix, by their numbers."""
    if input.dtype.category > 1:
        raise TensorError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{input.dtype.legacy}Tensor instead (while checking arguments for "
            "embedding)"
        )
    rows = weight
    if padding_idx is not None:  # its row gets no gradient
        kept = np.ones((weight.shape[0], 1), bool)
        kept[padding_idx] = False
        rows = FUNCTIONS["where"](make(kept), weight, weight.detach())
    try:
        return named(rows[input], "EmbeddingBackward0", weight)
    except IndexError:
        raise TensorIndexError("index out of range in self") from None


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at each number."""
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
    """The last dimensions brought to mean 0 and variance 1."""
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
    """The last dimensions divided by the root of their mean square."""
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    small = dtypes.finfo(input.dtype).eps if eps is None else eps
    dims = tuple(range(-count, 0))
    out = input * (input * input).mean(dims, keepdim=True).add(small).rsqrt()
    return out if weight is None else out * weight  # type: ignore[no-any-return]


def group_norm(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels brought to mean 0 and variance 1."""
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
    """Channels brought to mean 0 and variance 1, over the batch or by running statistics."""
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


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Vectors divided by their norm."""
    length = vector_norm(input, p, axes(dim, input.value.ndim), True)
    return input / length.clamp_min(eps)  # type: ignore[no-any-return]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors."""
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
    """softmax(query key^T / sqrt(d)) value."""
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    return matmul(dropout(weights, dropout_p), value)  # type: ignore[no-any-return]


def attention_weights(
    query: Tensor, key: Tensor, mask: Any, is_causal: bool, scale: float | None
) -> Tensor:
    """How much each query looks at each key."""
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


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """More entries at the ends of the last dimensions: pad = (left, right, top, bottom, ...)."""
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
    else:
        kinds: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        if mode not in kinds:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        out = np.pad(face, grown, mode=kinds[mode])
    if mode == "constant":
        name = "ConstantPadNdBackward0"
    else:
        kind = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}.get(mode)
        name = "CopySlices" if kind is None else f"{kind}{len(pairs)}DBackward0"
    return named(lower(out), name, input)
