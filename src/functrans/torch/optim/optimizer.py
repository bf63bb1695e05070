"""Optimizer: groups of parameters with options, and a state for each parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.torch import changes, views
from functrans.torch.autograd.modes import enable_grad, no_grad
from functrans.torch.errors import TensorTypeError, TensorValueError
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, make


class Optimizer:
    """The base class of all optimizers; a subclass defines `_update` for one parameter.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.optim.Adam, torch.optim.Optimizer)
    True
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TensorTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {params.type()}"
            )
        groups = list(params)
        if not groups:
            raise TensorValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            if isinstance(groups[0], tuple):  # named parameters
                groups = [each for _, each in groups]
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
        >>> optimizer.add_param_group({"params": torch.ones(1, requires_grad=True), "lr": 0.1})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.5, 0.1]
        """
        group = dict(param_group)
        given = group["params"]
        group["params"] = [given] if isinstance(given, Tensor) else list(given)
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise TensorTypeError(
                    f"optimizer can only optimize Tensors, but one of the params is "
                    f"{type(parameter).__name__}"
                )
            if not parameter.is_leaf:
                raise TensorValueError("can't optimize a non-leaf Tensor")
        known = {id(p) for each in self.param_groups for p in each["params"]}
        if any(id(p) in known for p in group["params"]):
            raise TensorValueError("some parameters appear in more than one parameter group")
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset all gradients to None, or to zero.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> (x * 1).backward()
        >>> torch.optim.SGD([x], lr=0.5).zero_grad()
        >>> x.grad is None
        True
        """
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter._grad is None:
                    continue
                if set_to_none:
                    parameter._grad = None
                else:
                    parameter._grad = parameter._grad.detach()
                    parameter._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters using their gradients; an optional `closure` computes the loss again.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([x], lr=0.5)
        >>> (x * 1).backward()
        >>> optimizer.step()
        >>> x.detach()
        tensor([0.5000])
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter._grad is not None:
                        self._change(parameter, group)
        return loss

    def _change(self, parameter: Tensor, group: dict[str, Any]) -> None:
        array = views.memory(parameter)
        gradient = np.asarray(parameter._grad.value)
        if group.get("maximize"):
            gradient = -gradient
        self._update(array, gradient, self.state[parameter], group)
        if not MODE.inference:
            changes.note_change(array)

    def _update(
        self, array: Any, gradient: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update the array of one parameter in place."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary, with indices in place of parameters.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
        >>> optimizer.state_dict()["state"]
        {}
        """
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
        groups = [
            {**_options(group), "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {
            numbers[id(p)]: {name: _as_tensor(value) for name, value in each.items()}
            for p, each in self.state.items()
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([x], lr=0.5)
        >>> optimizer.load_state_dict(torch.optim.SGD([x], lr=0.1).state_dict())
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise TensorValueError("loaded state dict has a different number of parameter groups")
        by_number: dict[int, Any] = {}
        for own, given in zip(self.param_groups, groups, strict=True):
            if len(own["params"]) != len(given["params"]):
                raise TensorValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            by_number |= dict(zip(given["params"], own["params"], strict=True))
            own.update({name: value for name, value in given.items() if name != "params"})
        self.state.clear()
        for number, each in state_dict["state"].items():
            self.state[by_number[int(number)]] = {
                name: np.array(v.value) if isinstance(v, Tensor) else v for name, v in each.items()
            }

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _as_tensor(value: Any) -> Any:
    return make(value.copy()) if is_plain(value, np.ndarray) else value


def checked(name: str, value: float, low: float = 0.0, high: float | None = None) -> None:
    """Refuse an option outside its range."""
    if not low <= value or (high is not None and not value < high):
        raise TensorValueError(f"Invalid {name}: {value}")
