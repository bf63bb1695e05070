"""Scopes: which calls of the user's functions an equation comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functrans.core.places import is_in_standard_library, is_outside


class FunctionCall:
    """One call of a function while it was traced. Two calls of the same function are distinct."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<call of {self.name}>"


Scope = tuple[FunctionCall, ...]  # outermost first


class CallStack:
    """The active calls, found in the frames between an operation and its transform.

    The frames of the last operation are kept alive, so that a frame found again is the same call, and not
    another one at the same address.
    """

    __slots__ = ("base", "calls", "names", "scope")

    def __init__(self, base: Any, names: Mapping[Any, str]) -> None:
        self.base = base  # the frame to stop at
        # Names by the address of the code object, which is faster to look up, and is kept alive: those of
        # the user's functions, of some library functions, and None for all others.
        self.names: dict[int, tuple[str | None, Any]] = {
            id(code): (name, code) for code, name in names.items()
        }
        self.calls: dict[Any, FunctionCall] = {}  # by frame
        self.scope: Scope = ()

    def at(self, frame: Any) -> Scope:
        """The calls that a frame is in."""
        found: dict[Any, FunctionCall] = {}
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
                found[frame] = FunctionCall(name) if call is None else call
            frame = frame.f_back
        if found != known:
            self.calls = found
            self.scope = tuple(reversed(found.values()))
        return self.scope

    def forget(self) -> None:
        """Release all frames, which may refer back to the owner of this object."""
        self.base = None
        self.calls = {}


def _is_a_users_call(code: Any) -> bool:
    """Whether code is a user's function, and not the body of a comprehension or of a module."""
    if is_in_standard_library(code) or not is_outside(code):
        return False
    return not code.co_name.startswith("<") or code.co_name == "<lambda>"
