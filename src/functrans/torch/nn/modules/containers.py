"""Modules that hold others: in a row, in a list, in a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from functrans.torch.errors import TensorTypeError
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter

__all__ = [
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class Sequential(Module):
    """Modules one after the other.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten(0))(torch.tensor([[-1.0, 2.0]]))
    tensor([0., 2.])
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            named: Iterable[tuple[str, Module]] = modules[0].items()
        else:
            named = ((str(k), module) for k, module in enumerate(modules))
        for name, module in named:
            if module is not None and not isinstance(module, Module):
                raise TensorTypeError(f"{type(module).__name__} is not a Module subclass")
            self._modules[name] = module

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        modules = list(self._modules.values())
        return type(self)(*modules[index]) if isinstance(index, slice) else modules[index]

    def append(self, module: Module) -> Sequential:
        self._modules[str(len(self))] = module
        return self


class ModuleList(Module):
    """Modules in a list, known as parts of the module that holds it."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def append(self, module: Module) -> ModuleList:
        self._modules[str(len(self))] = module
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        modules = list(self._modules.values())
        return ModuleList(modules[index]) if isinstance(index, slice) else modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[str(range(len(self))[index])] = module


class ModuleDict(Module):
    """Modules by name, known as parts of the module that holds it."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Any) -> None:
        for name, module in dict(modules).items():
            self._modules[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self._modules[key] = module

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        return self._modules.keys()

    def values(self) -> Any:
        return self._modules.values()

    def items(self) -> Any:
        return self._modules.items()


class ParameterList(Module):
    """Parameters in a list, known as parts of the module that holds it."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self._parameters[str(len(self))] = parameter
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int) -> Parameter:
        return list(self._parameters.values())[index]  # type: ignore[no-any-return]


class ParameterDict(Module):
    """Parameters by name, known as parts of the module that holds it."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        for name, value in dict(parameters or {}).items():
            self[name] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def items(self) -> Any:
        return self._parameters.items()
