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
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
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

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {name: getattr(self, name) for name in self._given}
        return type(self).function(input, target, reduction=self.reduction, **options)  # type: ignore[no-any-return]


class MSELoss(_Loss):
    """The mean of squared differences.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.MSELoss()(torch.zeros(2), torch.ones(2))
    tensor(1.)
    """

    function = staticmethod(F.mse_loss)


class L1Loss(_Loss):
    """The mean of the sizes of differences."""

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(_Loss):
    """Squares of small differences, sizes of large ones."""

    function = staticmethod(F.smooth_l1_loss)
    options = {"beta": 1.0}  # noqa: RUF012


class HuberLoss(_Loss):
    """Squares of small differences, sizes of large ones, times delta."""

    function = staticmethod(F.huber_loss)
    options = {"delta": 1.0}  # noqa: RUF012


class CrossEntropyLoss(_Loss):
    """The cross entropy of probabilities softmax(input)."""

    function = staticmethod(F.cross_entropy)
    weighted = True
    options = {"ignore_index": -100, "label_smoothing": 0.0}  # noqa: RUF012


class NLLLoss(_Loss):
    """The negative logarithm of the probability of each target class."""

    function = staticmethod(F.nll_loss)
    weighted = True
    options = {"ignore_index": -100}  # noqa: RUF012


class BCELoss(_Loss):
    """The cross entropy of probabilities."""

    function = staticmethod(F.binary_cross_entropy)
    weighted = True


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of probabilities sigmoid(input)."""

    function = staticmethod(F.binary_cross_entropy_with_logits)
    weighted = True
    options = {"pos_weight": None}  # noqa: RUF012


class KLDivLoss(_Loss):
    """The divergence of target probabilities from exp(input)."""

    function = staticmethod(F.kl_div)
    options = {"log_target": False}  # noqa: RUF012
