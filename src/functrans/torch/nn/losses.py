"""Losses as functions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.errors import user_depth
from functrans.core.shapes import dtype_of
from functrans.torch.amp.state import in_full_precision
from functrans.torch.errors import TensorError, TensorIndexError, TensorValueError
from functrans.torch.nn.activations import logsigmoid
from functrans.torch.reducing import log_softmax
from functrans.torch.registry import composed
from functrans.torch.tensor import Tensor, make, named

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "triplet_margin_loss",
]


def _reduced(loss: Tensor, reduction: str, name: str, *operands: Any) -> Tensor:
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    elif reduction != "none":
        raise TensorValueError(f"{reduction} is not a valid value for reduction")
    return named(loss, name, *operands)


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. Please "
            "ensure they have the same size.",
            stacklevel=user_depth(),
        )


@in_full_precision
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean squared error.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.mse_loss(torch.zeros(2), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    _check_shapes(input, target)
    return _reduced((input - target) ** 2, reduction, "MseLossBackward0", input, target)


@in_full_precision
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean absolute error.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.l1_loss(torch.zeros(2), torch.tensor([1.0, -3.0]))
    tensor(2.)
    """
    _check_shapes(input, target)
    loss = (input - target).abs()
    return _reduced(loss, reduction, "MeanBackward0", loss)


@composed("HuberLossBackward0")
def _huber(difference: Any, delta: float) -> Any:
    size = np.abs(difference)
    return np.where(size <= delta, 0.5 * difference * difference, delta * (size - 0.5 * delta))


@in_full_precision
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """Quadratic in small differences, and linear in large ones.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.huber_loss(torch.zeros(1), torch.tensor([3.0]))
    tensor(2.5000)
    """
    if delta <= 0:
        raise TensorError("huber_loss does not support non-positive values for delta.")
    return _reduced(_huber(input - target, delta), reduction, "HuberLossBackward0", input, target)


@in_full_precision
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """`huber_loss` divided by its threshold.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.zeros(1), torch.tensor([3.0]))
    tensor(2.5000)
    """
    if beta == 0:
        return l1_loss(input, target, reduction)
    return _reduced(
        _huber(input - target, beta) / beta, reduction, "SmoothL1LossBackward0", input, target
    )


@in_full_precision
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of the probabilities sigmoid(input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> logits, target = torch.zeros(1), torch.ones(1)
    >>> torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
    tensor(0.6931)
    """
    if input.shape != target.shape:
        raise TensorValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    positive = logsigmoid(input)
    negative = logsigmoid(-input)
    if pos_weight is not None:
        positive = positive * pos_weight
    loss = -(target * positive + (1 - target) * negative)
    loss = loss if weight is None else loss * weight
    return _reduced(loss, reduction, "BinaryCrossEntropyWithLogitsBackward0", input, target)


@in_full_precision
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy of probabilities; logarithms are clamped at -100.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.ones(1))
    tensor(0.6931)
    """
    if input.numel() and (float(input.min()) < 0 or float(input.max()) > 1):
        raise TensorError("all elements of input should be between 0 and 1")
    loss = -(target * _bounded_log(input) + (1 - target) * _bounded_log(1 - input))
    loss = loss if weight is None else loss * weight
    return _reduced(loss, reduction, "BinaryCrossEntropyBackward0", input, target)


@composed("LogBackward0")
def _bounded_log(x: Any) -> Any:
    return np.maximum(np.log(np.maximum(x, np.finfo(dtype_of(x)).tiny)), dtype_of(x).type(-100))


@in_full_precision
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the probability of each target class.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    if target.dtype.category > 1:
        raise TensorError(f"expected scalar type Long but found {target.dtype.legacy}")
    dim = 1 if input.value.ndim > 1 else 0
    if dim and tuple(target.shape) != (input.shape[0], *input.shape[2:]):
        raise TensorValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.value.ndim else 1})."
        )
    _check_classes(target, input.shape[dim], ignore_index)
    counted = target != ignore_index
    places = target.masked_fill(~counted, 0)
    loss = -input.gather(dim, places.unsqueeze(dim)).squeeze(dim)
    scales = counted.to(input.dtype)
    if weight is not None:
        scales = scales * weight[places]
    loss = loss * scales
    if reduction == "mean":
        return named(loss.sum() / scales.sum(), "NllLossBackward0", input)
    return _reduced(loss, reduction, "NllLossBackward0", input)


def _check_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    """Check that all targets are valid classes; inside a transform their values are unknown."""
    if isinstance(target.value, Tracer):
        return
    wanted = np.asarray(target.value)
    outside = wanted[(wanted != ignore_index) & ((wanted < 0) | (wanted >= classes))]
    if outside.size:
        raise TensorIndexError(f"Target {outside[0]} is out of bounds.")


