"""Module: named parameters, buffers and submodules, and hooks around `forward`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from functrans.torch import dtypes
from functrans.torch.autograd.nodes import new_table
from functrans.torch.boundary import explained
from functrans.torch.conversions import conversion
from functrans.torch.errors import TensorTypeError
from functrans.torch.nn.modules.hooks import BackwardWatcher, Hooked, WithKwargs
from functrans.torch.nn.modules.states import load_state
from functrans.torch.nn.parameter import Parameter
from functrans.torch.tensor import Tensor

_M = TypeVar("_M", bound="Module")


class Module(Hooked):
    """The base class of models and their parts: subclass it, and define `forward`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Shift(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.by = torch.nn.Parameter(torch.ones(1))
    ...
    ...     def forward(self, x):
    ...         return x + self.by
    >>> Shift()(torch.zeros(1))
    tensor([1.], grad_fn=<AddBackward0>)
    """

    training: bool

    def __init__(self) -> None:
        put = super().__setattr__
        put("training", True)
        put("_parameters", OrderedDict())
        put("_buffers", OrderedDict())
        put("_temporary", set())  # the names of buffers that are not saved
        put("_modules", OrderedDict())
        put("_forward_pre_hooks", new_table())
        put("_forward_hooks", new_table())
        put("_backward_hooks", new_table())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output of the module; override it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.ReLU().forward(torch.tensor([-1.0]))
        tensor([0.])
        """
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks):
            try:
                return self.forward(*args, **kwargs)
            except Exception as error:
                better = explained(error, type(self).__name__, args, kwargs)
                if better is error:
                    raise
                raise better from error
        for hook in list(self._forward_pre_hooks.values()):
            if isinstance(hook, WithKwargs):
                changed = hook.hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
                continue
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        watcher = BackwardWatcher(self) if self._backward_hooks else None
        if watcher is not None:
            args = watcher.inputs(args)
        out = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            if isinstance(hook, WithKwargs):
                changed = hook.hook(self, args, kwargs, out)
            else:
                changed = hook(self, args, out)
            if changed is not None:
                out = changed
        return out if watcher is None else watcher.outputs(out)

    # Names.

    def __setattr__(self, name: str, value: Any) -> None:
        homes = self.__dict__.get("_parameters"), self.__dict__.get("_modules")
        if isinstance(value, (Parameter, Module)):
            if homes[0] is None:
                kind = "parameters" if isinstance(value, Parameter) else "module"
                raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
            for home in (self.__dict__, self._parameters, self._buffers, self._modules):
                home.pop(name, None)
            (self._parameters if isinstance(value, Parameter) else self._modules)[name] = value
            return
        for kind in ("_parameters", "_modules", "_buffers"):
            home = self.__dict__.get(kind)
            if home is not None and name in home:
                if value is not None and (kind != "_buffers" or not isinstance(value, Tensor)):
                    wanted = {
                        "_parameters": "torch.nn.Parameter or None",
                        "_modules": "torch.nn.Module or None",
                        "_buffers": "torch.Tensor or None",
                    }[kind]
                    given = value.type() if isinstance(value, Tensor) else type(value).__name__
                    what = {"_modules": "child module"}.get(kind, kind[1:-1])
                    raise TensorTypeError(
                        f"cannot assign '{given}' as {what} '{name}' ({wanted} expected)"
                    )
                home[name] = value
                return
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            home = self.__dict__.get(kind)
            if home is not None and name in home:
                return home[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for home in (self._parameters, self._buffers, self._modules):
            if name in home:
                del home[name]
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None declares the name without one.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Module()
        >>> model.register_parameter("bias", None)
        >>> model.bias is None
        True
        """
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is part of the state but not a parameter.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Module()
        >>> model.register_buffer("scale", torch.ones(1))
        >>> model.scale
        tensor([1.])
        """
        self._buffers[name] = tensor
        if not persistent:
            self._temporary.add(name)

    def register_module(self, name: str, module: Any) -> None:
        """Add a module under a name.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Sequential()
        >>> model.add_module("act", torch.nn.ReLU())
        >>> model.act
        ReLU()
        """
        self._modules[name] = module

    add_module = register_module

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all its submodules, with their names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
        ['', '0']
        """
        memo = set() if memo is None else memo
        if remove_duplicate:
            if self in memo:
                return
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all its submodules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(list(torch.nn.Sequential(torch.nn.ReLU()).modules()))
        2
        """
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules, with their names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.Sequential(torch.nn.ReLU()).named_children())
        [('0', ReLU())]
        """
        for name, module in self._modules.items():
            if module is not None:
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.Sequential(torch.nn.ReLU()).children())
        [ReLU()]
        """
        for _, module in self.named_children():
            yield module

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, tensor in getattr(module, kind).items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> [name for name, _ in torch.nn.Linear(2, 1).named_parameters()]
        ['weight', 'bias']
        """
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and its submodules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> [p.shape for p in torch.nn.Linear(2, 1).parameters()]
        [torch.Size([1, 2]), torch.Size([1])]
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> [name for name, _ in torch.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and its submodules.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> len(list(torch.nn.BatchNorm1d(2).buffers()))
        3
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.0".

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Sequential(torch.nn.ReLU()).get_submodule("0")
        ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            if name not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = module._modules[name]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "encoder.0.weight".

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).get_parameter("bias").shape
        torch.Size([1])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            raise AttributeError(f"{type(module).__name__} has no parameter `{name}`")
        return module._parameters[name]  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "encoder.1.running_mean".

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.BatchNorm1d(2).get_buffer("running_mean")
        tensor([0., 0.])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no buffer `{name}`")
        return module._buffers[name]  # type: ignore[no-any-return]

    # State.

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and buffers by name; they share memory with the module.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> list(torch.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        state: dict[str, Any] = OrderedDict()
        for path, module in self.named_modules(prefix=prefix.rstrip(".")):
            homes = [*module._parameters.items()]
            homes += [(n, b) for n, b in module._buffers.items() if n not in module._temporary]
            for name, tensor in homes:
                if tensor is not None:
                    key = f"{path}.{name}" if path else name
                    state[key] = tensor if keep_vars else tensor.detach()
        return state

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load the parameters and buffers from a dictionary.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> model.load_state_dict(torch.nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        return load_state(self, state_dict, strict, assign)

    def train(self, mode: bool = True) -> Self:
        """Switch this module and its submodules to training mode, or out of it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Dropout().eval().train().training
        True
        """
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self) -> Self:
        """Switch this module and its submodules to evaluation mode.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Choose whether all parameters require gradients.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or to zero.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> model(torch.ones(1, 2)).backward()
        >>> model.zero_grad()
        >>> model.weight.grad is None
        True
        """
        for parameter in self.parameters():
            if parameter._grad is not None:
                if set_to_none:
                    parameter._grad = None
                else:
                    parameter._grad = parameter._grad.detach()
                    parameter._grad.zero_()

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function on all submodules, and then on this module.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.ReLU())
        >>> _ = model.apply(lambda module: print(type(module).__name__))
        ReLU
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **options: Any) -> Self:
        """Convert floating point parameters and buffers to a dtype; the only device is the CPU.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        wanted, _ = conversion(*args, **options)
        if wanted is not None:
            for module in self.modules():
                for home in (module._parameters, module._buffers):
                    for tensor in home.values():
                        if tensor is not None and tensor.dtype.category > 1:
                            tensor.value = tensor.value.astype(wanted)
                            if tensor._grad is not None:
                                tensor._grad.value = tensor._grad.value.astype(wanted)
        return self

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).double().float().weight.dtype
        torch.float32
        """
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).double().weight.dtype
        torch.float64
        """
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).half().weight.dtype
        torch.float16
        """
        return self.to(dtypes.float16)

    def cpu(self) -> Self:
        """Return the module itself, which is already on the CPU.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.ReLU().cpu()
        ReLU()
        """
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise an error: there is no GPU.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.cuda.is_available()
        False
        """
        return self.to("cuda")

    # Text.

    def extra_repr(self) -> str:
        """The options to show in `repr`; override it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).extra_repr()
        'in_features=2, out_features=1, bias=True'
        """
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _grouped_children(self) -> Iterator[tuple[str, str]]:
        """The submodules and their text."""
        return ((name, repr(module)) for name, module in self._modules.items())

    def __repr__(self) -> str:
        lines = [line for line in self.extra_repr().split("\n") if line]
        children = []
        for names, text in self._grouped_children():
            first, *rest = text.split("\n")
            children.append("\n  ".join([f"({names}): {first}", *rest]))
        head = self._get_name() + "("
        if not children and len(lines) < 2:
            return head + "".join(lines) + ")"
        return head + "\n  " + "\n  ".join(lines + children) + "\n)"
