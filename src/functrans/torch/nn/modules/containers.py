"""Containers of modules or parameters: sequences, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from functrans.torch.errors import TensorIndexError, TensorTypeError
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.tensor import Tensor

__all__ = [
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class _Listed(Module):
    """A module that behaves as a list of modules, named "0", "1", and so on."""

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise TensorIndexError(f"index {index} is out of range")
        return index % len(self)

    def _keep(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        self._modules.update((str(k), module) for k, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(dict(list(self._modules.items())[index]))
        return list(self)[self._place(index)]

    def _of(self, modules: dict[str, Module]) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[list(self._modules)[self._place(index)]] = module

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        chosen = names[index] if isinstance(index, slice) else [names[self._place(index)]]
        self._keep([module for name, module in self._modules.items() if name not in chosen])

    def append(self, module: Module) -> Self:
        """Append a module.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(torch.nn.ModuleList().append(torch.nn.ReLU()))
        1
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append several modules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(torch.nn.ModuleList().extend([torch.nn.ReLU(), torch.nn.Tanh()]))
        2
        """
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at an index.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Sequential(torch.nn.ReLU()).insert(0, torch.nn.Tanh())[0]
        Tanh()
        """
        modules = list(self)
        modules.insert(index, module)
        self._keep(modules)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove a module, and return it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()]).pop(0)
        ReLU()
        """
        module = self[index]
        del self[index]
        return module  # type: ignore[no-any-return]


class Sequential(_Listed):
    """Applies modules one after the other.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten(0))(torch.tensor([[-1.0, 2.0]]))
    tensor([0., 2.])
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _of(self, modules: dict[str, Module]) -> Sequential:
        return type(self)(modules)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)


class ModuleList(_Listed):
    """A list of modules, which are registered as submodules.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    >>> len(list(layers.parameters()))
    6
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _grouped_children(self) -> Iterator[tuple[str, str]]:
        """The submodules and their text, with equal neighbors grouped."""
        groups: list[tuple[list[int], str]] = []
        for k, module in enumerate(self):
            text = repr(module)
            if groups and groups[-1][1] == text:
                groups[-1][0].append(k)
            else:
                groups.append(([k], text))
        for places, text in groups:
            if len(places) == 1:
                yield str(places[0]), text
            else:
                yield f"{places[0]}-{places[-1]}", f"{len(places)} x {text}"

    def _of(self, modules: dict[str, Module]) -> ModuleList:
        return ModuleList(modules.values())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """A dictionary of modules, which are registered as submodules.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ModuleDict({"relu": torch.nn.ReLU()})["relu"]
    ReLU()
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Any) -> None:
        """Add modules, or replace those with the same names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> modules = torch.nn.ModuleDict()
        >>> modules.update({"act": torch.nn.ReLU()})
        >>> "act" in modules
        True
        """
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def pop(self, key: str) -> Module:
        """Remove a module, and return it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.ModuleDict({"act": torch.nn.ReLU()}).pop("act")
        ReLU()
        """
        return self._modules.pop(key)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Remove all modules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.ModuleDict({"act": torch.nn.ReLU()}).clear()
        """
        self._modules.clear()

    def keys(self) -> Any:
        """The names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.ModuleDict({"act": torch.nn.ReLU()}).keys())
        ['act']
        """
        return self._modules.keys()

    def values(self) -> Any:
        """The modules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.ModuleDict({"act": torch.nn.ReLU()}).values())
        [ReLU()]
        """
        return self._modules.values()

    def items(self) -> Any:
        """Pairs of names and modules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.ModuleDict({"act": torch.nn.ReLU()}).items())
        [('act', ReLU())]
        """
        return self._modules.items()


def _parameter(value: Any) -> Any:
    if not isinstance(value, Tensor):
        raise TensorTypeError(f"expected a tensor or parameter, not {type(value).__name__}")
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """A list of parameters, which are registered with the module.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ParameterList([torch.zeros(2), torch.zeros(3)])
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Parameter containing: [torch.float32 of size 3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> ParameterList:
        """Append a parameter.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(torch.nn.ParameterList().append(torch.zeros(2)))
        1
        """
        self._parameters[str(len(self))] = _parameter(value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append several parameters.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(torch.nn.ParameterList().extend([torch.zeros(2), torch.zeros(2)]))
        2
        """
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int) -> Parameter:
        return list(self._parameters.values())[index]  # type: ignore[no-any-return]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[str(range(len(self))[index])] = _parameter(value)

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({k}): Parameter containing: [{p.dtype} of size {_size(p)}]"
            for k, p in enumerate(self)
        )


class ParameterDict(Module):
    """A dictionary of parameters, which are registered with the module.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ParameterDict({"w": torch.zeros(2)})["w"]
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        for name, value in dict(parameters or {}).items():
            self[name] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = _parameter(value)

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def keys(self) -> Any:
        """The names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.ParameterDict({"w": torch.zeros(2)}).keys())
        ['w']
        """
        return self._parameters.keys()

    def values(self) -> Any:
        """The parameters.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> [w.shape for w in torch.nn.ParameterDict({"w": torch.zeros(2)}).values()]
        [torch.Size([2])]
        """
        return self._parameters.values()

    def items(self) -> Any:
        """Pairs of names and parameters.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> dict(torch.nn.ParameterDict({"w": torch.zeros(2)}).items())["w"].shape
        torch.Size([2])
        """
        return self._parameters.items()

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({name}): Parameter containing: [torch.{p.dtype.legacy}Tensor of size {_size(p)}]"
            for name, p in self.items()
        )


def _size(parameter: Tensor) -> str:
    return "x".join(map(str, parameter.shape))
