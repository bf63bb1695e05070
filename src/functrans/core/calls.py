"""Which function is being called at the place where a frame stands.

C functions have no Python frame: when `math.sin(x)` asks a tracer for a number, the innermost frame is the
caller's. The called function is read from its bytecode, so no source is needed.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from operator import or_
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from functrans.core.bytecode import Instruction, steps

# Python 3.11 calls some builtins by PRECALL once it has seen them often.
_CALLS = frozenset({"CALL", "PRECALL", "CALL_KW", "CALL_FUNCTION_EX"})
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_PREPARING = frozenset({"PRECALL", "KW_NAMES", "PUSH_NULL", "CACHE", "EXTENDED_ARG"})
# What collects the arguments of f(*args, **kwargs).
_COLLECTING = frozenset({"BUILD_LIST", "LIST_APPEND", "LIST_EXTEND", "LIST_TO_TUPLE", "BUILD_MAP"})
_COLLECTING |= {"DICT_MERGE", "CALL_INTRINSIC_1", "BUILD_CONST_KEY_MAP", "LOAD_CONST"}


@lru_cache(maxsize=1024)
def _instruction(code: CodeType, offset: int) -> tuple[str, tuple[str, ...] | None]:
    """The operation at an offset and, for a call, the dotted name that is called, if there is one."""
    # A frame that waits for a Python call may point into the inline cache after its instruction.
    *before, last = (each for each in steps(code) if each.offset <= offset)
    return last.name, _called_name(before, last) if last.name in _CALLS else None


def _called_name(before: list[Instruction], call: Instruction) -> tuple[str, ...] | None:
    """The name `a.b.c` before the call's parenthesis: its code begins where the call's does.

    For `f(x).b.c`, only b.c is known; the first part is then empty.
    """
    if call.line is None or call.column is None:
        return None
    attributes: list[str] = []
    keywords = call.name == "CALL_KW"
    preparing = _PREPARING | _COLLECTING if call.name == "CALL_FUNCTION_EX" else _PREPARING
    for each in reversed(before):
        if keywords and each.name == "LOAD_CONST":  # from Python 3.13 on, their names come last
            keywords = False
            continue
        if (each.line, each.column) != (call.line, call.column):
            continue
        name = str(each.argument)
        if each.name in _ATTRIBUTES:
            attributes.append(name)
        elif each.name.startswith(tuple(_NAMES)):
            return name, *reversed(attributes)
        elif each.name not in preparing:
            break  # the result of a call, an index, ...
    return ("", *reversed(attributes)) if attributes else None


def operation_at(frame: FrameType) -> str:
    """The name of the bytecode instruction that a frame is at."""
    return _instruction(frame.f_code, frame.f_lasti)[0] if frame.f_lasti >= 0 else ""


def is_formatting(frame: FrameType) -> bool:
    """Whether a frame is at `"%f" % x`: a string has no derivative."""
    return operation_at(frame) == "BINARY_OP"


def called_at(frame: FrameType | None) -> tuple[str | None, Any]:
    """The last name and the function in the call that a frame is at; None where not known."""
    if frame is None or frame.f_lasti < 0:
        return None, None
    path = _instruction(frame.f_code, frame.f_lasti)[1]
    if path is None:
        return None, None
    return path[-1], _resolved(path, frame) if path[0] else None


def called_path(frame: FrameType) -> tuple[str, ...] | None:
    """The dotted name `a.b.c` of the function that a frame calls, if it has one."""
    path = _instruction(frame.f_code, frame.f_lasti)[1] if frame.f_lasti >= 0 else None
    return path if path and path[0] else None


def called_name(code: CodeType, offset: int) -> str | None:
    """The last name of the function that is called at an offset."""
    path = _instruction(code, offset)[1]
    return path[-1] if path else None


def assigned_at(frame: FrameType) -> Any:
    """The object `a.b` in the assignment a.b[i] = x, a.b[i] += x or call a.b.fill(x) that a frame is at."""
    if frame.f_lasti < 0:
        return None
    called = called_path(frame)
    path = _first_path(frame.f_code, frame.f_lasti) if called is None else called[:-1]
    return _resolved(path, frame) if path else None


@lru_cache(maxsize=1024)
def _first_path(code: CodeType, offset: int) -> tuple[str, ...]:
    """The dotted name with which the expression or statement at an offset begins."""
    *before, last = (each for each in steps(code) if each.offset <= offset)
    if last.line is None or last.column is None or last.end is None:
        return ()
    begun = [(each.line, each.column) == (last.line, last.column) for each in before]
    target = range(last.column, last.end)
    # In a[i] = x, Python 3.13 joins the loads of x and a, and does not say where a begins.
    joined = [
        each.after is not None and each.after not in target and each.line == last.line
        for each in before
    ]
    return _path(before, begun) or _path(before, list(map(or_, begun, joined)))


def _path(before: list[Instruction], begun: list[bool]) -> tuple[str, ...]:
    """The first dotted name among the steps that belong to the beginning of an expression."""
    path: list[str] = []
    for each, here in zip(before, begun, strict=True):
        if not here:
            if path:
                break
        elif each.name.startswith(tuple(_NAMES)):
            path = [
                str(each.argument)
            ]  # an earlier run of the same line may be there, as in `finally`
        elif each.name in _ATTRIBUTES and path:
            path.append(str(each.argument))
        elif path and each.name not in _PREPARING:
            break
    return tuple(path)


def _resolved(path: tuple[str, ...], frame: FrameType) -> Any:
    first, *attributes = path
    for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if first in names:
            value = names[first]
            break
    else:
        return None
    for attribute in attributes:
        if issubclass(type(value), _transparent()):
            value = getattr(value, attribute, None)
        else:  # an attribute of an object, read without running its code
            value = getattr(value, "__dict__", _NOTHING).get(attribute)
    return value


_NOTHING: dict[str, Any] = {}


@cache
def _transparent() -> tuple[type, ...]:
    """What may be asked for an attribute without running code of the user's."""
    # NumPy imports its generators when they are first used, which takes a while.
    return ModuleType, type, np.ndarray, np.ufunc, np.random.Generator, np.random.RandomState


def module_of(function: Any) -> str:
    """The public module of a function in NumPy, SciPy or the standard library: `scipy.optimize`."""
    module: str = getattr(function, "__module__", None) or ""
    parts = module.split(".")
    public = [part for part in parts if not part.startswith("_")]
    name = getattr(function, "__name__", "")
    for length in range(len(public), 0, -1):
        candidate = ".".join(public[:length])
        if getattr(sys.modules.get(candidate), name, None) is function:
            return candidate
    return module