@in_full_precision
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of the probabilities softmax(input); targets are classes or probabilities.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """
    dim = 1 if input.value.ndim > 1 else 0
    logs = log_softmax(input, dim)
    if target.dtype.category < 2 and not label_smoothing:
        return nll_loss(logs, target, weight, ignore_index, reduction)
    classes = input.shape[dim]
    by_class = target.dtype.category < 2
    if not by_class and target.shape != input.shape:
        raise TensorError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.legacy}"
        )
    if by_class:
        _check_classes(target, classes, ignore_index)
        numbers = make(np.arange(classes).reshape((-1, *(1,) * (input.value.ndim - 1 - dim))))
        probabilities = (target.unsqueeze(dim) == numbers).to(input.dtype)
    else:
        probabilities = target
    if label_smoothing:
        probabilities = probabilities * (1 - label_smoothing) + label_smoothing / classes
    terms = logs * probabilities
    if weight is not None:
        terms = terms * weight.reshape(*(-1 if k == dim else 1 for k in range(terms.dim())))
    loss = -terms.sum(dim)
    if not by_class:
        if reduction == "mean":
            return named(loss.sum() / (loss.numel() or 1), "DivBackward1")
        return _reduced(loss, reduction, "NegBackward0")
    counted = target != ignore_index
    scales = counted.to(input.dtype)
    loss = loss * scales
    if reduction == "mean":
        if weight is not None:
            scales = scales * weight[target.masked_fill(~counted, 0)]
        return named(loss.sum() / scales.sum(), "AddBackward0")
    return _reduced(loss, reduction, "NegBackward0")


@in_full_precision
def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """The Kullback-Leibler divergence of the target probabilities from exp(input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> half = torch.tensor([[0.5, 0.5]])
    >>> torch.nn.functional.kl_div(half.log(), half, reduction="batchmean")
    tensor(0.)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = _plogp(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]  # type: ignore[no-any-return]
    return _reduced(loss, reduction, "MeanBackward0")


@composed("XlogyBackward0")
def _plogp(p: Any) -> Any:
    return p * np.log(np.where(p > 0, p, dtype_of(p).type(1)))


@in_full_precision
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The input for targets 1, and max(0, margin - input) for targets -1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.ones(2), torch.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    from functrans.torch.selecting import where

    loss = where(target == 1, input, (margin - input).clamp_min(0))
    return _reduced(loss, reduction, "MeanBackward0")


@in_full_precision
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood under normal distributions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.zeros(1), torch.ones(1), torch.ones(1))
    tensor(0.5000)
    """
    bounded = var.clamp_min(eps)
    loss = 0.5 * (bounded.log() + (input - target) ** 2 / bounded)
    if full:
        loss = loss + 0.5 * float(np.log(2 * np.pi))
    return _reduced(loss, reduction, "MeanBackward0")


@in_full_precision
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood under Poisson distributions with means exp(input), or input.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.zeros(1), torch.ones(1))
    tensor(1.)
    """
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:  # Stirling's formula for the logarithm of the factorial
        log_factorial = target * target.log() - target + 0.5 * (2 * np.pi * target).log()
        loss = loss + (target > 1) * log_factorial.nan_to_num()
    return _reduced(loss, reduction, "MeanBackward0")


@in_full_precision
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target (input1 - input2)), where the target says which input should be larger.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> first, second = torch.tensor([1.0]), torch.tensor([3.0])
    >>> torch.nn.functional.margin_ranking_loss(first, second, torch.tensor([1.0]))
    tensor(2.)
    """
    loss = (margin - target * (input1 - input2)).clamp_min(0)
    return _reduced(loss, reduction, "MeanBackward0")


@in_full_precision
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos for targets 1, and max(0, cos - margin) for targets -1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(1, 2)
    >>> torch.nn.functional.cosine_embedding_loss(x, -x, torch.tensor([1.0]))
    tensor(2.)
    """
    from functrans.torch.nn.functional import cosine_similarity
    from functrans.torch.selecting import where

    cosine = cosine_similarity(input1, input2, -1)
    loss = where(target == 1, 1 - cosine, (cosine - margin).clamp_min(0))
    return _reduced(loss, reduction, "MeanBackward0")


@in_full_precision
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.zeros(1, 2)
    >>> torch.nn.functional.triplet_margin_loss(x, x, x)
    tensor(1.)
    """
    from functrans.torch.nn.functional import pairwise_distance

    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    loss = (margin + pairwise_distance(anchor, positive, p, eps) - far).clamp_min(0)
    return _reduced(loss, reduction, "MeanBackward0")
