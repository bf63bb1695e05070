"""Where calls of users come in: a wrong argument is an error that names the function and the argument.

Functions are written for arguments that fit. The public ones are wrapped here, once, when all have been
defined: what a parameter is annotated with is what it takes. Calls among ourselves go past the wrapper
wherever a module imported the function itself, and operators and layers have none.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from functrans.core.errors import FunctransError, is_users
from functrans.torch.errors import TensorTypeError
from functrans.torch.tensor import Tensor

_LARGEST = 2**63


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dtype.category < 2 and value.numel() == 1
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1
    return isinstance(value, (int, float, np.number, np.bool_))


# What annotations mean: a test, and the types that need none.
_KINDS: dict[str, tuple[Callable[[Any], bool], frozenset[type]]] = {
    "Tensor": (lambda value: isinstance(value, Tensor), frozenset([Tensor])),
    "int": (_is_int, frozenset([int])),
    "float": (_is_number, frozenset([int, float])),
    "bool": (lambda value: isinstance(value, (bool, np.bool_)), frozenset([bool])),
    "str": (lambda value: isinstance(value, str), frozenset([str])),
    "None": (lambda value: value is None, frozenset([type(None)])),
    "Callable[..., Any]": (callable, frozenset()),
}


class _Takes:
    """What a parameter takes."""

    __slots__ = ("known", "tests", "words")

    def __init__(self, annotation: str) -> None:
        self.words = annotation.split(" | ")
        self.tests, known = zip(*(_KINDS[word] for word in self.words), strict=True)
        self.known: frozenset[type] = frozenset().union(*known)  # the types that need no test

    def __contains__(self, value: Any) -> bool:
        return any(test(value) for test in self.tests)

    def __str__(self) -> str:
        words = [word.partition("[")[0] for word in self.words]
        return " or ".join(words)


def _taken(function: Callable[..., Any]) -> dict[str, _Takes | None]:
    """What each parameter takes; None if anything, or if only the function itself can tell."""
    found: dict[str, _Takes | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
        words = str(parameter.annotation).split(" | ")
        known = all(word in _KINDS for word in words)
        found[name] = _Takes(str(parameter.annotation)) if known else None
    return found


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def guarded(function: FunctionType, name: str, *, checks: bool = True) -> FunctionType:
    """A function that says what was wrong with its arguments; `checks`: also before it is called."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    renames = "dim" in names  # a function of `dim` also knows it by the name `axis`
    taken: dict[str, _Takes | None] | None = None
    kinds: tuple[_Takes | None, ...] = ()

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        nonlocal taken, kinds
        if taken is None:
            taken = _taken(function) if checks else {}
            kinds = tuple(taken.values())
        for value, kind in zip(args, kinds, strict=False):
            if kind is not None and type(value) not in kind.known and value not in kind:
                raise _refusal(name, taken, args, options)
        if options:
            if renames:
                for theirs, ours in _NUMPY_NAMES.items():
                    if theirs in options:
                        options[ours] = options.pop(theirs)
            for key, value in options.items():
                kind = taken.get(key)
                if kind is not None and type(value) not in kind.known and value not in kind:
                    raise _refusal(name, taken, args, options)
        try:
            result = function(*args, **options)
        except Exception as error:
            better = explained(error, name, args, options)
            if better is error:
                raise
            raise better from error
        if result is NotImplemented:  # an operator by its name: there is no other to ask
            raise _combination(name, args, options)
        return result

    return wrapper


