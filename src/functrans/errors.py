"""Every error a user can meet; see `functrans.core.errors`."""

from functrans.core.errors import *  # noqa: F403
