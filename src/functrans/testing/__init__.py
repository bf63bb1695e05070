"""Tools for tests: check derivatives against finite differences."""

from functrans.core.publishing import publish as _publish
from functrans.testing.derivatives import check_derivatives

__all__ = ["check_derivatives"]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])
