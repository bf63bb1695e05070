"""Policies that say what `checkpoint` keeps in addition to the arguments; see `functrans.checkpoint`."""

from functrans.core.publishing import publish as _publish
from functrans.custom.checkpointing import save_matmuls, save_names, save_nothing

__all__ = ["save_matmuls", "save_names", "save_nothing"]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])
