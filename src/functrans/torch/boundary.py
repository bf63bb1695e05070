"""The entry points for users: an error about a wrong argument names the function and the argument.

Functions assume valid arguments. This module wraps the public ones, once all of them are defined, and the
wrapper checks each argument against its annotation. Internal calls bypass the wrapper wherever a module has
imported the function directly; operators and layers have no wrapper.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.errors import FunctransError, is_outside
from functrans.torch.devices import device
from functrans.torch.dtypes import dtype
from functrans.torch.errors import (
    LinAlgError,
    TensorError,
    TensorIndexError,
    TensorTypeError,
    TensorValueError,
)
from functrans.torch.tensor import Tensor


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dtype.category < 2 and value.numel() == 1
    return is_plain(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1
    return is_plain(value, (int, float, np.number, np.bool_))


def _are_ints(value: Any) -> bool:
    return _is_int(value) or (isinstance(value, (tuple, list)) and all(map(_is_int, value)))


def _instance(*classes: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, classes)


_numbers = (int, float, complex, np.generic)

# The meaning of annotations: a test, and the types that pass without it.
_KINDS: dict[str, tuple[Callable[[Any], bool], frozenset[type]]] = {
    "Tensor": (_instance(Tensor), frozenset([Tensor])),
    "int": (_is_int, frozenset([int])),
    "float": (_is_number, frozenset([int, float])),
    "bool": (_instance(bool, np.bool_, int), frozenset([bool])),
    "str": (_instance(str), frozenset([str])),
    "None": (lambda value: value is None, frozenset([type(None)])),
    "Callable[..., Any]": (callable, frozenset()),
    "dtype": (_instance(dtype), frozenset([dtype])),
    "device": (_instance(device), frozenset([device])),
    "Number": (_instance(*_numbers, Tensor), frozenset([int, float, bool, Tensor])),
    "Array": (_instance(np.ndarray, Tracer), frozenset()),  # or the NumPy face of a tensor
    "ints": (_are_ints, frozenset([int])),
}

# The types that parameters with these names accept, where the annotation is only Any.
_INTS = ("dim", "dims", "size", "sizes", "shape", "normalized_shape", "shifts", "n")
_WINDOWS = ("stride", "dilation", "kernel_size", "output_padding", "source", "destination")
_OPERANDS = (
    "input",
    "other",
    "y",
    "index",
    "values",
    "elements",
    "test_elements",
    "tensor1",
    "tensor2",
)
_NUMBERS = ("alpha", "beta", "fill_value", "min", "max", "posinf", "neginf", "rcond", "tol")
_NAMES = {
    "dtype": "dtype | None",
    "device": "device | str | int | None",
    "padding": "ints | str",
    "norm": "str | None",
    "layout": "str | None",
    "unbiased": "bool | ints | None",
    "x": "Tensor | Array",
    "src": "Tensor | Number | Array | None",
    **dict.fromkeys(_INTS + _WINDOWS, "ints | None"),
    **dict.fromkeys(_OPERANDS, "Tensor | Number | Array"),
    **dict.fromkeys(_NUMBERS, "Number | None"),
}


class _Takes:
    """The types that a parameter accepts."""

    __slots__ = ("known", "tests", "words")

    def __init__(self, annotation: str) -> None:
        self.words = annotation.split(" | ")
        self.tests, known = zip(*[_KINDS[word] for word in self.words], strict=True)
        self.known: frozenset[type] = frozenset().union(*known)  # these pass without a test

    def __contains__(self, value: Any) -> bool:
        return any(test(value) for test in self.tests)

    def __str__(self) -> str:
        words = [word.partition("[")[0] for word in self.words if word != "Array"]
        return " or ".join("tuple of ints" if word == "ints" else word for word in words)


def _taken(function: Callable[..., Any]) -> dict[str, _Takes | None]:
    """The types that each parameter accepts; None for any, or if only the function itself can tell."""
    found: dict[str, _Takes | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
        annotation = str(parameter.annotation)
        if annotation == "Any":
            annotation = _NAMES.get(name, annotation)
        known = all(word in _KINDS for word in annotation.split(" | "))
        found[name] = _Takes(annotation) if known else None
    return found


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def checked(function: FunctionType, name: str, *, checks: bool = True) -> Any:
    """A function that says what was wrong with its arguments; `checks`: also before it is called."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    renames = "dim" in names  # `axis` is accepted as another name for `dim`
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
        if result is NotImplemented:  # called as a function: there is no reflected operator to try
            raise _combination(name, args, options)
        return result

    return wrapper


