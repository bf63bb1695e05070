"""docs/torch-reference.md, which lists the public names of `functrans.torch`.

python -m functrans.torch.reference > docs/torch-reference.md
"""

from __future__ import annotations

import inspect
from typing import Any

import functrans.torch as torch
from functrans.torch.namespace import functions, members, modules
from functrans.torch.registry import FUNCTIONS


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
