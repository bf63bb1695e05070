"""The public names of `functrans.torch`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import functrans.torch as torch
from functrans.torch.registry import FUNCTIONS

# The public submodules, each with a short description.
MODULES = {
    "autograd": "Automatic differentiation of recorded graphs.",
    "autograd.forward_ad": "Forward mode with dual tensors.",
    "autograd.functional": "Derivatives of functions of tensors.",
    "autograd.graph": "The nodes of graphs, and hooks on saved values.",
    "autograd.profiler": "A profiler.",
    "func": "Function transforms.",
    "nn": "Building blocks of models.",
    "nn.functional": "The same layers, activations and losses as functions.",
    "nn.init": "Initial values of parameters.",
    "nn.utils": "Functions of all parameters of a model at once.",
    "nn.utils.rnn": "Sequences of different lengths.",
    "optim": "Optimizers.",
    "optim.lr_scheduler": "Learning rates that change from step to step.",
    "amp": "Half precision.",
    "linalg": "Linear algebra.",
    "fft": "Fourier transforms.",
    "special": "Special functions.",
    "random": "Generators and seeds.",
    "utils.checkpoint": "Recompute values in the backward pass to save memory.",
    "utils.data": "Datasets, samplers and batches.",
    "viz": "Pictures of graphs.",
    "cuda": "Queries for GPUs. There are none.",
    "accelerator": "Queries for other devices. There are none.",
    "errors": "Error classes.",
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
    """The public names of a module: for a package, all of them; for others, those defined there."""
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
    """The modules: the name, the description and the public names of each."""
    for name, about in MODULES.items():
        yield name, about, names_of(importlib.import_module(f"functrans.torch.{name}"))


def list_names() -> None:
    """Make `dir` of each module list its public names, and nothing else."""
    public = {*MODULES, "profiler", "utils"}  # these two only re-export names
    for path in public:
        module = importlib.import_module(f"functrans.torch.{path}")
        parts = {p[len(path) + 1 :] for p in public if p.startswith(f"{path}.")}
        _let_dir_list(module, {*names_of(module), *(p for p in parts if "." not in p)})
    hidden = {
        name
        for name, value in vars(torch).items()
        if name.startswith("_") or (isinstance(value, ModuleType) and name not in public)
    }
    _let_dir_list(torch, vars(torch).keys() - hidden)


def _let_dir_list(module: ModuleType, names: Iterable[str]) -> None:
    found = sorted(names)
    vars(module)["__dir__"] = lambda: found


def owners() -> list[tuple[Any, dict[str, Any]]]:
    """Modules and `Tensor`, each with its public names."""
    found: list[tuple[Any, dict[str, Any]]] = [
        (importlib.import_module(f"functrans.torch.{name}"), names) for name, _, names in modules()
    ]
    return [*found, (torch, functions()), (torch.Tensor, members(torch.Tensor))]
