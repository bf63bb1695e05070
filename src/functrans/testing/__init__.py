"""Tools for tests: check derivatives against finite differences."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from functrans.core.publishing import publish as _publish
from functrans.testing.derivatives import check_derivatives

if TYPE_CHECKING:
    from functrans.testing import fuzz as fuzz
    from functrans.testing import laws as laws
    from functrans.testing import programs as programs

__all__ = ["check_derivatives"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in ("fuzz", "laws", "programs"):  # imported when they are first used
        return import_module(f"functrans.testing.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_publish(__name__, [globals()[name] for name in __all__])
