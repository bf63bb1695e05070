"""Activations as modules."""

from __future__ import annotations

from typing import Any

from functrans.torch.nn import functional as F
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.tensor import Tensor

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
]


def _plain(name: str, function: Any) -> type[Module]:
    """A module that is a function without options."""

    def __init__(self: Any, inplace: bool = False) -> None:
        Module.__init__(self)
        object.__setattr__(self, "inplace", inplace)

    def forward(self: Any, input: Tensor) -> Tensor:
        return function(input)  # type: ignore[no-any-return]

    def extra_repr(self: Any) -> str:
        return "inplace=True" if self.inplace else ""

    members: dict[str, Any] = {
        "__init__": __init__,
        "forward": forward,
        "extra_repr": extra_repr,
        "__doc__": f"`nn.functional` as a module: {name}.",
        "__module__": __name__,
    }
    return type(name, (Module,), members)


ReLU: Any = _plain("ReLU", F.relu)
ReLU6: Any = _plain("ReLU6", F.relu6)
Tanh: Any = _plain("Tanh", F.tanh)
Sigmoid: Any = _plain("Sigmoid", F.sigmoid)
SiLU: Any = _plain("SiLU", F.silu)
SELU: Any = _plain("SELU", F.selu)
Mish: Any = _plain("Mish", F.mish)
LogSigmoid: Any = _plain("LogSigmoid", F.logsigmoid)
Softsign: Any = _plain("Softsign", F.softsign)


class GELU(Module):
    """x times the cumulative function of the normal distribution."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """x where it is positive, and a part of it elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """x where it is positive, and alpha (exp(x) - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """`LeakyReLU` with a slope that is learned."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        from functrans.torch.creation import full

        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax(Module):
    """exp(x) / sum exp(x) along a dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)
