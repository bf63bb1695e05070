"""torch.optim.lr_scheduler: learning rates that change from step to step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from functrans.torch.errors import TensorTypeError, TensorValueError
from functrans.torch.optim.optimizer import Optimizer


class LRScheduler:
    """The base class of schedulers: each `step` sets the learning rates of the groups with `get_lr`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.optim.lr_scheduler.StepLR, torch.optim.lr_scheduler.LRScheduler)
    True
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TensorTypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def _rate(self, base: float, epoch: int) -> float:
        """The learning rate of an epoch in closed form."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The learning rates for the current epoch.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> torch.optim.lr_scheduler.StepLR(optimizer, 2).get_lr()
        [1.0]
        """
        return [self._rate(base, self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The current learning rates of the groups.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> torch.optim.lr_scheduler.StepLR(optimizer, 2).get_last_lr()
        [1.0]
        """
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Advance to the next epoch.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        >>> scheduler.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary, without the optimizer and functions.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).state_dict()
        {'gamma': 0.5, 'base_lrs': [1.0], 'last_epoch': 0}
        """
        state = self.__dict__.items()
        return {name: v for name, v in state if name != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler.load_state_dict({"last_epoch": 3})
        >>> scheduler.last_epoch
        3
        """
        self.__dict__.update(state_dict)


class StepLR(LRScheduler):
    """Multiplies the learning rate by gamma every `step_size` epochs.

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

    def _rate(self, base: float, epoch: int) -> float:
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by gamma at each milestone.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Any, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by gamma after every epoch.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.25)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        return base * self.gamma**epoch


class LambdaLR(LRScheduler):
    """Multiplies the initial learning rate by a function of the epoch.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Any, lr_lambda: Callable[[int], float], last_epoch: int = -1
    ) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        return base * self.lr_lambda(epoch)


class CosineAnnealingLR(LRScheduler):
    """Lets the learning rate follow a cosine, down to `eta_min` and up again.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        wave = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return self.eta_min + (base - self.eta_min) * wave


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by a factor during the first epochs.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise TensorValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        return base * self.factor if epoch < self.total_iters else base


class LinearLR(LRScheduler):
    """Multiplies the learning rate by a factor that changes linearly during the first epochs.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lets the learning rate follow half a cosine down to `eta_min`, and restarts it periodically.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in {"T_0": T_0, "T_mult": T_mult}.items():
            if value < 1 or not isinstance(value, int):
                raise TensorValueError(f"Expected positive integer {name}, but got {value}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        length = self.T_0
        while epoch >= length:
            epoch, length = epoch - length, length * self.T_mult
        wave = (1 + math.cos(math.pi * epoch / length)) / 2
        return self.eta_min + (base - self.eta_min) * wave


class OneCycleLR(LRScheduler):
    """Raises the learning rate to `max_lr` once, then lowers it to nearly zero (Smith and Topin 2017).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [1.0]
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise TensorValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise TensorValueError("anneal_strategy must be one of 'cos' or 'linear'")
        self.max_lr, self.total_steps, self.pct_start = max_lr, total_steps, pct_start
        self.anneal_strategy = anneal_strategy
        self.first = max_lr / div_factor
        self.last = self.first / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _rate(self, base: float, epoch: int) -> float:
        if epoch >= self.total_steps:
            raise TensorValueError(
                f"Tried to step {epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        top, end = self.pct_start * self.total_steps - 1, self.total_steps - 1
        if epoch <= top:
            return self._between(self.first, self.max_lr, epoch / top)
        return self._between(self.max_lr, self.last, (epoch - top) / (end - top))

    def _between(self, start: float, stop: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (stop - start) * part
        return stop + (start - stop) / 2 * (1 + math.cos(math.pi * part))


class SequentialLR:
    """Runs schedulers one after the other, and switches between them at milestones.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [
    ...     torch.optim.lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=2),
    ...     torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
    ... ]
    >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[2])
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.9]
    """

    def __init__(
        self, optimizer: Any, schedulers: list[LRScheduler], milestones: list[int]
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise TensorValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the "
                f"number of milestone points, but got number of schedulers {len(schedulers)} and the "
                f"number of milestones to be equal to {len(milestones)}"
            )
        self.optimizer, self.schedulers, self.milestones = optimizer, schedulers, milestones
        self.last_epoch = -1
        self.step()

    def step(self) -> None:
        """Advance to the next epoch.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> parts = [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, [])
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        self.last_epoch += 1
        place = bisect_right(self.milestones, self.last_epoch)
        start = self.milestones[place - 1] if place else 0
        current = self.schedulers[place]
        current.last_epoch = self.last_epoch - start - 1
        current.step()

    def get_last_lr(self) -> list[float]:
        """The current learning rates of the groups.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> parts = [torch.optim.lr_scheduler.StepLR(optimizer, 1)]
        >>> torch.optim.lr_scheduler.SequentialLR(optimizer, parts, []).get_last_lr()
        [1.0]
        """
        return [group["lr"] for group in self.optimizer.param_groups]


class ReduceLROnPlateau:
    """Multiplies the learning rate by a factor when a metric has not improved for some epochs.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for _ in range(3):
    ...     scheduler.step(5.0)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise TensorValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise TensorValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise TensorValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1)
        if math.isinf(self.best):
            return sign * value < sign * self.best
        return sign * value < sign * self.best - margin

    def step(self, metrics: Any) -> None:
        """Advance to the next epoch, given the metric of the current one.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        ...     optimizer, factor=0.5, patience=0
        ... )
        >>> scheduler.step(1.0)
        >>> scheduler.step(1.0)
        >>> scheduler.get_last_lr()
        [0.5]
        """
        value = float(metrics)
        self.last_epoch += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The current learning rates of the groups.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer).get_last_lr()
        [1.0]
        """
        return [group["lr"] for group in self.optimizer.param_groups]
