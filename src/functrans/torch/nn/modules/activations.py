"""Activations as modules: each has the options of its function as attributes."""

from __future__ import annotations

import inspect
from typing import Any

from functrans.torch.nn import functional as F
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
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
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """An activation whose options are attributes, given by position or by name."""

    function: Any = None
    options: dict[str, Any] = {}  # noqa: RUF012
    shown: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v)
            for n, v in self.options.items()
        ]
        given = inspect.Signature(names).bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if value is inspect.Parameter.empty:
                raise TypeError(f"missing a required argument: {name!r}")
            object.__setattr__(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        values = {name: getattr(self, name) for name in self.options}
        return type(self).function(input, **values)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in self.shown]
        return ", ".join(parts + ["inplace=True"] * bool(getattr(self, "inplace", False)))


class ReLU(_Activation):
    """x where it is positive, and 0 elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    options = {"inplace": False}  # noqa: RUF012

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_Activation):
    """x clamped between 0 and 6.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    function = staticmethod(F.relu6)
    options = {"inplace": False}  # noqa: RUF012


class Tanh(Module):
    """The hyperbolic tangent.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)  # type: ignore[no-any-return]


class Sigmoid(Module):
    """The sigmoid function: 1 / (1 + exp(-x)).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Sigmoid()(torch.tensor(0.0))
    tensor(0.5000)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)  # type: ignore[no-any-return]


class SiLU(_Activation):
    """x * sigmoid(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.SiLU()(torch.tensor(1.0))
    tensor(0.7311)
    """

    function = staticmethod(F.silu)
    options = {"inplace": False}  # noqa: RUF012


class SELU(_Activation):
    """The self-normalizing exponential linear unit.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.SELU()(torch.tensor(1.0))
    tensor(1.0507)
    """

    function = staticmethod(F.selu)
    options = {"inplace": False}  # noqa: RUF012


class CELU(_Activation):
    """x where it is positive, and alpha (exp(x / alpha) - 1) elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.CELU(2.0)(torch.tensor(-1.0))
    tensor(-0.7869)
    """

    function = staticmethod(F.celu)
    options = {"alpha": 1.0, "inplace": False}  # noqa: RUF012
    shown = ("alpha",)


class Mish(_Activation):
    """x * tanh(softplus(x)).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Mish()(torch.tensor(1.0))
    tensor(0.8651)
    """

    function = staticmethod(F.mish)
    options = {"inplace": False}  # noqa: RUF012


class LogSigmoid(_Activation):
    """The logarithm of the sigmoid.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.LogSigmoid()(torch.tensor(0.0))
    tensor(-0.6931)
    """

    function = staticmethod(F.logsigmoid)


class Softsign(_Activation):
    """x / (1 + |x|).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Softsign()(torch.tensor(1.0))
    tensor(0.5000)
    """

    function = staticmethod(F.softsign)


class Tanhshrink(_Activation):
    """x - tanh(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Tanhshrink()(torch.tensor(1.0))
    tensor(0.2384)
    """

    function = staticmethod(F.tanhshrink)


class GELU(_Activation):
    """x times the cumulative distribution function of the normal distribution.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.GELU()(torch.tensor(1.0))
    tensor(0.8413)
    """

    function = staticmethod(F.gelu)
    options = {"approximate": "none"}  # noqa: RUF012
    shown = ("approximate",)


class LeakyReLU(_Activation):
    """x where it is positive, and `negative_slope` times x elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    function = staticmethod(F.leaky_relu)
    options = {"negative_slope": 0.01, "inplace": False}  # noqa: RUF012
    shown = ("negative_slope",)


class ELU(_Activation):
    """x where it is positive, and alpha (exp(x) - 1) elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    function = staticmethod(F.elu)
    options = {"alpha": 1.0, "inplace": False}  # noqa: RUF012
    shown = ("alpha",)


class Softplus(_Activation):
    """log(1 + exp(beta x)) / beta.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Softplus()(torch.tensor(0.0))
    tensor(0.6931)
    """

    function = staticmethod(F.softplus)
    options = {"beta": 1.0, "threshold": 20.0}  # noqa: RUF012
    shown = ("beta", "threshold")


class Hardtanh(_Activation):
    """x clamped between two bounds.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Hardtanh(-2.0, 2.0)(torch.tensor([-3.0, 1.0]))
    tensor([-2.,  1.])
    """

    function = staticmethod(F.hardtanh)
    options = {"min_val": -1.0, "max_val": 1.0, "inplace": False}  # noqa: RUF012
    shown = ("min_val", "max_val")


class Hardsigmoid(_Activation):
    """0 below -3, 1 above 3, and linear in between.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor(0.0))
    tensor(0.5000)
    """

    function = staticmethod(F.hardsigmoid)
    options = {"inplace": False}  # noqa: RUF012

    def extra_repr(self) -> str:
        return ""


class Hardswish(Hardsigmoid):
    """x times `Hardsigmoid` of x.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Hardswish()(torch.tensor(1.0))
    tensor(0.6667)
    """

    function = staticmethod(F.hardswish)


class Hardshrink(_Activation):
    """x where |x| is larger than a bound, and 0 elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-0.4, 2.0]))
    tensor([0., 2.])
    """

    function = staticmethod(F.hardshrink)
    options = {"lambd": 0.5}  # noqa: RUF012

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Hardshrink):
    """x moved toward 0 by `lambd`, but not past it.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Softshrink()(torch.tensor([-0.4, 2.0]))
    tensor([0.0000, 1.5000])
    """

    function = staticmethod(F.softshrink)


class Threshold(_Activation):
    """x where it is larger than a bound, and a given number elsewhere.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Threshold(1.0, -5.0)(torch.tensor([0.0, 2.0]))
    tensor([-5.,  2.])
    """

    function = staticmethod(F.threshold)
    options = {  # noqa: RUF012
        "threshold": inspect.Parameter.empty,
        "value": inspect.Parameter.empty,
        "inplace": False,
    }
    shown = ("threshold", "value")


class GLU(_Activation):
    """The first half of x times the sigmoid of the second half.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.GLU()(torch.tensor([3.0, 0.0]))
    tensor([1.5000])
    """

    function = staticmethod(F.glu)
    options = {"dim": -1}  # noqa: RUF012
    shown = ("dim",)


class PReLU(Module):
    """`LeakyReLU` with a learned slope.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        from functrans.torch.creation import full

        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softmax(_Activation):
    """The softmax along a dimension: exp(x) / sum exp(x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    function = staticmethod(F.softmax)
    options = {"dim": None}  # noqa: RUF012
    shown = ("dim",)


class Softmin(Softmax):
    """The softmax of -x along a dimension.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Softmin(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    function = staticmethod(F.softmin)


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.LogSoftmax(dim=0)(torch.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    function = staticmethod(F.log_softmax)
