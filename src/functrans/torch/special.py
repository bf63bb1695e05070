"""torch.special: special functions, most of them under SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ops import normal
from functrans.torch.pointwise import digamma as digamma
from functrans.torch.pointwise import erf as erf
from functrans.torch.pointwise import erfc as erfc
from functrans.torch.pointwise import erfinv as erfinv
from functrans.torch.pointwise import lgamma, scipy_special, sigmoid
from functrans.torch.pointwise import logit as logit
from functrans.torch.reducing import log_softmax as log_softmax
from functrans.torch.reducing import logsumexp as logsumexp
from functrans.torch.reducing import softmax as softmax
from functrans.torch.registry import FUNCTIONS, composed, export

__all__ = [
    "bessel_j0",
    "bessel_j1",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]

exp2, expm1, log1p, round = (FUNCTIONS[name] for name in ("exp2", "expm1", "log1p", "round"))
psi, expit, gammaln = digamma, sigmoid, lgamma


def _of_scipy(name: str, theirs: str | None = None) -> Any:
    @composed(f"Special{name.capitalize()}Backward0")
    def function(input: Any) -> Any:
        return scipy_special(theirs or name, input)

    function.__name__ = name
    function.__doc__ = f"`scipy.special.{theirs or name}`."
    return function


i0, i0e, i1, i1e = map(_of_scipy, ("i0", "i0e", "i1", "i1e"))
bessel_j0, bessel_j1 = _of_scipy("bessel_j0", "j0"), _of_scipy("bessel_j1", "j1")
erfcx, entr = _of_scipy("erfcx"), _of_scipy("entr")


@composed("SpecialNdtrBackward0")
def ndtr(x: Any) -> Any:
    """The cumulative distribution function of the normal distribution.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """
    return scipy_special("ndtr", x, normal.normal_cdf)


@composed("SpecialNdtriBackward0")
def ndtri(x: Any) -> Any:
    """The inverse of `ndtr`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.special.ndtri(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 1.2816])
    """
    return scipy_special("ndtri", x, normal.normal_quantile)


@composed("SpecialLogNdtrBackward0")
def log_ndtr(x: Any) -> Any:
    """The logarithm of `ndtr`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.special.log_ndtr(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return scipy_special("log_ndtr", x)


@composed("XlogyBackward0")
def xlogy(input: Any, other: Any) -> Any:
    """x log(y), and 0 where x is 0.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    if not hasattr(other, "dtype") and input.dtype.kind == "f":
        other = input.dtype.type(other)
    return input * np.log(np.where(input == 0, 1, other)) + 0 * other


@composed("SincBackward0")
def sinc(x: Any) -> Any:
    """The normalized sinc function: sin(pi x) / (pi x).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.sinc(torch.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return np.sinc(x)


export("i0")(i0)
export("xlogy")(xlogy)
export("sinc")(sinc)
