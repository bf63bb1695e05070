"""Scopes: which calls of the user's functions an equation comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from functrans.core.errors import is_users

_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = os.path.join(_STANDARD_LIBRARY, "site-packages")


class Call:
    """One call of a function while it was traced. Two calls of one function are two."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<call of {self.name}>"


Scope = tuple[Call, ...]  # outermost first


class CallStack:
    """The calls at work, found by looking at the frames between an operation and its transform.

    The frames of the last operation are held on to, so that a frame that is there again is the same call,
    and not another one at the same address.
    """

    __slots__ = ("base", "calls", "names", "scope")

    def __init__(self, base: Any, names: Mapping[Any, str]) -> None:
        self.base = base  # the frame to stop at
        # Names by the address of code, which is faster to look up than code and is kept alive: those of
        # the user's functions, of some of the library's, and None for all others.
        self.names: dict[int, tuple[str | None, Any]] = {
            id(code): (name, code) for code, name in names.items()
        }
        self.calls: dict[Any, Call] = {}  # by frame
        self.scope: Scope = ()

    def at(self, frame: Any) -> Scope:
        """The calls that a frame is in."""
        found: dict[Any, Call] = {}
        known, names = self.calls, self.names
        while frame is not None and frame is not self.base:
            code = frame.f_code
            entry = names.get(id(code))
            if entry is None:
                entry = code.co_name if _is_a_users_call(code) else None, code
                names[id(code)] = entry
            name = entry[0]
            if name is not None:
                call = known.get(frame)
                found[frame] = Call(name) if call is None else call
            frame = frame.f_back
        if found != known:
            self.calls = found
            self.scope = tuple(reversed(found.values()))
        return self.scope

    def forget(self) -> None:
        """Let go of all frames, which may refer back to what holds this object."""
        self.base = None
        self.calls = {}


def _is_a_users_call(code: Any) -> bool:
    """Whether code is a function of the user's, and not the body of a comprehension or of a module."""
    file: str = code.co_filename
    if file.startswith(_STANDARD_LIBRARY) and not file.startswith(_INSTALLED):
        return False
    return is_users(code) and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
