"""LBFGS: a quasi-Newton method that approximates the inverse Hessian from recent gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.torch import changes, views
from functrans.torch.autograd.modes import enable_grad
from functrans.torch.errors import TensorError, TensorTypeError, TensorValueError
from functrans.torch.optim.optimizer import Optimizer


class LBFGS(Optimizer):
    """The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (Nocedal 1980).

    `step` needs a closure, which is called several times.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([x])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> x
    tensor([1.], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise TensorError("only 'strong_wolfe' is supported")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise TensorValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._memory: dict[str, Any] = {"pairs": [], "direction": None}

    def _gradient(self) -> Any:
        parts = [
            np.zeros(p.value.size, p.value.dtype)
            if p._grad is None
            else np.asarray(p._grad.value).reshape(-1)
            for p in self._params
        ]
        return np.concatenate(parts)

    def _move(self, step: float, direction: Any) -> None:
        start = 0
        for parameter in self._params:
            array = views.memory(parameter)
            part = direction[start : start + array.size].reshape(array.shape)
            array += step * part
            changes.note_change(array)
            start += array.size

    def _direction(self, gradient: Any) -> Any:
        """-H g, computed by the two-loop recursion over pairs (step, change of gradient)."""
        pairs = self._memory["pairs"]
        q = -gradient
        weights = []
        for s, y in reversed(pairs):
            weights.append((s @ q) / (y @ s))
            q = q - weights[-1] * y
        if pairs:
            s, y = pairs[-1]
            q = q * ((y @ s) / (y @ y))
        for (s, y), weight in zip(pairs, reversed(weights), strict=True):
            q = q + s * (weight - (y @ q) / (y @ s))
        return q

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters; `closure` computes the loss and its gradient.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([x])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (x**2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        1.0
        """
        if closure is None:
            raise TensorTypeError("LBFGS.step() needs a closure that computes the loss")
        group, memory = self.param_groups[0], self._memory

        def evaluate() -> float:
            with enable_grad():
                return float(closure())

        with enable_grad():
            first = closure()
        loss, gradient, calls = float(first), self._gradient(), 1
        if np.abs(gradient).max() <= group["tolerance_grad"]:
            return first
        for k in range(group["max_iter"]):
            before = memory.get("gradient")
            if memory["direction"] is not None and before is not None:
                s, y = memory["direction"] * memory["step"], gradient - before
                if y @ s > 1e-10:
                    memory["pairs"].append((s, y))
                    del memory["pairs"][: -group["history_size"]]
            fresh = memory["direction"] is None
            direction = memory["direction"] = self._direction(gradient)
            memory["gradient"], previous = gradient, loss
            step = group["lr"]
            if fresh:
                step = min(1.0, 1.0 / np.abs(gradient).sum()) * step
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is None:
                self._move(step, direction)
                if k != group["max_iter"] - 1:
                    loss, gradient = evaluate(), self._gradient()
                    calls += 1
            else:
                step, loss, gradient, used = self._search(evaluate, loss, slope, step, direction)
                calls += used
            memory["step"] = step
            if calls >= group["max_eval"]:
                break
            if np.abs(gradient).max() <= group["tolerance_grad"]:
                break
            if np.abs(direction * step).max() <= group["tolerance_change"]:
                break
            if abs(loss - previous) < group["tolerance_change"]:
                break
        return first

    def _search(
        self, evaluate: Any, loss: float, slope: float, step: float, direction: Any
    ) -> tuple[float, float, Any, int]:
        """Find a step that meets the strong Wolfe conditions: a lower loss, and at most 0.9 times the slope.

        The step is doubled until the interval contains such a step, and then the interval is bisected.
        """
        low, high, at, calls = 0.0, np.inf, 0.0, 0
        best: Any = None
        while True:
            self._move(step - at, direction)
            at = step
            value, gradient = evaluate(), self._gradient()
            calls += 1
            new_slope = float(gradient @ direction)
            if value > loss + 1e-4 * step * slope:
                high = step
            elif abs(new_slope) <= -0.9 * slope or calls >= 25:
                return step, value, gradient, calls
            elif new_slope < 0:
                low = step
            else:
                high = step
            if best is None or value < best[1]:
                best = (step, value, gradient)
            if calls >= 25:
                self._move(best[0] - at, direction)
                return (*best, calls)
            step = 2 * step if np.isinf(high) else (low + high) / 2
