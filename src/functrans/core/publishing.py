"""Public names of functions and classes, independent of the file they are in."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any


def publish(module: str, members: Iterable[Any]) -> None:
    """Set the public module of functions and classes, where users and pickle find them.

    A traceback then ends in `functrans.errors.LaneError`, a name that works in an `except`.
    """
    _public.add(module)
    for member in members:
        if not isinstance(member, (FunctionType, type)):
            continue
        given = member.__module__
        # An object in two public modules gets the shorter name.
        if given.startswith("functrans.") and (given not in _public or len(module) < len(given)):
            member.__module__ = module


_public: set[str] = set()
