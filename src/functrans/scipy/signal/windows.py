"""scipy.signal.windows for traced parameters: the width, beta or alpha of a window."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates
from functrans.scipy.loading import load
from functrans.surface.table import as_array, known

sw = load("scipy.signal.windows")
special = load("scipy.special")

__all__ = [
    "exponential",
    "gaussian",
    "general_cosine",
    "general_gaussian",
    "general_hamming",
    "kaiser",
    "tukey",
]


def __dir__() -> list[str]:
    return __all__


def _length(M: int, sym: bool) -> int:
    """How many samples to compute: a periodic window is one of a longer one without its end."""
    return M if sym or M <= 1 else M + 1


def _places(M: int, sym: bool) -> Any:
    n = _length(M, sym)
    return np.arange(n) - (n - 1) / 2


@delegates(sw.gaussian)
def gaussian(M: int, std: Any, sym: bool = True, *, xp: Any = None, device: Any = None) -> Any:
    """A Gaussian window with standard deviation `std`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import gaussian
    >>> float(grad(lambda std: gaussian(3, std)[0])(1.0).round(6))
    0.606531
    """
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * std
    return np.exp(-(_places(M, sym) ** 2) / (2 * std * std))[:M]


@delegates(sw.general_gaussian)
def general_gaussian(
    M: int, p: Any, sig: Any, sym: bool = True, *, xp: Any = None, device: Any = None
) -> Any:
    """A generalized Gaussian window exp(-abs(n / sig)^2p / 2).

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import general_gaussian
    >>> float(grad(lambda sig: general_gaussian(3, 1.0, sig)[0])(1.0).round(6))
    0.606531
    """
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * sig
    sizes = np.abs(_places(M, sym))
    middle = sizes == 0
    ratio = np.where(middle, 1, sizes) / sig
    power = np.where(middle, 0, np.abs(ratio) ** (2 * p))
    return np.exp(-0.5 * power)[:M]


@delegates(sw.kaiser)
def kaiser(M: int, beta: Any, sym: bool = True, *, xp: Any = None, device: Any = None) -> Any:
    """Kaiser's window I0(beta sqrt(1 - x²)) / I0(beta).

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import kaiser
    >>> float(grad(lambda beta: kaiser(3, beta)[0])(1.0).round(6))
    -0.35258
    """
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * beta
    n = _length(M, sym)
    inside = np.sqrt(np.clip(1 - (_places(M, sym) / ((n - 1) / 2)) ** 2, 0, None))
    return (special.i0(beta * inside) / special.i0(beta))[:M]


@delegates(sw.tukey)
def tukey(M: int, alpha: Any = 0.5, sym: bool = True, *, xp: Any = None, device: Any = None) -> Any:
    """A window of ones with cosine tapers, which make up `alpha` of it.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import tukey
    >>> float(grad(lambda alpha: tukey(9, alpha)[1])(0.5).round(6))
    -1.570796
    """
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * alpha
    n = _length(M, sym)
    if known(as_array(alpha) <= 0):
        return np.ones(M) + 0 * alpha
    alpha = np.minimum(alpha, 1)
    from_end = np.minimum(np.arange(n), n - 1 - np.arange(n)) / (n - 1)
    width = np.floor(stop_gradient(as_array(alpha)) * (n - 1) / 2)
    tapered = np.minimum(np.arange(n), n - 1 - np.arange(n)) <= width
    taper = 0.5 * (1 + np.cos(pi * (2 * from_end / alpha - 1)))
    return np.where(tapered, taper, 1)[:M]


@delegates(sw.exponential)
def exponential(
    M: int,
    center: Any = None,
    tau: Any = 1.0,
    sym: bool = True,
    *,
    xp: Any = None,
    device: Any = None,
) -> Any:
    """A window that decays as exp(-abs(n - center) / tau).

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import exponential
    >>> float(grad(lambda tau: exponential(3, tau=tau)[0])(1.0).round(6))
    0.367879
    """
    if sym and center is not None:
        raise ValueError("If sym==True, center must be None.")
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * tau
    n = _length(M, sym)
    middle = (n - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(n) - middle) / tau)[:M]


@delegates(sw.general_cosine)
def general_cosine(M: int, a: Any, sym: bool = True) -> Any:
    """A weighted sum of cosines, with weights a.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import general_cosine
    >>> grad(lambda a: general_cosine(5, a)[2])(np.array([0.5, 0.5]))
    array([1., 1.])
    """
    weights = as_array(a)
    if M <= 1:
        return np.ones(max(M, 0)) + 0 * weights[0]
    angles = np.linspace(-pi, pi, _length(M, sym))
    terms = np.stack([np.cos(k * angles) for k in range(shape_of(weights)[0])])
    return (weights @ terms)[:M]


@delegates(sw.general_hamming)
def general_hamming(
    M: int, alpha: Any, sym: bool = True, *, xp: Any = None, device: Any = None
) -> Any:
    """The window alpha - (1 - alpha) cos(2π n / (M - 1)).

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal.windows import general_hamming
    >>> float(grad(lambda alpha: general_hamming(5, alpha)[0])(0.5))
    2.0
    """
    return general_cosine(M, [alpha, 1.0 - alpha], sym)
