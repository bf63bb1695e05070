"""Losses as modules."""

from __future__ import annotations

from typing import Any

from functrans.torch.errors import TensorTypeError
from functrans.torch.nn import functional as F
from functrans.torch.nn.modules.module import Module
from functrans.torch.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "TripletMarginLoss",
]


class _Loss(Module):
    """A loss whose options are attributes."""

    function: Any = None
    weighted = False
    options: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *args: Any, reduction: str = "mean", **options: Any) -> None:
        super().__init__()
        names = [*(["weight"] if self.weighted else []), *self.options]
        given = {**self.options, **dict(zip(names, args, strict=False)), **options}
        unknown = set(given) - {*names, "weight"}
        if unknown or len(args) > len(names):
            raise TensorTypeError(f"{type(self).__name__} got unexpected options {sorted(unknown)}")
        self.reduction = reduction
        self._given = given
        for name, value in given.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *tensors: Tensor) -> Tensor:
        options = {name: getattr(self, name) for name in self._given}
        return type(self).function(*tensors, reduction=self.reduction, **options)  # type: ignore[no-any-return]


class MSELoss(_Loss):
    """The mean squared error.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.MSELoss()(torch.zeros(2), torch.ones(2))
    tensor(1.)
    """

    function = staticmethod(F.mse_loss)


class L1Loss(_Loss):
    """The mean absolute error.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.L1Loss()(torch.zeros(2), torch.tensor([1.0, -3.0]))
    tensor(2.)
    """

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(_Loss):
    """Quadratic in small differences, and linear in large ones.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.SmoothL1Loss()(torch.zeros(1), torch.tensor([3.0]))
    tensor(2.5000)
    """

    function = staticmethod(F.smooth_l1_loss)
    options = {"beta": 1.0}  # noqa: RUF012


class HuberLoss(_Loss):
    """Quadratic in small differences, and linear, with slope delta, in large ones.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.HuberLoss()(torch.zeros(1), torch.tensor([3.0]))
    tensor(2.5000)
    """

    function = staticmethod(F.huber_loss)
    options = {"delta": 1.0}  # noqa: RUF012


class CrossEntropyLoss(_Loss):
    """The cross entropy of the probabilities softmax(input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """

    function = staticmethod(F.cross_entropy)
    weighted = True
    options = {"ignore_index": -100, "label_smoothing": 0.0}  # noqa: RUF012


class NLLLoss(_Loss):
    """The negative logarithm of the probability of each target class.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.NLLLoss()(torch.tensor([[-0.5, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """

    function = staticmethod(F.nll_loss)
    weighted = True
    options = {"ignore_index": -100}  # noqa: RUF012


class BCELoss(_Loss):
    """The binary cross entropy of probabilities.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.BCELoss()(torch.tensor([0.5]), torch.ones(1))
    tensor(0.6931)
    """

    function = staticmethod(F.binary_cross_entropy)
    weighted = True


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of the probabilities sigmoid(input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.BCEWithLogitsLoss()(torch.zeros(1), torch.ones(1))
    tensor(0.6931)
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)
    weighted = True
    options = {"pos_weight": None}  # noqa: RUF012


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of the target probabilities from exp(input).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> half = torch.tensor([[0.5, 0.5]])
    >>> torch.nn.KLDivLoss(reduction="batchmean")(half.log(), half)
    tensor(0.)
    """

    function = staticmethod(F.kl_div)
    options = {"log_target": False}  # noqa: RUF012


class GaussianNLLLoss(_Loss):
    """The negative log likelihood under normal distributions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.GaussianNLLLoss()(torch.zeros(1), torch.ones(1), torch.ones(1))
    tensor(0.5000)
    """

    function = staticmethod(F.gaussian_nll_loss)
    options = {"full": False, "eps": 1e-6}  # noqa: RUF012


class PoissonNLLLoss(_Loss):
    """The negative log likelihood under Poisson distributions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.PoissonNLLLoss()(torch.zeros(1), torch.ones(1))
    tensor(1.)
    """

    function = staticmethod(F.poisson_nll_loss)
    options = {"log_input": True, "full": False, "eps": 1e-8}  # noqa: RUF012


class HingeEmbeddingLoss(_Loss):
    """The input for targets 1, and max(0, margin - input) for targets -1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.HingeEmbeddingLoss()(torch.ones(2), torch.tensor([1.0, -1.0]))
    tensor(0.5000)
    """

    function = staticmethod(F.hinge_embedding_loss)
    options = {"margin": 1.0}  # noqa: RUF012


class MarginRankingLoss(_Loss):
    """max(0, margin - target (input1 - input2)), where the target says which input should be larger.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> ranked = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> torch.nn.MarginRankingLoss()(*ranked)
    tensor(2.)
    """

    function = staticmethod(F.margin_ranking_loss)
    options = {"margin": 0.0}  # noqa: RUF012


class CosineEmbeddingLoss(_Loss):
    """1 - cos for targets 1, and max(0, cos - margin) for targets -1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(1, 2)
    >>> torch.nn.CosineEmbeddingLoss()(x, -x, torch.tensor([1.0]))
    tensor(2.)
    """

    function = staticmethod(F.cosine_embedding_loss)
    options = {"margin": 0.0}  # noqa: RUF012


class TripletMarginLoss(_Loss):
    """max(0, margin + distance to the positive - distance to the negative).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.zeros(1, 2)
    >>> torch.nn.TripletMarginLoss()(x, x, x)
    tensor(1.)
    """

    function = staticmethod(F.triplet_margin_loss)
    options = {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False}  # noqa: RUF012