def _refusal(function: str, taken: Any, args: tuple[Any, ...], options: Any) -> TensorTypeError:
    """The error for the first argument that is not what its parameter takes."""
    given = [(name, value, k) for k, (name, value) in enumerate(zip(taken, args, strict=False))]
    given += [(name, value, -1) for name, value in options.items()]
    for name, value, k in given:
        kind = taken.get(name)
        if kind is None or value in kind:
            continue
        shift = 0 if next(iter(taken)) == "self" else 1
        place = f" (position {k + shift})" if k >= 0 else ""
        hint = ""
        if "Tensor" in kind.words and isinstance(value, (int, float, complex, list, np.generic)):
            hint = ": pass torch.tensor(...) of it"
        elif "Tensor" in kind.words and isinstance(value, np.ndarray):
            hint = ": pass torch.from_numpy(...) of it"
        return TensorTypeError(
            f"{function}(): argument '{name}'{place} must be {kind}, not "
            f"{type(value).__name__}{hint}"
        )
    raise AssertionError("called for arguments that fit")


def _is_ours(error: BaseException) -> bool:
    """Whether an error came about in our own code or NumPy's, and in no function of the user's."""
    traceback = error.__traceback__.tb_next if error.__traceback__ else None
    while traceback is not None:
        if is_users(traceback.tb_frame.f_code):
            return False
        traceback = traceback.tb_next
    return True


def explained(error: Exception, name: str, args: Any, options: Any) -> Exception:
    """An error that came about inside, as one that says what the function was given.

    Errors on purpose, and those in functions of the user's, are as good as they can be.
    """
    if isinstance(error, FunctransError) or not _is_ours(error):
        return error
    if isinstance(error, AttributeError) and error.name is None:
        return error
    if isinstance(error, (AttributeError, KeyError, AssertionError, RecursionError, NameError)):
        return _combination(name, args, options)
    if isinstance(error, TypeError):
        if error.__traceback__ is None or error.__traceback__.tb_next is None:  # it was never called
            return TensorTypeError(f"{name}(){str(error).partition('()')[2]}")
        return _combination(name, args, options, str(error))
    return error


def _combination(name: str, args: Any, options: Any, reason: str = "") -> TensorTypeError:
    kinds = [_kind_of(value) for value in args]
    kinds += [f"{key}={_kind_of(value)}" for key, value in options.items()]
    reason = f" ({reason})" if reason else ""
    return TensorTypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)}){reason}; "
        f"help({name}) says what it takes"
    )


def _kind_of(value: Any) -> str:
    if type(value) in (tuple, list):
        name = type(value).__name__
        return f"{name} of {_kind_of(value[0])}" if value else f"empty {name}"
    return type(value).__name__


_UNWRAPPED = frozenset(["forward", "extra_repr"])  # called by Module.__call__, and by repr


def guard(names: Callable[[], Iterator[tuple[Any, dict[str, Any]]]]) -> None:
    """Wrap public functions, and what public classes define; `names` gives owners and their names."""
    wrappers: dict[int, Any] = {}

    def put(owner: Any, name: str, function: Any, checks: bool = True) -> None:
        if id(function) not in wrappers:
            called = owner.__name__ if name == "__init__" else name
            wrappers[id(function)] = guarded(function, called, checks=checks)
            wrappers[id(wrappers[id(function)])] = wrappers[id(function)]
            home = sys.modules.get(function.__module__)
            if vars(home).get(function.__qualname__) is function:  # where pickle looks for it
                setattr(home, function.__qualname__, wrappers[id(function)])
        setattr(owner, name, wrappers[id(function)])

    for owner, public in list(names()):
        for name, value in public.items():
            if isinstance(value, FunctionType):
                if _takes_arguments(value, inspect.isclass(owner)):
                    put(owner, name, value)
            elif inspect.isclass(value) and value is not Tensor:
                for member, method in list(vars(value).items()):
                    if not isinstance(method, FunctionType) or member in _UNWRAPPED:
                        continue
                    if member == "__init__" or not member.startswith("_"):
                        put(value, member, method, checks=member != "__init__")


def _takes_arguments(function: FunctionType, method: bool) -> bool:
    """Whether there is anything to get wrong, for a function that does not look itself."""
    code = inspect.unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return count > method and not hasattr(function, "checks_itself")
