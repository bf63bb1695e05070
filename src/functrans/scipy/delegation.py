"""Functions with SciPy's names, which leave calls without traced values to SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

from functrans.core import errors
from functrans.surface.table import PLAIN, holds_tracer

Function = TypeVar("Function", bound=Callable[..., Any])


def is_traced(*values: Any) -> bool:
    """Whether a value is traced, or a list, tuple or dict among them contains a traced value."""
    for value in values:
        if type(value) in PLAIN:
            continue
        if holds_tracer(value):
            return True
        if isinstance(value, dict) and any(map(holds_tracer, value.values())):
            return True
    return False


def delegates(reference: Any) -> Callable[[Function], Function]:
    """Decorate a function for traced values; calls without any go to SciPy's, `reference`."""

    def decorate(function: Function) -> Function:
        traced = is_traced

        def call(*args: Any, **kwargs: Any) -> Any:
            if traced(*args) or traced(*kwargs.values()):
                return function(*args, **kwargs)
            return reference(*args, **kwargs)

        # doctest tells where a function belongs by its globals
        made = FunctionType(
            call.__code__, function.__globals__, function.__name__, None, call.__closure__
        )
        update_wrapper(made, function)
        return made  # type: ignore[return-value]

    return decorate


def refuse_option(name: str, remedy: str, **options: Any) -> None:
    """Refuse options of a SciPy function that traced values do not support."""
    for option, value in options.items():
        raise errors.MissingRuleError(
            f"{name} with {option}={value!r} has no rule for traced values, at "
            f"{errors.user_location()}. {remedy}"
        )
