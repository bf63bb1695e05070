"""Methods of distributions, called on the class with parameters or on an instance that holds them.

SciPy has objects where we have classes: `norm.logpdf(x, loc, scale)` and `norm(loc, scale).logpdf(x)` are
written the same way for both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from types import MethodType
from typing import Any

from functrans.core import errors
from functrans.surface.table import holds_tracer


class FrozenDistribution:
    """A distribution with its parameters; the class itself is the distribution without them."""

    name: str
    scipys: Any  # SciPy's distribution
    args: tuple[Any, ...]
    kwds: dict[str, Any]

    def __init__(self, *args: Any, **kwds: Any) -> None:
        self.args, self.kwds = args, kwds

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwds.items())]
        return f"{self.name}({', '.join(given)})"

    def parameters_of(self, method: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What a method is given in addition to its own arguments."""
        return self.args, self.kwds

    @classmethod
    def freeze(cls, *args: Any, **kwds: Any) -> Any:
        """The distribution with these parameters."""
        return cls(*args, **kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.scipys, name):
            raise AttributeError(f"{self.name} has no attribute {name!r}")
        if holds_tracer((self.args, tuple(self.kwds.values()))):
            raise no_rule(self.name, name)
        frozen = getattr(self.scipys(*self.args, **self.kwds), name)
        return refusing(self.name, name, frozen) if callable(frozen) else frozen


def no_rule(distribution: str, name: str) -> errors.MissingRuleError:
    """The error for a method for which there is no formula."""
    remedy = (
        "Draw from functrans.random instead."
        if name == "rvs"
        else "Compute it from the density or the distribution function."
    )
    return errors.MissingRuleError(
        f"scipy.stats.{distribution}.{name} has no rule for traced values, at "
        f"{errors.user_location()}. {remedy}"
    )


def refusing(distribution: str, name: str, function: Any) -> Callable[..., Any]:
    """SciPy's function, which refuses traced values."""

    def call(*args: Any, **kwds: Any) -> Any:
        if holds_tracer((args, tuple(kwds.values()))):
            raise no_rule(distribution, name)
        return function(*args, **kwds)

    return call


class Method:
    """A method that plain values take to SciPy, and traced ones to our formula.

    The arguments of the formula are the class, those of the method, and the parameters of the distribution.
    """

    def __init__(self, formula: Callable[..., Any]) -> None:
        self.formula = formula
        self.__name__ = formula.__name__
        self.__doc__ = formula.__doc__
        code = formula.__code__
        self.first = code.co_varnames[1 : code.co_argcount]  # before the parameters

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Any]:
        method = MethodType(self.call, owner)
        if instance is None:
            return method

        def frozen(*arguments: Any, **named: Any) -> Any:
            rest = [named.pop(name) for name in self.first[len(arguments) :] if name in named]
            args, kwds = instance.parameters_of(self.__name__)
            return method(*arguments, *rest, *args, **named, **kwds)

        frozen.__name__ = self.__name__
        frozen.__doc__ = self.__doc__
        return frozen

    @cached_property
    def call(self) -> Callable[..., Any]:
        formula, name = self.formula, self.__name__

        def method(owner: Any, *args: Any, **kwds: Any) -> Any:
            if not holds_tracer((args, tuple(kwds.values()))):
                return getattr(owner.scipys, name)(*args, **kwds)
            return formula(owner, *args, **kwds)

        method.__name__ = name
        method.__doc__ = self.__doc__
        method.__signature__ = inspect.signature(formula)  # type: ignore[attr-defined]
        return method


def read_parameters(
    name: str, names: tuple[str, ...], defaults: dict[str, Any], args: Any, kwds: Any
) -> list[Any]:
    """The parameters of a distribution in order, as Python would bind them."""
    if len(args) > len(names):
        raise TypeError(f"{name} takes {len(names)} parameters, but {len(args)} were given")
    found = dict(zip(names, args, strict=False))
    for key, value in kwds.items():
        if key not in names:
            raise TypeError(f"{name} has no parameter {key!r}; it has {', '.join(names)}")
        if key in found:
            raise TypeError(f"{name} got two values for its parameter {key!r}")
        found[key] = value
    missing = [key for key in names if key not in found and key not in defaults]
    if missing:
        raise TypeError(f"{name} needs its parameter {missing[0]!r}")
    return [found[key] if key in found else defaults[key] for key in names]
