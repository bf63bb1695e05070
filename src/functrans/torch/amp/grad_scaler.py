"""GradScaler: scales losses up, so that small gradients survive in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.torch.autograd.modes import no_grad
from functrans.torch.errors import OptionAssertionError, TensorError
from functrans.torch.tensor import Tensor


class GradScaler:
    """Scales losses, unscales gradients, and skips steps whose gradients are infinite.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([x], lr=0.5)
    >>> scaler = torch.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale((x**2).sum()).backward()
    >>> x.grad
    tensor([16.])
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> x
    tensor([0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if growth_factor <= 1.0:
            raise OptionAssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise OptionAssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._enabled = growth_interval, enabled
        self._good_steps = 0
        self._found: dict[int, bool] = {}  # for each optimizer, whether gradients were infinite
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Multiply losses by the scale.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.amp.GradScaler(init_scale=8.0).scale(torch.tensor(2.0))
        tensor(16.)
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        return type(outputs)(map(self.scale, outputs))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> scaler = torch.amp.GradScaler()
        >>> scaler.scale(x * 1).backward()
        >>> scaler.unscale_(torch.optim.SGD([x], lr=0.5))
        >>> x.grad
        tensor([1.])
        """
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise TensorError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if id(optimizer) in self._stepped:
            raise TensorError("unscale_() is being called after step().")
        infinite = False
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    gradient = parameter._grad
                    if gradient is not None:
                        gradient.mul_(1.0 / self._scale)
                        infinite |= not np.isfinite(gradient.value).all()
        self._found[id(optimizer)] = bool(infinite)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Take a step with the optimizer, unless a gradient is infinite.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([x], lr=0.5)
        >>> scaler = torch.amp.GradScaler()
        >>> scaler.scale(x * 1).backward()
        >>> _ = scaler.step(optimizer)
        >>> x.detach()
        tensor([0.5000])
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) in self._stepped:
            raise TensorError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Reduce the scale after an infinite gradient, and raise it after many finite ones.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> scaler = torch.amp.GradScaler()
        >>> scaler.update(4.0)
        >>> scaler.get_scale()
        4.0
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise OptionAssertionError("No inf checks were recorded prior to update.")
        elif any(self._found.values()):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale *= self._growth_factor
                self._good_steps = 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The current scale.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.amp.GradScaler(init_scale=8.0).get_scale()
        8.0
        """
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether scaling is enabled.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.amp.GradScaler().is_enabled()
        True
        """
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary: the scale, and how it changes.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.amp.GradScaler(init_scale=8.0).state_dict()["scale"]
        8.0
        """
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> scaler = torch.amp.GradScaler()
        >>> scaler.load_state_dict(torch.amp.GradScaler(init_scale=8.0).state_dict())
        >>> scaler.get_scale()
        8.0
        """
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = state_dict["_growth_tracker"]
