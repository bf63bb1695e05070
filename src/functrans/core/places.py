"""Places in the user's code: the line that a message names, and the frame that a warning points at.

Frames between a mistake and the user's line belong to functrans, to NumPy, to the standard library or to an
installed package such as SciPy. They do not help the user, who did not write them.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

RULE_FILE = "<functrans rule>"  # the name of code that rules are compiled from
_OURS = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    "<functrans ",  # how the names of all generated code begin
    os.path.dirname(os.path.abspath(np.__file__)) + os.sep,
    "<__array_function__",
)
# Code that the standard library and other packages generate. It has no lines that a user could read.
_GENERATED = ("<frozen ", "<attrs generated", "<decorator-gen")
_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
# The methods that dataclasses and named tuples generate, in a file called "<string>".
_WRITTEN = frozenset(
    {
        "__init__",
        "__new__",
        "__eq__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__repr__",
        "__hash__",
    }
)

# Who wrote a file, if it is not the name of an installed package.
_FUNCTRANS = "functrans, or NumPy under it"
_LIBRARY = "the standard library"
_USER = "the user"


@lru_cache(4096)
def _author(file: str) -> str:
    """Who wrote a file; for a file of an installed package, the name of the package."""
    if file.startswith(_OURS):
        return _FUNCTRANS
    if file.startswith(_GENERATED):
        return _LIBRARY
    installed = _INSTALLED.match(file)
    if installed:
        return installed[1]
    return _LIBRARY if file.startswith(_standard_library()) else _USER


@cache
def _standard_library() -> tuple[str, ...]:
    import sysconfig  # which is slow to import, and seldom needed

    paths = {
        os.path.dirname(os.path.abspath(os.__file__)),
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sysconfig.get_path("scripts"),  # the little programs that start an installed one
    }
    return tuple(path + os.sep for path in paths if path)


def is_ours(code: Any) -> bool:
    """Whether code is functrans' own."""
    file: str = code.co_filename
    return file.startswith(_OURS[:2])


def is_outside(code: Any) -> bool:
    """Whether code is neither functrans' own nor NumPy's."""
    return _author(code.co_filename) is not _FUNCTRANS


def takes_hooks(code: Any) -> bool:
    """Whether calls in a piece of code have hooks: those in code from outside, and in numpy.polynomial.

    That package is written with NumPy's public functions, like code of users. The rest of NumPy means its own
    functions, on plain arrays.
    """
    return is_outside(code) or code.co_filename.startswith(_POLYNOMIALS)


_POLYNOMIALS = os.path.join(os.path.dirname(os.path.abspath(np.__file__)), "polynomial", "")


def is_in_standard_library(code: Any) -> bool:
    """Whether code is Python's own."""
    return _author(code.co_filename) is _LIBRARY


def calling_frame() -> Any:
    """The innermost frame whose calls have hooks; None if there is none."""
    return next((f for f in _frames(sys._getframe(1)) if takes_hooks(f.f_code)), None)


def user_frame(start: Any = None) -> Any:
    """The innermost frame of the user's own code; None if there is none.

    An installed package counts as the user's own code if it is the one that calls functrans: if it passes
    its own functions to a transform, or if all code on the stack is from installed packages.
    """
    start = sys._getframe(1) if start is None else start
    for frame in _frames(start):
        author = _author_of(frame)
        if author is _USER:
            return frame
        if author is not _FUNCTRANS and author is not _LIBRARY:
            break  # an installed package, which may be the user
    frames = list(_frames(start))
    authors = [_author_of(frame) for frame in frames]
    own = _own_packages(authors)
    for wanted in ({_USER, *own}, set(authors) - {_FUNCTRANS, _LIBRARY, "scipy"}):
        for frame, author in zip(frames, authors, strict=True):
            if author in wanted:
                return frame
    return next((frame for frame in frames if is_outside(frame.f_code)), None)


