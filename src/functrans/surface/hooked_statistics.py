"""Hooks for Python's module `statistics`, whose functions convert their data to fractions.

They compute with NumPy's functions if a number is traced. Errors about the data are those of `statistics`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.hooks import Hook
from functrans.surface.table import as_array, holds_tracer, known


def _sample(data: Any) -> Any:
    """The data as a list, or a traced array: an iterator can be read only once."""
    is_whole = isinstance(data, (Tracer, list, tuple)) or not hasattr(data, "__iter__")
    return data if is_whole else list(data)


def _weighted_mean(x: Any, weights: Any = None) -> Any:
    if weights is None:
        return np.mean(x)
    given = as_array(weights)
    return np.sum(x * given) / np.sum(given)


def _harmonic_mean(x: Any, weights: Any = None) -> Any:
    return 1 / _weighted_mean(1 / x, weights)


def _variance(x: Any, xbar: Any = None) -> Any:
    return np.sum((x - (np.mean(x) if xbar is None else xbar)) ** 2) / (len(x) - 1)


def _population_variance(x: Any, mu: Any = None) -> Any:
    return np.mean((x - (np.mean(x) if mu is None else mu)) ** 2)


def _covariance(x: Any, y: Any) -> Any:
    other = as_array(y)
    return np.sum((x - np.mean(x)) * (other - np.mean(other))) / (len(x) - 1)


def _correlation(x: Any, y: Any) -> Any:
    return _covariance(x, y) / np.sqrt(_variance(x) * _variance(as_array(y)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "fmean": _weighted_mean,
    "geometric_mean": lambda x: np.exp(np.mean(np.log(x))),
    "harmonic_mean": _harmonic_mean,
    "median": np.median,
    "pvariance": _population_variance,
    "pstdev": lambda x, mu=None: np.sqrt(_population_variance(x, mu)),
    "variance": _variance,
    "stdev": lambda x, xbar=None: np.sqrt(_variance(x, xbar)),
    "covariance": _covariance,
    "correlation": _correlation,
}
_POSITIVE = frozenset({"geometric_mean", "harmonic_mean"})
_PAIRS = frozenset({"covariance", "correlation"})


def _hook(name: str, function: Callable[..., Any]) -> Hook:
    original = getattr(statistics, name)

    @wraps(original)
    def hook(data: Any, *args: Any, **kwargs: Any) -> Any:
        data, args = _sample(data), tuple(map(_sample, args))
        if not holds_tracer((data, *args, *kwargs.values())):
            return original(data, *args, **kwargs)
        length = len(data)
        stand_ins: Any = [float(k + 1) for k in range(length)]
        if length < 2 or name in _PAIRS:  # raises, if there are too few numbers
            original(
                stand_ins, *([float(k + 1) for k in range(len(y))] for y in args[: name in _PAIRS])
            )
        values = as_array(data)
        if name in _POSITIVE and known(np.min(values) <= 0):
            original([*stand_ins, -1.0])
        return function(values, *args, **kwargs)

    return Hook(hook, True)


_hooks = {name: _hook(name, function) for name, function in _FUNCTIONS.items()}


def find(module: str, name: str, original: Any) -> Hook | None:
    """The hook for a function of `statistics`."""
    return _hooks.get(name)
