"""Makes the modes that affect functions of tensors part of the keys of compiled code."""

from __future__ import annotations

from collections.abc import Hashable

from functrans.core.dispatch import add_mode
from functrans.torch import dtypes
from functrans.torch.random import lanes
from functrans.torch.tape import MODE

_USUAL = (dtypes.float32, True, False, None, "same")


def _mode() -> Hashable:
    mode = (dtypes.default.torch, MODE.enabled, MODE.inference, MODE.autocast, lanes.policy)
    return None if mode == _USUAL else mode


add_mode(_mode)