def _refusal(function: str, taken: Any, args: tuple[Any, ...], options: Any) -> TensorTypeError:
    """The error for the first argument that its parameter does not accept."""
    given = [(name, value, k) for k, (name, value) in enumerate(zip(taken, args, strict=False))]
    given += [(name, value, -1) for name, value in options.items()]
    for name, value, k in given:
        kind = taken.get(name)
        if kind is None or value in kind:
            continue
        shift = 0 if next(iter(taken)) == "self" else 1
        place = f" (position {k + shift})" if k >= 0 else ""
        hint = ""
        if "Tensor" in kind.words and is_plain(value, (int, float, complex, list, np.generic)):
            hint = ": convert it with torch.tensor(...)"
        elif "Tensor" in kind.words and is_plain(value, np.ndarray):
            hint = ": convert it with torch.from_numpy(...)"
        return TensorTypeError(
            f"{function}(): argument '{name}'{place} must be {kind}, not "
            f"{type(value).__name__}{hint}"
        )
    raise AssertionError("called for valid arguments")


def _is_ours(error: BaseException) -> bool:
    """Whether an error arose in functrans or NumPy, rather than in the user's code."""
    traceback = error.__traceback__.tb_next if error.__traceback__ else None
    while traceback is not None:
        if is_outside(traceback.tb_frame.f_code):
            return False
        traceback = traceback.tb_next
    return True


def explained(error: Exception, name: str, args: Any, options: Any) -> Exception:
    """Replace an internal error by one that describes the arguments of the function.

    Deliberate errors, and those from the user's functions, are returned unchanged.
    """
    if isinstance(error, FunctransError) or not _is_ours(error):
        return error
    if isinstance(error, AttributeError) and error.name is None:
        return error
    if isinstance(error, TypeError) and error.__traceback__.tb_next is None:  # type: ignore[union-attr]
        return TensorTypeError(f"{name}(){str(error).partition('()')[2]}")  # the call itself failed
    if isinstance(error, (AttributeError, KeyError, AssertionError, RecursionError, NameError)):
        return _combination(name, args, options)
    if isinstance(error, TypeError) or not all(map(_is_usual, (*args, *options.values()))):
        return _combination(name, args, options, str(error))
    for kind, ours in _OURS.items():
        if isinstance(error, kind):
            return ours(f"{name}(): {error}")
    return error


# PyTorch's error classes for NumPy's, if all arguments have valid types.
_OURS: dict[type[Exception], type[FunctransError]] = {
    np.linalg.LinAlgError: LinAlgError,
    IndexError: TensorIndexError,
    OverflowError: TensorValueError,
    ValueError: TensorError,
}


def _is_usual(value: Any) -> bool:
    """Whether functions of tensors accept a value of this type at all."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_usual, value))
    return value is None or isinstance(value, (Tensor, dtype, device, str, bool, *_numbers))


def _combination(name: str, args: Any, options: Any, reason: str = "") -> TensorTypeError:
    kinds = [_kind_of(value) for value in args]
    kinds += [f"{key}={_kind_of(value)}" for key, value in options.items()]
    reason = f" ({reason})" if reason else ""
    return TensorTypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)}){reason}; "
        f"see help({name})"
    )


def _kind_of(value: Any) -> str:
    if type(value) in (tuple, list):
        name = type(value).__name__
        return f"{name} of {_kind_of(value[0])}" if value else f"empty {name}"
    return type(value).__name__


_UNWRAPPED = frozenset(["forward", "extra_repr"])  # called by Module.__call__ and by repr


def guard(owners: Iterable[tuple[Any, dict[str, Any]]]) -> None:
    """Wrap the public functions of modules and classes, and the methods of classes in modules."""
    wrappers: dict[int, Any] = {}

    def put(owner: Any, name: str, function: FunctionType) -> None:
        wrapper = wrappers.get(id(function))
        if wrapper is None:
            if not _can_go_wrong(function, inspect.isclass(owner)):
                return
            made = name == "__init__"
            wrapper = checked(function, owner.__name__ if made else name, checks=not made)
            wrappers[id(function)] = wrappers[id(wrapper)] = wrapper
            if inspect.ismodule(owner):  # where pickle finds it
                wrapper.__module__, wrapper.__qualname__ = owner.__name__, name
            else:
                wrapper.__module__ = owner.__module__
                wrapper.__qualname__ = f"{owner.__qualname__}.{name}"
        setattr(owner, name, wrapper)

    for owner, names in owners:
        for name, value in names.items():
            if isinstance(value, FunctionType):
                put(owner, name, value)
            elif inspect.isclass(value) and value is not Tensor:
                for member, method in list(vars(value).items()):
                    public = member == "__init__" or not member.startswith("_")
                    if public and isinstance(method, FunctionType) and member not in _UNWRAPPED:
                        put(value, member, method)


def _can_go_wrong(function: FunctionType, method: bool) -> bool:
    """Whether a function takes arguments, and does not check them itself."""
    code = inspect.unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return count > method and not hasattr(function, "checks_itself")
