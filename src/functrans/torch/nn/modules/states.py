"""Copying the parameters and buffers of a module from a dict of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functrans.torch.autograd.modes import no_grad
from functrans.torch.errors import TensorError

if TYPE_CHECKING:
    from functrans.torch.nn.modules.module import Module


class IncompatibleKeys(tuple[list[str], list[str]]):
    """The names that `load_state_dict` did not find, and those that it did not expect."""

    def __new__(cls, missing: list[str], unexpected: list[str]) -> IncompatibleKeys:
        return super().__new__(cls, (missing, unexpected))

    @property
    def missing_keys(self) -> list[str]:
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def load_state(module: Module, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """What `Module.load_state_dict` does."""
    own = module.state_dict(keep_vars=True)
    missing = [name for name in own if name not in state_dict]
    unexpected = [name for name in state_dict if name not in own]
    problems = []
    if strict and missing:
        names = ", ".join(f'"{name}"' for name in missing)
        problems.append(f"Missing key(s) in state_dict: {names}. ")
    if strict and unexpected:
        names = ", ".join(f'"{name}"' for name in unexpected)
        problems.append(f"Unexpected key(s) in state_dict: {names}. ")
    for name, tensor in own.items():
        if name in state_dict and state_dict[name].shape != tensor.shape:
            problems.append(
                f"size mismatch for {name}: copying a param with shape {state_dict[name].shape} "
                f"from checkpoint, the shape in current model is {tensor.shape}."
            )
    if problems:
        listing = "\n\t".join(problems)
        raise TensorError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listing}"
        )
    with no_grad():
        for name, tensor in own.items():
            if name not in state_dict:
                continue
            if assign:  # the tensors that are given, not copies of them
                tensor.value = state_dict[name].value
            else:
                tensor.copy_(state_dict[name])
    return IncompatibleKeys(missing, unexpected)
