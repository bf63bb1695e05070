"""NumPy's warnings about floating point, such as `invalid value encountered in log`, at the user's line.

NumPy warns at the frame that called it, which is in functrans while a transform runs. The warning would name
a line of functrans, and Python would show it once for all of the user's lines. NumPy has one hook: in the
mode "log" it writes its message to an object instead. `point` replaces "warn" with that mode for the duration
of a transform. All other modes that the user has set with np.errstate stay as they are.

Entering np.errstate would take a microsecond. It sets a context variable to an object that holds all modes.
Setting that variable to an existing object takes a tenth of that.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import Context, ContextVar, Token
from typing import Any

import numpy as np
from numpy._core import umath

from functrans.core.places import user_depth, user_frame

_KINDS = {"divide by zero": "divide", "overflow": "over", "underflow": "under"}
_KINDS["invalid value"] = "invalid"

# An implementation detail of NumPy: without it, warnings name the frames that NumPy chooses.
_state: ContextVar[Any] = getattr(umath, "_extobj_contextvar", ContextVar("none", default=None))
_plain: Any = Context().run(_state.get)  # the state if nothing has been set


class _Pointer:
    """Receives NumPy's reports, and handles them in the mode that the user has set."""

    def __init__(self, modes: dict[str, str], call: Any) -> None:
        self.modes = modes
        self.call = call

    def write(self, message: str) -> None:
        """For the mode "log", which is the user's own or replaces "warn"."""
        text = message.removeprefix("Warning: ").rstrip("\n")
        kind = _KINDS.get(text.partition(" encountered")[0], "invalid")
        if self.modes[kind] == "log":
            self.call.write(message)
            return
        if not _computes_for_tensors(sys._getframe(1)):
            warnings.warn(text, RuntimeWarning, stacklevel=user_depth())

    def __call__(self, kind: str, flag: int) -> Any:
        """For the mode "call", which is the user's own."""
        return self.call(kind, flag)


def _computes_for_tensors(frame: Any) -> bool:
    """Whether there is tensor code between the user's line and this frame: PyTorch does not warn."""
    user = user_frame(frame)
    while frame is not None and frame is not user:
        if frame.f_globals.get("__name__", "").startswith("functrans.torch."):
            return True
        frame = frame.f_back
    return False


def _pointed() -> Any:
    """The present state with "log" in place of "warn"; the same if the user wants no warnings."""
    modes: Any = np.geterr()
    if "warn" not in modes.values():
        return _state.get()
    pointing = {kind: "log" if mode == "warn" else mode for kind, mode in modes.items()}
    with np.errstate(call=_Pointer(modes, np.geterrcall()), **pointing):  # type: ignore[arg-type]
        return _state.get()


def real_part(value: Any) -> Any:
    """Cast complex values to real ones as NumPy does, with its warning at the user's line."""
    warnings.warn(
        "Casting complex values to real discards the imaginary part",
        np.exceptions.ComplexWarning,
        stacklevel=user_depth(),
    )
    return np.real(value)


_pointing: Any = Context().run(_pointed)  # what _plain becomes
_last: tuple[Any, Any] = (None, None)  # the last other state, and what it becomes


def point() -> Token[Any] | None:
    """Make warnings point at the user's line until `unpoint`; None if they do already."""
    state = _state.get()
    if state is _plain:
        return _state.set(_pointing)
    return None if state is _pointing else _point_from(state)


def _point_from(state: Any) -> Token[Any] | None:
    """The same if the user has set modes, or if NumPy's implementation differs."""
    global _last
    known, pointed = _last
    if state is not known:
        if state is None:
            return None
        pointed = _pointed()
        _last = state, pointed
    return None if pointed is state else _state.set(pointed)


def unpoint(token: Token[Any] | None) -> None:
    """Undo `point`, but not what the user's function has set in between."""
    if token is None:
        return
    left = _state.get()
    try:
        _state.reset(token)
    except (ValueError, RuntimeError):
        return  # an interruption has moved it to another task
    if left is not _pointing and left is not _last[1]:
        _keep(left)


def _keep(left: Any) -> None:
    """Keep the modes that the user's function set with np.seterr."""
    _state.set(left)
    modes: Any = np.geterr()
    pointer = np.geterrcall()
    if isinstance(pointer, _Pointer):
        modes = {k: pointer.modes[k] if mode == "log" else mode for k, mode in modes.items()}
        np.seterrcall(pointer.call)
    np.seterr(**modes)
