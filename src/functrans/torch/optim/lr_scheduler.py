"""torch.optim.lr_scheduler: learning rates that change from step to step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any


class LRScheduler:
    """Sets the learning rate of each group by `get_lr` after each `step`."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def rate(self, base: float, epoch: int) -> float:
        """The learning rate of an epoch in closed form."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        return [self.rate(base, self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.last_epoch, self.base_lrs = state_dict["last_epoch"], list(state_dict["base_lrs"])


class StepLR(LRScheduler):
    """The rate times gamma after every `step_size` epochs.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int) -> float:
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each milestone."""

    def __init__(
        self, optimizer: Any, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """The rate times gamma after every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int) -> float:
        return base * self.gamma**epoch


class LambdaLR(LRScheduler):
    """The rate times a function of the epoch."""

    def __init__(
        self, optimizer: Any, lr_lambda: Callable[[int], float], last_epoch: int = -1
    ) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int) -> float:
        return base * self.lr_lambda(epoch)


class CosineAnnealingLR(LRScheduler):
    """The rate along half a cosine down to `eta_min`, and up again."""

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int) -> float:
        wave = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return self.eta_min + (base - self.eta_min) * wave
