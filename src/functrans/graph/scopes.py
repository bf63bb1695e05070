"""Scopes: which calls of the user's functions an equation comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functrans.core.errors import is_users


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

    __slots__ = ("base", "known", "names", "scope")

    def __init__(self, base: Any, names: Mapping[Any, str]) -> None:
        self.base = base  # the frame to stop at
        self.names = names  # of functions of the library that count as the user's, by their code
        self.known: dict[Any, Call] = {}
        self.scope: Scope = ()

    def at(self, frame: Any) -> Scope:
        """The calls that a frame is in."""
        frames: dict[Any, Call] = {}
        while frame is not None and frame is not self.base:
            code = frame.f_code
            call = self.known.get(frame)
            if call is None:
                name = self.names.get(code)
                if name is None and is_users(code) and code.co_name not in _INLINE:
                    name = code.co_name
                if name is not None:
                    call = Call(name)
            if call is not None:
                frames[frame] = call
            frame = frame.f_back
        if frames != self.known:
            self.known = frames
            self.scope = tuple(reversed(frames.values()))
        return self.scope

    def forget(self) -> None:
        """Let go of all frames, which may refer back to what holds this object."""
        self.base = None
        self.known = {}


_INLINE = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"})
