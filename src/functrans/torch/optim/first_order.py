"""First-order optimizers: SGD, Adam, AdamW, RMSprop, Adagrad and Adadelta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.torch.errors import TensorTypeError, TensorValueError
from functrans.torch.optim.optimizer import Optimizer, checked

# In PyTorch these options choose an implementation. Here they have no effect, and are only kept and shown.
_FOREACH: dict[str, Any] = {"foreach": None, "differentiable": False}
_FUSED: dict[str, Any] = {**_FOREACH, "fused": None}
_CAPTURED: dict[str, Any] = {"foreach": None, "capturable": False, **_FUSED}


def _chosen(known: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The given options merged with their defaults."""
    unknown = set(options) - set(known)
    if unknown:
        raise TensorTypeError(f"unexpected keyword arguments {sorted(unknown)}")
    return {**known, **options}


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **options: Any,
    ) -> None:
        checked("learning rate", lr)
        checked("momentum value", momentum)
        checked("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise TensorValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            **_chosen(_FUSED, options),
        }
        super().__init__(params, defaults)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * array
        if group["momentum"]:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = np.array(gradient)
            else:
                velocity *= group["momentum"]
                velocity += (1 - group["dampening"]) * gradient
            gradient = gradient + group["momentum"] * velocity if group["nesterov"] else velocity
        array -= group["lr"] * gradient


class Adam(Optimizer):
    """Divides the running mean of gradients by their running root mean square (Kingma and Ba 2014).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000], requires_grad=True)
    """

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **options: Any,
    ) -> None:
        checked("learning rate", lr)
        checked("epsilon value", eps)
        checked("beta parameter at index 0", betas[0], 0.0, 1.0)
        checked("beta parameter at index 1", betas[1], 0.0, 1.0)
        checked("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            **_chosen(_CAPTURED, options),
            "decoupled_weight_decay": self.decoupled,
        }
        super().__init__(params, defaults)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr, decay = group["lr"], group["weight_decay"]
        first, second = group["betas"]
        if decay:
            if self.decoupled:
                array *= 1 - lr * decay
            else:
                gradient = gradient + decay * array
        if not state:
            state["step"] = 0
            state["exp_avg"] = np.zeros_like(array)
            state["exp_avg_sq"] = np.zeros_like(array)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = np.zeros_like(array)
        state["step"] += 1
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean += (1 - first) * (gradient - mean)
        square *= second
        square += (1 - second) * (gradient * gradient)
        if group["amsgrad"]:
            np.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
            square = state["max_exp_avg_sq"]
        scale = math.sqrt(1 - second ** state["step"])
        denominator = np.sqrt(square) / scale + group["eps"]
        array -= (lr / (1 - first ** state["step"])) * (mean / denominator)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2017).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.AdamW([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8990], requires_grad=True)
    """

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class RMSprop(Optimizer):
    """Divides gradients by their running root mean square.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.RMSprop([x], lr=0.05)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **options: Any,
    ) -> None:
        checked("learning rate", lr)
        checked("alpha value", alpha)
        checked("epsilon value", eps)
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
            **_chosen({**_FOREACH, "capturable": False}, options),
        }
        super().__init__(params, defaults)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * array
        if not state:
            state["square_avg"] = np.zeros_like(array)
            if group["momentum"]:
                state["momentum_buffer"] = np.zeros_like(array)
            if group["centered"]:
                state["grad_avg"] = np.zeros_like(array)
        alpha, square = group["alpha"], state["square_avg"]
        square *= alpha
        square += (1 - alpha) * (gradient * gradient)
        spread = square
        if group["centered"]:
            mean = state["grad_avg"]
            mean += (1 - alpha) * (gradient - mean)
            spread = square - mean * mean
        direction = gradient / (np.sqrt(spread) + group["eps"])
        if group["momentum"]:
            velocity = state["momentum_buffer"]
            velocity *= group["momentum"]
            velocity += direction
            direction = velocity
        array -= group["lr"] * direction


class Adagrad(Optimizer):
    """Divides gradients by the root of the sum of their squares so far.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adagrad([x], lr=0.1)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **options: Any,
    ) -> None:
        checked("learning rate", lr)
        checked("lr_decay value", lr_decay)
        checked("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
            **_chosen(_FUSED, options),
        }
        super().__init__(params, defaults)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * array
        if not state:
            state["step"], state["sum"] = 0, np.full_like(array, group["initial_accumulator_value"])
        state["step"] += 1
        state["sum"] += gradient * gradient
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        array -= rate * (gradient / (np.sqrt(state["sum"]) + group["eps"]))


class Adadelta(Optimizer):
    """Scales gradients by the ratio of the running root mean squares of steps and gradients (Zeiler 2012).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([x], lr=1.0)
    >>> (x**2).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9968], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **options: Any,
    ) -> None:
        checked("learning rate", lr)
        checked("rho value", rho)
        checked("epsilon value", eps)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            **_chosen({**_FOREACH, "capturable": False}, options),
        }
        super().__init__(params, defaults)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * array
        if not state:
            state["step"] = 0
            state["square_avg"], state["acc_delta"] = np.zeros_like(array), np.zeros_like(array)
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        square, steps = state["square_avg"], state["acc_delta"]
        square *= rho
        square += (1 - rho) * (gradient * gradient)
        step = np.sqrt(steps + eps) / np.sqrt(square + eps) * gradient
        steps *= rho
        steps += (1 - rho) * (step * step)
        array -= group["lr"] * step
