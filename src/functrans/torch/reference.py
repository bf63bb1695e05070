"""The public names of `functrans.torch`, and docs/torch-reference.md, which lists them.

python -m functrans.torch.reference > docs/torch-reference.md
"""

from __future__ import annotations

import importlib
import inspect
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


def owners() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Modules and `Tensor`, each with its public names."""
    yield torch, functions()
    yield torch.Tensor, members(torch.Tensor)
    for name, _, names in modules():
        yield importlib.import_module(f"functrans.torch.{name}"), names


def summary(value: Any) -> str:
    """The first sentence of a docstring."""
    if isinstance(value, property):
        value = value.fget
    text = inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n")[0].split())


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        return name
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return name
    kinds = (inspect.Parameter.KEYWORD_ONLY,)
    shown, starred = [], False
    for each in parameters:
        if each.name == "self":
            continue
        if each.kind in kinds and not starred:
            shown.append("*")
            starred = True
        starred |= each.kind is inspect.Parameter.VAR_POSITIONAL
        prefix = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(each.kind.name, "")
        default = "" if each.default is inspect.Parameter.empty else f"={_default(each.default)}"
        shown.append(f"{prefix}{each.name}{default}")
    return f"{name}({', '.join(shown)})"


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str, bool, tuple, type(None))) else "..."


def _table(names: dict[str, Any]) -> list[str]:
    rows = ["| name | what it is |", "| --- | --- |"]
    for name, each in names.items():
        signature = _signature(name, each).replace("|", "\\|")
        rows.append(f"| `{signature}` | {summary(each).replace('|', chr(92) + '|')} |")
    return [*rows, ""]


def page() -> str:
    """The reference as Markdown."""
    lines = [
        "# Reference of `functrans.torch`",
        "",
        "Written by `python -m functrans.torch.reference` from the docstrings, each of which has an "
        "example: `help(torch.cumsum)`. [torch.md](torch.md) is the guide.",
        "",
        "## `functrans.torch`",
        "",
        "Functions of tensors are also methods, where PyTorch has them as methods; a method whose name "
        "ends in `_` writes its result into the tensor.",
        "",
        *_table({n: f for n, f in functions().items() if n != "Tensor"}),
        "## `functrans.torch.Tensor`",
        "",
        "What is not a function as well:",
        "",
        *_table({n: m for n, m in members(torch.Tensor).items() if FUNCTIONS.get(n) is not m}),
    ]
    for name, about, names in modules():
        lines += [f"## `functrans.torch.{name}`", "", about, "", *_table(names)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
