"""Transformed functions, such as `grad(f)`, as objects with a repr, a docstring, methods and pickles."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from functrans.core import errors
from functrans.core.hooks import original_of

# The parameters and the result of a function.
P = ParamSpec("P")
R = TypeVar("R")
# Those of a method without `self`, and `self`.
Q = ParamSpec("Q")
Instance = TypeVar("Instance")

# The attributes copied from the original function. The docstring is made when it is first read.
_KEPT = ("__module__", "__name__", "__qualname__", "__annotations__")


class _Docstring:
    """The docstring of a class, and that of its objects."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, made: TransformedFunction | None, owner: Any) -> str | None:
        return self.text if made is None else _docstring(made)


class TransformedFunction:
    """The base of all transformed functions.

    Each has `__wrapped__`, the original function, and can be made again: `_transform(function, **_options)`.
    Its `_summary` is the first sentence of its docstring, with {f} for the function and {argnums} for the
    arguments to differentiate with respect to.
    """

    __slots__ = ()

    __call__: Callable[..., Any]
    __name__: str
    __wrapped__: Callable[..., Any]
    _transform: Callable[..., Any]
    _options: dict[str, Any]
    _summary: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = _Docstring(cls.__doc__)  # type: ignore[assignment]

    def __repr__(self) -> str:
        parameters = inspect.signature(self._transform).parameters
        texts = [_label(self.__wrapped__)]
        for name, value in self._options.items():
            text = _label(value) if callable(value) else repr(value)
            if text != repr(parameters[name].default):
                texts.append(f"{name}={text}")
        return f"{self._transform.__name__}({', '.join(texts)})"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        if _is_found_by_name(self):  # as a decorated function is
            return self.__qualname__  # type: ignore[attr-defined]
        return _remade, (self._transform, self.__wrapped__, self._options)


class Transformed(TransformedFunction, functools.partial[Any]):
    """The result of a transform: a Python function that does the work, and how it was made.

    A `partial` without arguments calls it from C, at a third of the cost of a method `__call__`.
    """

    # Slots, because wrappers copy the __dict__ of the function that they wrap.
    __slots__ = ("_options", "_summary", "_transform")


def transformed(
    call: Callable[..., Any],
    function: Callable[..., Any],
    transform: Callable[..., Any],
    summary: str,
    **options: Any,
) -> Transformed:
    """The object that `transform(function, **options)` returns; `call` does the work."""
    function = original_of(function)
    made = Transformed(call)
    made._transform, made._options, made._summary = transform, options, summary
    keep_name(made, function)
    return made


def keep_name(made: Any, function: Callable[..., Any]) -> None:
    """Give a transformed function the name and attributes of the original."""
    # Like functools.update_wrapper, but faster: functions are often transformed again for every call.
    attributes: dict[str, Any] = made.__dict__
    attributes.update(getattr(function, "__dict__", ()))
    attributes["__wrapped__"] = function
    for name in _KEPT:
        try:
            attributes[name] = getattr(function, name)
        except AttributeError:
            if name == "__name__":
                attributes[name] = errors.name_of(function)


def transform_name(function: Any) -> str | None:
    """The name of the transform that made a function, or None."""
    if not isinstance(function, TransformedFunction):
        return None
    return function._transform.__name__


def _docstring(made: TransformedFunction) -> str:
    f = made.__wrapped__
    argnums = _listed(made._options.get("argnums"))
    summary = made._summary.format(f=f"`{_label(f)}`", argnums=argnums)
    # The docstring of a partial is that of its class.
    text = None if type(f) is functools.partial else f.__doc__
    return f"{summary}\n\n{inspect.cleandoc(text)}" if text else summary


def _listed(argnums: Any) -> str:
    numbers = [str(n) for n in argnums] if isinstance(argnums, (tuple, list, range)) else [argnums]
    if len(numbers) == 1:
        return f"argument {numbers[0]}"
    return f"arguments {', '.join(numbers[:-1])} and {numbers[-1]}" if numbers else "no argument"


def _label(function: Any) -> str:
    return repr(function) if isinstance(function, TransformedFunction) else errors.name_of(function)


def _is_found_by_name(made: Any) -> bool:
    """Whether pickle finds this object in its module under its name."""
    found: Any = sys.modules.get(getattr(made, "__module__", None) or "")
    for part in getattr(made, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is made


def _remade(transform: Callable[..., Any], function: Any, options: dict[str, Any]) -> Any:
    return transform(function, **options)