def _frames(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _author_of(frame: Any) -> str:
    code = frame.f_code
    if code.co_filename == "<string>" and code.co_name in _WRITTEN:
        return _LIBRARY
    return _author(code.co_filename)


def _own_packages(authors: list[str]) -> set[str]:
    """The packages that call functrans to transform their own functions; frames are innermost first."""
    own = set()
    for k, author in enumerate(authors[:-1]):
        if author not in (_FUNCTRANS, _LIBRARY, _USER, "scipy") and authors[k + 1] is _FUNCTRANS:
            caller = next((each for each in authors[k + 1 :] if each is not _FUNCTRANS), None)
            if caller == author:
                own.add(author)
    return own


def user_depth() -> int:
    """The `stacklevel` of a warning: how far up the user's frame is from the caller's."""
    start = sys._getframe(1)
    user = user_frame(start)
    for depth, frame in enumerate(_frames(start), 1):
        if frame is user:
            return depth
    return 1


class Place(NamedTuple):
    """A line of the user's code, and the instruction in it that is running."""

    code: Any
    line: int
    instruction: int
    inside: str | None  # the function of an installed package that the line calls

    def __str__(self) -> str:
        place = location_of(self.code, self.line)
        return f"{place} (inside {self.inside})" if self.inside else place


def user_place(start: Any = None) -> Place | None:
    """The current place in the user's code; None if no user code is running."""
    start = sys._getframe(1) if start is None else start
    frame = user_frame(start)
    if frame is None:
        return None
    inside = called_library(start, frame)
    return Place(frame.f_code, frame.f_lineno, frame.f_lasti, inside)


def place_in(traceback: Any) -> Place | None:
    """The innermost line of the user's code in a traceback."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _author_of(traceback.tb_frame) is _USER:
            found = Place(code, traceback.tb_lineno, traceback.tb_lasti, None)
        traceback = traceback.tb_next
    return found


def user_location() -> str:
    """The current place in the user's code, as `file, line n, in f: source`, ready for a message."""
    return str(user_place(sys._getframe(1)) or "an unknown place")


def called_library(start: Any, user: Any) -> str | None:
    """The function of an installed package that the user's line called, if the mistake is inside one."""
    called = None
    for frame in _frames(start):
        if frame is user:
            return called
        if is_outside(frame.f_code):
            module = frame.f_globals.get("__name__") or ""
            name = frame.f_code.co_qualname.partition(".<locals>")[0]
            name = name.removesuffix(".__init__").removesuffix(".__call__")
            public = [part for part in module.split(".") if not part.startswith("_")]
            called = ".".join([*public, name])
    return None


def location_of(code: Any, line: int) -> str:
    """A line of code, ready for a message."""
    text = linecache.getline(code.co_filename, line).strip()
    place = f"{_file_name(code)}, line {line}, in {code.co_name}"
    return f"{place}: `{text}`" if text else place


def _file_name(code: Any) -> str:
    folder, name = os.path.split(code.co_filename)
    # Jupyter keeps each cell in a file whose name is a meaningless number.
    return "notebook cell" if os.path.basename(folder).startswith("ipykernel_") else name


def name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial) and not hasattr(function, "__name__"):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def code_of(function: Any) -> Any:
    """The code of a function, behind all wrappers; None if it is not written in Python."""
    while True:
        for name in ("__wrapped__", "func", "__func__"):  # a transform's, a partial's, a method's
            inner = getattr(function, name, None)
            if callable(inner):
                function = inner
                break
        else:
            return getattr(function, "__code__", None)


def describe_users(function: Any) -> str:
    """The same, or None for a function of the library, which would not help a user."""
    ours = (getattr(function, "__module__", None) or "").startswith("functrans.")
    return "a function" if function is None or ours else describe(function)


def describe(function: Callable[..., Any]) -> str:
    """A user's function as a message names it: `loss` (model.py, line 12)."""
    name = name_of(function)
    code = code_of(function)
    if code is None or _author(code.co_filename) in (_FUNCTRANS, _LIBRARY, "scipy"):
        return f"`{name}`"  # the user did not write its file
    return f"`{name}` ({_file_name(code)}, line {code.co_firstlineno})"
