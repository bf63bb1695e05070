"""Probe: a script that checks one law of the library, and raises an exception if it is broken.

A kind of probe is a function from a `Chooser` to a `Probe`. The script needs only NumPy,
functrans and `laws.py`, so a failing probe is its own report.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.fuzz.laws import BrokenLawError
from tools.fuzz.programs.choosing import Chooser

HEADER = "import numpy as np\n\nimport functrans as ft\nfrom tools.fuzz import laws\n"
_LONGEST = 60.0  # seconds that a probe may take
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Probe:
    """A script, and the names of its parts, for statistics."""

    text: str
    features: tuple[str, ...] = ()


# Writes probes of one kind. It may raise `RejectedError` if the choices do not fit together.
Write = Callable[[Chooser], Probe]


class RejectedError(Exception):
    """The choices do not make a valid probe."""


def probe(body: str, *features: str, definitions: dict[str, str] | None = None) -> Probe:
    """A probe whose script has this body, below the imports that all scripts share.

    The script includes the definitions that the body mentions, and those that they mention in turn. The keys
    of `definitions` are the names that they define; each may mention those before it.
    """
    needed: list[str] = []
    words = set(_WORD.findall(body))
    for names, text in reversed((definitions or {}).items()):
        if words & set(names.split()):
            needed.insert(0, text.strip())
            words |= set(_WORD.findall(text))
    imports = [text for text in needed if text.startswith(("import ", "from "))]
    others = [text for text in needed if text not in imports]
    header = "\n".join([*imports, "", HEADER]) if imports else HEADER
    return Probe("\n\n".join([header.rstrip(), *others, body.strip()]) + "\n", features)


def failure_of(subject: Probe) -> Exception | None:
    """Run a probe; returns the exception that it raises, if any."""
    code = compile(subject.text, "<probe>", "exec")
    try:
        # Probes divide by zero, and use deprecated functions.
        with _limited(_LONGEST), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, {"__name__": "__main__"})
    except Exception as error:
        return error
    return None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise a `TimeoutError` if a block takes longer, on platforms where signals allow it."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not finished in {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def sort_of(error: Exception) -> str:
    """The sort of a failure: the broken law, or the type of an unexpected error."""
    return error.law if isinstance(error, BrokenLawError) else type(error).__name__


def indented(text: str, depth: int = 1) -> str:
    return "\n".join("    " * depth + line if line else line for line in text.splitlines())


def script(subject: Probe, error: Exception, origin: str = "") -> str:
    """A failed probe as a script, with the failure above it."""
    message = f"{type(error).__name__}: {error}".replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{origin}\n\n{message}\n"""\n\n{subject.text}'
