"""The public names of `functrans.torch`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import functrans.torch as torch
from functrans.torch.registry import FUNCTIONS

# Modules with names of their own, each with a word about it.
MODULES = {
    "autograd": "Gradients of graphs.",
    "autograd.forward_ad": "Dual numbers within a level.",
    "autograd.functional": "Derivatives of functions of tensors.",
    "autograd.graph": "Nodes, and what graphs keep.",
    "autograd.profiler": "Where the time goes.",
    "func": "Transforms of functions.",
    "nn": "Parts of models.",
    "nn.functional": "The functions behind them.",
    "nn.init": "First values of parameters.",
    "nn.utils": "What is done to all parameters together.",
    "nn.utils.rnn": "Sequences of different lengths.",
    "optim": "How parameters are changed by their gradients.",
    "optim.lr_scheduler": "Learning rates that change from step to step.",
    "amp": "Half precision.",
    "linalg": "Linear algebra.",
    "fft": "Fourier transforms.",
    "special": "Functions of mathematics.",
    "random": "Generators and seeds.",
    "utils.checkpoint": "Compute again rather than keep.",
    "utils.data": "Examples, and batches of them.",
    "viz": "Graphs as pictures.",
    "cuda": "What programs ask before they use a GPU.",
    "accelerator": "What programs ask before they use other devices.",
    "errors": "What goes wrong.",
}


def functions() -> dict[str, Any]:
    """The functions, classes and context managers of the namespace itself."""
    found = {name: each for name, each in FUNCTIONS.items() if callable(each)}
    for name, each in vars(torch).items():
        if not name.startswith("_") and _is_ours(each):
            found[name] = each
    return dict(sorted(found.items()))


def _is_ours(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return callable(value) and module.startswith("functrans.")


def members(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class that it, or a private base of it, defines."""
    found = {}
    for base in reversed(cls.__mro__):
        if base is cls or (base.__name__.startswith("_") and _is_ours(base)):
            for name, each in vars(base).items():
                plain = each.__func__ if isinstance(each, (staticmethod, classmethod)) else each
                if not name.startswith("_") and (callable(plain) or isinstance(plain, property)):
                    found[name] = plain
    return dict(sorted(found.items()))


def names_of(module: ModuleType) -> dict[str, Any]:
    """What a module offers: a package all that it names, another module what it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name: getattr(module, name) for name in sorted(listed)}
    package = hasattr(module, "__path__")
    return {
        name: each
        for name, each in sorted(vars(module).items())
        if not name.startswith("_")
        and _is_ours(each)
        and (package or each.__module__ == module.__name__)
    }


def modules() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The modules: name, what it is about, and its names."""
    for name, about in MODULES.items():
        yield name, about, names_of(importlib.import_module(f"functrans.torch.{name}"))


def owners() -> list[tuple[Any, dict[str, Any]]]:
    """Modules and `Tensor`, each with its public names."""
    found: list[tuple[Any, dict[str, Any]]] = [
        (importlib.import_module(f"functrans.torch.{name}"), names) for name, _, names in modules()
    ]
    return [*found, (torch, functions()), (torch.Tensor, members(torch.Tensor))]
