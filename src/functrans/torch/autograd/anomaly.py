"""Find nan in backward passes, and report the line of the forward pass that it comes from."""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

from functrans.core.errors import user_depth
from functrans.torch.autograd.engine import Anomaly
from functrans.torch.tape import MODE, Record

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def _note(record: Record) -> None:
    """Note the line of the user's code that recorded an operation."""
    frames = [f for f in traceback.extract_stack() if not f.filename.startswith(_PACKAGE)]
    record.trace = traceback.format_list(frames)


class set_detect_anomaly:
    """Turn the check for nan on or off, as a function or as a context manager.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (Anomaly.enabled, Anomaly.check_nan, MODE.observers)
        Anomaly.enabled, Anomaly.check_nan = bool(mode), bool(check_nan)
        others = tuple(each for each in MODE.observers if each is not _note)
        MODE.observers = (*others, _note) if mode else others

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: Any) -> None:
        Anomaly.enabled, Anomaly.check_nan, MODE.observers = self._before


class detect_anomaly(set_detect_anomaly):
    """Check the backward passes inside for nan, and report the operation and where it was recorded.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.tensor(0.0, requires_grad=True)
    >>> with torch.autograd.detect_anomaly(check_nan=False):
    ...     (x * 2).backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only "
            "be enabled for debugging.",
            stacklevel=user_depth(),
        )
        super().__init__(False)
        self.check_nan = check_nan

    def __enter__(self) -> None:
        set_detect_anomaly(True, self.check_nan)


def is_anomaly_enabled() -> bool:
    """Whether backward passes check for anomalies.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_anomaly_enabled()
    False
    """
    return Anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether backward passes in anomaly mode check for nan.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return Anomaly.check_nan
